//! The rows that a cube is made of, from a session's statements.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use tokio::runtime::Handle;
use warpcube_cube::build::{Tables, TablesError};

use super::{Execution, Session};
use crate::cubes::CubeDefinition;
use crate::error::SqlError;
use crate::report::StatementReport;
use crate::syntax::beside;

/// Runs the queries of a definition in a session. It is used on threads that may block.
pub(super) struct SessionTables {
    session: Session,
    runtime: Handle,
    /// Cancels the statement that runs.
    report: Arc<StatementReport>,
    /// Where relative names of files are looked for, before the current folder.
    folders: Vec<PathBuf>,
}

impl SessionTables {
    pub(super) fn new(session: Session, report: Arc<StatementReport>, definition: &CubeDefinition) -> SessionTables {
        SessionTables { session, runtime: Handle::current(), report, folders: definition.folders() }
    }
}

impl Tables for SessionTables {
    fn query(&self, sql: &str) -> Result<Box<dyn RecordBatchReader + '_>, TablesError> {
        let report = StatementReport::new();
        let sql = beside(sql, &self.folders);
        let execution = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.report.cancel().cancelled() => Err(SqlError::Cancelled),
                started = self.session.execute_with(&sql, report) => started,
            }
        })?;
        let Execution { schema, stream, .. } = execution;
        Ok(Box::new(Rows { schema, stream, tables: self }))
    }
}

/// The batches of a statement.
struct Rows<'a> {
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    tables: &'a SessionTables,
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let SessionTables { runtime, report, .. } = self.tables;
        let next = runtime.block_on(async {
            tokio::select! {
                biased;
                () = report.cancel().cancelled() => Some(Err(SqlError::Cancelled)),
                batch = self.stream.next() => batch.map(|batch| batch.map_err(SqlError::from)),
            }
        });
        next.map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Rows<'_> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
