//! Texts of errors and names within them.

use datafusion::common::DataFusionError;

use crate::words::{in_sql, types_in_sql};

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
    types_in_sql(&in_sql(&one_line(text)))
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
