//! Patterns of files: what their wildcards for folders stand for.
//!
//! DataFusion's patterns match names of files, in one folder and in `key=value` folders below it. A pattern with
//! wildcards above its last part becomes several, one for each folder that they mean; `**` is left to DataFusion.

use glob::MatchOptions;

use crate::error::{Result, SqlError};

/// Folders are matched one level a wildcard, and hidden ones by name alone.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Whether a location is a pattern.
pub(super) fn is_pattern(location: &str) -> bool {
    location.contains(['*', '?', '['])
}

/// The locations that a location on this machine means, in order: itself, or one for each folder that its wildcards
/// mean; none if there is no such folder.
///
/// # Errors
/// [`SqlError::FileNone`] for what is no pattern although it looks like one.
pub(super) fn by_folder(location: &str) -> Result<Vec<String>> {
    let itself = || Ok(vec![location.to_string()]);
    let (scheme, path) = match location.strip_prefix("file://") {
        Some(path) => ("file://", path),
        None if location.contains("://") => return itself(),
        None => ("", location),
    };
    let Some((folders, name)) = path.trim_end_matches('/').rsplit_once('/') else { return itself() };
    if !is_pattern(folders) || folders.contains("**") {
        return itself();
    }
    let refused = |reason: String| SqlError::FileNone { path: location.to_string(), reason };
    let found = glob::glob_with(folders, OPTIONS).map_err(|error| refused(format!("no pattern: {}", error.msg)))?;
    let folders = found.filter_map(|folder| folder.ok()).filter(|folder| folder.is_dir());
    let mut locations: Vec<String> = folders
        .map(|folder| folder.join(name))
        // A name without wildcards may be in some of the folders alone.
        .filter(|place| is_pattern(name) || place.exists())
        .map(|place| format!("{scheme}{}", place.display()))
        .collect();
    locations.sort();
    Ok(locations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_of_folders_become_locations() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/1/x.csv", "a/2/x.csv", "b/1/y.csv", ".hidden/1/x.csv"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = folder.path().display().to_string();
        let found = |pattern: &str| -> Vec<String> {
            let locations = by_folder(&format!("{root}/{pattern}")).unwrap();
            locations.iter().map(|location| location[root.len() + 1..].to_string()).collect()
        };
        assert_eq!(found("*/*/*.csv"), ["a/1/*.csv", "a/2/*.csv", "b/1/*.csv"]);
        assert_eq!(found("?/[13]/x.csv"), ["a/1/x.csv"]);
        assert_eq!(found("*/1/*.csv"), ["a/1/*.csv", "b/1/*.csv"]);
        assert_eq!(found("nothing*/x.csv"), Vec::<String>::new());
        for as_it_is in ["a/1/*.csv", "**/x.csv", "a/1/x.csv"] {
            assert_eq!(found(as_it_is), [as_it_is]);
        }
        assert_eq!(by_folder("s3://bucket/*/x.csv").unwrap(), ["s3://bucket/*/x.csv"]);
    }
}
