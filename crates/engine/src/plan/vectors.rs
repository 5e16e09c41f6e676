//! Vectors that no step needs to look at: where each vector of a packed column has a reference of its own, that and the
//! width bound its values, unless some are patched.
//!
//! A comparison with a constant, or a probe of a table whose keys all lie between two values, cannot hold in a vector
//! that lies outside. Such vectors are neither loaded nor unpacked; comparisons that hold for all a vector may have are
//! not made.

use crate::ir::{BinaryOp, Expr, JoinKind, Probe};
use crate::plan::input::PipelineInput;
use crate::plan::order::{Item, Planned};
use crate::plan::shared::{Places, SharedMemory, coded};
use crate::plan::split::Split;
use crate::plan::table::TableLayout;
use crate::plan::view::ColumnView;

/// Values of a vector up to which each of them is looked up in a table.
const LOOKED_UP_MAX: u64 = 32;

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

/// The column of a probe with one key, if its vectors have bounds and the table's keys can be compared with them.
fn probed(input: &PipelineInput, split: &Split, probe: &Probe) -> Option<(usize, i128)> {
    let column = key_column(probe)?;
    let table = input.tables[probe.build].as_deref()?;
    let low = table.pack.only_low()?;
    (table.layout == TableLayout::Direct && bounded(input, split, column)).then_some((column, low))
}

/// The column of a probe with one key that drops what it does not find.
fn key_column(probe: &Probe) -> Option<usize> {
    match (probe.keys.as_slice(), probe.kind) {
        ([Expr::Reg(column)], JoinKind::Inner | JoinKind::Semi) => Some(*column),
        _ => None,
    }
}

/// Whether the rows that a step leaves lie side by side, so that most vectors have all or none of them.
pub(crate) fn drops_vectors(item: &Item, columns: &[ColumnView<'_>]) -> bool {
    let column = match item {
        Item::Filter(expr) => expr.against_constant().map(|(column, _, _)| column),
        Item::Probe(probe, _) => key_column(probe),
        Item::Limit { .. } => None,
    };
    column.and_then(|column| columns.get(column)).is_some_and(|column| column.layout.is_clustered())
}

/// Whether a column's vectors have bounds that 64-bit integers hold and that are worth a look.
fn bounded(input: &PipelineInput, split: &Split, column: usize) -> bool {
    let Some(value) = input.columns.get(column) else { return false };
    let fits = value.range.is_some_and(|(low, high)| low >= -(1 << 62) && high <= 1 << 62);
    let is_plain = value.dictionary.is_none() && !value.layout.is_coded();
    input.skips && fits && is_plain && split.loaded.contains(&column) && value.layout.has_bounds()
}

/// Whether there may be vectors that no step needs to look at.
pub(crate) fn may_skip(input: &PipelineInput, split: &Split) -> bool {
    split.dense.iter().any(|planned| match &planned.item {
        Item::Filter(expr) => expr.against_constant().is_some_and(|(column, _, _)| bounded(input, split, column)),
        Item::Probe(probe, _) => probed(input, split, probe).is_some(),
        Item::Limit { .. } => false,
    })
}

/// Whether kernels ask for the first and the last key of a table in shared memory.
pub(crate) fn asks_for_span(input: &PipelineInput, split: &Split, build: usize) -> bool {
    split.dense.iter().any(|planned| match &planned.item {
        Item::Probe(probe, _) => probe.build == build && probed(input, split, probe).is_some(),
        Item::Filter(_) | Item::Limit { .. } => false,
    })
}

/// True if a column of dense steps is read `later`, or if the payload of a dense probe by it is: that is gathered by
/// key for the rows that are left.
pub(crate) fn is_asked_later(dense: &[Planned], column: usize, later: &[usize]) -> bool {
    let by_payload = dense.iter().any(|planned| {
        let Item::Probe(probe, payload) = &planned.item else { return false };
        let mut by_column = false;
        probe.keys.iter().for_each(|key| key.registers(&mut |register| by_column |= register == column));
        by_column && later.iter().any(|register| payload.contains(register))
    });
    by_payload || later.contains(&column)
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
                let is_staged = shared.tables.iter().any(|at| at.build == probe.build && at.places == Places::Keys);
                if !is_staged || coded(input, split, probe).is_some() {
                    return None;
                }
                let few =
                    input.columns[column].layout.vector_values_max().is_some_and(|values| values <= LOOKED_UP_MAX);
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
