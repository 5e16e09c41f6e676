//! Loading columns of a table onto the device.
//!
//! A source is read partition by partition, several at once; each partition's rows become chunks of at most
//! [`CHUNK_ROWS`] rows, and the chunks of all partitions follow each other in partition order, so that columns loaded
//! at different times line up. Encoding runs on the threads that decode; transfers overlap with both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use warpcube_gpu::Device;

use crate::build::{CHUNK_ROWS, HostSegment, SegmentBuilder};
use crate::dictionary::{Dictionary, DictionaryBuilder};
use crate::error::{ColumnError, Result};
use crate::remap::remap_codes;
use crate::resident::{ResidentColumn, Segment};
use crate::staging::{StagingPool, Uploader};
use crate::statistics::Statistics;
use crate::storage::{Storage, is_string};

/// Where a table's rows come from.
pub trait ColumnSource: Send + Sync {
    /// Name of the table for people.
    fn name(&self) -> &str;

    /// Identity of the table across statements.
    fn key(&self) -> String;

    /// Version of the content: equal versions hold equal rows in equal order.
    fn version(&self) -> String;

    /// All columns of the table.
    fn schema(&self) -> SchemaRef;

    /// Rows, where that is known beforehand.
    fn rows(&self) -> Option<u64>;

    /// Opens a scan of some columns; every scan of one version has the same partitions with the same rows in order.
    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>>;
}

/// A scan in progress; partitions are read by several threads.
pub trait ColumnScan: Send + Sync {
    /// Number of partitions.
    fn partitions(&self) -> usize;

    /// Hands the partition's batches to `sink`, in order. Runs on a thread that may block.
    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()>;
}

/// Bounds of a load.
#[derive(Debug, Clone)]
pub struct LoadLimits {
    /// Most distinct strings of a column.
    pub dictionary_values: usize,
    /// Threads that decode and encode.
    pub threads: usize,
    /// Raised to stop the load.
    pub cancelled: Arc<AtomicBool>,
    /// Rows read so far, for progress bars.
    pub rows_done: Arc<AtomicU64>,
}

impl Default for LoadLimits {
    fn default() -> LoadLimits {
        LoadLimits {
            dictionary_values: 4 << 20,
            threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
            cancelled: Arc::default(),
            rows_done: Arc::default(),
        }
    }
}

/// What a load did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadReport {
    /// Rows read.
    pub rows: u64,
    /// Bytes now on the device for the loaded columns.
    pub bytes: u64,
    /// Wall time.
    pub elapsed: Duration,
    /// Time all threads spent encoding.
    pub encode: Duration,
    /// Time all threads spent on the load: reading, decoding, encoding, handing over.
    pub busy: Duration,
}

impl LoadReport {
    /// Gigabytes (10⁹ bytes) loaded a second and core; zero where nothing was.
    pub fn gigabytes_per_second_core(&self) -> f64 {
        if self.busy.is_zero() { 0.0 } else { self.bytes as f64 / self.busy.as_secs_f64() / 1e9 }
    }
}

/// Gives room for segments; the residency manager evicts for it.
pub(crate) trait Room: Sync {
    /// Reserves `bytes` or says why not.
    fn reserve(&self, bytes: u64) -> Result<warpcube_gpu::Reservation>;
}

/// The loaded columns with the chunk lengths they share.
pub(crate) struct Loaded {
    pub(crate) chunks: Vec<u32>,
    pub(crate) columns: Vec<ResidentColumn>,
    pub(crate) report: LoadReport,
}

/// One column being loaded.
struct Target {
    index: usize,
    name: String,
    data_type: arrow::datatypes::DataType,
    dictionary: Option<Arc<DictionaryBuilder>>,
}

/// A chunk that reached the device.
struct ChunkOnDevice {
    rows: u32,
    segments: Vec<(Segment, Statistics)>,
}

/// Reads `columns` of the source onto the device.
pub(crate) fn load(
    device: &Device,
    source: &dyn ColumnSource,
    columns: &[usize],
    limits: &LoadLimits,
    room: &dyn Room,
    staging: &StagingPool,
) -> Result<Loaded> {
    let start = Instant::now();
    let schema = source.schema();
    let targets: Vec<Target> = columns.iter().map(|index| target(&schema, *index, limits)).collect::<Result<_>>()?;
    for target in &targets {
        SegmentBuilder::new(&target.name, &target.data_type, target.dictionary.as_ref().map(|d| d.local()))?;
    }
    let scan = source.open(columns)?;
    let partitions = scan.partitions();
    let results: Vec<Mutex<Vec<ChunkOnDevice>>> = (0..partitions).map(|_| Mutex::default()).collect();
    let (next, encode_ns, busy_ns) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let failure: Mutex<Option<ColumnError>> = Mutex::new(None);
    let worker = || -> Result<()> {
        let mut uploader = Uploader::new(device, staging)?;
        loop {
            let partition = next.fetch_add(1, Ordering::Relaxed);
            if partition >= partitions || failure.lock().is_some() {
                return uploader.finish();
            }
            let mut loader =
                PartitionLoader::new(device, &mut uploader, &targets, limits, room, &encode_ns, source.name())?;
            scan.read(partition, &mut |batch| loader.append(&batch))?;
            *results[partition].lock() = loader.finish()?;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..limits.threads.clamp(1, partitions.max(1)) {
            scope.spawn(|| {
                let clock = Instant::now();
                if let Err(error) = worker() {
                    failure.lock().get_or_insert(error);
                }
                busy_ns.fetch_add(clock.elapsed().as_nanos() as u64, Ordering::Relaxed);
            });
        }
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    let chunks: Vec<ChunkOnDevice> = results.into_iter().flat_map(Mutex::into_inner).collect();
    let mut loaded = close(device, &targets, chunks, room)?;
    loaded.report.elapsed = start.elapsed();
    loaded.report.encode = Duration::from_nanos(encode_ns.into_inner());
    loaded.report.busy = Duration::from_nanos(busy_ns.into_inner());
    Ok(loaded)
}

fn target(schema: &SchemaRef, index: usize, limits: &LoadLimits) -> Result<Target> {
    let field = schema.field(index);
    let dictionary =
        is_string(field.data_type()).then(|| DictionaryBuilder::new(field.name(), limits.dictionary_values));
    Ok(Target { index, name: field.name().clone(), data_type: field.data_type().clone(), dictionary })
}

/// Cuts one partition's batches into chunks and sends them.
struct PartitionLoader<'a, 'u> {
    device: &'a Device,
    uploader: &'a mut Uploader<'u>,
    limits: &'a LoadLimits,
    room: &'a dyn Room,
    encode_ns: &'a AtomicU64,
    table: &'a str,
    builders: Vec<SegmentBuilder>,
    /// Rows in the builders; a table of which no column is wanted still has rows.
    filled: usize,
    chunks: Vec<ChunkOnDevice>,
}

impl<'a, 'u> PartitionLoader<'a, 'u> {
    fn new(
        device: &'a Device,
        uploader: &'a mut Uploader<'u>,
        targets: &[Target],
        limits: &'a LoadLimits,
        room: &'a dyn Room,
        encode_ns: &'a AtomicU64,
        table: &'a str,
    ) -> Result<PartitionLoader<'a, 'u>> {
        let builders = targets
            .iter()
            .map(|t| SegmentBuilder::new(&t.name, &t.data_type, t.dictionary.as_ref().map(|d| d.local())))
            .collect::<Result<_>>()?;
        Ok(PartitionLoader {
            device,
            uploader,
            limits,
            room,
            encode_ns,
            table,
            builders,
            filled: 0,
            chunks: Vec::new(),
        })
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.limits.cancelled.load(Ordering::Relaxed) {
            return Err(warpcube_gpu::GpuError::Cancelled.into());
        }
        if batch.num_columns() != self.builders.len() {
            let detail = format!("expected {} columns, found {}", self.builders.len(), batch.num_columns());
            return Err(ColumnError::Changed { table: self.table.to_string(), detail });
        }
        let start = Instant::now();
        let mut offset = 0;
        while offset < batch.num_rows() {
            let rows = (batch.num_rows() - offset).min(CHUNK_ROWS - self.filled);
            for (builder, column) in self.builders.iter_mut().zip(batch.columns()) {
                builder.append(&column.slice(offset, rows))?;
            }
            offset += rows;
            self.filled += rows;
            if self.filled == CHUNK_ROWS {
                self.send()?;
            }
        }
        self.limits.rows_done.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        self.encode_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<ChunkOnDevice>> {
        if self.filled > 0 {
            self.send()?;
        }
        Ok(self.chunks)
    }

    fn send(&mut self) -> Result<()> {
        let host: Vec<HostSegment> = self.builders.iter_mut().map(SegmentBuilder::finish).collect();
        let rows = std::mem::take(&mut self.filled) as u32;
        debug_assert!(host.iter().all(|segment| segment.rows == rows as usize));
        let mut segments = Vec::with_capacity(host.len());
        for segment in host {
            let validity_bytes = segment.validity.as_ref().map_or(0, |words| words.len() * 4);
            let charged = warpcube_gpu::size_class(segment.values.len())
                + if validity_bytes > 0 { warpcube_gpu::size_class(validity_bytes) } else { 0 };
            let reservation = self.room.reserve(charged as u64)?;
            let values = self.device.buffer(segment.values.len(), "a column segment")?;
            self.uploader.upload(&values, &segment.values)?;
            let validity = match &segment.validity {
                Some(words) => {
                    let buffer = self.device.buffer(validity_bytes, "a validity bitmap")?;
                    self.uploader.upload(&buffer, bytemuck::cast_slice(words))?;
                    Some(buffer)
                }
                None => None,
            };
            segments.push((Segment::new(values, validity, rows, reservation), segment.statistics));
        }
        self.chunks.push(ChunkOnDevice { rows, segments });
        Ok(())
    }
}

/// Puts the chunks together, sorts dictionaries and remaps codes.
fn close(device: &Device, targets: &[Target], chunks: Vec<ChunkOnDevice>, room: &dyn Room) -> Result<Loaded> {
    let rows: Vec<u32> = chunks.iter().map(|chunk| chunk.rows).collect();
    let mut parts: Vec<(Vec<Segment>, Statistics)> = targets.iter().map(|_| Default::default()).collect();
    for chunk in chunks {
        for ((segments, statistics), (segment, part)) in parts.iter_mut().zip(chunk.segments) {
            segments.push(segment);
            *statistics = statistics.then(&part);
        }
    }
    let mut columns = Vec::with_capacity(targets.len());
    for (target, (segments, mut statistics)) in targets.iter().zip(parts) {
        let dictionary = match &target.dictionary {
            Some(builder) => Some(Arc::new(close_dictionary(device, builder, &segments, room)?)),
            None => None,
        };
        if let Some(dictionary) = &dictionary {
            statistics.integers = (!dictionary.is_empty()).then(|| (0, dictionary.len() as i128 - 1));
            statistics.strictly_ascending = false;
        }
        columns.push(ResidentColumn::new(
            target.index,
            target.name.clone(),
            target.data_type.clone(),
            Storage::of(&target.data_type).expect("checked when the load began"),
            segments,
            statistics,
            dictionary,
        ));
    }
    let report = LoadReport {
        rows: rows.iter().map(|rows| u64::from(*rows)).sum(),
        bytes: columns.iter().map(ResidentColumn::bytes).sum(),
        ..LoadReport::default()
    };
    Ok(Loaded { chunks: rows, columns, report })
}

fn close_dictionary(
    device: &Device,
    builder: &DictionaryBuilder,
    segments: &[Segment],
    room: &dyn Room,
) -> Result<Dictionary> {
    let (dictionary, remap) = builder.finish();
    if let Some(remap) = remap {
        let bytes = bytemuck::cast_slice::<u32, u8>(&remap);
        let _reservation = room.reserve(warpcube_gpu::size_class(bytes.len()) as u64)?;
        let table = device.buffer(bytes.len(), "a dictionary remap table")?;
        let mut stream = device.stream()?;
        stream.upload(&table, 0, bytes)?;
        for segment in segments {
            remap_codes(device, &mut stream, segment.values(), &table, segment.rows() as usize)?;
        }
        stream.synchronize()?;
    }
    Ok(dictionary)
}
