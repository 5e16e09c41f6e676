//! The host as a device: its memory holds columns, and it runs no kernels. Pipelines over such columns run on the
//! threads of the CPU, which read a buffer by [`DeviceBuffer::host_bytes`].
//!
//! A buffer that was read so is *frozen*: copies and fills into it are refused until its last handle is dropped, so
//! that no byte changes under a reader.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::backend::{
    Backend, BackendEvent, BackendModule, BackendRecording, BackendStream, DeviceInfo, Image, LaunchShape, Submitted,
    WorkStep,
};
use crate::compile::{Client, Queue};
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::program::Program;

/// Alignment of allocations in bytes.
const ALIGNMENT: usize = 256;
/// The state of an allocation that was read; below it the number of writes in progress.
const FROZEN: usize = 1 << (usize::BITS - 1);

impl Device {
    /// The host as a device of `memory_bytes` of memory and so many cores; `budget` is the limit of its buffers in
    /// bytes.
    pub fn host(cores: usize, memory_bytes: u64, budget: u64) -> Device {
        let info = DeviceInfo {
            name: "CPU".into(),
            emulated: false,
            runs_kernels: false,
            compute_capability: (0, 0),
            multiprocessors: cores as u32,
            shared_memory_per_block: 1 << 20,
            shared_memory_per_multiprocessor: 1 << 20,
            params_bytes_max: usize::MAX,
            l2_bytes: 1 << 20,
            memory_bytes,
            peak_bandwidth: 0.0,
            driver: String::new(),
        };
        let compiler = Queue::new(false, |program, _| Err(no_kernels(program.name())));
        let backend = HostBackend { info, memory: Arc::default() };
        Device::new(Arc::new(backend), Client::new(Arc::new(compiler)), budget)
    }
}

fn no_kernels(name: &str) -> GpuError {
    GpuError::Contract(format!("kernel '{name}' on the CPU, which runs none"))
}

struct HostBackend {
    info: DeviceInfo,
    memory: Arc<Memory>,
}

/// The allocations by address.
#[derive(Default)]
struct Memory {
    allocations: Mutex<BTreeMap<u64, Arc<Allocation>>>,
}

struct Allocation {
    bytes: usize,
    state: AtomicUsize,
}

impl Memory {
    /// The allocation that a range lies in.
    fn allocation(&self, address: u64, bytes: usize) -> Result<Arc<Allocation>> {
        let outside = || GpuError::Contract(format!("{bytes} bytes outside of the buffers on the CPU"));
        let allocations = self.allocations.lock();
        let (start, allocation) = allocations.range(..=address).next_back().ok_or_else(outside)?;
        let end = (address - start).checked_add(bytes as u64).ok_or_else(outside)?;
        if end <= allocation.bytes as u64 { Ok(allocation.clone()) } else { Err(outside()) }
    }

    /// Runs `write`, which writes a range of an allocation, if that is not frozen.
    fn write(&self, address: u64, bytes: usize, write: impl FnOnce()) -> Result<()> {
        let allocation = self.allocation(address, bytes)?;
        if allocation.state.fetch_add(1, Ordering::AcqRel) & FROZEN != 0 {
            allocation.state.fetch_sub(1, Ordering::AcqRel);
            return Err(GpuError::Contract("a write to a buffer that is read on the CPU".into()));
        }
        write();
        allocation.state.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for (address, allocation) in std::mem::take(&mut *self.allocations.lock()) {
            // SAFETY: the entry is that of an allocation that was not freed: `free` removes it.
            unsafe { dealloc(address as *mut u8, layout(allocation.bytes)) };
        }
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGNMENT).expect("an allocation is far below isize::MAX")
}

impl Backend for HostBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<(u64, u64)> {
        let used: usize = self.memory.allocations.lock().values().map(|allocation| allocation.bytes).sum();
        Ok((self.info.memory_bytes.saturating_sub(used as u64), self.info.memory_bytes))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        // SAFETY: `bytes` is not zero.
        let address = unsafe { alloc_zeroed(layout(bytes)) } as u64;
        if address == 0 {
            handle_alloc_error(layout(bytes));
        }
        let allocation = Allocation { bytes, state: AtomicUsize::new(0) };
        self.memory.allocations.lock().insert(address, Arc::new(allocation));
        Ok(address)
    }

    unsafe fn free(&self, address: u64, _bytes: usize) {
        if let Some(allocation) = self.memory.allocations.lock().remove(&address) {
            // SAFETY: the entry that was just removed has the size of the allocation.
            unsafe { dealloc(address as *mut u8, layout(allocation.bytes)) };
        }
    }

    fn end_buffer(&self, address: u64) {
        if let Some(allocation) = self.memory.allocations.lock().get(&address) {
            allocation.state.fetch_and(!FROZEN, Ordering::AcqRel);
        }
    }

    fn freeze(&self, address: u64, bytes: usize) -> Result<()> {
        let allocation = self.memory.allocation(address, bytes)?;
        let mut state = allocation.state.fetch_or(FROZEN, Ordering::AcqRel);
        // A write that had begun before ends soon.
        while state & !FROZEN != 0 {
            std::thread::yield_now();
            state = allocation.state.load(Ordering::Acquire);
        }
        Ok(())
    }

    fn allocate_host(&self, bytes: usize) -> Result<u64> {
        // SAFETY: `bytes` is not zero.
        let address = unsafe { alloc_zeroed(layout(bytes)) } as u64;
        if address == 0 {
            handle_alloc_error(layout(bytes));
        }
        Ok(address)
    }

    unsafe fn free_host(&self, address: u64, bytes: usize) {
        // SAFETY: address and size are those of an allocation of `allocate_host`, which used this layout.
        unsafe { dealloc(address as *mut u8, layout(bytes)) };
    }

    unsafe fn host_write(&self, _address: u64, _value: u64) -> Result<()> {
        // No kernel runs that would read the word.
        Ok(())
    }

    fn check_device_launches(&self) -> Result<()> {
        Err(no_kernels("any"))
    }

    fn load(&self, program: &Program, _image: &Image) -> Result<Arc<dyn BackendModule>> {
        Err(no_kernels(program.name()))
    }

    fn stream(&self) -> Result<Box<dyn BackendStream>> {
        Ok(Box::new(HostStream { memory: self.memory.clone() }))
    }
}

/// A stream whose copies and fills are done when their calls return.
struct HostStream {
    memory: Arc<Memory>,
}

impl BackendStream for HostStream {
    unsafe fn upload(&mut self, target: u64, source: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: `Memory::write` finds the target in one allocation that no reader has frozen; the caller promises
        // that no other stream touches it and that the source is readable.
        let copy = || unsafe { std::ptr::copy_nonoverlapping(source, target as *mut u8, bytes) };
        self.memory.write(target, bytes, copy)
    }

    unsafe fn download(&mut self, target: *mut u8, source: u64, bytes: usize) -> Result<()> {
        self.memory.allocation(source, bytes)?;
        // SAFETY: the source lies in one allocation, which the caller keeps; the target is writable by its promise.
        unsafe { std::ptr::copy_nonoverlapping(source as *const u8, target, bytes) };
        Ok(())
    }

    unsafe fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<()> {
        self.memory.allocation(source, bytes)?;
        // SAFETY: as for `upload`; the ranges do not overlap by the caller's promise.
        let copy = || unsafe { std::ptr::copy_nonoverlapping(source as *const u8, target as *mut u8, bytes) };
        self.memory.write(target, bytes, copy)
    }

    unsafe fn fill(&mut self, target: u64, value: u8, bytes: usize) -> Result<()> {
        // SAFETY: as for `upload`.
        let fill = || unsafe { std::ptr::write_bytes(target as *mut u8, value, bytes) };
        self.memory.write(target, bytes, fill)
    }

    unsafe fn launch(
        &mut self,
        _module: &dyn BackendModule,
        kernel: &str,
        _shape: LaunchShape,
        _params: &[u8],
        _early: bool,
    ) -> Result<()> {
        Err(no_kernels(kernel))
    }

    unsafe fn record(&mut self, _steps: &[WorkStep], _host: u64) -> Result<Box<dyn BackendRecording>> {
        Ok(Box::new(Submitted::default()))
    }

    unsafe fn replay(&mut self, recording: &mut dyn BackendRecording, steps: &[WorkStep], base: u64) -> Result<()> {
        // SAFETY: the caller promises it for every step.
        unsafe { Submitted::replay(recording, self, steps, base) }
    }

    fn record_event(&mut self) -> Result<Arc<dyn BackendEvent>> {
        Ok(Arc::new(Done))
    }

    fn wait_event(&mut self, _event: &dyn BackendEvent) -> Result<()> {
        Ok(())
    }

    fn synchronize(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A point in the work of a stream, all of which is done.
struct Done;

impl BackendEvent for Done {
    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_read_where_they_lie_and_not_written_after_that() {
        let device = Device::host(2, 1 << 30, 1 << 30);
        let buffer = device.buffer(1000, "a test").unwrap();
        let mut stream = device.stream().unwrap();
        stream.upload(&buffer, 0, &[7; 1000]).unwrap();
        stream.fill(&buffer, 10, 9, 5).unwrap();
        let bytes = buffer.host_bytes().unwrap();
        assert_eq!((bytes.len(), bytes[9], bytes[10], bytes[15]), (1000, 7, 9, 7));
        assert!(stream.upload(&buffer, 0, &[1; 10]).is_err(), "a reader has it");
        let mut read = [0; 3];
        stream.download(&buffer, 9, &mut read).unwrap();
        assert_eq!(read, [7, 9, 9]);
        stream.synchronize().unwrap();
        drop((stream, buffer));
        // The block of the pool serves the next buffer.
        let again = device.buffer(1000, "a test").unwrap();
        let mut stream = device.stream().unwrap();
        stream.upload(&again, 0, &[1; 10]).unwrap();
        assert_eq!(again.host_bytes().unwrap()[..10], [1; 10]);
    }

    #[test]
    fn it_runs_no_kernels() {
        let device = Device::host(2, 1 << 30, 1 << 20);
        assert!(device.compile(&Program::new("none", "")).is_err());
        assert!(device.buffer(2 << 20, "more than the budget").is_err());
    }
}
