//! EXISTS among the items of a select list.
//!
//! DataFusion 55.2 makes a mark join of an EXISTS within a condition of WHERE, and has no operator for one in a
//! projection. Here its rule is given a filter that asks for each EXISTS of a projection, and the marks that this
//! filter reads take their places in the items: the filter itself is dropped.
//!
//! The file goes once the rule looks at projections.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::walk::Walk;

/// The rule that makes joins of subqueries, for projections too.
pub(super) fn with_marked_items(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = plan else { return rule.rewrite(plan, config) };
    let mut asked: Vec<Expr> = Vec::new();
    for item in &projection.expr {
        item.apply(|expr| {
            if matches!(expr, Expr::Exists(_)) && !asked.contains(expr) {
                asked.push(expr.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    // One that is not a condition by itself becomes a mark.
    let Some(condition) = conjunction(asked.iter().map(|exists| exists.clone().is_true())) else {
        return rule.rewrite(LogicalPlan::Projection(projection), config);
    };
    let filter = LogicalPlan::Filter(Filter::try_new(condition, projection.input.clone())?);
    let marked = rule.rewrite(filter, config)?.data;
    let Some((input, marks)) = marks_of(&marked) else {
        return Ok(Transformed::no(LogicalPlan::Projection(projection)));
    };
    let names = NamePreserver::new(&marked);
    let with_mark = |expr: Expr| {
        let mark = asked.iter().position(|exists| *exists == expr).and_then(|place| marks.get(place));
        Ok(mark.map_or(Transformed::no(expr), |mark| Transformed::yes(mark.clone())))
    };
    let with_marks = |item: Expr| {
        let name = names.save(&item);
        Ok(name.restore(item.transform_up(with_mark)?.data))
    };
    let items = projection.expr.into_iter().map(with_marks).collect::<Result<_>>()?;
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(items, input)?)))
}

/// What the rule made of the filter: its input with marks, and the mark of each EXISTS; none where it made nothing.
fn marks_of(marked: &LogicalPlan) -> Option<(Arc<LogicalPlan>, Vec<Expr>)> {
    let LogicalPlan::Projection(Projection { input, .. }) = marked else { return None };
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = input.as_ref() else { return None };
    let mark = |expr: &Expr| match expr {
        Expr::IsTrue(mark) => Some(mark.as_ref().clone()),
        _ => None,
    };
    let marks: Option<Vec<Expr>> = split_conjunction(predicate).into_iter().map(mark).collect();
    Some((input.clone(), marks?))
}
