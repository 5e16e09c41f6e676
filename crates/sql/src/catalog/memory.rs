//! What a session remembers of files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;

use super::files::FileIdentity;
use crate::exec::ParquetFiles;

/// The files of this machine that a session has made tables of, as they were.
///
/// DataFusion's caches of footers and statistics tell a file from its successor by size and time alone. A file that
/// took another's place with both kept (as copying tools do) is told by its inode here, and the caches are emptied.
#[derive(Debug, Default)]
pub(crate) struct FileMemory {
    seen: Mutex<HashMap<PathBuf, FileIdentity>>,
    /// Whether quoted values of CSV files have line breaks ([`super::quoted`]), by the file it was looked for in.
    breaks: Mutex<HashMap<PathBuf, (FileIdentity, bool)>>,
    /// By key of a table its last version with its files.
    parquet: Mutex<HashMap<String, (String, Arc<ParquetFiles>)>>,
}

/// Tables whose Parquet files are remembered.
const PARQUET_TABLES_MAX: usize = 256;

impl FileMemory {
    /// The Parquet files of a table version: the same whenever they are asked for, so that footers are read once.
    pub(crate) fn parquet(&self, key: &str, version: &str, make: impl FnOnce() -> ParquetFiles) -> Arc<ParquetFiles> {
        let mut known = self.parquet.lock();
        if let Some((_, files)) = known.get(key).filter(|(known, _)| known == version) {
            return files.clone();
        }
        if known.len() >= PARQUET_TABLES_MAX {
            known.clear();
        }
        let files = Arc::new(make());
        known.insert(key.to_string(), (version.to_string(), files.clone()));
        files
    }

    /// Whether quoted values of a CSV file have line breaks, by `look` if the file is not the one known.
    pub(super) async fn breaks<F: Future<Output = bool>>(&self, path: &Path, look: impl FnOnce(PathBuf) -> F) -> bool {
        let Some(now) = FileIdentity::of(path) else { return false };
        let known = self.breaks.lock().get(path).filter(|(identity, _)| *identity == now).map(|(_, found)| *found);
        if let Some(found) = known {
            return found;
        }
        let found = look(path.to_path_buf()).await;
        self.breaks.lock().insert(path.to_path_buf(), (now, found));
        found
    }

    /// Looks at files; empties the runtime's caches if one of them is not what it was.
    pub(super) fn look(&self, runtime: &RuntimeEnv, files: &[PathBuf]) {
        let mut seen = self.seen.lock();
        let mut changed = false;
        for path in files {
            let Some(now) = FileIdentity::of(path) else { continue };
            changed |= seen.get(path).is_some_and(|before| *before != now);
            seen.insert(path.clone(), now);
        }
        if changed {
            runtime.cache_manager.get_file_metadata_cache().clear();
            if let Some(statistics) = runtime.cache_manager.get_file_statistic_cache() {
                statistics.clear();
            }
        }
    }
}
