//! Casts that names of keys tell.
//!
//! DataFusion 55.2 names keys of groups without their casts: `GROUP BY x::INT, x::DOUBLE` are two columns of one name
//! and are refused. Here each cast of a SELECT with such keys stands behind an operator, of which the planner makes a
//! call whose name has the cast (`mend/told_casts.rs`).
//!
//! The file goes once names tell casts.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value, visit_expressions_mut,
};

use super::signs::told;

/// Tells the casts of the SELECTs that a query consists of; queries within expressions are visited by themselves.
pub(super) fn tell(query: &mut Query) {
    if in_body(&mut query.body)
        && let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by
    {
        keys.iter_mut().for_each(|key| in_expr(&mut key.expr));
    }
}

/// Tells the casts of a body; whether ORDER BY behind it may have keys of groups.
fn in_body(body: &mut SetExpr) -> bool {
    match body {
        SetExpr::Select(select) if is_ambiguous(select) => {
            select.projection.iter_mut().for_each(|item| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => in_expr(expr),
                _ => {}
            });
            if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
                keys.iter_mut().for_each(in_expr);
            }
            select.having.iter_mut().chain(&mut select.qualify).for_each(in_expr);
            true
        }
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left);
            in_body(right);
            false
        }
        _ => false,
    }
}

/// Whether two keys of a SELECT differ in casts alone.
fn is_ambiguous(select: &Select) -> bool {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else { return false };
    let mut named: HashMap<String, String> = HashMap::new();
    keys.iter().flat_map(leaves).any(|key| {
        let key = item_of(key, &select.projection).unwrap_or(key);
        let text = key.to_string();
        named.insert(without_casts(key), text.clone()).is_some_and(|other| other != text)
    })
}

/// The expressions that a key, or a list of sets of keys, has.
fn leaves(key: &Expr) -> Vec<&Expr> {
    match key {
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => sets.iter().flatten().collect(),
        key => vec![key],
    }
}

/// The item of a select list that a key names, by its number or its alias.
fn item_of<'s>(key: &Expr, items: &'s [SelectItem]) -> Option<&'s Expr> {
    let number = match key {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<usize>().ok(),
            _ => None,
        },
        _ => None,
    };
    let is_named = |alias: &Ident| matches!(key, Expr::Identifier(name) if name.value == alias.value);
    let item = match number {
        Some(number) => items.get(number.checked_sub(1)?),
        None => items.iter().find(|item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if is_named(alias))),
    };
    match item? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The text of an expression without its casts, as DataFusion names it.
fn without_casts(expr: &Expr) -> String {
    let mut bare = expr.clone();
    let _: ControlFlow<()> = visit_expressions_mut(&mut bare, |expr| {
        while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = std::mem::replace(inner.as_mut(), Expr::value(Value::Null));
        }
        ControlFlow::Continue(())
    });
    bare.to_string()
}

fn in_expr(expr: &mut Expr) {
    let _: ControlFlow<()> = visit_expressions_mut(expr, |expr| {
        if matches!(expr, Expr::Cast { .. }) {
            *expr = told(expr);
        }
        ControlFlow::Continue(())
    });
}
