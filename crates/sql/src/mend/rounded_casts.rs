//! Decimals that become integers are rounded, halves away from zero, and floats, halves to the even number, as in
//! PostgreSQL and DuckDB.
//!
//! Arrow 59 cuts digits behind the point off in a cast to an integer, and rounds them in one to a decimal with fewer:
//! so a cast of a decimal goes by one without any, and that of a float by `round_even`.
//!
//! The file goes once Arrow rounds them.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use super::conversion::Conversion;
use crate::functions;

/// The operand of a cast to an integer as a number without digits behind the point.
pub(super) fn operand(cast: &Conversion) -> Option<Expr> {
    if !cast.to.is_integer() {
        return None;
    }
    let operand = cast.operand.clone();
    match &cast.from {
        from if from.is_floating() && is_whole(cast.operand) => None,
        DataType::Float64 => functions::rounded_even(operand),
        from if from.is_floating() => functions::rounded_even(cast.cast(operand, DataType::Float64)),
        from => Some(cast.cast(operand, whole(from)?)),
    }
}

/// Functions whose floats are whole numbers.
const WHOLE: [&str; 5] = ["ceil", "floor", "round", "round_even", "trunc"];

/// Whether a float has no digits behind the point.
fn is_whole(float: &Expr) -> bool {
    let Expr::ScalarFunction(call) = float else { return false };
    let is_plain = match call.args.get(1) {
        None => true,
        Some(Expr::Literal(digits, _)) => *digits == ScalarValue::Int64(Some(0)),
        Some(_) => false,
    };
    is_plain && WHOLE.contains(&call.name())
}

/// The type of a decimal's whole part, which rounding may give a digit more; none where there is nothing to round. Wide
/// decimals become narrow ones, which raise for what no integer holds: Arrow wraps them.
fn whole(data_type: &DataType) -> Option<DataType> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    let (Decimal32(precision, scale)
    | Decimal64(precision, scale)
    | Decimal128(precision, scale)
    | Decimal256(precision, scale)) = data_type
    else {
        return None;
    };
    let is_wide = matches!(data_type, Decimal256(..));
    let digits = i16::from(*precision) - i16::from(*scale) + 1;
    let digits = u8::try_from(digits.clamp(1, i16::from(DECIMAL128_MAX_PRECISION))).ok()?;
    (*scale > 0 || is_wide).then_some(Decimal128(digits, 0))
}
