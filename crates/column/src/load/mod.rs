//! Loads of columns of a table from its source.
//!
//! Threads read partitions of the source, or single columns of partitions if the source supports it. The rows of a
//! partition become chunks of at most [`CHUNK_ROWS`] rows; chunks are in the order of partitions, so that columns of
//! different loads have the same chunks. The threads that decode also build segments; transfers overlap with both. The
//! thread of a column's last rows closes the column: it remaps codes of strings and encodes the segments. The memory of
//! its plain segments serves the next columns.
//!
//! A string column that proves to be past the dictionary limit is not read further in the pass that found it. A second
//! pass reads such columns as bytes, unless the statement asks for codes.

mod column_file;
mod host_copy;
mod limits;
mod staging;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use warpcube_gpu::{Device, GpuError, Threads};

use self::staging::{Uploader, place};
use crate::device::{
    Encoded, Relation, ResidentColumn, Room, Segment, ValueFacts, encode_column, remap_codes, request_for_load,
};
use crate::error::{ColumnError, Result};
use crate::format::strings::{Merged, SharedDictionary};
use crate::format::{Bytes, Encoding, EncodingChoice, SegmentBuilder, StringForm};
use crate::host;
use crate::source::{ColumnScan, ColumnSource};
use crate::units::{CHUNK_ROWS, ColumnFacts, Statistics, Storage, is_string};

pub(crate) use column_file::ColumnFiles;
pub(crate) use host_copy::HostColumn;
pub(crate) use limits::Loaded;
pub use limits::{LoadLimits, LoadReport, LoadThreads, cores};
pub(crate) use staging::StagingPool;

/// A column being loaded.
struct LoadColumn {
    index: usize,
    name: String,
    data_type: arrow::datatypes::DataType,
    strings: Strings,
    /// Whether a column past the dictionary limit is an error.
    is_coded: bool,
}

/// How the strings of a column are kept.
enum Strings {
    /// The column has none.
    None,
    /// Codes.
    Codes(SharedDictionary),
    /// Bytes.
    Bytes(Bytes),
}

impl LoadColumn {
    fn new(schema: &SchemaRef, index: usize, is_coded: bool, strings: Strings) -> LoadColumn {
        let field = schema.field(index);
        LoadColumn { index, name: field.name().clone(), data_type: field.data_type().clone(), strings, is_coded }
    }

    fn is_string(&self) -> bool {
        !matches!(self.strings, Strings::None)
    }

    /// Whether the column is left to a pass that loads bytes.
    fn is_left(&self) -> bool {
        matches!(&self.strings, Strings::Codes(strings) if !self.is_coded && strings.is_exceeded())
    }

    fn builder(&self) -> Result<SegmentBuilder> {
        let form = match &self.strings {
            Strings::None => None,
            Strings::Codes(strings) => Some(StringForm::Codes(strings.take())),
            Strings::Bytes(_) => Some(StringForm::Bytes),
        };
        SegmentBuilder::new(&self.name, &self.data_type, form)
    }
}

/// A plain segment on the device.
struct LoadedSegment {
    segment: Segment,
    statistics: Statistics,
    /// Number of the local dictionary of its codes.
    dictionary: Option<usize>,
}

/// The segments of a chunk by column; `None` after the close of the column, or if it is left to the next pass.
type Chunk = Vec<Option<LoadedSegment>>;

/// A unit of work of one thread: a partition and a range of columns.
struct Task {
    partition: usize,
    columns: Range<usize>,
    /// Rows of each loaded chunk, and the chunks.
    loaded: Mutex<(Vec<u32>, Vec<Chunk>)>,
}

/// The state of a load, shared by its threads.
struct Job<'a> {
    device: &'a Device,
    limits: &'a LoadLimits,
    room: &'a dyn Room,
    staging: &'a StagingPool,
    table: &'a str,
    load_columns: Vec<LoadColumn>,
    /// Columns of all passes.
    columns: usize,
    tasks: Vec<Task>,
    /// Unfinished tasks by column, for tasks of single columns.
    open: Vec<AtomicUsize>,
    /// Closed columns.
    closed: Vec<Mutex<Option<ResidentColumn>>>,
    progress: Progress,
}

/// Counters of a load.
#[derive(Default)]
struct Progress {
    /// Position of the next task.
    next: AtomicUsize,
    /// Bytes of all plain segments, and the set of their sizes.
    bytes: AtomicU64,
    sizes: Mutex<BTreeSet<usize>>,
    encode_ns: AtomicU64,
    busy_ns: AtomicU64,
    failed: AtomicBool,
}

/// The error of a statement that asks for codes of a column that is bytes, past a dictionary limit.
pub(crate) fn bytes_alone(column: &str, limit: u64) -> ColumnError {
    let reason = format!(
        "it has more than {limit} distinct strings (warpcube.dictionary_limit raises the limit), and lies on the \
         device as bytes, which have no codes to group, join or order by"
    );
    ColumnError::unsupported(column, reason)
}

/// The columns of a load.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Columns by position in the table's schema.
    pub(crate) columns: &'a [usize],
    /// Those among them that must have codes if they have strings.
    pub(crate) coded: &'a [usize],
    /// Those among them that are known to be past the dictionary limit.
    pub(crate) past_limit: &'a [usize],
}

/// Loads columns of a source to the device.
///
/// # Errors
/// [`ColumnError::Unsupported`] before any read for types that stay on the CPU; errors of the source and the device.
pub(crate) fn load(
    device: &Device,
    source: &dyn ColumnSource,
    wanted: Wanted<'_>,
    limits: &LoadLimits,
    room: &dyn Room,
    staging: &StagingPool,
) -> Result<Loaded> {
    let start = Instant::now();
    let (schema, rows) = (source.schema(), source.rows());
    for index in wanted.columns {
        let field = schema.field(*index);
        SegmentBuilder::new(field.name(), field.data_type(), None)?;
    }
    let bytes = || Strings::Bytes(Bytes { limit: limits.dictionary_values as u64 });
    let first = |index: &usize| {
        let (field, is_coded) = (schema.field(*index), wanted.coded.contains(index));
        let strings = match is_string(field.data_type()) {
            false => Strings::None,
            true if !is_coded && wanted.past_limit.contains(index) => bytes(),
            true => Strings::Codes(SharedDictionary::new(field.name(), limits.dictionary_values, rows)),
        };
        LoadColumn::new(&schema, *index, is_coded, strings)
    };
    let pass = |load_columns: Vec<LoadColumn>| {
        load_pass((device, source, limits), load_columns, wanted.columns.len(), room, staging)
    };
    let Pass { mut chunks, mut columns, mut report } = pass(wanted.columns.iter().map(first).collect())?;
    let left = || columns.iter().enumerate().filter(|(_, column)| column.is_none()).map(|(position, _)| position);
    let left: Vec<usize> = left().collect();
    if !left.is_empty() {
        let again = |position: &usize| LoadColumn::new(&schema, wanted.columns[*position], false, bytes());
        let second = pass(left.iter().map(again).collect())?;
        if left.len() < columns.len() && chunks != second.chunks {
            return Err(ColumnError::changed(source.name(), "its rows are cut differently than in the pass before"));
        }
        left.into_iter().zip(second.columns).for_each(|(position, column)| columns[position] = column);
        chunks = second.chunks;
        report.add(&second.report);
    }
    let columns = columns.into_iter().map(|column| Arc::new(column.expect("bytes have no limit"))).collect();
    let relation = Relation { chunks: chunks.into(), columns };
    report.rows = relation.rows();
    report.elapsed = start.elapsed();
    Ok(Loaded { relation, report })
}

/// The outcome of a pass over the source.
struct Pass {
    /// Rows of each chunk; not known if all columns are left.
    chunks: Vec<u32>,
    /// The columns in order; `None` for those that are left to the next pass.
    columns: Vec<Option<ResidentColumn>>,
    report: LoadReport,
}

/// Reads columns once; `columns` is the number of those of all passes.
fn load_pass(
    (device, source, limits): (&Device, &dyn ColumnSource, &LoadLimits),
    load_columns: Vec<LoadColumn>,
    columns: usize,
    room: &dyn Room,
    staging: &StagingPool,
) -> Result<Pass> {
    let scan = source.open(&load_columns.iter().map(|target| target.index).collect::<Vec<_>>())?;
    let storages = load_columns.iter().filter_map(|target| Storage::of(&target.data_type));
    let encodes = limits.encoding != EncodingChoice::Plain;
    let encodes = encodes && device.info().runs_kernels;
    let _hold = encodes.then(|| request_for_load(device, storages.map(Storage::width))).flatten();
    let tasks = tasks(scan.as_ref(), &load_columns);
    let job = Job {
        device,
        limits,
        room,
        staging,
        table: source.name(),
        open: load_columns.iter().map(|_| AtomicUsize::new(scan.partitions())).collect(),
        closed: load_columns.iter().map(|_| Mutex::default()).collect(),
        load_columns,
        columns,
        tasks,
        progress: Progress::default(),
    };
    let failure = Failure::default();
    let work = |_| {
        if let Err(error) = job.work(scan.as_ref()) {
            job.progress.failed.store(true, Ordering::Relaxed);
            failure.note(error);
        }
    };
    Threads::run(limits.threads.clamp(1, job.tasks.len().max(1)), work);
    failure.end()?;
    let (encode, busy) = (job.progress.encode_ns.load(Ordering::Relaxed), job.progress.busy_ns.load(Ordering::Relaxed));
    let mut pass = job.close(scan.partitions())?;
    pass.report.encode = Duration::from_nanos(encode);
    pass.report.busy = Duration::from_nanos(busy);
    Ok(pass)
}

/// The first error of several threads.
#[derive(Default)]
struct Failure(Mutex<Option<ColumnError>>);

impl Failure {
    /// Stores the first error. If the device is lost, the error of the thread that lost it replaces errors of threads
    /// that found it lost.
    fn note(&self, error: ColumnError) {
        let mut first = self.0.lock();
        let follows = matches!(&*first, Some(ColumnError::Gpu(error)) if error.is_lost_before());
        if first.is_none() || follows {
            *first = Some(error);
        }
    }

    fn end(self) -> Result<()> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}

/// The tasks of a load. String columns take the longest and come first, so that the last tasks are short.
fn tasks(scan: &dyn ColumnScan, load_columns: &[LoadColumn]) -> Vec<Task> {
    let partitions = scan.partitions();
    let task = |partition, columns| Task { partition, columns, loaded: Mutex::default() };
    if !scan.reads_single_columns() || load_columns.is_empty() {
        return (0..partitions).map(|partition| task(partition, 0..load_columns.len())).collect();
    }
    let mut order: Vec<usize> = (0..load_columns.len()).collect();
    order.sort_by_key(|column| (!load_columns[*column].is_string(), *column));
    order
        .into_iter()
        .flat_map(|column| (0..partitions).map(move |partition| task(partition, column..column + 1)))
        .collect()
}

impl Job<'_> {
    /// Runs tasks on one thread until none is left.
    fn work(&self, scan: &dyn ColumnScan) -> Result<()> {
        let mut uploader = Uploader::new(self.device, self.staging)?;
        let mut spare: Vec<Vec<u8>> = Vec::new();
        loop {
            let position = self.progress.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(position).filter(|_| !self.progress.failed.load(Ordering::Relaxed)) else {
                return uploader.finish();
            };
            if self.load_columns[task.columns.clone()].iter().all(LoadColumn::is_left) && !task.columns.is_empty() {
                continue;
            }
            let start = Instant::now();
            let mut loader = PartitionLoader::new(self, &mut uploader, task, &mut spare)?;
            let read = match task.columns.len() == self.load_columns.len() {
                true => scan.read(task.partition, &mut |batch| loader.append(&batch)),
                false => scan.read_column(task.partition, task.columns.start, &mut |batch| loader.append(&batch)),
            };
            // Dropped segments release their reservations, so that copies to them end first.
            read.inspect_err(|_| loader.uploader.settle())?;
            *task.loaded.lock() = loader.finish(&mut spare)?;
            // The close of the column reads the segments on another stream.
            uploader.wait()?;
            self.progress.busy_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            if task.columns.len() == 1 && self.open[task.columns.start].fetch_sub(1, Ordering::AcqRel) == 1 {
                self.close_column(task.columns.start)?;
            }
        }
    }

    /// Closes the open columns, and checks that all columns have the same rows.
    fn close(mut self, partitions: usize) -> Result<Pass> {
        // Dictionaries are merged concurrently: the last part of a merge runs on one thread.
        let is_open = |column: &usize| !self.load_columns[*column].is_left() && self.closed[*column].lock().is_none();
        let open: Vec<usize> = (0..self.load_columns.len()).filter(is_open).collect();
        let failure = Failure::default();
        self.limits.share(|| {
            let failed = open.into_par_iter().filter_map(|column| self.close_column(column).err());
            failed.for_each(|error| failure.note(error));
        });
        failure.end()?;
        let mut rows: Vec<Option<Vec<u32>>> = vec![None; partitions];
        for task in &self.tasks {
            if task.columns.len() == 1 && self.load_columns[task.columns.start].is_left() {
                continue;
            }
            let lengths = &task.loaded.lock().0;
            let known = rows[task.partition].get_or_insert_with(|| lengths.clone());
            if known != lengths {
                let detail = format!("one column has {lengths:?} rows where another has {known:?}");
                return Err(ColumnError::changed(self.table, detail));
            }
        }
        // The memory of plain segments returns to the device: in the pool it would count as in use.
        self.progress.sizes.lock().iter().for_each(|bytes| self.device.free_cached(*bytes));
        let closed = std::mem::take(&mut self.closed);
        let columns = closed.into_iter().map(Mutex::into_inner).collect();
        let bytes = self.progress.bytes.load(Ordering::Relaxed);
        let chunks = rows.into_iter().flatten().flatten().collect();
        Ok(Pass { chunks, columns, report: LoadReport { bytes, ..LoadReport::default() } })
    }

    /// Collects the segments of a column in the order of chunks, and closes it; drops those of a column that is left.
    fn close_column(&self, column: usize) -> Result<()> {
        let _span = tracing::debug_span!("close", column = self.load_columns[column].name).entered();
        let mut parts: Vec<Vec<LoadedSegment>> = Vec::new();
        for task in self.tasks.iter().filter(|task| task.columns.contains(&column)) {
            let at = column - task.columns.start;
            let mut loaded = task.loaded.lock();
            let segments = loaded.1.iter_mut().filter_map(|chunk| chunk[at].take()).collect();
            parts.resize_with(parts.len().max(task.partition + 1), Vec::new);
            parts[task.partition] = segments;
        }
        let parts: Vec<LoadedSegment> = parts.into_iter().flatten().collect();
        let sizes = parts.iter().map(|part| part.segment.values().bytes());
        self.progress.sizes.lock().extend(sizes);
        self.progress.bytes.fetch_add(parts.iter().map(|part| part.segment.bytes()).sum(), Ordering::Relaxed);
        let target = &self.load_columns[column];
        if target.is_left() {
            return Ok(());
        }
        match close_column(self.device, target, parts, self.room, self.limits) {
            Ok(resident) => *self.closed[column].lock() = Some(resident),
            // The merge found it.
            Err(_) if target.is_left() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Cuts the batches of a task into chunks, and uploads them.
struct PartitionLoader<'a, 'u> {
    job: &'a Job<'a>,
    uploader: &'a mut Uploader<'u>,
    columns: Range<usize>,
    builders: Vec<SegmentBuilder>,
    /// Rows in the builders. A load without columns has rows too.
    filled: usize,
    lengths: Vec<u32>,
    chunks: Vec<Chunk>,
}

impl<'a, 'u> PartitionLoader<'a, 'u> {
    fn new(
        job: &'a Job<'a>,
        uploader: &'a mut Uploader<'u>,
        task: &Task,
        spare: &mut Vec<Vec<u8>>,
    ) -> Result<PartitionLoader<'a, 'u>> {
        let columns = task.columns.clone();
        let mut builders: Vec<SegmentBuilder> =
            job.load_columns[columns.clone()].iter().map(LoadColumn::builder).collect::<Result<_>>()?;
        builders.iter_mut().for_each(|builder| builder.reuse(spare.pop().unwrap_or_default()));
        let (lengths, chunks) = (Vec::new(), Vec::new());
        Ok(PartitionLoader { job, uploader, columns, builders, filled: 0, lengths, chunks })
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.job.limits.cancelled.load(Ordering::Relaxed) {
            return Err(GpuError::Cancelled.into());
        }
        if batch.num_columns() != self.builders.len() {
            let detail = format!("expected {} columns, found {}", self.builders.len(), batch.num_columns());
            return Err(ColumnError::changed(self.job.table, detail));
        }
        let start = Instant::now();
        let mut offset = 0;
        while offset < batch.num_rows() {
            let rows = (batch.num_rows() - offset).min(CHUNK_ROWS - self.filled);
            let targets = &self.job.load_columns[self.columns.clone()];
            for ((builder, column), target) in self.builders.iter_mut().zip(batch.columns()).zip(targets) {
                if target.is_left() {
                    continue;
                }
                let appended = match rows == column.len() {
                    true => builder.append(column),
                    false => builder.append(&column.slice(offset, rows)),
                };
                match appended {
                    Err(_) if target.is_left() => {}
                    appended => appended?,
                }
            }
            offset += rows;
            self.filled += rows;
            if self.filled == CHUNK_ROWS {
                self.upload()?;
            }
        }
        let read = self.job.load_columns[self.columns.clone()].iter().filter(|target| !target.is_left()).count();
        let read = if self.columns.is_empty() { 1 } else { read };
        let done = batch.num_rows() * read / self.job.columns.max(1);
        self.job.limits.rows_done.fetch_add(done as u64, Ordering::Relaxed);
        self.job.progress.encode_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn finish(mut self, spare: &mut Vec<Vec<u8>>) -> Result<(Vec<u32>, Vec<Chunk>)> {
        if self.filled > 0 {
            self.upload()?;
        }
        for (builder, target) in self.builders.into_iter().zip(&self.job.load_columns[self.columns]) {
            let (dictionary, values) = builder.into_parts();
            if let (Some(dictionary), Strings::Codes(strings)) = (dictionary, &target.strings) {
                strings.give_back(dictionary);
            }
            spare.push(values);
        }
        Ok((self.lengths, self.chunks))
    }

    /// Uploads the rows in the builders as a chunk.
    fn upload(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.filled) as u32;
        let mut segments = Vec::with_capacity(self.builders.len());
        for (builder, target) in self.builders.iter_mut().zip(&self.job.load_columns[self.columns.clone()]) {
            let host = builder.finish();
            if target.is_left() {
                segments.push(None);
                continue;
            }
            debug_assert!(host.rows == rows as usize);
            let validity = host.validity.as_deref().map(bytemuck::cast_slice);
            let placed = place(self.job.device, self.job.room, self.uploader, &host.values, validity, rows);
            let segment = placed.inspect_err(|_| self.uploader.settle())?;
            builder.reuse(host.values);
            segments.push(Some(LoadedSegment { segment, statistics: host.statistics, dictionary: host.dictionary }));
        }
        self.lengths.push(rows);
        self.chunks.push(segments);
        Ok(())
    }
}

/// Merges the dictionaries of a column, remaps its codes and encodes its segments.
fn close_column(
    device: &Device,
    target: &LoadColumn,
    parts: Vec<LoadedSegment>,
    room: &dyn Room,
    limits: &LoadLimits,
) -> Result<ResidentColumn> {
    let mut statistics = parts.iter().fold(Statistics::default(), |all, part| all.then(&part.statistics));
    let storage = Storage::of(&target.data_type).expect("`load` checks the types");
    let (name, data_type) = (target.name.clone(), target.data_type.clone());
    let dictionary = match &target.strings {
        Strings::Codes(strings) => {
            let Merged { dictionary, remaps } = limits.share(|| strings.merge())?;
            remap(device, &remaps, &parts, room)?;
            statistics.integers = (!dictionary.is_empty()).then(|| (0, dictionary.len() as i128 - 1));
            statistics.strictly_ascending = false;
            Some(Arc::new(dictionary))
        }
        Strings::None => None,
        Strings::Bytes(bytes) => {
            let segments = parts.into_iter().map(|part| part.segment).collect();
            let encoded = Encoded { encoding: Encoding::Bytes(*bytes), lookup: None, segments };
            let facts = ColumnFacts { name, data_type, storage, statistics, dictionary: None, traits: None };
            return Ok(ResidentColumn::new(target.index, Arc::new(facts), encoded));
        }
    };
    let segments = parts.into_iter().map(|part| part.segment).collect();
    let facts = ValueFacts { storage, range: statistics.integers, is_string: dictionary.is_some() };
    let (encoded, traits) = match device.info().runs_kernels {
        true => encode_column(device, room, limits.encoding, facts, segments)?,
        false => limits.share(|| host::encode_column(device, room, limits.encoding, storage, segments))?,
    };
    let facts = ColumnFacts { name, data_type, storage, statistics, dictionary, traits };
    Ok(ResidentColumn::new(target.index, Arc::new(facts), encoded))
}

/// Replaces arrival codes by final codes, by the table of the local dictionary of each segment.
fn remap(device: &Device, remaps: &[Option<Vec<u32>>], parts: &[LoadedSegment], room: &dyn Room) -> Result<()> {
    let table_of = |part: &LoadedSegment| remaps.get(part.dictionary?)?.as_deref();
    if parts.iter().all(|part| table_of(part).is_none()) {
        return Ok(());
    }
    if !device.info().runs_kernels {
        let mut remapped = parts.iter().filter_map(|part| Some((part.segment.values(), table_of(part)?)));
        return remapped.try_for_each(|(codes, table)| host::remap_codes(device, codes, table));
    }
    let mut offsets = Vec::with_capacity(remaps.len());
    let mut tables: Vec<u32> = Vec::with_capacity(remaps.iter().flatten().map(Vec::len).sum());
    for remap in remaps {
        offsets.push(tables.len() * size_of::<u32>());
        tables.extend(remap.iter().flatten());
    }
    let bytes = bytemuck::cast_slice::<u32, u8>(&tables);
    let _reservation = room.reserve(warpcube_gpu::size_class(bytes.len()) as u64)?;
    let buffer = device.buffer(bytes.len(), "dictionary remap tables")?;
    let mut stream = device.stream()?;
    stream.upload(&buffer, 0, bytes)?;
    for part in parts.iter().filter(|part| table_of(part).is_some()) {
        let offset = offsets[part.dictionary.expect("`table_of` has a table")];
        remap_codes(device, &mut stream, part.segment.values(), (&buffer, offset), part.segment.rows() as usize)?;
    }
    Ok(stream.synchronize()?)
}
