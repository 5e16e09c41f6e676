//! What all requests of a server share.

use std::sync::Arc;

use tokio::sync::watch;

use crate::clients::Clients;
use crate::metrics::Metrics;
use crate::seal::Seal;
use crate::statements::Statements;
use crate::token::Turnstile;

/// What requests share.
pub(crate) struct Shared {
    pub(crate) statements: Statements,
    pub(crate) clients: Clients,
    pub(crate) turnstile: Turnstile,
    pub(crate) seal: Seal,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) body_max: usize,
    /// Whether the server ends.
    pub(crate) ending: watch::Receiver<bool>,
}
