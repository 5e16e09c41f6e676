//! Which packing a column gets.

use warpcube_gpu::Device;

use crate::build::VECTOR_ROWS;
use crate::encoding::{Encoding, Packed, ladder};
use crate::error::{ColumnError, Result};
use crate::layout::{EncodingChoice, Layout};
use crate::load::Room;
use crate::profiler::profile;
use crate::segment::Segment;
use crate::storage::Storage;
use crate::transcode::encode_segments;

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
    let profile = match profile(device, room, storage, &segments) {
        // Without room to look at it, the column stays as it is.
        Err(ColumnError::OverBudget { .. }) => return Ok((Layout::Plain, segments)),
        profile => profile?,
    };
    let widest = profile.offsets.widest();
    let Some(packed) = choose(choice, storage, range.unwrap_or_default(), widest) else {
        return Ok((Layout::Plain, segments));
    };
    Ok(match encode_segments(device, room, storage, &Encoding::Packed(packed), segments)? {
        Ok(packed_segments) => (Layout::Packed(packed), packed_segments),
        Err(plain) => (Layout::Plain, plain),
    })
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
