//! One step of a run: what the host gives, a kernel of the fragment, a primitive of `gpu::prims`, or what comes back.
//! Each names its operands as regions of the arena.

use warpcube_gpu::prims::topk::TopK as Selection;
use warpcube_gpu::prims::{DeviceSlice, Element, Scan, ScanKeyed, Sort, SortKey};
use warpcube_gpu::{DeviceBuffer, DeviceInfo, Kernel, LaunchShape, Mark, Output, Params, Work};

use crate::arena::{Arena, Region};
use crate::codegen::params::{Argument, Counted};
use crate::error::Result;
use crate::plan::pipeline::PipelinePlan;

/// Threads of a block of kernels that take an entry or a row a thread, and blocks a multiprocessor.
pub(super) const BLOCK: u32 = 256;
const BLOCKS: u32 = 8;

/// One step of a run.
pub(crate) enum Phase<'a> {
    /// A kernel.
    Launch(Launch<'a>),
    /// Work of a primitive.
    Primitive(Primitive<'a>),
    /// What the host gives or takes.
    Host(Host),
}

/// A launch of a kernel.
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) shape: LaunchShape,
    /// Each with what the launch scans for it.
    pub(crate) operands: Vec<(Argument, Scanned)>,
    /// Whether it may start while what is before it ends.
    pub(crate) early: bool,
}

/// What a launch scans for a pipeline.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scanned {
    /// Number of the launch.
    number: usize,
    first_chunk: usize,
    chunks: u64,
    tickets: u64,
    vectors: u64,
}

impl Scanned {
    /// What a launch scans of a pipeline, by its number; nothing behind the last one.
    pub(super) fn of(plan: &PipelinePlan, launch: usize) -> Scanned {
        let scanned = plan.tickets.get(launch).map(|tickets| Scanned {
            number: launch,
            first_chunk: tickets.chunks.start,
            chunks: tickets.chunks.len() as u64,
            tickets: tickets.count.into(),
            vectors: tickets.vectors.into(),
        });
        scanned.unwrap_or_default()
    }
}

/// So many elements of a region, from a distance in bytes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) region: Region,
    pub(crate) distance: usize,
    pub(crate) element: Element,
    pub(crate) len: u64,
}

/// Work of a primitive.
pub(crate) enum Primitive<'a> {
    /// What has to be zero at first is.
    Zero,
    /// So many bytes of a region, from a distance on, are zero.
    Clear { region: Region, distance: usize, bytes: usize },
    /// The best of some ranks are put in order, with the places they had.
    Select { selection: &'a Selection, ranks: Slice, best: Slice, rows: Slice, scratch: Region },
    /// The places of rows by their keys, the most significant one first, or values of rows, if any; without either the
    /// keys alone.
    Sort { sort: &'a Sort, keys: Vec<Slice>, values: Option<Slice>, rows: Option<Slice>, scratch: Region },
    /// Values are joined with all before them, which may be written where they lie.
    Scan { scan: &'a Scan, values: Slice, joined: Slice, scratch: Region },
    /// Values are joined with those before them in a run of equal keys.
    ScanKeyed { scan: &'a ScanKeyed, keys: Slice, values: Slice, scratch: Region },
}

/// What the host gives or takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Host {
    /// The constants of the arena.
    Constants,
    /// A point in time.
    Time,
    /// The bytes from a region on, so many.
    Takes { from: Region, bytes: usize },
}

/// What the host gets of phases.
#[derive(Default)]
pub(crate) struct HostOutputs {
    pub(crate) marks: Vec<Mark>,
    pub(crate) outputs: Vec<Output>,
}

impl Phase<'_> {
    /// Adds the phase to work over an arena of this layout.
    pub(crate) fn record(
        &self,
        work: &mut Work,
        (layout, arena): (&Arena, &DeviceBuffer),
        got: &mut HostOutputs,
    ) -> Result<()> {
        let at = |region: Region| layout.offset(region);
        let slice = |of: &Slice| DeviceSlice::new(arena, at(of.region) + of.distance, of.element, of.len);
        match self {
            Phase::Launch(Launch { kernel, shape, operands, early }) => {
                let params = operands.iter().fold(Params::new(), |params, (operand, scan)| match operand {
                    Argument::Region(region) => params.buffer_at(arena, at(*region)),
                    Argument::Within(region, distance) => params.buffer_at(arena, at(*region) + distance),
                    Argument::Chunk(region, bytes) => params.buffer_at(arena, at(*region) + scan.first_chunk * bytes),
                    Argument::Launch(region, bytes) => params.buffer_at(arena, at(*region) + scan.number * bytes),
                    Argument::Count(Counted::Chunks) => params.u64(scan.chunks),
                    Argument::Count(Counted::Tickets) => params.u64(scan.tickets),
                    Argument::Count(Counted::Vectors) => params.u64(scan.vectors),
                    Argument::I64(value) => params.i64(*value),
                    Argument::U64(value) => params.u64(*value),
                    Argument::F64(value) => params.f64(*value),
                });
                work.launch(kernel, *shape, &params, *early)?;
            }
            Phase::Primitive(Primitive::Zero) => {
                let (offset, bytes) = layout.zeroed_range();
                work.fill(arena, offset, 0, bytes)?;
            }
            Phase::Primitive(Primitive::Clear { region, distance, bytes }) => {
                work.fill(arena, at(*region) + distance, 0, *bytes)?;
            }
            Phase::Primitive(Primitive::Select { selection, ranks, best, rows, scratch }) => {
                let scratch = arena.part(at(*scratch), scratch.bytes())?;
                selection.launch(work, &slice(ranks)?, &slice(best)?, &slice(rows)?, &scratch)?;
            }
            Phase::Primitive(Primitive::Sort { sort, keys, values, rows, scratch }) => {
                let scratch = arena.part(at(*scratch), scratch.bytes())?;
                let keys = keys.iter().map(slice).collect::<std::result::Result<Vec<_>, _>>()?;
                let keys: Vec<SortKey> = keys.iter().map(|values| SortKey { values, valid: None }).collect();
                let rows = rows.as_ref().map(slice).transpose()?;
                let values = values.as_ref().map(slice).transpose()?;
                sort.launch_with(work, &keys, (values.as_ref(), rows.as_ref()), &scratch)?;
            }
            Phase::Primitive(Primitive::Scan { scan, values, joined, scratch }) => {
                let scratch = arena.part(at(*scratch), scratch.bytes())?;
                scan.launch(work, &slice(values)?, &slice(joined)?, &scratch)?;
            }
            Phase::Primitive(Primitive::ScanKeyed { scan, keys, values, scratch }) => {
                let scratch = arena.part(at(*scratch), scratch.bytes())?;
                let (keys, values) = (slice(keys)?, slice(values)?);
                scan.launch(work, [&keys, &values], &values, &scratch)?;
            }
            Phase::Host(Host::Constants) => work.upload(arena, 0, &layout.constants(arena.pointer()))?,
            Phase::Host(Host::Time) => got.marks.push(work.mark()),
            Phase::Host(Host::Takes { from, bytes }) => {
                got.outputs.push(work.download(arena, at(*from), *bytes)?);
            }
        }
        Ok(())
    }
}

impl<'a> Launch<'a> {
    /// A launch of a kernel that takes an entry or a row a thread, in at most so many blocks.
    pub(crate) fn over(kernel: &'a Kernel, threads: u64, most: u32, operands: Vec<Argument>) -> Launch<'a> {
        let grid = threads.div_ceil(BLOCK.into()).clamp(1, most.max(1).into()) as u32;
        let shape = LaunchShape { grid, block: BLOCK, shared_bytes: 0 };
        let operands = operands.into_iter().map(|operand| (operand, Scanned::default())).collect();
        Launch { kernel, shape, operands, early: false }
    }
}

/// Most blocks of a kernel that takes an entry or a row a thread.
pub(crate) fn blocks(info: &DeviceInfo) -> u32 {
    info.multiprocessors * BLOCKS
}
