//! Windows: columns that the rows of a sort get from the rows around them.
//!
//! ```text
//! keys  a b   │ row_number  rank  dense_rank  sum(b)   partition: 1 key, order: 2 keys
//!       1 5   │     1         1       1         5
//!       1 7   │     2         2       2        19      rows that agree in all keys of the order are peers
//!       1 7   │     3         2       2        19
//!       2 3   │     1         1       1         3
//! ```
//!
//! Windows of one sort may differ in how many of its first keys are their partition and their order.

use arrow::datatypes::DataType;

use super::{AggregateKind, Literal};

/// One column of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    /// Function.
    pub function: WindowFunction,
    /// Rows that agree in the first so many keys of the sort are a partition.
    pub partition: usize,
    /// Rows that agree in the first so many keys, those of the partition among them, are peers.
    pub order: usize,
    /// Arrow type of the result.
    pub data_type: DataType,
}

/// The rows that are wanted of those that windows are added to: the first ones of each partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstOfPartitions {
    /// Position of the window, a [`WindowFunction::RowNumber`], [`WindowFunction::Rank`] or
    /// [`WindowFunction::DenseRank`].
    pub window: usize,
    /// Its largest number in a row that is wanted. Others may be left out, before windows are computed: the windows of
    /// wanted rows are to be the same without them.
    pub rows: u64,
}

/// What a window computes for a row.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowFunction {
    /// Number of the row in its partition, from 1.
    RowNumber,
    /// Number of the first of its peers.
    Rank,
    /// Number of its peers among those of the partition, from 1.
    DenseRank,
    /// Share of the other rows of the partition that come before its peers; 0 of a single row.
    PercentRank,
    /// Share of the rows of the partition that come before it or are its peers.
    CumeDist,
    /// Number, from 1, of its part of the partition in so many parts, the first ones of one row more.
    Tile(u64),
    /// An output of the row so many rows before it in its partition, behind it if negative.
    Shift {
        /// Position of the output.
        output: usize,
        /// Rows.
        rows: i64,
        /// The value where there is no such row.
        default: Literal,
        /// Whether only rows are counted in which the output is not NULL.
        skips_nulls: bool,
    },
    /// An output of a row of the frame.
    Nth {
        /// Position of the output.
        output: usize,
        /// Number of the row, from 1; from the end of the frame if negative.
        place: i64,
        /// Whether only rows are counted in which the output is not NULL.
        skips_nulls: bool,
        /// The frame.
        frame: Frame,
    },
    /// An aggregate of the rows of the frame. A sum of integers whose type is a double has to fit one exactly.
    Aggregate {
        /// The function. Sums of floats are refused.
        kind: AggregateKind,
        /// Position of the output that is its argument; none counts rows.
        output: Option<usize>,
        /// Position of an output: rows for which it is not true are left out.
        filter: Option<usize>,
        /// The frame.
        frame: Frame,
    },
}

/// The rows of a partition from one bound to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
}

/// A bound of a frame. Offsets count from the row, and are negative before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameBound {
    /// That of the partition.
    Unbounded,
    /// The row so many rows behind it.
    Rows(i64),
    /// The first or last one of the peers so many groups of peers behind its own.
    Peers(i64),
}

impl WindowFunction {
    /// Whether it asks which rows are peers.
    pub(crate) fn has_peers(&self) -> bool {
        use WindowFunction::{Aggregate, CumeDist, DenseRank, Nth, PercentRank, Rank, RowNumber, Shift, Tile};
        match self {
            Rank | DenseRank | PercentRank | CumeDist => true,
            RowNumber | Tile(_) | Shift { .. } => false,
            Nth { frame, .. } | Aggregate { frame, .. } => {
                [frame.start, frame.end].iter().any(|bound| matches!(bound, FrameBound::Peers(_)))
            }
        }
    }

    /// Calls `visit` for the position of each output that it reads.
    pub(crate) fn outputs(&self, visit: &mut impl FnMut(usize)) {
        match self {
            WindowFunction::Shift { output, .. } | WindowFunction::Nth { output, .. } => visit(*output),
            WindowFunction::Aggregate { output, filter, .. } => output.iter().chain(filter).for_each(|at| visit(*at)),
            _ => {}
        }
    }

    /// Calls `change` for the position of each output that it reads.
    pub(crate) fn change_outputs(&mut self, change: &impl Fn(&mut usize)) {
        match self {
            WindowFunction::Shift { output, .. } | WindowFunction::Nth { output, .. } => change(output),
            WindowFunction::Aggregate { output, filter, .. } => output.iter_mut().chain(filter).for_each(change),
            _ => {}
        }
    }
}
