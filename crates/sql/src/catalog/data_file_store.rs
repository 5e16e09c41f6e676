//! What a folder or a pattern names: the files of this machine that hold a table's data.
//!
//! DataFusion lists whatever is below a folder, hidden files and folders of any name too, and among a table's files may
//! lie those of encoded columns, and those of statements that are still writing. Here a list has the files whose names
//! begin with neither `.` nor `_` (`_SUCCESS`, `._x.parquet`), in the folder itself and in `key=value` folders below
//! it: what lists on the CPU and what reads files directly ([`super::folders`]) means the same files. What is asked for
//! by its name is there. Parquet files elsewhere have places among the files here, and their bytes are fetched
//! ([`Mirror`]).

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, OBJECT_STORE_COALESCE_DEFAULT,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    coalesce_ranges,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::folders::is_shown;
use super::mirror::Mirror;
use crate::access::Access;
use crate::file_sets::{self, is_partition};
use crate::locations::{Reach, mirrored};

type Bytes = <PutPayload as IntoIterator>::Item;

/// The file system of this machine; its lists have what holds data.
#[derive(Debug, Default)]
pub(crate) struct DataFileStore {
    files: LocalFileSystem,
    access: Access,
    mirror: Arc<Mirror>,
}

impl DataFileStore {
    /// The files that `access` allows, those elsewhere by their places in `mirror`.
    pub(crate) fn new(access: Access, mirror: Arc<Mirror>) -> DataFileStore {
        DataFileStore { files: LocalFileSystem::new(), access, mirror }
    }

    /// The path of a file whose bytes are elsewhere.
    fn fetched(&self, file: &Path) -> Option<PathBuf> {
        let path = self.files.path_to_filesystem(file).ok()?;
        mirrored(&path).is_some_and(|file| file.is_fetched).then_some(path)
    }

    /// Refuses a path that statements must not reach.
    fn check(&self, path: &Path) -> Result<()> {
        if *self.access.reach() == Reach::default() {
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
        match self.fetched(from).filter(|_| !options.head) {
            Some(path) => self.mirror.get(&path, options).await,
            None => self.files.get_opts(from, options).await,
        }
    }

    async fn get_ranges(&self, from: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check(from)?;
        let Some(path) = self.fetched(from) else { return self.files.get_ranges(from, ranges).await };
        let fetch = |range: Range<u64>| {
            let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
            let got = self.mirror.get(&path, options);
            async { got.await?.bytes().await }
        };
        coalesce_ranges(ranges, fetch, OBJECT_STORE_COALESCE_DEFAULT).await
    }

    fn delete_stream(&self, files: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = DataFileStore::new(self.access.clone(), self.mirror.clone());
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
