//! What is asked of a run, and what it did.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use warpcube_column::{LoadLimits, LoadReport};
use warpcube_gpu::{CancelSwitch, Program, Traffic};

use crate::exec::bind::BoundFragment;
use crate::exec::binding::BindingOrigin;

/// What is asked of one run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Bounds of loads, with the cancel flag.
    pub limits: LoadLimits,
    /// Stops kernels that run; its flag is that of `limits` where loads are to be stopped too.
    pub cancel: Arc<CancelSwitch>,
    /// Folder into which the generated source is written, `fragment-<hash>.cu`, complete with its prelude.
    pub dump: Option<PathBuf>,
    /// Slots that a hashed group table has at first, rounded up to a power of two; the engine chooses if none is given.
    /// A table that proves too small grows.
    pub group_slots: Option<u64>,
    /// Most groups of a result; one with more is refused, this time and in later runs over the same columns.
    pub groups_max: Option<u64>,
    /// Whether the answer may come from elsewhere, so that a run gives up where a compiler would have to run first
    /// ([`EngineError::NotCompiled`]).
    pub elsewhere: bool,
    /// Whether each launch is timed; launches then do not overlap, so that all together take a little longer.
    pub launch_times: bool,
}

/// What one run did.
#[derive(Debug, Clone, Default)]
pub struct RunReport {
    /// What was loaded first.
    pub loaded: LoadReport,
    /// Time to bind and generate source.
    pub bind: Duration,
    /// Where its binding came from.
    pub origin: BindingOrigin,
    /// Time to compile or find the kernels.
    pub compile: Duration,
    /// Whether a compiler ran.
    pub compiled: bool,
    /// Time on the device by its own clock: first launch to last, zeroing included.
    pub device: Duration,
    /// Estimated bytes that must be read.
    pub bytes: u64,
    /// Time on the host from the first copy to the rows, waits included.
    pub launched: Duration,
    /// Bytes copied to the device and back: constants, results.
    pub traffic: Traffic,
    /// Whether its kernels were compiled in haste: those of runs to come will be better.
    pub in_haste: bool,
    /// One report a launch.
    pub launch_groups: Vec<LaunchReport>,
    /// Device memory of tables and result.
    pub arena_bytes: u64,
    /// Rows of the result.
    pub rows: u64,
    /// How a top-k was found, and why so.
    pub top: Option<String>,
    /// What ran.
    pub(super) bound: Option<Arc<BoundFragment>>,
    /// How often the fragment was run again because the window of an exact sum proved too small, a table proved to have
    /// several rows for a key, join keys collided, the threshold of a top-k let too few or too many rows pass, or a
    /// sink had too little room that could not be enlarged while the run had stopped.
    pub reruns: u32,
    /// How often the run has stopped because a sink had no room, and has gone on with more.
    pub grown: u32,
}

impl RunReport {
    /// All kernels that ran, as one program.
    pub fn program(&self) -> Option<Arc<Program>> {
        self.bound.as_ref().map(|bound| bound.program().clone())
    }
}

/// What one launch did.
#[derive(Debug, Clone)]
pub struct LaunchReport {
    /// The pipelines that ran side by side, by position in the fragment.
    pub pipelines: Vec<usize>,
    /// Time on the device, if launches were timed ([`RunOptions::launch_times`]).
    pub device: Option<Duration>,
    /// Estimated bytes read from columns.
    pub bytes: u64,
    /// Registers a thread.
    pub registers: u32,
    /// Spilled bytes a thread.
    pub spilled: u32,
    /// Blocks of a launch.
    pub grid: u32,
    /// Launches: more than one where the scan is cut ([`crate::Tuning::launch_chunks`]).
    pub launches: u32,
}
