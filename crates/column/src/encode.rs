//! Which encoding a column gets once all of it is there, as its load asks for.
//!
//! A pass over the column on the device gives its profile; parameters come from that and hold every value. Where a
//! named encoding is not for the column, and where none is named, all that the device reads well compete.

use warpcube_gpu::Device;

use crate::choice::{best, best_packed, sampled_alp};
use crate::encoding::{DICTIONARY_MAX, Dictionary, Encoding, Nsf, Nsv, Profile};
use crate::error::{ColumnError, Result};
use crate::layout::{EncodingChoice, Layout};
use crate::load::Room;
use crate::profiler::profile;
use crate::segment::{Lookup, Segment, Traits};
use crate::storage::Storage;
use crate::transcode::{distinct, encode_copies, encode_segments, fitting_delta};

/// Estimates of distinct values past which a dictionary is not tried: no column with one would have that many.
const DISTINCT_TRIED: u64 = DICTIONARY_MAX as u64 * 5 / 4;

/// The segments of a column in its encoding.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) layout: Layout,
    /// Distinct values, where the segments hold codes for them.
    pub(crate) lookup: Option<Lookup>,
    pub(crate) segments: Vec<Segment>,
    /// What the pass over the column told, if there was one.
    pub(crate) traits: Option<Traits>,
}

impl Encoded {
    fn plain(segments: Vec<Segment>, traits: Option<Traits>) -> Encoded {
        Encoded { layout: Layout::Plain, lookup: None, segments, traits }
    }
}

/// What is known of a column's values before they are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) storage: Storage,
    /// Smallest and largest valid integer.
    pub(crate) range: Option<(i128, i128)>,
    /// Whether values are codes for strings.
    pub(crate) strings: bool,
}

/// A column to be encoded: plain segments, and what is known of them.
pub(crate) struct Candidate<'a> {
    pub(crate) device: &'a Device,
    pub(crate) room: &'a dyn Room,
    pub(crate) known: Known,
    pub(crate) profile: &'a Profile,
    pub(crate) segments: &'a [Segment],
}

/// Encodes the plain segments of a column; without room to do so they stay plain.
pub(crate) fn encode_column(
    device: &Device,
    room: &dyn Room,
    choice: EncodingChoice,
    known: Known,
    segments: Vec<Segment>,
) -> Result<Encoded> {
    if choice == EncodingChoice::Plain || segments.is_empty() {
        return Ok(Encoded::plain(segments, None));
    }
    let profile = match profile(device, room, known.storage, &segments) {
        Err(ColumnError::OverBudget { .. }) => return Ok(Encoded::plain(segments, None)),
        profile => profile?,
    };
    let traits = Some(Traits::of(&profile, known.storage));
    let column = Candidate { device, room, known, profile: &profile, segments: &segments };
    let (encoding, lookup) = match column.encoding(choice) {
        Err(ColumnError::OverBudget { .. }) => return Ok(Encoded::plain(segments, traits)),
        found => found?,
    };
    Ok(match encode_segments(device, room, known.storage, &encoding, segments)? {
        Ok(segments) => Encoded { layout: Layout::of(&encoding), lookup, segments, traits },
        Err(segments) => Encoded::plain(segments, traits),
    })
}

/// Copies of a column's plain segments in the encoding of a load that names none, and that encoding.
pub(crate) fn encode_best(
    device: &Device,
    room: &dyn Room,
    known: Known,
    segments: &[Segment],
) -> Result<(Encoding, Vec<Segment>)> {
    let profile = profile(device, room, known.storage, segments)?;
    let encoding = best(&Candidate { device, room, known, profile: &profile, segments })?;
    let copies = encode_copies(device, room, known.storage, &encoding, segments)?;
    Ok((encoding, copies))
}

impl Candidate<'_> {
    /// The encoding for a choice, with its lookup on the device.
    fn encoding(&self, choice: EncodingChoice) -> Result<(Encoding, Option<Lookup>)> {
        let encoding = match self.named(choice)? {
            Some(encoding) => encoding,
            None => best(self)?,
        };
        let lookup = match &encoding {
            Encoding::Dictionary(dictionary) => Some(self.place_lookup(dictionary)?),
            _ => None,
        };
        Ok((encoding, lookup))
    }

    /// The encoding that a choice names, with its parameters; `None` if it names none or the column cannot have it.
    fn named(&self, choice: EncodingChoice) -> Result<Option<Encoding>> {
        let Known { storage, range, strings } = self.known;
        let (low, high) = range.unwrap_or_default();
        let integers = !storage.is_float();
        Ok(match choice {
            EncodingChoice::Nsf if integers => Some(Encoding::Nsf(Nsf::fit(storage, low as u64, high as u64))),
            EncodingChoice::Nsv if integers && high - low <= i128::from(u32::MAX) => {
                Some(Encoding::Nsv(Nsv { reference: low as u64 }))
            }
            EncodingChoice::Rle => Some(Encoding::Rle),
            EncodingChoice::GpuFor if integers => Some(Encoding::GpuFor),
            EncodingChoice::GpuDfor if integers => Some(Encoding::GpuDfor),
            EncodingChoice::Delta if integers => {
                Some(Encoding::Delta(fitting_delta(self.device, self.room, storage, self.segments)?))
            }
            EncodingChoice::Packed if integers => Some(best_packed(self).encoding),
            EncodingChoice::Dictionary if !strings => self.dictionary(DICTIONARY_MAX)?,
            EncodingChoice::Alp if !integers => sampled_alp(self)?.map(|(encoding, _)| encoding),
            _ => None,
        })
    }

    /// A dictionary with packed codes; `None` if there are more distinct values than that.
    pub(crate) fn dictionary(&self, limit: usize) -> Result<Option<Encoding>> {
        let Known { storage, .. } = self.known;
        if self.profile.distinct.estimate() > DISTINCT_TRIED {
            return Ok(None);
        }
        let Some(values) = distinct(self.device, self.room, storage, self.segments, limit)? else { return Ok(None) };
        let codes = Dictionary::codes_for(values.len());
        Ok(Some(Encoding::Dictionary(Dictionary::new(storage, values, codes)?)))
    }

    /// Distinct values in a buffer of the device.
    fn place_lookup(&self, dictionary: &Dictionary) -> Result<Lookup> {
        let storage = self.known.storage;
        Lookup::place(self.device, self.room, &Lookup::bytes_of(dictionary.values(), storage), storage)
    }
}
