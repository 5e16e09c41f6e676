//! The first rows of each partition: filters of what windows number.
//!
//! ```text
//! Filter: row_number <= 3                                    rows 1: of each a those that the first 3 by b are among
//!   Window: row_number() over (partition by a order by b)  →   row_number; rows without the filter are left out
//!     TableScan: t                                           scan rows 1, filter
//! ```
//!
//! The filter stays. Of a partition such a sort keeps rows that come first in it, so that it is told of the filter only
//! where all of its windows read no rows that come later.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use warpcube_engine::{FirstOfPartitions, FrameBound, WindowCall, WindowFunction};

use super::columns::{BaseColumn, ColumnId};
use super::finish::Finish;
use super::graph::{Core, Graph, InnerRows, InnerWindows, Relation};

/// Tells the sorts of windows which rows the filters of a core, and of what hangs on it, want.
pub(super) fn find(graph: &mut Graph, core: &Core) {
    for (column, most) in core.filters.iter().flat_map(split_conjunction).filter_map(at_most) {
        if let Relation::Inner(rows) = graph.relation_mut(column.relation) {
            keep_first(rows, column.position, most);
        }
    }
    core.hanging.iter().for_each(|hanging| find(graph, &hanging.core));
}

/// A column and the largest integer that it may be, if a condition is of that kind.
fn at_most(condition: &Expr) -> Option<(ColumnId, u64)> {
    let (column, op, literal) = match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (Expr::Literal(value, _), column) => (column, op.swap()?, value),
            (column, Expr::Literal(value, _)) => (column, *op, value),
            _ => return None,
        },
        Expr::Between(between) if !between.negated => match &*between.high {
            Expr::Literal(value, _) => (&*between.expr, Operator::LtEq, value),
            _ => return None,
        },
        _ => return None,
    };
    let literal = integer(literal)?;
    let most = match op {
        Operator::LtEq | Operator::Eq => literal,
        Operator::Lt => literal.checked_sub(1)?,
        _ => return None,
    };
    Some((number(column)?.id, u64::try_from(most).ok()?))
}

fn integer(value: &ScalarValue) -> Option<i64> {
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(integer)) if value.data_type().is_integer() => integer,
        _ => None,
    }
}

/// The column behind casts to integers, which do not change numbers of rows.
fn number(expr: &Expr) -> Option<&BaseColumn> {
    match expr {
        Expr::Cast(cast) if cast.field.data_type().is_integer() => number(&cast.expr),
        Expr::Alias(alias) => number(&alias.expr),
        column => BaseColumn::of(column),
    }
}

/// Leaves out rows whose window at a position is more than `most`, if no window of the others reads them.
fn keep_first(rows: &mut InnerRows, position: usize, most: u64) {
    let InnerRows { id: None, types, windows: Some(InnerWindows { calls, finish, first, .. }), .. } = rows else {
        return;
    };
    let Some(Finish::Aggregate(window)) = position.checked_sub(types.len()).and_then(|at| finish.get(at)) else {
        return;
    };
    let Some(bound) = calls.get(*window) else { return };
    let is_number =
        matches!(bound.function, WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank);
    let is_less = first.is_none_or(|first| most < first.rows);
    if is_number && is_less && calls.iter().all(|call| reads_no_later_rows(call, bound)) {
        *first = Some(FirstOfPartitions { window: *window, rows: most });
    }
}

/// Whether a window of a row in front of a bound, or of a peer of it where the bound has ranks, reads no row behind it.
fn reads_no_later_rows(call: &WindowCall, bound: &WindowCall) -> bool {
    let has_peers = bound.function != WindowFunction::RowNumber && call.order >= bound.order;
    let is_before = |end: FrameBound| match end {
        FrameBound::Rows(offset) => offset <= 0,
        FrameBound::Peers(offset) => offset < 0 || offset == 0 && has_peers,
        FrameBound::Unbounded => false,
    };
    call.partition == bound.partition
        && match &call.function {
            WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => true,
            WindowFunction::Shift { rows, .. } => *rows >= 0,
            WindowFunction::Nth { frame, .. } | WindowFunction::Aggregate { frame, .. } => is_before(frame.end),
            WindowFunction::PercentRank | WindowFunction::CumeDist | WindowFunction::Tile(_) => false,
        }
}
