//! Tokens of a query's text.

use super::{QueryError, Span};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name without quotes; it may be a word of the language or a number.
    Word(String),
    /// A name between quotes.
    Quoted(String),
    /// A sign: one of `, : ; * ( ) .. = <> < <= > >=`.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// Signs, longer ones before those they begin with.
const SIGNS: [&str; 13] = ["..", "<>", "<=", ">=", "<", ">", "=", ",", ":", ";", "*", "(", ")"];

/// The tokens of a text, the last of which is [`Token::End`].
///
/// # Errors
/// A quote that nothing closes, an empty name, and signs that the language has not.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, QueryError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        } else if next == '"' {
            quoted(text, at)?
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let length = word_bytes(rest);
            if length == 0 {
                let span = Span { start: at, end: at + next.len_utf8() };
                let message = format!("{next:?} is no part of a query; names with other characters are quoted: \"…\"");
                return Err(QueryError::new(text, span, message));
            }
            (Token::Word(rest[..length].to_string()), length)
        };
        tokens.push((token, Span { start: at, end: at + length }));
        at += length;
    }
    tokens.push((Token::End, Span { start: text.len(), end: text.len() }));
    Ok(tokens)
}

/// Bytes of the name or number that the text begins with. A point belongs to it between two digits.
fn word_bytes(text: &str) -> usize {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    text.char_indices()
        .find(|(at, c)| {
            let is_point = *c == '.' && *at > 0 && is_digit(at - 1) && is_digit(at + 1);
            !(c.is_alphanumeric() || matches!(c, '_' | '-' | '%') || is_point)
        })
        .map_or(text.len(), |(at, _)| at)
}

/// The quoted name that begins at a byte, and its bytes with the quotes.
fn quoted(text: &str, start: usize) -> Result<(Token, usize), QueryError> {
    let (mut name, mut at) = (String::new(), start + 1);
    while let Some(length) = text[at..].find('"') {
        name.push_str(&text[at..at + length]);
        at += length + 1;
        if !text[at..].starts_with('"') {
            if name.is_empty() {
                let span = Span { start, end: at };
                return Err(QueryError::new(text, span, "a name between quotes is empty".to_string()));
            }
            return Ok((Token::Quoted(name), at - start));
        }
        name.push('"');
        at += 1;
    }
    let span = Span { start, end: text.len() };
    Err(QueryError::new(text, span, "this quote is not closed".to_string()))
}
