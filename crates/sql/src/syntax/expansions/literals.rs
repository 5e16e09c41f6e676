//! Texts in quotes on several lines, `'a'` and `'b'` below it, read for one text, as in PostgreSQL and DuckDB.
//!
//! sqlparser takes the second for an alias, on one line too, where both systems refuse it. Keys and values of OPTIONS
//! stand side by side as they are.

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use crate::error::Result;

/// Puts texts together that only a line's end is between.
///
/// # Errors
/// A text behind another one, or behind a number, on its line.
pub(super) fn joined(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    // The place of the last token that is no blank, and whether the line has ended since, without a comment in blocks.
    let (mut last, mut has_ended, mut has_comment): (Option<usize>, bool, bool) = (None, false, false);
    // Parentheses that are open within OPTIONS.
    let mut of_options = 0_usize;
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::Whitespace(blank) => {
                has_ended |= matches!(blank, Whitespace::Newline | Whitespace::SingleLineComment { .. });
                has_comment |= matches!(blank, Whitespace::MultiLineComment(_));
                at += 1;
                continue;
            }
            Token::LParen if of_options > 0 || is_options(last.map(|last| &tokens[last].token)) => of_options += 1,
            Token::RParen => of_options = of_options.saturating_sub(1),
            Token::SingleQuotedString(text) if of_options == 0 => {
                let (text, can_join) = (text.clone(), has_ended && !has_comment);
                match last.map(|last| &mut tokens[last].token) {
                    Some(Token::SingleQuotedString(before)) if can_join => {
                        before.push_str(&text);
                        tokens.remove(at);
                        has_ended = false;
                        continue;
                    }
                    // What a backslash is in the second one is the first one's to say.
                    Some(Token::EscapedStringLiteral(before)) if can_join && !text.contains('\\') => {
                        before.push_str(&text);
                        tokens.remove(at);
                        has_ended = false;
                        continue;
                    }
                    Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::Number(..)) => {
                        let found = format!("Expected: an operator, found: '{text}'{}", tokens[at].span.start);
                        return Err(DataFusionError::from(ParserError::ParserError(found)).into());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        (last, has_ended, has_comment) = (Some(at), false, false);
        at += 1;
    }
    Ok(())
}

fn is_options(token: Option<&Token>) -> bool {
    let is_word = |word: &Word| word.quote_style.is_none() && word.value.eq_ignore_ascii_case("options");
    matches!(token, Some(Token::Word(word)) if is_word(word))
}
