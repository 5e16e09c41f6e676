//! Grouping sets of the same keys list them in the same order.
//!
//! The number of a grouping set tells how often a set of its keys came before. DataFusion 55.2 chooses the type of that
//! number before it runs a plan, and counts `(a, b)` and `(b, a)` apart; as it runs the plan they are one set. Where a
//! set comes in several orders the type has too few bits: groups of different sets get one number, and literals beside
//! it have another type than it. Here a set lists each of its keys once, in the order of the aggregation's keys.
//!
//! The file goes once DataFusion counts sets by their keys.

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::walk::PlanWalk;

/// The rule that orders the keys of grouping sets.
#[derive(Debug)]
pub(super) struct EqualSets;

impl AnalyzerRule for EqualSets {
    fn name(&self) -> &str {
        "equal_sets"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let ordered = plan.transform_up_nested(|plan| {
            let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
            let Some(sets) = ordered(&aggregate.group_expr) else { return Ok(Transformed::no(plan)) };
            let group_expr = vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets))];
            // The type of the number is chosen anew.
            let aggregate = Aggregate::try_new(aggregate.input.clone(), group_expr, aggregate.aggr_expr.clone())?;
            Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
        })?;
        Ok(ordered.data)
    }
}

/// The sets with their keys in one order; none where they have it.
fn ordered(group_expr: &[Expr]) -> Option<Vec<Vec<Expr>>> {
    let [Expr::GroupingSet(grouping @ GroupingSet::GroupingSets(sets))] = group_expr else { return None };
    let keys = grouping.distinct_expr();
    let of = |set: &Vec<Expr>| keys.iter().filter(|key| set.contains(key)).map(|key| (*key).clone()).collect();
    let ordered: Vec<Vec<Expr>> = sets.iter().map(of).collect();
    (ordered != *sets).then_some(ordered)
}
