//! How the CSV files of a table are written, and the types of their columns, told by a sample spread over each file.
//!
//! The defects: DataFusion 55.2 takes a comma and a header for granted, so that a file without a header loses its first
//! row and one with another delimiter has one column; it takes types from the first 1,000 records, and codes with
//! leading zeros for numbers. Here each file of this machine is looked at before a table is made of it ([`Dialect`]):
//! files of up to [`WHOLE`] bytes in whole, of others the front and pieces all over. What the user says is not looked
//! for. Files of a table that are not written alike are an error.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::Session;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::logical_expr::CreateExternalTable;
use futures::StreamExt;

use super::csv_dialect::{Dialect, Given, Kinds, Sample};
use super::memory::FileMemory;
use super::readers::NULL_TEXTS;
use crate::csv_lines::compression;
use crate::diagnose::IN_DEFINITION;
use crate::error::{Result, SqlError};
use crate::locations::shown;

/// Whether a connection's settings say that CSV files have a header, or have none: an extension of its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderSaid(pub(crate) bool);

/// Files looked at at once.
const AT_ONCE: usize = 8;
/// Bytes of files that are looked at in whole; of others so many at the front, and so many at so many places.
pub(super) const WHOLE: u64 = 8 << 20;
const FRONT: usize = 1 << 20;
const PART: usize = 128 << 10;
const PARTS: u64 = 32;

/// The dialects of a table's files; none of one that cannot be told.
pub(super) type Dialects = Vec<(PathBuf, Option<Arc<Dialect>>)>;

/// Looks at the files of a table, and puts what the user has not said into the options.
///
/// # Errors
/// [`SqlError::FileFormat`] for files that are not written alike.
pub(super) async fn look(
    state: &dyn Session,
    command: &mut CreateExternalTable,
    user: &HashMap<String, String>,
    files: &[PathBuf],
) -> Result<Dialects> {
    // A terminator of the user's is the reader's to find.
    if command.options.contains_key("format.terminator") {
        return Ok(Vec::new());
    }
    let given = given(&command.options);
    let found = dialects(state, &given, compression(command), files).await;
    let told = || found.iter().filter_map(|(path, dialect)| Some((path, dialect.as_deref()?)));
    let mut wide = told().filter(|(_, dialect)| dialect.kinds.len() > 1);
    let first = wide.next().or_else(|| told().next());
    if let Some((one, first)) = first {
        let is_other = |dialect: &Dialect| (dialect.delimiter, dialect.quote) != (first.delimiter, first.quote);
        if let Some((other, dialect)) = wide.find(|(_, dialect)| is_other(dialect)) {
            let written = |dialect: &Dialect| {
                format!("delimiter {:?} and quote {}", char::from(dialect.delimiter), char::from(dialect.quote))
            };
            let reason = format!(
                "it is written with {}, and '{}' with {}; name them: OPTIONS (format.delimiter '…', \
                 format.quote '…'), {IN_DEFINITION} delimiter and quote",
                written(dialect),
                shown(one),
                written(first)
            );
            return Err(SqlError::FileFormat { path: shown(other), reason });
        }
        let character = |byte: u8| char::from(byte).to_string();
        // Lines of one declared column may hold any character.
        let keys = &command.table_partition_cols;
        let declared = command.schema.fields().iter().filter(|field| !keys.contains(field.name())).count();
        let fits = declared == 0 || declared == first.kinds.len();
        if given.delimiter.is_none() && first.delimiter != b',' && fits {
            command.options.insert("format.delimiter".into(), character(first.delimiter));
        }
        if given.quote.is_none() && first.quote != b'"' {
            command.options.insert("format.quote".into(), character(first.quote));
        }
    }
    let is_said = user.contains_key("format.has_header")
        || command.options.get("format.has_header").is_some_and(|value| value == "false")
        || !state.config_options().catalog.has_header
        || state.config().get_extension::<HeaderSaid>().is_some_and(|said| said.0);
    let mut headers = told().filter_map(|(path, dialect)| Some((path, dialect.header?)));
    if let (false, Some((one, header))) = (is_said, headers.next()) {
        if let Some((other, _)) = headers.find(|(_, found)| *found != header) {
            let (with, without) = if header { (one, other) } else { (other, one) };
            let reason = format!(
                "it has no header, and '{}' has one; say whether files have one: OPTIONS (format.has_header '…'), \
                 {IN_DEFINITION} header",
                shown(with)
            );
            return Err(SqlError::FileFormat { path: shown(without), reason });
        }
        command.options.insert("format.has_header".into(), header.to_string());
    }
    Ok(found)
}

/// The columns of a table; none where they are declared, or left to DataFusion.
///
/// # Errors
/// [`SqlError::FileFormat`] for files whose headers differ, as files are read by position.
pub(super) fn infer(state: &dyn Session, command: &CreateExternalTable, dialects: &Dialects) -> Result<Option<Schema>> {
    let option = |name: &str| command.options.get(&format!("format.{name}")).map(String::as_str);
    let is_left = ["schema_infer_max_rec", "null_regex", "truncated_rows"].iter().any(|name| option(name).is_some());
    if is_left || !command.schema.fields().is_empty() {
        return Ok(None);
    }
    let has_header = option("has_header").map_or(state.config_options().catalog.has_header, |value| value == "true");
    let has_breaks =
        option("newlines_in_values").map_or(state.config_options().catalog.newlines_in_values, |value| value == "true");
    let all: Option<Vec<&Dialect>> = dialects.iter().map(|(_, dialect)| dialect.as_deref()).collect();
    let Some((all, first)) = all.and_then(|all| Some((all.clone(), *all.first()?))) else { return Ok(None) };
    let names: Vec<String> = match has_header {
        true => distinct(&first.first),
        false => (1..=first.kinds.len()).map(|column| format!("column_{column}")).collect(),
    };
    let width = |dialect: &Dialect| dialect.kinds.len();
    let other = dialects.iter().zip(&all).find(|(_, other)| width(other) != width(first));
    if let Some(((path, _), dialect)) = other.filter(|(_, other)| width(first) > 0 && width(other) > 0) {
        let reason = format!(
            "it has {} columns, and '{}' has {}; have all files alike, or declare the columns",
            width(dialect),
            shown(&dialects[0].0),
            width(first)
        );
        return Err(SqlError::FileFormat { path: shown(path), reason });
    }
    // Names that are not there, and lines of several lengths, are the reader's to refuse or to take.
    let is_wide = |dialect: &Dialect| dialect.kinds.len() == names.len() && dialect.first.len() == names.len();
    if names.contains(&String::new()) || !all.iter().all(|dialect| is_wide(dialect)) {
        return Ok(None);
    }
    let other_name = |dialect: &&Dialect| dialect.first.iter().zip(&first.first).position(|(own, name)| own != name);
    let unlike =
        dialects.iter().zip(&all).filter(|_| has_header).find_map(|(file, it)| Some((file, it, other_name(it)?)));
    if let Some(((path, _), dialect, column)) = unlike {
        let reason = format!(
            "its column {} is '{}', and that of '{}' is '{}'; CSV files are read by position: have all files alike, or \
             declare the columns",
            column + 1,
            dialect.first[column],
            shown(&dialects[0].0),
            names[column]
        );
        return Err(SqlError::FileFormat { path: shown(path), reason });
    }
    let kinds = |column: usize| {
        let first = |dialect: &Dialect| if has_header { Kinds::default() } else { dialect.first_kinds[column] };
        let begin = all.iter().fold(Kinds::default(), |kinds, it| kinds.and(it.kinds[column]).and(first(it)));
        all.iter().fold(begin, |kinds, it| {
            // A piece may begin within a value that has line breaks.
            kinds.going_on_as(if has_breaks { it.front[column] } else { it.spread[column] })
        })
    };
    let field = |(column, name): (usize, &String)| Field::new(name, kinds(column).data_type(), true);
    Ok(Some(Schema::new(names.iter().enumerate().map(field).collect::<Vec<_>>())))
}

/// Names of columns, of which a later one that a column has already gets a number, as in DuckDB.
pub(super) fn distinct(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut named = Vec::with_capacity(names.len());
    for name in names {
        let mut own = name.clone();
        for number in 1.. {
            if !taken.contains(&own) && (own == *name || !names.contains(&own)) {
                break;
            }
            own = format!("{name}_{number}");
        }
        taken.insert(own.clone());
        named.push(own);
    }
    named
}

/// Refuses files with texts of a zone for columns that are declared without one: their reader would move them to UTC.
///
/// # Errors
/// [`SqlError::FileFormat`], with the column.
pub(super) fn check_zones(command: &CreateExternalTable, dialects: &Dialects) -> Result<()> {
    let is_bare = |field: &Field| matches!(field.data_type(), DataType::Timestamp(_, None) | DataType::Date32);
    let fields = command.schema.fields().iter();
    let of_file = fields.filter(|field| !command.table_partition_cols.contains(field.name())).enumerate();
    for (column, field) in of_file.filter(|(_, field)| is_bare(field)) {
        let is_shifted = |dialect: &Dialect| dialect.kinds.get(column).is_some_and(|kinds| kinds.is_shifted());
        let shifted = dialects.iter().find(|(_, dialect)| dialect.as_deref().is_some_and(is_shifted));
        if let Some((path, _)) = shifted {
            let name = field.name();
            let reason = format!(
                "column '{name}' has times with an offset, and is declared without a time zone; declare it TIMESTAMP \
                 WITH TIME ZONE, or VARCHAR and write CAST({name} AS TIMESTAMP), which leaves offsets out"
            );
            return Err(SqlError::FileFormat { path: shown(path), reason });
        }
    }
    Ok(())
}

/// What options say of a dialect.
pub(super) fn given(options: &HashMap<String, String>) -> Given {
    let character = |name: &str| options.get(&format!("format.{name}"))?.bytes().next();
    Given {
        delimiter: character("delimiter"),
        quote: character("quote"),
        escape: character("escape"),
        comment: character("comment"),
        truncated: options.get("format.truncated_rows").is_some_and(|value| value == "true"),
        nulls: options.get(NULL_TEXTS).map(|texts| texts.as_str().into()),
    }
}

/// The dialects of files.
async fn dialects(state: &dyn Session, given: &Given, compression: FileCompressionType, files: &[PathBuf]) -> Dialects {
    let memory = state.config().get_extension::<FileMemory>();
    let looks = files.iter().cloned().map(|path| {
        let (memory, given) = (memory.clone(), given.clone());
        async move {
            let known = given.clone();
            let look = |path: PathBuf| async move {
                let told = move || Dialect::of(&sample(&path, compression)?, &known).map(Arc::new);
                tokio::task::spawn_blocking(told).await.ok().flatten()
            };
            let found = match memory {
                Some(memory) => memory.dialects.find(&path, (given, compression), look).await,
                None => look(path.clone()).await,
            };
            (path, found)
        }
    });
    futures::stream::iter(looks).buffered(AT_ONCE).collect().await
}

/// The front of a file and lines from all over it; none where it cannot be read.
fn sample(path: &Path, compression: FileCompressionType) -> Option<Sample> {
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    if compression.is_compressed() {
        let mut head = Vec::new();
        let reader = compression.convert_read(file).ok()?;
        // Only the front of a compressed file is looked at: the rest would have to be decompressed. A truncated file is
        // for its reader to refuse; the part that is there is a sample all the same.
        let read = reader.take(WHOLE).read_to_end(&mut head);
        if read.is_err() || head.len() as u64 >= WHOLE {
            whole_lines(&mut head, false);
        }
        return Some(Sample { head, parts: Vec::new() });
    }
    let mut head = Vec::new();
    if size <= WHOLE {
        file.read_to_end(&mut head).ok()?;
        return Some(Sample { head, parts: Vec::new() });
    }
    let mut piece = |from: u64, bytes: usize| -> Option<Vec<u8>> {
        let mut piece = Vec::with_capacity(bytes);
        file.seek(SeekFrom::Start(from)).ok()?;
        file.by_ref().take(bytes as u64).read_to_end(&mut piece).ok()?;
        Some(piece)
    };
    let mut head = piece(0, FRONT)?;
    whole_lines(&mut head, false);
    let (first, last) = (FRONT as u64, size - PART as u64);
    let parts = (0..PARTS).map(|part| {
        let mut text = piece(first + (last - first) * part / (PARTS - 1), PART)?;
        whole_lines(&mut text, true);
        Some(text)
    });
    Some(Sample { parts: parts.collect::<Option<_>>()?, head })
}

/// Cuts off the line that a piece of a file ends within, and the one that it begins within.
fn whole_lines(text: &mut Vec<u8>, begins_within: bool) {
    text.truncate(memchr::memrchr(b'\n', text).map_or(0, |end| end + 1));
    if begins_within {
        let begin = memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1);
        text.drain(..begin);
    }
}
