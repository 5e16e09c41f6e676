//! What the doors of a database share: the program, the Python module and the server.
//!
//! A door takes a statement with values for its parameters ([`bind`]), runs it by a `warpcube_sql::Connection`, and
//! gives its rows, as Arrow batches or in a format ([`writers`]).

mod parameters;
mod threads;
pub mod writers;

pub use parameters::{Bound, Parameters, bind, parameter_count};
pub use threads::{Crew, MakeThreads, Threads};
