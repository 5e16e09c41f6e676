//! Fields of structs behind a dot, and slices without a bound.
//!
//! DataFusion 55.2 refuses `{'a': 1}.a` and `l[2:]`. A field is a subscript, `{'a': 1}['a']`; a slice goes from the
//! first element and to the last one. It takes an index for a field's name only where that is a text in plain quotes
//! ([`super::quotes`]).
//!
//! The file goes once DataFusion plans them.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, Subscript, UnaryOperator, Value,
};

use super::items::folded;
use super::methods::with_fields;
use super::{call, quotes};

/// Writes fields behind a dot and open slices as subscripts.
pub(super) fn as_subscripts(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    // `t.c['a']` begins with the name of a column.
    let mut is_name = matches!(**root, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    for access in access_chain.iter_mut() {
        is_name &= matches!(access, AccessExpr::Dot(_));
        match access {
            AccessExpr::Dot(Expr::Identifier(name)) if !is_name => {
                let index = Expr::value(quotes::text(folded(name)));
                *access = AccessExpr::Subscript(Subscript::Index { index });
            }
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                lower_bound.get_or_insert_with(one);
                upper_bound.get_or_insert_with(|| Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(one()) });
            }
            _ => {}
        }
    }
    let is_name =
        |index: &Expr| matches!(index, Expr::Value(value) if matches!(value.value, Value::EscapedStringLiteral(_)));
    let is_by_name =
        |access: &AccessExpr| matches!(access, AccessExpr::Subscript(Subscript::Index { index }) if is_name(index));
    if !access_chain.iter().any(is_by_name) {
        return;
    }
    let (mut object, mut behind) = (root.as_ref().clone(), Vec::new());
    for access in std::mem::take(access_chain) {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) if is_name(&index) => {
                let arguments = [with_fields(object, std::mem::take(&mut behind)), index];
                let arguments = arguments.map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
                object = call("get_field", arguments.into());
            }
            access => behind.push(access),
        }
    }
    *expr = with_fields(object, behind);
}

fn one() -> Expr {
    Expr::value(Value::Number("1".into(), false))
}
