//! `COPY … TO 'file' (FORMAT csv, DELIMITER ';')` and `COPY t FROM 'file' (…)`, by DuckDB's options.
//!
//! DataFusion's COPY has OPTIONS and STORED AS, and no FROM. COPY TO becomes its statement, with the options by their
//! names there. COPY FROM becomes the text of an INSERT that selects from a function that reads files
//! ([`super::readers`]), so that rules, defaults and versions of the table are those of INSERT; columns have the
//! types of the table's.

use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Query, UnaryOperator, Value};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::casts::written_type;
use super::dialect::{SessionDialect, parser_of};
use super::expansions::read_for;
use super::items::{constant, folded};
use super::{quotes, spelled};
use crate::error::{Result, SqlError};
use crate::format_options::character;
use crate::formats::format_of;
use crate::nearest::nearest;
use crate::syntax::found_table;

/// Options of COPY TO that are no format's.
const OF_COPY: [&str; 8] = [
    "append",
    "format",
    "overwrite",
    "overwrite_or_ignore",
    "partition_by",
    "use_tmp_file",
    "per_thread_output",
    "write_partition_columns",
];
/// Options of formats by DuckDB's names, with ours.
const OF_CSV: [(&str, &str); 14] = [
    ("compression", "compression"),
    ("compression_level", "compression_level"),
    ("dateformat", "date_format"),
    ("date_format", "date_format"),
    ("delim", "delimiter"),
    ("delimiter", "delimiter"),
    ("escape", "escape"),
    ("header", "has_header"),
    ("null", "null_value"),
    ("nullstr", "null_value"),
    ("quote", "quote"),
    ("sep", "delimiter"),
    ("timestampformat", "timestamp_format"),
    ("timestamp_format", "timestamp_format"),
];
const OF_JSON: [(&str, &str); 2] = [("compression", "compression"), ("compression_level", "compression_level")];
const OF_PARQUET: [(&str, &str); 7] = [
    ("codec", "compression"),
    ("compression", "compression"),
    ("compression_level", "compression_level"),
    ("parquet_version", "writer_version"),
    ("row_group_size", "max_row_group_size"),
    ("row_group_size_bytes", "max_row_group_bytes"),
    ("dictionary_size_limit", "dictionary_page_size_limit"),
];

/// What an option has behind its name.
enum Given {
    Nothing,
    Star,
    Value(Box<Expr>),
}

/// A COPY as it is written.
struct Copy {
    source: CopyToSource,
    columns: Vec<Ident>,
    is_from: bool,
    file: String,
    /// None for COPY in DataFusion's form.
    options: Option<Vec<(String, Given)>>,
}

/// The statement, if it is a COPY TO in DuckDB's form.
///
/// # Errors
/// An option that is not known, not done or has a value of another kind.
pub(super) fn to_file(state: &SessionState, sql: &str) -> Result<Option<ParsedStatement>> {
    let Some(Copy { source, columns, is_from: false, file, options: Some(options) }) = parse(state, sql)? else {
        return Ok(None);
    };
    let source = match source {
        CopyToSource::Relation(name) if !columns.is_empty() => {
            let columns = columns.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ");
            CopyToSource::Query(query(&format!("SELECT {columns} FROM {name}"))?)
        }
        source => source,
    };
    let mut stored_as = None;
    for (name, given) in &options {
        if name == "format" {
            stored_as = Some(word(name, given)?.to_uppercase());
        }
    }
    let format = format_of(stored_as.as_deref(), &file)?;
    let mut copy = CopyToStatement { source, target: file, partitioned_by: Vec::new(), stored_as, options: Vec::new() };
    // Any other extension is one of CSV, as in DuckDB.
    if format.is_none() {
        copy.stored_as = Some("CSV".into());
    }
    let format = format.unwrap_or("CSV");
    let level = options.iter().find(|(name, _)| name == "compression_level");
    for (name, given) in &options {
        let mut put = |name: &str, value: String| copy.options.push((name.into(), Value::SingleQuotedString(value)));
        match name.as_str() {
            "format" => {}
            "partition_by" => copy.partitioned_by = words(name, given)?,
            "append" | "overwrite" if switch(name, given)? => put(name, "true".into()),
            "overwrite_or_ignore" if switch(name, given)? => put("append", "true".into()),
            "append" | "overwrite" | "overwrite_or_ignore" => {}
            "use_tmp_file" if switch(name, given)? => {}
            "use_tmp_file" => return Err(refused(name, "a file takes its place when it is whole")),
            "per_thread_output" if !switch(name, given)? => {}
            "per_thread_output" => return Err(refused(name, "write to a folder, or PARTITION_BY")),
            "write_partition_columns" => {
                put("execution.keep_partition_by_columns", switch(name, given)?.to_string());
            }
            "force_quote" | "quote_all" if format == "CSV" => match given {
                Given::Star => put("quote_style", "always".into()),
                _ => return Err(refused(name, "of some columns; FORCE_QUOTE * quotes all")),
            },
            "array" if format == "JSON" && !switch(name, given)? => {}
            "array" if format == "JSON" => return Err(refused(name, "a record is written in each line")),
            "compression_level" if format == "PARQUET" => {}
            "header" => put("has_header", switch(name, given)?.to_string()),
            name => {
                let own: &[(&str, &str)] = match format {
                    "CSV" => &OF_CSV,
                    "JSON" => &OF_JSON,
                    "PARQUET" => &OF_PARQUET,
                    _ => &[],
                };
                let Some((_, ours)) = own.iter().find(|(known, _)| *known == name) else {
                    let known = own.iter().map(|(known, _)| *known).chain(OF_COPY).map(String::from);
                    let near = nearest(name, known).map(|near| format!("; did you mean '{near}'?"));
                    let near = near.unwrap_or_default();
                    return Err(SqlError::Planning(format!("COPY to {format} has no option '{name}'{near}")));
                };
                let value = word(name, given)?;
                let value = match (*ours, format) {
                    ("compression", "PARQUET") => {
                        let level = level.map(|(name, given)| word(name, given)).transpose()?;
                        codec(&value.to_lowercase(), level)
                    }
                    ("compression", _) if value.eq_ignore_ascii_case("none") => "uncompressed".into(),
                    ("compression", _) if value.eq_ignore_ascii_case("auto") => continue,
                    ("compression", _) => value.to_lowercase(),
                    ("writer_version", _) => match value.to_lowercase().trim_start_matches('v') {
                        "1" => "1.0".into(),
                        "2" => "2.0".into(),
                        _ => value,
                    },
                    ("delimiter", _) => character(&value).into(),
                    _ => value,
                };
                // Two quotes are what a reader takes for one.
                if *ours != "escape" || !matches!(value.as_str(), "" | "\"") {
                    put(ours, value);
                }
            }
        }
    }
    Ok(Some(ParsedStatement::CopyTo(copy)))
}

/// The INSERT that a COPY FROM is.
///
/// # Errors
/// As of [`to_file`], and a table or a column that is not there.
pub(super) async fn as_insert(state: &SessionState, sql: &str) -> Result<Option<String>> {
    let Some(Copy { source, columns, is_from: true, file, options }) = parse(state, sql)? else { return Ok(None) };
    let CopyToSource::Relation(name) = source else {
        return Err(SqlError::Syntax("COPY FROM fills a table, and no query".into()));
    };
    let (_, table) = found_table(state, &name).await?;
    let schema = table.schema();
    let mut stored_as = None;
    let mut arguments = vec![constant(&file)];
    for (name, given) in options.unwrap_or_default() {
        if name == "format" {
            stored_as = Some(word(&name, &given)?.to_uppercase());
            continue;
        }
        let value = match given {
            Given::Nothing => "true".into(),
            Given::Star => return Err(refused(&name, "of all columns")),
            Given::Value(value) => value.to_string(),
        };
        // NULL is no name of an argument.
        let name = if name == "null" { "nullstr" } else { name.as_str() };
        arguments.push(format!("{name} = {value}"));
    }
    let format = format_of(stored_as.as_deref(), &file)?.unwrap_or("CSV");
    let function = match format {
        "CSV" => "read_csv",
        "JSON" => "read_json",
        "PARQUET" => "read_parquet",
        other => return Err(SqlError::Unsupported(format!("COPY FROM files of {other}; write INSERT … SELECT"))),
    };
    if format != "PARQUET" {
        let wanted: Vec<String> = match columns.is_empty() {
            true => schema.fields().iter().map(|field| field.name().clone()).collect(),
            false => columns.iter().map(folded).collect(),
        };
        let mut declared = Vec::new();
        for column in &wanted {
            let names = || schema.fields().iter().map(|field| field.name().clone());
            let field = schema
                .field_with_name(column)
                .map_err(|_| SqlError::UnknownColumn { name: column.clone(), nearest: nearest(column, names()) })?;
            // A type whose name cannot be written is read as text, of which INSERT makes the value.
            let kind = written_type(field.data_type()).unwrap_or_else(|| "VARCHAR".into());
            declared.push(format!("{}: {}", constant(column), constant(&kind)));
        }
        arguments.push(format!("columns = {{{}}}", declared.join(", ")));
    }
    let columns = match columns.is_empty() {
        true => String::new(),
        false => format!(" ({})", columns.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ")),
    };
    Ok(Some(format!("INSERT INTO {name}{columns} SELECT * FROM {function}({})", arguments.join(", "))))
}

/// The table that a COPY FROM fills; none where the statement is another one.
pub(super) fn filled(state: &SessionState, sql: &str) -> Result<Option<ObjectName>> {
    Ok(match parse(state, sql)? {
        Some(Copy { source: CopyToSource::Relation(name), is_from: true, .. }) => Some(name),
        _ => None,
    })
}

/// A COPY, or none where the statement is another one.
fn parse(state: &SessionState, sql: &str) -> Result<Option<Copy>> {
    // Most statements are no COPY.
    let begins = sql.trim_start();
    if !begins.starts_with(['c', 'C', '-', '/']) {
        return Ok(None);
    }
    let mut tokens = Tokenizer::new(&SessionDialect, sql)
        .tokenize_with_location()
        .map_err(|error| syntax(ParserError::from(error)))?;
    let first = tokens.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    if !first.is_some_and(|token| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::COPY)) {
        return Ok(None);
    }
    spelled::put(state, sql, &mut tokens);
    read_for(&mut tokens)?;
    quotes::keep(&mut tokens).map_err(syntax)?;
    let mut parser = Parser::new(&SessionDialect).with_tokens_with_locations(tokens);
    parser.next_token();
    let mut columns = Vec::new();
    let source = match parser.consume_token(&Token::LParen) {
        true => {
            let query = parser.parse_query().map_err(syntax)?;
            parser.expect_token(&Token::RParen).map_err(syntax)?;
            CopyToSource::Query(query)
        }
        false => {
            let name = parser.parse_object_name(false).map_err(syntax)?;
            if parser.consume_token(&Token::LParen) {
                columns = parser.parse_comma_separated(Parser::parse_identifier).map_err(syntax)?;
                parser.expect_token(&Token::RParen).map_err(syntax)?;
            }
            CopyToSource::Relation(name)
        }
    };
    let Some(direction) = parser.parse_one_of_keywords(&[Keyword::TO, Keyword::FROM]) else { return Ok(None) };
    let is_from = direction == Keyword::FROM;
    match &parser.peek_token_ref().token {
        Token::Word(word) if word.keyword == Keyword::STDOUT => {
            return Err(SqlError::Unsupported("COPY TO STDOUT; write TO '/dev/stdout' (FORMAT csv)".into()));
        }
        Token::Word(word) if word.keyword == Keyword::STDIN => {
            return Err(SqlError::Unsupported("COPY FROM STDIN; write FROM 'file.csv' (FORMAT csv)".into()));
        }
        _ => {}
    }
    let file = match parser.parse_literal_string() {
        Ok(file) => file,
        Err(error) if is_from => return Err(syntax(error)),
        Err(_) => return Ok(None),
    };
    let with = parser.parse_keyword(Keyword::WITH);
    let options = match parser.consume_token(&Token::LParen) {
        true => {
            let options = parser.parse_comma_separated(option).map_err(syntax)?;
            parser.expect_token(&Token::RParen).map_err(syntax)?;
            Some(options)
        }
        false => match bare_options(&mut parser).map_err(syntax)? {
            options if !options.is_empty() => Some(options),
            _ if with => return Err(SqlError::Syntax("expected (, and options".into())),
            _ => {
                // The name of a device tells no format.
                let ends = matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon);
                (is_from || !columns.is_empty() || ends && file.starts_with("/dev/")).then(Vec::new)
            }
        },
    };
    if options.is_some() {
        while parser.consume_token(&Token::SemiColon) {}
        parser.expect_token(&Token::EOF).map_err(syntax)?;
    }
    let mut names: Vec<&str> = options.iter().flatten().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(SqlError::Planning(format!("option {} is given twice", pair[0])));
    }
    Ok(Some(Copy { source, columns, is_from, file, options }))
}

/// Options without parentheses, as PostgreSQL takes them: `CSV HEADER DELIMITER ';'`.
fn bare_options(parser: &mut Parser) -> std::result::Result<Vec<(String, Given)>, ParserError> {
    let mut options = Vec::new();
    let words = [Keyword::CSV, Keyword::HEADER, Keyword::DELIMITER, Keyword::NULL, Keyword::QUOTE, Keyword::ESCAPE];
    while let Some(word) = parser.parse_one_of_keywords(&words) {
        let (name, given) = match word {
            Keyword::CSV => ("format".to_string(), Given::Value(Box::new(Expr::Identifier(Ident::new("csv"))))),
            Keyword::HEADER => ("header".to_string(), Given::Nothing),
            word => {
                let _ = parser.parse_keyword(Keyword::AS);
                let text = Value::SingleQuotedString(parser.parse_literal_string()?);
                (format!("{word:?}").to_lowercase(), Given::Value(Box::new(Expr::value(text))))
            }
        };
        options.push((name, given));
    }
    Ok(options)
}

/// An option of COPY.
fn option(parser: &mut Parser) -> std::result::Result<(String, Given), ParserError> {
    let name = parser.parse_identifier()?.value.to_lowercase();
    let _ = parser.consume_token(&Token::Eq);
    let given = match parser.peek_token_ref().token {
        Token::Comma | Token::RParen => Given::Nothing,
        Token::Mul => {
            parser.next_token();
            Given::Star
        }
        _ => Given::Value(Box::new(parser.parse_expr()?)),
    };
    Ok((name, given))
}

fn syntax(error: ParserError) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => SqlError::Syntax("the statement is nested too deep".into()),
        other => DataFusionError::from(other).into(),
    }
}

fn query(text: &str) -> Result<Box<Query>> {
    parser_of(text).and_then(|mut parser| parser.parse_query()).map_err(|error| syntax(error).bare())
}

fn refused(name: &str, why: &str) -> SqlError {
    SqlError::Unsupported(format!("option {name} of COPY: {why}"))
}

/// A word, a text or a number.
fn word(name: &str, given: &Given) -> Result<String> {
    let wrong = || SqlError::Planning(format!("option {name} of COPY takes a value"));
    let Given::Value(expr) = given else { return Err(wrong()) };
    value(expr).ok_or_else(wrong)
}

fn value(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => value(inner),
        Expr::Identifier(word) => Some(word.value.clone()),
        Expr::Value(found) => Some(found.value.clone().into_string().unwrap_or_else(|| found.value.to_string())),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Some(format!("-{}", value(expr)?)),
        _ => None,
    }
}

/// Names of columns.
fn words(name: &str, given: &Given) -> Result<Vec<String>> {
    let wrong = || SqlError::Planning(format!("option {name} of COPY takes names of columns, as (a, b)"));
    let column = |expr: &Expr| match expr {
        Expr::Identifier(word) => Some(folded(word)),
        Expr::Value(_) => value(expr),
        _ => None,
    };
    let Given::Value(expr) = given else { return Err(wrong()) };
    let columns = match expr.as_ref() {
        Expr::Tuple(items) => items.iter().map(column).collect(),
        Expr::Array(array) => array.elem.iter().map(column).collect(),
        Expr::Nested(inner) => column(inner).map(|column| vec![column]),
        other => column(other).map(|column| vec![column]),
    };
    columns.ok_or_else(wrong)
}

/// True or false; true where nothing stands behind the name.
fn switch(name: &str, given: &Given) -> Result<bool> {
    if matches!(given, Given::Nothing) {
        return Ok(true);
    }
    match word(name, given)?.to_lowercase().as_str() {
        "true" | "1" | "on" => Ok(true),
        "false" | "0" | "off" => Ok(false),
        _ => Err(SqlError::Planning(format!("option {name} of COPY is true or false"))),
    }
}

/// A codec of Parquet with its level.
fn codec(name: &str, level: Option<String>) -> String {
    match (name, level) {
        ("none", _) => "uncompressed".into(),
        ("zstd", level) => format!("zstd({})", level.unwrap_or_else(|| "3".into())),
        ("gzip", level) => format!("gzip({})", level.unwrap_or_else(|| "6".into())),
        ("brotli", level) => format!("brotli({})", level.unwrap_or_else(|| "1".into())),
        (name, None) => name.into(),
        (name, Some(level)) => format!("{name}({level})"),
    }
}
