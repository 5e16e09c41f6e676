//! A run as a list of phases ([`crate::exec::phase`]); what the list says is done in its order.
//!
//! The phases of a binding hold no decision of the host, so that they are recorded once and replayed by one call
//! ([`crate::exec::recorded`]).

use warpcube_gpu::{DeviceInfo, Kernel};

use crate::arena::Region;
use crate::codegen::memory::{BoundGroups, BoundTable, CONTROL_HEAD_BYTES, TICKETS_OFFSET};
use crate::codegen::params::Argument;
use crate::codegen::pipeline::BoundPipeline;
use crate::codegen::sink::BoundSink;
use crate::codegen::stop_memory::TICKETS_STRIDE;
use crate::codegen::topk::BoundTop;
use crate::exec::bind::Root;
use crate::exec::binding::{Binding, Finish, Kernels};
use crate::exec::phase::{Host, Launch, Phase, Primitive, Scanned, blocks};
use crate::exec::topk::TopKernels;
use crate::plan::groups::Grouping;
use crate::plan::table::PayloadColumn;
use crate::tuning::Tuning;

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
    let Kernels { launches, finish, tops, matches, ends } = binding.kernels.as_ref();
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
        let scanned: Vec<(&BoundTop, &TopKernels)> = tops
            .iter()
            .filter(|(pipeline, _)| group.members.contains(pipeline))
            .filter_map(|(pipeline, kernels)| match &bound.pipelines[*pipeline].sink {
                BoundSink::TopK(top) => Some((&**top, kernels)),
                _ => None,
            })
            .collect();
        scanned.iter().for_each(|(top, kernels)| phases.extend(top.sample_phases(kernels, info)));
        let firsts = || launch.firsts.iter().map(|first| Argument::U64(u64::from(*first)));
        let last_block = bound.top().filter(|_| group.last_block(&bound.pipelines).is_some());
        let last_block = || last_block.into_iter().flat_map(|top| top.gather_params.arguments()).cloned();
        // Columns are read through the read-only cache, which a kernel that starts early may have filled before groups
        // were written. What stands before the root of a top-k with a sample, or with kernels of its own behind it, is
        // no launch.
        let scans_groups = members().any(|member| member.plan.scans_groups);
        let is_top = is_root && top.is_some() || !scanned.is_empty();
        let early = early && index > from.unwrap_or(0) && !is_top && !scans_groups;
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
        scanned.iter().for_each(|(top, kernels)| phases.extend(top.result_phases(kernels, info)));
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
        |region: Region| Phase::Host(Host::Takes { from: region, bytes: binding.first_bytes().min(region.bytes()) });
    let head = Phase::Host(Host::Takes { from: bound.control, bytes: CONTROL_HEAD_BYTES });
    let time = Phase::Host(Host::Time);
    match (&bound.root, finish) {
        (Root::TopK(bound), _) => {
            if let Some((top, kernels)) = top {
                phases.extend(top.result_phases(kernels, info));
            }
            phases.extend([time, first_bytes(bound.memory.output)]);
        }
        (Root::Groups(groups, Some(gathered)), Finish::Gather(kernel)) => {
            let operands = match &gathered.computed {
                Some(computed) => computed.params.arguments().cloned().collect(),
                None => compacting(groups, bound.control, gathered.region),
            };
            let launch = Launch { early, ..Launch::over(kernel, groups.places, blocks(info), operands) };
            phases.extend([Phase::Launch(launch), time, first_bytes(gathered.region)]);
        }
        (Root::Rows(rows), _) => {
            phases.extend(Some(time).filter(|_| !times_launches));
            phases.extend([head, first_bytes(rows.memory)]);
        }
        (Root::Groups(groups, _), _) => {
            phases.extend(Some(time).filter(|_| !times_launches));
            // Cells lie behind marks.
            let (seen, cells) = (groups.memory.seen, groups.memory.cells.unwrap_or(groups.memory.seen));
            let bytes = bound.arena.offset(cells) + cells.bytes() - bound.arena.offset(seen);
            phases.extend([head, Phase::Host(Host::Takes { from: seen, bytes })]);
        }
    }
    phases
}

/// The operands of the kernel that gathers groups.
fn compacting(groups: &BoundGroups, control: Region, output: Region) -> Vec<Argument> {
    let regions = &groups.memory;
    let states = u64::from(groups.grouping == Grouping::Hashed) + u64::from(groups.pack.is_wide());
    // Distances of marks, and of cells of a group and of neighbours.
    let (marks, cells, neighbours) = match groups.slot_words() {
        Some(words) => (words as u64, 1, words as u64),
        None => (1, groups.places, 1),
    };
    vec![
        Argument::Region(control),
        Argument::Region(regions.seen),
        regions.first_cell(groups),
        Argument::Region(output),
        Argument::U64(groups.places),
        Argument::U64(groups.cell_count as u64),
        Argument::U64(states),
        Argument::U64(groups.pack.words as u64),
        Argument::U64(groups.copies),
        Argument::U64(marks),
        Argument::U64(cells),
        Argument::U64(neighbours),
    ]
}

/// What has a pipeline's tickets drawn from the first one on again.
fn drawn_anew<'a>(control: Region, pipeline: usize) -> Phase<'a> {
    let distance = TICKETS_OFFSET + TICKETS_STRIDE * pipeline;
    Phase::Primitive(Primitive::Clear { region: control, distance, bytes: 4 })
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
        let operands = |regions: &[Region], count: u64| {
            let regions = regions.iter().map(|region| Argument::Region(*region));
            regions.chain([Argument::U64(count)]).collect::<Vec<_>>()
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
    let phase = |(index, (column, region)): (usize, (&PayloadColumn, &Region))| {
        let operands = vec![
            Argument::Region(ends.seen),
            Argument::Within(ends.cells, index * 8 * slots as usize),
            Argument::Region(*region),
            Argument::U64(column.width),
            Argument::U64(slots),
        ];
        Phase::Launch(Launch::over(kernel, slots, u32::MAX, operands))
    };
    columns.map(phase).collect()
}
