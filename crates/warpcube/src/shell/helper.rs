//! What the line editor asks: whether a statement is whole, and how a word may go on.

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Result};
use warpcube_sql::{Connection, SETTINGS, Script, as_written};

use crate::escape;
use crate::script::{COMMANDS, meant_by};

/// Words that statements are made of.
const KEYWORDS: [&str; 74] = [
    "ALL",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "AVG",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COALESCE",
    "COLUMNS",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "DEALLOCATE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DEVICE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EVICT",
    "EXCEPT",
    "EXECUTE",
    "EXISTS",
    "EXPLAIN",
    "EXTERNAL",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOAD",
    "LOCATION",
    "MAX",
    "MIN",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "PREPARE",
    "RIGHT",
    "SELECT",
    "SET",
    "SHOW",
    "STORED",
    "SUM",
    "TABLE",
    "UNION",
    "VALUES",
    "WHERE",
    "WITH",
];

/// Answers the editor from the database's catalog.
pub(super) struct Helper {
    connection: Connection,
    files: FilenameCompleter,
}

impl Helper {
    pub(super) fn new(connection: Connection) -> Helper {
        Helper { connection, files: FilenameCompleter::new() }
    }

    /// Words that may follow `start`; keywords in the case the user types in.
    fn candidates(&self, start: &str) -> Vec<String> {
        let lower = start.to_lowercase();
        let mut names: Vec<String> = Vec::new();
        for (table, columns) in self.connection.database().tables() {
            names.extend([table].iter().chain(&columns).map(|name| as_written(name)));
        }
        names.extend(SETTINGS.iter().map(|info| info.name.to_string()));
        let is_lower = start.chars().all(|character| !character.is_uppercase());
        let keywords = KEYWORDS.iter().map(|word| if is_lower { word.to_lowercase() } else { word.to_string() });
        let mut found: Vec<String> = names
            .into_iter()
            .chain(keywords)
            .filter(|name| unquoted(name).to_lowercase().starts_with(&lower))
            // The editor shows a line as it is.
            .filter(|name| escape::line(name) == name.as_str())
            .collect();
        found.sort();
        found.dedup();
        found
    }
}

/// A name without the quotes that it may need.
fn unquoted(name: &str) -> &str {
    name.strip_prefix('"').unwrap_or(name)
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        let pair = |text: &str| Pair { display: text.to_string(), replacement: text.to_string() };
        if before.starts_with('\\') && !before.contains(' ') {
            let commands = COMMANDS.iter().filter(|(name, ..)| name.starts_with(before));
            return Ok((0, commands.map(|(name, ..)| pair(name)).collect()));
        }
        let in_quotes = before.matches('\'').count() % 2 == 1;
        if in_quotes || before.starts_with("\\i ") {
            let (start, mut files) = self.files.complete(line, at, context)?;
            files.retain(|file| escape::line(&file.replacement) == file.replacement);
            return Ok((start, files));
        }
        let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '.';
        let start = before
            .rfind(|character| !is_word(character))
            .map_or(0, |found| found + before[found..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        // After `table.` only the part behind the dot is completed, unless it is a setting.
        let (start, word) = match word.rsplit_once('.') {
            Some((table, column)) if table != "warpcube" => (start + table.len() + 1, column),
            _ => (start, word),
        };
        if word.is_empty() {
            return Ok((start, Vec::new()));
        }
        Ok((start, self.candidates(word).iter().map(|name| pair(name)).collect()))
    }
}

impl Validator for Helper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let text = context.input();
        if text.trim_start().starts_with('\\') || meant_by(text).is_some() {
            return Ok(ValidationResult::Valid(None));
        }
        let script = Script::split(text);
        let whole = script.rest.is_none() && !script.open;
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Highlighter for Helper {}

impl Hinter for Helper {
    type Hint = String;
}

impl rustyline::Helper for Helper {}

#[cfg(test)]
mod tests {
    use rustyline::history::DefaultHistory;
    use warpcube_sql::{Database, DatabaseOptions};

    use super::*;

    /// How the last word of a line may go on, and where that word begins.
    fn completed(helper: &Helper, line: &str) -> (usize, Vec<String>) {
        let history = DefaultHistory::new();
        let (start, pairs) = helper.complete(line, line.len(), &Context::new(&history)).unwrap();
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    #[tokio::test]
    async fn words_go_on_as_what_there_is() {
        let connection = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu")).unwrap().connect();
        let columns = "1 AS amount, 'x' AS region, 2 AS \"Net price\", 3 AS \"am\u{1b}c\"";
        connection.collect(&format!("CREATE TABLE sales AS SELECT {columns}")).await.unwrap();
        let helper = Helper::new(connection);
        assert_eq!(completed(&helper, "SELECT am"), (7, vec!["amount".to_string()]));
        assert_eq!(completed(&helper, "select * from sa").1, ["sales"]);
        assert_eq!(completed(&helper, "SELECT sales.reg"), (13, vec!["region".to_string()]));
        assert_eq!(completed(&helper, "SELECT sales.net").1, ["\"Net price\""]);
        assert_eq!(completed(&helper, "sel").1, ["select"]);
        assert_eq!(completed(&helper, "SEL").1, ["SELECT"]);
        assert_eq!(completed(&helper, "SET warpcube.time").1, ["warpcube.timeout"]);
        assert_eq!(completed(&helper, "\\tim"), (0, vec!["\\timing".to_string()]));
        assert_eq!(completed(&helper, "SELECT ").1, [] as [&str; 0]);
    }
}
