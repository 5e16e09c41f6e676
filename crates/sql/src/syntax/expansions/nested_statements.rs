//! PIVOT, UNPIVOT, SUMMARIZE, DESCRIBE and SHOW, statements of their own for the parser, where a query stands:
//! `FROM (PIVOT t ON …)`, WITH, COPY, and CREATE TABLE … AS. Their tokens are read for those of the query that the
//! statement is.

use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::super::{SessionDialect, elsewhere, quotes, statements};
use super::tokens::{closing, keyword};

/// Writes such statements as queries, the innermost first.
pub(super) fn as_queries(tokens: &mut Vec<TokenWithSpan>) {
    let is_one = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => {
            matches!(word.keyword, Keyword::PIVOT | Keyword::UNPIVOT | Keyword::DESCRIBE | Keyword::SHOW)
                || word.value.eq_ignore_ascii_case("summarize")
        }
        _ => false,
    };
    let places: Vec<usize> = (0..tokens.len()).filter(|at| is_one(&tokens[*at])).collect();
    // Of CREATE … AS the one before the query.
    let begins =
        |token: &TokenWithSpan| matches!(keyword(token), Some(Keyword::SELECT | Keyword::FROM | Keyword::VALUES));
    let head = tokens.iter().position(begins).unwrap_or(tokens.len());
    let creates = tokens.iter().find_map(keyword) == Some(Keyword::CREATE);
    for at in places.into_iter().rev() {
        let before = (0..at).rev().find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
        let end = match before.map(|before| (before, &tokens[before])) {
            Some((open, token)) if token.token == Token::LParen && holds_query(tokens, open) => closing(tokens, open),
            Some((_, token)) if creates && at < head && keyword(token) == Some(Keyword::AS) => {
                let is_end = |at: &usize| matches!(tokens[*at].token, Token::SemiColon | Token::EOF);
                Some((at..tokens.len()).find(is_end).unwrap_or(tokens.len()))
            }
            _ => None,
        };
        let Some(end) = end else { continue };
        let span = tokens[at].span;
        if let Some(query) = query_of(&tokens[at..end]) {
            tokens.splice(at..end, query.into_iter().map(|token| TokenWithSpan { token, span }));
        }
    }
}

/// Whether what a parenthesis holds is a table of FROM, of WITH, of CREATE TABLE … AS or of PIVOT, or what COPY writes:
/// columns, too, may be called `describe`.
fn holds_query(tokens: &[TokenWithSpan], open: usize) -> bool {
    let mut before = (0..open).rev().filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).peekable();
    let Some(&first) = before.peek() else { return false };
    match (&tokens[first].token, keyword(&tokens[first])) {
        (Token::LParen, _) => return holds_query(tokens, first),
        (_, Some(Keyword::AS | Keyword::COPY | Keyword::PIVOT | Keyword::UNPIVOT)) => return true,
        (Token::Comma, _) | (_, Some(Keyword::FROM | Keyword::JOIN)) => {}
        _ => return false,
    }
    let (mut depth, mut is_in_from) = (0_usize, false);
    while let Some(at) = before.next() {
        match &tokens[at].token {
            Token::RParen | Token::RBracket | Token::RBrace => depth += 1,
            // A join in parentheses is a table, and FROM without SELECT the one of `trim(FROM x)`.
            Token::LParen if depth == 0 => return !is_in_from && holds_query(tokens, at),
            Token::LBracket | Token::LBrace if depth == 0 => return false,
            Token::LParen | Token::LBracket | Token::LBrace => depth -= 1,
            _ if depth > 0 => {}
            _ => match keyword(&tokens[at]) {
                Some(Keyword::FROM) => {
                    is_in_from |= before.peek().and_then(|at| keyword(&tokens[*at])) != Some(Keyword::DISTINCT);
                }
                Some(Keyword::SELECT | Keyword::UPDATE) => return is_in_from,
                Some(
                    Keyword::WHERE
                    | Keyword::GROUP
                    | Keyword::HAVING
                    | Keyword::QUALIFY
                    | Keyword::ORDER
                    | Keyword::LIMIT,
                ) if !is_in_from => return false,
                _ => {}
            },
        }
    }
    false
}

/// The tokens of the query that a statement is; none for what is no such statement, which the parser refuses.
fn query_of(tokens: &[TokenWithSpan]) -> Option<Vec<Token>> {
    let words: Vec<&Token> =
        tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let shown = words.iter().map(|word| word.to_string()).collect::<Vec<_>>().join(" ");
    if let Some(query) = elsewhere::read_as(&shown) {
        return Tokenizer::new(&SessionDialect, query).tokenize().ok();
    }
    let mut kept = tokens.to_vec();
    quotes::keep(&mut kept).ok()?;
    let mut parser = Parser::new(&SessionDialect).with_tokens_with_locations(kept);
    let query = match keyword(tokens.first()?) {
        Some(Keyword::DESCRIBE | Keyword::SHOW) => statements::described(&mut parser).ok()?,
        _ => match statements::statement(&mut parser)?.ok()? {
            Statement::Query(query) => query,
            _ => return None,
        },
    };
    let is_whole = parser.peek_token_ref().token == Token::EOF;
    is_whole.then(|| Tokenizer::new(&SessionDialect, &query.to_string()).tokenize().ok())?
}
