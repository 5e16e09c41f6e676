//! What of this machine's files statements reach: the folders of `warpcube.allowed_paths`, which are the database's,
//! and under `warpcube.read_only` of a connection none that it writes.
//!
//! Paths are compared as the system resolves them: `..` and symbolic links are followed first. A path is checked where
//! a statement names it ([`Access::check_location`], before anything tells whether it is there), files again where a
//! folder or a pattern has named them, and every access of DataFusion's readers and writers by the database's store
//! ([`crate::catalog::DataFileStore`]).
//!
//! Invariant: both settings only ever become stricter, the folders while the database lives, `read_only` while the
//! connection does. Folders that were set before `warpcube.allowed_paths` are its administrator's and stay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use datafusion::common::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;

use crate::error::{Result, SqlError};
use crate::lexer::tokens;
use crate::locations::{OUTSIDE, Reach, is_pattern, local_path};
use crate::memory_table::MemoryTable;
use crate::settings::{DatabaseSettings, Settings};
use crate::values::{EncodedFiles, ReadOnly, SettingOrigin};

/// Reads the folder of a setting.
type FolderOf = fn(&Settings) -> &Option<PathBuf>;

/// The settings whose value is a folder.
const FOLDERS: [(&str, FolderOf); 3] = [
    ("warpcube.dump_source", |settings| &settings.dump_source),
    ("warpcube.encoded_folder", |settings| &settings.encoded_folder),
    ("warpcube.spill_folder", |settings| &settings.database.spill_folder),
];

/// What a statement may reach.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    reach: Reach,
    read_only: ReadOnly,
}

impl Access {
    /// What statements with these options may reach.
    pub(crate) fn of(options: &ConfigOptions) -> Access {
        options.extensions.get::<Settings>().map(Access::under).unwrap_or_default()
    }

    /// What statements with these settings may reach.
    pub(crate) fn under(settings: &Settings) -> Access {
        Access { reach: settings.database.reach(), read_only: settings.read_only }
    }

    /// What any connection of a database may reach.
    pub(crate) fn of_database(settings: &DatabaseSettings) -> Access {
        Access { reach: settings.reach(), read_only: ReadOnly::Off }
    }

    /// The files that statements reach.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Refuses a file or folder that is out of reach.
    pub(crate) fn check_path(&self, path: &Path) -> Result<()> {
        match self.reach.refusal(path) {
            None => Ok(()),
            Some(reason) => Err(SqlError::FileOutside(path.display().to_string(), reason)),
        }
    }

    /// Refuses a location that is out of reach: a path, a URL, or a pattern by the folder in front of its first
    /// wildcard.
    pub(crate) fn check_location(&self, location: &str) -> Result<()> {
        let refused = |reason| Err(SqlError::FileOutside(location.to_string(), reason));
        if self.reach.allowed.is_none() {
            let secret = local_path(location).and_then(|path| self.reach.refusal(&path));
            return secret.map_or(Ok(()), refused);
        }
        let outside = || SqlError::FileOutside(location.to_string(), OUTSIDE);
        // Below a wildcard no part may lead back up.
        let below = location.find(['*', '?', '[']).map_or("", |wildcard| &location[wildcard..]);
        if below.split('/').any(|part| part == "..") {
            return Err(outside());
        }
        let path = local_path(location).ok_or_else(outside)?;
        let text = path.to_string_lossy();
        let plain = match text.find(['*', '?', '[']) {
            Some(wildcard) if is_pattern(location) => {
                PathBuf::from(&text[..text[..wildcard].rfind('/').map_or(0, |slash| slash + 1)])
            }
            _ => path.clone(),
        };
        let plain = if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain };
        self.reach.refusal(&plain).map_or(Ok(()), refused)
    }

    /// Refuses a plan that writes to files that it must not write.
    pub(crate) fn check_plan(&self, plan: &LogicalPlan) -> Result<()> {
        match plan {
            LogicalPlan::Analyze(analyze) => self.check_plan(&analyze.input),
            LogicalPlan::Copy(copy) => {
                self.check_writes("COPY")?;
                self.check_location(&copy.output_url)
            }
            LogicalPlan::Dml(dml) if !source_as_provider(&dml.target)?.is::<MemoryTable>() => {
                self.check_writes(&format!("{} {}", dml.op, dml.table_name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a change of what the connections of a database share; `what` names the statement.
    pub(crate) fn check_shared(&self, what: &str) -> Result<()> {
        match self.read_only {
            ReadOnly::All => Err(SqlError::ReadOnly(what.to_string())),
            ReadOnly::Off | ReadOnly::Files => Ok(()),
        }
    }

    /// Refuses a plan that changes tables or a catalog which it must not change; `sql` is its text.
    pub(crate) fn check_tables(&self, plan: &LogicalPlan, sql: &str) -> Result<()> {
        match plan {
            LogicalPlan::Analyze(analyze) => self.check_tables(&analyze.input, sql),
            LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_) => self.check_shared(&first_word(sql)),
            _ => Ok(()),
        }
    }

    fn check_writes(&self, what: &str) -> Result<()> {
        match self.read_only.is_on() {
            true => Err(SqlError::ReadOnly(what.to_string())),
            false => Ok(()),
        }
    }
}

/// The word that a statement begins with.
fn first_word(sql: &str) -> String {
    let (tokens, _) = tokens(sql);
    tokens.first().map_or_else(String::new, |first| sql[first.range.clone()].to_uppercase())
}

/// Refuses a change of settings that would open what is closed, or make a connection write where it must not.
pub(crate) fn check_change(before: &Settings, after: &Settings, start: &Settings) -> Result<()> {
    let locked = |name: &str, reason: &str| {
        let value = after.value(name).unwrap_or_default();
        Err(SqlError::SettingLocked { name: name.to_string(), value, reason: reason.to_string(), origin: None })
    };
    if before.database.allowed_paths.is_some() && after.database.allowed_paths != before.database.allowed_paths {
        return locked("warpcube.allowed_paths", "it was given, and stays as it is for this database");
    }
    if after.read_only < before.read_only {
        return locked("warpcube.read_only", "it was given, and only becomes stricter for this session");
    }
    for (name, folder) in FOLDERS {
        let (was, is) = (folder(before), folder(after));
        if was == is || is == folder(start) {
            continue;
        }
        if let (Some(allowed), Some(path)) = (&before.database.allowed_paths, is)
            && !allowed.holds(path)
        {
            return locked(name, "the folder is outside of warpcube.allowed_paths");
        }
        if before.read_only.is_on() && name == "warpcube.spill_folder" {
            return locked(name, "the session is read-only (warpcube.read_only)");
        }
    }
    if after.read_only.is_on() && after.encoded_files == EncodedFiles::Write {
        return locked("warpcube.encoded_files", "the session is read-only (warpcube.read_only)");
    }
    if after.read_only.is_on() && after.dump_source.is_some() {
        return locked("warpcube.dump_source", "the session is read-only (warpcube.read_only)");
    }
    Ok(())
}

/// Refuses a setting that all connections of a database share, where the session may change nothing of theirs.
pub(crate) fn check_own(settings: &Settings, name: &str, value: &str) -> Result<()> {
    if settings.read_only != ReadOnly::All {
        return Ok(());
    }
    let reason = "the session is read-only (warpcube.read_only), and the setting is one of all connections".to_string();
    Err(SqlError::SettingLocked { name: name.to_string(), value: value.to_string(), reason, origin: None })
}

/// Refuses settings to start with that contradict each other.
pub(crate) fn check_start(settings: &Settings, origins: &BTreeMap<String, SettingOrigin>) -> Result<()> {
    check_change(&Settings::default(), settings, settings).map_err(|error| {
        let origin = match &error {
            SqlError::SettingLocked { name, .. } => origins.get(name),
            _ => None,
        };
        origin.map_or(error.clone(), |origin| error.with_origin(origin))
    })
}

/// Refuses one of DataFusion's settings that names a folder.
pub(crate) fn check_folder(settings: &Settings, name: &str, value: &str) -> Result<()> {
    if name != "datafusion.runtime.temp_directory" {
        return Ok(());
    }
    let reason = match &settings.database.allowed_paths {
        Some(allowed) if !allowed.holds(Path::new(value)) => "the folder is outside of warpcube.allowed_paths",
        _ if settings.read_only.is_on() => "the session is read-only (warpcube.read_only)",
        _ => return Ok(()),
    };
    let (name, value) = (name.to_string(), value.to_string());
    Err(SqlError::SettingLocked { name, value, reason: reason.to_string(), origin: None })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::locations::{AllowedPaths, SecretFiles};

    #[test]
    fn paths_are_compared_as_the_system_resolves_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["in/sub", "out", "inside"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("out/secret.csv"), "a\n1\n").unwrap();
        symlink(at("out"), at("in/away")).unwrap();
        symlink(at("out/none.csv"), at("in/dangling.csv")).unwrap();
        symlink(at("in/sub"), at("back")).unwrap();
        let allowed = AllowedPaths::parse(&at("in").display().to_string()).unwrap();
        let reach = Reach { allowed: Some(allowed.clone()), ..Reach::default() };
        let access = Access { reach, read_only: ReadOnly::Off };
        for name in ["in", "in/", "in/none.csv", "in/sub/../none.csv", "in/new/folder/x", "back/x.csv", "out/../in/x"] {
            assert!(allowed.holds(&at(name)), "{name}");
            assert!(access.check_location(&at(name).display().to_string()).is_ok(), "{name}");
        }
        for name in [
            "out/secret.csv",
            "inside/x",
            "in/../out/secret.csv",
            "in/away/secret.csv",
            "in/away/../out/x.csv",
            "in/dangling.csv",
            "in/none/../../out/secret.csv",
            "",
        ] {
            let path = at(name).display().to_string();
            assert!(!allowed.holds(&at(name)), "{name}");
            for location in [path.clone(), format!("file://{path}"), format!("{path}*.csv")] {
                let is_away = location.ends_with("/in/dangling.csv*.csv");
                assert!(is_away || access.check_location(&location).is_err(), "{location}");
            }
        }
        let root = at("in").display().to_string();
        for name in ["*.csv", "**/*.csv", "sub/[ab]?.csv"] {
            assert!(access.check_location(&format!("{root}/{name}")).is_ok(), "{name}");
        }
        for name in ["*/../../out/*.csv", "**/..", "away/*.csv", "%2e%2e/out/*.csv"] {
            let location = format!("file://{root}/{name}");
            assert!(access.check_location(&location).is_err(), "{location}");
        }
        assert!(access.check_location("s3://bucket/x.csv").is_err());
        assert!(AllowedPaths::parse("/nowhere/at/all").is_none() && AllowedPaths::parse(" : ").is_none());
    }

    #[test]
    fn secret_files_are_out_of_reach_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("token"), "x\n").unwrap();
        symlink(at("token"), at("sub/link")).unwrap();
        std::fs::hard_link(at("token"), at("other")).unwrap();
        let secret = SecretFiles::default().with(&[at("token")]).with(&[]);
        for allowed in [None, AllowedPaths::parse("/")] {
            let access = Access { reach: Reach { allowed, secret: secret.clone() }, read_only: ReadOnly::Off };
            for name in ["token", "sub/link", "other", "sub/../token"] {
                let location = at(name).display().to_string();
                let told = access.check_location(&location).unwrap_err().to_string();
                assert!(told.ends_with("it has secrets of the server"), "{told}");
                assert!(access.check_path(&at(name)).is_err(), "{location}");
            }
            for name in ["/proc/self/mem", "/proc/self/environ", "/proc/thread-self/mem"] {
                assert!(access.check_path(Path::new(name)).is_err(), "{name}");
            }
            assert!(access.check_path(&at("tokens")).is_ok() && access.check_path(&at("sub")).is_ok());
        }
        assert!(SecretFiles::default() == SecretFiles::default().with(&[]));
    }
}
