//! Injected faults, by which tests reach the paths of a lost or full device; and held operations, during which a test
//! acts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{GpuError, Result};
use crate::program::Program;

/// Faults of an emulated device, shared between the test and the device.
///
/// A count of *n* lets *n* − 1 operations pass and fails the next one, once.
#[derive(Debug, Default)]
pub struct EmulatorFaults {
    pub(super) lost_launch: Countdown,
    pub(super) refused_launch: Countdown,
    pub(super) stray_launch: Countdown,
    pub(super) failed_wait: Countdown,
    pub(super) failed_allocation: Countdown,
    pub(super) lost_allocation: Countdown,
    compiler_missing: AtomicBool,
    deferral: Mutex<Option<Deferral>>,
    hold: Mutex<Hold>,
    changed: Condvar,
}

/// Programs that are not compiled for now.
#[derive(Debug)]
struct Deferral {
    /// Programs of this name fail, compiled before or not; without a name all that were not.
    name: Option<&'static str>,
    missing: Vec<Program>,
}

/// Operations until a fault; zero if none is due.
#[derive(Debug, Default)]
pub(super) struct Countdown(AtomicU64);

/// An operation that can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Launch,
    HostFree,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    No,
    /// The next such operation is to be held.
    Wanted(Operation),
    /// An operation is held.
    Held,
}

impl EmulatorFaults {
    /// The `nth` launch from now (1 is the next) fails with [`crate::GpuError::DeviceLost`].
    pub fn fail_launch(&self, nth: u64) {
        self.lost_launch.set(nth);
    }

    /// The `nth` launch from now (1 is the next) is refused with [`crate::GpuError::LaunchRefused`].
    pub fn refuse_launch(&self, nth: u64) {
        self.refused_launch.set(nth);
    }

    /// The kernel of the `nth` launch from now (1 is the next) writes to a redzone of each buffer that has one.
    pub fn damage_redzones(&self, nth: u64) {
        self.stray_launch.set(nth);
    }

    /// The `nth` wait of a stream or an event from now (1 is the next) fails with a status of the driver, as if work
    /// were still in flight.
    pub fn fail_wait(&self, nth: u64) {
        self.failed_wait.set(nth);
    }

    /// The `nth` device buffer from now (1 is the next) fails with [`crate::GpuError::OutOfMemory`].
    pub fn fail_allocation(&self, nth: u64) {
        self.failed_allocation.set(nth);
    }

    /// The `nth` device buffer from now (1 is the next) fails with [`crate::GpuError::DeviceLost`].
    pub fn lose_at_allocation(&self, nth: u64) {
        self.lost_allocation.set(nth);
    }

    /// Removes the compiler, or restores it.
    pub fn set_compiler_missing(&self, missing: bool) {
        self.compiler_missing.store(missing, Ordering::SeqCst);
    }

    pub(super) fn is_compiler_missing(&self) -> bool {
        self.compiler_missing.load(Ordering::SeqCst)
    }

    /// Until [`crate::Device::compile_deferred`], programs of this name fail with
    /// [`crate::GpuError::CompilerUnavailable`], and without a name all that were not compiled before: a test that runs
    /// its work once in vain has the missing programs compiled together.
    pub fn defer_programs(&self, name: Option<&'static str>) {
        *self.deferral.lock() = Some(Deferral { name, missing: Vec::new() });
    }

    /// Ends the deferral; the missing programs, each once.
    pub(super) fn take_deferred(&self) -> Vec<Program> {
        self.deferral.lock().take().map(|deferral| deferral.missing).unwrap_or_default()
    }

    pub(super) fn is_deferring(&self) -> bool {
        self.deferral.lock().is_some()
    }

    /// True if a program is not to be compiled for now.
    pub(super) fn defers(&self, program: &Program, is_compiled: impl Fn() -> bool) -> bool {
        let mut deferral = self.deferral.lock();
        let Some(Deferral { name, missing }) = deferral.as_mut() else { return false };
        if name.is_some_and(|name| name != program.name()) {
            return false;
        }
        let is_missing = !is_compiled();
        if is_missing && !missing.contains(program) {
            missing.push(program.clone());
        }
        is_missing || name.is_some()
    }

    /// Holds the next launch before its first block, until a host write (as cancelling does) or
    /// [`EmulatorFaults::release`]; past the device's time limit it fails.
    pub fn hold_launch(&self) {
        *self.hold.lock() = Hold::Wanted(Operation::Launch);
    }

    /// Holds the next free of host memory until [`EmulatorFaults::release`], at most for the device's time limit.
    pub fn hold_host_free(&self) {
        *self.hold.lock() = Hold::Wanted(Operation::HostFree);
    }

    /// Waits until an operation is held; false if none was after `timeout`.
    pub fn wait_until_held(&self, timeout: Duration) -> bool {
        let (mut hold, deadline) = (self.hold.lock(), Instant::now() + timeout);
        while *hold != Hold::Held && !self.changed.wait_until(&mut hold, deadline).timed_out() {}
        *hold == Hold::Held
    }

    /// Resumes a held operation.
    pub fn release(&self) {
        *self.hold.lock() = Hold::No;
        self.changed.notify_all();
    }

    /// Called for each host write while kernels run.
    pub(super) fn host_wrote(&self) {
        let is_held = *self.hold.lock() == Hold::Held;
        if is_held {
            self.release();
        }
    }

    /// Called before each such operation.
    pub(super) fn hold(&self, operation: Operation, name: &str, limit: Duration) -> Result<()> {
        let mut hold = self.hold.lock();
        if *hold != Hold::Wanted(operation) {
            return Ok(());
        }
        *hold = Hold::Held;
        self.changed.notify_all();
        let deadline = Instant::now() + limit;
        while *hold == Hold::Held && !self.changed.wait_until(&mut hold, deadline).timed_out() {}
        match std::mem::take(&mut *hold) {
            Hold::Held => Err(GpuError::Emulator(format!("{name} was held and not released"))),
            _ => Ok(()),
        }
    }
}

impl Countdown {
    fn set(&self, nth: u64) {
        self.0.store(nth, Ordering::SeqCst);
    }

    /// Counts an operation; true if it fails.
    pub(super) fn is_due(&self) -> bool {
        let before = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
        before == Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_operation_fails_and_no_other() {
        let faults = EmulatorFaults::default();
        assert!(!faults.lost_launch.is_due());
        faults.fail_launch(3);
        let outcomes: Vec<bool> = (0..5).map(|_| faults.lost_launch.is_due()).collect();
        assert_eq!(outcomes, [false, false, true, false, false]);
        assert!(!faults.failed_allocation.is_due());
    }
}
