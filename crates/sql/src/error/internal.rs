//! What DataFusion calls an internal error and is a matter of the statement: its code is not SQL-010.

use super::{SqlError, in_words};

/// What DataFusion calls internal and is a matter of the statement.
pub(super) fn of_statement(text: &str) -> Option<SqlError> {
    let between = |text: &str| {
        let types = text.strip_prefix("Failed to coerce types ")?.strip_suffix(" in BETWEEN expression")?;
        Some(SqlError::Planning(in_words(&format!("BETWEEN compares {types}; a CAST may be missing"))))
    };
    let extremes = |text: &str| {
        let of = text.strip_prefix("Min/Max accumulator not implemented for type ")?;
        let of = if of.starts_with("Map(") { "maps".into() } else { in_words(of) };
        Some(SqlError::Unsupported(format!("MIN and MAX of {of}")))
    };
    if text.contains("Nth value indices are 1 based") {
        return Some(SqlError::Planning("nth_value counts rows from 1, found 0".into()));
    }
    if text.starts_with("Unexpected empty work table") {
        let reason = "a recursive query that reads itself in a subquery, or more than once in a step";
        return Some(SqlError::Unsupported(reason.into()));
    }
    if text.contains("DISTINCT aggregate should have exactly one argument") {
        return Some(SqlError::Unsupported("DISTINCT of several values in an aggregate; take a struct of them".into()));
    }
    if text.starts_with("Assertion failed: matches!(op, Operator::Eq") {
        return Some(SqlError::Planning("lists, structs and maps are only compared by =, < and their like".into()));
    }
    if let Some(place) = text.strip_prefix("No suitable object store found for ") {
        let place = place.split(". See ").next().unwrap_or(place);
        return Some(SqlError::Unsupported(format!("files that are not on this machine: {place}")));
    }
    if text.starts_with("array_slice got invalid stride") {
        return Some(SqlError::Execution(in_words(text)));
    }
    if text.starts_with("array_resize: failed to convert size") {
        return Some(SqlError::Execution("array_resize takes a size from 0 on".into()));
    }
    between(text).or_else(|| extremes(text))
}
