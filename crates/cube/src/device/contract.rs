//! Contraction on a device: what callers see of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use warpcube_column::{ColumnError, EncodingChoice, LoadLimits, Pinned, Residency, TableRequest};
use warpcube_gpu::{DeviceBuffer, GpuError, Kernel, Mark, Recording, Stream, Work, size_class};

use super::cells::compile_cells;
use super::contraction::{Contraction, Kernels, Parts};
use super::expand::compile_expand;
use super::keys::{PackedKeys, ResidentKeys};
use super::plan::Plan;
use super::scan::{ScanForm, ScanTuning, compile_total};
use super::source::FactsSource;
use crate::aggregate::Area;
use crate::facts::FactColumn;

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

/// Device memory of facts in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactBytes {
    /// The packed keys, with the words in front of their miniblocks.
    pub keys: u64,
    /// Values and validity of one measure.
    pub values: u64,
}

/// Aggregates the facts of one cube on a device.
///
/// Values are columns of the shared residency, plain. Keys are packed once and stay on the device with this object;
/// their memory is reserved like that of a statement, and other statements do not evict them.
pub struct DeviceContraction {
    residency: Arc<Residency>,
    source: Arc<FactsSource>,
    keys: Mutex<Option<Arc<ResidentKeys>>>,
    kernels: Mutex<KernelCache>,
    tuning: ScanTuning,
    /// A stream for the next statement.
    streams: Mutex<Vec<Stream>>,
}

#[derive(Default)]
struct KernelCache {
    scans: HashMap<ScanForm, Kernel>,
    others: Option<[Kernel; 3]>,
}

impl DeviceContraction {
    /// Aggregations over facts whose columns `residency` keeps.
    pub fn new(residency: Arc<Residency>, source: FactsSource) -> DeviceContraction {
        DeviceContraction {
            residency,
            source: Arc::new(source),
            keys: Mutex::default(),
            kernels: Mutex::default(),
            tuning: ScanTuning::default(),
            streams: Mutex::default(),
        }
    }

    /// The name of the device.
    pub fn device_name(&self) -> String {
        self.residency.device().info().name.clone()
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
        let kept = self.streams.lock().pop();
        let mut stream = kept.map_or_else(|| self.residency.device().stream(), Ok)?;
        let contraction = prepared.contraction(self);
        contraction.upload(&mut stream)?;
        contraction.launch(&mut stream)?;
        let cells = contraction.read(&mut stream)?;
        self.streams.lock().push(stream);
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
        let device = self.residency.device();
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
        let keys = self.resident_keys(cancelled)?;
        let pinned = self.admit(measure, 0, cancelled)?;
        let segments = pinned.tables[0].columns.iter().flat_map(|column| column.segments());
        let values =
            segments.map(|segment| segment.values().bytes() + segment.validity().map_or(0, DeviceBuffer::bytes));
        Ok(FactBytes { keys: keys.bytes(), values: values.map(|bytes| bytes as u64).sum() })
    }

    /// Plans a contraction and makes room for it; `None` if no target is filled.
    fn ready(&self, area: &Area, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<Option<Prepared>, DeviceError> {
        let facts = self.source.facts();
        if facts.is_empty() || !has_values(&facts.columns()[measure]) {
            return Ok(None);
        }
        let keys = self.resident_keys(cancelled)?;
        let plan = Plan::new(facts, area, measure, &keys.present)?;
        if plan.is_empty() {
            return Ok(None);
        }
        let layout = facts.layout();
        let sizing = |tables: &[warpcube_column::Relation]| {
            let parts = Parts::new(&plan, layout, &tables[0]);
            size_class(parts.bytes()) as u64
        };
        let pinned = self.admitted(measure, cancelled, sizing)?;
        let parts = Parts::new(&plan, layout, &pinned.tables[0]);
        let device = self.residency.device();
        let buffer = device.buffer(parts.bytes(), "sums of a cube")?;
        let has_nulls = facts.columns()[measure].filled.is_some();
        let is_total = plan.looked_up.is_empty();
        let form = (!is_total).then(|| ScanForm::of(&plan, layout, has_nulls, self.tuning, device.info()));
        let kernels = self.kernels(form)?;
        Ok(Some(Prepared { parts, buffer, keys, pinned, kernels, facts: facts.len() as u64 }))
    }

    fn kernels(&self, form: Option<ScanForm>) -> Result<Kernels, DeviceError> {
        let device = self.residency.device();
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

    /// The keys, packed and copied to the device by the first statement.
    fn resident_keys(&self, cancelled: &Arc<AtomicBool>) -> Result<Arc<ResidentKeys>, DeviceError> {
        let mut keys = self.keys.lock();
        if let Some(keys) = keys.as_ref() {
            return Ok(keys.clone());
        }
        let packed = PackedKeys::of(self.source.facts())?;
        let bytes = packed.device_bytes();
        let mut room = self.residency.admit(&[], &limits(cancelled), |_| Ok::<u64, DeviceError>(bytes))?;
        let resident = Arc::new(packed.upload(self.residency.device(), room.transient.split(bytes))?);
        *keys = Some(resident.clone());
        Ok(resident)
    }

    fn admit(&self, measure: usize, bytes: u64, cancelled: &Arc<AtomicBool>) -> Result<Pinned, DeviceError> {
        self.admitted(measure, cancelled, |_| bytes)
    }

    fn admitted(
        &self,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
        bytes: impl Fn(&[warpcube_column::Relation]) -> u64,
    ) -> Result<Pinned, DeviceError> {
        let request = TableRequest { source: self.source.clone(), columns: vec![measure] };
        self.residency.admit(&[request], &limits(cancelled), |tables| Ok::<u64, DeviceError>(bytes(tables)))
    }
}

/// Loads of plain columns.
fn limits(cancelled: &Arc<AtomicBool>) -> LoadLimits {
    LoadLimits {
        dictionary_values: 0,
        threads: rayon::current_num_threads(),
        cancelled: cancelled.clone(),
        rows_done: Arc::default(),
        encoding: EncodingChoice::Plain,
        host_bytes: 0,
        in_background: false,
        pool: None,
    }
}

fn has_values(column: &FactColumn) -> bool {
    column.filled.as_ref().is_none_or(|filled| filled.words().iter().any(|word| *word != 0))
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
        let device = of.residency.device();
        Contraction { device, parts, buffer, keys, relation: &pinned.tables[0], kernels, facts: *facts }
    }

    /// All device memory that kernels use.
    fn buffers(&self) -> Vec<&DeviceBuffer> {
        let segments = self.pinned.tables[0].columns.iter().flat_map(|column| column.segments());
        let values = segments.flat_map(|segment| [Some(segment.values()), segment.validity()].into_iter().flatten());
        let keys = [&self.buffer, &self.keys.firsts, &self.keys.starts, &self.keys.offsets];
        keys.into_iter().chain(values).collect()
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
