//! What bounds of vectors tell of a step: where each vector of a packed column has a reference of its own, that and the
//! width bound its values, unless some are patched.

use crate::ir::{Expr, JoinKind, Probe};
use crate::plan::input::PipelineInput;
use crate::plan::order::Item;
use crate::plan::split::Split;
use crate::plan::table::TableLayout;
use crate::plan::view::ColumnView;

/// The column of a probe with one key, if its vectors have bounds and the table's keys can be compared with them.
pub(crate) fn probed(input: &PipelineInput, split: &Split, probe: &Probe) -> Option<(usize, i128)> {
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
pub(crate) fn bounded(input: &PipelineInput, split: &Split, column: usize) -> bool {
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
