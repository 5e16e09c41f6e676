//! Settings of a database, and what follows from a change of them; what values DataFusion's settings take.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::timezone::Tz;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::runtime_env::RuntimeEnv;

use super::{Current, Database};
use crate::access::check_change;
use crate::baseline::{right_defaults, without_wrong_filters};
use crate::error::{Result, SqlError};
use crate::nearest::nearest;
use crate::ranges::check_setting;
use crate::runtime::{self, RuntimeChoice};
use crate::settings::{DatabaseSettings, Owner, Settings, setting};
use crate::values::{Budget, SettingOrigin};

impl Database {
    /// Sets a setting of the database by its full name, for all connections; `own` are those of the connection that
    /// asks.
    pub(crate) fn assign(&self, name: &str, value: &str, origin: SettingOrigin, own: &Settings) -> Result<()> {
        let _alone = self.shared.changing.lock();
        let mut current = self.current();
        match RuntimeChoice::is_runtime(name) {
            true => {
                let set = runtime::set(&current.runtime, name, value, &current.settings);
                current.runtime = set.map_err(|error| bad_value(name, value, &error))?;
            }
            false => {
                let before = Settings { database: current.settings.clone(), ..own.clone() };
                let mut after = before.clone();
                after.assign(name, value)?;
                check_change(&before, &after, &self.shared.start.settings)?;
                current.runtime = self.take_effect(&before.database, &after, current.runtime)?;
                current.settings = after.database;
            }
        }
        match origin {
            SettingOrigin::Default => current.origins.remove(name),
            origin => current.origins.insert(name.to_string(), origin),
        };
        self.put(current);
        Ok(())
    }

    /// Has connections that are opened from now on begin with the value that the catalog keeps for a setting of theirs,
    /// or without one. What counts more than the catalog goes on to do so.
    pub(crate) fn begin_with(&self, name: &str, kept: Option<(String, SettingOrigin)>) {
        let first = self.shared.start.origins.get(name);
        if owner(name) == Owner::Database || first.is_some_and(SettingOrigin::outranks_catalog) {
            return;
        }
        // The catalog's value of the start counts no more.
        let default = || {
            let ours = setting(name).and_then(|_| Settings::default().value(name)).ok();
            Some((ours.or_else(|| default_value(name))?, SettingOrigin::Default))
        };
        let mut global = self.shared.global.write();
        match kept.or_else(|| first.and_then(|_| default())) {
            Some(value) => global.insert(name.to_string(), value),
            None => global.remove(name),
        };
    }

    /// Keeps files out of reach of all statements from now on: those with secrets of the process. `/proc` is out of
    /// reach then, too.
    pub fn keep_secret(&self, files: &[PathBuf]) {
        let _alone = self.shared.changing.lock();
        let mut current = self.current();
        current.settings.secret = current.settings.secret.with(files);
        runtime::share_files(&current.runtime, &current.settings, self.shared.mirror.clone());
        self.put(current);
    }

    /// The value that a setting of the database, by its full name, has at a start without the catalog's; none for the
    /// default of one of `datafusion.runtime.…`.
    pub(crate) fn without_catalog(&self, name: &str) -> Result<Option<(String, SettingOrigin)>> {
        let start = &self.shared.start;
        let given = start.origins.get(name).filter(|origin| origin.outranks_catalog());
        if RuntimeChoice::is_runtime(name) {
            return Ok(start.others.get(name).cloned().zip(given.cloned()));
        }
        Ok(Some(match given {
            Some(origin) => (start.settings.value(name)?, origin.clone()),
            None => (Settings::default().value(name)?, SettingOrigin::Default),
        }))
    }

    /// Sets one of `datafusion.runtime.…` to its default.
    pub(crate) fn reset_runtime(&self, name: &str) -> Result<()> {
        let _alone = self.shared.changing.lock();
        let mut current = self.current();
        current.runtime = runtime::reset(&current.runtime, name, &current.settings)?;
        current.origins.remove(name);
        self.put(current);
        Ok(())
    }

    /// Gives changed settings to all connections. The caller changes them alone.
    fn put(&self, mut current: Current) {
        current.number += 1;
        // The pool may be another one now.
        self.shared.catalogs.tables().ledger.move_to(&current.runtime.memory_pool);
        let number = current.number;
        *self.shared.current.write() = current;
        self.shared.number.store(number, Ordering::Release);
    }

    /// Brings the device in line with changed settings; gives the runtime that they ask for.
    fn take_effect(
        &self,
        before: &DatabaseSettings,
        after: &Settings,
        runtime: Arc<RuntimeEnv>,
    ) -> Result<Arc<RuntimeEnv>> {
        let now = &after.database;
        let device = &self.shared.device;
        let has_other_budget = match device.is_gpu_open() {
            true => before.device_memory != now.device_memory,
            // A quarter of the limit, unless it is named.
            false => {
                let is_share = now.host_memory == Budget::Auto && before.memory_limit != now.memory_limit;
                before.host_memory != now.host_memory || before.device_memory != now.device_memory || is_share
            }
        };
        if before.device != now.device || has_other_budget {
            device.choose(after)?;
            self.shared.cubes.leave_device();
        }
        if before.allowed_paths != now.allowed_paths {
            runtime::share_files(&runtime, now, self.shared.mirror.clone());
        }
        match before.memory_limit != now.memory_limit || before.spill_folder != now.spill_folder {
            true => runtime::rebuild(now, before, &runtime),
            false => Ok(runtime),
        }
    }
}

/// Whose a setting of any name is.
pub(crate) fn owner(name: &str) -> Owner {
    match RuntimeChoice::is_runtime(name) {
        true => Owner::Database,
        false => setting(name).map_or(Owner::Connection, |setting| setting.owner),
    }
}

/// The setting that switches on filters which [`without_wrong_filters`] switches off.
pub(crate) const SWITCHES_FILTERS: &str = "datafusion.optimizer.enable_dynamic_filter_pushdown";

/// The setting that says whether CSV files have a header.
pub(crate) const HEADER_NAME: &str = "datafusion.catalog.has_header";

/// The setting of the connection's time zone.
pub(crate) const ZONE_NAME: &str = "datafusion.execution.time_zone";
/// The settings that are time zones.
const ZONES: [&str; 2] = [ZONE_NAME, "datafusion.execution.parquet.coerce_int96_tz"];
/// Settings of DataFusion's that change nothing here, by the beginnings of their names, and what does instead.
const UNREAD: [(&str, &str); 2] = [
    ("datafusion.format.", "results have one form; to_char formats dates and times, coalesce names NULL"),
    ("datafusion.sql_parser.enable_options_value_normalization", "values of options are taken as they are written"),
];
/// A connection's first time zone.
const ZONE: &str = "UTC";

/// What connections have for DataFusion's settings otherwise than DataFusion.
pub(crate) fn first_options(options: &mut ConfigOptions) {
    right_defaults(options);
    options.execution.time_zone = Some(ZONE.into());
    // Logical plans know better than physical ones that a CASE has no NULL, which DataFusion 55.2 takes for a defect.
    options.execution.skip_physical_aggregate_schema_check = true;
}

/// The value of one of DataFusion's settings in a new connection.
pub(crate) fn default_value(name: &str) -> Option<String> {
    let mut defaults = ConfigOptions::default();
    first_options(&mut defaults);
    defaults.entries().into_iter().find(|entry| entry.key == name)?.value
}

/// Sets one of DataFusion's options.
///
/// # Errors
/// [`SqlError::SettingValue`] for a value outside of the setting's range, or that is no time zone where it has to be
/// one; [`SqlError::Unsupported`] for a setting that nothing reads.
pub(crate) fn set_option(options: &mut ConfigOptions, name: &str, value: &str) -> Result<()> {
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

/// Settings of DuckDB and PostgreSQL, and those of ours that do as much.
const OTHER_NAMES: [(&str, &str); 13] = [
    ("access_mode", "warpcube.read_only"),
    ("enable_external_access", "warpcube.allowed_paths"),
    ("max_memory", "warpcube.memory_limit"),
    ("memory_limit", "warpcube.memory_limit"),
    ("schema", "datafusion.catalog.default_schema"),
    ("search_path", "datafusion.catalog.default_schema"),
    ("statement_timeout", "warpcube.timeout"),
    ("temp_directory", "warpcube.spill_folder"),
    ("temp_tablespaces", "warpcube.spill_folder"),
    ("threads", "warpcube.target_partitions"),
    ("timezone", "datafusion.execution.time_zone"),
    ("work_mem", "warpcube.memory_limit"),
    ("worker_threads", "warpcube.target_partitions"),
];

/// Refuses a name that is not among those known.
pub(crate) fn check_known(name: &str, known: impl IntoIterator<Item = String>) -> Result<()> {
    let known: Vec<String> = known.into_iter().collect();
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let ours = OTHER_NAMES.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(name)).map(|(_, ours)| *ours);
    let nearest = ours.map_or_else(|| nearest(name, known), |ours| Some(ours.to_string()));
    Err(SqlError::UnknownSetting { name: name.to_string(), nearest, origin: None })
}

/// The error for a value that DataFusion does not take.
pub(crate) fn bad_value(name: &str, value: &str, error: &SqlError) -> SqlError {
    let text = error.to_string();
    let reason = text.split_once(' ').map_or(text.as_str(), |(_, reason)| reason);
    let expected = format!("another value: {reason}");
    SqlError::SettingValue { name: name.to_string(), value: value.to_string(), expected, origin: None }
}
