//! Column files: where the encoded columns of a table over files are stored, and the identity of the table in them.
//!
//! A file `t.parquet` has `t.parquet.warpcols` beside it; a folder or a pattern has a hidden file in the folder; a
//! folder of `warpcube.encoded_folder` holds the files of all tables by a hash. The identity holds all that decides
//! which rows are read, how, and in which order: the locations, the format with its options, the program, and for scans
//! that DataFusion plans its version, its settings and the number of parts. The files themselves are in the version of
//! the table.

use std::path::{Path, PathBuf};

use datafusion::DATAFUSION_VERSION;
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::execution::SessionState;
use warpcube_column::ColumnFile;

use crate::catalog::COLUMN_FILE_SUFFIX;
use crate::locations::mirrored;
use crate::lower::TableInfo;
use crate::settings::Settings;
use crate::values::EncodedFiles;

/// DataFusion's settings that scans may depend on.
const SCAN_SETTINGS: [&str; 3] = ["datafusion.catalog.", "datafusion.execution.", "datafusion.optimizer."];
/// Left out: a load sets the partitions of its scans itself.
const PARTITIONS_SETTING: &str = "datafusion.execution.target_partitions";

/// The column file of a table; none where it has none. `parts` gives the number of partitions in which DataFusion scans
/// the table, none for files that are read directly.
pub(crate) fn column_file(
    info: &TableInfo,
    state: &SessionState,
    parts: impl FnOnce() -> Option<usize>,
) -> Option<ColumnFile> {
    let options = state.config_options();
    let settings = options.extensions.get::<Settings>()?;
    if settings.encoded_files == EncodedFiles::Off {
        return None;
    }
    let listing = info.provider.downcast_ref::<ListingTable>()?;
    let urls = listing.table_paths();
    // The version of a table does not cover files in subfolders.
    let is_seen = options.execution.listing_table_ignore_subdirectory;
    let is_here = |url: &ListingTableUrl| url.get_url().to_file_path().is_ok_and(|path| mirrored(&path).is_none());
    if !is_seen || urls.is_empty() || !urls.iter().all(is_here) {
        return None;
    }
    let pattern = |url: &ListingTableUrl| url.get_glob().as_ref().map(|pattern| pattern.as_str().to_string());
    let locations: Vec<_> = urls.iter().map(|url| (url.as_str(), pattern(url))).collect();
    let format = match listing.options().format.get_ext() {
        // Options of the Parquet format change the table's columns alone, which its version has.
        extension if extension == "parquet" => extension,
        _ => format!("{:?}", listing.options().format),
    };
    let table = format!("{locations:?} as {format} by {:?}", listing.options().table_partition_cols);
    let path = path(urls, settings.encoded_folder.as_deref(), &table)?;
    let way = parts().map_or("row groups".into(), |parts| {
        format!("DataFusion {DATAFUSION_VERSION} in {parts} parts{}", scan_settings(options))
    });
    let table = format!("{table}, {way}, warpcube {}", env!("CARGO_PKG_VERSION"));
    Some(ColumnFile { path, table, write: settings.encoded_files == EncodedFiles::Write })
}

/// Settings of scans that are not at their defaults.
fn scan_settings(options: &ConfigOptions) -> String {
    let is_of_scans = |name: &str| SCAN_SETTINGS.iter().any(|prefix| name.starts_with(prefix));
    let defaults = ConfigOptions::default().entries();
    let mut settings: Vec<String> = options
        .entries()
        .into_iter()
        .filter(|entry| is_of_scans(&entry.key) && entry.key != PARTITIONS_SETTING)
        .filter(|entry| !defaults.iter().any(|default| default.key == entry.key && default.value == entry.value))
        .map(|entry| format!(", {} = {:?}", entry.key, entry.value))
        .collect();
    settings.sort();
    settings.concat()
}

/// The file for a table at these locations.
fn path(urls: &[ListingTableUrl], folder: Option<&Path>, table: &str) -> Option<PathBuf> {
    let location = urls.first()?.get_url().to_file_path().ok()?;
    let stem = location.file_name()?.to_string_lossy().into_owned();
    if let Some(folder) = folder {
        return Some(folder.join(format!("{stem}-{:016x}{COLUMN_FILE_SUFFIX}", hash(table))));
    }
    Some(match urls {
        [url] if !url.is_collection() && url.get_glob().is_none() => {
            location.with_file_name(format!("{stem}{COLUMN_FILE_SUFFIX}"))
        }
        [url, ..] if url.is_collection() => location.join(format!(".{stem}-{:016x}{COLUMN_FILE_SUFFIX}", hash(table))),
        _ => location.with_file_name(format!(".{stem}-{:016x}{COLUMN_FILE_SUFFIX}", hash(table))),
    })
}

/// FNV-1a, the same in every version of the program.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(locations: &[&str], folder: Option<&str>) -> String {
        let urls: Vec<ListingTableUrl> =
            locations.iter().map(|location| ListingTableUrl::parse(location).unwrap()).collect();
        path(&urls, folder.map(Path::new), "table").unwrap().display().to_string()
    }

    #[test]
    fn files_are_beside_their_tables_or_in_a_folder() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        let hash = format!("{:016x}", hash("table"));
        assert_eq!(path_of(&["/no/a b.parquet"], None), "/no/a b.parquet.warpcols");
        assert_eq!(path_of(&["/no/t/*.parquet"], None), format!("/no/t/.t-{hash}.warpcols"));
        assert_eq!(path_of(&["/no/t/"], None), format!("/no/t/.t-{hash}.warpcols"));
        assert_eq!(path_of(&["/no/a.csv", "/no/b.csv"], None), format!("/no/.a.csv-{hash}.warpcols"));
        assert_eq!(path_of(&["/no/t/"], Some("/kept")), format!("/kept/t-{hash}.warpcols"));
        assert_eq!(path_of(&["/no/a.csv"], Some("/kept")), format!("/kept/a.csv-{hash}.warpcols"));
    }

    #[test]
    fn settings_of_scans_tell_in_order_and_others_do_not() {
        let mut options = ConfigOptions::default();
        assert_eq!(scan_settings(&options), "");
        options.set("datafusion.execution.target_partitions", "77").unwrap();
        options.set("datafusion.sql_parser.dialect", "PostgreSQL").unwrap();
        options.set("datafusion.execution.batch_size", "1000").unwrap();
        options.set("datafusion.catalog.has_header", "false").unwrap();
        let expected =
            ", datafusion.catalog.has_header = Some(\"false\"), datafusion.execution.batch_size = Some(\"1000\")";
        assert_eq!(scan_settings(&options), expected);
    }
}
