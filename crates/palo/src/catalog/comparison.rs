//! Comparison of a Palo file with one that is being written, comments aside.

use std::io::{self, BufRead, Bytes, Write};

/// The kind of the line that a byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Row,
    Heading,
    Comment,
}

/// Drops comments from a stream of bytes. A `#` or `[` that begins a line of a quoted text is text.
#[derive(Debug)]
struct Filter {
    line: Line,
    starts: bool,
    quoted: bool,
}

impl Filter {
    fn new() -> Filter {
        Filter { line: Line::Row, starts: true, quoted: false }
    }

    /// True if the next byte belongs to no comment.
    fn keeps(&mut self, byte: u8) -> bool {
        if self.starts && !self.quoted {
            self.line = match byte {
                b'#' => Line::Comment,
                b'[' => Line::Heading,
                _ => Line::Row,
            };
        }
        self.quoted ^= self.line == Line::Row && byte == b'"';
        self.starts = byte == b'\n';
        self.line != Line::Comment
    }
}

/// Takes what is written and compares it with a file; a write fails once they differ.
#[derive(Debug)]
pub(super) struct Comparison<R> {
    file: Bytes<R>,
    of_file: Filter,
    of_written: Filter,
    differs: bool,
}

impl<R: BufRead> Comparison<R> {
    pub(super) fn new(file: R) -> Comparison<R> {
        Comparison { file: file.bytes(), of_file: Filter::new(), of_written: Filter::new(), differs: false }
    }

    /// True if a write has failed because of a difference.
    pub(super) fn differs(&self) -> bool {
        self.differs
    }

    /// True if all of the file was written.
    pub(super) fn is_complete(&mut self) -> io::Result<bool> {
        Ok(!self.differs && self.next()?.is_none())
    }

    /// The next byte of the file that belongs to no comment.
    fn next(&mut self) -> io::Result<Option<u8>> {
        for byte in self.file.by_ref() {
            let byte = byte?;
            if self.of_file.keeps(byte) {
                return Ok(Some(byte));
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Write for Comparison<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if self.of_written.keeps(*byte) && self.next()? != Some(*byte) {
                self.differs = true;
                return Err(io::Error::other("the files differ"));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(file: &str, written: &str) -> bool {
        let mut comparison = Comparison::new(file.as_bytes());
        let outcome = comparison.write_all(written.as_bytes());
        assert_eq!(outcome.is_err(), comparison.differs());
        comparison.is_complete().unwrap()
    }

    #[test]
    fn comments_are_left_out_and_texts_are_not() {
        assert!(equal("# a\n[S]\n1;\"x\";\n", "[S]\n# \" b\n1;\"x\";\n#"));
        assert!(equal("1;\"x\n# no comment\n\";\n", "1;\"x\n# no comment\n\";\n# one\n"));
        assert!(!equal("1;\"x\n# no comment\n\";\n", "1;\"x\n\";\n"));
        assert!(!equal("1;\n2;\n", "1;\n"));
        assert!(!equal("1;\n", "1;\n2;\n"));
        assert!(!equal("1;\n", "1;\r\n"));
        assert!(equal("", "# end\n"));
    }
}
