//! Settings from outside: the configuration file, the environment and flags, in that order of precedence.
//!
//! The file is TOML. Its top level holds settings of `warpcube.` without that prefix; tables `[datafusion.…]` hold
//! DataFusion's, `[server.tokens.NAME]` tokens of `warpcube serve`. Of the environment, a setting's name in capitals,
//! dots as underscores, sets it: `WARPCUBE_…` and, as in DataFusion's own programs, `DATAFUSION_…`.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use warpcube_server::TokenOptions;
use warpcube_sql::{Assignment, Budget, PREFIX, SettingOrigin, Settings, SqlError, setting_names};

use crate::cli::{CommonArgs, RunArgs};
use crate::error::{CliError, Result};

/// Levels of nesting that the program's threads have stack for ([`crate::host`]).
const DEPTH_LIMIT: &str = "4000";

/// The user's configuration folder for Warpcube.
pub(crate) fn folder() -> Option<PathBuf> {
    dirs::config_dir().map(|folder| folder.join("warpcube"))
}

/// All settings from outside.
pub(crate) fn assignments(run: &RunArgs, common: &CommonArgs) -> Result<Vec<Assignment>> {
    let depth =
        Assignment { name: "warpcube.depth_limit".into(), value: DEPTH_LIMIT.into(), origin: SettingOrigin::Default };
    let mut all = vec![depth];
    if let Some(path) = file(common) {
        all.extend(from_file(&path)?);
    }
    all.extend(from_environment(std::env::vars_os()));
    all.extend(from_flags(run, common)?);
    Ok(all)
}

/// The file that is named, or the user's if there is one.
pub(crate) fn file(common: &CommonArgs) -> Option<PathBuf> {
    let own = || folder().map(|folder| folder.join("config.toml")).filter(|path| path.exists());
    common.config.clone().or_else(own)
}

/// What the file has for `warpcube serve`; other tables are settings.
#[derive(Default, Deserialize)]
struct File {
    #[serde(default)]
    server: Serving,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serving {
    #[serde(default)]
    tokens: BTreeMap<String, TokenTable>,
}

/// A table `[server.tokens.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTable {
    token: String,
    #[serde(default)]
    read_only: bool,
    statements: Option<NonZeroUsize>,
    timeout: Option<String>,
    rows: Option<u64>,
    memory: Option<String>,
}

/// The tokens of the file, which others must not read then.
pub(crate) fn tokens(common: &CommonArgs) -> Result<Vec<TokenOptions>> {
    let Some(path) = file(common) else { return Ok(Vec::new()) };
    let error = |reason: String| CliError::Config { path: path.clone(), reason };
    let File { server: Serving { tokens } } = read(&path)?;
    let mode = std::fs::metadata(&path).map_or(0, |facts| facts.permissions().mode());
    if !tokens.is_empty() && mode & 0o077 != 0 {
        return Err(error("it has tokens, and other users may read it; chmod 600 keeps them out".into()));
    }
    let option = |(name, table): (String, TokenTable)| {
        let TokenTable { token, read_only, statements, timeout, rows, memory } = table;
        let of_time = |text: String| {
            let mut settings = Settings::default();
            let set = settings.assign("warpcube.timeout", &text).map(|()| settings.timeout);
            set.map_err(|_| error(format!("timeout '{text}' of token '{name}': expected a time such as '30s'")))
        };
        let timeout = timeout.map(of_time).transpose()?.flatten();
        let of_size = |text: String| match text.parse() {
            Ok(Budget::Bytes(bytes)) => Ok(bytes),
            _ => Err(error(format!("memory '{text}' of token '{name}': expected a size such as '4GiB'"))),
        };
        let memory_max = memory.map(of_size).transpose()?;
        let (statements_max, rows_max) = (statements.map(NonZeroUsize::get), rows);
        let options =
            TokenOptions { name: name.clone(), token, read_only, statements_max, timeout, rows_max, memory_max };
        options.check().map_err(error).map(|()| options)
    };
    let tokens: Vec<TokenOptions> = tokens.into_iter().map(option).collect::<Result<_>>()?;
    for (at, one) in tokens.iter().enumerate() {
        if let Some(other) = tokens[..at].iter().find(|other| other.token == one.token) {
            return Err(error(format!("tokens '{}' and '{}' have one text", other.name, one.name)));
        }
    }
    Ok(tokens)
}

/// Reads a file of TOML.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::Input { path: path.to_path_buf(), reason: error.to_string() })?;
    toml::from_str(&text).map_err(|problem| {
        let line = problem.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        CliError::Config { path: path.to_path_buf(), reason: format!("line {line}: {}", problem.message()) }
    })
}

fn from_file(path: &Path) -> Result<Vec<Assignment>> {
    let error = |reason: String| CliError::Config { path: path.to_path_buf(), reason };
    let mut table: toml::Table = read(path)?;
    // That of `warpcube serve`.
    table.remove("server");
    let mut found = BTreeMap::new();
    flatten(None, &table, &mut found).map_err(error)?;
    let origin = SettingOrigin::File(path.to_path_buf());
    Ok(found.into_iter().map(|(name, value)| Assignment { name, value, origin: origin.clone() }).collect())
}

/// Names with dots for the values of nested tables; the top level belongs to `warpcube.`.
fn flatten(
    prefix: Option<&str>,
    table: &toml::Table,
    found: &mut BTreeMap<String, String>,
) -> std::result::Result<(), String> {
    for (key, value) in table {
        let name = match (prefix, value) {
            (Some(prefix), _) => format!("{prefix}.{key}"),
            (None, toml::Value::Table(_)) => key.clone(),
            (None, _) if key.starts_with("datafusion.") => key.clone(),
            (None, _) => format!("{PREFIX}.{key}"),
        };
        match value {
            toml::Value::Table(table) => flatten(Some(&name), table, found)?,
            toml::Value::Array(_) => return Err(format!("'{name}' is a list; settings take one value")),
            toml::Value::String(text) => {
                found.insert(name, text.clone());
            }
            other => {
                found.insert(name, other.to_string());
            }
        }
    }
    Ok(())
}

/// Variables that are not settings are other parts' business.
fn from_environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Assignment> {
    // Names of variables that are no text are none of these; invalid values are refused when they are set.
    let variables: HashMap<OsString, String> =
        variables.map(|(variable, value)| (variable, value.to_string_lossy().into_owned())).collect();
    let given = |name: String| {
        let variable = name.to_uppercase().replace('.', "_");
        let value = variables.get(OsStr::new(&variable))?.clone();
        Some(Assignment { name, value, origin: SettingOrigin::Environment(variable) })
    };
    setting_names().into_iter().filter_map(given).collect()
}

fn from_flags(run: &RunArgs, common: &CommonArgs) -> Result<Vec<Assignment>> {
    let mut found = Vec::new();
    let mut flag = |name: &str, value: String, flag: &str| {
        found.push(Assignment { name: name.to_string(), value, origin: SettingOrigin::Flag(flag.to_string()) });
    };
    for text in &common.settings {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            CliError::Usage(format!("--set {text}: expected NAME=VALUE, such as --set warpcube.timeout=30s"))
        })?;
        let name = name.trim();
        let name = if name.contains('.') { name.to_string() } else { format!("{PREFIX}.{name}") };
        flag(&name, value.trim().to_string(), "--set");
    }
    if let Some(device) = &common.device {
        flag("warpcube.device", device.clone(), "--device");
    }
    if let Some(format) = &run.format {
        flag("warpcube.format", format.clone(), "--format");
    }
    if let Some(rows) = run.max_rows {
        flag("warpcube.max_rows", rows.to_string(), "--max-rows");
    }
    if run.read_only {
        flag("warpcube.read_only", "on".into(), "--read-only");
    }
    if run.timing {
        flag("warpcube.timing", "on".into(), "--timing");
    }
    Ok(found)
}

/// The error of a database that cannot be opened: a bad setting is wrong configuration and not a failed statement.
pub(crate) fn from_outside(error: SqlError) -> CliError {
    match error {
        SqlError::UnknownSetting { .. }
        | SqlError::SettingValue { .. }
        | SqlError::SettingLocked { .. }
        | SqlError::Device { .. } => CliError::Setting(error),
        other => CliError::Sql(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_tables_become_names_with_dots() {
        let table = "device = 'cpu'\ntimeout = '1s'\n[datafusion.execution]\nbatch_size = 4096\n".parse().unwrap();
        let mut found = BTreeMap::new();
        flatten(None, &table, &mut found).unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected =
            [("datafusion.execution.batch_size", "4096"), ("warpcube.device", "cpu"), ("warpcube.timeout", "1s")];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_settings_are_taken_from_the_environment() {
        let variables = [
            ("DATAFUSION_EXECUTION_BATCH_SIZE", "1234"),
            ("DATAFUSION_NO_SUCH_SETTING", "1"),
            ("WARPCUBE_MEMORY_LIMIT", "1GiB"),
            ("WARPCUBE_NVRTC", "/x"),
            ("HOME", "/y"),
        ];
        let found = from_environment(variables.map(|(name, value)| (name.into(), value.into())).into_iter());
        let found: Vec<_> = found.iter().map(|given| (given.name.as_str(), given.value.as_str())).collect();
        assert_eq!(found, [("warpcube.memory_limit", "1GiB"), ("datafusion.execution.batch_size", "1234")]);
    }
}
