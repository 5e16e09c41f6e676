//! What the device's planner, operators and background loads of a database share.

use std::sync::Arc;

use super::background_load::BackgroundLoads;
use super::explain_cache::ExplainCache;
use crate::engines::Engines;
use crate::lower::Refusals;
use crate::placement::LoadLedger;

/// The device side of a database.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    pub(super) engines: Arc<Engines>,
    /// Fragments that were found unfit for the device.
    pub(super) refusals: Arc<Refusals>,
    pub(super) explain_cache: ExplainCache,
    pub(super) ledger: Arc<LoadLedger>,
    pub(super) background: Arc<BackgroundLoads>,
}

impl DeviceContext {
    /// A context that knows nothing yet.
    pub(crate) fn new(engines: Arc<Engines>) -> DeviceContext {
        let (refusals, ledger): (Arc<Refusals>, Arc<LoadLedger>) = Default::default();
        let background = Arc::new(BackgroundLoads::new(engines.clone(), refusals.clone(), ledger.clone()));
        DeviceContext { engines, refusals, explain_cache: ExplainCache::default(), ledger, background }
    }
}
