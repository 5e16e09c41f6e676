//! Writing to device memory beside running kernels.
//!
//! A copy of a few bytes from page-locked memory on a stream of its own goes through a copy engine, so it does not wait
//! for multiprocessors that a running kernel holds. Stream and memory are made with the device: creating them later
//! could wait for the very kernels that are to be stopped.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use parking_lot::Mutex;

use super::driver::{Context, check};
use crate::error::Result;

/// A stream and a word of page-locked memory.
pub(super) struct Poker {
    context: Arc<Context>,
    door: Mutex<Door>,
}

struct Door {
    stream: sys::CUstream,
    word: *mut u64,
}

// SAFETY: stream handles may be used from any thread with the context current, and the word is ours alone.
unsafe impl Send for Door {}

impl Poker {
    /// A poker for the context's device.
    pub(super) fn new(context: Arc<Context>) -> Result<Poker> {
        context.bind()?;
        // SAFETY: a context is current on this thread.
        let word = unsafe { result::malloc_host(size_of::<u64>(), sys::CU_MEMHOSTALLOC_PORTABLE) };
        let word = check("allocating page-locked host memory", word)?.cast::<u64>();
        let stream = check("creating a stream", result::stream::create(result::stream::StreamKind::NonBlocking));
        let stream = stream.inspect_err(|_| {
            // SAFETY: allocated above, freed once.
            let _ = unsafe { result::free_host(word.cast()) };
        })?;
        Ok(Poker { context, door: Mutex::new(Door { stream, word }) })
    }

    /// Writes a word; returns when it is written.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes and 8 bytes there lie in a live allocation.
    pub(super) unsafe fn poke(&self, address: u64, value: u64) -> Result<()> {
        let door = self.door.lock();
        self.context.bind()?;
        // SAFETY: the word is 8 bytes that only holders of the lock touch, and no copy from it is in flight: each is
        // waited for below. The target is valid by the caller's promise.
        unsafe {
            door.word.write(value);
            let copied = sys::cuMemcpyHtoDAsync_v2(address, door.word.cast(), size_of::<u64>(), door.stream);
            check("writing beside running kernels", copied.result())?;
            check("writing beside running kernels", result::stream::synchronize(door.stream))
        }
    }
}

impl Drop for Poker {
    fn drop(&mut self) {
        let door = self.door.get_mut();
        if self.context.bind().is_ok() {
            // SAFETY: made once, destroyed once; every copy was waited for.
            unsafe {
                let _ = result::stream::destroy(door.stream);
                let _ = result::free_host(door.word.cast());
            }
        }
    }
}
