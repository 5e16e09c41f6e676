//! Cancelling of running kernels: one thread throws a switch, kernels launched by another poll it.
//!
//! A statement registers the word of device memory that its kernels poll while it runs ([`CancelSwitch::watch`]). A
//! thrown switch writes the word while kernels run, every 2 ms until the statement drops its [`Watch`], because earlier
//! work in the stream may zero the word. A throw never waits; the end of the watch joins the thread that writes. A
//! statement that is not cancelled takes one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::buffer::DeviceBuffer;
use crate::error::{GpuError, Result};
use crate::threads::Threads;

/// Time between two writes of the word.
const INTERVAL: Duration = Duration::from_millis(2);

/// A switch that cancels one statement, once.
#[derive(Debug, Default)]
pub struct CancelSwitch {
    flag: Arc<AtomicBool>,
    watched: Arc<Watched>,
    /// The thread of a thrown switch.
    writer: Threads,
}

/// The word of the statement that runs, shared with the thread that writes it.
#[derive(Debug, Default)]
struct Watched {
    word: Mutex<Option<Word>>,
    /// Signals the end of the watch.
    ended: Condvar,
}

/// The word that running kernels poll.
#[derive(Debug)]
struct Word {
    buffer: DeviceBuffer,
    offset: usize,
}

impl Word {
    /// Writes the word; false if the write fails.
    fn write(&self) -> bool {
        let written = self.buffer.host_write(self.offset, 1);
        written.inspect_err(|error| tracing::warn!(%error, "running kernels could not be cancelled")).is_ok()
    }
}

impl Watched {
    /// Writes the word until its watch ends or a write fails.
    fn write(&self) {
        // Under the lock the word's buffer is not dropped, so its memory is in no other buffer.
        let mut word = self.word.lock();
        while word.as_ref().is_some_and(Word::write) {
            self.ended.wait_for(&mut word, INTERVAL);
        }
    }

    fn end(&self) {
        *self.word.lock() = None;
        self.ended.notify_all();
    }
}

impl CancelSwitch {
    /// True once the switch is thrown, for loops on the host.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// True if the switch was thrown.
    pub fn is_thrown(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Throws the switch: running kernels of the statement end at their next poll. Returns at once.
    pub fn throw(&self) {
        if self.flag.swap(true, Ordering::AcqRel) {
            return;
        }
        // Held until the thread is started: the end of the watch joins it.
        let word = self.watched.word.lock();
        let Some(own) = &*word else { return };
        tracing::debug!("cancelling running kernels");
        let watched = self.watched.clone();
        if let Err(error) = self.writer.spawn("warpcube-cancel", move || watched.write()) {
            tracing::warn!(%error, "no thread could be started to cancel kernels");
            own.write();
        }
    }

    /// Registers the word, 8 bytes at `offset`, that the next kernels poll: they end if it is not zero. The caller
    /// zeroes it before they start, and drops the guard after they have ended.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`] if the switch was thrown before.
    pub fn watch<'a>(&'a self, buffer: &DeviceBuffer, offset: usize) -> Result<Watch<'a>> {
        let mut watched = self.watched.word.lock();
        // Read under the lock: a later throw finds the word.
        if self.is_thrown() {
            return Err(GpuError::Cancelled);
        }
        if watched.is_some() {
            return Err(GpuError::Contract("a cancel switch watches one word at a time".into()));
        }
        *watched = Some(Word { buffer: buffer.clone(), offset });
        Ok(Watch { switch: self })
    }
}

/// Keeps a word watched.
#[derive(Debug)]
pub struct Watch<'a> {
    switch: &'a CancelSwitch,
}

impl Drop for Watch<'_> {
    /// Joins the thread of a thrown switch: `exit` destroys the state of the driver, which a running thread would use.
    fn drop(&mut self) {
        self.switch.watched.end();
        self.switch.writer.join();
    }
}

impl Drop for CancelSwitch {
    /// Ends a watch whose guard was leaked; dropping `writer` joins its thread.
    fn drop(&mut self) {
        self.watched.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::emulated::EmulatorOptions;

    #[test]
    fn the_thread_of_a_thrown_switch_is_joined() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let buffer = device.buffer(8, "a test").unwrap();
        let thrown = || {
            let switch = CancelSwitch::default();
            let watch = switch.watch(&buffer, 0).unwrap();
            switch.throw();
            // The switch has one, the thread another.
            assert_eq!(Arc::strong_count(&switch.watched), 2);
            std::mem::forget(watch);
            switch
        };
        let switch = thrown();
        drop(Watch { switch: &switch });
        assert_eq!(Arc::strong_count(&switch.watched), 1, "the end of the watch joins it");
        let switch = thrown();
        let watched = switch.watched.clone();
        drop(switch);
        assert_eq!(Arc::strong_count(&watched), 1, "the end of the switch joins it");
    }
}
