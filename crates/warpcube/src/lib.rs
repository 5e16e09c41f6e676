//! Warpcube as a library: open a [`Database`], connect to it, give the [`Connection`] SQL, take Arrow batches.
//!
//! ```
//! use warpcube::{Database, DatabaseOptions};
//!
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! let database = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu"))?;
//! let connection = database.connect();
//! let batches = connection.collect("SELECT 1 + 1 AS two").await?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok::<(), warpcube::SqlError>(())
//! # }).unwrap();
//! ```
//!
//! A database has the tables, the device and the memory; a connection has settings and prepared statements of its own.
//! A program opens as many connections as it has clients. Statements of all of them may run at the same time, from any
//! thread.
//!
//! A database opens its GPU when a statement first uses it, which takes some tenths of a second. A program that goes on
//! to run statements calls [`Database::open_device_in_background`] at its first idle moment, as the shell does; before
//! it ends it waits for that by [`DeviceSlot::close`] of [`Database::device`].

mod bench;
mod cli;
mod commands;
mod config;
mod console;
mod cube;
mod doctor;
mod error;
mod escape;
mod excerpt;
mod exit;
mod footer;
mod host;
mod logging;
mod output;
mod pager;
mod program;
mod progress;
mod runner;
mod script;
mod serve;
mod shell;
mod signals;
mod statement_reader;

pub use exit::close;
pub use host::working as runtime;
pub use output::table_text;
pub use program::program;
pub use warpcube_door::{Crew, Parameters, Threads, bind};
pub use warpcube_sql::{
    Assignment, Budget, Cancel, Connection, CubeAnswer, CubeDefinition, CubeLoad, CubeQueryOptions, Database,
    DatabaseOptions, DatabaseSettings, DeviceChoice, DeviceSlot, Execution, FragmentReport, GivenRows, GivenTables,
    OpenCube, Owner, Place, Placement, Position, Progress, Registration, Result, Script, SettingOrigin, Settings,
    SqlError, StatementKind, StatementReport, Summary, WeakDatabase, type_name,
};
