//! Running a fragment: admit its columns, bind, compile, launch, read the result.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use warpcube_column::{Pinned, Relation, TableRequest};
use warpcube_gpu::{DeviceBuffer, GpuError, Priority, Program, Reservation, Stream, size_class};

use crate::codegen::memory::{CANCEL_OFFSET, TICKETS_OFFSET};
use crate::error::{EngineError, Result};
use crate::exec::bind::{BoundFragment, Guesses, bind};
use crate::exec::binding::{Binding, BindingCache, BindingOrigin, Found};
use crate::exec::constants::taken_over;
use crate::exec::engine::Engine;
use crate::exec::growth::{Moves, Stop};
use crate::exec::phases::phases;
use crate::exec::read::{TooSmall, read};
use crate::exec::recorded::Recorded;
use crate::exec::report::{LaunchReport, RunOptions, RunReport};
use crate::facts::Texts;
use crate::ir::Fragment;
use crate::vector;

/// How often a fragment is run again with another seed because keys of a join collided.
const LONG_RUNS_MAX: u32 = 3;
/// How often a top-k is run again because its threshold failed.
const THRESHOLDS_MAX: u32 = 3;
/// Bytes of tables, groups and rows that any run on the CPU may have.
const HOST_BYTES_MIN: u64 = 64 << 20;
/// What a run has given.
type Outcome = std::result::Result<RecordBatch, Failure>;

/// A run that a guess was too small for.
struct Failure {
    too_small: TooSmall,
    /// Where it has stopped, if sinks had no room, and its arena.
    stop: Option<Stop>,
    arena: Option<DeviceBuffer>,
}

/// A run that goes on from a launch group.
struct Resumed {
    moves: Moves,
    /// What has stopped, and its arena.
    old: Arc<BoundFragment>,
    arena: DeviceBuffer,
    group: usize,
}

impl Engine {
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

    /// As [`Engine::run`], for a fragment that is run repeatedly: `cache` is this fragment's own and keeps what binding
    /// found, for as long as the columns stay where they are.
    pub fn run_again(
        &self,
        fragment: &Fragment,
        cache: &BindingCache,
        requests: &[TableRequest],
        options: &RunOptions,
    ) -> Result<(RecordBatch, RunReport)> {
        if !self.runs_kernels() {
            return self.run_on_host(fragment, requests, options);
        }
        let mut guesses = cache.guesses(options.group_slots.unwrap_or(self.tuning.group_slots));
        let mut report = RunReport::default();
        let mut long_runs = 0;
        loop {
            match self.attempt(fragment, cache, requests, options, guesses, &mut report)? {
                Ok(batch) => return Ok((batch, report)),
                // More room is known to be needed by now.
                Err(TooSmall::Room | TooSmall::Stopped) => {}
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
                Err(TooSmall::Threshold | TooSmall::ScannedRows) if guesses.failed_thresholds == THRESHOLDS_MAX => {
                    return crate::error::unsupported("a top-k whose samples mislead whatever their seed");
                }
                Err(TooSmall::Threshold | TooSmall::ScannedRows) => {
                    guesses.failed_thresholds += 1;
                    guesses.seed = cache.another_seed();
                    cache.note_failed_threshold();
                }
            }
            guesses.growth = cache.growth();
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
        let guesses = cache.guesses(options.group_slots.unwrap_or(self.tuning.group_slots));
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
        let taken = || Some((taken_over(&known, fragment, cache, &self.tuning)?, BindingOrigin::TakenOver));
        let Some((binding, origin)) = own.map(|own| (own, BindingOrigin::Kept)).or_else(taken) else {
            return Ok(None);
        };
        (report.bind, report.origin) = (clock.elapsed(), origin);
        let (_, outcome) = self.execute_kept(binding, cache, &pinned.tables, (options, guesses), &mut report)?;
        Ok(outcome.ok().map(|batch| (batch, report)))
    }

    /// Runs a fragment over columns in host memory, by threads of the CPU.
    fn run_on_host(
        &self,
        fragment: &Fragment,
        requests: &[TableRequest],
        options: &RunOptions,
    ) -> Result<(RecordBatch, RunReport)> {
        let nothing = |_: &[Relation]| Ok::<_, EngineError>(0);
        let pinned: Pinned = self.residency.admit(requests, &options.limits, nothing)?;
        let is_cancelled = || options.cancel.is_thrown() || options.limits.cancelled.load(Ordering::Relaxed);
        // What columns leave of their budget is for tables, groups and rows; some of it in any case.
        let bytes = self.device().pool().available().max(HOST_BYTES_MIN);
        let (info, asked) = (self.device().info(), (&is_cancelled as &_, bytes, options.groups_max));
        let (batch, times) = vector::run::run(fragment, &pinned.tables, info, &self.tuning, asked)?;
        let rows = batch.num_rows() as u64;
        let mut report =
            RunReport { bind: times.plan, device: times.scans, launched: times.scans, rows, ..Default::default() };
        report.loaded.add(&pinned.loaded);
        Ok((batch, report))
    }

    /// Runs the binding of an earlier run, with better kernels if they are there by now.
    fn execute_kept(
        &self,
        binding: Arc<Binding>,
        cache: &BindingCache,
        tables: &[Relation],
        (options, guesses): (&RunOptions, Guesses),
        report: &mut RunReport,
    ) -> Result<(Arc<Binding>, Outcome)> {
        if let Some(error) = binding.refused.get().filter(|_| options.groups_max.is_some()) {
            return Err(error.clone());
        }
        let binding = self.improved(binding, cache, tables, guesses);
        let outcome = self.execute_bound(&binding, tables, options, None, report)?;
        Ok((binding, outcome))
    }

    /// Gives a run that has stopped without room more of it, until it is done: `reserved` is that of its arena. Where
    /// there is no memory for both arenas the run begins anew, with what it has learned.
    fn with_room(
        &self,
        (fragment, cache, tables): (&Fragment, &BindingCache, &[Relation]),
        (options, mut guesses): (&RunOptions, Guesses),
        reserved: &mut Reservation,
        (mut binding, mut outcome): (Arc<Binding>, Outcome),
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, TooSmall>> {
        loop {
            let Failure { too_small, stop, arena } = match outcome {
                Ok(batch) => return Ok(Ok(batch)),
                Err(failure) => failure,
            };
            if !matches!(too_small, TooSmall::Stopped | TooSmall::Room) {
                return Ok(Err(too_small));
            }
            let root = binding.fragment.pipelines.last().map(|root| root.first);
            let full = stop.as_ref().map_or_else(|| root.into_iter().collect(), |stop| stop.full.clone());
            let Some(growth) = guesses.growth.once_more(full) else {
                return crate::error::unsupported("more groups than the largest hash table holds");
            };
            cache.need_growth(growth);
            guesses.growth = growth;
            let Some((stop, arena)) = stop.filter(|_| too_small == TooSmall::Stopped).zip(arena) else {
                return Ok(Err(TooSmall::Room));
            };
            let clock = Instant::now();
            let bound = bind(fragment, tables, self.device().info(), guesses, &self.tuning)?;
            report.bind += clock.elapsed();
            let bytes = size_class(bound.arena.bytes().max(1)) as u64;
            let moves = Moves::between(&binding.fragment, &bound, &stop);
            let Some((moves, room)) = moves.zip(self.residency.reserve_more(bytes, &options.limits).ok()) else {
                return Ok(Err(TooSmall::Room));
            };
            self.compile_moves(&moves, report)?;
            let next = Arc::new(self.prepare(bound, tables, guesses, false, report)?);
            cache.keep(&next);
            if !next.kernels.has_grid_of(&binding.kernels, stop.group) {
                return Ok(Err(TooSmall::Room));
            }
            let resumed = Resumed { moves, old: binding.fragment.clone(), arena, group: stop.group };
            outcome = self.execute_bound(&next, tables, options, Some(resumed), report)?;
            // The smaller arena is gone.
            *reserved = room;
            binding = next;
            report.grown += 1;
        }
    }

    /// Runs a binding over the columns it is bound to, from its start or from where another one has stopped.
    fn execute_bound(
        &self,
        binding: &Binding,
        tables: &[Relation],
        options: &RunOptions,
        resumed: Option<Resumed>,
        report: &mut RunReport,
    ) -> Result<Outcome> {
        report.arena_bytes = binding.fragment.arena.bytes() as u64;
        report.bound = Some(binding.fragment.clone());
        report.top = binding.fragment.top().map(|top| top.decision.reason.clone());
        report.in_haste = binding.in_haste;
        self.execute((binding, tables), options, resumed, report).inspect_err(|error| {
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
        requests: &[TableRequest],
        options: &RunOptions,
        guesses: Guesses,
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, TooSmall>> {
        let found: Mutex<Option<Found>> = Mutex::new(None);
        let start: Mutex<Option<(Duration, BindingOrigin)>> = Mutex::new(None);
        let span = tracing::info_span!("admit").entered();
        let mut pinned: Pinned = self.residency.admit(requests, &options.limits, |tables| -> Result<u64> {
            let clock = Instant::now();
            let _span = tracing::info_span!("bind").entered();
            let own = cache.get(tables, guesses);
            let latest = || cache.latest(guesses).filter(|latest| latest.is_for(tables, guesses));
            let taken = || latest().and_then(|latest| taken_over(&latest, fragment, cache, &self.tuning));
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
        let tables = &pinned.tables[..];
        let done = match found.into_inner().expect("admission binds") {
            Found::Kept(binding) => self.execute_kept(binding, cache, tables, (options, guesses), report)?,
            Found::New(fragment) => {
                if let Some(folder) = &options.dump {
                    dump(fragment.program(), folder)?;
                }
                let binding = Arc::new(self.prepare(*fragment, tables, guesses, options.elsewhere, report)?);
                cache.keep(&binding);
                let outcome = self.execute_bound(&binding, tables, options, None, report)?;
                (binding, outcome)
            }
        };
        self.with_room((fragment, cache, tables), (options, guesses), &mut pinned.transient, done, report)
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
        (binding, tables): (&Binding, &[Relation]),
        options: &RunOptions,
        resumed: Option<Resumed>,
        report: &mut RunReport,
    ) -> Result<Outcome> {
        let bound = &binding.fragment;
        let arena = self.device().buffer(bound.arena.bytes(), "hash tables and results")?;
        arena.set_redzones(&bound.arena.redzones())?;
        let watch = options.cancel.watch(&arena, bound.arena.offset(bound.control) + CANCEL_OFFSET)?;
        let mut stream = match self.streams.lock().pop() {
            Some(stream) => stream,
            None => self.device().stream()?,
        };
        let clock = Instant::now();
        let batch = self.launch((binding, tables), (&arena, resumed.as_ref()), &mut stream, options, report);
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
        Ok(batch?.map_err(|(too_small, stop)| Failure { too_small, stop, arena: Some(arena) }))
    }

    fn launch(
        &self,
        (binding, tables): (&Binding, &[Relation]),
        (arena, resumed): (&DeviceBuffer, Option<&Resumed>),
        stream: &mut Stream,
        options: &RunOptions,
        report: &mut RunReport,
    ) -> Result<Result<RecordBatch, (TooSmall, Option<Stop>)>> {
        let bound = &binding.fragment;
        if let Some(Resumed { moves, old, arena: from, .. }) = resumed {
            let _span = tracing::info_span!("move").entered();
            stream.upload(arena, 0, &bound.arena.constants(arena.pointer()))?;
            let (zeroed, bytes) = bound.arena.zeroed_range();
            stream.fill(arena, zeroed, 0, bytes)?;
            moves.submit(self.device(), stream, (old, from), (bound, arena))?;
        }
        let span = tracing::info_span!("launch", launches = binding.kernels.launches.len()).entered();
        let kept = if resumed.is_none() { binding.recorded(arena, options.launch_times) } else { None };
        let mut recorded = match kept {
            Some(recorded) => recorded,
            None => {
                let how = (options.launch_times, resumed.map(|resumed| resumed.group));
                let phases = phases(binding, self.device().info(), how, &self.tuning);
                Recorded::new(&phases, (&bound.arena, arena), self.device(), stream, how)?
            }
        };
        recorded.run(stream, arena)?;
        drop(span);
        let span = tracing::info_span!("download").entered();
        let rows = read(bound, (&recorded, arena, stream), options.groups_max)?;
        drop(span);
        let stop = match &rows {
            Err(TooSmall::Stopped | TooSmall::Room) => {
                let mut control = vec![0; TICKETS_OFFSET];
                stream.download(arena, bound.arena.offset(bound.control), &mut control)?;
                Stop::of(bound, &control)
            }
            _ => None,
        };
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
            Err(too_small) => (Err((too_small, stop)), 0),
        };
        drop(span);
        // The next recording brings as much at once.
        match binding.expect_bytes(bytes) || !recorded.is_whole() {
            true => drop(recorded),
            false => binding.keep_recorded(recorded),
        }
        Ok(batch)
    }
}

/// Writes a program to `folder` for people and for compilers beside the engine.
fn dump(program: &Program, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{}-{}.cu", program.name(), &program.hash()[..16]));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, program.full_source()))
        .map_err(|error| EngineError::Dump { path, error: error.to_string() })
}
