//! Errors of import and export: the file and what is wrong there.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::PaloError;
use warpcube_cube::facts::FactsError;
use warpcube_cube::store::{StoreError, reason};

/// Name of the manifest in the folder.
pub const CATALOG_NAME: &str = "catalog.json";

/// Result of an operation on a catalog.
pub(super) type Result<T, E = CatalogError> = std::result::Result<T, E>;

/// An error of a catalog, of an import or an export.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// A call to the system failed.
    #[error("'{path}' cannot be {action}: {}", reason(.source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The participle of the call.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The target of an import or export holds something.
    #[error("'{folder}' is not empty; name a new or an empty folder")]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder is no catalog.
    #[error("'{folder}' is no catalog of cubes: it has no {CATALOG_NAME}")]
    NoCatalog {
        /// The folder.
        folder: PathBuf,
    },
    /// A file of a database of cubes is to be written over.
    #[error("'{path}' is a file of the database of cubes in '{folder}': name another place")]
    OfDatabase {
        /// The file or folder.
        path: PathBuf,
        /// The folder of the database.
        folder: PathBuf,
    },
    /// The work was cancelled before its target took its name.
    #[error("cancelled")]
    Cancelled,
    /// A file of the database is broken.
    #[error("'{path}': {source}")]
    Palo {
        /// The file.
        path: PathBuf,
        /// Line, field and problem.
        source: Box<PaloError>,
    },
    /// The numbers of a cell file cannot be loaded.
    #[error("'{path}': {source}")]
    Facts {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: FactsError,
    },
    /// A file that was kept as it stood differs from what was kept.
    #[error("'{path}' is damaged: its length or checksum is not the one in {CATALOG_NAME}")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Cubes disagree about a dimension that they share.
    #[error("the cubes disagree about dimension '{dimension}': {reason}")]
    Disagreement {
        /// The dimension.
        dimension: String,
        /// The cubes and the difference.
        reason: String,
    },
    /// A cube folder of the catalog does not hold the cube that was imported there.
    #[error("cube '{cube}' cannot be exported: {reason}")]
    NotImported {
        /// The cube.
        cube: String,
        /// The reason.
        reason: String,
    },
    /// An error of a cube folder or of the manifest.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CatalogError {
    /// A failed call to the system; `action` is a participle.
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> CatalogError {
        let path = path.to_path_buf();
        move |source| CatalogError::Io { path, action, source }
    }

    /// An error of a file of the database.
    pub(super) fn palo(path: &Path) -> impl FnOnce(PaloError) -> CatalogError {
        let path = path.to_path_buf();
        move |source| CatalogError::Palo { path, source: Box::new(source) }
    }
}
