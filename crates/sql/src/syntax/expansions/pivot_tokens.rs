//! Clauses of PIVOT, UNPIVOT and `*` that sqlparser has in no place, or in another one.
//!
//! - `PIVOT (sum(x) FOR a IN (1, 2) b IN ('x', 'y'))` is read for one list of both columns,
//!   `FOR (a, b) IN ((1, 'x'), …)`, and a GROUP BY behind it for aggregates with a mark.
//! - `UNPIVOT t ON * EXCLUDE (k)` is read for `ON COLUMNS(* EXCLUDE (k))`, and so is `IN (* EXCLUDE (k))`.
//! - `* RENAME (a AS b) EXCLUDE (c)` is read for `* EXCLUDE (c) RENAME (a AS b)`: sqlparser takes EXCLUDE, REPLACE and
//!   RENAME in this order alone.

use std::ops::Range;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use super::super::statements::KEY;
use super::tokens::{closing, keyword, word};

/// Most pairs of values that two lists of PIVOT become.
const PAIRS_MAX: usize = 10_000;

/// Puts clauses where the parser takes them.
pub(super) fn settle(tokens: &mut Vec<TokenWithSpan>) {
    order_of_wildcards(tokens);
    let has = |wanted: Keyword| tokens.iter().any(|token| keyword(token) == Some(wanted));
    if has(Keyword::UNPIVOT) {
        columns_of_unpivot(tokens);
    }
    let pivots: Vec<usize> = (0..tokens.len()).filter(|at| keyword(&tokens[*at]) == Some(Keyword::PIVOT)).collect();
    for at in pivots.into_iter().rev() {
        if let Some(open) = next(tokens, at + 1)
            && tokens[open].token == Token::LParen
            && let Some(close) = closing(tokens, open)
            && let Some(inner) = of_pivot(tokens, open + 1..close)
        {
            tokens.splice(open + 1..close, inner);
        }
    }
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The first token from a place on that is no blank.
fn next(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    (from..tokens.len()).find(|at| !is_blank(&tokens[*at]))
}

/// The last token before a place that is no blank.
fn before(tokens: &[TokenWithSpan], at: usize) -> Option<&TokenWithSpan> {
    tokens[..at].iter().rev().find(|token| !is_blank(token))
}

/// The clauses behind a `*`, each with its number in the order of the parser, and where they end.
fn clauses(tokens: &[TokenWithSpan], star: usize) -> (Vec<(usize, Vec<TokenWithSpan>)>, usize) {
    let number = |token: &TokenWithSpan| match keyword(token) {
        Some(Keyword::EXCLUDE | Keyword::EXCEPT) => Some(0),
        Some(Keyword::REPLACE) => Some(1),
        Some(Keyword::RENAME) => Some(2),
        _ => None,
    };
    let (mut clauses, mut end) = (Vec::new(), star + 1);
    while let Some(at) = next(tokens, end)
        && let Some(number) = number(&tokens[at])
        && let Some(open) = next(tokens, at + 1)
    {
        let last = match &tokens[open].token {
            Token::LParen => closing(tokens, open),
            // One column without parentheses, with another name behind AS.
            Token::Word(_) if number == 0 => Some(open),
            Token::Word(_) if number == 2 => next(tokens, open + 1).and_then(|at| next(tokens, at + 1)),
            _ => None,
        };
        let Some(last) = last else { break };
        clauses.push((number, tokens[end..=last].to_vec()));
        end = last + 1;
    }
    (clauses, end)
}

/// Puts the clauses behind `*` and `t.*` into the order of the parser.
fn order_of_wildcards(tokens: &mut Vec<TokenWithSpan>) {
    let is_item = |at: &usize| {
        tokens[*at].token == Token::Mul
            && before(tokens, *at).is_some_and(|before| {
                matches!(before.token, Token::Comma | Token::Period | Token::LParen)
                    || matches!(keyword(before), Some(Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL))
            })
    };
    let stars: Vec<usize> = (0..tokens.len()).filter(is_item).collect();
    for star in stars.into_iter().rev() {
        let (mut clauses, end) = clauses(tokens, star);
        if !clauses.is_sorted_by_key(|(number, _)| *number) {
            clauses.sort_by_key(|(number, _)| *number);
            tokens.splice(star + 1..end, clauses.into_iter().flat_map(|(_, clause)| clause));
        }
    }
}

/// Puts COLUMNS around the `*` of UNPIVOT.
fn columns_of_unpivot(tokens: &mut Vec<TokenWithSpan>) {
    let is_list = |at: usize| {
        let open = (0..at).rev().find(|at| !is_blank(&tokens[*at]));
        open.is_some_and(|open| match tokens[open].token {
            Token::LParen => before(tokens, open).and_then(keyword) == Some(Keyword::IN),
            _ => keyword(&tokens[open]) == Some(Keyword::ON),
        })
    };
    let stars: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].token == Token::Mul && is_list(*at)).collect();
    for star in stars.into_iter().rev() {
        let (_, end) = clauses(tokens, star);
        let span = tokens[star].span;
        let new = |token: Token| TokenWithSpan { token, span };
        tokens.insert(end, new(Token::RParen));
        tokens.splice(star..star, [word("COLUMNS", Keyword::COLUMNS), Token::LParen].map(new));
    }
}

/// The places of a range that stand in no parentheses of it.
fn outermost(tokens: &[TokenWithSpan], range: Range<usize>) -> Option<Vec<usize>> {
    let (mut places, mut at) = (Vec::new(), range.start);
    while at < range.end {
        if !is_blank(&tokens[at]) {
            places.push(at);
        }
        at = match tokens[at].token {
            Token::LParen | Token::LBracket | Token::LBrace => closing(tokens, at)? + 1,
            _ => at + 1,
        };
    }
    Some(places)
}

/// The items of a list between commas.
fn items(tokens: &[TokenWithSpan], range: Range<usize>) -> Option<Vec<Range<usize>>> {
    let (mut items, mut start) = (Vec::new(), range.start);
    for at in outermost(tokens, range.clone())? {
        if tokens[at].token == Token::Comma {
            items.push(start..at);
            start = at + 1;
        }
    }
    items.push(start..range.end);
    Some(items)
}

/// A column of PIVOT, and its values with their names where these are told.
struct Listed {
    column: Vec<TokenWithSpan>,
    values: Vec<(Vec<TokenWithSpan>, Option<String>, bool)>,
}

/// What stands between the parentheses of PIVOT, as the parser takes it; none if it does anyway.
fn of_pivot(tokens: &[TokenWithSpan], range: Range<usize>) -> Option<Vec<TokenWithSpan>> {
    let words = outermost(tokens, range.clone())?;
    let place = |wanted: Keyword| words.iter().copied().find(|at| keyword(&tokens[*at]) == Some(wanted));
    let for_at = place(Keyword::FOR)?;
    let group = place(Keyword::GROUP);
    let end = group.unwrap_or(range.end);
    let mut listed = Vec::new();
    let mut at = for_at + 1;
    while next(tokens, at).is_some_and(|next| next < end) {
        let in_at = words.iter().copied().find(|word| *word >= at && keyword(&tokens[*word]) == Some(Keyword::IN))?;
        let open = next(tokens, in_at + 1).filter(|open| tokens[*open].token == Token::LParen)?;
        let close = closing(tokens, open)?;
        let mut values = Vec::new();
        for item in items(tokens, open + 1..close)? {
            let words = outermost(tokens, item.clone())?;
            let alias = words.iter().copied().find(|at| keyword(&tokens[*at]) == Some(Keyword::AS));
            let own = match alias {
                Some(alias) => match &tokens[next(tokens, alias + 1)?].token {
                    Token::Word(Word { value, quote_style: None, .. }) => Some(value.to_lowercase()),
                    Token::Word(Word { value, .. }) | Token::SingleQuotedString(value) => Some(value.clone()),
                    _ => return None,
                },
                None => match words.as_slice() {
                    [one] => match &tokens[*one].token {
                        Token::Number(digits, _) => Some(digits.clone()),
                        Token::SingleQuotedString(text) => Some(text.clone()),
                        _ => None,
                    },
                    _ => None,
                },
            };
            values.push((tokens[item.start..alias.unwrap_or(item.end)].to_vec(), own, alias.is_some()));
        }
        listed.push(Listed { column: tokens[at..in_at].to_vec(), values });
        at = close + 1;
    }
    if group.is_none() && listed.len() < 2 {
        return None;
    }
    let span = tokens[for_at].span;
    let new = |token: Token| TokenWithSpan { token, span };
    let quoted =
        |name: &str| new(Token::Word(Word { value: name.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword }));
    let mut inner = tokens[range.start..for_at].to_vec();
    if let Some(group) = group {
        let by = next(tokens, group + 1).filter(|by| keyword(&tokens[*by]) == Some(Keyword::BY))?;
        for key in items(tokens, by + 1..range.end)? {
            inner.extend([Token::Comma, word("key", Keyword::KEY), Token::LParen].map(new));
            inner.extend_from_slice(&tokens[key]);
            inner.extend([new(Token::RParen), new(word("AS", Keyword::AS)), quoted(KEY)]);
        }
        inner.push(new(Token::Whitespace(Whitespace::Space)));
    }
    if listed.len() < 2 {
        inner.extend_from_slice(&tokens[for_at..end]);
        return Some(inner);
    }
    let comma = || new(Token::Comma);
    let columns: Vec<&[TokenWithSpan]> = listed.iter().map(|listed| listed.column.as_slice()).collect();
    // Of each combination its values, their names, and whether one has a name of its own.
    type Combination<'t> = (Vec<&'t [TokenWithSpan]>, Vec<Option<&'t str>>, bool);
    let mut rows: Vec<Combination> = vec![(Vec::new(), Vec::new(), false)];
    for Listed { values: of_column, .. } in &listed {
        if rows.len().saturating_mul(of_column.len()) > PAIRS_MAX {
            return None;
        }
        let mut longer = Vec::with_capacity(rows.len() * of_column.len());
        for (values, names, has_alias) in &rows {
            for (value, name, is_alias) in of_column {
                let (mut values, mut names) = (values.clone(), names.clone());
                values.push(value.as_slice());
                names.push(name.as_deref());
                longer.push((values, names, *has_alias || *is_alias));
            }
        }
        rows = longer;
    }
    let tuple = |parts: &[&[TokenWithSpan]]| {
        let mut tuple = vec![new(Token::LParen)];
        for (number, part) in parts.iter().enumerate() {
            tuple.extend((number > 0).then(comma));
            tuple.extend_from_slice(part);
        }
        tuple.push(new(Token::RParen));
        tuple
    };
    inner.push(new(word("FOR", Keyword::FOR)));
    inner.extend(tuple(&columns));
    inner.extend([word("IN", Keyword::IN), Token::LParen].map(new));
    for (number, (values, names, has_alias)) in rows.iter().enumerate() {
        inner.extend((number > 0).then(comma));
        inner.extend(tuple(values));
        if *has_alias {
            let name = names.iter().copied().collect::<Option<Vec<&str>>>()?.join("_");
            inner.extend([new(word("AS", Keyword::AS)), quoted(&name)]);
        }
    }
    inner.push(new(Token::RParen));
    Some(inner)
}
