//! Fields of structs behind a dot, and slices without a bound.
//!
//! DataFusion 55.2 refuses `{'a': 1}.a` and `l[2:]`. A field is a subscript, `{'a': 1}['a']`; a slice goes from the
//! first element and to the last one.
//!
//! The file goes once DataFusion plans them.

use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Subscript, UnaryOperator, Value};

use super::items::folded;

/// Writes fields behind a dot and open slices as subscripts.
pub(super) fn as_subscripts(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    // `t.c['a']` begins with the name of a column.
    let mut is_name = matches!(**root, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    for access in access_chain {
        is_name &= matches!(access, AccessExpr::Dot(_));
        match access {
            AccessExpr::Dot(Expr::Identifier(name)) if !is_name => {
                let index = Expr::value(Value::SingleQuotedString(folded(name)));
                *access = AccessExpr::Subscript(Subscript::Index { index });
            }
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                lower_bound.get_or_insert_with(one);
                upper_bound.get_or_insert_with(|| Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(one()) });
            }
            _ => {}
        }
    }
}

fn one() -> Expr {
    Expr::value(Value::Number("1".into(), false))
}
