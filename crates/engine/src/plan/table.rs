//! Tables that pipelines build and others probe: where they lie and what their entries look like.

use std::sync::Arc;

use warpcube_column::Dictionary;

use crate::error::{EngineError, Result};
use crate::facts::Facts;
use crate::ir::Probe;
use crate::plan::keys::KeyPack;
use crate::plan::run_plan::RunPlan;

/// The tables of a fragment, by pipeline.
pub(crate) type Tables = [Option<Arc<TablePlan>>];

/// How entries are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableLayout {
    /// A bit a packed key; entries are indexed by packed key.
    Direct,
    /// Open addressing over packed keys + 1; entries are indexed by slot.
    Hash,
    /// Open addressing over keys of several words; entries are indexed by slot.
    Wide,
}

/// What an entry keeps of the values of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The only one.
    Only,
    /// The smallest.
    Least,
    /// The largest.
    Most,
}

/// One payload column of a table: values less `low`, plus one where NULL has place 0. A float that may be NULL is a
/// double, and NULL a NaN of bits that no value has (`wc_nan_null` in the device library). A decimal that 64 bits do
/// not hold is stored as it is, and NULL as the smallest number of 128 bits, which no value is. Entries of extremes
/// start at zero, which is NULL, and are only raised; for the smallest value they count downward from `high` + 1.
#[derive(Debug, Clone)]
pub(crate) struct PayloadColumn {
    /// C type of an entry.
    pub(crate) c_type: &'static str,
    /// Bytes of an entry.
    pub(crate) width: u64,
    /// What entry 0 (or 1, if nullable) stands for; entries of floats and of 16 bytes are the values themselves.
    pub(crate) low: i128,
    /// Which value of a key is kept.
    pub(crate) keep: Keep,
    /// What is known of the value.
    pub(crate) facts: Facts,
}

/// Whether a table's keys are to be unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unique {
    /// They may come several times.
    No,
    /// A table with several rows for a key is refused.
    Always,
    /// A table with several rows for a key is built again with room for them: that of this pipeline.
    Guessed(usize),
}

/// A table as its probes see it.
#[derive(Debug, Clone)]
pub(crate) struct TablePlan {
    /// Packing of its keys.
    pub(crate) pack: KeyPack,
    /// Strings behind the codes of its keys.
    pub(crate) strings: Vec<Option<Arc<Dictionary>>>,
    /// How entries are found.
    pub(crate) layout: TableLayout,
    /// Entries or slots; a power of two where they are hashed.
    pub(crate) places: u64,
    /// What hashes are seeded with.
    pub(crate) seed: u64,
    /// Payload columns.
    pub(crate) payload: Vec<PayloadColumn>,
    /// Estimated share of probe rows that find an entry.
    pub(crate) share: f64,
    /// How rows are numbered, if a key may have several. Payload is then indexed by row.
    pub(crate) matches: Option<MatchesPlan>,
    /// Whether there was room for fewer rows than may come before the table has grown.
    pub(crate) grows: bool,
    /// Whether its keys are to be unique.
    pub(crate) unique: Unique,
    /// Whether every place has a row, if its keys are unique.
    pub(crate) is_full: bool,
    /// How rows of equal keys side by side enter together, if they do.
    pub(crate) runs: Option<RunPlan>,
    /// Slots of a hash table for the entries of keys whose runs begin or end a step, if others are entered without
    /// atomic operations, until a kernel behind the build has written them to their places.
    pub(crate) ends: Option<u64>,
    /// Why entries are found so.
    pub(crate) why: String,
}

/// What gives the rows of a table whose keys come several times their numbers.
#[derive(Debug, Clone)]
pub(crate) enum Numbering {
    /// They have those of the scan, whose chunks begin with these.
    Scanned(Vec<u64>),
    /// They are counted as they come, where a row of the scan may come several times: there is room for so many.
    Counted,
}

/// The rows of each key of a table whose keys come several times. Rows go by their number; those of a key lie side by
/// side in an order of their own.
#[derive(Debug, Clone)]
pub(crate) struct MatchesPlan {
    /// Where numbers come from.
    pub(crate) numbering: Numbering,
    /// Numbers that rows have.
    pub(crate) rows: u64,
}

/// The number of the first row of each chunk.
pub(crate) fn first_rows(chunk_rows: &[u32]) -> Vec<u64> {
    let first = |next: &mut u64, rows: &u32| {
        *next += u64::from(*rows);
        Some(*next - u64::from(*rows))
    };
    chunk_rows.iter().scan(0, first).collect()
}

impl PayloadColumn {
    /// Whether entries are values of 128 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.width == 16
    }

    /// What images are counted from.
    pub(crate) fn offset(&self) -> i64 {
        let offset = match self.keep {
            Keep::Least => self.facts.range.map_or(0, |(_, high)| high) + 1,
            _ => self.low - i128::from(self.facts.nullable),
        };
        offset as i64
    }
}

impl TablePlan {
    /// Bytes of the bitmap of a table that is indexed by key, whole 16 of them.
    pub(crate) fn bitmap_bytes(&self) -> usize {
        (self.places.div_ceil(128) * 16) as usize
    }

    /// Entries of each payload column.
    pub(crate) fn entries(&self) -> u64 {
        self.matches.as_ref().map_or(self.places, |matches| matches.rows)
    }
}

/// The table a probe looks into.
pub(crate) fn table<'a>(tables: &'a Tables, probe: &Probe) -> Result<&'a TablePlan> {
    tables
        .get(probe.build)
        .and_then(Option::as_deref)
        .ok_or_else(|| EngineError::Malformed(format!("pipeline {} builds no table", probe.build)))
}
