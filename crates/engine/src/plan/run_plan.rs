//! How rows of a step with equal keys are added up, and what becomes of their runs.

use crate::plan::cells::CellOp;

/// Rows that lie together in shared memory, and their words: `WC_RUN_WORDS` of runs.cuh.
const WORDS: usize = 144;
/// Slots of a lane among them.
const WORD_SLOTS: usize = 4;

/// How the runs of a step are added up.
#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    /// Slots of a lane in a step.
    pub(crate) slots: usize,
    /// Whether 32 bits hold keys.
    pub(crate) has_short_keys: bool,
    /// What runs are added up to.
    pub(crate) cells: Vec<RunCell>,
    /// Whether rows of a whole step may be left out.
    pub(crate) drops: bool,
    /// What becomes of runs that neither begin nor end a step.
    pub(crate) whole: WholeRuns,
    /// Why rows are added up by runs.
    pub(crate) why: String,
}

/// What becomes of runs that neither begin nor end a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WholeRuns {
    /// They are added to the entry of their key, as others are.
    Added,
    /// Keys are sorted: they are whole groups, and the sink has [`OrderedPlan`].
    Listed,
    /// Keys are sorted: they are stored as the entry of their key, and the table has `ends`.
    Stored,
}

/// A cell of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunCell {
    pub(crate) op: CellOp,
    /// Whether 32 bits hold its values and their sums over a step.
    pub(crate) is_narrow: bool,
}

/// Places of groups in the order in which warps have found them, for a key by which the input is sorted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedPlan {
    /// Places.
    pub(crate) places: u64,
}

impl RunPlan {
    /// Rows of a step.
    pub(crate) fn rows(&self) -> usize {
        self.slots * 32
    }

    /// Entries of the keys of a step, or of the values of a cell.
    pub(crate) fn entries(&self) -> usize {
        self.slots / WORD_SLOTS * WORDS
    }

    /// Where a warp has keys, values of each cell, and first rows of runs in shared memory, in this order, and all
    /// bytes.
    pub(crate) fn places(&self) -> (Vec<usize>, usize) {
        let widths = std::iter::once(self.has_short_keys).chain(self.cells.iter().map(|cell| cell.is_narrow));
        let arrays = widths.map(|is_narrow| self.entries() * if is_narrow { 4 } else { 8 });
        let mut bytes = 0;
        let place = |array: usize| {
            bytes += array.next_multiple_of(16);
            bytes - array.next_multiple_of(16)
        };
        let places = arrays.chain([2 * (self.rows() + 1)]).map(place).collect();
        (places, bytes)
    }

    /// Shared memory of a warp in bytes.
    pub(crate) fn warp_bytes(&self) -> usize {
        self.places().1
    }
}
