//! Vectors that no step needs to look at, by the bounds of their values ([`bounds`](super::bounds)).
//!
//! A comparison with a constant, or a probe of a table whose keys all lie between two values, cannot hold in a vector
//! that lies outside. Such vectors are neither loaded nor unpacked; comparisons that hold for all a vector may have are
//! not made.

use crate::ir::BinaryOp;
use crate::plan::bounds::{bounded, probed};
use crate::plan::input::PipelineInput;
use crate::plan::order::{Item, Planned};
use crate::plan::shared::{MapIndex, SharedMemory, coded};
use crate::plan::split::Split;

/// What a step tells of vectors before they are loaded.
#[derive(Debug, Clone)]
pub(crate) struct VectorTest {
    /// The step, by position among the dense ones.
    pub(crate) step: usize,
    /// The column whose bounds are tested.
    pub(crate) column: usize,
    /// What passes.
    pub(crate) passing: VectorPassing,
    /// Whether it tells of a vector that all rows pass, too.
    pub(crate) tells_all: bool,
}

/// Values that a step lets pass.
#[derive(Debug, Clone, Copy)]
pub(crate) enum VectorPassing {
    /// Those that a comparison with a constant does.
    Compared,
    /// Keys of a table, the first one of which may be `low`, between the first and the last that there are; where
    /// vectors have `few` values, each is looked up: between the ends there may be keys that are not found.
    Spanned {
        /// Key of the first place of the table.
        low: i128,
        /// Whether vectors have few values.
        few: bool,
    },
}

/// What the dense steps tell of vectors.
pub(crate) fn plan(input: &PipelineInput, split: &Split, shared: &SharedMemory) -> Vec<VectorTest> {
    let test = |(step, planned): (usize, &Planned)| {
        let (column, passing) = match &planned.item {
            Item::Filter(expr) => {
                let (column, op, _) = expr.against_constant()?;
                let is_range = op.is_comparison() && op != BinaryOp::Ne;
                let column = Some(column).filter(|column| is_range && bounded(input, split, *column))?;
                (column, VectorPassing::Compared)
            }
            Item::Probe(probe, _) => {
                let (column, low) = probed(input, split, probe)?;
                // The ends of the keys are known where the bitmap lies in shared memory.
                let is_staged = shared.tables.iter().any(|at| at.build == probe.build && at.places == MapIndex::Keys);
                if !is_staged || coded(input, split, probe).is_some() {
                    return None;
                }
                let few = input.columns[column]
                    .layout
                    .vector_values_max()
                    .is_some_and(|values| values <= input.tuning.looked_up_values);
                (column, VectorPassing::Spanned { low, few })
            }
            Item::Limit { .. } => return None,
        };
        let tells_all =
            !matches!(passing, VectorPassing::Spanned { few: false, .. }) && !input.columns[column].nullable;
        Some(VectorTest { step, column, passing, tells_all })
    };
    split.dense.iter().enumerate().filter_map(test).collect()
}
