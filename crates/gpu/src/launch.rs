//! What streams and recorded work have in common: parameters of kernels, points in time, bytes copied, and the checks
//! before a copy or a launch.

use std::sync::Arc;

use crate::backend::LaunchShape;
use crate::buffer::DeviceBuffer;
use crate::device::{DeviceShared, Kernel};
use crate::error::{GpuError, Result};

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
        // Most members of a struct point into one buffer.
        if self.buffers.last().is_none_or(|last| last.address() != buffer.address()) {
            self.buffers.push(buffer.clone());
        }
        self.u64(buffer.address() + offset as u64)
    }

    /// Appends the members of another struct.
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
    pub fn i64(self, value: i64) -> Params {
        self.u64(value as u64)
    }

    /// An unsigned integer.
    pub fn u64(mut self, value: u64) -> Params {
        self.bytes.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// A double.
    pub fn f64(self, value: f64) -> Params {
        self.u64(value.to_bits())
    }

    /// Keeps a buffer alive that the kernel accesses by an address in device memory.
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

/// Bytes copied over the bus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From host to device.
    pub uploaded: u64,
    /// From device to host.
    pub downloaded: u64,
}

/// Refuses a buffer of another device, and a range that exceeds the buffer.
pub(crate) fn check_range(
    device: &Arc<DeviceShared>,
    buffer: &DeviceBuffer,
    offset: usize,
    bytes: usize,
) -> Result<()> {
    device.check()?;
    if !Arc::ptr_eq(buffer.device(), device) {
        return Err(GpuError::Contract("the buffer belongs to another device".into()));
    }
    buffer.check_range(offset, bytes)
}

/// Refuses a launch with arguments of another device or past the limits of device and kernel.
pub(crate) fn check_launch(
    device: &Arc<DeviceShared>,
    kernel: &Kernel,
    shape: LaunchShape,
    params: &Params,
) -> Result<()> {
    if !Arc::ptr_eq(&kernel.module.device, device) {
        return Err(GpuError::Contract(format!("kernel '{}' belongs to another device", kernel.name)));
    }
    if params.buffers().iter().any(|buffer| !Arc::ptr_eq(buffer.device(), device)) {
        return Err(GpuError::Contract(format!("kernel '{}' takes a buffer of another device", kernel.name)));
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
        ("bytes of parameters", params.bytes().len(), device.backend.info().params_bytes_max),
    ];
    match demands.iter().find(|(_, asked, limit)| asked > limit) {
        None => Ok(()),
        Some((what, asked, limit)) => Err(GpuError::LaunchRefused {
            operation: format!("launching kernel '{}' as {shape:?}", kernel.name),
            code: "LAUNCH_LIMIT".into(),
            message: format!("the launch asks for {asked} {what}, and the limit is {limit}"),
        }),
    }
}
