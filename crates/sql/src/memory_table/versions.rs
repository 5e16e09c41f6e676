//! Versions of a table, and how one follows from another.
//!
//! Rows are numbered through all batches of all partitions, from 0. Batches without a changed row are shared with the
//! version before.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{interleave, take_record_batch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::rules::{Key, Rules};
use crate::error::{Result, SqlError};

/// The rows of a table at one time.
#[derive(Debug)]
pub(crate) struct Version {
    /// Unique in the process.
    pub(super) number: u64,
    /// At least one.
    pub(super) partitions: Vec<Vec<RecordBatch>>,
}

/// What becomes of a row: nothing is left of it, or the row of a batch of new ones takes its place.
pub(super) type Change = (u64, Option<(usize, usize)>);

impl Version {
    pub(super) fn new(mut partitions: Vec<Vec<RecordBatch>>) -> Version {
        static VERSIONS: AtomicU64 = AtomicU64::new(0);
        if partitions.is_empty() {
            partitions.push(Vec::new());
        }
        Version { number: VERSIONS.fetch_add(1, Ordering::Relaxed), partitions }
    }

    /// The version with more rows at the end.
    pub(super) fn with_rows(&self, rows: Vec<RecordBatch>) -> Version {
        let mut partitions = self.partitions.clone();
        if let Some(last) = partitions.last_mut() {
            last.extend(rows.into_iter().filter(|batch| batch.num_rows() > 0));
        }
        Version::new(partitions)
    }

    /// The rows that change, each once, in the table's order.
    pub(super) fn rows_of(&self, changes: &[Change]) -> Result<Vec<RecordBatch>> {
        let mut numbers: Vec<u64> = changes.iter().map(|(row, _)| *row).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let (mut left, mut first, mut found) = (numbers.as_slice(), 0, Vec::new());
        for batch in self.partitions.iter().flatten() {
            let end = first + batch.num_rows() as u64;
            let (here, later) = left.split_at(left.partition_point(|row| *row < end));
            if !here.is_empty() {
                let places = UInt64Array::from_iter_values(here.iter().map(|row| row - first));
                let rows = take_record_batch(batch, &places);
                found.push(rows.map_err(|error| SqlError::Execution(error.to_string()))?);
            }
            (left, first) = (later, end);
        }
        Ok(found)
    }

    /// The version with changed rows, which come by ascending number, each once; new ones are in `rows`.
    pub(super) fn with_changes(&self, changes: &[Change], rows: &[RecordBatch]) -> Result<Version> {
        let (mut left, mut first) = (changes, 0);
        let mut partitions = Vec::with_capacity(self.partitions.len());
        for batches in &self.partitions {
            let mut kept = Vec::with_capacity(batches.len());
            for batch in batches {
                let end = first + batch.num_rows() as u64;
                let (here, later) = left.split_at(left.partition_point(|(row, _)| *row < end));
                match here.is_empty() {
                    true => kept.push(batch.clone()),
                    false => kept.extend(changed(batch, first, here, rows)?),
                }
                (left, first) = (later, end);
            }
            partitions.push(kept);
        }
        match left.is_empty() {
            true => Ok(Version::new(partitions)),
            false => Err(SqlError::Internal("a row number beyond the table".into())),
        }
    }
}

/// A batch whose first row has that number, with its changes; none if no row is left.
fn changed(batch: &RecordBatch, first: u64, changes: &[Change], rows: &[RecordBatch]) -> Result<Option<RecordBatch>> {
    // Batches of new rows that are needed, by their numbers: the old batch is the first source.
    let mut sources = BTreeMap::new();
    for (batch, _) in changes.iter().filter_map(|(_, new)| *new) {
        sources.insert(batch, 0);
    }
    sources.values_mut().enumerate().for_each(|(number, source)| *source = number + 1);
    let (mut left, mut places) = (changes.iter().peekable(), Vec::with_capacity(batch.num_rows()));
    for row in 0..batch.num_rows() {
        match left.next_if(|(changed, _)| *changed == first + row as u64) {
            None => places.push((0, row)),
            Some((_, None)) => {}
            Some((_, Some((batch, row)))) => places.push((sources[batch], *row)),
        }
    }
    if places.is_empty() {
        return Ok(None);
    }
    let column = |column: usize| -> Result<ArrayRef> {
        let new = sources.keys().map(|source| rows[*source].column(column).as_ref());
        let arrays: Vec<&dyn Array> = std::iter::once(batch.column(column).as_ref()).chain(new).collect();
        interleave(&arrays, &places).map_err(|error| SqlError::Execution(error.to_string()))
    };
    let columns = (0..batch.num_columns()).map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    let batch = RecordBatch::try_new_with_options(batch.schema(), columns, &options);
    Ok(Some(batch.map_err(|error| SqlError::Internal(error.to_string()))?))
}

/// The keys of the rows of one version, a set for each key of the table.
#[derive(Debug)]
pub(super) struct KeyIndex {
    /// The version's number.
    pub(super) number: u64,
    sets: Vec<HashSet<OwnedRow>>,
}

impl KeyIndex {
    /// The keys of a version; none for tables without keys.
    ///
    /// # Errors
    /// Two rows of one key.
    pub(super) fn of(rules: &Rules, version: &Version) -> Result<Option<KeyIndex>> {
        if rules.keys().is_empty() {
            return Ok(None);
        }
        let mut index = KeyIndex { number: version.number, sets: vec![HashSet::new(); rules.keys().len()] };
        let batches: Vec<RecordBatch> = version.partitions.iter().flatten().cloned().collect();
        index.add(rules, &batches)?;
        Ok(Some(index))
    }

    /// Adds the keys of rows. After an error the index is worth nothing.
    pub(super) fn add(&mut self, rules: &Rules, batches: &[RecordBatch]) -> Result<()> {
        for (key, set) in rules.keys().iter().zip(&mut self.sets) {
            for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
                add_keys(rules, key, batch, set)?;
            }
        }
        Ok(())
    }
}

fn add_keys(rules: &Rules, key: &Key, batch: &RecordBatch, set: &mut HashSet<OwnedRow>) -> Result<()> {
    let failed = |error: arrow::error::ArrowError| rules.broken(&error.to_string());
    let columns: Vec<ArrayRef> = key.columns.iter().map(|column| with_one_zero(batch.column(*column))).collect();
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields).and_then(|converter| converter.convert_columns(&columns)).map_err(failed)?;
    let nulls: Vec<_> = columns.iter().filter_map(|column| column.logical_nulls()).collect();
    for row in 0..batch.num_rows() {
        // A key with NULL is like no other.
        if nulls.iter().all(|nulls| nulls.is_valid(row)) && !set.insert(rows.row(row).owned()) {
            return Err(rules.repeated(key, batch, row));
        }
    }
    Ok(())
}

/// Floats with one zero: both are equal.
fn with_one_zero(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => {
            Arc::new(column.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| value + 0.0))
        }
        DataType::Float64 => {
            Arc::new(column.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| value + 0.0))
        }
        _ => column.clone(),
    }
}
