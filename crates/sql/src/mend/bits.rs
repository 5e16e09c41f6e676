//! `~x`: the integer of the type of `x` that has all bits turned, as in DuckDB. DataFusion 55.2 plans no such sign.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};

use crate::error::SqlError;
use crate::words::sql_name;

/// An integer with all bits turned: what is left of all bits set.
///
/// # Errors
/// [`SqlError::Planning`] for what is no integer.
pub(super) fn turned(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let data_type = expr.get_type(schema)?;
    let ones = match &data_type {
        DataType::Null => return turned(cast(expr, DataType::Int64), schema),
        DataType::UInt8 => ScalarValue::from(u8::MAX),
        DataType::UInt16 => ScalarValue::from(u16::MAX),
        DataType::UInt32 => ScalarValue::from(u32::MAX),
        DataType::UInt64 => ScalarValue::from(u64::MAX),
        // HUGEINT.
        DataType::Decimal128(_, 0) => ScalarValue::from(-1_i64),
        integer if integer.is_signed_integer() => ScalarValue::new_negative_one(integer)?,
        other => {
            let reason = format!("there is no ~ of {}; a CAST may be missing", sql_name(other));
            return Err(SqlError::Planning(reason).into());
        }
    };
    let ones = Box::new(Expr::Literal(ones, None));
    Ok(Expr::BinaryExpr(BinaryExpr::new(ones, Operator::Minus, Box::new(expr))))
}
