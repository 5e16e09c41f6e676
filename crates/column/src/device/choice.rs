//! The automatic choice of an encoding: the lowest score wins, bits a value times a weight for the time to read them.
//!
//! The profile gives the bits of packed columns and of runs, a sample those of ALP and delta. An encoding competes if
//! its sum over 500 million values on an NVIDIA H200 (bench/results/encodings.md) is no slower than that of the plain
//! column, and if it reads a single row without the rest of its vector. NSV, GPU-FOR and GPU-DFOR are therefore
//! left to loads that name them. NSF is never smaller than packed. Runs compete if they are long enough. In sorted
//! columns they do not compete: filters and joins drop whole vectors there by vector bounds, which runs do not
//! have.

use warpcube_gpu::Device;

use super::segment::{Room, Segment};
use super::transcode::{Source, distinct, fitting_delta};
use crate::error::Result;
use crate::format::{
    Alp, DICTIONARY_MAX, Delta, Dictionary, Encoding, Packed, Profile, Sample, WIDTHS, encode, ladder,
};
use crate::units::{Storage, VECTOR_ROWS};

/// Share of the plain bits that an encoding must stay below.
const PLAIN_SHARE: f64 = 0.95;
/// Bits a value down to which a dictionary of integers is tried.
const DICTIONARY_TRIED: f64 = 8.0;
/// Most distinct values of a dictionary, by the estimate.
const DISTINCT_MAX: u64 = 4096;
/// Share of the leader's bits that a dictionary must stay below.
const DICTIONARY_SHARE: f64 = 0.8;
/// Times to read encodings, relative to a packed column of the same bits.
const ALP: f64 = 1.1;
const DICTIONARY: f64 = 1.2;
/// Sums over delta columns take 1.1 to 1.6 times as long; single rows take longer, their offsets lie in several words.
const DELTA: f64 = 2.0;
/// The cost of patches in bits a value of the same time: patches in every vector, and a patched row. Sums over 500
/// million values in the Zipf distributions of bench/results/encodings.md, with 8 to 31 patches a vector, take 0.39 to
/// 0.49 ms longer than without patches; a bit a value takes 0.015 ms.
const PATCHED_VECTORS: f64 = 26.0;
const PATCHED_ROW: f64 = 290.0;
/// A reader of a single row searches its run.
const RUNS: f64 = 4.0;
/// Shortest runs in rows that are summed as fast as plain values, of up to 4 bytes and of 8.
const RUN_ROWS: [u64; 2] = [128, 16];
/// Bits a value down to which delta is tried.
const DELTA_TRIED: f64 = 2.0;
/// Fewest rows for each descent of a column for which delta is tried.
const DELTA_ROWS_PER_DESCENT: u64 = 1024;
/// Fewest rows of a delta column: smaller ones do not repay the compilation of its encoder.
const DELTA_ROWS_MIN: u64 = 16 << 10;
/// Vectors of a sample.
const SAMPLE_VECTORS: usize = 16;

/// Most distinct values, by the estimate, for which a dictionary is built: the margin is larger than the error.
const DISTINCT_TRIED: u64 = DICTIONARY_MAX as u64 * 5 / 4;

/// Facts of a column's values before its profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueFacts {
    pub(crate) storage: Storage,
    /// Smallest and largest valid integer.
    pub(crate) range: Option<(i128, i128)>,
    /// Whether values are codes of strings.
    pub(crate) is_string: bool,
}

/// A column to be encoded: its plain segments, with facts and profile.
pub(crate) struct Candidate<'a> {
    pub(crate) device: &'a Device,
    pub(crate) room: &'a dyn Room,
    pub(crate) facts: ValueFacts,
    pub(crate) profile: &'a Profile,
    pub(crate) segments: &'a [Segment],
}

impl Candidate<'_> {
    /// A dictionary with packed codes; `None` past `limit` distinct values.
    pub(crate) fn dictionary(&self, limit: usize) -> Result<Option<Encoding>> {
        let storage = self.facts.storage;
        if self.profile.distinct.estimate() > DISTINCT_TRIED {
            return Ok(None);
        }
        let Some(values) = distinct(self.device, self.room, storage, self.segments, limit)? else { return Ok(None) };
        let codes = Dictionary::codes_for(values.len());
        Ok(Some(Encoding::Dictionary(Dictionary::new(storage, values, codes)?)))
    }
}

/// An encoding in the competition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contender {
    pub(crate) encoding: Encoding,
    /// Estimated bits a value.
    bits: f64,
    /// Bits times the weight; the lowest wins.
    score: f64,
}

impl Contender {
    fn new(encoding: Encoding, bits: f64, weight: f64) -> Contender {
        // A vector without bits has a cost too.
        Contender { encoding, bits, score: (bits + 0.1) * weight }
    }

    /// The better of two contenders.
    fn best(self, other: Contender) -> Contender {
        if other.score < self.score { other } else { self }
    }
}

/// The best encoding of a column.
pub(crate) fn best(column: &Candidate<'_>) -> Result<Encoding> {
    let storage = column.facts.storage;
    let mut leader = Contender::new(Encoding::Plain, 8.0 * storage.width() as f64, 1.0);
    leader.score *= PLAIN_SHARE;
    if storage.is_float() {
        if let Some((alp, bits)) = sampled_alp(column)? {
            leader = leader.best(Contender::new(alp, bits, ALP));
        }
    } else {
        leader = leader.best(best_packed(column));
        if let Some(delta) = best_delta(column, &leader)? {
            leader = leader.best(delta);
        }
    }
    if let Some(runs) = best_runs(column) {
        leader = leader.best(runs);
    }
    if !storage.is_float() && leader.bits <= DICTIONARY_TRIED {
        return Ok(leader.encoding);
    }
    Ok(best_dictionary(column, &leader)?.unwrap_or(leader.encoding))
}

/// RLE, if runs are long and no order makes vector bounds useful.
fn best_runs(column: &Candidate<'_>) -> Option<Contender> {
    let (storage, profile, rows) = (column.facts.storage, column.profile, rows(column));
    let (width, runs) = (storage.width(), profile.runs);
    if runs * RUN_ROWS[usize::from(width > 4)] > rows || (profile.is_sorted() && !storage.is_float()) {
        return None;
    }
    // A value and a start of 16 bits for each run, a block of 32 bits for each vector.
    let bits = runs as f64 * (8 * width + 16) as f64 / rows as f64 + 32.0 / VECTOR_ROWS as f64;
    Some(Contender::new(Encoding::Rle, bits, RUNS))
}

/// Delta, if values rise and its estimate from a sample is better than the leader.
fn best_delta(column: &Candidate<'_>, leader: &Contender) -> Result<Option<Contender>> {
    let storage = column.facts.storage;
    let (rows, descents) = (rows(column), column.profile.descents);
    if leader.bits <= DELTA_TRIED || rows < DELTA_ROWS_MIN || descents * DELTA_ROWS_PER_DESCENT > rows {
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

/// A dictionary, if its estimate is better than the leader.
fn best_dictionary(column: &Candidate<'_>, leader: &Contender) -> Result<Option<Encoding>> {
    let estimate = column.profile.distinct.estimate();
    if column.facts.is_string || estimate > DISTINCT_MAX {
        return Ok(None);
    }
    let values_bytes = estimate as f64 * column.facts.storage.width() as f64;
    let bits =
        f64::from(ladder(64 - estimate.saturating_sub(1).leading_zeros())) + 8.0 * values_bytes / rows(column) as f64;
    let score = (bits + 0.1) * DICTIONARY;
    if bits > DICTIONARY_SHARE * leader.bits || score >= leader.score {
        return Ok(None);
    }
    // The estimate has an error of a few percent.
    column.dictionary(2 * DISTINCT_MAX as usize)
}

/// Rows of a column, at least 1.
fn rows(column: &Candidate<'_>) -> u64 {
    column.profile.rows.max(1)
}

/// The best packing of a column of integers: with one reference, with one for each vector, or with patches.
pub(crate) fn best_packed(column: &Candidate<'_>) -> Contender {
    let (storage, profile) = (column.facts.storage, column.profile);
    let range = column.facts.range.unwrap_or_default();
    let whole = without_patches(storage, range, profile.offsets.widest());
    let contender = |packed: Packed| {
        let contender = Contender::new(Encoding::Packed(packed), packed_bits(column, packed), 1.0);
        let share = match packed.patches {
            true => profile.offsets.wider_than(packed.width) as f64 / rows(column) as f64,
            false => 0.0,
        };
        Contender { score: contender.score + patch_cost(share), ..contender }
    };
    let narrower = WIDTHS.into_iter().filter(|width| *width < whole.width);
    let patched = narrower.map(|width| contender(Packed { width, reference: None, patches: true }));
    patched.fold(contender(whole), Contender::best)
}

/// The cost in bits a value of a share of patched rows, evenly spread.
fn patch_cost(share: f64) -> f64 {
    let vectors = 1.0 - (1.0 - share).powi(VECTOR_ROWS as i32);
    PATCHED_VECTORS * vectors + PATCHED_ROW * share
}

/// Bits a value of a packing.
fn packed_bits(column: &Candidate<'_>, packed: Packed) -> f64 {
    if packed.patches {
        return 8.0 * column.profile.offsets.bytes(column.facts.storage, &packed) as f64 / rows(column) as f64;
    }
    let references = if packed.reference.is_none() {
        8.0 * column.facts.storage.word_bytes() as f64 / VECTOR_ROWS as f64
    } else {
        0.0
    };
    f64::from(packed.width) + references
}

/// The smaller of both packings without patches, for values in a range whose widest vector takes `widest` bits.
fn without_patches(storage: Storage, (low, high): (i128, i128), widest: u32) -> Packed {
    let rung = |bits: u32| ladder(bits).min(8 * storage.width() as u32);
    let width_of = |low: i128| rung(128 - (high - low).leading_zeros());
    let (of_column, of_vector) = (width_of(low), rung(widest));
    let vector_bytes = |width: u32, reference: usize| width as usize * VECTOR_ROWS / 8 + reference;
    if vector_bytes(of_vector, storage.word_bytes()) < vector_bytes(of_column, 0) {
        return Packed { width: of_vector, reference: None, patches: false };
    }
    // Kernels do not add a reference of zero.
    let needs_none = low >= 0 && width_of(0) == of_column;
    Packed { width: of_column, reference: Some(if needs_none { 0 } else { low as u64 }), patches: false }
}

/// ALP with the bits a value of a sample; `None` if the sample has no values.
pub(crate) fn sampled_alp(column: &Candidate<'_>) -> Result<Option<(Encoding, f64)>> {
    let sample = sample(column)?;
    let Some(alp) = Alp::fit(&sample.plain()?)? else { return Ok(None) };
    // Values outside of the sample can need more bits.
    let encoding = Encoding::Alp(Alp { integers: Packed { patches: true, ..alp.integers }, ..alp });
    let plain = sample.plain()?;
    let bits = 8.0 * encode(&encoding, &plain)?.len() as f64 / plain.rows().max(1) as f64;
    Ok(Some((encoding, bits)))
}

/// Vectors of a column, evenly spread.
fn sample(column: &Candidate<'_>) -> Result<Sample> {
    let sources: Vec<Source> =
        column.segments.iter().map(|segment| Source::of(segment, column.facts.storage)).collect();
    let places = sources.iter().flat_map(|source| (0..source.vectors()).map(move |vector| (source, vector)));
    let step = sources.iter().map(Source::vectors).sum::<usize>().div_ceil(SAMPLE_VECTORS).max(1);
    let mut stream = column.device.stream()?;
    let mut sample = Sample::empty(column.facts.storage);
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
