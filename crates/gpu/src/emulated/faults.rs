//! Failures on demand, so that tests see what happens when a device is lost or full.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts down to failures of an emulated device; shared between the test and the device.
///
/// A count of *n* lets *n* − 1 operations pass and fails the next one, once; zero means that nothing is due.
#[derive(Debug, Default)]
pub struct EmulatorFaults {
    launches: AtomicU64,
    allocations: AtomicU64,
}

impl EmulatorFaults {
    /// The `nth` launch from now (1 is the next) fails with [`crate::GpuError::DeviceLost`].
    pub fn fail_launch(&self, nth: u64) {
        self.launches.store(nth, Ordering::SeqCst);
    }

    /// The `nth` device buffer from now (1 is the next) fails with [`crate::GpuError::OutOfMemory`].
    pub fn fail_allocation(&self, nth: u64) {
        self.allocations.store(nth, Ordering::SeqCst);
    }

    pub(super) fn launch_fails(&self) -> bool {
        is_due(&self.launches)
    }

    pub(super) fn allocation_fails(&self) -> bool {
        is_due(&self.allocations)
    }
}

fn is_due(count: &AtomicU64) -> bool {
    let before = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
    before == Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_operation_fails_and_no_other() {
        let faults = EmulatorFaults::default();
        assert!(!faults.launch_fails());
        faults.fail_launch(3);
        let outcomes: Vec<bool> = (0..5).map(|_| faults.launch_fails()).collect();
        assert_eq!(outcomes, [false, false, true, false, false]);
        assert!(!faults.allocation_fails());
    }
}
