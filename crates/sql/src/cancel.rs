//! The switch that cancels a statement, with everything that works for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use warpcube_gpu::CancelSwitch;

/// A switch that is thrown once.
#[derive(Debug, Default)]
pub struct Cancel {
    thrown: AtomicBool,
    notify: Notify,
    /// What works for the statement on the device, outside of the async threads.
    work: Mutex<Vec<Weak<CancelSwitch>>>,
}

impl Cancel {
    /// Throws the switch: loads and running kernels stop, whether or not anybody polls the statement's stream.
    pub fn cancel(&self) {
        self.thrown.store(true, Ordering::Release);
        self.notify.notify_waiters();
        let work = std::mem::take(&mut *self.work.lock());
        work.iter().filter_map(Weak::upgrade).for_each(|switch| switch.throw());
    }

    /// Whether it was thrown; cheap enough to ask for every batch.
    pub fn is_cancelled(&self) -> bool {
        self.thrown.load(Ordering::Acquire)
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

/// Throws a switch when dropped: whoever waits for the work has gone.
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
    async fn cancel_wakes_those_who_wait_now_and_later() {
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
    fn work_attached_before_and_after_is_stopped() {
        let (cancel, before, after) = (Cancel::default(), Arc::default(), Arc::default());
        cancel.attach(&before);
        assert!(!before.is_thrown());
        cancel.cancel();
        cancel.attach(&after);
        assert!(before.is_thrown() && after.is_thrown());
    }
}
