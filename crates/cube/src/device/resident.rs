//! Facts of one cube on a device: the packed keys and the values, which all algorithms share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use warpcube_column::{EncodingChoice, LoadLimits, Pinned, Relation, Residency, TableRequest};
use warpcube_gpu::{Device, DeviceBuffer, Params, Stream};

use super::contract::DeviceError;
use super::keys::{PackedKeys, ResidentKeys};
use super::source::FactsSource;
use super::workspace::Workspace;
use crate::facts::{Facts, Rule, Values};

/// Device memory of facts in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactBytes {
    /// The packed keys, with the words in front of their miniblocks.
    pub keys: u64,
    /// Values and validity of one measure.
    pub values: u64,
}

/// The facts of one cube, ready for a device.
///
/// Values are columns of the shared residency, plain. Keys are packed once and stay on the device with this object;
/// their memory is reserved like that of a statement, and other statements do not evict them.
pub struct ResidentFacts {
    residency: Arc<Residency>,
    source: Arc<FactsSource>,
    keys: Mutex<Option<Arc<ResidentKeys>>>,
    /// Streams for the next statements.
    streams: Mutex<Vec<Stream>>,
}

impl ResidentFacts {
    /// Facts whose columns `residency` keeps.
    pub fn new(residency: Arc<Residency>, source: FactsSource) -> ResidentFacts {
        let (source, keys, streams) = (Arc::new(source), Mutex::default(), Mutex::default());
        ResidentFacts { residency, source, keys, streams }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.residency.device()
    }

    /// The facts in host memory.
    pub fn facts(&self) -> &Arc<Facts> {
        self.source.facts()
    }

    /// Device memory of the facts of a measure, which is loaded where it is not yet.
    ///
    /// # Errors
    /// What loading gives.
    pub fn bytes(&self, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<FactBytes, DeviceError> {
        let keys = self.keys(cancelled)?;
        let pinned = self.admitted(measure, cancelled, |_| 0)?;
        let values = value_buffers(&pinned.tables[0]).map(|buffer| buffer.bytes() as u64).sum();
        Ok(FactBytes { keys: keys.bytes(), values })
    }

    /// True if a fact has a value of a measure, which has to be a sum of decimals.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for other measures.
    pub(super) fn has_values(&self, measure: usize) -> Result<bool, DeviceError> {
        let (facts, column) = (self.facts(), &self.facts().columns()[measure]);
        let reason = match column.values {
            _ if column.measure.rule != Rule::Sum => Some("is no sum"),
            Values::Doubles(_) => Some("has doubles"),
            Values::Decimals(_) => None,
        };
        if let Some(reason) = reason {
            return Err(DeviceError::Unsupported { reason: format!("measure {} {reason}", column.measure.name) });
        }
        let has_filled = || column.filled.as_ref().is_none_or(|filled| filled.words().iter().any(|word| *word != 0));
        Ok(!facts.is_empty() && has_filled())
    }

    /// A stream for one statement.
    pub(super) fn stream(&self) -> Result<Stream, DeviceError> {
        let kept = self.streams.lock().pop();
        Ok(kept.map_or_else(|| self.device().stream(), Ok)?)
    }

    /// Takes a stream back.
    pub(super) fn keep(&self, stream: Stream) {
        self.streams.lock().push(stream);
    }

    /// The keys, packed and copied to the device by the first statement.
    pub(super) fn keys(&self, cancelled: &Arc<AtomicBool>) -> Result<Arc<ResidentKeys>, DeviceError> {
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

    /// Makes room for a measure's values and for a statement's memory, which `bytes` tells.
    pub(super) fn admitted(
        &self,
        measure: usize,
        cancelled: &Arc<AtomicBool>,
        bytes: impl Fn(&[warpcube_column::Relation]) -> u64,
    ) -> Result<Pinned, DeviceError> {
        let request = TableRequest { source: self.source.clone(), columns: vec![measure] };
        self.residency.admit(&[request], &limits(cancelled), |tables| Ok::<u64, DeviceError>(bytes(tables)))
    }
}

/// Values and validity of a relation of one measure.
pub(super) fn value_buffers(relation: &Relation) -> impl Iterator<Item = &DeviceBuffer> {
    let segments = relation.columns.iter().flat_map(|column| column.segments());
    segments.flat_map(|segment| [Some(segment.values()), segment.validity()].into_iter().flatten())
}

/// Puts the addresses of values and of validity, a word a chunk, into a workspace; gives the offsets of both.
pub(super) fn put_addresses(relation: &Relation, workspace: &mut Workspace) -> [usize; 2] {
    let segments = relation.columns[0].segments();
    let values: Vec<u64> = segments.iter().map(|segment| segment.values().address()).collect();
    let validity = segments.iter().map(|segment| segment.validity().map_or(0, DeviceBuffer::address));
    let validity: Vec<u64> = validity.collect();
    [values, validity].map(|words| workspace.put(bytemuck::cast_slice(&words)))
}

/// Keeps values and validity for a launch, whose kernels reach them by their addresses in the workspace.
pub(super) fn keep_values(params: Params, relation: &Relation) -> Params {
    value_buffers(relation).fold(params, |params, buffer| params.keep(buffer))
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
