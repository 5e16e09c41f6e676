//! Cubes: queries with their labels, loads and changes.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use warpcube::{
    Connection, CubeAnswer, CubeDefinition, CubeLoad, CubeQueryOptions, OpenCube, SqlError, StatementReport,
};
use warpcube_cube::aggregate::{CellValue, Progress};
use warpcube_cube::answer::{CubeError, TableAnswer};
use warpcube_cube::ask::{CrossTabAnswer, Label, Page};
use warpcube_cube::build::BuildReport;
use warpcube_cube::view::cross_tab_text;

use crate::errors::raised;
use crate::rows::Rows;
use crate::runtime;

/// Rows that are made at once.
const BATCH_ROWS: usize = 1 << 15;

/// A cube in a folder, as it is there whenever it is asked.
#[pyclass(frozen, module = "warpcube._native")]
pub(crate) struct Cube {
    connection: Connection,
    folder: PathBuf,
}

/// The cells that a query of a cube asks for.
#[pyclass(frozen, module = "warpcube._native")]
pub(crate) struct CubeTable {
    cube: Arc<OpenCube>,
    table: Arc<TableAnswer>,
}

impl Cube {
    /// The cube of a folder, which is looked for.
    pub(crate) fn open(py: Python<'_>, connection: Connection, folder: PathBuf) -> PyResult<Cube> {
        let cube = Cube { connection, folder };
        cube.now(py)?;
        Ok(cube)
    }

    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn now(&self, py: Python<'_>) -> PyResult<Arc<OpenCube>> {
        let (connection, name) = (self.connection.clone(), self.name());
        let opened = runtime::wait(py, async move { connection.cube(&name).await })?;
        opened.map_err(|error| raised(py, &error, ""))
    }

    /// Loads a cube; gives the numbers of its rows and cells.
    pub(crate) fn load<'py>(
        py: Python<'py>,
        connection: &Connection,
        folder: PathBuf,
        definition: Option<CubeDefinition>,
        load: CubeLoad,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (connection, report) = (connection.clone(), StatementReport::new());
        let progress = Arc::new(Progress::new());
        let work = async move { connection.load_cube(definition, &folder, load, progress, report).await };
        told(py, &runtime::wait(py, work)?.map_err(|error| raised(py, &error, ""))?)
    }
}

#[pymethods]
impl Cube {
    /// Asks the cube: cells as a `CubeTable`, base cells or rows of the source as `Rows`, an explanation as text.
    fn query<'py>(&self, py: Python<'py>, text: String) -> PyResult<Bound<'py, PyAny>> {
        let cube = self.now(py)?;
        let (connection, asked, query) = (self.connection.clone(), cube.clone(), text.clone());
        let (options, progress) = (CubeQueryOptions::default(), Arc::new(Progress::new()));
        let work = async move { connection.ask_cube(asked, &query, options, progress).await };
        let failed = |error: &SqlError| raised(py, error, "");
        match runtime::wait(py, work)?.map_err(|error| failed(&error))? {
            CubeAnswer::Table(table) => Ok(Bound::new(py, CubeTable { cube, table: Arc::new(*table) })?.into_any()),
            CubeAnswer::Rows(rows) => {
                let schema = rows.schema(cube.cube()).map_err(|error| of_cells(py, &error))?;
                let batches = rows
                    .batches(cube.cube(), BATCH_ROWS)
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|error| of_cells(py, &error))?;
                Ok(Bound::new(py, Rows::of(&text, schema, batches))?.into_any())
            }
            CubeAnswer::Text(text) => Ok(text.into_pyobject(py)?.into_any()),
            CubeAnswer::Source(cell) => {
                let (connection, progress) = (self.connection.clone(), Arc::new(Progress::new()));
                let work = async move { connection.cube_source(cube, cell, progress).await };
                let rows = runtime::wait(py, work)?.map_err(|error| failed(&error))?;
                let schema = rows.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
                Ok(Bound::new(py, Rows::of(&text, schema, rows))?.into_any())
            }
        }
    }

    /// Loads the cube again from its source; with `whole` what was made by hand goes.
    fn refresh<'py>(&self, py: Python<'py>, whole: bool) -> PyResult<Bound<'py, PyDict>> {
        let load = if whole { CubeLoad::Rebuild } else { CubeLoad::Refresh };
        Cube::load(py, &self.connection, self.folder.clone(), None, load)
    }

    /// Changes the dimensions by the statements of a text, all of them or none. Gives their number.
    fn change(&self, py: Python<'_>, text: String) -> PyResult<u64> {
        let (connection, folder, report) = (self.connection.clone(), self.folder.clone(), StatementReport::new());
        let work = async move { connection.change_cube(&folder, &text, false, report).await };
        let changed = runtime::wait(py, work)?.map_err(|error| raised(py, &error, ""))?;
        Ok(changed.changes)
    }
}

#[pymethods]
impl CubeTable {
    /// The cross-tab: `axes` with the names of those in pages, rows and columns; `pages`, each with its labels, the
    /// labels of its columns, and its rows of labels and values.
    fn cross_tab<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let answer = self.answer(py)?;
        let decimal = py.import("decimal")?.getattr("Decimal")?;
        let pages = answer.pages.iter().map(|page| page_of(py, page, &decimal)).collect::<PyResult<Vec<_>>>()?;
        let tab = PyDict::new(py);
        tab.set_item("axes", (&answer.page_axes, &answer.row_axes, &answer.column_axes))?;
        tab.set_item("heading", PyList::new(py, answer.heading.iter().map(|(axis, place, _)| (axis, place)))?)?;
        tab.set_item("pages", pages)?;
        Ok(tab)
    }

    /// The cross-tab as text, with lines of at most `width` characters.
    fn text(&self, py: Python<'_>, width: Option<usize>) -> PyResult<String> {
        Ok(cross_tab_text(&self.cube.cube().model, &self.answer(py)?, width))
    }

    /// The cells in long form: a column for each dimension, `measure`, `value` and `text`.
    fn rows(&self, py: Python<'_>) -> PyResult<Rows> {
        let cells = self.table.long_form(self.cube.cube(), BATCH_ROWS);
        let schema = cells.schema();
        Ok(Rows::of("", schema, cells.collect::<Result<Vec<_>, _>>().map_err(|error| of_cells(py, &error))?))
    }

    /// Warnings of names that stand for one of several elements.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.table.warnings.clone()
    }
}

impl CubeTable {
    fn answer(&self, py: Python<'_>) -> PyResult<CrossTabAnswer> {
        py.detach(|| self.table.cross_tab(self.cube.cube())).map_err(|error| of_cells(py, &error))
    }
}

fn page_of<'py>(py: Python<'py>, page: &Page, decimal: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let captions = |labels: &[Label]| PyTuple::new(py, labels.iter().map(|label| &label.caption));
    let value = |cell: &Option<CellValue>| match cell {
        None => Ok(py.None().into_bound(py)),
        Some(CellValue::Double(value)) => Ok(value.into_pyobject(py)?.into_any()),
        Some(CellValue::Decimal { units, scale: 0 }) => Ok(units.into_pyobject(py)?.into_any()),
        Some(CellValue::Decimal { units, scale }) => {
            decimal.call1((units,))?.call_method1("scaleb", (-i64::from(*scale),))
        }
    };
    let rows = PyList::empty(py);
    for row in &page.rows {
        rows.append((captions(&row.labels)?, row.cells.iter().map(value).collect::<PyResult<Vec<_>>>()?))?;
    }
    let columns = page.columns.iter().map(|labels| captions(labels)).collect::<PyResult<Vec<_>>>()?;
    let dict = PyDict::new(py);
    dict.set_item("labels", captions(&page.labels)?)?;
    dict.set_item("columns", columns)?;
    dict.set_item("rows", rows)?;
    Ok(dict)
}

fn told<'py>(py: Python<'py>, report: &BuildReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("rows", report.rows)?;
    dict.set_item("rows_loaded", report.rows_loaded)?;
    dict.set_item("rows_aside", report.rows_aside)?;
    dict.set_item("cells", report.cells)?;
    Ok(dict)
}

fn of_cells(py: Python<'_>, error: &CubeError) -> PyErr {
    raised(py, &SqlError::CubeCells(error.to_string()), "")
}
