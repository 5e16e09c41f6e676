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
use crate::error::{GpuError, LOST_BEFORE, Result};

/// A stream, and a word of page-locked memory.
pub(super) struct HostWriter(Mutex<Writer>);

struct Writer {
    stream: CudaStream,
    /// Page-locked memory that this struct owns.
    word: *mut u64,
    /// True from the start of a copy until a wait has ended it.
    in_flight: bool,
}

// SAFETY: the writer alone owns the word, and any thread may use and free page-locked memory; the stream is `Send`.
unsafe impl Send for Writer {}

impl HostWriter {
    /// A writer for the context's device.
    pub(super) fn new(context: Arc<Context>) -> Result<HostWriter> {
        let stream = CudaStream::new(context)?;
        // SAFETY: `CudaStream::new` has made its context current on this thread.
        let word = unsafe { result::malloc_host(size_of::<u64>(), sys::CU_MEMHOSTALLOC_PORTABLE) };
        let word = check("allocating page-locked host memory", word)?.cast();
        Ok(HostWriter(Mutex::new(Writer { stream, word, in_flight: false })))
    }

    /// Writes a word; returns when it is written.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes and 8 bytes there lie in a live allocation.
    pub(super) unsafe fn write(&self, address: u64, value: u64) -> Result<()> {
        let Writer { stream, word, in_flight } = &mut *self.0.lock();
        if std::mem::replace(in_flight, true) {
            let message = "an earlier write has not ended".to_string();
            let (operation, code) = ("writing while kernels run".to_string(), LOST_BEFORE.to_string());
            return Err(GpuError::DeviceLost { operation, code, message });
        }
        // SAFETY: the word is aligned, owned, and under the lock; no copy from it is in flight, as `in_flight` was
        // false.
        unsafe { word.write(value) };
        // SAFETY: the word stays as it is until the wait below has ended the copy; where the wait fails it is never
        // written or freed. The caller promises the target.
        let copied = unsafe { stream.upload(address, word.cast(), size_of::<u64>()) };
        let ended = stream.synchronize();
        *in_flight = ended.is_err();
        copied.and(ended)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.in_flight && self.stream.context.bind().is_ok() {
            // SAFETY: allocated once in `HostWriter::new`, freed once here, with its context current; every copy from
            // it has ended.
            let _ = unsafe { result::free_host(self.word.cast()) };
        }
    }
}
