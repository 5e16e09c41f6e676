//! Statements of DuckDB's that sqlparser has no syntax for: PIVOT, UNPIVOT, SUMMARIZE and DESCRIBE, as queries.

use datafusion::sql::sqlparser::ast::{
    Expr, ExprWithAlias, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, LimitClause, NullInclusion, ObjectName,
    PivotValueSource, Query, Statement, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use super::quotes::quoted;
use super::relations;
use crate::error::SqlError;

/// The alias of a key of GROUP BY.
pub(super) const KEY: &str = "\u{2063}key";
/// The function that SUMMARIZE is read as.
pub(super) const SUMMARIZE: &str = "\u{2063}summarize";
/// The function that DESCRIBE is read as where a query stands.
pub(super) const DESCRIBE: &str = "\u{2063}describe";

/// The statement that begins here, if it is one of these.
pub(super) fn statement(parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
    let Token::Word(Word { value, quote_style: None, keyword }) = &parser.peek_token_ref().token else { return None };
    let query = match keyword {
        Keyword::PIVOT => pivot,
        Keyword::UNPIVOT => unpivot,
        Keyword::DESCRIBE | Keyword::DESC => describe,
        _ if value.eq_ignore_ascii_case("summarize") => summarize,
        _ => return None,
    };
    parser.next_token();
    Some(query(parser).map(Statement::Query))
}

fn summarize(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    let query = subject(parser)?;
    told_of(SUMMARIZE, query).map_err(refused)
}

/// `DESCRIBE table`, `DESCRIBE query` and `SHOW table`, whose word comes next, as a query.
pub(super) fn described(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    parser.next_token();
    describe(parser)
}

fn describe(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    let query = subject(parser)?;
    told_of(DESCRIBE, query).map_err(refused)
}

/// What a statement tells of: a query, or all of a table.
fn subject(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    let begins_query = match &parser.peek_token_ref().token {
        Token::Word(word) => matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM),
        Token::LParen => true,
        _ => false,
    };
    match begins_query {
        true => parser.parse_query(),
        false => all_of(parser.parse_table_factor()?),
    }
}

fn all_of(relation: TableFactor) -> Result<Box<Query>, ParserError> {
    relations::all_of(TableWithJoins { relation, joins: Vec::new() }).map_err(refused)
}

fn refused(error: SqlError) -> ParserError {
    ParserError::ParserError(error.to_string())
}

fn word(parser: &mut Parser, expected: &str) -> bool {
    let is_it = matches!(&parser.peek_token_ref().token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected));
    if is_it {
        parser.next_token();
    }
    is_it
}

/// `table ON column [IN (…)], … [USING aggregate, …] [GROUP BY …] [ORDER BY …] [LIMIT n]`.
fn pivot(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    let table = Box::new(parser.parse_table_factor()?);
    parser.expect_keyword_is(Keyword::ON)?;
    let items = parser.parse_comma_separated(Parser::parse_expr)?;
    let mut aggregate_functions = match parser.parse_keyword(Keyword::USING) {
        true => parser.parse_comma_separated(Parser::parse_expr_with_alias)?,
        false => vec![ExprWithAlias { expr: super::call("count", vec![every_row()]), alias: None }],
    };
    if let Some(group_by) = parser.parse_optional_group_by()? {
        let GroupByExpr::Expressions(keys, _) = group_by else {
            return Err(ParserError::ParserError("GROUP BY ALL of PIVOT".into()));
        };
        aggregate_functions.extend(keys.into_iter().map(group));
    }
    let (value_column, value_source) = values_of(items)?;
    let pivot = TableFactor::Pivot {
        table,
        aggregate_functions,
        value_column,
        value_source,
        default_on_null: None,
        alias: None,
    };
    let mut query = all_of(pivot)?;
    query.order_by = parser.parse_optional_order_by()?;
    if parser.parse_keyword(Keyword::LIMIT) {
        query.limit_clause =
            Some(LimitClause::LimitOffset { limit: Some(parser.parse_expr()?), offset: None, limit_by: Vec::new() });
    }
    Ok(query)
}

/// The columns of ON and all rows of their values; those of the table where a column has no list.
fn values_of(items: Vec<Expr>) -> Result<(Vec<Expr>, PivotValueSource), ParserError> {
    let (mut columns, mut rows) = (Vec::new(), Some(vec![Vec::new()]));
    for item in items {
        match item {
            Expr::InList { expr, list, negated: false } => {
                columns.push(*expr);
                rows = rows.map(|rows: Vec<Vec<Expr>>| {
                    let with = |row: &Vec<Expr>| {
                        let longer = |value: &Expr| [row.as_slice(), std::slice::from_ref(value)].concat();
                        list.iter().map(longer).collect::<Vec<_>>()
                    };
                    rows.iter().flat_map(with).collect()
                });
            }
            other => {
                columns.push(other);
                rows = None;
            }
        }
    }
    let value = |mut row: Vec<Expr>| ExprWithAlias {
        expr: if row.len() == 1 { row.remove(0) } else { Expr::Tuple(row) },
        alias: None,
    };
    let source = match rows {
        Some(rows) => PivotValueSource::List(rows.into_iter().map(value).collect()),
        None => PivotValueSource::Any(Vec::new()),
    };
    Ok((columns, source))
}

/// `table ON column [AS name], … [INTO NAME name VALUE value, …]`.
fn unpivot(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    let table = Box::new(parser.parse_table_factor()?);
    parser.expect_keyword_is(Keyword::ON)?;
    let columns = parser.parse_comma_separated(Parser::parse_expr_with_alias)?;
    let (mut name, mut values) = (Ident::new("name"), vec![Ident::new("value")]);
    if parser.parse_keyword(Keyword::INTO) {
        if !word(parser, "name") {
            return parser.expected_ref("NAME", parser.peek_token_ref());
        }
        name = parser.parse_identifier()?;
        if !word(parser, "value") {
            return parser.expected_ref("VALUE", parser.peek_token_ref());
        }
        values = parser.parse_comma_separated(Parser::parse_identifier)?;
    }
    let mut values: Vec<Expr> = values.into_iter().map(Expr::Identifier).collect();
    let mut query = all_of(TableFactor::Unpivot {
        table,
        value: if values.len() == 1 { values.remove(0) } else { Expr::Tuple(values) },
        null_inclusion: Some(NullInclusion::ExcludeNulls),
        name,
        columns,
        alias: None,
    })?;
    query.order_by = parser.parse_optional_order_by()?;
    Ok(query)
}

/// `SELECT * FROM function((query))`.
fn told_of(function: &str, query: Box<Query>) -> Result<Box<Query>, SqlError> {
    relations::all_of(TableWithJoins {
        relation: TableFactor::Function {
            lateral: false,
            name: ObjectName::from(vec![quoted(function)]),
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query)))],
            with_ordinality: false,
            alias: None,
        },
        joins: Vec::new(),
    })
}

/// The argument of `count(*)`.
fn every_row() -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Wildcard)
}

/// A key of GROUP BY, among the aggregates, where texts of queries have calls alone.
fn group(key: Expr) -> ExprWithAlias {
    let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(key));
    ExprWithAlias { expr: super::call("key", vec![argument]), alias: Some(quoted(KEY)) }
}
