//! Cancelling of running kernels: one thread throws a switch, kernels launched by another poll it.
//!
//! A statement registers the word of device memory that its kernels poll while it runs ([`CancelSwitch::watch`]).
//! A thrown switch writes the word while kernels run, every 2 ms until the statement drops its [`Watch`], because
//! earlier work in the stream may zero the word. A throw never waits. A statement that is not cancelled takes one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::buffer::DeviceBuffer;
use crate::error::{GpuError, Result};

/// Time between two writes of the word.
const INTERVAL: Duration = Duration::from_millis(2);

/// A switch that cancels one statement, once.
#[derive(Debug, Default)]
pub struct CancelSwitch {
    flag: Arc<AtomicBool>,
    watched: Mutex<Option<Word>>,
}

/// The word that running kernels poll.
#[derive(Debug)]
struct Word {
    buffer: DeviceBuffer,
    offset: usize,
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
    pub fn throw(self: &Arc<Self>) {
        if self.flag.swap(true, Ordering::AcqRel) || self.watched.lock().is_none() {
            return;
        }
        tracing::debug!("cancelling running kernels");
        let switch = self.clone();
        let writer = std::thread::Builder::new().name("warpcube-cancel".into());
        if let Err(error) = writer.spawn(move || {
            while switch.write() {
                std::thread::sleep(INTERVAL);
            }
        }) {
            tracing::warn!(%error, "no thread could be started to cancel kernels");
            self.write();
        }
    }

    /// Writes the word once; false if no statement watches it or the write fails.
    fn write(&self) -> bool {
        // Under the lock the word's buffer is not dropped, so its memory is in no other buffer.
        let watched = self.watched.lock();
        let Some(word) = &*watched else { return false };
        let written = word.buffer.host_write(word.offset, 1);
        written.inspect_err(|error| tracing::warn!(%error, "running kernels could not be cancelled")).is_ok()
    }

    /// Registers the word, 8 bytes at `offset`, that the next kernels poll: they end if it is not zero. The caller
    /// zeroes it before they start, and drops the guard after they have ended.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`] if the switch was thrown before.
    pub fn watch<'a>(&'a self, buffer: &DeviceBuffer, offset: usize) -> Result<Watch<'a>> {
        let mut watched = self.watched.lock();
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
    fn drop(&mut self) {
        *self.switch.watched.lock() = None;
    }
}
