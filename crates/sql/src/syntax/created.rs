//! `SHOW CREATE TABLE t`, which DataFusion 55.2 answers for views alone: the statement that makes a table as it is now.

use datafusion::datasource::TableType;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};

use super::changes::found_table;
use super::dialect::parser_of;
use super::items::constant;
use super::quotes::quoted;
use super::temporary;
use crate::default_schema::{LASTING, SCHEMA};
use crate::error::{Result, SqlError};
use crate::memory_table::MemoryTable;
use crate::words::type_name;

/// The query that a SHOW CREATE TABLE, or VIEW, is; none of another statement.
///
/// # Errors
/// A name that is unknown, and [`SqlError::Unsupported`] for a table whose definition is not known.
pub(super) async fn as_query(state: &SessionState, sql: &str) -> Result<Option<String>> {
    let Some(name) = shown(sql) else { return Ok(None) };
    let mut settled = name.clone();
    let is_temporary = temporary::settle(state, &mut settled);
    let (reference, table) = found_table(state, &settled).await?;
    let definition = match table.downcast_ref::<MemoryTable>() {
        Some(memory) => Some(definition(&name, is_temporary, memory)),
        None => table.get_table_definition().map(str::to_string),
    };
    let definition = definition.ok_or_else(|| match table.table_type() {
        TableType::View => SqlError::Unsupported(format!("SHOW CREATE VIEW {name}, whose text is not kept")),
        _ => SqlError::Unsupported(format!("SHOW CREATE TABLE {name}, a table over files; DESCRIBE has its columns")),
    })?;
    let names = &state.config_options().catalog;
    let reference = reference.resolve(&names.default_catalog, &names.default_schema);
    let schema = if *reference.schema == *LASTING { SCHEMA } else { reference.schema.as_ref() };
    let [catalog, schema, table] = [reference.catalog.as_ref(), schema, reference.table.as_ref()].map(constant);
    Ok(Some(format!(
        "SELECT {catalog} AS table_catalog, {schema} AS table_schema, {table} AS table_name, {} AS definition",
        constant(&definition)
    )))
}

/// The name behind SHOW CREATE TABLE or VIEW.
fn shown(sql: &str) -> Option<ObjectName> {
    let front = sql.trim_start();
    let mut rest = front;
    for words in [&["show"][..], &["create"], &["table", "view"]] {
        let end = rest.find(char::is_whitespace)?;
        let is_next = words.iter().any(|word| rest[..end].eq_ignore_ascii_case(word));
        rest = if is_next { rest[end..].trim_start() } else { return None };
    }
    let rest = rest.trim_end().trim_end_matches(';');
    parser_of(rest).and_then(|mut parser| parser.parse_object_name(false)).ok()
}

/// The statement that makes a table in memory, without its rows.
fn definition(name: &ObjectName, is_temporary: bool, table: &MemoryTable) -> String {
    let schema = datafusion::catalog::TableProvider::schema(table);
    let quoted = |name: &str| match name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
        true => Ident::new(name),
        false => quoted(name),
    };
    let mut items: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| {
            let null = if field.is_nullable() { "" } else { " NOT NULL" };
            let default = table.default_of(field.name()).map(|default| format!(" DEFAULT {default}"));
            format!("{} {}{null}{}", quoted(field.name()), type_name(field), default.unwrap_or_default())
        })
        .collect();
    for (is_primary, columns) in table.declared_keys() {
        let columns: Vec<String> = columns.iter().map(|column| quoted(column).to_string()).collect();
        items.push(format!("{} ({})", if is_primary { "PRIMARY KEY" } else { "UNIQUE" }, columns.join(", ")));
    }
    items.extend(table.checks().map(|check| format!("CHECK ({check})")));
    // A temporary table has its own schema.
    let made = match name.0.last() {
        Some(own) if is_temporary => format!("TEMP TABLE {own}"),
        _ => format!("TABLE {name}"),
    };
    format!("CREATE {made} ({})", items.join(", "))
}
