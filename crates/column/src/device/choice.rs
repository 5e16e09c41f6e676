//! The encoding of a column that names none: the least time to read wins, estimated as bits a value times a weight.
//!
//! Widths of packed columns and lengths of runs are known of all values by the profile; ALP and delta are estimated by
//! a sample. An encoding competes if it is no slower than the plain column in a sum over 500 million values on an
//! NVIDIA H200 (docs/measured.md) and is not read to its end for a single row: that leaves out NSV, GPU-FOR and
//! GPU-DFOR, which can be named. NSF can be too, but packed columns are never larger. Runs compete where they are long
//! enough for that, and not in sorted columns: filters and joins drop whole vectors there by their bounds, which runs
//! do not have.

use super::candidate::Candidate;
use super::transcode::{Source, fitting_delta};
use crate::error::Result;
use crate::format::{Alp, Delta, Encoding, Packed, Sample, WIDTHS, encode, ladder};
use crate::units::{Storage, VECTOR_ROWS};

/// Share of the plain bits below which a column is worth its arithmetic.
const WORTH: f64 = 0.95;
/// Bits a value at which a packed column is good enough.
const GOOD_BITS: f64 = 8.0;
/// Most distinct values, estimated, of a dictionary.
const DISTINCT_MAX: u64 = 4096;
/// Share of the best bits that a dictionary has to stay below.
const DICTIONARY_WORTH: f64 = 0.8;
/// Time to read an encoding, over that of a packed column of the same bits.
const ALP: f64 = 1.1;
const DICTIONARY: f64 = 1.2;
/// Sums over delta columns take 1.1 to 1.6 times as long, single rows more: their offsets lie in several words.
const DELTA: f64 = 2.0;
/// The cost of patches to a reader, in bits a value that take as long: where all vectors have some, and a row that
/// is patched. Of 500 million values in the Zipf distributions of docs/measured.md, whose vectors have 8 to 31 patches,
/// sums take 0.39 to 0.49 ms longer than without, and a bit a value takes 0.015 ms.
const PATCHED_VECTORS: f64 = 26.0;
const PATCHED_ROW: f64 = 290.0;
/// A single row is searched for.
const RUNS: f64 = 4.0;
/// Shortest runs, in rows, whose sum is no slower than that of plain values of up to 4 bytes, and of 8.
const RUN_ROWS: [u64; 2] = [128, 16];
/// Bits a value down to which differences are looked at.
const DELTA_TRIED: f64 = 2.0;
/// Rows of which at most one is smaller than the one before it where differences are looked at.
const DELTA_ROWS: u64 = 1024;
/// Columns of fewer rows save nothing that is worth compiling what makes differences.
const DELTA_ROWS_MIN: u64 = 16 << 10;
/// Vectors of a sample.
const SAMPLE_VECTORS: usize = 16;

/// An encoding in the competition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contender {
    pub(crate) encoding: Encoding,
    /// Bits a value, estimated.
    bits: f64,
    /// Bits times the weight: the least wins.
    score: f64,
}

impl Contender {
    fn new(encoding: Encoding, bits: f64, weight: f64) -> Contender {
        // A vector costs something even if it has no bits.
        Contender { encoding, bits, score: (bits + 0.1) * weight }
    }

    /// The other one, if it is better.
    fn or(self, other: Contender) -> Contender {
        if other.score < self.score { other } else { self }
    }
}

/// The best encoding of a column.
pub(crate) fn best(column: &Candidate<'_>) -> Result<Encoding> {
    let storage = column.known.storage;
    let mut leader = Contender::new(Encoding::Plain, 8.0 * storage.width() as f64, 1.0);
    leader.score *= WORTH;
    if storage.is_float() {
        if let Some((alp, bits)) = sampled_alp(column)? {
            leader = leader.or(Contender::new(alp, bits, ALP));
        }
    } else {
        leader = leader.or(best_packed(column));
        if let Some(delta) = rising(column, &leader)? {
            leader = leader.or(delta);
        }
    }
    if let Some(runs) = of_runs(column) {
        leader = leader.or(runs);
    }
    if !storage.is_float() && leader.bits <= GOOD_BITS {
        return Ok(leader.encoding);
    }
    Ok(coded(column, &leader)?.unwrap_or(leader.encoding))
}

/// Runs, if they are long and vectors need no bounds.
fn of_runs(column: &Candidate<'_>) -> Option<Contender> {
    let (storage, profile, rows) = (column.known.storage, column.profile, rows(column));
    let (width, runs) = (storage.width(), profile.runs);
    if runs * RUN_ROWS[usize::from(width > 4)] > rows || (profile.is_sorted() && !storage.is_float()) {
        return None;
    }
    // A value and the row it begins at; of each vector the first run.
    let bits = runs as f64 * (8 * width + 16) as f64 / rows as f64 + 32.0 / VECTOR_ROWS as f64;
    Some(Contender::new(Encoding::Rle, bits, RUNS))
}

/// Differences, if values rise and a sample of them is better than what leads.
fn rising(column: &Candidate<'_>, leader: &Contender) -> Result<Option<Contender>> {
    let storage = column.known.storage;
    let (rows, descents) = (rows(column), column.profile.descents);
    if leader.bits <= DELTA_TRIED || rows < DELTA_ROWS_MIN || descents * DELTA_ROWS > rows {
        return Ok(None);
    }
    let contender = |delta: Delta| {
        let bits = 8.0 * delta.bytes(storage, 1) as f64 / VECTOR_ROWS as f64;
        Contender::new(Encoding::Delta(delta), bits, DELTA)
    };
    let sampled = Delta::fit(&sample(column)?.plain()?).map(contender);
    if sampled.is_none_or(|sampled| sampled.score >= leader.score) {
        return Ok(None);
    }
    Ok(Some(contender(fitting_delta(column.device, column.room, storage, column.segments)?)))
}

/// A dictionary, if it is better than what leads.
fn coded(column: &Candidate<'_>, leader: &Contender) -> Result<Option<Encoding>> {
    let estimate = column.profile.distinct.estimate();
    if column.known.strings || estimate > DISTINCT_MAX {
        return Ok(None);
    }
    let values_bytes = estimate as f64 * column.known.storage.width() as f64;
    let bits =
        f64::from(ladder(64 - estimate.saturating_sub(1).leading_zeros())) + 8.0 * values_bytes / rows(column) as f64;
    let score = (bits + 0.1) * DICTIONARY;
    if bits > DICTIONARY_WORTH * leader.bits || score >= leader.score {
        return Ok(None);
    }
    // The estimate may be off by a few percent.
    column.dictionary(2 * DISTINCT_MAX as usize)
}

/// Rows of a column, at least one.
fn rows(column: &Candidate<'_>) -> u64 {
    column.profile.rows.max(1)
}

/// The best packing of a column of integers: against one reference or one a vector, or with patches.
pub(crate) fn best_packed(column: &Candidate<'_>) -> Contender {
    let (storage, profile) = (column.known.storage, column.profile);
    let range = column.known.range.unwrap_or_default();
    let whole = without_patches(storage, range, profile.offsets.widest());
    let contender = |packed: Packed| {
        let contender = Contender::new(Encoding::Packed(packed), packed_bits(column, packed), 1.0);
        let share = match packed.patches {
            true => profile.offsets.wider_than(packed.width) as f64 / rows(column) as f64,
            false => 0.0,
        };
        Contender { score: contender.score + patching(share), ..contender }
    };
    let narrower = WIDTHS.into_iter().filter(|width| *width < whole.width);
    let patched = narrower.map(|width| contender(Packed { width, reference: None, patches: true }));
    patched.fold(contender(whole), Contender::or)
}

/// The cost of a share of patched rows to a reader, in bits a value; patches may be in any vector.
fn patching(share: f64) -> f64 {
    let vectors = 1.0 - (1.0 - share).powi(VECTOR_ROWS as i32);
    PATCHED_VECTORS * vectors + PATCHED_ROW * share
}

/// Bits a value of a packing.
fn packed_bits(column: &Candidate<'_>, packed: Packed) -> f64 {
    let reference_bits = 8 * column.known.storage.width().max(4);
    if packed.patches {
        return 8.0 * column.profile.offsets.bytes(column.known.storage, &packed) as f64 / rows(column) as f64;
    }
    let references = if packed.reference.is_none() { reference_bits as f64 / VECTOR_ROWS as f64 } else { 0.0 };
    f64::from(packed.width) + references
}

/// The smaller of both packings without patches, for values within `range` whose widest vector takes `widest` bits.
fn without_patches(storage: Storage, (low, high): (i128, i128), widest: u32) -> Packed {
    let rung = |bits: u32| ladder(bits).min(8 * storage.width() as u32);
    let width_of = |low: i128| rung(128 - (high - low).leading_zeros());
    let (of_column, of_vector) = (width_of(low), rung(widest));
    let vector_bytes = |width: u32, reference: usize| width as usize * VECTOR_ROWS / 8 + reference;
    if vector_bytes(of_vector, storage.width().max(4)) < vector_bytes(of_column, 0) {
        return Packed { width: of_vector, reference: None, patches: false };
    }
    // Kernels need not add a reference of zero.
    let needs_none = low >= 0 && width_of(0) == of_column;
    Packed { width: of_column, reference: Some(if needs_none { 0 } else { low as u64 }), patches: false }
}

/// Floats as decimals, with the bits that a sample takes; `None` if it has no values.
pub(crate) fn sampled_alp(column: &Candidate<'_>) -> Result<Option<(Encoding, f64)>> {
    let sample = sample(column)?;
    let Some(alp) = Alp::fit(&sample.plain()?)? else { return Ok(None) };
    // Values that the sample does not have may need more bits.
    let encoding = Encoding::Alp(Alp { integers: Packed { patches: true, ..alp.integers }, ..alp });
    let bits = sampled_bits(&encoding, &sample)?;
    Ok(Some((encoding, bits)))
}

fn sampled_bits(encoding: &Encoding, sample: &Sample) -> Result<f64> {
    let plain = sample.plain()?;
    Ok(8.0 * encode(encoding, &plain)?.len() as f64 / plain.rows().max(1) as f64)
}

/// Some vectors of a column, evenly spread.
fn sample(column: &Candidate<'_>) -> Result<Sample> {
    let sources: Vec<Source> =
        column.segments.iter().map(|segment| Source::of(segment, column.known.storage)).collect();
    let places = sources.iter().flat_map(|source| (0..source.vectors()).map(move |vector| (source, vector)));
    let step = sources.iter().map(Source::vectors).sum::<usize>().div_ceil(SAMPLE_VECTORS).max(1);
    let mut stream = column.device.stream()?;
    let mut sample = Sample::empty(column.known.storage);
    for (source, vector) in places.step_by(step) {
        source.download_into(&mut stream, vector, &mut sample)?;
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_packing_wins() {
        let wide = Packed { width: 16, reference: Some(19_920_101), patches: false };
        assert_eq!(without_patches(Storage::I32, (19_920_101, 19_980_802), 16), wide);
        let own = Packed { width: 7, reference: None, patches: false };
        assert_eq!(without_patches(Storage::I32, (0, 1 << 30), 7), own);
        let negative = Packed { width: 3, reference: Some(-5i64 as u64), patches: false };
        assert_eq!(without_patches(Storage::I8, (-5, 2), 3), negative);
        let all = Packed { width: 64, reference: Some(0), patches: false };
        assert_eq!(without_patches(Storage::U64, (0, u64::MAX.into()), 64), all);
        let one = Packed { width: 0, reference: Some(1), patches: false };
        assert_eq!(without_patches(Storage::Bool, (1, 1), 0), one);
        let small = Packed { width: 6, reference: Some(0), patches: false };
        assert_eq!(without_patches(Storage::I32, (1, 50), 6), small);
    }
}
