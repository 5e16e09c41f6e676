//! Failures on demand, so that tests see what happens when a device is lost or full; and launches that stand still, so
//! that tests can do something while a kernel runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{GpuError, Result};

/// Counts down to failures of an emulated device; shared between the test and the device.
///
/// A count of *n* lets *n* − 1 operations pass and fails the next one, once; zero means that nothing is due.
#[derive(Debug, Default)]
pub struct EmulatorFaults {
    launches: AtomicU64,
    kernels: AtomicU64,
    allocations: AtomicU64,
    losses: AtomicU64,
    strays: AtomicU64,
    no_compiler: AtomicBool,
    hold: Mutex<Hold>,
    changed: Condvar,
}

/// Whether a launch is to stand still, or does.
#[derive(Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    No,
    /// The next launch is to.
    Wanted,
    /// A launch does.
    Held,
}

impl EmulatorFaults {
    /// The `nth` launch from now (1 is the next) fails with [`crate::GpuError::DeviceLost`].
    pub fn fail_launch(&self, nth: u64) {
        self.launches.store(nth, Ordering::SeqCst);
    }

    /// The `nth` launch from now (1 is the next) is refused with [`crate::GpuError::LaunchRefused`], and the device
    /// goes on.
    pub fn refuse_launch(&self, nth: u64) {
        self.kernels.store(nth, Ordering::SeqCst);
    }

    /// The kernel of the `nth` launch from now (1 is the next) writes into a redzone of each buffer that has some.
    pub fn stray(&self, nth: u64) {
        self.strays.store(nth, Ordering::SeqCst);
    }

    /// From now on programs cannot be loaded for want of a compiler, or can again.
    pub fn take_compiler_away(&self, away: bool) {
        self.no_compiler.store(away, Ordering::SeqCst);
    }

    /// The `nth` device buffer from now (1 is the next) fails with [`crate::GpuError::OutOfMemory`].
    pub fn fail_allocation(&self, nth: u64) {
        self.allocations.store(nth, Ordering::SeqCst);
    }

    /// The next launch stands still before its first block, until something is written beside it (as cancelling does)
    /// or [`EmulatorFaults::release`]; past the device's time limit it fails.
    pub fn hold_launch(&self) {
        *self.hold.lock() = Hold::Wanted;
    }

    /// Waits until a launch stands still; whether one did within `patience`.
    pub fn wait_until_held(&self, patience: Duration) -> bool {
        let (mut hold, deadline) = (self.hold.lock(), Instant::now() + patience);
        while *hold != Hold::Held && !self.changed.wait_until(&mut hold, deadline).timed_out() {}
        *hold == Hold::Held
    }

    /// Lets a launch that stands still go on.
    pub fn release(&self) {
        *self.hold.lock() = Hold::No;
        self.changed.notify_all();
    }

    /// Called for each write beside running kernels.
    pub(super) fn host_wrote(&self) {
        let mut hold = self.hold.lock();
        if *hold == Hold::Held {
            *hold = Hold::No;
            self.changed.notify_all();
        }
    }

    /// Called before each launch.
    pub(super) fn hold(&self, kernel: &str, limit: Duration) -> Result<()> {
        let mut hold = self.hold.lock();
        if *hold != Hold::Wanted {
            return Ok(());
        }
        *hold = Hold::Held;
        self.changed.notify_all();
        let deadline = Instant::now() + limit;
        while *hold == Hold::Held && !self.changed.wait_until(&mut hold, deadline).timed_out() {}
        match std::mem::take(&mut *hold) {
            Hold::Held => Err(GpuError::Emulator(format!("kernel '{kernel}' stood still and nobody let it go on"))),
            _ => Ok(()),
        }
    }

    pub(super) fn launch_fails(&self) -> bool {
        is_due(&self.launches)
    }

    /// The `nth` device buffer from now (1 is the next) finds the device lost.
    pub fn lose_at_allocation(&self, nth: u64) {
        self.losses.store(nth, Ordering::SeqCst);
    }

    pub(super) fn allocation_finds_loss(&self) -> bool {
        is_due(&self.losses)
    }

    pub(super) fn launch_is_refused(&self) -> bool {
        is_due(&self.kernels)
    }

    pub(super) fn launch_strays(&self) -> bool {
        is_due(&self.strays)
    }

    pub(super) fn has_no_compiler(&self) -> bool {
        self.no_compiler.load(Ordering::SeqCst)
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
