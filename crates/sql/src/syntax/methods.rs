//! `'abc'.upper()`, `name.upper().reverse()`: a function behind a dot has what stands before it as its first argument,
//! as in DuckDB; one behind the name of a schema is the function itself, as in PostgreSQL (`pg_catalog.upper('x')`).
//!
//! DataFusion 55.2 knows functions by one name, and has none of schemas.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, VisitorMut,
};

use super::items::folded;
use super::relations::parts;

/// Schemas whose functions are those that there are.
const SCHEMAS: [&str; 5] = ["pg_catalog", "information_schema", "public", "main", "system"];

/// Writes methods as calls; `is_function` says of a name with a schema whether it is that of a function.
pub(super) fn as_calls(parsed: &mut ParsedStatement, is_function: &dyn Fn(&ObjectName) -> bool) {
    struct Methods<'a>(&'a dyn Fn(&ObjectName) -> bool);
    impl VisitorMut for Methods<'_> {
        type Break = ();
        // The functions of a chain are visited as its arguments.
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if !(self.0)(&function.name) => of_name(function),
                Expr::CompoundFieldAccess { .. } => in_chain(expr),
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let _ = super::visit(parsed, &mut Methods(is_function));
}

/// Makes an argument of what stands before the name of a function.
fn of_name(function: &mut Function) {
    let Some(mut names) = parts(&function.name).filter(|names| names.len() > 1) else { return };
    let Some(name) = names.pop() else { return };
    match names.as_slice() {
        [schema] if SCHEMAS.contains(&folded(schema).as_str()) => function.name = ObjectName::from(vec![name]),
        _ if takes_arguments(function) => {
            let object = match names.len() {
                1 => Expr::Identifier(names.remove(0)),
                _ => Expr::CompoundIdentifier(names),
            };
            make_call(function, name, object);
        }
        _ => {}
    }
}

/// Makes calls of the functions in a chain of fields.
fn in_chain(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    if !access_chain.iter().any(|access| method(access).is_some()) {
        return;
    }
    let mut object = root.as_ref().clone();
    let mut behind = Vec::new();
    for access in std::mem::take(access_chain) {
        let Some((function, mut names)) = method(&access) else {
            behind.push(access);
            continue;
        };
        let (mut function, Some(name)) = (function.clone(), names.pop()) else { return };
        behind.extend(names.into_iter().map(|name| AccessExpr::Dot(Expr::Identifier(name))));
        make_call(&mut function, name, with_fields(object, std::mem::take(&mut behind)));
        object = Expr::Function(function);
    }
    *expr = with_fields(object, behind);
}

/// The function behind a dot, with its name and those of fields before it.
fn method(access: &AccessExpr) -> Option<(&Function, Vec<Ident>)> {
    match access {
        AccessExpr::Dot(Expr::Function(function)) if takes_arguments(function) => {
            Some((function, parts(&function.name)?))
        }
        _ => None,
    }
}

/// An expression with fields behind it.
pub(super) fn with_fields(root: Expr, access_chain: Vec<AccessExpr>) -> Expr {
    match access_chain.is_empty() {
        true => root,
        false => Expr::CompoundFieldAccess { root: Box::new(root), access_chain },
    }
}

fn takes_arguments(function: &Function) -> bool {
    matches!(function.args, FunctionArguments::List(_))
}

fn make_call(function: &mut Function, name: Ident, object: Expr) {
    function.name = ObjectName::from(vec![name]);
    if let FunctionArguments::List(list) = &mut function.args {
        list.args.insert(0, FunctionArg::Unnamed(FunctionArgExpr::Expr(object)));
    }
}
