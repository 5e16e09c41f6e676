//! The switch that cancels a statement, with everything that works for it, until its changes take their places.
//!
//! A statement ends once: it is cancelled, or it commits. The commit point of a statement that writes is the step after
//! which its changes are seen. A switch that is thrown before makes the commit fail, so that nothing is changed. A
//! switch that is thrown after does nothing, and the statement gives its result.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use warpcube_gpu::CancelSwitch;

/// The states of a switch.
const RUNNING: u8 = 0;
const COMMITTED: u8 = 1;
const CANCELLED: u8 = 2;

/// A switch that is thrown once.
#[derive(Debug, Default)]
pub struct Cancel {
    state: AtomicU8,
    notify: Notify,
    /// What works for the statement on the device, outside of the async threads.
    work: Mutex<Vec<Weak<CancelSwitch>>>,
}

impl Cancel {
    /// Throws the switch: loads and running kernels stop, whether or not the statement's stream is polled.
    ///
    /// Gives false if the statement's changes take their places already: it has to be waited for, and its result tells
    /// what became of it.
    pub fn cancel(&self) -> bool {
        if self.leave_running_for(CANCELLED) == COMMITTED {
            return false;
        }
        self.notify.notify_waiters();
        let work = std::mem::take(&mut *self.work.lock());
        work.iter().filter_map(Weak::upgrade).for_each(|switch| switch.throw());
        true
    }

    /// The statement's changes take their places from here on; false if it was cancelled before, and must change
    /// nothing.
    pub(crate) fn commit(&self) -> bool {
        self.leave_running_for(COMMITTED) == COMMITTED
    }

    /// The state, after a first call has set it.
    fn leave_running_for(&self, state: u8) -> u8 {
        self.state
            .compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(|now| now, |_| state)
    }

    /// Whether it was thrown; cheap enough to ask for every batch.
    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }

    /// Waits until it is thrown.
    pub async fn cancelled(&self) {
        let notified = self.notify.notified();
        tokio::pin!(notified);
        // Registered before the flag is read, so that a switch thrown in between is not missed.
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// Has `switch` thrown with this one, at once if it was thrown already.
    pub(crate) fn attach(&self, switch: &Arc<CancelSwitch>) {
        self.work.lock().push(Arc::downgrade(switch));
        if self.is_cancelled() {
            switch.throw();
        }
    }
}

/// Throws a switch when it is dropped with the future that waits for the work.
pub(crate) struct ThrowOnDrop(pub(crate) Arc<CancelSwitch>);

impl Drop for ThrowOnDrop {
    fn drop(&mut self) {
        self.0.throw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cancel_wakes_present_and_later_waiters() {
        let cancel = Arc::new(Cancel::default());
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        tokio::task::yield_now().await;
        cancel.cancel();
        waiting.await.unwrap();
        cancel.cancelled().await;
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn a_statement_is_cancelled_or_commits() {
        let (cancelled, committed) = (Cancel::default(), Cancel::default());
        assert!(cancelled.cancel() && !cancelled.commit() && cancelled.cancel() && cancelled.is_cancelled());
        assert!(committed.commit() && !committed.cancel() && committed.commit() && !committed.is_cancelled());
    }

    #[test]
    fn work_attached_before_and_after_is_stopped() {
        let (cancel, before, after) = (Cancel::default(), Arc::default(), Arc::default());
        cancel.attach(&before);
        assert!(!before.is_thrown());
        cancel.cancel();
        cancel.attach(&after);
        assert!(before.is_thrown() && after.is_thrown());
    }
}
