//! Casts that are functions, and constants of bytes.
//!
//! `x::uuid` and `x::json` are functions that read texts ([`crate::extension_types`]), as TRY_CAST to such a type is
//! one. A constant that is cast to BYTEA may have PostgreSQL's form: `BYTEA '\xAABB'` is two bytes. Other texts are
//! read as BLOB has them ([`crate::text_bytes`]).

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, TypedString, Value, ValueWithSpan,
};

use super::call;
use super::dialect::parser_of;
use crate::error::{Result, SqlError};
use crate::extension_types::ExtensionType;
use crate::words::sql_name;

/// Reads casts to these types.
///
/// # Errors
/// [`SqlError::Execution`] for a constant with an escape that is none.
pub(super) fn as_functions(expr: &mut Expr) -> Result<()> {
    let (data_type, value, is_lenient) = match expr {
        Expr::Cast { kind, data_type, expr, array: false, format: None } => {
            let is_lenient = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
            (data_type.clone(), expr.as_mut(), is_lenient)
        }
        Expr::TypedString(TypedString { data_type, value, .. }) => {
            let ValueWithSpan { value, span } = value.clone();
            let data_type = data_type.clone();
            return match name(&data_type, false) {
                Some(name) => {
                    *expr = of_text(name, Expr::Value(value.with_span(span)));
                    Ok(())
                }
                None => match bytes(&data_type, &value)? {
                    Some(bytes) => {
                        *expr = Expr::value(bytes);
                        Ok(())
                    }
                    None => Ok(()),
                },
            };
        }
        _ => return Ok(()),
    };
    if let Some(name) = name(&data_type, is_lenient) {
        let value = std::mem::replace(value, Expr::value(Value::Null));
        *expr = of_text(name, value);
        return Ok(());
    }
    if let Expr::Value(constant) = value
        && !is_lenient
        && let Some(bytes) = bytes(&data_type, &constant.value)?
    {
        *expr = Expr::value(bytes);
    }
    Ok(())
}

/// The function that a cast to a type is; one that `is_lenient` gives NULL for what is no value of the type.
fn name(data_type: &DataType, is_lenient: bool) -> Option<&'static str> {
    match data_type {
        DataType::JSONB if !is_lenient => Some("json"),
        other => ExtensionType::of_sql(other).map(|to| if is_lenient { to.lenient_reader() } else { to.reader() }),
    }
}

fn of_text(name: &str, value: Expr) -> Expr {
    call(name, vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))])
}

/// The bytes of a constant in PostgreSQL's form, as digits; none of another constant.
fn bytes(data_type: &DataType, value: &Value) -> Result<Option<Value>> {
    let (DataType::Bytea, Value::SingleQuotedString(text)) = (data_type, value) else { return Ok(None) };
    let Some(digits) = text.strip_prefix("\\x") else { return Ok(None) };
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        let reason = format!("'{text}' has an escape that is none; bytes are \\x and two digits for each");
        return Err(SqlError::Execution(reason));
    }
    Ok(Some(Value::HexStringLiteral(digits.to_string())))
}

/// The name of a type as CAST takes it; none if it cannot be written.
pub(super) fn written_type(data_type: &arrow::datatypes::DataType) -> Option<String> {
    let name = sql_name(data_type);
    let parsed = parser_of(&name).and_then(|mut parser| parser.parse_data_type());
    parsed.is_ok().then_some(name)
}
