//! Facts of one cube on a device: the packed keys and the values, which all algorithms share.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use warpcube_column::{ColumnSource, EncodingChoice, LoadLimits, Pinned, Relation, Residency, TableRequest};
use warpcube_gpu::{Device, DeviceBuffer, DevicePtr, Params, Stream};

use super::error::DeviceError;
use super::keys::{PackedKeys, ResidentKeys};
use super::source::{FactsSource, SegmentSource};
use super::workspace::Workspace;
use crate::facts::{FactMeasure, Facts, Rule, Segment, Values};

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
/// Values are columns of the shared residency, plain, a table a segment. The residency keeps the packed keys of each
/// segment beside them: they leave the device by least recent use like columns, and the next statement packs them
/// again.
pub struct ResidentFacts {
    residency: Arc<Residency>,
    source: Arc<FactsSource>,
    /// Held while keys are packed.
    packing: Mutex<()>,
    /// Streams for the next statements.
    streams: Mutex<Vec<Stream>>,
}

impl ResidentFacts {
    /// Facts whose columns `residency` keeps.
    pub fn new(residency: Arc<Residency>, source: FactsSource) -> ResidentFacts {
        let (source, packing, streams) = (Arc::new(source), Mutex::default(), Mutex::default());
        ResidentFacts { residency, source, packing, streams }
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
    /// Those of loading.
    pub fn bytes(&self, measure: usize, cancelled: &Arc<AtomicBool>) -> Result<FactBytes, DeviceError> {
        let keys = self.keys(cancelled)?;
        let pinned = self.admitted(measure, cancelled, |_| 0)?;
        let values = pinned.tables.iter().flat_map(value_buffers).map(|buffer| buffer.bytes() as u64).sum();
        Ok(FactBytes { keys: keys.iter().map(|keys| keys.bytes()).sum(), values })
    }

    /// The source whose columns the values are.
    pub(super) fn source(&self) -> &FactsSource {
        &self.source
    }

    /// True if a fact has a value of a measure.
    pub(super) fn has_values(&self, measure: usize) -> bool {
        let has_filled = |segment: &Arc<Segment>| {
            let filled = segment.columns()[measure].filled.as_ref();
            !segment.is_empty() && filled.is_none_or(|filled| filled.words().iter().any(|word| *word != 0))
        };
        self.facts().segments().iter().any(has_filled)
    }

    /// Refuses measures that are not sums of decimals.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] with the reason.
    pub(super) fn check_decimal_sum(&self, measure: usize) -> Result<(), DeviceError> {
        let (FactMeasure { name, rule, .. }, base) = (&self.facts().measures()[measure], self.facts().base());
        let reason = match base.columns()[measure].values {
            _ if *rule != Rule::Sum => "is no sum",
            Values::Doubles(_) => "has doubles",
            Values::Decimals(_) => return Ok(()),
        };
        Err(DeviceError::Unsupported { reason: format!("measure {name} {reason}") })
    }

    /// True if the keys are on the device, and the values of each of these measures.
    pub(super) fn residence(&self, measures: &[usize]) -> (bool, Vec<bool>) {
        let names = self.source.segments().iter().map(|segment| (segment.key(), segment.version()));
        let names: Vec<(String, String)> = names.collect();
        let has_keys =
            |(key, version): &(String, String)| self.residency.object::<ResidentKeys>(key, version).is_some();
        let values =
            |measure: &usize| names.iter().all(|(key, version)| self.residency.is_resident(key, version, &[*measure]));
        (names.iter().all(has_keys), measures.iter().map(values).collect())
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

    /// The keys of each segment, packed and copied to the device by the first statement that misses them.
    pub(super) fn keys(&self, cancelled: &Arc<AtomicBool>) -> Result<Vec<Arc<ResidentKeys>>, DeviceError> {
        let _packing = self.packing.lock();
        self.source.segments().iter().map(|segment| self.keys_of(segment, cancelled)).collect()
    }

    fn keys_of(&self, segment: &SegmentSource, cancelled: &Arc<AtomicBool>) -> Result<Arc<ResidentKeys>, DeviceError> {
        let (key, version) = (segment.key(), segment.version());
        if let Some(keys) = self.residency.object(&key, &version) {
            return Ok(keys);
        }
        let packed = PackedKeys::of(segment.segment())?;
        let bytes = packed.device_bytes();
        let mut room = self.residency.admit(&[], &limits(cancelled), |_| Ok::<u64, DeviceError>(bytes))?;
        let resident = Arc::new(packed.upload(self.residency.device(), room.transient.split(bytes))?);
        self.residency.keep(&key, &version, resident.clone());
        Ok(resident)
    }

    /// Makes room for a column of each segment and for a statement's memory, which `bytes` tells.
    pub(super) fn admitted(
        &self,
        column: usize,
        cancelled: &Arc<AtomicBool>,
        bytes: impl Fn(&[warpcube_column::Relation]) -> u64,
    ) -> Result<Pinned, DeviceError> {
        let request = |segment: &Arc<SegmentSource>| TableRequest {
            source: segment.clone(),
            columns: vec![column],
            coded: Vec::new(),
        };
        let requests: Vec<TableRequest> = self.source.segments().iter().map(request).collect();
        self.residency.admit(&requests, &limits(cancelled), |tables| Ok::<u64, DeviceError>(bytes(tables)))
    }
}

/// A bit for each coordinate of each dimension, 1 if a live cell of a segment has it.
pub(super) fn present(keys: &[Arc<ResidentKeys>]) -> Cow<'_, [Vec<u64>]> {
    let [first, others @ ..] = keys else { return Cow::Borrowed(&[]) };
    let mut present = Cow::Borrowed(first.present.as_slice());
    for other in others {
        for (words, more) in present.to_mut().iter_mut().zip(&other.present) {
            words.resize(words.len().max(more.len()), 0);
            words.iter_mut().zip(more).for_each(|(word, more)| *word |= more);
        }
    }
    present
}

/// Values and validity of a relation of one column.
pub(super) fn value_buffers(relation: &Relation) -> impl Iterator<Item = &DeviceBuffer> {
    let segments = relation.columns.iter().flat_map(|column| column.segments());
    segments.flat_map(|segment| [Some(segment.values()), segment.validity()].into_iter().flatten())
}

/// Puts the addresses of values and of validity, a word a chunk, into a workspace; gives the offsets of both.
pub(super) fn put_addresses(relation: &Relation, workspace: &mut Workspace) -> [usize; 2] {
    let segments = relation.columns[0].segments();
    let values: Vec<u64> = segments.iter().map(|segment| segment.values().pointer().word()).collect();
    let validity =
        segments.iter().map(|segment| segment.validity().map_or(DevicePtr::NULL, DeviceBuffer::pointer).word());
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
