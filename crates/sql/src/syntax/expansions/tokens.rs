//! Words that sqlparser has no place for, read for words that it has.
//!
//! - `ASOF [LEFT] JOIN` is read for `GLOBAL [LEFT] JOIN`, a word of another database's that is refused by itself;
//!   sqlparser 0.62 takes ASOF JOIN with MATCH_CONDITION alone.
//! - `FROM t WHERE …` is read for `SELECT * FROM t WHERE …`: sqlparser takes no clause behind a FROM without SELECT.
//! - `[x * 2 FOR x IN l IF x > 1]` is read for `list_transform(list_filter(l, x -> x > 1), x -> x * 2)`.
//! - `sum(x) FILTER (x > 1)` is read for `sum(x) FILTER (WHERE x > 1)`.
//! - `WITH a AS MATERIALIZED (…)` and `NOT MATERIALIZED` are read for `WITH a AS (…)`: whether a table of WITH is
//!   computed once is decided by what it does.
//! - `INSERT INTO t BY NAME SELECT …` is read for `INSERT INTO t (mark) SELECT …`, whose columns are then those of the
//!   query, and `BY POSITION` for nothing.
//! - `LIMIT 50%` is read for `LIMIT mark(50)`, of which [`super::super::fetch`] makes a condition on ranks.
//! - `STRUCT(a INT, b TEXT)`, a type, is read for `STRUCT<a INT, b TEXT>`.
//! - `0x1F`, `0o17` and `0b11` are read for numbers, as in PostgreSQL 16: sqlparser takes the first for bytes and the
//!   others for a zero with an alias.
//! - `?` is read for `$1`, `$2` and so on, in their order.
//! - `CREATE FUNCTION f(a) AS a + 1` is read for CREATE MACRO, DuckDB's other word for it.
//! - `CREATE TABLE t (a, b) AS SELECT …`, columns without types, is read for
//!   `CREATE TABLE t AS SELECT * FROM (SELECT …) AS t (a, b)`.
//! - `* LIKE 'a%'` is read for `COLUMNS(c -> c LIKE 'a%')`, and so are NOT LIKE, GLOB and SIMILAR TO.
//! - `(t).*` is read for `t.*`, as PostgreSQL has it of rows.
//! - `LATERAL unnest(l)`, and LATERAL of a series, are read without the word: these functions see the tables before
//!   them anyway, as in PostgreSQL.
//! - `10%` of TABLESAMPLE is read for `10 PERCENT`, and `reservoir(5 ROWS)` for `(5 ROWS)`.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use crate::error::{Result, SqlError};
use crate::lexer::names_column;

/// What stands in the place of the columns of INSERT … BY NAME.
pub(super) const BY_NAME: &str = "\u{2063}by_name";
/// The function that a share of rows in LIMIT is an argument of.
pub(super) const SHARE: &str = "\u{2063}share";

/// Puts words in the place of others.
///
/// # Errors
/// [`SqlError::Unsupported`] for GLOBAL JOIN, and for forms of DuckDB's that are written otherwise here.
pub(super) fn read_for(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    numbers_of_bases(tokens);
    select_all(tokens);
    comprehend(tokens);
    filter_where(tokens);
    number_parameters(tokens)?;
    without_hints(tokens);
    structs_of_types(tokens);
    insert_by_name(tokens);
    shares_of_limits(tokens);
    check_forms(tokens)?;
    create_macro(tokens);
    name_created_columns(tokens);
    spread_rows(tokens);
    without_lateral(tokens);
    columns_like(tokens);
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

/// Writes integers of other bases as those of ten. Bytes, `X'1F'`, take a place more than their digits and `0x`.
fn numbers_of_bases(tokens: &mut Vec<TokenWithSpan>) {
    let number = |digits: &str, base: u32| u64::from_str_radix(&digits.replace('_', ""), base).ok();
    let columns = |token: &TokenWithSpan| token.span.end.column.saturating_sub(token.span.start.column);
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let found = match &token.token {
            Token::HexStringLiteral(digits) if columns(token) == digits.len() as u64 + 2 => {
                number(digits, 16).map(|number| (number, 1))
            }
            Token::Number(zero, false) if zero == "0" => match tokens.get(at + 1).map(|next| &next.token) {
                Some(Token::Word(Word { value, quote_style: None, .. })) => {
                    let base = if value.starts_with(['b', 'B']) { Some(2) } else { None };
                    let base = base.or(value.starts_with(['o', 'O']).then_some(8));
                    base.and_then(|base| number(&value[1..], base)).map(|number| (number, 2))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some((number, count)) = found {
            let span = tokens[at].span;
            let token = Token::Number(number.to_string(), false);
            tokens.splice(at..at + count, [TokenWithSpan { token, span }]);
        }
        at += 1;
    }
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

/// Refuses POSITIONAL JOIN, since rows of a table have no order, and columns that are LIKE those of another table.
fn check_forms(tokens: &[TokenWithSpan]) -> Result<()> {
    let creates = tokens.iter().find_map(keyword) == Some(Keyword::CREATE);
    let mut words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).peekable();
    while let Some(first) = words.next() {
        if is_word(first, "positional") && words.peek().is_some_and(|next| keyword(next) == Some(Keyword::JOIN)) {
            let what = "POSITIONAL JOIN; join by row_number() OVER (ORDER BY …) of each table";
            return Err(SqlError::Unsupported(what.into()));
        }
        if creates
            && first.token == Token::LParen
            && words.peek().is_some_and(|next| keyword(next) == Some(Keyword::LIKE))
        {
            let what = "CREATE TABLE … (LIKE t); write CREATE TABLE … AS FROM t LIMIT 0";
            return Err(SqlError::Unsupported(what.into()));
        }
    }
    Ok(())
}

/// Puts MACRO in the place of the FUNCTION of a CREATE that tells no types.
fn create_macro(tokens: &mut [TokenWithSpan]) {
    if tokens.iter().find_map(keyword) != Some(Keyword::CREATE) {
        return;
    }
    let is_typed = |token: &TokenWithSpan| matches!(keyword(token), Some(Keyword::RETURNS | Keyword::LANGUAGE));
    let place = tokens.iter().take_while(|token| token.token != Token::LParen);
    let place = place.enumerate().find(|(_, token)| keyword(token) == Some(Keyword::FUNCTION)).map(|(at, _)| at);
    if let Some(at) = place.filter(|_| !tokens.iter().any(is_typed)) {
        tokens[at].token = word("MACRO", Keyword::MACRO);
    }
}

/// Names the columns of the query of a CREATE TABLE that has names for them without types.
fn name_created_columns(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let keyword_at = |number: usize| words.get(number).and_then(|at| keyword(&tokens[*at]));
    let token_at = |number: usize| words.get(number).map(|at| &tokens[*at].token);
    let made = (0..6).find(|number| keyword_at(*number) == Some(Keyword::TABLE));
    let (Some(Keyword::CREATE), Some(made)) = (keyword_at(0), made) else { return };
    // Parentheses behind AS are the query's.
    let is_it = |number: &usize| token_at(*number) == Some(&Token::LParen) || keyword_at(*number) == Some(Keyword::AS);
    let open = (made..words.len()).find(is_it).filter(|number| token_at(*number) == Some(&Token::LParen));
    let Some(open) = open else { return };
    let Some(close) = closing(tokens, words[open]).and_then(|at| words.binary_search(&at).ok()) else { return };
    let is_name = |number: usize| matches!(token_at(number), Some(Token::Word(_)));
    let is_list = (open + 1..close).all(|number| match (number - open) % 2 {
        1 => is_name(number),
        _ => token_at(number) == Some(&Token::Comma),
    });
    if !is_list || !is_name(close - 1) || keyword_at(close + 1) != Some(Keyword::AS) {
        return;
    }
    let is_end = |number: &usize| matches!(token_at(*number), Some(Token::SemiColon | Token::EOF));
    let end = (close..words.len()).find(is_end).map_or(tokens.len(), |number| words[number]);
    let (first, last, query) = (words[open], words[close], words[close + 1] + 1);
    let span = tokens[first].span;
    let new = |token: Token| TokenWithSpan { token, span };
    let mut behind = vec![new(Token::RParen), new(word("AS", Keyword::AS))];
    let alias = Word { value: "created".into(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
    behind.push(new(Token::Word(alias)));
    behind.extend(tokens[first..=last].iter().cloned());
    tokens.splice(end..end, behind);
    let all = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM), Token::LParen];
    tokens.splice(query..query, all.map(new));
    tokens.drain(first..=last);
}

/// Leaves LATERAL out in front of functions that see the tables before them.
fn without_lateral(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is_it = |part: &&[usize]| {
        let [lateral, function, open] = [0, 1, 2].map(|word| &tokens[part[word]]);
        keyword(lateral) == Some(Keyword::LATERAL)
            && ["unnest", "generate_series", "range"].iter().any(|name| is_word(function, name))
            && open.token == Token::LParen
    };
    let found: Vec<usize> = words.windows(3).filter(is_it).map(|part| part[0]).collect();
    for at in found.into_iter().rev() {
        tokens.remove(at);
    }
}

/// Takes the parentheses off `(t).*`.
fn spread_rows(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is_row = |part: &&[usize]| {
        let [before, open, name, close, point, all] = [0, 1, 2, 3, 4, 5].map(|word| &tokens[part[word]]);
        let is_item = before.token == Token::Comma
            || matches!(keyword(before), Some(Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL | Keyword::RETURNING));
        is_item
            && (&open.token, &close.token, &point.token, &all.token)
                == (&Token::LParen, &Token::RParen, &Token::Period, &Token::Mul)
            && matches!(name.token, Token::Word(_))
    };
    let parentheses: Vec<usize> = words.windows(6).filter(is_row).flat_map(|part| [part[1], part[3]]).collect();
    for at in parentheses.into_iter().rev() {
        tokens.remove(at);
    }
}

/// Puts COLUMNS in the place of a `*` with a pattern of names behind it.
fn columns_like(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let found = |number: usize| {
        let token = |by: usize| words.get(number + by).map(|at| &tokens[*at]);
        let is_item = |token: &TokenWithSpan| {
            token.token == Token::Comma || matches!(keyword(token), Some(Keyword::SELECT | Keyword::DISTINCT))
        };
        let is_all = token(1).is_some_and(|token| token.token == Token::Mul) && token(0).is_some_and(is_item);
        let not = usize::from(token(2).and_then(keyword) == Some(Keyword::NOT));
        let operator = token(2 + not)?;
        let to = usize::from(keyword(operator) == Some(Keyword::SIMILAR));
        // The parser reads ILIKE itself.
        let is_pattern = matches!(keyword(operator), Some(Keyword::LIKE | Keyword::SIMILAR))
            || not == 1 && keyword(operator) == Some(Keyword::ILIKE)
            || is_word(operator, "glob");
        let pattern = token(3 + not + to)?;
        let is_text = matches!(pattern.token, Token::SingleQuotedString(_));
        (is_all && is_pattern && is_text).then(|| words[number + 1]..=words[number + 3 + not + to])
    };
    let found: Vec<_> = (0..words.len()).filter_map(found).collect();
    for range in found.into_iter().rev() {
        let span = tokens[*range.start()].span;
        let name = || word("name", Keyword::NoKeyword);
        let mut call = vec![word("COLUMNS", Keyword::COLUMNS), Token::LParen, name(), Token::Arrow];
        call.extend([Token::Whitespace(Whitespace::Space), name()]);
        call.extend(tokens[range.start() + 1..=*range.end()].iter().map(|token| token.token.clone()));
        call.push(Token::RParen);
        tokens.splice(range, call.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// Whether a token is a word without quotes, whatever the case of its letters.
pub(super) fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(it) if it.quote_style.is_none() && it.value.eq_ignore_ascii_case(word))
}

/// Makes an argument of each share in LIMIT, a number with a sign or PERCENT behind it.
fn shares_of_limits(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let share = |part: &[usize]| {
        let (number, sign) = (&tokens[part[1]], &tokens[part[2]]);
        let is_share = keyword(&tokens[part[0]]) == Some(Keyword::LIMIT)
            && matches!(number.token, Token::Number(..))
            && match sign.token {
                // What follows a remainder is its second operand.
                Token::Mod => match part.get(3).map(|next| &tokens[*next]) {
                    None => true,
                    Some(next) => {
                        matches!(next.token, Token::EOF | Token::SemiColon | Token::RParen)
                            || keyword(next) == Some(Keyword::OFFSET)
                    }
                },
                _ => keyword(sign) == Some(Keyword::PERCENT),
            };
        is_share.then_some((part[1], part[2]))
    };
    let shares: Vec<_> =
        (0..words.len().saturating_sub(2)).filter_map(|at| share(&words[at..words.len().min(at + 4)])).collect();
    for (number, sign) in shares.into_iter().rev() {
        let mark = Token::Word(Word { value: SHARE.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
        let call = [mark, Token::LParen, tokens[number].token.clone(), Token::RParen];
        let span = tokens[number].span;
        tokens.splice(number..=sign, call.map(|token| TokenWithSpan { token, span }));
    }
}

/// Puts WHERE into a FILTER without it.
fn filter_where(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is_bare = |part: &&[usize]| {
        let [call, filter, open, first] = [0, 1, 2, 3].map(|word| &tokens[part[word]]);
        call.token == Token::RParen
            && keyword(filter) == Some(Keyword::FILTER)
            && open.token == Token::LParen
            && keyword(first) != Some(Keyword::WHERE)
    };
    let bare: Vec<usize> = words.windows(4).filter(is_bare).map(|part| part[3]).collect();
    for at in bare.into_iter().rev() {
        let span = tokens[at].span;
        tokens.insert(at, TokenWithSpan { token: word("WHERE", Keyword::WHERE), span });
    }
}

/// Gives parameters without a number theirs.
///
/// # Errors
/// [`SqlError::Unsupported`] for such ones beside others.
fn number_parameters(tokens: &mut [TokenWithSpan]) -> Result<()> {
    let (mut bare, mut has_others, mut is_behind_operand) = (Vec::new(), false, false);
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::Whitespace(_) => continue,
            // Behind an operand, before a text, and as `?|` and `?&` it is the operator of JSON.
            Token::Placeholder(name)
                if name == "?" && (is_behind_operand || goes_on_as_operator(&tokens[at + 1..])) =>
            {
                is_behind_operand = false;
                continue;
            }
            Token::Placeholder(name) if name == "?" => bare.push(at),
            Token::Placeholder(_) => has_others = true,
            _ => {}
        }
        is_behind_operand = ends_operand(&token.token);
    }
    if has_others && !bare.is_empty() {
        return Err(SqlError::Unsupported("the parameter ? beside parameters with numbers or names".into()));
    }
    for (number, at) in bare.into_iter().enumerate() {
        tokens[at].token = Token::Placeholder(format!("${}", number + 1));
    }
    Ok(())
}

/// Whether these tokens begin with a text, or with what makes one operator of a `?` before them.
fn goes_on_as_operator(tokens: &[TokenWithSpan]) -> bool {
    let next = tokens.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    matches!(next.map(|next| &next.token), Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)))
        || matches!(tokens.first().map(|next| &next.token), Some(Token::Pipe | Token::Ampersand))
}

/// Whether an operand ends with a token.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some() || names_column(&word.value),
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::Number(..) => true,
        Token::RParen | Token::RBracket | Token::Placeholder(_) => true,
        _ => false,
    }
}

/// Leaves MATERIALIZED and NOT MATERIALIZED out of tables of WITH.
fn without_hints(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let keyword_at = |number: usize| words.get(number).and_then(|at| keyword(&tokens[*at]));
    let hints = |number: usize| {
        let not = usize::from(keyword_at(number + 1) == Some(Keyword::NOT));
        let is_hint = keyword_at(number) == Some(Keyword::AS)
            && keyword_at(number + not + 1) == Some(Keyword::MATERIALIZED)
            && words.get(number + not + 2).is_some_and(|at| tokens[*at].token == Token::LParen);
        if is_hint { number + 1..number + not + 2 } else { 0..0 }
    };
    let hints: Vec<usize> = (0..words.len()).flat_map(hints).map(|number| words[number]).collect();
    for at in hints.into_iter().rev() {
        tokens.remove(at);
    }
}

/// Puts the members of STRUCT, as a type, between angle brackets.
fn structs_of_types(tokens: &mut [TokenWithSpan]) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let mut brackets = Vec::new();
    for part in words.windows(5) {
        let [before, open, member, its_type] = [0, 2, 3, 4].map(|word| &tokens[part[word]].token);
        // No argument of the function `struct` is two words.
        let is_type = keyword(&tokens[part[1]]) == Some(Keyword::STRUCT)
            && *open == Token::LParen
            && matches!(before, Token::Word(_) | Token::DoubleColon | Token::LParen | Token::Comma)
            && matches!(member, Token::Word(word) if !begins_expression(word.keyword))
            && matches!(its_type, Token::Word(word) if !is_operator(word.keyword));
        let is_call = matches!(before, Token::Word(word) if word.keyword == Keyword::SELECT);
        if is_type
            && !is_call
            && let Some(close) = closing(tokens, part[2])
        {
            brackets.push((part[2], close));
        }
    }
    for (open, close) in brackets {
        tokens[open].token = Token::Lt;
        tokens[close].token = Token::Gt;
    }
}

/// Puts a mark for the list of columns into `INSERT INTO t BY NAME SELECT …`, behind WITH, EXPLAIN and PREPARE too.
fn insert_by_name(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let keyword_at = |number: usize| words.get(number).and_then(|at| keyword(&tokens[*at]));
    let is_insert = |number: &usize| {
        keyword_at(*number) == Some(Keyword::INSERT)
            && matches!(keyword_at(number + 1), Some(Keyword::INTO | Keyword::OR | Keyword::OVERWRITE))
    };
    let Some(first) = (0..words.len()).find(is_insert) else { return };
    // Behind the query's beginning, the two words are ORDER BY a column, or a union by name.
    let begins = |at: &usize| {
        matches!(keyword(&tokens[*at]), Some(Keyword::SELECT | Keyword::FROM | Keyword::VALUES | Keyword::WITH))
    };
    let end = words[first..].iter().position(begins).map_or(words.len(), |count| first + count);
    let how = |pair: &[usize]| {
        let is_name = is_word(&tokens[pair[1]], "name");
        let is_known =
            keyword(&tokens[pair[0]]) == Some(Keyword::BY) && (is_name || is_word(&tokens[pair[1]], "position"));
        is_known.then_some((pair[0], pair[1], is_name))
    };
    if let Some((by, name, is_name)) = words[first..end].windows(2).find_map(how) {
        let span = tokens[by].span;
        let mark = Token::Word(Word { value: BY_NAME.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
        let listed = [Token::LParen, mark, Token::RParen].map(|token| TokenWithSpan { token, span });
        tokens.splice(by..=name, listed.into_iter().filter(|_| is_name));
    }
}

/// Whether a word begins an expression of several words.
fn begins_expression(word: Keyword) -> bool {
    use Keyword::{
        ARRAY, CASE, CAST, DATE, DISTINCT, EXISTS, EXTRACT, INTERVAL, NOT, SELECT, TIME, TIMESTAMP, TRY_CAST,
    };
    let begins = [ARRAY, CASE, CAST, DATE, DISTINCT, EXISTS, EXTRACT, INTERVAL, NOT, SELECT, TIME, TIMESTAMP, TRY_CAST];
    begins.contains(&word)
}

/// Whether a word behind a name goes on with an expression.
fn is_operator(word: Keyword) -> bool {
    use Keyword::{AND, AS, AT, BETWEEN, COLLATE, ILIKE, IN, IS, LIKE, NOT, OR, OVERLAPS, REGEXP, RLIKE, SIMILAR, XOR};
    let operators =
        [AND, AS, AT, BETWEEN, COLLATE, ILIKE, IN, IS, LIKE, NOT, OR, OVERLAPS, REGEXP, RLIKE, SIMILAR, XOR];
    operators.contains(&word)
}

/// Writes comprehensions of lists, the innermost first.
fn comprehend(tokens: &mut Vec<TokenWithSpan>) {
    let opens: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].token == Token::LBracket).collect();
    for open in opens.into_iter().rev() {
        if let Some(written) = comprehension(tokens, open) {
            let close = closing(tokens, open).unwrap_or(open);
            tokens.splice(open..=close, written);
        }
    }
}

/// The place of the bracket that closes one.
pub(super) fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (open..tokens.len()).find(|at| {
        match tokens[*at].token {
            Token::LBracket | Token::LParen | Token::LBrace => depth += 1,
            Token::RBracket | Token::RParen | Token::RBrace => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// The calls that a list in brackets stands for if it is a comprehension.
fn comprehension(tokens: &[TokenWithSpan], open: usize) -> Option<Vec<TokenWithSpan>> {
    let close = closing(tokens, open)?;
    let mut at = open + 1;
    let mut words = Vec::new();
    while at < close {
        match tokens[at].token {
            Token::Whitespace(_) => {}
            Token::LBracket | Token::LParen | Token::LBrace => at = closing(tokens, at)?,
            _ => words.push(at),
        }
        at += 1;
    }
    let number = words.iter().position(|at| keyword(&tokens[*at]) == Some(Keyword::FOR))?;
    let [parameter, of] = *words.get(number + 1..number + 3)? else { return None };
    let is_name = matches!(tokens[parameter].token, Token::Word(_));
    if !is_name || keyword(&tokens[of]) != Some(Keyword::IN) {
        return None;
    }
    let condition = words[number..].iter().copied().find(|at| keyword(&tokens[*at]) == Some(Keyword::IF));
    let part = |range: std::ops::Range<usize>| tokens[range].to_vec();
    let (value, list) = (part(open + 1..words[number]), part(of + 1..condition.unwrap_or(close)));
    let first = |token: Token| TokenWithSpan { token, span: tokens[open].span };
    let last = |token: Token| TokenWithSpan { token, span: tokens[close].span };
    let call = |name: &str, list: Vec<TokenWithSpan>, body: Vec<TokenWithSpan>| {
        let mut written = vec![first(word(name, Keyword::NoKeyword)), first(Token::LParen)];
        written.extend(list);
        written.extend([last(Token::Comma), tokens[parameter].clone(), last(Token::Arrow)]);
        written.extend(body);
        written.push(last(Token::RParen));
        written
    };
    let list = match condition {
        Some(condition) => call("list_filter", list, part(condition + 1..close)),
        None => list,
    };
    Some(call("list_transform", list, value))
}

pub(super) fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

pub(super) fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.into(), quote_style: None, keyword })
}
