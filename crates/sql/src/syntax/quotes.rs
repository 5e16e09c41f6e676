//! Texts and names in quotes, so that a tree may be written and what is written be read again.
//!
//! sqlparser 0.62 does not know whether the quotes within a text or a name of its tree are doubled already. It leaves
//! two in a row, and one behind a backslash, as they are. What stands behind them would be read as SQL. Here such texts
//! are those of `E'…'`, and such names have the other quotes: `` `a""b` ``.

use datafusion::sql::sqlparser::ast::{Ident, Value};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The quotes that names may have.
const QUOTES: [char; 2] = ['"', '`'];

/// A name in quotes.
///
/// A name that neither quotes keep is that of no table and no column: without its backquotes.
pub(super) fn quoted(name: impl Into<String>) -> Ident {
    let name = name.into();
    match quote_of(&name) {
        Some(quote) => Ident::with_quote(quote, name),
        None => Ident::with_quote(QUOTES[0], name.replace(QUOTES, "")),
    }
}

/// A text as a constant.
pub(super) fn text(text: impl Into<String>) -> Value {
    let text = text.into();
    match keeps('\'', &text) {
        true => Value::SingleQuotedString(text),
        false => Value::EscapedStringLiteral(text),
    }
}

/// The quotes that keep a name.
fn quote_of(name: &str) -> Option<char> {
    QUOTES.into_iter().find(|quote| keeps(*quote, name))
}

/// Whether a text in quotes is written as it is read.
fn keeps(quote: char, text: &str) -> bool {
    let mut before = None;
    text.chars().all(|character| {
        let is_kept = character != quote || before.is_none_or(|before| before != quote && before != '\\');
        before = Some(character);
        is_kept
    })
}

/// Gives texts and names the quotes that keep them.
///
/// # Errors
/// A name that no quotes keep.
pub(super) fn keep(tokens: &mut [TokenWithSpan]) -> Result<(), ParserError> {
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let is_of = |token: &Token, keyword: Keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let mut front = tokens.iter().filter(|token| !is_blank(token)).map(|token| &token.token).take(5);
    let makes_macro = front.next().is_some_and(|first| is_of(first, Keyword::CREATE))
        && front.any(|word| is_of(word, Keyword::MACRO) || is_of(word, Keyword::FUNCTION));
    for at in 0..tokens.len() {
        let text = match &mut tokens[at].token {
            Token::SingleQuotedString(text) if !keeps('\'', text) => std::mem::take(text),
            Token::Word(Word { value, quote_style: Some(quote), .. }) if !keeps(*quote, value) => {
                *quote = quote_of(value).ok_or_else(|| {
                    let reason = "a name with doubled quotes of both kinds, or backslashes before them";
                    ParserError::ParserError(reason.into())
                })?;
                continue;
            }
            _ => continue,
        };
        // An alias, where it is no macro's value, and the name of a member of a struct.
        let mut before = tokens[..at].iter().rev().filter(|token| !is_blank(token)).map(|token| &token.token);
        let behind = tokens[at + 1..].iter().find(|token| !is_blank(token)).map(|token| &token.token);
        let is_alias = before.next().is_some_and(|before| is_of(before, Keyword::AS))
            && !(makes_macro && before.next() == Some(&Token::RParen));
        let is_name = is_alias || behind == Some(&Token::Colon);
        tokens[at].token = match quote_of(&text).filter(|_| is_name) {
            Some(quote) => Token::Word(Word { value: text, quote_style: Some(quote), keyword: Keyword::NoKeyword }),
            None => Token::EscapedStringLiteral(text),
        };
    }
    Ok(())
}

/// The text of a token, which sqlparser writes with fewer quotes than it has.
pub(super) fn written(token: &Token) -> String {
    let doubled = |quote: char, text: &str| {
        let quotes = quote.to_string();
        format!("{quote}{}{quote}", text.replace(quote, &quotes.repeat(2)))
    };
    match token {
        Token::Word(Word { value, quote_style: Some(quote), .. }) => doubled(*quote, value),
        Token::SingleQuotedString(text) => doubled('\'', text),
        other => other.to_string(),
    }
}
