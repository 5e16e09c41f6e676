//! Host memory that segments pass through on their way to the device.
//!
//! Copies from page-locked memory run at the speed of the bus and beside the threads that encode; page-locking itself
//! is slow, so the buffers are kept for the next load.

use std::sync::Arc;

use parking_lot::Mutex;
use warpcube_gpu::{Device, DeviceBuffer, HostBuffer, Stream, size_class};

use crate::device::{Room, Segment};
use crate::error::Result;

/// Size of a buffer in bytes; larger segments are copied in pieces. Page-locking takes about 0.3 ms a MiB on CUDA, and
/// a first load pays it for every thread.
const BUFFER_BYTES: usize = 1 << 20;
/// Buffers that one thread fills in turn.
const BUFFERS_PER_THREAD: usize = 4;
/// Smaller pieces are left to the stream, which copies them aside.
const STAGED_BYTES_MIN: usize = 256 << 10;

/// Buffers not in use.
#[derive(Debug, Default)]
pub(crate) struct StagingPool {
    free: Mutex<Vec<Arc<HostBuffer>>>,
}

/// One thread's way to the device.
pub(crate) struct Uploader<'a> {
    device: &'a Device,
    pool: &'a StagingPool,
    stream: Stream,
    buffers: Vec<Arc<HostBuffer>>,
    next: usize,
}

impl<'a> Uploader<'a> {
    /// An uploader with a stream of its own.
    pub(crate) fn new(device: &'a Device, pool: &'a StagingPool) -> Result<Uploader<'a>> {
        Ok(Uploader { device, pool, stream: device.stream()?, buffers: Vec::new(), next: 0 })
    }

    /// Copies `bytes` to the start of `target`; returns before they have arrived.
    pub(crate) fn upload(&mut self, target: &DeviceBuffer, bytes: &[u8]) -> Result<()> {
        if bytes.len() < STAGED_BYTES_MIN {
            return Ok(self.stream.upload(target, 0, bytes)?);
        }
        for (piece, bytes) in bytes.chunks(BUFFER_BYTES).enumerate() {
            let position = self.ready()?;
            let buffer = Arc::get_mut(&mut self.buffers[position]).expect("a stream lets go when it is synchronised");
            buffer.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
            self.stream.upload_from(target, piece * BUFFER_BYTES, &self.buffers[position], 0, bytes.len())?;
        }
        Ok(())
    }

    /// The next buffer that no copy reads from.
    fn ready(&mut self) -> Result<usize> {
        if self.next == BUFFERS_PER_THREAD {
            self.stream.synchronize()?;
            self.next = 0;
        }
        if self.next == self.buffers.len() {
            let kept = self.pool.free.lock().pop();
            let buffer = match kept {
                Some(buffer) => buffer,
                None => Arc::new(self.device.host_buffer(BUFFER_BYTES)?),
            };
            self.buffers.push(buffer);
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Waits until no copy holds a buffer of the device any more: what they go to may be given up after that.
    pub(crate) fn settle(&mut self) {
        // A load that gives up reports an earlier error.
        let _ = self.stream.synchronize();
        self.next = 0;
    }

    /// Waits until everything has arrived.
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.stream.synchronize()?;
        self.next = 0;
        Ok(())
    }

    /// Waits until everything has arrived and gives the buffers back.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.wait()?;
        self.pool.free.lock().append(&mut self.buffers);
        Ok(())
    }
}

/// Reserves room for a segment and sends it there; returns before it has arrived.
pub(crate) fn place(
    device: &Device,
    room: &dyn Room,
    uploader: &mut Uploader<'_>,
    values: &[u8],
    validity: Option<&[u8]>,
    rows: u32,
) -> Result<Segment> {
    let class = |bytes: &[u8]| size_class(bytes.len()) as u64;
    let reservation = room.reserve(class(values) + validity.map_or(0, class))?;
    let target = device.buffer(values.len(), "a column segment")?;
    uploader.upload(&target, values)?;
    let validity = match validity {
        Some(words) => {
            let target = device.buffer(words.len(), "a validity bitmap")?;
            uploader.upload(&target, words)?;
            Some(target)
        }
        None => None,
    };
    Ok(Segment::new(target, validity, rows, reservation))
}
