//! Names of WITH, one scope a query.
//!
//! A name of WITH hides the same name of the queries around it, and ends with its query. DataFusion 55.2 refuses a
//! name that a query around has. Here such an inner table is given a name of its own, and stands under its old one in
//! FROM.
//!
//! The file goes once DataFusion has a scope for each query.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, TableAlias, TableFactor};

use super::items::{MARK, folded};
use super::relations::parts;

/// The queries around the node that is visited, innermost last.
#[derive(Default)]
pub(super) struct Scopes {
    queries: Vec<Scope>,
    /// Names that were given.
    given: usize,
}

/// The tables of a query's WITH: their names, and what they are called now.
struct Scope {
    tables: Vec<(String, Option<Ident>)>,
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
                scope.tables.push((name, renamed));
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

    /// Gives a table of FROM the name that it is found by.
    pub(super) fn rename(&self, factor: &mut TableFactor) {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
        let Some(own) = parts(name).filter(|parts| parts.len() == 1).and_then(|mut parts| parts.pop()) else { return };
        let Some(Some(renamed)) = self.found(&folded(&own)) else { return };
        let named = || TableAlias { explicit: true, name: own, columns: Vec::new(), at: None };
        *name = ObjectName::from(vec![renamed.clone()]);
        alias.get_or_insert_with(named);
    }

    /// What the innermost table of a name is called now, if there is one; nothing where it kept its name.
    fn found(&self, name: &str) -> Option<&Option<Ident>> {
        let visible = self.queries.iter().rev().flat_map(|scope| scope.tables[..scope.visible].iter().rev());
        visible.into_iter().find(|(known, _)| known == name).map(|(_, renamed)| renamed)
    }
}
