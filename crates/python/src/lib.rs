//! The Python module `warpcube._native`: databases in process, below the Python sources in `python/warpcube`.
//!
//! Statements run on threads of this library. The thread that calls waits without the interpreter's lock (the GIL), and
//! looks for Ctrl-C. Rows cross as Arrow streams by the PyCapsule interface, without a copy.

mod connection;
mod cube;
mod errors;
mod given;
mod parameters;
mod rows;
mod runtime;
mod statement;
mod values;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line with these arguments, the first of which is the program's name. Gives its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| warpcube::program(arguments))
}

#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<cube::Cube>()?;
    module.add_class::<cube::CubeTable>()?;
    module.add_class::<statement::Statement>()?;
    module.add_class::<rows::Rows>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::bind, module)?)?;
    module.add_function(wrap_pyfunction!(statement::split, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::shut_down, module)?)
}
