//! Exact, repeatable SUM and AVG of floats on the CPU, under `warpcube.float_sums = 'exact'`.
//!
//! DataFusion's sums of doubles depend on the order of rows, and so on the number of partitions. Here they are replaced
//! in the final plan by functions of the same names over [`FloatSum`], whose result is the exact sum rounded once; the
//! device's exact sums end in the same accumulator, so that both places give the same bits. An average is that sum
//! divided by the count. Aggregates and window functions are replaced, also those of distinct values; whatever else
//! adds floats (VAR, STDDEV, CORR and the like) stays DataFusion's, and off the device.
//!
//! Frames that slide are added up exactly under every setting (`crates/sql/src/mend/sliding.rs`).

use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, LogicalPlan, ReversedUDAF, Signature,
    WindowFunctionDefinition,
};
use warpcube_engine::FloatSum;

use super::DistinctTotal;
use crate::walk::{PlanWalk, Walk};

/// The plan with exact sums and averages of floats.
pub(crate) fn make_exact(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let exact = plan.clone().transform_up_nested(|plan| {
        if !matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = plan.inputs()[0].schema().clone();
        let is_float = |args: &[Expr]| match args {
            [argument] => argument.get_type(schema.as_ref()).is_ok_and(|data_type| data_type == DataType::Float64),
            _ => false,
        };
        plan.map_exprs(|expr| {
            expr.transform_up(|expr| {
                Ok(match expr {
                    Expr::AggregateFunction(mut function) if is_float(&function.params.args) => {
                        match ExactFloat::of(&function.func) {
                            Some(exact) => {
                                function.func = exact;
                                Transformed::yes(Expr::AggregateFunction(function))
                            }
                            None => Transformed::no(Expr::AggregateFunction(function)),
                        }
                    }
                    Expr::WindowFunction(mut function) if is_float(&function.params.args) => {
                        let exact = match &function.fun {
                            WindowFunctionDefinition::AggregateUDF(function) => ExactFloat::of(function),
                            WindowFunctionDefinition::WindowUDF(_) => None,
                        };
                        let is_new = exact.is_some();
                        if let Some(exact) = exact {
                            function.fun = WindowFunctionDefinition::AggregateUDF(exact);
                        }
                        Transformed::new_transformed(Expr::WindowFunction(function), is_new)
                    }
                    other => Transformed::no(other),
                })
            })
        })
    })?;
    Ok(exact.data)
}

/// The exact function in place of DataFusion's sum or average, of doubles; none if it is something else.
pub(crate) fn exact_float(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    ExactFloat::of(function)
}

/// Whether a function is an exact sum or average of floats.
pub(crate) fn is_exact(function: &AggregateUDF) -> bool {
    function.inner().is::<ExactFloat>()
}

/// SUM or AVG of doubles by an exact sum.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactFloat {
    /// DataFusion's function, from which name and signature are taken.
    original: Arc<AggregateUDF>,
    is_average: bool,
}

impl ExactFloat {
    /// The exact function in place of DataFusion's; `None` if it is no sum or average.
    fn of(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
        let is_average = function.inner().is::<Avg>();
        (is_average || function.inner().is::<Sum>())
            .then(|| Arc::new(AggregateUDF::new_from_impl(ExactFloat { original: function.clone(), is_average })))
    }
}

impl AggregateUDFImpl for ExactFloat {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn aliases(&self) -> &[String] {
        self.original.aliases()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.original.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let exact = Box::new(ExactAccumulator { sum: FloatSum::new(), count: 0, is_average: self.is_average });
        Ok(match arguments.is_distinct {
            true => Box::new(DistinctTotal::<Float64Type>::new(DataType::Float64, key, exact)),
            false => exact,
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if arguments.is_distinct {
            return self.original.state_fields(arguments);
        }
        let field = |name, data_type| Arc::new(Field::new(format_state_name(arguments.name, name), data_type, true));
        let sum = field("exact sum", DataType::Binary);
        Ok(if self.is_average { vec![field("count", DataType::UInt64), sum] } else { vec![sum] })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// A key that both zeros share.
fn key(value: f64) -> u128 {
    (value + 0.0).to_bits().into()
}

/// The result from an exact sum.
fn result(sum: &FloatSum, count: i64, is_average: bool) -> ScalarValue {
    let value = (count > 0).then(|| if is_average { sum.value() / count as f64 } else { sum.value() });
    ScalarValue::Float64(value)
}

#[derive(Debug)]
struct ExactAccumulator {
    sum: FloatSum,
    /// Values; where states of sums were merged, zero if there were none.
    count: i64,
    is_average: bool,
}

impl Accumulator for ExactAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        self.sum.extend(values.iter().flatten());
        self.count += (values.len() - values.null_count()) as i64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        values.iter().flatten().for_each(|value| self.sum.subtract(value));
        self.count -= (values.len() - values.null_count()) as i64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Binary((self.count > 0).then(|| self.sum.to_bytes()));
        Ok(if self.is_average { vec![ScalarValue::UInt64(Some(self.count as u64)), sum] } else { vec![sum] })
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (counts, sums) = match states {
            [counts, sums] => (Some(counts.as_primitive::<UInt64Type>()), sums.as_binary::<i32>()),
            _ => (None, states[0].as_binary::<i32>()),
        };
        for (row, sum) in sums.iter().enumerate() {
            let Some(sum) = sum else { continue };
            let sum = FloatSum::from_bytes(sum);
            self.sum.merge(&sum.ok_or_else(|| DataFusionError::Internal("the state of an exact sum is torn".into()))?);
            // Of a sum it only matters that there was a value.
            self.count += counts.map_or(1, |counts| counts.value(row) as i64);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(result(&self.sum, self.count, self.is_average))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.heap_bytes()
    }
}
