//! `information_schema.views` lists views alone.
//!
//! DataFusion 55.2 lists all tables there. The definition of a view is the text that made it, and a table of files has
//! one of its own. The file goes once DataFusion asks a table for its kind.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, col, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::walk::PlanWalk;

/// The rule that leaves other tables out.
#[derive(Debug)]
pub(super) struct ViewsAlone;

impl AnalyzerRule for ViewsAlone {
    fn name(&self) -> &str {
        "views_alone"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mended = plan.transform_down_nested(|plan| match plan {
            // What the rule has made.
            LogicalPlan::Filter(filter) if lists_views(&filter.input) && filter.predicate == is_view() => {
                Ok(Transformed::new(LogicalPlan::Filter(filter), false, TreeNodeRecursion::Jump))
            }
            plan if lists_views(&plan) => {
                let views = Filter::try_new(is_view(), Arc::new(plan))?;
                Ok(Transformed::new(LogicalPlan::Filter(views), true, TreeNodeRecursion::Jump))
            }
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(mended.data)
    }
}

fn lists_views(plan: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = plan else { return false };
    scan.table_name.schema() == Some("information_schema") && scan.table_name.table() == "views"
}

/// Whether a definition is that of a view.
fn is_view() -> Expr {
    let pattern = |words: &str| lit(format!("{words}%"));
    let definition = || col("definition");
    let is_other = |words: &str| definition().not_ilike(pattern(words));
    definition().ilike(pattern("create%view")).and(is_other("create external")).and(is_other("create unbounded"))
}
