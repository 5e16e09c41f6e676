//! Parquet footers that contradict themselves.
//!
//! A footer has numbers of rows three times: for the file, for each row group and for each column of one. Readers
//! believe one or the other: `count(*)` is answered from the footer alone, columns are read by row group. Where they
//! differ the file is corrupt, and is refused before anything is answered from it. So it is where a column is said to
//! lie outside of the file, for which readers would ask for any amount of memory. A file with two columns of one name,
//! of which readers would give one, is refused too. Numbers that agree are believed, bounds of values included;
//! [`crate::exec`] believes no bounds but those it has seen itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use futures::{StreamExt, TryStreamExt};
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Result, SqlError};
use crate::locations::{mirrored, shown};

/// Footers read at once.
const AT_ONCE: usize = 16;

/// Looks at the footers of local files; they stay in DataFusion's cache, where planning finds them.
///
/// # Errors
/// [`SqlError::FileCorrupt`] for a footer that contradicts itself, [`SqlError::FileFormat`] for two columns of one
/// name. A footer that cannot be read is left to the reader.
pub(crate) async fn check(state: &dyn Session, files: Vec<PathBuf>) -> Result<()> {
    let runtime = state.runtime_env();
    let store = runtime.object_store(ObjectStoreUrl::local_filesystem())?;
    let cache = runtime.cache_manager.get_file_metadata_cache();
    let looks = files.into_iter().map(|path| {
        let (store, cache) = (store.clone(), cache.clone());
        async move {
            reason(store.as_ref(), &path, cache).await.map_or(Ok(()), |reason| {
                let path = shown(&path);
                Err(match reason {
                    Refusal::Elsewhere(error) => error,
                    Refusal::Corrupt(reason) => SqlError::FileCorrupt { path, reason },
                    Refusal::Repeats(name) => {
                        let reason = format!("two columns are named '{name}', of which a name could give only one");
                        SqlError::FileFormat { path, reason }
                    }
                })
            })
        }
    });
    futures::stream::iter(looks).buffered(AT_ONCE).try_collect().await
}

/// Why a file is not read.
enum Refusal {
    /// Its footer cannot be true.
    Corrupt(String),
    /// It has two columns of this name.
    Repeats(String),
    /// The server that has it.
    Elsewhere(SqlError),
}

/// Why a file is not read, by its footer.
async fn reason(store: &dyn ObjectStore, path: &Path, cache: Arc<FileMetadataCache>) -> Option<Refusal> {
    let absolute = std::path::absolute(path).ok()?;
    let location = datafusion::object_store::path::Path::from_absolute_path(absolute).ok()?;
    let object = store.head(&location).await.ok()?;
    if let Some(reason) = overlong(store, &object).await {
        return Some(Refusal::Corrupt(reason));
    }
    let metadata = DFParquetMetadata::new(store, &object).with_file_metadata_cache(Some(cache)).fetch_metadata().await;
    let metadata = match metadata.map_err(SqlError::from) {
        Ok(metadata) => metadata,
        Err(error @ SqlError::FileElsewhere { .. }) => return Some(Refusal::Elsewhere(error)),
        // No reader of this machine looks for what is wrong with it.
        Err(SqlError::FileCorrupt { reason, .. }) if mirrored(path).is_some() => return Some(Refusal::Corrupt(reason)),
        Err(_) => return None,
    };
    let mut names = HashSet::new();
    let columns = metadata.file_metadata().schema_descr().root_schema().get_fields();
    if let Some(repeated) = columns.iter().find(|column| !names.insert(column.name())) {
        return Some(Refusal::Repeats(repeated.name().to_string()));
    }
    contradiction(metadata.as_ref(), object.size).map(Refusal::Corrupt)
}

/// Why the length of a file's footer, which its last bytes tell, cannot be true: readers subtract it before they look.
async fn overlong(store: &dyn ObjectStore, object: &ObjectMeta) -> Option<String> {
    // The length and the magic; before them the footer, and at least the magic at the front.
    let end = object.size.checked_sub(8)?;
    let tail = store.get_range(&object.location, end..object.size).await.ok()?;
    let (length, magic) = tail.split_first_chunk::<4>()?;
    let length = u64::from(u32::from_le_bytes(*length));
    let is_parquet = matches!(magic, b"PAR1" | b"PARE");
    (is_parquet && length + 4 > end)
        .then(|| format!("its last bytes tell of a footer of {length} bytes, the file has {}", object.size))
}

fn contradiction(metadata: &ParquetMetaData, size: u64) -> Option<String> {
    let mut rows = 0i64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let own = group.num_rows();
        if own < 0 {
            return Some(format!("row group {number} has {own} rows"));
        }
        for column in group.columns() {
            let (name, values) = (column.column_path().string(), column.num_values());
            // A column of lists has as many values as its lists have elements.
            if column.column_descr().max_rep_level() == 0 && values != own {
                return Some(format!("row group {number} has {own} rows, its column '{name}' {values} values"));
            }
            let (page, dictionary) = (column.data_page_offset(), column.dictionary_page_offset());
            let (start, bytes) = (dictionary.map_or(page, |dictionary| dictionary.min(page)), column.compressed_size());
            let end = start.checked_add(bytes).and_then(|end| u64::try_from(end).ok());
            if start < 0 || bytes < 0 || end.is_none_or(|end| end > size) {
                let place = format!("{bytes} bytes at byte {start} of {size}");
                return Some(format!("row group {number}: column '{name}' is said to have {place}"));
            }
            let nulls = column.statistics().and_then(|statistics| statistics.null_count_opt());
            if let Some(nulls) = nulls.filter(|nulls| i64::try_from(*nulls).is_ok_and(|nulls| nulls > values)) {
                return Some(format!("row group {number}: column '{name}' has {nulls} nulls in {values} values"));
            }
        }
        rows = rows.saturating_add(own);
    }
    let told = metadata.file_metadata().num_rows();
    (told != rows).then(|| format!("its footer tells of {told} rows, its row groups have {rows}"))
}
