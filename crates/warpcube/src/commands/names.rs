//! Commands that list what there is: tables, views, schemas, functions, the device.

use crate::commands::{Next, prompt, unquoted};
use crate::console::tell;
use crate::error::Result;
use crate::runner::Runner;

/// A pattern of psql as one of LIKE: `*` and `?`, or as in LIKE itself; in a string of SQL.
fn pattern(text: &str) -> String {
    let text = unquoted(text).replace('*', "%").replace('?', "_").replace('\'', "''");
    format!("'{}'", text.to_lowercase())
}

/// A condition on the schema and the name of a table, with a dot between their patterns.
fn matches_table(text: &str) -> String {
    match text.split_once('.') {
        Some((schema, table)) => matches("table_schema", schema) + &matches("table_name", table),
        None => matches("table_name", text),
    }
}

/// A condition on a name; none where there is no pattern.
fn matches(column: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(" AND lower({column}) LIKE {}", pattern(text)),
    }
}

/// Lists tables and views of some types, or of all, whose names match.
pub(super) fn relations(runner: &mut Runner, types: &[&str], name: &str) -> Result<Next> {
    let types: Vec<String> = types.iter().map(|name| format!("'{name}'")).collect();
    let types = if types.is_empty() { String::new() } else { format!(" AND table_type IN ({})", types.join(", ")) };
    prompt(runner.statement(&format!(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables \
         WHERE table_schema <> 'information_schema'{types}{} ORDER BY table_schema, table_name",
        matches_table(name)
    )))
}

/// Lists tables and views, or shows the statement that makes one.
pub(super) fn definition(runner: &mut Runner, name: &str) -> Result<Next> {
    if name.is_empty() {
        return relations(runner, &[], "");
    }
    runner.once.is_expanded = true;
    prompt(runner.statement(&format!("SHOW CREATE TABLE {name}")))
}

/// Lists tables and views, or the columns of one.
pub(super) fn describe(runner: &mut Runner, name: &str) -> Result<Next> {
    match name {
        "" => relations(runner, &[], ""),
        name if !name.contains(['\'', '"', '/']) && name.contains(['*', '?']) => relations(runner, &[], name),
        name => prompt(runner.statement(&format!("DESCRIBE {name}"))),
    }
}

/// Lists functions, and names that are read as those of others.
pub(super) fn functions(runner: &mut Runner, name: &str) -> Result<Next> {
    let like = if name.is_empty() { String::new() } else { format!(" LIKE {}", pattern(name)) };
    prompt(runner.statement(&format!("SHOW FUNCTIONS{like}")))
}

/// Lists databases and their schemas.
pub(super) fn schemas(runner: &mut Runner) -> Result<Next> {
    prompt(runner.statement(
        "SELECT catalog_name AS database, schema_name AS schema FROM information_schema.schemata \
         ORDER BY catalog_name, schema_name",
    ))
}

/// Shows the device, or chooses another.
pub(super) fn device(runner: &mut Runner, value: &str) -> Result<Next> {
    if !value.is_empty() {
        runner.connection.set("warpcube.device", value)?;
    }
    let device = runner.connection.database().device();
    match device.gpu() {
        Some(device) => tell(format_args!("device: {}", device.info().name)),
        None => tell(format_args!("device: CPU ({})", device.no_gpu().unwrap_or_default())),
    }
    Ok(Next::Prompt)
}
