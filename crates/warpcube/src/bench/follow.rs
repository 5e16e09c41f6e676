//! Runs a suite on a thread of its own and follows it on this one: prints its lines, draws the bar and hears Ctrl-C.
//! The suite then stops before its next timed run, or chunk of rows that it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use warpcube_bench::report::Report;
use warpcube_bench::suite::{self, Failure, Listener, RunArgs, Suite};
use warpcube_sql::{Progress, SqlError};

use crate::console::{self, tell};
use crate::error::{CliError, Result};
use crate::host::{Host, TICK};
use crate::progress::Bar;

/// How long an interrupted suite is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the suite did.
enum Event {
    Line(String),
    Tell(String),
    At(String, Progress),
}

/// The suite's end of the line.
struct Sender {
    events: UnboundedSender<Event>,
    stop: Arc<AtomicBool>,
}

impl Listener for Sender {
    // The receiver is gone only after the run.
    fn line(&mut self, line: &str) {
        let _ = self.events.send(Event::Line(line.to_string()));
    }

    fn tell(&mut self, line: &str) {
        let _ = self.events.send(Event::Tell(line.to_string()));
    }

    fn at(&mut self, what: &str, done: u64, total: u64) {
        let _ = self.events.send(Event::At(what.to_string(), Progress { done, total, loading: false }));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs the cases of a suite and prints what they give. The run goes on after the reader of its text has gone if its
/// results are kept, or if it `goes_on` for another reason.
pub(crate) fn follow(mut suite: Box<dyn Suite>, arguments: &RunArgs, goes_on: bool, host: &Host) -> Result<()> {
    let (events, received) = unbounded_channel();
    let stop = Arc::new(AtomicBool::new(false));
    let goes_on = goes_on || arguments.json.is_some() || arguments.figures.is_some();
    let (bar, progress) = (Bar::new("measuring"), Progress::default());
    let mut printer = Printer { bar, progress, goes_on, failure: None, is_closed: false };
    let work = {
        let (arguments, sender) = (arguments.clone(), Sender { events, stop: stop.clone() });
        host.spawn_blocking(move || suite::run(suite.as_mut(), &arguments, Box::new(sender)))
    };
    let done = printer.follow(host, work, received, &stop);
    printer.bar.clear();
    match printer.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(done?.map(drop)?),
    }
}

/// Prints the lines as they come, and the bar.
struct Printer {
    bar: Bar,
    progress: Progress,
    goes_on: bool,
    /// Why no more can be printed.
    failure: Option<CliError>,
    is_closed: bool,
}

impl Printer {
    /// Prints the events of the work until it is done. An interrupt or a closed output stops it.
    fn follow(
        &mut self,
        host: &Host,
        work: JoinHandle<Result<Report, Failure>>,
        mut events: UnboundedReceiver<Event>,
        stop: &AtomicBool,
    ) -> Result<Result<Report, Failure>> {
        let mut interrupts = host.interrupts()?;
        let ended = host.block_on(async {
            tokio::pin!(work);
            let mut tick = tokio::time::interval(TICK);
            let mut waited = Duration::ZERO;
            loop {
                tokio::select! {
                    // The program's end stays signalled, so that it is received once only.
                    () = interrupts.recv(), if !stop.load(Ordering::Relaxed) => stop.store(true, Ordering::Relaxed),
                    Some(event) = events.recv() => self.event(event, stop),
                    ended = &mut work => return Some(ended),
                    _ = tick.tick() => {
                        self.bar.update(self.progress);
                        waited += if stop.load(Ordering::Relaxed) { TICK } else { Duration::ZERO };
                        if waited > PATIENCE {
                            return None;
                        }
                    }
                }
            }
        });
        let Some(ended) = ended else {
            host.abandon()?;
            return Ok(Err(Failure::Cancelled));
        };
        while let Ok(event) = events.try_recv() {
            self.event(event, stop);
        }
        ended.map_err(|error| SqlError::Internal(error.to_string()).into())
    }

    fn event(&mut self, event: Event, stop: &AtomicBool) {
        match event {
            Event::Line(line) => self.line(&line),
            Event::Tell(line) => {
                self.bar.clear();
                tell(line);
            }
            Event::At(what, progress) => {
                self.bar.name(&what);
                self.progress = progress;
            }
        }
        if self.failure.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn line(&mut self, line: &str) {
        if self.is_closed || self.failure.is_some() {
            return;
        }
        self.bar.clear();
        match console::print(&format!("{line}\n")) {
            Err(CliError::Closed) if self.goes_on => self.is_closed = true,
            written => self.failure = written.err(),
        }
    }
}
