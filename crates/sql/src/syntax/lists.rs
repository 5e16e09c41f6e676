//! `[a, b]` as `make_array(a, b)`.
//!
//! DataFusion 55.2 plans the items of a list in brackets without the columns of queries around, without the tables of
//! WITH and without the parameters of a lambda around; those of a call it plans with them.
//!
//! The file goes once it plans both alike, but for the options of `unnest`, which DuckDB has.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, VisitorMut,
};

use super::call;
use super::items::folded;
use crate::error::{Result, SqlError};

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

/// Makes one list of the lists that `unnest(l, recursive := true)` and `unnest(l, max_depth := 2)` spread.
///
/// # Errors
/// [`SqlError::Planning`] for other options.
pub(super) fn with_depth(function: &mut Function) -> Result<()> {
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(_)), options @ ..] = list.args.as_slice() else { return Ok(()) };
    let mut flattened = Vec::new();
    for option in options {
        let (FunctionArg::Named { name, arg: FunctionArgExpr::Expr(Expr::Value(value)), .. }
        | FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(Expr::Value(value)),
            ..
        }) = option
        else {
            return Ok(());
        };
        match (folded(name).as_str(), &value.value) {
            ("recursive", Value::Boolean(false)) => {}
            ("recursive", Value::Boolean(true)) => flattened.push("flatten_all"),
            ("max_depth", Value::Number(depth, _)) => match depth.parse::<usize>() {
                Ok(depth @ 1..=16) => flattened.extend(vec!["flatten"; depth - 1]),
                _ => return Err(SqlError::Planning("max_depth of unnest is a number from 1 to 16".into())),
            },
            _ => return Err(SqlError::Planning("unnest takes a list, recursive := true or max_depth := 2".into())),
        }
    }
    list.args.truncate(1);
    if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(spread))] = list.args.as_mut_slice() {
        for name in flattened {
            let inner = std::mem::replace(spread, Expr::value(Value::Null));
            *spread = call(name, vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))]);
        }
    }
    Ok(())
}
