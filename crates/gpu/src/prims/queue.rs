//! Where launchers put their work.

use crate::backend::LaunchShape;
use crate::buffer::DeviceBuffer;
use crate::device::Kernel;
use crate::error::Result;
use crate::launch::Params;
use crate::prims::DeviceSlice;
use crate::recording::Work;
use crate::stream::Stream;

/// A stream, which runs work at once, or recorded work, which runs again and again.
pub trait Queue {
    /// Launches a kernel; see [`Stream::launch`].
    ///
    /// # Errors
    /// As [`Stream::launch`].
    fn launch(&mut self, kernel: &Kernel, shape: LaunchShape, params: &Params) -> Result<()>;

    /// Sets `bytes` bytes of a buffer from `offset` on.
    ///
    /// # Errors
    /// As [`Stream::fill`].
    fn fill(&mut self, target: &DeviceBuffer, offset: usize, value: u8, bytes: usize) -> Result<()>;
}

impl Queue for Stream {
    fn launch(&mut self, kernel: &Kernel, shape: LaunchShape, params: &Params) -> Result<()> {
        Stream::launch(self, kernel, shape, params)
    }

    fn fill(&mut self, target: &DeviceBuffer, offset: usize, value: u8, bytes: usize) -> Result<()> {
        Stream::fill(self, target, offset, value, bytes)
    }
}

impl Queue for Work {
    fn launch(&mut self, kernel: &Kernel, shape: LaunchShape, params: &Params) -> Result<()> {
        Work::launch(self, kernel, shape, params, false)
    }

    fn fill(&mut self, target: &DeviceBuffer, offset: usize, value: u8, bytes: usize) -> Result<()> {
        Work::fill(self, target, offset, value, bytes)
    }
}

impl Params {
    /// A pointer to the first element of a slice.
    pub fn slice(self, slice: &DeviceSlice) -> Params {
        self.buffer_at(slice.buffer(), slice.offset())
    }
}
