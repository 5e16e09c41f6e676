//! Which encoding a column gets once all of it is there, as its load asks for.
//!
//! A pass over the column on the device gives its profile; parameters come from that and hold every value. Where a
//! named encoding is not for the column, and where none is named, all that the device reads well compete.

use warpcube_gpu::Device;

use super::candidate::{Candidate, Known};
use super::choice::{best, best_packed, sampled_alp};
use super::profile::profile;
use super::room::Room;
use super::segment::{Encoded, Lookup, Segment};
use super::transcode::{encode_copies, encode_segments, fitting_delta};
use crate::error::{ColumnError, Result};
use crate::format::{DICTIONARY_MAX, Encoding, EncodingChoice, Nsf, Nsv};
use crate::units::Traits;

/// Encodes the plain segments of a column, and what a pass over them told; without room to do so they stay plain.
pub(crate) fn encode_column(
    device: &Device,
    room: &dyn Room,
    choice: EncodingChoice,
    known: Known,
    segments: Vec<Segment>,
) -> Result<(Encoded, Option<Traits>)> {
    if choice == EncodingChoice::Plain || segments.is_empty() {
        return Ok((Encoded::plain(segments), None));
    }
    let profile = match profile(device, room, known.storage, &segments) {
        Err(ColumnError::OverBudget { .. }) => return Ok((Encoded::plain(segments), None)),
        profile => profile?,
    };
    let traits = Some(profile.traits(known.storage));
    let column = Candidate { device, room, known, profile: &profile, segments: &segments };
    let (encoding, lookup) = match column.encoding(choice) {
        Err(ColumnError::OverBudget { .. }) => return Ok((Encoded::plain(segments), traits)),
        found => found?,
    };
    if encoding == Encoding::Plain {
        return Ok((Encoded::plain(segments), traits));
    }
    match encode_segments(device, room, known.storage, &encoding, segments) {
        Ok(segments) => Ok((Encoded { encoding, lookup, segments }, traits)),
        Err((ColumnError::OverBudget { .. }, segments)) if !segments.is_empty() => {
            Ok((Encoded::plain(segments), traits))
        }
        Err((error, _)) => Err(error),
    }
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
        let lookup = Lookup::of(&encoding, self.known.storage, self.device, self.room)?;
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
}
