//! Statements that DataFusion's planner refuses and could take in other words.
//!
//! `COPY … TO` tells the format by the same extensions as reading does, compression included, and takes the same names
//! in `STORED AS`; `SET TIME ZONE zone` sets the setting of the time zone.

use datafusion::sql::parser::{CopyToStatement, CreateExternalTable, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Set, Statement as SqlStatement, Value};

use crate::error::{Result, SqlError};
use crate::format_options::{self, Purpose};
use crate::formats;

/// The statement as the planner takes it.
///
/// # Errors
/// An unknown format or extension of a `COPY`; a `SET` that is not of a setting.
pub(crate) fn rewrite(parsed: ParsedStatement) -> Result<ParsedStatement> {
    Ok(match parsed {
        ParsedStatement::CopyTo(copy) => ParsedStatement::CopyTo(with_format(copy)?),
        ParsedStatement::CreateExternalTable(table) => {
            check_table(&table)?;
            ParsedStatement::CreateExternalTable(table)
        }
        ParsedStatement::Explain(mut explain) => {
            if let ParsedStatement::Statement(inner) = explain.statement.as_ref()
                && matches!(inner.as_ref(), SqlStatement::Execute { .. })
            {
                return Err(SqlError::Unsupported(
                    "EXPLAIN of EXECUTE; it takes the statement that was prepared".into(),
                ));
            }
            explain.statement = Box::new(rewrite(*explain.statement)?);
            ParsedStatement::Explain(explain)
        }
        ParsedStatement::Statement(statement) => match *statement {
            SqlStatement::Set(set) => ParsedStatement::Statement(Box::new(SqlStatement::Set(of_setting(set)?))),
            other => ParsedStatement::Statement(Box::new(other)),
        },
        other => other,
    })
}

/// A `COPY` with its format, and the options that follow from it where the user gives none.
fn with_format(copy: CopyToStatement) -> Result<CopyToStatement> {
    let CopyToStatement { source, target, partitioned_by, stored_as, mut options } = copy;
    let mut keys: Vec<&String> = partitioned_by.iter().collect();
    keys.sort();
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(SqlError::Planning(format!("PARTITIONED BY names '{}' twice", pair[0])));
    }
    let Some((name, defaults)) = formats::written_as(stored_as.as_deref(), &target)? else {
        let reason = "the folder's name has no extension to tell the format: add STORED AS, such as STORED AS PARQUET";
        return Err(SqlError::FileFormat { path: target, reason: reason.into() });
    };
    let is_given = |options: &[(String, Value)], option: &str| {
        let bare = option.trim_start_matches("format.");
        options.iter().any(|(given, _)| given.eq_ignore_ascii_case(option) || given.eq_ignore_ascii_case(bare))
    };
    // What the extension says stands beside what the user says of it.
    for (option, value) in defaults {
        if !is_given(&options, option) {
            options.push((option.into(), Value::SingleQuotedString(value)));
        }
    }
    format_options::check(name, Purpose::Copy, &options)?;
    // A writer that doubles quotes escapes nothing.
    if is_given(&options, "format.escape") && !is_given(&options, "format.double_quote") {
        options.push(("format.double_quote".into(), Value::SingleQuotedString("false".into())));
    }
    Ok(CopyToStatement { source, target, partitioned_by, stored_as: Some(name.into()), options })
}

/// Refuses options of a table that its format does not do.
fn check_table(table: &CreateExternalTable) -> Result<()> {
    let file_type = formats::stored_as(&table.file_type, &table.locations.join(", "))?;
    let mut options = table.options.clone();
    let given = |name: &str| table.options.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let compression = table.locations.iter().find_map(|location| formats::compression_of(location));
    if let (Some(name), false) = (compression, given("compression") || given("format.compression")) {
        options.push(("compression".into(), Value::SingleQuotedString(name.into())));
    }
    format_options::check(file_type.name, Purpose::Table, &options)
}

/// A `SET` as one of a setting.
fn of_setting(set: Set) -> Result<Set> {
    match set {
        Set::SingleAssignment { .. } => Ok(set),
        Set::SetTimeZone { local: false, value: value @ (Expr::Value(_) | Expr::UnaryOp { .. }) } => {
            let variable = ObjectName::from(vec![Ident::new("timezone")]);
            Ok(Set::SingleAssignment { scope: None, hivevar: false, variable, values: vec![value] })
        }
        other => Err(SqlError::Unsupported(other.to_string())),
    }
}
