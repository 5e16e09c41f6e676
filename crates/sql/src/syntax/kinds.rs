//! What kind of statement a text is, by its tree.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{Query, Select, SetExpr, Statement as SqlStatement, VisitorMut};

use super::elsewhere;

/// What a statement does when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// It reads rows and changes nothing: it may run once, several times or never, and its text may stand as a
    /// subquery of another statement.
    Query,
    /// It changes tables, files, settings or what is prepared, or tells about them; it runs once, when it is given. A
    /// text that is no statement is one, too: running it tells what is wrong.
    Command,
}

/// The kind of a statement.
pub(crate) fn kind(state: &SessionState, sql: &str) -> StatementKind {
    let is_query = match elsewhere::as_ours(state, sql) {
        Ok(None) => is_query(state, sql),
        // Of what is read as another statement, TABLE alone is a query where it stands.
        Ok(Some(ours)) => ours.trim_start().starts_with("FROM ") && is_query(state, &ours),
        Err(_) => false,
    };
    if is_query { StatementKind::Query } else { StatementKind::Command }
}

fn is_query(state: &SessionState, sql: &str) -> bool {
    super::on_stack(sql, || {
        let Ok(mut parsed) = super::parse_alone(state, sql) else { return false };
        let ParsedStatement::Statement(statement) = &parsed else { return false };
        matches!(**statement, SqlStatement::Query(_)) && super::visit(&mut parsed, &mut Changes).is_continue()
    })
}

/// Ends at a query that changes a table, or makes one.
struct Changes;

impl VisitorMut for Changes {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        match query.body.as_ref() {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.into.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
