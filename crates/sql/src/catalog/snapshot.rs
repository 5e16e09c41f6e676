//! The state of a table's files: paths, sizes, times and tags, by which a change is found.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::object_store::{Error as ObjectStoreError, ObjectMeta, ObjectStoreExt};
use futures::TryStreamExt;

use super::folders::data_files;
use super::patterns::is_unlisted;
use crate::error::{Result, SqlError};
use crate::locations::mirrored;

/// One file as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileIdentity {
    path: String,
    bytes: u64,
    modified_ns: i128,
    /// Inode or entity tag: tells a file from another of the same name, size and time.
    tag: String,
    /// Where the file is on this machine, if its bytes are there.
    on_disk: Option<PathBuf>,
}

impl FileIdentity {
    /// A file of this machine as it is now; none where it cannot be looked at.
    pub(super) fn of(path: &Path) -> Option<FileIdentity> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Some(FileIdentity {
            path: path.display().to_string(),
            bytes: metadata.len(),
            modified_ns: modified.map_or(0, |time| time.as_nanos() as i128),
            tag: metadata.ino().to_string(),
            on_disk: mirrored(path).is_none_or(|file| !file.is_fetched).then(|| path.to_path_buf()),
        })
    }

    /// A file by the metadata of an object store.
    pub(super) fn listed(meta: ObjectMeta) -> FileIdentity {
        FileIdentity {
            path: meta.location.to_string(),
            bytes: meta.size,
            modified_ns: i128::from(meta.last_modified.timestamp_nanos_opt().unwrap_or_default()),
            tag: [meta.e_tag, meta.version].into_iter().flatten().collect::<Vec<_>>().join(" "),
            on_disk: None,
        }
    }
}

/// The files of a table as they were when they were looked at; two that are equal mean that nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSnapshot {
    files: Vec<FileIdentity>,
    /// Locations that name one file that is not there.
    pub(super) missing: Vec<String>,
    /// What wildcards of folders stand for, and the files that patterns mean and their lists leave out.
    pub(super) folders: Vec<String>,
    /// The files elsewhere that those of the table are the places of.
    elsewhere: Vec<FileIdentity>,
}

impl FileSnapshot {
    /// Looks at the files of a listing table.
    pub async fn take(runtime: &RuntimeEnv, table: &ListingTable) -> Result<FileSnapshot> {
        let mut snapshot = FileSnapshot::default();
        for url in table.table_paths() {
            let extension = &table.options().file_extension;
            match (local_file(url), local_folder(url)) {
                (Some(path), _) => snapshot.add_local(&path),
                // Object stores list local folders on other threads; a look at some dozen files is sooner done here.
                (None, Some(folder)) => {
                    let files = data_files(&folder).into_iter();
                    let wanted = files.filter(|path| path.to_string_lossy().ends_with(extension.as_str()));
                    for path in wanted {
                        if url.get_glob().is_none() || is_named(url, &path) {
                            snapshot.add_local(&path);
                        } else if is_named_alone(url, &path) {
                            snapshot.folders.push(path.display().to_string());
                        }
                    }
                }
                (None, None) => snapshot.add_listed(runtime, url, extension).await?,
            }
        }
        Ok(snapshot)
    }

    /// The snapshot with the files elsewhere.
    pub(super) fn with_elsewhere(self, elsewhere: Vec<FileIdentity>) -> FileSnapshot {
        FileSnapshot { elsewhere, ..self }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The paths of all files, if all are there on this machine.
    pub(crate) fn on_disk(&self) -> Option<Vec<PathBuf>> {
        let paths = self.files.iter().map(|file| file.on_disk.clone());
        paths.collect::<Option<_>>().filter(|_| self.missing.is_empty())
    }

    fn add_local(&mut self, path: &Path) {
        match FileIdentity::of(path) {
            Some(identity) => self.files.push(identity),
            None => self.missing.push(path.display().to_string()),
        }
    }

    async fn add_listed(&mut self, runtime: &RuntimeEnv, url: &ListingTableUrl, extension: &str) -> Result<()> {
        let store = runtime.object_store(url.object_store())?;
        if !url.is_collection() && url.get_glob().is_none() {
            // Listing what is below a file's name gives nothing.
            match store.head(url.prefix()).await {
                Ok(file) => self.files.push(FileIdentity::listed(file)),
                Err(ObjectStoreError::NotFound { .. }) => self.missing.push(url.to_string()),
                Err(error) => return Err(SqlError::FileAccess(error.to_string())),
            }
            return Ok(());
        }
        let mut listed: Vec<ObjectMeta> = store
            .list(Some(url.prefix()))
            .try_collect()
            .await
            .map_err(|error| SqlError::FileAccess(error.to_string()))?;
        // Stores list in any order; the same files must give the same snapshot.
        listed.sort_by(|a, b| a.location.cmp(&b.location));
        let wanted = listed
            .into_iter()
            .filter(|meta| meta.location.as_ref().ends_with(extension) && url.contains(&meta.location, true));
        let on_disk = |meta: &ObjectMeta| {
            let path = (url.scheme() == "file").then(|| Path::new("/").join(meta.location.as_ref()))?;
            std::fs::metadata(&path).is_ok_and(|file| file.len() == meta.size).then_some(path)
        };
        self.files.extend(wanted.map(|meta| FileIdentity { on_disk: on_disk(&meta), ..FileIdentity::listed(meta) }));
        Ok(())
    }
}

/// The path of a URL that names one file of this machine.
fn local_file(url: &ListingTableUrl) -> Option<PathBuf> {
    (url.scheme() == "file" && !url.is_collection() && url.get_glob().is_none())
        .then(|| url.get_url().to_file_path().ok())
        .flatten()
}

/// The path of a URL that names a folder of this machine, or a pattern below one.
fn local_folder(url: &ListingTableUrl) -> Option<PathBuf> {
    (url.scheme() == "file" && url.is_collection()).then(|| url.get_url().to_file_path().ok()).flatten()
}

/// Whether a pattern names a file of this machine.
fn is_named(url: &ListingTableUrl, path: &Path) -> bool {
    ObjectPath::from_absolute_path(path).is_ok_and(|path| url.contains(&path, true))
}

/// Whether a pattern means a file of this machine that is a location of its own ([`is_unlisted`]).
fn is_named_alone(url: &ListingTableUrl, path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| is_unlisted(&name) && url.get_glob().as_ref().is_some_and(|glob| glob.matches(&name)))
}
