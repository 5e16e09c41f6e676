//! What the device's planner, operators and background loads of a session share.

use std::sync::Arc;

use super::background_load::BackgroundLoads;
use super::engines::Engines;
use super::explain_cache::ExplainCache;
use crate::lower::Refusals;
use crate::placement::AskedColumns;

/// The device side of a session.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    pub(super) engines: Arc<Engines>,
    /// Fragments that were found unfit for the device.
    pub(super) refusals: Arc<Refusals>,
    pub(super) explain_cache: ExplainCache,
    pub(super) asked: Arc<AskedColumns>,
    pub(super) background: Arc<BackgroundLoads>,
}

impl DeviceContext {
    /// A context that knows nothing yet.
    pub(crate) fn new(engines: Arc<Engines>) -> DeviceContext {
        let (refusals, asked): (Arc<Refusals>, Arc<AskedColumns>) = Default::default();
        let background = Arc::new(BackgroundLoads::new(engines.clone(), refusals.clone(), asked.clone()));
        DeviceContext { engines, refusals, explain_cache: ExplainCache::default(), asked, background }
    }
}
