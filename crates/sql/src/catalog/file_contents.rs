//! `read_text('*.txt')`, `read_blob('*.bin')` and `glob('*')`: files as rows, with DuckDB's names of columns.
//!
//! Arguments are a path, a pattern or a list of both, of files on this machine. Files are looked for and read when the
//! table is scanned, and contents are read if they are asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{ArrayRef, AsArray, BinaryArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result as DataFusionResult, ScalarValue};
use datafusion::datasource::{MemTable, TableType};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::files::{matching, missing};
use super::patterns::with_braces;
use crate::access::Access;
use crate::error::{Result, SqlError};
use crate::locations::{is_elsewhere, is_pattern, local_path, shown};

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileContents {
    /// Names alone.
    Glob,
    /// Names, contents as texts, sizes and times.
    Text,
    /// Names, contents as bytes, sizes and times.
    Blob,
}

impl FileContents {
    /// All of them.
    pub(crate) const ALL: [FileContents; 3] = [FileContents::Glob, FileContents::Text, FileContents::Blob];

    /// The function's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FileContents::Glob => "glob",
            FileContents::Text => "read_text",
            FileContents::Blob => "read_blob",
        }
    }

    fn schema(self) -> SchemaRef {
        let content = match self {
            FileContents::Glob => return Arc::new(Schema::new(vec![Field::new("file", DataType::Utf8, false)])),
            FileContents::Text => DataType::Utf8,
            FileContents::Blob => DataType::Binary,
        };
        let modified = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        Arc::new(Schema::new(vec![
            Field::new("filename", DataType::Utf8, false),
            Field::new("content", content, true),
            Field::new("size", DataType::Int64, true),
            Field::new("last_modified", modified, true),
        ]))
    }

    /// The row of a file.
    fn row(self, path: &Path, schema: &SchemaRef, has_content: bool) -> Result<RecordBatch> {
        let name = shown(path);
        let named: ArrayRef = Arc::new(StringArray::from(vec![name.as_str()]));
        let columns = match self {
            FileContents::Glob => vec![named],
            FileContents::Text | FileContents::Blob => {
                let failed = |error: std::io::Error| SqlError::FileFormat {
                    path: name.clone(),
                    reason: format!("it cannot be read: {error}"),
                };
                let facts = std::fs::metadata(path).map_err(failed)?;
                let bytes = if has_content { Some(std::fs::read(path).map_err(failed)?) } else { None };
                let refused = |reason: &str| SqlError::FileFormat { path: name.clone(), reason: reason.into() };
                if bytes.as_ref().is_some_and(|bytes| i32::try_from(bytes.len()).is_err()) {
                    return Err(refused("it has more than 2 GiB"));
                }
                let content: ArrayRef = match self {
                    FileContents::Blob => Arc::new(BinaryArray::from(vec![bytes.as_deref()])),
                    _ => {
                        let text = bytes.map(String::from_utf8).transpose();
                        let text = text.map_err(|_| refused("it is no text in UTF-8; read_blob() gives its bytes"))?;
                        Arc::new(StringArray::from(vec![text]))
                    }
                };
                let since = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let modified = since.and_then(|since| i64::try_from(since.as_micros()).ok());
                let modified = TimestampMicrosecondArray::from(vec![modified]).with_timezone("UTC");
                let size = Int64Array::from(vec![i64::try_from(facts.len()).ok()]);
                vec![named, content, Arc::new(size), Arc::new(modified)]
            }
        };
        RecordBatch::try_new(schema.clone(), columns).map_err(|error| SqlError::Internal(error.to_string()))
    }
}

impl TableFunctionImpl for FileContents {
    fn call_with_args(&self, args: TableFunctionArgs) -> DataFusionResult<Arc<dyn TableProvider>> {
        let places = match args.exprs() {
            [places] => texts(places),
            _ => None,
        };
        let expected = || format!("{}() takes a text, the path or pattern of files, or a list of texts", self.name());
        let places = places.ok_or_else(|| SqlError::Planning(expected()))?;
        Ok(Arc::new(Found { function: *self, places, schema: self.schema() }))
    }
}

/// The texts that an argument has; none for what is no constant.
fn texts(argument: &Expr) -> Option<Vec<String>> {
    match argument {
        Expr::Literal(
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)),
            _,
        ) => Some(vec![text.clone()]),
        Expr::Literal(ScalarValue::List(list), _) => {
            let items = cast(&list.value(0), &DataType::Utf8).ok()?;
            items.as_string::<i32>().iter().map(|text| text.map(str::to_string)).collect()
        }
        Expr::ScalarFunction(list) if list.name() == "make_array" => {
            let items: Option<Vec<_>> = list.args.iter().map(texts).collect();
            Some(items?.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// The files of some places, found when the table is read.
#[derive(Debug)]
struct Found {
    function: FileContents,
    places: Vec<String>,
    schema: SchemaRef,
}

/// The files of a place, in order; none for a pattern that nothing matches.
fn files(place: &str, access: &Access) -> Result<Vec<PathBuf>> {
    if is_elsewhere(place) {
        return Err(SqlError::Unsupported(format!("'{place}', which is not of this machine")));
    }
    let mut files = Vec::new();
    let braced = with_braces(place);
    for one in &braced {
        access.check_location(one)?;
        let path = local_path(one).unwrap_or_else(|| PathBuf::from(one));
        match is_pattern(one) {
            true => files.extend(matching(one)?),
            false if path.is_file() => files.push(path),
            false if braced.len() > 1 => {}
            false => return Err(missing(one)),
        }
    }
    files.iter().try_for_each(|file| access.check_path(file))?;
    Ok(files)
}

#[async_trait]
impl TableProvider for Found {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let (function, schema, access) = (self.function, self.schema.clone(), Access::of(state.config_options()));
        let has_content = projection.is_none_or(|columns| columns.contains(&1));
        let places = self.places.clone();
        let read = move || {
            let found = places.iter().map(|place| files(place, &access)).collect::<Result<Vec<_>>>()?;
            let rows = found.iter().flatten().map(|file| function.row(file, &schema, has_content));
            rows.collect::<Result<Vec<_>>>()
        };
        let read = tokio::task::spawn_blocking(read).await;
        let rows = read.map_err(|error| SqlError::Internal(error.to_string()))??;
        MemTable::try_new(self.schema.clone(), vec![rows])?.scan(state, projection, filters, limit).await
    }
}
