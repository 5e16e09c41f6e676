//! A typed range of device memory.

use super::element::Element;
use crate::buffer::DeviceBuffer;
use crate::error::{GpuError, Result};

/// Elements of one type in a buffer; cheap to clone, keeps the buffer alive.
#[derive(Debug, Clone)]
pub struct DeviceSlice {
    buffer: DeviceBuffer,
    /// Where it begins in the buffer, in bytes.
    offset: usize,
    len: u64,
    element: Element,
}

impl DeviceSlice {
    /// `len` elements from `offset` bytes on.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if they leave the buffer or `offset` is no multiple of their size.
    pub fn new(buffer: &DeviceBuffer, offset: usize, element: Element, len: u64) -> Result<DeviceSlice> {
        let bytes = usize::try_from(len).ok().and_then(|len| len.checked_mul(element.bytes()));
        let end = bytes.and_then(|bytes| offset.checked_add(bytes));
        if !offset.is_multiple_of(element.bytes()) || end.is_none_or(|end| end > buffer.bytes()) {
            let message = format!("{len} elements of {element} at {offset} of a buffer of {} bytes", buffer.bytes());
            return Err(GpuError::Contract(message));
        }
        Ok(DeviceSlice { buffer: buffer.clone(), offset, len, element })
    }

    /// All whole elements of a buffer.
    pub fn all(buffer: &DeviceBuffer, element: Element) -> DeviceSlice {
        let len = (buffer.bytes() / element.bytes()) as u64;
        DeviceSlice { buffer: buffer.clone(), offset: 0, len, element }
    }

    /// Elements `from..from + len` of the slice.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if they leave it.
    pub fn part(&self, from: u64, len: u64) -> Result<DeviceSlice> {
        if from.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(GpuError::Contract(format!("{len} elements at {from} of a slice of {}", self.len)));
        }
        let offset = self.offset + from as usize * self.element.bytes();
        Ok(DeviceSlice { buffer: self.buffer.clone(), offset, len, element: self.element })
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The buffer they lie in.
    pub fn buffer(&self) -> &DeviceBuffer {
        &self.buffer
    }

    /// Where they begin in the buffer, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether the first element lies at a multiple of so many bytes of device memory.
    pub fn is_aligned(&self, bytes: u64) -> bool {
        (self.buffer.address() + self.offset as u64).is_multiple_of(bytes)
    }
}
