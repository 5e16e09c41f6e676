//! The line of a statement's text that an error is about, and a caret under the place.
//!
//! What URLs of the line have for names, passwords and signatures is not shown, since logs keep errors.

use unicode_width::UnicodeWidthStr;
use warpcube_sql::{Position, hide_urls};

use crate::escape;

/// Characters that are shown of a line before the place, and from it on.
const AROUND: usize = 60;
/// What stands for characters that are left out.
const LEFT_OUT: &str = "…";

/// The part of a line around a place.
#[derive(Debug)]
pub(crate) struct Excerpt {
    /// The number of the line.
    pub(crate) line: usize,
    before: String,
    after: String,
}

impl Excerpt {
    /// That of a position in a statement's text.
    pub(crate) fn new(sql: &str, position: Position) -> Excerpt {
        let mut line: Vec<char> =
            sql.split('\n').nth(position.line - 1).unwrap_or_default().trim_end().chars().collect();
        hide_urls(&mut line);
        let at = (position.column - 1).min(line.len());
        let (start, end) = (at.saturating_sub(AROUND), (at + AROUND).min(line.len()));
        let front = if start > 0 { LEFT_OUT } else { "" };
        let rest = if end < line.len() { LEFT_OUT } else { "" };
        let before = format!("{front}{}", shown(&line[start..at]));
        Excerpt { line: position.line, before, after: format!("{}{rest}", shown(&line[at..end])) }
    }

    /// The line with its number, and the line with the caret.
    pub(crate) fn lines(&self) -> [String; 2] {
        let front = format!("LINE {}: {}", self.line, self.before);
        [format!("{front}{}", self.after), format!("{:1$}^", "", front.width())]
    }
}

/// Characters as a terminal shows them: a tab is a blank.
fn shown(characters: &[char]) -> String {
    let text: String = characters.iter().map(|c| if *c == '\t' { ' ' } else { *c }).collect();
    escape::line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(sql: &str, line: usize, column: usize) -> [String; 2] {
        Excerpt::new(sql, Position { line, column }).lines()
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        assert_eq!(lines("SELECT\n\tfoo", 2, 2), ["LINE 2:  foo", "         ^"]);
        assert_eq!(lines("SELECT 1 +", 1, 11), ["LINE 1: SELECT 1 +", "                  ^"]);
        assert_eq!(lines("SELECT '中é' x", 1, 13), ["LINE 1: SELECT '中é' x", "                     ^"]);
        assert_eq!(lines("SELECT '\u{1b}' x", 1, 12)[1].len(), "LINE 1: SELECT '\\x1b' x".len());
    }

    #[test]
    fn secrets_of_urls_are_hidden() {
        let [line, _] = lines("SELEC * FROM 'https://me:word@host/a?X=1', 's3://b/?.csv'", 1, 1);
        assert_eq!(line, "LINE 1: SELEC * FROM 'https://*******@host/a?***', 's3://b/?.csv'");
        assert_eq!(lines("SELECT 'x://' || ?", 1, 1)[0], "LINE 1: SELECT 'x://' || ?");
    }

    #[test]
    fn long_lines_are_shown_around_the_place() {
        let sql = format!("SELECT {}, foo, {}", "a".repeat(200), "b".repeat(200));
        let [line, caret] = lines(&sql, 1, 210);
        let at = caret.chars().position(|c| c == '^').unwrap();
        assert_eq!(line.chars().skip(at).take(3).collect::<String>(), "foo");
        assert!(line.starts_with("LINE 1: …aaa") && line.ends_with("bbb…") && line.chars().count() < 140, "{line}");
    }
}
