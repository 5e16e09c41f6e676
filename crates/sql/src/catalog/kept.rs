//! A catalog that is kept: the definitions of a folder, in one small file.
//!
//! ```text
//! _catalog.warpcube        views, tables over files and settings: JSON, whose first line has its checksum
//! _catalog.warpcube.next   the next such file, until it takes the place
//! _catalog.lock            locked by the process that changes the catalog
//! ```
//!
//! A change writes the whole next file, makes it durable and renames it over the old one, before the statement's
//! change is visible: after a crash the file is the old one or the new one. Rows of tables in memory are not kept, nor
//! are their columns. Both names begin with an underscore, so that no table takes the files for data.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use datafusion::common::config::{ConfigOptions, SqlParserOptions};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use warpcube_cube::store::{CubeLock, StoreError, checked, sync_folder, write_file};

use crate::default_schema::SCHEMA;
use crate::error::{Result, SqlError};

/// Name of the file.
const FILE_NAME: &str = "_catalog.warpcube";
/// Name of the next file.
const NEXT_NAME: &str = "_catalog.warpcube.next";
/// Name of the lock.
const LOCK_NAME: &str = "_catalog.lock";
/// Version of the file's format.
const VERSION: u64 = 1;
/// Settings by which a definition's text is read.
const PARSER: &str = "datafusion.sql_parser.";

/// What a definition makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    View,
    /// A table over files.
    Table,
}

/// A definition as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    pub(super) kind: Kind,
    /// The statement.
    pub(super) text: String,
    /// The catalog of names that have none; none where it is the definition's own.
    pub(super) catalog: Option<String>,
    /// The schema of names that have none.
    pub(super) schema: String,
    /// Settings of the parser that are not at their defaults.
    pub(super) settings: BTreeMap<String, String>,
}

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u64,
    settings: BTreeMap<String, String>,
    schemas: BTreeMap<String, BTreeMap<String, Definition>>,
}

/// The catalog of a folder.
#[derive(Debug)]
pub(crate) struct KeptCatalog {
    folder: PathBuf,
    /// None where the catalog is open for reading.
    lock: Option<CubeLock>,
    contents: Mutex<Contents>,
}

/// A path from the root.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

impl KeptCatalog {
    /// Opens the catalog of a folder; where there is none, an empty one. One that is not for reading makes the folder
    /// and holds the lock.
    ///
    /// # Errors
    /// [`SqlError::FileAccess`] for a folder that another process holds or that the system refuses,
    /// [`SqlError::FileCorrupt`] for a file that is damaged or of another version.
    pub(crate) fn open(folder: &Path, read_only: bool) -> Result<KeptCatalog> {
        let lock = match read_only {
            true if !folder.is_dir() => {
                return Err(SqlError::FileMissing { path: folder.display().to_string(), nearest: None });
            }
            true => None,
            false => {
                if folder.is_file() {
                    let reason = match is_duckdb(folder) {
                        true => {
                            "a database of DuckDB's, which is not read; EXPORT DATABASE there writes files that are"
                        }
                        false => "a file; a catalog is a folder",
                    };
                    return Err(SqlError::FileFormat { path: folder.display().to_string(), reason: reason.into() });
                }
                let made = if folder.exists() { Ok(()) } else { fs::create_dir(folder) };
                made.map_err(|error| SqlError::FileAccess(format!("{}: {error}", folder.display())))?;
                let lock = CubeLock::lock_folder(&absolute(folder), LOCK_NAME, &mut |_| false);
                Some(lock.map_err(|error| held(folder, &error))?)
            }
        };
        // A program may go to another folder meanwhile.
        let path = absolute(folder).join(FILE_NAME);
        let damaged =
            |error: StoreError| SqlError::FileCorrupt { path: path.display().to_string(), reason: error.to_string() };
        let found: Option<Contents> = checked::read(&path, VERSION..=VERSION).map_err(damaged)?;
        let mut contents =
            found.unwrap_or_else(|| Contents { version: VERSION, settings: BTreeMap::new(), schemas: BTreeMap::new() });
        contents.schemas.entry(SCHEMA.into()).or_default();
        Ok(KeptCatalog { folder: folder.to_path_buf(), lock, contents: Mutex::new(contents) })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The settings that are kept.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        self.contents.lock().settings.clone()
    }

    /// Keeps a setting, or no longer keeps it.
    ///
    /// # Errors
    /// As of [`KeptCatalog::open`], and for a catalog that is open for reading.
    pub(crate) fn keep_setting(&self, name: &str, value: Option<&str>) -> Result<()> {
        self.change(|contents| match value {
            Some(value) => drop(contents.settings.insert(name.into(), value.into())),
            None => drop(contents.settings.remove(name)),
        })
    }

    /// The schemas with their definitions.
    pub(super) fn schemas(&self) -> BTreeMap<String, BTreeMap<String, Definition>> {
        self.contents.lock().schemas.clone()
    }

    /// Keeps a schema, or drops it with its definitions.
    pub(super) fn keep_schema(&self, schema: &str, is_there: bool) -> Result<()> {
        self.change(|contents| match is_there {
            true => drop(contents.schemas.entry(schema.into()).or_default()),
            false => drop(contents.schemas.remove(schema)),
        })
    }

    /// Keeps the definition of a name, or drops it.
    pub(super) fn keep(&self, schema: &str, name: &str, definition: Option<Definition>) -> Result<()> {
        self.change(|contents| {
            let definitions = contents.schemas.entry(schema.into()).or_default();
            match definition {
                Some(definition) => drop(definitions.insert(name.into(), definition)),
                None => drop(definitions.remove(name)),
            }
        })
    }

    /// Refuses changes of a catalog that is open for reading.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(SqlError::ReadOnly(format!("change of the catalog {}", self.folder.display()))),
        }
    }

    /// Writes changed contents, if they are others.
    fn change(&self, change: impl FnOnce(&mut Contents)) -> Result<()> {
        let mut contents = self.contents.lock();
        let mut next = contents.clone();
        change(&mut next);
        if next == *contents {
            return Ok(());
        }
        self.check_writable()?;
        let (file, place) = (self.folder.join(NEXT_NAME), self.folder.join(FILE_NAME));
        let written = write_file(&file, checked::text(&next).as_bytes())
            .and_then(|()| fs::rename(&file, &place))
            .and_then(|()| sync_folder(&self.folder));
        written.map_err(|error| SqlError::FileAccess(format!("{}: {error}", place.display())))?;
        *contents = next;
        Ok(())
    }
}

/// Whether a file has the mark of DuckDB's databases, behind a checksum.
fn is_duckdb(file: &Path) -> bool {
    let mut front = [0; 12];
    let read = fs::File::open(file).and_then(|mut file| file.read_exact(&mut front));
    read.is_ok() && &front[8..] == b"DUCK"
}

/// The error of a catalog that is not to be had for changes.
fn held(folder: &Path, error: &StoreError) -> SqlError {
    let folder = folder.display();
    SqlError::FileAccess(match error {
        StoreError::Locked { holder: Some(holder), .. } => {
            format!("{folder}: {holder} holds this catalog; open it for reading (--read-only), or try again later")
        }
        StoreError::Locked { .. } => format!("{folder}: another process holds this catalog; try again later"),
        other => format!("{folder}: {other}"),
    })
}

/// Settings of a parser that are not at their defaults.
pub(super) fn changed(parser: &SqlParserOptions) -> BTreeMap<String, String> {
    let mut own = ConfigOptions::default();
    own.sql_parser = parser.clone();
    let values = |options: &ConfigOptions| -> BTreeMap<String, String> {
        let entries = options.entries().into_iter().filter(|entry| entry.key.starts_with(PARSER));
        entries.filter_map(|entry| Some((entry.key, entry.value?))).collect()
    };
    let usual = values(&ConfigOptions::default());
    values(&own).into_iter().filter(|(name, value)| usual.get(name) != Some(value)).collect()
}

/// A parser with these settings; those that this version does not know are left out.
pub(super) fn parser(settings: &BTreeMap<String, String>) -> SqlParserOptions {
    let mut options = ConfigOptions::default();
    for (name, value) in settings {
        // A definition that cannot be read without it has its error when it is named.
        let _ = options.set(name, value);
    }
    options.sql_parser
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> Definition {
        let (text, schema) = (text.to_string(), SCHEMA.to_string());
        Definition { kind: Kind::View, text, catalog: None, schema, settings: BTreeMap::new() }
    }

    #[test]
    fn definitions_are_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("c");
        let kept = KeptCatalog::open(&place, false).unwrap();
        kept.keep("s", "v", Some(view("CREATE VIEW v AS SELECT 1"))).unwrap();
        kept.keep(SCHEMA, "w", Some(view("CREATE VIEW w AS SELECT 2"))).unwrap();
        kept.keep(SCHEMA, "w", None).unwrap();
        kept.keep_setting("warpcube.timeout", Some("1s")).unwrap();
        let error = KeptCatalog::open(&place, false).unwrap_err().to_string();
        assert!(error.contains("holds this catalog; open it for reading"), "{error}");
        let reader = KeptCatalog::open(&place, true).unwrap();
        assert_eq!(reader.schemas(), kept.schemas());
        let error = reader.keep_setting("warpcube.timeout", None).unwrap_err().to_string();
        assert!(error.starts_with("FILE-008 change of the catalog"), "{error}");
        // What would change nothing is no change.
        reader.keep(SCHEMA, "w", None).unwrap();
        drop(kept);
        let again = KeptCatalog::open(&place, false).unwrap();
        assert_eq!(again.schemas(), reader.schemas());
        assert_eq!(again.schemas()["s"]["v"], view("CREATE VIEW v AS SELECT 1"));
        assert_eq!(again.settings()["warpcube.timeout"], "1s");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_a_next_one_that_was_left_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptCatalog::open(folder.path(), false).unwrap();
        kept.keep(SCHEMA, "v", Some(view("CREATE VIEW v AS SELECT 1"))).unwrap();
        drop(kept);
        fs::write(folder.path().join(NEXT_NAME), "{\"check").unwrap();
        let kept = KeptCatalog::open(folder.path(), false).unwrap();
        kept.keep(SCHEMA, "w", Some(view("CREATE VIEW w AS SELECT 1"))).unwrap();
        assert_eq!(kept.schemas()[SCHEMA].len(), 2);
        drop(kept);
        let path = folder.path().join(FILE_NAME);
        let text = fs::read_to_string(&path).unwrap().replace("SELECT 1", "SELECT 2");
        fs::write(&path, text).unwrap();
        let error = KeptCatalog::open(folder.path(), false).unwrap_err().to_string();
        assert!(error.starts_with("FILE-003") && error.contains("checksum"), "{error}");
    }

    #[test]
    fn settings_of_a_parser_are_those_that_differ() {
        let mut options = SqlParserOptions::default();
        assert!(changed(&options).is_empty());
        options.enable_ident_normalization = false;
        let settings = changed(&options);
        assert_eq!(settings.len(), 1);
        assert_eq!(parser(&settings), options);
    }
}
