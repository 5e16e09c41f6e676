//! The sink of statements that write tables in memory.
//!
//! Rows are collected, admitted by the table's rules and charged to the memory pool as they come ([`super::ledger`]).
//! When the last one is there, one version is put in place, or none: that is the commit point of the statement, and one
//! that is cancelled or out of time before changes nothing.

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
use super::{Action, Charge, Charged, Returning, Role, Shared, Version};
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
    /// Of `rows`; dropped before them.
    charges: Vec<Charge>,
    /// New rows, each batch admitted.
    rows: Vec<RecordBatch>,
    /// Rows of the table that change.
    changes: Vec<Change>,
    /// Places of `rows` that are inserted, where others take the places of rows.
    inserted: Vec<(usize, usize)>,
}

/// The statement that writes.
struct Statement {
    /// None for plans that run outside of a connection.
    report: Option<Arc<StatementReport>>,
}

impl Statement {
    fn of(context: &TaskContext) -> Statement {
        Statement { report: StatementReport::of(context) }
    }

    fn check(&self) -> Result<()> {
        self.report.as_ref().map_or(Ok(()), |report| report.check())
    }

    fn commit(&self) -> Result<()> {
        self.report.as_ref().map_or(Ok(()), |report| report.commit())
    }
}

impl Collected {
    fn push(&mut self, rows: RecordBatch, charge: Charge) {
        self.charges.push(charge);
        self.rows.push(rows);
    }
}

impl RowsSink {
    pub(super) fn new(shared: Arc<Shared>, base: Arc<Version>, role: Role, columns: &SchemaRef) -> RowsSink {
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        let schema = Arc::new(Schema::new(columns.fields().iter().map(nullable).collect::<Vec<_>>()));
        RowsSink { shared, base, role, schema }
    }

    fn charge(&self, batch: &RecordBatch) -> Result<Charge> {
        self.shared.common.ledger.charge(&self.shared.name, batch)
    }

    /// Takes one batch.
    fn take(&self, batch: &RecordBatch, collected: &mut Collected) -> Result<()> {
        let rules = &self.shared.rules;
        if self.role == Role::Rows {
            let rows = rules.admit(batch)?;
            let charge = self.charge(&rows)?;
            collected.push(rows, charge);
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
        let rows = rules.admit(&kept)?;
        let charge = self.charge(&rows)?;
        collected.push(rows, charge);
        for (place, row) in new.into_iter().enumerate() {
            match is(row as usize, Action::Insert) {
                true => collected.inserted.push((source, place)),
                false => collected.changes.push((number(row as usize)?, Some((source, place)))),
            }
        }
        Ok(())
    }

    /// Puts what was collected in place.
    fn finish(&self, collected: &mut Collected, statement: &Statement) -> Result<u64> {
        match self.role {
            Role::Rows => self.append(&collected.rows, statement),
            // The statement holds the lock; without one, as in programs that embed the session, versions are compared.
            _ => self.change(collected, statement),
        }
    }

    /// Appends rows to the current version.
    fn append(&self, rows: &[RecordBatch], statement: &Statement) -> Result<u64> {
        let count = rows.iter().map(|batch| batch.num_rows() as u64).sum();
        if count == 0 {
            return Ok(0);
        }
        let current = self.shared.current.read().clone();
        let next = current.with_rows(rows, &|batch| self.charge(batch).map(Arc::new))?;
        let check = || statement.check();
        self.put(&current, next, statement, |index, edit| index.append(&self.shared.rules, rows, edit, &check))?;
        Ok(count)
    }

    /// Puts the changes to the version that they are of in place.
    fn change(&self, collected: &mut Collected, statement: &Statement) -> Result<u64> {
        let Collected { rows, changes, inserted, .. } = collected;
        let count = (changes.len() + inserted.len()) as u64;
        changes.sort_unstable();
        if changes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(self.shared.rules.broken("one of its rows is matched by several rows, and would change twice"));
        }
        if count == 0 {
            return Ok(0);
        }
        let check = || statement.check();
        let charge = |batch: &RecordBatch| self.charge(batch).map(Arc::new);
        let mut next = self.base.with_changes(changes, rows, &charge, &check)?;
        if !inserted.is_empty() {
            next = next.with_rows(&picked(rows, inserted)?, &charge)?;
        }
        let changes = Changes { changes, inserted, rows };
        self.put(&self.base, next, statement, |index, edit| {
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
        statement: &Statement,
        edit: impl FnOnce(&mut KeyIndex, &mut Edit) -> Result<()>,
    ) -> Result<()> {
        let rules = &self.shared.rules;
        let mut keys = self.shared.keys.lock();
        self.check_current(&self.shared.current.read(), before)?;
        if keys.as_ref().is_none_or(|index| index.number != before.number) {
            *keys = None;
            *keys = KeyIndex::of(rules, before, &self.shared.common.ledger, &|| statement.check())?;
        }
        let (number, is_empty) = (next.number, next.is_empty());
        let mut edited = Edit::default();
        let ready = match keys.as_mut().filter(|_| !is_empty) {
            Some(index) => edit(index, &mut edited).and_then(|()| index.charge(&self.shared.name)),
            None => Ok(()),
        };
        let done = ready.and_then(|()| {
            let mut current = self.shared.current.write();
            self.check_current(&current, before)?;
            statement.commit()?;
            *current = Arc::new(next);
            self.shared.common.changed();
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
        let consumer = MemoryConsumer::new(format!("changes of table {}", self.shared.name));
        let reservation = consumer.register(context.memory_pool());
        let (statement, mut collected) = (Statement::of(context), Collected::default());
        while let Some(batch) = data.try_next().await? {
            // Rows are charged to the table. What changes is charged past the limit, too: where tables have taken all
            // memory, rows can be deleted.
            if self.role != Role::Rows {
                reservation.grow(batch.num_rows() * size_of::<Change>());
            }
            self.take(&batch, &mut collected)?;
        }
        if let Some(returning) = context.session_config().get_extension::<Returning>() {
            // Rows that leave as they were, then those that come, which are charged.
            let charge = |batch: &RecordBatch| self.charge(batch).map(Arc::new);
            let mut rows = match self.role {
                Role::Rows => Charged::default(),
                _ => {
                    let is_deleted = |(_, new): &&Change| new.is_none();
                    let deleted: Vec<Change> = collected.changes.iter().filter(is_deleted).copied().collect();
                    self.base.rows_of(&deleted, &charge)?
                }
            };
            rows.batches.extend(collected.rows.iter().cloned());
            returning.compute(rows, charge, context).await?;
        }
        let writing = match self.role {
            Role::Rows => Some(self.shared.writers.clone().lock_owned().await),
            _ => None,
        };
        // Versions and keys of many rows take long: the statement is cancelled and out of time meanwhile.
        let sink = self.clone();
        let finished = tokio::task::spawn_blocking(move || {
            let _writing = writing;
            sink.finish(&mut collected, &statement)
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
