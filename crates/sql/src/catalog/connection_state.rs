//! The state of the connection that names a table, as catalogs read it.

use std::sync::{Arc, Weak};

use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::RwLock;

use crate::locations::AllowedPaths;
use crate::settings::Settings;

/// A weak reference to the state of a connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionState(pub(super) Weak<RwLock<SessionState>>);

impl ConnectionState {
    /// A copy of the connection's state; none once the connection has gone. Copying costs some microseconds, so it is
    /// taken only where it is needed.
    pub(super) fn copied(&self) -> Option<SessionState> {
        self.0.upgrade().map(|state| state.read().clone())
    }

    /// The folders that statements may reach.
    pub(super) fn allowed(&self) -> Option<AllowedPaths> {
        let state = self.0.upgrade()?;
        let state = state.read();
        state.config_options().extensions.get::<Settings>()?.database.allowed_paths.clone()
    }

    pub(super) fn runtime(&self) -> Option<Arc<RuntimeEnv>> {
        self.0.upgrade().map(|state| state.read().runtime_env().clone())
    }
}
