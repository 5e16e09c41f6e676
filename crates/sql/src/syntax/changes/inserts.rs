//! INSERT, completed: DEFAULT gets its value, and what is not done is refused by name.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Insert, Query, SetExpr, TableObject, Values};

use super::super::dialect::parser_of;
use super::super::items::folded;
use super::parts::{self, default_of, found, is_default};
use super::refuse;
use crate::error::{Result, SqlError};
use crate::memory_table::MemoryTable;

/// Completes an INSERT whose ON CONFLICT has been taken.
pub(super) async fn complete(state: &SessionState, insert: &mut Insert) -> Result<()> {
    let Insert {
        insert_token: _,
        optimizer_hints,
        or,
        ignore,
        into: _,
        table,
        table_alias,
        columns,
        overwrite: _,
        source,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword: _,
        on,
        returning,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    let several = multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some();
    refuse(
        "INSERT",
        &[
            ("hints", !optimizer_hints.is_empty()),
            ("OR", or.is_some()),
            ("IGNORE", *ignore),
            ("an alias", table_alias.is_some() || insert_alias.is_some()),
            ("SET", !assignments.is_empty()),
            ("PARTITION", partitioned.is_some() || !after_columns.is_empty()),
            ("ON CONFLICT or ON DUPLICATE KEY", on.is_some()),
            ("RETURNING", returning.is_some()),
            ("OUTPUT", output.is_some()),
            ("REPLACE", *replace_into),
            ("a priority", priority.is_some()),
            ("SETTINGS", settings.is_some()),
            ("FORMAT", format_clause.is_some()),
            ("several tables", several),
        ],
    )?;
    let TableObject::TableName(name) = table else {
        return Err(SqlError::Unsupported(format!("INSERT INTO {table}, which is no table")));
    };
    // The hidden names are for statements that are rewritten.
    if parts::is_hidden(name) {
        return Err(SqlError::UnknownTable { name: name.to_string(), nearest: None });
    }
    let needs_defaults = source.as_ref().is_none_or(|source| has_default(source));
    if !needs_defaults {
        return Ok(());
    }
    let table = found(state, name).await?;
    if table.downcast_ref::<MemoryTable>().is_none() {
        return Err(SqlError::Unsupported(format!("DEFAULT for {name}, which is no table in memory")));
    }
    let schema = table.schema();
    let names: Vec<String> = match columns.is_empty() {
        true => schema.fields().iter().map(|field| field.name().clone()).collect(),
        false => columns.iter().filter_map(|name| name.0.last()?.as_ident().map(folded)).collect(),
    };
    let default = |column: usize| names.get(column).map(|name| default_of(table.as_ref(), name));
    let source = match source {
        Some(source) => source,
        // DEFAULT VALUES.
        None => {
            let parser = parser_of("VALUES (DEFAULT)");
            let parsed = parser.and_then(|mut parser| parser.parse_query());
            let mut query = parsed.map_err(|error| SqlError::Internal(error.to_string()))?;
            if let SetExpr::Values(Values { rows, .. }) = query.body.as_mut()
                && let Some(row) = rows.first_mut()
                && let Some(word) = row.content.first().cloned()
            {
                row.content = vec![word; names.len()];
            }
            source.insert(query)
        }
    };
    if let SetExpr::Values(Values { rows, .. }) = source.body.as_mut() {
        for row in rows {
            for (column, cell) in row.content.iter_mut().enumerate().filter(|(_, cell)| is_default(cell)) {
                let value = default(column);
                *cell = value.ok_or_else(|| SqlError::Planning("more values than columns in INSERT".into()))?;
            }
        }
    }
    Ok(())
}

fn has_default(source: &Query) -> bool {
    match source.body.as_ref() {
        SetExpr::Values(Values { rows, .. }) => {
            rows.iter().any(|row| row.content.iter().any(is_default as fn(&Expr) -> bool))
        }
        _ => false,
    }
}
