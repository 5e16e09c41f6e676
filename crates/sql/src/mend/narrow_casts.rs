//! Casts that lose digits stay on their columns.
//!
//! DataFusion 55.2 takes a cast from a column that is compared with a literal and casts the literal instead, in its
//! logical and its physical plans: `CAST(d AS INT) = 1` over decimals becomes `d = 1.00`, and drops 1.24. A TRY_CAST
//! that gives NULL for what does not fit becomes false. It leaves operands of 256 bits alone: here such a cast goes by
//! way of a decimal of 256 bits, which has all digits of its operand. Lowering passes over that step.
//!
//! The file goes once DataFusion takes away only casts that keep values apart.

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use super::conversion::Conversion;

/// Digits of the longest integer type.
const INTEGER_DIGITS: u8 = 20;

/// The widened operand of a cast that makes it narrower.
pub(super) fn widened(cast: &Conversion) -> Option<Expr> {
    let (from, to) = (&cast.from, cast.to);
    if matches!(cast.operand, Expr::Literal(..)) || !(to.is_integer() || to.is_decimal()) {
        return None;
    }
    let wide = match from {
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
            let scale = scale_of(from);
            let loses = cast.may_fail || scale > scale_of(to);
            loses.then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale))?
        }
        _ if cast.may_fail && from.is_integer() => DataType::Decimal256(INTEGER_DIGITS, 0),
        _ => return None,
    };
    Some(Expr::Cast(Cast::new(Box::new(cast.operand.clone()), wide)))
}

/// Digits behind the point.
fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => *scale,
        // Decimals of 256 bits take no literal.
        DataType::Decimal256(_, _) => i8::MAX,
        _ => 0,
    }
}

/// The operand of a widened cast; the operand of any other as it is.
pub(crate) fn operand<'a>(cast: &'a Cast, schema: &DFSchema) -> &'a Expr {
    match cast.expr.as_ref() {
        Expr::Cast(inner) => match (inner.expr.get_type(schema), inner.field.data_type()) {
            (Ok(DataType::Decimal128(_, of)), DataType::Decimal256(_, scale)) if of == *scale => &inner.expr,
            _ => &cast.expr,
        },
        other => other,
    }
}
