//! Words that sqlparser has no place for, read for words that it has.
//!
//! - `ASOF [LEFT] JOIN` is read for `GLOBAL [LEFT] JOIN`, a word of another database's that is refused by itself;
//!   sqlparser 0.62 takes ASOF JOIN with MATCH_CONDITION alone.
//! - `FROM t WHERE …` is read for `SELECT * FROM t WHERE …`: sqlparser takes no clause behind a FROM without SELECT.
//! - `10%` of TABLESAMPLE is read for `10 PERCENT`, and `reservoir(5 ROWS)` for `(5 ROWS)`.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::error::{Result, SqlError};

/// Puts words in the place of others.
///
/// # Errors
/// [`SqlError::Unsupported`] for GLOBAL JOIN.
pub(in super::super) fn read_for(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    select_all(tokens);
    let is_read =
        |token: &TokenWithSpan| matches!(keyword(token), Some(Keyword::ASOF | Keyword::GLOBAL | Keyword::TABLESAMPLE));
    if !tokens.iter().any(is_read) {
        return Ok(());
    }
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let matches_condition = tokens.iter().any(|token| keyword(token) == Some(Keyword::MATCH_CONDITION));
    let mut left_out = Vec::new();
    for (number, &at) in words.iter().enumerate() {
        let behind = |by: usize| words.get(number + by).copied();
        let keyword_behind = |by: usize| behind(by).and_then(|at| keyword(&tokens[at]));
        let is_join = matches!(
            keyword_behind(1),
            Some(Keyword::JOIN | Keyword::LEFT | Keyword::RIGHT | Keyword::INNER | Keyword::FULL)
        );
        match keyword(&tokens[at]) {
            Some(Keyword::GLOBAL) if is_join => return Err(SqlError::Unsupported("GLOBAL JOIN".into())),
            Some(Keyword::ASOF) if is_join && !matches_condition => {
                tokens[at].token = word("GLOBAL", Keyword::GLOBAL);
            }
            Some(Keyword::TABLESAMPLE) => {
                let mut next = number + 1;
                let is_reservoir =
                    |token: &Token| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("reservoir"));
                if let Some(&at) = words.get(next)
                    && is_reservoir(&tokens[at].token)
                {
                    left_out.push(at);
                    next += 1;
                }
                // The sign stands behind the number, within four words.
                let sign = words.iter().skip(next).take(4).copied().find(|at| tokens[*at].token == Token::Mod);
                if let Some(at) = sign {
                    tokens[at].token = word("PERCENT", Keyword::PERCENT);
                }
            }
            _ => {}
        }
    }
    for at in left_out.into_iter().rev() {
        tokens.remove(at);
    }
    Ok(())
}

/// Puts `SELECT *` before a FROM that begins a query without SELECT.
fn select_all(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let keyword_at = |number: usize| words.get(number).and_then(|at| keyword(&tokens[*at]));
    let before = |number: usize, by: usize| number.checked_sub(by).and_then(keyword_at);
    let is_set = |word| matches!(word, Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT));
    let begins_query = |number: usize| match number.checked_sub(1).map(|before| &tokens[words[before]].token) {
        None | Some(Token::SemiColon) => true,
        Some(Token::LParen) => before(number, 2) != Some(Keyword::TRIM),
        _ => match before(number, 1) {
            Some(Keyword::EXPLAIN | Keyword::ANALYZE | Keyword::VERBOSE) => true,
            Some(Keyword::AS) => keyword_at(0) == Some(Keyword::CREATE),
            Some(Keyword::ALL) => is_set(before(number, 2)),
            word => is_set(word),
        },
    };
    let has_select = |number: usize| {
        let mut depth = 0_usize;
        for at in &words[number..] {
            match &tokens[*at].token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => return false,
                Token::RParen => depth -= 1,
                Token::SemiColon => return false,
                _ if depth > 0 => {}
                _ => match keyword(&tokens[*at]) {
                    Some(Keyword::SELECT) => return true,
                    word if is_set(word) => return false,
                    _ => {}
                },
            }
        }
        false
    };
    let is_bare =
        |number: &usize| keyword_at(*number) == Some(Keyword::FROM) && begins_query(*number) && !has_select(*number);
    let bare: Vec<usize> = (0..words.len()).filter(is_bare).map(|number| words[number]).collect();
    for at in bare.into_iter().rev() {
        let span = tokens[at].span;
        let select = [word("SELECT", Keyword::SELECT), Token::Mul].map(|token| TokenWithSpan { token, span });
        tokens.splice(at..at, select);
    }
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.into(), quote_style: None, keyword })
}
