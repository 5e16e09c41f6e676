//! `FROM t AS x(a)`, `WITH x(a) AS (…)` and `CREATE VIEW x(a) AS …`: names for the first columns, as in PostgreSQL and
//! DuckDB; the others keep theirs. DataFusion 55.2 takes names for all columns alone.
//!
//! A text tells how many columns a subquery has that lists them; those of other tables are planned for.
//!
//! The file goes once DataFusion takes fewer names.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Cte, Query, SetExpr, Statement as SqlStatement, TableAliasColumnDef, TableFactor, ViewColumnDef, With,
};

use super::super::orders::column_count;
use super::super::quotes::quoted;
use super::super::relations::{self, alias_of};
use super::{columns_of_factor, columns_of_query};

/// Whether a table may have more columns than its alias has names.
pub(super) fn may_lack(factor: &TableFactor) -> bool {
    let (alias, count) = match factor {
        TableFactor::Derived { alias, subquery, .. } => (alias, column_count(&subquery.body)),
        TableFactor::UNNEST { alias, array_exprs, with_ordinality: false, .. } => (alias, Some(array_exprs.len())),
        TableFactor::Table { alias, args: None, .. } => (alias, None),
        _ => return false,
    };
    alias.as_ref().is_some_and(|alias| lacks(alias.columns.len(), count))
}

/// Whether a query has a table of WITH that may.
pub(super) fn with_may_lack(query: &Query) -> bool {
    query.with.as_ref().is_some_and(|with| with.cte_tables.iter().any(cte_may_lack))
}

fn cte_may_lack(cte: &Cte) -> bool {
    lacks(cte.alias.columns.len(), column_count(&cte.query.body))
}

fn lacks(names: usize, columns: Option<usize>) -> bool {
    names > 0 && columns.is_none_or(|columns| names < columns)
}

/// Gives the other columns of a table their own names. What is wrong with the table is an error of the statement.
pub(super) async fn of_table(state: &SessionState, factor: &mut TableFactor, scopes: &[With]) {
    let mut bare = factor.clone();
    if let Some(Some(alias)) = alias_of(&mut bare) {
        alias.columns.clear();
    }
    let columns = columns_of_factor(state, &bare, scopes).await;
    if let (Ok(columns), Some(Some(alias))) = (columns, alias_of(factor)) {
        let rest = columns.into_iter().skip(alias.columns.len());
        alias.columns.extend(rest.map(|column| TableAliasColumnDef { name: quoted(column.name), data_type: None }));
    }
}

/// The same of the tables of a query's WITH; `around` are the clauses that it may name.
pub(super) async fn of_with(state: &SessionState, query: &mut Query, around: &[With]) {
    let count = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
    for place in 0..count {
        let Some(mut before) = query.with.clone() else { return };
        let cte = before.cte_tables.swap_remove(place);
        if !cte_may_lack(&cte) {
            continue;
        }
        before.cte_tables.truncate(place);
        let mut own = cte.query;
        // The first term of a table that reads itself.
        let first = match own.body.as_ref() {
            SetExpr::SetOperation { left, .. } if before.recursive => Some(left.clone()),
            _ => None,
        };
        own.body = first.unwrap_or(own.body);
        if !before.cte_tables.is_empty() {
            own = relations::below(before, own);
        }
        if let (Ok(columns), Some(with)) = (columns_of_query(state, own, around).await, &mut query.with) {
            let alias = &mut with.cte_tables[place].alias;
            let rest = columns.into_iter().skip(alias.columns.len());
            alias.columns.extend(rest.map(|column| TableAliasColumnDef { name: quoted(column.name), data_type: None }));
        }
    }
}

/// The same of a view that is made.
pub(super) async fn of_view(state: &SessionState, statement: &mut SqlStatement) {
    if let SqlStatement::CreateView(view) = statement
        && lacks(view.columns.len(), column_count(&view.query.body))
        && let Ok(columns) = columns_of_query(state, view.query.clone(), &[]).await
    {
        let rest = columns.into_iter().skip(view.columns.len());
        view.columns.extend(rest.map(|column| ViewColumnDef {
            name: quoted(column.name),
            data_type: None,
            options: None,
        }));
    }
}
