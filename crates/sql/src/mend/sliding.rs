//! Sums, averages and moments of floats, and BOOL_AND and BOOL_OR, over frames that slide.
//!
//! DataFusion takes a value that leaves a frame from the sum by subtraction: after a NaN, an infinity or a value
//! beside which the others vanish, a sum never recovers. Here SUM and AVG add exactly, so that what remains is the
//! sum of the frame, rounded once; variances, covariances, correlations and regressions take nothing away: a frame is
//! two stacks of moments that are merged (two-stacks sliding-window aggregation: Tangwongsan, Hirzel and Schneider,
//! *Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time*, DEBS 2017).
//!
//! BOOL_AND and BOOL_OR take no value away in DataFusion, which refuses them then (55.2). They are the smallest and the
//! largest truth value of the frame.
//!
//! Unnecessary once DataFusion adds up the values of a frame whose sum it cannot mend by subtraction, and has sliding
//! accumulators of truth values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::bool_and_or::{BoolAnd, BoolOr};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::stddev::{Stddev, StddevPop};
use datafusion::functions_aggregate::variance::{VariancePopulation, VarianceSample};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, LogicalPlan, ReversedUDAF, Signature,
    WindowFunctionDefinition,
};

use super::each_node;
use super::float_sums::exact_float;
use super::moments::{Moments, Statistic};
use crate::walk::{PlanWalk, Walk};

/// The plan with sliding sums of floats that recover, and sliding aggregates of truth values.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut slides = false;
    plan.apply_nested(|plan| {
        slides |= matches!(plan, LogicalPlan::Window(_));
        Ok(if slides { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !slides {
        return Ok(plan);
    }
    each_node(plan, |plan| {
        let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
        let schema = window.input.schema().clone();
        let is_float = |arg: &Expr| arg.get_type(schema.as_ref()).is_ok_and(|data_type| data_type == DataType::Float64);
        plan.map_exprs(|expr| {
            expr.transform_up(|expr| {
                let Expr::WindowFunction(mut function) = expr else { return Ok(Transformed::no(expr)) };
                let params = &function.params;
                let slides = !params.window_frame.start_bound.is_unbounded();
                let sliding = match &function.fun {
                    WindowFunctionDefinition::AggregateUDF(own) if slides && params.args.iter().all(is_float) => {
                        exact_float(own).or_else(|| if params.distinct { None } else { Sliding::of_moments(own) })
                    }
                    WindowFunctionDefinition::AggregateUDF(own) if slides => Sliding::of_truths(own),
                    _ => None,
                };
                let is_new = sliding.is_some();
                if let Some(sliding) = sliding {
                    function.fun = WindowFunctionDefinition::AggregateUDF(sliding);
                }
                Ok(Transformed::new_transformed(Expr::WindowFunction(function), is_new))
            })
        })
    })
}

/// An aggregate with another sliding accumulator.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sliding {
    /// DataFusion's function.
    original: Arc<AggregateUDF>,
    by: By,
}

/// What a sliding accumulator computes its result from.
#[derive(Debug, PartialEq, Eq, Hash)]
enum By {
    /// Moments, from which nothing is taken away.
    Moments(Statistic),
    /// The smallest or the largest value, by this function.
    Extreme(Arc<AggregateUDF>),
}

impl Sliding {
    /// The function in place of BOOL_AND and BOOL_OR.
    fn of_truths(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
        let extreme = match function.inner() {
            inner if inner.is::<BoolAnd>() => min_udaf(),
            inner if inner.is::<BoolOr>() => max_udaf(),
            _ => return None,
        };
        let own = Sliding { original: function.clone(), by: By::Extreme(extreme) };
        Some(Arc::new(AggregateUDF::new_from_impl(own)))
    }

    /// The function in place of DataFusion's; none if it is no such statistic.
    fn of_moments(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
        let inner = function.inner();
        let statistic = match () {
            () if inner.is::<VarianceSample>() => Statistic::Variance { sample: true },
            () if inner.is::<VariancePopulation>() => Statistic::Variance { sample: false },
            () if inner.is::<Stddev>() => Statistic::Deviation { sample: true },
            () if inner.is::<StddevPop>() => Statistic::Deviation { sample: false },
            () => Statistic::of_pairs(function)?,
        };
        let own = Sliding { original: function.clone(), by: By::Moments(statistic) };
        Some(Arc::new(AggregateUDF::new_from_impl(own)))
    }
}

impl AggregateUDFImpl for Sliding {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.original.return_type(arguments)
    }

    fn is_nullable(&self) -> bool {
        self.original.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.original.default_value(data_type)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.original.accumulator(arguments)
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let statistic = match &self.by {
            By::Moments(statistic) => *statistic,
            By::Extreme(extreme) => return extreme.create_sliding_accumulator(arguments),
        };
        let (back, front) = (Moments::default(), Vec::new());
        Ok(Box::new(Frame { statistic, back, values: Vec::new(), front }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.original.state_fields(arguments)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.original.reverse_udf()
    }
}

/// The values of a frame, oldest first: those in `front`, then those in `back`.
#[derive(Debug)]
struct Frame {
    statistic: Statistic,
    /// The moments of the values that came since `front` was filled.
    back: Moments,
    /// These values.
    values: Vec<[f64; 2]>,
    /// The moments of the newest older value, of the two newest ones, and so on.
    front: Vec<Moments>,
}

/// The rows of one or two columns without a NULL, each as a pair.
fn pairs(columns: &[ArrayRef]) -> impl Iterator<Item = [f64; 2]> {
    let one = columns[0].as_primitive::<Float64Type>();
    let other = columns.last().unwrap_or(&columns[0]).as_primitive::<Float64Type>();
    (0..one.len())
        .filter(|row| one.is_valid(*row) && other.is_valid(*row))
        .map(|row| [one.value(row), other.value(row)])
}

impl Accumulator for Frame {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for pair in pairs(columns) {
            self.values.push(pair);
            self.back.add(pair);
        }
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for _ in pairs(columns) {
            if self.front.is_empty() {
                let mut moments = Moments::default();
                self.front.extend(self.values.drain(..).rev().map(|pair| {
                    moments.add(pair);
                    moments
                }));
                self.back = Moments::default();
            }
            self.front.pop();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let older = self.front.last().copied().unwrap_or_default();
        Ok(older.merge(&self.back).result(self.statistic))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(DataFusionError::Internal("a frame has no state to merge".into()))
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("a frame has no state to merge".into()))
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.values.capacity() * size_of::<[f64; 2]>()
            + self.front.capacity() * size_of::<Moments>()
    }
}
