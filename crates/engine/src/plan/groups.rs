//! Where groups are accumulated: registers, copies of cells in shared memory, or a table in global memory, indexed by
//! key or hashed.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::Dictionary;

use crate::error::Result;
use crate::facts::{Facts, Texts};
use crate::ir::{Expr, Overflow, Ty};
use crate::plan::cells::{Accumulators, Read};
use crate::plan::group_values::{GroupRead, GroupValue};
use crate::plan::keys::KeyPack;
use crate::plan::row_layout::RowLayout;
use crate::plan::run_plan::{OrderedPlan, RunPlan};

/// Cells of a global aggregation that a block adds up together: each takes 256 bytes of shared memory.
pub(crate) const SUMS_AT_ONCE: usize = 64;

/// Where groups are accumulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// One group: registers, then one atomic operation a warp.
    Single,
    /// Few groups: a copy a lane in shared memory, then one atomic operation a warp and cell.
    Private,
    /// Some thousand groups that many rows fall into: a copy a block in shared memory, as halves of 32 bits.
    Shared,
    /// Cells in global memory, indexed by packed key.
    Dense,
    /// Cells in global memory, found by hashing; or, of an ordered aggregation, by a list beside those.
    Hashed,
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Grouping::Single => "one group",
            Grouping::Private => "a copy a thread",
            Grouping::Shared => "a copy a block",
            Grouping::Dense => "indexed by key",
            Grouping::Hashed => "hash",
        })
    }
}

/// Accumulated groups and how to read them.
#[derive(Debug, Clone)]
pub(crate) struct GroupsPlan {
    /// Where groups are accumulated.
    pub(crate) grouping: Grouping,
    /// Packing of group keys.
    pub(crate) pack: KeyPack,
    /// Group columns: Arrow type and strings.
    pub(crate) columns: Vec<(DataType, Option<Arc<Dictionary>>)>,
    /// The columns whose strings' places group columns are, if they are.
    pub(crate) texts: Vec<Option<Texts>>,
    /// Places of the group table.
    pub(crate) places: u64,
    /// Whether there was room for fewer groups than may come before it has grown.
    pub(crate) grows: bool,
    /// Copies of the cells, a power of two: blocks take them in turn, so that atomic operations of many rows on few
    /// groups seldom meet. Their sum is the cell.
    pub(crate) copies: u64,
    /// Entries of a block's cache of cells in shared memory, a power of two; zero where there is none. An entry is its
    /// first group's: groups that many rows fall into are likely to have one, and their rows meet in shared memory. The
    /// rows of other groups add to the table.
    pub(crate) cached: usize,
    /// What hashes are seeded with.
    pub(crate) seed: u64,
    /// What rows add to, and how results are read of it.
    pub(crate) cells: Accumulators,
    /// Number of cells: one more than those where each lane counts its rows.
    pub(crate) cell_count: usize,
    /// The values of groups, where another pipeline scans them. Every group then has its packed key plus one in 8
    /// bytes, and places are whole vectors, also those of the one group without a key, which has the first.
    pub(crate) values: Option<Vec<GroupValue>>,
    /// What the result has for columns, if it is computed from these groups.
    pub(crate) computed: Option<ComputedPlan>,
    /// How rows are added up before they meet the table.
    pub(crate) runs: Option<RunPlan>,
    /// The places of groups that are not looked up.
    pub(crate) ordered: Option<OrderedPlan>,
    /// Why groups are accumulated so.
    pub(crate) why: String,
}

/// A result whose columns are expressions over groups and aggregates.
#[derive(Debug, Clone)]
pub(crate) struct ComputedPlan {
    /// The columns.
    pub(crate) exprs: Vec<Expr>,
    /// The registers that they read.
    pub(crate) values: Vec<GroupValue>,
    /// Rows of the result.
    pub(crate) row: RowLayout,
}

impl GroupsPlan {
    /// Bytes of the mark that tells of a place whether there is a group: its key plus one in 8 bytes, or one byte.
    pub(crate) fn mark_bytes(&self) -> usize {
        if self.values.is_some() || self.grouping == Grouping::Hashed { 8 } else { 1 }
    }

    /// Words of a slot of a hash table, in which mark, words of a key of several and cells lie side by side: a row that
    /// meets its group finds all of it in a line or two of memory. No slot is a word short of whole sectors of 32
    /// bytes. None where cells have a column each: of places, and of groups in order, which are written one behind the
    /// other.
    pub(crate) fn slot_words(&self) -> Option<usize> {
        let words = self.first_cell() + self.cell_count;
        let words = if words % 4 == 3 { words + 1 } else { words };
        (self.grouping == Grouping::Hashed && self.ordered.is_none()).then_some(words)
    }

    /// Words of a slot, or columns of the table, before its cells.
    pub(crate) fn first_cell(&self) -> usize {
        1 + if self.pack.is_wide() { self.pack.words } else { 0 }
    }

    /// The values of its groups: group expressions, then aggregates.
    pub(crate) fn values_of(&self, groups: &[Facts], aggregates: &[Facts]) -> Vec<GroupValue> {
        let first_cell = self.first_cell();
        let keys = self.pack.parts.iter().zip(groups);
        let domain = self.pack.domain;
        let keys = keys.map(|(part, facts)| GroupValue::of_key(facts.clone(), part.clone(), first_cell, domain));
        let mut values: Vec<GroupValue> = keys.collect();
        for (output, facts) in self.cells.outputs.iter().zip(aggregates) {
            let facts = Facts { nullable: output.count.is_some(), ..facts.clone() };
            values.push(GroupValue { facts, read: GroupRead::Aggregate(output.clone()), first_cell });
        }
        values
    }

    /// The result of expressions over these values of its groups.
    ///
    /// # Errors
    /// What the device does not compute.
    pub(crate) fn computed_of(
        values: Vec<GroupValue>,
        columns: &[(Expr, DataType)],
        overflow: Overflow,
    ) -> Result<ComputedPlan> {
        let registers: Vec<Option<Facts>> = values.iter().map(|value| Some(value.facts.clone())).collect();
        // Strings without codes are given back by their places.
        let has_no_codes = |register: usize| registers.get(register).and_then(Option::as_ref)?.texts;
        let given_back = |(expr, data_type): &(Expr, DataType)| match expr {
            Expr::Reg(register) if has_no_codes(*register).is_some() => (Expr::Place(*register), data_type.clone()),
            _ => (expr.clone(), data_type.clone()),
        };
        let columns: Vec<(Expr, DataType)> = columns.iter().map(given_back).collect();
        let row = RowLayout::of(&columns, &registers, overflow)?;
        Ok(ComputedPlan { exprs: columns.into_iter().map(|(expr, _)| expr).collect(), values, row })
    }

    /// What is known of the columns that a scan of its table reads: its keys, then its cells.
    pub(crate) fn column_facts(&self) -> Vec<Facts> {
        let first_cell = self.first_cell();
        let keys = Facts::new(Ty::U64, false, Some((0, self.pack.domain.into())));
        let mut columns = vec![keys];
        columns.resize(first_cell + self.cell_count, Facts::new(Ty::U64, false, None));
        for output in &self.cells.outputs {
            if let Read::Float(cell) = output.read {
                columns[first_cell + cell] = Facts::new(Ty::F64, false, None);
            }
        }
        columns
    }

    /// Bytes of the cells, without copies.
    pub(crate) fn cell_bytes(&self) -> usize {
        self.places as usize * 8 * self.cell_count.max(1)
    }

    /// Shared memory a warp for private cells or for runs, in bytes.
    pub(crate) fn warp_bytes(&self) -> usize {
        match (&self.runs, self.grouping) {
            (Some(runs), _) => runs.warp_bytes(),
            (None, Grouping::Private) => self.pack.domain as usize * self.cell_count * 8 * 32,
            _ => 0,
        }
    }

    /// Shared memory a block for the sums of its warps, in bytes, once nothing else lies there any more.
    pub(crate) fn warp_sum_bytes(&self) -> usize {
        match self.grouping {
            Grouping::Single => self.cell_count.min(SUMS_AT_ONCE) * 32 * 8,
            _ => 0,
        }
    }

    /// Shared memory a block for its cells, in bytes: lower halves, upper halves, marks; or its cache of cells and who
    /// owns the entries.
    pub(crate) fn block_bytes(&self) -> usize {
        match self.grouping {
            Grouping::Shared => (self.pack.domain as usize * (self.cell_count * 8 + 1)).next_multiple_of(16),
            _ => self.cached * entry_bytes(self.cell_count),
        }
    }
}

/// Bytes of an entry of a block's cache of cells: the cells, and the place of their group plus one.
pub(crate) fn entry_bytes(cells: usize) -> usize {
    8 * cells + 4
}

/// How a pipeline adds to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adding {
    /// The number of valid values of this loaded column, for all rows of a step at once.
    Counted(usize),
    /// Row by row.
    Rows {
        /// Whether all rows are added: what those that the aggregate does not take would add is zero.
        all: bool,
        /// Whether rows of a step are added up in 32 bits.
        narrow: bool,
    },
}
