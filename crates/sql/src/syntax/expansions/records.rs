//! `SELECT t FROM t`, `to_json(t)`: the name of a table in place of a column is its whole row, a struct of its columns,
//! as in PostgreSQL and DuckDB.
//!
//! A column of that name comes first, and so does an alias of the select list. Joins by USING leave a row whole.
//! ORDER BY a row is by its columns, from left to right.

use std::collections::{HashMap, HashSet};

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    DictionaryField, Expr, GroupByExpr, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor, TableWithJoins, With,
};

use super::super::items::{each_name, folded};
use super::super::relations::{self, name_of};
use super::{columns_of, quoted};

/// Whether a SELECT names a table of its FROM in place of a column.
pub(super) fn are_in(select: &Select) -> bool {
    let tables = tables_of(select);
    if tables.is_empty() {
        return false;
    }
    let mut found = false;
    // The visit changes nothing.
    in_expressions(&mut select.clone(), &mut |name| found |= called(name).is_some_and(|name| tables.contains(&name)));
    found
}

/// Whether a query is ordered by the name of a table of its FROM.
pub(super) fn order(query: &Query) -> bool {
    let (SetExpr::Select(select), Some(OrderBy { kind: OrderByKind::Expressions(keys), .. })) =
        (query.body.as_ref(), &query.order_by)
    else {
        return false;
    };
    let names: Vec<String> = keys.iter().filter_map(|key| called(&key.expr)).collect();
    !names.is_empty() && names.iter().any(|name| tables_of(select).contains(name))
}

/// Orders a query by the columns of a table in the place of its name; `names` are those of all columns of FROM.
pub(super) async fn spread_order(state: &SessionState, query: &mut Query, names: &HashSet<String>, scopes: &[With]) {
    let (SetExpr::Select(select), Some(OrderBy { kind: OrderByKind::Expressions(keys), .. })) =
        (query.body.as_ref(), &mut query.order_by)
    else {
        return;
    };
    let tables = tables_of(select);
    let mut spread = Vec::new();
    for key in std::mem::take(keys) {
        let table = called(&key.expr).filter(|name| tables.contains(name) && !names.contains(name));
        match columns_of_row(state, select, table.as_deref(), scopes).await {
            Some(columns) => spread.extend(columns.into_iter().map(|(_, expr)| OrderByExpr { expr, ..key.clone() })),
            None => spread.push(key),
        }
    }
    *keys = spread;
}

/// The columns of a table of FROM, by their names; none where they are not known.
async fn columns_of_row(
    state: &SessionState,
    select: &Select,
    table: Option<&str>,
    scopes: &[With],
) -> Option<Vec<(String, Expr)>> {
    let table = table?;
    let alone = vec![TableWithJoins { relation: factor_of(select, table)?, joins: Vec::new() }];
    // A table that reads columns of those before it has none that are known here.
    let columns = columns_of(state, alone, scopes).await.ok()?;
    let of_table = |name: &str| Expr::CompoundIdentifier(vec![quoted(table), quoted(name)]);
    Some(columns.into_iter().map(|column| (column.name.clone(), of_table(&column.name))).collect())
}

/// Puts structs of columns in the place of tables' names; `names` are those of all columns of FROM.
pub(super) async fn write_out(state: &SessionState, select: &mut Select, names: &HashSet<String>, scopes: &[With]) {
    let mut rows = HashMap::new();
    for table in tables_of(select).difference(names) {
        let Some(columns) = columns_of_row(state, select, Some(table), scopes).await else { continue };
        let field = |(name, value): (String, Expr)| DictionaryField { key: quoted(&name), value: Box::new(value) };
        rows.insert(table.clone(), Expr::Dictionary(columns.into_iter().map(field).collect()));
    }
    let row_of = |expr: &Expr| called(expr).and_then(|name| Some((rows.get(&name)?.clone(), name)));
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some((row, name)) = row_of(expr)
        {
            *item = SelectItem::ExprWithAlias { expr: row, alias: quoted(&name) };
        }
    }
    in_expressions(select, &mut |expr| {
        if let Some((row, _)) = row_of(expr) {
            *expr = row;
        }
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

/// Shows each name in the expressions of a SELECT.
fn in_expressions(select: &mut Select, found: &mut dyn FnMut(&mut Expr)) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            each_name(expr, found);
        }
    }
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        each_name(&mut join.join_operator, found);
    }
    let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
    conditions.into_iter().flatten().for_each(|condition| each_name(condition, found));
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        keys.iter_mut().for_each(|key| each_name(key, found));
    }
}
