//! Sorts that DataFusion 55.2 puts in wrong places, in physical plans.
//!
//! - `EnsureRequirements` moves a sort below an OFFSET, which then skips other rows. A fence around the OFFSET keeps
//!   sorts above it while the rule runs.
//! - Partitions that are sorted each by itself leave out a key that is constant in each of them, and share the
//!   threshold of their first rows all the same: where the key differs between them (a constant column of each branch
//!   of a union), rows are lost.
//! - Partitions that are sorted each by itself do not always meet the order that they are merged by, by DataFusion's
//!   own check: a comparison of arithmetic or with a scalar subquery, or an expression that equals a literal which is
//!   within it, too. The check refuses the plan then.
//!
//! In the last two cases the plan is made once more with one sort for all partitions. The file goes once sorts stay
//! above what skips rows, thresholds are of all keys, and the check and the rule agree.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use super::pass_through::{Kind, PassThrough, pass_through, unordered};
use crate::walk::Walk;

/// `EnsureRequirements`, with sorts where they belong.
#[derive(Debug)]
pub(super) struct SortsInPlace(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for SortsInPlace {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let fenced = with_fences(plan)?;
        let sorted = without_fences(self.0.optimize(fenced.clone(), config)?)?;
        if !config.optimizer.repartition_sorts || is_right(&sorted, config)? {
            return Ok(sorted);
        }
        let mut config = config.clone();
        config.optimizer.repartition_sorts = false;
        without_fences(self.0.optimize(fenced, &config)?)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether a plan merges partitions that are in its order, none of which lacks a key that a threshold is of.
fn is_right(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<bool> {
    let (mut merges, mut lacks_key) = (false, false);
    plan.apply(|plan| {
        let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        merges = true;
        merge.input().apply(|plan| match plan.downcast_ref::<SortExec>() {
            Some(sort) => {
                lacks_key |= sort.fetch().is_some() && sort.expr().len() < merge.expr().len();
                Ok(TreeNodeRecursion::Jump)
            }
            None => Ok(TreeNodeRecursion::Continue),
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(!merges || !lacks_key && SanityCheckPlan::new().optimize(plan.clone(), config).is_ok())
}

/// An operator that promises no order of its rows and takes no requirement of one.
static FENCE: Kind = Kind {
    name: "Fence",
    properties: |input| unordered(input, input.schema()),
    rows: |rows, _| rows,
    keeps_order: false,
};

/// Whether an operator asks for no order of its input's rows.
fn passes(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<GlobalLimitExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<OutputRequirementExec>()
}

/// Puts a fence around each OFFSET that operators with orders of their own may be above of.
fn with_fences(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    // Operators around the present one that may ask for an order.
    let around = Cell::new(0);
    let asks = |plan: &Arc<dyn ExecutionPlan>| usize::from(!passes(plan.as_ref()));
    let fenced = plan.transform_down_up(
        |plan| {
            around.set(around.get() + asks(&plan));
            Ok(Transformed::no(plan))
        },
        |plan| {
            around.set(around.get() - asks(&plan));
            let skips = plan.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0);
            Ok(match skips && around.get() > 0 {
                true => Transformed::yes(pass_through(&FENCE, plan)),
                false => Transformed::no(plan),
            })
        },
    )?;
    Ok(fenced.data)
}

fn without_fences(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|plan| {
        Ok(match PassThrough::input_of(plan.as_ref(), &FENCE) {
            Some(input) => Transformed::yes(input.clone()),
            None => Transformed::no(plan),
        })
    })?;
    Ok(plan.data)
}
