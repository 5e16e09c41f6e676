//! The database's device: opened at its first use, or at once if the user names one.

use std::panic::AssertUnwindSafe;

use parking_lot::{Condvar, Mutex, MutexGuard};
use sysinfo::System;
use warpcube_column::{programs_of_first_loads, programs_of_plain_loads};
use warpcube_gpu::Device;

use crate::error::{Result, SqlError};
use crate::settings::Settings;
use crate::values::{Budget, DeviceChoice, Encoding};

/// Holds the device that `warpcube.device` asks for.
///
/// `auto` opens the first GPU when [`DeviceSlot::get`] is first called, since opening one costs some tenths of a
/// second that a statement on the CPU need not pay; where that fails the reason is kept and the database stays on the
/// CPU. `cuda` is opened when the database is, so that its error comes first. One thread at a time opens a device:
/// [`DeviceSlot::get`] waits for it, all other functions take the device for one that is not open yet.
#[derive(Debug, Default)]
pub struct DeviceSlot {
    slot: Mutex<Slot>,
    /// Notified when the thread that opens a device is done, with or without one.
    opened: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    state: State,
    /// Whether a thread is within the driver; another device may have been chosen since.
    is_opening: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unset,
    /// To be opened when asked for.
    Closed(Cuda),
    Open(Device),
    Absent(String),
}

/// Marks that a thread opens a device; when it is dropped, waiting threads go on.
struct Opening<'a>(&'a DeviceSlot);

impl<'a> Opening<'a> {
    /// Begins once no other thread opens a device.
    fn begin(of: &'a DeviceSlot, slot: &mut MutexGuard<'_, Slot>) -> Opening<'a> {
        of.opened.wait_while(slot, |slot| slot.is_opening);
        slot.is_opening = true;
        Opening(of)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.slot.lock().is_opening = false;
        self.0.opened.notify_all();
    }
}

impl DeviceSlot {
    /// Takes up the device that the settings ask for; the one held before is let go.
    ///
    /// # Errors
    /// [`SqlError::Device`] where a particular device is asked for and cannot be opened; nothing is changed then.
    pub fn choose(&self, settings: &Settings) -> Result<()> {
        let cuda = Cuda { budget: settings.database.device_memory, encodes: settings.encoding != Encoding::Plain };
        let next = match settings.database.device {
            DeviceChoice::Cpu => State::Absent("warpcube.device is 'cpu'".into()),
            DeviceChoice::Auto => State::Closed(cuda),
            choice => {
                let _opening = Opening::begin(self, &mut self.slot.lock());
                State::Open(open(choice, cuda)?)
            }
        };
        // A device that is given up may wait for its compilers.
        let _before = std::mem::replace(&mut self.slot.lock().state, next);
        Ok(())
    }

    /// Notes whether columns will be encoded, for a device that is yet to be opened.
    pub(crate) fn will_encode(&self, encodes: bool) {
        if let State::Closed(cuda) = &mut self.slot.lock().state {
            cuda.encodes = encodes;
        }
    }

    /// Takes up a device that the program opened itself, until the settings ask for another.
    pub fn take_up(&self, device: Device) {
        let _before = std::mem::replace(&mut self.slot.lock().state, State::Open(device));
    }

    /// Whether the device was lost: it answers nothing more in this process.
    pub fn is_lost(&self) -> bool {
        matches!(&self.slot.lock().state, State::Open(device) if device.is_lost())
    }

    /// The device, opened now if it was not yet; none where the database runs on the CPU alone.
    pub fn get(&self) -> Option<Device> {
        self.get_by(|cuda| cuda.open(0))
    }

    fn get_by(&self, open: impl Fn(Cuda) -> warpcube_gpu::Result<Device>) -> Option<Device> {
        let mut slot = self.slot.lock();
        loop {
            let cuda = match &slot.state {
                State::Open(device) => return Some(device.clone()),
                State::Unset | State::Absent(_) => return None,
                State::Closed(_) if slot.is_opening => {
                    self.opened.wait(&mut slot);
                    continue;
                }
                State::Closed(cuda) => *cuda,
            };
            let opening = Opening::begin(self, &mut slot);
            let opened = MutexGuard::unlocked(&mut slot, || std::panic::catch_unwind(AssertUnwindSafe(|| open(cuda))));
            // Another device may have been chosen meanwhile, which this one does not replace.
            if matches!(&slot.state, State::Closed(chosen) if chosen.budget == cuda.budget) {
                slot.state = match opened {
                    Ok(Ok(device)) => State::Open(device),
                    Ok(Err(error)) => State::Absent(error.to_string()),
                    Err(panic) => State::Absent(SqlError::of_panic(panic.as_ref()).to_string()),
                };
            }
            MutexGuard::unlocked(&mut slot, || drop(opening));
        }
    }

    /// Opens no device from now on; the one that is open, if it is. Waits for a thread that opens one.
    pub fn close(&self) -> Option<Device> {
        let mut slot = self.slot.lock();
        // `exit` must not run destructors of the driver while the driver starts.
        self.opened.wait_while(&mut slot, |slot| slot.is_opening);
        match &slot.state {
            State::Open(device) => return Some(device.clone()),
            State::Unset | State::Closed(_) => slot.state = State::Absent("the database is closed".into()),
            State::Absent(_) => {}
        }
        None
    }

    /// Whether the device is open.
    pub fn is_open(&self) -> bool {
        matches!(self.slot.lock().state, State::Open(_))
    }

    /// Whether a device is chosen and not open; a thread may be opening it.
    pub fn is_closed(&self) -> bool {
        matches!(self.slot.lock().state, State::Closed(_))
    }

    /// Whether a device is chosen and not open, and a CUDA driver is installed.
    pub fn may_open(&self) -> bool {
        self.is_closed() && Device::is_cuda_installed()
    }

    /// Whether a GPU is open or may be opened.
    pub fn has_gpu(&self) -> bool {
        let is_open = matches!(&self.slot.lock().state, State::Open(device) if device.info().runs_kernels);
        is_open || self.may_open()
    }

    /// Why there is no device, where there is none.
    pub fn reason(&self) -> Option<String> {
        self.get().is_none().then(|| match &self.slot.lock().state {
            State::Absent(reason) => reason.clone(),
            _ => "no device was chosen".into(),
        })
    }
}

/// How a GPU is opened.
#[derive(Debug, Clone, Copy)]
struct Cuda {
    budget: Budget,
    /// Whether columns will be encoded; the programs for it are compiled while the device opens.
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
        DeviceChoice::Columns => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let memory = host_memory()?;
            Ok(Device::host(cores, memory, cuda.budget.bytes(memory).unwrap_or(memory / HOST_SHARE)))
        }
        DeviceChoice::Auto | DeviceChoice::Cpu => cuda.open(0),
    };
    opened.map_err(|error| SqlError::Device { choice: choice.to_string(), reason: error.to_string() })
}

/// Memory of this machine in bytes, or what a container has of it.
pub(crate) fn host_memory() -> Result<u64> {
    let mut system = System::new();
    system.refresh_memory();
    let of_container = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    match system.total_memory().min(of_container) {
        0 => Err(SqlError::Unsupported(
            "a share of memory on this machine, whose size of memory is unknown; give a number of bytes".into(),
        )),
        bytes => Ok(bytes),
    }
}

/// Share of the machine's memory that columns take at most by default: one in so many bytes.
const HOST_SHARE: u64 = 4;

/// Budget of the emulated device by default, in bytes.
const EMULATED_MEMORY: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    fn chosen(device: DeviceChoice) -> Settings {
        let mut settings = Settings::default();
        settings.database.device = device;
        settings
    }

    fn auto() -> DeviceSlot {
        let slot = DeviceSlot::default();
        slot.choose(&chosen(DeviceChoice::Auto)).unwrap();
        slot
    }

    fn device() -> Device {
        Device::emulated(warpcube_gpu::EmulatorOptions::default(), EMULATED_MEMORY).unwrap()
    }

    #[test]
    fn an_opening_that_panics_leaves_no_device_and_nobody_waiting() {
        let slot = auto();
        assert!(slot.get_by(|_| panic!("a driver that is broken")).is_none());
        assert!(slot.get().is_none() && slot.close().is_none());
        assert!(slot.reason().is_some_and(|reason| reason.contains("a driver that is broken")));
    }

    #[test]
    fn the_end_waits_for_a_thread_that_opens_whatever_was_chosen_meanwhile() {
        for choice in [DeviceChoice::Cpu, DeviceChoice::Auto] {
            let (slot, (begun, begins), (goes_on, waits)) = (auto(), channel(), channel());
            let waits = Mutex::new(waits);
            let is_within = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let opening = scope.spawn(|| {
                    slot.get_by(|_| {
                        is_within.store(true, Ordering::SeqCst);
                        begun.send(()).unwrap();
                        waits.lock().recv().unwrap();
                        is_within.store(false, Ordering::SeqCst);
                        Ok(device())
                    })
                });
                begins.recv().unwrap();
                slot.choose(&chosen(choice)).unwrap();
                let closed = scope.spawn(|| {
                    slot.close();
                    assert!(!is_within.load(Ordering::SeqCst), "the driver is still opening under {choice}");
                });
                std::thread::sleep(Duration::from_millis(50));
                goes_on.send(()).unwrap();
                closed.join().unwrap();
                assert_eq!(opening.join().unwrap().is_some(), choice == DeviceChoice::Auto);
            });
        }
    }

    #[test]
    fn a_slot_that_is_closed_opens_nothing_and_gives_what_is_open() {
        let slot = auto();
        assert!(slot.is_closed() && slot.close().is_none());
        assert!(!slot.may_open() && slot.get().is_none());
        assert_eq!(slot.reason().as_deref(), Some("the database is closed"));
        let device = device();
        slot.take_up(device.clone());
        assert!(slot.close().is_some_and(|open| open.same(&device)) && slot.is_open());
    }
}
