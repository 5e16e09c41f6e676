//! Launches of Bitonic Top-K (paper 003, 4.4.3), with its optimisations up to a level.

use std::sync::Arc;

use super::{BitonicLevel, TopKSpec};
use crate::backend::LaunchShape;
use crate::buffer::DeviceBuffer;
use crate::device::{Kernel, Module};
use crate::error::Result;
use crate::launch::Params;
use crate::prims::{DeviceSlice, Queue};

/// Candidates that the last kernel sorts.
const LAST: u64 = 2048;
/// Threads of a block that steps through device memory, and blocks a multiprocessor.
const STEP_THREADS: u32 = 256;
const STEP_BLOCKS: u32 = 8;
/// Least threads of a tile.
const TILE_THREADS_MIN: u64 = 256;

/// Sizes that the program is compiled for.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Length of a run, a power of two.
    run: u64,
    /// Keys a thread.
    keys: u64,
    threads: u64,
}

impl Sizes {
    fn new(k: u64, level: BitonicLevel) -> Sizes {
        let run = k.max(1).next_power_of_two();
        // Eight keys a thread are the paper's choice while banks conflict, sixteen where they do not.
        let keys = if level >= BitonicLevel::Padded { 16 } else { 8 };
        Sizes { run, keys, threads: run.max(TILE_THREADS_MIN) }
    }

    fn tile(&self) -> u64 {
        self.threads * self.keys
    }

    /// Shared memory of a tile.
    fn bytes(&self, pair_bytes: usize, level: BitonicLevel) -> usize {
        let slots = if level == BitonicLevel::Padded { self.tile() + self.tile() / 32 } else { self.tile() };
        slots as usize * pair_bytes
    }
}

/// The largest k whose tile fits in so much shared memory.
pub(super) fn k_max(level: BitonicLevel, pair_bytes: usize, shared_bytes_max: usize) -> u64 {
    let fits = |k: &u64| Sizes::new(*k, level).bytes(pair_bytes, level) <= shared_bytes_max;
    [1024, 512, 256].into_iter().find(fits).unwrap_or(0)
}

/// The macros of the program.
pub(super) fn defines(spec: &TopKSpec, level: BitonicLevel) -> String {
    let sizes = Sizes::new(spec.k, level);
    format!(
        "#define TOPK_LEVEL {}\n#define TOPK_K {}u\n#define TOPK_X {}u\n#define TOPK_LOG_X {}u\n\
         #define TOPK_TILE_THREADS {}u\n",
        level as u32,
        sizes.run,
        sizes.keys,
        sizes.keys.ilog2(),
        sizes.threads,
    )
}

/// Candidates of the first and of the second buffer.
fn capacities(sizes: &Sizes, level: BitonicLevel, n: u64) -> [u64; 2] {
    let (tile, threads) = (sizes.tile(), sizes.threads);
    if level >= BitonicLevel::Fused {
        let first = n.div_ceil(tile) * threads;
        return [first, first.div_ceil(tile) * threads];
    }
    let first = n.next_multiple_of(tile);
    [first, (first / 2).next_multiple_of(tile)]
}

/// Bytes of ranks and of rows of so many candidates.
fn place_bytes(spec: &TopKSpec, count: u64) -> [usize; 2] {
    [spec.element, spec.rows].map(|element| (count as usize * element.bytes()).next_multiple_of(256))
}

/// Scratch memory of a launch over `n` keys in bytes.
pub(super) fn scratch_bytes(spec: &TopKSpec, level: BitonicLevel, n: u64) -> usize {
    capacities(&Sizes::new(spec.k, level), level, n).into_iter().flat_map(|count| place_bytes(spec, count)).sum()
}

/// The launcher.
pub(super) struct Bitonic {
    spec: TopKSpec,
    level: BitonicLevel,
    sizes: Sizes,
    pair_bytes: usize,
    multiprocessors: u32,
    sort_reduce: Kernel,
    reduce: Kernel,
    sort_runs: Kernel,
    rebuild_runs: Kernel,
    load_items: Kernel,
    step: Kernel,
    merge_runs: Kernel,
    sort_last: Kernel,
}

/// Candidates in scratch memory, or the keys.
#[derive(Clone, Copy)]
struct Items {
    /// Where ranks and rows lie; none are the keys.
    place: Option<(usize, usize)>,
    count: u64,
}

impl Bitonic {
    pub(super) fn new(
        module: &Arc<Module>,
        spec: &TopKSpec,
        level: BitonicLevel,
        multiprocessors: u32,
    ) -> Result<Bitonic> {
        Ok(Bitonic {
            spec: *spec,
            level,
            sizes: Sizes::new(spec.k, level),
            pair_bytes: spec.element.bytes() + spec.rows.bytes(),
            multiprocessors,
            sort_reduce: module.kernel("topk_sort_reduce")?,
            reduce: module.kernel("topk_reduce")?,
            sort_runs: module.kernel("topk_sort_runs")?,
            rebuild_runs: module.kernel("topk_rebuild_runs")?,
            load_items: module.kernel("topk_load_items")?,
            step: module.kernel("topk_step")?,
            merge_runs: module.kernel("topk_merge_runs")?,
            sort_last: module.kernel("topk_sort_last")?,
        })
    }

    /// Places of both buffers.
    fn places(&self, n: u64) -> [(usize, usize); 2] {
        let [first, second] = capacities(&self.sizes, self.level, n).map(|count| place_bytes(&self.spec, count));
        let start = first[0] + first[1];
        [(0, first[0]), (start, start + second[0])]
    }

    pub(super) fn launch(
        &self,
        queue: &mut impl Queue,
        keys: &DeviceSlice,
        out_keys: &DeviceSlice,
        out_rows: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let mut run = Run { bitonic: self, queue, keys, scratch, places: self.places(keys.len()), next: 0 };
        let items = Items { place: None, count: keys.len() };
        let last = match self.level {
            BitonicLevel::Global => run.in_global(items)?,
            BitonicLevel::Shared => run.in_shared(items)?,
            _ => run.fused(items)?,
        };
        let params = run.params(last, None).slice(out_rows).u64(0).u64(0).u64(out_keys.len()).slice(out_keys);
        let shared_bytes = LAST as u32 * self.pair_bytes as u32;
        queue.launch(&self.sort_last, LaunchShape { grid: 1, block: 1024, shared_bytes }, &params)
    }
}

/// One launch.
struct Run<'a, Q> {
    bitonic: &'a Bitonic,
    queue: &'a mut Q,
    keys: &'a DeviceSlice,
    scratch: &'a DeviceBuffer,
    places: [(usize, usize); 2],
    /// The buffer that is written next.
    next: usize,
}

impl<Q: Queue> Run<'_, Q> {
    /// Parameters up to `ranks_out`, and `rows_out` where `to` is given.
    fn params(&self, from: Items, to: Option<Items>) -> Params {
        let at = |params: Params, place: usize| params.buffer_at(self.scratch, place);
        let params = match from.place {
            None => Params::new().slice(self.keys).null().null(),
            Some((ranks, rows)) => at(at(Params::new().null(), ranks), rows),
        };
        let params = params.u64(from.count);
        match to.and_then(|to| to.place) {
            Some((ranks, rows)) => at(at(params, ranks), rows),
            None => params.null(),
        }
    }

    fn launch(
        &mut self,
        kernel: &Kernel,
        shape: LaunchShape,
        from: Items,
        to: Items,
        distance: u64,
        length: u64,
    ) -> Result<()> {
        let params = self.params(from, Some(to)).u64(distance).u64(length).u64(0).null();
        self.queue.launch(kernel, shape, &params)
    }

    /// The buffer that is not read, for so many candidates.
    fn target(&mut self, count: u64) -> Items {
        let place = self.places[self.next];
        self.next = 1 - self.next;
        Items { place: Some(place), count }
    }

    fn tiles(&self, count: u64) -> LaunchShape {
        let sizes = &self.bitonic.sizes;
        LaunchShape {
            grid: count.div_ceil(sizes.tile()) as u32,
            block: sizes.threads as u32,
            shared_bytes: sizes.bytes(self.bitonic.pair_bytes, self.bitonic.level) as u32,
        }
    }

    fn steps(&self) -> LaunchShape {
        let grid = self.bitonic.multiprocessors * STEP_BLOCKS;
        LaunchShape { grid, block: STEP_THREADS, shared_bytes: 0 }
    }

    fn fused(&mut self, keys: Items) -> Result<Items> {
        let bitonic = self.bitonic;
        let mut items = keys;
        while items.place.is_none() || items.count > LAST {
            let shape = self.tiles(items.count);
            let to = self.target(u64::from(shape.grid) * bitonic.sizes.threads);
            let kernel = if items.place.is_none() { &bitonic.sort_reduce } else { &bitonic.reduce };
            self.launch(kernel, shape, items, to, 0, 0)?;
            items = to;
        }
        Ok(items)
    }

    fn in_shared(&mut self, keys: Items) -> Result<Items> {
        let bitonic = self.bitonic;
        let shape = self.tiles(keys.count);
        let mut items = self.target(u64::from(shape.grid) * bitonic.sizes.tile());
        self.launch(&bitonic.sort_runs, shape, keys, items, 0, 0)?;
        while items.count > LAST {
            let merged = self.merge(items)?;
            let shape = self.tiles(merged.count);
            self.launch(&bitonic.rebuild_runs, shape, merged, merged, 0, 0)?;
            items = merged;
        }
        Ok(items)
    }

    fn in_global(&mut self, keys: Items) -> Result<Items> {
        let (bitonic, run) = (self.bitonic, self.bitonic.sizes.run);
        let mut items = self.target(keys.count.next_multiple_of(run));
        self.launch(&bitonic.load_items, self.steps(), keys, items, 0, items.count)?;
        let mut length = 2;
        while length <= run {
            self.rebuild(items, length)?;
            length *= 2;
        }
        while items.count > LAST {
            items = self.merge(items)?;
            self.rebuild(items, run)?;
        }
        Ok(items)
    }

    /// The better half of each pair of runs; the last one stays where it has no other.
    fn merge(&mut self, items: Items) -> Result<Items> {
        let run = self.bitonic.sizes.run;
        let merged = self.target(items.count.div_ceil(2 * run) * run);
        self.launch(&self.bitonic.merge_runs, self.steps(), items, merged, 0, merged.count)?;
        Ok(merged)
    }

    /// Sorts bitonic sequences of `length`, a kernel a distance.
    fn rebuild(&mut self, items: Items, length: u64) -> Result<()> {
        let mut distance = length / 2;
        while distance > 0 {
            self.launch(&self.bitonic.step, self.steps(), items, items, distance, length)?;
            distance /= 2;
        }
        Ok(())
    }
}
