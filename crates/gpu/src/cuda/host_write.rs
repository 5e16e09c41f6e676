//! Words that the host writes to device memory while kernels run.
//!
//! A copy of a few bytes from page-locked memory on a stream of its own goes through a copy engine, so it does not wait
//! for multiprocessors that a running kernel holds. Stream and memory are made with the device: creating them later
//! could wait for the very kernels that are to be stopped.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use parking_lot::Mutex;

use super::driver::{Context, check};
use super::stream::CudaStream;
use crate::backend::BackendStream;
use crate::error::Result;

/// A stream, and a word of page-locked memory that only holders of the lock touch.
pub(super) struct HostWriter(Mutex<(CudaStream, *mut u64)>);

// SAFETY: the word is ours alone, and page-locked memory belongs to no thread.
unsafe impl Send for HostWriter {}
// SAFETY: as for `Send`; the word is behind the lock.
unsafe impl Sync for HostWriter {}

impl HostWriter {
    /// A writer for the context's device.
    pub(super) fn new(context: Arc<Context>) -> Result<HostWriter> {
        let stream = CudaStream::new(context)?;
        // SAFETY: the stream's context is current on this thread.
        let word = unsafe { result::malloc_host(size_of::<u64>(), sys::CU_MEMHOSTALLOC_PORTABLE) };
        Ok(HostWriter(Mutex::new((stream, check("allocating page-locked host memory", word)?.cast()))))
    }

    /// Writes a word; returns when it is written.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes and 8 bytes there lie in a live allocation.
    pub(super) unsafe fn write(&self, address: u64, value: u64) -> Result<()> {
        let (stream, word) = &mut *self.0.lock();
        // SAFETY: no copy from the word is in flight, since each is waited for here; the target is valid by the
        // caller's promise.
        unsafe {
            word.write(value);
            stream.upload(address, word.cast(), size_of::<u64>())?;
        }
        stream.synchronize()
    }
}

impl Drop for HostWriter {
    fn drop(&mut self) {
        let (stream, word) = self.0.get_mut();
        if stream.context.bind().is_ok() {
            // SAFETY: allocated once, freed once; every copy was waited for.
            let _ = unsafe { result::free_host(word.cast()) };
        }
    }
}
