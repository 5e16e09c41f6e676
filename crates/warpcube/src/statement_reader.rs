//! Lines in, statements and shell commands out.

use warpcube_sql::Script;

/// A piece of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A statement without its semicolon.
    Statement(String),
    /// A shell command with its backslash.
    Command(String),
}

/// Gathers lines until a statement is whole.
#[derive(Debug, Default)]
pub(crate) struct StatementReader {
    text: String,
    /// Lines taken so far, and the one that `text` starts on, from 1.
    lines: usize,
    start: usize,
}

impl StatementReader {
    /// Takes a line; gives what became whole with it, each with the line it starts on.
    pub(crate) fn line(&mut self, line: &str) -> Vec<(Piece, usize)> {
        self.lines += 1;
        let command = line.trim();
        if command.starts_with('\\') && self.is_between_statements() {
            self.text.clear();
            return vec![(Piece::Command(command.to_string()), self.lines)];
        }
        if self.text.is_empty() {
            self.start = self.lines;
        }
        self.text.push_str(line);
        self.text.push('\n');
        // Only a line with a semicolon can end a statement; looking at the text once a line would take too long for
        // statements of many thousand lines.
        if !line.contains(';') {
            return Vec::new();
        }
        let script = Script::split(&self.text);
        if script.open {
            return Vec::new();
        }
        let start = self.start;
        let pieces = script
            .statements
            .into_iter()
            .map(|statement| (Piece::Statement(statement.sql), start + statement.line - 1))
            .collect();
        match script.rest {
            Some(rest) => {
                self.start = start + rest.line - 1;
                self.text = rest.sql + "\n";
            }
            None => self.text.clear(),
        }
        pieces
    }

    /// True if the gathered text is only blanks and comments.
    fn is_between_statements(&self) -> bool {
        let script = Script::split(&self.text);
        script.rest.is_none() && !script.open
    }

    /// The rest at the end of the input.
    pub(crate) fn end(&mut self) -> Vec<(Piece, usize)> {
        let start = self.start;
        let statements = Script::split(&std::mem::take(&mut self.text)).into_statements();
        statements.into_iter().map(|statement| (Piece::Statement(statement.sql), start + statement.line - 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_commands_with_their_lines() {
        let mut reader = StatementReader::default();
        let mut found = Vec::new();
        for line in ["-- hello", "\\timing on", "", "select 1;select '", ";", "\\q", "'; select 2"] {
            found.extend(reader.line(line));
        }
        found.extend(reader.end());
        let statement = |sql: &str| Piece::Statement(sql.into());
        let expected = [
            (Piece::Command("\\timing on".into()), 2),
            (statement("select 1"), 4),
            (statement("select '\n;\n\\q\n'"), 4),
            (statement("select 2"), 7),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn commands_stand_on_lines_of_their_own() {
        let mut reader = StatementReader::default();
        assert_eq!(reader.line("  \\d t "), [(Piece::Command("\\d t".into()), 1)]);
        assert_eq!(reader.line("select 1 -- ;"), []);
        assert_eq!(reader.end(), [(Piece::Statement("select 1".into()), 2)]);
    }
}
