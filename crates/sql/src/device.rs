//! The session's device: opened at its first use, or at once if the user names one.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use warpcube_column::{programs_of_first_loads, programs_of_plain_loads};
use warpcube_gpu::Device;

use crate::error::{Result, SqlError};
use crate::settings::Settings;
use crate::values::{Budget, DeviceChoice, Encoding};

/// Holds the device that `warpcube.device` asks for.
///
/// `auto` opens the first GPU when [`DeviceSlot::get`] is first called, since opening one costs some tenths of a
/// second that a statement on the CPU need not pay; where that fails the reason is kept and the session stays on the
/// CPU. `cuda` is opened when the session starts, so that its error comes first. While a device is being opened, who
/// asks for it waits, and for all others it is one that is yet to be opened.
#[derive(Debug, Default)]
pub struct DeviceSlot {
    state: Mutex<State>,
    /// Told when a device has been opened, or not.
    opened: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unset,
    /// To be opened when asked for.
    Closed(Cuda),
    /// Some thread opens it.
    Opening(Arc<()>),
    Open(Device),
    Absent(String),
}

impl DeviceSlot {
    /// Takes up the device that the settings ask for; the one held before is let go.
    ///
    /// # Errors
    /// [`SqlError::Device`] where a particular device is asked for and cannot be opened; nothing is changed then.
    pub fn choose(&self, settings: &Settings) -> Result<()> {
        let cuda = Cuda { budget: settings.device_memory, encodes: settings.encoding != Encoding::Plain };
        let next = match settings.device {
            DeviceChoice::Cpu => State::Absent("warpcube.device is 'cpu'".into()),
            DeviceChoice::Auto => State::Closed(cuda),
            choice => State::Open(open(choice, cuda)?),
        };
        // A device that is given up may wait for its compilers.
        let _before = std::mem::replace(&mut *self.state.lock(), next);
        self.opened.notify_all();
        Ok(())
    }

    /// Takes up a device that the program opened itself, until the settings ask for another.
    pub fn take_up(&self, device: Device) {
        *self.state.lock() = State::Open(device);
        self.opened.notify_all();
    }

    /// Whether the device was lost: it answers nothing more in this process.
    pub fn is_lost(&self) -> bool {
        matches!(&*self.state.lock(), State::Open(device) if device.is_lost())
    }

    /// The device, opened now if it was not yet; none where the session runs on the CPU alone.
    pub fn get(&self) -> Option<Device> {
        let mut state = self.state.lock();
        loop {
            match &*state {
                State::Open(device) => return Some(device.clone()),
                State::Unset | State::Absent(_) => return None,
                State::Opening(_) => self.opened.wait(&mut state),
                State::Closed(cuda) => {
                    let (cuda, mark) = (*cuda, Arc::new(()));
                    *state = State::Opening(mark.clone());
                    let opened = MutexGuard::unlocked(&mut state, || cuda.open(0));
                    // Another device may have been chosen meanwhile, which this one does not replace.
                    if matches!(&*state, State::Opening(own) if Arc::ptr_eq(own, &mark)) {
                        *state = match opened {
                            Ok(device) => State::Open(device),
                            Err(error) => State::Absent(error.to_string()),
                        };
                        self.opened.notify_all();
                    }
                }
            }
        }
    }

    /// Opens no device from now on; the one that is open, if it is.
    pub fn close(&self) -> Option<Device> {
        let mut state = self.state.lock();
        // A process that ends while the driver starts would take it apart under its own hands.
        self.opened.wait_while(&mut state, |state| matches!(state, State::Opening(_)));
        match &*state {
            State::Open(device) => return Some(device.clone()),
            State::Unset | State::Closed(_) => *state = State::Absent("the session is over".into()),
            State::Absent(_) | State::Opening(_) => {}
        }
        None
    }

    /// Whether the device is open.
    pub fn is_open(&self) -> bool {
        matches!(*self.state.lock(), State::Open(_))
    }

    /// Whether the device is yet to be opened, as the settings say then, or being opened.
    pub fn is_closed(&self) -> bool {
        matches!(*self.state.lock(), State::Closed(_) | State::Opening(_))
    }

    /// Whether the device was not opened yet and there seems to be one.
    pub fn may_open(&self) -> bool {
        self.is_closed() && Device::is_cuda_installed()
    }

    /// Why there is no device, where there is none.
    pub fn reason(&self) -> Option<String> {
        self.get().is_none().then(|| match &*self.state.lock() {
            State::Absent(reason) => reason.clone(),
            _ => "no device was chosen".into(),
        })
    }
}

/// How a GPU is opened.
#[derive(Debug, Clone, Copy)]
struct Cuda {
    budget: Budget,
    /// Whether columns will be encoded, by programs that are compiled meanwhile.
    encodes: bool,
}

impl Cuda {
    fn open(self, ordinal: usize) -> warpcube_gpu::Result<Device> {
        let bytes = match self.budget {
            Budget::Auto => None,
            Budget::Bytes(bytes) => Some(bytes),
            Budget::Percent(_) => self.budget.bytes(Device::cuda(ordinal, None)?.memory()?.1),
        };
        let ahead = if self.encodes { programs_of_first_loads } else { programs_of_plain_loads };
        Device::cuda_with(ordinal, bytes, ahead)
    }
}

fn open(choice: DeviceChoice, cuda: Cuda) -> Result<Device> {
    let opened = match choice {
        DeviceChoice::Cuda(ordinal) => cuda.open(ordinal),
        DeviceChoice::Emulated => {
            // The emulated device has no memory of its own to take a share of.
            let bytes = cuda.budget.bytes(EMULATED_MEMORY).unwrap_or(EMULATED_MEMORY);
            let options = warpcube_gpu::EmulatorOptions::default();
            let memory_bytes = options.memory_bytes.max(bytes);
            Device::emulated(warpcube_gpu::EmulatorOptions { memory_bytes, ..options }, bytes)
        }
        DeviceChoice::Auto | DeviceChoice::Cpu => cuda.open(0),
    };
    opened.map_err(|error| SqlError::Device { choice: choice.to_string(), reason: error.to_string() })
}

/// Budget of the emulated device by default, in bytes.
const EMULATED_MEMORY: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_closed_opens_nothing_and_gives_what_is_open() {
        let slot = DeviceSlot::default();
        slot.choose(&Settings { device: DeviceChoice::Auto, ..Settings::default() }).unwrap();
        assert!(slot.is_closed() && slot.close().is_none());
        assert!(!slot.may_open() && slot.get().is_none());
        assert_eq!(slot.reason().as_deref(), Some("the session is over"));
        let device = Device::emulated(warpcube_gpu::EmulatorOptions::default(), EMULATED_MEMORY).unwrap();
        slot.take_up(device.clone());
        assert!(slot.close().is_some_and(|open| open.same(&device)) && slot.is_open());
    }
}
