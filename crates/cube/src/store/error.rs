//! Errors of cube folders: the file, the place in it and what is wrong there.

use std::io;
use std::path::{Path, PathBuf};

use arrow::error::ArrowError;
use thiserror::Error;
use warpcube_arrays::SchemeError;
use warpcube_column::format::FileError;

use super::folder::{MANIFEST_NAME, parent_of};
use super::holder::Holder;
use crate::error::ModelError;
use crate::facts::FactsError;

/// Cubes that an error names at most.
const NAMES_MAX: usize = 8;
/// The prefix of folders of system cubes in an imported database: `#_`.
const SYSTEM: &str = "%23_";

/// Result of an operation on a cube folder.
pub(super) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// What the system's error says, in words where its own do not name what to change.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotADirectory => "a part of this path is a file: name a folder".into(),
        io::ErrorKind::InvalidFilename => "the name is too long for the file system: name a shorter one".into(),
        _ => error.to_string(),
    }
}

/// An error of a cube folder.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A call to the system failed.
    #[error("'{path}' cannot be {action}: {}", reason(.source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The participle of the call: `read`, `written`, `locked`.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A cube is to be created in the folder of another one.
    #[error(
        "'{folder}' holds a cube: 'warpcube cube refresh {folder}' reads its source again, 'warpcube cube load \
         {folder} --definition FILE' makes it anew; else name another folder or remove this one"
    )]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// A cube is to be created in a folder that holds something.
    #[error("'{folder}' is not empty: it holds '{entry}'; name a new or an empty folder")]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// One of its entries.
        entry: String,
    },
    /// Something else than a cube's files is to be written into its folder.
    #[error(
        "'{path}' lies in the folder of the cube '{folder}', which holds the cube's files alone: name a place \
             outside of it"
    )]
    Within {
        /// The path.
        path: PathBuf,
        /// The folder of the cube.
        folder: PathBuf,
    },
    /// The folder holds no cube.
    #[error("'{folder}' is no cube: it has no {MANIFEST_NAME}{hint}")]
    NoCube {
        /// The folder.
        folder: PathBuf,
        /// Cubes below it or of a near name, if there are any.
        hint: String,
    },
    /// Another process, or another holder in this one, changes the cube.
    #[error("the cube in '{folder}' is being changed by {}: try again when it has ended", named(.holder))]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The holder; unknown if it has not written its number yet.
        holder: Option<Holder>,
    },
    /// The folder is of another version of the format.
    #[error("'{path}' has version {found} of its format, this program reads version {wanted}")]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// Version that is read and written.
        wanted: u64,
    },
    /// The bytes of a file differ from those that were written.
    #[error("'{path}' is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The place in the file, and what is wrong there.
        reason: String,
    },
    /// An error of the facts' column file.
    #[error(transparent)]
    Facts(#[from] FileError),
    /// The arrays of the facts contradict each other.
    #[error("'{path}': {source}")]
    FactsParts {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        source: FactsError,
    },
    /// The stored model cannot be read.
    #[error("'{path}': {source}")]
    Model {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<ModelError>,
    },
    /// Text cells or rows kept aside cannot be written or read.
    #[error("'{path}': {source}")]
    Arrow {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ArrowError,
    },
    /// The facts cannot be stored in a scheme.
    #[error("cube '{cube}' cannot be stored: {source}")]
    Scheme {
        /// The cube.
        cube: String,
        /// The reason, with the size of what exceeds a limit.
        source: Box<SchemeError>,
    },
    /// The parts of a cube that is to be stored contradict each other.
    #[error("cube '{cube}' cannot be stored: {reason}")]
    Contradiction {
        /// The cube.
        cube: String,
        /// The contradiction.
        reason: String,
    },
}

impl StoreError {
    /// The error of a folder without a cube, which names cubes below it, else those beside it.
    pub(super) fn no_cube(folder: &Path) -> StoreError {
        if folder.is_file() {
            return StoreError::NoCube { folder: folder.to_path_buf(), hint: ", for it is a file".into() };
        }
        let parent = parent_of(folder);
        let below = cubes_in(folder);
        let (place, cubes) = if below.is_empty() { ("beside", cubes_in(parent)) } else { ("below", below) };
        let hint = match cubes.len() {
            0 => String::new(),
            1..=NAMES_MAX => format!("; {place} it are the cubes {}", cubes.join(", ")),
            more => format!("; {place} it are {more} cubes: {}, …", cubes[..NAMES_MAX].join(", ")),
        };
        StoreError::NoCube { folder: folder.to_path_buf(), hint }
    }

    /// A failed call to the system; `action` is a participle.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_path_buf();
        move |source| StoreError::Io { path, action, source }
    }

    /// An error of a stored model.
    pub(super) fn model(path: &Path) -> impl FnOnce(ModelError) -> StoreError {
        let path = path.to_path_buf();
        move |source| StoreError::Model { path, source: Box::new(source) }
    }

    /// Damage in a file.
    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Damaged { path: path.to_path_buf(), reason: reason.into() }
    }
}

/// A holder as errors name it.
fn named(holder: &Option<Holder>) -> String {
    holder.map_or("another process".to_owned(), |holder| holder.to_string())
}

/// The folders of a folder that are cubes, in order; cubes of an imported system are left out.
fn cubes_in(folder: &Path) -> Vec<String> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_own = |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with(SYSTEM));
    let cubes = paths.filter(|path| is_own(path) && path.join(MANIFEST_NAME).is_file());
    let mut names: Vec<String> =
        cubes.map(|path| path.strip_prefix(".").unwrap_or(&path).display().to_string()).collect();
    names.sort_unstable();
    names
}
