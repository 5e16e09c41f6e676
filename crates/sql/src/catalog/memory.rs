//! What a session remembers of files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;

use super::csv_newlines::Quotes;
use super::snapshot::FileIdentity;
use crate::csv_lines::Characters;
use crate::row_groups::ParquetFiles;

/// The files of this machine that a session has made tables of, as they were.
///
/// DataFusion's caches of footers and statistics tell a file from its successor by size and time alone. A file that
/// took another's place with both kept (as copying tools do) is told by its inode here, and the caches are emptied.
#[derive(Debug, Default)]
pub(crate) struct FileMemory {
    seen: Mutex<HashMap<PathBuf, FileIdentity>>,
    /// What quoted values of CSV files are like ([`super::csv_newlines`]), by the file and the characters it was looked
    /// for.
    quotes: Mutex<HashMap<PathBuf, (FileIdentity, Characters, Quotes)>>,
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

    /// What quoted values of a CSV file are like, by `look` if the file is not the one known.
    pub(super) async fn quotes<F: Future<Output = Quotes>>(
        &self,
        path: &Path,
        characters: Characters,
        look: impl FnOnce(PathBuf) -> F,
    ) -> Quotes {
        let Some(now) = FileIdentity::of(path) else { return Quotes::default() };
        let is_same = |known: &&(FileIdentity, Characters, Quotes)| known.0 == now && known.1 == characters;
        let known = self.quotes.lock().get(path).filter(is_same).map(|(_, _, found)| *found);
        if let Some(found) = known {
            return found;
        }
        let found = look(path.to_path_buf()).await;
        self.quotes.lock().insert(path.to_path_buf(), (now, characters, found));
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
