//! PIVOT, UNPIVOT and SUMMARIZE, statements of their own for the parser, where a query stands: `FROM (PIVOT t ON …)`,
//! WITH, COPY, and CREATE TABLE … AS. Their tokens are read for those of the query that the statement is.

use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::super::SessionDialect;
use super::super::statements;
use super::tokens::{closing, keyword};

/// Writes such statements as queries, the innermost first.
pub(super) fn as_queries(tokens: &mut Vec<TokenWithSpan>) {
    let is_one = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => {
            matches!(word.keyword, Keyword::PIVOT | Keyword::UNPIVOT) || word.value.eq_ignore_ascii_case("summarize")
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
            Some((open, token)) if token.token == Token::LParen => closing(tokens, open),
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

/// The tokens of the query that a statement is; none for what is no such statement, which the parser refuses.
fn query_of(tokens: &[TokenWithSpan]) -> Option<Vec<Token>> {
    let mut parser = Parser::new(&SessionDialect).with_tokens_with_locations(tokens.to_vec());
    let Statement::Query(query) = statements::statement(&mut parser)?.ok()? else { return None };
    let is_whole = parser.peek_token_ref().token == Token::EOF;
    is_whole.then(|| Tokenizer::new(&SessionDialect, &query.to_string()).tokenize().ok())?
}
