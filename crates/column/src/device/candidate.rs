//! Columns before their encoding.

use warpcube_gpu::Device;

use super::room::Room;
use super::segment::Segment;
use super::transcode::distinct;
use crate::error::Result;
use crate::format::{DICTIONARY_MAX, Dictionary, Encoding, Profile};
use crate::units::Storage;

/// Largest estimate of distinct values at which a dictionary is tried: the error of the estimate is smaller than the margin.
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
