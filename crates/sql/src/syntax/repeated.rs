//! Subqueries with columns of one name.
//!
//! In SQL a subquery of FROM or WITH may have several columns of one name, which nothing may refer to but `*`;
//! DataFusion 55.2 refuses it. Items that are written are told apart by a mark ([`super::items`]). If that does not do
//! and a `*` stands in a subquery, its names are those that its plan has, and a list of column names around it gives
//! them others here, with the mark that results are cleared of.
//!
//! Invariant: subqueries are numbered as the visitor leaves them, those within before those around them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Ident, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, VisitorMut, With,
};

use super::items::{self, MARK, shown_name};
use super::quotes::quoted;
use super::relations::{self, Relations, Surroundings};
use crate::error::{Result, SqlError};

/// Gives columns of one name others in subqueries that hold a `*`; gives whether there was anything to do.
///
/// # Errors
/// [`SqlError::Internal`] only.
pub(crate) async fn distinguish_wildcards(state: &SessionState, parsed: &mut ParsedStatement) -> Result<bool> {
    let mut changed = false;
    for number in 0.. {
        let mut find = Subqueries { before: number, ..Subqueries::default() };
        let ControlFlow::Break(Some((query, scopes))) = super::visit(parsed, &mut find) else { break };
        if let Some(renamed) = renamed(state, query, &scopes).await? {
            let mut replace = Subqueries { before: number, replacement: Some(renamed), ..Subqueries::default() };
            let _ = super::visit(parsed, &mut replace);
            changed = true;
        }
    }
    Ok(changed)
}

/// Refuses what is made with columns of one name.
///
/// # Errors
/// [`SqlError::Planning`] with the name.
pub(crate) fn check_made(plan: &LogicalPlan) -> Result<()> {
    let input = match plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => &table.input,
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) => &view.input,
        _ => return Ok(()),
    };
    match input.schema().fields().iter().find(|field| field.name().contains(MARK)) {
        Some(field) => {
            let name = shown_name(field.name());
            Err(SqlError::Planning(format!("two columns would be named '{name}'; name one otherwise with AS")))
        }
        None => Ok(()),
    }
}

/// Subqueries that hold a `*`, up to one by its number.
#[derive(Default)]
struct Subqueries {
    /// How many are passed over.
    before: usize,
    surroundings: Surroundings,
    /// What takes the place of the subquery.
    replacement: Option<Box<Query>>,
}

impl VisitorMut for Subqueries {
    /// The subquery and the WITH clauses around it, where it is not replaced.
    type Break = Option<(Box<Query>, Vec<With>)>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.surroundings.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if self.surroundings.are_around_subquery() && has_wildcard(&query.body) {
            if self.before == 0 {
                return ControlFlow::Break(match self.replacement.take() {
                    Some(replacement) => {
                        *query = *replacement;
                        None
                    }
                    None => Some((Box::new(query.clone()), self.surroundings.scopes_around())),
                });
            }
            self.before -= 1;
        }
        self.surroundings.leave();
        ControlFlow::Continue(())
    }
}

/// Whether the names of a query's columns depend on those of its tables.
fn has_wildcard(body: &SetExpr) -> bool {
    let is_wildcard = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(_, _));
    match body {
        SetExpr::Select(select) => select.projection.iter().any(is_wildcard),
        SetExpr::SetOperation { left, .. } => has_wildcard(left),
        _ => false,
    }
}

/// The query below a list of names, if it has columns of one name; none as well if it cannot be planned by itself.
async fn renamed(state: &SessionState, mut query: Box<Query>, scopes: &[With]) -> Result<Option<Box<Query>>> {
    let mut names = names(state, &query, scopes).await?;
    if names.is_none() {
        // Its own items repeat names.
        items::distinguish_query(&mut query);
        names = self::names(state, &query, scopes).await?;
    }
    let Some(names) = names else { return Ok(None) };
    let mut counts = HashMap::new();
    for name in &names {
        *counts.entry(shown_name(name)).or_insert(0) += 1;
    }
    // Those that have been told apart keep their marks.
    let is_own = |name: &String| counts[shown_name(name)] == 1 || name.contains(MARK);
    let is_marked_alone = |name: &String| counts[shown_name(name)] == 1 && name.contains(MARK);
    if names.iter().all(is_own) && !names.iter().any(is_marked_alone) {
        return Ok(None);
    }
    let column = |(number, name): (usize, &String)| {
        let shown = shown_name(name);
        let name = if counts[shown] == 1 { shown.to_string() } else { format!("{shown}{MARK}{number}") };
        TableAliasColumnDef { name: quoted(name), data_type: None }
    };
    let columns = names.iter().enumerate().map(column).collect();
    let alias = TableAlias { explicit: true, name: Ident::new("subquery"), columns, at: None };
    let table = TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
    relations::all_of(TableWithJoins { relation: table, joins: Vec::new() }).map(Some)
}

/// The names of a query's columns; none if it cannot be planned by itself.
async fn names(state: &SessionState, query: &Query, scopes: &[With]) -> Result<Option<Vec<String>>> {
    let subquery = Box::new(query.clone());
    let factor = TableFactor::Derived { lateral: false, subquery, alias: None, sample: None };
    let mut columns = Relations { factors: vec![factor], scopes: scopes.to_vec() }.columns(state).await?;
    Ok(columns.take().1)
}
