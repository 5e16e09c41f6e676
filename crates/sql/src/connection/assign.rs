//! Setting settings of a connection: by `SET`, `RESET` and the program, with what follows from a change.
//!
//! Invariant: a state's [`SettingsNumber`] is that of its settings; both change under one lock of the state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::config::ConfigField;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

use super::{Connection, SettingsNumber, Settled};
use crate::access::{check_change, check_folder};
use crate::baseline::without_wrong_filters;
use crate::catalog::HeaderSaid;
use crate::database::{Database, HEADER_NAME, SWITCHES_FILTERS, check_known, default_value, owner, set_option};
use crate::error::Result;
use crate::runtime::{self, RuntimeChoice};
use crate::settings::{Owner, PREFIX, Settings};
use crate::show;
use crate::values::{Encoding, SettingOrigin};

impl Connection {
    /// Sets a setting of `warpcube.` or `datafusion.`, as `SET` does: one of the database's ([`Owner`]) for all of its
    /// connections, any other for this one.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        self.assign(name, value, SettingOrigin::Statement)
    }

    pub(super) fn assign(&self, name: &str, value: &str, origin: SettingOrigin) -> Result<()> {
        let is_ours = name.split('.').next() == Some(PREFIX);
        if !is_ours {
            check_known(name, self.setting_names())?;
        }
        let database = &self.inner.database;
        if owner(name) == Owner::Database {
            let own = self.settings();
            check_folder(&own, name, value)?;
            return database.assign(name, value, origin, &own);
        }
        self.change(name, origin, |state| {
            if !is_ours {
                return set_option(state.config_mut().options_mut(), name, value);
            }
            let before = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
            let mut after = before.clone();
            after.assign(name, value)?;
            check_change(&before, &after, &database.shared.start.settings)?;
            if before.encoding != after.encoding {
                database.device().will_encode(after.encoding != Encoding::Plain);
            }
            let options = state.config_mut().options_mut();
            if before.target_partitions != after.target_partitions {
                options.execution.target_partitions = match after.target_partitions {
                    0 => SessionConfig::new().target_partitions(),
                    partitions => partitions,
                };
            }
            options.extensions.insert(after);
            Ok(())
        })
    }

    /// Sets a setting of DataFusion's to what the database was opened with.
    pub(super) fn reset(&self, name: &str) -> Result<()> {
        check_known(name, self.setting_names())?;
        let database = &self.inner.database;
        let start = &database.shared.start;
        if let Some(value) = start.others.get(name) {
            return self.assign(name, value, start.origins.get(name).cloned().unwrap_or(SettingOrigin::Default));
        }
        if RuntimeChoice::is_runtime(name) {
            return database.reset_runtime(name);
        }
        self.change(name, SettingOrigin::Default, |state| {
            let options = state.config_mut().options_mut();
            options.reset(name)?;
            // DataFusion goes back to its own defaults, some of which are not ours.
            if let Some(own) = default_value(name) {
                options.set(name, &own)?;
            }
            if name == SWITCHES_FILTERS {
                without_wrong_filters(options);
            }
            Ok(())
        })
    }

    /// Changes a setting of the connection.
    fn change(
        &self,
        name: &str,
        origin: SettingOrigin,
        change: impl FnOnce(&mut SessionState) -> Result<()>,
    ) -> Result<()> {
        let mut settled = self.inner.settled.lock();
        {
            let state = self.inner.context.state_ref();
            let mut state = state.write();
            self.take_over(&mut settled, &mut state);
            change(&mut state)?;
            if name == HEADER_NAME {
                state.config_mut().set_extension(Arc::new(HeaderSaid(origin != SettingOrigin::Default)));
            }
            runtime::refresh_functions(&mut state)?;
            settled.number(&mut state, &self.inner.database);
        }
        match origin {
            SettingOrigin::Default => self.inner.origins.lock().remove(name),
            origin => self.inner.origins.lock().insert(name.to_string(), origin),
        };
        Ok(())
    }

    /// Takes over the settings of the database, if they have changed.
    pub(super) fn settle(&self) {
        let database = &self.inner.database;
        if self.inner.known.load(Ordering::Acquire) == database.number() {
            return;
        }
        let mut settled = self.inner.settled.lock();
        let state = self.inner.context.state_ref();
        self.take_over(&mut settled, &mut state.write());
    }

    /// Takes over the settings of the database.
    fn take_over(&self, settled: &mut Settled, state: &mut SessionState) {
        let database = &self.inner.database;
        let current = database.current();
        settled.database = current.number;
        if !Arc::ptr_eq(state.runtime_env(), &current.runtime) {
            *state = SessionStateBuilder::from(state.clone()).with_runtime_env(current.runtime).build();
        }
        if let Some(settings) = state.config_mut().options_mut().extensions.get_mut::<Settings>() {
            settings.database = current.settings;
        }
        settled.number(state, database);
        self.inner.known.store(current.number, Ordering::Release);
    }

    /// Notes that the connection's functions may be other ones than before, and than those of other connections.
    pub(super) fn has_own_functions(&self) {
        let mut settled = self.inner.settled.lock();
        settled.functions = self.inner.database.shared.kept.settings.functions();
        settled.number(&mut self.inner.context.state_ref().write(), &self.inner.database);
    }

    fn setting_names(&self) -> Vec<String> {
        show::entries(&self.state()).into_iter().map(|entry| entry.key).collect()
    }
}

impl Settled {
    /// Gives a state the number of its settings.
    pub(super) fn number(&self, state: &mut SessionState, database: &Database) {
        let number = database.shared.kept.settings.of(state, self.database, self.functions);
        state.config_mut().set_extension(Arc::new(SettingsNumber(number)));
    }
}
