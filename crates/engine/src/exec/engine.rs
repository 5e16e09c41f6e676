//! One device with its columns and what kernels are tuned by.

use std::sync::Arc;

use parking_lot::Mutex;
use warpcube_column::Residency;
use warpcube_gpu::{Device, Stream};

use crate::ir::TopK;
use crate::plan::topk_form;
use crate::tuning::Tuning;

/// One device with the columns on it; runs fragments from any thread.
pub struct Engine {
    pub(super) residency: Arc<Residency>,
    pub(super) streams: Mutex<Vec<Stream>>,
    pub(crate) tuning: Tuning,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A process that ends while something is compiled would take the compiler apart under its own hands.
        self.device().settle();
    }
}

impl Engine {
    /// An engine over a device with nothing on it.
    pub fn new(device: Device) -> Engine {
        Engine::over(Arc::new(Residency::new(device)))
    }

    /// An engine over the columns of a device, which others may share: all keep one budget.
    pub fn over(residency: Arc<Residency>) -> Engine {
        let tuning = Tuning::of(residency.device().info());
        Engine { residency, streams: Mutex::default(), tuning }
    }

    /// The same engine with other choices in its kernels.
    pub fn with_tuning(mut self, tuning: Tuning) -> Engine {
        self.tuning = tuning;
        self
    }

    /// The columns on the device.
    pub fn residency(&self) -> &Arc<Residency> {
        &self.residency
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.residency.device()
    }

    /// Whether the device runs kernels: a GPU or an emulated one, and not the host.
    pub fn runs_kernels(&self) -> bool {
        self.device().info().runs_kernels
    }

    /// Why no bindings of a top-k of `rows` rows would run, as far as its algorithm alone tells.
    pub fn refusal(&self, top: &TopK, rows: u64) -> Option<String> {
        let k = top.k.filter(|k| *k <= rows)?;
        topk_form::refused(self.device().info(), k, top.algorithm)
    }
}
