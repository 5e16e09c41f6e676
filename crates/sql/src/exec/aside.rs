//! What comes to the device beside the statements: columns that statements on the CPU have paid for, and kernels.
//!
//! A fragment that is worth its load by now, or that lacks its kernels alone, and whose statement the CPU runs all the
//! same, is run when that is over, on a thread of its own that leaves the cores to others: its columns come, its
//! kernels are compiled, and what makes it unfit for the device is found, before a statement waits for any of it.
//! Nobody takes its rows.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use datafusion::catalog::MemTable;
use datafusion::execution::SessionState;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use warpcube_column::LoadLimits;
use warpcube_engine::{Engine, EngineError, RunOptions};
use warpcube_gpu::{CancelSwitch, Threads};

use super::engines::Engines;
use super::source::{load_limits, load_threads, requests};
use super::work::is_lasting;
use crate::lower::{Lowered, Refusals, TableInfo};
use crate::placement::Placer;
use crate::settings::Settings;

/// Fragments that are under way at a time.
const FRAGMENTS_MAX: usize = 4;
/// Who asks once and leaves does not wait for a device to be opened.
const GRACE: Duration = Duration::from_millis(20);
/// Shapes that are remembered.
const TRIED_MAX: usize = 4096;
/// One thread of so many of a session's takes part: more would take the bandwidth of its memory from statements.
const THREADS_SHARE: usize = 4;

/// The background work of a session.
#[derive(Debug)]
pub(crate) struct Aside {
    refusals: Arc<Refusals>,
    placer: Arc<Placer>,
    work: Mutex<Work>,
    /// Shapes of fragments that were brought here, whatever came of it.
    tried: Mutex<HashSet<u64>>,
    /// Told whenever some of it ends, and when it is closed.
    ended: Condvar,
    threads: Threads,
}

#[derive(Debug, Default)]
struct Work {
    closed: bool,
    /// What is under way, by the identity of its fragment, and what stops it.
    fragments: HashMap<String, Arc<CancelSwitch>>,
}

/// A fragment that is worth its load.
#[derive(Debug, Clone)]
pub(crate) struct Coming {
    /// The fragment.
    pub(crate) lowered: Arc<Lowered>,
    /// The table whose credit pays.
    pub(crate) table: String,
    /// How much.
    pub(crate) wants: f64,
    /// What the table owes if it does not come: the fragment's time on both, in seconds.
    pub(crate) debt: f64,
}

/// What is to come once a statement is over, which it would take bandwidth and cores from.
pub(crate) struct Afterwards {
    pub(super) aside: Arc<Aside>,
    pub(super) fragments: Vec<Coming>,
    pub(super) engines: Arc<Engines>,
    pub(super) state: Arc<SessionState>,
    /// Drives scans.
    pub(super) runtime: Handle,
}

impl Afterwards {
    /// The statement is over.
    pub(crate) fn begin(self) {
        for coming in self.fragments {
            self.aside.start(coming, self.engines.clone(), self.state.clone(), self.runtime.clone());
        }
    }
}

/// How the work for a fragment ended.
enum Ended {
    /// It is there, or is known to be unfit.
    Done,
    /// A load that a statement waits for went first, or the session closes.
    GaveWay,
    /// It did not come.
    Failed,
}

/// Takes a fragment off the list, however its work ended.
struct UnderWay {
    aside: Arc<Aside>,
    identity: String,
    /// Its shape, unless it gave way and has to be tried again.
    shape: Option<u64>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(shape) = self.shape {
            let mut tried = self.aside.tried.lock();
            if tried.len() >= TRIED_MAX {
                tried.clear();
            }
            tried.insert(shape);
        }
        self.aside.work.lock().fragments.remove(&self.identity);
        // Statements that were planned meanwhile are worth planning again, and only now.
        self.aside.placer.note_change();
        self.aside.ended.notify_all();
    }
}

/// Fragments that differ in literals alone have one shape.
fn shape(lowered: &Lowered) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", lowered.fragment.shape()).hash(&mut hasher);
    hasher.finish()
}

impl Aside {
    /// No work so far; `refusals` are told of fragments that are found unfit, `placer` of loads that failed.
    pub(crate) fn new(refusals: Arc<Refusals>, placer: Arc<Placer>) -> Aside {
        Aside {
            refusals,
            placer,
            work: Mutex::default(),
            tried: Mutex::default(),
            ended: Condvar::new(),
            threads: Threads::default(),
        }
    }

    /// Whether a fragment is under way.
    pub(crate) fn is_under_way(&self, identity: &str) -> bool {
        self.work.lock().fragments.contains_key(identity)
    }

    /// Whether a fragment of this shape was under way before, whatever came of it.
    pub(crate) fn has_tried(&self, lowered: &Lowered) -> bool {
        self.tried.lock().contains(&shape(lowered))
    }

    /// Has a fragment run on a thread of its own, unless it is under way or others are; a next statement asks again.
    /// The runtime drives scans.
    fn start(self: &Arc<Aside>, coming: Coming, engines: Arc<Engines>, state: Arc<SessionState>, runtime: Handle) {
        let identity = coming.lowered.identity.clone();
        let cancel: Arc<CancelSwitch> = Arc::default();
        {
            let mut work = self.work.lock();
            if work.closed || work.fragments.len() >= FRAGMENTS_MAX || work.fragments.contains_key(&identity) {
                return;
            }
            work.fragments.insert(identity.clone(), cancel.clone());
        }
        self.placer.spend(&coming.table, coming.wants);
        let mut under_way = UnderWay { aside: self.clone(), identity, shape: Some(shape(&coming.lowered)) };
        let work = move || {
            let _span = tracing::info_span!("aside", what = coming.lowered.what).entered();
            let run = || match under_way.aside.closes_within(GRACE) {
                true => Ended::GaveWay,
                // Where there is no device, why is told to the next statement that asks for it.
                false => engines
                    .get()
                    .map_or(Ended::Failed, |engine| under_way.aside.run(&coming, &engine, state, runtime, cancel)),
            };
            match catch_unwind(AssertUnwindSafe(run)).unwrap_or(Ended::Failed) {
                Ended::Done => {}
                Ended::GaveWay => {
                    under_way.aside.placer.refund(&coming.table, coming.wants);
                    under_way.shape = None;
                }
                Ended::Failed => under_way.aside.placer.forfeit(&coming.table, coming.debt),
            }
            // Whoever waits for the end finds the device held by nobody here.
            drop((coming, engines));
            drop(under_way);
        };
        if let Err(error) = self.threads.spawn("aside", work) {
            tracing::warn!(%error, "no thread for what would come to the device");
        }
    }

    fn run(
        &self,
        coming: &Coming,
        engine: &Engine,
        state: Arc<SessionState>,
        runtime: Handle,
        cancel: Arc<CancelSwitch>,
    ) -> Ended {
        let lowered = &coming.lowered;
        // Scans of other tables may have the runtime start threads, which statements go on with.
        let reads_alone = |info: &Arc<TableInfo>| {
            info.provider.is::<MemTable>() || info.parquet.as_ref().is_some_and(|files| files.table().is_some())
        };
        if lowered.tables.iter().all(reads_alone) {
            engine.device().use_idle_scheduling();
        }
        let settings = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        let limits = load_limits(&settings);
        let threads = limits.threads.div_ceil(THREADS_SHARE);
        let limits = LoadLimits { cancelled: cancel.flag().clone(), in_background: true, threads, ..limits };
        let limits = limits.with_load_threads();
        let requests = requests(lowered, &state, &runtime, load_threads(&settings));
        let outcome = match lowered.arguments.is_empty() {
            true => {
                let options = RunOptions { limits, cancel, groups_max: lowered.groups_max, ..RunOptions::default() };
                engine.run_again(&lowered.fragment, &lowered.binding, &requests, &options).map(drop)
            }
            // Values of subqueries are known to the statement alone.
            false => engine.residency().admit(&requests, &limits, |_| Ok::<_, EngineError>(0)).map(drop),
        };
        match outcome {
            Ok(()) => Ended::Done,
            Err(error) if is_lasting(&error) => {
                tracing::info!(%error, "stays on the CPU after all");
                self.refusals.remember(&lowered.identity, error.to_string());
                Ended::Done
            }
            Err(error) if error.is_cancelled() => Ended::GaveWay,
            Err(error) => {
                tracing::info!(%error, "did not come to the device");
                Ended::Failed
            }
        }
    }

    /// Waits so long for the session to close; whether it does.
    fn closes_within(&self, time: Duration) -> bool {
        let mut work = self.work.lock();
        self.ended.wait_while_for(&mut work, |work| !work.closed, time);
        work.closed
    }

    /// Waits until nothing is under way; whether anything was.
    pub(crate) fn wait(&self) -> bool {
        let mut work = self.work.lock();
        let was = !work.fragments.is_empty();
        while !work.fragments.is_empty() {
            self.ended.wait(&mut work);
        }
        drop(work);
        self.threads.join();
        was
    }

    /// Stops what is under way and begins nothing more.
    pub(crate) fn close(&self) {
        let mut work = self.work.lock();
        work.closed = true;
        work.fragments.values().for_each(|cancel| cancel.throw());
        self.ended.notify_all();
    }
}
