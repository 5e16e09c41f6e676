//! Running a fragment: admit its columns, bind, compile, launch, read the result.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use warpcube_column::{Pinned, Relation, Residency, RowCount, TableRequest};
use warpcube_gpu::{
    Device, DeviceBuffer, Effort, GpuError, Kernel, LaunchShape, Module, Priority, Program, Stream, size_class,
};

use crate::codegen::memory::CANCEL_OFFSET;
use crate::error::{EngineError, NotCompiled, Result};
use crate::exec::bind::{BoundFragment, Guesses, Root, bind};
use crate::exec::binding::{Binding, BindingCache, BindingOrigin, Finish, Found, Kernels, Launch};
use crate::exec::constants::taken_over;
use crate::exec::read::{TooSmall, read};
use crate::exec::recorded::Recorded;
use crate::exec::report::{LaunchReport, RunOptions, RunReport};
use crate::facts::Texts;
use crate::ir::{Fragment, TopK};
use crate::plan::groups::GROUP_SLOTS_MAX;
use crate::plan::launches::LaunchGroup;
use crate::plan::topk_form;
use crate::tuning::Tuning;

/// How often a fragment is run again with another seed because keys of a join collided.
const LONG_RUNS_MAX: u32 = 3;
/// How often a top-k is run again because its threshold failed.
const THRESHOLDS_MAX: u32 = 3;
/// One device with the columns on it; runs fragments from any thread.
pub struct Engine {
    residency: Arc<Residency>,
    streams: Mutex<Vec<Stream>>,
    pub(crate) tuning: Tuning,
}

/// The tables of a run.
#[derive(Clone, Copy)]
enum Tables<'a> {
    /// They are loaded where they are not on the device.
    Asked(&'a [TableRequest]),
    /// They are there.
    Given(&'a [Relation]),
}

impl<'a> Tables<'a> {
    fn requests(self) -> &'a [TableRequest] {
        match self {
            Tables::Asked(requests) => requests,
            Tables::Given(_) => &[],
        }
    }

    /// Those that are given, or those that were asked for.
    fn or<'b>(self, asked: &'b [Relation]) -> &'b [Relation]
    where
        'a: 'b,
    {
        match self {
            Tables::Asked(_) => asked,
            Tables::Given(relations) => relations,
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A process that ends while something is compiled would take the compiler apart under its own hands.
        self.device().settle();
    }
}

impl Engine {
    /// An engine over a device with nothing on it.
    pub fn new(device: Device) -> Engine {
        Engine::over(Arc::new(Residency::new(device)))
    }

    /// An engine over the columns of a device, which others may share: all keep one budget.
    pub fn over(residency: Arc<Residency>) -> Engine {
        let tuning = Tuning::of(residency.device().info());
        Engine { residency, streams: Mutex::default(), tuning }
    }

    /// The same engine with other choices in its kernels.
    pub fn with_tuning(mut self, tuning: Tuning) -> Engine {
        self.tuning = tuning;
        self
    }

    /// The columns on the device.
    pub fn residency(&self) -> &Arc<Residency> {
        &self.residency
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.residency.device()
    }

    /// Why no bindings of a top-k of `rows` rows would run, as far as its algorithm alone tells.
    pub fn refusal(&self, top: &TopK, rows: u64) -> Option<String> {
        let k = top.k.filter(|k| *k <= rows)?;
        topk_form::refused(self.device().info(), k, top.algorithm)
    }

    /// Runs a fragment over its tables (`requests`, one for each of `fragment.tables`, in that order).
    ///
    /// The batch has the group columns, then the aggregates, in the fragment's order.
    ///
    /// # Errors
    /// See [`EngineError::falls_back`] for those after which the statement should run on the CPU.
    pub fn run(
        &self,
        fragment: &Fragment,
        requests: &[TableRequest],
        options: &RunOptions,
    ) -> Result<(RecordBatch, RunReport)> {
        self.run_again(fragment, &BindingCache::default(), requests, options)
    }

    /// As [`Engine::run_again`], over relations on this engine's device, one for each of `fragment.tables`: columns of
    /// other tables, and rows that only the device has counted.
    ///
    /// # Errors
    /// Those of [`Engine::run_again`]; malformed for relations of another device.
    pub fn run_over(
        &self,
        fragment: &Fragment,
        cache: &BindingCache,
        relations: &[Relation],
        options: &RunOptions,
    ) -> Result<(RecordBatch, RunReport)> {
        let is_here = |buffer: &DeviceBuffer| buffer.is_of(self.device());
        let are_here = |relation: &Relation| {
            let segments = || relation.columns.iter().flat_map(|column| column.segments());
            let buffers = segments().flat_map(|segment| std::iter::once(segment.values()).chain(segment.validity()));
            let lookups = relation.columns.iter().filter_map(|column| column.lookup());
            let counted = matches!(&relation.rows, RowCount::OnDevice(count) if !is_here(count));
            !counted && buffers.chain(lookups).all(is_here)
        };
        if !relations.iter().all(are_here) {
            return Err(EngineError::Malformed("a run over relations of another device".into()));
        }
        self.run_tables(fragment, cache, Tables::Given(relations), options)
    }

    /// As [`Engine::run`], for a fragment that is run repeatedly: `cache` is this fragment's own and keeps what binding
    /// found, for as long as the columns stay where they are.
    pub fn run_again(
        &self,
        fragment: &Fragment,
        cache: &BindingCache,
        requests: &[TableRequest],
        options: &RunOptions,
    ) -> Result<(RecordBatch, RunReport)> {
        self.run_tables(fragment, cache, Tables::Asked(requests), options)
    }

    fn run_tables(
        &self,
        fragment: &Fragment,
        cache: &BindingCache,
        tables: Tables,
        options: &RunOptions,
    ) -> Result<(RecordBatch, RunReport)> {
        let mut guesses = cache.guesses(options.group_slots);
        let mut report = RunReport::default();
        let mut long_runs = 0;
        loop {
            match self.attempt(fragment, cache, tables, options, guesses, &mut report)? {
                Ok(batch) => return Ok((batch, report)),
                Err(TooSmall::GroupTable) => {
                    let Some(slots) = enlarged(guesses.group_slots) else {
                        return crate::error::unsupported("more groups than the largest hash table holds");
                    };
                    cache.need_slots(slots);
                    // A table that is large enough is too full only for keys that collide.
                    (guesses.group_slots, guesses.seed) = (slots, cache.another_seed());
                }
                Err(TooSmall::LongRun) if !guesses.whole_tables => {
                    // More rows have passed than were expected, or keys collide.
                    guesses.whole_tables = true;
                    cache.need_whole_tables();
                    guesses.seed = cache.another_seed();
                }
                Err(TooSmall::LongRun) if long_runs == LONG_RUNS_MAX => {
                    return crate::error::unsupported("join keys that collide in a hash table whatever its seed");
                }
                Err(TooSmall::LongRun) => {
                    long_runs += 1;
                    guesses.seed = cache.another_seed();
                }
                Err(TooSmall::SeveralRows(tables)) => {
                    guesses.several |= tables;
                    cache.need_several(tables);
                }
                Err(TooSmall::BlockSort) => {
                    guesses.many_sorted = true;
                    cache.need_many_sorted();
                }
                Err(TooSmall::SumWindow) => {
                    guesses.whole_sums = true;
                    cache.need_whole_sums();
                }
                Err(TooSmall::Threshold) if guesses.failed_thresholds == THRESHOLDS_MAX => {
                    return crate::error::unsupported("a top-k whose samples mislead whatever their seed");
                }
                Err(TooSmall::Threshold) => {
                    guesses.failed_thresholds += 1;
                    guesses.seed = cache.another_seed();
                    cache.note_failed_threshold();
                }
            }
            report.reruns += 1;
        }
    }

    /// As [`Engine::run_again`], if the fragment, or another of its shape, is bound to the columns as they are and
    /// nothing has to be waited for but its own kernels; `None` otherwise, and where a guess proves too small.
    ///
    /// # Errors
    /// Those of [`Engine::run_again`].
    pub fn run_at_once(
        &self,
        fragment: &Fragment,
        cache: &BindingCache,
        requests: &[TableRequest],
        options: &RunOptions,
    ) -> Result<Option<(RecordBatch, RunReport)>> {
        let guesses = cache.guesses(options.group_slots);
        let own = cache.kept_by(guesses);
        let Some(known) = own.clone().or_else(|| cache.latest(guesses)) else { return Ok(None) };
        let bytes = size_class(known.fragment.arena.bytes().max(1)) as u64;
        let span = tracing::info_span!("admit").entered();
        let Some(pinned) = self.residency.admit_at_once(requests, &options.limits, bytes)? else { return Ok(None) };
        drop(span);
        if !known.is_for(&pinned.tables, guesses) {
            return Ok(None);
        }
        let (mut report, clock) = (RunReport::default(), Instant::now());
        let taken = || Some((taken_over(&known, fragment, cache)?, BindingOrigin::TakenOver));
        let Some((binding, origin)) = own.map(|own| (own, BindingOrigin::Kept)).or_else(taken) else {
            return Ok(None);
        };
        (report.bind, report.origin) = (clock.elapsed(), origin);
        let done = self.execute_kept(binding, cache, &pinned.tables, (options, guesses), &mut report)?;
        Ok(done.ok().map(|batch| (batch, report)))
    }

    /// Runs the binding of an earlier run, with better kernels if they are there by now.
    fn execute_kept(
        &self,
        binding: Arc<Binding>,
        cache: &BindingCache,
        tables: &[Relation],
        (options, guesses): (&RunOptions, Guesses),
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, TooSmall>> {
        if let Some(error) = binding.refused.get().filter(|_| options.groups_max.is_some()) {
            return Err(error.clone());
        }
        let binding = self.improved(binding, cache, tables, guesses);
        self.execute_bound(&binding, tables, options, report)
    }

    /// Runs a binding over the columns it is bound to.
    fn execute_bound(
        &self,
        binding: &Binding,
        tables: &[Relation],
        options: &RunOptions,
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, TooSmall>> {
        report.arena_bytes = binding.fragment.arena.bytes() as u64;
        report.bound = Some(binding.fragment.clone());
        report.top = binding.fragment.top().map(|top| top.decision.reason.clone());
        report.in_haste = binding.in_haste;
        self.execute(binding, tables, options, report).inspect_err(|error| {
            if matches!(error, EngineError::Unsupported(_)) {
                let _ = binding.refused.set(error.clone());
            }
        })
    }

    /// One try; the inner error is a guess that was too small.
    fn attempt(
        &self,
        fragment: &Fragment,
        cache: &BindingCache,
        asked: Tables,
        options: &RunOptions,
        guesses: Guesses,
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, TooSmall>> {
        let found: Mutex<Option<Found>> = Mutex::new(None);
        let start: Mutex<Option<(Duration, BindingOrigin)>> = Mutex::new(None);
        let span = tracing::info_span!("admit").entered();
        let pinned: Pinned = self.residency.admit(asked.requests(), &options.limits, |tables| -> Result<u64> {
            let (tables, clock) = (asked.or(tables), Instant::now());
            let _span = tracing::info_span!("bind").entered();
            let own = cache.get(tables, guesses);
            let latest = || cache.latest(guesses).filter(|latest| latest.is_for(tables, guesses));
            let taken = || latest().and_then(|latest| taken_over(&latest, fragment, cache));
            let (binding, origin) = match own {
                Some(own) => (Found::Kept(own), BindingOrigin::Kept),
                None => match taken() {
                    Some(taken) => (Found::Kept(taken), BindingOrigin::TakenOver),
                    None => {
                        let bound = bind(fragment, tables, self.device().info(), guesses, &self.tuning)?;
                        (Found::New(Box::new(bound)), BindingOrigin::Anew)
                    }
                },
            };
            let bytes = size_class(binding.fragment().arena.bytes().max(1)) as u64;
            *found.lock() = Some(binding);
            // Where admission asks again, it finds what it was told before.
            start.lock().get_or_insert((Duration::ZERO, origin)).0 += clock.elapsed();
            Ok(bytes)
        })?;
        drop(span);
        let (bind, origin) = start.into_inner().unwrap_or_default();
        report.bind += bind;
        report.origin = origin;
        report.loaded.add(&pinned.loaded);
        let tables = asked.or(&pinned.tables);
        match found.into_inner().expect("admission binds") {
            Found::Kept(binding) => self.execute_kept(binding, cache, tables, (options, guesses), report),
            Found::New(fragment) => {
                if let Some(folder) = &options.dump {
                    dump(fragment.program(), folder)?;
                }
                let binding = Arc::new(self.prepare(*fragment, tables, guesses, options.elsewhere, report)?);
                cache.keep(&binding);
                self.execute_bound(&binding, tables, options, report)
            }
        }
    }

    /// Compiles a bound fragment and chooses its launches.
    fn prepare(
        &self,
        fragment: BoundFragment,
        tables: &[Relation],
        guesses: Guesses,
        elsewhere: bool,
        report: &mut RunReport,
    ) -> Result<Binding> {
        let start = Instant::now();
        let _span = tracing::info_span!("compile").entered();
        let compiles = self.device().compiles();
        let emulated = u32::from(self.device().info().emulated);
        let (tiers, yields) = (self.tuning.tiers > emulated, elsewhere && self.tuning.yields > emulated);
        let in_haste = |program: &Program| match tiers && !self.device().is_cached(program) {
            true => program.with_effort(Effort::Least),
            false => program.clone(),
        };
        let first: Vec<Program> = fragment.parts.iter().map(in_haste).collect();
        let hasty = first != fragment.parts;
        // Programs that many fragments share are compiled beside those of this one, with all effort.
        let own = first.len();
        let all: Vec<Program> = first.into_iter().chain(fragment.shared_programs(self.device().info())).collect();
        if yields && !all.iter().all(|program| self.device().is_cached(program)) {
            let loaded = std::mem::take(&mut report.loaded);
            return Err(EngineError::NotCompiled(Arc::new(NotCompiled { programs: all, loaded })));
        }
        let modules = self.device().compile_all(&all)?;
        let kernels = self.kernels(&fragment, &modules[..own])?;
        report.compile += start.elapsed();
        report.compiled |= self.device().compiles() > compiles;
        Ok(Binding::new(Arc::new(fragment), tables, guesses, Arc::new(kernels), hasty))
    }

    /// The launches of a bound fragment, and the kernels beside them, of the modules of its parts.
    fn kernels(&self, fragment: &BoundFragment, modules: &[Arc<Module>]) -> Result<Kernels> {
        // All kernels of one program, or those of a launch group in the launch group's.
        let module = |position: usize| &modules[position.min(modules.len() - 1)];
        let mut launches = Vec::with_capacity(fragment.launch_groups.len());
        for (position, group) in fragment.launch_groups.iter().enumerate() {
            launches.push(self.launch_of(fragment, group, module(position).kernel(&group.name)?)?);
        }
        let last = module(launches.len());
        let finish = match &fragment.root {
            Root::Groups(_, None) | Root::Rows(_) => Finish::Nothing,
            Root::TopK(top) if top.last_block().is_some() => Finish::Nothing,
            Root::Groups(_, Some(_)) => Finish::Compact(last.kernel("compact_groups")?),
            Root::TopK(top) => Finish::TopK(Box::new(top.kernels(self.device(), last)?)),
        };
        let behind = module(modules.len() - 1);
        let matches = match fragment.has_matches {
            true => Some((behind.kernel("place_matches")?, behind.kernel("order_matches")?)),
            false => None,
        };
        let ends = fragment.has_ends.then(|| behind.kernel("enter_ends")).transpose()?;
        Ok(Kernels { launches, finish, matches, ends })
    }

    /// The binding with better kernels than those that were compiled in haste, if they are there; a second run asks for
    /// them, so that what is run once costs nothing more.
    fn improved(
        &self,
        binding: Arc<Binding>,
        cache: &BindingCache,
        tables: &[Relation],
        guesses: Guesses,
    ) -> Arc<Binding> {
        if !binding.in_haste {
            return binding;
        }
        let request = || self.device().request(&binding.fragment.parts, Priority::Idle);
        let Some(Ok(modules)) = binding.better.get_or_init(request).poll() else { return binding };
        match self.kernels(&binding.fragment, &modules) {
            Ok(kernels) => {
                let (fragment, kernels) = (binding.fragment.clone(), Arc::new(kernels));
                let better = Arc::new(Binding::new(fragment, tables, guesses, kernels, false));
                cache.keep(&better);
                better
            }
            // What is there goes on working, or tells the error itself.
            Err(_) => binding,
        }
    }

    fn execute(
        &self,
        binding: &Binding,
        tables: &[Relation],
        options: &RunOptions,
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, TooSmall>> {
        let bound = &binding.fragment;
        let arena = self.device().buffer(bound.arena.bytes(), "hash tables and results")?;
        arena.set_redzones(&bound.arena.redzones())?;
        let watch = options.cancel.watch(&arena, bound.arena.offset(bound.control) + CANCEL_OFFSET)?;
        let mut stream = match self.streams.lock().pop() {
            Some(stream) => stream,
            None => self.device().stream()?,
        };
        let clock = Instant::now();
        let batch = self.launch((binding, tables), &arena, &mut stream, options, report);
        if batch.is_err() {
            // Nothing may run on past this statement; the first error is the one to tell.
            let _ = stream.synchronize();
        }
        drop(watch);
        report.launched += clock.elapsed();
        let traffic = stream.take_traffic();
        report.traffic.uploaded += traffic.uploaded;
        report.traffic.downloaded += traffic.downloaded;
        self.streams.lock().push(stream);
        if let Ok(Ok(batch)) = &batch {
            report.rows = batch.num_rows() as u64;
        }
        batch
    }

    fn launch(
        &self,
        (binding, tables): (&Binding, &[Relation]),
        arena: &DeviceBuffer,
        stream: &mut Stream,
        options: &RunOptions,
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, TooSmall>> {
        let bound = &binding.fragment;
        let span = tracing::info_span!("launch", launches = binding.kernels.launches.len()).entered();
        let mut recorded = match binding.recorded(arena, options.launch_times) {
            Some(recorded) => recorded,
            None => Recorded::new(binding, arena, self.device(), stream, options.launch_times, &self.tuning)?,
        };
        recorded.run(stream, arena)?;
        drop(span);
        let span = tracing::info_span!("download").entered();
        let rows = read(bound, (&recorded, arena, stream), options.groups_max)?;
        drop(span);
        // Kernels that were stopped leave half a result.
        if options.cancel.is_thrown() || options.limits.cancelled.load(Ordering::Relaxed) {
            return Err(GpuError::Cancelled.into());
        }
        let device = recorded.device_time()?;
        binding.note_device_time(device);
        report.device += device;
        report.launch_groups.clear();
        report.bytes = 0;
        for (index, (group, launch)) in bound.launch_groups.iter().zip(&binding.kernels.launches).enumerate() {
            let attributes = launch.kernel.attributes();
            let members = || group.members.iter().map(|index| &bound.pipelines[*index]);
            let bytes = members().map(|pipeline| pipeline.plan.split.bytes as u64).sum();
            report.bytes += bytes;
            report.launch_groups.push(LaunchReport {
                pipelines: group.members.iter().map(|index| (*index).min(bound.shown - 1)).collect(),
                device: recorded.launch_time(index)?,
                bytes,
                registers: attributes.registers,
                spilled: attributes.local_bytes,
                grid: launch.shape.grid,
                launches: group.launches(&bound.pipelines) as u32,
            });
        }
        let mut strings_at = |texts: Texts, places: &[Option<u64>]| {
            let column = &tables[texts.table].columns[texts.column];
            Ok(column.strings_at(self.device(), stream, places)?)
        };
        let span = tracing::info_span!("convert").entered();
        let (batch, bytes) = match rows {
            Ok(rows) => (Ok(rows.batch(&bound.root, &mut strings_at)?), rows.bytes.len()),
            Err(too_small) => (Err(too_small), 0),
        };
        drop(span);
        // The next recording brings as much at once.
        match binding.expect_bytes(bytes) {
            true => drop(recorded),
            false => binding.keep_recorded(recorded),
        }
        Ok(batch)
    }

    /// A persistent grid: for each member as many blocks as are resident at once, fewer where tickets are few.
    fn launch_of(&self, bound: &BoundFragment, group: &LaunchGroup, kernel: Kernel) -> Result<Launch> {
        let block = bound.pipelines[group.members[0]].plan.shared.block;
        let shared_bytes = group.shared_bytes(&bound.pipelines);
        let resident = kernel.blocks_per_multiprocessor(block, shared_bytes)?.max(1);
        let most = resident * self.device().info().multiprocessors;
        let (mut grid, mut firsts) = (0, Vec::with_capacity(group.members.len()));
        for index in &group.members {
            firsts.push(grid);
            let tickets = bound.pipelines[*index].plan.tickets.iter().map(|tickets| tickets.count).max().unwrap_or(0);
            grid += most.min(tickets.div_ceil(block / 32)).max(1);
        }
        firsts.remove(0);
        Ok(Launch { kernel, shape: LaunchShape { grid, block, shared_bytes }, firsts })
    }
}

/// The slots to try after a table of groups with so many was too small; none if that was the largest.
fn enlarged(slots: u64) -> Option<u64> {
    (slots < GROUP_SLOTS_MAX).then(|| (slots * 8).min(GROUP_SLOTS_MAX))
}

/// Writes a program to `folder` for people and for compilers beside the engine.
fn dump(program: &Program, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{}-{}.cu", program.name(), &program.hash()[..16]));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, program.full_source()))
        .map_err(|error| EngineError::Dump { path, error: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::groups::GROUP_SLOTS_FIRST;

    #[test]
    fn tables_of_groups_grow_up_to_the_largest_and_no_further() {
        let sizes: Vec<u64> = std::iter::successors(Some(GROUP_SLOTS_FIRST), |slots| enlarged(*slots)).collect();
        assert_eq!(sizes, [1 << 20, 1 << 23, 1 << 26, 1 << 29, GROUP_SLOTS_MAX]);
        assert!(sizes.iter().all(|slots| slots.is_power_of_two()), "slots are told by a mask");
    }
}
