//! Versions of a table, and how one follows from another.
//!
//! Rows are numbered through all batches of all partitions, from 0. Batches without a changed row are shared with the
//! version before. Small batches at the end are merged: with each one that comes, those before it that have no more
//! rows, so that a row is copied once for each doubling, and a table of n rows has n / [`MERGED_ROWS_MAX`] batches and
//! a few.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{concat_batches, interleave, take_record_batch};

use super::{Charge, Charged};
use crate::error::{Result, SqlError};

/// Rows of a batch that others are merged into: a batch of DataFusion's operators.
const MERGED_ROWS_MAX: usize = 8192;

/// The rows of a table at one time.
#[derive(Debug)]
pub(crate) struct Version {
    /// Unique in the process.
    pub(super) number: u64,
    /// Of each batch; dropped before the batches.
    charges: Vec<Vec<Arc<Charge>>>,
    /// At least one.
    pub(super) partitions: Vec<Vec<RecordBatch>>,
}

/// Charges a batch that comes into a version.
pub(super) type ChargeBatch<'a> = &'a dyn Fn(&RecordBatch) -> Result<Arc<Charge>>;

/// What becomes of a row: nothing is left of it, or the row of a batch of new ones takes its place.
pub(super) type Change = (u64, Option<(usize, usize)>);

impl Version {
    pub(super) fn new(mut partitions: Vec<Charged>) -> Version {
        static VERSIONS: AtomicU64 = AtomicU64::new(0);
        if partitions.is_empty() {
            partitions.push(Charged::default());
        }
        let (charges, partitions) = partitions.into_iter().map(|it| (it.charges, it.batches)).unzip();
        Version { number: VERSIONS.fetch_add(1, Ordering::Relaxed), charges, partitions }
    }

    /// The partitions with the charges of their batches.
    fn charged(&self) -> impl Iterator<Item = (&Vec<RecordBatch>, &Vec<Arc<Charge>>)> {
        self.partitions.iter().zip(&self.charges)
    }

    /// The version with more rows at the end.
    pub(super) fn with_rows(&self, rows: &[RecordBatch], charge: ChargeBatch) -> Result<Version> {
        let copy = |(batches, charges): (&Vec<RecordBatch>, &Vec<Arc<Charge>>)| Charged {
            charges: charges.clone(),
            batches: batches.clone(),
        };
        let mut partitions: Vec<Charged> = self.charged().map(copy).collect();
        if let Some(Charged { charges, batches: last }) = partitions.last_mut() {
            for batch in rows.iter().filter(|batch| batch.num_rows() > 0) {
                let (mut first, mut merged) = (last.len(), batch.num_rows());
                while first > 0
                    && last[first - 1].num_rows() <= merged
                    && last[first - 1].num_rows() + merged <= MERGED_ROWS_MAX
                {
                    first -= 1;
                    merged += last[first].num_rows();
                }
                let batch = match first == last.len() {
                    true => batch.clone(),
                    false => concat_batches(&batch.schema(), last[first..].iter().chain([batch])).map_err(failed)?,
                };
                let charge = charge(&batch)?;
                charges.truncate(first);
                charges.push(charge);
                last.truncate(first);
                last.push(batch);
            }
        }
        Ok(Version::new(partitions))
    }

    /// Whether no row is left.
    pub(super) fn is_empty(&self) -> bool {
        self.partitions.iter().all(Vec::is_empty)
    }

    /// The batches that hold rows of these ascending numbers, and the places of the rows in them.
    pub(super) fn places_of(&self, numbers: impl Iterator<Item = u64>) -> (Vec<&RecordBatch>, Vec<(usize, usize)>) {
        let (mut numbers, mut first) = (numbers.peekable(), 0);
        let (mut found, mut places) = (Vec::new(), Vec::new());
        for batch in self.partitions.iter().flatten() {
            let end = first + batch.num_rows() as u64;
            if numbers.peek().is_some_and(|number| *number < end) {
                found.push(batch);
            }
            while let Some(number) = numbers.next_if(|number| *number < end) {
                places.push((found.len() - 1, (number - first) as usize));
            }
            first = end;
        }
        (found, places)
    }

    /// Copies of the rows that change, each once, in the table's order.
    pub(super) fn rows_of(&self, changes: &[Change], charge: ChargeBatch) -> Result<Charged> {
        let mut numbers: Vec<u64> = changes.iter().map(|(row, _)| *row).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let (mut left, mut first, mut found) = (numbers.as_slice(), 0, Charged::default());
        for batch in self.partitions.iter().flatten() {
            let end = first + batch.num_rows() as u64;
            let (here, later) = left.split_at(left.partition_point(|row| *row < end));
            if !here.is_empty() {
                let places = UInt64Array::from_iter_values(here.iter().map(|row| row - first));
                let rows = take_record_batch(batch, &places).map_err(failed)?;
                let charge = charge(&rows)?;
                found.push(rows, charge);
            }
            (left, first) = (later, end);
        }
        Ok(found)
    }

    /// The version with changed rows, which come by ascending number, each once; new ones are in `rows`. `check` is
    /// asked for each batch that changes.
    pub(super) fn with_changes(
        &self,
        changes: &[Change],
        rows: &[RecordBatch],
        charge: ChargeBatch,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Version> {
        let (mut left, mut first) = (changes, 0);
        let mut partitions = Vec::with_capacity(self.partitions.len());
        for (batches, charges) in self.charged() {
            let mut kept = Charged::default();
            for (batch, charged) in batches.iter().zip(charges) {
                let end = first + batch.num_rows() as u64;
                let (here, later) = left.split_at(left.partition_point(|(row, _)| *row < end));
                match here.is_empty() {
                    true => kept.push(batch.clone(), charged.clone()),
                    false => {
                        check()?;
                        if let Some(batch) = changed(batch, first, here, rows)? {
                            let charge = charge(&batch)?;
                            kept.push(batch, charge);
                        }
                    }
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
        interleave(&arrays, &places).map_err(failed)
    };
    let columns = (0..batch.num_columns()).map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    let batch = RecordBatch::try_new_with_options(batch.schema(), columns, &options);
    Ok(Some(batch.map_err(|error| SqlError::Internal(error.to_string()))?))
}

pub(super) fn failed(error: arrow::error::ArrowError) -> SqlError {
    SqlError::Execution(error.to_string())
}
