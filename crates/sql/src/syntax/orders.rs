//! `ORDER BY ALL`: by all columns, from left to right.
//!
//! DataFusion 55.2 sorts by select items that are columns alone, and a set operation not at all. Here the order is one
//! by the numbers of the columns; of wildcards, of unnest and of a set operation BY NAME the plan tells them
//! ([`super::expansions`]).
//!
//! `SELECT unnest(l) FROM t ORDER BY a`: DataFusion 55.2 does not find a key above `unnest` that is no item of its
//! SELECT. Here the SELECT is a table with the key as one more column, which the query around leaves out.

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderBy, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, SetQuantifier,
    TableFactor, TableWithJoins, Value,
};

use super::dialect::parser_of;
use super::items::{MARK, column_name, each_name, folded};
use super::names::spreads;
use super::quotes::quoted;

/// How many columns a query has; none where that is not known of its text.
pub(super) fn column_count(query: &SetExpr) -> Option<usize> {
    match query {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| match item {
                SelectItem::ExprWithAlias { .. } => true,
                SelectItem::UnnamedExpr(expr) => matches!(expr, Expr::CompoundIdentifier(_)) || !spreads(expr),
                _ => false,
            };
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::Query(query) => column_count(&query.body),
        SetExpr::SetOperation {
            set_quantifier: SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName,
            ..
        } => None,
        SetExpr::SetOperation { left, .. } => column_count(left),
        SetExpr::Values(values) => values.rows.first().map(|row| row.len()),
        _ => None,
    }
}

/// Whether the order is by all columns, and the text does not tell how many there are.
pub(super) fn is_of_unknown(query: &Query) -> bool {
    let is_all = query.order_by.as_ref().is_some_and(|order_by| matches!(order_by.kind, OrderByKind::All(_)));
    is_all && column_count(&query.body).is_none()
}

/// Makes columns of the keys of a SELECT with `unnest` that are no items of it.
pub(super) fn beside_unnest(query: &mut Query) {
    let (SetExpr::Select(select), Some(OrderBy { kind: OrderByKind::Expressions(keys), .. })) =
        (query.body.as_mut(), &mut query.order_by)
    else {
        return;
    };
    let unnests = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }
            if matches!(expr, Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("unnest")))
    };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if select.distinct.is_some() || is_grouped || !select.projection.iter().any(unnests) {
        return;
    }
    let is_item = |key: &Expr| {
        let is_it = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => expr == key || column_name(expr).is_some_and(|name| is_called(key, &name)),
            SelectItem::ExprWithAlias { expr, alias } => expr == key || is_called(key, &folded(alias)),
            _ => matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
        };
        matches!(key, Expr::Value(_)) || select.projection.iter().any(is_it)
    };
    // What a name of an item is part of is found among the columns of the items.
    let has_alias = |key: &Expr| {
        let mut found = false;
        each_name(&mut key.clone(), &mut |name| {
            let is_it = |item: &SelectItem| match item {
                SelectItem::ExprWithAlias { alias, .. } => is_called(name, &folded(alias)),
                _ => false,
            };
            found |= select.projection.iter().any(is_it);
        });
        found
    };
    let mut hidden = Vec::new();
    for key in keys.iter_mut().filter(|key| !is_item(&key.expr) && !has_alias(&key.expr)) {
        let alias = quoted(format!("{MARK}key{}", hidden.len()));
        let expr = std::mem::replace(&mut key.expr, Expr::Identifier(alias.clone()));
        hidden.push((alias, expr));
    }
    if hidden.is_empty() {
        return;
    }
    let names: Vec<String> = hidden.iter().map(|(name, _)| name.to_string()).collect();
    let around = format!("SELECT * EXCLUDE ({}) FROM (SELECT 1)", names.join(", "));
    let parsed = parser_of(&around).and_then(|mut parser| parser.parse_query());
    let Ok(mut around) = parsed else { return };
    select.projection.extend(hidden.into_iter().map(|(alias, expr)| SelectItem::ExprWithAlias { expr, alias }));
    if let SetExpr::Select(select) = around.body.as_mut()
        && let Some(TableWithJoins { relation: TableFactor::Derived { subquery, .. }, .. }) = select.from.first_mut()
    {
        std::mem::swap(&mut subquery.body, &mut query.body);
    }
    query.body = around.body;
}

/// Whether a key is the name alone.
fn is_called(key: &Expr, name: &str) -> bool {
    matches!(key, Expr::Identifier(key) if folded(key) == name)
}

/// Gives keys that are items of a SELECT DISTINCT by the numbers of these: DataFusion 55.2 does not find `s.a`, the
/// field of a struct, among them.
pub(super) fn of_distinct(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else { return };
    if select.distinct != Some(Distinct::Distinct) || column_count(&query.body).is_none() {
        return;
    }
    for key in keys {
        let is_it = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => *expr == key.expr,
            _ => false,
        };
        let is_computed = !matches!(key.expr, Expr::Identifier(_) | Expr::Value(_));
        if let (true, Some(place)) = (is_computed, select.projection.iter().position(is_it)) {
            key.expr = Expr::value(Value::Number((place + 1).to_string(), false));
        }
    }
}

/// The query without its order and its limits, and with names that tell its items apart, for its columns to be counted.
pub(super) fn to_be_counted(query: &Query) -> Query {
    let mut counted = Query { order_by: None, limit_clause: None, fetch: None, ..query.clone() };
    if let SetExpr::Select(select) = counted.body.as_mut() {
        for (place, item) in select.projection.iter_mut().enumerate() {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = &*item else { continue };
            if matches!(expr, Expr::CompoundIdentifier(_)) || !spreads(expr) {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(place.to_string()) };
            }
        }
    }
    counted
}

/// Gives the columns of `ORDER BY ALL` by their numbers.
pub(super) fn by_number(query: &mut Query) {
    if let Some(columns) = column_count(&query.body) {
        by_all(query, columns);
    }
}

/// Gives the columns of `ORDER BY ALL`, so many, by their numbers.
pub(super) fn by_all(query: &mut Query, columns: usize) {
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::All(options) = order_by.kind
    {
        let key = |number: usize| OrderByExpr {
            expr: Expr::value(Value::Number(number.to_string(), false)),
            options,
            with_fill: None,
        };
        order_by.kind = OrderByKind::Expressions((1..=columns).map(key).collect());
    }
}
