//! The limits and the report of a load.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use warpcube_gpu::Threads;

use crate::device::Relation;
use crate::format::EncodingChoice;

/// Bounds of a load.
#[derive(Debug, Clone)]
pub struct LoadLimits {
    /// Most distinct strings of a column.
    pub dictionary_values: usize,
    /// Number of threads that decode and encode.
    pub threads: usize,
    /// A set flag cancels the load.
    pub cancelled: Arc<AtomicBool>,
    /// Rows read so far, for progress bars; a single column counts by its share of the columns.
    pub rows_done: Arc<AtomicU64>,
    /// Encoding of loaded columns.
    pub encoding: EncodingChoice,
    /// Most bytes of host copies.
    pub host_bytes: u64,
    /// True for a background load: it fails without room, and a foreground load cancels it
    /// ([`GpuError::Cancelled`](warpcube_gpu::GpuError::Cancelled)).
    pub in_background: bool,
    /// Threads that sort and merge; `None` for those of the process.
    pub pool: Option<Arc<LoadThreads>>,
}

/// Threads of a load; a drop waits for their end.
#[derive(Debug)]
pub struct LoadThreads {
    // Drop order: the pool ends its threads, then `_threads` joins them.
    pool: ThreadPool,
    _threads: Threads,
}

impl LoadThreads {
    fn start(number: usize) -> Option<LoadThreads> {
        let threads = Threads::default();
        let start = |thread: ThreadBuilder| threads.spawn("load", || thread.run());
        let pool = ThreadPoolBuilder::new().num_threads(number).spawn_handler(start).build().ok()?;
        Some(LoadThreads { pool, _threads: threads })
    }
}

impl LoadLimits {
    /// The same limits with threads for one load, at the priority of the calling thread.
    pub fn with_load_threads(self) -> LoadLimits {
        LoadLimits { pool: LoadThreads::start(self.threads).map(Arc::new), ..self }
    }

    /// Runs work on the threads of the load.
    pub(crate) fn share<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(own) => own.pool.install(work),
            None => work(),
        }
    }
}

/// Cores that this process may use, as they were when first asked for: on Linux each look reads files of control
/// groups.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

impl Default for LoadLimits {
    fn default() -> LoadLimits {
        LoadLimits {
            dictionary_values: 4 << 20,
            threads: cores(),
            cancelled: Arc::default(),
            rows_done: Arc::default(),
            encoding: EncodingChoice::default(),
            host_bytes: 0,
            in_background: false,
            pool: None,
        }
    }
}

/// Rows, bytes and times of a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadReport {
    /// Rows read.
    pub rows: u64,
    /// Bytes uploaded: plain values with validity, and encoded columns.
    pub bytes: u64,
    /// Wall time.
    pub elapsed: Duration,
    /// Time of all threads in encoding.
    pub encode: Duration,
    /// Time of all threads in decoding, encoding and uploading.
    pub busy: Duration,
    /// Part of `bytes` from host copies and column files, without decoding.
    pub restored: u64,
    /// Bytes of column files written.
    pub written: u64,
    /// Defects of column files.
    pub warnings: Vec<String>,
}

impl LoadReport {
    /// Adds the report of another load.
    pub fn add(&mut self, other: &LoadReport) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.elapsed += other.elapsed;
        self.encode += other.encode;
        self.busy += other.busy;
        self.restored += other.restored;
        self.written += other.written;
        self.warnings.extend_from_slice(&other.warnings);
    }

    /// Gigabytes (10⁹ bytes) decoded and encoded a second and core; 0 without decoded bytes.
    pub fn gigabytes_per_second_core(&self) -> f64 {
        let decoded = self.bytes.saturating_sub(self.restored);
        if self.busy.is_zero() { 0.0 } else { decoded as f64 / self.busy.as_secs_f64() / 1e9 }
    }
}

/// Loaded columns with the report of their load.
pub(crate) struct Loaded {
    pub(crate) relation: Relation,
    pub(crate) report: LoadReport,
}
