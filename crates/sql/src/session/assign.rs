//! Setting settings: by `SET`, `RESET` and the program, with what follows from a change.

use std::str::FromStr;
use std::sync::atomic::Ordering;

use arrow::array::timezone::Tz;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{LogicalPlan, ResetVariable, Statement as PlanStatement};
use datafusion::prelude::SessionConfig;

use super::Session;
use crate::access::{check_change, check_folder};
use crate::baseline::{right_defaults, without_wrong_filters};
use crate::catalog::FileMemory;
use crate::error::{Result, SqlError};
use crate::nearest::nearest;
use crate::ranges::check_setting;
use crate::runtime::{self, RuntimeChoice};
use crate::settings::{PREFIX, Settings};
use crate::show;
use crate::values::Origin;

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
            check_change(&before, &after, &self.inner.start.settings)?;
            self.take_effect(&before, &after)?;
            let state = self.inner.context.state_ref();
            state.write().config_mut().options_mut().extensions.insert(after);
        } else {
            check_known(name, self.setting_names())?;
            check_folder(&self.settings(), name, value)?;
            match RuntimeChoice::is_runtime(name) {
                true => self.set_runtime(name, value)?,
                false => {
                    let state = self.inner.context.state_ref();
                    set_option(state.write().config_mut().options_mut(), name, value)?;
                    runtime::refresh_functions(&state)?;
                }
            }
        }
        // The pool may be another one now.
        self.inner.catalog.tables().ledger.move_to(&self.inner.context.runtime_env().memory_pool);
        self.inner.changes.fetch_add(1, Ordering::AcqRel);
        self.note_header(name, !matches!(origin, Origin::Default));
        match origin {
            Origin::Default => self.inner.origins.lock().remove(name),
            origin => self.inner.origins.lock().insert(name.to_string(), origin),
        };
        Ok(())
    }

    /// Sets a setting of DataFusion's to what the session started with.
    pub(super) async fn reset(&self, name: &str) -> Result<()> {
        check_known(name, self.setting_names())?;
        let start = &self.inner.start;
        if let Some(value) = start.others.get(name) {
            return self.assign(name, value, start.origins.get(name).cloned().unwrap_or(Origin::Default));
        }
        let state = self.inner.context.state_ref();
        match RuntimeChoice::is_runtime(name) {
            true => runtime::reset(&self.inner.context, name, &self.settings()).await?,
            false => {
                let reset = ResetVariable { variable: name.to_string() };
                let plan = LogicalPlan::Statement(PlanStatement::ResetVariable(reset));
                self.inner.context.execute_logical_plan(plan).await?;
                // DataFusion goes back to its own defaults, some of which are not a session's.
                let own = default_value(name);
                if let Some(own) = own {
                    state.write().config_mut().options_mut().set(name, &own)?;
                }
                if name == SWITCHES_FILTERS {
                    without_wrong_filters(state.write().config_mut().options_mut());
                }
                if name == ZONE_NAME {
                    runtime::refresh_functions(&state)?;
                }
            }
        }
        self.inner.catalog.tables().ledger.move_to(&self.inner.context.runtime_env().memory_pool);
        self.inner.origins.lock().remove(name);
        self.note_header(name, false);
        self.inner.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Notes whether the session says that CSV files have a header; where it does not, their lines tell.
    fn note_header(&self, name: &str, is_said: bool) {
        let memory = self.inner.context.state_ref().read().config().get_extension::<FileMemory>();
        if let Some(memory) = memory.filter(|_| name == HEADER_NAME) {
            memory.header_is_said.store(is_said, Ordering::Release);
        }
    }

    /// Brings device, memory pool and partitions in line with changed settings.
    fn take_effect(&self, before: &Settings, after: &Settings) -> Result<()> {
        let other = before.device != after.device || before.device_memory != after.device_memory;
        if other || (before.encoding != after.encoding && self.inner.device.is_closed()) {
            self.inner.device.choose(after)?;
        }
        let state = self.inner.context.state_ref();
        if before.memory_limit != after.memory_limit || before.spill_folder != after.spill_folder {
            let environment = runtime::rebuild(after, before, state.read().runtime_env())?;
            let mut state = state.write();
            *state = SessionStateBuilder::from(state.clone()).with_runtime_env(environment).build();
        }
        if before.allowed_paths != after.allowed_paths {
            runtime::share_files(state.read().runtime_env(), after);
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
        runtime::set(&state, name, value, &self.settings()).map_err(|error| bad_value(name, value, &error))
    }

    pub(super) fn setting_names(&self) -> Vec<String> {
        show::entries(&self.inner.context.state()).into_iter().map(|entry| entry.key).collect()
    }
}

/// The setting that switches on filters which [`without_wrong_filters`] switches off.
const SWITCHES_FILTERS: &str = "datafusion.optimizer.enable_dynamic_filter_pushdown";

/// The setting that says whether CSV files have a header.
const HEADER_NAME: &str = "datafusion.catalog.has_header";

/// The setting of the session's time zone.
const ZONE_NAME: &str = "datafusion.execution.time_zone";
/// The settings that are time zones.
const ZONES: [&str; 2] = [ZONE_NAME, "datafusion.execution.parquet.coerce_int96_tz"];
/// Settings of DataFusion's that change nothing here, by the beginnings of their names, and what does instead.
const UNREAD: [(&str, &str); 2] = [
    ("datafusion.format.", "results have one form; to_char formats dates and times, coalesce names NULL"),
    ("datafusion.sql_parser.enable_options_value_normalization", "values of options are taken as they are written"),
];
/// A session's first time zone.
const ZONE: &str = "UTC";

/// What a session has for DataFusion's settings otherwise than DataFusion.
pub(super) fn first_options(options: &mut ConfigOptions) {
    right_defaults(options);
    options.execution.time_zone = Some(ZONE.into());
    // Logical plans know better than physical ones that a CASE has no NULL, which DataFusion 55.2 takes for a defect.
    options.execution.skip_physical_aggregate_schema_check = true;
}

/// What a session has for one of DataFusion's settings that nobody sets.
fn default_value(name: &str) -> Option<String> {
    let mut defaults = ConfigOptions::default();
    first_options(&mut defaults);
    defaults.entries().into_iter().find(|entry| entry.key == name)?.value
}

/// Sets one of DataFusion's options.
///
/// # Errors
/// [`SqlError::SettingValue`] for a value outside of the setting's range, or that is no time zone where it has to be
/// one; [`SqlError::Unsupported`] for a setting that nothing reads.
pub(super) fn set_option(options: &mut ConfigOptions, name: &str, value: &str) -> Result<()> {
    check_setting(name, value)?;
    if ZONES.contains(&name) && !value.is_empty() && Tz::from_str(value).is_err() {
        let expected = "a time zone such as 'Europe/Berlin' or '+02:00'".to_string();
        return Err(SqlError::SettingValue {
            name: name.to_string(),
            value: value.to_string(),
            expected,
            origin: None,
        });
    }
    if let Some((_, instead)) = UNREAD.iter().find(|(unread, _)| name.starts_with(unread)) {
        return Err(SqlError::Unsupported(format!("setting {name} here: {instead}")));
    }
    options.set(name, value).map_err(|error| bad_value(name, value, &error.into()))?;
    if name == SWITCHES_FILTERS {
        without_wrong_filters(options);
    }
    // Without a name there is none.
    if name == ZONE_NAME && value.is_empty() {
        options.execution.time_zone = None;
    }
    Ok(())
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
