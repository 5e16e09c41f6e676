//! Files that statements write: they take their places when all rows are there, and leave nothing behind otherwise.
//!
//! DataFusion's sinks close their files when their input fails, so that a COPY that fails would leave half of its rows
//! in the place of a file that was there before, and an INSERT some of its files in the table. Here both write into a
//! hidden folder ([`crate::outputs`]), within a target that is a folder, else beside the file that it stands for, so
//! that it is on the same file system; [`Staged::commit`] moves what is in it. Each file is replaced whole or not at
//! all; several files of one statement are moved one after the other. What is written to a pipe, a device or an open
//! file of this process is staged too, and copied. Object stores other than this machine's are left to themselves.
//!
//! A COPY into a folder that has data files is refused unless it says what becomes of them: `OPTIONS (append true)`
//! keeps them, `OPTIONS (overwrite true)` takes those of its format away when all rows are there; a folder that has
//! others is refused.

mod lossless;
mod null_folders;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::config::ConfigOptions;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{LogicalPlan, WriteOp};

use lossless::lossless;
pub use lossless::unwritable;
use null_folders::with_null_folders;

use crate::access::Access;
use crate::catalog::{at_places, files_of_set, listing_of, replaceable_files};
use crate::error::{Result, SqlError};
use crate::file_sets;
use crate::locations::{is_elsewhere, local_path, mirrored, url_of};
use crate::outputs::{self, Destination, Hidden};
use crate::report::StatementReport;
use crate::syntax::shown_name;
use crate::text_formats::plain;
use crate::values::boolean;

/// What is written to a pipe or a device, until it is.
const STREAM_NAME: &str = "stream.part";
/// How long a task that was told to stop may still open a file.
const LINGER: Duration = Duration::from_millis(200);

/// The files that a statement writes. Without [`Staged::commit`] all of them are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Staged {
    folder: Hidden,
    /// The file or the folder of files that the statement writes there.
    written: PathBuf,
    /// The place of the file, or the folder of the files, in the end.
    target: PathBuf,
    is_special: bool,
    /// What the statement does with files that are in the target.
    before: Before,
    /// The extension of its format.
    format: String,
    /// The files that the session may reach: folders of the target may be links.
    access: Access,
}

/// What a COPY does with the files that are in its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// There must be none.
    None,
    Appended,
    Overwritten,
}

impl Before {
    /// Takes the options of a COPY that are not its format's.
    fn take(copy: &mut CopyTo) -> Result<Before> {
        let mut flag = |name: &str| match copy.options.remove(&format!("format.{name}")) {
            Some(value) => boolean(value.trim())
                .ok_or_else(|| SqlError::Planning(format!("COPY takes {name} true or {name} false, found '{value}'"))),
            None => Ok(false),
        };
        match (flag("append")?, flag("overwrite")?) {
            (true, true) => Err(SqlError::Planning("COPY either appends or overwrites".into())),
            (true, false) => Ok(Before::Appended),
            (false, true) => Ok(Before::Overwritten),
            (false, false) => Ok(Before::None),
        }
    }
}

impl Staged {
    /// Redirects what a plan writes to files of this machine; `None` where it writes none. Only the statement itself
    /// writes, or the one that EXPLAIN ANALYZE runs; what is explained and not run keeps its target.
    pub(crate) fn redirect(plan: LogicalPlan, options: &ConfigOptions) -> Result<(LogicalPlan, Option<Staged>)> {
        let access = Access::of(options);
        access.check_plan(&plan)?;
        let mut staged = None;
        let plan = match plan {
            LogicalPlan::Analyze(mut analyze) => {
                let (input, of_input) = Staged::redirect(Arc::unwrap_or_clone(analyze.input), options)?;
                (analyze.input, staged) = (Arc::new(input), of_input);
                LogicalPlan::Analyze(analyze)
            }
            LogicalPlan::Explain(mut explain) => {
                if let LogicalPlan::Copy(copy) = explain.plan.as_ref() {
                    let mut copy = copy.clone();
                    Before::take(&mut copy)?;
                    explain.plan = Arc::new(LogicalPlan::Copy(copy));
                }
                LogicalPlan::Explain(explain)
            }
            LogicalPlan::Copy(mut copy) => {
                let before = Before::take(&mut copy)?;
                check_names(&copy)?;
                copy.input = Arc::new(lossless(Arc::unwrap_or_clone(copy.input), &copy.file_type.get_ext())?);
                if !copy.partition_by.is_empty() {
                    let option = copy.options.get("execution.keep_partition_by_columns").map(|value| value.trim());
                    let kept = option.map_or(options.execution.keep_partition_by_columns, |value| value == "true");
                    let input = Arc::unwrap_or_clone(copy.input);
                    let keys: Vec<_> = copy.partition_by.iter().map(|key| (key.clone(), None)).collect();
                    copy.input = Arc::new(with_null_folders(input, &keys, kept)?);
                }
                if is_elsewhere(&copy.output_url) {
                    let what = format!("COPY TO '{}': write to a file of this machine", copy.output_url);
                    return Err(SqlError::Unsupported(what));
                }
                // What is written has this name, whatever characters of patterns are in it.
                let path = local_path(&copy.output_url);
                let is_folder = copy.output_url.ends_with('/') || path.as_ref().is_some_and(|path| path.is_dir());
                let place = match path {
                    Some(path) => Staged::beside(&path)?,
                    None => None,
                };
                match place {
                    Some(place) => {
                        let place = place.into_folder(before, copy.file_type.get_ext())?;
                        copy.output_url = place.location(is_folder);
                        staged = Some(place);
                    }
                    None if before == Before::Overwritten => {
                        let what = format!("COPY that overwrites '{}'", copy.output_url);
                        return Err(SqlError::Unsupported(what));
                    }
                    None => {}
                }
                LogicalPlan::Copy(copy)
            }
            LogicalPlan::Dml(mut dml) if matches!(dml.op, WriteOp::Insert(_)) => {
                let provider = source_as_provider(&dml.target)?;
                if let Some(table) = listing_of(provider.as_ref()) {
                    let keys = table.options().table_partition_cols.iter();
                    let keys: Vec<_> = keys.map(|(key, kind)| (key.clone(), Some(kind.clone()))).collect();
                    let format = &table.options().format;
                    check_insert(table)?;
                    dml.input = Arc::new(lossless(Arc::unwrap_or_clone(dml.input), &format.get_ext())?);
                    let mut place = match table.table_paths().as_slice() {
                        [url] if url.is_collection() => match folder_of(url) {
                            Some(folder) => Staged::beside(&folder)?,
                            None => None,
                        },
                        _ => None,
                    };
                    // The files that the table has leave when those of the statement are there.
                    if matches!(dml.op, WriteOp::Insert(InsertOp::Overwrite))
                        && let Some(whole) = place.take()
                    {
                        place = Some(whole.into_folder(Before::Overwritten, format.get_ext())?);
                        dml.op = WriteOp::Insert(InsertOp::Append);
                    }
                    let urls = match &place {
                        Some(place) => vec![ListingTableUrl::parse(place.location(true))?],
                        None => table.table_paths().clone(),
                    };
                    let kept = options.execution.keep_partition_by_columns;
                    dml.target = provider_as_source(Arc::new(at_places(table, urls, !kept)?));
                    if !keys.is_empty() {
                        dml.input = Arc::new(with_null_folders(Arc::unwrap_or_clone(dml.input), &keys, kept)?);
                    }
                    staged = place;
                }
                LogicalPlan::Dml(dml)
            }
            other => other,
        };
        if let Some(staged) = &mut staged {
            staged.access = access;
        }
        Ok((plan, staged))
    }

    /// A folder for what is to be written to a file or a folder.
    fn beside(path: &Path) -> Result<Option<Staged>> {
        let destination = Destination::of(path).map_err(|error| failed(path, &error))?;
        let is_special = matches!(destination, Destination::Special(_));
        let (parent, target) = match destination {
            Destination::File(target) => (target.parent().map_or_else(|| ".".into(), Path::to_path_buf), target),
            Destination::Folder(target) => (target.clone(), target),
            Destination::Special(target) => (folder_for(&target), target),
        };
        let Some(name) = path.file_name() else { return Ok(None) };
        let folder = Hidden::folder(&parent, name).map_err(|error| failed(&parent, &error))?;
        // A name without an extension would be that of a folder of files.
        let written = folder.path().join(if is_special { OsStr::new(STREAM_NAME) } else { name });
        let (before, format, access) = (Before::Appended, String::new(), Access::default());
        Ok(Some(Staged { written, folder, target, is_special, before, format, access }))
    }

    /// The same for a statement that says what becomes of the files that are in its folder.
    fn into_folder(mut self, before: Before, format: String) -> Result<Staged> {
        if !self.target.is_dir() && before == Before::Appended && self.target.is_file() {
            let what = format!("COPY that appends to a file ('{}')", self.target.display());
            return Err(SqlError::Unsupported(what));
        }
        (self.before, self.format) = (before, format);
        self.replaced().map(|_| self)
    }

    /// The files that leave, as the folder is now.
    ///
    /// # Errors
    /// [`SqlError::FolderNotEmpty`] and [`SqlError::FolderMixed`] for a folder that must not be written as it is.
    fn replaced(&self) -> Result<Vec<PathBuf>> {
        let path = || format!("{}/", self.target.display());
        match self.before {
            _ if !self.target.is_dir() => Ok(Vec::new()),
            Before::None if !files_of_set(&self.target).is_empty() => Err(SqlError::FolderNotEmpty { path: path() }),
            Before::None | Before::Appended => Ok(Vec::new()),
            Before::Overwritten => replaceable_files(&self.target, &self.format).map_err(|file| {
                let (file, format) = (file.display().to_string(), self.format.clone());
                SqlError::FolderMixed { path: path(), file, format }
            }),
        }
    }

    /// Where the statement writes, as a URL: a path could be a pattern.
    fn location(&self, is_folder: bool) -> String {
        url_of(&self.written, is_folder)
    }

    /// Moves all files to their places, unless the statement was cancelled before the first one; a pipe is written
    /// until the statement is cancelled.
    ///
    /// # Errors
    /// [`SqlError::Cancelled`]; [`SqlError::FileAccess`] if a file cannot be moved; those before it have been, and what
    /// is to be replaced is all there.
    pub(crate) fn commit(self, report: &StatementReport) -> Result<()> {
        // Folders are made first: what does not exist has no lock, and two statements may make it.
        let is_file = self.is_special || self.written.is_file();
        let is_new = !is_file && !self.target.exists();
        if !is_file {
            fs::create_dir_all(&self.target).map_err(|error| failed(&self.target, &error))?;
        }
        let _lock = (!is_file).then(|| file_sets::changed(&self.target));
        let replaced = self.replaced()?;
        if !self.is_special
            && let Err(cancelled) = report.commit()
        {
            // Another statement may have written into the new folder; then it stays.
            let _ = is_new && fs::remove_dir(&self.target).is_ok();
            return Err(cancelled);
        }
        let is_stopped = || report.cancel().is_cancelled();
        let mut files = Vec::new();
        files_below(&self.written, &mut files).map_err(|error| failed(&self.written, &error))?;
        let mut places = HashSet::new();
        for file in files {
            let place = match file.strip_prefix(&self.written) {
                Ok(below) if !below.as_os_str().is_empty() && !self.is_special => self.target.join(below),
                _ => self.target.clone(),
            };
            self.access.check_path(&place)?;
            let parent = place.parent().unwrap_or(&self.target);
            let moved = fs::create_dir_all(parent).and_then(|()| outputs::put(&file, &place, is_stopped));
            moved.map_err(|error| failed(&place, &error))?;
            places.insert(place);
        }
        for file in replaced.iter().filter(|file| !places.contains(*file)) {
            self.access.check_path(file)?;
            outputs::check_place(file).map_err(|error| failed(file, &error))?;
            fs::remove_file(file).map_err(|error| failed(file, &error))?;
            // Folders of keys that hold nothing any more; one that does stays.
            let folders = file.ancestors().skip(1).take_while(|folder| *folder != self.target);
            folders.map(fs::remove_dir).take_while(io::Result::is_ok).for_each(drop);
        }
        self.folder.keep_folders();
        Ok(())
    }
}

fn failed(path: &Path, error: &io::Error) -> SqlError {
    SqlError::FileAccess(format!("{}: {error}", path.display()))
}

impl Drop for Staged {
    fn drop(&mut self) {
        // The hidden folder is removed with its guard; a task that was told to stop may make it anew.
        let folder = self.folder.root().to_path_buf();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                let _ = fs::remove_dir_all(folder);
            });
        }
    }
}

/// Refuses columns of one name where a file's columns are found by their names, and keys of folders that could not be
/// told from their values.
fn check_names(copy: &CopyTo) -> Result<()> {
    if let Some(key) = copy.partition_by.iter().find(|key| key.contains('=')) {
        return Err(SqlError::Unsupported(format!(
            "PARTITION_BY '{key}': the name of a folder 'key=value' ends the key at its first '='; name the column \
             otherwise with AS"
        )));
    }
    let format = copy.file_type.get_ext();
    let fields = copy.input.schema().fields();
    let mut names = HashSet::new();
    match fields.iter().map(|field| shown_name(field.name())).find(|name| !names.insert(*name)) {
        Some(name) if format != "csv" || !copy.partition_by.is_empty() => Err(SqlError::Planning(format!(
            "two columns of the {} file would be named '{name}'; name one otherwise with AS",
            format.to_uppercase()
        ))),
        _ => Ok(()),
    }
}

/// The folder of this machine that a table's location names.
fn folder_of(url: &ListingTableUrl) -> Option<PathBuf> {
    Some(url).filter(|url| url.scheme() == "file").and_then(|url| url.get_url().to_file_path().ok())
}

/// Refuses an INSERT whose rows the table would not have.
fn check_insert(table: &ListingTable) -> Result<()> {
    let format = &table.options().format;
    let extension = format
        .compression_type()
        .map_or_else(|| Ok(format.get_ext()), |compression| format.get_ext_with_compression(&compression))?;
    let is_unread = |url: &&ListingTableUrl| {
        let glob = url.get_glob().as_ref();
        glob.is_some_and(|glob| !glob.matches(&format!("new.{extension}")))
    };
    if table.table_paths().len() > 1 {
        return Err(SqlError::Unsupported(
            "INSERT into a table over several locations; name the folder that takes the rows".into(),
        ));
    }
    let is_mirrored = |url: &ListingTableUrl| folder_of(url).is_some_and(|path| mirrored(&path).is_some());
    if table.table_paths().iter().any(is_mirrored) {
        return Err(SqlError::Unsupported("INSERT into a table over files elsewhere, which are read alone".into()));
    }
    if let Some(url) = table.table_paths().iter().find(is_unread) {
        let pattern = url.get_glob().as_ref().map(|glob| glob.as_str().to_string()).unwrap_or_default();
        return Err(SqlError::Unsupported(format!(
            "INSERT into a table over the files '{pattern}', among which the new one ('….{extension}') would not be"
        )));
    }
    let any = plain(format);
    let is_other =
        any.downcast_ref::<CsvFormat>().is_some_and(|csv| !matches!(csv.options().terminator, None | Some(b'\n')))
            || any.downcast_ref::<JsonFormat>().is_some_and(|json| !json.is_newline_delimited());
    match is_other {
        true => Err(SqlError::Unsupported(
            "INSERT into a table whose rows end otherwise than with a newline, as those of a JSON array".into(),
        )),
        false => Ok(()),
    }
}

/// Where a statement writes what it then copies to a pipe or a device: beside it, unless that is the system's folder.
fn folder_for(special: &Path) -> PathBuf {
    let is_of_system = |folder: &&Path| folder.starts_with("/dev") || folder.starts_with("/proc");
    special.parent().filter(|folder| !is_of_system(folder)).map_or_else(std::env::temp_dir, Path::to_path_buf)
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
