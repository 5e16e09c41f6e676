//! The launches of a bound fragment over one arena, recorded so that a repeat is one call.
//!
//! Constants are uploaded, the arena is zeroed, the launch groups run in order, groups are gathered where that is a
//! step of its own, and what the host reads comes back. The device's time is from after the upload to the last kernel's
//! end.

use std::time::Duration;

use warpcube_gpu::{Device, DeviceBuffer, Kernel, LaunchShape, Mark, Output, Params, Recording, Stream, Work};

use crate::arena::Arena;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::sink::Grouping;
use crate::error::Result;
use crate::exec::bind::Root;
use crate::exec::binding::{Binding, Finish, Kernels};
use crate::exec::topk::TopRun;
use crate::plan::table::{BuiltTable, Matches, RunEnds};
use crate::tuning::Tuning;

/// A recording with what to read of it.
pub(crate) struct Recorded {
    recording: Recording,
    /// After the upload, then after each launch if `times_launches`, else after the last.
    marks: Vec<Mark>,
    times_launches: bool,
    outputs: Vec<Output>,
}

impl Recorded {
    /// Records the launches of a binding over an arena.
    pub(crate) fn new(
        binding: &Binding,
        arena: &DeviceBuffer,
        device: &Device,
        stream: &mut Stream,
        times_launches: bool,
        tuning: &Tuning,
    ) -> Result<Recorded> {
        let bound = &binding.fragment;
        let at = |zone| bound.arena.offset(zone);
        // A point in time between two launches would keep the second from starting early.
        let early = tuning.early_launch && !times_launches;
        let mut work = Work::new(device);
        work.upload(arena, 0, &bound.arena.constants(arena.pointer()))?;
        let mut marks = vec![work.mark()];
        let (offset, bytes) = bound.arena.zeroed_range();
        work.fill(arena, offset, 0, bytes)?;
        let Kernels { launches, finish, matches, ends } = binding.kernels.as_ref();
        let top = match (&bound.root, finish) {
            (Root::TopK(top), Finish::TopK(kernels)) => {
                Some((top, TopRun { device, kernels, layout: &bound.arena, arena }))
            }
            _ => None,
        };
        for (index, (group, launch)) in bound.launch_groups.iter().zip(launches).enumerate() {
            let is_root = index + 1 == bound.launch_groups.len();
            if let Some((top, run)) = top.as_ref().filter(|_| is_root) {
                top.record_sample(&mut work, run)?;
            }
            let members = group.members.iter().map(|index| &bound.pipelines[*index]);
            let params =
                members.fold(Params::new(), |params, member| params_of(params, &member.params, &bound.arena, arena));
            let params = launch.firsts.iter().fold(params, |params, first| params.u64(u64::from(*first)));
            let last_block = bound.top().filter(|_| group.last_block.is_some());
            let params = last_block
                .iter()
                .fold(params, |params, top| params_of(params, &top.gather_params, &bound.arena, arena));
            // Columns are read through the read-only cache, which a kernel that starts early may have filled before
            // groups were written.
            let scans_groups = group.members.iter().any(|index| bound.pipelines[*index].scans_groups);
            // What stands before the root of a top-k with a sample, or with kernels of its own behind it, is no launch.
            let early = early && index > 0 && !(is_root && top.is_some()) && !scans_groups;
            work.launch(&launch.kernel, launch.shape, &params, early)?;
            if let Some(kernels) = matches {
                let tables = group.members.iter().filter_map(|index| bound.pipelines[*index].matches());
                tables
                    .into_iter()
                    .try_for_each(|table| gather(&mut work, table, kernels, (&bound.arena, arena), device))?;
            }
            if let Some(kernel) = ends {
                let tables = group.members.iter().filter_map(|index| bound.pipelines[*index].table_with_ends());
                tables.into_iter().try_for_each(|table| enter_ends(&mut work, table, kernel, (&bound.arena, arena)))?;
            }
            if times_launches {
                marks.push(work.mark());
            }
        }
        let outputs = match (&bound.root, finish) {
            (Root::TopK(bound), _) => {
                if let Some((top, run)) = &top {
                    top.record_result(&mut work, run)?;
                }
                marks.push(work.mark());
                let bytes = binding.first_bytes().min(bound.output.bytes());
                vec![work.download(arena, at(bound.output), bytes)?]
            }
            (Root::Groups(groups, Some(compacted)), Finish::Compact(kernel)) => {
                let params = Params::new()
                    .buffer_at(arena, at(bound.control))
                    .buffer_at(arena, at(groups.seen))
                    .buffer_at(arena, at(groups.cells))
                    .buffer_at(arena, at(compacted.zone))
                    .u64(groups.places)
                    .u64(groups.cell_count as u64)
                    .u64(u64::from(groups.grouping == Grouping::Hashed) + u64::from(groups.words.is_some()))
                    .buffer_at(arena, at(groups.words.unwrap_or(groups.seen)))
                    .u64(groups.pack.words as u64)
                    .u64(groups.copies);
                let grid = (groups.places.div_ceil(256) as u32).clamp(1, device.info().multiprocessors * 8);
                work.launch(kernel, LaunchShape { grid, block: 256, shared_bytes: 0 }, &params, early)?;
                marks.push(work.mark());
                let bytes = binding.first_bytes().min(compacted.zone.bytes());
                vec![work.download(arena, at(compacted.zone), bytes)?]
            }
            (Root::Rows(rows), _) => {
                if !times_launches {
                    marks.push(work.mark());
                }
                let bytes = binding.first_bytes().min(rows.output.bytes());
                let head = work.download(arena, at(bound.control), 16)?;
                vec![head, work.download(arena, at(rows.output), bytes)?]
            }
            (Root::Groups(groups, _), _) => {
                if !times_launches {
                    marks.push(work.mark());
                }
                let (seen, end) = (at(groups.seen), at(groups.cells) + groups.cells.bytes());
                vec![work.download(arena, at(bound.control), 16)?, work.download(arena, seen, end - seen)?]
            }
        };
        Ok(Recorded { recording: stream.prepare(work)?, marks, times_launches, outputs })
    }

    /// Whether this is a recording over `arena`, with or without a time for each launch group.
    pub(crate) fn is_for(&self, arena: &DeviceBuffer, times_launches: bool) -> bool {
        self.times_launches == times_launches && self.recording.is_on(&[arena])
    }

    /// Runs all and waits for it.
    pub(crate) fn run(&mut self, stream: &mut Stream, arena: &DeviceBuffer) -> Result<()> {
        Ok(stream.run(&mut self.recording, &[arena])?)
    }

    /// What was downloaded: control and groups, or the compacted groups.
    pub(crate) fn outputs(&self) -> Result<Vec<&[u8]>> {
        Ok(self.outputs.iter().map(|output| self.recording.output(output)).collect::<Result<_, _>>()?)
    }

    /// Time on the device of the last run.
    pub(crate) fn device_time(&self) -> Result<Duration> {
        self.between(0, self.marks.len() - 1)
    }

    /// Time of one launch of the last run, if launches were timed.
    pub(crate) fn launch_time(&self, group: usize) -> Result<Option<Duration>> {
        self.times_launches.then(|| self.between(group, group + 1)).transpose()
    }

    fn between(&self, from: usize, to: usize) -> Result<Duration> {
        let milliseconds = self.recording.elapsed_ms(self.marks[from], self.marks[to])?;
        Ok(Duration::from_secs_f64(milliseconds.max(0.0) / 1e3))
    }
}

/// Launches what lays the rows of each key of a table side by side.
fn gather(
    work: &mut Work,
    matches: &Matches,
    (place, order): &(Kernel, Kernel),
    (layout, arena): (&Arena, &DeviceBuffer),
    device: &Device,
) -> Result<()> {
    let at = |params: Params, zone| params.buffer_at(arena, layout.offset(zone));
    let grid = |threads: u64| (threads.div_ceil(256) as u32).clamp(1, device.info().multiprocessors * 8);
    let shape = |threads: u64| LaunchShape { grid: grid(threads), block: 256, shared_bytes: 0 };
    let params = [matches.counts, matches.firsts, matches.total].into_iter().fold(Params::new(), at);
    work.launch(place, shape(matches.places), &params.u64(matches.places), false)?;
    let params = [matches.entries, matches.ranks, matches.firsts, matches.order].into_iter().fold(Params::new(), at);
    Ok(work.launch(order, shape(matches.rows), &params.u64(matches.rows), false)?)
}

/// Launches what enters the first and the last runs of steps into a table, a column at a time.
fn enter_ends(
    work: &mut Work,
    (table, ends): (&BuiltTable, RunEnds),
    kernel: &Kernel,
    (layout, arena): (&Arena, &DeviceBuffer),
) -> Result<()> {
    for (index, column) in table.payload.iter().enumerate() {
        let width = if column.c_type == "uint32_t" { 4 } else { 8 };
        let params = Params::new()
            .buffer_at(arena, layout.offset(ends.seen))
            .buffer_at(arena, layout.offset(ends.cells) + index * 8 * ends.slots as usize)
            .buffer_at(arena, layout.offset(column.zone))
            .u64(width)
            .u64(ends.slots);
        let shape = LaunchShape { grid: (ends.slots.div_ceil(256) as u32).max(1), block: 256, shared_bytes: 0 };
        work.launch(kernel, shape, &params, false)?;
    }
    Ok(())
}

/// Adds a kernel's parameters, for an arena with this layout.
pub(crate) fn params_of(params: Params, list: &ParamList, layout: &Arena, arena: &DeviceBuffer) -> Params {
    list.arguments().fold(params, |params, argument| match argument {
        Argument::Zone(zone) => params.buffer_at(arena, layout.offset(*zone)),
        Argument::I64(value) => params.i64(*value),
        Argument::U64(value) => params.u64(*value),
        Argument::F64(value) => params.f64(*value),
    })
}
