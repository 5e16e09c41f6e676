//! Setting settings: by `SET`, `RESET` and the program, with what follows from a change.

use std::sync::atomic::Ordering;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionConfig;

use super::Session;
use crate::error::{Result, SqlError};
use crate::nearest::nearest;
use crate::runtime::{self, RuntimeChoice};
use crate::settings::{Origin, PREFIX, Settings};
use crate::show;

impl Session {
    /// Sets a setting of `warpcube.` or `datafusion.`, as `SET` does.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        self.assign(name, value, Origin::Statement)
    }

    pub(super) fn assign(&self, name: &str, value: &str, origin: Origin) -> Result<()> {
        if name.split('.').next() == Some(PREFIX) {
            let before = self.settings();
            let mut after = before.clone();
            after.assign(name, value)?;
            self.take_effect(&before, &after)?;
            let state = self.inner.context.state_ref();
            state.write().config_mut().options_mut().extensions.insert(after);
        } else {
            check_known(name, self.setting_names())?;
            match RuntimeChoice::is_runtime(name) {
                true => self.set_runtime(name, value)?,
                false => {
                    let state = self.inner.context.state_ref();
                    let set = state.write().config_mut().options_mut().set(name, value);
                    set.map_err(|error| bad_value(name, value, &error.into()))?;
                    runtime::refresh_functions(&state)?;
                }
            }
        }
        self.inner.changes.fetch_add(1, Ordering::AcqRel);
        match origin {
            Origin::Default => self.inner.origins.lock().remove(name),
            origin => self.inner.origins.lock().insert(name.to_string(), origin),
        };
        Ok(())
    }

    /// Brings device, memory pool and partitions in line with changed settings.
    fn take_effect(&self, before: &Settings, after: &Settings) -> Result<()> {
        if before.device != after.device || before.device_memory != after.device_memory {
            self.inner.device.choose(after)?;
        }
        let state = self.inner.context.state_ref();
        if before.memory_limit != after.memory_limit || before.spill_folder != after.spill_folder {
            let environment = runtime::build(after, Some(state.read().runtime_env()))?;
            let mut state = state.write();
            *state = SessionStateBuilder::from(state.clone()).with_runtime_env(environment).build();
        }
        if before.target_partitions != after.target_partitions {
            let partitions = match after.target_partitions {
                0 => SessionConfig::new().target_partitions(),
                partitions => partitions,
            };
            state.write().config_mut().options_mut().execution.target_partitions = partitions;
        }
        Ok(())
    }

    pub(super) fn set_runtime(&self, name: &str, value: &str) -> Result<()> {
        let state = self.inner.context.state_ref();
        runtime::set(&state, name, value).map_err(|error| bad_value(name, value, &error))
    }

    pub(super) fn setting_names(&self) -> Vec<String> {
        show::entries(&self.inner.context.state()).into_iter().map(|entry| entry.key).collect()
    }
}

/// Refuses a name that is not among those known.
pub(super) fn check_known(name: &str, known: impl IntoIterator<Item = String>) -> Result<()> {
    let known: Vec<String> = known.into_iter().collect();
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let nearest = nearest(name, known);
    Err(SqlError::UnknownSetting { name: name.to_string(), nearest, origin: None })
}

/// The error for a value that DataFusion does not take.
pub(super) fn bad_value(name: &str, value: &str, error: &SqlError) -> SqlError {
    let text = error.to_string();
    let reason = text.split_once(' ').map_or(text.as_str(), |(_, reason)| reason);
    let expected = format!("another value: {reason}");
    SqlError::SettingValue { name: name.to_string(), value: value.to_string(), expected, origin: None }
}
