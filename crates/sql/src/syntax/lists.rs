//! `[a, b]` as `make_array(a, b)`.
//!
//! DataFusion 55.2 plans the items of a list in brackets without the columns of queries around, without the tables of
//! WITH and without the parameters of a lambda around; those of a call it plans with them.
//!
//! The file goes once it plans both alike.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, VisitorMut};

use super::call;

/// Makes calls of all lists whose items are not all constants.
pub(super) fn as_calls(parsed: &mut ParsedStatement) {
    struct Lists;
    impl VisitorMut for Lists {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            as_call(expr);
            ControlFlow::Continue(())
        }
    }
    let _ = super::visit(parsed, &mut Lists);
}

/// `[a, b]` as `make_array(a, b)`, unless all items are constants.
pub(super) fn as_call(list: &mut Expr) {
    if let Expr::Array(array) = list
        && array.elem.iter().any(|item| !matches!(item, Expr::Value(_)))
    {
        let items = std::mem::take(&mut array.elem).into_iter();
        let items = items.map(|item| FunctionArg::Unnamed(FunctionArgExpr::Expr(item)));
        *list = call("make_array", items.collect());
    }
}
