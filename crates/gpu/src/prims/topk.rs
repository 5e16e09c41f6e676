//! Top-k: the k largest or smallest keys of a slice and their rows, in order.
//!
//! # Contract
//!
//! `launch` gives `min(k, n)` keys in order, largest first (smallest first for [`Order::Smallest`]), each with its row;
//! of equal keys the smaller row comes first. Keys pass through their ordered bits: one NaN, larger than all other
//! floats, and one zero. No row is given twice. Where more rows equal the last key than places are left,
//! [`Ties::Any`] takes any of them (the filter appends rows equal to the threshold only until k are held) and the rows
//! may differ from run to run; [`Ties::FirstRows`] takes those with the smallest rows, so the result is determined.
//! Several ORDER BY keys are one key of their ordered bits packed into `u64` or `u128`, complemented where directions
//! differ: then the threshold covers all of them.
//!
//! All decisions that depend on keys are taken on the device. Scratch memory of threshold, radix and bucket select: an
//! eighth of the input's bytes at most, beside O(k) and [`FIXED_BYTES_MAX`]. Heaps take 2 k candidates a thread in two
//! pools, Bitonic Top-K an eighth or a sixteenth of the candidates with their rows, and 1.5 of all below
//! [`BitonicLevel::Fused`]; sort and choose takes two copies of all keys and rows, and up to 2.5 % of one beside.

mod algorithm;
mod bitonic;
mod model;
mod plan;
mod reference;
mod sort_and_choose;

pub use algorithm::{Algorithm, BitonicLevel};
pub use model::{Machine, finish_ms, predict_ms};
pub use plan::{BLOCK_SORT_MAX, FIXED_BYTES_MAX};
pub use reference::{check, top_k};

use crate::backend::DeviceInfo;
use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::prims::{DeviceSlice, Element, KEYS, ONE_BLOCK, Queue, check_element, check_length, check_scratch};
use crate::program::Program;
use bitonic::Bitonic;
use plan::{Range, Shapes, TopKPlan};
use sort_and_choose::SortAndChoose;

const COMMON: &str = include_str!("../../kernels/prims/topk/common.cuh");
const CUT: &str = include_str!("../../kernels/prims/topk/cut.cuh");
const CANDIDATES: &str = include_str!("../../kernels/prims/topk/candidates.cuh");
const FILTER: &str = include_str!("../../kernels/prims/topk/filter.cuh");
const SELECT: &str = include_str!("../../kernels/prims/topk/select.cuh");
const TIES: &str = include_str!("../../kernels/prims/topk/ties.cuh");
const BLOCK_SORT: &str = include_str!("../../kernels/prims/topk/block_sort.cuh");
const FINISH: &str = include_str!("../../kernels/prims/topk/finish.cuh");
const SORT: &str = include_str!("../../kernels/prims/topk/sort.cuh");
const HEAP: &str = include_str!("../../kernels/prims/topk/heap.cuh");
const CHOOSE: &str = include_str!("../../kernels/prims/topk/choose.cuh");
const BITONIC: &str = include_str!("../../kernels/prims/topk/bitonic.cuh");

/// The largest k.
pub const K_MAX: u64 = 1 << 20;

/// Which keys are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The largest, in descending order.
    Largest,
    /// The smallest, in ascending order.
    Smallest,
}

/// Which rows are taken of those that equal the last key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ties {
    /// Any.
    Any,
    /// Those with the smallest rows; up to one more pass over the keys where there are more than places.
    FirstRows,
}

/// What a launcher is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopKSpec {
    /// Type of the keys.
    pub element: Element,
    /// Type of row ids: [`Element::U32`] or [`Element::U64`].
    pub rows: Element,
    /// Which keys are wanted.
    pub order: Order,
    /// Which rows are taken of those that equal the last key.
    pub ties: Ties,
    /// Length of the result, at most [`K_MAX`].
    pub k: u64,
    /// How they are found.
    pub algorithm: Algorithm,
    /// Whether keys of the smallest rank stand for nothing, such as places that no row has taken. Where all keys are
    /// candidates and the result is long, or [`TopKSpec::keys`] are few, they are not put in order: behind the other
    /// keys both outputs stay as they were.
    pub skips_smallest: bool,
    /// Number of keys of every launch, where it is known: kernels that none of them takes are not compiled, and up to
    /// [`BLOCK_SORT_MAX`] of them are sorted by one kernel.
    pub keys: Option<u64>,
}

impl TopKSpec {
    /// The k largest keys with 64-bit rows, any of equal ones.
    pub fn new(element: Element, k: u64, algorithm: Algorithm) -> TopKSpec {
        TopKSpec {
            element,
            rows: Element::U64,
            order: Order::Largest,
            ties: Ties::Any,
            k,
            algorithm,
            skips_smallest: false,
            keys: None,
        }
    }

    /// What [`TopK::new`] compiles on a device, for callers that compile it beside other programs.
    pub fn programs(&self, info: &DeviceInfo) -> Vec<Program> {
        match self.algorithm {
            Algorithm::Bitonic(level) => vec![bitonic_program(self, level, TOPK_TUNING)],
            Algorithm::SortAndChoose => {
                let sort = sort_and_choose::sort_program(self, info.shared_memory_per_block);
                vec![choose_program(self, TOPK_TUNING), sort]
            }
            _ => PassPrograms::new(self, TOPK_TUNING).all().collect(),
        }
    }

    /// Refuses a type of rows, a k or an algorithm that cannot be on a device.
    ///
    /// # Errors
    /// [`GpuError::Contract`], as [`TopK::new`] gives it.
    pub fn check(&self, info: &DeviceInfo) -> Result<()> {
        check_spec(self, &Shapes::new(info, self, TOPK_TUNING))
    }

    /// Scratch memory for `n` keys on a device in bytes, as [`TopK::scratch_bytes`] of a launcher made for it.
    pub fn scratch_bytes(&self, info: &DeviceInfo, n: u64) -> usize {
        scratch_bytes(self, &Shapes::new(info, self, TOPK_TUNING), n)
    }
}

fn scratch_bytes(spec: &TopKSpec, shapes: &Shapes, n: u64) -> usize {
    match spec.algorithm {
        _ if spec.k.min(n) == 0 || plan::is_block_sorted(spec) => 0,
        Algorithm::Bitonic(level) => bitonic::scratch_bytes(spec, level, n),
        Algorithm::SortAndChoose => sort_and_choose::scratch_bytes(spec, shapes.shared_bytes_max, n),
        _ => TopKPlan::new(spec, shapes, n).bytes,
    }
}

/// Sizes of the kernels' launches, part of the program but for `bucket_max`.
#[derive(Debug, Clone, Copy)]
pub struct TopKTuning {
    /// 16-byte loads that a lane has in flight.
    pub vectors: u32,
    /// Threads of a block of the filter.
    pub filter_threads: u32,
    /// Blocks of the filter a multiprocessor.
    pub filter_blocks: u32,
    /// Threads of a block of a selection pass.
    pub select_threads: u32,
    /// Blocks of a selection pass a multiprocessor.
    pub select_blocks: u32,
    /// Candidates that a bucket of the final sort may have in shared memory, where that has room for them.
    pub bucket_max: u64,
}

/// Four loads a lane and 1,024 threads a multiprocessor: 64 KB in flight, where 40 KB reach the bandwidth of an H200.
/// The filter alone over 2^29 f32 on an H200 (2026-11-23, with a launch): 0.497 ms where no key passes with loads of
/// the next chunk in flight, 0.514 without; 0.529 where 1.34 million pass, 0.546 in blocks of 256 threads, 0.568
/// without loads in flight. Prefetches to the L2 cache in place of them: 0.55 and 0.60.
pub const TOPK_TUNING: TopKTuning = TopKTuning {
    vectors: 4,
    filter_threads: 512,
    filter_blocks: 2,
    select_threads: 256,
    select_blocks: 4,
    bucket_max: 4096,
};

/// A launcher of top-k.
pub struct TopK {
    spec: TopKSpec,
    shapes: Shapes,
    kernels: Kernels,
}

enum Kernels {
    /// Algorithms that end with candidates, the best of which are sorted.
    Candidates(Box<Passes>),
    Bitonic(Box<Bitonic>),
    Sorted(Box<SortAndChoose>),
}

struct Passes {
    /// The only kernel, where it is there.
    block_sort: Option<Kernel>,
    filter: Option<FilterKernels>,
    heap: Option<Kernel>,
    select: Option<SelectKernels>,
    finish: Option<Kernel>,
    sort: Option<SortKernels>,
}

struct FilterKernels {
    sample: Kernel,
    filter: Kernel,
}

struct SelectKernels {
    extent: Kernel,
    select: Kernel,
    tie_count: Kernel,
    tie_take: Kernel,
}

struct SortKernels {
    lists: Kernel,
    split: Kernel,
    count: Kernel,
    scatter: Kernel,
    sort_buckets: Kernel,
}

/// The programs of [`Passes`], so many because a launch takes few of their kernels and large programs compile slowly.
struct PassPrograms {
    block_sort: Option<Program>,
    filter: Option<Program>,
    heap: Option<Program>,
    select: Option<Program>,
    finish: Option<Program>,
    sort: Option<Program>,
}

impl PassPrograms {
    fn new(spec: &TopKSpec, tuning: TopKTuning) -> PassPrograms {
        let parts = |name: &str, parts: &[&str]| program(name, spec, tuning, "", parts);
        let (shortest, longest) = (spec.k.min(spec.keys.unwrap_or(0)), spec.k.min(spec.keys.unwrap_or(spec.k)));
        let is_heap = matches!(spec.algorithm, Algorithm::HeapShared | Algorithm::HeapRegisters);
        if plan::is_block_sorted(spec) {
            let (filter, heap, select, finish, sort) = Default::default();
            let block_sort = Some(parts("topk_block_sort", &[BLOCK_SORT]));
            return PassPrograms { block_sort, filter, heap, select, finish, sort };
        }
        PassPrograms {
            block_sort: None,
            filter: (spec.algorithm == Algorithm::Threshold).then(|| parts("topk_filter", &[CUT, FILTER])),
            heap: is_heap.then(|| heap_program(spec, tuning)),
            select: takes_selection(spec).then(|| parts("topk_select", &[CUT, SELECT, TIES])),
            finish: (shortest <= plan::SMALL).then(|| parts("topk_finish", &[CUT, CANDIDATES, FINISH])),
            sort: (longest > plan::SMALL).then(|| parts("topk_sort", &[CANDIDATES, SORT])),
        }
    }

    fn all(self) -> impl Iterator<Item = Program> {
        [self.block_sort, self.filter, self.heap, self.select, self.finish, self.sort].into_iter().flatten()
    }
}

/// Whether a launch may take passes of selection, or one for ties.
fn takes_selection(spec: &TopKSpec) -> bool {
    let samples = spec.keys.is_none_or(|keys| plan::samples(keys, spec.k));
    spec.algorithm != Algorithm::Threshold || spec.ties == Ties::FirstRows || samples
}

impl TopK {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for a type of rows, a k or an algorithm that cannot be, errors of compilation otherwise.
    pub fn new(device: &Device, spec: &TopKSpec) -> Result<TopK> {
        TopK::with_tuning(device, spec, TOPK_TUNING)
    }

    /// The same with other sizes of launches.
    ///
    /// # Errors
    /// As [`TopK::new`].
    pub fn with_tuning(device: &Device, spec: &TopKSpec, tuning: TopKTuning) -> Result<TopK> {
        let shapes = Shapes::new(device.info(), spec, tuning);
        check_spec(spec, &shapes)?;
        let kernels = match spec.algorithm {
            Algorithm::Bitonic(level) => {
                let module = device.compile(&bitonic_program(spec, level, tuning))?;
                Kernels::Bitonic(Box::new(Bitonic::new(&module, spec, level, shapes.multiprocessors)?))
            }
            Algorithm::SortAndChoose => {
                let module = device.compile(&choose_program(spec, tuning))?;
                Kernels::Sorted(Box::new(SortAndChoose::new(device, &module, spec)?))
            }
            _ => Kernels::Candidates(Box::new(Passes::new(device, spec, tuning)?)),
        };
        Ok(TopK { spec: *spec, shapes, kernels })
    }

    /// What it was made for.
    pub fn spec(&self) -> &TopKSpec {
        &self.spec
    }

    /// Length of the result for `n` keys.
    pub fn results(&self, n: u64) -> u64 {
        self.spec.k.min(n)
    }

    /// Scratch memory for `n` keys, in bytes.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        scratch_bytes(&self.spec, &self.shapes, n)
    }

    /// Finds the result; both outputs are [`TopK::results`] long.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for operands of other types or lengths, too little scratch memory, or more keys than row
    /// ids; errors of the queue otherwise.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        keys: &DeviceSlice,
        out_keys: &DeviceSlice,
        out_rows: &DeviceSlice,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let (n, results) = (keys.len(), self.results(keys.len()));
        check_element("top-k", "the slice of keys", keys, self.spec.element)?;
        check_element("top-k", "the slice for keys", out_keys, self.spec.element)?;
        check_element("top-k", "the slice for rows", out_rows, self.spec.rows)?;
        check_length("top-k", "the slice for keys", out_keys, results)?;
        check_length("top-k", "the slice for rows", out_rows, results)?;
        check_scratch("top-k", scratch, self.scratch_bytes(n))?;
        let rows_max = if self.spec.rows == Element::U32 { 1 << 32 } else { plan::ROWS_MAX };
        if self.spec.keys.is_some_and(|keys| keys != n) {
            let message = format!("top-k: {n} keys, and the launcher is made for {:?}", self.spec.keys);
            return Err(GpuError::Contract(message));
        }
        if n > rows_max {
            return Err(GpuError::Contract(format!(
                "top-k: {n} keys, and row ids of {} reach {rows_max}",
                self.spec.rows
            )));
        }
        if results == 0 {
            return Ok(());
        }
        match &self.kernels {
            Kernels::Candidates(passes) => {
                let plan = TopKPlan::new(&self.spec, &self.shapes, n);
                Run { spec: &self.spec, shapes: &self.shapes, passes, plan, keys, scratch }
                    .launch(queue, out_keys, out_rows)
            }
            Kernels::Bitonic(bitonic) => bitonic.launch(queue, keys, out_keys, out_rows, scratch),
            Kernels::Sorted(sort) => sort.launch(queue, keys, out_keys, out_rows, scratch),
        }
    }
}

impl Passes {
    fn new(device: &Device, spec: &TopKSpec, tuning: TopKTuning) -> Result<Passes> {
        let programs = PassPrograms::new(spec, tuning);
        let module = |program: &Option<Program>| program.as_ref().map(|program| device.compile(program)).transpose();
        let block_sort = module(&programs.block_sort)?.map(|module| module.kernel("topk_block_sort"));
        let filter = module(&programs.filter)?.map(|module| -> Result<FilterKernels> {
            Ok(FilterKernels { sample: module.kernel("topk_sample")?, filter: module.kernel("topk_filter")? })
        });
        let heap_name =
            if spec.algorithm == Algorithm::HeapShared { "topk_heap_shared" } else { "topk_heap_registers" };
        let heap = module(&programs.heap)?.map(|module| module.kernel(heap_name));
        let select = module(&programs.select)?.map(|module| -> Result<SelectKernels> {
            Ok(SelectKernels {
                extent: module.kernel("topk_extent")?,
                select: module.kernel("topk_select")?,
                tie_count: module.kernel("topk_tie_count")?,
                tie_take: module.kernel("topk_tie_take")?,
            })
        });
        let finish = module(&programs.finish)?.map(|module| module.kernel("topk_finish"));
        let sort = module(&programs.sort)?.map(|module| -> Result<SortKernels> {
            Ok(SortKernels {
                lists: module.kernel("topk_lists")?,
                split: module.kernel("topk_split")?,
                count: module.kernel("topk_count")?,
                scatter: module.kernel("topk_scatter")?,
                sort_buckets: module.kernel("topk_sort_buckets")?,
            })
        });
        Ok(Passes {
            block_sort: block_sort.transpose()?,
            filter: filter.transpose()?,
            heap: heap.transpose()?,
            select: select.transpose()?,
            finish: finish.transpose()?,
            sort: sort.transpose()?,
        })
    }
}

/// One launch over operands that were checked.
struct Run<'a> {
    spec: &'a TopKSpec,
    shapes: &'a Shapes,
    passes: &'a Passes,
    plan: TopKPlan,
    keys: &'a DeviceSlice,
    scratch: &'a DeviceBuffer,
}

impl Run<'_> {
    fn launch(&self, queue: &mut impl Queue, out_keys: &DeviceSlice, out_rows: &DeviceSlice) -> Result<()> {
        let Passes { block_sort, filter, heap, select, .. } = self.passes;
        if let Some(block_sort) = block_sort {
            let places = self.shapes.block_sort_places(self.plan.n);
            let params = Params::new().slice(self.keys).u64(self.plan.n).u64(places).u64(self.plan.results);
            let params = params.u64(self.spec.skips_smallest.into()).slice(out_keys).slice(out_rows);
            return queue.launch(block_sort, self.shapes.block_sort(self.plan.n), &params);
        }
        queue.fill(self.scratch, 0, 0, self.plan.zeroed)?;
        // A program that is not there is one that no launch takes.
        if let Some(kernels) = filter {
            if let Some(sample) = &self.plan.sample {
                let params = self.input().append(self.pointers(&[self.plan.kept]));
                let params = params.u64(sample.keep).u64(sample.rank);
                queue.launch(&kernels.sample, self.shapes.sample(sample.blocks), &params)?;
            }
            let params = self.input().append(self.list()).u64(self.plan.above_max).u64(self.plan.equal_max);
            queue.launch(&kernels.filter, self.shapes.filter(), &params)?;
        }
        if let Some(heap) = heap {
            let pools = self.pointers(&[self.plan.pool_ranks, self.plan.pool_rows]);
            let params = self.input().append(pools).u64(self.plan.pool_max).u64(self.plan.results);
            queue.launch(heap, self.shapes.heap(self.spec), &params)?;
        }
        if let Some(kernels) = select {
            match self.spec.algorithm {
                // Without a sample all keys are candidates.
                Algorithm::Threshold if self.plan.sample.is_none() => {}
                Algorithm::Threshold => self.select(queue, kernels, 0)?,
                Algorithm::RadixSelect => self.select(queue, kernels, 1)?,
                Algorithm::BucketSelect => {
                    let params = self.input().append(self.pointers(&[self.plan.extents])).u64(self.plan.results);
                    queue.launch(&kernels.extent, self.shapes.extent(), &params)?;
                    self.select(queue, kernels, 2)?;
                }
                _ => self.select(queue, kernels, 2)?,
            }
            if self.spec.ties == Ties::FirstRows {
                self.first_rows(queue, kernels)?;
            }
        }
        self.finish(queue, out_keys, out_rows)
    }

    /// Passes until each digit is decided, and one that takes what is left.
    fn select(&self, queue: &mut impl Queue, kernels: &SelectKernels, start: u64) -> Result<()> {
        for pass in 0..self.shapes.select_passes() {
            let params = self.input().append(self.pointers(&[self.plan.bins])).append(self.list());
            let params = params.u64(self.plan.above_max).u64(self.plan.equal_max);
            let params = params.append(self.pointers(&[self.plan.pool_ranks, self.plan.pool_rows]));
            let params = params.u64(self.plan.pool_max).u64(self.plan.results);
            let params = params.u64(start).u64(u64::from(pass == 0));
            queue.launch(&kernels.select, self.shapes.select(), &params)?;
        }
        Ok(())
    }

    fn first_rows(&self, queue: &mut impl Queue, kernels: &SelectKernels) -> Result<()> {
        let params = self.input().append(self.list()).u64(self.plan.above_max).u64(self.plan.equal_max);
        let params = params.u64(self.plan.results).append(self.pointers(&[self.plan.tie_counts]));
        let params = params.u64(plan::TIE_RANGES).u64(self.plan.n.div_ceil(plan::TIE_RANGES));
        queue.launch(&kernels.tie_count, self.shapes.ties(), &params)?;
        queue.launch(&kernels.tie_take, self.shapes.ties(), &params)
    }

    fn finish(&self, queue: &mut impl Queue, out_keys: &DeviceSlice, out_rows: &DeviceSlice) -> Result<()> {
        let (plan, Passes { finish, sort, .. }) = (&self.plan, self.passes);
        let params = self.pointers(&[plan.state]).append(self.list()).u64(plan.above_max).u64(plan.equal_max);
        let params = params.u64(plan.results);
        match (&plan.sort, finish, sort) {
            (None, Some(finish), _) => {
                let params = params.slice(out_keys).slice(out_rows).u64(self.shapes.staged_max());
                queue.launch(finish, self.shapes.finish(), &params)
            }
            (Some(sort), _, Some(kernels)) => {
                let params = params.u64(sort.buckets).append(self.pointers(&[sort.lists, sort.splitters]));
                let params = params.append(self.pointers(&[sort.sizes, sort.starts, sort.bases, sort.bucket_of]));
                let params = params.append(self.pointers(&[sort.sorted])).slice(out_keys).slice(out_rows);
                let params = params.u64(self.shapes.bucket_max());
                queue.launch(&kernels.lists, self.shapes.lists(sort), &params)?;
                queue.launch(&kernels.split, self.shapes.split(sort), &params)?;
                queue.launch(&kernels.count, self.shapes.count(sort), &params)?;
                queue.launch(&kernels.scatter, self.shapes.scatter(sort), &params)?;
                queue.launch(&kernels.sort_buckets, self.shapes.sort_buckets(sort), &params)
            }
            _ => Err(GpuError::Contract(format!("top-k: a result of {} keys was not compiled for", plan.results))),
        }
    }

    /// What most parameter structs begin with: keys, their number, the state.
    fn input(&self) -> Params {
        Params::new().slice(self.keys).u64(self.plan.n).append(self.pointers(&[self.plan.state]))
    }

    fn list(&self) -> Params {
        self.pointers(&[self.plan.ranks, self.plan.rows])
    }

    fn pointers(&self, ranges: &[Range]) -> Params {
        ranges.iter().fold(Params::new(), |params, range| params.buffer_at(self.scratch, range.offset))
    }
}

/// Refuses what cannot be.
fn check_spec(spec: &TopKSpec, shapes: &Shapes) -> Result<()> {
    let refuse = |message: String| Err(GpuError::Contract(format!("top-k: {message}")));
    if !matches!(spec.rows, Element::U32 | Element::U64) {
        return refuse(format!("row ids of {}; they are u32 or u64", spec.rows));
    }
    if spec.k > K_MAX {
        return refuse(format!("k is {}, and the largest is {K_MAX}", spec.k));
    }
    let k_max = plan::k_max(spec, shapes.shared_bytes_max);
    if spec.k > k_max {
        return refuse(format!("k is {}, and {} of {} ends at {k_max}", spec.k, spec.algorithm, spec.element));
    }
    Ok(())
}

/// A program of some kernels, for the types and the tuning of a launcher.
fn program(name: &str, spec: &TopKSpec, tuning: TopKTuning, more: &str, parts: &[&str]) -> Program {
    let defines = format!(
        "#define TOPK_KEY {}\n#define TOPK_ROW {}\n#define TOPK_SMALLEST {}\n#define TOPK_VECTORS {}u\n\
         #define TOPK_THREADS {}\n#define TOPK_BLOCKS {}\n#define TOPK_SELECT_THREADS {}\n\
         #define TOPK_SELECT_BLOCKS {}\n",
        spec.element.c_type(),
        spec.rows.c_type(),
        u32::from(spec.order == Order::Smallest),
        tuning.vectors,
        tuning.filter_threads,
        tuning.filter_blocks,
        tuning.select_threads,
        tuning.select_blocks,
    );
    Program::new(name, format!("{more}{defines}{KEYS}{ONE_BLOCK}{COMMON}{}", parts.concat()))
}

fn choose_program(spec: &TopKSpec, tuning: TopKTuning) -> Program {
    program("topk_choose", spec, tuning, "", &[CHOOSE])
}

fn bitonic_program(spec: &TopKSpec, level: BitonicLevel, tuning: TopKTuning) -> Program {
    program("topk_bitonic", spec, tuning, &bitonic::defines(spec, level), &[BITONIC])
}

fn heap_program(spec: &TopKSpec, tuning: TopKTuning) -> Program {
    let shared = u32::from(spec.algorithm == Algorithm::HeapShared);
    let threads = plan::heap_threads(spec);
    let more = format!(
        "#define TOPK_HEAP_SHARED {shared}\n#define TOPK_HEAP_K {}u\n#define TOPK_HEAP_THREADS {threads}\n",
        spec.k.max(1)
    );
    program("topk_heap", spec, tuning, &more, &[HEAP])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::{compile_for_gpus, compile_for_hopper};

    #[test]
    fn kernels_compile_for_gpus() {
        let algorithms = [
            (4, Algorithm::Threshold),
            (4000, Algorithm::Threshold),
            (4, Algorithm::SortAndChoose),
            (4, Algorithm::HeapShared),
            (4, Algorithm::HeapRegisters),
            (32, Algorithm::Bitonic(BitonicLevel::Fused)),
            (256, Algorithm::Bitonic(BitonicLevel::Reassigned)),
        ];
        let types = [
            (Element::F32, Element::U32, Order::Largest),
            (Element::I64, Element::U64, Order::Smallest),
            (Element::U128, Element::U32, Order::Largest),
        ];
        for (element, rows, order) in types {
            for (k, algorithm) in algorithms {
                let spec = TopKSpec { rows, order, ..TopKSpec::new(element, k, algorithm) };
                let programs = match algorithm {
                    Algorithm::Bitonic(level) => vec![bitonic_program(&spec, level, TOPK_TUNING)],
                    Algorithm::SortAndChoose => vec![choose_program(&spec, TOPK_TUNING)],
                    _ => PassPrograms::new(&spec, TOPK_TUNING).all().collect(),
                };
                // Every type for one architecture, one type for all.
                let compile = if element == Element::F32 { compile_for_gpus } else { compile_for_hopper };
                programs.iter().for_each(compile);
            }
            let few = TopKSpec { rows, order, keys: Some(100), ..TopKSpec::new(element, 100, Algorithm::Threshold) };
            PassPrograms::new(&few, TOPK_TUNING).all().for_each(|program| compile_for_hopper(&program));
        }
    }
}
