//! Sums of integers, decimals, intervals and durations whose total leaves their type are errors.
//!
//! DataFusion 55.2 adds with wrapping, for averages of durations too. Under `warpcube.overflow = 'error'` SUM of
//! integers adds in 128 bits, SUM of decimals that might leave 128 bits in 256, and intervals and durations are added
//! part by part ([`super::spans`]), so that only a total can be too large, whatever the order of rows. The functions
//! have DataFusion's names and result types; their states are decimals wide enough.
//!
//! A rule of DataFusion's makes `count(DISTINCT x), sum(y)` a sum of sums by x, each of which could overflow although
//! the total does not: it is left out beside such a sum.
//!
//! The file goes once DataFusion's SUM fails on overflow.

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, DecimalType,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType, Field, FieldRef,
    Int64Type, TimeUnit, UInt64Type, i256,
};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, ExprSchemable, GroupsAccumulator, LogicalPlan,
    ReversedUDAF, Signature, WindowFunctionDefinition,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::arithmetic::{Computed, as_written, computed_before, is_checked, sql_text};
use super::distinct_sums::DistinctTotal;
use super::each_node;
use super::spans::Measure;
use crate::error::SqlError;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

/// Digits of decimals whose sums fit in 128 bits: 10^10 rows of them do.
const NARROW_PRECISION: u8 = DECIMAL128_MAX_PRECISION - 10;

/// The plan with checked sums.
pub(super) fn check(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
    if !is_checked(options) {
        return Ok(plan);
    }
    each_node(plan, |plan| {
        if !matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = plan.inputs()[0].schema().clone();
        let computed = computed_before(&plan)?;
        let type_of = |args: &[Expr]| match args {
            [argument] => argument.get_type(schema.as_ref()).ok(),
            _ => None,
        };
        let is_held = |function: &AggregateUDF, args: &[Expr], is_distinct: bool| {
            let held = |data_type: DataType| match function.inner().is::<Sum>() {
                true => may_overflow(&data_type),
                false => function.inner().is::<Avg>() && !is_distinct && matches!(data_type, DataType::Duration(_)),
            };
            type_of(args).is_some_and(held)
        };
        plan.map_exprs(|expr| {
            expr.transform_up(|expr| {
                Ok(match expr {
                    Expr::AggregateFunction(mut function)
                        if is_held(&function.func, &function.params.args, function.params.distinct) =>
                    {
                        let (args, is_distinct) = (&function.params.args, function.params.distinct);
                        function.func = checked(&function.func, args, is_distinct, &computed)?;
                        Transformed::yes(Expr::AggregateFunction(function))
                    }
                    Expr::WindowFunction(mut function) => {
                        let (args, is_distinct) = (&function.params.args, function.params.distinct);
                        let held = match &function.fun {
                            // DataFusion takes distinct values of BIGINT alone away from a sliding sum.
                            WindowFunctionDefinition::AggregateUDF(of) => {
                                let is_decimal = || type_of(args).is_some_and(|data_type| data_type.is_decimal());
                                let is_sum_of_decimals = is_distinct && of.inner().is::<Sum>() && is_decimal();
                                (is_held(of, args, is_distinct) || is_sum_of_decimals).then_some(of)
                            }
                            WindowFunctionDefinition::WindowUDF(_) => None,
                        };
                        let Some(of) = held else {
                            return Ok(Transformed::no(Expr::WindowFunction(function)));
                        };
                        function.fun =
                            WindowFunctionDefinition::AggregateUDF(checked(of, args, is_distinct, &computed)?);
                        Transformed::yes(Expr::WindowFunction(function))
                    }
                    other => Transformed::no(other),
                })
            })
        })
    })
}

/// Whether a call is a sum that is checked, over rows of a schema.
fn is_checked_sum(function: &AggregateFunction, schema: &DFSchema) -> bool {
    let [argument] = function.params.args.as_slice() else { return false };
    function.func.inner().is::<Sum>() && argument.get_type(schema).is_ok_and(|data_type| may_overflow(&data_type))
}

/// The rule for aggregates of one distinct value, not for sums that are checked.
pub(super) fn with_whole_sums(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Aggregate(aggregate) = &plan
        && is_checked(&config.options())
    {
        let schema = aggregate.input.schema();
        let is_held = |expr: &Expr| match expr {
            Expr::AggregateFunction(function) => {
                Ok(!function.params.distinct && is_checked_sum(function, schema.as_ref()))
            }
            _ => Ok(false),
        };
        if aggregate.aggr_expr.iter().map(|expr| expr.exists(is_held)).any(|held| held.unwrap_or(true)) {
            return Ok(Transformed::no(plan));
        }
    }
    rule.rewrite(plan, config)
}

/// Whether sums of a type are checked.
fn may_overflow(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal128(precision, _) => *precision > NARROW_PRECISION,
        other => other.is_integer() || is_span(other),
    }
}

/// Whether values of a type are added part by part ([`super::spans`]).
fn is_span(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

fn checked(
    original: &Arc<AggregateUDF>,
    args: &[Expr],
    is_distinct: bool,
    computed: &Computed,
) -> Result<Arc<AggregateUDF>> {
    let args = args.iter().map(|arg| Ok(sql_text(&as_written(arg, computed)?))).collect::<Result<Vec<String>>>()?;
    let name = original.name();
    let text = format!("{name}({}{})", if is_distinct { "DISTINCT " } else { "" }, args.join(", "));
    Ok(Arc::new(AggregateUDF::new_from_impl(CheckedSum { original: original.clone(), text })))
}

/// SUM, or AVG of durations, with an error in place of wrapping.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum {
    /// DataFusion's function, from which name, signature and types are taken.
    original: Arc<AggregateUDF>,
    /// The call as errors name it.
    text: String,
}

impl CheckedSum {
    /// What a total of spans is.
    fn measure(&self, result: DataType) -> Measure {
        Measure { name: self.text.clone(), result, is_average: self.original.inner().is::<Avg>() }
    }
}

/// The decimal that holds sums of a type.
fn state_type(result: &DataType) -> DataType {
    match result {
        DataType::Decimal128(_, scale) => DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale),
        _ => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
    }
}

impl AggregateUDFImpl for CheckedSum {
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
        let (result, name) = (arguments.return_field.data_type().clone(), self.text.clone());
        macro_rules! total {
            ($type:ty, $sum:ty) => {{
                let sum = Box::new(Total::<$type, $sum>::new(name, result.clone()));
                match arguments.is_distinct {
                    true => Box::new(DistinctTotal::<$type>::new(result, |value| i128::from(value) as u128, sum)),
                    false => sum,
                }
            }};
        }
        macro_rules! distinct_durations {
            ($type:ty) => {{
                let sum = self.measure(result.clone()).accumulator();
                Box::new(DistinctTotal::<$type>::new(result, |value| i128::from(value) as u128, sum))
            }};
        }
        Ok(match &result {
            DataType::Duration(unit) if arguments.is_distinct => match unit {
                TimeUnit::Second => distinct_durations!(DurationSecondType),
                TimeUnit::Millisecond => distinct_durations!(DurationMillisecondType),
                TimeUnit::Microsecond => distinct_durations!(DurationMicrosecondType),
                TimeUnit::Nanosecond => distinct_durations!(DurationNanosecondType),
            },
            span if is_span(span) && !arguments.is_distinct => self.measure(result).accumulator(),
            DataType::Int64 => total!(Int64Type, Decimal128Type),
            DataType::UInt64 => total!(UInt64Type, Decimal128Type),
            DataType::Decimal128(_, _) => total!(Decimal128Type, Decimal256Type),
            other => return Err(DataFusionError::Internal(format!("a checked sum of type {other}"))),
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if arguments.is_distinct {
            return self.original.state_fields(arguments);
        }
        if is_span(arguments.return_field.data_type()) {
            return Ok(Measure::state_fields(&arguments));
        }
        let name = format_state_name(arguments.name, "checked sum");
        Ok(vec![Arc::new(Field::new(name, state_type(arguments.return_field.data_type()), true))])
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        !arguments.is_distinct
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let (result, name) = (arguments.return_field.data_type().clone(), self.text.clone());
        Ok(match &result {
            span if is_span(span) => self.measure(result).groups_accumulator(),
            DataType::Int64 => Box::new(Totals::<Int64Type, Decimal128Type>::new(name, result)),
            DataType::UInt64 => Box::new(Totals::<UInt64Type, Decimal128Type>::new(name, result)),
            DataType::Decimal128(_, _) => Box::new(Totals::<Decimal128Type, Decimal256Type>::new(name, result)),
            other => return Err(DataFusionError::Internal(format!("a checked sum of type {other}"))),
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// A type of values, added up in a wider one.
trait Widened<S: DecimalType>: ArrowPrimitiveType + Debug {
    /// A value in the type of sums.
    fn widen(value: Self::Native) -> S::Native;
    /// A sum in the type of results, if it fits.
    fn narrow(sum: S::Native, result: &DataType) -> Option<Self::Native>;
    /// The sum of two sums; none past the widest type.
    fn plus(a: S::Native, b: S::Native) -> Option<S::Native>;
    /// Their difference.
    fn minus(a: S::Native, b: S::Native) -> Option<S::Native>;
}

macro_rules! widened_integer {
    ($type:ty, $native:ty) => {
        impl Widened<Decimal128Type> for $type {
            fn widen(value: $native) -> i128 {
                value.into()
            }

            fn narrow(sum: i128, _result: &DataType) -> Option<$native> {
                sum.try_into().ok()
            }

            fn plus(a: i128, b: i128) -> Option<i128> {
                a.checked_add(b)
            }

            fn minus(a: i128, b: i128) -> Option<i128> {
                a.checked_sub(b)
            }
        }
    };
}

widened_integer!(Int64Type, i64);
widened_integer!(UInt64Type, u64);

impl Widened<Decimal256Type> for Decimal128Type {
    fn widen(value: i128) -> i256 {
        i256::from_i128(value)
    }

    fn narrow(sum: i256, result: &DataType) -> Option<i128> {
        let DataType::Decimal128(precision, _) = result else { return None };
        let sum = sum.to_i128()?;
        (sum.unsigned_abs() < 10u128.pow((*precision).into())).then_some(sum)
    }

    fn plus(a: i256, b: i256) -> Option<i256> {
        a.checked_add(b)
    }

    fn minus(a: i256, b: i256) -> Option<i256> {
        a.checked_sub(b)
    }
}

/// The error of a total that does not fit.
fn overflowed(name: &str, total: impl fmt::Display, result: &DataType) -> DataFusionError {
    let hint = if result.is_integer() { "; sum a decimal instead, CAST(… AS DECIMAL(38, 0))" } else { "" };
    SqlError::Execution(format!("overflow: {name} is {total}, outside of {}{hint}", sql_name(result))).into()
}

/// What was added up, as text in an error.
fn shown<S: DecimalType>(sum: S::Native, result: &DataType) -> String {
    let scale = match result {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    };
    S::format_decimal(sum, S::MAX_PRECISION, scale)
}

/// One sum.
struct Total<I: Widened<S>, S: DecimalType + ArrowPrimitiveType> {
    sum: S::Native,
    /// Values in it; where states were merged, states.
    count: i64,
    name: String,
    result: DataType,
    of: PhantomData<fn(I)>,
}

impl<I: Widened<S>, S: DecimalType + ArrowPrimitiveType> Debug for Total<I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Total").field("sum", &self.sum).field("count", &self.count).finish_non_exhaustive()
    }
}

impl<I: Widened<S>, S: DecimalType + ArrowPrimitiveType> Total<I, S> {
    fn new(name: String, result: DataType) -> Self {
        Total { sum: S::default_value(), count: 0, name, result, of: PhantomData }
    }

    fn change(
        &mut self,
        values: impl Iterator<Item = S::Native>,
        by: fn(S::Native, S::Native) -> Option<S::Native>,
        count: i64,
    ) -> Result<()> {
        for value in values {
            let sum = by(self.sum, value);
            self.sum = sum.ok_or_else(|| overflowed(&self.name, "past all types", &self.result))?;
            self.count += count;
        }
        Ok(())
    }
}

impl<I: Widened<S>, S: DecimalType + ArrowPrimitiveType> Accumulator for Total<I, S>
where
    PrimitiveArray<S>: From<Vec<Option<S::Native>>>,
    PrimitiveArray<I>: From<Vec<Option<I::Native>>>,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(values[0].as_primitive::<I>().iter().flatten().map(I::widen), I::plus, 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(values[0].as_primitive::<I>().iter().flatten().map(I::widen), I::minus, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = PrimitiveArray::<S>::from(vec![(self.count > 0).then_some(self.sum)]);
        let state = state.with_data_type(state_type(&self.result));
        Ok(vec![ScalarValue::try_from_array(&state, 0)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.change(states[0].as_primitive::<S>().iter().flatten(), I::plus, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return ScalarValue::try_from(&self.result);
        }
        let total = I::narrow(self.sum, &self.result)
            .ok_or_else(|| overflowed(&self.name, shown::<S>(self.sum, &self.result), &self.result))?;
        let total = PrimitiveArray::<I>::from(vec![Some(total)]).with_data_type(self.result.clone());
        ScalarValue::try_from_array(&total, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.name.capacity()
    }
}

/// A sum for each group.
struct Totals<I: Widened<S>, S: DecimalType + ArrowPrimitiveType> {
    sums: Vec<S::Native>,
    /// Whether a group has a value.
    seen: Vec<bool>,
    name: String,
    result: DataType,
    of: PhantomData<fn(I)>,
}

impl<I: Widened<S>, S: DecimalType + ArrowPrimitiveType> Totals<I, S> {
    fn new(name: String, result: DataType) -> Self {
        Totals { sums: Vec::new(), seen: Vec::new(), name, result, of: PhantomData }
    }

    fn add(&mut self, group: usize, value: S::Native) -> Result<()> {
        let sum = I::plus(self.sums[group], value);
        self.sums[group] = sum.ok_or_else(|| overflowed(&self.name, "past all types", &self.result))?;
        self.seen[group] = true;
        Ok(())
    }

    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, S::default_value());
        self.seen.resize(groups, false);
    }

    fn take(&mut self, emit_to: EmitTo) -> impl Iterator<Item = Option<S::Native>> + use<I, S> {
        let (sums, seen) = (emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.seen));
        sums.into_iter().zip(seen).map(|(sum, seen)| seen.then_some(sum))
    }
}

impl<I: Widened<S>, S: DecimalType + ArrowPrimitiveType> GroupsAccumulator for Totals<I, S>
where
    PrimitiveArray<S>: From<Vec<Option<S::Native>>>,
    PrimitiveArray<I>: From<Vec<Option<I::Native>>>,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.resize(total);
        let values = values[0].as_primitive::<I>();
        if values.null_count() == 0 && filter.is_none() {
            for (value, &group) in values.values().iter().zip(groups) {
                self.add(group, I::widen(*value))?;
            }
            return Ok(());
        }
        for (row, &group) in groups.iter().enumerate() {
            let is_left_out = filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row));
            if values.is_valid(row) && !is_left_out {
                self.add(group, I::widen(values.value(row)))?;
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        let states = states[0].as_primitive::<S>();
        for (row, &group) in groups.iter().enumerate() {
            if states.is_valid(row) {
                self.add(group, states.value(row))?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (name, result) = (self.name.clone(), self.result.clone());
        let fitting = |sum: S::Native| {
            let total = I::narrow(sum, &result);
            total.ok_or_else(|| overflowed(&name, shown::<S>(sum, &result), &result))
        };
        let totals = self.take(emit_to).map(|sum| sum.map(fitting).transpose());
        let totals = PrimitiveArray::<I>::from(totals.collect::<Result<Vec<_>>>()?);
        Ok(Arc::new(totals.with_data_type(self.result.clone())))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums = PrimitiveArray::<S>::from(self.take(emit_to).collect::<Vec<_>>());
        Ok(vec![Arc::new(sums.with_data_type(state_type(&self.result)))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<I>();
        let widened = values.iter().enumerate().map(|(row, value)| {
            let is_left_out = filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row));
            value.filter(|_| !is_left_out).map(I::widen)
        });
        let sums = PrimitiveArray::<S>::from(widened.collect::<Vec<_>>());
        Ok(vec![Arc::new(sums.with_data_type(state_type(&self.result)))])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<S::Native>() + self.seen.capacity()
    }
}
