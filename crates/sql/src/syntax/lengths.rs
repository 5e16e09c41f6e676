//! Lengths of VARCHAR.
//!
//! DataFusion 55.2 passes over them. As in PostgreSQL, a cast cuts a text to the length, and a column of a table in
//! memory takes no longer one: a CHECK keeps its length.
//!
//! The file goes once DataFusion has texts of a length.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CharacterLength, CheckConstraint, CreateTable, DataType, Expr, FunctionArg, FunctionArgExpr,
    TableConstraint, TypedString, Value,
};

use super::call;
use super::quotes::quoted;

/// Cuts what is cast to a VARCHAR with a length.
pub(super) fn cut(expr: &mut Expr) {
    let (Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. })) = expr else { return };
    let Some(length) = take_length(data_type) else { return };
    let text = std::mem::replace(expr, Expr::value(Value::Null));
    *expr = call("left", [text, number(length)].map(argument).into());
}

/// Gives the columns of a table that have lengths constraints in their place.
pub(super) fn constrain(table: &mut CreateTable) {
    for column in &mut table.columns {
        let Some(length) = take_length(&mut column.data_type) else { continue };
        let characters = call("character_length", vec![argument(Expr::Identifier(column.name.clone()))]);
        let expr =
            Expr::BinaryOp { left: Box::new(characters), op: BinaryOperator::LtEq, right: Box::new(number(length)) };
        let name = quoted(format!("{} VARCHAR({length})", column.name.value));
        let check = CheckConstraint { name: Some(name), expr: Box::new(expr), enforced: None };
        table.constraints.push(TableConstraint::Check(check));
    }
}

/// Takes the length from a type that is a VARCHAR in any spelling, which becomes the planner's.
fn take_length(data_type: &mut DataType) -> Option<u64> {
    let (DataType::Varchar(length) | DataType::CharacterVarying(length) | DataType::CharVarying(length)) = data_type
    else {
        return None;
    };
    let length = length.take();
    *data_type = DataType::Varchar(None);
    match length {
        Some(CharacterLength::IntegerLength { length, unit: _ }) => Some(length),
        Some(CharacterLength::Max) | None => None,
    }
}

fn number(length: u64) -> Expr {
    Expr::value(Value::Number(length.to_string(), false))
}

fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}
