//! Contraction on a device: what callers see of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use warpcube_column::{ColumnError, Pinned, Residency};
use warpcube_gpu::{DeviceBuffer, GpuError, Kernel, Mark, Recording, Stream, Work, size_class};

use super::cells::compile_cells;
use super::contraction::{Contraction, Kernels, Parts};
use super::expand::compile_expand;
use super::keys::ResidentKeys;
use super::plan::Plan;
use super::resident::{FactBytes, ResidentFacts, value_buffers};
use super::scan::{ScanForm, ScanTuning, compile_total};
use super::source::FactsSource;
use super::statement::RecordedRun;
use crate::aggregate::Area;

/// An aggregation that a device does not do.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The aggregation is one for the CPU.
    #[error("the aggregation runs on the CPU: {reason}")]
    Unsupported {
        /// Why.
        reason: String,
    },
    /// Facts that cannot be loaded, or no room for them.
    #[error(transparent)]
    Column(#[from] ColumnError),
    /// A device that fails.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// Filled targets of an area with their sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCells {
    /// Row-major numbers of the filled targets within the area, ascending.
    pub ranks: Vec<u64>,
    /// Their sums, in units of the measure's last digit.
    pub sums: Vec<i64>,
}

/// Aggregates the facts of one cube on a device by contraction.
pub struct DeviceContraction {
    facts: Arc<ResidentFacts>,
    kernels: Mutex<KernelCache>,
    tuning: ScanTuning,
}

#[derive(Default)]
struct KernelCache {
    scans: HashMap<ScanForm, Kernel>,
    others: Option<[Kernel; 3]>,
}

impl DeviceContraction {
    /// Aggregations over facts whose columns `residency` keeps.
    pub fn new(residency: Arc<Residency>, source: FactsSource) -> DeviceContraction {
        DeviceContraction::over(Arc::new(ResidentFacts::new(residency, source)))
    }

    /// Aggregations over facts that other algorithms share.
    pub fn over(facts: Arc<ResidentFacts>) -> DeviceContraction {
        DeviceContraction { facts, kernels: Mutex::default(), tuning: ScanTuning::default() }
    }

    /// The facts.
    pub fn facts(&self) -> &Arc<ResidentFacts> {
        &self.facts
    }

    /// The name of the device.
    pub fn device_name(&self) -> String {
        self.facts.device().info().name.clone()
    }

    /// Cuts the pass over facts of later statements as told.
    pub fn set_tuning(&mut self, tuning: ScanTuning) {
        self.tuning = tuning;
    }

    /// Sums of a measure over an area.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for measures other than sums of decimals, weights that are not whole, areas beyond
    /// 2^29 targets and sums that may pass 64 bits; what loading and launching give.
    pub fn sums(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<DeviceCells, DeviceError> {
        let Some(prepared) = self.ready(area, measure, cancelled)? else {
            return Ok(DeviceCells { ranks: Vec::new(), sums: Vec::new() });
        };
        let mut stream = self.facts.stream()?;
        let contraction = prepared.contraction(self);
        contraction.upload(&mut stream)?;
        contraction.launch(&mut stream)?;
        let cells = contraction.read(&mut stream)?;
        self.facts.keep(stream);
        Ok(cells)
    }

    /// The same work, recorded: it runs any number of times over the facts as they are, and tells its time on the
    /// device. `None` if no target is filled.
    ///
    /// # Errors
    /// As [`DeviceContraction::sums`].
    pub fn record(
        &self,
        area: &Area,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<RecordedContraction<'_>>, DeviceError> {
        let Some(prepared) = self.ready(area, measure, cancelled)? else { return Ok(None) };
        let device = self.facts.device();
        let mut stream = device.stream()?;
        let contraction = prepared.contraction(self);
        contraction.upload(&mut stream)?;
        let mut work = Work::new(device);
        let begin = work.mark();
        contraction.launch(&mut work)?;
        let marks = (begin, work.mark());
        let recording = stream.prepare(work)?;
        Ok(Some(RecordedContraction { of: self, prepared, stream, recording, marks }))
    }

    /// Device memory of the facts of a measure, which is loaded where it is not yet.
    ///
    /// # Errors
    /// What loading gives.
    pub fn bytes(&self, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<FactBytes, DeviceError> {
        self.facts.bytes(measure, cancelled)
    }

    /// Plans a contraction and makes room for it; `None` if no target is filled.
    fn ready(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<Option<Prepared>, DeviceError> {
        if !self.facts.has_values(measure) {
            return Ok(None);
        }
        let facts = self.facts.facts();
        let keys = self.facts.keys(cancelled)?;
        let plan = Plan::new(facts, area, measure, &keys.present)?;
        if plan.is_empty() {
            return Ok(None);
        }
        let layout = facts.layout();
        let sizing = |tables: &[warpcube_column::Relation]| {
            let parts = Parts::new(&plan, layout, &tables[0]);
            size_class(parts.bytes()) as u64
        };
        let pinned = self.facts.admitted(measure, cancelled, sizing)?;
        let parts = Parts::new(&plan, layout, &pinned.tables[0]);
        let device = self.facts.device();
        let buffer = device.buffer(parts.bytes(), "sums of a cube")?;
        let has_nulls = facts.columns()[measure].filled.is_some();
        let is_total = plan.looked_up.is_empty();
        let form = (!is_total).then(|| ScanForm::of(&plan, layout, has_nulls, self.tuning, device.info()));
        let kernels = self.kernels(form)?;
        Ok(Some(Prepared { parts, buffer, keys, pinned, kernels, facts: facts.len() as u64 }))
    }

    fn kernels(&self, form: Option<ScanForm>) -> Result<Kernels, DeviceError> {
        let device = self.facts.device();
        let mut cache = self.kernels.lock();
        let others = match &cache.others {
            Some(others) => others.clone(),
            None => [compile_total(device)?, compile_expand(device)?, compile_cells(device)?],
        };
        cache.others = Some(others.clone());
        let scan = match form {
            Some(form) => {
                let kernel = match cache.scans.get(&form) {
                    Some(kernel) => kernel.clone(),
                    None => form.compile(device)?,
                };
                cache.scans.insert(form, kernel.clone());
                Some((form, kernel))
            }
            None => None,
        };
        let [total, expand, cells] = others;
        Ok(Kernels { scan, total, expand, cells })
    }
}

/// What one contraction holds.
struct Prepared {
    parts: Parts,
    buffer: DeviceBuffer,
    keys: Arc<ResidentKeys>,
    pinned: Pinned,
    kernels: Kernels,
    facts: u64,
}

impl Prepared {
    fn contraction<'a>(&'a self, of: &'a DeviceContraction) -> Contraction<'a> {
        let Prepared { parts, buffer, keys, pinned, kernels, facts } = self;
        let device = of.facts.device();
        Contraction { device, parts, buffer, keys, relation: &pinned.tables[0], kernels, facts: *facts }
    }

    /// All device memory that kernels use.
    fn buffers(&self) -> Vec<&DeviceBuffer> {
        [&self.buffer].into_iter().chain(self.keys.buffers()).chain(value_buffers(&self.pinned.tables[0])).collect()
    }
}

/// A contraction that was recorded ([`DeviceContraction::record`]).
pub struct RecordedContraction<'a> {
    of: &'a DeviceContraction,
    prepared: Prepared,
    stream: Stream,
    recording: Recording,
    marks: (Mark, Mark),
}

impl RecordedContraction<'_> {
    /// Runs all kernels over the facts and gives the milliseconds between events in front of and behind them.
    ///
    /// # Errors
    /// A device that fails.
    pub fn run(&mut self) -> Result<f64, DeviceError> {
        self.stream.run(&mut self.recording, &self.prepared.buffers())?;
        Ok(self.recording.elapsed_ms(self.marks.0, self.marks.1)?)
    }

    /// The filled targets that the last run found.
    ///
    /// # Errors
    /// A device that fails.
    pub fn cells(&mut self) -> Result<DeviceCells, DeviceError> {
        self.prepared.contraction(self.of).read(&mut self.stream)
    }
}

impl RecordedRun for RecordedContraction<'_> {
    fn run(&mut self) -> Result<f64, DeviceError> {
        RecordedContraction::run(self)
    }

    fn cells(&mut self) -> Result<DeviceCells, DeviceError> {
        RecordedContraction::cells(self)
    }

    fn used(&self) -> String {
        String::new()
    }
}
