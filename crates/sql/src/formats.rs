//! Which format a file has, by the spelling of `STORED AS` or by its extension, and the options that go with it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Result, SqlError};

/// The extensions of files that are tables, for error messages.
pub(crate) const SUPPORTED: &str = "supported are .parquet, .csv, .tsv, .tbl, .psv, .json, .jsonl, .ndjson, .arrow, \
                                    .ipc and .feather, text files also with .gz, .bz2, .xz or .zst";

/// The spellings of `STORED AS` that are taken.
pub(crate) const FILE_TYPES: [&str; 11] =
    ["PARQUET", "CSV", "TSV", "TBL", "JSON", "NDJSON", "JSONL", "ARROW", "IPC", "FEATHER", "PSV"];

/// Formats of text files with one more separator at the end of each line.
pub(crate) const TRAILING_SEPARATOR: &str = "TBL";

/// A format: DataFusion's name for it, whether each line ends with one separator more, and options to start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileType {
    /// DataFusion's name: `PARQUET`, `CSV`, `JSON` or `ARROW`.
    pub(crate) name: &'static str,
    /// Whether lines end with a separator, as those of the TPC's generators do.
    pub(crate) trailing_separator: bool,
    /// Options, where the user gives none of the same name.
    pub(crate) options: Vec<(&'static str, String)>,
}

impl FileType {
    fn plain(name: &'static str) -> FileType {
        FileType { name, trailing_separator: false, options: Vec::new() }
    }

    fn text(separator: char, header: bool) -> FileType {
        let options = vec![("format.delimiter", separator.to_string()), ("format.has_header", header.to_string())];
        FileType { name: "CSV", trailing_separator: false, options }
    }

    /// The format by its name in `STORED AS`, or none.
    pub(crate) fn by_name(name: &str) -> Option<FileType> {
        Some(match name.to_uppercase().as_str() {
            "PARQUET" => FileType::plain("PARQUET"),
            "CSV" => FileType::plain("CSV"),
            "TSV" => FileType::text('\t', true),
            "PSV" => FileType::text('|', true),
            TRAILING_SEPARATOR => FileType { trailing_separator: true, ..FileType::text('|', false) },
            "JSON" | "NDJSON" | "JSONL" => FileType::plain("JSON"),
            "ARROW" | "IPC" | "FEATHER" => FileType::plain("ARROW"),
            _ => return None,
        })
    }

    /// The format by the extension of a path, with its compression.
    pub(crate) fn by_extension(path: &str) -> Option<(FileType, Option<&'static str>)> {
        let lower = path.to_lowercase();
        let (stem, compression) = split_compression(&lower);
        let extension = Path::new(stem).extension()?.to_str()?;
        let file_type = FileType::by_name(extension)?;
        // Only text files are compressed as a whole.
        let is_text = matches!(file_type.name, "CSV" | "JSON");
        (compression.is_none() || is_text).then_some((file_type, compression))
    }

    /// The user's options over those of the format.
    pub(crate) fn with_options(&self, user: &HashMap<String, String>) -> HashMap<String, String> {
        let mut options: HashMap<String, String> =
            self.options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        options.extend(user.iter().map(|(name, value)| (name.clone(), value.clone())));
        options
    }
}

/// The path without the extension of its compression, and DataFusion's name for that.
pub(crate) fn split_compression(path: &str) -> (&str, Option<&'static str>) {
    for (extension, name) in [(".gz", "gzip"), (".bz2", "bzip2"), (".xz", "xz"), (".zst", "zstd")] {
        if let Some(stem) = path.strip_suffix(extension) {
            return (stem, Some(name));
        }
    }
    (path, None)
}

/// The compression that the extension of a location tells.
pub(crate) fn compression_of(location: &str) -> Option<&'static str> {
    split_compression(&location.to_lowercase()).1
}

/// Whether a `.json` file holds one array instead of an object a line: its first character tells.
pub(crate) fn is_json_array(path: &Path) -> bool {
    let mut start = [0; 1024];
    let read = File::open(path).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    start[..read].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// The error for a file of no known format.
pub(crate) fn unknown_extension(path: &str) -> SqlError {
    let (stem, compression) = split_compression(path);
    let known = FileType::by_extension(stem).is_some();
    let reason = match (Path::new(path).extension(), compression) {
        (Some(_), Some(name)) if known => format!("only text files can be compressed as a whole ({name})"),
        (Some(extension), _) => format!("the extension '.{}' is not known; {SUPPORTED}", extension.to_string_lossy()),
        (None, _) => format!("it has no extension to tell its format; {SUPPORTED}; or use CREATE EXTERNAL TABLE"),
    };
    SqlError::FileFormat { path: path.to_string(), reason }
}

/// The format by the name of `STORED AS`, as an error where there is none.
pub(crate) fn stored_as(name: &str, path: &str) -> Result<FileType> {
    FileType::by_name(name).ok_or_else(|| SqlError::FileFormat {
        path: path.to_string(),
        reason: format!("STORED AS {name} is not known; it takes {}", FILE_TYPES.join(", ")),
    })
}

/// DataFusion's name of the format that `COPY` writes, with the options that go with it: by `STORED AS`, or by the
/// extension of the target. None where neither tells.
pub(crate) fn written_as(stored_as: Option<&str>, target: &str) -> Result<Option<(&'static str, WriteOptions)>> {
    let lower = target.to_lowercase();
    let file_type = match stored_as {
        Some(name) => self::stored_as(name, target)?,
        None => match FileType::by_extension(target) {
            Some((file_type, _)) => file_type,
            None if Path::new(target).extension().is_none() => return Ok(None),
            None => return Err(unknown_extension(target)),
        },
    };
    let mut options = file_type.options;
    if let ("CSV" | "JSON", Some(compression)) = (file_type.name, split_compression(&lower).1) {
        options.push(("format.compression", compression.into()));
    }
    Ok(Some((file_type.name, options)))
}

/// DataFusion's name of a format: by `STORED AS`, or by the extension of a path; none where neither tells.
pub(crate) fn format_of(stored_as: Option<&str>, path: &str) -> Result<Option<&'static str>> {
    match stored_as {
        Some(name) => self::stored_as(name, path).map(|file_type| Some(file_type.name)),
        None => Ok(FileType::by_extension(path).map(|(file_type, _)| file_type.name)),
    }
}

/// Names and values of options.
type WriteOptions = Vec<(&'static str, String)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_tell_formats() {
        let found = |path: &str| FileType::by_extension(path).map(|(kind, compression)| (kind.name, compression));
        assert_eq!(found("a/b.Parquet"), Some(("PARQUET", None)));
        assert_eq!(found("x.csv.gz"), Some(("CSV", Some("gzip"))));
        assert_eq!(found("x.jsonl.zst"), Some(("JSON", Some("zstd"))));
        assert_eq!(found("x.parquet.gz"), None);
        assert_eq!(found("x.txt"), None);
        assert_eq!(found("parquet"), None);
        assert!(FileType::by_extension("lineorder.tbl").unwrap().0.trailing_separator);
        assert!(!FileType::by_extension("lineorder.psv").unwrap().0.trailing_separator);
    }

    #[test]
    fn the_users_options_win() {
        let user = HashMap::from([("format.delimiter".to_string(), ";".to_string())]);
        let options = FileType::by_name("tbl").unwrap().with_options(&user);
        assert_eq!(options["format.delimiter"], ";");
        assert_eq!(options["format.has_header"], "false");
    }
}
