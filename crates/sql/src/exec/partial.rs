//! Partial aggregates: a device's share of an aggregation that DataFusion finishes over several devices or machines.
//!
//! A device operator in partial mode gives, for each group, the group's keys and the *state* of each aggregate, with
//! the names, types and order of [`AggregateExec`] in mode `Partial`, so that one in mode `Final` or
//! `FinalPartitioned` over any number of such operators gives the answer:
//!
//! | aggregate | state |
//! |---|---|
//! | COUNT | the count |
//! | SUM, MIN, MAX, BOOL_AND, BOOL_OR | the value, NULL where nothing went in |
//! | AVG | count, sum, both NULL where nothing went in |
//! | VAR, STDDEV of floats | count, mean, sum of squared deviations from the mean |
//! | VAR, STDDEV of integers and decimals | count, sum, sum of squares |
//! | exact SUM of floats, exact AVG | the accumulator's bytes; count, the accumulator's bytes |
//!
//! Schema and final step ([`super::split`]) are taken from the plan that DataFusion makes of the same aggregation,
//! which also is what runs where the device has to give up.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::compute::{cast, is_null, nullif};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_planner::DefaultPhysicalPlanner;

use super::finish::float_deviations;
use crate::lower::Finish;
use crate::mend::FinestSets;
use crate::shared;

/// Rules that do away with partial aggregations, or aggregate by other keys.
const RULES_LEFT_OUT: [&str; 3] = ["aggregate_statistics", "CombinePartialFinalAggregate", FinestSets::NAME];

/// DataFusion's partial aggregation of a plan, in one partition: what the CPU runs in the device's place.
pub(crate) async fn partial_plan(original: &LogicalPlan, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
    let rules = state.physical_optimizers().iter().filter(|rule| !RULES_LEFT_OUT.contains(&rule.name())).cloned();
    let rules = rules.collect();
    let state = SessionStateBuilder::new_from_existing(state.clone()).with_physical_optimizer_rules(rules).build();
    let mut plan = shared::physical(DefaultPhysicalPlanner::default(), original, &state).await?.query;
    loop {
        match plan.downcast_ref::<AggregateExec>() {
            Some(aggregate) if *aggregate.mode() == AggregateMode::Partial => break,
            _ => {}
        }
        let [child] = plan.children()[..] else {
            let found = plan.name();
            return Err(DataFusionError::NotImplemented(format!(
                "partial aggregates of a plan with {found} in place of an aggregation in two steps; run it as a whole"
            )));
        };
        plan = child.clone();
    }
    Ok(Arc::new(CoalescePartitionsExec::new(plan)))
}

/// The partial aggregation of a [`partial_plan`].
pub(super) fn partial_of(plan: &Arc<dyn ExecutionPlan>) -> Result<&AggregateExec> {
    let partial = plan.children().first().and_then(|child| child.downcast_ref::<AggregateExec>());
    partial.ok_or_else(|| DataFusionError::Internal("a partial plan without its aggregation".into()))
}

/// The states of a fragment's batch, groups and then aggregates, in the columns of `schema`.
pub(crate) fn states(batch: &RecordBatch, steps: &[Finish], schema: &SchemaRef) -> Result<RecordBatch> {
    let groups = steps.iter().filter(|step| matches!(step, Finish::Group(_))).count();
    let aggregate = |index: usize| batch.column(groups + index).clone();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for step in steps {
        match step {
            Finish::Group(index) => columns.push(batch.column(*index).clone()),
            Finish::Aggregate(index) => columns.push(aggregate(*index)),
            Finish::Average { sum, count } | Finish::DecimalAverage { sum, count, .. } => {
                // Where nothing went in, both are NULL.
                let sum = aggregate(*sum);
                columns.extend([nullif(&aggregate(*count), &is_null(&sum)?)?, sum]);
            }
            Finish::Between { .. } | Finish::Pairs { .. } => {
                return Err(DataFusionError::Internal("a state of an order statistic, or of pairs".into()));
            }
            // Where nothing went in, the sums are 0: the device leaves them NULL.
            Finish::Variance { sum, squares, count, .. } => {
                columns.extend([aggregate(*count), or_zero(&aggregate(*sum)), or_zero(&aggregate(*squares))]);
            }
            Finish::FloatVariance { sum, squares, count, extremes: (low, high), .. } => {
                let counts = aggregate(*count);
                let doubles = [*sum, *squares, *low, *high].map(aggregate);
                let doubles = doubles.each_ref().map(|column| column.as_primitive::<Float64Type>());
                let moments = |row: usize, count: i64| {
                    let deviations = float_deviations(doubles.map(|values| values.value(row)), count);
                    let deviations = deviations.map_err(|error| DataFusionError::External(Box::new(error)))?;
                    Ok((doubles[0].value(row) / count as f64, deviations))
                };
                columns.extend(moments_of(&counts, moments)?);
            }
        }
    }
    if columns.len() != schema.fields().len() {
        let (found, expected) = (columns.len(), schema.fields().len());
        return Err(DataFusionError::Internal(format!("{found} columns of states, expected {expected}: {schema}")));
    }
    for (column, field) in columns.iter_mut().zip(schema.fields()) {
        if column.data_type() != field.data_type() {
            *column = cast(column, field.data_type())?;
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// A sum of integers of 128 bits, 0 where there is none.
fn or_zero(sums: &ArrayRef) -> ArrayRef {
    let sums = sums.as_primitive::<Decimal128Type>();
    let values = sums.iter().map(|sum| sum.unwrap_or(0));
    Arc::new(Decimal128Array::from_iter_values(values).with_data_type(DataType::Decimal128(38, 0)))
}

/// Counts, means and sums of squared deviations; the last two are zero where there is no value.
fn moments_of(counts: &ArrayRef, moments: impl Fn(usize, i64) -> Result<(f64, f64)>) -> Result<[ArrayRef; 3]> {
    let values = counts.as_primitive::<Int64Type>().values().iter().enumerate();
    let of = |(row, count): (usize, &i64)| if *count == 0 { Ok((0.0, 0.0)) } else { moments(row, *count) };
    let (means, deviations): (Vec<f64>, Vec<f64>) = values.map(of).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let doubles = |values| Arc::new(Float64Array::from(values)) as ArrayRef;
    Ok([cast(counts, &DataType::UInt64)?, doubles(means), doubles(deviations)])
}
