//! `* RENAME (a AS b)`, `* REPLACE (…)`, `* LIKE`, and `COLUMNS(…)`, as lists of columns.
//!
//! An item with COLUMNS stands once for each column that it names, by a regular expression, a list of names, a lambda
//! of names, or `*`. All calls of COLUMNS in an item are of the same columns. Such an item has the column's name, or
//! its alias. A condition of WHERE with COLUMNS holds where it holds of each. `s.*` of a struct is its members
//! ([`super::members`]).

use std::ops::ControlFlow;

use super::super::items::{call_of_columns, column_name, constant, folded, has_columns};
use super::super::quotes;
use super::super::relations::parts;
use super::super::visits;
use super::tokens::SHARE;
use super::{Column, members, query_of, quoted, texts_of};
use crate::error::{Result, SqlError};
use arrow::array::{Array as _, AsArray, Scalar, StringArray};
use arrow::compute::kernels::comparison::ilike;
use arrow::compute::kernels::regexp::{regexp_is_match_scalar, regexp_match};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, ExceptSelectItem, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, LimitClause, ObjectName, OrderByExpr, OrderByKind, Query, RenameSelectItem, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Value, Visitor, VisitorMut, WildcardAdditionalOptions,
};

/// Whether a SELECT has an item to be written out.
pub(super) fn are_in(select: &Select) -> bool {
    select.selection.as_ref().is_some_and(has_columns)
        || select.projection.iter().any(|item| match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if !is_form(options) =>
            {
                members::are_meant(select, name)
            }
            SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => is_form(options),
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_columns(expr),
            SelectItem::ExprWithAliases { .. } => false,
        })
}

fn is_form(options: &WildcardAdditionalOptions) -> bool {
    options.opt_rename.is_some() || options.opt_replace.is_some() || options.opt_ilike.is_some()
}

/// The share of rows that a LIMIT is.
pub(in super::super) fn share_of(limit: &Expr) -> Option<&Expr> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = limit else { return None };
    let is_share = name.0.first().and_then(|part| part.as_ident()).is_some_and(|name| name.value == SHARE);
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(share))] if is_share => Some(share),
        _ => None,
    }
}

/// Whether rows are ranked by the numbers of columns, of which a wildcard stands for some.
pub(super) fn ranks_wildcards(query: &Query) -> bool {
    let is_ranked = match (&query.fetch, &query.limit_clause) {
        (Some(fetch), _) => fetch.with_ties || fetch.percent,
        (None, Some(LimitClause::LimitOffset { limit: Some(limit), .. })) => share_of(limit).is_some(),
        _ => false,
    };
    let is_number = |key: &OrderByExpr| matches!(&key.expr, Expr::Value(it) if matches!(it.value, Value::Number(..)));
    let is_wildcard = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(_, _));
    is_ranked
        && query.order_by.as_ref().is_some_and(|order_by| match &order_by.kind {
            OrderByKind::Expressions(keys) => keys.iter().any(is_number),
            OrderByKind::All(_) => true,
        })
        && matches!(query.body.as_ref(), SetExpr::Select(select) if select.projection.iter().any(is_wildcard))
}

/// Puts the names that lambdas of COLUMNS are true for in their place.
///
/// # Errors
/// What is wrong with a lambda.
pub(super) async fn name_by_lambdas(state: &SessionState, select: &mut Select, columns: &[Column]) -> Result<()> {
    let mut calls = Calls { found: Vec::new() };
    select.projection.iter().for_each(|item| _ = visits::visit(item, &mut calls));
    select.selection.iter().for_each(|condition| _ = visits::visit(condition, &mut calls));
    let mut named = Vec::new();
    for lambda in calls.found {
        if let FunctionArgExpr::Expr(Expr::Lambda(_)) = &lambda {
            let all: Vec<String> = columns.iter().map(|column| constant(&column.name)).collect();
            let text = format!("SELECT unnest(list_filter([{}], {lambda})) AS name", all.join(", "));
            let names = texts_of(state, query_of(&text)?, &[]).await?;
            let names = names.into_iter().map(|name| Expr::value(quotes::text(name))).collect();
            named.push((lambda, FunctionArgExpr::Expr(Expr::Array(Array { elem: names, named: false }))));
        }
    }
    struct Put(Vec<(FunctionArgExpr, FunctionArgExpr)>);
    impl VisitorMut for Put {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            let found = call_of_columns(expr).and_then(|own| self.0.iter().find(|(lambda, _)| lambda == own));
            if let Some((_, names)) = found {
                *expr = super::super::call("columns", vec![FunctionArg::Unnamed(names.clone())]);
            }
            ControlFlow::Continue(())
        }
    }
    let mut put = Put(named);
    select.projection.iter_mut().for_each(|item| _ = visits::visit_mut(item, &mut put));
    select.selection.iter_mut().for_each(|condition| _ = visits::visit_mut(condition, &mut put));
    Ok(())
}

/// Writes out the items of a SELECT whose tables have these columns.
///
/// With `all`, every wildcard is written out.
///
/// # Errors
/// [`SqlError::Planning`] for names that no column has, and [`SqlError::Unsupported`] for other arguments of COLUMNS.
pub(super) fn write_out(select: &mut Select, columns: &[Column], all: bool) -> Result<()> {
    let mut items = Vec::with_capacity(columns.len());
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if members::are_meant(select, &name) =>
            {
                if is_form(&options) {
                    return Err(SqlError::Unsupported(format!(
                        "RENAME, REPLACE and LIKE of {name}.*, the members of a struct"
                    )));
                }
                let left_out = excluded(options.opt_exclude, options.opt_except);
                items.extend(members::of_struct(&name, &left_out, columns)?);
            }
            SelectItem::Wildcard(options) if all || is_form(&options) => {
                items.extend(listed(columns, columns, options)?)
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options)
                if all || is_form(&options) =>
            {
                let own: Vec<&Column> = columns.iter().filter(|column| is_of(column, &table)).collect();
                if own.is_empty() {
                    return Err(SqlError::UnknownTable { name: table.to_string(), nearest: None });
                }
                items.extend(listed(own, columns, options)?);
            }
            SelectItem::UnnamedExpr(expr) if has_columns(&expr) => items.extend(each(expr, None, columns)?),
            SelectItem::ExprWithAlias { expr, alias } if has_columns(&expr) => {
                items.extend(each(expr, Some(alias), columns)?);
            }
            other => items.push(other),
        }
    }
    select.projection = items;
    // A condition holds of all columns.
    if let Some(condition) = select.selection.take_if(|condition| has_columns(condition)) {
        let conditions = each(condition, None, columns)?.into_iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                Some(Expr::Nested(Box::new(expr)))
            }
            _ => None,
        });
        select.selection = conditions.reduce(|left, right| {
            let (left, right) = (Box::new(left), Box::new(right));
            Expr::BinaryOp { left, op: BinaryOperator::And, right }
        });
    }
    Ok(())
}

/// Whether a column is that of a table by its name.
fn is_of(column: &Column, table: &ObjectName) -> bool {
    let Some(table) = parts(table) else { return false };
    let own = column.table.as_ref();
    let own = own.map(|own| [own.catalog(), own.schema(), Some(own.table())].into_iter().flatten().collect::<Vec<_>>());
    own.is_some_and(|own| {
        let named: Vec<String> = table.iter().map(folded).collect();
        own.iter().rev().zip(named.iter().rev()).all(|(own, named)| own == named) && own.len() >= named.len()
    })
}

/// The columns that `*` with options stands for.
fn listed<'a>(
    own: impl IntoIterator<Item = &'a Column>,
    all: &[Column],
    options: WildcardAdditionalOptions,
) -> Result<Vec<SelectItem>> {
    let WildcardAdditionalOptions { opt_exclude, opt_except, opt_replace, opt_rename, opt_ilike, .. } = options;
    let own: Vec<&Column> = own.into_iter().collect();
    let left_out = excluded(opt_exclude, opt_except);
    let replaced = opt_replace.map(|replace| replace.items).unwrap_or_default();
    let renamed = match opt_rename {
        Some(RenameSelectItem::Single(one)) => vec![one],
        Some(RenameSelectItem::Multiple(several)) => several,
        None => Vec::new(),
    };
    let replacing: Vec<String> = replaced.iter().map(|replaced| folded(&replaced.column_name)).collect();
    let renaming: Vec<String> = renamed.iter().map(|renamed| folded(&renamed.ident)).collect();
    for (names, clause) in [(&replacing, "REPLACE"), (&renaming, "RENAME")] {
        if let Some(name) =
            names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name)
        {
            return Err(SqlError::Planning(format!("column '{name}' is twice in {clause}")));
        }
    }
    if let Some(name) = replacing.iter().find(|name| left_out.contains(name)) {
        return Err(SqlError::Planning(format!("column '{name}' is in EXCLUDE and in REPLACE")));
    }
    for name in left_out.iter().chain(&renaming).chain(&replacing).cloned() {
        if !own.iter().any(|column| column.name == name) {
            return Err(SqlError::UnknownColumn { name, nearest: None });
        }
    }
    if let Some(both) = renamed.iter().find(|renamed| left_out.contains(&folded(&renamed.ident))) {
        return Err(SqlError::Planning(format!("column '{}' is in EXCLUDE and in RENAME", both.ident)));
    }
    let are_like = match opt_ilike {
        Some(ilike) => are_like(&own, &ilike.pattern)?,
        None => vec![true; own.len()],
    };
    let is_listed = |(column, is_like): &(&&Column, &bool)| **is_like && !left_out.contains(&column.name);
    let item = |(column, _): (&&Column, &bool)| {
        let name = renamed.iter().find(|renamed| folded(&renamed.ident) == column.name);
        let other = replaced.iter().find(|replaced| folded(&replaced.column_name) == column.name);
        let called = match other {
            Some(other) => other.expr.clone(),
            None => column.called(all)?,
        };
        Ok(match (name, other) {
            (None, None) => SelectItem::UnnamedExpr(called),
            (None, Some(_)) => SelectItem::ExprWithAlias { expr: called, alias: quoted(&column.name) },
            (Some(name), _) => SelectItem::ExprWithAlias { expr: called, alias: name.alias.clone() },
        })
    };
    let items = own.iter().zip(&are_like).filter(is_listed).map(item).collect::<Result<Vec<_>>>()?;
    match items.is_empty() {
        true => Err(SqlError::Planning("* stands for no column here".into())),
        false => Ok(items),
    }
}

fn excluded(exclude: Option<ExcludeSelectItem>, except: Option<ExceptSelectItem>) -> Vec<String> {
    let last = |name: &ObjectName| parts(name)?.last().map(folded);
    let mut names: Vec<String> = match exclude {
        Some(ExcludeSelectItem::Single(name)) => last(&name).into_iter().collect(),
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().filter_map(last).collect(),
        None => Vec::new(),
    };
    if let Some(ExceptSelectItem { first_element, additional_elements }) = except {
        names.extend([first_element].iter().chain(&additional_elements).map(folded));
    }
    names
}

/// Whether each name is like a pattern, whatever the case of letters.
fn are_like(columns: &[&Column], pattern: &str) -> Result<Vec<bool>> {
    let names = StringArray::from_iter_values(columns.iter().map(|column| &column.name));
    let pattern = Scalar::new(StringArray::from(vec![pattern]));
    let found = ilike(&names, &pattern).map_err(|error| SqlError::Planning(error.to_string()))?;
    Ok(found.iter().map(|is_like| is_like == Some(true)).collect())
}

/// What a regular expression finds in each name, none where it does not match: the name, and its groups behind it.
fn groups(columns: &[Column], pattern: &str) -> Result<Vec<Option<Vec<String>>>> {
    let names = StringArray::from_iter_values(columns.iter().map(|column| &column.name));
    let refused = |error| SqlError::Planning(format!("'{pattern}' is no regular expression: {error}"));
    let is_match = regexp_is_match_scalar(&names, pattern, None).map_err(refused)?;
    let captured = regexp_match(&names, &Scalar::new(StringArray::from(vec![pattern])), None).map_err(refused)?;
    let captured = captured.as_list::<i32>();
    let of_name = |(row, column): (usize, &Column)| {
        let mut groups = vec![column.name.clone()];
        if captured.is_valid(row) {
            let found = captured.value(row);
            groups.extend(found.as_string::<i32>().iter().map(|group| group.unwrap_or_default().to_string()));
        }
        is_match.value(row).then_some(groups)
    };
    Ok(columns.iter().enumerate().map(of_name).collect())
}

/// An item with COLUMNS, for each of its columns.
fn each(expr: Expr, alias: Option<Ident>, columns: &[Column]) -> Result<Vec<SelectItem>> {
    let mut calls = Calls { found: Vec::new() };
    let _ = visits::visit(&expr, &mut calls);
    let Some((first, others)) = calls.found.split_first() else { return Ok(Vec::new()) };
    if others.iter().any(|other| other != first) {
        return Err(SqlError::Unsupported("several COLUMNS in an item that are not the same".into()));
    }
    let item = |(column, groups): (&Column, Vec<String>)| {
        let mut expr = expr.clone();
        let _ = visits::visit_mut(&mut expr, &mut Put { column: column.called(columns)? });
        let name = match &alias {
            // `\0` is the column's name, `\1` what the first group of the expression found in it.
            Some(alias) => {
                let replaced =
                    |name: String, (number, group): (usize, &String)| name.replace(&format!("\\{number}"), group);
                groups.iter().enumerate().fold(alias.value.clone(), replaced)
            }
            None => column.name.clone(),
        };
        Ok(match column_name(&expr) == Some(name.clone()) {
            true => SelectItem::UnnamedExpr(expr),
            false => SelectItem::ExprWithAlias { expr, alias: quoted(&name) },
        })
    };
    named_by(first, columns)?.into_iter().map(item).collect()
}

struct Calls {
    found: Vec<FunctionArgExpr>,
}

impl Visitor for Calls {
    type Break = ();
    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.found.extend(call_of_columns(expr).cloned());
        ControlFlow::Continue(())
    }
}

struct Put {
    column: Expr,
}

impl VisitorMut for Put {
    type Break = ();
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if call_of_columns(expr).is_some() {
            *expr = self.column.clone();
        }
        ControlFlow::Continue(())
    }
}

/// The columns that an expression of UNPIVOT names: those of COLUMNS, or one.
pub(super) fn named<'a>(expr: &Expr, columns: &'a [Column]) -> Result<Option<Vec<&'a Column>>> {
    match call_of_columns(expr) {
        Some(argument) => {
            Ok(Some(named_by(argument, columns)?.into_iter().map(|(column, _)| column).collect::<Vec<_>>()))
        }
        None => Ok(None),
    }
}

/// The columns that the argument of COLUMNS names, with the groups of a regular expression.
fn named_by<'a>(argument: &FunctionArgExpr, columns: &'a [Column]) -> Result<Vec<(&'a Column, Vec<String>)>> {
    let text = |expr: &Expr| match expr {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    let whole = |column: &'a Column| (column, vec![column.name.clone()]);
    let found: Vec<_> = match argument {
        FunctionArgExpr::Wildcard => columns.iter().map(whole).collect(),
        FunctionArgExpr::WildcardWithOptions(options) if !is_form(options) => {
            let left_out = excluded(options.opt_exclude.clone(), options.opt_except.clone());
            let is_unknown = |name: &&String| !columns.iter().any(|column| column.name == **name);
            if let Some(name) = left_out.iter().find(is_unknown).cloned() {
                return Err(SqlError::UnknownColumn { name, nearest: None });
            }
            columns.iter().filter(|column| !left_out.contains(&column.name)).map(whole).collect()
        }
        FunctionArgExpr::QualifiedWildcard(table) => {
            columns.iter().filter(|column| is_of(column, table)).map(whole).collect()
        }
        FunctionArgExpr::Expr(Expr::Array(Array { elem, .. })) => {
            let mut found = Vec::with_capacity(elem.len());
            for name in elem {
                let name = text(name).unwrap_or_else(|| name.to_string());
                match columns.iter().find(|column| column.name == name) {
                    Some(column) => found.push(whole(column)),
                    None => return Err(SqlError::UnknownColumn { name, nearest: None }),
                }
            }
            found
        }
        FunctionArgExpr::Expr(Expr::Value(value)) if value.value.clone().into_string().is_some() => {
            let groups = groups(columns, &value.value.clone().into_string().unwrap_or_default())?;
            columns.iter().zip(groups).filter_map(|(column, groups)| Some((column, groups?))).collect()
        }
        other => {
            return Err(SqlError::Unsupported(format!(
                "COLUMNS({other}); it takes *, a regular expression, a list of names or a lambda of names"
            )));
        }
    };
    match found.is_empty() {
        true => Err(SqlError::Planning(format!("COLUMNS({argument}) names no column"))),
        false => Ok(found),
    }
}
