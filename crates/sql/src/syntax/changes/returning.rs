//! RETURNING, taken out of a statement as a SELECT over the rows that it changes.

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, SelectItem, Statement as SqlStatement, TableFactor, TableObject, TableWithJoins,
};

use super::parts::{self, Target, aliased};
use crate::error::Result;
use crate::syntax::with_signs;

/// Takes RETURNING out of a statement that changes a table.
///
/// # Errors
/// Targets that are no tables in memory.
pub(in crate::syntax) async fn take(
    state: &SessionState,
    parsed: &mut ParsedStatement,
) -> Result<Option<ParsedStatement>> {
    let ParsedStatement::Statement(statement) = parsed else { return Ok(None) };
    let (items, table, name) = match statement.as_mut() {
        SqlStatement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => {
                (&mut insert.returning, Some(parts::table(name.clone(), None)), "INSERT … RETURNING into")
            }
            _ => return Ok(None),
        },
        SqlStatement::Update(update) => {
            (&mut update.returning, Some(update.table.relation.clone()), "UPDATE … RETURNING of")
        }
        SqlStatement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let table = from.first().map(|table| table.relation.clone());
            (&mut delete.returning, table, "DELETE … RETURNING from")
        }
        _ => return Ok(None),
    };
    let (Some(items), Some(table)) = (items.take(), table) else { return Ok(None) };
    returned(state, items, table, name).await.map(Some)
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
