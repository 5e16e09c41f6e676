//! What registers are read of.

use crate::plan::group_values::GroupValue;

/// What a register is read of.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// A column of the scanned table.
    Column(usize),
    /// A word of the rows of an output.
    Word { column: usize, is_float: bool },
    /// A value that is computed of columns of an output.
    Value(Box<GroupValue>),
    /// A column of the table of a step's probe.
    Payload { step: usize, column: usize },
    /// Whether a step's probe has found an entry.
    Mark { step: usize },
    /// A column of a branch of a union.
    Computed,
}
