//! SIGTERM and SIGHUP: they cancel the running statement as Ctrl-C does, remove unfinished outputs and end the program
//! with the code that shells give such an end.
//!
//! A thread of its own listens. It wakes the main thread, which ends the program as after any cancelled statement.
//! Where the main thread waits for something else, its input or a disk, the listener ends the program itself. A server
//! takes the first signal as the word to end by itself, with code 0, and the second one as others do the first.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use warpcube_sql::{Database, outputs};

use crate::exit;

/// How long the main thread has to end the program.
const GRACE: Duration = Duration::from_secs(2);
/// The exit code of a program that a signal has ended, less the signal's number.
const CODE_OF_SIGNALS: i32 = 128;

/// The exit code of the signal that ends the program; 0 while there was none.
static CODE: AtomicU8 = AtomicU8::new(0);

/// The exit code of the signal that ends the program, if one does.
pub(crate) fn code() -> Option<u8> {
    Some(CODE.load(Ordering::Acquire)).filter(|code| *code != 0)
}

/// The listener, and what it shares with the main thread.
pub(crate) struct Ending {
    /// Set when a signal has come. Receivers would end with an error if the sender were dropped; it lives here.
    told: watch::Sender<bool>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Whether the main thread watches a statement or other work, and so hears of the end.
    is_watching: AtomicBool,
    /// Whether the first signal leaves the end to the main thread.
    is_server: AtomicBool,
    database: OnceLock<Database>,
}

/// Marks that the main thread watches, until it is dropped.
pub(crate) struct Watching<'e>(&'e Shared);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.is_watching.store(false, Ordering::Release);
    }
}

impl Ending {
    /// Starts the listener.
    ///
    /// # Errors
    /// The system gives no thread or no signals.
    pub(crate) fn listen() -> std::io::Result<Ending> {
        let (told, _) = watch::channel(false);
        let shared = Arc::new(Shared::default());
        let (sender, of_listener) = (told.clone(), shared.clone());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let (mut terminated, mut hung_up) = (heard(SignalKind::terminate())?, heard(SignalKind::hangup())?);
        drop(guard);
        let listener = move || {
            let mut next = || {
                runtime.block_on(async {
                    tokio::select! {
                        () = came(&mut terminated) => SignalKind::terminate().as_raw_value(),
                        () = came(&mut hung_up) => SignalKind::hangup().as_raw_value(),
                    }
                })
            };
            let mut number = next();
            if of_listener.is_server.load(Ordering::Acquire) {
                sender.send_replace(true);
                number = next();
            }
            let code = CODE_OF_SIGNALS + number;
            CODE.store(u8::try_from(code).unwrap_or(u8::MAX), Ordering::Release);
            // Read before the signal is sent: the main thread stops watching then.
            let is_watching = of_listener.is_watching.load(Ordering::Acquire);
            sender.send_replace(true);
            if is_watching {
                std::thread::sleep(GRACE);
            }
            of_listener.database.get().into_iter().for_each(exit::close);
            outputs::remove_all();
            std::process::exit(code);
        };
        std::thread::Builder::new().name("signals".into()).spawn(listener)?;
        Ok(Ending { told, shared })
    }

    /// Remembers the database to close before the program ends.
    pub(crate) fn hold(&self, database: &Database) {
        // A program has one database; a second one needs no closing.
        let _ = self.shared.database.set(database.clone());
    }

    /// Leaves the end to the main thread at the first signal, which it hears of by [`Ending::told`].
    pub(crate) fn serve(&self) {
        self.shared.is_server.store(true, Ordering::Release);
    }

    /// Marks that the main thread waits for [`Ending::told`].
    pub(crate) fn watching(&self) -> Watching<'_> {
        self.shared.is_watching.store(true, Ordering::Release);
        Watching(&self.shared)
    }

    /// Set when a signal has come.
    pub(crate) fn told(&self) -> watch::Receiver<bool> {
        self.told.subscribe()
    }
}

/// A signal, unless the program was started with the signal ignored, as by `nohup`.
fn heard(kind: SignalKind) -> std::io::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match is_ignored(&status, kind.as_raw_value()) {
        true => Ok(None),
        false => signal(kind).map(Some),
    }
}

/// Whether the status of a process says that it ignores a signal.
fn is_ignored(status: &str, number: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (number - 1)) != 0
}

async fn came(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\twarpcube\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004000\n";
        assert!(is_ignored(status, SignalKind::hangup().as_raw_value()));
        assert!(!is_ignored(status, SignalKind::terminate().as_raw_value()));
        assert!(!is_ignored("", 1));
    }
}
