//! What the doors of a database share: the program, the Python module and the server.
//!
//! A door takes a statement with values for its parameters ([`bind`]), runs it by a `warpcube_sql::Connection`, and
//! gives its rows, as Arrow batches or in a format ([`writers`]).

mod ingestion;
mod parameters;
mod threads;
mod values;
pub mod writers;

pub use ingestion::{IngestMode, ingested, ingestion};
pub use parameters::{Bound, Parameters, bind, parameter_count, parameter_names};
pub use threads::{Crew, MakeThreads, Threads};
pub use values::{Row, Values, bind_rows, text};
