//! Positions of errors in the text of their statement.
//!
//! The parser says where it stopped, and the planner where a name stands that means nothing. Both read a text that a
//! rewrite of the statement may have changed: such a position counts only where the statement's own text has there what
//! the error names. Without one, a name that the error is about is looked for among the tokens of the text, and has a
//! position if it stands there once.

use datafusion::common::{DataFusionError, SchemaError, Span};

use super::SqlError;
use crate::lexer::{Kind, Token, tokens};

/// A position in the text of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1; one more than there are at its end.
    pub column: usize,
}

/// What the parser writes in front of a position.
const AT_LINE: &str = " at Line: ";
/// What it writes between line and column.
const COLUMN: &str = ", Column: ";
/// What it writes in front of the token that it did not expect.
const FOUND: &str = "found: ";
/// The end of the text as such a token, which has no position.
const END_OF_TEXT: &str = "EOF";
/// How texts and comments begin that may have no end.
const OPENING: [char; 7] = ['\'', '"', '`', '$', '/', 'e', 'E'];
/// What the planner says of the name of a type that there is not.
const UNKNOWN_TYPE: &str = "Unsupported SQL type ";
/// How a constant begins whose text a type in front of it reads.
const TYPES_OF_CONSTANTS: [&str; 5] = ["date", "interval", "time", "timestamp", "timestamptz"];

/// Where DataFusion found an error, in the text that it read.
pub(super) fn found_at(error: &DataFusionError) -> Option<Position> {
    match error {
        DataFusionError::Context(_, inner) => found_at(inner),
        DataFusionError::Shared(inner) => found_at(inner),
        DataFusionError::Collection(errors) => found_at(errors.first()?),
        DataFusionError::Diagnostic(diagnostic, inner) => diagnostic.span.map(start_of).or_else(|| found_at(inner)),
        DataFusionError::SQL(parser, _) => without_position(&parser.to_string()).1,
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, .. } => field.spans().first().map(start_of),
            _ => None,
        },
        _ => None,
    }
}

fn start_of(span: Span) -> Position {
    Position { line: span.start.line as usize, column: span.start.column as usize }
}

/// The parser's text without the position at its end, and the position.
pub(super) fn without_position(text: &str) -> (&str, Option<Position>) {
    let parts = text.rsplit_once(AT_LINE).and_then(|(front, position)| {
        let (line, column) = position.split_once(COLUMN)?;
        Some((front, Some(Position { line: line.parse().ok()?, column: column.trim_end().parse().ok()? })))
    });
    parts.unwrap_or((text, None))
}

impl SqlError {
    /// This error without the position that it came with.
    pub(crate) fn bare(self) -> SqlError {
        match self {
            SqlError::At { error, .. } => *error,
            other => other,
        }
    }

    /// Where a statement's text has what this error is about; none where that is not certain.
    pub fn position_in(&self, sql: &str) -> Option<Position> {
        let (error, told) = match self {
            SqlError::At { error, position } => (error.as_ref(), Some(*position)),
            other => (other, None),
        };
        let text = Text { sql, tokens: tokens(sql).0 };
        if let SqlError::Syntax(reason) = error {
            return text.of_syntax(reason, told);
        }
        if let Some(told) = told.filter(|told| text.has_named(*told, &error.to_string())) {
            return Some(told);
        }
        text.of_names(error).map(|byte| text.position(byte))
    }
}

/// The text of a statement.
struct Text<'a> {
    sql: &'a str,
    tokens: Vec<Token>,
}

impl Text<'_> {
    fn byte(&self, position: Position) -> Option<usize> {
        let lines = || self.sql.split('\n');
        let line = lines().nth(position.line.checked_sub(1)?)?;
        let before: usize = lines().take(position.line - 1).map(|line| line.len() + 1).sum();
        let ends = line.char_indices().map(|(byte, _)| byte).chain([line.len()]);
        Some(before + ends.clone().nth(position.column.checked_sub(1)?)?)
    }

    fn position(&self, byte: usize) -> Position {
        let before = &self.sql[..byte];
        let line = before.rsplit('\n').next().unwrap_or(before);
        Position { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }

    /// Where the parser stopped, if the text has there what it found.
    fn of_syntax(&self, reason: &str, told: Option<Position>) -> Option<Position> {
        let found = reason.rsplit_once(FOUND).map(|(_, found)| found);
        if found == Some(END_OF_TEXT) {
            return Some(self.position(self.tokens.last()?.range.end));
        }
        let told = told?;
        let rest = &self.sql[self.byte(told)?..];
        let is_there = match found {
            // Texts are shown without the letter before them, and without what escapes.
            Some(found) if found.contains(['\'', '"']) => rest.starts_with(OPENING),
            Some(found) => rest.starts_with(found),
            None => rest.starts_with(OPENING),
        };
        is_there.then_some(told)
    }

    /// Whether the name at a position is one of an error's words.
    fn has_named(&self, position: Position, error: &str) -> bool {
        let Some(byte) = self.byte(position) else { return false };
        let Ok(at) = self.tokens.binary_search_by_key(&byte, |token| token.range.start) else { return false };
        let is_name = matches!(self.tokens[at].kind, Kind::Word | Kind::QuotedName);
        let name = self.value(at).to_lowercase();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        is_name && error.to_lowercase().split(|c: char| !is_part(c)).any(|word| word == name)
    }

    /// What a token means: words are in lower case, quotes are taken off.
    fn value(&self, at: usize) -> String {
        let token = &self.tokens[at];
        let text = &self.sql[token.range.clone()];
        let quote = text.chars().next().unwrap_or_default().to_string();
        match token.kind {
            Kind::QuotedName | Kind::Text if token.closed && text.len() > 1 => {
                text[1..text.len() - 1].replace(&quote.repeat(2), &quote)
            }
            Kind::QuotedName | Kind::Text => text.into(),
            Kind::Word | Kind::Symbol(_) => text.to_lowercase(),
        }
    }

    fn is_symbol(&self, at: usize, symbol: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Symbol(symbol))
    }

    fn is_word(&self, at: usize, words: &[&str]) -> bool {
        let token = self.tokens.get(at).filter(|token| token.kind == Kind::Word);
        token.is_some_and(|token| words.iter().any(|word| word.eq_ignore_ascii_case(&self.sql[token.range.clone()])))
    }

    /// The byte where what an error names begins, if it stands in the text once.
    fn of_names(&self, error: &SqlError) -> Option<usize> {
        match error {
            SqlError::UnknownTable { name, .. } => self.of_name(name).or_else(|| self.of_text(name)),
            SqlError::UnknownSetting { name, .. } => self.of_name(name),
            SqlError::UnknownColumn { name, .. } => {
                self.of_name(name).or_else(|| self.of_name(name.rsplit('.').next().unwrap_or(name)))
            }
            SqlError::FileMissing { path, .. }
            | SqlError::FileNone { path, .. }
            | SqlError::FileFormat { path, .. }
            | SqlError::FileOutside(path, _) => self.of_text(path),
            SqlError::Planning(reason) => {
                let unknown = reason.strip_prefix("unknown function '").and_then(|rest| rest.split('\'').next());
                let called = || reason.contains(" does not exist").then(|| reason.split('(').next()).flatten();
                self.of_call(unknown.or_else(called)?)
            }
            SqlError::Unsupported(reason) => self.of_name(&reason.strip_prefix(UNKNOWN_TYPE)?.to_lowercase()),
            SqlError::Execution(reason) => {
                let (_, value) = reason.split_once("Cannot cast string '")?;
                self.of_constant(value.split_once("' to ")?.0)
            }
            _ => None,
        }
    }

    /// The one place of those whose tokens are as they have to be.
    fn once(&self, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let mut places = (0..self.tokens.len()).filter(|at| is_it(*at));
        let place = places.next()?;
        places.next().is_none().then(|| self.tokens[place].range.start)
    }

    /// A name of parts with points between them: neither a part of a longer one nor a call or an alias.
    fn of_name(&self, name: &str) -> Option<usize> {
        let parts: Vec<&str> = name.split('.').map(|part| part.trim_matches('"')).collect();
        let is_name =
            |at: usize| self.tokens.get(at).is_some_and(|token| matches!(token.kind, Kind::Word | Kind::QuotedName));
        self.once(|at| {
            let end = at + 2 * parts.len() - 1;
            let has_part = |(part, text): (usize, &&str)| {
                let at = at + 2 * part;
                is_name(at) && self.value(at) == **text && (part == 0 || self.is_symbol(at - 1, '.'))
            };
            let is_after = |symbol| at > 0 && self.is_symbol(at - 1, symbol);
            let is_alias = at > 0 && self.is_word(at - 1, &["as"]);
            parts.iter().enumerate().all(has_part) && !is_after('.') && !is_alias && !self.is_symbol(end, '.')
        })
    }

    /// A call of a function.
    fn of_call(&self, name: &str) -> Option<usize> {
        self.once(|at| {
            self.tokens[at].kind == Kind::Word && self.value(at) == name.to_lowercase() && self.is_symbol(at + 1, '(')
        })
    }

    /// A text, such as the name of a file.
    fn of_text(&self, value: &str) -> Option<usize> {
        self.once(|at| self.tokens[at].kind == Kind::Text && self.value(at) == value)
    }

    /// A text that is cast where it stands. Rows may have the same text.
    fn of_constant(&self, value: &str) -> Option<usize> {
        let byte = self.of_text(value)?;
        let at = self.tokens.binary_search_by_key(&byte, |token| token.range.start).ok()?;
        let is_cast = at > 1 && self.is_symbol(at - 1, '(') && self.is_word(at - 2, &["cast"]);
        let is_typed = at > 0 && self.is_word(at - 1, &TYPES_OF_CONSTANTS);
        (is_cast || is_typed || self.is_symbol(at + 1, ':')).then_some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(error: SqlError, told: Option<(usize, usize)>, sql: &str) -> Option<(usize, usize)> {
        let error = match told {
            Some((line, column)) => SqlError::At { error: Box::new(error), position: Position { line, column } },
            None => error,
        };
        error.position_in(sql).map(|position| (position.line, position.column))
    }

    fn column(name: &str) -> SqlError {
        SqlError::UnknownColumn { name: name.into(), nearest: None }
    }

    fn table(name: &str) -> SqlError {
        SqlError::UnknownTable { name: name.into(), nearest: None }
    }

    #[test]
    fn the_parser_s_position_counts_where_the_text_has_what_it_found() {
        let syntax = |text: &str| SqlError::Syntax(text.into());
        assert_eq!(without_position("a at Line: 2, Column: 20"), ("a", Some(Position { line: 2, column: 20 })));
        assert_eq!(at(syntax("Expected: end, found: WHRE"), Some((2, 3)), "SELECT 1\n  WHRE x"), Some((2, 3)));
        assert_eq!(at(syntax("Expected: end, found: WHRE"), Some((1, 3)), "SELECT 1\n  WHRE x"), None);
        assert_eq!(at(syntax("Expected: x, found: EOF"), None, "SELECT 1 + -- more\n"), Some((1, 11)));
        assert_eq!(at(syntax("Unterminated string literal"), Some((1, 8)), "SELECT 'é"), Some((1, 8)));
        assert_eq!(at(syntax("expected LOAD TABLE name"), None, "LOAD TABLE"), None);
    }

    #[test]
    fn the_planner_s_position_counts_where_a_name_of_the_error_stands() {
        let sql = "SELECT nope, count(*) FROM t GROUP BY nope";
        assert_eq!(at(column("nope"), Some((1, 39)), sql), Some((1, 39)));
        assert_eq!(at(column("nope"), Some((1, 14)), sql), None, "of a text that was rewritten");
        assert_eq!(at(column("nope"), Some((7, 1)), sql), None);
        assert_eq!(at(column("t.nope"), Some((1, 8)), "SELECT t.nope FROM t"), Some((1, 8)));
    }

    #[test]
    fn names_that_stand_once_have_a_position() {
        assert_eq!(at(column("nope"), None, "SELECT a AS nope, 'nope', nope FROM t -- nope"), Some((1, 27)));
        assert_eq!(at(column("t.nope"), None, "SELECT NOPE FROM t"), Some((1, 8)));
        assert_eq!(at(column("Nope"), None, "SELECT nope, \"Nope\" FROM t"), Some((1, 14)));
        assert_eq!(at(table("tt"), None, "SELECT tt.a\nFROM tt"), Some((2, 6)));
        assert_eq!(at(table("s.tt"), None, "SELECT 1 FROM s.tt"), Some((1, 15)));
        assert_eq!(at(table("tt"), None, "SELECT 1 FROM tt, u AS x, tt AS y"), None);
        let call = |text: &str| SqlError::Planning(text.into());
        assert_eq!(at(call("unknown function 'summ'"), None, "SELECT summ, Summ(a) FROM t"), Some((1, 14)));
        let none = "sum(VARCHAR) does not exist; there are sum(BIGINT)";
        assert_eq!(at(call(none), None, "SELECT sum('x')"), Some((1, 8)));
        let missing = SqlError::FileMissing { path: "a.csv".into(), nearest: None };
        assert_eq!(at(missing, None, "FROM 'a.csv'"), Some((1, 6)));
        let no_type = SqlError::Unsupported("Unsupported SQL type INTT".into());
        assert_eq!(at(no_type, None, "SELECT a::intt"), Some((1, 11)));
        let cast = || SqlError::Execution("Cannot cast string 'x' to value of INT type".into());
        assert_eq!(at(cast(), None, "SELECT CAST('x' AS INT)"), Some((1, 13)));
        assert_eq!(at(cast(), None, "SELECT 'x'::INT"), Some((1, 8)));
        assert_eq!(at(cast(), None, "SELECT CAST(a AS INT) FROM t WHERE a = 'x'"), None);
    }
}
