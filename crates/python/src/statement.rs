//! Statements: a query that runs whenever its rows are asked for, or what another statement has given.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use pyo3::prelude::*;
use warpcube::{Connection, GivenTables, Script, StatementKind, StatementReport};

use crate::errors::raised;
use crate::rows::Rows;
use crate::{given, runtime};

/// A statement of a connection.
#[pyclass(frozen, module = "warpcube._native")]
pub(crate) struct Statement {
    connection: Connection,
    pub(crate) sql: String,
    /// The text as lists and logs of statements show it: before constants took the places of parameters.
    text: String,
    given: Option<Arc<GivenTables>>,
    schema: SchemaRef,
    /// The rows of a statement that has run.
    kept: Option<Arc<[RecordBatch]>>,
    /// Whether these tell how many rows were written.
    counts: bool,
}

impl Statement {
    /// One that is not planned yet.
    pub(crate) fn new(
        connection: Connection,
        sql: String,
        text: Option<String>,
        given: Option<Arc<GivenTables>>,
    ) -> Statement {
        let (text, schema) = (text.unwrap_or_else(|| sql.clone()), Arc::new(Schema::empty()));
        Statement { connection, sql, text, given, schema, kept: None, counts: false }
    }

    /// A query is planned, and runs when its rows are asked for; any other statement runs now.
    pub(crate) fn begun(self, py: Python<'_>) -> PyResult<Statement> {
        match self.connection.kind_of(&self.sql) {
            StatementKind::Query => self.planned(py),
            StatementKind::Command => self.done(py),
        }
    }

    /// A query with its columns.
    fn planned(self, py: Python<'_>) -> PyResult<Statement> {
        let (connection, sql, given) = (self.connection.clone(), self.sql.clone(), self.given.clone());
        // Rows that nobody asks for are not computed.
        let statement = connection.database().register_statement(None, &self.text, &StatementReport::new());
        let planned = runtime::wait(py, async move { connection.columns(statement, &sql, given.as_ref()).await });
        let schema = planned?.map_err(|error| raised(py, &error, &self.sql))?;
        Ok(Statement { schema, ..self })
    }

    /// A statement that has run, with its rows.
    fn done(self, py: Python<'_>) -> PyResult<Statement> {
        let rows = self.rows(None)?;
        let batches = rows.taken(py, usize::MAX)?;
        let (schema, counts) = (rows.schema(py)?, rows.counts());
        Ok(Statement { schema, kept: Some(batches.into()), counts, ..self })
    }
}

#[pymethods]
impl Statement {
    /// The text, with constants in place of parameters.
    #[getter]
    fn sql(&self) -> &str {
        &self.sql
    }

    /// Names and SQL types of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let column = |field: &Arc<arrow::datatypes::Field>| (field.name().clone(), warpcube::type_name(field));
        self.schema.fields().iter().map(column).collect()
    }

    /// The text with its parameters.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Whether the only row of a statement that has run tells how many rows were written.
    #[getter]
    fn counts(&self) -> bool {
        self.counts
    }

    /// Whether the statement has run, and its rows are kept.
    #[getter]
    fn is_done(&self) -> bool {
        self.kept.is_some()
    }

    /// Another statement of the same connection, among the same tables of Python or those that `find` finds.
    #[pyo3(signature = (sql, text, find = None))]
    fn derive(&self, py: Python<'_>, sql: String, text: String, find: Option<Py<PyAny>>) -> PyResult<Statement> {
        let given = find.map(given::tables).or_else(|| self.given.clone());
        Statement::new(self.connection.clone(), sql, Some(text), given).begun(py)
    }

    /// Its rows, as they come; `progress` is called with how far it is while it is waited for: done, total or 0, and
    /// whether columns are being loaded.
    #[pyo3(signature = (progress = None))]
    fn rows(&self, progress: Option<Py<PyAny>>) -> PyResult<Rows> {
        let rows = match &self.kept {
            Some(batches) => Rows::of(&self.sql, self.schema.clone(), batches.to_vec()),
            None => Rows::start(&self.connection, &self.sql, &self.text, self.given.clone())?,
        };
        Ok(rows.with_progress(progress))
    }
}

/// The statements of a text.
#[pyfunction]
pub(crate) fn split(text: &str) -> Vec<String> {
    Script::split(text).into_statements(text).into_iter().map(|statement| statement.sql).collect()
}
