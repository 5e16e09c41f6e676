//! A pipeline's scan: threads take morsels, read the columns that a step asks for, and pass the rows that go on to the
//! sink.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use warpcube_column::{ColumnVectors, VECTOR_ROWS as ROWS, Values, rows_of_places};

use super::first::Ranked;
use super::groups::Groups;
use super::keys::{Form, Keys};
use super::limits::HostLimits;
use super::plan::{HostPipeline, HostStep, UnionColumn};
use super::program::Program;
use super::rows::{Packed, Words};
use super::sinks::HostSink;
use super::tables::{NONE, Rows, Table};
use super::values::{Data, Own, Register, Selection, Value, with_slots};
use crate::error::Result;
use crate::facts::Facts;
use crate::ir::JoinKind;
use crate::plan::keys::KeyPack;

/// Vectors of a morsel.
const MORSEL_VECTORS: usize = 32;

/// What a pipeline scans.
pub(super) enum Scanned<'a> {
    /// Columns, cut into chunks of so many rows.
    Table { columns: Vec<ColumnVectors<'a>>, chunks: &'a [u32] },
    /// Rows that a pipeline has left. Of groups the first column of a scan tells that there is one, and is the key
    /// where that takes one word.
    Rows { rows: &'a Words, key_words: usize, is_wide: bool },
}

/// What the threads of a scan share.
struct Shared<'a> {
    limits: &'a HostLimits<'a>,
    /// Rows that are enough, and those that have come to sinks of rows.
    limit: u64,
    taken: AtomicU64,
    /// Rows that are enough for a step that limits them, and those that have come there.
    step_limit: u64,
    come: AtomicU64,
    /// Whether a thread has failed.
    failed: AtomicBool,
}

/// A range of the vectors of a chunk.
#[derive(Debug, Clone, Copy)]
struct Morsel {
    chunk: usize,
    first: usize,
    end: usize,
    /// Number of the first row.
    row: u64,
    /// Rows of the chunk.
    rows: usize,
}

impl Scanned<'_> {
    fn morsels(&self) -> Vec<Morsel> {
        let chunks: Vec<usize> = match self {
            Scanned::Table { chunks, .. } => chunks.iter().map(|rows| *rows as usize).collect(),
            Scanned::Rows { rows, .. } => vec![rows.count],
        };
        let (mut morsels, mut row) = (Vec::new(), 0);
        for (chunk, rows) in chunks.into_iter().enumerate() {
            let vectors = rows.div_ceil(ROWS);
            for first in (0..vectors).step_by(MORSEL_VECTORS) {
                let end = vectors.min(first + MORSEL_VECTORS);
                morsels.push(Morsel { chunk, first, end, row: row + (first * ROWS) as u64, rows });
            }
            row += rows as u64;
        }
        morsels
    }
}

/// What a thread leaves.
pub(super) enum Local {
    Table(Rows),
    Groups(Box<Groups>),
    First(Box<Ranked>),
    Rows(Packed),
}

impl Local {
    fn new(sink: &HostSink) -> Local {
        match sink {
            HostSink::Table { .. } | HostSink::Nothing => Local::Table(Rows::default()),
            HostSink::Groups { plan, .. } => Local::Groups(Box::new(Groups::new(plan))),
            HostSink::First(first) => Local::First(Box::new(Ranked::new(first))),
            HostSink::Rows { plan, .. } => Local::Rows(Packed::new(plan.pack())),
        }
    }

    /// Rows of a sink of rows, and bytes of any.
    fn size(&self) -> (u64, u64) {
        match self {
            Local::Table(rows) => (0, rows.bytes()),
            Local::Groups(groups) => (0, groups.bytes()),
            Local::First(ranked) => (0, ranked.bytes()),
            Local::Rows(rows) => (rows.count() as u64, rows.bytes()),
        }
    }
}

/// Runs a pipeline on all threads of the pool; what each has left.
///
/// # Errors
/// Evaluation errors of rows; [`GpuError::Cancelled`] once the run is cancelled.
pub(super) fn scan(
    pipeline: &HostPipeline,
    scanned: &Scanned<'_>,
    tables: &[Option<Table>],
    limits: &HostLimits<'_>,
) -> Result<Vec<Local>> {
    let morsels = scanned.morsels();
    let next = AtomicUsize::new(0);
    let limit = match &pipeline.sink {
        HostSink::Rows { limit: Some(limit), .. } => *limit,
        _ => u64::MAX,
    };
    let step_limit = match pipeline.steps.last() {
        Some(HostStep::Limit { end, .. }) => *end,
        _ => u64::MAX,
    };
    let shared = Shared {
        limits,
        limit,
        taken: AtomicU64::new(0),
        step_limit,
        come: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let threads = rayon::current_num_threads().clamp(1, morsels.len().max(1));
    let work = |_: usize| {
        let mut worker = Worker::new(pipeline, scanned, tables);
        worker.shared = Some(&shared);
        while let Some(morsel) = morsels.get(next.fetch_add(1, Ordering::Relaxed)) {
            worker.check()?;
            if worker.has_enough() {
                break;
            }
            worker.run(*morsel)?;
        }
        worker.check()?;
        Ok(worker.local)
    };
    match threads {
        1 => Ok(vec![work(0)?]),
        _ => {
            let work = |thread| work(thread).inspect_err(|_| shared.failed.store(true, Ordering::Relaxed));
            (0..threads).into_par_iter().map(work).collect()
        }
    }
}

/// A thread's registers and sink.
pub(super) struct Worker<'a> {
    pub(super) pipeline: &'a HostPipeline,
    pub(super) scanned: &'a Scanned<'a>,
    pub(super) tables: &'a [Option<Table>],
    pub(super) registers: Vec<Register>,
    pub(super) rows: Selection,
    /// The entries that probes have found, by step.
    pub(super) found: Vec<Box<[u32; ROWS]>>,
    pub(super) keys: Vec<Keys>,
    sink_keys: Option<Keys>,
    local: Local,
    /// The vector.
    pub(super) chunk: usize,
    pub(super) vector: usize,
    /// Whether a sum of a group has left its type.
    pub(super) raises: bool,
    /// Whether places are those of rows with their matches.
    pub(super) is_multiplied: bool,
    /// What it shares with other threads; a scan of a result shares nothing.
    shared: Option<&'a Shared<'a>>,
    /// Rows and bytes of the sink that the others know of.
    told: (u64, u64),
    /// Registers of vectors of matches that are done.
    pub(super) spare: Vec<Vec<Register>>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(pipeline: &'a HostPipeline, scanned: &'a Scanned<'a>, tables: &'a [Option<Table>]) -> Worker<'a> {
        let pack = match &pipeline.sink {
            HostSink::Table { plan, .. } => Some(&plan.pack),
            HostSink::Groups { plan, .. } => Some(&plan.pack),
            _ => None,
        };
        Worker {
            pipeline,
            scanned,
            tables,
            registers: pipeline.registers.iter().map(|_| Register::default()).collect(),
            rows: Selection::default(),
            found: pipeline.steps.iter().map(|_| Box::new([NONE; ROWS])).collect(),
            keys: pipeline
                .steps
                .iter()
                .map(|step| match step {
                    HostStep::Probe(probe) => Keys::new(&probe.pack),
                    HostStep::Range { .. } | HostStep::Filter(_) | HostStep::Limit { .. } => Keys::default(),
                })
                .collect(),
            sink_keys: pack.map(Keys::new),
            local: Local::new(&pipeline.sink),
            chunk: 0,
            vector: 0,
            raises: false,
            is_multiplied: false,
            shared: None,
            told: (0, 0),
            spare: Vec::new(),
        }
    }

    /// Whether as many rows have come as are wanted, or another thread has failed.
    pub(super) fn has_enough(&self) -> bool {
        self.shared.is_some_and(|shared| {
            shared.failed.load(Ordering::Relaxed)
                || shared.taken.load(Ordering::Relaxed) >= shared.limit
                || shared.come.load(Ordering::Relaxed) >= shared.step_limit
        })
    }

    /// Tells the other threads of what has come.
    ///
    /// # Errors
    /// Those of [`HostLimits::take`].
    pub(super) fn check(&mut self) -> Result<()> {
        let Some(Shared { limits, taken, .. }) = self.shared else { return Ok(()) };
        let (rows, bytes) = self.local.size();
        taken.fetch_add(rows - self.told.0, Ordering::Relaxed);
        let more = bytes.saturating_sub(self.told.1);
        self.told = (rows, bytes.max(self.told.1));
        limits.take(more)
    }

    fn run(&mut self, morsel: Morsel) -> Result<()> {
        self.chunk = morsel.chunk;
        for vector in morsel.first..morsel.end {
            self.vector = vector;
            self.registers.iter_mut().for_each(Register::clear);
            match self.scanned {
                Scanned::Table { .. } => self.rows.start(morsel.rows - vector * ROWS),
                Scanned::Rows { .. } => self.rows.start_in_order(morsel.rows - vector * ROWS),
            }
            let row = morsel.row + ((vector - morsel.first) * ROWS) as u64;
            self.steps(0, row)?;
        }
        Ok(())
    }

    /// Takes the rows through the steps from `first` on and to the sink; `row` is the number of the vector's first row.
    pub(super) fn steps(&mut self, first: usize, row: u64) -> Result<()> {
        let pipeline = self.pipeline;
        for (number, step) in pipeline.steps.iter().enumerate().skip(first) {
            match step {
                HostStep::Range { column, low, high } => self.range(*column, *low, *high),
                HostStep::Filter(program) => {
                    self.load([program])?;
                    let truths = program.evaluate(&self.registers, &self.rows)?;
                    truths.keep_true(&mut self.rows);
                }
                HostStep::Limit { skip, end } => {
                    let come = self.rows.len() as u64;
                    let mut next = self.shared.map_or(0, |shared| shared.come.fetch_add(come, Ordering::Relaxed));
                    self.rows.retain(|_| {
                        next += 1;
                        (*skip..*end).contains(&(next - 1))
                    });
                }
                HostStep::Probe(probe) => {
                    self.probe(number, probe)?;
                    if probe.several && matches!(probe.kind, JoinKind::Inner | JoinKind::Left) {
                        return self.multiply(number, probe, &mut |worker| worker.steps(number + 1, row));
                    }
                }
            }
            if self.rows.is_empty() {
                return Ok(());
            }
        }
        self.sink(row)
    }

    fn sink(&mut self, first: u64) -> Result<()> {
        let pipeline = self.pipeline;
        self.compute_columns(pipeline.first_column)?;
        match &pipeline.sink {
            HostSink::Table { plan, keys, payload } => {
                self.load(keys.iter().chain(payload))?;
                let mut rows = std::mem::take(&mut self.rows);
                // Keys that are NULL match nothing.
                self.pack(keys, &plan.pack, &mut rows)?;
                let payload = values(payload, &self.registers, &rows)?;
                if let (Local::Table(table), Some(keys)) = (&mut self.local, &self.sink_keys) {
                    table.push(keys, &payload, &rows);
                }
                self.rows = rows;
            }
            HostSink::Groups { plan, keys, calls, cells } => {
                let inputs = calls.iter().flat_map(|call| call.argument.iter().chain(&call.filter));
                self.load(keys.iter().chain(inputs))?;
                cells.iter().try_for_each(|register| self.load_register(*register))?;
                let mut rows = std::mem::take(&mut self.rows);
                self.pack(keys, &plan.pack, &mut rows)?;
                if let (Local::Groups(groups), Some(keys)) = (&mut self.local, &self.sink_keys) {
                    groups.enter(keys, &rows);
                    groups.add(calls, (&self.registers, pipeline.first_column), &rows)?;
                }
                self.rows = rows;
            }
            HostSink::First(plan) => {
                self.load(plan.order.programs())?;
                let mut rows = std::mem::take(&mut self.rows);
                if let Local::First(ranked) = &mut self.local {
                    ranked.enter(plan, &self.registers, &mut rows)?;
                }
                self.rows = rows;
                if self.rows.is_empty() {
                    return Ok(());
                }
                self.load(&plan.outputs)?;
                let columns = values(&plan.outputs, &self.registers, &self.rows)?;
                if let Local::First(ranked) = &mut self.local {
                    let number = |place: usize| match self.scanned {
                        // Matches of a row have no number of their own.
                        _ if self.is_multiplied => first,
                        Scanned::Table { .. } => first + u64::from(rows_of_places()[place]),
                        Scanned::Rows { .. } => first + place as u64,
                    };
                    ranked.push(plan, &columns, (&self.rows, &number));
                }
            }
            HostSink::Rows { plan, columns, .. } => {
                self.load(columns)?;
                if let Local::Rows(packed) = &mut self.local {
                    packed.push((columns, plan.pack()), &self.registers, &self.rows)?;
                }
            }
            HostSink::Nothing => {}
        }
        Ok(())
    }

    /// Computes the columns that the branches of a union share into registers from `first` on.
    fn compute_columns(&mut self, first: usize) -> Result<()> {
        let pipeline = self.pipeline;
        for (position, UnionColumn { program, guard }) in pipeline.columns.iter().enumerate() {
            self.load([program])?;
            let guarded = guard.map(|guard| {
                let truths = self.registers[first + guard].value();
                self.rows.filtered(|row| truths.bits(row) != 0 && truths.is_valid(row))
            });
            let rows = guarded.as_ref().unwrap_or(&self.rows);
            let mut target = std::mem::take(&mut self.registers[first + position]);
            let value = program.evaluate(&self.registers, rows)?;
            let mut wide = None;
            match &value.data {
                Data::Integers(slots) => {
                    with_slots!(slots, at => rows.each(|row| target.buffer.integers[row] = at(row)));
                }
                Data::Floats(slots) => with_slots!(slots, at => rows.each(|row| target.buffer.floats[row] = at(row))),
                Data::Wide(slots) => {
                    let wide = wide.insert(Own::new());
                    with_slots!(slots, at => rows.each(|row| wide[row] = at(row)));
                }
            }
            let is_null = guarded.is_some() || value.valid.is_some();
            let valid = is_null.then(|| {
                let mut flags = Own::new();
                self.rows.each(|row| flags[row] = 0);
                rows.each(|row| flags[row] = u8::from(value.is_valid(row)));
                flags
            });
            // NULL has no type of its own.
            let is_float = program.facts.ty.is_float();
            match wide {
                Some(wide) => target.fill_wide(wide, valid),
                None => target.fill(if is_float { Values::Floats } else { Values::Integers }, valid),
            }
            self.registers[first + position] = target;
        }
        Ok(())
    }

    /// Packs keys of rows; those without a key are left out.
    fn pack(&mut self, keys: &[Program], pack: &KeyPack, rows: &mut Selection) -> Result<()> {
        let values = values(keys, &self.registers, rows)?;
        let facts: Vec<Facts> = keys.iter().map(|key| key.facts.clone()).collect();
        if let Some(keys) = &mut self.sink_keys {
            keys.pack(pack, &values, Form::Equal, &facts, rows);
        }
        Ok(())
    }
}

pub(super) fn values<'r>(programs: &[Program], registers: &'r [Register], rows: &Selection) -> Result<Vec<Value<'r>>> {
    programs.iter().map(|program| program.evaluate(registers, rows)).collect()
}
