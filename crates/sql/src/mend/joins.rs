//! Rules of DataFusion's that mix up joins, held back where they do.
//!
//! - `eliminate_cross_join` in DataFusion 55.2 makes one join of several inner ones and gives all of them one rule
//!   for NULL keys, so that `IS NOT DISTINCT FROM` beside `=` loses its NULLs, and drops a key whose one side is made
//!   of columns of two of them where these are not joined before. It is left out for a plan with a join that holds
//!   NULLs for equal or has such a key.
//! - `extract_equijoin_predicate` adds equalities of a condition to keys of a join that holds NULLs for equal, so that
//!   they hold for NULLs as well. The condition is given that a side is not NULL.
//! - Filters are pushed through physical operators by names of columns. Where two columns of an operator have one
//!   name (those of two tables), a filter on one becomes a filter on the other. Nothing is pushed in such a plan;
//!   what the logical optimiser has pushed stays where it is.
//! - `ProjectionPushdown` computes what the condition of a nested loop reads of one side for all rows of that side, out
//!   of a CASE too, which may be a guard ([`super::guards`]). It is left out for a plan with such a condition.
//!
//! The file goes once the first two keep such joins apart, the third goes by positions, and the last looks at CASE.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::NullEquality;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Join, JoinType, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::expressions::CaseExpr;
use datafusion::physical_plan::joins::NestedLoopJoinExec;

use super::finer_columns::FinerColumns;
use super::finer_times::FinerTimes;
use super::grouping_sets::FinestSets;
use super::held_filters::with_held_filters;
use super::projections::ProjectionsInPlace;
use super::shifted_sums::ShiftedSums;
use super::sorts::SortsInPlace;
use super::{guards, sums, union_names};
use crate::shared::NeededAlone;
use crate::walk::{PlanWalk, Walk};

/// DataFusion's rules for logical plans.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let wrapped = |rule: Arc<dyn OptimizerRule + Send + Sync>| -> Arc<dyn OptimizerRule + Send + Sync> {
        let rewrite: Rewrite = match rule.name() {
            "eliminate_cross_join" => with_simple_keys,
            "extract_equijoin_predicate" => with_strict_keys,
            "common_sub_expression_eliminate" => guards::with_hidden_operands,
            "optimize_unions" => union_names::by_position,
            "propagate_empty_relation" => union_names::without_empty,
            "push_down_filter" => with_held_filters,
            "single_distinct_aggregation_to_group_by" => sums::with_whole_sums,
            _ => return rule,
        };
        Arc::new(WrappedRule(rule, rewrite))
    };
    // Subqueries that refer to the rows around them, ANY and ALL are joins by then (`super::unnest`).
    let needless = ["rewrite_set_comparison", "decorrelate_lateral_join"];
    let rules = Optimizer::new().rules.into_iter().filter(|rule| !needless.contains(&rule.name()));
    let mut rules: Vec<_> = rules.map(wrapped).collect();
    let simplifies = |rule: &Arc<dyn OptimizerRule + Send + Sync>| rule.name() == "simplify_expressions";
    if let Some(first) = rules.iter().position(simplifies) {
        rules.insert(first, Arc::new(FinerTimes));
        rules.insert(first, Arc::new(ShiftedSums));
    }
    let shares = |rule: &Arc<dyn OptimizerRule + Send + Sync>| rule.name() == "common_sub_expression_eliminate";
    if let Some(place) = rules.iter().position(shares) {
        rules.insert(place, Arc::new(FinerColumns));
    }
    // Behind those that move columns and filters to readers.
    rules.push(Arc::new(NeededAlone));
    rules
}

/// DataFusion's rules for physical plans.
pub(crate) fn physical_optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let wrapped = |rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
        match rule.name() {
            name if name.starts_with("FilterPushdown") => Arc::new(UnlessFound(rule, repeats_a_name)),
            "ProjectionPushdown" => Arc::new(UnlessFound(Arc::new(ProjectionsInPlace(rule)), has_guarded_condition)),
            "aggregate_statistics" => Arc::new(UnlessFound(rule, filters_its_rows)),
            "EnsureRequirements" => Arc::new(SortsInPlace(rule)),
            _ => rule,
        }
    };
    let mut rules: Vec<_> = PhysicalOptimizer::new().rules.into_iter().map(wrapped).collect();
    // Ahead of the rule that brings equal groups of partitions together.
    let distributes = |rule: &Arc<dyn PhysicalOptimizerRule + Send + Sync>| rule.name() == "EnsureRequirements";
    if let Some(place) = rules.iter().position(distributes) {
        rules.insert(place, Arc::new(FinestSets));
    }
    rules
}

/// A rule of the optimiser with the rewrite that runs in its place, which is given the rule.
#[derive(Debug)]
struct WrappedRule(Arc<dyn OptimizerRule + Send + Sync>, Rewrite);

/// Rewrites a plan, by a rule of DataFusion's or without.
type Rewrite = fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

impl OptimizerRule for WrappedRule {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        (self.1)(self.0.as_ref(), plan, config)
    }
}

/// A rule that is not for plans in which NULL keys match, or are made of columns of several tables.
fn with_simple_keys(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let mut is_held_back = false;
    plan.apply_nested(|plan| {
        if let LogicalPlan::Join(join) = plan {
            let spans = |(left, right): &(Expr, Expr)| spans(left, &join.left) || spans(right, &join.right);
            is_held_back |= join.null_equality == NullEquality::NullEqualsNull || join.on.iter().any(spans);
        }
        Ok(if is_held_back { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if is_held_back { Ok(Transformed::no(plan)) } else { rule.rewrite(plan, config) }
}

/// Whether an expression has columns of both sides of an inner join in a plan.
fn spans(expr: &Expr, plan: &LogicalPlan) -> bool {
    let LogicalPlan::Join(Join { left, right, join_type: JoinType::Inner, .. }) = plan else { return false };
    let columns = expr.column_refs();
    let is_of = |side: &LogicalPlan| columns.iter().all(|column| side.schema().has_column(column));
    match (is_of(left), is_of(right)) {
        (true, _) => spans(expr, left),
        (_, true) => spans(expr, right),
        _ => true,
    }
}

/// The rule that makes keys of equalities, over joins in which NULL keys match: what an equality compares is not NULL.
fn with_strict_keys(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Join(mut join) if join.null_equality == NullEquality::NullEqualsNull => {
            let conditions = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
            let is_strict: Vec<Expr> = conditions.iter().filter_map(strict).collect();
            let is_strict = is_strict.into_iter().filter(|known| !conditions.contains(known));
            join.filter = conjunction(is_strict.chain(conditions.iter().cloned()).collect::<Vec<_>>());
            LogicalPlan::Join(join)
        }
        other => other,
    };
    rule.rewrite(plan, config)
}

/// That a side of an equality is not NULL.
fn strict(condition: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
    let side = [left, right].into_iter().find(|side| !side.is_volatile())?;
    Some(side.as_ref().clone().is_not_null())
}

/// A rule that is not for plans with an operator that the function finds.
#[derive(Debug)]
struct UnlessFound(Arc<dyn PhysicalOptimizerRule + Send + Sync>, fn(&dyn ExecutionPlan) -> bool);

/// Whether two columns of an operator have one name.
fn repeats_a_name(plan: &dyn ExecutionPlan) -> bool {
    let schema = plan.schema();
    let mut names = HashSet::with_capacity(schema.fields().len());
    schema.fields().iter().any(|field| !names.insert(field.name()))
}

/// Whether an operator is an aggregation with FILTER: DataFusion 55.2 passes over one that is above another without,
/// and takes the answer of the lower for that of both.
fn filters_its_rows(plan: &dyn ExecutionPlan) -> bool {
    let aggregation = plan.downcast_ref::<AggregateExec>();
    aggregation.is_some_and(|aggregation| aggregation.filter_expr().iter().any(Option::is_some))
}

/// Whether an operator is a nested loop with a CASE in its condition.
fn has_guarded_condition(plan: &dyn ExecutionPlan) -> bool {
    let condition = plan.downcast_ref::<NestedLoopJoinExec>().and_then(NestedLoopJoinExec::filter);
    condition.is_some_and(|condition| condition.expression().exists(|expr| Ok(expr.is::<CaseExpr>())).unwrap_or(true))
}

impl PhysicalOptimizerRule for UnlessFound {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let found = plan.exists(|plan| Ok((self.1)(plan.as_ref())))?;
        if found { Ok(plan) } else { self.0.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
