//! Device and host memory that its handles own.
//!
//! A [`DeviceBuffer`] is charged to the device's pool while it lives; the last handle returns its block to the pool's
//! free list. Streams hold handles of all buffers they use, so no block is reused under running work.

use std::fmt;
use std::marker::PhantomData;
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

/// An address in device memory. The borrow `'pin` keeps its buffer allocated, so no address outlives its memory.
///
/// The host never follows an address; kernels do, by a parameter or a table in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePtr<'pin> {
    address: u64,
    pin: PhantomData<&'pin DeviceBuffer>,
}

impl<'pin> DevicePtr<'pin> {
    /// The null pointer.
    pub const NULL: DevicePtr<'static> = DevicePtr { address: 0, pin: PhantomData };

    /// The address `bytes` bytes further on, in the same buffer.
    pub fn offset(self, bytes: usize) -> DevicePtr<'pin> {
        DevicePtr { address: self.address + bytes as u64, ..self }
    }

    /// The word that kernels read as this pointer. A word pins nothing: the launcher of a kernel that reads it keeps
    /// the buffer until the kernel has ended ([`crate::Params::keep`], or a pin).
    pub fn word(self) -> u64 {
        self.address
    }
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

impl Device {
    /// Allocates `bytes` of device memory (at least one), content undefined; `purpose` names it in errors.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] past the budget or the device's memory.
    pub fn buffer(&self, bytes: usize, purpose: &str) -> Result<DeviceBuffer> {
        self.shared.check()?;
        self.shared.note(DeviceBuffer::allocate(self.shared.clone(), bytes, purpose))
    }

    /// Allocates `bytes` of host memory that the device copies from and to without staging, zeroed.
    pub fn host_buffer(&self, bytes: usize) -> Result<HostBuffer> {
        self.shared.check()?;
        self.shared.note(HostBuffer::allocate(self.shared.clone(), bytes))
    }
}

impl DeviceBuffer {
    fn allocate(device: Arc<DeviceShared>, bytes: usize, purpose: &str) -> Result<DeviceBuffer> {
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

    /// The pointer to the first byte, for tables that kernels read.
    pub fn pointer(&self) -> DevicePtr<'_> {
        DevicePtr { address: self.address(), pin: PhantomData }
    }

    pub(crate) fn address(&self) -> u64 {
        self.inner.address + self.offset as u64
    }

    /// The content of a buffer of the host ([`Device::host`]), where it lies. Writes to the allocation are refused from
    /// now on.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for a buffer of another device.
    pub fn host_bytes(&self) -> Result<&[u8]> {
        self.inner.device.backend.freeze(self.address(), self.bytes)?;
        // SAFETY: the backend has found the range in one of its allocations, which it makes with all bytes initialised,
        // and which `self` keeps. No write is in progress, and none begins before the last handle of the allocation is
        // dropped, which the borrow outlives.
        Ok(unsafe { std::slice::from_raw_parts(self.address() as *const u8, self.bytes) })
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
        // SAFETY: buffers are aligned to 256 bytes at least and `offset` to 8, so the word is aligned; it lies in this
        // buffer, which `self` keeps allocated until the call returns. Kernels that run meanwhile load such a word by
        // relaxed atomics, which is the caller's part.
        device.ended(unsafe { device.backend.host_write(self.address() + offset as u64, value) })
    }

    /// Refuses a range, in bytes, that exceeds the buffer.
    pub(crate) fn check_range(&self, offset: usize, bytes: usize) -> Result<()> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(GpuError::Contract(format!("{bytes} bytes at {offset} of a buffer of {}", self.bytes))),
        }
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
        // SAFETY: the pool gave `size` writable bytes at `address`, at least `bytes`. Only this call knows the address,
        // and no device work uses it: the pool takes memory back from buffers without work in flight alone.
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
        // SAFETY: `address` is not null and aligned to 64 bytes; the allocation has `bytes` bytes at least, which
        // `allocate` has initialised, and `self` owns them. No device work writes to them while `self` is borrowed:
        // `Stream::download` borrows the slice of `as_mut_slice` until the copies have ended, `Stream::run` borrows a
        // recording mutably until its work has ended, and the output of a recording whose wait failed is refused.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }

    /// The content, writable.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`. `&mut self` is the only handle: a stream that copies from the buffer holds an
        // `Arc` of it until the copy has ended (`Stream::upload_from`), behind which no `&mut` exists.
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.bytes) }
    }
}

impl Drop for HostBuffer {
    /// On a lost device the memory is leaked: a download into it may still be in flight.
    fn drop(&mut self) {
        if !self.device.is_lost() && self.device.pool.discard_host((self.address, self.size)) {
            self.device.reclaim();
        }
    }
}
