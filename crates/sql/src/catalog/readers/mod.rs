//! `read_csv('a.csv', delim = ';')` and its like: files as a table, by DuckDB's names and options.
//!
//! A call in FROM becomes the name of a table, which is the text of the call ([`crate::syntax`]), and a name that is a
//! call is opened as `FROM 'a.csv'` is: paths, formats, sniffing and columns on the device are those of
//! [`super::files`].
//! What a listing table does not do is a projection over one listing, or a union of projections ([`open`]).

mod open;
mod options;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, UnaryOperator, Value,
};

use crate::error::{Result, SqlError};
use crate::syntax::{parser_of, read_by};
pub(super) use open::open;
pub(super) use options::{NULL_TEXTS, Reading};

/// What a call says, where the name of a table is one.
///
/// # Errors
/// An option that is not known, not done or has a value of another kind.
pub(super) fn called(name: &str) -> Result<Option<Reading>> {
    let call = name.strip_suffix(')').and_then(|call| call.split_once('('));
    let Some((function, file_type)) = call.and_then(|(function, _)| Some((function, read_by(function)?))) else {
        return Ok(None);
    };
    let parsed = parser_of(name).and_then(|mut parser| parser.parse_expr());
    let Ok(Expr::Function(call)) = parsed else { return Ok(None) };
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    Reading::of_call(function, file_type, &list.args).map(Some)
}

/// A constant of a call.
#[derive(Debug, Clone, PartialEq)]
enum Constant {
    Text(String),
    Bool(bool),
    Number(String),
    List(Vec<Constant>),
    Struct(Vec<(String, Constant)>),
}

impl Constant {
    /// The value of an expression that is a constant.
    fn of(expr: &Expr) -> Option<Constant> {
        Some(match expr {
            Expr::Nested(inner) => return Constant::of(inner),
            Expr::Value(value) => match &value.value {
                Value::Boolean(value) => Constant::Bool(*value),
                Value::Number(digits, _) => Constant::Number(digits.clone()),
                other => Constant::Text(other.clone().into_string()?),
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match Constant::of(expr)? {
                Constant::Number(digits) => Constant::Number(format!("-{digits}")),
                _ => return None,
            },
            Expr::Array(array) => Constant::List(array.elem.iter().map(Constant::of).collect::<Option<_>>()?),
            Expr::Dictionary(fields) => {
                let field = |key: &Ident, value: &Expr| Some((key.value.clone(), Constant::of(value)?));
                Constant::Struct(fields.iter().map(|it| field(&it.key, &it.value)).collect::<Option<_>>()?)
            }
            // A word, as DuckDB takes it for a text.
            Expr::Identifier(word) => Constant::Text(word.value.clone()),
            _ => return None,
        })
    }
}

/// An argument of a call: its name in lower case, if it has one, and its value.
fn argument(function: &str, argument: &FunctionArg) -> Result<(Option<String>, Constant)> {
    let (name, expr) = match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), operator: _ } => (Some(name), expr),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, op: BinaryOperator::Eq, right })) => {
            match left.as_ref() {
                Expr::Identifier(name) => (Some(name), right.as_ref()),
                other => return Err(SqlError::Planning(format!("{function}(): '{other}' is no name of an option"))),
            }
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
        other => return Err(SqlError::Planning(format!("{function}() does not take {other}"))),
    };
    let value = Constant::of(expr).ok_or_else(|| {
        SqlError::Planning(format!("{function}() takes constants, not {expr}; a path is a text or a list of texts"))
    })?;
    Ok((name.map(|name| name.value.to_lowercase()), value))
}
