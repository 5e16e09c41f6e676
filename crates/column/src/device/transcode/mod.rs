//! Encoders on the device. Their bytes are those of [`encode`](crate::format::encode).
//!
//! Two batches of segments are encoded at a time. If the bytes of vectors depend on their values, kernels count and sum
//! them, and the totals come to the host. Kernels then write all segments of a batch into one slab of memory, and the
//! plain segments of the batch are dropped: a column takes the memory of two batches beside its plain segments.

mod codes;
mod context;
mod delta;
mod forms;
mod packed;
mod programs;
mod scratch;

use warpcube_gpu::{Device, PART_BYTES_MIN, size_class};

pub(crate) use codes::distinct;
pub(crate) use context::{BLOCK_WARPS, KernelContext, Source, flip};
pub(crate) use delta::fitting_delta;
pub(crate) use programs::{
    BASICS, PACKED, PROFILE_ANY, Parts, compile_all, has_encoders, profile_words, request_better, request_for_load,
};
pub use programs::{programs_of_first_loads, programs_of_plain_loads};
pub(crate) use scratch::Scratch;

use crate::device::segment::{Room, Segment};
use crate::error::{ColumnError, Result};
use crate::format::{Encoding, EncodingError};
use crate::units::Storage;
use forms::Prepared;

/// Plain bytes of a batch.
const BATCH_BYTES: usize = 128 << 20;

/// Encodes plain segments of a column, and drops them batch by batch.
///
/// # Errors
/// [`ColumnError::Encoding`] if the encoding is not for the storage or cannot hold a value; [`ColumnError::OverBudget`]
/// without room. The error returns the segments if none of them is dropped.
pub(crate) fn encode_segments<S: AsRef<Segment>>(
    device: &Device,
    room: &dyn Room,
    storage: Storage,
    encoding: &Encoding,
    segments: Vec<S>,
) -> Result<Vec<Segment>, (ColumnError, Vec<S>)> {
    let mut encoder = match Encoder::new(device, room, encoding, storage) {
        Ok(encoder) => encoder,
        Err(error) => return Err((error, segments)),
    };
    let mut encoded: Vec<Segment> = Vec::with_capacity(segments.len());
    let mut plain = segments.into_iter();
    loop {
        let batch = encoder.batch_of(&mut plain);
        if batch.is_empty() {
            return encoder.finish().map(|()| encoded).map_err(|error| (error, Vec::new()));
        }
        match encoder.encode(batch) {
            Ok(segments) => encoded.extend(segments),
            Err((error, batch)) if encoded.is_empty() => return Err((error, batch.into_iter().chain(plain).collect())),
            Err((error, _)) => return Err((error, Vec::new())),
        }
    }
}

/// Encoded copies of plain segments.
pub(crate) fn encode_copies(
    device: &Device,
    room: &dyn Room,
    storage: Storage,
    encoding: &Encoding,
    segments: &[Segment],
) -> Result<Vec<Segment>> {
    let segments = segments.iter().collect();
    encode_segments::<&Segment>(device, room, storage, encoding, segments).map_err(|(error, _)| error)
}

/// Encodes batches on two streams in turn: the device works on one batch while the host prepares the next.
struct Encoder<'a, S> {
    streams: [BatchStream<'a, S>; 2],
    /// Number of batches begun.
    batches: usize,
    encoding: &'a Encoding,
    storage: Storage,
    /// Plain bytes of a batch.
    batch_bytes: usize,
}

/// A stream with the batch in progress.
struct BatchStream<'a, S> {
    context: KernelContext<'a>,
    /// A word that kernels set if the encoding cannot hold a value.
    flag: Scratch,
    /// The batch in progress with its scratch memory.
    busy: Option<(Vec<S>, Prepared)>,
}

impl<'a, S: AsRef<Segment>> BatchStream<'a, S> {
    fn new(device: &'a Device, room: &'a dyn Room) -> Result<BatchStream<'a, S>> {
        let mut context = KernelContext::new(device, room)?;
        let flag = Scratch::new(&context, size_of::<u32>())?;
        context.stream.fill(flag.buffer(), 0, 0, size_of::<u32>())?;
        Ok(BatchStream { context, flag, busy: None })
    }

    /// Launches the encoding of a batch into one slab: one allocation is faster than many.
    fn launch(&mut self, encoding: &Encoding, storage: Storage, batch: &[S]) -> Result<(Vec<Segment>, Prepared)> {
        let sources: Vec<Source> = batch.iter().map(|segment| Source::of(segment.as_ref(), storage)).collect();
        let prepared = Prepared::new(&mut self.context, &self.flag, encoding, &sources)?;
        let parts: Vec<usize> = prepared.bytes().iter().map(|bytes| bytes.next_multiple_of(PART_BYTES_MIN)).collect();
        let slab_bytes = parts.iter().sum();
        let validity = |source: &Source| source.validity.as_ref().map_or(0, |words| size_class(words.bytes()) as u64);
        let validity_bytes: u64 = sources.iter().map(validity).sum();
        let mut reservation = self.context.room.reserve(size_class(slab_bytes) as u64 + validity_bytes)?;
        let slab = self.context.device.buffer(slab_bytes, "encoded column segments")?;
        let mut values = Vec::with_capacity(sources.len());
        let mut at = 0;
        for (position, part) in parts.iter().enumerate() {
            values.push(slab.part(at, prepared.bytes()[position])?);
            at += part;
        }
        prepared.write(&mut self.context, &self.flag, &sources, &values)?;
        let segments = values.into_iter().zip(&sources).enumerate().map(|(position, (values, source))| {
            // The last share includes the padding of the slab.
            let share = match position + 1 == parts.len() {
                true => reservation.bytes(),
                false => parts[position] as u64 + validity(source),
            };
            Segment::new(values, source.validity.clone(), source.rows as u32, reservation.split(share))
        });
        Ok((segments.collect(), prepared))
    }

    /// Waits for the batch in progress, and drops it.
    fn settle(&mut self, encoding: &Encoding) -> Result<()> {
        if self.busy.is_none() {
            return Ok(());
        }
        let mut raised = 0u32;
        self.context.stream.download(self.flag.buffer(), 0, bytemuck::bytes_of_mut(&mut raised))?;
        self.busy = None;
        match raised {
            0 => Ok(()),
            _ => Err(EncodingError::Parameters(encoding.name()).into()),
        }
    }
}

impl<'a, S: AsRef<Segment>> Encoder<'a, S> {
    fn new(device: &'a Device, room: &'a dyn Room, encoding: &'a Encoding, storage: Storage) -> Result<Self> {
        let streams = [BatchStream::new(device, room)?, BatchStream::new(device, room)?];
        let batch_bytes = BATCH_BYTES.min(device.pool().usage().budget as usize / 32);
        Ok(Encoder { streams, batches: 0, encoding, storage, batch_bytes })
    }

    /// The next batch.
    fn batch_of(&self, plain: &mut impl Iterator<Item = S>) -> Vec<S> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.is_empty() || bytes < self.batch_bytes {
            let Some(segment) = plain.next() else { break };
            bytes += segment.as_ref().values().bytes();
            batch.push(segment);
        }
        batch
    }

    /// Begins to encode a batch; its segments are complete after [`Encoder::finish`]. An error returns the batch.
    fn encode(&mut self, batch: Vec<S>) -> Result<Vec<Segment>, (ColumnError, Vec<S>)> {
        let (encoding, storage) = (self.encoding, self.storage);
        self.batches += 1;
        let [one, two] = &mut self.streams;
        let (here, other) = if self.batches.is_multiple_of(2) { (one, two) } else { (two, one) };
        if let Err(error) = here.settle(encoding) {
            return Err((error, batch));
        }
        let mut launched = here.launch(encoding, storage, &batch);
        if matches!(launched, Err(ColumnError::OverBudget { .. })) && other.busy.is_some() {
            // The end of the other batch gives room.
            launched = other.settle(encoding).and_then(|()| here.launch(encoding, storage, &batch));
        }
        match launched {
            Ok((segments, prepared)) => {
                here.busy = Some((batch, prepared));
                Ok(segments)
            }
            Err(error) => Err((error, batch)),
        }
    }

    /// Waits for the batches in progress.
    fn finish(mut self) -> Result<()> {
        let encoding = self.encoding;
        self.streams.iter_mut().try_for_each(|stream| stream.settle(encoding))
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::{EmulatorOptions, Reservation, Stream};

    use super::context::LAUNCH_SEGMENTS;
    use super::*;
    use crate::device::profile;
    use crate::format::{Alp, Delta, Dictionary, Nsf, Nsv, Packed, Plain, Profile, encode};
    use crate::units::VECTOR_ROWS;

    /// The whole pool of a device.
    struct Whole<'a>(&'a Device);

    impl Room for Whole<'_> {
        fn reserve(&self, bytes: u64) -> Result<Reservation> {
            Ok(self.0.pool().try_reserve(bytes).expect("the pool is large"))
        }
    }

    fn device() -> Device {
        Device::emulated(EmulatorOptions::default(), 64 << 20).expect("a compiler")
    }

    /// Pseudo-random bits of a row.
    fn mixed(row: usize) -> u64 {
        (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    /// Values of whole vectors in storage width by their bits.
    fn values(storage: Storage, rows: usize, bits: impl Fn(usize) -> u64) -> Vec<u8> {
        let bytes = |row| bits(row).to_le_bytes().into_iter().take(storage.width());
        (0..rows.next_multiple_of(VECTOR_ROWS)).flat_map(bytes).collect()
    }

    fn upload(room: &Whole<'_>, stream: &mut Stream, plain: &Plain<'_>) -> Segment {
        let mut copy = |bytes: &[u8]| {
            let buffer = room.0.buffer(bytes.len(), "a test").expect("room");
            stream.upload(&buffer, 0, bytes).and_then(|()| stream.synchronize()).expect("in range");
            buffer
        };
        let buffer = copy(plain.values());
        let validity = plain.validity().map(|words| copy(bytemuck::cast_slice(words)));
        Segment::new(buffer, validity, plain.rows() as u32, room.reserve(1).expect("room"))
    }

    /// Asserts that the device encodes segments to the bytes of the CPU.
    fn assert_equal_bytes(room: &Whole<'_>, stream: &mut Stream, encoding: &Encoding, all: &[(Plain<'_>, &Segment)]) {
        let storage = all[0].0.storage();
        let segments: Vec<&Segment> = all.iter().map(|(_, segment)| *segment).collect();
        let encoded = encode_segments(room.0, room, storage, encoding, segments).map_err(|(error, _)| error);
        for (encoded, (plain, _)) in encoded.expect("it holds the values").iter().zip(all) {
            let mut found = vec![0; encoded.values().bytes()];
            stream.download(encoded.values(), 0, &mut found).expect("in range");
            let expected = encode(encoding, plain).expect("it holds the values");
            assert!(found == expected, "{encoding:?} of {storage:?}: {} rows", plain.rows());
        }
    }

    fn encodings(storage: Storage, plain: &Plain<'_>) -> Vec<Encoding> {
        let packed = |width, reference, patches| Packed { width, reference, patches };
        let mut all = vec![Encoding::Rle, Encoding::GpuFor, Encoding::GpuDfor];
        all.extend([(0, None), (3, Some(7)), (20, None)].map(|(w, r)| Encoding::Packed(packed(w, r, true))));
        let values = Dictionary::distinct(plain, usize::MAX).expect("no limit");
        let codes = Dictionary::codes_for(values.len());
        all.push(Encoding::Dictionary(Dictionary::new(storage, values, codes).expect("packed codes")));
        if storage.is_float() {
            let integers = packed(4, None, true);
            all.extend([(0, 0), (14, 10)].map(|(exponent, factor)| Encoding::Alp(Alp { exponent, factor, integers })));
        } else {
            all.extend([Encoding::Nsf(Nsf { bytes: 4 }), Encoding::Nsv(Nsv { reference: 0 })]);
            all.push(Encoding::Delta(Delta::fit(plain).expect("integers")));
        }
        all
    }

    #[test]
    fn null_slots_and_padding_are_no_values() {
        let (device, rows) = (device(), 2_500);
        let (room, mut stream) = (Whole(&device), device.stream().expect("a stream"));
        let is_valid = |row: usize| row < rows && row / 1024 != 1 && !mixed(row).is_multiple_of(3);
        for storage in [Storage::I32, Storage::I64, Storage::F32, Storage::F64] {
            let values = values(storage, rows, |row| match (is_valid(row), storage) {
                (false, _) => mixed(row),
                (true, Storage::F64) => (row as f64 / 4.0).to_bits(),
                (true, Storage::F32) => (row as f32 / 4.0).to_bits().into(),
                (true, _) => row as u64 % 600 * 40,
            });
            let word = |word: usize| (0..32).fold(0, |bits, bit| bits | u32::from(is_valid(32 * word + bit)) << bit);
            // Padding is null whatever its bits are.
            let mut words: Vec<u32> = (0..rows.next_multiple_of(VECTOR_ROWS) / 32).map(word).collect();
            *words.last_mut().expect("three vectors") = u32::MAX;
            let plain = Plain::new(storage, &values, Some(&words), rows).expect("whole vectors");
            let segment = [upload(&room, &mut stream, &plain)];
            assert_eq!(profile(&device, &room, storage, &segment).expect("room"), Profile::of(&plain), "{storage:?}");
            for encoding in encodings(storage, &plain) {
                assert_equal_bytes(&room, &mut stream, &encoding, &[(plain, &segment[0])]);
            }
        }
    }

    #[test]
    fn profiles_of_more_segments_than_a_launch_takes_add_up() {
        let device = device();
        let (room, mut stream) = (Whole(&device), device.stream().expect("a stream"));
        for storage in [Storage::I32, Storage::U32, Storage::I64, Storage::U64, Storage::I16] {
            // Whole vectors and parts of some; extremes, few values, runs that go up and down, in turn.
            let rows = |segment: usize| if segment % 3 == 0 { 2 * VECTOR_ROWS } else { 1 + segment * 1_237 % 1_500 };
            let bits = |segment: usize, row: usize| match segment % 4 {
                0 => mixed(row + segment),
                1 => (row / 100) as u64,
                2 => mixed(row % 5) >> 60,
                _ => (segment as u64 * 3).wrapping_sub(row as u64 / 7),
            };
            let (mut segments, mut expected) = (Vec::new(), None::<Profile>);
            for segment in 0..70 {
                let values = values(storage, rows(segment), |row| bits(segment, row));
                let plain = Plain::new(storage, &values, None, rows(segment)).expect("whole vectors");
                match &mut expected {
                    Some(expected) => expected.add(&Profile::of(&plain)),
                    None => expected = Some(Profile::of(&plain)),
                }
                segments.push(upload(&room, &mut stream, &plain));
            }
            assert_eq!(Some(profile(&device, &room, storage, &segments).expect("room")), expected, "{storage:?}");
        }
    }

    #[test]
    fn segments_of_a_batch_are_encoded_as_each_alone() {
        let device = device();
        let (room, mut stream) = (Whole(&device), device.stream().expect("a stream"));
        // More segments than a launch takes, of one vector to four.
        let rows: Vec<usize> = (0..LAUNCH_SEGMENTS + 3).map(|number| 1 + number * 1_237 % 4_000).collect();
        let longest = *rows.iter().max().expect("segments");
        for storage in [Storage::I32, Storage::F64] {
            let values = values(storage, longest, |row| match storage {
                Storage::F64 => (row as f64 / 4.0).to_bits(),
                _ => row as u64 % 600 * 40,
            });
            let plain = |rows: usize| {
                let part = &values[..rows.next_multiple_of(VECTOR_ROWS) * storage.width()];
                Plain::new(storage, part, None, rows).expect("whole vectors")
            };
            let segments: Vec<Segment> = rows.iter().map(|rows| upload(&room, &mut stream, &plain(*rows))).collect();
            let all: Vec<(Plain<'_>, &Segment)> = rows.iter().map(|rows| plain(*rows)).zip(&segments).collect();
            for encoding in encodings(storage, &plain(longest)) {
                assert_equal_bytes(&room, &mut stream, &encoding, &all);
            }
        }
    }
}
