//! What a folder or a pattern names: the files of this machine that hold a table's data.
//!
//! DataFusion lists whatever is below a folder, hidden files and folders of any name too, and among a table's files may
//! lie those of encoded columns, and those of statements that are still writing. Here a list has the files whose names
//! begin with neither `.` nor `_` (`_SUCCESS`, `._x.parquet`), in the folder itself and in `key=value` folders below
//! it: what lists on the CPU and what reads files directly ([`super::folders`]) means the same files. What is asked for
//! by its name is there.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use crate::access::Access;
use crate::file_sets::{self, is_partition};

/// How the names of files of encoded columns end.
pub(crate) const COLUMN_FILE_SUFFIX: &str = ".warpcols";

type Bytes = <PutPayload as IntoIterator>::Item;

/// The file system of this machine; its lists have what holds data.
#[derive(Debug, Default)]
pub(crate) struct DataFileStore {
    files: LocalFileSystem,
    access: Access,
}

impl DataFileStore {
    /// The files that `access` allows.
    pub(crate) fn new(access: Access) -> DataFileStore {
        DataFileStore { files: LocalFileSystem::new(), access }
    }

    /// Refuses a path that statements must not reach.
    fn check(&self, path: &Path) -> Result<()> {
        if self.access.allowed().is_none() {
            return Ok(());
        }
        let checked = self.access.check_path(&self.files.path_to_filesystem(path)?);
        checked.map_err(|error| Error::Generic { store: "files", source: Box::new(error) })
    }

    /// The files that `listed` has, or the error of a folder that statements must not reach.
    fn checked(
        &self,
        prefix: Option<&Path>,
        listed: impl FnOnce() -> BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.check(prefix.unwrap_or(&Path::default())) {
            Ok(()) => self.as_one_set(prefix, shown(prefix, listed())),
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        }
    }

    /// A list made while no statement changes the files of the folder.
    fn as_one_set(
        &self,
        prefix: Option<&Path>,
        files: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let folder = self.files.path_to_filesystem(prefix.unwrap_or(&Path::default())).unwrap_or_default();
        let whole = async move {
            // A writer holds the lock on a thread of its own; this one waits on one, too.
            let lock = tokio::task::spawn_blocking(move || file_sets::listed(&folder)).await.ok().flatten();
            let found: Vec<ObjectMeta> = files.try_collect().await?;
            drop(lock);
            Ok::<_, Error>(futures::stream::iter(found.into_iter().map(Ok)))
        };
        futures::stream::once(whole).try_flatten().boxed()
    }
}

/// Whether a file of this name in a table's folder holds data of the table.
pub(super) fn is_data(name: &str) -> bool {
    !name.starts_with(['.', '_']) && !name.ends_with(COLUMN_FILE_SUFFIX)
}

/// Whether a list of what is below `prefix` has the file.
fn is_shown(prefix: Option<&Path>, file: &Path) -> bool {
    let root = Path::default();
    let Some(below) = file.prefix_match(prefix.unwrap_or(&root)) else { return true };
    let parts: Vec<_> = below.collect();
    let Some((name, folders)) = parts.split_last() else { return true };
    is_data(name.as_ref()) && folders.iter().all(|folder| is_partition(folder.as_ref()))
}

fn shown(
    prefix: Option<&Path>,
    files: BoxStream<'static, Result<ObjectMeta>>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let prefix = prefix.cloned();
    files.try_filter(move |file| futures::future::ready(is_shown(prefix.as_ref(), &file.location))).boxed()
}

impl fmt::Display for DataFileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for DataFileStore {
    async fn put_opts(&self, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.check(to)?;
        self.files.put_opts(to, payload, options).await
    }

    async fn put_multipart_opts(&self, to: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.check(to)?;
        self.files.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        self.check(from)?;
        self.files.get_opts(from, options).await
    }

    async fn get_ranges(&self, from: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check(from)?;
        self.files.get_ranges(from, ranges).await
    }

    fn delete_stream(&self, files: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = DataFileStore::new(self.access.clone());
        let checked = files.map(move |file| file.and_then(|file| store.check(&file).map(|()| file)));
        self.files.delete_stream(checked.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.checked(prefix, || self.files.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.checked(prefix, || self.files.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.check(prefix.unwrap_or(&Path::default()))?;
        let mut listed = self.files.list_with_delimiter(prefix).await?;
        listed.objects.retain(|file| is_shown(prefix, &file.location));
        listed.common_prefixes.retain(|folder| folder.filename().is_none_or(is_partition));
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        self.files.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        self.files.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_what_holds_data() {
        let below = |prefix: &str, file: &str| is_shown(Some(&Path::from(prefix)), &Path::from(file));
        for shown in ["t/a.parquet", "t/k=1/a.parquet", "t/k=1/_j=2/a.parquet"] {
            assert!(below("t", shown), "{shown}");
        }
        for hidden in [
            "t/._a.parquet",
            "t/_SUCCESS",
            "t/.t-0.warpcols",
            "t/a.parquet.warpcols",
            "t/sub/a.parquet",
            "t/.k=1.77.warpcube-staging/content/a.parquet",
            "t/k=1/.j=2.77.warpcube-staging/content/a.parquet",
        ] {
            assert!(!below("t", hidden), "{hidden}");
        }
        // What is above is of no interest.
        assert!(below("_t/.hidden/sub", "_t/.hidden/sub/a.parquet"));
        assert!(is_shown(None, &Path::from("a.parquet")));
    }
}
