//! Files that statements write: they take their places when all rows are there, and leave nothing behind otherwise.
//!
//! DataFusion's sinks close their files when their input fails, so that a COPY that fails would leave half of its rows
//! in the place of a file that was there before, and an INSERT some of its files in the table. Here both write into a
//! hidden folder, within a target that is a folder, else beside it, so that it is on the same file system;
//! [`Staged::commit`] moves what is in it. Each file is replaced whole or not at all; several files of one statement
//! are moved one after the other. Object stores other than this machine's are left to themselves.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow::datatypes::{Field, Schema};
use datafusion::datasource::listing::{ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{LogicalPlan, WriteOp};

use crate::access::Access;
use crate::catalog::STAGED_SUFFIX;
use crate::error::{Result, SqlError};

/// Tells the folders of one process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// How long a task that was told to stop may still open a file.
const LINGER: Duration = Duration::from_millis(200);

/// What a statement writes, until it is done. Dropped without [`Staged::commit`], nothing of it is left.
#[derive(Debug)]
pub(crate) struct Staged {
    /// The hidden folder.
    folder: PathBuf,
    /// What appears in it, a file or a folder of files.
    written: PathBuf,
    /// Where that goes.
    target: PathBuf,
}

impl Staged {
    /// Redirects what a plan writes to files of this machine; `None` where it writes none. Only the statement itself
    /// writes, or the one that EXPLAIN ANALYZE runs; what is explained and not run keeps its target.
    pub(crate) fn redirect(plan: LogicalPlan, access: &Access) -> Result<(LogicalPlan, Option<Staged>)> {
        access.check_plan(&plan)?;
        let mut staged = None;
        let plan = match plan {
            LogicalPlan::Analyze(mut analyze) => {
                let (input, of_input) = Staged::redirect(Arc::unwrap_or_clone(analyze.input), access)?;
                (analyze.input, staged) = (Arc::new(input), of_input);
                LogicalPlan::Analyze(analyze)
            }
            LogicalPlan::Copy(mut copy) => {
                let url = ListingTableUrl::parse(&copy.output_url)?;
                if let Some(place) = Staged::beside(&url).filter(|_| url.get_glob().is_none()) {
                    copy.output_url = place.location(url.is_collection());
                    staged = Some(place.made()?);
                }
                LogicalPlan::Copy(copy)
            }
            LogicalPlan::Dml(mut dml) if matches!(dml.op, WriteOp::Insert(_)) => {
                let provider = source_as_provider(&dml.target)?;
                if let Some((place, table)) = provider.downcast_ref::<ListingTable>().and_then(elsewhere) {
                    dml.target = provider_as_source(Arc::new(table?));
                    staged = Some(place.made()?);
                }
                LogicalPlan::Dml(dml)
            }
            other => other,
        };
        Ok((plan, staged))
    }

    /// The same with its folder made.
    fn made(self) -> Result<Staged> {
        fs::create_dir_all(&self.folder).map_err(|error| self.failed(&self.folder, &error))?;
        Ok(self)
    }

    /// A folder for what is to be written to `url`, if that is on this machine: a file, or a folder with whatever
    /// pattern below it.
    fn beside(url: &ListingTableUrl) -> Option<Staged> {
        if url.scheme() != "file" {
            return None;
        }
        let target = url.get_url().to_file_path().ok()?;
        if fs::metadata(&target).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return None;
        }
        let name = target.file_name()?.to_string_lossy().into_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let hidden = format!(".{name}.{}-{number}{STAGED_SUFFIX}", std::process::id());
        let folder = if target.is_dir() { target.join(hidden) } else { target.with_file_name(hidden) };
        Some(Staged { written: folder.join(&name), folder, target })
    }

    /// Where the statement writes, as text.
    fn location(&self, is_folder: bool) -> String {
        format!("{}{}", self.written.display(), if is_folder { "/" } else { "" })
    }

    /// Moves all files to their places.
    ///
    /// # Errors
    /// [`SqlError::FileAccess`] if one of them cannot be moved; those before it have been.
    pub(crate) fn commit(self) -> Result<()> {
        let mut files = Vec::new();
        files_below(&self.written, &mut files).map_err(|error| self.failed(&self.written, &error))?;
        for file in files {
            let place = match file.strip_prefix(&self.written) {
                Ok(below) if !below.as_os_str().is_empty() => self.target.join(below),
                _ => self.target.clone(),
            };
            let parent = place.parent().unwrap_or(&self.target);
            let moved = fs::create_dir_all(parent).and_then(|()| fs::rename(&file, &place));
            moved.map_err(|error| self.failed(&place, &error))?;
        }
        Ok(())
    }

    fn failed(&self, path: &Path, error: &io::Error) -> SqlError {
        SqlError::FileAccess(format!("{}: {error}", path.display()))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // It may be gone already, and there is nobody to tell otherwise.
        let _ = fs::remove_dir_all(&self.folder);
        let folder = std::mem::take(&mut self.folder);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                let _ = fs::remove_dir_all(folder);
            });
        }
    }
}

/// The same table over another folder, empty as yet.
fn elsewhere(table: &ListingTable) -> Option<(Staged, datafusion::error::Result<ListingTable>)> {
    let [url] = table.table_paths().as_slice() else { return None };
    let place = Staged::beside(url).filter(|_| url.is_collection())?;
    let options = table.options().clone();
    let partitioned = |field: &Field| options.table_partition_cols.iter().any(|(name, _)| name == field.name());
    let schema = datafusion::catalog::TableProvider::schema(table);
    let fields: Vec<_> = schema.fields().iter().filter(|field| !partitioned(field)).cloned().collect();
    let made = ListingTableUrl::parse(place.location(true)).and_then(|url| {
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(Arc::new(schema));
        ListingTable::try_new(config)
    });
    Some((place, made))
}

/// All files at or below a path, in order; none if there is nothing.
fn files_below(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.try_exists()? {
        return Ok(());
    }
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| files_below(entry, files))
}
