//! What binding a fragment found, kept for the next run of the same fragment.
//!
//! A binding holds addresses of segments, so it is good only for the very columns it was made for. They are remembered
//! weakly: a binding neither keeps columns on the device nor can it mistake new columns for old ones.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use warpcube_column::{Relation, ResidentColumn};
use warpcube_gpu::{Compilation, DeviceBuffer, Kernel, LaunchShape};

use crate::error::EngineError;
use crate::exec::bind::{BoundFragment, Guesses};
use crate::exec::recorded::Recorded;
use crate::exec::topk::TopKernels;
use crate::plan::growth::GROUP_SLOTS_MAX;
use crate::plan::growth::Growth;
use crate::tuning::GROUP_SLOTS;

/// Where the binding of a run came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BindingOrigin {
    /// The fragment was bound to its columns.
    #[default]
    Anew,
    /// It was bound by an earlier run.
    Kept,
    /// A fragment of its shape was, and it took that over with its own constants.
    TakenOver,
}

/// How a launch group is launched.
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) shape: LaunchShape,
    /// First block of each member but the first.
    pub(crate) firsts: Vec<u32>,
}

/// Kernels beside those of the launch groups.
pub(crate) enum Finish {
    /// There are none.
    Nothing,
    /// The one that gathers groups, or computes columns of them.
    Gather(Kernel),
    /// Those of a top-k.
    TopK(Box<TopKernels>),
}

/// The kernels of a bound fragment.
pub(crate) struct Kernels {
    /// The launches, one a launch group.
    pub(crate) launches: Vec<Launch>,
    /// What runs beside them.
    pub(crate) finish: Finish,
    /// Those of first rows that other pipelines scan, by the pipelines that leave them.
    pub(crate) tops: Vec<(usize, TopKernels)>,
    /// Those that gather the rows of each key behind a build.
    pub(crate) matches: Option<(Kernel, Kernel)>,
    /// The one that enters the ends of runs behind a build.
    pub(crate) ends: Option<Kernel>,
}

impl Kernels {
    /// Whether the warps of a launch group are those of another binding: each finds its state by its place in the grid.
    pub(crate) fn has_grid_of(&self, other: &Kernels, group: usize) -> bool {
        let grid = |kernels: &Kernels| {
            kernels.launches.get(group).map(|launch| (launch.shape.grid, launch.shape.block, launch.firsts.clone()))
        };
        grid(self) == grid(other)
    }
}

/// A bound fragment with its compiled kernels.
pub(crate) struct Binding {
    pub(crate) fragment: Arc<BoundFragment>,
    /// Whether the launches are of programs that were compiled in haste.
    pub(crate) in_haste: bool,
    /// The fragment's own programs, once a second run has asked for them; one request for all of a shape.
    pub(crate) better: Arc<OnceLock<Compilation>>,
    pub(crate) kernels: Arc<Kernels>,
    /// Why a run over these columns was refused, if one was.
    pub(crate) refused: OnceLock<EngineError>,
    columns: Vec<Weak<ResidentColumn>>,
    guesses: Guesses,
    /// Recordings that are not in use, each over an arena of its own.
    recorded: Mutex<Vec<Recorded>>,
    /// Bytes of a result that come with a run.
    first_bytes: AtomicUsize,
    /// Nanoseconds that the last run took on the device; zero where none has ended.
    device_ns: AtomicU64,
}

/// Time on the device from which on a run is not short.
const SHORT: Duration = Duration::from_millis(2);
/// Recordings kept of one binding: statements that run at the same time have arenas of their own.
const RECORDED_MAX: usize = 4;
/// Bytes of a result that come with a run, at first and at most. They are page-locked memory of each recording.
const FIRST_BYTES: RangeInclusive<usize> = 128 << 10..=4 << 20;

impl Binding {
    /// A binding for the columns of `tables`.
    pub(crate) fn new(
        fragment: Arc<BoundFragment>,
        tables: &[Relation],
        guesses: Guesses,
        kernels: Arc<Kernels>,
        in_haste: bool,
    ) -> Binding {
        let columns = tables.iter().flat_map(|table| &table.columns).map(Arc::downgrade).collect();
        let (recorded, first_bytes) = (Mutex::default(), FIRST_BYTES.start().to_owned().into());
        let (refused, better, device_ns) = (OnceLock::new(), Arc::default(), AtomicU64::new(0));
        Binding { fragment, in_haste, better, kernels, refused, columns, guesses, recorded, first_bytes, device_ns }
    }

    /// A binding to the same columns and kernels, of the same shape with other constants.
    pub(crate) fn with_fragment(&self, fragment: BoundFragment) -> Binding {
        Binding {
            fragment: Arc::new(fragment),
            in_haste: self.in_haste,
            better: self.better.clone(),
            kernels: self.kernels.clone(),
            refused: OnceLock::new(),
            columns: self.columns.clone(),
            guesses: self.guesses,
            recorded: Mutex::default(),
            first_bytes: FIRST_BYTES.start().to_owned().into(),
            device_ns: self.device_ns.load(Ordering::Relaxed).into(),
        }
    }

    /// Takes a recording over `arena`, with or without a time for each launch group.
    pub(crate) fn recorded(&self, arena: &DeviceBuffer, times_launches: bool) -> Option<Recorded> {
        let mut recorded = self.recorded.lock();
        let position = recorded.iter().position(|recorded| recorded.is_for(arena, times_launches))?;
        Some(recorded.remove(position))
    }

    /// Gives a recording back; the oldest leaves if there are too many.
    pub(crate) fn keep_recorded(&self, one: Recorded) {
        let mut recorded = self.recorded.lock();
        if recorded.len() == RECORDED_MAX {
            recorded.remove(0);
        }
        recorded.push(one);
    }

    /// Bytes of a result that a recording brings with each run.
    pub(crate) fn first_bytes(&self) -> usize {
        self.first_bytes.load(Ordering::Relaxed)
    }

    /// Notes the bytes of a result: more than came with the run are expected of the next one too. Whether that changes
    /// what a recording has to bring.
    pub(crate) fn expect_bytes(&self, bytes: usize) -> bool {
        let wanted = bytes.next_power_of_two().min(*FIRST_BYTES.end());
        self.first_bytes.fetch_max(wanted, Ordering::Relaxed) < wanted
    }

    /// Notes how long a run took on the device.
    pub(crate) fn note_device_time(&self, time: Duration) {
        self.device_ns.store(time.as_nanos().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn is_alive(&self) -> bool {
        self.columns.iter().all(|column| column.strong_count() > 0)
    }

    /// Whether it was made for these columns by these guesses. A relation of no column is as any other: the fragment
    /// that the binding is kept with tells which tables it reads.
    pub(crate) fn is_for(&self, tables: &[Relation], guesses: Guesses) -> bool {
        let columns = || tables.iter().flat_map(|table| &table.columns);
        // A weak reference keeps the address taken: equal addresses are the same column.
        self.guesses == guesses
            && columns().count() == self.columns.len()
            && columns().zip(&self.columns).all(|(column, known)| std::ptr::eq(Arc::as_ptr(column), known.as_ptr()))
    }
}

/// Keeps the last binding of one fragment, how often the room of its sinks has grown, the seed of its hashes, whether
/// its exact sums need limbs for every finite value, whether a threshold of its top-k has failed, which tables have
/// several rows for a key, and whether it sorts many groups.
///
/// Fragments of one shape, which differ in constants of filters alone, have a cache each, and share the last binding of
/// any of them ([`BindingCache::for_other_constants`]).
pub struct BindingCache {
    binding: Mutex<Option<Arc<Binding>>>,
    latest: Arc<Mutex<Option<Arc<Binding>>>>,
    growth: Mutex<Growth>,
    whole_sums: AtomicBool,
    failed_threshold: AtomicBool,
    several: AtomicU32,
    many_sorted: AtomicBool,
    seed: AtomicU64,
    keeps_seed: bool,
}

impl Default for BindingCache {
    fn default() -> BindingCache {
        BindingCache::seeded(random_seed())
    }
}

/// A seed that nobody can tell before.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl std::fmt::Debug for BindingCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BindingCache").field("bound", &self.binding.lock().is_some()).finish()
    }
}

impl BindingCache {
    /// An empty cache whose fragment seeds its hashes with `seed` at first: tests make keys collide that way. Others
    /// start with a random one.
    pub fn seeded(seed: u64) -> BindingCache {
        BindingCache {
            binding: Mutex::default(),
            latest: Arc::default(),
            growth: Mutex::default(),
            whole_sums: AtomicBool::default(),
            failed_threshold: AtomicBool::default(),
            several: AtomicU32::default(),
            many_sorted: AtomicBool::default(),
            seed: AtomicU64::new(seed),
            keeps_seed: false,
        }
    }

    /// As [`BindingCache::seeded`], with this seed however often keys collide under it: for tests too.
    pub fn always_seeded(seed: u64) -> BindingCache {
        BindingCache { keeps_seed: true, ..BindingCache::seeded(seed) }
    }

    /// An empty cache for a fragment that differs from this one's in constants of filters alone: a run of one takes
    /// over what was bound for another, as long as both guess the same. What one has learned is not the other's.
    pub fn for_other_constants(&self) -> BindingCache {
        BindingCache { latest: self.latest.clone(), keeps_seed: self.keeps_seed, ..BindingCache::seeded(self.seed()) }
    }

    /// The binding for these columns, if it was the last one.
    pub(crate) fn get(&self, tables: &[Relation], guesses: Guesses) -> Option<Arc<Binding>> {
        self.binding.lock().as_ref().filter(|binding| binding.is_for(tables, guesses)).cloned()
    }

    /// Whether a run has left a binding that is still good.
    pub fn is_bound(&self) -> bool {
        self.kept().is_some()
    }

    /// The last binding that was made by these guesses, if its columns are still on the device.
    pub(crate) fn kept_by(&self, guesses: Guesses) -> Option<Arc<Binding>> {
        self.kept().filter(|binding| binding.guesses == guesses)
    }

    /// The last binding, if its columns are still on the device.
    pub(crate) fn kept(&self) -> Option<Arc<Binding>> {
        self.binding.lock().as_ref().filter(|binding| binding.is_alive()).cloned()
    }

    /// What the next run guesses first: `group_slots` before anything has grown, and what has proved right.
    pub(crate) fn guesses(&self, group_slots: u64) -> Guesses {
        Guesses {
            group_slots: group_slots.clamp(2, GROUP_SLOTS_MAX).next_power_of_two(),
            whole_sums: self.whole_sums(),
            growth: self.growth(),
            seed: self.seed(),
            failed_thresholds: self.failed_thresholds(),
            several: self.several(),
            many_sorted: self.many_sorted(),
        }
    }

    /// Whether the next run is known to be short: it, or another of its shape, was bound before, its columns are where
    /// they were, and the last run over them was short on the device.
    pub fn is_short(&self) -> bool {
        let Some(binding) = self.kept().or_else(|| self.latest(self.guesses(GROUP_SLOTS))) else { return false };
        let last = Duration::from_nanos(binding.device_ns.load(Ordering::Relaxed));
        (Duration::from_nanos(1)..SHORT).contains(&last)
    }

    /// How often the room of each sink has grown.
    pub(crate) fn growth(&self) -> Growth {
        *self.growth.lock()
    }

    /// Remembers that less room is too little.
    pub(crate) fn need_growth(&self, growth: Growth) {
        let mut known = self.growth.lock();
        *known = known.or_more(growth);
    }

    /// The seed of hashes.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.load(Ordering::Relaxed)
    }

    /// Another seed, for keys that collided under the last one; it is remembered.
    pub(crate) fn another_seed(&self) -> u64 {
        if !self.keeps_seed {
            self.seed.store(random_seed(), Ordering::Relaxed);
        }
        self.seed()
    }

    /// Whether a guess of the window of an exact sum proved too small.
    pub(crate) fn whole_sums(&self) -> bool {
        self.whole_sums.load(Ordering::Relaxed)
    }

    /// Remembers that it did.
    pub(crate) fn need_whole_sums(&self) {
        self.whole_sums.store(true, Ordering::Relaxed);
    }

    /// Thresholds of a top-k that a run starts as if they had failed: one at most, so that no run begins with the ranks
    /// of all rows, which a later run may not need.
    pub(crate) fn failed_thresholds(&self) -> u32 {
        self.failed_threshold.load(Ordering::Relaxed).into()
    }

    /// Remembers that one has.
    pub(crate) fn note_failed_threshold(&self) {
        self.failed_threshold.store(true, Ordering::Relaxed);
    }

    /// A bit a pipeline whose table proved to have several rows for a key.
    pub(crate) fn several(&self) -> u32 {
        self.several.load(Ordering::Relaxed)
    }

    /// Remembers that these have.
    pub(crate) fn need_several(&self, tables: u32) {
        self.several.fetch_or(tables, Ordering::Relaxed);
    }

    /// Whether more groups are sorted than one block sorts.
    pub(crate) fn many_sorted(&self) -> bool {
        self.many_sorted.load(Ordering::Relaxed)
    }

    /// Remembers that they are.
    pub(crate) fn need_many_sorted(&self) {
        self.many_sorted.store(true, Ordering::Relaxed);
    }

    /// Keeps a binding of this fragment.
    pub(crate) fn keep(&self, binding: &Arc<Binding>) {
        let old = self.binding.lock().replace(binding.clone());
        let latest = self.latest.lock().replace(binding.clone());
        // Their recordings go without a lock.
        drop((old, latest));
    }

    /// The last binding of any fragment of the shape, if it was made by these guesses and its columns are still on the
    /// device.
    pub(crate) fn latest(&self, guesses: Guesses) -> Option<Arc<Binding>> {
        let mut latest = self.latest.lock();
        // One whose columns have left is of no use any more.
        let gone = latest.take_if(|binding| !binding.is_alive());
        let found = latest.as_ref().filter(|binding| binding.guesses == guesses).cloned();
        drop(latest);
        drop(gone);
        found
    }
}

/// What an admission found.
pub(crate) enum Found {
    /// A binding of an earlier run, or one that was taken over.
    Kept(Arc<Binding>),
    /// A fragment just bound, not compiled yet.
    New(Box<BoundFragment>),
}

impl Found {
    /// The bound fragment.
    pub(crate) fn fragment(&self) -> &BoundFragment {
        match self {
            Found::Kept(binding) => &binding.fragment,
            Found::New(fragment) => fragment,
        }
    }
}
