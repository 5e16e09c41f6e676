//! Sort keys with scalar subqueries are columns before they are sorted by.
//!
//! DataFusion 55.2 tells a range of type NULL of a scalar subquery. A key that compares an earlier key with one, as in
//! `ORDER BY id, CASE WHEN id >= (SELECT …) THEN a ELSE b END`, has then no properties, so that a merge of sorted
//! partitions is taken for unsorted and the plan is refused. The file goes once `ScalarSubqueryExpr::get_properties`
//! tells a range of the subquery's type.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort, col};

use super::{each_node, is_foreign_leaf};

/// The plan with sorts by columns in place of sorts by scalar subqueries. Rows of the device come in their order.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_candidate =
        |sort: &Sort| !is_foreign_leaf(&sort.input) && sort.expr.iter().any(|key| has_subquery(&key.expr));
    each_node(plan, |plan| match plan {
        LogicalPlan::Sort(sort) if is_candidate(&sort) => by_columns(sort),
        plan => Ok(Transformed::no(plan)),
    })
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_)))).unwrap_or(true)
}

fn by_columns(sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let Sort { expr: mut keys, input, fetch } = sort;
    let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut computed = columns.clone();
    for (number, key) in keys.iter_mut().enumerate().filter(|(_, key)| has_subquery(&key.expr)) {
        let name = format!("__order_key_{number}");
        computed.push(std::mem::replace(&mut key.expr, col(&name)).alias(name));
    }
    let input = Arc::new(LogicalPlan::Projection(Projection::try_new(computed, input)?));
    let sorted = Arc::new(LogicalPlan::Sort(Sort { expr: keys, input, fetch }));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, sorted)?)))
}
