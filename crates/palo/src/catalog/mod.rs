//! A folder of cubes that were imported from a Palo or Jedox database, and the export of the database from them.
//!
//! ```text
//! catalog.json             manifest: version, the cubes of the database, the files that are kept as they stand
//! database.csv             the database without cells, as it stood
//! Machines/                a cube folder for each cube that is a model's
//! database_CUBE_13.csv     a cell file, as it stood: of a cube that is no model's, or with cells or a form that the
//!                          cube does not hold
//! ```
//!
//! An import keeps a cell file beside its cube only if writing the cube gives other bytes, comments aside: cells in an
//! order of their own, cells that were skipped, numbers in another spelling. The export writes such a file as it stood
//! while the cube is unchanged; else it takes the file's order and skipped cells, and the values of the cube. Cubes
//! with dimensions whose elements lie in another database, keys above 128 bits or more than 32 dimensions are no
//! models: their cell files are kept.
//!
//! A dimension is the database's: elements that a change removes from one cube go from all cubes that have it
//! ([`removals`]).
//!
//! Attribute cubes (`#_D`) are cubes as others are, and their cells are attributes of the elements of D besides
//! ([`attributes`]).
//!
//! Invariant: import and export write to a hidden folder that is renamed at the end, so that the target appears whole
//! or not at all.

mod attributes;
mod cells;
mod comparison;
mod error;
mod export;
mod facts;
mod import;
mod manifest;
mod marked_folder;
mod removal;
mod staging;
mod versions;

pub use error::CATALOG_NAME;
pub use error::CatalogError;
pub use facts::Finding;
pub use import::{Import, import, import_unless};
pub use manifest::{CATALOG_VERSION, Catalog, CatalogCube, KeptFile, check_output};
pub use marked_folder::MarkedFolder;
pub use removal::{Removal, removals};
