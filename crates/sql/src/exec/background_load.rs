//! Loads in the background: columns that a second statement on the CPU asked for come when that statement is over.
//!
//! The fragment is run on a thread of its own that leaves the cores to statements: its columns are loaded, its kernels
//! compiled, and what makes it unfit for the device is found, before a statement waits for any of it. Its rows are
//! dropped. A load beside its statement takes cores from it: first runs took up to 1.36 times as long as DataFusion's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::execution::SessionState;
use tokio::runtime::Handle;
use warpcube_column::LoadLimits;
use warpcube_engine::{Engine, EngineError, RunOptions};
use warpcube_gpu::{CancelSwitch, Threads};

use super::fallback::{is_lasting, is_of_column};
use super::source::{load_limits, load_threads, requests};
use crate::engines::Engines;
use crate::lower::{Lowered, Refusals, TableInfo};
use crate::memory_table::MemoryTable;
use crate::placement::{BackgroundLoad, LoadLedger};
use crate::settings::Settings;

/// A background load has one thread for so many of the connection's: more would take memory bandwidth from statements.
const THREADS_SHARE: usize = 4;

/// The background loads of a database.
#[derive(Debug)]
pub(crate) struct BackgroundLoads {
    engines: Arc<Engines>,
    refusals: Arc<Refusals>,
    ledger: Arc<LoadLedger>,
    threads: Threads,
}

/// Loads that begin when their statement is over: beside it they would take bandwidth and cores from it.
pub(crate) struct Afterwards {
    pub(super) background: Arc<BackgroundLoads>,
    pub(super) loads: Vec<BackgroundLoad>,
    pub(super) state: Arc<SessionState>,
    /// Drives scans.
    pub(super) runtime: Handle,
}

impl Afterwards {
    /// Begins the loads: the statement is over.
    pub(crate) fn begin(self) {
        for load in self.loads {
            self.background.start(load, self.state.clone(), self.runtime.clone());
        }
    }
}

/// Takes a load off the list, however it ended.
struct UnderWay {
    background: Arc<BackgroundLoads>,
    identity: String,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.background.ledger.end(&self.identity);
    }
}

impl BackgroundLoads {
    /// No load so far. Fragments that are found unfit become `refusals`.
    pub(crate) fn new(engines: Arc<Engines>, refusals: Arc<Refusals>, ledger: Arc<LoadLedger>) -> BackgroundLoads {
        BackgroundLoads { engines, refusals, ledger, threads: Threads::default() }
    }

    /// Begins a load on a thread of its own, unless it is under way or too many are; a next statement asks again. The
    /// runtime drives scans.
    fn start(self: &Arc<BackgroundLoads>, load: BackgroundLoad, state: Arc<SessionState>, runtime: Handle) {
        let identity = load.lowered.identity.clone();
        let cancel: Arc<CancelSwitch> = Arc::default();
        if !self.ledger.begin(&identity, &cancel) {
            return;
        }
        let under_way = UnderWay { background: self.clone(), identity };
        let work = move || {
            let _span = tracing::info_span!("background load", what = load.lowered.what).entered();
            let background = &under_way.background;
            // Without an engine nothing is loaded; the report of the next statement has the reason.
            let run = || {
                let engine = background.engines.get();
                engine.is_some_and(|engine| background.run(&load, &engine, state, runtime, cancel))
            };
            if !catch_unwind(AssertUnwindSafe(run)).unwrap_or(false) {
                background.ledger.forget(&load.columns);
            }
            // Dropped before the entry of the ledger: a thread that waits for the ledger finds no load that holds the
            // device.
            drop(load);
            drop(under_way);
        };
        if let Err(error) = self.threads.spawn("background load", work) {
            tracing::warn!(%error, "no thread for a background load");
        }
    }

    /// Loads and runs a fragment; false if that failed. A load that gives way to one that a statement waits for has
    /// not failed.
    fn run(
        &self,
        load: &BackgroundLoad,
        engine: &Engine,
        state: Arc<SessionState>,
        runtime: Handle,
        cancel: Arc<CancelSwitch>,
    ) -> bool {
        let lowered = &load.lowered;
        // The runtime may start threads for scans of other tables, and those threads run statements later.
        let reads_alone = |info: &Arc<TableInfo>| {
            info.provider.is::<MemoryTable>() || info.parquet.as_ref().is_some_and(|files| files.table().is_some())
        };
        if lowered.tables.iter().all(reads_alone) {
            engine.device().use_idle_scheduling();
        }
        let settings = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        let limits = load_limits(&settings);
        let threads = limits.threads.div_ceil(THREADS_SHARE);
        let limits = LoadLimits { cancelled: cancel.flag().clone(), in_background: true, threads, ..limits };
        let limits = limits.with_load_threads();
        let (residency, limit) = (engine.residency(), limits.dictionary_values);
        let options = RunOptions { limits, cancel, groups_max: lowered.groups_max, ..RunOptions::default() };
        let attempt = |lowered: &Lowered| {
            let requests = requests(lowered, &state, &runtime, load_threads(&settings));
            match lowered.arguments.is_empty() {
                true => engine.run_again(&lowered.fragment, &lowered.binding, &requests, &options).map(drop),
                // The values of subqueries are the statement's: its columns are loaded, and nothing runs.
                false => residency.admit(&requests, &options.limits, |_| Ok::<_, EngineError>(0)).map(drop),
            }
        };
        let (mut tried, mut outcome) = (Vec::new(), Ok(()));
        while let Some(next) = lowered.next_try(&tried, residency, limit) {
            outcome = attempt(&next);
            if !outcome.as_ref().is_err_and(is_of_column) {
                break;
            }
            tried.push(next);
        }
        match outcome {
            Ok(()) => true,
            Err(error) if is_lasting(&error) => {
                tracing::info!(%error, "stays on the CPU after all");
                self.refusals.remember(lowered, &error.to_string());
                true
            }
            Err(error) if error.is_cancelled() => true,
            Err(error) => {
                tracing::info!(%error, "did not come to the device");
                false
            }
        }
    }

    /// Waits until no load is under way; true if one was.
    pub(crate) fn wait(&self) -> bool {
        let was = self.ledger.wait();
        self.threads.join();
        was
    }

    /// Stops what is under way and begins nothing more.
    pub(crate) fn close(&self) {
        self.ledger.close();
    }
}
