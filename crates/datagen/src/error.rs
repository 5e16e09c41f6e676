//! What can go wrong while generating: a scale or a part that makes no sense, a disk that refuses, a folder that
//! already holds something else, or the caller's wish to stop.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// An error of the generator.
#[derive(Debug, thiserror::Error)]
pub enum DatagenError {
    /// The scale factor is not a number this generator can work with.
    #[error("scale factor {0} is out of range: it must be above 0 and at most {max}", max = crate::MAX_SCALE)]
    Scale(f64),
    /// The number of rows is none that this generator can make.
    #[error("{0} rows are out of range: at least 1 and at most {max}", max = crate::MAX_ROWS)]
    Rows(u64),
    /// There is no such part: parts count from 0.
    #[error("there is no part {part} of {parts}: parts count from 0")]
    Part {
        /// The part asked for.
        part: usize,
        /// How many parts there are.
        parts: usize,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed action, as a verb: "create", "write".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk filled up.
    #[error("cannot write {}: the disk is full", path.display())]
    DiskFull {
        /// The file being written.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The Parquet writer failed for a reason other than the file system.
    #[error("cannot write {} as Parquet: {source}", path.display())]
    Parquet {
        /// The file being written.
        path: PathBuf,
        /// The writer's reason.
        source: ParquetError,
    },
    /// The folder holds data that was not asked for, and overwriting was not allowed.
    #[error("{} holds {found}, not {wanted}: choose another folder, or delete what is there", path.display())]
    OtherData {
        /// The folder.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// The writer that was handed in failed.
    #[error("cannot write table {table}: {source}")]
    Output {
        /// The table being written.
        table: &'static str,
        /// The writer's reason.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("generation was cancelled")]
    Cancelled,
}

impl DatagenError {
    /// An error of the file system, a full disk told apart.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path, source },
            _ => Self::Io { action, path, source },
        }
    }

    /// An error of the Parquet writer; the file system's reason is taken out where there is one.
    pub(crate) fn parquet(path: &Path, source: ParquetError) -> Self {
        match source {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Self::io("write", path, *source),
                Err(inner) => Self::Parquet { path: path.to_path_buf(), source: ParquetError::External(inner) },
            },
            source => Self::Parquet { path: path.to_path_buf(), source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = DatagenError::parquet(Path::new("d/part.parquet"), full().into());
        assert_eq!(error.to_string(), "cannot write d/part.parquet: the disk is full");
        let error = DatagenError::io("create", Path::new("d"), io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(error.to_string(), "cannot create d: permission denied");
    }
}
