//! Averages of decimals are rounded at their last digit, halves away from zero, as in PostgreSQL.
//!
//! DataFusion 55.2 cuts the digits behind it off: `avg` of 1.00, 2.00 and 2.00 is 1.666666. Here an average is made of
//! the states of DataFusion's accumulators, a count and a sum, or the list of distinct values.
//!
//! The file goes once DataFusion's AVG rounds.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array, UInt64Array, new_empty_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, DecimalType, FieldRef, UInt64Type, i256};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, ExprSchemable, GroupsAccumulator, LogicalPlan,
    ReversedUDAF, Signature, WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_node;
use crate::error::SqlError;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

/// The rule that rounds averages, once types are coerced, of sessions that have no other mends.
#[derive(Debug)]
pub(super) struct RoundedAverages;

impl AnalyzerRule for RoundedAverages {
    fn name(&self) -> &str {
        "rounded_averages"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        mend(plan)
    }
}

/// The plan with rounded averages.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| {
        if !matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = plan.inputs()[0].schema().clone();
        let rounded = |function: &Arc<AggregateUDF>, args: &[Expr]| {
            let [argument] = args else { return None };
            let is_decimal = || {
                let data_type = argument.get_type(schema.as_ref());
                matches!(data_type, Ok(DataType::Decimal128(_, _) | DataType::Decimal256(_, _)))
            };
            let is_average = function.inner().is::<Avg>() && is_decimal();
            is_average.then(|| Arc::new(AggregateUDF::new_from_impl(RoundedAverage(function.clone()))))
        };
        plan.map_exprs(|expr| {
            expr.transform_up(|mut expr| {
                let found = match &mut expr {
                    Expr::AggregateFunction(call) => {
                        rounded(&call.func, &call.params.args).map(|function| call.func = function)
                    }
                    Expr::WindowFunction(call) => match &call.fun {
                        WindowFunctionDefinition::AggregateUDF(function) => rounded(function, &call.params.args)
                            .map(|function| call.fun = WindowFunctionDefinition::AggregateUDF(function)),
                        WindowFunctionDefinition::WindowUDF(_) => None,
                    },
                    _ => None,
                };
                Ok(Transformed::new_transformed(expr, found.is_some()))
            })
        })
    })
}

/// AVG of decimals; all but the last step is DataFusion's.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RoundedAverage(Arc<AggregateUDF>);

impl AggregateUDFImpl for RoundedAverage {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.0.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (result, is_distinct) = (arguments.return_type().clone(), arguments.is_distinct);
        let scale = scale_of(arguments.expr_fields[0].data_type())?;
        Ok(Box::new(One { states: self.0.accumulator(arguments)?, is_distinct, scale, result }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.0.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        self.0.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let result = arguments.return_type().clone();
        Ok(Box::new(Groups { states: self.0.create_groups_accumulator(arguments)?, result }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// The average of one group or frame.
#[derive(Debug)]
struct One {
    states: Box<dyn Accumulator>,
    /// Whether the state is a list of values.
    is_distinct: bool,
    /// Digits behind the point of values.
    scale: i8,
    result: DataType,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.states.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.states.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.states.supports_retract_batch()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.states.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.states.merge_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let states = self.states.state()?.iter().map(|state| state.to_array()).collect::<Result<Vec<_>>>()?;
        let (counts, sums): (ArrayRef, ArrayRef) = match states.as_slice() {
            [counts, sums] => (counts.clone(), sums.clone()),
            [values] if self.is_distinct => {
                let values = cast(&values.as_list::<i32>().value(0), &wide(self.scale))?;
                let (values, mut sum) = (values.as_primitive::<Decimal256Type>(), i256::ZERO);
                for value in values.iter().flatten() {
                    sum = sum.checked_add(value).ok_or_else(|| overflowed(&self.result))?;
                }
                let count = (values.len() - values.null_count()) as u64;
                let sums = Decimal256Array::from(vec![sum]).with_data_type(wide(self.scale));
                (Arc::new(UInt64Array::from(vec![count])), Arc::new(sums))
            }
            _ => return Err(DataFusionError::Internal("an average without a count and a sum".into())),
        };
        ScalarValue::try_from_array(&averages(&counts, &sums, &self.result)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.states.size()
    }
}

/// The averages of groups.
struct Groups {
    states: Box<dyn GroupsAccumulator>,
    result: DataType,
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.states.update_batch(values, groups, filter, total)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.states.merge_batch(states, groups, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        match self.states.state(emit_to)?.as_slice() {
            [counts, sums] => averages(counts, sums, &self.result),
            _ => Err(DataFusionError::Internal("averages without counts and sums".into())),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.states.state(emit_to)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.states.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.states.size()
    }
}

/// Averages of sums over counts; NULL where there is no value.
fn averages(counts: &ArrayRef, sums: &ArrayRef, result: &DataType) -> Result<ArrayRef> {
    if sums.is_empty() {
        return Ok(new_empty_array(result));
    }
    let power = scale_of(result)?.saturating_sub(scale_of(sums.data_type())?);
    let power = u32::try_from(power).ok().and_then(|power| 10_i128.checked_pow(power));
    let power = power.ok_or_else(|| DataFusionError::Internal("an average of fewer digits".into()))?;
    let sums = cast(sums, &wide(scale_of(sums.data_type())?))?;
    let (counts, sums) = (counts.as_primitive::<UInt64Type>(), sums.as_primitive::<Decimal256Type>());
    let (precision, scale) = match *result {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => (precision, scale),
        _ => return Err(DataFusionError::Internal(format!("an average of type {result}"))),
    };
    let average = |row: usize| {
        let count = if counts.is_valid(row) { counts.value(row) } else { 0 };
        if count == 0 || sums.is_null(row) {
            return Ok(None);
        }
        let average = quotient(sums.value(row), power, count);
        let average = average.filter(|value| Decimal256Type::is_valid_decimal_precision(*value, precision));
        average.map(Some).ok_or_else(|| overflowed(result))
    };
    let averages = (0..sums.len()).map(average);
    Ok(match result {
        DataType::Decimal128(_, _) => {
            let narrow = |average: Result<Option<i256>>| average.map(|average| average.and_then(i256::to_i128));
            let averages = averages.map(narrow).collect::<Result<Decimal128Array>>()?;
            Arc::new(averages.with_precision_and_scale(precision, scale)?)
        }
        _ => Arc::new(averages.collect::<Result<Decimal256Array>>()?.with_precision_and_scale(precision, scale)?),
    })
}

/// A sum times a power of ten over a count, rounded; none past 256 bits.
fn quotient(sum: i256, power: i128, count: u64) -> Option<i256> {
    let narrow = || {
        let (scaled, half) = (sum.to_i128()?.checked_mul(power)?, i128::from(count / 2));
        let moved = if scaled < 0 { scaled.checked_sub(half)? } else { scaled.checked_add(half)? };
        Some(i256::from_i128(moved / i128::from(count)))
    };
    narrow().or_else(|| {
        let (scaled, half) = (sum.checked_mul(i256::from_i128(power))?, i256::from_i128(i128::from(count / 2)));
        let moved = if scaled.is_negative() { scaled.checked_sub(half)? } else { scaled.checked_add(half)? };
        moved.checked_div(i256::from_i128(i128::from(count)))
    })
}

fn scale_of(data_type: &DataType) -> Result<i8> {
    match data_type {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => Ok(*scale),
        other => Err(DataFusionError::Internal(format!("an average of decimals of type {other}"))),
    }
}

fn wide(scale: i8) -> DataType {
    DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale)
}

fn overflowed(result: &DataType) -> DataFusionError {
    SqlError::Execution(format!("overflow: an average leaves {}", sql_name(result))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero() {
        let of = |sum: i128, power, count| quotient(i256::from_i128(sum), power, count).and_then(i256::to_i128);
        assert_eq!(of(500, 10_000, 3), Some(1_666_667));
        assert_eq!(of(-500, 10_000, 3), Some(-1_666_667));
        assert_eq!((of(1, 1, 2), of(-1, 1, 2), of(1, 1, 3), of(2, 1, 3)), (Some(1), Some(-1), Some(0), Some(1)));
        assert_eq!(of(i128::MAX, 1, 1), Some(i128::MAX));
        assert_eq!(of(i128::MAX, 10_000, 10_000), Some(i128::MAX));
    }
}
