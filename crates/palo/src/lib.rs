//! Text format of Palo and Jedox databases: `database.csv` and one `database_CUBE_<id>.csv` a cube.
//!
//! ```text
//! # comment                      a line
//! [SECTION]                      a line
//! 13;"Years";1;1;1;1;            a row: every field ends with ';', texts stand between quotes, '""' is a quote,
//!                                lists have ',' between their items, quoted texts may hold line ends
//! ```
//!
//! Files are streams: [`RecordReader`] reads rows one by one, [`CellReader`] and [`CellWriter`] cells. A [`Database`]
//! holds `database.csv` as it stands, system dimensions and cubes (`#_…`) included; [`Database::cube_model`] makes a
//! model of a cube, [`CellImport`] maps its cells to the model's elements.

pub mod catalog;
mod cells;
mod check;
mod convert;
mod database;
mod error;
mod export;
mod import;
mod read;
mod record;
mod write;

pub use cells::{Cell, CellReader, CellValue, CellWriter, CubeHeader};
pub use convert::{ImportedCube, VALUE_MEASURE};
pub use database::{
    Cube, DATABASE_FILE_NAME, Database, Dimension, Element, ElementType, Elements, Section, cube_file_name,
};
pub use error::{PaloError, Result};
pub use import::{CellImport, ImportedCell, Reason, Skipped, SkippedCell};
pub use record::{RecordKind, RecordReader, Row};
