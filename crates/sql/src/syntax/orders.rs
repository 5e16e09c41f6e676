//! `ORDER BY ALL`: by all columns, from left to right.
//!
//! DataFusion 55.2 sorts by select items that are columns alone, and a set operation not at all. Here the order is one
//! by the numbers of the columns. Where a select list has a wildcard, they are DataFusion's to find, and set operations
//! BY NAME are refused.

use datafusion::sql::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, SetQuantifier, Value,
};

use super::names::spreads;

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

/// Gives the columns of `ORDER BY ALL` by their numbers.
pub(super) fn by_number(query: &mut Query) {
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::All(options) = order_by.kind
        && let Some(columns) = column_count(&query.body)
    {
        let key = |number: usize| OrderByExpr {
            expr: Expr::value(Value::Number(number.to_string(), false)),
            options,
            with_fill: None,
        };
        order_by.kind = OrderByKind::Expressions((1..=columns).map(key).collect());
    }
}
