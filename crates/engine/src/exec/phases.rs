//! A run as a list of phases: what the host gives, kernels of the fragment, primitives of `gpu::prims`, and what comes
//! back. Each names its operands as zones of the arena; what the list says is done in its order.
//!
//! The phases of a binding hold no decision of the host, so that they are recorded once and replayed by one call
//! ([`crate::exec::recorded`]).

use warpcube_gpu::prims::topk::TopK as Selection;
use warpcube_gpu::prims::{DeviceSlice, Element, Sort, SortKey};
use warpcube_gpu::{DeviceBuffer, DeviceInfo, Kernel, LaunchShape, Mark, Output, Params, Work};

use crate::arena::{Arena, Zone};
use crate::codegen::memory::{BoundTable, CONTROL_HEAD_BYTES, TICKETS_OFFSET, TICKETS_STRIDE};
use crate::codegen::params::{Argument, Counted};
use crate::codegen::pipeline::BoundPipeline;
use crate::error::Result;
use crate::exec::bind::Root;
use crate::exec::binding::{Binding, Finish, Kernels};
use crate::plan::groups::Grouping;
use crate::plan::pipeline::PipelinePlan;
use crate::plan::table::PayloadColumn;
use crate::tuning::Tuning;

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
    fn of(plan: &PipelinePlan, launch: usize) -> Scanned {
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

/// A zone of so many elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) zone: Zone,
    pub(crate) element: Element,
    pub(crate) len: u64,
}

/// Work of a primitive.
pub(crate) enum Primitive<'a> {
    /// What has to be zero at first is.
    Zero,
    /// So many bytes of a zone, from a distance on, are zero.
    Clear { zone: Zone, distance: usize, bytes: usize },
    /// The best of some ranks are put in order, with the places they had.
    Select { selection: &'a Selection, ranks: Slice, best: Slice, rows: Slice, scratch: Zone },
    /// The places of rows by their keys, the most significant one first.
    Sort { sort: &'a Sort, keys: Vec<Slice>, rows: Slice, scratch: Zone },
}

/// What the host gives or takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Host {
    /// The constants of the arena.
    Constants,
    /// A point in time.
    Time,
    /// The bytes from a zone on, so many.
    Takes { from: Zone, bytes: usize },
}

/// What the host gets of phases.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) marks: Vec<Mark>,
    pub(crate) outputs: Vec<Output>,
}

impl Phase<'_> {
    /// Adds the phase to work over an arena of this layout.
    pub(crate) fn record(
        &self,
        work: &mut Work,
        (layout, arena): (&Arena, &DeviceBuffer),
        taken: &mut Taken,
    ) -> Result<()> {
        let at = |zone: Zone| layout.offset(zone);
        let slice = |of: &Slice| DeviceSlice::new(arena, at(of.zone), of.element, of.len);
        match self {
            Phase::Launch(Launch { kernel, shape, operands, early }) => {
                let params = operands.iter().fold(Params::new(), |params, (operand, scan)| match operand {
                    Argument::Zone(zone) => params.buffer_at(arena, at(*zone)),
                    Argument::Within(zone, distance) => params.buffer_at(arena, at(*zone) + distance),
                    Argument::Chunk(zone, bytes) => params.buffer_at(arena, at(*zone) + scan.first_chunk * bytes),
                    Argument::Launch(zone, bytes) => params.buffer_at(arena, at(*zone) + scan.number * bytes),
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
            Phase::Primitive(Primitive::Clear { zone, distance, bytes }) => {
                work.fill(arena, at(*zone) + distance, 0, *bytes)?;
            }
            Phase::Primitive(Primitive::Select { selection, ranks, best, rows, scratch }) => {
                let scratch = arena.part(at(*scratch), scratch.bytes())?;
                selection.launch(work, &slice(ranks)?, &slice(best)?, &slice(rows)?, &scratch)?;
            }
            Phase::Primitive(Primitive::Sort { sort, keys, rows, scratch }) => {
                let scratch = arena.part(at(*scratch), scratch.bytes())?;
                let keys = keys.iter().map(slice).collect::<std::result::Result<Vec<_>, _>>()?;
                let keys: Vec<SortKey> = keys.iter().map(|values| SortKey { values, valid: None }).collect();
                sort.launch(work, &keys, &slice(rows)?, &scratch)?;
            }
            Phase::Host(Host::Constants) => work.upload(arena, 0, &layout.constants(arena.pointer()))?,
            Phase::Host(Host::Time) => taken.marks.push(work.mark()),
            Phase::Host(Host::Takes { from, bytes }) => {
                taken.outputs.push(work.download(arena, at(*from), *bytes)?);
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

/// The phases of a binding. The device's time is from after the upload to the last kernel's end, and where launches are
/// timed there is a point in time behind each launch group. A run that goes on `from` a launch group has its constants
/// and what was left; of this group's members those go on that resume, others are done.
pub(crate) fn phases<'a>(
    binding: &'a Binding,
    info: &DeviceInfo,
    (times_launches, from): (bool, Option<usize>),
    tuning: &Tuning,
) -> Vec<Phase<'a>> {
    let bound = &binding.fragment;
    // A point in time between two launches would keep the second from starting early.
    let early = tuning.early_launch && !times_launches;
    let begin = [Phase::Host(Host::Constants), Phase::Host(Host::Time), Phase::Primitive(Primitive::Zero)];
    let mut phases = match from {
        None => Vec::from(begin),
        Some(_) => vec![Phase::Host(Host::Time)],
    };
    let Kernels { launches, finish, matches, ends } = binding.kernels.as_ref();
    let top = match (&bound.root, finish) {
        (Root::TopK(top), Finish::TopK(kernels)) => Some((top, kernels)),
        _ => None,
    };
    for (index, (group, launch)) in bound.launch_groups.iter().zip(launches).enumerate().skip(from.unwrap_or(0)) {
        let is_done = |member: &BoundPipeline| from == Some(index) && member.stop.is_none();
        let is_root = index + 1 == bound.launch_groups.len();
        let members = || group.members.iter().map(|index| &bound.pipelines[*index]);
        if let Some((top, kernels)) = top.filter(|_| is_root) {
            phases.extend(top.sample_phases(kernels, info));
        }
        let firsts = || launch.firsts.iter().map(|first| Argument::U64(u64::from(*first)));
        let last_block = bound.top().filter(|_| group.last_block(&bound.pipelines).is_some());
        let last_block = || last_block.into_iter().flat_map(|top| top.gather_params.arguments()).cloned();
        // Columns are read through the read-only cache, which a kernel that starts early may have filled before groups
        // were written. What stands before the root of a top-k with a sample, or with kernels of its own behind it, is
        // no launch.
        let scans_groups = members().any(|member| member.plan.scans_groups);
        let early = early && index > 0 && !(is_root && top.is_some()) && !scans_groups;
        for number in 0..group.launches(&bound.pipelines) {
            if number > 0 {
                phases.extend(group.members.iter().map(|index| drawn_anew(bound.control, *index)));
            }
            let of_members = members().flat_map(|member| {
                let scanned = if is_done(member) { Scanned::default() } else { Scanned::of(&member.plan, number) };
                member.params.arguments().map(move |operand| (operand.clone(), scanned))
            });
            let others = firsts().chain(last_block()).map(|operand| (operand, Scanned::default()));
            let operands = of_members.chain(others).collect();
            let (kernel, shape, early) = (&launch.kernel, launch.shape, early && number == 0);
            phases.push(Phase::Launch(Launch { kernel, shape, operands, early }));
        }
        let tables = || members().filter_map(|member| member.table());
        if let Some((place, order)) = matches {
            tables().for_each(|table| phases.extend(gathering(table, (place, order), info)));
        }
        if let Some(kernel) = ends {
            tables().for_each(|table| phases.extend(entering_ends(table, kernel)));
        }
        if times_launches {
            phases.push(Phase::Host(Host::Time));
        }
    }
    let first_bytes =
        |zone: Zone| Phase::Host(Host::Takes { from: zone, bytes: binding.first_bytes().min(zone.bytes()) });
    let head = Phase::Host(Host::Takes { from: bound.control, bytes: CONTROL_HEAD_BYTES });
    let time = Phase::Host(Host::Time);
    match (&bound.root, finish) {
        (Root::TopK(bound), _) => {
            if let Some((top, kernels)) = top {
                phases.extend(top.result_phases(kernels, info));
            }
            phases.extend([time, first_bytes(bound.memory.output)]);
        }
        (Root::Groups(groups, Some(compacted)), Finish::Compact(kernel)) => {
            let zones = &groups.memory;
            let states = u64::from(groups.grouping == Grouping::Hashed) + u64::from(zones.words.is_some());
            let operands = vec![
                Argument::Zone(bound.control),
                Argument::Zone(zones.seen),
                Argument::Zone(zones.cells),
                Argument::Zone(compacted.zone),
                Argument::U64(groups.places),
                Argument::U64(groups.cell_count as u64),
                Argument::U64(states),
                Argument::Zone(zones.words.unwrap_or(zones.seen)),
                Argument::U64(groups.pack.words as u64),
                Argument::U64(groups.copies),
            ];
            let launch = Launch { early, ..Launch::over(kernel, groups.places, blocks(info), operands) };
            phases.extend([Phase::Launch(launch), time, first_bytes(compacted.zone)]);
        }
        (Root::Rows(rows), _) => {
            phases.extend(Some(time).filter(|_| !times_launches));
            phases.extend([head, first_bytes(rows.memory)]);
        }
        (Root::Groups(groups, _), _) => {
            phases.extend(Some(time).filter(|_| !times_launches));
            // Cells lie behind marks.
            let (seen, cells) = (groups.memory.seen, groups.memory.cells);
            let bytes = bound.arena.offset(cells) + cells.bytes() - bound.arena.offset(seen);
            phases.extend([head, Phase::Host(Host::Takes { from: seen, bytes })]);
        }
    }
    phases
}

/// What has a pipeline's tickets drawn from the first one on again.
fn drawn_anew<'a>(control: Zone, pipeline: usize) -> Phase<'a> {
    let distance = TICKETS_OFFSET + TICKETS_STRIDE * pipeline;
    Phase::Primitive(Primitive::Clear { zone: control, distance, bytes: 4 })
}

/// What lays the rows of each key of a table side by side, if a key may have several.
fn gathering<'a>(
    table: &BoundTable,
    (place, order): (&'a Kernel, &'a Kernel),
    info: &DeviceInfo,
) -> impl Iterator<Item = Phase<'a>> {
    let matches = table.matches.as_ref().zip(table.memory.matches);
    let (places, most) = (table.places, blocks(info));
    matches.into_iter().flat_map(move |(plan, at)| {
        let operands = |zones: &[Zone], count: u64| {
            let zones = zones.iter().map(|zone| Argument::Zone(*zone));
            zones.chain([Argument::U64(count)]).collect::<Vec<_>>()
        };
        let of_places = operands(&[at.counts, at.firsts, at.total], places);
        let of_rows = operands(&[at.entries, at.ranks, at.firsts, at.order], plan.rows);
        let placed = Launch::over(place, places, most, of_places);
        [Phase::Launch(placed), Phase::Launch(Launch::over(order, plan.rows, most, of_rows))]
    })
}

/// What enters the first and the last runs of steps into a table, a column at a time, if these are elsewhere.
fn entering_ends<'a>(table: &BoundTable, kernel: &'a Kernel) -> Vec<Phase<'a>> {
    let Some((slots, ends)) = table.ends.zip(table.memory.ends) else { return Vec::new() };
    let columns = table.payload.iter().zip(&table.memory.payload).enumerate();
    let phase = |(index, (column, zone)): (usize, (&PayloadColumn, &Zone))| {
        let operands = vec![
            Argument::Zone(ends.seen),
            Argument::Within(ends.cells, index * 8 * slots as usize),
            Argument::Zone(*zone),
            Argument::U64(column.width),
            Argument::U64(slots),
        ];
        Phase::Launch(Launch::over(kernel, slots, u32::MAX, operands))
    };
    columns.map(phase).collect()
}
