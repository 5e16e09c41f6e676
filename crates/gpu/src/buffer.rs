//! Device and host memory that its handles own.
//!
//! A [`DeviceBuffer`] is charged to the device's pool while it lives; the last handle returns its block to the pool's
//! free list. Streams hold handles of all buffers they use, so no block is reused under running work.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::device::{Device, DeviceShared};
use crate::error::{GpuError, Result};

/// Parts of a buffer begin at multiples of this many bytes, as buffers do.
pub const PART_BYTES_MIN: usize = 256;

/// Device memory, or a part of it; cheap to clone, released with the last clone and the last part.
#[derive(Clone)]
pub struct DeviceBuffer {
    inner: Arc<DeviceAllocation>,
    /// Start in the allocation, in bytes.
    offset: usize,
    bytes: usize,
}

struct DeviceAllocation {
    device: Arc<DeviceShared>,
    address: u64,
    class: usize,
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} bytes)", self.bytes)
    }
}

impl DeviceBuffer {
    pub(crate) fn allocate(device: Arc<DeviceShared>, bytes: usize, purpose: &str) -> Result<DeviceBuffer> {
        let (address, class) = device.pool.clone().allocate(device.backend.as_ref(), bytes.max(1), purpose)?;
        if let Err(error) = device.backend.begin_buffer(address, bytes, purpose) {
            device.pool.release((address, class));
            return Err(error);
        }
        let inner = Arc::new(DeviceAllocation { device, address, class });
        Ok(DeviceBuffer { inner, offset: 0, bytes })
    }

    /// Size in bytes, as requested.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The `bytes` bytes from `offset`, a multiple of [`PART_BYTES_MIN`]; the part keeps the whole allocated.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if the offset is no such multiple or the part exceeds this buffer.
    pub fn part(&self, offset: usize, bytes: usize) -> Result<DeviceBuffer> {
        if !offset.is_multiple_of(PART_BYTES_MIN) {
            return Err(GpuError::Contract(format!("a part of a buffer at {offset}, not a multiple of 256")));
        }
        self.check_range(offset, bytes)?;
        Ok(DeviceBuffer { inner: self.inner.clone(), offset: self.offset + offset, bytes })
    }

    /// The device address, for parameter structs; only the device can read it.
    pub fn address(&self) -> u64 {
        self.inner.address + self.offset as u64
    }

    /// Declares the ranges of the buffer, in bytes, that no structure uses; they replace those declared before. The
    /// emulated device reports kernels that write there, and copies and fills that touch a part of one.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if a range exceeds the buffer.
    pub fn set_redzones(&self, redzones: &[Range<usize>]) -> Result<()> {
        redzones.iter().try_for_each(|range| self.check_range(range.start, range.len()))?;
        self.inner.device.backend.set_redzones(self.address(), redzones);
        Ok(())
    }

    /// Writes a 64-bit word at `offset` bytes while kernels run that load it by `wc_load_relaxed`; waits for none.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if the word is unaligned or exceeds the buffer.
    pub fn host_write(&self, offset: usize, value: u64) -> Result<()> {
        if !offset.is_multiple_of(size_of::<u64>()) {
            return Err(GpuError::Contract(format!("an unaligned word at {offset} of a buffer of {}", self.bytes)));
        }
        self.check_range(offset, size_of::<u64>())?;
        let device = &self.inner.device;
        device.check()?;
        // SAFETY: buffers are aligned to 256 bytes at least, so the word is aligned; it lies in this buffer, which is
        // live. Kernels load such a word by relaxed atomics.
        device.note(unsafe { device.backend.host_write(self.address() + offset as u64, value) })
    }

    /// Refuses a range, in bytes, that exceeds the buffer.
    pub(crate) fn check_range(&self, offset: usize, bytes: usize) -> Result<()> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(GpuError::Contract(format!("{bytes} bytes at {offset} of a buffer of {}", self.bytes))),
        }
    }

    /// Whether this is memory of a device.
    pub fn is_of(&self, device: &Device) -> bool {
        Arc::ptr_eq(&self.inner.device, &device.shared)
    }

    pub(crate) fn device(&self) -> &Arc<DeviceShared> {
        &self.inner.device
    }
}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        self.device.backend.end_buffer(self.address);
        self.device.pool.release((self.address, self.class));
    }
}

/// Host memory that the device copies from and to without staging (page-locked on CUDA). It goes back to a cache, or a
/// background thread frees it, because the driver waits for the device while it unlocks pages.
pub struct HostBuffer {
    device: Arc<DeviceShared>,
    address: u64,
    bytes: usize,
    /// Bytes that are allocated.
    size: usize,
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer({} bytes)", self.bytes)
    }
}

impl HostBuffer {
    pub(crate) fn allocate(device: Arc<DeviceShared>, bytes: usize) -> Result<HostBuffer> {
        let bytes = bytes.max(1);
        let (address, size) = device.pool.allocate_host(device.backend.as_ref(), bytes)?;
        // SAFETY: the pool gave `size` writable bytes at `address`, at least `bytes`, which nothing else owns.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
        Ok(HostBuffer { device, address, bytes, size })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The content.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: allocated with `bytes` bytes, initialised at allocation, and no device work writes to it while `self`
        // is borrowed: `Stream::download` borrows the slice of `as_mut_slice` until the copy has ended, and
        // `Stream::run` borrows a recording, which owns its buffer, mutably until its work has.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }

    /// The content, writable.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`; a stream that still reads it holds a second handle (`Stream::upload_from` takes
        // an `Arc`), so that no `&mut` exists.
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if self.device.pool.discard_host((self.address, self.size)) {
            self.device.reclaim();
        }
    }
}
