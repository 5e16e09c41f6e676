//! Texts of errors and names within them.

use datafusion::common::DataFusionError;

use super::hint;
use crate::nearest::nearest;
use crate::words::{in_sql, types_in_sql};

/// Words that statements and clauses begin with.
#[rustfmt::skip]
const BEGINNINGS: [&str; 24] = [
    "ALTER", "COPY", "CREATE", "DELETE", "DESCRIBE", "DROP", "EXPLAIN", "FROM", "GROUP", "HAVING", "INSERT", "INTO",
    "JOIN", "LIMIT", "ORDER", "PIVOT", "SELECT", "SHOW", "SUMMARIZE", "TABLE", "UPDATE", "VALUES", "WHERE", "WITH",
];

/// The word that may be meant where the parser has stopped at one that is nearly such.
pub(super) fn keyword_hint(reason: &str) -> String {
    let found = reason.rsplit_once("found: ").map(|(_, found)| found).filter(|found| found.len() > 3);
    hint(
        &found
            .and_then(|found| nearest(found, BEGINNINGS.map(String::from)))
            .filter(|word| !found.is_some_and(|found| found.eq_ignore_ascii_case(word))),
    )
}

/// The nearest column; where none is near, a name that only quotes can have written may be meant as a text.
pub(super) fn column_hint(name: &str, nearest: &Option<String>) -> String {
    let is_quoted = || name.chars().any(|c| c.is_uppercase() || c.is_whitespace()) && !name.contains('.');
    match nearest {
        None if is_quoted() => format!("; a text stands in single quotes: '{}'", name.replace('\'', "''")),
        nearest => hint(nearest),
    }
}

/// A name as SQL takes it: in quotes if it would be read as another one without.
pub fn as_written(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// DataFusion's text on one line, in SQL's words.
pub(super) fn in_words(text: &str) -> String {
    let text = types_in_sql(&in_sql(&one_line(text)));
    let between = |front: &str, end: &str| text.strip_prefix(front)?.strip_suffix(end);
    if let Some(expression) = between("Cannot coerce arithmetic expression ", " to valid types") {
        return format!("there is no {expression}; a CAST may be missing");
    }
    // All that the formatter of times says.
    if text == "Format error" {
        return "a pattern of times has a code that is none; there are %Y, %m, %d, %H, %M and %S".into();
    }
    if let Some(name) = between("'", "' is not a variable which can be viewed with 'SHOW'") {
        return format!("there is no setting or table '{name}' to show; SHOW ALL lists settings, SHOW TABLES tables");
    }
    let of_values = between("Inconsistent data length across values list: got ", "").and_then(|rest| {
        let (found, rest) = rest.split_once(" values in row ")?;
        Some((found, rest.split_once(" but expected ")?.1))
    });
    match of_values {
        Some((found, expected)) => format!("{found} values in a row of VALUES, where {expected} are expected"),
        None => text,
    }
}

/// The front of a text that may have a whole syntax tree in it.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} …", text[..end].trim_end()),
        None => text.to_string(),
    }
}

/// What code that gave up said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    one_line(text.unwrap_or("no message"))
}

/// The text on one line: line breaks become spaces, DataFusion's backtrace is cut off.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
