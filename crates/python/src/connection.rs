//! Databases and their connections.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpcube::{CubeDefinition, CubeLoad, Database, DatabaseOptions, SettingOrigin};

use crate::cube::Cube;
use crate::errors::raised;
use crate::statement::Statement;
use crate::{given, runtime};

/// A connection to a database in this process.
#[pyclass(frozen, module = "warpcube._native")]
pub(crate) struct Connection {
    pub(crate) connection: warpcube::Connection,
}

#[pymethods]
impl Connection {
    /// Opens a database: of the catalog in a folder, or one that is not kept.
    #[new]
    fn new(py: Python<'_>, folder: Option<PathBuf>, settings: BTreeMap<String, String>) -> PyResult<Connection> {
        let origin = SettingOrigin::Flag("connect()".into());
        let assignment = |(name, value)| warpcube::Assignment { name, value, origin: origin.clone() };
        let mut options = DatabaseOptions::new().with_assignments(settings.into_iter().map(assignment));
        if let Some(folder) = folder {
            options = options.with_catalog(folder);
        }
        let opened = runtime::wait(py, async { Database::open(options) })?;
        let database = opened.map_err(|error| raised(py, &error, ""))?;
        runtime::close_at_end(&database);
        Ok(Connection { connection: database.connect() })
    }

    /// Another connection to the same database.
    fn connect(&self) -> Connection {
        Connection { connection: self.connection.database().connect() }
    }

    /// A statement: a query is planned, and runs when its rows are asked for; any other runs now. Lists and logs show
    /// `text` where that is given.
    #[pyo3(signature = (sql, find, text = None))]
    fn statement(
        &self,
        py: Python<'_>,
        sql: String,
        find: Option<Py<PyAny>>,
        text: Option<String>,
    ) -> PyResult<Statement> {
        Statement::new(self.connection.clone(), sql, text, find.map(given::tables)).begun(py)
    }

    /// Makes a table of this connection alone of an object that gives an Arrow stream.
    fn register(&self, py: Python<'_>, name: String, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = given::rows(object)?;
        let connection = self.connection.clone();
        let registered = runtime::wait(py, async move { connection.register(&name, rows).await })?;
        registered.map_err(|error| raised(py, &error, ""))
    }

    /// Drops a table of this connection alone; gives False where there is none.
    fn unregister(&self, py: Python<'_>, name: String) -> PyResult<bool> {
        let connection = self.connection.clone();
        runtime::wait(py, async move { connection.unregister(&name).await })?.map_err(|error| raised(py, &error, ""))
    }

    /// The cube in a folder.
    fn cube(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Cube> {
        Cube::open(py, self.connection.clone(), folder)
    }

    /// Makes the cube of a definition, a file of YAML, in a folder.
    fn create_cube<'py>(&self, py: Python<'py>, definition: PathBuf, folder: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        let read = self.connection.check_read(&definition).and_then(|()| CubeDefinition::read(&definition));
        let definition = read.map_err(|error| raised(py, &error, ""))?;
        Cube::load(py, &self.connection, folder, Some(definition), CubeLoad::Create)
    }
}
