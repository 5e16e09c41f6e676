//! `SELECT t FROM t`, `to_json(t)`: the name of a table in place of a column is its whole row, a struct of its columns,
//! as in PostgreSQL and DuckDB.
//!
//! A column of that name comes first, and so does an alias of the select list. Joins by USING leave a row whole.

use std::collections::{HashMap, HashSet};

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    DictionaryField, Expr, GroupByExpr, Select, SelectItem, TableFactor, TableWithJoins, With,
};

use super::super::items::{each_name, folded};
use super::super::relations::{self, name_of};
use super::{Column, columns_of, quoted};

/// Whether a SELECT names a table of its FROM in place of a column.
pub(super) fn are_in(select: &Select) -> bool {
    let tables = tables_of(select);
    if tables.is_empty() {
        return false;
    }
    let mut found = false;
    // The visit changes nothing.
    each_expr(&mut select.clone(), &mut |expr| {
        each_name(expr, &mut |name| found |= called(name).is_some_and(|name| tables.contains(&name)));
    });
    found
}

/// Puts structs of columns in the place of tables' names; `names` are those of all columns of FROM.
pub(super) async fn write_out(state: &SessionState, select: &mut Select, names: &HashSet<String>, scopes: &[With]) {
    let mut rows = HashMap::new();
    for table in tables_of(select).difference(names) {
        let Some(factor) = factor_of(select, table) else { continue };
        let alone = vec![TableWithJoins { relation: factor, joins: Vec::new() }];
        // A table that reads columns of those before it has none that are known here.
        let Ok(columns) = columns_of(state, alone, scopes).await else { continue };
        let field = |column: &Column| DictionaryField {
            key: quoted(&column.name),
            value: Box::new(Expr::CompoundIdentifier(vec![quoted(table), quoted(&column.name)])),
        };
        rows.insert(table.clone(), Expr::Dictionary(columns.iter().map(field).collect()));
    }
    let row_of = |expr: &Expr| called(expr).and_then(|name| Some((rows.get(&name)?.clone(), name)));
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some((row, name)) = row_of(expr)
        {
            *item = SelectItem::ExprWithAlias { expr: row, alias: quoted(&name) };
        }
    }
    each_expr(select, &mut |expr| {
        each_name(expr, &mut |expr| {
            if let Some((row, _)) = row_of(expr) {
                *expr = row;
            }
        });
    });
}

/// The table of FROM that has the name.
fn factor_of(select: &Select, table: &str) -> Option<TableFactor> {
    let mut found = None;
    for from in &select.from {
        relations::each_factor(from, &mut |factor| {
            if name_of(factor).and_then(|names| names.last().map(folded)).is_some_and(|name| name == table) {
                found = Some(factor.clone());
            }
        });
    }
    found
}

fn called(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(folded(name)),
        _ => None,
    }
}

/// The names of tables, subqueries and views of FROM that no alias of the select list has. Functions in FROM have a
/// column of their name.
fn tables_of(select: &Select) -> HashSet<String> {
    let mut tables = HashSet::new();
    for from in &select.from {
        in_tables(from, &mut tables);
    }
    for item in &select.projection {
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            tables.remove(&folded(alias));
        }
    }
    tables
}

fn in_tables(from: &TableWithJoins, tables: &mut HashSet<String>) {
    relations::each_factor(from, &mut |factor| {
        if matches!(factor, TableFactor::Table { args: None, .. } | TableFactor::Derived { .. }) {
            tables.extend(name_of(factor).and_then(|names| names.last().map(folded)));
        }
    });
}

fn each_expr(select: &mut Select, with: &mut impl FnMut(&mut Expr)) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            with(expr);
        }
    }
    let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
    conditions.into_iter().flatten().for_each(&mut *with);
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        keys.iter_mut().for_each(with);
    }
}
