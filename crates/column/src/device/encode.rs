//! The encoding of a column after its load.
//!
//! The profile of the whole column gives parameters that hold every value. If the load names no encoding, or one that
//! is not for the column, the encodings of `choice.rs` compete.

use warpcube_gpu::Device;

use super::choice::{Candidate, ValueFacts, best, best_packed, sampled_alp};
use super::profile::profile;
use super::segment::{Encoded, Lookup, Room, Segment};
use super::transcode::{encode_copies, encode_segments, fitting_delta};
use crate::error::{ColumnError, Result};
use crate::format::{DICTIONARY_MAX, Encoding, EncodingChoice, Nsf, Nsv};
use crate::units::Traits;

/// Encodes the plain segments of a column, and returns its traits. Without room the segments stay plain.
pub(crate) fn encode_column(
    device: &Device,
    room: &dyn Room,
    choice: EncodingChoice,
    facts: ValueFacts,
    segments: Vec<Segment>,
) -> Result<(Encoded, Option<Traits>)> {
    if choice == EncodingChoice::Plain || segments.is_empty() {
        return Ok((Encoded::plain(segments), None));
    }
    let profile = match profile(device, room, facts.storage, &segments) {
        Err(ColumnError::OverBudget { .. }) => return Ok((Encoded::plain(segments), None)),
        profile => profile?,
    };
    let traits = Some(profile.traits(facts.storage));
    let column = Candidate { device, room, facts, profile: &profile, segments: &segments };
    let encoded = match column.encoding(choice) {
        Ok((Encoding::Plain, _)) => return Ok((Encoded::plain(segments), traits)),
        Ok((encoding, lookup)) => encode_segments(device, room, facts.storage, &encoding, segments)
            .map(|segments| Encoded { encoding, lookup, segments }),
        Err(error) => Err((error, segments)),
    };
    match encoded {
        Err((ColumnError::OverBudget { .. }, segments)) if !segments.is_empty() => {
            Ok((Encoded::plain(segments), traits))
        }
        encoded => encoded.map(|encoded| (encoded, traits)).map_err(|(error, _)| error),
    }
}

/// The encoding of [`EncodingChoice::Auto`] for a column, and copies of its plain segments in this encoding.
pub(crate) fn encode_best(
    device: &Device,
    room: &dyn Room,
    facts: ValueFacts,
    segments: &[Segment],
) -> Result<(Encoding, Vec<Segment>)> {
    let profile = profile(device, room, facts.storage, segments)?;
    let encoding = best(&Candidate { device, room, facts, profile: &profile, segments })?;
    let copies = encode_copies(device, room, facts.storage, &encoding, segments)?;
    Ok((encoding, copies))
}

impl Candidate<'_> {
    /// The encoding of a choice, with its lookup on the device.
    fn encoding(&self, choice: EncodingChoice) -> Result<(Encoding, Option<Lookup>)> {
        let encoding = match self.named(choice)? {
            Some(encoding) => encoding,
            None => best(self)?,
        };
        let lookup = Lookup::of(&encoding, self.facts.storage, self.device, self.room)?;
        Ok((encoding, lookup))
    }

    /// The encoding that a choice names, with parameters; `None` for no name, or if it is not for the column.
    fn named(&self, choice: EncodingChoice) -> Result<Option<Encoding>> {
        let ValueFacts { storage, range, is_string } = self.facts;
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
            EncodingChoice::Dictionary if !is_string => self.dictionary(DICTIONARY_MAX)?,
            EncodingChoice::Alp if !integers => sampled_alp(self)?.map(|(encoding, _)| encoding),
            _ => None,
        })
    }
}
