//! `SHOW ALL` and `SHOW warpcube.name`: every setting with its value and where that came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::{ConfigEntry, ConfigOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;

use crate::error::Result;
use crate::settings::{PREFIX, SETTINGS};
use crate::values::SettingOrigin;

/// Every setting of the connection, ours first, each group by name.
pub(crate) fn entries(state: &SessionState) -> Vec<ConfigEntry> {
    let mut entries = state.config_options().entries();
    entries.extend(state.runtime_env().config_entries());
    entries.sort_by_key(|entry| (!entry.key.starts_with(PREFIX), entry.key.clone()));
    entries
}

/// The full names of all settings that a connection takes, ours and DataFusion's.
pub fn setting_names() -> Vec<String> {
    let ours = SETTINGS.iter().map(|setting| setting.name.to_string());
    let theirs = ConfigOptions::new().entries().into_iter().chain(RuntimeEnvBuilder::new().entries());
    ours.chain(theirs.map(|entry| entry.key)).collect()
}

/// One row for each of `entries`: name, value, origin and, if asked for, description.
pub(crate) fn batch(
    entries: &[ConfigEntry],
    origins: &BTreeMap<String, SettingOrigin>,
    verbose: bool,
) -> Result<RecordBatch> {
    let origin = |entry: &ConfigEntry| origins.get(&entry.key).unwrap_or(&SettingOrigin::Default).to_string();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("name", Arc::new(entries.iter().map(|entry| Some(entry.key.as_str())).collect::<StringArray>())),
        ("value", Arc::new(entries.iter().map(|entry| entry.value.as_deref()).collect::<StringArray>())),
        ("origin", Arc::new(entries.iter().map(|entry| Some(origin(entry))).collect::<StringArray>())),
    ];
    if verbose {
        let descriptions = entries.iter().map(|entry| Some(entry.description)).collect::<StringArray>();
        columns.push(("description", Arc::new(descriptions)));
    }
    let fields: Vec<_> = columns.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(DataFusionError::from)?)
}
