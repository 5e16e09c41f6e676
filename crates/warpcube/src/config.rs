//! Settings from outside: the configuration file, the environment and flags, in that order of precedence.
//!
//! The file is TOML. Its top level holds settings of `warpcube.` without that prefix; tables `[datafusion.…]` hold
//! DataFusion's. Of the environment, `WARPCUBE_` and a setting's name in capitals sets it; `DATAFUSION_…` sets
//! DataFusion's as in its own programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpcube_sql::{Assignment, Origin, PREFIX, SETTINGS, SqlError, setting};

use crate::cli::{CommonArgs, RunArgs};
use crate::error::{CliError, Result};

/// The user's configuration folder for Warpcube.
pub(crate) fn folder() -> Option<PathBuf> {
    dirs::config_dir().map(|folder| folder.join("warpcube"))
}

/// All settings from outside.
pub(crate) fn assignments(run: &RunArgs, common: &CommonArgs) -> Result<Vec<Assignment>> {
    let mut all = Vec::new();
    match &common.config {
        Some(path) => all.extend(from_file(path)?),
        None => {
            let path = folder().map(|folder| folder.join("config.toml"));
            if let Some(path) = path.filter(|path| path.exists()) {
                all.extend(from_file(&path)?);
            }
        }
    }
    all.extend(from_environment(std::env::vars()));
    all.extend(from_flags(run, common)?);
    Ok(all)
}

fn from_file(path: &Path) -> Result<Vec<Assignment>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::Input { path: path.to_path_buf(), reason: error.to_string() })?;
    let error = |reason: String| CliError::Config { path: path.to_path_buf(), reason };
    let table: toml::Table = toml::from_str(&text).map_err(|problem| {
        let line = problem.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        error(format!("line {line}: {}", problem.message()))
    })?;
    let mut found = BTreeMap::new();
    flatten(None, &table, &mut found).map_err(&error)?;
    let mut assignments = Vec::new();
    for (name, value) in found {
        if name.starts_with("warpcube.") {
            setting(&name).map_err(|problem| error(problem.to_string()))?;
        }
        assignments.push(Assignment { name, value, origin: Origin::File(path.to_path_buf()) });
    }
    Ok(assignments)
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
fn from_environment(variables: impl Iterator<Item = (String, String)>) -> Vec<Assignment> {
    let ours = |variable: &str| {
        SETTINGS.iter().map(|info| info.name).find(|name| variable == name.to_uppercase().replace('.', "_"))
    };
    variables
        .filter_map(|(variable, value)| {
            let name = ours(&variable)?.to_string();
            Some(Assignment { name, value, origin: Origin::Environment(variable) })
        })
        .collect()
}

fn from_flags(run: &RunArgs, common: &CommonArgs) -> Result<Vec<Assignment>> {
    let mut found = Vec::new();
    let mut flag = |name: &str, value: String, flag: &str| {
        found.push(Assignment { name: name.to_string(), value, origin: Origin::Flag(flag.to_string()) });
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
    if common.timing {
        flag("warpcube.timing", "on".into(), "--timing");
    }
    Ok(found)
}

/// A bad setting is wrong usage and not a failed statement.
pub(crate) fn as_usage(error: SqlError) -> CliError {
    match error {
        SqlError::UnknownSetting { .. } | SqlError::SettingValue { .. } => CliError::Usage(error.to_string()),
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
        let variables = [("WARPCUBE_MEMORY_LIMIT", "1GiB"), ("WARPCUBE_NVRTC", "/x"), ("HOME", "/y")];
        let found = from_environment(variables.map(|(name, value)| (name.into(), value.into())).into_iter());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "warpcube.memory_limit");
    }
}
