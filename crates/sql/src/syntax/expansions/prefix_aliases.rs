//! `SELECT x: a + 1`, an alias in front of its item, read for `SELECT a + 1 AS x`, as in DuckDB.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::super::names;
use super::tokens::{keyword, word};

/// Puts aliases of select lists behind their items.
pub(super) fn behind_items(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| token.token == Token::Colon) {
        return;
    }
    let mut at = 0;
    while at < tokens.len() {
        if let Some(colon) = alias_at(tokens, at) {
            let end = end_of_item(tokens, colon + 1);
            let (name, span) = (tokens[at].clone(), tokens[at].span);
            let alias = [word("AS", Keyword::AS), name.token];
            tokens.splice(end..end, alias.map(|token| TokenWithSpan { token, span }));
            tokens.drain(at..=colon);
        }
        at += 1;
    }
}

/// The colon behind a name that stands where an item of a select list begins.
fn alias_at(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let Token::Word(Word { keyword: own, quote_style, .. }) = &tokens[at].token else { return None };
    if quote_style.is_none() && matches!(own, Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL) {
        return None;
    }
    let colon = next(tokens, at + 1)?;
    (tokens[colon].token == Token::Colon && begins_item(tokens, at)).then_some(colon)
}

/// The place of the next token that is no blank.
fn next(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
}

/// Whether what stands before is SELECT, or a comma of its list.
fn begins_item(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0_usize;
    let mut is_first = true;
    for (at, token) in tokens[..at].iter().enumerate().rev() {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::RParen | Token::RBracket | Token::RBrace => depth += 1,
            Token::LParen | Token::LBracket | Token::LBrace if depth == 0 => return false,
            Token::LParen | Token::LBracket | Token::LBrace => depth -= 1,
            _ if depth > 0 => {}
            Token::Comma if is_first => {}
            Token::Word(_) if keyword(token) == Some(Keyword::SELECT) => return true,
            Token::Word(_) if ends_list(tokens, at) => return false,
            // These stand between SELECT and the first item.
            Token::Word(_) if is_first && is_of_select(token) => continue,
            _ if is_first => return false,
            _ => {}
        }
        is_first = false;
    }
    false
}

fn is_of_select(token: &TokenWithSpan) -> bool {
    matches!(keyword(token), Some(Keyword::DISTINCT | Keyword::ALL))
}

/// Where the item ends that begins here.
fn end_of_item(tokens: &[TokenWithSpan], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut last = from;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace if depth == 0 => return last,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            Token::Comma | Token::SemiColon | Token::EOF if depth == 0 => return last,
            Token::Word(_) if depth == 0 && ends_list(tokens, at) => return last,
            _ => {}
        }
        last = at + 1;
    }
    last
}

/// Whether a select list ends before a word.
fn ends_list(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = (0..at).rev().map(|at| &tokens[at]).find(|token| !matches!(token.token, Token::Whitespace(_)));
    let word = before.and_then(keyword);
    match keyword(&tokens[at]) {
        // `* EXCEPT (…)` goes on.
        Some(Keyword::EXCEPT) => {
            let is_of_columns = next(tokens, at + 1).is_some_and(|at| tokens[at].token == Token::LParen);
            !(is_of_columns && before.is_some_and(|token| token.token == Token::Mul))
        }
        Some(own) => names::ends(own, word),
        None => false,
    }
}
