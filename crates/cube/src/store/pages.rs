//! Pages of a column of the facts: values as segments, and the encoding with the fewest bytes.

use std::ops::Range;

use rayon::prelude::*;
use warpcube_column::format::{Alp, EncodedChunk, Encoding, EncodingError, OffsetBits, Packed, Plain, encode};
use warpcube_column::{Statistics, Storage, VECTOR_ROWS};

use crate::facts::Bitmap;

/// Cells of a page on disk.
pub const PAGE_ROWS: usize = 1 << 16;
/// Bytes of a value.
const VALUE_BYTES: usize = 8;

/// Rows of each page of so many cells.
pub(super) fn page_rows(cells: usize) -> impl Iterator<Item = usize> {
    (0..cells.div_ceil(PAGE_ROWS)).map(move |page| PAGE_ROWS.min(cells - page * PAGE_ROWS))
}

/// A value of 8 bytes.
pub(super) trait Value: Copy + Default + PartialOrd + Send + Sync {
    /// Machine type.
    const STORAGE: Storage;
    /// Name of the Arrow type.
    const TYPE: &'static str;
    /// The value of its bytes.
    fn from_bytes(bytes: [u8; VALUE_BYTES]) -> Self;
    /// The bytes of the value.
    fn to_bytes(self) -> [u8; VALUE_BYTES];
    /// Statistics with these bounds.
    fn with_bounds(statistics: Statistics, bounds: Option<(Self, Self)>) -> Statistics;
}

macro_rules! values {
    ($($type:ty, $storage:ident, $name:literal, $bounds:ident as $wide:ty;)*) => {$(
        impl Value for $type {
            const STORAGE: Storage = Storage::$storage;
            const TYPE: &'static str = $name;
            fn from_bytes(bytes: [u8; VALUE_BYTES]) -> Self {
                <$type>::from_le_bytes(bytes)
            }
            fn to_bytes(self) -> [u8; VALUE_BYTES] {
                self.to_le_bytes()
            }
            fn with_bounds(statistics: Statistics, bounds: Option<(Self, Self)>) -> Statistics {
                let widened = bounds.map(|(least, most)| (<$wide>::from(least), <$wide>::from(most)));
                Statistics { $bounds: widened, ..statistics }
            }
        }
    )*};
}

values! {
    u64, U64, "UInt64", integers as i128;
    i64, I64, "Int64", integers as i128;
    f64, F64, "Float64", floats as f64;
}

/// The pages of a column under one encoding.
pub(super) struct Pages {
    pub(super) encoding: Encoding,
    pub(super) statistics: Statistics,
    pub(super) chunks: Vec<EncodedChunk>,
}

/// A page before its encoding.
struct Segment {
    bytes: Vec<u8>,
    validity: Option<Vec<u32>>,
    rows: usize,
}

impl Segment {
    fn of<T: Value>(values: &[T], filled: Option<&Bitmap>, range: Range<usize>) -> Segment {
        let rows = range.len();
        let padded = rows.next_multiple_of(VECTOR_ROWS);
        let mut bytes = vec![0; padded * VALUE_BYTES];
        let slots = bytes.as_chunks_mut::<VALUE_BYTES>().0;
        slots.iter_mut().zip(&values[range.clone()]).for_each(|(slot, value)| *slot = value.to_bytes());
        let validity = filled.map(|filled| {
            let words = &filled.words()[range.start / 64..range.end.div_ceil(64)];
            let mut halves: Vec<u32> = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
            halves.resize(padded / 32, 0);
            halves
        });
        Segment { bytes, validity, rows }
    }

    fn plain(&self, storage: Storage) -> Result<Plain<'_>, EncodingError> {
        Plain::new(storage, &self.bytes, self.validity.as_deref(), self.rows)
    }
}

/// Encodes a column; empty cells are those that `filled` does not have. Runs on all cores of the current rayon pool.
///
/// # Errors
/// None that values of this type have: the parameters of each encoding are chosen to hold all of them.
pub(super) fn encode_column<T: Value>(values: &[T], filled: Option<&Bitmap>) -> Result<Pages, EncodingError> {
    let page = |(page, rows): (usize, usize)| page * PAGE_ROWS..page * PAGE_ROWS + rows;
    let pages: Vec<Range<usize>> = page_rows(values.len()).enumerate().map(page).collect();
    let segments: Vec<Segment> = pages.into_par_iter().map(|page| Segment::of(values, filled, page)).collect();
    let mut best: Option<(usize, Encoding, Vec<Vec<u8>>)> = None;
    for encoding in candidates::<T>(&segments)? {
        let encoded = segments.par_iter().map(|segment| encode(&encoding, &segment.plain(T::STORAGE)?));
        let encoded: Vec<Vec<u8>> = encoded.collect::<Result<_, _>>()?;
        let bytes = encoded.iter().map(Vec::len).sum();
        if best.as_ref().is_none_or(|(least, ..)| bytes < *least) {
            best = Some((bytes, encoding, encoded));
        }
    }
    let (_, encoding, encoded) = best.expect("plain is a candidate");
    let chunks = segments.into_iter().zip(encoded).map(|(segment, bytes)| {
        let Segment { validity, rows, .. } = segment;
        EncodedChunk { bytes, validity, rows }
    });
    Ok(Pages { encoding, statistics: statistics(values, filled), chunks: chunks.collect() })
}

/// The encodings that compete, each with parameters that hold all values; of equals the first wins.
fn candidates<T: Value>(segments: &[Segment]) -> Result<Vec<Encoding>, EncodingError> {
    let mut candidates = vec![Encoding::Plain];
    if T::STORAGE == Storage::F64 {
        let fitted = segments
            .iter()
            .find_map(|segment| segment.plain(T::STORAGE).and_then(|plain| Alp::fit(&plain)).transpose());
        if let Some(alp) = fitted.transpose()? {
            // Patches hold the integers that are wider than those of the first page.
            candidates.push(Encoding::Alp(Alp { integers: Packed { patches: true, ..alp.integers }, ..alp }));
        }
        return Ok(candidates);
    }
    let bits = segments.par_iter().map(|segment| Ok(OffsetBits::of(&segment.plain(T::STORAGE)?, None)));
    let bits: Vec<OffsetBits> = bits.collect::<Result<_, EncodingError>>()?;
    if let Some(all) = bits.into_iter().reduce(|mut all, more| {
        all.add(&more);
        all
    }) {
        candidates.push(Encoding::Packed(all.fit(T::STORAGE, None, true)));
        candidates.extend([Encoding::GpuFor, Encoding::GpuDfor]);
    }
    Ok(candidates)
}

fn statistics<T: Value>(values: &[T], filled: Option<&Bitmap>) -> Statistics {
    let valid = || (0..values.len()).filter(|&cell| filled.is_none_or(|filled| filled.get(cell)));
    let bounds = valid().map(|cell| values[cell]).fold(None, |bounds: Option<(T, T)>, value| match bounds {
        Some((least, most)) if value < least => Some((value, most)),
        Some((least, most)) if value > most => Some((least, value)),
        Some(bounds) => Some(bounds),
        None => Some((value, value)),
    });
    let nulls = filled.map_or(0, |filled| filled.len() - filled.count());
    let strictly_ascending = nulls == 0 && values.is_sorted_by(|one, next| one < next);
    let counted =
        Statistics { rows: values.len() as u64, nulls: nulls as u64, strictly_ascending, ..Statistics::default() };
    T::with_bounds(counted, bounds)
}
