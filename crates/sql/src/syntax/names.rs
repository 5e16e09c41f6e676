//! Names of select items: what the user wrote.
//!
//! DataFusion 55.2 names an item after its plan (`Int64(1)`, `sum(s.parquet.x)`, `make_array(…)[Int64(1)]`) and
//! leaves casts out, so that `SELECT x, x::int` has two columns of one name and is refused. Here each item without a
//! name of its own is given its text as its alias, white space and comments folded; a scalar subquery the name of its
//! column, as in PostgreSQL, unless another item has it.
//!
//! The file goes once DataFusion names columns by their text.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, SetExpr, Value, VisitorMut};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::dialect::SessionDialect;
use super::items::{column_name, folded, has_columns};
use super::quotes::{quoted, written};
use super::relations;

/// Longest name, in characters; a longer text is left to DataFusion.
const NAME_CHARACTERS_MAX: usize = 1_000;

/// Gives items without a name their text as their name.
pub(super) fn keep(parsed: &mut ParsedStatement, sql: &str) {
    let Ok(tokens) = Tokenizer::new(&SessionDialect, sql).tokenize_with_location() else { return };
    let mut selects = HashMap::new();
    for (index, token) in tokens.iter().enumerate() {
        if keyword(&token.token) == Some(Keyword::SELECT) {
            selects.insert(token.span.start, index);
        }
    }
    let _ = super::visit(parsed, &mut Names { tokens: &tokens, selects });
}

struct Names<'a> {
    tokens: &'a [TokenWithSpan],
    /// Where each SELECT stands among the tokens.
    selects: HashMap<Location, usize>,
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let at = self.selects.get(&select.select_token.0.span.start);
        if at.is_some() {
            name_fields(select);
        }
        if let Some(&at) = at
            && select.projection.iter().any(|item| matches!(item, SelectItem::UnnamedExpr(expr) if is_unnamed(expr)))
            && let Some(texts) = texts(&self.tokens[at + 1..], select.projection.len())
        {
            let mut taken = taken_names(&select.projection);
            for (item, text) in select.projection.iter_mut().zip(texts) {
                let SelectItem::UnnamedExpr(expr) = item else { continue };
                let column =
                    subquery_column(expr).filter(|name| taken.as_mut().is_some_and(|taken| taken.insert(name.clone())));
                if !is_unnamed(expr) || column.is_none() && text.chars().count() > NAME_CHARACTERS_MAX {
                    continue;
                }
                let expr = std::mem::replace(expr, Expr::value(Value::Null));
                *item = SelectItem::ExprWithAlias { expr, alias: quoted(column.unwrap_or(text)) };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Gives fields of structs, `s.x`, the name of the field: what stands before it is no table of FROM.
fn name_fields(select: &mut Select) {
    let mut tables = Vec::new();
    select
        .from
        .iter()
        .for_each(|from| relations::each_factor(from, &mut |factor| tables.extend(relations::name_of(factor))));
    let is_of = |before: &[Ident]| {
        let own = |table: &Vec<Ident>| {
            table.len() >= before.len()
                && table.iter().rev().zip(before.iter().rev()).all(|(a, b)| folded(a) == folded(b))
        };
        tables.iter().any(own)
    };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) = item
            && let Some((name, before)) = names.split_last()
            && !is_of(before)
        {
            let alias = quoted(folded(name));
            *item = SelectItem::ExprWithAlias { expr: Expr::CompoundIdentifier(std::mem::take(names)), alias };
        }
    }
}

/// Whether an expression brings no name.
fn is_unnamed(expr: &Expr) -> bool {
    column_name(expr).is_none() && !spreads(expr) && !has_columns(expr)
}

/// The name of a scalar subquery's column, where that is a column or has an alias.
fn subquery_column(expr: &Expr) -> Option<String> {
    let query = match expr {
        Expr::Subquery(query) => query,
        Expr::Nested(inner) => return subquery_column(inner),
        _ => return None,
    };
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Query(query) => query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => left,
            _ => break,
        };
    }
    let SetExpr::Select(select) = body else { return None };
    match select.projection.as_slice() {
        [SelectItem::ExprWithAlias { alias, .. }] => Some(folded(alias)),
        [SelectItem::UnnamedExpr(expr)] => column_name(expr).or_else(|| subquery_column(expr)),
        _ => None,
    }
}

/// The names that items bring by themselves; none where a wildcard may bring any.
fn taken_names(items: &[SelectItem]) -> Option<HashSet<String>> {
    let mut taken = HashSet::new();
    for item in items {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => _ = taken.insert(folded(alias)),
            SelectItem::UnnamedExpr(expr) if spreads(expr) => return None,
            SelectItem::UnnamedExpr(expr) => taken.extend(column_name(expr)),
            _ => return None,
        }
    }
    Some(taken)
}

/// Whether an item may become several columns, which an alias would make one.
pub(super) fn spreads(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case("unnest"),
        Expr::CompoundIdentifier(_) | Expr::Wildcard(_) | Expr::QualifiedWildcard(_, _) => true,
        _ => false,
    }
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// The texts of the `count` items behind a SELECT; none where they are not found.
fn texts(tokens: &[TokenWithSpan], count: usize) -> Option<Vec<String>> {
    let mut rest = tokens;
    // DISTINCT, ALL and DISTINCT ON (…) are no part of the first item.
    loop {
        let (first, after) = rest.split_first()?;
        rest = match (&first.token, keyword(&first.token)) {
            (Token::Whitespace(_), _) | (_, Some(Keyword::DISTINCT | Keyword::ALL)) => after,
            (_, Some(Keyword::ON)) => &after[closing(after)?..],
            (_, Some(Keyword::TOP)) => return None,
            _ => break,
        };
    }
    let mut items = vec![String::new()];
    let (mut depth, mut before) = (0usize, None);
    for token in rest {
        let word = keyword(&token.token);
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace if depth == 0 => break,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            Token::Comma if depth == 0 => {
                items.push(String::new());
                before = None;
                continue;
            }
            Token::SemiColon | Token::EOF => break,
            Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)) => continue,
            _ if depth == 0 && word.is_some_and(|word| ends(word, before)) => break,
            _ => {}
        }
        let item = items.last_mut()?;
        match &token.token {
            Token::Whitespace(_) if item.is_empty() || item.ends_with(' ') => {}
            Token::Whitespace(_) => item.push(' '),
            other => item.push_str(&written(other)),
        }
        if !matches!(token.token, Token::Whitespace(_)) {
            before = word;
        }
    }
    // A comma behind the last item.
    if items.len() == count + 1 && items.last().is_some_and(|last| last.trim().is_empty()) {
        items.pop();
    }
    items.iter_mut().for_each(|item| item.truncate(item.trim_end().len()));
    (items.len() == count && items.iter().all(|item| !item.is_empty())).then_some(items)
}

/// Tokens up to and with the parenthesis that closes the first one.
fn closing(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => return Some(index + 1),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a keyword outside of parentheses ends the select list, behind this one.
pub(super) fn ends(word: Keyword, before: Option<Keyword>) -> bool {
    match word {
        Keyword::FROM => before != Some(Keyword::DISTINCT),
        Keyword::GROUP => before != Some(Keyword::WITHIN),
        Keyword::INTO
        | Keyword::WHERE
        | Keyword::HAVING
        | Keyword::WINDOW
        | Keyword::QUALIFY
        | Keyword::ORDER
        | Keyword::LIMIT
        | Keyword::OFFSET
        | Keyword::FETCH
        | Keyword::UNION
        | Keyword::EXCEPT
        | Keyword::INTERSECT
        | Keyword::SORT
        | Keyword::CLUSTER
        | Keyword::DISTRIBUTE
        | Keyword::LATERAL
        | Keyword::PREWHERE => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sql: &str) -> String {
        let mut parsed = datafusion::sql::parser::DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
        keep(&mut parsed, sql);
        parsed.to_string()
    }

    #[test]
    fn items_are_named_as_they_were_written() {
        assert_eq!(
            named("SELECT sum( x ), x::int, 1"),
            "SELECT sum(x) AS \"sum( x )\", x::INT AS \"x::int\", 1 AS \"1\""
        );
        assert_eq!(named("SELECT x, t.y, (x), z AS w, * FROM t"), "SELECT x, t.y, (x), z AS w, * FROM t");
        assert_eq!(
            named("SELECT DISTINCT ON (a, b) a+1 /* one */ ,\n f(a,\n  b) FROM t"),
            "SELECT DISTINCT ON (a, b) a + 1 AS \"a+1\", f(a, b) AS \"f(a, b)\" FROM t"
        );
        assert_eq!(
            named("SELECT a IS DISTINCT FROM b FROM t WHERE x IN (SELECT max(y) FROM u)"),
            "SELECT a IS DISTINCT FROM b AS \"a IS DISTINCT FROM b\" FROM t WHERE x IN \
             (SELECT max(y) AS \"max(y)\" FROM u)"
        );
        assert_eq!(named("SELECT 1 UNION ALL SELECT 'a,b'"), "SELECT 1 AS \"1\" UNION ALL SELECT 'a,b' AS \"'a,b'\"");
        assert_eq!(named("SELECT (SELECT y FROM t), x FROM u"), "SELECT (SELECT y FROM t) AS \"y\", x FROM u");
        assert_eq!(
            named("SELECT (SELECT 1 AS y), ((SELECT Y FROM t)), (SELECT x FROM t), x"),
            "SELECT (SELECT 1 AS y) AS \"y\", ((SELECT Y FROM t)) AS \"((SELECT Y FROM t))\", \
             (SELECT x FROM t) AS \"(SELECT x FROM t)\", x"
        );
        assert_eq!(named("SELECT (SELECT 1+1), 2"), "SELECT (SELECT 1 + 1 AS \"1+1\") AS \"(SELECT 1+1)\", 2 AS \"2\"");
    }
}
