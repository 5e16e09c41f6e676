//! A table in memory whose scans tests observe, change and delay.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use parking_lot::Mutex;
use warpcube_column::{
    ColumnError, ColumnFile, ColumnScan, ColumnSource, EncodingChoice, LoadLimits, Pinned, Relation, Residency, Result,
    TableRequest,
};
use warpcube_gpu::LaneOrder;

use crate::data::device;

/// A table in memory; clones are the same table.
#[derive(Clone)]
pub struct Source(pub Arc<Inner>);

pub struct Inner {
    pub name: String,
    pub schema: SchemaRef,
    pub partitions: Mutex<Vec<Vec<RecordBatch>>>,
    pub version: AtomicU64,
    /// Scans opened, by the columns asked for.
    pub scans: Mutex<Vec<Vec<usize>>>,
    /// Set while a scan is in its first batch.
    pub reading: AtomicUsize,
    /// While set, scans wait between batches.
    pub held: AtomicBool,
    /// Whether scans read single columns.
    pub apart: AtomicBool,
    /// A column that scans of single columns truncate after the first batch.
    pub cut: Mutex<Option<usize>>,
    /// Number of the next scans during which the table changes, and whether they fail.
    pub changes: AtomicU64,
    pub fails: AtomicBool,
    /// The column file.
    pub kept: Mutex<Option<(PathBuf, bool)>>,
}

impl Source {
    /// A table of `columns` in partitions of these rows, in batches of `batch_rows`.
    pub fn new(name: &str, columns: Vec<(&str, ArrayRef)>, partitions: &[usize], batch_rows: usize) -> Source {
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
        let mut start = 0;
        let mut cut = Vec::new();
        for rows in partitions {
            let end = start + rows;
            let starts = (start..end).step_by(batch_rows);
            cut.push(starts.map(|at| batch.slice(at, batch_rows.min(end - at))).collect());
            start = end;
        }
        assert_eq!(start, batch.num_rows(), "partitions cover the rows");
        Source(Arc::new(Inner {
            name: name.into(),
            schema,
            partitions: Mutex::new(cut),
            version: AtomicU64::new(1),
            scans: Mutex::default(),
            reading: AtomicUsize::new(0),
            held: AtomicBool::new(false),
            apart: AtomicBool::new(false),
            cut: Mutex::new(None),
            changes: AtomicU64::new(0),
            fails: AtomicBool::new(false),
            kept: Mutex::new(None),
        }))
    }

    /// A table of `columns` columns of 64-bit integers with `rows` rows in one partition; values encode row and column.
    pub fn integers(name: &str, columns: usize, rows: usize) -> Source {
        let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        let array = |column: usize| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..rows).map(|row| (row * 10 + column) as i64)))
        };
        let arrays = names.iter().enumerate().map(|(column, name)| (name.as_str(), array(column))).collect();
        Source::new(name, arrays, &[rows], 4096)
    }

    /// Columns of every scan so far.
    pub fn scans(&self) -> Vec<Vec<usize>> {
        self.0.scans.lock().clone()
    }

    pub fn request(&self, columns: &[usize]) -> TableRequest {
        TableRequest { source: Arc::new(self.clone()), columns: columns.to_vec(), coded: columns.to_vec() }
    }
}

impl ColumnSource for Source {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn key(&self) -> String {
        self.0.name.clone()
    }

    fn version(&self) -> String {
        self.0.version.load(Ordering::SeqCst).to_string()
    }

    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }

    fn rows(&self) -> Option<u64> {
        let partitions = self.0.partitions.lock();
        Some(partitions.iter().flatten().map(|batch| batch.num_rows() as u64).sum())
    }

    fn column_file(&self) -> Option<ColumnFile> {
        let (path, write) = self.0.kept.lock().clone()?;
        Some(ColumnFile { path, table: format!("table {}", self.0.name), write })
    }

    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        self.0.scans.lock().push(columns.to_vec());
        Ok(Box::new(Scan { source: self.clone(), columns: columns.to_vec() }))
    }
}

struct Scan {
    source: Source,
    columns: Vec<usize>,
}

impl ColumnScan for Scan {
    fn partitions(&self) -> usize {
        self.source.0.partitions.lock().len()
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let batches = self.source.0.partitions.lock()[partition].clone();
        let take = |changes: u64| changes.checked_sub(1);
        if self.source.0.changes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            self.source.0.version.fetch_add(1, Ordering::SeqCst);
            if self.source.0.fails.load(Ordering::SeqCst) {
                return Err(ColumnError::Source(Arc::new(std::io::Error::other("the file is another"))));
            }
        }
        for batch in batches {
            sink(batch.project(&self.columns).unwrap())?;
            self.source.0.reading.fetch_add(1, Ordering::SeqCst);
            while self.source.0.held.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn reads_single_columns(&self) -> bool {
        self.source.0.apart.load(Ordering::SeqCst)
    }

    fn read_column(
        &self,
        partition: usize,
        column: usize,
        sink: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let batches = self.source.0.partitions.lock()[partition].clone();
        let is_cut = *self.source.0.cut.lock() == Some(self.columns[column]);
        for batch in batches.into_iter().take(if is_cut { 1 } else { usize::MAX }) {
            sink(batch.project(&[self.columns[column]]).unwrap())?;
        }
        Ok(())
    }
}

pub fn residency(budget: u64) -> Residency {
    Residency::new(device(LaneOrder::default(), budget))
}

/// Limits of loads with the plain encoding.
pub fn plain() -> LoadLimits {
    LoadLimits { encoding: EncodingChoice::Plain, ..LoadLimits::default() }
}

/// Admits columns with `transient` bytes of transient memory.
pub fn admit(residency: &Residency, source: &Source, columns: &[usize], transient: u64) -> Result<Pinned> {
    admit_with(residency, &[source.request(columns)], transient, &plain())
}

pub fn admit_with(
    residency: &Residency,
    requests: &[TableRequest],
    transient: u64,
    limits: &LoadLimits,
) -> Result<Pinned> {
    residency.admit(requests, limits, |_: &[Relation]| -> Result<u64, ColumnError> { Ok(transient) })
}

/// The bytes of a column's segments without padding, and validity by row.
pub fn download(residency: &Residency, table: &Relation, column: usize) -> (Vec<u8>, Vec<bool>) {
    let mut stream = residency.device().stream().unwrap();
    let (mut bytes, mut valid) = (Vec::new(), Vec::new());
    let resident = &table.columns[column];
    assert_eq!(resident.segments().len(), table.chunks.len());
    for (segment, rows) in resident.segments().iter().zip(table.chunks.iter()) {
        assert_eq!(segment.rows(), *rows);
        let rows = *rows as usize;
        let mut values = vec![0u8; segment.values().bytes()];
        stream.download(segment.values(), 0, &mut values).unwrap();
        assert_eq!(values.len(), rows.next_multiple_of(1024) * resident.storage().width());
        bytes.extend_from_slice(&values[..rows * resident.storage().width()]);
        match segment.validity() {
            None => valid.extend(std::iter::repeat_n(true, rows)),
            Some(words) => {
                let mut content = vec![0u8; words.bytes()];
                stream.download(words, 0, &mut content).unwrap();
                valid.extend((0..rows).map(|row| content[row / 8] >> (row % 8) & 1 == 1));
            }
        }
    }
    (bytes, valid)
}

/// The values of a column of 64-bit integers.
pub fn values(residency: &Residency, table: &Relation, column: usize) -> Vec<i64> {
    numbers(&download(residency, table, column).0, i64::from_le_bytes)
}

/// Bytes of any alignment as numbers.
pub fn numbers<const WIDTH: usize, T>(bytes: &[u8], number: fn([u8; WIDTH]) -> T) -> Vec<T> {
    bytes.chunks_exact(WIDTH).map(|bytes| number(bytes.try_into().unwrap())).collect()
}
