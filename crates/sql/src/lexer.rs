//! Where SQL text has words, strings and comments: enough to split a script into statements and to recognise the few
//! statements that are ours.
//!
//! Strings in single quotes (doubled to escape, after an E also by a backslash), identifiers in double quotes or
//! backticks, dollar-quoted strings, comments to the end of the line and nested block comments. Nothing is judged here:
//! an unclosed quote reaches to the end of the text, and the parser says what is wrong with it. The tokenizer of
//! `sqlparser` stops at such a quote, and has lines and columns in place of bytes.

use std::ops::Range;

use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;

/// A piece of SQL text that is not blank and not a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Letters, digits and underscores.
    Word,
    /// `"…"` or `` `…` ``.
    QuotedName,
    /// `'…'` or `$tag$…$tag$`.
    Text,
    /// Any other character.
    Symbol(char),
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub range: Range<usize>,
    /// False if its quote reaches to the end of the text.
    pub closed: bool,
}

/// The tokens of `sql`; comments and blanks are left out. The flag says whether a block comment was left open.
pub fn tokens(sql: &str) -> (Vec<Token>, bool) {
    let bytes = sql.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut open_comment = false;
    while let Some(character) = sql[at..].chars().next() {
        let start = at;
        let rest = &sql[at..];
        if character.is_whitespace() {
            at += character.len_utf8();
        } else if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let (length, closed) = block_comment(rest);
            at += length;
            open_comment = !closed;
        } else if character == '\'' || character == '"' || character == '`' {
            let (length, closed) = quoted(rest, character);
            at += length;
            let kind = if character == '\'' { Kind::Text } else { Kind::QuotedName };
            tokens.push(Token { kind, range: start..at, closed });
        } else if let Some((length, closed)) = dollar_quoted(rest) {
            at += length;
            tokens.push(Token { kind: Kind::Text, range: start..at, closed });
        } else if is_word(character) {
            while at < bytes.len() && sql[at..].chars().next().is_some_and(is_word) {
                at += sql[at..].chars().next().map_or(1, char::len_utf8);
            }
            let mut token = Token { kind: Kind::Word, range: start..at, closed: true };
            if matches!(&sql[start..at], "e" | "E") && sql[at..].starts_with('\'') {
                let (length, closed) = escaped(&sql[at..]);
                at += length;
                token = Token { kind: Kind::Text, range: start..at, closed };
            }
            tokens.push(token);
        } else {
            at += character.len_utf8();
            tokens.push(Token { kind: Kind::Symbol(character), range: start..at, closed: true });
        }
    }
    (tokens, open_comment)
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn block_comment(text: &str) -> (usize, bool) {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return (at, true);
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    (text.len(), false)
}

fn quoted(text: &str, quote: char) -> (usize, bool) {
    let mut at = 1;
    while let Some(found) = text[at..].find(quote) {
        at += found + 1;
        if !text[at..].starts_with(quote) {
            return (at, true);
        }
        at += 1;
    }
    (text.len(), false)
}

/// `'…'` after an `E`: a backslash takes its meaning from the character behind it.
fn escaped(text: &str) -> (usize, bool) {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '\'' if characters.next_if(|(_, next)| *next == '\'').is_none() => return (at + 1, true),
            _ => {}
        }
    }
    (text.len(), false)
}

/// `$tag$…$tag$`; `$1` is a parameter and not the start of a string.
fn dollar_quoted(text: &str) -> Option<(usize, bool)> {
    let inner = text.strip_prefix('$')?;
    let tag_end = inner.find('$')?;
    let tag = &inner[..tag_end];
    if tag.chars().next().is_some_and(|first| first.is_ascii_digit()) || !tag.chars().all(is_word) {
        return None;
    }
    let delimiter = &text[..tag_end + 2];
    match text[delimiter.len()..].find(delimiter) {
        Some(found) => Some((delimiter.len() + found + delimiter.len(), true)),
        None => Some((text.len(), false)),
    }
}

/// Keywords that are names of columns more often than they begin anything.
const COLUMNS: [&str; 17] = [
    "comment", "content", "data", "date", "document", "event", "header", "json", "key", "name", "object", "result",
    "source", "text", "time", "type", "value",
];

/// Whether a word may be the name of a column, behind which `?` is the operator of JSON. GLOB is an operator and no
/// keyword.
pub fn names_column(word: &str) -> bool {
    let is_keyword = || ALL_KEYWORDS.binary_search(&word.to_uppercase().as_str()).is_ok();
    let is_column = COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(word));
    !word.eq_ignore_ascii_case("glob") && (is_column || !is_keyword())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sql: &str) -> Vec<(Kind, &str)> {
        tokens(sql).0.into_iter().map(|token| (token.kind, &sql[token.range])).collect()
    }

    #[test]
    fn quotes_and_comments() {
        let found = kinds("a 'it''s; ' \"x;\"\"y\" -- ; no\n /* ; /* ; */ */ $t$ ; $$ $t$ $1;");
        let expected = [
            (Kind::Word, "a"),
            (Kind::Text, "'it''s; '"),
            (Kind::QuotedName, "\"x;\"\"y\""),
            (Kind::Text, "$t$ ; $$ $t$"),
            (Kind::Symbol('$'), "$"),
            (Kind::Word, "1"),
            (Kind::Symbol(';'), ";"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn backslashes_escape_after_an_e() {
        let found = kinds(r"E'it\'s; ''' e'\\' x'\' 'a\' é");
        let expected = [
            (Kind::Text, r"E'it\'s; '''"),
            (Kind::Text, r"e'\\'"),
            (Kind::Word, "x"),
            (Kind::Text, r"'\'"),
            (Kind::Text, r"'a\'"),
            (Kind::Word, "é"),
        ];
        assert_eq!(found, expected);
        assert!(!tokens(r"E'\'").0[0].closed);
    }

    #[test]
    fn open_ends_are_seen() {
        assert!(!tokens("select 'abc").0[1].closed);
        assert!(tokens("select 1 /* and").1);
        assert!(!tokens("select 1 /* and */").1);
        assert!(!tokens("'é").0[0].closed);
    }
}
