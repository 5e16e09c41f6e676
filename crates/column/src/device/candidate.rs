//! A column that is to be encoded, with its facts.

use warpcube_gpu::Device;

use super::room::Room;
use super::segment::Segment;
use super::transcode::distinct;
use crate::error::Result;
use crate::format::{DICTIONARY_MAX, Dictionary, Encoding, Profile};
use crate::units::Storage;

/// Estimates of distinct values past which a dictionary is not tried: no column with one would have that many.
const DISTINCT_TRIED: u64 = DICTIONARY_MAX as u64 * 5 / 4;

/// The facts of a column's values before its profile.
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

impl Candidate<'_> {
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
}
