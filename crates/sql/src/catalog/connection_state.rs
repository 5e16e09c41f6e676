//! The state of the connection that names a table, as catalogs read it.

use std::sync::{Arc, Weak};

use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::RwLock;

use crate::access::Access;
use crate::locations::Reach;

/// A weak reference to the state of a connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionState(pub(super) Weak<RwLock<SessionState>>);

impl ConnectionState {
    /// A copy of the connection's state; none once the connection has gone. Copying costs some microseconds, so it is
    /// taken only where it is needed.
    pub(super) fn copied(&self) -> Option<SessionState> {
        self.0.upgrade().map(|state| state.read().clone())
    }

    /// The files that statements reach.
    pub(super) fn reach(&self) -> Reach {
        let state = self.0.upgrade();
        state.map_or_else(Reach::default, |state| Access::of(state.read().config_options()).reach().clone())
    }

    pub(super) fn runtime(&self) -> Option<Arc<RuntimeEnv>> {
        self.0.upgrade().map(|state| state.read().runtime_env().clone())
    }
}
