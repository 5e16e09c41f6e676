//! Plain segments of a column that has closed become packed ones, on the device.
//!
//! The width of a column is known once all of it is there: its vectors' bounds are taken by a kernel, the layout is
//! chosen here, and batch after batch of segments is packed and its plain form dropped, so that a column takes a few
//! chunks more than its plain form while this lasts.

use warpcube_gpu::{Device, DeviceBuffer, Kernel, LaunchShape, PART_BYTES_MIN, Params, Program, Stream, size_class};

use crate::build::VECTOR_ROWS;
use crate::encoding::{Packed, ladder};
use crate::error::{ColumnError, Result};
use crate::layout::{EncodingChoice, Layout};
use crate::load::Room;
use crate::segment::Segment;
use crate::storage::Storage;

/// Kernels that take bounds and pack.
const SOURCE: &str = include_str!("../kernels/pack.cuh");
/// Threads of a block; a warp takes a vector, or a group of a vector.
const BLOCK: u32 = 256;
/// Blocks a multiprocessor.
const BLOCKS: u32 = 8;
/// Packed bytes after which plain forms are dropped.
const SLAB_BYTES: usize = 64 << 20;
/// Share of the plain bytes below which a packed column is worth its arithmetic.
const WORTH: f64 = 0.95;

/// Packs the segments of a column whose integers lie within `range`, if that is asked for and worth it.
pub(crate) fn pack(
    device: &Device,
    room: &dyn Room,
    choice: EncodingChoice,
    (storage, range): (Storage, Option<(i128, i128)>),
    segments: Vec<Segment>,
) -> Result<(Layout, Vec<Segment>)> {
    if choice == EncodingChoice::Plain || storage.is_float() || segments.is_empty() {
        return Ok((Layout::Plain, segments));
    }
    let bounds_bytes = segments.iter().map(vectors).sum::<usize>() * BOUNDS_BYTES;
    let _reservation = match room.reserve(size_class(bounds_bytes) as u64) {
        // Without room to pack in, the column stays as it is.
        Err(ColumnError::OverBudget { .. }) => return Ok((Layout::Plain, segments)),
        reservation => reservation?,
    };
    let bounds = device.buffer(bounds_bytes, "bounds of vectors")?;
    let mut packer = Packer::new(device, room, storage, bounds)?;
    let (known, narrowest) = (range.unwrap_or_default(), packer.widest_vector(&segments)?);
    let Some(packing) = choose(choice, storage, known, narrowest) else { return Ok((Layout::Plain, segments)) };
    let slab_bytes = SLAB_BYTES.min(device.pool().usage().budget as usize / 16);
    let mut packed: Vec<Segment> = Vec::with_capacity(segments.len());
    let mut plain = segments.into_iter().peekable();
    while plain.peek().is_some() {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(segment) = plain.next_if(|_| bytes < slab_bytes) {
            bytes += packer.bytes(&segment, packing).next_multiple_of(PART_BYTES_MIN);
            batch.push(segment);
        }
        match packer.pack(&batch, packing, bytes) {
            Err(ColumnError::OverBudget { .. }) if packed.is_empty() => {
                return Ok((Layout::Plain, batch.into_iter().chain(plain).collect()));
            }
            segments => packed.extend(segments?),
        }
        packer.stream.synchronize()?;
        // Nothing of that size is needed soon, and it would be counted against the device's memory.
        batch.iter().for_each(|segment| segment.values().let_go());
    }
    Ok((Layout::Packed(packing), packed))
}

/// Bytes of a vector's bounds: smallest and largest key.
const BOUNDS_BYTES: usize = 16;

fn vectors(segment: &Segment) -> usize {
    (segment.rows() as usize).div_ceil(VECTOR_ROWS)
}

/// Bytes of a reference in a packed segment.
fn reference_bytes(storage: Storage) -> usize {
    storage.width().max(4)
}

/// The narrowest width of a packed column that holds `bits` bits.
fn rung(storage: Storage, bits: u32) -> u32 {
    ladder(bits).min(8 * storage.width() as u32)
}

/// The narrowest width of a packed column whose values, the smallest and largest given, share one reference.
pub(crate) fn width_between(storage: Storage, (low, high): (i128, i128)) -> u32 {
    rung(storage, 128 - (high - low).leading_zeros())
}

/// The best packing for values within `range` whose widest vector takes `widest` bits, if one is worth it.
fn choose(choice: EncodingChoice, storage: Storage, range: (i128, i128), widest: u32) -> Option<Packed> {
    let (of_column, of_vector) = (width_between(storage, range), rung(storage, widest));
    let vector_bytes = |width: u32, reference: usize| width as usize * VECTOR_ROWS / 8 + reference;
    let own = vector_bytes(of_vector, reference_bytes(storage));
    let shared = vector_bytes(of_column, 0);
    // Kernels need not add a reference of zero.
    let needs_none = range.0 >= 0 && width_between(storage, (0, range.1)) == of_column;
    let reference = if needs_none { 0 } else { range.0 as u64 };
    let packing = match own < shared {
        true => Packed { width: of_vector, reference: None, patches: false },
        false => Packed { width: of_column, reference: Some(reference), patches: false },
    };
    let plain = (VECTOR_ROWS * storage.width()) as f64;
    let is_worth = own.min(shared) as f64 <= plain * WORTH;
    (is_worth || choice == EncodingChoice::Packed).then_some(packing)
}

/// The order-preserving map between values and keys of the kernels: flips the sign bit of signed values.
fn flip(storage: Storage) -> u64 {
    match storage {
        Storage::I8 | Storage::I16 | Storage::I32 | Storage::I64 => 1 << 63,
        _ => 0,
    }
}

struct Packer<'a> {
    device: &'a Device,
    room: &'a dyn Room,
    storage: Storage,
    stream: Stream,
    take_bounds: Kernel,
    pack_groups: Kernel,
    bounds: DeviceBuffer,
    /// Vectors packed so far.
    packed: usize,
}

impl<'a> Packer<'a> {
    fn new(device: &'a Device, room: &'a dyn Room, storage: Storage, bounds: DeviceBuffer) -> Result<Packer<'a>> {
        let module = device.compile(&Program::new("pack", SOURCE))?;
        let (take_bounds, pack_groups) = (module.kernel("vector_bounds")?, module.kernel("pack_groups")?);
        Ok(Packer { device, room, storage, stream: device.stream()?, take_bounds, pack_groups, bounds, packed: 0 })
    }

    /// Parameters that both kernels begin with.
    fn params(&self, segment: &Segment) -> Params {
        let params = Params::new().buffer(segment.values());
        let params = match segment.validity() {
            Some(words) => params.buffer(words),
            None => params.null(),
        };
        params.u64(segment.rows().into()).u64(self.storage.width() as u64).u64(flip(self.storage))
    }

    fn shape(&self, warps: usize) -> LaunchShape {
        let most = self.device.info().multiprocessors * BLOCKS;
        LaunchShape { grid: (warps as u32).div_ceil(BLOCK / 32).clamp(1, most), block: BLOCK, shared_bytes: 0 }
    }

    /// Bits of the largest offset within a vector, after taking all vectors' bounds.
    fn widest_vector(&mut self, segments: &[Segment]) -> Result<u32> {
        let mut first = 0;
        for segment in segments {
            let params = self.params(segment).buffer_at(&self.bounds, first * BOUNDS_BYTES);
            let shape = self.shape(vectors(segment));
            self.stream.launch(&self.take_bounds, shape, &params)?;
            first += vectors(segment);
        }
        let mut bounds = vec![0u64; 2 * first];
        self.stream.download(&self.bounds, 0, bytemuck::cast_slice_mut(&mut bounds))?;
        let spread = |bounds: &[u64]| bounds[1].saturating_sub(bounds[0]);
        let widest = bounds.chunks_exact(2).map(spread).max().unwrap_or(0);
        Ok(64 - widest.leading_zeros())
    }

    /// Bytes of a packed segment.
    fn bytes(&self, segment: &Segment, packing: Packed) -> usize {
        let vectors = vectors(segment);
        let references = if packing.reference.is_none() { vectors * reference_bytes(self.storage) } else { 0 };
        vectors * VECTOR_ROWS / 8 * packing.width as usize + references
    }

    /// Packed copies of the next segments in one buffer of `bytes` bytes: memory is dear to get in small pieces.
    /// Returns before they are made.
    fn pack(&mut self, segments: &[Segment], packing: Packed, bytes: usize) -> Result<Vec<Segment>> {
        let validity = |segment: &Segment| segment.validity().map_or(0, |words| size_class(words.bytes()) as u64);
        let slab_bytes = size_class(bytes) as u64;
        let mut reservation = self.room.reserve(slab_bytes + segments.iter().map(validity).sum::<u64>())?;
        let slab = self.device.buffer(bytes, "packed column segments")?;
        let mut packed = Vec::with_capacity(segments.len());
        let mut at = 0;
        for (position, segment) in segments.iter().enumerate() {
            let own = self.bytes(segment, packing);
            let values = slab.part(at, own)?;
            at += own.next_multiple_of(PART_BYTES_MIN);
            let params = self.params(segment).u64(packing.width.into());
            let params = match packing.reference {
                Some(reference) => params.null().u64(reference ^ flip(self.storage)),
                None => params.buffer_at(&self.bounds, self.packed * BOUNDS_BYTES).u64(0),
            };
            let shape = self.shape(4 * vectors(segment));
            self.stream.launch(&self.pack_groups, shape, &params.buffer(&values))?;
            self.packed += vectors(segment);
            // The last one has what rounding added.
            let share = match position + 1 == segments.len() {
                true => reservation.bytes(),
                false => own.next_multiple_of(PART_BYTES_MIN) as u64 + validity(segment),
            };
            packed.push(Segment::new(values, segment.validity().cloned(), segment.rows(), reservation.split(share)));
        }
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_packing_wins_if_it_is_worth_it() {
        let auto = |storage, range, widest| choose(EncodingChoice::Auto, storage, range, widest);
        let wide = Some(Packed { width: 16, reference: Some(19_920_101), patches: false });
        assert_eq!(auto(Storage::I32, (19_920_101, 19_980_802), 16), wide);
        assert_eq!(auto(Storage::I32, (0, 1 << 30), 7), Some(Packed { width: 7, reference: None, patches: false }));
        assert_eq!(auto(Storage::I64, (i64::MIN.into(), i64::MAX.into()), 64), None);
        assert_eq!(auto(Storage::I8, (-128, 127), 8), None);
        let negative = Packed { width: 3, reference: Some(-5i64 as u64), patches: false };
        assert_eq!(auto(Storage::I8, (-5, 2), 3), Some(negative));
        let forced = choose(EncodingChoice::Packed, Storage::U64, (0, u64::MAX.into()), 64);
        assert_eq!(forced, Some(Packed { width: 64, reference: Some(0), patches: false }));
        assert_eq!(auto(Storage::Bool, (1, 1), 0), Some(Packed { width: 0, reference: Some(1), patches: false }));
        assert_eq!(auto(Storage::I32, (1, 50), 6), Some(Packed { width: 6, reference: Some(0), patches: false }));
    }
}
