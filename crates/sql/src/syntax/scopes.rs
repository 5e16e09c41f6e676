//! Names of WITH, one scope a query, and how often each table is read.
//!
//! A name of WITH hides the same name of the queries around it, and ends with its query. DataFusion 55.2 refuses a
//! name that a query around has, and puts a copy of a table's plan in the place of each read. Here a table that hides
//! another, that is read more than once or that says MATERIALIZED is given a name of its own, and stands under its old
//! one in FROM. [`crate::shared`] finds the copies by that name.
//!
//! Of a table of WITH RECURSIVE whose query is a UNION, DataFusion reads the branches alone. What stands around them
//! belongs to a query in parentheses where the table does not read itself, and is refused where it does.
//!
//! Invariant: tables are numbered in the order in which a visitor enters their queries.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    CteAsMaterialized, Expr, Ident, ObjectName, Query, SelectItem, SetExpr, TableAlias, TableFactor, VisitorMut,
};

use super::items::{MARK, folded};
use super::quotes::quoted;
use super::relations::parts;
use super::value_columns;
use crate::error::{Result, SqlError};

/// What stands behind the mark in the name of a table, before its number.
const NUMBER: &str = " #";
/// What stands behind the number of a table that says so.
const MATERIALIZED: &str = " MATERIALIZED";
const NOT_MATERIALIZED: &str = " NOT MATERIALIZED";

/// What a name that was given says of a table of WITH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableOfWith<'n> {
    /// The name that it is written with.
    pub(crate) name: &'n str,
    /// Whether it says MATERIALIZED, or NOT MATERIALIZED.
    pub(crate) materialized: Option<bool>,
}

impl TableOfWith<'_> {
    /// A name as tables of WITH are given, for a plan that stands in several places.
    pub(crate) fn given(what: &str, number: usize) -> String {
        given(what, number, "")
    }

    /// Reads a name that was given.
    pub(crate) fn of(name: &str) -> Option<TableOfWith<'_>> {
        let (name, rest) = name.split_once(MARK)?;
        let number = rest.strip_prefix(NUMBER)?;
        let materialized = match number {
            number if number.ends_with(NOT_MATERIALIZED) => Some(false),
            number if number.ends_with(MATERIALIZED) => Some(true),
            _ => None,
        };
        Some(TableOfWith { name, materialized })
    }
}

fn given(name: &str, number: usize, word: &str) -> String {
    format!("{name}{MARK}{NUMBER}{number}{word}")
}

/// The queries around the node that is visited, innermost last.
#[derive(Default)]
pub(super) struct Scopes {
    queries: Vec<Scope>,
    /// For each table so far, the tables in whose queries it is read; none for a read in no table's query.
    readers: Vec<Vec<Option<usize>>>,
    /// How often each table is read, where that was counted before.
    times: Option<Vec<usize>>,
    /// Names that were given.
    given: usize,
}

/// A table of WITH.
struct Table {
    name: String,
    number: usize,
    /// What it is called now; none where it kept its name.
    renamed: Option<Ident>,
    /// Whether its query reads it.
    reads_itself: bool,
}

/// A table of WITH RECURSIVE whose query ends.
pub(super) struct Ended<'s> {
    pub(super) name: &'s str,
    pub(super) reads_itself: bool,
}

/// The tables of a query's WITH.
struct Scope {
    tables: Vec<Table>,
    /// How many of them what is visited may name.
    visible: usize,
    /// How many of their queries have been visited.
    visited: usize,
    recursive: bool,
}

impl Scopes {
    /// The scopes of a statement whose reads have been counted.
    pub(super) fn counted(parsed: &mut ParsedStatement) -> Scopes {
        let mut reads = Reads::default();
        let ControlFlow::Continue(()) = super::visit(parsed, &mut reads);
        Scopes { times: Some(times(&reads.0.readers)), ..Scopes::default() }
    }

    /// Enters a query. Once reads have been counted, tables of its WITH that have to be told from others are renamed.
    pub(super) fn enter(&mut self, query: &mut Query) {
        let mut scope = Scope { tables: Vec::new(), visible: 0, visited: 0, recursive: false };
        if let Some(with) = &mut query.with {
            for table in &mut with.cte_tables {
                let (name, number) = (folded(&table.alias.name), self.readers.len());
                self.readers.push(Vec::new());
                let word = match table.materialized {
                    Some(CteAsMaterialized::Materialized) => MATERIALIZED,
                    Some(CteAsMaterialized::NotMaterialized) => NOT_MATERIALIZED,
                    None => "",
                };
                // The text of a view has names that were given.
                let is_told_apart = |times: &Vec<usize>| {
                    let is_shared = word == MATERIALIZED || times.get(number).is_some_and(|times| *times > 1);
                    TableOfWith::of(&name).is_none() && (is_shared || self.hides(&name))
                };
                let renamed = self.times.as_ref().is_some_and(is_told_apart).then(|| {
                    self.given += 1;
                    quoted(given(&name, self.given, word))
                });
                if let Some(renamed) = &renamed {
                    table.alias.name = renamed.clone();
                }
                scope.tables.push(Table { name, number, renamed, reads_itself: false });
            }
            scope.recursive = with.recursive;
            scope.visible = usize::from(with.recursive).min(scope.tables.len());
        }
        self.queries.push(scope);
    }

    /// Leaves a query: the next table of the WITH that it stands in is visible from now on. Gives the table of WITH
    /// RECURSIVE whose query it was.
    pub(super) fn leave(&mut self) -> Option<Ended<'_>> {
        self.queries.pop();
        let scope = self.queries.last_mut().filter(|scope| scope.visited < scope.tables.len())?;
        scope.visited += 1;
        scope.visible = (scope.visited + usize::from(scope.recursive)).min(scope.tables.len());
        let Table { name, reads_itself, .. } = &scope.tables[scope.visited - 1];
        scope.recursive.then_some(Ended { name, reads_itself: *reads_itself })
    }

    /// Notes the read of a table of FROM, and gives it the name that it is found by.
    pub(super) fn read(&mut self, factor: &mut TableFactor) {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
        let Some(own) = parts(name).filter(|parts| parts.len() == 1).and_then(|mut parts| parts.pop()) else { return };
        let Some((scope, place)) = self.found(&folded(&own)) else { return };
        let reader = self.queries.iter().rev().find_map(|scope| scope.tables.get(scope.visited));
        let reader = reader.map(|table| table.number);
        let scope = &mut self.queries[scope];
        let (table, is_within_itself) = (&mut scope.tables[place], place == scope.visited);
        match is_within_itself {
            true => table.reads_itself = true,
            false => self.readers[table.number].push(reader),
        }
        if let Some(renamed) = &table.renamed {
            *name = ObjectName::from(vec![renamed.clone()]);
            alias.get_or_insert_with(|| TableAlias { explicit: true, name: own, columns: Vec::new(), at: None });
        }
    }

    /// Whether a query around has a table of a name.
    fn hides(&self, name: &str) -> bool {
        self.found(name).is_some()
    }

    /// The innermost table of a name that may be read: the place of its query and its own there.
    fn found(&self, name: &str) -> Option<(usize, usize)> {
        self.queries.iter().enumerate().rev().find_map(|(query, scope)| {
            let place = scope.tables[..scope.visible].iter().rposition(|table| table.name == name)?;
            Some((query, place))
        })
    }
}

/// Has DataFusion read what stands around the branches of a UNION, in the query of a table of WITH RECURSIVE.
///
/// # Errors
/// [`SqlError::Unsupported`] for a clause around branches that read the table.
pub(super) fn around_branches(query: &mut Query, Ended { name, reads_itself }: Ended) -> Result<()> {
    if let (true, SetExpr::SetOperation { left, right, .. }) = (reads_itself, query.body.as_mut()) {
        with_room(left);
        with_casts_twice(right);
    }
    let clauses = [
        ("WITH", query.with.is_some()),
        ("ORDER BY", query.order_by.is_some()),
        ("LIMIT and OFFSET", query.limit_clause.is_some()),
    ];
    let Some((clause, _)) = clauses.iter().find(|(_, is_there)| *is_there) else { return Ok(()) };
    if !matches!(*query.body, SetExpr::SetOperation { .. }) {
        return Ok(());
    }
    if reads_itself {
        return Err(SqlError::Unsupported(format!(
            "{clause} around the UNION of '{name}', which reads itself; write it where '{name}' is read"
        )));
    }
    let mut outer = query.clone();
    (outer.with, outer.order_by, outer.limit_clause) = (None, None, None);
    let inner = std::mem::replace(query, outer);
    *query.body = SetExpr::Query(Box::new(inner));
    Ok(())
}

/// Gives numbers with a point in the first term of a recursive query as many digits as decimals have: the table has
/// their types, and a step may count them up.
fn with_room(first: &mut SetExpr) {
    let select = match first {
        SetExpr::Select(select) => select,
        SetExpr::Query(query) => return with_room(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            with_room(left);
            return with_room(right);
        }
        _ => return,
    };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. } = item {
            value_columns::widen(item);
        }
    }
}

/// Has the casts that a recursive step gives stand twice: the planner's own casts to the types of the first branch
/// stand once (`mend/recursion.rs`).
fn with_casts_twice(step: &mut SetExpr) {
    let select = match step {
        SetExpr::Select(select) => select,
        SetExpr::Query(query) => return with_casts_twice(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            with_casts_twice(left);
            return with_casts_twice(right);
        }
        _ => return,
    };
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }) = item else { continue };
        let cast = std::iter::successors(Some(&*item), |expr| match expr {
            Expr::Nested(inner) => Some(inner),
            _ => None,
        });
        if let Some(Expr::Cast { kind, data_type, array, format, .. }) = cast.last() {
            let (kind, data_type, array, format) = (kind.clone(), data_type.clone(), *array, format.clone());
            let expr = Box::new(item.clone());
            *item = Expr::Cast { kind, expr, data_type, array, format };
        }
    }
}

/// How often each table is computed if a copy of it stands in the place of each read, two for all that is more.
fn times(readers: &[Vec<Option<usize>>]) -> Vec<usize> {
    let mut known = vec![None; readers.len()];
    (0..readers.len()).for_each(|table| _ = times_of(table, readers, &mut known));
    known.into_iter().map(Option::unwrap_or_default).collect()
}

fn times_of(table: usize, readers: &[Vec<Option<usize>>], known: &mut [Option<usize>]) -> usize {
    if let Some(times) = known[table] {
        return times;
    }
    // A table of WITH RECURSIVE may read one that reads it.
    known[table] = Some(0);
    let each = readers[table].iter().map(|reader| reader.map_or(1, |reader| times_of(reader, readers, known)));
    let times = each.sum::<usize>().min(2);
    known[table] = Some(times);
    times
}

/// Counts the reads of a statement's tables of WITH.
#[derive(Default)]
struct Reads(Scopes);

impl VisitorMut for Reads {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.0.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.0.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        self.0.read(factor);
        ControlFlow::Continue(())
    }
}
