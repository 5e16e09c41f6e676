//! Names of WITH, one scope a query.
//!
//! A name of WITH hides the same name of the queries around it, and ends with its query. DataFusion 55.2 refuses a
//! name that a query around has. Here such an inner table is given a name of its own, and stands under its old one in
//! FROM.
//!
//! A table of WITH is computed once for each time that it is read, so that one with a volatile function or with a LIMIT
//! without an order, which would have other rows each time, is refused where it is read more than once.
//!
//! The file goes once DataFusion has a scope for each query, and computes a table that is read several times once.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, TableAlias, TableFactor};

use super::items::{MARK, folded};
use super::relations::parts;
use crate::error::{Result, SqlError};

/// The queries around the node that is visited, innermost last.
#[derive(Default)]
pub(super) struct Scopes {
    queries: Vec<Scope>,
    /// Names that were given.
    given: usize,
}

/// A table of WITH.
struct Table {
    name: String,
    /// What it is called now; none where it kept its name.
    renamed: Option<Ident>,
    /// How often it has been read, by queries other than its own.
    reads: usize,
    /// What gives it other rows each time, in itself or in a table that it reads.
    volatile: Option<String>,
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
    /// Renames the tables of a query's WITH that queries around it have too.
    pub(super) fn enter(&mut self, query: &mut Query) {
        let mut scope = Scope { tables: Vec::new(), visible: 0, visited: 0, recursive: false };
        if let Some(with) = &mut query.with {
            for table in &mut with.cte_tables {
                let name = folded(&table.alias.name);
                let renamed = self.found(&name).is_some().then(|| {
                    self.given += 1;
                    Ident::with_quote('"', format!("{name}{MARK}{}", self.given))
                });
                if let Some(renamed) = &renamed {
                    table.alias.name = renamed.clone();
                }
                scope.tables.push(Table { name, renamed, reads: 0, volatile: None });
            }
            scope.recursive = with.recursive;
            scope.visible = usize::from(with.recursive).min(scope.tables.len());
        }
        self.queries.push(scope);
    }

    /// Leaves a query: the next table of the WITH that it stands in is visible from now on.
    pub(super) fn leave(&mut self) {
        self.queries.pop();
        if let Some(scope) = self.queries.last_mut()
            && scope.visited < scope.tables.len()
        {
            scope.visited += 1;
            scope.visible = (scope.visited + usize::from(scope.recursive)).min(scope.tables.len());
        }
    }

    /// Notes what gives other rows each time in the tables whose queries are visited.
    pub(super) fn note_volatile(&mut self, what: &str) {
        for scope in &mut self.queries {
            if let Some(table) = scope.tables.get_mut(scope.visited) {
                table.volatile.get_or_insert_with(|| what.to_string());
            }
        }
    }

    /// Gives a table of FROM the name that it is found by.
    ///
    /// # Errors
    /// [`SqlError::Unsupported`] for the second read of a table that would have other rows then.
    pub(super) fn read(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return Ok(()) };
        let Some(own) = parts(name).filter(|parts| parts.len() == 1).and_then(|mut parts| parts.pop()) else {
            return Ok(());
        };
        let Some((scope, place)) = self.found(&folded(&own)) else { return Ok(()) };
        let scope = &mut self.queries[scope];
        let is_within_itself = place == scope.visited;
        let table = &mut scope.tables[place];
        table.reads += usize::from(!is_within_itself);
        let volatile = table.volatile.clone();
        if let Some(what) = volatile.as_ref().filter(|_| table.reads > 1) {
            return Err(SqlError::Unsupported(format!(
                "{what} in '{own}' of WITH, which is read several times and would have other rows each time; \
                 make a table of it by CREATE TABLE … AS"
            )));
        }
        if let Some(renamed) = &table.renamed {
            *name = ObjectName::from(vec![renamed.clone()]);
            alias.get_or_insert_with(|| TableAlias { explicit: true, name: own, columns: Vec::new(), at: None });
        }
        if let Some(what) = volatile {
            self.note_volatile(&what);
        }
        Ok(())
    }

    /// The innermost table of a name that may be read: the place of its query and its own there.
    fn found(&self, name: &str) -> Option<(usize, usize)> {
        self.queries.iter().enumerate().rev().find_map(|(query, scope)| {
            let place = scope.tables[..scope.visible].iter().rposition(|table| table.name == name)?;
            Some((query, place))
        })
    }
}
