//! What a session remembers of files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path as ObjectPath;
use parking_lot::Mutex;

use super::csv_dialect::{Dialect, Given};
use super::csv_newlines::Quotes;
use super::footer_facts::FooterFacts;
use super::json_values::JsonValues;
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
    /// What quoted values of CSV files are like ([`super::csv_newlines`]), by the characters that were looked for.
    pub(super) quotes: Looks<Characters, Quotes>,
    /// How CSV files are written, by what is given of it and how they are compressed.
    pub(super) dialects: Looks<(Given, FileCompressionType), Option<Arc<Dialect>>>,
    /// The values of JSON files, by the number of records that types are taken from and how they are compressed.
    pub(super) json: Looks<(usize, FileCompressionType), Option<Arc<JsonValues>>>,
    /// By key of a table its last version with its files.
    parquet: Mutex<HashMap<String, (String, Arc<ParquetFiles>)>>,
    /// What footers tell, by file.
    footers: Mutex<HashMap<ObjectPath, (ObjectMeta, Arc<FooterFacts>)>>,
    /// Whether the session says that CSV files have a header, or have none.
    pub(crate) header_is_said: AtomicBool,
}

/// What looks through files have found, by what was looked for.
#[derive(Debug)]
pub(super) struct Looks<K, V>(Mutex<HashMap<PathBuf, (FileIdentity, K, V)>>);

impl<K, V> Default for Looks<K, V> {
    fn default() -> Looks<K, V> {
        Looks(Mutex::default())
    }
}

impl<K: PartialEq, V: Clone + Default> Looks<K, V> {
    /// What is found in a file, by `look` if the file or what is looked for is not what it was.
    pub(super) async fn find<F: Future<Output = V>>(&self, path: &Path, key: K, look: impl FnOnce(PathBuf) -> F) -> V {
        let Some(now) = FileIdentity::of(path) else { return V::default() };
        let is_same = |known: &&(FileIdentity, K, V)| known.0 == now && known.1 == key;
        let known = self.0.lock().get(path).filter(is_same).map(|(_, _, found)| found.clone());
        if let Some(found) = known {
            return found;
        }
        let found = look(path.to_path_buf()).await;
        self.0.lock().insert(path.to_path_buf(), (now, key, found.clone()));
        found
    }
}

/// Ends a look through a file when nobody waits for it any more.
#[derive(Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// What the look asks now and then.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tables whose Parquet files are remembered.
const PARQUET_TABLES_MAX: usize = 256;
/// Files whose footers are remembered.
const FOOTERS_MAX: usize = 1 << 16;

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

    /// What the footer of a file tells, if it is the file that is known.
    pub(super) fn footer(&self, file: &ObjectMeta) -> Option<Arc<FooterFacts>> {
        let known = self.footers.lock();
        known.get(&file.location).filter(|(known, _)| known == file).map(|(_, facts)| facts.clone())
    }

    /// Remembers what the footer of a file tells.
    pub(super) fn note_footer(&self, file: &ObjectMeta, facts: Arc<FooterFacts>) {
        let mut known = self.footers.lock();
        if known.len() >= FOOTERS_MAX {
            known.clear();
        }
        known.insert(file.location.clone(), (file.clone(), facts));
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
