//! Lines of a Palo file: comments, section headings and rows of fields.

use std::io::{BufRead, Read};

use memchr::{memchr, memchr_iter};
use warpcube_cube::store::{Field, LineEnd};

use super::error::{PaloError, Result};

/// Bytes of a row at most: an unclosed quote is an error before the file fills the memory.
const ROW_BYTES_MAX: u64 = 1 << 30;
/// UTF-8 byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Kind of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordKind {
    /// A comment; its one field is the text after `#`, blanks trimmed.
    Comment,
    /// A section heading; its one field is the title.
    Section,
    /// Fields.
    #[default]
    Row,
}

/// A record: fields of one text buffer, so that a reader reuses its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Kind of the record.
    pub kind: RecordKind,
    /// Line on which it starts, from 1.
    pub line: u64,
    text: String,
    /// End of each field in `text`, and whether it was quoted.
    ends: Vec<(usize, bool)>,
}

impl Row {
    /// Number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if the row has no field.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Text of a field, from 0; `None` past the last.
    pub fn text(&self, field: usize) -> Option<&str> {
        let (end, _) = *self.ends.get(field)?;
        let start = if field == 0 { 0 } else { self.ends[field - 1].0 };
        Some(&self.text[start..end])
    }

    /// The fields from `first` on, apart from the row.
    pub fn tail(&self, first: usize) -> Vec<Field> {
        let field = |at| Field { text: self.text(at).unwrap_or_default().to_owned(), quoted: self.ends[at].1 };
        (first..self.len()).map(field).collect()
    }

    /// The error of a field, from 0.
    pub(super) fn error(&self, field: usize, name: &'static str, problem: impl Into<String>) -> PaloError {
        PaloError::Field { line: self.line, field: field + 1, name, problem: problem.into() }
    }

    /// Text of a field that has to be there.
    pub(super) fn required(&self, field: usize, name: &'static str) -> Result<&str> {
        self.text(field).ok_or_else(|| self.error(field, name, format!("missing: the row has {} fields", self.len())))
    }

    /// A field that is a whole number from 0.
    pub(super) fn number(&self, field: usize, name: &'static str) -> Result<u32> {
        let text = self.required(field, name)?;
        text.parse()
            .map_err(|_| self.error(field, name, format!("'{text}' is not a whole number from 0 to {}", u32::MAX)))
    }

    /// A field that is a finite number.
    pub(super) fn double(&self, field: usize, name: &'static str) -> Result<f64> {
        self.finite(self.required(field, name)?, field, name)
    }

    fn finite(&self, text: &str, field: usize, name: &'static str) -> Result<f64> {
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.error(field, name, format!("'{text}' is not a finite number")))
    }

    /// Appends the items of a field that is a list of whole numbers.
    pub(super) fn numbers(&self, field: usize, name: &'static str, items: &mut Vec<u32>) -> Result<()> {
        for item in list(self.required(field, name)?) {
            let problem = || format!("'{item}' is not a whole number from 0 to {}", u32::MAX);
            items.push(item.parse().map_err(|_| self.error(field, name, problem()))?);
        }
        Ok(())
    }

    /// The items of a field that is a list of finite numbers.
    pub(super) fn doubles(&self, field: usize, name: &'static str) -> Result<Vec<f64>> {
        list(self.required(field, name)?).map(|item| self.finite(item, field, name)).collect()
    }

    fn clear(&mut self, kind: RecordKind, line: u64) {
        (self.kind, self.line) = (kind, line);
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, text: &str, quoted: bool) {
        self.text.push_str(text);
        self.ends.push((self.text.len(), quoted));
    }

    /// Splits a line into fields; every `;` outside quotes ends one.
    fn split(&mut self, line: &str) -> Result<()> {
        let mut rest = line;
        while !rest.is_empty() {
            rest = match rest.strip_prefix('"') {
                Some(quoted) => self.quoted(quoted)?,
                None => {
                    let end = memchr(b';', rest.as_bytes()).unwrap_or(rest.len());
                    if memchr(b'"', &rest.as_bytes()[..end]).is_some() {
                        let problem = "a quote stands within an unquoted field".to_owned();
                        return Err(PaloError::Field { line: self.line, field: self.len() + 1, name: "text", problem });
                    }
                    self.push(&rest[..end], false);
                    &rest[end..]
                }
            };
            rest = rest.strip_prefix(';').unwrap_or(rest);
        }
        Ok(())
    }

    /// Takes a field up to its closing quote; returns what follows.
    fn quoted<'a>(&mut self, text: &'a str) -> Result<&'a str> {
        let mut rest = text;
        loop {
            let Some(end) = memchr(b'"', rest.as_bytes()) else {
                return Err(self.error(self.len(), "text", "the quote is not closed"));
            };
            self.text.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.as_bytes().first() {
                Some(b'"') => self.text.push('"'),
                None | Some(b';') => {
                    self.push("", true);
                    return Ok(rest);
                }
                Some(_) => return Err(self.error(self.len(), "text", "text follows the closing quote")),
            }
            rest = &rest[1..];
        }
    }
}

/// Items of a list; the empty text has none.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(move |_| !text.is_empty())
}

/// Reads the records of a Palo file one by one.
#[derive(Debug)]
pub struct RecordReader<R> {
    input: R,
    line: u64,
    buffer: Vec<u8>,
    line_end: LineEnd,
    failed: bool,
}

impl<R: BufRead> RecordReader<R> {
    /// A reader from the start of a file.
    pub fn new(input: R) -> Self {
        Self { input, line: 0, buffer: Vec::new(), line_end: LineEnd::Lf, failed: false }
    }

    /// How the first line ends, once it is read.
    pub fn line_end(&self) -> LineEnd {
        self.line_end
    }

    /// Lines read so far.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next record into `row`; returns false at the end of the file. Empty lines are skipped.
    ///
    /// # Errors
    /// [`PaloError::Read`]; [`PaloError::Line`] for a heading without `]`, for text that is not UTF-8 and for rows
    /// above 1 GiB; [`PaloError::Field`] for misplaced quotes.
    pub fn read(&mut self, row: &mut Row) -> Result<bool> {
        loop {
            self.buffer.clear();
            if !self.read_line()? {
                return Ok(false);
            }
            if self.line == 1 {
                self.start();
            }
            let line = self.line;
            if !matches!(self.buffer.first(), Some(b'#' | b'[')) {
                self.close_quotes(line)?;
            }
            let text = std::str::from_utf8(&self.buffer)
                .map_err(|_| PaloError::Line { line, problem: "the text is not UTF-8".to_owned() })?;
            let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
            if let Some(comment) = text.strip_prefix('#') {
                row.clear(RecordKind::Comment, line);
                row.push(comment.trim(), false);
            } else if let Some(heading) = text.strip_prefix('[') {
                row.clear(RecordKind::Section, line);
                let Some(title) = heading.trim_end().strip_suffix(']') else {
                    return Err(PaloError::Line { line, problem: "a section heading ends with ']'".to_owned() });
                };
                row.push(title, false);
            } else if !text.trim().is_empty() {
                row.clear(RecordKind::Row, line);
                row.split(text)?;
            } else {
                continue;
            }
            return Ok(true);
        }
    }

    /// Appends a line to the buffer; returns false at the end of the file.
    fn read_line(&mut self) -> Result<bool> {
        let room = ROW_BYTES_MAX.saturating_sub(self.buffer.len() as u64);
        let read = self.input.by_ref().take(room).read_until(b'\n', &mut self.buffer);
        let count = read.map_err(|source| PaloError::Read { line: self.line, source })?;
        if count as u64 == room {
            let problem = "the row is longer than 1 GiB; a quote may not be closed".to_owned();
            return Err(PaloError::Line { line: self.line + 1, problem });
        }
        self.line += u64::from(count > 0);
        Ok(count > 0)
    }

    /// Drops the byte order mark and notes how lines end.
    fn start(&mut self) {
        if self.buffer.starts_with(MARK) {
            self.buffer.drain(..MARK.len());
        }
        if self.buffer.ends_with(b"\r\n") {
            self.line_end = LineEnd::CrLf;
        }
    }

    /// Appends lines until the buffer holds an even number of quotes.
    fn close_quotes(&mut self, line: u64) -> Result<()> {
        let mut counted = 0;
        let mut quotes = 0;
        loop {
            quotes += memchr_iter(b'"', &self.buffer[counted..]).count();
            counted = self.buffer.len();
            if quotes % 2 == 0 {
                return Ok(());
            }
            if !self.read_line()? {
                return Err(PaloError::Line { line, problem: "a quote is opened and never closed".to_owned() });
            }
        }
    }
}

impl<R: BufRead> Iterator for RecordReader<R> {
    type Item = Result<Row>;

    /// The next record in memory of its own; nothing follows an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let mut row = Row::default();
        match self.read(&mut row) {
            Ok(more) => more.then_some(Ok(row)),
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}
