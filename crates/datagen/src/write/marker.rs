//! The marker file of a generated folder: which benchmark, generator version and size it holds, and every file with
//! its size. It is written before the first table without files, and again, complete, after the last; so a folder is
//! known to be ours from the start, and known to be whole only when it is.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{WriteReport, WrittenTable, replace};
use crate::{DatagenError, Size};

/// The marker's name in the folder.
pub(super) const FILE: &str = "warpcube-datagen.txt";

/// Counts up when the same size would give other rows, columns or types.
const VERSION: u32 = 1;

/// Which data a folder holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    pub(super) benchmark: String,
    pub(super) version: u32,
    pub(super) size: Size,
}

impl Identity {
    pub(super) fn new(benchmark: &str, size: Size) -> Self {
        Self { benchmark: benchmark.to_owned(), version: VERSION, size }
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} (generator version {})", self.benchmark, self.size, self.version)
    }
}

/// The content of a marker.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Marker {
    pub(super) identity: Identity,
    pub(super) tables: Vec<Table>,
    /// False while tables are still being written.
    pub(super) complete: bool,
}

/// A table in a marker.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) rows: u64,
    /// Names relative to the folder, with sizes in bytes.
    pub(super) files: Vec<(String, u64)>,
}

impl Marker {
    /// Reads a folder's marker; `None` if it has none, or one that cannot be understood.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, DatagenError> {
        let path = dir.join(FILE);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DatagenError::io("read", &path, error)),
        }
    }

    /// Writes the marker in one step.
    pub(super) fn write(&self, dir: &Path) -> Result<(), DatagenError> {
        replace(&dir.join(FILE), |temporary| {
            fs::write(temporary, self.text()).map_err(|error| DatagenError::io("write", temporary, error))
        })
    }

    fn text(&self) -> String {
        let Identity { benchmark, version, size } = &self.identity;
        let size = match size {
            Size::Scale(scale) => format!("scale {scale}"),
            Size::Rows(rows) => format!("rows {rows}"),
        };
        let mut text = format!("warpcube-datagen {version}\nbenchmark {benchmark}\n{size}\n");
        for table in &self.tables {
            // Writing to a String does not fail.
            _ = writeln!(text, "table {} {}", table.name, table.rows);
            for (name, bytes) in &table.files {
                _ = writeln!(text, "file {name} {bytes}");
            }
        }
        text + if self.complete { "complete\n" } else { "incomplete\n" }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ').map(str::to_owned);
        let version = value("warpcube-datagen")?.parse().ok()?;
        let benchmark = value("benchmark")?;
        let size = match lines.next()?.split_once(' ')? {
            ("scale", scale) => Size::Scale(scale.parse().ok()?),
            ("rows", rows) => Size::Rows(rows.parse().ok()?),
            _ => return None,
        };
        let identity = Identity { version, benchmark, size };
        let (mut tables, mut complete): (Vec<Table>, _) = (Vec::new(), false);
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["table", name, rows] => {
                    tables.push(Table { name: name.to_owned(), rows: rows.parse().ok()?, files: Vec::new() });
                }
                ["file", name, bytes] => tables.last_mut()?.files.push((name.to_owned(), bytes.parse().ok()?)),
                ["complete"] => complete = true,
                ["incomplete"] => complete = false,
                _ => return None,
            }
        }
        Some(Self { identity, tables, complete })
    }

    /// Whether every file is there, in its size.
    pub(super) fn is_whole(&self, dir: &Path) -> bool {
        let there = |(name, bytes): &(String, u64)| {
            fs::metadata(dir.join(name)).is_ok_and(|file| file.is_file() && file.len() == *bytes)
        };
        self.complete && self.tables.iter().all(|table| table.files.iter().all(there))
    }

    /// The report of the folder that this marker describes.
    pub(super) fn report(&self, dir: &Path, reused: bool) -> WriteReport {
        let tables = self.tables.iter().map(|table| WrittenTable {
            name: table.name.clone(),
            path: table_path(dir, &table.name, table.files.len()),
            files: table.files.len(),
            rows: table.rows,
            bytes: table.files.iter().map(|file| file.1).sum(),
        });
        WriteReport { dir: dir.to_path_buf(), reused, tables: tables.collect() }
    }
}

/// Where a table stands: a file of its own, or a folder of several.
pub(super) fn table_path(dir: &Path, table: &str, files: usize) -> PathBuf {
    if files == 1 { dir.join(format!("{table}.parquet")) } else { dir.join(table) }
}

/// The names of a table's files relative to the folder.
pub(super) fn file_name(table: &str, part: usize, parts: usize) -> String {
    if parts == 1 { format!("{table}.parquet") } else { format!("{table}/part-{part:05}.parquet") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_reads_as_it_was_written() {
        let files = vec![("part/part-00000.parquet".to_owned(), 10), ("part/part-00001.parquet".to_owned(), 20)];
        let tables = vec![
            Table { name: "part".to_owned(), rows: 7, files },
            Table { name: "date".to_owned(), rows: 2557, files: Vec::new() },
        ];
        for (size, complete) in [(Size::Scale(0.01), true), (Size::Scale(20.0), false), (Size::Rows(7), true)] {
            let marker = Marker { identity: Identity::new("ssb", size), tables: tables.clone(), complete };
            assert_eq!(Marker::parse(&marker.text()), Some(marker));
        }
        for text in ["", "warpcube-datagen x\n", "warpcube-datagen 1\nbenchmark ssb\nscale 1\nfile a 1\n"] {
            assert_eq!(Marker::parse(text), None, "{text:?}");
        }
    }
}
