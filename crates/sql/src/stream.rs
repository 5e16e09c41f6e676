//! The stream of a statement's rows, watched: it ends when the statement is cancelled or out of time, its errors are
//! ours, and the statement's report is complete when it ends.
//!
//! Invariant: when the stream is dropped, however far it came, the statement's work is told to stop.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use crate::catalog::Catalogs;
use crate::diagnose::{self, Suspect};
use crate::error::SqlError;
use crate::exec::Afterwards;
use crate::extension_types::ExtensionType;
use crate::progress::host_rows;
use crate::registry::Registration;
use crate::report::StatementReport;
use crate::shared::bytes_of;
use crate::staged_files::Staged;
use crate::syntax::result_name;

/// When a statement must be done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    allowed: Duration,
}

impl Deadline {
    pub(crate) fn after(allowed: Duration) -> Deadline {
        Deadline { at: Instant::now() + allowed, allowed }
    }

    /// Waits until a statement is cancelled or its deadline has passed, which cancels it; gives the error. What commits
    /// before is waited for: this never ends then.
    pub(crate) async fn ended(report: &StatementReport, deadline: Option<Deadline>) -> SqlError {
        tokio::select! {
            biased;
            () = report.cancel().cancelled() => SqlError::Cancelled,
            late = Deadline::passed(deadline) => match report.cancel().cancel() {
                true => late,
                false => std::future::pending().await,
            },
        }
    }

    /// Waits for the deadline, for ever where there is none; gives the error.
    pub(crate) async fn passed(deadline: Option<Deadline>) -> SqlError {
        match deadline {
            Some(Deadline { at, allowed }) => {
                tokio::time::sleep_until(at).await;
                SqlError::TimedOut { milliseconds: allowed.as_millis() }
            }
            None => std::future::pending().await,
        }
    }
}

/// A running statement.
pub(crate) struct Watched {
    pub(crate) inner: SendableRecordBatchStream,
    pub(crate) report: Arc<StatementReport>,
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) deadline: Option<Deadline>,
    /// The catalogs and files that a statement changes.
    pub(crate) writes: Option<Writes>,
    /// The loads that begin when the statement is over, unless it was cancelled from outside.
    pub(crate) afterwards: Option<Afterwards>,
    /// Whether its deadline has passed.
    pub(crate) is_late: bool,
}

/// The catalogs and files that a statement changes.
pub(crate) struct Writes {
    /// Their generation grows when the statement is done.
    pub(crate) catalogs: Arc<Catalogs>,
    /// Files that are moved to their places when the statement has succeeded.
    pub(crate) staged: Option<Staged>,
}

impl Watched {
    /// The rows, their columns of these extension types.
    pub(crate) fn into_stream(self, types: &[Option<ExtensionType>]) -> SendableRecordBatchStream {
        let planned = self.inner.schema();
        let schema = shown(&planned, types);
        let renamed = (!Arc::ptr_eq(&planned, &schema)).then(|| schema.clone());
        let rows = futures::stream::unfold(Some((self, renamed)), |watched| async {
            let (mut watched, renamed) = watched?;
            match watched.next().await {
                Ok(Some(batch)) => {
                    let batch = match &renamed {
                        Some(schema) => with_names(&batch, schema),
                        None => Ok(batch),
                    };
                    Some((batch, Some((watched, renamed))))
                }
                Ok(None) => None,
                Err(error) => Some((Err(DataFusionError::from(error)), None)),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let item = tokio::select! {
            biased;
            // Before the rows: those of a fast source are always there.
            error = Deadline::ended(&self.report, self.deadline) => {
                self.is_late = matches!(error, SqlError::TimedOut { .. });
                return Err(error);
            }
            item = AssertUnwindSafe(self.inner.next()).catch_unwind() => item,
        };
        let error = match item {
            Ok(Some(Ok(batch))) => {
                // The one batch of such a statement counts what it has written: all of it is there.
                if let Some(staged) = self.writes.as_mut().and_then(|writes| writes.staged.take()) {
                    self.commit(staged).await?;
                }
                self.report.add_rows(batch.num_rows() as u64);
                return Ok(Some(batch));
            }
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => SqlError::from(error),
            // An operator or a reader panicked: this statement is over, its connection is not.
            Err(panic) => SqlError::of_panic(panic.as_ref()),
        };
        // Files are searched for the error's place while the statement may be cancelled and has time.
        tokio::select! {
            biased;
            late = Deadline::ended(&self.report, self.deadline) => Err(late),
            explained = diagnose::explain(Suspect::of_plan(&self.plan), error) => Err(explained),
        }
    }

    /// Moves written files to their places. That may take long before the commit point: another statement may hold the
    /// folder's lock, a pipe may have no reader.
    async fn commit(&mut self, staged: Staged) -> Result<(), SqlError> {
        let report = self.report.clone();
        let writing = tokio::task::spawn_blocking(move || staged.commit(&report));
        tokio::select! {
            biased;
            error = Deadline::ended(&self.report, self.deadline) => Err(error),
            done = writing => done.unwrap_or_else(|error| Err(SqlError::Internal(error.to_string()))),
        }
    }
}

/// A batch with the names of another schema.
fn with_names(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
}

/// A result's schema with the names that are shown, since several columns may have one name, and its extension types.
fn shown(planned: &SchemaRef, types: &[Option<ExtensionType>]) -> SchemaRef {
    let type_of = |place: usize| types.get(place).copied().flatten();
    let is_shown = |(place, field): (usize, &Arc<Field>)| {
        result_name(field.name()) == field.name().as_str() && ExtensionType::of(field) == type_of(place)
    };
    if planned.fields().iter().enumerate().all(is_shown) {
        return planned.clone();
    }
    let field = |(place, field): (usize, &Arc<Field>)| {
        let named = field.as_ref().clone().with_name(result_name(field.name()));
        type_of(place).filter(|_| field.data_type().is_string()).map_or(named.clone(), |of| of.read(named))
    };
    let fields: Vec<Field> = planned.fields().iter().enumerate().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, planned.metadata().clone()))
}

/// Rows of a statement that is in the registry until they end: it ends with them, after all else of it has.
pub(crate) fn registered(rows: SendableRecordBatchStream, statement: Registration) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let rows = futures::stream::unfold(Some((rows, statement)), |state| async {
        let (mut rows, statement) = state?;
        match rows.next().await {
            Some(Ok(batch)) => {
                statement.add_bytes(bytes_of(&batch).unwrap_or_default());
                Some((Ok(batch), Some((rows, statement))))
            }
            Some(Err(error)) => {
                drop(rows);
                Some((Err(statement.failed(error.into()).into()), None))
            }
            None => {
                drop(rows);
                statement.end(None);
                None
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Rows whose instants are of a zone, which their texts are shown in.
pub(crate) fn in_zone(rows: SendableRecordBatchStream, zone: &Arc<str>) -> SendableRecordBatchStream {
    let planned = rows.schema();
    let field = |field: &FieldRef| in_zone_field(field, zone);
    let fields: Vec<FieldRef> = planned.fields().iter().map(field).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, planned.metadata().clone()));
    if schema == planned {
        return rows;
    }
    let shown = schema.clone();
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let columns = batch.columns().iter().zip(shown.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(shown.clone(), columns, &options)?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

fn in_zone_field(field: &FieldRef, zone: &Arc<str>) -> FieldRef {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct, Timestamp};
    let data_type = match field.data_type() {
        Timestamp(unit, Some(_)) => Timestamp(*unit, Some(zone.clone())),
        List(items) => List(in_zone_field(items, zone)),
        LargeList(items) => LargeList(in_zone_field(items, zone)),
        FixedSizeList(items, length) => FixedSizeList(in_zone_field(items, zone), *length),
        Struct(fields) => Struct(fields.iter().map(|field| in_zone_field(field, zone)).collect()),
        Map(entries, is_sorted) => Map(in_zone_field(entries, zone), *is_sorted),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.report.add_host_rows(host_rows(&self.plan));
        self.report.finish();
        let was_cancelled = self.report.cancel().is_cancelled() && !self.is_late;
        // Work for this statement that still runs, on the device or in a blocking call, stops at the switch.
        self.report.cancel().cancel();
        if let Some(afterwards) = self.afterwards.take().filter(|_| !was_cancelled) {
            afterwards.begin();
        }
        if let Some(writes) = &self.writes {
            writes.catalogs.changed();
        }
    }
}
