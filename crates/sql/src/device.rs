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
/// second that a statement on the CPU need not pay; where that fails the reason is kept and the host takes its place,
/// which keeps columns in its memory for the CPU. `cuda` is opened when the database is, so that its error comes first.
/// One thread at a time opens a device: [`DeviceSlot::get`] waits for it, all other functions take the device for one
/// that is not open yet.
#[derive(Debug, Default)]
pub struct DeviceSlot {
    slot: Mutex<Slot>,
    /// Notified when the thread that opens a device is done, with or without one.
    opened: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    state: State,
    /// Why there is no GPU, where that is known.
    no_gpu: Option<String>,
    /// Whether a thread is within the driver; another device may have been chosen since.
    is_opening: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unset,
    /// To be opened when asked for.
    Closed(Wanted),
    Open(Device),
    Absent,
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
        let wanted = Wanted {
            budget: settings.database.device_memory,
            columns: settings.database.host_memory,
            limit: settings.database.memory_limit,
            encodes: settings.encoding != Encoding::Plain,
        };
        let (next, no_gpu) = match settings.database.device {
            DeviceChoice::Cpu => (wanted.host(), Some("warpcube.device is 'cpu'".into())),
            DeviceChoice::Auto => (State::Closed(wanted), None),
            choice => {
                let _opening = Opening::begin(self, &mut self.slot.lock());
                (State::Open(open(choice, wanted)?), None)
            }
        };
        let mut slot = self.slot.lock();
        slot.no_gpu = no_gpu;
        let before = std::mem::replace(&mut slot.state, next);
        drop(slot);
        // A device that is given up may wait for its compilers.
        drop(before);
        Ok(())
    }

    /// Notes whether columns will be encoded, for a device that is yet to be opened.
    pub(crate) fn will_encode(&self, encodes: bool) {
        if let State::Closed(wanted) = &mut self.slot.lock().state {
            wanted.encodes = encodes;
        }
    }

    /// Takes up a device that the program opened itself, until the settings ask for another.
    pub fn take_up(&self, device: Device) {
        let mut slot = self.slot.lock();
        slot.no_gpu = None;
        let before = std::mem::replace(&mut slot.state, State::Open(device));
        drop(slot);
        drop(before);
    }

    /// Whether the device was lost: it answers nothing more in this process.
    pub fn is_lost(&self) -> bool {
        matches!(&self.slot.lock().state, State::Open(device) if device.is_lost())
    }

    /// The device, opened now if it was not yet: a GPU, the emulated one or the host; none where the database runs over
    /// files alone.
    pub fn get(&self) -> Option<Device> {
        self.get_by(|wanted| wanted.open(0))
    }

    /// The device if it runs kernels, opened now if it was not yet.
    pub fn gpu(&self) -> Option<Device> {
        self.get().filter(|device| device.info().runs_kernels)
    }

    fn get_by(&self, open: impl Fn(Wanted) -> warpcube_gpu::Result<Device>) -> Option<Device> {
        let mut slot = self.slot.lock();
        loop {
            let wanted = match &slot.state {
                State::Open(device) => return Some(device.clone()),
                State::Unset | State::Absent => return None,
                State::Closed(_) if slot.is_opening => {
                    self.opened.wait(&mut slot);
                    continue;
                }
                State::Closed(wanted) => *wanted,
            };
            let opening = Opening::begin(self, &mut slot);
            let opened =
                MutexGuard::unlocked(&mut slot, || std::panic::catch_unwind(AssertUnwindSafe(|| open(wanted))));
            // Another device may have been chosen meanwhile, which this one does not replace.
            if matches!(&slot.state, State::Closed(chosen) if chosen.is_as(wanted)) {
                let opened = match opened {
                    Ok(opened) => opened.map_err(|error| error.to_string()),
                    Err(panic) => Err(SqlError::of_panic(panic.as_ref()).to_string()),
                };
                (slot.state, slot.no_gpu) = match opened {
                    Ok(device) => (State::Open(device), None),
                    Err(reason) => (wanted.host(), Some(reason)),
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
            State::Unset | State::Closed(_) => {
                (slot.state, slot.no_gpu) = (State::Absent, Some("the database is closed".into()));
            }
            State::Absent => {}
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
        self.is_gpu_open() || self.may_open()
    }

    /// Whether a device that runs kernels is open.
    pub fn is_gpu_open(&self) -> bool {
        matches!(&self.slot.lock().state, State::Open(device) if device.info().runs_kernels)
    }

    /// Why there is no GPU, where there is none.
    pub fn no_gpu(&self) -> Option<String> {
        let reason = || self.slot.lock().no_gpu.clone().unwrap_or_else(|| "no device was chosen".into());
        self.gpu().is_none().then(reason)
    }
}

/// How a device is opened.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// Memory of a GPU.
    budget: Budget,
    /// Memory of the host for columns, where there is no GPU, and for operators.
    columns: Budget,
    limit: Budget,
    /// Whether columns will be encoded; the programs for it are compiled while the device opens.
    encodes: bool,
}

impl Wanted {
    /// Whether a device that is opened as `other` says is this one.
    fn is_as(&self, other: Wanted) -> bool {
        (self.budget, self.columns, self.limit) == (other.budget, other.columns, other.limit)
    }

    /// The host, if it may keep columns.
    fn host(self) -> State {
        // A share of memory of an unknown size is nothing.
        let memory = host_memory().unwrap_or(0);
        let usable = self.limit.bytes(memory).map_or(memory, |limit| limit.min(memory));
        match self.columns.bytes(memory).unwrap_or(usable / HOST_SHARE) {
            0 => State::Absent,
            bytes => {
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                State::Open(Device::host(cores, memory, bytes))
            }
        }
    }

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

fn open(choice: DeviceChoice, wanted: Wanted) -> Result<Device> {
    let opened = match choice {
        DeviceChoice::Cuda(ordinal) => wanted.open(ordinal),
        DeviceChoice::Emulated => {
            // The emulated device has no memory of its own to take a share of.
            let bytes = wanted.budget.bytes(EMULATED_MEMORY).unwrap_or(EMULATED_MEMORY);
            let options = warpcube_gpu::EmulatorOptions::default();
            let memory_bytes = options.memory_bytes.max(bytes);
            Device::emulated(warpcube_gpu::EmulatorOptions { memory_bytes, ..options }, bytes)
        }
        DeviceChoice::Auto | DeviceChoice::Cpu => wanted.open(0),
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

/// Share of the memory of the machine, or of its operators if they have a limit, that columns take at most by default:
/// one in so many bytes.
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
        let device = slot.get_by(|_| panic!("a driver that is broken"));
        assert!(device.is_some_and(|device| !device.info().runs_kernels));
        assert!(slot.gpu().is_none() && slot.is_open());
        assert!(slot.no_gpu().is_some_and(|reason| reason.contains("a driver that is broken")));
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
                let opened = opening.join().unwrap().filter(|device| device.info().runs_kernels);
                assert_eq!(opened.is_some(), choice == DeviceChoice::Auto);
            });
        }
    }

    #[test]
    fn a_slot_that_is_closed_opens_nothing_and_gives_what_is_open() {
        let slot = auto();
        assert!(slot.is_closed() && slot.close().is_none());
        assert!(!slot.may_open() && slot.get().is_none());
        assert_eq!(slot.no_gpu().as_deref(), Some("the database is closed"));
        let device = device();
        slot.take_up(device.clone());
        assert!(slot.close().is_some_and(|open| open.same(&device)) && slot.is_open());
    }
}
