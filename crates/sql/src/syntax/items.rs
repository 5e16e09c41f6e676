//! Select items of one name.
//!
//! SQL lets a result have several columns of one name; DataFusion 55.2 refuses such a projection. The items of a
//! statement's own select list that repeat a name are given one that is unique, with a mark that the result's schema
//! is cleared of. So are those of the second branch of a set operation and of later ones, which name nothing, and all
//! items of one name in a subquery, which nothing can name. Tables and views that are made keep the names that they
//! are given.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::error::SqlError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, OrderByKind, Query, SelectItem, SetExpr, SetQuantifier, Value, VisitMut, Visitor,
    VisitorMut,
};

use super::quotes::quoted;
use super::visits;

/// Stands between a name and its number; no name that is typed has it.
pub(super) const MARK: char = '\u{2063}';

/// The name of a result's column as it is shown.
pub(crate) fn shown_name(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// The name of a result's column as it is shown, that of `unnest` as it is written; DataFusion 55.2 writes it large.
pub(crate) fn result_name(name: &str) -> Cow<'_, str> {
    match name.strip_prefix("UNNEST(").and_then(|list| list.strip_suffix(')')) {
        Some(list) => {
            let is_column = list.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
            let list = if is_column { list.rsplit('.').next().unwrap_or(list) } else { list };
            Cow::Owned(format!("unnest({list})"))
        }
        None => Cow::Borrowed(shown_name(name)),
    }
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

/// The error of a statement whose columns of one name were told apart, with the statement's own names; `first` is the
/// error without that.
pub(crate) fn in_own_names(error: DataFusionError, first: DataFusionError) -> SqlError {
    if let DataFusionError::SchemaError(schema, _) = error.find_root()
        && let SchemaError::FieldNotFound { field, valid_fields } = schema.as_ref()
        && valid_fields.iter().any(|known| known.name != field.name && shown_name(&known.name) == field.name)
    {
        return SqlError::Planning(format!("column '{}' is ambiguous: a table has several of that name", field.name));
    }
    if is_about_repeated_names(&error) {
        return about_repeated_names(first);
    }
    all_unmarked(error.into())
}

fn all_unmarked(error: SqlError) -> SqlError {
    match error {
        SqlError::Planning(text) => SqlError::Planning(unmarked(&text)),
        SqlError::Unsupported(text) => SqlError::Unsupported(unmarked(&text)),
        SqlError::UnknownColumn { name, nearest } => {
            SqlError::UnknownColumn { name, nearest: nearest.map(|name| unmarked(&name)) }
        }
        SqlError::At { error, position } => SqlError::At { error: Box::new(all_unmarked(*error)), position },
        other => other,
    }
}

/// The error of a statement in which columns must not have one name.
pub(crate) fn about_repeated_names(error: DataFusionError) -> SqlError {
    match error.find_root() {
        // It names both expressions, the second behind `and`.
        DataFusionError::Plan(text) => {
            let second = text.rsplit("and \"").next().and_then(|rest| rest.split("\" at position").next());
            let own = second.and_then(|second| second.rsplit(" AS ").next()).unwrap_or_default();
            let name = unmarked(own.rsplit('.').next().unwrap_or(own));
            SqlError::Planning(format!("two columns of a SELECT are named '{name}'; name one otherwise with AS"))
        }
        _ => error.into(),
    }
}

/// A text without the marks of names.
fn unmarked(text: &str) -> String {
    let mut parts = text.split(MARK);
    let first = parts.next().unwrap_or_default();
    parts.fold(first.to_string(), |text, part| text + part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
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

/// Writes names that wildcards leave out as other names are read; DataFusion 55.2 takes them as they are written.
pub(super) fn fold_left_out(items: &mut [SelectItem]) {
    let fold = |name: &mut Ident| name.value = folded(name);
    let fold_last = |name: &mut ObjectName| {
        if let Some(ObjectNamePart::Identifier(name)) = name.0.last_mut() {
            fold(name);
        }
    };
    for item in items {
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else { continue };
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => fold_last(name),
            Some(ExcludeSelectItem::Multiple(names)) => names.iter_mut().for_each(fold_last),
            None => {}
        }
        if let Some(ExceptSelectItem { first_element, additional_elements }) = &mut options.opt_except {
            [first_element].into_iter().chain(additional_elements).for_each(fold);
        }
    }
}

/// Makes the names of a statement's select list unique, those of later branches of all set operations, and those that
/// an item of a subquery shares with another; gives whether there was anything to do.
pub(crate) fn distinguish(parsed: &mut ParsedStatement) -> bool {
    let top = super::query_of(parsed).is_some_and(distinguish_query);
    let mut nested = Nested { depth: 0, changed: false };
    let _ = super::visit(parsed, &mut nested);
    top || nested.changed
}

/// Makes the names of a query's select list unique.
pub(super) fn distinguish_query(query: &mut Query) -> bool {
    let ordered = ordered_by(query);
    distinguish_body(&mut query.body, &ordered)
}

/// Makes the names in each later branch of set operations unique, and those of subqueries.
struct Nested {
    depth: usize,
    changed: bool,
}

impl VisitorMut for Nested {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        self.changed |= distinguish_later(&mut query.body);
        if self.depth > 1 {
            self.changed |= distinguish_all(&mut query.body);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Gives each of a subquery's items that shares a name with another one a name of its own.
fn distinguish_all(body: &mut SetExpr) -> bool {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { left, .. } => return distinguish_all(left),
        _ => return false,
    };
    let mut seen = HashSet::new();
    let names = select.projection.iter().filter_map(item_name);
    let repeated: HashSet<String> = names.filter(|name| !seen.insert(name.clone())).collect();
    for (number, item) in select.projection.iter_mut().enumerate() {
        if let Some(name) = item_name(item).filter(|name| repeated.contains(name)) {
            rename(item, &name, number);
        }
    }
    !repeated.is_empty()
}

/// The name that an item has: its alias, or that of a column.
fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => column_name(expr),
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    }
}

/// Gives an item a name with a mark.
fn rename(item: &mut SelectItem, name: &str, number: usize) {
    let alias = quoted(format!("{name}{MARK}{number}"));
    let placeholder = SelectItem::UnnamedExpr(Expr::value(Value::Null));
    *item = match std::mem::replace(item, placeholder) {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            SelectItem::ExprWithAlias { expr, alias }
        }
        other => other,
    };
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
        let Some(name) = item_name(item) else { continue };
        // ORDER BY finds a column whatever its item is called, and an alias by its name alone.
        let is_needed = matches!(item, SelectItem::ExprWithAlias { .. }) && ordered.contains(&name);
        let is_repeated = !seen.insert(name.clone());
        if is_repeated || any && !is_needed {
            rename(item, &name, number);
            changed = true;
        }
    }
    changed
}

/// Whether an expression calls COLUMNS.
pub(super) fn has_columns(expr: &Expr) -> bool {
    struct Calls;
    impl Visitor for Calls {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match call_of_columns(expr) {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        }
    }
    visits::visit(expr, &mut Calls).is_break()
}

/// The argument of `COLUMNS(…)`.
pub(super) fn call_of_columns(expr: &Expr) -> Option<&FunctionArgExpr> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), over: None, filter: None, .. }) = expr
    else {
        return None;
    };
    let [part] = name.0.as_slice() else { return None };
    let [FunctionArg::Unnamed(argument)] = list.args.as_slice() else { return None };
    part.as_ident().is_some_and(|name| folded(name) == "columns").then_some(argument)
}

/// Shows each name in a tree, whole or of several parts, but for those of subqueries and those of parameters of
/// lambdas.
pub(super) fn each_name(tree: &mut impl VisitMut, found: &mut dyn FnMut(&mut Expr)) {
    struct Names<'a> {
        depth: usize,
        parameters: Vec<String>,
        found: &'a mut dyn FnMut(&mut Expr),
    }
    impl VisitorMut for Names<'_> {
        type Break = ();
        fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
            self.depth += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Lambda(lambda) = expr {
                self.parameters.extend(lambda.params.iter().map(|parameter| folded(&parameter.name)));
            }
            ControlFlow::Continue(())
        }
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(name) if self.depth == 0 && !self.parameters.contains(&folded(name)) => {
                    (self.found)(expr);
                }
                Expr::CompoundIdentifier(names)
                    if self.depth == 0
                        && names.first().is_some_and(|name| !self.parameters.contains(&folded(name))) =>
                {
                    (self.found)(expr);
                }
                Expr::Lambda(lambda) => {
                    let left = self.parameters.len() - lambda.params.iter().count();
                    self.parameters.truncate(left);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let _ = visits::visit_mut(tree, &mut Names { depth: 0, parameters: Vec::new(), found });
}

/// A text as a constant of SQL.
pub(super) fn constant(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
