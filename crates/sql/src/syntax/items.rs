//! Select items of one name.
//!
//! SQL lets a result have several columns of one name; DataFusion 55.2 refuses such a projection. The items of a
//! statement's own select list that repeat a name are given one that is unique, with a mark that the result's schema is
//! cleared of. Below the top (subqueries, views, tables that are made) names stay what they are, but for those of the
//! second branch of a set operation and of later ones, which name nothing.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByKind, Query, SelectItem, SetExpr, SetQuantifier, Value, VisitorMut,
};

/// Stands between a name and its number; no name that is typed has it.
pub(super) const MARK: char = '\u{2063}';

/// The name of a result's column as it is shown.
pub(crate) fn shown_name(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// Whether the planner refused columns of one name.
pub(crate) fn is_about_repeated_names(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::Plan(text) => text.contains("require unique expression names"),
        DataFusionError::SchemaError(schema, _) => matches!(
            schema.as_ref(),
            SchemaError::DuplicateQualifiedField { .. }
                | SchemaError::DuplicateUnqualifiedField { .. }
                // A column with a table's name beside one without.
                | SchemaError::AmbiguousReference { .. }
        ),
        _ => false,
    }
}

/// The name that an item brings by itself: that of a column.
pub(super) fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(folded(name)),
        Expr::CompoundIdentifier(names) => names.last().map(folded),
        Expr::Nested(inner) => column_name(inner),
        _ => None,
    }
}

/// As the planner reads a name.
pub(super) fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// Makes the names of a statement's select list unique, and those of later branches of all set operations; gives
/// whether there was anything to do.
pub(crate) fn distinguish(parsed: &mut ParsedStatement) -> bool {
    let top = super::query_of(parsed).is_some_and(|query| {
        let ordered = ordered_by(query);
        distinguish_body(&mut query.body, &ordered)
    });
    let mut branches = LaterBranches { changed: false };
    let _ = super::visit(parsed, &mut branches);
    top || branches.changed
}

/// Makes the names in each later branch of set operations unique.
struct LaterBranches {
    changed: bool,
}

impl VisitorMut for LaterBranches {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.changed |= distinguish_later(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn distinguish_later(body: &mut SetExpr) -> bool {
    use SetQuantifier::{AllByName, ByName, DistinctByName};
    match body {
        SetExpr::SetOperation { set_quantifier: AllByName | ByName | DistinctByName, .. } => false,
        SetExpr::SetOperation { left, right, .. } => distinguish_later(left) | distinguish_body(right, &HashSet::new()),
        _ => false,
    }
}

/// Names that ORDER BY may take from the select list.
fn ordered_by(query: &Query) -> HashSet<String> {
    match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(exprs)) => exprs.iter().filter_map(|order| column_name(&order.expr)).collect(),
        _ => HashSet::new(),
    }
}

fn distinguish_body(body: &mut SetExpr, ordered: &HashSet<String>) -> bool {
    match body {
        SetExpr::Select(select) => distinguish_items(&mut select.projection, ordered),
        SetExpr::SetOperation { left, right, .. } => distinguish_body(left, ordered) | distinguish_body(right, ordered),
        SetExpr::Query(query) => distinguish_body(&mut query.body, ordered),
        _ => false,
    }
}

fn distinguish_items(items: &mut [SelectItem], ordered: &HashSet<String>) -> bool {
    let is_wildcard = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(_, _));
    // What a wildcard stands for is not known here: any name may repeat one of its.
    let any = items.iter().any(is_wildcard);
    let (mut seen, mut changed) = (HashSet::new(), false);
    for (number, item) in items.iter_mut().enumerate() {
        // ORDER BY finds a column whatever its item is called, and an alias by its name alone.
        let (name, is_needed) = match item {
            SelectItem::UnnamedExpr(expr) => (column_name(expr), false),
            SelectItem::ExprWithAlias { alias, .. } => (Some(folded(alias)), ordered.contains(&folded(alias))),
            _ => (None, false),
        };
        let Some(name) = name else { continue };
        let is_repeated = !seen.insert(name.clone());
        if !is_repeated && (!any || is_needed) {
            continue;
        }
        let alias = Ident::with_quote('"', format!("{name}{MARK}{number}"));
        let placeholder = SelectItem::UnnamedExpr(Expr::value(Value::Null));
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } =
            std::mem::replace(item, placeholder)
        {
            *item = SelectItem::ExprWithAlias { expr, alias };
            changed = true;
        }
    }
    changed
}
