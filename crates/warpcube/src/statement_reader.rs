//! Lines in, statements and shell commands out.
//!
//! A command is a line that begins with a dot between statements, or what stands behind a backslash outside quotes, up
//! to the end of the line: a statement before it stays in the buffer, which `\g` runs, `\p` shows and `\r` empties.

use warpcube_sql::Script;

/// A piece of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A statement without its semicolon.
    Statement(String),
    /// A shell command with its backslash or dot.
    Command(String),
}

/// Gathers lines until a statement is whole.
#[derive(Debug, Default)]
pub(crate) struct StatementReader {
    /// The buffer: what no semicolon has ended.
    text: String,
    /// Lines taken so far, and the one that `text` starts on, from 1.
    lines: usize,
    start: usize,
    /// The last statement that was whole.
    last: Option<String>,
}

/// True if a line, or the text of a `-c`, is a command wherever it stands between statements.
pub(crate) fn is_command(line: &str) -> bool {
    let mut characters = line.trim_start().chars();
    match characters.next() {
        Some('\\') => true,
        Some('.') => characters.next().is_some_and(char::is_alphabetic),
        _ => false,
    }
}

impl StatementReader {
    /// Takes a line; gives what became whole with it, each with the line it starts on.
    pub(crate) fn line(&mut self, line: &str) -> Vec<(Piece, usize)> {
        self.lines += 1;
        if is_command(line) && self.is_between_statements() {
            self.text.clear();
            return vec![(Piece::Command(line.trim().to_string()), self.lines)];
        }
        if self.text.is_empty() {
            self.start = self.lines;
        }
        self.text.push_str(line);
        self.text.push('\n');
        // Only a line with a semicolon or a backslash can end a statement; looking at the text once a line would take
        // too long for statements of many thousand lines.
        if !line.contains([';', '\\']) {
            return Vec::new();
        }
        let script = Script::split(&self.text);
        if script.open.is_some() {
            return Vec::new();
        }
        let start = self.start;
        // Lines before this one had no command, which would have been taken from them.
        let command = script.backslash.map(|at| self.text[at..].trim_end().to_string());
        let statements = script.statements.into_iter();
        let mut pieces: Vec<(Piece, usize)> =
            statements.map(|statement| (Piece::Statement(statement.sql), start + statement.line - 1)).collect();
        match script.rest {
            Some(rest) => {
                self.start = start + rest.line - 1;
                self.text = rest.sql + "\n";
            }
            None => self.text.clear(),
        }
        self.remember(&pieces);
        pieces.extend(command.map(|command| (Piece::Command(command), self.lines)));
        pieces
    }

    /// Keeps the last one of some statements.
    fn remember(&mut self, pieces: &[(Piece, usize)]) {
        if let Some((Piece::Statement(sql), _)) = pieces.last() {
            self.last = Some(sql.clone());
        }
    }

    /// True if the gathered text is only blanks and comments.
    pub(crate) fn is_between_statements(&self) -> bool {
        let script = Script::split(&self.text);
        script.rest.is_none() && script.open.is_none()
    }

    /// What the buffer waits for: the quote or bracket that is open, `*` in a comment, `-` for more of a statement.
    pub(crate) fn waits_for(&self) -> Option<char> {
        let script = Script::split(&self.text);
        script.open.or(script.bracket).or(script.rest.map(|_| '-'))
    }

    /// The lines of the statement that is not whole.
    pub(crate) fn unfinished(&self) -> &str {
        &self.text
    }

    /// The buffer, or where it is empty the last statement.
    pub(crate) fn buffer(&self) -> Option<&str> {
        match self.is_between_statements() {
            true => self.last.as_deref(),
            false => Some(self.text.trim()),
        }
    }

    /// Takes [`StatementReader::buffer`] as a statement.
    pub(crate) fn take(&mut self) -> Option<String> {
        self.last = self.buffer().map(String::from);
        self.text.clear();
        self.last.clone()
    }

    /// Empties the buffer.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
    }

    /// The rest at the end of the input.
    pub(crate) fn end(&mut self) -> Vec<(Piece, usize)> {
        let start = self.start;
        let text = std::mem::take(&mut self.text);
        let statements = Script::split(&text).into_statements(&text);
        statements.into_iter().map(|statement| (Piece::Statement(statement.sql), start + statement.line - 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(sql: &str) -> Piece {
        Piece::Statement(sql.into())
    }

    fn command(line: &str) -> Piece {
        Piece::Command(line.into())
    }

    #[test]
    fn statements_and_commands_with_their_lines() {
        let mut reader = StatementReader::default();
        let mut found = Vec::new();
        for line in ["-- hello", "\\timing on", "", "select 1;select '", ";", "\\q", "'; select 2"] {
            found.extend(reader.line(line));
        }
        found.extend(reader.end());
        let expected = [
            (command("\\timing on"), 2),
            (statement("select 1"), 4),
            (statement("select '\n;\n\\q\n'"), 4),
            (statement("select 2"), 7),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn commands_stand_on_lines_of_their_own_or_behind_a_backslash() {
        let mut reader = StatementReader::default();
        assert_eq!(reader.line("  \\d t "), [(command("\\d t"), 1)]);
        assert_eq!(reader.line(".tables"), [(command(".tables"), 2)]);
        assert_eq!(reader.line("select 1 -- ; \\g"), []);
        assert_eq!(reader.line(".5 as b"), []);
        assert_eq!(reader.line("; select 2 \\g"), [(statement("select 1\n.5 as b"), 3), (command("\\g"), 5)]);
        assert_eq!(reader.take(), Some("select 2".into()));
        assert_eq!(reader.end(), []);
    }

    #[test]
    fn the_buffer_is_shown_taken_and_emptied() {
        let mut reader = StatementReader::default();
        assert_eq!((reader.buffer(), reader.waits_for()), (None, None));
        reader.line("select (1,");
        assert_eq!((reader.buffer(), reader.waits_for()), (Some("select (1,"), Some('(')));
        assert_eq!(reader.line("  \\p"), [(command("\\p"), 2)]);
        reader.line("2) as a");
        assert_eq!((reader.buffer(), reader.waits_for()), (Some("select (1,\n2) as a"), Some('-')));
        assert_eq!(reader.take(), Some("select (1,\n2) as a".into()));
        assert_eq!((reader.buffer(), reader.waits_for()), (Some("select (1,\n2) as a"), None));
        reader.line("select 'a");
        assert_eq!(reader.waits_for(), Some('\''));
        reader.clear();
        assert_eq!(reader.take(), Some("select (1,\n2) as a".into()));
        assert_eq!(reader.line("select 3;"), [(statement("select 3"), 5)]);
        assert_eq!(reader.buffer(), Some("select 3"));
    }
}
