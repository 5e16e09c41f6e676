//! Errors as the classes of `warpcube._errors`.

use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;
use warpcube::SqlError;

/// The exception of an error of a statement.
pub(crate) fn raised(py: Python<'_>, error: &SqlError, sql: &str) -> PyErr {
    let made = || {
        let position = error.position_in(sql).map(|position| (position.line, position.column));
        py.import("warpcube._errors")?.getattr("of")?.call1((error.to_string(), sql, position))
    };
    made().map_or_else(|error| error, PyErr::from_value)
}
