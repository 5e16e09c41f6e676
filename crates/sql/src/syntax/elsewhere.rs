//! Statements of DuckDB and PostgreSQL that have another form here, by the words that they begin with.
//!
//! [`as_ours`] reads those that ask for tables, columns and databases as statements of ours, and refuses others with
//! what to write in their place. The parser knows some of them and the planner none.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};

use super::functions::function_names;
use super::stored;
use crate::error::{Result, SqlError};
use crate::lexer::{Kind, Token, tokens};
use crate::settings::{PREFIX, setting};

/// Statements that are read as others: their words, and what is read.
const READ: [(&str, &str); 11] = [
    ("describe", TABLES),
    ("pragma database_list", DATABASES),
    ("pragma show_databases", DATABASES),
    ("pragma show_tables", TABLES),
    ("pragma show_tables_expanded", ALL_TABLES),
    ("pragma version", "SELECT version()"),
    ("show all tables", ALL_TABLES),
    ("show databases", DATABASES),
    ("show search_path", "SELECT current_schema() AS search_path"),
    ("show tables", TABLES),
    ("show schemas", "SELECT DISTINCT schema_name FROM information_schema.schemata ORDER BY schema_name"),
];
const DATABASES: &str =
    "SELECT DISTINCT catalog_name AS database_name FROM information_schema.schemata ORDER BY database_name";
const ALL_TABLES: &str = "SELECT table_catalog AS database, table_schema AS schema, table_name AS name, \
                          array_agg(column_name ORDER BY ordinal_position) AS column_names, \
                          array_agg(data_type ORDER BY ordinal_position) AS column_types \
                          FROM information_schema.columns WHERE table_schema <> 'information_schema' \
                          GROUP BY table_catalog, table_schema, table_name \
                          ORDER BY table_catalog, table_schema, table_name";
const TABLES: &str = "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables \
                      WHERE table_schema <> 'information_schema' ORDER BY table_catalog, table_schema, table_name";
/// What describes the table that stands behind it.
const DESCRIBED: [&str; 2] = ["pragma table_info", "pragma show"];
/// Settings by the names that other systems have for them.
const SETTINGS: [(&str, &str); 5] = [
    ("max_memory", "warpcube.memory_limit"),
    ("memory_limit", "warpcube.memory_limit"),
    ("statement_timeout", "warpcube.timeout"),
    ("threads", "warpcube.target_partitions"),
    ("worker_threads", "warpcube.target_partitions"),
];
/// What SHOW has of its own.
const SHOWN: [&str; 3] = ["all", "functions", "tables"];
/// Statements that are refused, by how they begin, and what to write.
const REFUSED: [(&str, &str); 22] = [
    ("abort", TRANSACTIONS),
    ("analyze", "ANALYZE; statistics are those of the files and tables when they are read"),
    ("begin", TRANSACTIONS),
    ("call", "CALL"),
    ("checkpoint", "CHECKPOINT; tables are in memory, and COPY t TO 'file.parquet' writes one"),
    ("commit", TRANSACTIONS),
    ("create sequence", "CREATE SEQUENCE; row_number() OVER () counts rows, and uuid() tells them apart"),
    ("create type", "CREATE TYPE; a VARCHAR with CHECK (c IN ('a', 'b')) takes the values of an ENUM"),
    ("end", TRANSACTIONS),
    ("export database", "EXPORT DATABASE; COPY t TO 'file.parquet' writes a table, and warpcube folder/ keeps views"),
    ("force checkpoint", "CHECKPOINT; tables are in memory, and COPY t TO 'file.parquet' writes one"),
    ("force install", EXTENSIONS),
    ("import database", "IMPORT DATABASE; CREATE TABLE t AS FROM 'file.parquet' reads a table"),
    ("install", EXTENSIONS),
    ("load", EXTENSIONS),
    ("pragma", "PRAGMA; SHOW ALL lists the settings, and SET name = value changes one"),
    ("release", TRANSACTIONS),
    ("rollback", TRANSACTIONS),
    ("savepoint", TRANSACTIONS),
    ("start transaction", TRANSACTIONS),
    ("update extensions", EXTENSIONS),
    ("vacuum", "VACUUM; rows that are gone take no room"),
];
const TRANSACTIONS: &str =
    "transactions of several statements; each statement is one, which has changed all or nothing at its end";
const EXTENSIONS: &str = "INSTALL and LOAD of extensions; nothing has to be loaded: CSV, JSON, Parquet and Arrow files \
                          are read as they are, on s3:// and https://, too";

/// The text of the statement that one of another system's means here; none for others.
///
/// # Errors
/// [`SqlError::Unsupported`] for a statement that there is none for, with what to write.
pub(super) fn as_ours(state: &SessionState, sql: &str) -> Result<Option<String>> {
    if !may_be_read(sql) {
        return Ok(None);
    }
    let (mut tokens, _) = tokens(sql);
    while tokens.last().is_some_and(|token| token.kind == Kind::Symbol(';')) {
        tokens.pop();
    }
    let text = |token: &Token| &sql[token.range.clone()];
    let count = tokens.iter().take_while(|token| token.kind == Kind::Word).count().min(3);
    let words: Vec<String> = tokens[..count].iter().map(|token| text(token).to_lowercase()).collect();
    let front = |words: &[String]| words.join(" ");
    if tokens.len() == count
        && let Some((_, ours)) = READ.iter().find(|(theirs, _)| *theirs == front(&words))
    {
        return Ok(Some(ours.to_string()));
    }
    if let [show, what, ..] = words.as_slice()
        && (show.as_str(), what.as_str()) == ("show", "functions")
    {
        match (words.get(2).map(String::as_str), &tokens[2..]) {
            (None, []) => return Ok(Some(functions(state, ""))),
            (Some("like" | "ilike"), [like, pattern]) => {
                let pattern = &sql[like.range.start..pattern.range.end];
                return Ok(Some(functions(state, &format!(" WHERE function_name {pattern}"))));
            }
            _ => {}
        }
    }
    let described = words.get(..2).map(front).filter(|front| DESCRIBED.contains(&front.as_str()));
    match (described, tokens.get(2..)) {
        (Some(_), Some([open, table, close])) if is_symbol(open, '(') && is_symbol(close, ')') => {
            return Ok(Some(format!("DESCRIBE {}", unquoted(text(table)))));
        }
        _ => {}
    }
    // The same number of characters, so that places stay.
    if let ([first, ..], [table, _, ..]) = (words.as_slice(), tokens.as_slice())
        && first == "table"
    {
        return Ok(Some(format!("{}FROM {}", &sql[..table.range.start], &sql[table.range.end..])));
    }
    if let ([show, name], true) = (words.as_slice(), tokens.len() == 2)
        && show == "show"
        && !SHOWN.contains(&name.as_str())
        && is_table(state, name)
    {
        return Ok(Some(format!("DESCRIBE {name}")));
    }
    if let ([verb, name, ..], [_, token, behind @ ..]) = (words.as_slice(), tokens.as_slice())
        && ["set", "show", "reset"].contains(&verb.as_str())
    {
        let ours = own_setting(name);
        if let ("set", [.., to, value]) = (verb.as_str(), behind)
            && (is_symbol(to, '=') || text(to).eq_ignore_ascii_case("to"))
            && text(value).eq_ignore_ascii_case("default")
        {
            let given = sql[token.range.start..to.range.start].trim_end();
            return Ok(Some(format!("RESET {}", ours.as_deref().unwrap_or(given))));
        }
        let Some(ours) = ours else { return Ok(None) };
        if verb != "set" {
            return Ok(behind.is_empty().then(|| format!("{verb} {ours}")));
        }
        let mut value = sql[token.range.end..].to_string();
        // A number alone is one of milliseconds.
        if name == "statement_timeout"
            && let [.., last] = tokens.as_slice()
            && sql[last.range.clone()].parse::<u64>().is_ok_and(|count| count > 0)
        {
            let digits = last.range.start - token.range.end..last.range.end - token.range.end;
            let quoted = format!("'{} ms'", &value[digits.clone()]);
            value.replace_range(digits, &quoted);
        }
        return Ok(Some(format!("{}{ours}{value}", &sql[..token.range.start])));
    }
    let is_it = |theirs: &str| theirs.split(' ').eq(words.iter().take(theirs.split(' ').count()).map(String::as_str));
    match REFUSED.iter().find(|(theirs, _)| is_it(theirs)) {
        Some((_, what)) => Err(SqlError::Unsupported(what.to_string())),
        None => Ok(None),
    }
}

/// The query of SHOW FUNCTIONS: a line for each name. DataFusion shows those that tell their arguments.
fn functions(state: &SessionState, condition: &str) -> String {
    let names: Vec<String> = function_names(state).map(|name| format!("'{name}'")).collect();
    format!(
        "SELECT * FROM (SELECT DISTINCT routine_name AS function_name, lower(function_type) AS function_type, \
         description FROM information_schema.routines UNION ALL SELECT DISTINCT n, 'other name', NULL \
         FROM unnest([{}]) AS other(n) WHERE n NOT IN (SELECT routine_name FROM information_schema.routines)) \
         AS functions{condition} ORDER BY function_name",
        names.join(", ")
    )
}

/// What a statement of these words alone is read as.
pub(super) fn read_as(words: &str) -> Option<&'static str> {
    let words = words.to_lowercase();
    READ.iter().find(|(theirs, _)| *theirs == words).map(|(_, ours)| *ours)
}

/// Whether a statement begins with a word of those above, or with a comment.
fn may_be_read(sql: &str) -> bool {
    let sql = sql.trim_start();
    let first = &sql[..sql.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(sql.len())];
    let theirs = READ
        .iter()
        .chain(&REFUSED)
        .map(|(theirs, _)| *theirs)
        .chain(DESCRIBED)
        .chain(["reset", "set", "show", "table"]);
    let mut words = theirs.filter_map(|theirs| theirs.split(' ').next());
    sql.starts_with(['-', '/']) || words.any(|word| word.eq_ignore_ascii_case(first))
}

fn is_symbol(token: &Token, symbol: char) -> bool {
    token.kind == Kind::Symbol(symbol)
}

/// The full name of a setting that has this one here, or elsewhere.
fn own_setting(name: &str) -> Option<String> {
    let elsewhere = SETTINGS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| ours.to_string());
    elsewhere.or_else(|| Some(format!("{PREFIX}.{name}")).filter(|own| setting(own).is_ok()))
}

/// The name in a text.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(name) => name.replace("''", "'"),
        None => text.to_string(),
    }
}

fn is_table(state: &SessionState, name: &str) -> bool {
    let mut name = ObjectName::from(vec![Ident::new(name)]);
    stored::spell_table(state, &mut name);
    stored::is_there(state, &name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_other_systems_are_read_or_refused() {
        let state = datafusion::prelude::SessionContext::new().state();
        let ours = |sql: &str| as_ours(&state, sql).map_err(|error| error.to_string());
        assert_eq!(ours("show ALL tables;"), Ok(Some(ALL_TABLES.into())));
        assert_eq!(ours("PRAGMA table_info('a.b')"), Ok(Some("DESCRIBE a.b".into())));
        assert_eq!(ours("SET threads TO 4"), Ok(Some("SET warpcube.target_partitions TO 4".into())));
        assert_eq!(ours("RESET threads;"), Ok(Some("reset warpcube.target_partitions".into())));
        assert_eq!(ours("SHOW timeout"), Ok(Some("show warpcube.timeout".into())));
        assert_eq!(ours("SET a.b = DEFAULT"), Ok(Some("RESET a.b".into())));
        assert_eq!(ours("SET a = 'default'"), Ok(None));
        assert_eq!(ours(" table t ORDER BY a"), Ok(Some(" FROM  t ORDER BY a".into())));
        for sql in ["SELECT 1", "SHOW x", "SET a = 1", "CREATE TABLE t (a INT)", "-- nothing", "DESCRIBE t"] {
            assert_eq!(ours(sql), Ok(None), "{sql}");
        }
        for sql in ["BEGIN", "begin transaction", "COMMIT;", "Rollback TO a", "START TRANSACTION", "SAVEPOINT a", "END"]
        {
            assert!(ours(sql).unwrap_err().contains("transactions of several statements"), "{sql}");
        }
        assert!(ours("LOAD 'httpfs'").unwrap_err().contains("nothing has to be loaded"));
    }
}
