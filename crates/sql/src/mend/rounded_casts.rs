//! Decimals that become integers are rounded, halves away from zero, as in PostgreSQL.
//!
//! Arrow 59 cuts digits behind the point off in a cast to an integer, and rounds them in one to a decimal with fewer:
//! so a cast to an integer goes by a decimal without any.
//!
//! The file goes once Arrow rounds them.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::logical_expr::Expr;

use super::conversion::Conversion;

/// The operand of a cast to an integer as a decimal without digits behind the point.
pub(super) fn operand(cast: &Conversion) -> Option<Expr> {
    let whole = whole(&cast.from).filter(|_| cast.to.is_integer())?;
    Some(cast.cast(cast.operand.clone(), whole))
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
