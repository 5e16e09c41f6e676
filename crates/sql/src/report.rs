//! What happened while a statement ran: times, bytes, rows, what ran where and why, and the switch that cancels it.
//!
//! One [`StatementReport`] belongs to one execution of one statement. It travels in the statement's own
//! `SessionConfig` as an extension, so that every node finds it from its `TaskContext` with [`StatementReport::of`].
//! All methods may be called from any thread; times of the same kind add up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::execution::TaskContext;
use parking_lot::Mutex;
use warpcube_column::LoadReport;
use warpcube_engine::{Prediction, RunReport};

use crate::cancel::Cancel;
use crate::error::{Result, SqlError};

/// Where a fragment of the plan ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On the device.
    Gpu,
    /// On the CPU, over columns in host memory.
    Columns,
    /// In DataFusion's operators.
    Cpu,
}

/// A fragment that was run for EXPLAIN ANALYZE.
#[derive(Debug)]
pub(crate) struct FragmentRun {
    /// The fragment in a few words.
    pub(crate) what: String,
    /// What was expected of it before it ran.
    pub(crate) predicted: Prediction,
    /// What is known of it afterwards.
    pub(crate) known: Prediction,
    /// What it did.
    pub(crate) measured: RunReport,
}

/// A part of a plan that was considered for the device.
#[derive(Debug, Clone, PartialEq)]
pub struct FragmentReport {
    /// Where it ran.
    pub place: Place,
    /// What it is, for example `aggregate over lineorder ⋈ date`.
    pub what: String,
    /// Why it ran there; for the CPU always present.
    pub reason: Option<String>,
}

/// A step of a statement before its first kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The text becomes a syntax tree.
    Parse,
    /// Names are resolved: the syntax tree becomes a logical plan.
    Plan,
    /// The logical plan is optimised, or a plan of its shape is found and given the statement's literals.
    Optimize,
    /// Parts of the plan become fragments of the device.
    Lower,
    /// The rest becomes operators of the CPU.
    Physical,
    /// Fragments are bound to columns: functions of strings are computed for dictionaries, and source is written.
    Bind,
}

impl Phase {
    /// All of them, in the order in which a statement passes them.
    pub const ALL: [Phase; 6] =
        [Phase::Parse, Phase::Plan, Phase::Optimize, Phase::Lower, Phase::Physical, Phase::Bind];

    /// Its name in traces and results of benchmarks.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Parse => "parse",
            Phase::Plan => "plan",
            Phase::Optimize => "optimize",
            Phase::Lower => "lower",
            Phase::Physical => "physical",
            Phase::Bind => "bind",
        }
    }
}

/// Collects what happens while a statement runs.
#[derive(Debug)]
pub struct StatementReport {
    started: Instant,
    cancel: Cancel,
    planning_ns: AtomicU64,
    phases_ns: [AtomicU64; Phase::ALL.len()],
    /// Whether it was planned, rather than run by a plan that was kept.
    planned: AtomicBool,
    /// Whether its columns are what tables held when it was planned.
    read_to_plan: AtomicBool,
    bound: AtomicU64,
    loading_ns: AtomicU64,
    loaded_bytes: AtomicU64,
    restored_bytes: AtomicU64,
    load_busy_ns: AtomicU64,
    compile_ns: AtomicU64,
    device_ns: AtomicU64,
    total_ns: AtomicU64,
    device_bytes: AtomicU64,
    arena_bytes: AtomicU64,
    device_rows: AtomicU64,
    host_rows: AtomicU64,
    device_operators: AtomicU64,
    host_operators: AtomicU64,
    rows: AtomicU64,
    progress_total: AtomicU64,
    /// Rows read by loads that the progress counts.
    loads: Mutex<Vec<Arc<AtomicU64>>>,
    /// Whether fragments are to tell all they did.
    explained: AtomicBool,
    runs: Mutex<Vec<Arc<FragmentRun>>>,
    fragments: Mutex<Vec<FragmentReport>>,
    warnings: Mutex<Vec<String>>,
}

impl Default for StatementReport {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        StatementReport {
            started: Instant::now(),
            cancel: Cancel::default(),
            planning_ns: zero(),
            phases_ns: Default::default(),
            planned: AtomicBool::new(false),
            read_to_plan: AtomicBool::new(false),
            bound: AtomicU64::new(0),
            loading_ns: zero(),
            loaded_bytes: zero(),
            restored_bytes: zero(),
            load_busy_ns: zero(),
            compile_ns: zero(),
            device_ns: zero(),
            total_ns: zero(),
            device_bytes: zero(),
            arena_bytes: zero(),
            device_rows: zero(),
            host_rows: zero(),
            device_operators: zero(),
            host_operators: zero(),
            rows: zero(),
            progress_total: zero(),
            loads: Mutex::default(),
            explained: AtomicBool::new(false),
            runs: Mutex::default(),
            fragments: Mutex::default(),
            warnings: Mutex::default(),
        }
    }
}

impl StatementReport {
    /// An empty report; the clock of the statement starts now.
    pub fn new() -> Arc<StatementReport> {
        Arc::default()
    }

    /// The report of the statement a task belongs to. A plan run outside of a connection has none.
    pub fn of(context: &TaskContext) -> Option<Arc<StatementReport>> {
        context.session_config().get_extension::<StatementReport>()
    }

    /// The switch that cancels the statement.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The commit point: what the statement writes takes its place from here on, and it is cancelled no more.
    ///
    /// # Errors
    /// [`SqlError::Cancelled`] if it was cancelled before, or is out of time.
    pub fn commit(&self) -> Result<()> {
        match self.cancel.commit() {
            true => Ok(()),
            false => Err(SqlError::Cancelled),
        }
    }

    /// As long as the statement may commit.
    ///
    /// # Errors
    /// [`SqlError::Cancelled`] once it was cancelled, or is out of time.
    pub(crate) fn check(&self) -> Result<()> {
        match self.cancel.is_cancelled() {
            true => Err(SqlError::Cancelled),
            false => Ok(()),
        }
    }

    /// Adds time spent on parsing and planning.
    pub fn add_planning(&self, time: Duration) {
        add(&self.planning_ns, time);
    }

    /// Adds time spent on a phase.
    pub(crate) fn add_phase(&self, phase: Phase, time: Duration) {
        add(&self.phases_ns[phase as usize], time);
    }

    /// Adds the time since `clock` was started to a phase; a clock for the next one.
    pub(crate) fn end_phase(&self, phase: Phase, clock: Instant) -> Instant {
        self.add_phase(phase, clock.elapsed());
        Instant::now()
    }

    /// Adds time spent on reading files, encoding and moving columns to the device.
    pub fn add_loading(&self, time: Duration) {
        add(&self.loading_ns, time);
    }

    /// Adds what a load did.
    pub(crate) fn add_load(&self, load: &LoadReport) {
        add(&self.loading_ns, load.elapsed);
        add(&self.load_busy_ns, load.busy);
        self.loaded_bytes.fetch_add(load.bytes, Ordering::Relaxed);
        self.restored_bytes.fetch_add(load.restored, Ordering::Relaxed);
        self.warnings.lock().extend_from_slice(&load.warnings);
    }

    /// Adds warnings.
    pub(crate) fn warn(&self, warnings: &[String]) {
        self.warnings.lock().extend_from_slice(warnings);
    }

    /// Notes that a fragment was bound.
    pub(crate) fn note_bound(&self) {
        self.bound.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the statement was planned.
    pub(crate) fn note_planned(&self) {
        self.planned.store(true, Ordering::Relaxed);
    }

    /// Notes that the statement's columns are what tables held when it was planned.
    pub(crate) fn note_read_to_plan(&self) {
        self.read_to_plan.store(true, Ordering::Relaxed);
    }

    /// Whether the statement's columns are what tables held when it was planned: its plan is not kept.
    pub(crate) fn is_read_to_plan(&self) -> bool {
        self.read_to_plan.load(Ordering::Relaxed)
    }

    /// Asks fragments for all they do, for EXPLAIN ANALYZE.
    pub(crate) fn explain(&self) {
        self.explained.store(true, Ordering::Relaxed);
    }

    /// Whether fragments are to tell all they do.
    pub(crate) fn is_explained(&self) -> bool {
        self.explained.load(Ordering::Relaxed)
    }

    /// Notes all that a fragment did.
    pub(crate) fn add_run(&self, run: FragmentRun) {
        self.runs.lock().push(Arc::new(run));
    }

    /// What fragments told.
    pub(crate) fn runs(&self) -> Vec<Arc<FragmentRun>> {
        self.runs.lock().clone()
    }

    /// Adds time spent on compiling kernels.
    pub fn add_compile(&self, time: Duration) {
        add(&self.compile_ns, time);
    }

    /// Adds time measured on the device, by its events.
    pub fn add_device(&self, time: Duration) {
        add(&self.device_ns, time);
    }

    /// Adds bytes that kernels had to read and write on the device.
    pub fn add_device_bytes(&self, bytes: u64) {
        self.device_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds device memory of a fragment's tables and results.
    pub(crate) fn add_arena(&self, bytes: u64) {
        self.arena_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds rows of tables that fragments on the device read (before any filter).
    pub fn add_device_rows(&self, rows: u64) {
        self.device_rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Adds rows of tables that the CPU read.
    pub fn add_host_rows(&self, rows: u64) {
        self.host_rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Adds operators of the statement's plan that ran on the device.
    pub fn add_device_operators(&self, operators: u64) {
        self.device_operators.fetch_add(operators, Ordering::Relaxed);
    }

    /// Adds operators of the statement's plan that the CPU runs.
    pub fn add_host_operators(&self, operators: u64) {
        self.host_operators.fetch_add(operators, Ordering::Relaxed);
    }

    /// Adds rows of the result.
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Notes a fragment and where it ran.
    pub fn fragment(&self, fragment: FragmentReport) {
        self.fragments.lock().push(fragment);
    }

    /// Announces `units` of work (bytes to load, rows to read) for the progress bar.
    pub fn add_work(&self, units: u64) {
        self.progress_total.fetch_add(units, Ordering::Relaxed);
    }

    /// Announces a load of `total` rows, whose counter is `done`.
    pub(crate) fn follow_load(&self, done: &Arc<AtomicU64>, total: u64) {
        self.add_work(total);
        self.loads.lock().push(done.clone());
    }

    /// Whether a load was announced that is not done.
    pub fn is_loading(&self) -> bool {
        let (done, total) = self.progress();
        !self.loads.lock().is_empty() && (done < total || total == 0)
    }

    /// Work done and announced so far.
    pub fn progress(&self) -> (u64, u64) {
        let loaded: u64 = self.loads.lock().iter().map(|rows| rows.load(Ordering::Relaxed)).sum();
        (loaded, self.progress_total.load(Ordering::Relaxed))
    }

    /// Stops the clock of the statement; the first call counts.
    pub fn finish(&self) {
        let total = nanoseconds(self.started.elapsed()).max(1);
        let _ = self.total_ns.compare_exchange(0, total, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// What is known by now.
    pub fn summary(&self) -> Summary {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        let total = match read(&self.total_ns) {
            0 => self.started.elapsed(),
            nanoseconds => Duration::from_nanos(nanoseconds),
        };
        Summary {
            planning: time(&self.planning_ns),
            phases: Phase::ALL.map(|phase| time(&self.phases_ns[phase as usize])),
            planned: self.planned.load(Ordering::Relaxed),
            bound: read(&self.bound),
            loading: time(&self.loading_ns),
            loaded_bytes: read(&self.loaded_bytes),
            restored_bytes: read(&self.restored_bytes),
            load_busy: time(&self.load_busy_ns),
            compile: time(&self.compile_ns),
            device: time(&self.device_ns),
            total,
            rows: read(&self.rows),
            device_bytes: read(&self.device_bytes),
            arena_bytes: read(&self.arena_bytes),
            device_rows: read(&self.device_rows),
            host_rows: read(&self.host_rows),
            device_operators: read(&self.device_operators),
            host_operators: read(&self.host_operators),
            fragments: self.fragments.lock().clone(),
            warnings: self.warnings.lock().clone(),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn add(counter: &AtomicU64, time: Duration) {
    counter.fetch_add(nanoseconds(time), Ordering::Relaxed);
}

/// A report's values at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Parsing and planning.
    pub planning: Duration,
    /// Time of each phase, in the order of [`Phase::ALL`]; zero for those that a statement did not need.
    pub phases: [Duration; Phase::ALL.len()],
    /// Whether the statement was planned; not where a plan of an earlier run was taken.
    pub planned: bool,
    /// Fragments that were bound to their columns; not those that took what an earlier run was bound to, of the same
    /// statement or of one with other constants.
    pub bound: u64,
    /// Reading files, encoding and moving columns to the device; zero where nothing was loaded.
    pub loading: Duration,
    /// Bytes that this moved to the device.
    pub loaded_bytes: u64,
    /// Those of them that were encoded already, on the host or in files.
    pub restored_bytes: u64,
    /// Time that all threads together spent on it.
    pub load_busy: Duration,
    /// Compiling kernels; zero where all were in a cache.
    pub compile: Duration,
    /// On the device, by its events; zero where nothing ran there.
    pub device: Duration,
    /// Text in to last row out.
    pub total: Duration,
    /// Rows of the result.
    pub rows: u64,
    /// Bytes that kernels had to read and write.
    pub device_bytes: u64,
    /// Device memory of fragments' tables and results.
    pub arena_bytes: u64,
    /// Rows of tables read on the device.
    pub device_rows: u64,
    /// Rows of tables read by the CPU.
    pub host_rows: u64,
    /// Operators of the plan that ran on the device: scans, filters, joins, aggregations, sorts and the like.
    pub device_operators: u64,
    /// Those that the CPU ran.
    pub host_operators: u64,
    /// Fragments, in the order they were noted.
    pub fragments: Vec<FragmentReport>,
    /// What went wrong without harm to the statement.
    pub warnings: Vec<String>,
}

impl Summary {
    /// The share of the work that ran on the GPU, 0 to 1: of all operators of the plan that read, filter, join, group
    /// or sort rows, those within fragments that ran on the device. None for a statement that read no table.
    pub fn gpu_share(&self) -> Option<f64> {
        // A fragment over an empty table ran on the device all the same.
        let on_device = self.fragments.iter().any(|fragment| fragment.place == Place::Gpu);
        let operators = self.device_operators + self.host_operators;
        let reads = self.device_rows + self.host_rows > 0 || on_device;
        (reads && operators > 0).then(|| self.device_operators as f64 / operators as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_counts_operators_and_not_rows() {
        let report = StatementReport::new();
        report.add_host_operators(1);
        assert_eq!(report.summary().gpu_share(), None, "no table was read");
        report.add_device_rows(300);
        report.add_device_operators(3);
        assert_eq!(report.summary().gpu_share(), Some(0.75));
    }

    #[test]
    fn the_clock_stops_once() {
        let report = StatementReport::new();
        report.finish();
        let total = report.summary().total;
        std::thread::sleep(Duration::from_millis(2));
        report.finish();
        assert_eq!(report.summary().total, total);
    }
}
