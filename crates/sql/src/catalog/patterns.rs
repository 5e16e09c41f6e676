//! Patterns of files: what their wildcards for folders stand for.
//!
//! DataFusion's patterns match names of files, in one folder and in `key=value` folders below it. A pattern with
//! wildcards above its last part becomes several, one for each folder that they mean; `**` means folders of any depth.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};

use super::folders::data_files;
use crate::error::{Result, SqlError};
use crate::file_sets::is_partition;
use crate::locations::{has_wildcards, is_pattern, local_path, shown, url_of};

/// Folders are matched one level a wildcard, and hidden ones by name alone.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The locations that a location on this machine means, in order: itself, or one for each folder that its wildcards
/// mean; none if there is no such folder.
///
/// # Errors
/// [`SqlError::FileNone`] for what is no pattern although it looks like one.
pub(super) fn by_folder(location: &str) -> Result<Vec<String>> {
    if location.contains("://") && !location.starts_with("file://") {
        return Ok(vec![location.to_string()]);
    }
    let path = location.strip_prefix("file://").unwrap_or(location).trim_end_matches('/');
    let itself = || Ok(one_by_one(location.to_string()));
    if !is_pattern(path) {
        return itself();
    }
    if let Err(error) = Pattern::new(path) {
        return Err(SqlError::FileNone { path: location.to_string(), reason: no_pattern(&error) });
    }
    // Folders of any depth without a name behind them: every file in them.
    let (folders, name) = match path.rsplit_once('/') {
        Some((_, "**")) => (path, "*"),
        None if path == "**" => (path, "*"),
        Some(parts) => parts,
        None => return itself(),
    };
    if !is_pattern(folders) {
        return itself();
    }
    let mut locations: Vec<String> = matching(folders, has_wildcards(name))
        .map_err(|reason| SqlError::FileNone { path: location.to_string(), reason })?
        .into_iter()
        .map(|folder| folder.join(name))
        // A name without wildcards may be in some of the folders alone.
        .filter(|place| has_wildcards(name) || place.exists())
        .flat_map(|place| one_by_one(place.display().to_string()))
        .collect();
    locations.sort();
    Ok(locations)
}

/// The locations that braces mean, `{a,b}`, in their order: one for each word. A name that exists is that file.
pub(super) fn with_braces(location: &str) -> Vec<String> {
    let parts = location.find('{').and_then(|open| {
        let mut depth = 0_usize;
        let mut commas = Vec::new();
        for (at, byte) in location.bytes().enumerate().skip(open) {
            match byte {
                b'{' => depth += 1,
                b',' if depth == 1 => commas.push(at),
                b'}' if depth == 1 => return (!commas.is_empty()).then_some((open, commas, at)),
                b'}' => depth -= 1,
                _ => {}
            }
        }
        None
    });
    let is_there = || local_path(location).is_some_and(|path| path.exists());
    let Some((open, commas, close)) = parts.filter(|_| !is_there()) else { return vec![location.to_string()] };
    let begins = std::iter::once(open).chain(commas.iter().copied());
    let ends = commas.iter().copied().chain([close]);
    let whole = |(begin, end): (usize, usize)| {
        format!("{}{}{}", &location[..open], &location[begin + 1..end], &location[close + 1..])
    };
    begins.zip(ends).map(whole).flat_map(|location| with_braces(&location)).collect()
}

/// A location, or its files where DataFusion would take the name of its folder for a pattern.
fn one_by_one(location: String) -> Vec<String> {
    let is_odd = location.rsplit_once('/').is_some_and(|(folder, _)| has_wildcards(folder));
    match is_odd && is_pattern(&location) {
        true => matching_names(Path::new(&location)).iter().map(|file| file.display().to_string()).collect(),
        false => vec![location],
    }
}

/// The local files that a pattern without wildcards of folders means, in order.
pub(super) fn matching_names(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (Some(folder), Ok(name)) = (pattern.parent(), Pattern::new(&name)) else { return Vec::new() };
    let is_match = |file: &PathBuf| file.file_name().is_some_and(|found| name.matches(&found.to_string_lossy()));
    // A pattern without a folder is one of the working folder.
    let is_here = folder.as_os_str().is_empty();
    let files = data_files(if is_here { Path::new(".") } else { folder }).into_iter();
    let as_written = |file: PathBuf| file.strip_prefix(".").map(Path::to_path_buf).unwrap_or(file);
    files.filter(is_match).map(|file| if is_here { as_written(file) } else { file }).collect()
}

/// Whether DataFusion's lists leave out a file that a pattern means: a part of a path that has a `=` is the folder of a
/// key there, the file's own name too.
pub(super) fn is_unlisted(name: &str) -> bool {
    name.contains('=')
}

/// The files of a location that is a pattern which its list leaves out; each is a location of its own.
///
/// # Errors
/// [`SqlError::FileFormat`] for one in the folder of a key, which a location of its own would not have.
pub(super) fn unlisted(location: &str) -> Result<Vec<String>> {
    if !is_pattern(location) {
        return Ok(Vec::new());
    }
    let pattern = Path::new(location);
    let mut files = matching_names(pattern);
    files.retain(|file| file.file_name().is_some_and(|name| is_unlisted(&name.to_string_lossy())));
    match files.iter().find(|file| file.parent() != pattern.parent()) {
        Some(file) => Err(SqlError::FileFormat {
            path: shown(file),
            reason: "its own name has a '=', as its folder's has, which is read by a pattern with wildcards for all \
                     such folders ('*/*.parquet') alone; or rename it"
                .into(),
        }),
        None => Ok(files.iter().map(|file| url_of(file, false)).collect()),
    }
}

/// A pattern in which the folders that exist are names.
fn with_names(pattern: &str) -> String {
    let slashes = pattern.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
    let is_name = |at: &usize| Path::new(&pattern[..*at]).exists();
    match slashes.into_iter().rev().find(is_name) {
        Some(at) if has_wildcards(&pattern[..at]) => format!("{}{}", Pattern::escape(&pattern[..at]), &pattern[at..]),
        _ => pattern.to_string(),
    }
}

fn no_pattern(error: &PatternError) -> String {
    format!("no pattern: {}", error.msg)
}

/// The folders that a pattern means; where they are read `whole`, not those that are read as partitions of others.
fn matching(pattern: &str, whole: bool) -> Result<BTreeSet<PathBuf>, String> {
    let found = |pattern: &str| {
        let found = glob::glob_with(&with_names(pattern), OPTIONS).map_err(|error| no_pattern(&error))?;
        Ok::<_, String>(found.filter_map(|folder| folder.ok()).filter(|folder| folder.is_dir()).collect::<Vec<_>>())
    };
    let mut folders: BTreeSet<PathBuf> = found(pattern)?.into_iter().collect();
    // No folder at all is a depth, too.
    match pattern.strip_suffix("**").map(|above| above.trim_end_matches('/')) {
        Some("") => drop(folders.insert(PathBuf::from(if pattern.starts_with('/') { "/" } else { "." }))),
        Some(above) => folders.extend(found(above)?),
        None => {}
    }
    // What begins with an underscore is asked for by its name.
    let named: BTreeSet<&str> = pattern.split('/').collect();
    let is_hidden = |folder: &PathBuf| {
        let mut names = folder.components().filter_map(|part| part.as_os_str().to_str());
        names.any(|name| name.starts_with('_') && !named.contains(name))
    };
    folders.retain(|folder| !is_hidden(folder));
    // The folder above a partition reads it.
    let is_read = |folder: &PathBuf| {
        let is_partition = folder.file_name().is_some_and(|name| is_partition(&name.to_string_lossy()));
        whole && is_partition && folder.parent().is_some_and(|above| folders.contains(above))
    };
    Ok(folders.iter().filter(|folder| !is_read(folder)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_become_locations() {
        assert_eq!(with_braces("x{a,b}.csv"), ["xa.csv", "xb.csv"]);
        assert_eq!(with_braces("{a,b{1,2}}/{c,}*"), ["a/c*", "a/*", "b1/c*", "b1/*", "b2/c*", "b2/*"]);
        for as_it_is in ["x.csv", "{a}.csv", "{a,b", "a}{,"] {
            assert_eq!(with_braces(as_it_is), [as_it_is]);
        }
    }

    #[test]
    fn wildcards_of_folders_become_locations() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/1/x.csv", "a/2/x.csv", "b/1/y.csv", ".hidden/1/x.csv", "a/k=1/j=2/x.csv", "_h/z.csv"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = folder.path().display().to_string();
        let found = |pattern: &str| -> Vec<String> {
            let locations = by_folder(&format!("{root}/{pattern}")).unwrap();
            locations.iter().map(|location| location[root.len() + 1..].to_string()).collect()
        };
        assert_eq!(found("*/*/*.csv"), ["a/1/*.csv", "a/2/*.csv", "a/k=1/*.csv", "b/1/*.csv"]);
        assert_eq!(found("?/[13]/x.csv"), ["a/1/x.csv"]);
        assert_eq!(found("*/1/*.csv"), ["a/1/*.csv", "b/1/*.csv"]);
        assert_eq!(found("nothing*/x.csv"), Vec::<String>::new());
        assert_eq!(found("**/x.csv"), ["a/1/x.csv", "a/2/x.csv", "a/k=1/j=2/x.csv"]);
        assert_eq!(found("**/1/*.csv"), ["a/1/*.csv", "b/1/*.csv"]);
        assert_eq!(found("**/*.csv"), ["*.csv", "a/*.csv", "a/1/*.csv", "a/2/*.csv", "b/*.csv", "b/1/*.csv"]);
        assert_eq!(found("a/**"), ["a/*", "a/1/*", "a/2/*"]);
        assert_eq!(found("_h*/*.csv"), Vec::<String>::new());
        for as_it_is in ["a/1/*.csv", "_h/z.csv", "a/1/x.csv"] {
            assert_eq!(found(as_it_is), [as_it_is]);
        }
        assert_eq!(by_folder("s3://bucket/*/x.csv").unwrap(), ["s3://bucket/*/x.csv"]);
    }
}
