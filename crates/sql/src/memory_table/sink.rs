//! The sink of statements that write tables in memory.
//!
//! Rows are collected, admitted by the table's rules and charged to the memory pool as they come. When the last one is
//! there, one version is put in place, or none: that is the commit point of the statement, and one that is cancelled
//! or out of time before changes nothing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Array, AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::{Field, Int64Type, Schema, SchemaRef, UInt64Type};
use async_trait::async_trait;
use datafusion::datasource::sink::DataSink;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures::TryStreamExt;

use super::keys::{Changes, Edit, KeyIndex};
use super::versions::{Change, failed};
use super::{Action, Returning, Role, Shared, Version};
use crate::error::{Result, SqlError};
use crate::report::StatementReport;

/// Takes the rows of INSERT, DELETE, UPDATE and MERGE.
#[derive(Debug, Clone)]
pub(super) struct RowsSink {
    shared: Arc<Shared>,
    /// The version that row numbers are of.
    base: Arc<Version>,
    role: Role,
    /// The columns that come, all of which may have NULL: NOT NULL is a rule of the table.
    schema: SchemaRef,
}

/// What a statement has collected.
#[derive(Debug, Default)]
struct Collected {
    /// New rows, each batch admitted.
    rows: Vec<RecordBatch>,
    /// Rows of the table that change.
    changes: Vec<Change>,
    /// Places of `rows` that are inserted, where others take the places of rows.
    inserted: Vec<(usize, usize)>,
}

impl RowsSink {
    pub(super) fn new(shared: Arc<Shared>, base: Arc<Version>, role: Role, columns: &SchemaRef) -> RowsSink {
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        let schema = Arc::new(Schema::new(columns.fields().iter().map(nullable).collect::<Vec<_>>()));
        RowsSink { shared, base, role, schema }
    }

    /// Takes one batch.
    fn take(&self, batch: &RecordBatch, collected: &mut Collected) -> Result<()> {
        let rules = &self.shared.rules;
        if self.role == Role::Rows {
            collected.rows.push(rules.admit(batch)?);
            return Ok(());
        }
        let numbers = batch.column(0).as_primitive_opt::<UInt64Type>();
        let numbers = numbers.ok_or_else(|| SqlError::Internal("row numbers of another type".into()))?;
        let number = |row: usize| match numbers.is_valid(row) {
            true => Ok(numbers.value(row)),
            false => Err(rules.broken("a row that the table does not have would be changed")),
        };
        if self.role == Role::Deleted {
            for row in 0..batch.num_rows() {
                collected.changes.push((number(row)?, None));
            }
            return Ok(());
        }
        let actions = batch.column(1).as_primitive_opt::<Int64Type>();
        let actions = actions.ok_or_else(|| SqlError::Internal("actions of another type".into()))?;
        if actions.null_count() > 0 {
            return Err(SqlError::Internal("a row that nothing becomes of".into()));
        }
        let is = |row: usize, action: Action| actions.value(row) == action as i64;
        // Rows that are deleted have no values to be held against rules.
        let new: Vec<u64> =
            (0..batch.num_rows()).filter(|row| !is(*row, Action::Delete)).map(|row| row as u64).collect();
        for row in (0..batch.num_rows()).filter(|row| is(*row, Action::Delete)) {
            collected.changes.push((number(row)?, None));
        }
        let columns: Vec<usize> = (2..batch.num_columns()).collect();
        let mut kept = batch.project(&columns).map_err(failed)?;
        if new.len() < batch.num_rows() {
            kept = arrow::compute::take_record_batch(&kept, &UInt64Array::from(new.clone())).map_err(failed)?;
        }
        let source = collected.rows.len();
        collected.rows.push(rules.admit(&kept)?);
        for (place, row) in new.into_iter().enumerate() {
            match is(row as usize, Action::Insert) {
                true => collected.inserted.push((source, place)),
                false => collected.changes.push((number(row as usize)?, Some((source, place)))),
            }
        }
        Ok(())
    }

    /// Puts what was collected in place.
    fn finish(&self, collected: Collected, report: Option<&StatementReport>) -> Result<u64> {
        match self.role {
            Role::Rows => self.append(&collected.rows, report),
            // The statement holds the lock; without one, as in programs that embed the session, versions are compared.
            _ => self.change(collected, report),
        }
    }

    /// Appends rows to the current version.
    fn append(&self, rows: &[RecordBatch], report: Option<&StatementReport>) -> Result<u64> {
        let count = rows.iter().map(|batch| batch.num_rows() as u64).sum();
        if count == 0 {
            return Ok(0);
        }
        let current = self.shared.current.read().clone();
        let next = current.with_rows(rows)?;
        let check = || report.map_or(Ok(()), StatementReport::check);
        self.put(&current, next, report, |index, edit| index.append(&self.shared.rules, rows, edit, &check))?;
        Ok(count)
    }

    /// Puts the changes to the version that they are of in place.
    fn change(&self, collected: Collected, report: Option<&StatementReport>) -> Result<u64> {
        let Collected { rows, mut changes, inserted } = collected;
        let count = (changes.len() + inserted.len()) as u64;
        changes.sort_unstable();
        if changes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(self.shared.rules.broken("one of its rows is matched by several rows, and would change twice"));
        }
        if count == 0 {
            return Ok(0);
        }
        let check = || report.map_or(Ok(()), StatementReport::check);
        let mut next = self.base.with_changes(&changes, &rows, &check)?;
        if !inserted.is_empty() {
            next = next.with_rows(&picked(&rows, &inserted)?)?;
        }
        let changes = Changes { changes: &changes, inserted: &inserted, rows: &rows };
        self.put(&self.base, next, report, |index, edit| {
            index.change(&self.shared.rules, &self.base, &changes, edit, &check)
        })?;
        Ok(count)
    }

    /// Puts a version in the place of the one that it was made from, and its keys, as `edit` makes them. This is the
    /// commit point of the statement.
    fn put(
        &self,
        before: &Version,
        next: Version,
        report: Option<&StatementReport>,
        edit: impl FnOnce(&mut KeyIndex, &mut Edit) -> Result<()>,
    ) -> Result<()> {
        let rules = &self.shared.rules;
        let mut keys = self.shared.keys.lock();
        self.check_current(&self.shared.current.read(), before)?;
        if keys.as_ref().is_none_or(|index| index.number != before.number) {
            *keys = None;
            *keys = KeyIndex::of(rules, before, &|| report.map_or(Ok(()), StatementReport::check))?;
        }
        let (number, is_empty) = (next.number, next.is_empty());
        let mut edited = Edit::default();
        let ready = match keys.as_mut().filter(|_| !is_empty) {
            Some(index) => edit(index, &mut edited),
            None => Ok(()),
        };
        let done = ready.and_then(|()| {
            let mut current = self.shared.current.write();
            self.check_current(&current, before)?;
            report.map_or(Ok(()), StatementReport::commit)?;
            *current = Arc::new(next);
            self.shared.generation.fetch_add(1, Ordering::AcqRel);
            Ok(())
        });
        if let Some(index) = keys.as_mut() {
            match &done {
                Ok(()) => index.number = number,
                Err(_) => index.undo(edited),
            }
            if done.is_ok() && is_empty {
                index.clear();
            }
        }
        done
    }

    fn check_current(&self, current: &Version, before: &Version) -> Result<()> {
        let what = match self.shared.is_listed.load(Ordering::Relaxed) {
            true if current.number == before.number => return Ok(()),
            true => "changed",
            false => "been dropped or replaced",
        };
        Err(self.shared.rules.broken(&format!("it has {what} since the statement was planned; run it again")))
    }
}

/// The rows at these places, which come by ascending batch.
fn picked(rows: &[RecordBatch], places: &[(usize, usize)]) -> Result<Vec<RecordBatch>> {
    let of_batch = |places: &[(usize, usize)]| {
        let numbers: Vec<u64> = places.iter().map(|(_, row)| *row as u64).collect();
        arrow::compute::take_record_batch(&rows[places[0].0], &UInt64Array::from(numbers)).map_err(failed)
    };
    places.chunk_by(|a, b| a.0 == b.0).map(of_batch).collect()
}

#[async_trait]
impl DataSink for RowsSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> DataFusionResult<u64> {
        let consumer = MemoryConsumer::new(format!("rows for table {}", self.shared.name));
        let reservation = consumer.register(context.memory_pool());
        let mut collected = Collected::default();
        while let Some(batch) = data.try_next().await? {
            reservation.try_grow(batch.get_array_memory_size())?;
            self.take(&batch, &mut collected)?;
        }
        if let Some(returning) = context.session_config().get_extension::<Returning>() {
            let rows = match self.role {
                Role::Deleted => self.base.rows_of(&collected.changes)?,
                _ => collected.rows.clone(),
            };
            returning.compute(rows, context).await?;
        }
        let writing = match self.role {
            Role::Rows => Some(self.shared.writers.clone().lock_owned().await),
            _ => None,
        };
        // Versions and keys of many rows take long: the statement is cancelled and out of time meanwhile.
        let (sink, report) = (self.clone(), StatementReport::of(context));
        let finished = tokio::task::spawn_blocking(move || {
            let _writing = writing;
            sink.finish(collected, report.as_deref())
        });
        Ok(finished.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??)
    }
}

impl DisplayAs for RowsSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let what = match self.role {
            Role::Deleted => "rows out of",
            Role::Changed => "changes of",
            Role::Rows | Role::Numbered | Role::Returned => "rows into",
        };
        write!(f, "{what} table {}", self.shared.name)
    }
}
