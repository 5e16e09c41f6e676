//! Calls of functions that read files, as names of tables: `FROM read_csv('a.csv')` is read as
//! `FROM "read_csv('a.csv')" AS read_csv`.
//!
//! Functions of tables are planned without waiting, and files are looked at by waiting for them. Names of tables are
//! looked up so, and a view keeps the name ([`crate::catalog`] opens it).

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    FunctionArg, Ident, ObjectName, TableAlias, TableFactor, TableFunctionArgs, VisitorMut,
};

use super::quotes::quoted;

/// The functions, with the format that they read.
const FUNCTIONS: [(&str, &str); 8] = [
    ("parquet_scan", "PARQUET"),
    ("read_csv", "CSV"),
    ("read_csv_auto", "CSV"),
    ("read_json", "JSON"),
    ("read_json_auto", "JSON"),
    ("read_ndjson", "JSON"),
    ("read_ndjson_auto", "JSON"),
    ("read_parquet", "PARQUET"),
];

/// The format that a function reads, by its name in lower case; none of other functions.
pub(crate) fn read_by(function: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(name, _)| *name == function).map(|(_, format)| *format)
}

/// Part of the names of all functions that read files, in lower case.
const MARKS: [&str; 2] = ["read_", "parquet_scan"];

/// Whether calls may be in the text of a statement.
pub(super) fn are_in(sql: &str) -> bool {
    let text = sql.to_ascii_lowercase();
    MARKS.iter().any(|mark| text.contains(mark))
}

/// Reads calls as names.
pub(super) fn as_names(parsed: &mut ParsedStatement) {
    let _ = super::visit(parsed, &mut Calls);
}

struct Calls;

impl VisitorMut for Calls {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args, .. } = factor else { return ControlFlow::Continue(()) };
        let Some(TableFunctionArgs { args: given, settings: None }) = args else { return ControlFlow::Continue(()) };
        let function = match name.0.as_slice() {
            [part] => part.as_ident().map(|ident| ident.value.to_lowercase()).filter(|name| read_by(name).is_some()),
            _ => None,
        };
        let Some(function) = function else { return ControlFlow::Continue(()) };
        let given = given.iter().map(FunctionArg::to_string).collect::<Vec<_>>().join(", ");
        *name = ObjectName::from(vec![quoted(format!("{function}({given})"))]);
        *args = None;
        alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: Ident::new(function),
            columns: Vec::new(),
            at: None,
        });
        ControlFlow::Continue(())
    }
}
