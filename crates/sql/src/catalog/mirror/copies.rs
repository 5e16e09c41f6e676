//! Text files without their first lines, or without lines that cannot be read: `read_csv('a.csv', skip = 3)` and
//! `ignore_errors`.
//!
//! What reads text files takes all their lines. So a file gets a copy without some, among those of files elsewhere,
//! whose place has the file's own path. It is not compressed.
//!
//! A copy is of a file as it was when it was made: of another size or time of change there is another one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use datafusion::catalog::Session;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use super::super::csv_dialect::{DELIMITERS, Dialect, Given, Sample};
use super::{KEPT, Mirror};
use crate::csv_lines::{Characters, Lines};
use crate::error::{Result, SqlError};
use crate::formats::split_compression;
use crate::locations::{mirrored, shown};

/// Bytes of a file that its delimiter and its quote are told by.
const SAMPLED: u64 = 1 << 20;

/// Most bytes of a record: one that is longer has a quote that does not close, or is no record.
const RECORD_MAX: usize = 64 << 20;

/// The lines that a copy is without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::catalog) struct LeftOut {
    /// How many of the first ones.
    pub(in crate::catalog) first: usize,
    /// What is given of the dialect, where those that have another number of values than the first one, or are not in
    /// UTF-8, are left out.
    pub(in crate::catalog) unreadable: Option<Given>,
}

/// A copy, and what it is of.
#[derive(Debug)]
pub(super) struct Copy {
    file: PathBuf,
    size: u64,
    changed: Option<SystemTime>,
    left_out: LeftOut,
    compression: FileCompressionType,
    folder: PathBuf,
    place: PathBuf,
    used: Instant,
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Mirror {
    /// A file without some of its lines; `compression` is that of an option.
    ///
    /// # Errors
    /// [`SqlError::FileAccess`] for a file that cannot be read, or a copy that cannot be written.
    pub(in crate::catalog) async fn without_lines(
        &self,
        state: &dyn Session,
        file: &Path,
        left_out: LeftOut,
        compression: Option<&str>,
    ) -> Result<PathBuf> {
        let failed = |error: io::Error| SqlError::FileAccess(format!("a copy of {}: {error}", shown(file)));
        let found = file.metadata().map_err(failed)?;
        let (size, changed) = (found.len(), found.modified().ok());
        // The copy's place has the file's path from the root on.
        let path = match mirrored(file) {
            Some(elsewhere) => elsewhere.url.replacen("://", "/", 1),
            None => format!("file{}", std::path::absolute(file).map_err(failed)?.display()),
        };
        let (path, by_name) = split_compression(&path);
        let compression = compression.or(by_name).unwrap_or_default();
        let compression = compression.parse().unwrap_or(FileCompressionType::UNCOMPRESSED);
        let is_it = |copy: &&mut Copy| {
            let is_same = (copy.size, copy.changed, copy.compression) == (size, changed, compression);
            copy.file == file && is_same && copy.left_out == left_out
        };
        if let Some(known) = self.state.lock().copies.iter_mut().find(is_it) {
            known.used = Instant::now();
            return Ok(known.place.clone());
        }
        let (_, folder) = self.next_folder(state, false)?;
        let place = folder.join(path);
        let (from, to, without) = (file.to_path_buf(), place.clone(), left_out.clone());
        let copied = tokio::task::spawn_blocking(move || copy(&from, &to, &without, compression)).await;
        copied.map_err(io::Error::other).and_then(|copied| copied).map_err(failed)?;
        let mut own = self.state.lock();
        own.copies.retain(|copy| copy.used.elapsed() < KEPT);
        let (file, used) = (file.to_path_buf(), Instant::now());
        own.copies.push(Copy { file, size, changed, left_out, compression, folder, place: place.clone(), used });
        Ok(place)
    }
}

/// Copies a file without these lines.
fn copy(from: &Path, to: &Path, left_out: &LeftOut, compression: FileCompressionType) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    let mut lines = BufReader::new(compression.convert_read(File::open(from)?).map_err(io::Error::other)?);
    for _ in 0..left_out.first {
        if lines.skip_until(b'\n')? == 0 {
            break;
        }
    }
    let mut out = BufWriter::new(File::create_new(to)?);
    match &left_out.unreadable {
        None => _ = io::copy(&mut lines, &mut out)?,
        Some(given) => copy_readable(lines, given, &mut out)?,
    }
    out.flush()
}

/// Copies the lines that have as many values as the first one.
fn copy_readable(mut lines: impl BufRead, given: &Given, out: &mut impl Write) -> io::Result<()> {
    let mut head = Vec::new();
    lines.by_ref().take(SAMPLED).read_to_end(&mut head)?;
    lines.read_until(b'\n', &mut head)?;
    let given = &Given { delimiter: given.delimiter.or_else(|| delimiter_of(&head, given)), ..given.clone() };
    let sample = Sample { head, parts: Vec::new() };
    let Some(Dialect { delimiter, quote, .. }) = Dialect::of(&sample, given) else { return Ok(()) };
    let characters = Characters { delimiter, quote, escape: given.escape, comment: given.comment };
    let (mut counted, mut record, mut delimiters, mut wanted) = (Lines::new(characters), Vec::new(), 0_usize, None);
    let mut end = |record: &mut Vec<u8>, delimiters: &mut usize| -> io::Result<()> {
        let count = std::mem::take(delimiters);
        // What stands before the first record is blank.
        let is_wanted = record.iter().any(|byte| !byte.is_ascii_whitespace())
            && std::str::from_utf8(record).is_ok()
            && *wanted.get_or_insert(count) == count;
        if is_wanted {
            out.write_all(record)?;
        }
        record.clear();
        Ok(())
    };
    for byte in sample.head.as_slice().chain(lines).bytes() {
        let byte = byte?;
        if counted.next(byte) {
            end(&mut record, &mut delimiters)?;
        }
        // A comment is of no record.
        if counted.is_comment {
            continue;
        }
        delimiters += usize::from(byte == delimiter && counted.open.is_none());
        record.push(byte);
        if record.len() > RECORD_MAX {
            let reason = format!("a record of more than {RECORD_MAX} bytes before line {}", counted.line);
            return Err(io::Error::other(reason));
        }
    }
    match counted.open {
        Some(line) => Err(io::Error::other(format!("the quote that opens in line {line} does not close"))),
        None => end(&mut record, &mut delimiters),
    }
}

/// The delimiter that most records have as often as the first one; none where no other record has one so often.
fn delimiter_of(head: &[u8], given: &Given) -> Option<u8> {
    let alike = |delimiter: u8| {
        let quote = given.quote.unwrap_or(b'"');
        let mut lines = Lines::new(Characters { delimiter, quote, escape: given.escape, comment: given.comment });
        let mut counts: Vec<usize> = Vec::new();
        for byte in head {
            if lines.next(*byte) {
                counts.push(0);
            }
            if let (Some(last), true) = (counts.last_mut(), *byte == delimiter && lines.open.is_none()) {
                *last += 1;
            }
        }
        let first = counts.first().copied().unwrap_or(0);
        if first == 0 { 0 } else { counts.iter().filter(|count| **count == first).count() }
    };
    let best = DELIMITERS.into_iter().rev().max_by_key(|delimiter| alike(*delimiter))?;
    (alike(best) > 1).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of a text.
    fn copied(text: &[u8], left_out: &LeftOut) -> String {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["a.csv", "b/b.csv"].map(|name| folder.path().join(name));
        fs::write(&from, text).unwrap();
        copy(&from, &to, left_out, FileCompressionType::UNCOMPRESSED).unwrap();
        fs::read_to_string(&to).unwrap()
    }

    #[test]
    fn first_lines_are_left_out() {
        for (first, expected) in [(0, "one\r\ntwo\nthree\n"), (1, "two\nthree\n"), (3, ""), (9, "")] {
            let left_out = LeftOut { first, unreadable: None };
            assert_eq!(copied(b"one\r\ntwo\nthree\n", &left_out), expected, "{first}");
        }
    }

    #[test]
    fn comments_are_of_no_record_and_quotes_close() {
        let given = Given { comment: Some(b'#'), ..Given::default() };
        let left_out = LeftOut { first: 0, unreadable: Some(given) };
        for (text, expected) in
            [(&b"a,b\n1,2\n# x, y\n3,4\n"[..], "a,b\n1,2\n3,4\n"), (b"# made by, a tool\na,b\n1,2\n3\n", "a,b\n1,2\n")]
        {
            let copied = copied(text, &left_out);
            let lines: Vec<&str> = copied.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(lines, expected.lines().collect::<Vec<_>>());
        }
        let (mut out, open) = (Vec::new(), &b"a,b\n1,\"2\n3,4\n"[..]);
        assert!(copy_readable(open, &Given::default(), &mut out).unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn lines_of_another_length_are_left_out() {
        let left_out = LeftOut { first: 1, unreadable: Some(Given::default()) };
        for (text, expected) in [
            (&b"x\na,b\n1,2\n3\n4,5,6\n7,8\n"[..], "a,b\n1,2\n7,8\n"),
            (b"x\na,b\n1,\"2,\n3\"\n\n4,\xff\n7,8", "a,b\n1,\"2,\n3\"\n\n7,8"),
            (b"x\na;b\n1;2\n3;4\n", "a;b\n1;2\n3;4\n"),
            (b"x\na;b\n1;2,5\n3\n4;5\n", "a;b\n1;2,5\n4;5\n"),
            (b"x\n", ""),
        ] {
            assert_eq!(copied(text, &left_out), expected);
        }
    }
}
