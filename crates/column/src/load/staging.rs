//! Transfers of segments between host and device, through page-locked staging buffers.
//!
//! Copies from page-locked memory run at the speed of the bus, concurrently with threads that encode. Page-locking is
//! slow, so that the buffers stay allocated for the next load.

use std::borrow::Borrow;
use std::sync::Arc;

use parking_lot::Mutex;
use warpcube_gpu::{Device, DeviceBuffer, HostBuffer, Stream, size_class};

use crate::device::{Encoded, Lookup, ResidentColumn, Room, Segment};
use crate::error::{ColumnError, Result};
use crate::format::{EncodedChunk, Encoding};
use crate::units::ColumnFacts;

/// Size of a buffer in bytes; larger segments are copied in pieces. Page-locking takes about 0.3 ms a MiB on CUDA, for
/// each thread of a first load.
const BUFFER_BYTES: usize = 1 << 20;
/// Buffers of a thread, filled in turn.
const BUFFERS_PER_THREAD: usize = 4;
/// Fewest bytes that are staged; the stream copies fewer bytes itself.
const STAGED_BYTES_MIN: usize = 256 << 10;

/// The device of a load, room on it, and staging buffers.
pub(crate) type Target<'a> = (&'a Device, &'a dyn Room, &'a StagingPool);

/// Free buffers.
#[derive(Debug, Default)]
pub(crate) struct StagingPool {
    free: Mutex<Vec<Arc<HostBuffer>>>,
}

/// The transfers of one thread.
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

    /// Begins the copy of `bytes` to the start of `target`.
    pub(crate) fn upload(&mut self, target: &DeviceBuffer, bytes: &[u8]) -> Result<()> {
        if bytes.len() < STAGED_BYTES_MIN {
            return Ok(self.stream.upload(target, 0, bytes)?);
        }
        for (piece, bytes) in bytes.chunks(BUFFER_BYTES).enumerate() {
            let position = self.ready()?;
            let buffer = Arc::get_mut(&mut self.buffers[position]).expect("the stream was synchronised");
            buffer.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
            self.stream.upload_from(target, piece * BUFFER_BYTES, &self.buffers[position], 0, bytes.len())?;
        }
        Ok(())
    }

    /// Position of the next buffer without a copy in progress.
    fn ready(&mut self) -> Result<usize> {
        if self.next == BUFFERS_PER_THREAD {
            self.stream.synchronize()?;
            self.next = 0;
        }
        if self.next == self.buffers.len() {
            let free = self.pool.free.lock().pop();
            let buffer = match free {
                Some(buffer) => buffer,
                None => Arc::new(self.device.host_buffer(BUFFER_BYTES)?),
            };
            self.buffers.push(buffer);
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Ends all copies after an error, so that their targets can be dropped.
    pub(crate) fn settle(&mut self) {
        // The load reports the earlier error.
        let _ = self.stream.synchronize();
        self.next = 0;
    }

    /// Waits for all copies.
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.stream.synchronize()?;
        self.next = 0;
        Ok(())
    }

    /// Waits for all copies, and returns the buffers to the pool.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.wait()?;
        self.pool.free.lock().append(&mut self.buffers);
        Ok(())
    }
}

/// Copies an encoded column to the device.
pub(super) fn upload_column<E: From<ColumnError>>(
    (device, room, staging): Target<'_>,
    index: usize,
    facts: Arc<ColumnFacts>,
    encoding: Encoding,
    chunks: impl Iterator<Item = Result<impl Borrow<EncodedChunk>, E>>,
) -> Result<ResidentColumn, E> {
    let mut uploader = Uploader::new(device, staging)?;
    let mut segments = Vec::new();
    for chunk in chunks {
        let placed = chunk.and_then(|chunk| {
            let EncodedChunk { bytes, validity, rows } = chunk.borrow();
            let validity = validity.as_deref().map(bytemuck::cast_slice);
            Ok(place(device, room, &mut uploader, bytes, validity, *rows as u32)?)
        });
        // Dropped segments release their reservations, so that copies to them end first.
        segments.push(placed.inspect_err(|_| uploader.settle())?);
    }
    uploader.finish()?;
    let lookup = Lookup::of(&encoding, facts.storage, device, room)?;
    Ok(ResidentColumn::new(index, facts, Encoded { encoding, lookup, segments }))
}

/// Copies a segment to the host.
pub(super) fn download(stream: &mut Stream, segment: &Segment) -> Result<EncodedChunk> {
    let mut bytes = vec![0; segment.values().bytes()];
    stream.download(segment.values(), 0, &mut bytes)?;
    let mut words = |buffer: &DeviceBuffer| {
        let mut words = vec![0u32; buffer.bytes() / size_of::<u32>()];
        stream.download(buffer, 0, bytemuck::cast_slice_mut(&mut words)).map(|()| words)
    };
    let validity = segment.validity().map(&mut words).transpose()?;
    Ok(EncodedChunk { bytes, validity, rows: segment.rows() as usize })
}

/// Reserves memory for a segment, and begins its copy.
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
    let upload_words = |words: &[u8]| -> Result<DeviceBuffer> {
        let target = device.buffer(words.len(), "a validity bitmap")?;
        uploader.upload(&target, words)?;
        Ok(target)
    };
    let validity = validity.map(upload_words).transpose()?;
    Ok(Segment::new(target, validity, rows, reservation))
}
