//! The files of this machine without those of encoded columns, and those of statements that are still writing, which
//! may lie among a table's own.
//!
//! DataFusion lists whatever a folder or a pattern such as `*` names, hidden files too. What is asked for by its name
//! is there.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

/// How the names of files of encoded columns end.
pub(crate) const KEPT_SUFFIX: &str = ".warpcols";

/// How the names of hidden folders end that statements write into.
pub(crate) const STAGED_SUFFIX: &str = ".partial";

type Bytes = <PutPayload as IntoIterator>::Item;

/// The file system of this machine; its lists leave out files of encoded columns and what is being written.
#[derive(Debug, Default)]
pub(crate) struct Hiding(LocalFileSystem);

fn is_shown(file: &ObjectMeta) -> bool {
    !file.location.as_ref().ends_with(KEPT_SUFFIX) && !is_staged(&file.location)
}

fn is_staged(path: &Path) -> bool {
    path.parts().any(|part| part.as_ref().starts_with('.') && part.as_ref().ends_with(STAGED_SUFFIX))
}

fn shown(files: BoxStream<'static, Result<ObjectMeta>>) -> BoxStream<'static, Result<ObjectMeta>> {
    files.try_filter(|file| futures::future::ready(is_shown(file))).boxed()
}

impl fmt::Display for Hiding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Hiding {
    async fn put_opts(&self, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(to, payload, options).await
    }

    async fn put_multipart_opts(&self, to: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(from, options).await
    }

    async fn get_ranges(&self, from: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.get_ranges(from, ranges).await
    }

    fn delete_stream(&self, files: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(files)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        shown(self.0.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        shown(self.0.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut listed = self.0.list_with_delimiter(prefix).await?;
        listed.objects.retain(is_shown);
        listed.common_prefixes.retain(|prefix| !is_staged(prefix));
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.0.rename_opts(from, to, options).await
    }
}
