//! Objects of Python as tables: whatever gives an Arrow stream.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::ffi_stream::ArrowArrayStreamReader;
use arrow_pyarrow::FromPyArrow;
use pyo3::prelude::*;
use warpcube::{GivenRows, GivenTables, SqlError};

/// The rows of an object that has `__arrow_c_stream__`, which are not copied.
pub(crate) fn rows(object: &Bound<'_, PyAny>) -> PyResult<GivenRows> {
    let reader = ArrowArrayStreamReader::from_pyarrow_bound(object)?;
    let schema = reader.schema();
    // The stream may need the interpreter's lock on another thread.
    let batches: Result<Vec<RecordBatch>, _> = object.py().detach(|| reader.collect());
    batches
        .map(|batches| (schema, batches))
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(format!("the rows cannot be read: {error}")))
}

/// Tables that `find` finds: a function of a name that gives an object with an Arrow stream, or None.
pub(crate) fn tables(find: Py<PyAny>) -> Arc<GivenTables> {
    GivenTables::new(move |name| {
        Python::attach(|py| {
            let found = find.bind(py).call1((name,))?;
            if found.is_none() { Ok(None) } else { rows(&found).map(Some) }
        })
        .map_err(|error: PyErr| SqlError::Execution(format!("'{name}' of Python cannot be read as a table: {error}")))
    })
}
