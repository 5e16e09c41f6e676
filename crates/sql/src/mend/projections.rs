//! Projections that may raise stay above the filters that they stood above.
//!
//! `ProjectionPushdown` in DataFusion 55.2 computes a projection below a filter wherever that leaves fewer columns to
//! filter: `SELECT id, y / x … WHERE id > 1` divides in the rows that the filter drops. It does the same with what the
//! condition of a nested loop reads of one side. Here such a projection reads its columns through a barrier while that
//! rule runs; the columns alone still move. What cannot raise moves as before.
//!
//! The file goes once that rule asks whether an expression may raise.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::pass_through::{Kind, PassThrough, pass_through};
use super::raising::may_raise_physically;
use crate::walk::Walk;

/// `ProjectionPushdown`, with barriers below what may raise.
#[derive(Debug)]
pub(super) struct ProjectionsInPlace(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for ProjectionsInPlace {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let barred = plan.transform_up(with_barriers)?;
        let plan = self.0.optimize(barred.data, config)?;
        if !barred.transformed {
            return Ok(plan);
        }
        let without = |plan: Arc<dyn ExecutionPlan>| match PassThrough::input_of(plan.as_ref(), &BARRIER) {
            Some(input) => Ok(Transformed::yes(input.clone())),
            None => Ok(Transformed::no(plan)),
        };
        plan.transform_up(without).data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// An operator through which no projection moves.
static BARRIER: Kind =
    Kind { name: "Barrier", properties: |input| input.properties().clone(), rows: |rows, _| rows, keeps_order: false };

/// Puts a barrier below an operator whose expressions may raise and could move below a filter.
fn with_barriers(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let input = projection.input();
        let schema = input.schema();
        let raises = projection.expr().iter().any(|item| may_raise_physically(item.expr.as_ref(), &schema));
        if !raises || !is_over_filter(input) {
            return Ok(Transformed::no(plan));
        }
        return barred(projection).map(Transformed::yes);
    }
    let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() else { return Ok(Transformed::no(plan)) };
    let raises =
        join.filter().is_some_and(|filter| may_raise_physically(filter.expression().as_ref(), filter.schema()));
    let sides = [join.left(), join.right()];
    if !raises || !sides.into_iter().any(is_over_filter) {
        return Ok(Transformed::no(plan));
    }
    let inputs = sides.map(|side| match is_over_filter(side) {
        true => pass_through(&BARRIER, side.clone()),
        false => side.clone(),
    });
    Ok(Transformed::yes(replace_children_if_necessary(plan, inputs.to_vec())?))
}

/// The projection over a barrier, below which a projection leaves the columns that it reads.
fn barred(projection: &ProjectionExec) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = projection.input().schema();
    let mut read: Vec<Column> = projection.expr().iter().flat_map(|item| collect_columns(&item.expr)).collect();
    read.sort_by_key(Column::index);
    read.dedup();
    if read.is_empty() || read.len() == schema.fields().len() {
        let input = pass_through(&BARRIER, projection.input().clone());
        return Ok(Arc::new(ProjectionExec::try_new(projection.expr().iter().cloned(), input)?));
    }
    let columns =
        read.iter().map(|column| ProjectionExpr { expr: Arc::new(column.clone()), alias: column.name().to_string() });
    let narrowed = ProjectionExec::try_new(columns, projection.input().clone())?;
    let moved = |expr: Arc<dyn PhysicalExpr>| match expr.downcast_ref::<Column>() {
        Some(column) => match read.iter().position(|other| other == column) {
            Some(place) => Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>)),
            None => Err(DataFusionError::Internal(format!("column {column} is not read"))),
        },
        None => Ok(Transformed::no(expr)),
    };
    let items = projection.expr().iter().map(|item| {
        let expr = item.expr.clone().transform_up(moved).data()?;
        Ok(ProjectionExpr { expr, alias: item.alias.clone() })
    });
    let items = items.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(items, pass_through(&BARRIER, Arc::new(narrowed)))?))
}

/// Whether a filter is below an operator, with nothing between that a projection does not pass.
fn is_over_filter(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    plan.is::<FilterExec>()
        || (plan.is::<UnionExec>() || children.len() == 1) && children.into_iter().any(is_over_filter)
}
