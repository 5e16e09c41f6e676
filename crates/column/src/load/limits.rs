//! The limits and the report of a load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
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
    /// Threads that decode and encode.
    pub threads: usize,
    /// Raised to stop the load.
    pub cancelled: Arc<AtomicBool>,
    /// Rows read so far, for progress bars; columns read apart count by their share.
    pub rows_done: Arc<AtomicU64>,
    /// How columns are to lie on the device.
    pub encoding: EncodingChoice,
    /// Most host memory for copies of columns that leave the device.
    pub host_bytes: u64,
    /// Whether no statement waits for the load: it fails where there is no room, and a load that a statement waits for
    /// cancels it ([`GpuError::Cancelled`](warpcube_gpu::GpuError::Cancelled)).
    pub in_background: bool,
    /// Threads that sort and merge; those of the process if none are named.
    pub pool: Option<Arc<OwnThreads>>,
}

/// Threads of a load; they have ended when this has been dropped.
#[derive(Debug)]
pub struct OwnThreads {
    // Dropped in this order: the pool tells its threads to end, which are then waited for.
    pool: ThreadPool,
    _threads: Threads,
}

impl OwnThreads {
    fn start(number: usize) -> Option<OwnThreads> {
        let threads = Threads::default();
        let start = |thread: ThreadBuilder| threads.spawn("load", || thread.run());
        let pool = ThreadPoolBuilder::new().num_threads(number).spawn_handler(start).build().ok()?;
        Some(OwnThreads { pool, _threads: threads })
    }
}

impl LoadLimits {
    /// The same limits for a load with threads of its own, which have the priority of the thread that asks for them.
    pub fn with_own_threads(self) -> LoadLimits {
        LoadLimits { pool: OwnThreads::start(self.threads).map(Arc::new), ..self }
    }

    /// Does work whose parts the load's threads share.
    pub(crate) fn share<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(own) => own.pool.install(work),
            None => work(),
        }
    }
}

impl Default for LoadLimits {
    fn default() -> LoadLimits {
        LoadLimits {
            dictionary_values: 4 << 20,
            threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
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
    /// Bytes that went to the device: values as they were decoded, with their validity.
    pub bytes: u64,
    /// Wall time.
    pub elapsed: Duration,
    /// Time all threads spent encoding.
    pub encode: Duration,
    /// Time all threads spent decoding, encoding and handing over to the device.
    pub busy: Duration,
    /// Bytes of `bytes` that came encoded, from copies on the host and from files: nothing was decoded for them.
    pub restored: u64,
    /// Bytes of the files that encoded columns were written to.
    pub written: u64,
    /// Defects of files of encoded columns.
    pub warnings: Vec<String>,
}

impl LoadReport {
    /// Adds what another load did.
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

    /// Gigabytes (10⁹ bytes) decoded and encoded a second and core; zero where nothing was.
    pub fn gigabytes_per_second_core(&self) -> f64 {
        let decoded = self.bytes.saturating_sub(self.restored);
        if self.busy.is_zero() { 0.0 } else { decoded as f64 / self.busy.as_secs_f64() / 1e9 }
    }
}

/// Columns that were loaded, and what their load did.
pub(crate) struct Loaded {
    pub(crate) relation: Relation,
    pub(crate) report: LoadReport,
}
