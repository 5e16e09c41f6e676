//! RETURNING, taken out of a statement as a SELECT over the rows that it changes.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, OutputClause, SelectItem, SetExpr, Statement as SqlStatement, TableFactor, TableObject,
    TableWithJoins, Value, ValueWithSpan, Visit, Visitor,
};

use super::parts::{self, Target, aliased};
use crate::error::{Result, SqlError};
use crate::syntax::with_signs;

/// Takes RETURNING out of a statement that changes a table, below EXPLAIN, PREPARE and WITH too.
///
/// # Errors
/// Targets that are no tables in memory, and parameters in RETURNING.
pub(in crate::syntax) async fn take(
    state: &SessionState,
    parsed: &mut ParsedStatement,
) -> Result<Option<ParsedStatement>> {
    match parsed {
        ParsedStatement::Statement(statement) => Box::pin(of_statement(state, statement)).await,
        ParsedStatement::Explain(explain) => Box::pin(take(state, &mut explain.statement)).await,
        _ => Ok(None),
    }
}

async fn of_statement(state: &SessionState, statement: &mut SqlStatement) -> Result<Option<ParsedStatement>> {
    let (items, table, name) = match statement {
        SqlStatement::Prepare { statement, .. } => {
            let select = Box::pin(of_statement(state, statement)).await?;
            return match select.as_ref().and_then(parameter) {
                Some(parameter) => Err(SqlError::Unsupported(format!("{parameter} in RETURNING"))),
                None => Ok(select),
            };
        }
        SqlStatement::Query(query) => {
            let (SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) | SetExpr::Merge(inner)) =
                query.body.as_mut()
            else {
                return Ok(None);
            };
            let mut select = Box::pin(of_statement(state, inner)).await?;
            // Subqueries of the list may read what WITH names.
            if let Some(ParsedStatement::Statement(select)) = &mut select
                && let SqlStatement::Query(select) = select.as_mut()
            {
                select.with = query.with.clone();
            }
            return Ok(select);
        }
        SqlStatement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => {
                (insert.returning.take(), Some(parts::table(name.clone(), None)), "INSERT … RETURNING into")
            }
            _ => return Ok(None),
        },
        SqlStatement::Update(update) => {
            (update.returning.take(), Some(update.table.relation.clone()), "UPDATE … RETURNING of")
        }
        SqlStatement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let table = from.first().map(|table| table.relation.clone());
            (delete.returning.take(), table, "DELETE … RETURNING from")
        }
        SqlStatement::Merge(merge) => match merge.output.take() {
            Some(OutputClause::Returning { returning_token: _, select_items }) => {
                (Some(select_items), Some(merge.table.clone()), "MERGE … RETURNING into")
            }
            other => {
                merge.output = other;
                return Ok(None);
            }
        },
        _ => return Ok(None),
    };
    let (Some(items), Some(table)) = (items, table) else { return Ok(None) };
    returned(state, items, table, name).await.map(Some)
}

/// The first parameter of a SELECT.
fn parameter(select: &ParsedStatement) -> Option<String> {
    struct Parameters(Option<String>);
    impl Visitor for Parameters {
        type Break = ();
        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            match &value.value {
                Value::Placeholder(name) => {
                    self.0 = Some(name.clone());
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    let ParsedStatement::Statement(select) = select else { return None };
    let mut found = Parameters(None);
    let _ = select.visit(&mut found);
    found.0
}

async fn returned(
    state: &SessionState,
    items: Vec<SelectItem>,
    table: TableFactor,
    statement: &str,
) -> Result<ParsedStatement> {
    let target = Target::of(state, table, statement).await?;
    // Items are called by their text, as those of a SELECT are.
    let named = |item| match item {
        SelectItem::UnnamedExpr(expr) if !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
            let text = with_signs(&expr.to_string());
            aliased(expr, &text)
        }
        item => item,
    };
    let items = items.into_iter().map(named).collect();
    let from = vec![TableWithJoins { relation: target.returned(), joins: Vec::new() }];
    let (query, _) = parts::select(items, from, None)?;
    let mut statement = SqlStatement::Query(query);
    target.unqualify(&mut statement);
    Ok(ParsedStatement::Statement(Box::new(statement)))
}
