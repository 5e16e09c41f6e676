//! Which encoding a column gets: all that apply compete on estimated bytes, weighted by how slowly they are read.
//!
//! Packed columns are weighed by the widths of all offsets in the profile, others by encoding a sample. An encoding's
//! weight is the time that a query takes to read and decode it on the device, over the time of a packed column of the
//! same bytes: an encoding wins if it saves more bytes than that. The weights are bounds the encodings have to keep:
//! differences 1.5 times a packed column, horizontal miniblocks and lookups by what trials took.

use super::alp::Alp;
use super::dictionary::Dictionary;
use super::error::Result;
use super::nsf::Nsf;
use super::nsv::Nsv;
use super::packed::{Packed, ladder};
use super::plain::Plain;
use super::profile::Profile;
use super::word::Word;
use super::{Encoding, encode};

/// Distinct values past which a dictionary is not worth its lookups: they would leave the caches.
pub const DICTIONARY_MAX: usize = 1 << 16;

/// An encoding in the competition.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The encoding with all parameters.
    pub encoding: Encoding,
    /// Estimated bits a value, dictionaries included.
    pub bits: f64,
    /// Bits times the encoding's weight: the least wins.
    pub score: f64,
}

/// The best encoding of a column; see [`candidates`].
///
/// # Errors
/// Those of encoding the sample.
pub fn choose(profile: &Profile, sample: &Plain<'_>, distinct: Option<Vec<u64>>) -> Result<Encoding> {
    Ok(candidates(profile, sample, distinct)?.swap_remove(0).encoding)
}

/// All encodings that apply to a column, the best first.
///
/// `profile` is that of every segment that will be encoded, so that each candidate holds all of them; `sample` has
/// values of the column; `distinct` are its distinct values by their bits ([`Dictionary::distinct`]), where there are
/// no more than [`DICTIONARY_MAX`].
///
/// # Errors
/// Those of encoding the sample.
pub fn candidates(profile: &Profile, sample: &Plain<'_>, distinct: Option<Vec<u64>>) -> Result<Vec<Candidate>> {
    let storage = sample.storage();
    let rows = profile.rows.max(1) as f64;
    let mut found = vec![candidate(Encoding::Plain, 8.0 * storage.width() as f64)];
    let mut sampled = vec![Encoding::Rle];
    if storage.is_float() {
        sampled.extend(Alp::fit(sample)?.map(|alp| {
            // Values that the sample does not have may need more bits.
            Encoding::Alp(Alp { integers: Packed { patches: true, ..alp.integers }, ..alp })
        }));
    } else {
        for patches in [false, true] {
            let packed = profile.offsets.fit(storage, None, patches);
            let bytes = profile.offsets.bytes(storage, &packed);
            found.push(candidate(Encoding::Packed(packed), 8.0 * bytes as f64 / rows));
        }
        let (low, high) = profile.bounds.unwrap_or_default();
        let nsf = Nsf::fit(storage, low as u64, high as u64);
        found.push(candidate(Encoding::Nsf(nsf), 8.0 * f64::from(nsf.bytes)));
        if high - low <= i128::from(u32::MAX) {
            sampled.push(Encoding::Nsv(Nsv { reference: low as u64 }));
        }
        sampled.extend([Encoding::GpuFor, Encoding::GpuDfor]);
    }
    for encoding in sampled {
        let bits = 8.0 * encode(&encoding, sample)?.len() as f64 / sample.rows().max(1) as f64;
        found.push(candidate(encoding, bits));
    }
    if let Some(distinct) = distinct.filter(|distinct| distinct.len() <= DICTIONARY_MAX) {
        let width = ladder((distinct.len().saturating_sub(1) as u64).significant());
        let bits = f64::from(width) + 8.0 * (distinct.len() * storage.width()) as f64 / rows;
        let codes = Dictionary::codes_for(distinct.len());
        found.push(candidate(Encoding::Dictionary(Dictionary::new(storage, distinct, codes)?), bits));
    }
    found.sort_by(|a, b| a.score.total_cmp(&b.score));
    Ok(found)
}

fn candidate(encoding: Encoding, bits: f64) -> Candidate {
    // A vector costs something even if it has no bits.
    let score = (bits + 0.1) * weight(&encoding);
    Candidate { encoding, bits, score }
}

/// Time to read and decode an encoding, over that of a packed column of the same bytes.
fn weight(encoding: &Encoding) -> f64 {
    match encoding {
        Encoding::Packed(packed) if packed.patches => 1.03,
        Encoding::Packed(_) => 1.0,
        Encoding::Plain | Encoding::Nsf(_) => 1.0,
        Encoding::Alp(_) => 1.1,
        Encoding::Dictionary(_) => 1.2,
        Encoding::Rle => 1.5,
        Encoding::GpuFor => 1.3,
        Encoding::GpuDfor => 1.5,
        Encoding::Nsv(_) => 3.0,
    }
}
