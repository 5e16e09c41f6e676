//! The profile of a column by kernels, equal to the sum of [`Profile::of`] over its segments.

use warpcube_gpu::{Device, Params};

use super::segment::{Room, Segment};
use super::transcode::{
    BASICS, BLOCK_WARPS, KernelContext, PACKED, PROFILE_ANY, Parts, Scratch, Source, flip, profile_words,
};
use crate::error::Result;
use crate::format::{DistinctSketch, OffsetBits, Profile};
use crate::units::{CHUNK_ROWS, Storage, VECTOR_ROWS};

/// Widths of offsets: 0 to 64.
const WIDTHS: usize = 65;
/// Shared memory: counts of widths by lane, and a sketch.
const SHARED_BYTES: u32 = (WIDTHS as u32 * 32 + DistinctSketch::REGISTERS as u32) * 4;
/// Segments of a launch: `WC_PROFILE_SEGMENTS`.
const SEGMENTS: usize = 64;
// `WC_SEGMENT_VECTORS`: the number of a vector bounds the number of its segment.
const _: () = assert!(CHUNK_ROWS <= 1024 * VECTOR_ROWS);
/// Blocks a multiprocessor: no more than are resident, since each block adds a sketch to that of the column.
const BLOCKS: u32 = 4;
/// Bytes of the bounds of a vector, and of its first and last key.
const VECTOR_BYTES: usize = 2 * size_of::<u64>();
/// Totals before the counts of widths: `WC_TOTAL_…` in profile.cuh.
const TOTALS: usize = 7;

/// The profile of plain segments.
pub(crate) fn profile(device: &Device, room: &dyn Room, storage: Storage, segments: &[Segment]) -> Result<Profile> {
    let mut context = KernelContext::new(device, room)?;
    let sources: Vec<Source> = segments.iter().map(|segment| Source::of(segment, storage)).collect();
    let vectors: usize = sources.iter().map(Source::vectors).sum();
    let (ends_at, totals_at) = (vectors * VECTOR_BYTES, 2 * vectors * VECTOR_BYTES);
    let mut totals = [0u64; TOTALS + WIDTHS];
    // Smallest key and first vector.
    (totals[3], totals[5]) = (u64::MAX, u64::MAX);
    let mut registers = vec![0u32; DistinctSketch::REGISTERS];
    let registers_at = totals_at + size_of_val(&totals);
    let bytes = registers_at + size_of_val(registers.as_slice());
    let memory = Scratch::new(&context, bytes)?;
    let buffer = memory.buffer();
    context.stream.upload(buffer, totals_at, bytemuck::cast_slice(&totals))?;
    context.stream.fill(buffer, registers_at, 0, bytes - registers_at)?;
    let words = |source: &Source| profile_words(storage.width()).filter(|_| !source.has_nulls());
    let passes =
        [sources.iter().find_map(words), sources.iter().any(|source| words(source).is_none()).then_some(PROFILE_ANY)];
    // The packed encoder compiles concurrently: most columns need it next.
    let programs: Vec<Parts> = passes.into_iter().flatten().chain([BASICS, PACKED]).collect();
    context.prepare(&programs)?;
    let of_column = context.kernel(BASICS, "profile_column")?;
    let mut first = 0;
    let alike = sources.chunk_by(|one, next| one.has_nulls() == next.has_nulls());
    for segments in alike.flat_map(|segments| segments.chunks(SEGMENTS)) {
        let of_vectors = match segments.first().and_then(words) {
            Some(parts) => context.kernel(parts, "profile_words")?,
            None => context.kernel(PROFILE_ANY, "profile_any")?,
        };
        let (mut params, mut firsts, begin) = (Params::new(), Vec::new(), first);
        for source in segments {
            params = source.add_to(params);
            firsts.push(first as u64);
            first += source.vectors();
        }
        for _ in segments.len()..SEGMENTS {
            params = params.null().null().u64(0).u64(0).u64(0);
            firsts.push(u64::MAX);
        }
        let params = firsts.into_iter().fold(params, Params::u64).u64(first as u64);
        let params = params.buffer(buffer).buffer_at(buffer, ends_at).buffer_at(buffer, totals_at);
        let params = params.buffer_at(buffer, registers_at);
        context.launch(&of_vectors, first - begin, BLOCKS, SHARED_BYTES, &params)?;
    }
    let params = Params::new().buffer(buffer).buffer_at(buffer, ends_at).u64(vectors as u64);
    let params = params.buffer_at(buffer, totals_at);
    context.launch(&of_column, vectors.div_ceil(BLOCK_WARPS as usize), BLOCKS, 0, &params)?;
    let (counted, sketched) = (bytemuck::cast_slice_mut(&mut totals), bytemuck::cast_slice_mut(&mut registers));
    context.stream.download_all(buffer, &mut [(totals_at, counted), (registers_at, sketched)])?;
    let [valid, runs, descents, low, high, first, last] = *totals.first_chunk().expect("there are as many totals");
    let mut ends = None;
    if valid > 0 {
        let [mut first_keys, mut last_keys] = [[0u64; 2]; 2];
        let place = |vector: u64| ends_at + vector as usize * VECTOR_BYTES;
        let (of_first, of_last) = (bytemuck::bytes_of_mut(&mut first_keys), bytemuck::bytes_of_mut(&mut last_keys));
        context.stream.download_all(buffer, &mut [(place(first), of_first), (place(last), of_last)])?;
        ends = Some((number(storage, first_keys[0]), number(storage, last_keys[1])));
    }
    let rows = segments.iter().map(|segment| u64::from(segment.rows())).sum();
    Ok(Profile {
        rows,
        nulls: rows - valid,
        bounds: (valid > 0).then(|| (number(storage, low), number(storage, high))),
        runs,
        descents,
        distinct: DistinctSketch { registers: registers.into_iter().map(|bits| bits.count_ones() as u8).collect() },
        offsets: OffsetBits(*totals.last_chunk().expect("there are totals of all widths")),
        ends,
    })
}

/// The value of a key as a number.
fn number(storage: Storage, key: u64) -> i128 {
    match flip(storage) {
        0 => key.into(),
        flip => ((key ^ flip) as i64).into(),
    }
}
