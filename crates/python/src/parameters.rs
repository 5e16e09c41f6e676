//! Parameters of statements.

use std::collections::BTreeMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpcube::Parameters;

/// The values of parameters, as SQL.
#[derive(FromPyObject)]
pub(crate) enum Values {
    Named(BTreeMap<String, String>),
    Ordered(Vec<String>),
}

/// The statement with constants in place of its parameters.
#[pyfunction]
pub(crate) fn bind(sql: &str, values: Values) -> PyResult<String> {
    let values = match values {
        Values::Named(values) => Parameters::Named(values),
        Values::Ordered(values) => Parameters::Ordered(values),
    };
    warpcube::bind(sql, &values).map(|bound| bound.text).map_err(PyValueError::new_err)
}
