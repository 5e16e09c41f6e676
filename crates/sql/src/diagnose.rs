//! Which file, line and column an error of a reader comes from.
//!
//! Readers run on slices of many files at once and say neither the file nor the true line. When one of them fails, the
//! files of the statement are read once more here, one after the other from their starts, until one gives an error;
//! that one is named. Only errors of readers ask for it, and only columns that the statement reads are read; a search
//! ends when the statement is cancelled or out of time, and after [`LONGEST`], and gives the first error back where
//! nothing is found.

mod csv;
mod json;
mod pages;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig, JsonSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;

use crate::csv_lines::compression;
use crate::error::{A_CSV_FILE, A_JSON_FILE, A_PARQUET_FILE, AN_ARROW_FILE, SqlError, one_line, panic_text};
use crate::locations::{mirrored, shown};
use crate::text_formats::plain_source;
use csv::Csv;

/// What errors of files say to definitions of cubes.
pub(crate) const IN_DEFINITION: &str = "or, in a cube's definition, write";
/// Longest time that files are searched for an error.
const LONGEST: Duration = Duration::from_secs(10);

/// A file that an error may come from, and how it is read.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    path: PathBuf,
    format: Format,
    /// Names of the columns that are read; none means all.
    columns: Option<BTreeSet<String>>,
}

#[derive(Debug, Clone)]
enum Format {
    Parquet,
    Csv(Csv),
    Json(Option<SchemaRef>, FileCompressionType),
    Arrow,
}

/// How much of a file is looked at for an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Whether it can be opened.
    Open,
    /// All that is read of it.
    Read,
}

/// A search through files, which ends when its future is dropped and when it takes too long.
#[derive(Debug, Clone)]
struct Search {
    stop: Arc<AtomicBool>,
    until: Instant,
}

impl Search {
    fn of(longest: Duration) -> Search {
        Search { stop: Arc::default(), until: Instant::now() + longest }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Ends a search when dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Suspect {
    /// A file whose columns were to be inferred for `command`.
    pub(crate) fn to_infer(path: &Path, command: &CreateExternalTable) -> Suspect {
        let option = |name: &str| command.options.get(&format!("format.{name}")).cloned();
        let character = |name: &str| option(name).and_then(|text| text.bytes().next());
        let format = match command.file_type.as_str() {
            "PARQUET" => Format::Parquet,
            "ARROW" => Format::Arrow,
            "JSON" => Format::Json(None, compression(command)),
            _ => Format::Csv(Csv {
                schema: None,
                header: option("has_header").is_none_or(|value| value != "false"),
                delimiter: character("delimiter").unwrap_or(b','),
                quote: character("quote").unwrap_or(b'"'),
                escape: character("escape"),
                comment: character("comment"),
                truncated: option("truncated_rows").is_some_and(|value| value == "true"),
                compression: compression(command),
            }),
        };
        // Columns of Parquet files are inferred from their footers.
        let columns = matches!(format, Format::Parquet).then(BTreeSet::new);
        Suspect { path: path.to_path_buf(), format, columns }
    }

    /// The files of this machine that a plan reads.
    pub(crate) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Vec<Suspect> {
        let mut suspects = Vec::new();
        collect(plan, &mut suspects);
        // A file may be read in slices by several partitions.
        suspects.sort_by(|a: &Suspect, b| a.path.cmp(&b.path));
        suspects.dedup_by(|later, first| {
            let is_same = later.path == first.path;
            if is_same {
                let both = first.columns.take().zip(later.columns.take());
                first.columns = both.map(|(first, later)| first.into_iter().chain(later).collect());
            }
            is_same
        });
        suspects
    }

    /// How much of the file is worth looking at for an error; none if it is of another format or place.
    fn depth(&self, error: &SqlError) -> Option<Depth> {
        if mirrored(&self.path).is_some_and(|file| file.is_fetched) {
            return None;
        }
        match error {
            SqlError::FileCorrupt { path, .. } => {
                let own = match self.format {
                    Format::Parquet => A_PARQUET_FILE,
                    Format::Csv(_) => A_CSV_FILE,
                    Format::Json(..) => A_JSON_FILE,
                    Format::Arrow => AN_ARROW_FILE,
                };
                let any = [A_PARQUET_FILE, A_CSV_FILE, A_JSON_FILE, AN_ARROW_FILE];
                (path == own || !any.contains(&path.as_str())).then_some(Depth::Read)
            }
            // The system's own words mean that it refused, whatever stands in the file.
            SqlError::FileAccess(text) if text.contains("(os error") => Some(Depth::Open),
            SqlError::FileAccess(_) | SqlError::Internal(_) => Some(Depth::Read),
            SqlError::Execution(text) => match self.format {
                Format::Arrow => is_damage(text).then_some(Depth::Read),
                _ => is_about_values(text).then_some(Depth::Read),
            },
            _ => None,
        }
    }

    /// Reads the file until it gives an error, or its reader gives up.
    fn examine(&self, depth: Depth, search: &Search) -> Option<SqlError> {
        if search.is_over() {
            return None;
        }
        catch_unwind(AssertUnwindSafe(|| self.read(depth, search))).unwrap_or_else(|panic| {
            let reason = format!("its reader gave up: {}", panic_text(panic.as_ref()));
            Some(SqlError::FileCorrupt { path: shown(&self.path), reason })
        })
    }

    /// Positions in a schema of the columns that are read; none means all.
    fn positions(&self, schema: &Schema) -> Option<Vec<usize>> {
        let columns = self.columns.as_ref()?;
        let named = |index: &usize| columns.contains(schema.field(*index).name());
        Some((0..schema.fields().len()).filter(named).collect())
    }

    /// Reads the file until it gives an error.
    fn read(&self, depth: Depth, search: &Search) -> Option<SqlError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) => return Some(SqlError::FileAccess(format!("{}: {error}", shown(&self.path)))),
        };
        if depth == Depth::Open {
            return None;
        }
        let path = shown(&self.path);
        let corrupt = |reason: String| Some(SqlError::FileCorrupt { path: path.clone(), reason: one_line(&reason) });
        match &self.format {
            Format::Parquet => pages::read(&self.path, self.columns.as_ref(), search).and_then(corrupt),
            Format::Arrow => read_arrow(file, self, search).and_then(corrupt),
            Format::Csv(csv) => {
                let columns = csv.schema.as_ref().and_then(|schema| self.positions(schema));
                csv.read(&path, file, columns, search)
            }
            Format::Json(schema, compression) => {
                let positions = schema.as_ref().and_then(|schema| self.positions(schema));
                let read = schema.as_ref().map(|schema| match &positions {
                    Some(positions) => schema.project(positions).map_or_else(|_| schema.clone(), Arc::new),
                    None => schema.clone(),
                });
                json::read(&path, file, read, compression, search)
            }
        }
    }
}

/// Whether an error may come from a file that is not named yet, or from the reader of one.
pub(crate) fn may_be_about_files(error: &SqlError) -> bool {
    match error {
        SqlError::Internal(_) | SqlError::FileCorrupt { .. } | SqlError::FileAccess(_) => true,
        SqlError::Execution(text) => is_about_values(text) || is_damage(text),
        _ => false,
    }
}

/// Whether the text is that of a reader of text files, which has no kind of error of its own for it.
fn is_about_values(text: &str) -> bool {
    text.contains("is declared as non-nullable but contains null")
}

/// Whether the text may be about a damaged Arrow file: its reader has the errors of expressions, and these are told by
/// their words.
fn is_damage(text: &str) -> bool {
    let of_expressions = ["division by zero", "overflow", "Overflow", "annot cast", "an't cast", "Parser error"];
    !of_expressions.iter().any(|words| text.contains(words))
}

/// The error with its file, line and column where one of the suspects gives one, or the error as it is. Dropping the
/// future ends the search.
pub(crate) async fn explain(suspects: Vec<Suspect>, error: SqlError) -> SqlError {
    let mut looks: Vec<(Suspect, Depth)> =
        suspects.into_iter().filter_map(|suspect| suspect.depth(&error).map(|depth| (suspect, depth))).collect();
    if let SqlError::FileCorrupt { path, .. } = &error
        && looks.iter().any(|(suspect, _)| suspect.path == Path::new(path))
    {
        looks.retain(|(suspect, _)| suspect.path == Path::new(path));
    }
    if looks.is_empty() {
        return error;
    }
    let search = Search::of(LONGEST);
    let _stop = StopOnDrop(search.stop.clone());
    let found =
        tokio::task::spawn_blocking(move || looks.iter().find_map(|(suspect, depth)| suspect.examine(*depth, &search)));
    found.await.ok().flatten().unwrap_or(error)
}

/// The first line of a text file, decompressed.
pub(crate) fn first_line(path: &Path, command: &CreateExternalTable) -> Option<String> {
    let reader = compression(command).convert_read(File::open(path).ok()?).ok()?;
    let mut line = Vec::new();
    // A file that is not text has no end of line; a mebibyte is more than any header needs.
    BufReader::new(reader.take(1 << 20)).read_until(b'\n', &mut line).ok()?;
    Some(String::from_utf8_lossy(&line).into_owned())
}

fn collect(plan: &Arc<dyn ExecutionPlan>, suspects: &mut Vec<Suspect>) {
    for child in plan.children() {
        collect(child, suspects);
    }
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else { return };
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else { return };
    if !config.object_store_url.as_str().starts_with("file://") {
        return;
    }
    let compression = config.file_compression_type;
    let source = plain_source(config.file_source.as_ref());
    let format = if source.is::<ParquetSource>() {
        Format::Parquet
    } else if let Some(csv) = source.downcast_ref::<CsvSource>() {
        Format::Csv(Csv {
            schema: Some(config.file_schema().clone()),
            header: csv.has_header(),
            delimiter: csv.delimiter(),
            quote: csv.quote(),
            escape: csv.escape(),
            comment: csv.comment(),
            truncated: csv.truncate_rows(),
            compression,
        })
    } else if source.is::<JsonSource>() {
        Format::Json(Some(config.file_schema().clone()), compression)
    } else {
        Format::Arrow
    };
    let columns = columns_of(config);
    let files = config.file_groups.iter().flat_map(|group| group.iter());
    suspects.extend(files.map(|file| Suspect {
        path: PathBuf::from(format!("/{}", file.object_meta.location)),
        format: format.clone(),
        columns: columns.clone(),
    }));
}

/// Names of the columns that a scan reads, those of its filter too; none means all.
fn columns_of(config: &FileScanConfig) -> Option<BTreeSet<String>> {
    let source = &config.file_source;
    let schema = source.table_schema().table_schema();
    let mut indices = source.projection()?.column_indices();
    if let Some(filter) = source.filter() {
        indices.extend(collect_columns(&filter).iter().map(|column| column.index()));
    }
    Some(indices.into_iter().filter_map(|index| Some(schema.fields().get(index)?.name().clone())).collect())
}

fn read_arrow(mut file: File, suspect: &Suspect, search: &Search) -> Option<String> {
    let mut magic = [0; 6];
    let is_file = file.read_exact(&mut magic).is_ok() && &magic == b"ARROW1";
    if std::io::Seek::rewind(&mut file).is_err() {
        return None;
    }
    let first_error = |error: ArrowError| format!("not an Arrow IPC file, or cut off: {error}");
    // Columns are known once the file is open.
    let open = |file: File, columns: Option<Vec<usize>>| -> Result<Batches, ArrowError> {
        Ok(match is_file {
            true => {
                let reader = arrow::ipc::reader::FileReader::try_new(file, columns)?;
                (reader.schema(), Box::new(reader))
            }
            false => {
                let reader = arrow::ipc::reader::StreamReader::try_new(BufReader::new(file), columns)?;
                (reader.schema(), Box::new(reader))
            }
        })
    };
    let columns = match open(file, None) {
        Ok((schema, _)) => suspect.positions(&schema),
        Err(error) => return Some(first_error(error)),
    };
    match open(File::open(&suspect.path).ok()?, columns) {
        Ok((_, reader)) => reader.take_while(|_| !search.is_over()).filter_map(Result::err).map(first_error).next(),
        Err(error) => Some(first_error(error)),
    }
}

/// The columns of a reader, and its batches.
type Batches = (SchemaRef, Box<dyn Iterator<Item = Result<arrow::array::RecordBatch, ArrowError>>>);

#[cfg(test)]
mod tests {
    use std::io::Write;

    use arrow::datatypes::{DataType, Field};

    use super::*;

    fn csv(schema: Option<SchemaRef>) -> Format {
        Format::Csv(Csv {
            schema,
            header: true,
            delimiter: b',',
            quote: b'"',
            escape: None,
            comment: None,
            truncated: false,
            compression: FileCompressionType::UNCOMPRESSED,
        })
    }

    fn first_error(text: &[u8], format: Format) -> Option<String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let path = file.path().to_path_buf();
        let name = path.display().to_string();
        let found = Suspect { path, format, columns: None }.examine(Depth::Read, &Search::of(LONGEST));
        found.map(|error| error.to_string().replace(&name, "F"))
    }

    #[tokio::test]
    async fn a_panic_in_a_task_of_a_reader_may_be_about_a_file() {
        let task: tokio::task::JoinHandle<()> = tokio::spawn(async { panic!("a page of 0 bytes") });
        let join = task.await.unwrap_err();
        let error = SqlError::from(datafusion::error::DataFusionError::External(Box::new(join)));
        assert_eq!(error.code(), "SQL-010");
        assert!(may_be_about_files(&error) && error.to_string().contains("a page of 0 bytes"));
    }

    #[test]
    fn bad_numbers_have_line_and_column() {
        let columns = vec![Field::new("a", DataType::Int64, true), Field::new("price", DataType::Float64, true)];
        let schema = Arc::new(Schema::new(columns));
        let found = first_error(b"a,price\n1,2.5\n2,cheap\n", csv(Some(schema.clone()))).unwrap();
        let front = "FILE-004 F, line 3, column 'price': Error while parsing value 'cheap' as type 'Float64'; declare";
        assert!(found.starts_with(front), "{found}");
        assert_eq!(first_error(b"a,price\n1,2.5\n", csv(Some(schema))), None);
    }

    #[test]
    fn lines_are_counted_past_values_of_several_and_blank_ones() {
        let columns = vec![Field::new("a", DataType::Utf8, true), Field::new("price", DataType::Float64, true)];
        let schema = Arc::new(Schema::new(columns));
        let text = b"a,price\n\"two\nlines\",1\n\n\"say \"\"so\n\"\"\",2\n5\" pipe,3\nx,cheap\n";
        let found = first_error(text, csv(Some(schema))).unwrap();
        let front = "FILE-004 F, line 8, column 'price': Error while parsing value 'cheap' as type 'Float64'; declare";
        assert!(found.starts_with(front), "{found}");
    }

    #[test]
    fn ragged_rows_have_their_line() {
        let found = first_error(b"a,b\n1,2\n3\n4,5\n", csv(None)).unwrap();
        assert_eq!(found, "FILE-004 F, line 3: incorrect number of fields, expected 2 got 1");
    }

    #[test]
    fn broken_files_are_told() {
        assert!(
            first_error(b"PAR1 and no more", Format::Parquet).unwrap().starts_with("FILE-003 F: not a Parquet file")
        );
        assert!(first_error(b"ARROW1 nor this", Format::Arrow).unwrap().starts_with("FILE-003 F: not an Arrow IPC"));
        let uncompressed = FileCompressionType::UNCOMPRESSED;
        let json = first_error(b"{\"a\":1}\n{\"a\":\n", Format::Json(None, uncompressed)).unwrap();
        assert!(json.starts_with("FILE-004 F, line 2: "), "{json}");
    }

    #[tokio::test]
    async fn errors_of_expressions_and_searches_that_take_too_long_read_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.parquet");
        std::fs::write(&path, "PAR1 and no more").unwrap();
        let suspect = Suspect { path, format: Format::Parquet, columns: None };
        for text in ["division by zero", "overflow: 1 + 1", "Cannot cast string 'x' to value of Int64 type"] {
            let error = SqlError::Execution(text.into());
            assert!(!may_be_about_files(&error) && suspect.depth(&error).is_none(), "{text}");
            assert_eq!(explain(vec![suspect.clone()], error.clone()).await.to_string(), error.to_string());
        }
        let error = SqlError::FileCorrupt { path: A_PARQUET_FILE.into(), reason: "cut off".into() };
        assert_ne!(explain(vec![suspect.clone()], error.clone()).await.to_string(), error.to_string());
        assert_eq!(suspect.depth(&SqlError::FileAccess("No space left (os error 28)".into())), Some(Depth::Open));
        assert!(suspect.examine(Depth::Read, &Search::of(Duration::ZERO)).is_none());
        let stopped = Search::of(LONGEST);
        drop(StopOnDrop(stopped.stop.clone()));
        assert!(suspect.examine(Depth::Read, &stopped).is_none());
    }

    #[test]
    fn columns_that_are_not_read_are_not_looked_at() {
        let columns = vec![Field::new("a", DataType::Int64, true), Field::new("price", DataType::Float64, true)];
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a,price\n1,cheap\n2,2\n").unwrap();
        let format = csv(Some(Arc::new(Schema::new(columns))));
        for (name, is_found) in [("a", false), ("price", true)] {
            let (path, columns) = (file.path().to_path_buf(), Some(BTreeSet::from([name.to_string()])));
            let found = Suspect { path, format: format.clone(), columns }.examine(Depth::Read, &Search::of(LONGEST));
            assert_eq!(found.is_some(), is_found, "{name}: {found:?}");
        }
    }
}
