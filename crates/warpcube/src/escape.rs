//! Control characters made visible: characters that a terminal would obey, in text that comes from files and
//! statements.
//!
//! A cell may hold the sequence that renames the window, clears the screen or types for the user, and characters that
//! turn the direction of writing make a line read as another one. They are shown as `\x1b` and `\u202e`, as strings of
//! SQL write them.

use std::borrow::Cow;
use std::io::{self, Write};

use warpcube_cube::view::escaped;

/// The most bytes of a character in UTF-8.
const CHARACTER_BYTES: usize = 4;

/// Text that belongs on one line.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, &[])
}

/// Text that may have several lines.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, &['\n'])
}

/// Text on its way to a terminal, with lines and tabs as they are.
pub(crate) struct Escaping<W> {
    inner: W,
    /// The first bytes of a character whose last ones are to come.
    begun: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub(crate) fn new(inner: W) -> Escaping<W> {
        Escaping { inner, begun: Vec::with_capacity(CHARACTER_BYTES) }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.begun);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text)?;
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    // These bytes are text, as the error says.
                    self.text(std::str::from_utf8(good).unwrap_or_default())?;
                    let Some(wrong) = error.error_len() else {
                        self.begun.extend_from_slice(bad);
                        break;
                    };
                    bad[..wrong].iter().try_for_each(|byte| write!(self.inner, "\\x{byte:02x}"))?;
                    rest = &bad[wrong..];
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Escaping<W> {
    fn text(&mut self, text: &str) -> io::Result<()> {
        self.inner.write_all(escaped(text, &['\n', '\t']).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(line("\u{1b}]0;gone\u{7}"), "\\x1b]0;gone\\x07");
        assert_eq!(line("a\nb\r\tc\u{9b}2J\u{7f}"), "a\\nb\\r\\tc\\u009b2J\\u007f");
        assert_eq!(lines("a\nb\u{202e}c\u{e0041}"), "a\nb\\u202ec\\U000e0041");
        let plain = "Łódź, 東京, 👩‍👧 and \\x1b";
        assert!(matches!(line(plain), Cow::Borrowed(text) if text == plain));
    }

    #[test]
    fn characters_may_come_in_pieces() {
        let text = "é\u{1b}[1m\t\u{9b}\u{202e}👩\n";
        for size in 1..=5 {
            let mut out = Vec::new();
            let mut escaping = Escaping::new(&mut out);
            for piece in text.as_bytes().chunks(size) {
                escaping.write_all(piece).unwrap();
            }
            escaping.write_all(b"\xff.").unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), "é\\x1b[1m\t\\u009b\\u202e👩\n\\xff.", "{size}");
        }
    }
}
