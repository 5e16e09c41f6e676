//! Work on a device in order: copies, fills, launches.
//!
//! A stream owns the buffers, staged host data and modules of its running work until [`Stream::synchronize`]; a stream
//! that is dropped with work in flight waits for it. A wait that fails loses the device, and what the work used is
//! leaked: the device may still access it. Streams run beside each other; one waits for another by an [`Event`].

use std::sync::Arc;

use crate::backend::{BackendStream, LaunchShape};
use crate::buffer::{DeviceBuffer, HostBuffer};
use crate::device::{Device, DeviceShared, Kernel, Module};
use crate::error::{GpuError, Result};
use crate::event::Event;
use crate::launch::{Params, Traffic, check_launch, check_range};
use crate::recording::{Recording, Work};

/// The stream copies host data up to this size, so that the upload does not wait.
const STAGED_BYTES_MAX: usize = 256 << 10;

/// A queue of device work.
pub struct Stream {
    device: Arc<DeviceShared>,
    backend: Box<dyn BackendStream>,
    in_flight: InFlight,
    busy: bool,
    traffic: Traffic,
}

/// What submitted work uses.
#[derive(Default)]
struct InFlight {
    buffers: Vec<DeviceBuffer>,
    staged: Vec<Box<[u8]>>,
    hosts: Vec<Arc<HostBuffer>>,
    modules: Vec<Arc<Module>>,
}

impl InFlight {
    /// Releases everything; the work has ended.
    fn release(&mut self) {
        self.buffers.clear();
        self.staged.clear();
        self.hosts.clear();
        self.modules.clear();
    }

    fn keep_module(&mut self, module: &Arc<Module>) {
        if !self.modules.iter().any(|known| Arc::ptr_eq(known, module)) {
            self.modules.push(module.clone());
        }
    }
}

impl Device {
    /// A new stream.
    pub fn stream(&self) -> Result<Stream> {
        self.shared.check()?;
        Ok(Stream::new(self.shared.clone(), self.shared.note(self.shared.backend.stream())?))
    }
}

impl Stream {
    fn new(device: Arc<DeviceShared>, backend: Box<dyn BackendStream>) -> Stream {
        Stream { device, backend, in_flight: InFlight::default(), busy: false, traffic: Traffic::default() }
    }

    /// Checks a range of a buffer, keeps the buffer until the stream is synchronised, and gives the range's address;
    /// none for an empty range.
    fn address(&mut self, buffer: &DeviceBuffer, offset: usize, bytes: usize) -> Result<Option<u64>> {
        check_range(&self.device, buffer, offset, bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        self.busy = true;
        self.in_flight.buffers.push(buffer.clone());
        Ok(Some(buffer.address() + offset as u64))
    }

    /// Copies `source` to `target` at `offset` bytes. The call waits for sources of more than 256 KiB.
    pub fn upload(&mut self, target: &DeviceBuffer, offset: usize, source: &[u8]) -> Result<()> {
        let Some(address) = self.address(target, offset, source.len())? else { return Ok(()) };
        self.traffic.uploaded += source.len() as u64;
        if source.len() <= STAGED_BYTES_MAX {
            let copy: Box<[u8]> = source.into();
            // SAFETY: the stream owns the copy's heap memory, which does not move, until a wait has ended the work, and
            // leaks it where the wait fails; the target's range was checked and its buffer is kept likewise.
            let result = unsafe { self.backend.upload(address, copy.as_ptr(), copy.len()) };
            self.in_flight.staged.push(copy);
            return self.device.note(result);
        }
        // SAFETY: `source` outlives the synchronisation below, which follows a refused copy too. Where that fails, the
        // driver has copied pageable memory to its own before the call returned, and page-locked memory stays allocated
        // (`HostBuffer` leaks it). The target's range was checked and its buffer is kept.
        let result = unsafe { self.backend.upload(address, source.as_ptr(), source.len()) };
        let ended = self.synchronize();
        self.device.note(result)?;
        ended
    }

    /// Copies `bytes` bytes of `source` from `source_offset` to `target` at `offset`, without waiting.
    pub fn upload_from(
        &mut self,
        target: &DeviceBuffer,
        offset: usize,
        source: &Arc<HostBuffer>,
        source_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        let slice = source.as_slice().get(source_offset..source_offset + bytes).ok_or_else(|| {
            GpuError::Contract(format!("upload of {bytes} bytes at {source_offset} of {}", source.bytes()))
        })?;
        let Some(address) = self.address(target, offset, bytes)? else { return Ok(()) };
        self.traffic.uploaded += bytes as u64;
        // SAFETY: the stream keeps the host buffer until a wait has ended the work, and leaks it where the wait fails;
        // behind an `Arc` no code writes to it. Both ranges were checked and the target's buffer is kept likewise.
        let result = unsafe { self.backend.upload(address, slice.as_ptr(), bytes) };
        self.in_flight.hosts.push(source.clone());
        self.device.note(result)
    }

    /// Copies device memory to `target` and waits for all submitted work.
    pub fn download(&mut self, source: &DeviceBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        self.download_all(source, &mut [(offset, target)])
    }

    /// Copies several ranges of a buffer, each from its offset, and waits once for all of them.
    pub fn download_all(&mut self, source: &DeviceBuffer, ranges: &mut [(usize, &mut [u8])]) -> Result<()> {
        let addresses: Vec<Option<u64>> =
            ranges.iter().map(|(offset, target)| self.address(source, *offset, target.len())).collect::<Result<_>>()?;
        let mut copied = Ok(());
        for (address, (_, target)) in addresses.into_iter().zip(ranges) {
            let Some(address) = address.filter(|_| copied.is_ok()) else { continue };
            self.traffic.downloaded += target.len() as u64;
            // SAFETY: the targets are borrowed until the synchronisation below, which every path from here reaches.
            // Where that fails, a copy to pageable memory has ended with its call (CUDA driver API, synchronisation of
            // copies), and page-locked memory stays allocated (`HostBuffer` leaks it). The ranges were checked, and the
            // stream keeps the buffer.
            copied = unsafe { self.backend.download(target.as_mut_ptr(), address, target.len()) };
        }
        let ended = self.synchronize();
        self.device.note(copied).and(ended)
    }

    /// Copies `bytes` from one buffer to another, or to another range of the same one.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if a range exceeds its buffer, or both overlap.
    pub fn copy(
        &mut self,
        target: &DeviceBuffer,
        target_offset: usize,
        source: &DeviceBuffer,
        source_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        let (to, from) = (self.address(target, target_offset, bytes)?, self.address(source, source_offset, bytes)?);
        let (Some(to), Some(from)) = (to, from) else { return Ok(()) };
        if to.abs_diff(from) < bytes as u64 {
            return Err(GpuError::Contract(format!(
                "a copy of {bytes} bytes to {} bytes from its source: the ranges overlap",
                to.abs_diff(from)
            )));
        }
        // SAFETY: both ranges were checked and do not overlap; the stream keeps their buffers until a wait has ended
        // the work, and leaks them where the wait fails.
        let result = unsafe { self.backend.copy(to, from, bytes) };
        self.device.note(result)
    }

    /// Sets `bytes` bytes of a buffer from `offset` on to `value`.
    pub fn fill(&mut self, target: &DeviceBuffer, offset: usize, value: u8, bytes: usize) -> Result<()> {
        let Some(address) = self.address(target, offset, bytes)? else { return Ok(()) };
        // SAFETY: the range was checked; the stream keeps the buffer until a wait has ended the work, and leaks it
        // where the wait fails.
        let result = unsafe { self.backend.fill(address, value, bytes) };
        self.device.note(result)
    }

    /// Launches a kernel.
    ///
    /// Kernel source is trusted as the code of this program is: this call does not check that a kernel stays inside its
    /// buffers. The tests on the emulated device and the memory checker on a GPU do.
    pub fn launch(&mut self, kernel: &Kernel, shape: LaunchShape, params: &Params) -> Result<()> {
        check_launch(&self.device, kernel, shape, params)?;
        self.busy = true;
        self.in_flight.buffers.extend(params.buffers().iter().cloned());
        self.in_flight.keep_module(&kernel.module);
        // SAFETY: the module and the buffers named in `params` are of this device, and the stream keeps them until a
        // wait has ended the work, and leaks them where the wait fails. The struct's layout, and buffers that the
        // kernel reaches by words in device memory, are the launcher's part, which runs on the emulated device check.
        let result =
            unsafe { self.backend.launch(kernel.module.backend.as_ref(), &kernel.name, shape, params.bytes(), false) };
        self.device.note(result)
    }

    /// Bytes copied over the bus since the last call.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// An event behind all submitted work.
    ///
    /// # Errors
    /// A lost device's.
    pub fn record(&mut self) -> Result<Event> {
        self.device.check()?;
        let backend = self.device.note(self.backend.record_event())?;
        Ok(Event { device: self.device.clone(), backend })
    }

    /// Lets work that is submitted from now on start when an event is done. The call does not wait.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for an event of another device.
    pub fn wait(&mut self, event: &Event) -> Result<()> {
        self.device.check()?;
        if !Arc::ptr_eq(&event.device, &self.device) {
            return Err(GpuError::Contract("the event belongs to another device".into()));
        }
        self.busy = true;
        self.device.note(self.backend.wait_event(event.backend.as_ref()))
    }

    /// Waits for all submitted work and reports its errors.
    pub fn synchronize(&mut self) -> Result<()> {
        if !self.busy {
            return Ok(());
        }
        self.busy = false;
        let ended = self.device.ended(self.backend.synchronize());
        if ended.as_ref().is_err_and(GpuError::is_device_lost) {
            std::mem::forget(std::mem::take(&mut self.in_flight));
        }
        self.in_flight.release();
        ended
    }

    /// Records work for repeated runs.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for work of another device.
    pub fn prepare(&mut self, work: Work) -> Result<Recording> {
        work.check_device(&self.device)?;
        self.synchronize()?;
        Recording::new(work, self.backend.as_mut())
    }

    /// Runs recorded work over its buffers, and waits for it.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for work of another device, and for other buffers than it was recorded with.
    pub fn run(&mut self, recording: &mut Recording, buffers: &[&DeviceBuffer]) -> Result<()> {
        recording.check(&self.device, buffers)?;
        self.synchronize()?;
        self.busy = true;
        self.in_flight.buffers.extend(buffers.iter().map(|buffer| (*buffer).clone()));
        self.in_flight.hosts.push(recording.host.clone());
        recording.modules.iter().for_each(|module| self.in_flight.keep_module(module));
        self.traffic.uploaded += recording.traffic.uploaded;
        self.traffic.downloaded += recording.traffic.downloaded;
        let submitted = recording.submit(self.backend.as_mut());
        // Submitted work is waited for after an error too.
        let done = self.synchronize();
        self.device.note(submitted).and(done)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Err(error) = self.synchronize() {
            tracing::warn!(%error, "work in flight failed while a stream was dropped");
        }
    }
}
