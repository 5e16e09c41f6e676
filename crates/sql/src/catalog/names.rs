//! Files, folders, patterns and calls of functions that read files, as tables by their names: `FROM 'file.parquet'`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::CreateExternalTable;

use super::files::{ExternalTable, known_files, matching, missing, mixed};
use super::memory::mirror_of;
use super::patterns::{by_folder, with_braces};
use super::readers::{self, Reading};
use super::text_files::{TextReading, is_text_file};
use crate::access::Access;
use crate::cubes::{CubeTable, Cubes, folder_of};
use crate::error::{Result, SqlError};
use crate::file_sets::is_partition;
use crate::formats::{FileType, SUPPORTED, split_compression, unknown_extension};
use crate::locations::{canonical, is_elsewhere, is_pattern, local_path, shown};

/// The table that a file's name stands for, or none where the name does not look like one.
pub(crate) async fn by_name(state: &dyn Session, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    if let Some(reading) = readers::called(name)? {
        return Ok(Some(readers::open(state, name, &reading).await?));
    }
    if is_elsewhere(name) {
        return Ok(Some(by_url(state, name).await?));
    }
    if name.contains("://") && !name.starts_with("file://") {
        return Ok(None);
    }
    let known = FileType::by_extension(name).is_some();
    let braced = with_braces(name);
    let path = local_path(name).unwrap_or_else(|| PathBuf::from(name));
    let is_path =
        name.contains('/') || is_pattern(name) || braced.len() > 1 || known || Path::new(name).extension().is_some();
    let access = Access::of(state.config_options());
    if !is_path && (access.check_path(&path).is_err() || !(path.exists() || folder_of(name).is_some())) {
        return Ok(None);
    }
    access.check_location(name)?;
    if let (Some(folder), Some(cubes)) = (folder_of(name), state.config().get_extension::<Cubes>()) {
        let open = cubes.open(&folder, state.config_options())?;
        return Ok(Some(Arc::new(CubeTable::new(open))));
    }
    let sample = match (is_pattern(name), path.is_dir()) {
        _ if braced.len() > 1 => Some(PathBuf::from(&braced[0])),
        (true, _) => matching(name)?.into_iter().next(),
        (false, true) => {
            let files = known_files(&path);
            let kind = |file: &PathBuf| FileType::by_extension(&file.to_string_lossy()).map(|(kind, _)| kind.name);
            if let Some(other) = files.iter().find(|file| kind(file) != kind(&files[0])) {
                return Err(mixed(name, &files[0], other));
            }
            files.into_iter().next()
        }
        (false, false) if path.exists() => Some(path.clone()),
        (false, false) if is_path => return Err(missing(name)),
        (false, false) => return Ok(None),
    };
    let Some(sample) = sample else {
        let reason = format!("there is no file to read here; {SUPPORTED}");
        return Err(SqlError::FileNone { path: name.to_string(), reason });
    };
    at_place(state, name, name, &sample).await.map(Some)
}

/// The table that the URL of files elsewhere stands for.
async fn by_url(state: &dyn Session, url: &str) -> Result<Arc<dyn TableProvider>> {
    Access::of(state.config_options()).check_location(url)?;
    let braced = with_braces(url);
    if let [first, _, ..] = braced.as_slice() {
        let known = FileType::by_extension(first).map(|_| split_compression(first).0.rsplit('.').next());
        let extension = known.flatten().ok_or_else(|| unknown_extension(first))?.to_string();
        return readers::open(state, url, &Reading::of_path(url, extension)).await;
    }
    let place = mirror_of(state)?.open(state, url, None).await?.location();
    let path = PathBuf::from(&place);
    let found = if path.is_dir() { known_files(&path) } else { matching(&place)? };
    let kind = |file: &PathBuf| FileType::by_extension(&file.to_string_lossy()).map(|(kind, _)| kind.name);
    if let Some(other) = found.iter().find(|file| kind(file) != kind(&found[0])) {
        return Err(mixed(&place, &found[0], other));
    }
    match found.first() {
        Some(sample) => at_place(state, url, &place, sample).await,
        None => Err(missing(url)),
    }
}

/// The table that is called `name` over the files of a place, of which `sample` is one.
async fn at_place(state: &dyn Session, name: &str, place: &str, sample: &Path) -> Result<Arc<dyn TableProvider>> {
    let access = Access::of(state.config_options());
    let sample = sample.to_string_lossy();
    let extension = split_compression(&sample).0.rsplit('.').next().unwrap_or_default().to_string();
    if FileType::by_extension(&sample).is_none() {
        return Err(unknown_extension(&shown(Path::new(sample.as_ref()))));
    }
    let is_several = with_braces(place).len() > 1;
    if is_several || TextReading::current().is_none() && has_keys_above(place, Path::new(sample.as_ref()))? {
        return readers::open(state, name, &Reading::of_path(place, extension)).await;
    }
    let reference = TableReference::bare(name.to_string());
    let mut command = CreateExternalTable::builder(reference, place, extension, Arc::new(DFSchema::empty())).build();
    let reading = TextReading::current().filter(|_| is_text_file(Path::new(sample.as_ref())));
    if let Some(reading) = &reading {
        reading.prepare(&mut command, &sample, &access)?;
    }
    Ok(ExternalTable::open_as(state, &command, reading.as_deref()).await?.table)
}

/// Whether a pattern has wildcards for folders, and these are `key=value`.
fn has_keys_above(pattern: &str, sample: &Path) -> Result<bool> {
    let place = canonical(pattern);
    let mut folders = sample.parent().into_iter().flat_map(Path::iter);
    let has_keys = folders.any(|folder| is_partition(&folder.to_string_lossy()));
    Ok(has_keys && is_pattern(pattern) && by_folder(&place)? != [place.as_str()])
}

/// True if a name in place of a table means text files with delimiters.
pub(crate) fn means_text(name: &str) -> bool {
    if let Ok(Some(reading)) = readers::called(name) {
        return reading.file_type == "CSV";
    }
    let path = local_path(name).unwrap_or_else(|| PathBuf::from(name));
    let sample = match (is_pattern(name), path.is_dir()) {
        (true, _) => matching(name).unwrap_or_default().into_iter().next(),
        (false, true) => known_files(&path).into_iter().next(),
        (false, false) => Some(path),
    };
    folder_of(name).is_none() && sample.is_some_and(|sample| is_text_file(&sample))
}
