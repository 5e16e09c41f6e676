//! Functions in FROM.
//!
//! - `FROM generate_series(1, 3) g` has a column `g`, `FROM range(3)` a column `range` and `FROM unnest(l)` a column
//!   `unnest`, as in PostgreSQL and DuckDB. DataFusion 55.2 calls them `value` and by the text of the call: the name is
//!   given to those that a query calls by it.
//! - `unnest([t.a, t.b])` reads columns of tables before it. DataFusion plans the items of a list in brackets without
//!   the columns around, those of `make_array(t.a, t.b)` with them.
//!
//! The file goes once DataFusion names columns so, and plans such items.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, VisitorMut,
};

use super::items::folded;
use super::relations::parts;
use super::{call, visits};

/// The column of a series.
const VALUE: &str = "value";

/// Names columns of functions in a query's own FROM by which it calls them.
pub(super) fn name_columns(query: &mut Query) {
    let mut names = HashSet::new();
    each(&mut query.body, &mut |factor| names.extend(name_of(factor).as_ref().map(folded)));
    if names.is_empty() {
        return;
    }
    let mut called = Called::default();
    let _ = visits::visit_mut(query, &mut called);
    let is_called = |name: &String| called.columns.contains(name) && !called.values_of.contains(name);
    each(&mut query.body, &mut |factor| {
        let Some(name) = name_of(factor).filter(|name| is_called(&folded(name))) else { return };
        if let TableFactor::Table { alias, .. } | TableFactor::UNNEST { alias, .. } = factor {
            let columns = vec![TableAliasColumnDef { name: name.clone(), data_type: None }];
            *alias = Some(TableAlias { explicit: true, name, columns, at: None });
        }
    });
}

/// The name of the only column of a function's table that has no other.
fn name_of(factor: &TableFactor) -> Option<Ident> {
    let (function, alias) = match factor {
        TableFactor::Table { name, args: Some(_), alias, .. } => {
            let function = parts(name)?.pop()?;
            let is_series = ["range", "generate_series"].contains(&folded(&function).as_str());
            (is_series.then_some(function)?, alias)
        }
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality: false, .. } => {
            let is_one = array_exprs.len() == 1;
            (is_one.then(|| Ident::new("unnest"))?, alias)
        }
        _ => return None,
    };
    match alias {
        Some(alias) if alias.columns.is_empty() => Some(alias.name.clone()),
        Some(_) => None,
        None => Some(function),
    }
}

/// Shows each table of a body's own SELECTs.
fn each(body: &mut SetExpr, found: &mut dyn FnMut(&mut TableFactor)) {
    match body {
        SetExpr::Select(select) => select.from.iter_mut().for_each(|tables| {
            found(&mut tables.relation);
            tables.joins.iter_mut().for_each(|join| found(&mut join.relation));
        }),
        SetExpr::SetOperation { left, right, .. } => {
            each(left, found);
            each(right, found);
        }
        _ => {}
    }
}

/// The names that a query calls columns by.
#[derive(Default)]
struct Called {
    /// Those without a table.
    columns: HashSet<String>,
    /// Tables whose column `value` is called.
    values_of: HashSet<String>,
}

impl VisitorMut for Called {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => _ = self.columns.insert(folded(name)),
            Expr::CompoundIdentifier(names) => {
                if let [table, column] = names.as_slice()
                    && folded(column) == VALUE
                {
                    self.values_of.insert(folded(table));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Makes calls of lists in brackets that a table unnests.
pub(super) fn with_columns_around(factor: &mut TableFactor) {
    if let TableFactor::UNNEST { array_exprs, .. } = factor {
        array_exprs.iter_mut().for_each(as_call);
    }
}

/// Makes calls of lists in brackets that `unnest` of a select list is given.
pub(super) fn of_arguments(function: &mut Function) {
    if !function.name.to_string().eq_ignore_ascii_case("unnest") {
        return;
    }
    if let FunctionArguments::List(list) = &mut function.args {
        for argument in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                as_call(expr);
            }
        }
    }
}

/// `[a, b]` as `make_array(a, b)`, unless all items are constants.
fn as_call(list: &mut Expr) {
    if let Expr::Array(array) = list
        && array.elem.iter().any(|item| !matches!(item, Expr::Value(_)))
    {
        let items = std::mem::take(&mut array.elem).into_iter();
        let items = items.map(|item| FunctionArg::Unnamed(FunctionArgExpr::Expr(item)));
        *list = call("make_array", items.collect());
    }
}
