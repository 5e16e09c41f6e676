//! How the word before the cursor may go on: commands and their arguments, files in quotes, settings and their values,
//! columns of the tables in FROM, tables, functions, keywords.

use rustyline::completion::Pair;
use warpcube_sql::{Connection, FORMATS, Kind, SETTINGS, Token, as_written, setting_names, tokens};

use super::keywords::{KEYWORDS, is_keyword};
use crate::commands::{COMMANDS, STATEMENTS, Takes, find};
use crate::escape;

/// What a line asks for: words, or files.
pub(super) enum Wanted {
    /// These words, from that byte of the line on.
    Words(usize, Vec<Pair>),
    /// Names of files.
    Files,
}

/// What may follow the first `at` bytes of a line; `before` are the lines of its statement before it.
pub(super) fn wanted(connection: &Connection, before: &str, line: &str, at: usize) -> Wanted {
    let typed = &line[..at];
    let start = word_start(typed);
    let word = &typed[start..];
    if before.is_empty() && typed.starts_with(['\\', '.']) {
        return of_command(connection, typed);
    }
    let text = format!("{before}{typed}");
    let (found, _) = tokens(&text);
    if found.last().is_some_and(|token| !token.closed && token.kind == Kind::Text) {
        return Wanted::Files;
    }
    // The tokens before the word.
    let word_at = before.len() + start;
    let earlier: Vec<&Token> = found.iter().filter(|token| token.range.end <= word_at).collect();
    let words: Vec<String> = earlier.iter().map(|token| text[token.range.clone()].to_uppercase()).collect();
    if let Some(values) = of_setting(&words, &earlier) {
        return Wanted::Words(start, chosen(values, word));
    }
    let names = Names { tables: connection.database().tables(), read: tables_read(&format!("{before}{line}")) };
    // Behind `table.` are its columns.
    if let Some((table, column)) = word.rsplit_once('.') {
        return Wanted::Words(start + table.len() + 1, chosen(names.columns_of(table), column));
    }
    if word.is_empty() {
        return Wanted::Words(start, Vec::new());
    }
    let is_table = matches!(
        words.last().map(String::as_str),
        Some("FROM" | "JOIN" | "INTO" | "UPDATE" | "TABLE" | "DESCRIBE" | "SUMMARIZE" | "VIEW")
    );
    let tables = names.tables.iter().map(|(table, _)| as_written(table));
    let mut all: Vec<String> = tables.collect();
    if !is_table {
        all.extend(names.columns());
        all.extend(connection.functions().into_iter().map(|name| format!("{name}(")));
    }
    let is_lower = word.chars().all(|character| !character.is_uppercase());
    all.extend(KEYWORDS.iter().map(|word| if is_lower { word.to_lowercase() } else { word.to_string() }));
    Wanted::Words(start, chosen(all, word))
}

/// The byte where the last word of a text begins.
fn word_start(text: &str) -> usize {
    let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '.';
    let last = text.char_indices().rev().find(|(_, character)| !is_word(*character));
    last.map_or(0, |(at, character)| at + character.len_utf8())
}

/// Those of some names that begin like a word, in any case, in order.
fn chosen(names: impl IntoIterator<Item = String>, word: &str) -> Vec<Pair> {
    let lower = word.to_lowercase();
    let mut found: Vec<String> = names
        .into_iter()
        .filter(|name| name.trim_start_matches('"').to_lowercase().starts_with(&lower))
        // The editor shows a line as it is.
        .filter(|name| escape::line(name) == name.as_str())
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()
}

/// The name of a command, or its argument.
fn of_command(connection: &Connection, typed: &str) -> Wanted {
    let Some((name, argument)) = typed.split_once(' ') else {
        let names = COMMANDS.iter().flat_map(|command| std::iter::once(&command.name).chain(command.others));
        return Wanted::Words(0, chosen(names.map(|name| name.to_string()), typed));
    };
    let start = typed.len() - argument.trim_start().len();
    let words: Vec<String> = match find(name).map_or(Takes::Nothing, |command| command.takes) {
        Takes::Nothing => Vec::new(),
        Takes::File => return Wanted::Files,
        Takes::Table if argument.starts_with('\'') => return Wanted::Files,
        Takes::Table => connection.database().tables().iter().map(|(table, _)| as_written(table)).collect(),
        Takes::Format => FORMATS.iter().map(|info| info.name.into()).collect(),
        Takes::Setting => SETTINGS.iter().map(|info| info.name.trim_start_matches("warpcube.").into()).collect(),
        Takes::Statement => STATEMENTS.iter().map(|(name, _)| name.to_lowercase()).collect(),
        Takes::Words(words) => words.iter().map(|word| word.to_string()).collect(),
    };
    Wanted::Words(start, chosen(words, &typed[start..]))
}

/// Names of settings behind SET, RESET and SHOW, and the values that one is known to take.
fn of_setting(words: &[String], tokens: &[&Token]) -> Option<Vec<String>> {
    let verb = words.first().map(String::as_str);
    if !matches!(verb, Some("SET" | "RESET" | "SHOW")) {
        return None;
    }
    if tokens.len() == 1 {
        let more = if verb == Some("SHOW") {
            ["tables", "all", "columns", "functions", "device tables"].as_slice()
        } else {
            &[]
        };
        return Some(setting_names().into_iter().chain(more.iter().map(|word| word.to_string())).collect());
    }
    let (equals, name) = words[1..].split_last()?;
    if verb != Some("SET") || !matches!(equals.as_str(), "=" | "TO") {
        return None;
    }
    let name = name.concat().to_lowercase();
    let info = SETTINGS.iter().find(|info| info.name == name)?;
    // What a setting takes names words in quotes.
    Some(info.expected.split('\'').skip(1).step_by(2).map(|word| format!("'{word}'")).collect())
}

/// Tables that a statement reads, each with the name that it has there.
fn tables_read(text: &str) -> Vec<(String, String)> {
    let (found, _) = tokens(text);
    let mut read = Vec::new();
    let mut at = 0;
    let name_at = |at: usize| {
        let token: &Token = found.get(at)?;
        let text = &text[token.range.clone()];
        match token.kind {
            Kind::Word if !is_keyword(text) => Some(text.to_lowercase()),
            Kind::QuotedName => Some(text.trim_matches('"').replace("\"\"", "\"")),
            _ => None,
        }
    };
    let is =
        |at: usize, word: &str| found.get(at).is_some_and(|token| text[token.range.clone()].eq_ignore_ascii_case(word));
    while at < found.len() {
        if !["FROM", "JOIN", "INTO", "UPDATE"].iter().any(|word| is(at, word)) {
            at += 1;
            continue;
        }
        loop {
            at += 1;
            let Some(mut name) = name_at(at) else { break };
            while is(at + 1, ".") {
                let Some(inner) = name_at(at + 2) else { break };
                (name, at) = (inner, at + 2);
            }
            let alias_at = at + 1 + usize::from(is(at + 1, "AS"));
            let alias = name_at(alias_at);
            if alias.is_some() {
                at = alias_at;
            }
            read.push((alias.unwrap_or_else(|| name.clone()), name));
            at += 1;
            if !is(at, ",") {
                break;
            }
        }
    }
    read
}

/// Tables with their columns, and those of them that a statement reads.
struct Names {
    tables: Vec<(String, Vec<String>)>,
    read: Vec<(String, String)>,
}

impl Names {
    fn of_table(&self, table: &str) -> impl Iterator<Item = String> {
        self.tables
            .iter()
            .filter(move |(name, _)| name == table)
            .flat_map(|(_, columns)| columns)
            .map(|name| as_written(name))
    }

    /// The columns of a table, by the name that it has in the statement.
    fn columns_of(&self, name: &str) -> Vec<String> {
        let name = name.trim_matches('"').to_lowercase();
        let name = name.rsplit('.').next().unwrap_or_default();
        let table =
            self.read.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map_or(name, |(_, table)| table);
        self.of_table(table).collect()
    }

    /// The columns of the tables that are read; of all where the statement names none that is known.
    fn columns(&self) -> Vec<String> {
        let of_read: Vec<String> = self.read.iter().flat_map(|(_, table)| self.of_table(table)).collect();
        match of_read.is_empty() {
            true => self.tables.iter().flat_map(|(_, columns)| columns).map(|name| as_written(name)).collect(),
            false => of_read,
        }
    }
}
