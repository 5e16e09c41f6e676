//! Grouping sets on the CPU: coarser groups from finer ones.
//!
//! DataFusion 55.2 aggregates every row once for each set. Here rows are aggregated by those sets alone that no other
//! contains, of CUBE and ROLLUP the one by all keys; the groups of the others are made of their states
//! ([`super::coarser_sets`]), as those of partitions are united:
//!
//! ```text
//! AggregateExec: mode=FinalPartitioned, keys and the number of the set
//!   CoarserSetsExec: 7 sets from 1
//!     AggregateExec: mode=Partial, gby=[a, b, c]        in place of gby=[(a, b, c), (a, b, NULL), ...]
//! ```
//!
//! Aggregates whose states grow with the rows (distinct values, lists), or depend on the order of rows, keep
//! DataFusion's way. The file goes once DataFusion's operator does the same.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};

use super::coarser_sets::{CoarserSetsExec, contains};
use crate::walk::Walk;

/// Aggregates that have small states, which unite in any order.
const UNITING: [&str; 26] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "max",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// The rule that makes coarser groups of finer ones.
#[derive(Debug)]
pub(crate) struct FinestSets;

impl FinestSets {
    /// The name of the rule.
    pub(crate) const NAME: &str = "finest_sets";
}

impl PhysicalOptimizerRule for FinestSets {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let rewritten = plan.transform_up(|plan| {
            let united = match plan.downcast_ref::<AggregateExec>() {
                Some(aggregate) => united(aggregate)?,
                None => None,
            };
            Ok(united.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &str {
        FinestSets::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn unites(function: &Arc<AggregateFunctionExpr>) -> bool {
    !function.is_distinct() && function.order_bys().is_empty() && UNITING.contains(&function.fun().name())
}

/// What gives the states of an aggregation by sets; none where each set is made of the rows.
fn united(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let by = aggregate.group_expr();
    let is_fit = *aggregate.mode() == AggregateMode::Partial
        && by.has_grouping_set()
        && aggregate.limit_options().is_none()
        && aggregate.aggr_expr().iter().all(unites);
    if !is_fit {
        return Ok(None);
    }
    let mut sets: Vec<Vec<bool>> = by.groups().to_vec();
    sets.sort_unstable();
    sets.dedup();
    let is_finest = |set: &&Vec<bool>| !sets.iter().any(|other| other != *set && contains(other, set));
    let finest: Vec<Vec<bool>> = sets.iter().filter(is_finest).cloned().collect();
    if finest.len() == sets.len() {
        return Ok(None);
    }
    let own = match finest.as_slice() {
        [one] if one.iter().any(|lacks| *lacks) => return Ok(None),
        [_] => PhysicalGroupBy::new_single(by.expr().to_vec()),
        _ => PhysicalGroupBy::new(by.expr().to_vec(), by.null_expr().to_vec(), finest, true),
    };
    let rows = AggregateExec::try_new(
        AggregateMode::Partial,
        own,
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        aggregate.input().clone(),
        aggregate.input_schema(),
    )?;
    Ok(Some(Arc::new(CoarserSetsExec::new(rows, by.groups(), aggregate.schema()))))
}
