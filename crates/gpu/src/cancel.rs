//! Stopping kernels that run: a switch that is thrown on one thread and seen by kernels launched from another.
//!
//! A statement whose kernels look at a word of device memory names that word while it runs ([`CancelSwitch::watch`]).
//! Throwing the switch writes to it beside the running kernels, again and again until the statement has let go, since
//! work already in the stream may zero the word before a kernel looks. A throw never waits. A statement that is not
//! cancelled pays for one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::buffer::DeviceBuffer;
use crate::error::{GpuError, Result};

/// How often the word is written while a cancelled statement has not let go.
const AGAIN: Duration = Duration::from_millis(2);

/// A switch that cancels one statement, once.
#[derive(Debug, Default)]
pub struct CancelSwitch {
    flag: Arc<AtomicBool>,
    watched: Mutex<Option<Word>>,
}

/// The word that running kernels look at.
#[derive(Debug)]
struct Word {
    buffer: DeviceBuffer,
    offset: usize,
}

impl CancelSwitch {
    /// The flag that is raised when the switch is thrown, for loops on the host.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Whether the switch was thrown.
    pub fn is_thrown(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Throws the switch: what runs for the statement ends at its next look. Returns at once.
    pub fn throw(self: &Arc<Self>) {
        if self.flag.swap(true, Ordering::AcqRel) || self.watched.lock().is_none() {
            return;
        }
        tracing::debug!("stopping running kernels");
        let switch = self.clone();
        let writer = std::thread::Builder::new().name("warpcube-cancel".into());
        if let Err(error) = writer.spawn(move || {
            while switch.write() {
                std::thread::sleep(AGAIN);
            }
        }) {
            tracing::warn!(%error, "no thread to cancel from");
            self.write();
        }
    }

    /// Writes the word once; false if no statement watches it any more.
    fn write(&self) -> bool {
        // The lock is held while the word is written, so that its memory goes to no other buffer meanwhile.
        match &*self.watched.lock() {
            Some(word) => match word.buffer.host_write(word.offset, 1) {
                Ok(()) => true,
                Err(error) => {
                    tracing::warn!(%error, "running kernels could not be told to stop");
                    false
                }
            },
            None => false,
        }
    }

    /// Names the word, 8 bytes at `offset`, that kernels about to be launched look at: not zero means that they end.
    /// It must be zero when they start and is watched until the guard is dropped, after they have ended.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`] if the switch was thrown already.
    pub fn watch<'a>(&'a self, buffer: &DeviceBuffer, offset: usize) -> Result<Watch<'a>> {
        let mut watched = self.watched.lock();
        // Read under the lock: a throw from here on finds the word.
        if self.is_thrown() {
            return Err(GpuError::Cancelled);
        }
        if watched.is_some() {
            return Err(GpuError::Contract("a cancel switch watches one run at a time".into()));
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
