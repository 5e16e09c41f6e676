//! Clauses that the parser takes and the planner passes over.
//!
//! sqlparser's trees hold the clauses of many databases. DataFusion 55.2 plans a part of them and passes over the rest
//! without a word, so that `FOR UPDATE` locks nothing and `TABLESAMPLE` gives all rows. Here each clause that is passed
//! over is refused by its name.
//!
//! Invariant: a node that the planner reads is taken apart without `..`, so that a field that a later parser adds does
//! not compile until it is refused or passed here. `_` stands for what the planner reads or refuses itself, and for
//! what tells how a text was written alone. `INSERT`, `UPDATE`, `DELETE`, `MERGE`, `TRUNCATE` and `COPY` are looked at
//! where they are rewritten.
//!
//! The files go once the planner refuses what it does not read.

mod definitions;
mod functions;
mod queries;
mod relations;
mod statements;
mod types;

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, CreateExternalTable, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    Array, Expr, Query, Select, Statement as SqlStatement, TableFactor, TypedString, Visitor,
};

use super::visits;
use crate::error::{Result, SqlError};

/// Refuses what nothing would read of a statement.
///
/// # Errors
/// [`SqlError::Unsupported`] with the name of the clause.
pub(super) fn check(state: &SessionState, parsed: &ParsedStatement) -> Result<()> {
    let may_make_table =
        matches!(parsed, ParsedStatement::Statement(statement) if matches!(**statement, SqlStatement::Query(_)));
    match visit(parsed, &mut Clauses { state, may_make_table }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn visit(parsed: &ParsedStatement, clauses: &mut Clauses<'_>) -> ControlFlow<SqlError> {
    match parsed {
        ParsedStatement::Statement(statement) => visits::visit(statement, clauses),
        ParsedStatement::Explain(explain) => visit(&explain.statement, clauses),
        ParsedStatement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => visits::visit(query, clauses),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        ParsedStatement::CreateExternalTable(table) => {
            let CreateExternalTable {
                name: _,
                columns,
                file_type: _,
                locations: _,
                table_partition_cols: _,
                order_exprs: _,
                if_not_exists: _,
                or_replace: _,
                temporary,
                unbounded: _,
                options: _,
                constraints,
            } = table;
            flow(
                refuse([("TEMPORARY external tables", *temporary)])
                    .and_then(|()| definitions::external(columns, constraints)),
            )
        }
        ParsedStatement::Reset(_) => ControlFlow::Continue(()),
    }
}

struct Clauses<'a> {
    state: &'a SessionState,
    /// Whether the next query is that of the statement, which may have INTO.
    may_make_table: bool,
}

impl Visitor for Clauses<'_> {
    type Break = SqlError;

    fn pre_visit_statement(&mut self, statement: &SqlStatement) -> ControlFlow<SqlError> {
        flow(statements::statement(statement))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        let may_make_table = std::mem::take(&mut self.may_make_table);
        flow(queries::query(query, may_make_table))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        flow(select.from.iter().try_for_each(relations::joins))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<SqlError> {
        flow(relations::factor(factor))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        flow(self.expression(expr))
    }
}

impl Clauses<'_> {
    fn expression(&self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Function(function) => functions::function(function, self.state),
            Expr::Cast { kind: _, expr: _, data_type, array: _, format: _ } => {
                types::check(data_type, types::Lengths::OfVarchar)
            }
            Expr::TypedString(TypedString { data_type, value: _, uses_odbc_syntax: _ }) => {
                types::check(data_type, types::Lengths::OfVarchar)
            }
            Expr::Trim { trim_where: _, trim_what: _, expr: _, trim_characters } => refuse([(
                "TRIM with several lists of characters",
                trim_characters.as_ref().is_some_and(|characters| characters.len() > 1),
            )]),
            Expr::Collate { expr: _, collation } => Err(SqlError::Unsupported(format!("COLLATE {collation}"))),
            Expr::Extract { field: _, syntax: _, expr: _ }
            | Expr::Substring { expr: _, substring_from: _, substring_for: _, special: _, shorthand: _ }
            | Expr::Overlay { expr: _, overlay_what: _, overlay_from: _, overlay_for: _ }
            | Expr::Position { expr: _, r#in: _ }
            | Expr::Ceil { expr: _, field: _ }
            | Expr::Floor { expr: _, field: _ }
            | Expr::Case { case_token: _, end_token: _, operand: _, conditions: _, else_result: _ }
            | Expr::InList { expr: _, list: _, negated: _ }
            | Expr::InSubquery { expr: _, subquery: _, negated: _ }
            | Expr::Between { expr: _, negated: _, low: _, high: _ }
            | Expr::Like { negated: _, any: _, expr: _, pattern: _, escape_char: _ }
            | Expr::ILike { negated: _, any: _, expr: _, pattern: _, escape_char: _ }
            | Expr::SimilarTo { negated: _, expr: _, pattern: _, escape_char: _ }
            | Expr::AnyOp { left: _, compare_op: _, right: _, is_some: _ }
            | Expr::AllOp { left: _, compare_op: _, right: _ }
            | Expr::Exists { subquery: _, negated: _ }
            | Expr::Struct { values: _, fields: _ }
            | Expr::Array(Array { elem: _, named: _ })
            | Expr::AtTimeZone { timestamp: _, time_zone: _ } => Ok(()),
            // Nodes with operands alone, and those that the planner refuses.
            _ => Ok(()),
        }
    }
}

fn flow(checked: Result<()>) -> ControlFlow<SqlError> {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Refuses the first clause that is there.
fn refuse<const N: usize>(clauses: [(&str, bool); N]) -> Result<()> {
    match clauses.into_iter().find(|(_, is_there)| *is_there) {
        Some((clause, _)) => Err(SqlError::Unsupported(clause.into())),
        None => Ok(()),
    }
}
