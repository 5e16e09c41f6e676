//! `FROM t USING SAMPLE …`, read for `FROM t TABLESAMPLE …`.
//!
//! The clause stands behind all others of a SELECT and is about the rows of FROM, before WHERE. It has a size,
//! `10`, `10 ROWS`, `10%` or `10 PERCENT`, with a method and a seed behind it, `10% (bernoulli, 42)`, or it is a method
//! with its size and REPEATABLE, `reservoir(10 ROWS) REPEATABLE (42)`. A share without a method is one of SYSTEM.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{closing, is_word, keyword, word};
use crate::error::{Result, SqlError};

/// Moves each sample behind the table that it is of.
///
/// # Errors
/// [`SqlError::Unsupported`] for several tables, [`SqlError::Syntax`] for what is no sample.
pub(super) fn as_table_sample(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is_sample =
        |pair: &&[usize]| keyword(&tokens[pair[0]]) == Some(Keyword::USING) && is_word(&tokens[pair[1]], "sample");
    let clauses: Vec<usize> = words.windows(2).filter(is_sample).map(|pair| pair[0]).collect();
    for using in clauses.into_iter().rev() {
        let place = end_of_table(tokens, using)?;
        let end = end_of_clause(tokens, using);
        let own: Vec<&Token> = tokens[using..end].iter().map(|token| &token.token).collect();
        let own: Vec<&Token> = own.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).skip(2).collect();
        let span = tokens[using].span;
        let sample = table_sample(&own)?.into_iter().map(|token| TokenWithSpan { token, span });
        tokens.drain(using..end);
        tokens.splice(place..place, sample);
    }
    Ok(())
}

/// Where the one table of the FROM ends that a clause is of.
fn end_of_table(tokens: &[TokenWithSpan], using: usize) -> Result<usize> {
    let (mut depth, mut end) = (0_usize, using);
    for at in (0..using).rev() {
        match tokens[at].token {
            Token::RParen | Token::RBracket | Token::RBrace => depth += 1,
            Token::LParen | Token::LBracket | Token::LBrace if depth == 0 => break,
            Token::LParen | Token::LBracket | Token::LBrace => depth -= 1,
            _ if depth > 0 => {}
            _ => match keyword(&tokens[at]) {
                Some(
                    Keyword::WHERE
                    | Keyword::GROUP
                    | Keyword::HAVING
                    | Keyword::WINDOW
                    | Keyword::QUALIFY
                    | Keyword::SELECT,
                ) => end = at,
                Some(Keyword::FROM) if !is_behind_distinct(&tokens[..at]) => {
                    return match several(&tokens[at + 1..end]) {
                        false => Ok(end),
                        true => Err(SqlError::Unsupported(
                            "USING SAMPLE of several tables; write FROM (SELECT … FROM a JOIN b …) USING SAMPLE …"
                                .into(),
                        )),
                    };
                }
                _ => {}
            },
        }
    }
    Err(SqlError::Syntax("USING SAMPLE needs a FROM before it".into()))
}

/// Whether a FROM is that of IS DISTINCT FROM.
fn is_behind_distinct(before: &[TokenWithSpan]) -> bool {
    let last = before.iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_)));
    last.and_then(keyword) == Some(Keyword::DISTINCT)
}

/// Whether a FROM has several tables.
fn several(from: &[TokenWithSpan]) -> bool {
    let mut depth = 0_usize;
    from.iter().any(|token| {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (token.token == Token::Comma || keyword(token) == Some(Keyword::JOIN))
    })
}

/// Where a clause ends.
fn end_of_clause(tokens: &[TokenWithSpan], using: usize) -> usize {
    let mut at = using;
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen => at = closing(tokens, at).unwrap_or(tokens.len() - 1),
            Token::RParen | Token::SemiColon | Token::EOF => break,
            _ if matches!(
                keyword(&tokens[at]),
                Some(
                    Keyword::ORDER
                        | Keyword::LIMIT
                        | Keyword::OFFSET
                        | Keyword::FETCH
                        | Keyword::UNION
                        | Keyword::EXCEPT
                        | Keyword::INTERSECT
                )
            ) =>
            {
                break;
            }
            _ => {}
        }
        at += 1;
    }
    at.min(tokens.len())
}

/// TABLESAMPLE, by the words behind USING SAMPLE.
fn table_sample(own: &[&Token]) -> Result<Vec<Token>> {
    let expected = || SqlError::Syntax("expected 10, 10 ROWS or 10% behind USING SAMPLE".into());
    let (first, rest) = own.split_first().ok_or_else(expected)?;
    let mut made = vec![word("TABLESAMPLE", Keyword::TABLESAMPLE)];
    if matches!((first, rest.first()), (Token::Word(_), Some(Token::LParen))) {
        made.extend(own.iter().map(|token| (*token).clone()));
        return Ok(made);
    }
    let open = rest.iter().position(|token| **token == Token::LParen);
    let (size, method) = own.split_at(open.map_or(own.len(), |open| open + 1));
    let unit = match size {
        [Token::Number(..)] => word("ROWS", Keyword::ROWS),
        [Token::Number(..), Token::Mod] => word("PERCENT", Keyword::PERCENT),
        [Token::Number(..), Token::Word(unit)] if matches!(unit.keyword, Keyword::ROWS | Keyword::PERCENT) => {
            Token::Word(unit.clone())
        }
        _ => return Err(expected()),
    };
    let (method, seed) = match method {
        [] => (None, None),
        [Token::LParen, method @ Token::Word(_), Token::RParen] => (Some((*method).clone()), None),
        [Token::LParen, method @ Token::Word(_), Token::Comma, seed, Token::RParen] => {
            (Some((*method).clone()), Some((*seed).clone()))
        }
        _ => {
            return Err(SqlError::Syntax("expected (method) or (method, seed) behind the size of USING SAMPLE".into()));
        }
    };
    let is_share = matches!(&unit, Token::Word(unit) if unit.keyword == Keyword::PERCENT);
    let system = is_share.then(|| word("SYSTEM", Keyword::SYSTEM));
    made.extend(method.or(system));
    made.extend([Token::LParen, (*first).clone(), unit, Token::RParen]);
    if let Some(seed) = seed {
        made.extend([word("REPEATABLE", Keyword::REPEATABLE), Token::LParen, seed, Token::RParen]);
    }
    Ok(made)
}
