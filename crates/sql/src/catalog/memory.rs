//! What a database remembers of files.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::path::Path as ObjectPath;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::csv_dialect::{Dialect, Given};
use super::footer_facts::FooterFacts;
use super::json_values::JsonValues;
use super::mirror::Mirror;
use super::snapshot::FileIdentity;
use crate::csv_lines::{Characters, Quotes};
use crate::error::{Result, SqlError};
use crate::row_groups::ParquetFiles;

/// The files of this machine that a database has made tables of, as they were.
///
/// DataFusion's caches of footers and statistics tell a file from its successor by size and time alone. A file that
/// took another's place with both kept (as copying tools do) is told by its inode here, and the caches are emptied.
#[derive(Debug, Default)]
pub(crate) struct FileMemory {
    /// Files elsewhere.
    mirror: Arc<Mirror>,
    seen: Mutex<HashMap<PathBuf, FileIdentity>>,
    /// The quoted values of CSV files ([`super::csv_newlines`]), by the characters that files are written with.
    pub(super) quotes: Looks<Characters, Quotes>,
    /// The dialects of CSV files, by what is given of them and their compression.
    pub(super) dialects: Looks<(Given, FileCompressionType), Option<Arc<Dialect>>>,
    /// The values of JSON files, by the number of records that types are taken from and their compression.
    pub(super) json: Looks<(usize, FileCompressionType), Option<Arc<JsonValues>>>,
    /// By key of a table its last version with its files.
    parquet: Mutex<HashMap<String, (String, Arc<ParquetFiles>)>>,
    footers: Footers,
}

/// Findings of looks through files, by what was looked for; the least recently used leave.
pub(super) struct Looks<K, V>(Cache<PathBuf, (FileIdentity, K, V)>);

impl<K, V> fmt::Debug for Looks<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looks")
    }
}

impl<K: Clone, V: Clone> Default for Looks<K, V> {
    fn default() -> Looks<K, V> {
        Looks(Cache::new(LOOKS_MAX))
    }
}

impl<K: PartialEq + Clone, V: Clone + Default> Looks<K, V> {
    /// What is found in a file, by `look` if the file or what is looked for is not what it was.
    pub(super) async fn find<F: Future<Output = V>>(&self, path: &Path, key: K, look: impl FnOnce(PathBuf) -> F) -> V {
        let Some(now) = FileIdentity::of(path) else { return V::default() };
        let known = self.0.get(path).filter(|(file, looked_for, _)| *file == now && *looked_for == key);
        if let Some((_, _, found)) = known {
            return found;
        }
        let found = look(path.to_path_buf()).await;
        self.0.insert(path.to_path_buf(), (now, key, found.clone()));
        found
    }
}

/// Facts of footers, by store and path. The cache is bounded by bytes; the least recently used leave, so that a table
/// of more files than there is room for keeps some of them.
#[derive(Debug)]
struct Footers {
    facts: Cache<(ObjectStoreUrl, ObjectPath), (ObjectMeta, Arc<FooterFacts>), Bytes>,
    /// The schemas of the files: those of a table mostly have one.
    schemas: Mutex<HashSet<SchemaRef>>,
}

#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<(ObjectStoreUrl, ObjectPath), (ObjectMeta, Arc<FooterFacts>)> for Bytes {
    fn weight(
        &self,
        (url, path): &(ObjectStoreUrl, ObjectPath),
        (file, facts): &(ObjectMeta, Arc<FooterFacts>),
    ) -> u64 {
        let names = url.as_str().len() + path.as_ref().len() + file.location.as_ref().len();
        let tags = [&file.e_tag, &file.version].into_iter().flatten().map(String::len).sum::<usize>();
        (size_of::<ObjectMeta>() + names + tags + facts.bytes()) as u64
    }
}

impl Default for Footers {
    fn default() -> Footers {
        Footers { facts: Cache::with_weighter(FOOTERS_EXPECTED, FOOTERS_BYTES_MAX, Bytes), schemas: Mutex::default() }
    }
}

/// Ends a look through a file when it is dropped, as it is with the future that waits for the look.
#[derive(Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Set once the look has to end.
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
/// Bytes of memory for facts of footers: a few hundred a file whose footer has all.
const FOOTERS_BYTES_MAX: u64 = 64 << 20;
/// Files that a database mostly reads, for the cache's tables.
const FOOTERS_EXPECTED: usize = 1 << 12;
/// Schemas of files that are told apart; beyond them equal ones are no longer shared.
const SCHEMAS_MAX: usize = 1 << 10;
/// Files of each kind whose looks are remembered.
const LOOKS_MAX: usize = 1 << 14;
/// Files whose identities are remembered.
const SEEN_MAX: usize = 1 << 18;

impl FileMemory {
    /// Knows of nothing yet; the store of the database's files has the same mirror.
    pub(crate) fn new(mirror: Arc<Mirror>) -> FileMemory {
        FileMemory { mirror, ..FileMemory::default() }
    }

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
    fn footer(&self, url: &ObjectStoreUrl, file: &ObjectMeta) -> Option<Arc<FooterFacts>> {
        // A copy of the key is made for each look; the store's URL is a few bytes.
        let (known, facts) = self.footers.facts.get(&(url.clone(), file.location.clone()))?;
        (known == *file).then_some(facts)
    }

    /// Remembers what the footer of a file tells.
    fn note_footer(&self, url: &ObjectStoreUrl, file: &ObjectMeta, mut facts: FooterFacts) -> Arc<FooterFacts> {
        let mut schemas = self.footers.schemas.lock();
        match schemas.get(&facts.schema) {
            Some(known) => facts.schema = known.clone(),
            None => {
                if schemas.len() >= SCHEMAS_MAX {
                    schemas.clear();
                }
                schemas.insert(facts.schema.clone());
            }
        }
        drop(schemas);
        let facts = Arc::new(facts);
        self.footers.facts.insert((url.clone(), file.location.clone()), (file.clone(), facts.clone()));
        facts
    }

    /// Looks at files; empties the runtime's caches if one of them is not what it was, or is not known to be.
    pub(super) fn look(&self, runtime: &RuntimeEnv, files: &[PathBuf]) {
        let mut seen = self.seen.lock();
        let mut changed = seen.len() >= SEEN_MAX;
        if changed {
            seen.clear();
        }
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

/// The files elsewhere of a session's database.
pub(super) fn mirror_of(state: &dyn Session) -> Result<Arc<Mirror>> {
    let memory = state.config().get_extension::<FileMemory>();
    memory.map(|memory| memory.mirror.clone()).ok_or_else(|| SqlError::Internal("a session without files".into()))
}

/// What the footer of a file tells, read unless it is remembered; none where it cannot be read.
pub(crate) async fn footer_facts(
    state: &dyn Session,
    url: &ObjectStoreUrl,
    file: &ObjectMeta,
) -> Option<Arc<FooterFacts>> {
    let memory = state.config().get_extension::<FileMemory>();
    if let Some(known) = memory.as_ref().and_then(|memory| memory.footer(url, file)) {
        return Some(known);
    }
    let runtime = state.runtime_env();
    let store = runtime.object_store(url).ok()?;
    let cache = runtime.cache_manager.get_file_metadata_cache();
    let footer = DFParquetMetadata::new(store.as_ref(), file).with_file_metadata_cache(Some(cache));
    let facts = FooterFacts::of(footer.fetch_metadata().await.ok()?.as_ref())?;
    Some(match memory {
        Some(memory) => memory.note_footer(url, file, facts),
        None => Arc::new(facts),
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};

    use super::super::footer_facts::Gaps;
    use super::*;

    fn file(name: &str) -> ObjectMeta {
        let location = ObjectPath::from(name);
        ObjectMeta { location, last_modified: Default::default(), size: 1, e_tag: None, version: None }
    }

    fn facts(gaps: usize) -> FooterFacts {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        FooterFacts { schema, gaps: vec![(0, Gaps::default()); gaps].into(), misleads: gaps > 0, order: None }
    }

    #[test]
    fn footers_are_those_of_their_store_and_share_schemas() {
        let memory = FileMemory::default();
        let (here, there) = (ObjectStoreUrl::local_filesystem(), ObjectStoreUrl::parse("s3://there").unwrap());
        let first = memory.note_footer(&here, &file("a/b.parquet"), facts(0));
        assert!(memory.footer(&there, &file("a/b.parquet")).is_none());
        let second = memory.note_footer(&there, &file("a/b.parquet"), facts(1));
        assert!(!memory.footer(&here, &file("a/b.parquet")).unwrap().misleads);
        assert!(memory.footer(&there, &file("a/b.parquet")).unwrap().misleads);
        assert!(memory.footer(&here, &ObjectMeta { size: 2, ..file("a/b.parquet") }).is_none());
        assert!(Arc::ptr_eq(&first.schema, &second.schema));
    }

    #[test]
    fn footers_are_bounded_by_bytes() {
        let (memory, url) = (FileMemory::default(), ObjectStoreUrl::local_filesystem());
        for number in 0..80 {
            memory.note_footer(&url, &file(&format!("{number}.parquet")), facts(1 << 16));
        }
        let known = (0..80).filter(|number| memory.footer(&url, &file(&format!("{number}.parquet"))).is_some()).count();
        let bytes = known * (1 << 16) * size_of::<(usize, Gaps)>();
        assert!(known > 10 && bytes as u64 <= FOOTERS_BYTES_MAX, "{known} files, {bytes} bytes");
    }
}
