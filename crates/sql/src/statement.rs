//! Statements: splitting a script into them, and the ones that are ours alone.
//!
//! Ours are read here, before DataFusion's parser: `SHOW DEVICE TABLES`, `LOAD TABLE t [(column, …)]`,
//! `EVICT TABLE t`, `SHOW ALL [VERBOSE]`, `SHOW warpcube.name`, `RESET warpcube.name`, `ATTACH 'folder' [AS name]`,
//! `DETACH name`, `USE name`, `SET GLOBAL name = value`, `RESET GLOBAL name`, `SHOW QUERIES` and `KILL n`. Case, blanks
//! and comments do not matter; everything else is left to DataFusion. A statement of ours with a mistake in it is a
//! syntax error that shows its form.

use std::ops::Range;

use datafusion::common::TableReference;

use crate::error::{Result, SqlError};
use crate::lexer::{Kind, Token, tokens};

/// A statement of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnStatement {
    /// `SHOW DEVICE TABLES`: what of which table is in device memory.
    ShowDeviceTables,
    /// `SHOW QUERIES`: the statements of the database that wait or run.
    ShowQueries,
    /// `KILL n`: ends one of them.
    Kill {
        /// Its number.
        number: u64,
    },
    /// `LOAD TABLE t [(column, …)]`: brings columns to the device; no columns means all.
    LoadTable {
        /// Name of the table, quotes taken off and otherwise in lower case; a file's is one part, dots included.
        table: TableReference,
        /// Names of columns; empty means all.
        columns: Vec<String>,
    },
    /// `EVICT TABLE t`: takes a table's columns off the device.
    EvictTable {
        /// Name of the table, as for `LoadTable`.
        table: TableReference,
    },
    /// `SHOW ALL [VERBOSE]`: every setting with its value and origin; `VERBOSE` adds what it does.
    ShowAll {
        /// Whether to add descriptions.
        verbose: bool,
    },
    /// `SHOW warpcube.name`: one setting.
    ShowSetting {
        /// Its full name.
        name: String,
    },
    /// `ATTACH 'folder' [AS name] [(READ_ONLY)]`: opens the catalog that is kept in a folder.
    Attach {
        /// The folder.
        folder: String,
        /// The name of the catalog; none where it is that of the folder.
        name: Option<String>,
        /// Whether the catalog is open for reading.
        read_only: bool,
    },
    /// `DETACH name`: closes a catalog.
    Detach {
        /// Its name.
        name: String,
    },
    /// `SET GLOBAL name = value`: a setting for all connections that the catalog keeps.
    SetGlobal {
        /// Its full name.
        name: String,
        /// Its value.
        value: String,
    },
    /// `RESET GLOBAL name`: the catalog no longer keeps a setting.
    ResetGlobal {
        /// Its full name.
        name: String,
    },
    /// `USE name`: names without a catalog, or without a schema, are of this one from now on.
    Use {
        /// A catalog, a schema, or both.
        names: Vec<String>,
    },
    /// `RESET warpcube.name`: back to the value the database was opened with.
    ResetSetting {
        /// Its full name.
        name: String,
    },
}

impl OwnStatement {
    /// The statement if it is one of ours.
    ///
    /// # Errors
    /// [`SqlError::Syntax`] for one of ours with a mistake in it.
    pub fn parse(sql: &str) -> Result<Option<OwnStatement>> {
        let (tokens, _) = tokens(sql);
        let mut reader = Reader { sql, tokens: &tokens, at: 0 };
        let first = [reader.word(), reader.word(), reader.word()];
        let statement = match first.each_ref().map(|word| word.as_deref()) {
            [Some("show"), Some("device"), Some("tables")] => {
                reader.end("SHOW DEVICE TABLES")?;
                OwnStatement::ShowDeviceTables
            }
            [Some("show"), Some("queries"), _] => {
                reader.at = 2;
                reader.end("SHOW QUERIES")?;
                OwnStatement::ShowQueries
            }
            [Some("kill"), number, _] => {
                const FORM: &str = "KILL n, a number of SHOW QUERIES";
                let number = number.and_then(|number| number.parse().ok()).ok_or_else(|| form(FORM))?;
                reader.at = 2;
                reader.end(FORM)?;
                OwnStatement::Kill { number }
            }
            [Some("load"), Some("table"), _] => {
                const FORM: &str = "LOAD TABLE name [(column, …)]";
                reader.at = 2;
                let table = reader.table().ok_or_else(|| form(FORM))?;
                let columns = reader.columns().ok_or_else(|| form(FORM))?;
                reader.end(FORM)?;
                OwnStatement::LoadTable { table, columns }
            }
            [Some("evict"), Some("table"), _] => {
                const FORM: &str = "EVICT TABLE name";
                reader.at = 2;
                let table = reader.table().ok_or_else(|| form(FORM))?;
                reader.end(FORM)?;
                OwnStatement::EvictTable { table }
            }
            [Some("show"), Some("all"), last] if last != Some("tables") => {
                let verbose = last == Some("verbose");
                reader.at = if verbose { 3 } else { 2 };
                reader.end("SHOW ALL [VERBOSE]")?;
                OwnStatement::ShowAll { verbose }
            }
            [Some("attach"), _, _] => {
                const FORM: &str = "ATTACH 'folder' [AS name] [(READ_ONLY)]";
                reader.at = 1;
                let _ = reader.keyword("database");
                let folder = reader.name().ok_or_else(|| form(FORM))?;
                let name = match reader.keyword("as") {
                    true => Some(reader.name().ok_or_else(|| form(FORM))?),
                    false => None,
                };
                let read_only = reader.symbol('(');
                if read_only && !(reader.keyword("read_only") && reader.symbol(')')) {
                    return Err(form(FORM));
                }
                reader.end(FORM)?;
                OwnStatement::Attach { folder, name, read_only }
            }
            [Some("detach"), _, _] => {
                const FORM: &str = "DETACH name";
                reader.at = 1;
                let _ = reader.keyword("database");
                let name = reader.name().ok_or_else(|| form(FORM))?;
                reader.end(FORM)?;
                OwnStatement::Detach { name }
            }
            [Some("use"), _, _] => {
                const FORM: &str = "USE catalog, USE schema or USE catalog.schema";
                reader.at = 1;
                let names = reader.names().filter(|names| names.len() < 3).ok_or_else(|| form(FORM))?;
                reader.end(FORM)?;
                OwnStatement::Use { names }
            }
            [Some("set"), Some("global"), _] => {
                const FORM: &str = "SET GLOBAL name = value";
                reader.at = 2;
                let name = reader.names().ok_or_else(|| form(FORM))?.join(".");
                if !reader.symbol('=') && !reader.keyword("to") {
                    return Err(form(FORM));
                }
                let value = reader.value().ok_or_else(|| form(FORM))?;
                reader.end(FORM)?;
                OwnStatement::SetGlobal { name, value }
            }
            [Some("reset"), Some("global"), _] => {
                const FORM: &str = "RESET GLOBAL name";
                reader.at = 2;
                let name = reader.names().ok_or_else(|| form(FORM))?.join(".");
                reader.end(FORM)?;
                OwnStatement::ResetGlobal { name }
            }
            [Some(verb @ ("show" | "reset")), Some("warpcube"), _] => {
                reader.at = 1;
                let name = reader.names().filter(|names| names.len() > 1).map(|names| names.join("."));
                let name = name.ok_or_else(|| form("SHOW warpcube.name, or RESET warpcube.name"))?;
                reader.end("SHOW warpcube.name, or RESET warpcube.name")?;
                match verb {
                    "show" => OwnStatement::ShowSetting { name },
                    _ => OwnStatement::ResetSetting { name },
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(statement))
    }
}

fn form(form: &str) -> SqlError {
    SqlError::Syntax(format!("expected {form}"))
}

/// Reads tokens from the front.
struct Reader<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<&Token> {
        self.at += 1;
        self.tokens.get(self.at - 1)
    }

    fn word(&mut self) -> Option<String> {
        let sql = self.sql;
        self.next().filter(|token| token.kind == Kind::Word).map(|token| sql[token.range.clone()].to_lowercase())
    }

    /// Whether a word comes next, which is passed then.
    fn keyword(&mut self, word: &str) -> bool {
        let is_word = |token: &&Token| token.kind == Kind::Word;
        let next = self.tokens.get(self.at).filter(is_word).map(|token| &self.sql[token.range.clone()]);
        let found = next.is_some_and(|next| next.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    /// The value of a setting: a text, or the words and symbols up to the end.
    fn value(&mut self) -> Option<String> {
        let rest = self.tokens.get(self.at..)?;
        let rest = match rest.iter().rposition(|token| token.kind != Kind::Symbol(';')) {
            Some(last) => &rest[..=last],
            None => return None,
        };
        if let [text] = rest
            && text.kind == Kind::Text
        {
            return self.name();
        }
        self.at += rest.len();
        Some(self.sql[rest.first()?.range.start..rest.last()?.range.end].to_string())
    }

    fn symbol(&mut self, symbol: char) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| token.kind == Kind::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    /// A name: a word in lower case, or a quoted one as it is. Files are named in single quotes.
    fn name(&mut self) -> Option<String> {
        let sql = self.sql;
        let token = self.next()?;
        let text = &sql[token.range.clone()];
        match token.kind {
            Kind::Word => Some(text.to_lowercase()),
            Kind::QuotedName | Kind::Text if token.closed => {
                let quote = &text[..1];
                Some(text[1..text.len() - 1].replace(&quote.repeat(2), quote))
            }
            _ => None,
        }
    }

    /// Names with dots between them.
    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = vec![self.name()?];
        while self.symbol('.') {
            names.push(self.name()?);
        }
        Some(names)
    }

    /// The name of a table.
    fn table(&mut self) -> Option<TableReference> {
        match self.names()?.as_slice() {
            [table] => Some(TableReference::bare(table.as_str())),
            [schema, table] => Some(TableReference::partial(schema.as_str(), table.as_str())),
            [catalog, schema, table] => Some(TableReference::full(catalog.as_str(), schema.as_str(), table.as_str())),
            _ => None,
        }
    }

    /// `(a, b)` or nothing.
    fn columns(&mut self) -> Option<Vec<String>> {
        let mut columns = Vec::new();
        if self.symbol('(') {
            columns.push(self.name()?);
            while self.symbol(',') {
                columns.push(self.name()?);
            }
            if !self.symbol(')') {
                return None;
            }
        }
        Some(columns)
    }

    /// Nothing but semicolons may follow.
    fn end(&mut self, expected: &str) -> Result<()> {
        while self.symbol(';') {}
        if self.at < self.tokens.len() { Err(form(expected)) } else { Ok(()) }
    }
}

/// One statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptStatement {
    /// The statement without its semicolon.
    pub sql: String,
    /// The line it starts on, from 1.
    pub line: usize,
}

/// A script split at its semicolons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The statements that ended with a semicolon.
    pub statements: Vec<ScriptStatement>,
    /// What follows the last semicolon, if that is more than blanks and comments.
    pub rest: Option<ScriptStatement>,
    /// The quote that the text ends inside, `$` in one of dollars, `*` in a comment.
    pub open: Option<char>,
    /// The innermost bracket that `rest` opens and does not close.
    pub bracket: Option<char>,
    /// The byte of the first backslash outside quotes and comments: a command of a shell, which SQL knows none of.
    /// Statements end before it.
    pub backslash: Option<usize>,
}

impl Script {
    /// Splits `text` at the semicolons that stand outside quotes and comments; empty statements are dropped.
    pub fn split(text: &str) -> Script {
        let (tokens, open_comment) = tokens(text);
        let mut statements = Vec::new();
        let mut current: Option<Range<usize>> = None;
        let mut brackets = Vec::new();
        let mut backslash = None;
        for token in &tokens {
            match token.kind {
                Kind::Symbol('\\') => {
                    backslash = Some(token.range.start);
                    break;
                }
                Kind::Symbol(';') => {
                    statements.extend(current.take().map(|range| statement(text, range)));
                    brackets.clear();
                    continue;
                }
                Kind::Symbol(bracket @ ('(' | '[' | '{')) => brackets.push(bracket),
                Kind::Symbol(')' | ']' | '}') => drop(brackets.pop()),
                _ => {}
            }
            match &mut current {
                Some(range) => range.end = token.range.end,
                none => *none = Some(token.range.clone()),
            }
        }
        let quote = tokens.last().filter(|token| !token.closed && backslash.is_none());
        // An E may stand before the quote.
        let quote = quote.and_then(|token| text[token.range.clone()].trim_start_matches(['e', 'E']).chars().next());
        let open = quote.or((open_comment && backslash.is_none()).then_some('*'));
        let rest = current.map(|range| statement(text, range));
        Script { statements, rest, open, bracket: brackets.pop(), backslash }
    }

    /// All statements of `text`, the last one without a semicolon included. That has what stands from a backslash on,
    /// which the parser refuses.
    pub fn into_statements(self, text: &str) -> Vec<ScriptStatement> {
        let rest = match self.backslash {
            Some(at) => {
                let tail = statement(text, at..text.len());
                Some(match self.rest {
                    Some(begun) => ScriptStatement { sql: format!("{} {}", begun.sql, tail.sql), line: begun.line },
                    None => tail,
                })
            }
            None => self.rest,
        };
        self.statements.into_iter().chain(rest).collect()
    }
}

fn statement(text: &str, range: Range<usize>) -> ScriptStatement {
    let line = text[..range.start].matches('\n').count() + 1;
    ScriptStatement { sql: text[range].to_string(), line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_is_the_parsers_to_refuse() {
        let texts = |text: &str| -> Vec<String> {
            Script::split(text).into_statements(text).into_iter().map(|statement| statement.sql).collect()
        };
        assert_eq!(texts("DELETE FROM t \\ WHERE a = 1; SELECT 1"), ["DELETE FROM t \\ WHERE a = 1; SELECT 1"]);
        assert_eq!(texts("SELECT 1; \\ SELECT 2"), ["SELECT 1", "\\ SELECT 2"]);
        assert_eq!(texts("SELECT '\\'; SELECT 2"), ["SELECT '\\'", "SELECT 2"]);
    }

    #[test]
    fn ours_in_any_dress() {
        let load = OwnStatement::parse("  load /* x */ TABLE Public.\"My T\" ( A , \"b\"\"c\" ) ; ").unwrap();
        let columns = vec!["a".to_string(), "b\"c".to_string()];
        assert_eq!(load, Some(OwnStatement::LoadTable { table: TableReference::partial("public", "My T"), columns }));
        let show = OwnStatement::parse("-- hello\nShow Device\nTables").unwrap();
        assert_eq!(show, Some(OwnStatement::ShowDeviceTables));
        let evict = OwnStatement::parse("EVICT TABLE 'a/b.parquet'").unwrap();
        assert_eq!(evict, Some(OwnStatement::EvictTable { table: TableReference::bare("a/b.parquet") }));
        let attach = OwnStatement::parse("attach 'a/b' as C (read_only);").unwrap();
        let (folder, name) = ("a/b".to_string(), Some("c".to_string()));
        assert_eq!(attach, Some(OwnStatement::Attach { folder, name, read_only: true }));
        let attach = OwnStatement::parse("ATTACH DATABASE 'x'").unwrap();
        assert_eq!(attach, Some(OwnStatement::Attach { folder: "x".into(), name: None, read_only: false }));
        assert_eq!(OwnStatement::parse("detach c").unwrap(), Some(OwnStatement::Detach { name: "c".into() }));
        for sql in ["SET GLOBAL warpcube.timeout = '1 s'", "set global warpcube.timeout to 1 s;"] {
            let (name, value) = ("warpcube.timeout".to_string(), "1 s".to_string());
            assert_eq!(OwnStatement::parse(sql).unwrap(), Some(OwnStatement::SetGlobal { name, value }));
        }
        assert_eq!(OwnStatement::parse("show queries;").unwrap(), Some(OwnStatement::ShowQueries));
        assert_eq!(OwnStatement::parse("kill 12").unwrap(), Some(OwnStatement::Kill { number: 12 }));
        let setting = OwnStatement::parse("show warpcube . device").unwrap();
        assert_eq!(setting, Some(OwnStatement::ShowSetting { name: "warpcube.device".into() }));
        assert_eq!(OwnStatement::parse("SHOW ALL;").unwrap(), Some(OwnStatement::ShowAll { verbose: false }));
    }

    #[test]
    fn others_are_left_alone() {
        for sql in ["select 1", "show tables", "show columns from t", "", "load", "explain show device tables"] {
            assert_eq!(OwnStatement::parse(sql).unwrap(), None, "{sql}");
        }
    }

    #[test]
    fn mistakes_show_the_form() {
        for sql in [
            "load table",
            "load table t (",
            "load table t ()",
            "evict table t u",
            "show device tables now",
            "kill",
            "kill x",
        ] {
            let error = OwnStatement::parse(sql).unwrap_err().to_string();
            assert!(error.starts_with("SQL-001 syntax error: expected "), "{sql}: {error}");
        }
    }

    #[test]
    fn scripts_split_outside_quotes() {
        let script = Script::split("select ';' ;; -- no;\nselect 2;\n\nselect\n3");
        let found: Vec<_> = script.statements.iter().map(|s| (s.sql.as_str(), s.line)).collect();
        assert_eq!(found, [("select ';'", 1), ("select 2", 2)]);
        assert_eq!(script.rest.map(|s| (s.sql, s.line)), Some(("select\n3".to_string(), 4)));
        assert_eq!(Script::split("select 'a;").open, Some('\''));
        assert_eq!(Script::split(" -- nothing\n").rest, None);
    }

    #[test]
    fn what_a_script_leaves_open_is_named() {
        let open = |text: &str| {
            let script = Script::split(text);
            (script.open, script.bracket)
        };
        assert_eq!(open("select (1, [2"), (None, Some('[')));
        assert_eq!(open("select (1, [2]"), (None, Some('(')));
        assert_eq!(open("select (1; select 2"), (None, None));
        assert_eq!(open("select (\"a"), (Some('"'), Some('(')));
        assert_eq!(open("select E'a"), (Some('\''), None));
        assert_eq!(open("select $x$ a $"), (Some('$'), None));
        assert_eq!(open("select 1 /* a"), (Some('*'), None));
    }

    #[test]
    fn a_backslash_outside_quotes_ends_the_text() {
        let script = Script::split("select 1; select '\\' -- \\\n \\g ';");
        assert_eq!(script.rest.map(|rest| rest.sql), Some("select '\\'".to_string()));
        assert_eq!((script.backslash, script.open), (Some(27), None));
    }
}
