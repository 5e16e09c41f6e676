//! Work that is recorded once and submitted as a whole, any number of times.
//!
//! A [`Work`] is a list of copies, fills, launches and points in time over buffers of fixed address;
//! [`crate::Stream::prepare`] makes a [`Recording`] of it, which [`crate::Stream::run`] submits (on CUDA step by step
//! the first time, then as a graph by one call) and waits for. The recording owns one page-locked buffer with all host
//! data. It keeps no device buffer alive: each run takes the buffers as arguments and refuses others.

use std::ops::Range;
use std::sync::Arc;

use crate::backend::{BackendRecording, BackendStream, LaunchShape, WorkStep};
use crate::buffer::{DeviceBuffer, HostBuffer};
use crate::device::{Device, DeviceShared, Kernel, Module};
use crate::error::{GpuError, Result};
use crate::launch::{Mark, Params, Traffic, check_launch, check_range};

/// Alignment of the pieces of a recording's host buffer in bytes.
const HOST_ALIGNMENT: usize = 64;

/// Steps to be recorded, in order.
pub struct Work {
    device: Arc<DeviceShared>,
    steps: Vec<WorkStep>,
    host: Vec<u8>,
    buffers: Vec<(u64, usize)>,
    modules: Vec<Arc<Module>>,
    marks: usize,
    traffic: Traffic,
}

/// A range of a recording's host buffer that a download fills.
#[derive(Debug, Clone)]
pub struct Output(Range<usize>);

impl Work {
    /// Work without steps.
    pub fn new(device: &Device) -> Work {
        let (steps, host, buffers, modules) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Work { device: device.shared.clone(), steps, host, buffers, modules, marks: 0, traffic: Traffic::default() }
    }

    /// Refuses work of another device than `device`.
    pub(crate) fn check_device(&self, device: &Arc<DeviceShared>) -> Result<()> {
        check_device(&self.device, device)
    }

    fn host(&mut self, bytes: usize) -> Range<usize> {
        let start = self.host.len();
        self.host.resize((start + bytes).next_multiple_of(HOST_ALIGNMENT), 0);
        start..start + bytes
    }

    fn address(&mut self, buffer: &DeviceBuffer, offset: usize, bytes: usize) -> Result<u64> {
        check_range(&self.device, buffer, offset, bytes)?;
        self.uses(buffer);
        Ok(buffer.address() + offset as u64)
    }

    fn uses(&mut self, buffer: &DeviceBuffer) {
        let own = (buffer.address(), buffer.bytes());
        if !self.buffers.iter().any(|known| is_within(own, *known)) {
            self.buffers.push(own);
        }
    }

    /// Copies `source`, by its content at this call, to `target` at `offset` bytes.
    pub fn upload(&mut self, target: &DeviceBuffer, offset: usize, source: &[u8]) -> Result<()> {
        let address = self.address(target, offset, source.len())?;
        if !source.is_empty() {
            let host = self.host(source.len());
            self.host[host.clone()].copy_from_slice(source);
            self.traffic.uploaded += source.len() as u64;
            self.steps.push(WorkStep::Upload { target: address, host });
        }
        Ok(())
    }

    /// Copies `bytes` of `source` from `offset` on to the host, for [`Recording::output`].
    pub fn download(&mut self, source: &DeviceBuffer, offset: usize, bytes: usize) -> Result<Output> {
        let address = self.address(source, offset, bytes)?;
        let host = self.host(bytes);
        if bytes > 0 {
            self.traffic.downloaded += bytes as u64;
            self.steps.push(WorkStep::Download { source: address, host: host.clone() });
        }
        Ok(Output(host))
    }

    /// Sets `bytes` bytes of a buffer from `offset` on to `value`.
    pub fn fill(&mut self, target: &DeviceBuffer, offset: usize, value: u8, bytes: usize) -> Result<()> {
        let target = self.address(target, offset, bytes)?;
        if bytes > 0 {
            self.steps.push(WorkStep::Fill { target, value, bytes });
        }
        Ok(())
    }

    /// Launches a kernel; see [`crate::Stream::launch`]. A kernel launched `early` may start while the one before it
    /// runs, if the device can, and calls `wc_wait_previous` before it accesses memory.
    pub fn launch(&mut self, kernel: &Kernel, shape: LaunchShape, params: &Params, early: bool) -> Result<()> {
        check_launch(&self.device, kernel, shape, params)?;
        params.buffers().iter().for_each(|buffer| self.uses(buffer));
        self.modules.push(kernel.module.clone());
        self.steps.push(WorkStep::Launch {
            module: kernel.module.backend.clone(),
            kernel: kernel.name().to_string(),
            shape,
            params: params.bytes().to_vec(),
            early,
        });
        Ok(())
    }

    /// Marks the point in time when all steps before it are done.
    pub fn mark(&mut self) -> Mark {
        self.steps.push(WorkStep::Mark);
        self.marks += 1;
        Mark(self.marks - 1)
    }
}

/// Refuses recorded work of another device than the stream's.
fn check_device(own: &Arc<DeviceShared>, stream: &Arc<DeviceShared>) -> Result<()> {
    match Arc::ptr_eq(own, stream) {
        true => Ok(()),
        false => Err(GpuError::Contract("the recorded work belongs to another device than the stream".into())),
    }
}

/// True if a range, an address and its bytes, lies in another.
fn is_within((address, bytes): (u64, usize), (outer, outer_bytes): (u64, usize)) -> bool {
    outer <= address && address + bytes as u64 <= outer + outer_bytes as u64
}

/// Work ready to be submitted.
pub struct Recording {
    backend: Box<dyn BackendRecording>,
    steps: Vec<WorkStep>,
    /// Shared with the stream of a run, which leaks it where the wait for the run fails.
    pub(crate) host: Arc<HostBuffer>,
    buffers: Vec<(u64, usize)>,
    device: Arc<DeviceShared>,
    /// Copies of one run.
    pub(crate) traffic: Traffic,
    /// Keeps the kernels loaded; dropped after the backend's recording, which uses them.
    pub(crate) modules: Vec<Arc<Module>>,
}

impl Recording {
    /// Records work on an idle stream.
    pub(crate) fn new(work: Work, stream: &mut dyn BackendStream) -> Result<Recording> {
        let mut host = HostBuffer::allocate(work.device.clone(), work.host.len())?;
        host.as_mut_slice()[..work.host.len()].copy_from_slice(&work.host);
        let host = Arc::new(host);
        // SAFETY: `Work` took kernels of its device alone, which is the stream's (`Stream::prepare`). Modules and host
        // memory are fields of the recording behind the backend's, so they are dropped after it.
        let backend = work.device.note(unsafe { stream.record(&work.steps, host.address()) })?;
        let Work { device, steps, buffers, modules, traffic, .. } = work;
        Ok(Recording { backend, steps, host, buffers, device, traffic, modules })
    }

    /// True if all device memory of the work lies in these buffers.
    pub fn is_on(&self, buffers: &[&DeviceBuffer]) -> bool {
        let holds = |known: &(u64, usize), buffer: &DeviceBuffer| {
            is_within(*known, (buffer.address(), buffer.bytes())) && Arc::ptr_eq(buffer.device(), &self.device)
        };
        self.buffers.iter().all(|known| buffers.iter().any(|buffer| holds(known, buffer)))
    }

    /// Refuses a lost device, a stream of another one, and buffers that the work was not recorded with.
    pub(crate) fn check(&self, stream: &Arc<DeviceShared>, buffers: &[&DeviceBuffer]) -> Result<()> {
        check_device(&self.device, stream)?;
        self.device.check()?;
        match self.is_on(buffers) {
            true => Ok(()),
            false => Err(GpuError::Contract(
                "recorded work runs over the buffers it was recorded with, not over other buffers".into(),
            )),
        }
    }

    /// Submits the work to an idle stream. The caller has passed [`Recording::check`], keeps buffers, host memory and
    /// modules until the wait that follows, and leaks them if it fails.
    pub(crate) fn submit(&mut self, stream: &mut dyn BackendStream) -> Result<()> {
        // SAFETY: ranges and kernels were checked when the work was described, over buffers that the caller keeps, of
        // the stream's device. The recording is not in flight: each run waits. Host memory is neither read nor written
        // until the wait, because the run borrows the recording mutably, and not after a failed one ([`Self::output`]).
        unsafe { stream.replay(self.backend.as_mut(), &self.steps, self.host.address()) }
    }

    /// The bytes that the last run downloaded; zeros before the first.
    ///
    /// # Errors
    /// That of a lost device, whose last copies may be in flight; [`GpuError::Contract`] for the output of other work.
    pub fn output(&self, output: &Output) -> Result<&[u8]> {
        self.device.check()?;
        let bytes = self.host.as_slice().get(output.0.clone());
        bytes.ok_or_else(|| GpuError::Contract(format!("bytes {:?} are no output of the recorded work", output.0)))
    }

    /// Milliseconds between two marks of the last run.
    pub fn elapsed_ms(&self, from: Mark, to: Mark) -> Result<f64> {
        self.backend.elapsed_ms(from.0, to.0)
    }
}
