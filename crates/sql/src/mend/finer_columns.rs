//! Columns of dates and timestamps beside columns of nanoseconds.
//!
//! DataFusion 55.2 casts the coarser one to nanoseconds, and a year that these do not hold raises: 9999. Here
//! comparisons are functions that read both in their own units, from before the optimiser computes such a cast once for
//! several of them, and keys of joins become those of the coarser unit on the CPU. On a device both are casts, and rows
//! that raise are left to the CPU.
//!
//! The file goes once DataFusion compares timestamps of two units without a cast.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Decimal128Array, Int64Array};
use arrow::compute::cast;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Int64Type, TimeUnit};
use arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, NullEquality, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, Join, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::{each_expression, each_node, each_value};
use crate::time_units::per_second;
use crate::walk::Walk;

const SECOND: i128 = per_second(TimeUnit::Nanosecond) as i128;
const DAY: i128 = 86_400 * SECOND;

/// The rule for comparisons, of the optimiser.
#[derive(Debug)]
pub(super) struct FinerColumns;

impl OptimizerRule for FinerColumns {
    fn name(&self) -> &str {
        "finer_columns"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let is_finer = |expr: &Expr| matches!(expr, Expr::Cast(cast) if is_nanoseconds(cast.field.data_type()));
        each_expression(plan, is_finer, |expr, schema| expr.transform_up(|expr| Ok(compared(expr, schema))))
    }
}

/// The final plan with keys of joins in the coarser of their units.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| match plan {
        LogicalPlan::Join(join) => in_keys(join),
        plan => Ok(Transformed::no(plan)),
    })
}

fn is_nanoseconds(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, _))
}

/// The nanoseconds of a tick of a type; none of other types than those of dates and timestamps.
fn tick(data_type: &DataType) -> Option<i128> {
    match data_type {
        DataType::Date32 => Some(DAY),
        DataType::Date64 => Some(SECOND / 1_000),
        DataType::Timestamp(unit, _) => Some(SECOND / i128::from(per_second(*unit))),
        _ => None,
    }
}

/// What a cast makes nanoseconds, without a step from one zone to another, or from none to one.
fn coarser<'a>(expr: &'a Expr, schema: &DFSchema) -> Option<&'a Expr> {
    let Expr::Cast(Cast { expr: operand, field }) = expr else { return None };
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = field.data_type() else { return None };
    let from = operand.get_type(schema).ok()?;
    let own_zone = match &from {
        DataType::Timestamp(_, own) => own.as_ref(),
        _ => None,
    };
    let is_coarser = tick(&from)? > 1 && own_zone.is_some() == zone.is_some();
    (is_coarser && !matches!(operand.as_ref(), Expr::Literal(..))).then_some(operand.as_ref())
}

fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else { return Transformed::no(expr) };
    let of = [coarser(left, schema), coarser(right, schema)];
    let (Some(_), Some(cast)) = (kernel(*op), left.get_type(schema).ok().filter(|_| of.iter().any(Option::is_some)))
    else {
        return Transformed::no(expr);
    };
    let is_cast = of.map(|side| side.is_some());
    let sides = vec![of[0].unwrap_or(left).clone(), of[1].unwrap_or(right).clone()];
    let compare = Compare { op: *op, cast, is_cast, signature: Signature::any(2, Volatility::Immutable) };
    Transformed::yes(ScalarUDF::new_from_impl(compare).call(sides))
}

/// The comparison that a call is, with its casts; none of another function.
pub(crate) fn as_comparison(call: &ScalarFunction) -> Option<Expr> {
    let compare = call.func.inner().downcast_ref::<Compare>()?;
    let [left, right] = call.args.as_slice() else { return None };
    let side = |expr: &Expr, is_cast: bool| {
        let expr = Box::new(expr.clone());
        if is_cast { Box::new(Expr::Cast(Cast::new(expr, compare.cast.clone()))) } else { expr }
    };
    let (left, right) = (side(left, compare.is_cast[0]), side(right, compare.is_cast[1]));
    Some(Expr::BinaryExpr(BinaryExpr::new(left, compare.op, right)))
}

/// Keys of a join in the coarser unit. A time between two of its ticks is NULL, which no key equals; where NULLs are
/// looked at, it is the least tick, which no calendar has.
fn in_keys(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let (left_schema, right_schema) = (join.left.schema().clone(), join.right.schema().clone());
    let has_nulls = join.null_equality != NullEquality::NullEqualsNothing || join.null_aware;
    let whole = |expr: &mut Expr, to: DataType| {
        let whole = Whole { to, has_nulls, signature: Signature::any(1, Volatility::Immutable) };
        *expr = ScalarUDF::new_from_impl(whole).call(vec![std::mem::take(expr)]);
    };
    let mut is_changed = false;
    for (left, right) in &mut join.on {
        match (coarser(left, &left_schema).cloned(), coarser(right, &right_schema).cloned()) {
            (Some(coarse), None) => {
                whole(right, coarse.get_type(&left_schema)?);
                *left = coarse;
            }
            (None, Some(coarse)) => {
                whole(left, coarse.get_type(&right_schema)?);
                *right = coarse;
            }
            _ => continue,
        }
        is_changed = true;
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), is_changed))
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> std::result::Result<BooleanArray, ArrowError>;

fn kernel(op: Operator) -> Option<Kernel> {
    Some(match op {
        Operator::Eq => cmp::eq,
        Operator::NotEq => cmp::neq,
        Operator::Lt => cmp::lt,
        Operator::LtEq => cmp::lt_eq,
        Operator::Gt => cmp::gt,
        Operator::GtEq => cmp::gt_eq,
        Operator::IsDistinctFrom => cmp::distinct,
        Operator::IsNotDistinctFrom => cmp::not_distinct,
        _ => return None,
    })
}

/// Times as nanoseconds of 128 bits.
fn nanoseconds(times: &ArrayRef) -> Result<Decimal128Array> {
    let tick = tick(times.data_type());
    let tick = tick.ok_or_else(|| DataFusionError::Internal(format!("a {} as a time", times.data_type())))?;
    let ticks = match times.data_type() {
        DataType::Date32 => cast(&cast(times, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(times, &DataType::Int64)?,
    };
    let nanoseconds: Decimal128Array = ticks.as_primitive::<Int64Type>().unary(|ticks| i128::from(ticks) * tick);
    Ok(nanoseconds.with_precision_and_scale(DECIMAL128_MAX_PRECISION, 0)?)
}

/// A comparison of times of two units; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Compare {
    op: Operator,
    /// The type that DataFusion casts to, and which sides it casts.
    cast: DataType,
    is_cast: [bool; 2],
    signature: Signature,
}

impl ScalarUDFImpl for Compare {
    fn name(&self) -> &str {
        "warpcube_compare_times"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kernel = kernel(self.op);
        let kernel = kernel.ok_or_else(|| DataFusionError::Internal(format!("{} of times", self.op)))?;
        let is_constant = arguments.args.iter().all(|side| matches!(side, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let sides = arguments.args.iter().map(|side| side.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let found: ArrayRef = Arc::new(match in_one_unit(&sides)? {
            Some([left, right]) => kernel(&left, &right)?,
            None => kernel(&nanoseconds(&sides[0])?, &nanoseconds(&sides[1])?)?,
        });
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)),
            false => Ok(ColumnarValue::Array(found)),
        }
    }
}

/// Two columns of timestamps in the finer of their units; none where that does not hold them all.
fn in_one_unit(sides: &[ArrayRef]) -> Result<Option<[ArrayRef; 2]>> {
    let [left, right] = sides else { return Ok(None) };
    let (DataType::Timestamp(one, _), DataType::Timestamp(other, _)) = (left.data_type(), right.data_type()) else {
        return Ok(None);
    };
    let finer = if per_second(*one) > per_second(*other) { left.data_type() } else { right.data_type() };
    let is_held = |from: &ArrayRef, to: &ArrayRef| from.null_count() == to.null_count();
    // What does not fit is NULL.
    let cast = [cast(left, finer)?, cast(right, finer)?];
    Ok((is_held(left, &cast[0]) && is_held(right, &cast[1])).then_some(cast))
}

/// Times that are whole ticks of a coarser type; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    to: DataType,
    /// Whether other times are the least tick, not NULL.
    has_nulls: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        "warpcube_whole_ticks"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each_value(&arguments.args[0], |times| {
            let tick = tick(&self.to).ok_or_else(|| DataFusionError::Internal(format!("ticks of {}", self.to)))?;
            let is_day = self.to == DataType::Date32;
            let least = if is_day { i64::from(i32::MIN) } else { i64::MIN };
            let of = |nanoseconds: i128| {
                let ticks = (nanoseconds % tick == 0).then_some(nanoseconds / tick);
                ticks.and_then(|ticks| i64::try_from(ticks).ok()).or(self.has_nulls.then_some(least))
            };
            let ticks = nanoseconds(times)?;
            let ticks = ticks.iter().map(|nanoseconds| of(nanoseconds?)).collect::<Int64Array>();
            let ticks: ArrayRef = Arc::new(ticks);
            let ticks = if is_day { cast(&ticks, &DataType::Int32)? } else { ticks };
            Ok(cast(&ticks, &self.to)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, TimestampMicrosecondArray, TimestampNanosecondArray};
    use arrow::datatypes::{Date32Type, Field, TimestampMicrosecondType};

    use super::*;

    #[test]
    fn times_between_two_ticks_are_none_of_them() {
        let times: ArrayRef =
            Arc::new(TimestampNanosecondArray::from(vec![Some(-1_000), Some(1), Some(i64::MIN), None, Some(0)]));
        let of = |to: DataType, has_nulls: bool| {
            let whole = Whole { to: to.clone(), has_nulls, signature: Signature::any(1, Volatility::Immutable) };
            let field = |data_type: DataType| Arc::new(Field::new("t", data_type, true));
            let arguments = ScalarFunctionArgs {
                args: vec![ColumnarValue::Array(times.clone())],
                arg_fields: vec![field(times.data_type().clone())],
                number_rows: times.len(),
                return_field: field(to),
                config_options: Arc::default(),
            };
            whole.invoke_with_args(arguments).unwrap().to_array(times.len()).unwrap()
        };
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let expected = TimestampMicrosecondArray::from(vec![Some(-1), None, None, None, Some(0)]);
        assert_eq!(of(micros.clone(), false).as_primitive::<TimestampMicrosecondType>(), &expected);
        let least = Some(i64::MIN);
        let expected = TimestampMicrosecondArray::from(vec![Some(-1), least, least, None, Some(0)]);
        assert_eq!(of(micros, true).as_primitive::<TimestampMicrosecondType>(), &expected);
        let expected = Date32Array::from(vec![None, None, None, None, Some(0)]);
        assert_eq!(of(DataType::Date32, false).as_primitive::<Date32Type>(), &expected);
    }
}
