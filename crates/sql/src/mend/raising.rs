//! What may raise for values of a row: one table for logical and for physical expressions.
//!
//! The table names what has a value for every row. All else may raise: a function that it does not name, a cast that
//! it does not name, arithmetic of times. Integers and decimals that overflow are functions by then
//! ([`super::arithmetic`]), and so raise.

use arrow::datatypes::{DataType, IntervalUnit, Schema};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::expressions as physical;

use super::arithmetic::limits;
use super::cast_functions::{BYTES_TEXT, FLOAT, INTEGER_BYTES, TRY_BYTES, TRY_DECIMAL, TRY_INTERVAL};
use super::unordered_casts::as_cast;
use crate::walk::Walk;

/// Functions that have a value for all arguments.
const TOTAL: &[&str] = &[
    "always",
    "array_has",
    "array_length",
    "arrow_typeof",
    "ascii",
    "bit_length",
    "btrim",
    "cardinality",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "contains",
    "current_date",
    "current_time",
    "date_part",
    "ends_with",
    "find_in_set",
    "get_field",
    "greatest",
    "initcap",
    "isnan",
    "iszero",
    "least",
    "left",
    "levenshtein",
    "lower",
    "ltrim",
    "make_array",
    "md5",
    "named_struct",
    "now",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "one_nan",
    "one_zero",
    "random",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "starts_with",
    "strpos",
    "struct",
    "to_hex",
    "translate",
    "upper",
    "uuid",
    "warpcube_compare_times",
    "warpcube_greatest_interval",
    "warpcube_in_list",
    "warpcube_interval_length",
    "warpcube_least_interval",
    "warpcube_whole_ticks",
];
/// Functions that have a value where what follows the first argument are texts and positive numbers, as literals.
const TOTAL_WITH_LITERALS: &[&str] = &[
    "array_element",
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "split_part",
    "substr",
    "substr_index",
];
/// Functions that have a value for all floats.
const TOTAL_OF_FLOATS: &[&str] = &[
    "abs", "atan", "atan2", "cbrt", "ceil", "cos", "degrees", "exp", "floor", "nanvl", "radians", "round", "signum",
    "sin", "tanh", "trunc",
];
/// Prefixes of names of functions that have a value for all arguments.
const TOTAL_FRONTS: &[&str] = &[TRY_DECIMAL, TRY_INTERVAL, FLOAT, TRY_BYTES, BYTES_TEXT, INTEGER_BYTES];

/// Whether an expression may raise.
pub(super) fn may_raise(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let data_type = |expr: &Expr| expr.get_type(schema).ok();
    expr.exists(|expr| {
        Ok(!match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                is_total_operator(*op, || data_type(left), || data_type(right), literal(right))
            }
            Expr::Cast(cast) => data_type(&cast.expr).is_some_and(|from| !is_partial(&from, cast.field.data_type())),
            Expr::ScalarFunction(function) => {
                let args = &function.args;
                is_total_call(
                    &function.func,
                    args.len(),
                    |place| data_type(&args[place]),
                    |place| literal(&args[place]),
                )
            }
            Expr::SimilarTo(similar) => literal(&similar.pattern).is_some(),
            Expr::HigherOrderFunction(_) => false,
            _ => true,
        })
    })
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// Whether a physical expression may raise.
pub(super) fn may_raise_physically(expr: &dyn PhysicalExpr, schema: &Schema) -> bool {
    let data_type = |expr: &dyn PhysicalExpr| expr.data_type(schema).ok();
    let is_total = || {
        if let Some(binary) = expr.downcast_ref::<physical::BinaryExpr>() {
            let (left, right) = (binary.left().as_ref(), binary.right().as_ref());
            return is_total_operator(*binary.op(), || data_type(left), || data_type(right), physical_literal(right));
        }
        if let Some(cast) = expr.downcast_ref::<physical::CastExpr>() {
            return data_type(cast.expr().as_ref()).is_some_and(|from| !is_partial(&from, cast.cast_type()));
        }
        if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
            let args = function.args();
            return is_total_call(
                function.fun(),
                args.len(),
                |place| data_type(args[place].as_ref()),
                |place| physical_literal(args[place].as_ref()),
            );
        }
        expr.is::<physical::Column>()
            || expr.is::<physical::Literal>()
            || expr.is::<physical::NotExpr>()
            || expr.is::<physical::NegativeExpr>()
            || expr.is::<physical::IsNullExpr>()
            || expr.is::<physical::IsNotNullExpr>()
            || expr.is::<physical::InListExpr>()
            || expr.is::<physical::LikeExpr>()
            || expr.is::<physical::CaseExpr>()
            || expr.is::<physical::TryCastExpr>()
    };
    !is_total() || expr.children().into_iter().any(|child| may_raise_physically(child.as_ref(), schema))
}

fn physical_literal(expr: &dyn PhysicalExpr) -> Option<&ScalarValue> {
    expr.downcast_ref::<physical::Literal>().map(physical::Literal::value)
}

/// Whether an operator has a value for all operands of these types; `literal` is the right one, if it is one.
fn is_total_operator(
    op: Operator,
    left: impl FnOnce() -> Option<DataType>,
    right: impl FnOnce() -> Option<DataType>,
    literal: Option<&ScalarValue>,
) -> bool {
    use Operator::*;
    let is_number = |data_type: Option<DataType>| data_type.is_some_and(|data_type| data_type.is_numeric());
    match op {
        And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom => true,
        LikeMatch | ILikeMatch | NotLikeMatch | NotILikeMatch | StringConcat => true,
        BitwiseAnd | BitwiseOr | BitwiseXor | BitwiseShiftLeft | BitwiseShiftRight => true,
        // A pattern that is no pattern is so for all rows.
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch => literal.is_some(),
        Plus | Minus | Multiply => is_number(left()) && is_number(right()),
        Divide | Modulo => {
            // The least integer has no quotient by −1.
            let divides = |value: &ScalarValue| {
                let is = |other: Result<ScalarValue>| other.is_ok_and(|other| other == *value);
                let data_type = value.data_type();
                !is(ScalarValue::new_zero(&data_type)) && !is(ScalarValue::new_negative_one(&data_type))
            };
            literal.is_some_and(divides) || left().is_some_and(|data_type| data_type.is_floating())
        }
        _ => false,
    }
}

/// Whether a call has a value for all arguments of these types and literals.
fn is_total_call<'a>(
    function: &ScalarUDF,
    arguments: usize,
    data_type: impl Fn(usize) -> Option<DataType>,
    literal: impl Fn(usize) -> Option<&'a ScalarValue>,
) -> bool {
    let name = function.name();
    if let Some((to, is_safe)) = as_cast(function) {
        return is_safe || data_type(0).is_some_and(|from| !is_partial(&from, to));
    }
    let is_float = |place| data_type(place).is_some_and(|data_type| data_type.is_floating());
    let is_positive = |value: &ScalarValue| {
        value.data_type().is_string() || ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| *value > zero)
    };
    TOTAL.contains(&name)
        || TOTAL_FRONTS.iter().any(|front| name.starts_with(front))
        || TOTAL_WITH_LITERALS.contains(&name) && (1..arguments).all(|place| literal(place).is_some_and(is_positive))
        || TOTAL_OF_FLOATS.contains(&name) && (0..arguments).all(|place| is_float(place) || literal(place).is_some())
}

/// Whether a cast has no result for some values.
pub(super) fn is_partial(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let whole_digits = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
    let is_text = |data_type: &DataType| matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
    match (from, to) {
        (Dictionary(_, from), to) => is_partial(from, to),
        (from, Dictionary(_, to)) => is_partial(from, to),
        (from, to) if from == to || from.is_null() => false,
        (from, to) if is_text(from) => !is_text(to) && !matches!(to, Binary | LargeBinary | BinaryView),
        // Bytes may be no text.
        (from, to) if is_text(to) => from.is_binary(),
        (from, to) if from.is_integer() && to.is_integer() => {
            let ((low, high), (least, most)) = (limits(from), limits(to));
            low < least || high > most
        }
        (Boolean, to) => !to.is_integer() && !to.is_floating(),
        (from, Boolean) => !from.is_numeric(),
        (from, to) if from.is_numeric() && to.is_integer() => true,
        (
            Decimal128(of, scale) | Decimal256(of, scale),
            Decimal128(precision, digits) | Decimal256(precision, digits),
        ) => whole_digits(*precision, *digits) < whole_digits(*of, *scale) + i16::from(digits < scale),
        (from, Decimal128(precision, digits) | Decimal256(precision, digits)) if from.is_integer() => {
            let (low, high) = limits(from);
            let most = 10i128.checked_pow(whole_digits(*precision, *digits).clamp(0, 39) as u32);
            most.is_some_and(|most| high >= most || low <= -most)
        }
        (from, to) if from.is_numeric() => !to.is_floating(),
        (Timestamp(unit, zone), Timestamp(coarser, of)) => zone.is_none() && of.is_some() || coarser > unit,
        (Timestamp(_, _), Date32) | (Date32, Date64) => false,
        (Timestamp(_, _) | Date64 | Time64(_) | Duration(_), Int64) | (Date32 | Time32(_), Int32 | Int64) => false,
        (Interval(unit), Interval(IntervalUnit::MonthDayNano)) => {
            !matches!(unit, IntervalUnit::YearMonth | IntervalUnit::DayTime)
        }
        (List(from) | LargeList(from), List(to) | LargeList(to)) => is_partial(from.data_type(), to.data_type()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, TimeUnit};
    use datafusion::functions::expr_fn::{abs, substring, to_date, upper};
    use datafusion::logical_expr::execution_props::ExecutionProps;
    use datafusion::logical_expr::{cast, col, lit, try_cast};
    use datafusion::physical_expr::create_physical_expr;

    use super::*;

    #[test]
    fn what_is_not_known_may_raise_in_plans_of_both_kinds() -> Result<()> {
        let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let columns = [("s", DataType::Utf8), ("i", DataType::Int64), ("f", DataType::Float64), ("t", time.clone())];
        let schema = Schema::new(columns.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec());
        let named = DFSchema::try_from(schema.clone())?;
        for (expr, expected) in [
            (upper(col("s")), false),
            (substring(col("s"), lit(1i64), lit(2i64)), false),
            (substring(col("s"), lit(1i64), col("i")), true),
            (to_date(vec![col("s")]), true),
            (abs(col("f")), false),
            (abs(col("i")), true),
            (col("i") / lit(2i64), false),
            (col("i") / lit(0i64), true),
            (col("i") / lit(-1i64), true),
            (col("i") % col("i"), true),
            (col("f") / col("f"), false),
            (col("i") + lit(1i64), false),
            (col("t") - col("t"), true),
            (cast(col("s"), DataType::Int32), true),
            (try_cast(col("s"), DataType::Int32), false),
            (col("s").like(lit("a%")).and(upper(col("s")).eq(lit("A"))), false),
        ] {
            assert_eq!(may_raise(&expr, &named)?, expected, "{expr}");
            let physical = create_physical_expr(&expr, &named, &ExecutionProps::new(), &Default::default())?;
            assert_eq!(may_raise_physically(physical.as_ref(), &schema), expected, "{physical}");
        }
        Ok(())
    }

    #[test]
    fn casts_that_lose_values_are_partial() {
        use DataType::*;
        let coded = |values| Dictionary(Box::new(Int32), Box::new(values));
        let instant = || Some(Arc::from("UTC"));
        for (from, to, expected) in [
            (Int32, Int64, false),
            (Int64, Int32, true),
            (UInt8, Int8, true),
            (Utf8View, Int32, true),
            (Utf8View, Utf8, false),
            (Utf8, Interval(IntervalUnit::MonthDayNano), true),
            (coded(Utf8), Int32, true),
            (coded(Utf8), Utf8View, false),
            (Utf8, coded(Utf8), false),
            (Binary, Utf8, true),
            (Int32, Float64, false),
            (Float64, Int64, true),
            (Float64, Float32, false),
            (Int32, Decimal128(10, 0), false),
            (Int32, Decimal128(11, 2), true),
            (Decimal128(10, 2), Decimal128(11, 2), false),
            (Decimal128(10, 2), Decimal128(10, 1), false),
            (Decimal128(10, 2), Decimal128(9, 1), true),
            (Decimal128(10, 2), Int64, true),
            (Float64, Decimal128(38, 0), true),
            (Timestamp(TimeUnit::Nanosecond, None), Timestamp(TimeUnit::Second, None), false),
            (Timestamp(TimeUnit::Second, None), Timestamp(TimeUnit::Nanosecond, None), true),
            (Timestamp(TimeUnit::Second, None), Timestamp(TimeUnit::Second, instant()), true),
            (Timestamp(TimeUnit::Second, instant()), Date32, false),
            (Timestamp(TimeUnit::Second, None), Int64, false),
            (Date32, Timestamp(TimeUnit::Nanosecond, None), true),
        ] {
            assert_eq!(is_partial(&from, &to), expected, "{from} to {to}");
        }
    }
}
