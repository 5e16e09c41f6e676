//! The output of a shared table: rows that are kept while readers read them.
//!
//! The first reader starts a task that runs the plan of the table. The task takes the next batch only when a reader
//! has read all before it, so that it stops with its readers; it holds no lock while it waits, and depends on no
//! reader being polled. Batches are kept in their order until the statement ends. Their bytes are reserved in the
//! memory pool; where that refuses, all that is in memory goes to a file, which each reader reads by itself. A thread
//! that may block writes it, under no lock; the task takes the next batch once it is written.
//!
//! ```text
//! parts     [ file, 310 batches | file, 12 batches | memory, 4 batches ]
//! readers                 ^ a                                 ^ b
//! ```
//!
//! Invariants: a batch has one number for all readers; a part is never changed but for its growth at the end and its
//! move to a file.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::stats::Precision;
use datafusion::common::{Statistics, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{FutureExt, Stream, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::Shared;
use crate::device::host_memory;
use crate::error::SqlError;

/// Bytes that a file has at least: below them batches are kept although the pool refuses.
const FILE_BYTES_MIN: usize = 4 << 20;
/// Files have this share of all bytes in files at least, so that few are open at a time.
const FILES: usize = 128;
/// A table takes this share of the machine's memory at most, also where the pool has no limit.
const MEMORY_SHARE: u64 = 4;

/// The output of one shared table in one physical plan.
pub(crate) struct Output {
    /// The table, in words.
    title: String,
    name: String,
    plan: Arc<dyn ExecutionPlan>,
    /// What is expected of the plan.
    expected: Statistics,
    run: Mutex<Option<Arc<Run>>>,
    metrics: ExecutionPlanMetricsSet,
}

/// A run of the plan. Its task ends with it.
struct Run {
    rows: Arc<Rows>,
    _task: SpawnedTask<()>,
}

/// Rows as far as they are there.
struct Rows {
    buffer: Mutex<Buffer>,
    /// Readers wait for more batches.
    supply: Notify,
    /// The task waits for readers that ask for more.
    demand: Notify,
    files: SpillManager,
}

struct Buffer {
    parts: Vec<Part>,
    batches: usize,
    rows: usize,
    /// Batches that readers have asked for.
    wanted: usize,
    end: Option<End>,
    memory: MemoryReservation,
    /// Bytes past which rows go to files whatever the pool says.
    memory_max: usize,
    bytes_in_files: usize,
}

/// Neighbouring batches, of which the first has the number `first`.
struct Part {
    first: usize,
    rows: PartRows,
}

enum PartRows {
    Memory(Vec<RecordBatch>),
    File { file: Arc<dyn SpillFile>, batches: usize },
}

/// How a run ended.
#[derive(Debug, Clone)]
enum End {
    All,
    Failed(Arc<DataFusionError>),
}

/// What a reader finds at a number.
enum Next {
    Batch(RecordBatch),
    /// A file, and how many batches are before that number and from it on.
    File(Arc<dyn SpillFile>, usize, usize),
    NotYet,
    End,
    Failed(Arc<DataFusionError>),
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Output {
    /// The output of a table, and its physical plan.
    pub(super) fn new(table: &Shared, plan: Arc<dyn ExecutionPlan>) -> Output {
        let expected = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
        let expected = expected.map_or_else(
            |_| Statistics::new_unknown(&plan.schema()),
            |expected| Arc::unwrap_or_clone(expected).to_inexact(),
        );
        let (title, name) = (table.to_string(), table.name.clone());
        Output { title, name, plan, expected, run: Mutex::default(), metrics: ExecutionPlanMetricsSet::new() }
    }

    /// The table's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The table in words: its name, its readers, and why it is computed once.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// What computes it.
    pub(crate) fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// What has been spilled.
    pub(crate) fn metrics(&self) -> MetricsSet {
        self.metrics.clone_inner()
    }

    /// What is known of the rows: their number, once all are there.
    pub(super) fn statistics(&self) -> Statistics {
        let rows = self.run.lock().as_ref().and_then(|run| {
            let buffer = run.rows.buffer.lock();
            matches!(buffer.end, Some(End::All)).then_some(buffer.rows)
        });
        match rows {
            Some(rows) => Statistics { num_rows: Precision::Exact(rows), ..self.expected.clone() },
            None => self.expected.clone(),
        }
    }

    /// Drops the rows, and ends the run.
    pub(super) fn clear(&self) {
        let run = self.run.lock().take();
        drop(run);
    }

    /// The rows for a reader; the first one starts the run.
    pub(super) fn rows(
        self: Arc<Output>,
        context: Arc<TaskContext>,
    ) -> Result<impl Stream<Item = Result<RecordBatch>> + Send> {
        let run = match &mut *self.run.lock() {
            Some(run) => run.clone(),
            none => none.insert(Arc::new(self.start(context)?)).clone(),
        };
        let reader = Reader { run, next: 0, file: None };
        Ok(futures::stream::try_unfold(reader, |mut reader| async move {
            Ok(reader.next().await?.map(|batch| (batch, reader)))
        }))
    }

    fn start(&self, context: Arc<TaskContext>) -> Result<Run> {
        let batches = execute_stream(self.plan.clone(), context.clone())?;
        let memory = MemoryConsumer::new(format!("SharedTable[{}]", self.name)).with_can_spill(true);
        let buffer = Buffer {
            parts: Vec::new(),
            batches: 0,
            rows: 0,
            wanted: 0,
            end: None,
            memory: memory.register(context.memory_pool()),
            memory_max: memory_max(),
            bytes_in_files: 0,
        };
        let metrics = SpillMetrics::new(&self.metrics, 0);
        let files = SpillManager::new(context.runtime_env(), metrics, self.plan.schema());
        let compression = context.session_config().spill_compression();
        let files = files.with_compression_type(compression);
        let (supply, demand) = Default::default();
        let rows = Arc::new(Rows { buffer: Mutex::new(buffer), supply, demand, files });
        let filled = rows.clone();
        let task = async move {
            // Readers wait for an end, whatever it is.
            if let Err(panic) = AssertUnwindSafe(filled.fill(batches)).catch_unwind().await {
                filled.end(End::Failed(Arc::new(SqlError::of_panic(panic.as_ref()).into())));
            }
        };
        Ok(Run { rows, _task: SpawnedTask::spawn(task) })
    }
}

impl Rows {
    /// Keeps batches as readers ask for them.
    async fn fill(&self, mut batches: SendableRecordBatchStream) {
        loop {
            let is_asked = {
                let buffer = self.buffer.lock();
                buffer.wanted > buffer.batches
            };
            if !is_asked {
                self.demand.notified().await;
                continue;
            }
            let end = match batches.next().await {
                Some(Ok(batch)) => self.keep(batch).await.err(),
                Some(Err(error)) => Some(error),
                None => {
                    self.end(End::All);
                    return;
                }
            };
            if let Some(error) = end {
                self.end(End::Failed(Arc::new(error)));
                return;
            }
            self.supply.notify_waiters();
        }
    }

    fn end(&self, end: End) {
        self.buffer.lock().end = Some(end);
        self.supply.notify_waiters();
    }

    async fn keep(&self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let bytes = bytes_of(&batch)?;
        let batches = {
            let mut buffer = self.buffer.lock();
            let is_past = buffer.memory.size().saturating_add(bytes) > buffer.memory_max;
            let is_refused = is_past || buffer.memory.try_grow(bytes).is_err();
            if is_refused {
                buffer.memory.grow(bytes);
            }
            buffer.push(batch);
            let least = FILE_BYTES_MIN.max(buffer.bytes_in_files / FILES);
            match buffer.parts.last() {
                Some(Part { rows: PartRows::Memory(batches), .. }) if is_refused && buffer.memory.size() >= least => {
                    batches.clone()
                }
                _ => return Ok(()),
            }
        };
        // Readers read what is in memory meanwhile.
        let (files, count) = (self.files.clone(), batches.len());
        let written = spawn_blocking(move || files.spill_record_batch_and_finish(&batches, "a shared table")).await;
        let Some(file) = written.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?? else {
            return exec_err!("a shared table was spilled to no file");
        };
        self.buffer.lock().move_to(file, count);
        Ok(())
    }

    /// What a reader finds at a number. Asks for the batch if it is not there.
    fn at(&self, number: usize) -> Next {
        let mut buffer = self.buffer.lock();
        if number < buffer.batches {
            let index = buffer.parts.partition_point(|part| part.first <= number).saturating_sub(1);
            let part = &buffer.parts[index];
            let before = number - part.first;
            return match &part.rows {
                PartRows::Memory(batches) => Next::Batch(batches[before].clone()),
                PartRows::File { file, batches } => Next::File(file.clone(), before, batches - before),
            };
        }
        match &buffer.end {
            Some(End::All) => Next::End,
            Some(End::Failed(error)) => Next::Failed(error.clone()),
            None => {
                buffer.wanted = buffer.wanted.max(number + 1);
                self.demand.notify_one();
                Next::NotYet
            }
        }
    }
}

impl Buffer {
    fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows();
        match self.parts.last_mut() {
            Some(Part { rows: PartRows::Memory(batches), .. }) => batches.push(batch),
            _ => self.parts.push(Part { first: self.batches, rows: PartRows::Memory(vec![batch]) }),
        }
        self.batches += 1;
    }

    /// Puts a file in the place of all batches in memory, which it has.
    fn move_to(&mut self, file: Arc<dyn SpillFile>, batches: usize) {
        if let Some(part) = self.parts.last_mut() {
            part.rows = PartRows::File { file, batches };
        }
        self.bytes_in_files += self.memory.size();
        self.memory.free();
    }
}

/// A reader at a number.
struct Reader {
    run: Arc<Run>,
    next: usize,
    /// The file that it reads, at that number, and batches in it from there on.
    file: Option<(SendableRecordBatchStream, usize)>,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((batches, left)) = &mut self.file
                && *left > 0
            {
                *left -= 1;
                let batch = batches.next().await.transpose()?;
                let Some(batch) = batch else { return exec_err!("a spilled shared table ended too early") };
                self.next += 1;
                return Ok(Some(batch));
            }
            self.file = None;
            let rows = self.run.rows.clone();
            // Before the look: what comes in between is not missed.
            let supplied = rows.supply.notified();
            match rows.at(self.next) {
                Next::Batch(batch) => {
                    self.next += 1;
                    return Ok(Some(batch));
                }
                Next::File(file, before, left) => {
                    let mut batches = rows.files.read_spill_as_stream(file, None)?;
                    for _ in 0..before {
                        batches.next().await.transpose()?;
                    }
                    self.file = Some((batches, left));
                }
                Next::NotYet => supplied.await,
                Next::End => return Ok(None),
                Next::Failed(error) => return Err(DataFusionError::Shared(error)),
            }
        }
    }
}

/// Most bytes of a table in memory.
fn memory_max() -> usize {
    static MEMORY: OnceLock<usize> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        let bytes = host_memory().map_or(u64::MAX, |bytes| bytes / MEMORY_SHARE);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    })
}

/// The bytes of a batch's own rows: batches may be slices of larger ones.
pub(crate) fn bytes_of(batch: &RecordBatch) -> Result<usize> {
    let of_column = |column: &Arc<dyn Array>| match column.data_type() {
        // Slices of views have all of their buffers.
        DataType::Utf8View | DataType::BinaryView => Ok(column.get_array_memory_size()),
        _ => column.to_data().get_slice_memory_size(),
    };
    let bytes = batch.columns().iter().map(of_column).sum::<std::result::Result<usize, _>>();
    bytes.map_err(DataFusionError::from)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::execution::TempFileFactory;
    use datafusion::execution::disk_manager::DiskManagerBuilder;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
    use datafusion::prelude::{SessionConfig, SessionContext};
    use futures::TryStreamExt;

    use super::*;
    use crate::spill::Spill;

    type Batches = Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>;

    const ROWS: i64 = 400_000;

    /// The output of a query, under a limit of memory.
    async fn output(sql: &str, memory: usize) -> (Arc<Output>, Arc<TaskContext>) {
        output_in(sql, RuntimeEnvBuilder::new().with_memory_limit(memory, 1.0)).await
    }

    /// The output of a query in a runtime.
    async fn output_in(sql: &str, runtime: RuntimeEnvBuilder) -> (Arc<Output>, Arc<TaskContext>) {
        let runtime = runtime.build_arc().unwrap();
        let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), runtime);
        let fails = |_: &[ColumnarValue]| -> Result<ColumnarValue> { panic!("a function that panics") };
        let (of, gives) = (vec![DataType::Int64], DataType::Int64);
        context.register_udf(create_udf("fails", of, gives, Volatility::Immutable, Arc::new(fails)));
        let frame = context.sql(sql).await.unwrap();
        let (plan, table) = (frame.logical_plan().clone(), frame.create_physical_plan().await.unwrap());
        let (name, why) = ("c".to_string(), "a test".to_string());
        let shared = Shared { id: 0, name, reads: 2, why, must: false, filtered: false, plan };
        (Arc::new(Output::new(&shared, table)), context.task_ctx())
    }

    fn reader(output: &Arc<Output>, context: &Arc<TaskContext>) -> Batches {
        Box::pin(output.clone().rows(context.clone()).unwrap())
    }

    fn buffered(output: &Output) -> usize {
        output.run.lock().as_ref().map_or(0, |run| run.rows.buffer.lock().batches)
    }

    fn sum(batches: &[RecordBatch]) -> i64 {
        let of =
            |column: &ArrayRef| column.as_any().downcast_ref::<Int64Array>().unwrap().iter().flatten().sum::<i64>();
        batches.iter().map(|batch| of(batch.column(0))).sum()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn readers_at_different_places_see_the_same_batches_in_memory_and_in_files() {
        let sql = format!("SELECT value, repeat('x', 30) AS s FROM generate_series(1, {ROWS})");
        for (memory, has_files) in [(1 << 30, false), (6 << 20, true)] {
            let (output, context) = output(&sql, memory).await;
            let (mut ahead, mut behind) = (reader(&output, &context), reader(&output, &context));
            let (mut first, mut second) = (Vec::new(), Vec::new());
            second.push(behind.try_next().await.unwrap().unwrap());
            first.push(ahead.try_next().await.unwrap().unwrap());
            for _ in 0..20 {
                first.push(ahead.try_next().await.unwrap().unwrap());
            }
            second.push(behind.try_next().await.unwrap().unwrap());
            first.extend(ahead.try_collect::<Vec<_>>().await.unwrap());
            second.extend(behind.try_collect::<Vec<_>>().await.unwrap());
            assert_eq!(first, second);
            assert_eq!(sum(&first), ROWS * (ROWS + 1) / 2);
            assert_eq!(output.statistics().num_rows, Precision::Exact(ROWS as usize));
            assert_eq!(output.metrics().spill_count().unwrap_or(0) > 0, has_files);
            // One that comes late.
            assert_eq!(reader(&output, &context).try_collect::<Vec<_>>().await.unwrap(), first);
            output.clear();
            assert_eq!(context.memory_pool().reserved(), 0);
        }
    }

    /// Files that are made once they may be.
    #[derive(Debug)]
    struct HeldFiles {
        files: Spill,
        asked: Sender<()>,
        may: std::sync::Mutex<Receiver<()>>,
    }

    impl TempFileFactory for HeldFiles {
        fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
            _ = self.asked.send(());
            _ = self.may.lock().unwrap().recv();
            self.files.create_temp_file(description)
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn readers_and_other_tasks_go_on_while_a_file_is_written() {
        let ((asked, is_asked), (lets, may)) = (channel(), channel());
        let files = HeldFiles { files: Spill::new(None, 1 << 30), asked, may: std::sync::Mutex::new(may) };
        let mut disk = DiskManagerBuilder::default();
        disk.set_temp_file_factory(Arc::new(files));
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(6 << 20, 1.0).with_disk_manager_builder(disk);
        let sql = format!("SELECT value, repeat('x', 30) AS s FROM generate_series(1, {ROWS})");
        let (output, context) = output_in(&sql, runtime).await;
        let ahead = reader(&output, &context);
        let reading = tokio::spawn(async move { ahead.try_collect::<Vec<_>>().await });
        is_asked.recv().unwrap();
        // The only worker and the lock of what is kept are free.
        let (other, done) = channel();
        let mut behind = reader(&output, &context);
        let read = tokio::spawn(async move {
            let first = behind.try_next().await.unwrap().unwrap();
            _ = other.send(first.num_rows());
        });
        let first = done.recv_timeout(std::time::Duration::from_secs(20));
        drop(lets);
        assert!(first.is_ok_and(|rows| rows > 0));
        read.await.unwrap();
        assert_eq!(sum(&reading.await.unwrap().unwrap()), ROWS * (ROWS + 1) / 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_more_is_computed_than_readers_ask_for() {
        let (output, context) = output(&format!("SELECT value FROM generate_series(1, {ROWS})"), 1 << 30).await;
        let mut one = reader(&output, &context);
        one.try_next().await.unwrap().unwrap();
        drop(one);
        let mut other = reader(&output, &context);
        other.try_next().await.unwrap().unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(buffered(&output), 1);
        assert_eq!(sum(&other.try_collect::<Vec<_>>().await.unwrap()), ROWS * (ROWS + 1) / 2 - 8192 * 8193 / 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn errors_and_panics_end_all_readers() {
        for (sql, expected) in [
            ("SELECT 1 / (value - 9000) FROM generate_series(1, 20000)", "Divide by zero"),
            ("SELECT fails(value) FROM generate_series(1, 20000)", "panic"),
        ] {
            let (output, context) = output(sql, 1 << 30).await;
            for reader in [reader(&output, &context), reader(&output, &context)] {
                let error = reader.try_collect::<Vec<_>>().await.unwrap_err().to_string();
                assert!(error.contains(expected), "{error}");
            }
        }
    }
}
