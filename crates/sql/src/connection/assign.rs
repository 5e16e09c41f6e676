//! Setting settings of a connection: by `SET`, `RESET` and the program, with what follows from a change.
//!
//! Invariant: a state's [`SettingsNumber`] is that of its settings; both change under one lock of the state.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::config::ConfigField;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

use super::{Connection, SettingsNumber, Settled};
use crate::access::{check_change, check_folder, check_own};
use crate::baseline::without_wrong_filters;
use crate::catalog::HeaderSaid;
use crate::database::{
    Database, HEADER_NAME, SWITCHES_FILTERS, ZONE_NAME, check_known, default_value, owner, set_option,
};
use crate::error::Result;
use crate::mend;
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
            check_own(&own, name, value)?;
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

    /// Sets a setting to what the database was opened with.
    pub(super) fn reset(&self, name: &str) -> Result<()> {
        let database = &self.inner.database;
        let start = &database.shared.start;
        let origin = || start.origins.get(name).cloned().unwrap_or(SettingOrigin::Default);
        if name.split('.').next() == Some(PREFIX) {
            return self.assign(name, &start.settings.value(name)?, origin());
        }
        check_known(name, self.setting_names())?;
        if let Some(value) = start.others.get(name) {
            return self.assign(name, value, origin());
        }
        if RuntimeChoice::is_runtime(name) {
            check_own(&self.settings(), name, "its default")?;
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

    /// Sets a setting of all connections to what it is without the catalog's value. One that only becomes stricter
    /// stays as it is until the next start.
    pub(super) fn reset_global(&self, name: &str) -> Result<()> {
        if owner(name) != Owner::Database || name == "warpcube.allowed_paths" {
            return Ok(());
        }
        match self.inner.database.without_catalog(name)? {
            Some((value, origin)) => self.assign(name, &value, origin),
            None => self.inner.database.reset_runtime(name),
        }
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
            if name == ZONE_NAME {
                let types = Arc::new(mend::TypeNames::of(state.config_options()));
                *state = SessionStateBuilder::from(state.clone()).with_type_planner(types).build();
            }
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

    /// Takes over the settings of the database, if they have changed, and notices functions and rules that have.
    pub(super) fn settle(&self) {
        let is_known = self.inner.known.load(Ordering::Acquire) == self.inner.database.number();
        if is_known && !self.inner.is_given.load(Ordering::Acquire) {
            return;
        }
        let mut settled = self.inner.settled.lock();
        let state = self.inner.context.state_ref();
        if !is_known || settled.is_changed(&state.read()) {
            self.take_over(&mut settled, &mut state.write());
        }
    }

    /// Takes over the settings of the database, and functions and rules that have changed.
    fn take_over(&self, settled: &mut Settled, state: &mut SessionState) {
        let database = &self.inner.database;
        if settled.is_changed(state) {
            settled.functions = database.shared.kept.settings.functions();
        }
        let current = database.current();
        settled.database = current.number;
        let share = self.inner.memory.as_ref();
        let runtime = share.map_or(current.runtime.clone(), |share| share.within(&current.runtime));
        if !Arc::ptr_eq(state.runtime_env(), &runtime) {
            *state = SessionStateBuilder::from(state.clone()).with_runtime_env(runtime).build();
        }
        if let Some(settings) = state.config_mut().options_mut().extensions.get_mut::<Settings>() {
            settings.database = current.settings;
        }
        settled.number(state, database);
        self.inner.known.store(current.number, Ordering::Release);
    }

    /// Tells the connection's functions and rules from those of other connections, before they may change: from now on
    /// each statement looks at them.
    pub(super) fn give(&self) {
        let mut settled = self.inner.settled.lock();
        if settled.given.is_some() {
            return;
        }
        let state = self.inner.context.state_ref();
        let mut state = state.write();
        settled.functions = self.inner.database.shared.kept.settings.functions();
        settled.given = Some(state.clone());
        settled.number(&mut state, &self.inner.database);
        self.inner.is_given.store(true, Ordering::Release);
    }

    /// Refuses a name that is no setting's.
    pub(super) fn check_setting(&self, name: &str) -> Result<()> {
        check_known(name, self.setting_names())
    }

    fn setting_names(&self) -> Vec<String> {
        show::entries(&self.state()).into_iter().map(|entry| entry.key).collect()
    }
}

impl Settled {
    /// Gives a state the number of its settings.
    pub(super) fn number(&mut self, state: &mut SessionState, database: &Database) {
        let number = database.shared.kept.settings.of(state, self.database, self.functions);
        state.config_mut().set_extension(Arc::new(SettingsNumber(number)));
        self.given = self.given.take().map(|_| state.clone());
    }

    /// Whether functions, rules or options of a state are other ones than when it was given its number.
    fn is_changed(&self, state: &SessionState) -> bool {
        self.given.as_ref().is_some_and(|given| !plans_alike(given, state))
    }
}

/// Whether two states plan with the very same functions, rules and options. A copy of a map has its entries in the same
/// order; one that was changed since counts as another where it has them in another order.
fn plans_alike(one: &SessionState, other: &SessionState) -> bool {
    fn functions<T>(one: &HashMap<String, Arc<T>>, other: &HashMap<String, Arc<T>>) -> bool {
        let mut both = one.iter().zip(other);
        one.len() == other.len() && both.all(|(one, other)| Arc::ptr_eq(one.1, other.1) && one.0 == other.0)
    }
    fn rules<T: ?Sized>(one: &[Arc<T>], other: &[Arc<T>]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
    }
    Arc::ptr_eq(one.config_options(), other.config_options())
        && functions(one.scalar_functions(), other.scalar_functions())
        && functions(one.aggregate_functions(), other.aggregate_functions())
        && functions(one.window_functions(), other.window_functions())
        && functions(one.table_functions(), other.table_functions())
        && functions(one.higher_order_functions(), other.higher_order_functions())
        && rules(&one.analyzer().rules, &other.analyzer().rules)
        && rules(one.optimizers(), other.optimizers())
        && rules(one.physical_optimizers(), other.physical_optimizers())
        && rules(one.expr_planners(), other.expr_planners())
        && rules(one.relation_planners(), other.relation_planners())
}
