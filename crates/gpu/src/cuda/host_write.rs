//! Host writes to device memory while kernels run.
//!
//! A copy from page-locked memory on a separate stream uses a copy engine, so it does not wait for running kernels.
//! Stream and page-locked word are created with the device: their creation could wait for the kernels to be cancelled.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use parking_lot::Mutex;

use super::driver::{Context, check};
use super::stream::CudaStream;
use crate::backend::BackendStream;
use crate::error::Result;

/// A stream, and a word of page-locked memory that only holders of the lock access.
pub(super) struct HostWriter(Mutex<(CudaStream, *mut u64)>);

// SAFETY: the writer alone owns the word, and page-locked memory belongs to no thread.
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
        // SAFETY: each copy from the word is waited for here, so none is in flight; the caller promises the target.
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
