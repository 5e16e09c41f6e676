//! `ORDER BY ALL`: by all columns, from left to right.
//!
//! DataFusion 55.2 sorts by select items that are columns alone, and a set operation not at all. Here the order is one
//! by the numbers of the columns. Where a select list has a wildcard, they are DataFusion's to find; of a set
//! operation BY NAME or of wildcards the plan tells them ([`super::expansions`]).

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, OrderBy, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, SetQuantifier, Value,
};

use super::names::spreads;

/// How many columns a query has; none where that is not known of its text.
fn column_count(query: &SetExpr) -> Option<usize> {
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

/// Whether the order is by all columns of more than a SELECT, and the text does not tell them.
pub(super) fn is_of_unknown(query: &Query) -> bool {
    let is_all = query.order_by.as_ref().is_some_and(|order_by| matches!(order_by.kind, OrderByKind::All(_)));
    is_all && !matches!(*query.body, SetExpr::Select(_)) && column_count(&query.body).is_none()
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
