//! Errors of a query's text.

use super::Span;

/// A query or a change that does not follow the language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}column {column}: {message}", of_line(*.line))]
pub struct QueryError {
    /// What was expected and what was found.
    pub message: String,
    /// Where, in bytes of the text.
    pub span: Span,
    /// The line, from one.
    pub line: usize,
    /// Where, in characters of its line, from one.
    pub column: usize,
}

/// The line of an error; the first, which most texts end on, goes without saying.
fn of_line(line: usize) -> String {
    if line == 1 { String::new() } else { format!("line {line}, ") }
}

impl QueryError {
    pub(crate) fn new(text: &str, span: Span, message: String) -> QueryError {
        let line_start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[..line_start].matches('\n').count() + 1;
        QueryError { message, span, line, column: text[line_start..span.start].chars().count() + 1 }
    }

    /// The line of the text that has the error, with carets below the place.
    pub fn excerpt(&self, text: &str) -> String {
        let start = self.span.start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].lines().next().unwrap_or("");
        let marked = text[start..self.span.end.min(line_start + line.len()).max(start)].chars().count().max(1);
        format!("{line}\n{}{}", " ".repeat(self.column - 1), "^".repeat(marked))
    }
}
