//! Statements that DataFusion's planner refuses and could take in other words.
//!
//! `COPY … TO` tells the format by the same extensions as reading does, compression included, and takes the same names
//! in `STORED AS`; `SET TIME ZONE zone` sets the setting of the time zone.

use datafusion::sql::parser::{CopyToStatement, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Set, Statement as SqlStatement, Value};

use crate::catalog;
use crate::error::{Result, SqlError};

/// The statement as the planner takes it.
///
/// # Errors
/// An unknown format or extension of a `COPY`; a `SET` that is not of a setting.
pub(crate) fn rewrite(parsed: ParsedStatement) -> Result<ParsedStatement> {
    Ok(match parsed {
        ParsedStatement::CopyTo(copy) => ParsedStatement::CopyTo(with_format(copy)?),
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
fn with_format(mut copy: CopyToStatement) -> Result<CopyToStatement> {
    let Some((name, options)) = catalog::written_as(copy.stored_as.as_deref(), &copy.target)? else { return Ok(copy) };
    copy.stored_as = Some(name.into());
    for (option, value) in options {
        let bare = option.trim_start_matches("format.");
        let is_given =
            |(given, _): &(String, Value)| given.eq_ignore_ascii_case(option) || given.eq_ignore_ascii_case(bare);
        if !copy.options.iter().any(is_given) {
            copy.options.push((option.into(), Value::SingleQuotedString(value)));
        }
    }
    Ok(copy)
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
