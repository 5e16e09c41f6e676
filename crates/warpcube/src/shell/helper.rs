//! What the line editor asks: how a word may go on, and how a line looks.

use std::borrow::Cow;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Result};
use warpcube_sql::Connection;

use super::completion::{Wanted, wanted};
use super::highlight::colored;
use crate::escape;

/// Answers the editor from the database's catalog.
pub(super) struct Helper {
    connection: Connection,
    files: FilenameCompleter,
    /// The lines of the statement before the one that is edited.
    before: String,
}

impl Helper {
    pub(super) fn new(connection: Connection) -> Helper {
        Helper { connection, files: FilenameCompleter::new(), before: String::new() }
    }

    /// Begins a line behind others of its statement.
    pub(super) fn begin(&mut self, before: &str) {
        self.before = before.to_string();
    }
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        match wanted(&self.connection, &self.before, line, at) {
            Wanted::Words(start, words) => Ok((start, words)),
            Wanted::Files => {
                let (start, mut files) = self.files.complete(line, at, context)?;
                files.retain(|file| escape::line(&file.replacement) == file.replacement);
                Ok((start, files))
            }
        }
    }
}

impl Highlighter for Helper {
    fn highlight<'l>(&self, line: &'l str, _at: usize) -> Cow<'l, str> {
        colored(&self.before, line).map_or(Cow::Borrowed(line), Cow::Owned)
    }

    fn highlight_char(&self, _line: &str, _at: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

impl Validator for Helper {}

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
        completed_at(helper, line, line.len())
    }

    fn completed_at(helper: &Helper, line: &str, at: usize) -> (usize, Vec<String>) {
        let history = DefaultHistory::new();
        let (start, pairs) = helper.complete(line, at, &Context::new(&history)).unwrap();
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    async fn helper() -> Helper {
        let connection = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu")).unwrap().connect();
        let columns = "1 AS amount, 'x' AS region, 2 AS \"Net price\", 3 AS \"am\u{1b}c\"";
        connection.collect(&format!("CREATE TABLE sales AS SELECT {columns}")).await.unwrap();
        connection.collect("CREATE TABLE costs AS SELECT 1 AS amends, 2 AS rent").await.unwrap();
        Helper::new(connection)
    }

    #[tokio::test]
    async fn words_go_on_as_what_there_is() {
        let helper = helper().await;
        assert_eq!(completed(&helper, "SELECT amo"), (7, vec!["amount".to_string()]));
        assert_eq!(completed(&helper, "select * from sa").1, ["sales"]);
        assert_eq!(completed(&helper, "SELECT sales.reg"), (13, vec!["region".to_string()]));
        assert_eq!(completed(&helper, "SELECT sales.net").1, ["\"Net price\""]);
        assert_eq!(completed(&helper, "sel").1, ["select"]);
        assert_eq!(completed(&helper, "SEL").1, ["SELECT"]);
        assert_eq!(completed(&helper, "select date_tr").1, ["date_trunc("]);
        assert_eq!(completed(&helper, "SELECT ").1, [] as [&str; 0]);
    }

    #[tokio::test]
    async fn columns_are_those_of_the_tables_in_from() {
        let mut helper = helper().await;
        assert_eq!(completed(&helper, "SELECT am").1, ["amends", "amount"]);
        assert_eq!(completed_at(&helper, "SELECT am FROM costs", 9).1, ["amends"]);
        let of_costs = completed(&helper, "SELECT 1 FROM public.costs WHERE re").1;
        assert!(of_costs.contains(&"rent".into()) && !of_costs.contains(&"region".into()), "{of_costs:?}");
        helper.begin("SELECT * FROM costs\n");
        assert_eq!(completed(&helper, "WHERE am").1, ["amends"]);
    }

    #[tokio::test]
    async fn settings_and_commands_go_on() {
        let mut helper = helper().await;
        assert_eq!(completed(&helper, "SET warpcube.time").1, ["warpcube.timeout"]);
        assert_eq!(completed(&helper, "reset datafusion.execution.batch").1, ["datafusion.execution.batch_size"]);
        assert_eq!(
            completed(&helper, "SET warpcube.placement = 'cu"),
            (26, Vec::new()),
            "files, of which there is none"
        );
        assert_eq!(completed(&helper, "SET warpcube.placement = ").1, ["'auto'", "'columns'", "'cuda'", "'files'"]);
        assert_eq!(completed(&helper, "\\tim"), (0, vec!["\\timing".to_string()]));
        assert_eq!(completed(&helper, ".tab"), (0, vec![".tables".to_string()]));
        assert_eq!(completed(&helper, "\\format mark"), (8, vec!["markdown".to_string()]));
        assert_eq!(completed(&helper, "\\d sa"), (3, vec!["sales".to_string()]));
        assert_eq!(
            completed(&helper, "\\h cre").1,
            ["create external table", "create macro", "create schema", "create table", "create view"]
        );
        helper.begin("SELECT 1\n");
        assert_eq!(completed(&helper, "\\timi").1, [] as [&str; 0], "between the lines of a statement");
    }
}
