//! Device and host memory with an owner.
//!
//! A [`DeviceBuffer`] is charged to the device's pool while it lives and goes back to the pool's free list when its
//! last handle is dropped; streams hold handles of all they use, so memory is never given away under running work.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::device::DeviceShared;
use crate::error::{GpuError, Result};

/// Parts of a buffer begin at multiples of this many bytes, as buffers do.
pub const PART_BYTES_MIN: usize = 256;

/// Device memory, or a part of it; cheap to clone, freed with the last clone and the last part.
#[derive(Clone)]
pub struct DeviceBuffer {
    inner: Arc<DeviceAllocation>,
    /// Where it begins in the allocation, in bytes.
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
        if let Err(error) = device.backend.lend(address, bytes, purpose) {
            device.pool.release(address, class);
            return Err(error);
        }
        let inner = Arc::new(DeviceAllocation { device, address, class });
        Ok(DeviceBuffer { inner, offset: 0, bytes })
    }

    /// Size in bytes, as asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The part of `bytes` bytes from `offset` on, a multiple of [`PART_BYTES_MIN`]; it keeps the whole alive.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if it begins elsewhere or ends behind this buffer.
    pub fn part(&self, offset: usize, bytes: usize) -> Result<DeviceBuffer> {
        let end = offset.checked_add(bytes);
        if !offset.is_multiple_of(PART_BYTES_MIN) || end.is_none_or(|end| end > self.bytes) {
            return Err(GpuError::Contract(format!("{bytes} bytes at {offset} of a buffer of {}", self.bytes)));
        }
        Ok(DeviceBuffer { inner: self.inner.clone(), offset: self.offset + offset, bytes })
    }

    /// Size in bytes as charged to the pool, of the whole where this is a part.
    pub fn charged_bytes(&self) -> u64 {
        self.inner.class as u64
    }

    /// The device address, for parameter structs; only the device can read it.
    pub fn address(&self) -> u64 {
        self.inner.address + self.offset as u64
    }

    /// Says which ranges of the buffer, in bytes, are unused: those between structures that share it. The
    /// emulated device reports kernels that write there, and copies and fills that touch a part of one; others do
    /// nothing. They take the place of those said before.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if a range leaves the buffer.
    pub fn set_redzones(&self, redzones: &[Range<usize>]) -> Result<()> {
        if let Some(range) = redzones.iter().find(|range| range.start > range.end || range.end > self.bytes) {
            return Err(GpuError::Contract(format!("a redzone at {range:?} of a buffer of {}", self.bytes)));
        }
        self.inner.device.backend.set_redzones(self.address(), redzones);
        Ok(())
    }

    /// Writes a 64-bit word at `offset` bytes while kernels may be running, without waiting for them: for words that
    /// kernels look at as memory that others write.
    pub fn host_write(&self, offset: usize, value: u64) -> Result<()> {
        let end = offset.checked_add(size_of::<u64>());
        if !offset.is_multiple_of(size_of::<u64>()) || end.is_none_or(|end| end > self.bytes()) {
            return Err(GpuError::Contract(format!("a word at {offset} of a buffer of {}", self.bytes())));
        }
        let device = &self.inner.device;
        device.check()?;
        // SAFETY: buffers are aligned to 256 bytes at least, so the word is aligned; it lies in this buffer, which is
        // live. Kernels load a word that is written so as memory that others write.
        device.note(unsafe { device.backend.host_write(self.address() + offset as u64, value) })
    }

    pub(crate) fn device(&self) -> &Arc<DeviceShared> {
        &self.inner.device
    }
}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        self.device.backend.take_back(self.address);
        self.device.pool.release(self.address, self.class);
    }
}

/// Host memory that the device can copy from and to without staging (page-locked on CUDA).
pub struct HostBuffer {
    device: Arc<DeviceShared>,
    address: u64,
    bytes: usize,
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer({} bytes)", self.bytes)
    }
}

impl HostBuffer {
    pub(crate) fn allocate(device: Arc<DeviceShared>, bytes: usize) -> Result<HostBuffer> {
        let bytes = bytes.max(1);
        let address = device.backend.allocate_host(bytes)?;
        // SAFETY: the backend gave `bytes` writable bytes at `address`, which nothing else owns.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
        Ok(HostBuffer { device, address, bytes })
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
        // is borrowed: `Stream::download` borrows the slice of `as_mut_slice` until the copy has ended.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }

    /// The content, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`; streams that read it have been synchronised (`Stream::upload_from` keeps the
        // buffer).
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // SAFETY: address and size are those of the allocation; streams own the buffers of copies in flight.
        unsafe { self.device.backend.free_host(self.address, self.bytes) };
    }
}
