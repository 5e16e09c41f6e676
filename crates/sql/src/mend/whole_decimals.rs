//! `ceil` and `floor` of decimals have a digit more than their argument: `ceil(0.5)` is 1.
//!
//! DataFusion 55.2 gives them the argument's type, which has no room for 1 beside 0.5, or for 100 beside 99.5, and
//! raises. Here the argument has one digit more, as long as 38 do. The file goes once the functions have room.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, cast};

/// Digits of the widest decimal.
const DIGITS_MAX: u8 = 38;

/// What a call of such a function means; none if an expression is no such call, or has room.
pub(super) fn meaning(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return Ok(None) };
    let ("ceil" | "floor", [argument]) = (func.name(), args.as_slice()) else { return Ok(None) };
    let DataType::Decimal128(digits, scale @ 1..) = argument.get_type(schema)? else { return Ok(None) };
    // The plan of a view is analysed again.
    let has_room = match argument {
        Expr::Cast(Cast { expr, .. }) => {
            matches!(expr.get_type(schema)?, DataType::Decimal128(own, of) if own < digits && of == scale)
        }
        _ => false,
    };
    if has_room || digits == DIGITS_MAX {
        return Ok(None);
    }
    Ok(Some(func.call(vec![cast(argument.clone(), DataType::Decimal128(digits + 1, scale))])))
}
