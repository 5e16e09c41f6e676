//! Statements that change rows of a table: its lock, from before the plan that runs is made until its rows are there,
//! and what RETURNING gives.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement as ParsedStatement;
use futures::{StreamExt, TryStreamExt};

use super::parsed::plan_parsed;
use crate::error::{Result, SqlError};
use crate::memory_table::{MemoryTable, Returning, WriteLock};
use crate::walk::Walk;

/// The lock of a table, by when it was taken.
pub(super) enum Locked {
    /// After this plan was made, which may be of an older version.
    Now(WriteLock),
    /// Before this plan was made; none where it changes no rows.
    Before(Option<WriteLock>),
}

/// Locks the table whose rows a plan changes when it runs, that it replaces or that is dropped behind it.
pub(super) async fn lock(
    plan: &LogicalPlan,
    dropped: Option<&TableReference>,
    held: Option<WriteLock>,
    state: &SessionState,
) -> Locked {
    let provider = match dropped {
        Some(name) => there(name, state).await,
        None => changed(plan, state).await,
    };
    let Some(provider) = provider else { return Locked::Before(None) };
    match provider.downcast_ref::<MemoryTable>() {
        None => Locked::Before(None),
        Some(table) if held.as_ref().is_some_and(|held| held.is_of(table)) => Locked::Before(held),
        Some(table) => Locked::Now(table.lock().await),
    }
}

/// The table whose rows a plan changes, or that it replaces.
async fn changed(plan: &LogicalPlan, state: &SessionState) -> Option<Arc<dyn TableProvider>> {
    match plan {
        LogicalPlan::Analyze(analyze) => Box::pin(changed(&analyze.input, state)).await,
        LogicalPlan::Dml(dml) => {
            let provider = source_as_provider(&dml.target).ok()?;
            provider.downcast_ref::<MemoryTable>()?.takes_changes().then_some(provider)
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) if create.or_replace => {
            there(&create.name, state).await
        }
        _ => None,
    }
}

/// A table of the catalog.
async fn there(name: &TableReference, state: &SessionState) -> Option<Arc<dyn TableProvider>> {
    let schema = state.schema_for_ref(name.clone()).ok()?;
    // A file's name is no table in memory; a lookup would read the file.
    if schema.table_exist(name.table()) { schema.table(name.table()).await.ok()? } else { None }
}

/// A stream that holds a lock until it has ended or is dropped.
pub(super) fn holding(rows: SendableRecordBatchStream, lock: WriteLock) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let held = futures::stream::unfold((rows, Some(lock)), |(mut rows, lock)| async {
        let next = rows.next().await?;
        Some((next, (rows, lock)))
    });
    Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), held))
}

/// Plans RETURNING, for the configuration of the statement's tasks.
pub(super) async fn returning(state: &SessionState, select: ParsedStatement) -> Result<Arc<Returning>> {
    let plan = plan_parsed(state, select).await?;
    let is_rowwise = |plan: &LogicalPlan| !matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_));
    if plan.exists(|plan| Ok(!is_rowwise(plan)))? {
        return Err(SqlError::Unsupported("aggregates and window functions in RETURNING".into()));
    }
    Ok(Arc::new(Returning::new(state.create_physical_plan(&plan).await?)))
}

/// What RETURNING gives when a statement has ended, in the place of its count.
pub(super) fn returned(count: SendableRecordBatchStream, returning: Arc<Returning>) -> SendableRecordBatchStream {
    let schema = returning.schema();
    let rows = async move {
        count.try_collect::<Vec<_>>().await?;
        Ok::<_, DataFusionError>(futures::stream::iter(returning.take().map(Ok)))
    };
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(rows).try_flatten()))
}
