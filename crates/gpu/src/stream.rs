//! Work on a device in order: copies, fills, launches, points in time.
//!
//! A stream owns what its running work needs (buffers, staged host data, modules) until [`Stream::synchronize`];
//! dropping a stream with work in flight waits for it first.

use std::sync::Arc;

use crate::backend::{BackendStream, LaunchShape};
use crate::buffer::{DeviceBuffer, HostBuffer};
use crate::device::{DeviceShared, Kernel, Module};
use crate::error::{GpuError, Result};
use crate::recording::{Recording, Work};

/// Host data up to this size is copied aside, so that the upload need not be waited for.
const STAGED_BYTES_MAX: usize = 256 << 10;

/// The parameter struct of a kernel, built member by member; every member has 8 bytes.
#[derive(Debug, Clone, Default)]
pub struct Params {
    bytes: Vec<u8>,
    buffers: Vec<DeviceBuffer>,
}

impl Params {
    /// An empty struct.
    pub fn new() -> Params {
        Params::default()
    }

    /// A pointer to the start of a buffer.
    pub fn buffer(self, buffer: &DeviceBuffer) -> Params {
        self.buffer_at(buffer, 0)
    }

    /// A pointer into a buffer; `offset` in bytes, at most its size.
    pub fn buffer_at(mut self, buffer: &DeviceBuffer, offset: usize) -> Params {
        assert!(offset <= buffer.bytes(), "a parameter points past its buffer");
        self.bytes.extend_from_slice(&(buffer.address() + offset as u64).to_ne_bytes());
        // Most members of a struct point into one buffer.
        if self.buffers.last().is_none_or(|last| last.address() != buffer.address()) {
            self.buffers.push(buffer.clone());
        }
        self
    }

    /// The members of another struct, behind those there are.
    pub fn append(mut self, other: Params) -> Params {
        self.bytes.extend(other.bytes);
        self.buffers.extend(other.buffers);
        self
    }

    /// A null pointer.
    pub fn null(self) -> Params {
        self.u64(0)
    }

    /// A signed integer.
    pub fn i64(mut self, value: i64) -> Params {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// An unsigned integer.
    pub fn u64(mut self, value: u64) -> Params {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// A double.
    pub fn f64(mut self, value: f64) -> Params {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Keeps a buffer alive that the kernel reaches through another one.
    pub fn keep(mut self, buffer: &DeviceBuffer) -> Params {
        self.buffers.push(buffer.clone());
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn buffers(&self) -> &[DeviceBuffer] {
        &self.buffers
    }

    /// Size of the struct in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// A point in time of recorded work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub(crate) usize);

/// Bytes that went over the bus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From host to device.
    pub uploaded: u64,
    /// From device to host.
    pub downloaded: u64,
}

/// A queue of device work.
pub struct Stream {
    device: Arc<DeviceShared>,
    backend: Box<dyn BackendStream>,
    buffers: Vec<DeviceBuffer>,
    staged: Vec<Box<[u8]>>,
    hosts: Vec<Arc<HostBuffer>>,
    modules: Vec<Arc<Module>>,
    busy: bool,
    traffic: Traffic,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("busy", &self.busy).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(device: Arc<DeviceShared>, backend: Box<dyn BackendStream>) -> Stream {
        let (buffers, staged, hosts, modules) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Stream { device, backend, buffers, staged, hosts, modules, busy: false, traffic: Traffic::default() }
    }

    /// Copies `source` to `target` at `offset` bytes. Large sources are waited for.
    pub fn upload(&mut self, target: &DeviceBuffer, offset: usize, source: &[u8]) -> Result<()> {
        self.check_range(target, offset, source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        self.busy = true;
        self.traffic.uploaded += source.len() as u64;
        self.buffers.push(target.clone());
        let address = target.address() + offset as u64;
        if source.len() <= STAGED_BYTES_MAX {
            let copy: Box<[u8]> = source.into();
            // SAFETY: the copy is owned by the stream until it is synchronised; the range was checked.
            let result = unsafe { self.backend.upload(address, copy.as_ptr(), copy.len()) };
            self.staged.push(copy);
            return self.device.note(result);
        }
        // SAFETY: `source` outlives the synchronisation below; the range was checked.
        let result = unsafe { self.backend.upload(address, source.as_ptr(), source.len()) };
        self.device.note(result)?;
        self.synchronize()
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
        self.check_range(target, offset, bytes)?;
        let slice = source.as_slice().get(source_offset..source_offset + bytes).ok_or_else(|| {
            GpuError::Contract(format!("upload of {bytes} bytes at {source_offset} of {}", source.bytes()))
        })?;
        if bytes == 0 {
            return Ok(());
        }
        self.busy = true;
        self.traffic.uploaded += bytes as u64;
        self.buffers.push(target.clone());
        // SAFETY: the host buffer is kept by the stream until it is synchronised and, being behind an `Arc`, cannot be
        // written meanwhile; the ranges were checked.
        let result = unsafe { self.backend.upload(target.address() + offset as u64, slice.as_ptr(), bytes) };
        self.hosts.push(source.clone());
        self.device.note(result)
    }

    /// Copies device memory to `target` and waits for it and for all work before it.
    pub fn download(&mut self, source: &DeviceBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        self.download_all(source, &mut [(offset, target)])
    }

    /// Copies several ranges of a buffer, each from its offset, and waits once for all of them.
    pub fn download_all(&mut self, source: &DeviceBuffer, ranges: &mut [(usize, &mut [u8])]) -> Result<()> {
        for (offset, target) in ranges.iter() {
            self.check_range(source, *offset, target.len())?;
        }
        for (offset, target) in ranges.iter_mut().filter(|(_, target)| !target.is_empty()) {
            self.busy = true;
            self.traffic.downloaded += target.len() as u64;
            let address = source.address() + *offset as u64;
            // SAFETY: the targets are borrowed until the synchronisation below; the ranges were checked.
            let result = unsafe { self.backend.download(target.as_mut_ptr(), address, target.len()) };
            if result.is_err() {
                // Whatever was submitted must not outlive the borrow of the targets.
                let _ = self.synchronize();
            }
            self.device.note(result)?;
        }
        self.synchronize()
    }

    /// Copies `bytes` from one buffer to another, or to a part of the same one.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if a range leaves its buffer, or both overlap.
    pub fn copy(
        &mut self,
        target: &DeviceBuffer,
        target_offset: usize,
        source: &DeviceBuffer,
        source_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.check_range(target, target_offset, bytes)?;
        self.check_range(source, source_offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let (to, from) = (target.address() + target_offset as u64, source.address() + source_offset as u64);
        if to.abs_diff(from) < bytes as u64 {
            return Err(GpuError::Contract(format!(
                "a copy of {bytes} bytes to {} bytes from its source: the ranges overlap",
                to.abs_diff(from)
            )));
        }
        self.busy = true;
        self.buffers.extend([target.clone(), source.clone()]);
        // SAFETY: both ranges were checked and do not overlap; their buffers are kept until the stream is synchronised.
        let result = unsafe { self.backend.copy(to, from, bytes) };
        self.device.note(result)
    }

    /// Sets `bytes` bytes of a buffer from `offset` on.
    pub fn fill(&mut self, target: &DeviceBuffer, offset: usize, value: u8, bytes: usize) -> Result<()> {
        self.check_range(target, offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.busy = true;
        self.buffers.push(target.clone());
        // SAFETY: the range was checked and the buffer is kept until the stream is synchronised.
        let result = unsafe { self.backend.fill(target.address() + offset as u64, value, bytes) };
        self.device.note(result)
    }

    /// Launches a kernel.
    ///
    /// Kernel source is part of this program and trusted as its own code is: that it stays inside the buffers it is
    /// given is held by the tests on the emulated device and by the memory checker on a GPU, not by this call.
    pub fn launch(&mut self, kernel: &Kernel, shape: LaunchShape, params: &Params) -> Result<()> {
        check_launch(&self.device, kernel, shape, params)?;
        self.busy = true;
        self.buffers.extend(params.buffers.iter().cloned());
        if !self.modules.iter().any(|module| Arc::ptr_eq(module, &kernel.module)) {
            self.modules.push(kernel.module.clone());
        }
        // SAFETY: the module, and the buffers named in `params`, which are of this device, are kept until the stream is
        // synchronised; the struct's layout is the launcher's obligation, which runs on the emulated device check.
        let result =
            unsafe { self.backend.launch(kernel.module.backend.as_ref(), &kernel.name, shape, &params.bytes, false) };
        self.device.note(result)
    }

    /// What went over the bus since this was last asked.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// Whether all submitted work is done, without waiting.
    pub fn is_done(&mut self) -> Result<bool> {
        let result = self.backend.is_done();
        self.device.note(result)
    }

    /// Waits for all submitted work and reports its errors.
    pub fn synchronize(&mut self) -> Result<()> {
        if !self.busy {
            return Ok(());
        }
        let result = self.backend.synchronize();
        self.busy = false;
        self.buffers.clear();
        self.staged.clear();
        self.hosts.clear();
        self.modules.clear();
        self.device.note(result)
    }

    /// Prepares work that will be run again and again.
    pub fn prepare(&mut self, work: Work) -> Result<Recording> {
        self.synchronize()?;
        Recording::new(work, self.backend.as_mut())
    }

    /// Runs recorded work over the buffers it was described with, and waits for it.
    pub fn run(&mut self, recording: &mut Recording, buffers: &[&DeviceBuffer]) -> Result<()> {
        self.synchronize()?;
        self.busy = true;
        self.buffers.extend(buffers.iter().map(|buffer| (*buffer).clone()));
        let traffic = recording.traffic();
        self.traffic.uploaded += traffic.uploaded;
        self.traffic.downloaded += traffic.downloaded;
        let submitted = recording.submit(self.backend.as_mut(), buffers);
        // Whatever was submitted is waited for, also where something went wrong.
        let done = self.synchronize();
        self.device.note(submitted).and(done)
    }

    fn check_range(&self, buffer: &DeviceBuffer, offset: usize, bytes: usize) -> Result<()> {
        check_range(&self.device, buffer, offset, bytes)
    }
}

/// Refuses a range that does not lie in a buffer of this device.
pub(crate) fn check_range(
    device: &Arc<DeviceShared>,
    buffer: &DeviceBuffer,
    offset: usize,
    bytes: usize,
) -> Result<()> {
    device.check()?;
    if !Arc::ptr_eq(buffer.device(), device) {
        return Err(GpuError::Contract("a stream was given a buffer of another device".into()));
    }
    if offset.checked_add(bytes).is_none_or(|end| end > buffer.bytes()) {
        return Err(GpuError::Contract(format!("{bytes} bytes at {offset} of a buffer of {}", buffer.bytes())));
    }
    Ok(())
}

/// Refuses a launch that this device cannot do.
pub(crate) fn check_launch(
    device: &Arc<DeviceShared>,
    kernel: &Kernel,
    shape: LaunchShape,
    params: &Params,
) -> Result<()> {
    if !Arc::ptr_eq(&kernel.module.device, device) {
        return Err(GpuError::Contract(format!("kernel '{}' belongs to another device", kernel.name)));
    }
    if params.buffers.iter().any(|buffer| !Arc::ptr_eq(buffer.device(), device)) {
        return Err(GpuError::Contract(format!("kernel '{}' was given a buffer of another device", kernel.name)));
    }
    if shape.grid == 0 || shape.block == 0 {
        return Err(GpuError::Contract(format!("kernel '{}' cannot be launched with {shape:?}", kernel.name)));
    }
    device.check()?;
    let attributes = kernel.attributes();
    let shared_bytes = shape.shared_bytes as usize + attributes.static_shared_bytes as usize;
    let demands = [
        ("threads", shape.block as usize, attributes.threads_per_block_max as usize),
        ("bytes of shared memory", shared_bytes, device.backend.info().shared_memory_per_block),
        ("bytes of parameters", params.size(), device.backend.info().params_bytes_max),
    ];
    match demands.iter().find(|(_, asked, limit)| asked > limit) {
        None => Ok(()),
        Some((what, asked, limit)) => Err(GpuError::LaunchRefused {
            operation: format!("launching kernel '{}' as {shape:?}", kernel.name),
            code: "LAUNCH_LIMIT".into(),
            message: format!("it asks for {asked} {what}, and there are {limit}"),
        }),
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Err(error) = self.synchronize() {
            tracing::warn!(%error, "work in flight failed while a stream was dropped");
        }
    }
}
