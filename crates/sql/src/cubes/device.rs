//! The database's device as a cube sees it: opened when it aggregates first, chosen by estimates under placement
//! `auto`.

use std::sync::{Arc, Weak};

use warpcube_cube::aggregate::{Area, Cells, Decision, Place, Progress};
use warpcube_cube::answer::{Aggregator, CubeError};
use warpcube_cube::device::{DeviceAggregation, DeviceAlgorithm, FactsSource, PlaceTimes, ResidentFacts, forecast};
use warpcube_cube::facts::Facts;
use warpcube_engine::Engine;

use super::OpenCube;
use crate::engines::{COMPILE_PASS_SECONDS, COMPILE_SECONDS, Engines, OPEN_SECONDS};

/// The device for one cube.
pub(super) struct CubeDevice<'a> {
    pub(super) engines: &'a Engines,
    pub(super) open: &'a OpenCube,
    /// True if estimates choose between CPU and device.
    pub(super) chooses: bool,
}

/// The aggregation of a cube on the device of one engine.
pub(super) struct OnDevice {
    engine: Weak<Engine>,
    aggregation: Arc<DeviceAggregation>,
}

impl CubeDevice<'_> {
    /// The aggregation, whose device is opened for it; nothing if there is none.
    fn opened(&self) -> Option<Arc<DeviceAggregation>> {
        let engine = self.engines.get().filter(|engine| engine.runs_kernels())?;
        let open = self.open;
        let mut on_device = open.device.lock();
        if let Some(known) = on_device.as_ref().filter(|known| known.engine.as_ptr() == Arc::as_ptr(&engine)) {
            return Some(known.aggregation.clone());
        }
        let name = open.folder.display().to_string();
        let source = FactsSource::new(open.cube.facts.clone(), &name, &format!("state {}", open.state));
        let aggregation = DeviceAggregation::new(Arc::new(ResidentFacts::new(engine.residency().clone(), source)));
        let made = OnDevice { engine: Arc::downgrade(&engine), aggregation: Arc::new(aggregation) };
        Some(on_device.insert(made).aggregation.clone())
    }

    /// The aggregation if the device is open.
    fn if_open(&self) -> Option<Arc<DeviceAggregation>> {
        self.engines.opened().and_then(|_| self.opened())
    }

    fn no_device(&self) -> String {
        self.engines.no_gpu().unwrap_or_else(|| "there is no device".into())
    }
}

impl Aggregator for CubeDevice<'_> {
    fn aggregate(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        named: Option<DeviceAlgorithm>,
        progress: &Progress,
    ) -> Result<Result<Cells, String>, CubeError> {
        match self.opened() {
            Some(device) => device.aggregate(facts, area, measures, named, progress),
            None => Ok(Err(self.no_device())),
        }
    }

    fn place(&self, facts: &Facts, area: &Area, measures: &[usize], cpu: &dyn Fn() -> f64) -> Place {
        if !self.chooses {
            return Place::on(self.device_name());
        }
        let device = self.if_open();
        let Decision { ms, load_ms, .. } = match &device {
            Some(device) => device.estimate(area, measures),
            None => forecast(facts, area, measures),
        };
        let mut before = load_ms;
        if load_ms > 0.0 {
            before += (COMPILE_SECONDS + COMPILE_PASS_SECONDS) * 1e3;
        }
        if device.is_none() {
            before += OPEN_SECONDS * 1e3;
        }
        PlaceTimes { cpu: cpu(), device: ms, before, saved: *self.open.saved_ms.lock() }.place(&self.device_name())
    }

    fn forecast(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        progress: &Progress,
    ) -> Result<Result<Decision, String>, CubeError> {
        match self.if_open() {
            Some(device) => Aggregator::forecast(&*device, facts, area, measures, progress),
            None => Ok(Ok(forecast(facts, area, measures))),
        }
    }

    fn device_name(&self) -> String {
        self.if_open().map_or_else(|| "the device".into(), |device| device.device_name())
    }
}
