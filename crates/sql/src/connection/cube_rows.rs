//! The rows that a cube is made of, from a connection's statements.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use tokio::runtime::Handle;
use warpcube_cube::build::{Tables, TablesError, TextColumns, TextFiles};
use warpcube_cube::model::{CubeModel, Dimension};

use super::{Connection, Execution};
use crate::catalog::{Copies, TEXT_FILES, TextReading, WrittenColumns, means_text};
use crate::cubes::CubeDefinition;
use crate::error::{Result, SqlError};
use crate::plans::{is_sorted, reads_text, written_columns};
use crate::report::StatementReport;
use crate::syntax::beside;

/// Runs the queries of a definition in a connection. It is used on threads that may block.
pub(super) struct ConnectionTables {
    connection: Connection,
    runtime: Handle,
    /// Cancels the statement that runs.
    report: Arc<StatementReport>,
    /// Where relative names of files are looked for, before the current folder.
    folders: Vec<PathBuf>,
    /// Types of text files are guessed.
    guesses_types: bool,
    /// The guess is that of the first records.
    of_first_records: bool,
    copies: Arc<Copies>,
}

impl ConnectionTables {
    pub(super) fn new(
        connection: Connection,
        report: Arc<StatementReport>,
        definition: &CubeDefinition,
    ) -> ConnectionTables {
        ConnectionTables {
            connection,
            runtime: Handle::current(),
            report,
            folders: definition.folders(),
            guesses_types: definition.guesses_types,
            of_first_records: false,
            copies: Arc::default(),
        }
    }

    /// The tables of a cube that is there. Cubes with guessed types have those of the first records, in which codes
    /// with leading zeros are numbers, unless an element has such a code for its name.
    pub(super) fn of_cube(self, model: &CubeModel) -> ConnectionTables {
        let is_code =
            |name: &str| name.len() > 1 && name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
        let has_code = |dimension: &Dimension| {
            let mut elements = dimension.elements().iter().map(|id| dimension.element(*id));
            elements.any(|element| is_code(element.name()))
        };
        let of_first_records = self.guesses_types && !model.dimensions().iter().any(has_code);
        ConnectionTables { of_first_records, ..self }
    }

    /// How a statement reads text files.
    ///
    /// # Errors
    /// Those of [`written_columns`].
    async fn reading(&self, sql: &str, files: &TextFiles) -> Result<TextReading> {
        let TextFiles { delimiter, quote, header, encoding, columns, is_needed } = files.clone();
        let some = |columns| TextReading {
            delimiter,
            quote,
            header,
            encoding,
            columns: WrittenColumns::Some(columns),
            copies: self.copies.clone(),
        };
        Ok(match columns {
            _ if self.of_first_records => {
                TextReading { columns: WrittenColumns::OfFirstRecords, ..some(HashMap::new()) }
            }
            _ if self.guesses_types => some(HashMap::new()),
            TextColumns::All => TextReading { columns: WrittenColumns::All, ..some(HashMap::new()) },
            TextColumns::Of { keys, decimals, named } => {
                let plan = TEXT_FILES.scope(Arc::new(some(HashMap::new())), self.connection.planned(sql)).await;
                // The error comes from running the statement.
                let Ok(plan) = plan else { return Ok(some(HashMap::new())) };
                if is_needed && !reads_text(&plan)? {
                    let reason = "delimiter, quote, encoding and header are about text files such as CSV, and the \
                                  query reads none: leave them out";
                    return Err(SqlError::CubeFacts(reason.into()));
                }
                some(written_columns(&plan, &keys, &decimals, &named)?)
            }
        })
    }
}

impl Tables for ConnectionTables {
    fn query(&self, sql: &str, files: &TextFiles) -> std::result::Result<Box<dyn RecordBatchReader + '_>, TablesError> {
        let report = StatementReport::new();
        let sql = beside(sql, &self.folders);
        let start = async {
            let reading = self.reading(&sql, files).await?;
            TEXT_FILES.scope(Arc::new(reading), self.connection.execute_with(&sql, report)).await
        };
        let execution = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.report.cancel().cancelled() => Err(SqlError::Cancelled),
                started = start => started,
            }
        })?;
        let Execution { schema, stream, .. } = execution;
        Ok(Box::new(Rows { schema, stream, tables: self }))
    }

    fn is_sorted(&self, sql: &str, files: &TextFiles) -> std::result::Result<bool, TablesError> {
        let sql = beside(sql, &self.folders);
        let plan = async {
            let reading = self.reading(&sql, files).await?;
            TEXT_FILES.scope(Arc::new(reading), self.connection.planned(&sql)).await
        };
        Ok(is_sorted(&self.runtime.block_on(plan)?))
    }

    fn is_text(&self, file: &str) -> bool {
        !self.guesses_types && means_text(file)
    }

    fn guesses_types(&self) -> bool {
        self.guesses_types
    }
}

/// The batches of a statement.
struct Rows<'a> {
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    tables: &'a ConnectionTables,
}

impl Iterator for Rows<'_> {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let ConnectionTables { runtime, report, .. } = self.tables;
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
