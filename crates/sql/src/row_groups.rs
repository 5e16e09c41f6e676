//! Columns of Parquet files, read straight from the files of this machine.
//!
//! A partition is a row group and each column of it is read apart, so that threads share row groups. Strings that are
//! dictionary-coded in the file stay so (the loader then looks at each distinct string once a row group), other strings
//! come as views, and decimals of up to 18 digits in 64 bits. Values are those that DataFusion's own scan gives: where
//! that would cast, add or rename a column, [`ParquetTable::open`] declines and the loader takes DataFusion's scan for
//! all columns of the table, so that columns loaded at different times line up.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{ConvertedType, Encoding, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use warpcube_column::{ColumnError, ColumnScan, Result, Storage, is_string};

use crate::error::{SqlError, one_line, panic_text};

/// Rows decoded at a time: few enough to stay in a core's cache until they are encoded.
const BATCH_ROWS: usize = 16 << 10;
/// Digits of a decimal that always fit 64 bits.
const NARROW_DIGITS: u8 = 18;

/// The Parquet files of one table version; their footers are read when first asked for.
#[derive(Debug)]
pub(crate) struct ParquetFiles {
    paths: Vec<PathBuf>,
    schema: SchemaRef,
    table: OnceLock<Option<Arc<ParquetTable>>>,
    /// Rows by the statistics of a scan, once they were known.
    rows: OnceLock<u64>,
}

impl ParquetFiles {
    /// The files of a table with these columns.
    pub(crate) fn new(paths: Vec<PathBuf>, schema: SchemaRef) -> ParquetFiles {
        ParquetFiles { paths, schema, table: OnceLock::new(), rows: OnceLock::new() }
    }

    /// Rows of all files, if a statement has found them.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.rows.get().copied()
    }

    /// Remembers the rows of all files.
    pub(crate) fn note_rows(&self, rows: u64) {
        let _ = self.rows.set(rows);
    }

    /// What the footers say; none if the files are to be read by DataFusion. May block.
    pub(crate) fn table(&self) -> Option<&Arc<ParquetTable>> {
        let open = || {
            let opened = guarded(|| ParquetTable::open(&self.paths, &self.schema));
            match opened.and_then(|opened| opened.map_err(|error| error.to_string())) {
                Ok(table) => table.map(Arc::new),
                // DataFusion's scan gives the error.
                Err(error) => {
                    tracing::debug!(%error, "footers cannot be read");
                    None
                }
            }
        };
        self.table.get_or_init(open).as_ref()
    }
}

/// A table over Parquet files.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    files: Vec<ParquetFile>,
    /// File and row group of each partition.
    groups: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct ParquetFile {
    path: PathBuf,
    identity: Identity,
    /// How to read columns whose strings are dictionary-coded, and others.
    coded: ArrowReaderMetadata,
    plain: ArrowReaderMetadata,
    /// The column of the file, by position in the table.
    columns: Vec<Option<usize>>,
}

/// Tells a file from another that took its place.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    bytes: u64,
    inode: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Identity {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Identity { bytes: metadata.len(), inode: metadata.ino(), modified }
    }
}

impl ParquetTable {
    /// Reads the footers of files; none if their columns are not those of the table as they are.
    fn open(paths: &[PathBuf], schema: &SchemaRef) -> std::result::Result<Option<ParquetTable>, ParquetError> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            match ParquetFile::open(path, schema)? {
                Some(file) => files.push(file),
                None => return Ok(None),
            }
        }
        let groups = |(file, parquet): (usize, &ParquetFile)| {
            let groups = parquet.plain.metadata().num_row_groups();
            (0..groups).map(move |group| (file, group))
        };
        let groups = files.iter().enumerate().flat_map(groups).collect();
        Ok(Some(ParquetTable { files, groups }))
    }

    fn chunks(&self, column: usize) -> impl Iterator<Item = &ColumnChunkMetaData> {
        self.groups.iter().filter_map(move |(file, group)| self.files[*file].chunk(*group, column))
    }

    /// Bytes of a column in the files, compression taken off.
    pub(crate) fn column_bytes(&self, column: usize) -> u64 {
        self.chunks(column).map(|chunk| chunk.uncompressed_size().max(0) as u64).sum()
    }

    /// Whether all values of a column are dictionary-coded in the files.
    pub(crate) fn is_coded(&self, column: usize) -> bool {
        self.chunks(column).all(is_coded)
    }

    /// Most distinct values that an integer column has by its bounds, if its writer began a dictionary and gave it up
    /// because values hardly repeat; none where the footers tell nothing of the kind.
    pub(crate) fn distinct_by_bounds(&self, column: usize) -> Option<u64> {
        let gave_up = |chunk: &ColumnChunkMetaData| chunk.dictionary_page_offset().is_some() && !is_coded(chunk);
        if !self.chunks(column).any(gave_up) {
            return None;
        }
        let bounds = self.chunks(column).map(|chunk| match chunk.statistics()? {
            Statistics::Int32(known) => Some((i64::from(*known.min_opt()?), i64::from(*known.max_opt()?))),
            Statistics::Int64(known) => Some((*known.min_opt()?, *known.max_opt()?)),
            _ => None,
        });
        let (low, high) = bounds.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))))??;
        u64::try_from(high.checked_sub(low)?).ok().map(|steps| steps.saturating_add(1))
    }

    /// A scan of some columns.
    pub(crate) fn scan(self: &Arc<Self>, name: &str, columns: &[usize]) -> Box<dyn ColumnScan> {
        Box::new(ParquetScan { table: self.clone(), name: name.to_string(), columns: columns.to_vec() })
    }
}

impl ParquetFile {
    fn open(path: &Path, schema: &SchemaRef) -> std::result::Result<Option<ParquetFile>, ParquetError> {
        let file = File::open(path)?;
        let identity = Identity::of(&file.metadata()?);
        let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let position = found.schema().index_of(field.name()).ok();
            // Types that stay on the CPU are never asked for.
            let wanted = Storage::of(field.data_type()).is_some();
            let same = position.is_some_and(|position| {
                let other = found.schema().field(position).data_type();
                other == field.data_type() || is_string(other) && is_string(field.data_type())
            });
            if wanted && !same {
                return Ok(None);
            }
            columns.push(position.filter(|_| wanted));
        }
        let read_as = |coded: bool| -> std::result::Result<ArrowReaderMetadata, ParquetError> {
            let fields = found.schema().fields().iter().enumerate();
            let fields: Vec<Arc<Field>> = fields
                .map(|(root, field)| match leaf_of(&found, root).and_then(|leaf| form(field, leaf, coded)) {
                    Some(form) => Arc::new(field.as_ref().clone().with_data_type(form)),
                    None => field.clone(),
                })
                .collect();
            let schema = Schema::new_with_metadata(fields, found.schema().metadata().clone());
            let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
            ArrowReaderMetadata::try_new(found.metadata().clone(), options)
        };
        let (coded, plain) = (read_as(true)?, read_as(false)?);
        Ok(Some(ParquetFile { path: path.to_path_buf(), identity, coded, plain, columns }))
    }

    /// What the footer says of a column of the table in a row group.
    fn chunk(&self, group: usize, column: usize) -> Option<&ColumnChunkMetaData> {
        let root = (*self.columns.get(column)?)?;
        let leaf = (0..self.plain.parquet_schema().num_columns())
            .find(|leaf| self.plain.parquet_schema().get_column_root_idx(*leaf) == root)?;
        self.plain.metadata().row_group(group).columns().get(leaf)
    }
}

/// The leaf of a column that is not nested.
fn leaf_of(found: &ArrowReaderMetadata, root: usize) -> Option<&ColumnDescriptor> {
    let schema = found.parquet_schema();
    let mut leaves = schema.columns().iter().enumerate();
    let (_, leaf) = leaves.find(|(leaf, _)| schema.get_column_root_idx(*leaf) == root)?;
    schema.root_schema().get_fields().get(root)?.is_primitive().then_some(leaf.as_ref())
}

/// The type to read a column as, where it is not its own.
fn form(field: &Field, leaf: &ColumnDescriptor, coded: bool) -> Option<DataType> {
    match field.data_type() {
        // The reader of dictionaries tells text by the converted type alone.
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            if leaf.physical_type() == PhysicalType::BYTE_ARRAY && leaf.converted_type() == ConvertedType::UTF8 =>
        {
            Some(match coded {
                true => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                false => DataType::Utf8View,
            })
        }
        DataType::Decimal128(precision, scale)
            if *precision <= NARROW_DIGITS
                && matches!(leaf.physical_type(), PhysicalType::INT32 | PhysicalType::INT64) =>
        {
            Some(DataType::Decimal64(*precision, *scale))
        }
        _ => None,
    }
}

/// Whether all pages of a column chunk are dictionary-coded; a footer that does not say counts as no.
fn is_coded(chunk: &ColumnChunkMetaData) -> bool {
    let is_dictionary = |encoding: Encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    if let Some(mask) = chunk.page_encoding_stats_mask() {
        return mask.encodings().all(is_dictionary);
    }
    let pages = chunk.page_encoding_stats();
    pages.is_some_and(|pages| {
        use parquet::basic::PageType::{DATA_PAGE, DATA_PAGE_V2};
        let mut data = pages.iter().filter(|page| matches!(page.page_type, DATA_PAGE | DATA_PAGE_V2));
        data.all(|page| is_dictionary(page.encoding))
    })
}

/// Runs a piece of the reader, which panics over some damaged files: that is an error like others.
fn guarded<T>(piece: impl FnOnce() -> T) -> std::result::Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(piece))
        .map_err(|panic| format!("the reader gave up: {}", panic_text(panic.as_ref())))
}

struct ParquetScan {
    table: Arc<ParquetTable>,
    name: String,
    columns: Vec<usize>,
}

impl ParquetScan {
    fn read_roots(
        &self,
        partition: usize,
        columns: &[usize],
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let (file, group) = self.table.groups[partition];
        let parquet = &self.table.files[file];
        let path = parquet.path.display();
        let failed = |error: String| {
            ColumnError::source(SqlError::FileCorrupt { path: path.to_string(), reason: one_line(&error) })
        };
        let changed = |detail: String| ColumnError::Changed { table: self.name.clone(), detail };
        let input = File::open(&parquet.path).map_err(|error| changed(format!("file '{path}': {error}")))?;
        let metadata = input.metadata().map_err(|error| changed(format!("file '{path}': {error}")))?;
        if Identity::of(&metadata) != parquet.identity {
            return Err(changed(format!("file '{path}' is another than when its footer was read")));
        }
        let mut roots = Vec::with_capacity(columns.len());
        for column in columns {
            let root = parquet.columns.get(*column).copied().flatten();
            roots.push(root.ok_or_else(|| changed(format!("file '{path}' has no column {column}")))?);
        }
        let coded = columns.iter().all(|column| parquet.chunk(group, *column).is_some_and(is_coded));
        let form = if coded { &parquet.coded } else { &parquet.plain };
        let mask = ProjectionMask::roots(form.parquet_schema(), roots.iter().copied());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, form.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS);
        let built = guarded(|| builder.build()).map_err(failed)?;
        let mut reader = built.map_err(|error| failed(error.to_string()))?;
        // The reader gives columns in the order of the file.
        let mut sorted = roots.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let order: Vec<usize> = roots.iter().map(|root| sorted.partition_point(|other| other < root)).collect();
        while let Some(batch) = guarded(|| reader.next()).map_err(failed)? {
            let batch = batch.and_then(|batch| batch.project(&order));
            sink(batch.map_err(|error| failed(error.to_string()))?)?;
        }
        Ok(())
    }
}

impl ColumnScan for ParquetScan {
    fn partitions(&self) -> usize {
        self.table.groups.len()
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        self.read_roots(partition, &self.columns, sink)
    }

    fn reads_single_columns(&self) -> bool {
        true
    }

    fn read_column(
        &self,
        partition: usize,
        column: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.read_roots(partition, &self.columns[column..=column], sink)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array, StringArray};
    use arrow::compute::cast;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use parquet::schema::types::ColumnPath;

    use super::*;

    const ROWS: usize = 2_500;

    fn batch(shift: usize) -> RecordBatch {
        let few: ArrayRef =
            Arc::new(StringArray::from_iter((0..ROWS).map(|row| (row % 9 > 0).then(|| ["x", "yy"][row % 2]))));
        let many: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("text number {}", row + shift))));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| (row + shift) as i64)));
        let decimals = Decimal128Array::from_iter_values((0..ROWS as i128).map(|row| row * 7 - 5));
        let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(12, 2).unwrap());
        RecordBatch::try_from_iter([("few", few), ("many", many), ("n", numbers), ("d", decimals)]).unwrap()
    }

    fn write(path: &Path, batch: &RecordBatch) {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(1_000))
            .set_column_dictionary_enabled(ColumnPath::from("many"), false)
            .build();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
    }

    /// A schema as a session shows it: strings as views.
    fn shown() -> SchemaRef {
        let as_view = |field: &Arc<Field>| match is_string(field.data_type()) {
            true => field.as_ref().clone().with_data_type(DataType::Utf8View),
            false => field.as_ref().clone(),
        };
        Arc::new(Schema::new(batch(0).schema().fields().iter().map(as_view).collect::<Vec<_>>()))
    }

    fn read(scan: &dyn ColumnScan, partition: usize, column: usize) -> Vec<ArrayRef> {
        let mut arrays = Vec::new();
        let mut sink = |batch: RecordBatch| {
            arrays.push(batch.column(0).clone());
            Ok(())
        };
        scan.read_column(partition, column, &mut sink).unwrap();
        arrays
    }

    #[test]
    fn columns_come_by_row_group_in_their_cheapest_form() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("a.parquet"), folder.path().join("b.parquet")];
        let batches = [batch(0), batch(10_000)];
        paths.iter().zip(&batches).for_each(|(path, batch)| write(path, batch));
        let files = ParquetFiles::new(paths.to_vec(), shown());
        let table = files.table().expect("files to be read directly");
        assert_eq!([0, 1, 2, 3].map(|column| table.is_coded(column)), [true, false, true, true]);
        assert!(table.column_bytes(1) > (2 * ROWS * 14) as u64 && table.column_bytes(1) < (2 * ROWS * 40) as u64);
        let scan = table.scan("t", &[1, 3, 0]);
        assert_eq!((scan.partitions(), scan.reads_single_columns()), (6, true));
        for (partition, (file, start, rows)) in
            [(0, 0, 1_000), (0, 1_000, 1_000), (0, 2_000, 500), (1, 0, 1_000), (1, 1_000, 1_000), (1, 2_000, 500)]
                .into_iter()
                .enumerate()
        {
            for (position, (column, form)) in [
                (1, DataType::Utf8View),
                (3, DataType::Decimal64(12, 2)),
                (0, DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
            ]
            .into_iter()
            .enumerate()
            {
                let arrays = read(scan.as_ref(), partition, position);
                assert!(arrays.iter().all(|array| *array.data_type() == form), "{}", arrays[0].data_type());
                let expected = batches[file].column(column).slice(start, rows);
                let found: Vec<ArrayRef> =
                    arrays.iter().map(|array| cast(array, expected.data_type()).unwrap()).collect();
                let found: Vec<&dyn Array> = found.iter().map(|array| array.as_ref()).collect();
                assert_eq!(&arrow::compute::concat(&found).unwrap(), &expected);
            }
        }
        let mut whole = Vec::new();
        scan.read(4, &mut |batch| {
            whole.push(batch);
            Ok(())
        })
        .unwrap();
        assert_eq!((whole[0].num_columns(), whole[0].num_rows()), (3, 1_000));
        assert_eq!(whole[0].column(0).as_string_view().value(0), "text number 11000");
        let mut rows = 0;
        let none = table.scan("t", &[]);
        (0..6).for_each(|partition| {
            none.read(partition, &mut |batch| {
                rows += batch.num_rows();
                Ok(())
            })
            .unwrap();
        });
        assert_eq!(rows, 2 * ROWS);
    }

    #[test]
    fn values_that_hardly_repeat_are_told_by_a_dictionary_that_was_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let wide = |name: &str, ids: ArrayRef| {
            let path = folder.path().join(name);
            let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
            let properties = WriterProperties::builder().set_dictionary_page_size_limit(1_000).build();
            let file = File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let table = ParquetFiles::new(vec![path], batch.schema()).table().unwrap().clone();
            table.distinct_by_bounds(0)
        };
        let ids = |ids: std::ops::Range<i64>| Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef;
        assert_eq!(wide("many", ids(-5_000..15_000)), Some(20_000));
        assert_eq!(wide("few", Arc::new(Int64Array::from_iter_values((0..20_000).map(|row| row % 50)))), None);
        let names = Arc::new(StringArray::from_iter_values((0..20_000).map(|row| format!("n{row}"))));
        assert_eq!(wide("names", names), None, "bounds of strings count nothing");
        let ends = (0..20_000).map(|row| if row == 7 { i64::MIN } else { i64::MAX - row });
        assert_eq!(wide("ends", Arc::new(Int64Array::from_iter_values(ends))), None);
    }

    #[test]
    fn what_datafusion_would_cast_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        write(&path, &batch(0));
        let declared = |name: &str, data_type: DataType| {
            let fields: HashMap<String, DataType> =
                shown().fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect();
            let mut fields: Vec<Field> = fields.into_iter().map(|(name, ty)| Field::new(name, ty, true)).collect();
            fields.retain(|field| field.name() != name);
            fields.push(Field::new(name, data_type, true));
            ParquetFiles::new(vec![path.clone()], Arc::new(Schema::new(fields)))
        };
        assert!(declared("n", DataType::Int64).table().is_some());
        assert!(declared("n", DataType::Int32).table().is_none());
        assert!(declared("d", DataType::Decimal128(12, 3)).table().is_none());
        assert!(declared("not there", DataType::Int32).table().is_none());
        assert!(declared("not there", DataType::Binary).table().is_some(), "such a column is never asked for");
        assert!(ParquetFiles::new(vec![folder.path().join("gone.parquet")], shown()).table().is_none());
    }

    #[test]
    fn damage_is_an_error_or_read_past_and_never_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        write(&path, &batch(0));
        let whole = std::fs::read(&path).unwrap();
        let mut failures = 0;
        for position in (4..whole.len()).step_by(whole.len() / 150) {
            let mut damaged = whole.clone();
            damaged[position] ^= 0x55;
            std::fs::write(&path, &damaged).unwrap();
            let files = ParquetFiles::new(vec![path.clone()], shown());
            let Some(table) = files.table() else { continue };
            let scan = table.scan("t", &[0, 1, 2, 3]);
            for (partition, column) in (0..scan.partitions()).flat_map(|partition| (0..4).map(move |c| (partition, c)))
            {
                failures += usize::from(scan.read_column(partition, column, &mut |_| Ok(())).is_err());
            }
        }
        assert!(failures > 0, "some of that damage cannot go unnoticed");
    }

    #[test]
    fn a_file_that_was_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a.parquet"), folder.path().join("b"));
        write(&path, &batch(0));
        let files = ParquetFiles::new(vec![path.clone()], shown());
        let scan = files.table().unwrap().scan("t", &[2]);
        write(&other, &batch(1));
        std::fs::rename(&other, &path).unwrap();
        let error = scan.read_column(0, 0, &mut |_| Ok(())).unwrap_err();
        assert!(matches!(&error, ColumnError::Changed { table, .. } if table == "t"), "{error}");
    }
}
