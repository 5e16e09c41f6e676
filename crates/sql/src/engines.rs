//! The engine over the database's device.

use std::sync::Arc;

use parking_lot::Mutex;
use warpcube_engine::{Engine, Tuning};

use crate::device::DeviceSlot;

/// Creating a context on the device.
pub(crate) const OPEN_SECONDS: f64 = 0.4;
/// Compiling a fragment's kernels, and the same for each pass; what is in the cache is not known before they are
/// generated. (SSB's two to five passes take 0.15 to 0.29 s beside a CPU that is at the same fragment.)
pub(crate) const COMPILE_SECONDS: f64 = 0.03;
pub(crate) const COMPILE_PASS_SECONDS: f64 = 0.055;

/// Makes the engine when first asked for and again when the database's device changes.
pub(crate) struct Engines {
    device: Arc<DeviceSlot>,
    engine: Mutex<Option<Arc<Engine>>>,
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engines").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Engines {
    /// Engines over the devices of a slot.
    pub(crate) fn new(device: Arc<DeviceSlot>) -> Engines {
        Engines { device, engine: Mutex::new(None) }
    }

    /// Whether there may be a device that was not opened yet.
    pub(crate) fn may_open(&self) -> bool {
        self.device.may_open()
    }

    /// The engine if its device is open already.
    pub(crate) fn opened(&self) -> Option<Arc<Engine>> {
        if self.device.is_open() { self.get() } else { None }
    }

    /// Why there is no GPU, where there is none.
    pub(crate) fn no_gpu(&self) -> Option<String> {
        self.device.no_gpu()
    }

    /// Why no columns are kept in host memory.
    pub(crate) fn no_columns(&self) -> String {
        match self.device.has_gpu() {
            true => "the database has another device: warpcube.device = 'cpu' keeps columns in host memory".into(),
            false => "warpcube.host_memory is 0".into(),
        }
    }

    /// Whether the database's device was lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.device.is_lost()
    }

    /// The engine, or none where the database runs over files alone.
    pub(crate) fn get(&self) -> Option<Arc<Engine>> {
        let Some(device) = self.device.get() else {
            // What was on it goes.
            self.engine.lock().take();
            return None;
        };
        let mut engine = self.engine.lock();
        match engine.as_ref() {
            Some(engine) if engine.device().same(&device) => Some(engine.clone()),
            _ => {
                let tuning = tuning().unwrap_or_else(|| Tuning::of(device.info()));
                Some(engine.insert(Arc::new(Engine::new(device).with_tuning(tuning))).clone())
            }
        }
    }
}

/// The tuning of `WARPCUBE_TUNING`; an unreadable one is left out, with an error in the log.
fn tuning() -> Option<Tuning> {
    let text = std::env::var("WARPCUBE_TUNING").ok()?;
    text.parse().inspect_err(|error: &String| tracing::error!(error, "WARPCUBE_TUNING is left out")).ok()
}
