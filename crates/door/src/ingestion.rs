//! Bulk ingestion: rows of a client that become a table, or are put into one, by one statement.

use std::sync::Arc;

use warpcube_sql::{GivenRows, GivenTables};

/// The name of the rows in the statement.
const ROWS: &str = "ingested rows";

/// What happens to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestMode {
    /// It is made, and must not be there.
    Create,
    /// It is there, and is given more rows.
    Append,
    /// It is made anew.
    Replace,
    /// It is given more rows, or made.
    CreateAppend,
}

/// The rows as a table of the statement.
pub fn ingested(rows: GivenRows) -> Arc<GivenTables> {
    GivenTables::new(move |name| Ok((name == ROWS).then(|| rows.clone())))
}

/// The statements to try, one after the other while there is no table of that name. The parts of its name stand from
/// the outermost on.
pub fn ingestion<'n>(table: impl IntoIterator<Item = &'n String>, mode: IngestMode) -> Vec<String> {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let name = table.into_iter().map(quoted).collect::<Vec<_>>().join(".");
    let create = format!("CREATE TABLE {name} AS SELECT * FROM \"{ROWS}\"");
    let insert = format!("INSERT INTO {name} BY NAME SELECT * FROM \"{ROWS}\"");
    match mode {
        IngestMode::Create => vec![create],
        IngestMode::Append => vec![insert],
        IngestMode::Replace => vec![create.replacen("CREATE", "CREATE OR REPLACE", 1)],
        IngestMode::CreateAppend => vec![insert, create],
    }
}
