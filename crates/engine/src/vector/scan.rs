//! A pipeline's scan: threads take morsels, read the columns that a step asks for, and pass the rows that go on to the
//! sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use warpcube_column::{ColumnVectors, VECTOR_ROWS as ROWS, Values, rows_of_places};
use warpcube_gpu::GpuError;
use warpcube_vector::within;

use super::groups::{GroupRows, Groups};
use super::keys::{Form, Keys};
use super::plan::{HostPipeline, HostProbe, HostSink, HostStep, Origin, UnionColumn};
use super::program::Program;
use super::rows::{Packed, Ranked};
use super::tables::{NONE, Rows, Table, translate};
use super::values::{Data, Own, Register, Selection, Slots, Value, with_slots};
use crate::error::{EngineError, Result};
use crate::facts::Facts;
use crate::float_sum::FloatSum;
use crate::ir::{JoinKind, Ty};
use crate::plan::cells::Read;
use crate::plan::group_values::{GroupRead, GroupValue};
use crate::plan::keys::{KeyPack, KeyPart, Null};

/// Vectors of a morsel.
const MORSEL_VECTORS: usize = 32;

/// What a pipeline scans.
pub(super) enum Scanned<'a> {
    /// Columns, cut into chunks of so many rows.
    Table { columns: Vec<ColumnVectors<'a>>, chunks: &'a [u32] },
    /// Groups; the first column of a scan tells that there is one, and is the key where that takes one word.
    Groups { rows: &'a GroupRows, key_words: usize, is_wide: bool },
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
            Scanned::Groups { rows, .. } => vec![rows.count],
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
    First(Ranked),
    Rows(Packed),
}

impl Local {
    fn new(sink: &HostSink) -> Local {
        match sink {
            HostSink::Table { .. } => Local::Table(Rows::default()),
            HostSink::Groups { plan, .. } => Local::Groups(Box::new(Groups::new(plan))),
            HostSink::First { .. } => Local::First(Ranked::default()),
            HostSink::Rows { plan, .. } => Local::Rows(Packed::new(&plan.pack)),
        }
    }

    pub(super) fn merge(self, other: Local) -> Local {
        match (self, other) {
            (Local::Table(mut own), Local::Table(other)) => {
                own.append(other);
                Local::Table(own)
            }
            (Local::Groups(mut own), Local::Groups(other)) => {
                own.merge(*other);
                Local::Groups(own)
            }
            (Local::First(mut own), Local::First(other)) => {
                own.append(other);
                Local::First(own)
            }
            (Local::Rows(mut own), Local::Rows(other)) => {
                own.append(other);
                Local::Rows(own)
            }
            (own, _) => own,
        }
    }
}

/// Runs a pipeline on all threads of the pool.
///
/// # Errors
/// Evaluation errors of rows; [`GpuError::Cancelled`] once the run is cancelled.
pub(super) fn scan(
    pipeline: &HostPipeline,
    scanned: &Scanned<'_>,
    tables: &[Option<Table>],
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Local> {
    let morsels = scanned.morsels();
    let (next, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let threads = rayon::current_num_threads().clamp(1, morsels.len().max(1));
    let work = |_: usize| {
        let mut worker = Worker::new(pipeline, scanned, tables);
        while let Some(morsel) = morsels.get(next.fetch_add(1, Ordering::Relaxed)) {
            if is_cancelled() {
                return Err(GpuError::Cancelled.into());
            }
            if let HostSink::Rows { limit: Some(limit), .. } = &pipeline.sink
                && taken.load(Ordering::Relaxed) as u64 >= *limit
            {
                break;
            }
            let before = worker.rows_left();
            worker.run(*morsel)?;
            taken.fetch_add(worker.rows_left() - before, Ordering::Relaxed);
        }
        Ok(worker.local)
    };
    let locals: Vec<Local> = match threads {
        1 => vec![work(0)?],
        _ => (0..threads).into_par_iter().map(work).collect::<Result<_>>()?,
    };
    let merged = locals.into_iter().reduce(Local::merge);
    merged.ok_or_else(|| EngineError::Malformed("a scan without a thread".into()))
}

/// A thread's registers and sink.
struct Worker<'a> {
    pipeline: &'a HostPipeline,
    scanned: &'a Scanned<'a>,
    tables: &'a [Option<Table>],
    registers: Vec<Register>,
    rows: Selection,
    /// The entries that probes have found, by step.
    found: Vec<Box<[u32; ROWS]>>,
    keys: Vec<Keys>,
    sink_keys: Option<Keys>,
    local: Local,
    /// The vector.
    chunk: usize,
    vector: usize,
    /// Whether a sum of a group has left its type.
    raises: bool,
    /// Whether places are those of rows with their matches.
    is_multiplied: bool,
}

/// Rows with their matches, for a vector of their own.
struct Pairs {
    from: Box<[u16; ROWS]>,
    entries: Box<[u32; ROWS]>,
    len: usize,
}

impl Pairs {
    fn push(&mut self, row: usize, entry: u32) {
        (self.from[self.len], self.entries[self.len]) = (row as u16, entry);
        self.len += 1;
    }
}

impl<'a> Worker<'a> {
    fn new(pipeline: &'a HostPipeline, scanned: &'a Scanned<'a>, tables: &'a [Option<Table>]) -> Worker<'a> {
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
                    HostStep::Range { .. } | HostStep::Filter(_) => Keys::default(),
                })
                .collect(),
            sink_keys: pack.map(Keys::new),
            local: Local::new(&pipeline.sink),
            chunk: 0,
            vector: 0,
            raises: false,
            is_multiplied: false,
        }
    }

    /// Rows in a sink of rows so far.
    fn rows_left(&self) -> usize {
        if let Local::Rows(rows) = &self.local { rows.count() } else { 0 }
    }

    fn run(&mut self, morsel: Morsel) -> Result<()> {
        self.chunk = morsel.chunk;
        for vector in morsel.first..morsel.end {
            self.vector = vector;
            self.registers.iter_mut().for_each(Register::clear);
            match self.scanned {
                Scanned::Table { .. } => self.rows.start(morsel.rows - vector * ROWS),
                Scanned::Groups { .. } => self.rows.start_in_order(morsel.rows - vector * ROWS),
            }
            let row = morsel.row + ((vector - morsel.first) * ROWS) as u64;
            self.steps(0, row)?;
        }
        Ok(())
    }

    /// Takes the rows through the steps from `first` on and to the sink; `row` is the number of the vector's first row.
    fn steps(&mut self, first: usize, row: u64) -> Result<()> {
        let pipeline = self.pipeline;
        for (number, step) in pipeline.steps.iter().enumerate().skip(first) {
            match step {
                HostStep::Range { column, low, high } => self.range(*column, *low, *high),
                HostStep::Filter(program) => {
                    self.load([program])?;
                    let truths = program.evaluate(&self.registers, &self.rows)?;
                    self.rows.retain(|row| truths.bits(row) != 0 && truths.is_valid(row));
                }
                HostStep::Probe(probe) => {
                    self.probe(number, probe)?;
                    if probe.several && matches!(probe.kind, JoinKind::Inner | JoinKind::Left) {
                        let pairs = Pairs { from: Box::new([0; ROWS]), entries: Box::new([NONE; ROWS]), len: 0 };
                        return self.multiply(pairs, number, probe, &mut |worker| worker.steps(number + 1, row));
                    }
                }
            }
            if self.rows.is_empty() {
                return Ok(());
            }
        }
        self.sink(row)
    }

    /// Calls `visit` for rows and their matches in vectors of their own, with the registers that are read behind the
    /// probe. No row goes on here.
    fn multiply(
        &mut self,
        mut pairs: Pairs,
        number: usize,
        probe: &HostProbe,
        visit: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some(table) = self.tables.get(probe.build).and_then(Option::as_ref) else {
            return Err(EngineError::Malformed("a probe of no table".into()));
        };
        for register in &probe.read_behind {
            self.load_register(*register)?;
        }
        let mut places = Vec::with_capacity(self.rows.len());
        self.rows.each(|row| places.push(row));
        let found = self.found[number].clone();
        for row in places {
            let matches = table.rows_of(found[row]);
            if matches.is_empty() && probe.kind == JoinKind::Left {
                pairs.push(row, NONE);
                self.flush(&mut pairs, number, probe, false, visit)?;
            }
            for entry in matches {
                pairs.push(row, entry);
                self.flush(&mut pairs, number, probe, false, visit)?;
            }
        }
        self.flush(&mut pairs, number, probe, true, visit)?;
        self.rows.start_in_order(0);
        Ok(())
    }

    /// Visits a full vector of pairs, or all that are left.
    fn flush(
        &mut self,
        pairs: &mut Pairs,
        number: usize,
        probe: &HostProbe,
        all: bool,
        visit: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if pairs.len == 0 || pairs.len < ROWS && !all {
            return Ok(());
        }
        let mut own: Vec<Register> = self.registers.iter().map(|_| Register::default()).collect();
        for register in &probe.read_behind {
            own[*register].gather(&self.registers[*register], &pairs.from[..pairs.len]);
        }
        std::mem::swap(&mut self.registers, &mut own);
        std::mem::swap(&mut self.found[number], &mut pairs.entries);
        let rows = std::mem::take(&mut self.rows);
        self.rows.start_in_order(pairs.len);
        let depth = std::mem::replace(&mut self.is_multiplied, true);
        let visited = visit(self);
        self.is_multiplied = depth;
        self.rows = rows;
        std::mem::swap(&mut self.found[number], &mut pairs.entries);
        self.registers = own;
        pairs.len = 0;
        visited
    }

    /// Leaves the rows whose integer of a column lies within bounds.
    fn range(&mut self, column: usize, low: i64, high: i64) {
        if let Scanned::Table { columns, .. } = self.scanned
            && self.registers[column].values.is_none()
            && let Some((least, most)) = columns[column].bounds(self.chunk, self.vector)
        {
            if most < low || least > high {
                return self.rows.start_in_order(0);
            }
            if least >= low && most <= high {
                return;
            }
        }
        self.read(column);
        let register = &self.registers[column];
        match register.values {
            Some(Values::Offsets(reference)) => {
                // Of offsets, which are not less than zero, those within other bounds.
                let first = (i128::from(low) - i128::from(reference)).max(0);
                let last = (i128::from(high) - i128::from(reference)).min(u32::MAX.into());
                if first > last {
                    return self.rows.start_in_order(0);
                }
                let (first, span) = (first as u32, (last - first) as u32);
                let offsets = &register.buffer.offsets;
                if self.rows.is_whole() {
                    let mut flags = [1; ROWS];
                    within(offsets, first, span, &mut flags);
                    return self.rows.take(&flags);
                }
                self.rows.retain(|row| offsets[row].wrapping_sub(first) <= span);
            }
            _ => {
                let integers = &register.buffer.integers;
                self.rows.retain(|row| (low..=high).contains(&integers[row]));
            }
        }
    }

    fn probe(&mut self, number: usize, probe: &HostProbe) -> Result<()> {
        let Some(table) = self.tables.get(probe.build).and_then(Option::as_ref) else {
            return Err(EngineError::Malformed("a probe of no table".into()));
        };
        if self.probe_by_offset(number, probe, table) {
            return Ok(());
        }
        self.load(&probe.keys)?;
        let mut candidates = self.rows.filtered(|_| true);
        let mut values =
            probe.keys.iter().map(|key| key.evaluate(&self.registers, &self.rows)).collect::<Result<Vec<_>>>()?;
        for (value, codes) in values.iter_mut().zip(&probe.codes) {
            if let Some(codes) = codes {
                let translated = translate(value, codes, &self.rows);
                value.data = Data::Integers(Slots::Own(translated));
            }
        }
        let keys = &mut self.keys[number];
        let found = &mut self.found[number];
        keys.pack(&probe.pack, &values, Form::Equal, &probe.facts, &mut candidates);
        if candidates.len() < self.rows.len() {
            self.rows.each(|row| found[row] = NONE);
        }
        table.find(keys, &candidates, found);
        drop(values);
        if let Some(residual) = &probe.residual
            && probe.several
        {
            return self.probe_several(number, probe, residual, candidates);
        }
        if let Some(residual) = &probe.residual {
            let mut matched = candidates;
            matched.retain(|row| self.found[number][row] != NONE);
            let rows = std::mem::replace(&mut self.rows, matched);
            self.load([residual])?;
            let truths = residual.evaluate(&self.registers, &self.rows)?;
            let found = &mut self.found[number];
            self.rows.each(|row| {
                if truths.bits(row) == 0 || !truths.is_valid(row) {
                    found[row] = NONE;
                }
            });
            self.rows = rows;
            // Registers hold values of rows that have matched alone.
            for register in &residual.registers {
                match self.pipeline.registers[*register] {
                    Origin::Column(_) => self.registers[*register].forget_selected(),
                    _ => self.registers[*register].clear(),
                }
            }
        }
        self.keep(number, probe.kind);
        Ok(())
    }

    /// Finds the rows of which any match meets a condition.
    fn probe_several(
        &mut self,
        number: usize,
        probe: &HostProbe,
        residual: &Program,
        candidates: Selection,
    ) -> Result<()> {
        let mut hits = Box::new([0u8; ROWS]);
        let mut matched = candidates;
        matched.retain(|row| self.found[number][row] != NONE);
        let rows = std::mem::replace(&mut self.rows, matched);
        let Some(table) = self.tables.get(probe.build).and_then(Option::as_ref) else {
            return Err(EngineError::Malformed("a probe of no table".into()));
        };
        let is_own = |register: &usize| matches!(self.pipeline.registers[*register], Origin::Payload { step, .. } if step == number);
        let read: Vec<usize> = residual.registers.iter().copied().filter(|register| !is_own(register)).collect();
        for register in &read {
            self.load_register(*register)?;
        }
        let mut places = Vec::with_capacity(self.rows.len());
        self.rows.each(|row| places.push(row));
        let pairs = places.iter().flat_map(|row| table.rows_of(self.found[number][*row]).map(|entry| (*row, entry)));
        let pairs: Vec<(usize, u32)> = pairs.collect();
        let parent = std::mem::take(&mut self.registers);
        let found = self.found[number].clone();
        let mut outcome = Ok(());
        for pairs in pairs.chunks(ROWS) {
            let from: Vec<u16> = pairs.iter().map(|(row, _)| *row as u16).collect();
            self.registers = parent.iter().map(|_| Register::default()).collect();
            read.iter().for_each(|register| self.registers[*register].gather(&parent[*register], &from));
            pairs.iter().enumerate().for_each(|(place, (_, entry))| self.found[number][place] = *entry);
            self.rows.start_in_order(pairs.len());
            outcome = self.load([residual]).and_then(|()| {
                let truths = residual.evaluate(&self.registers, &self.rows)?;
                for (place, (row, _)) in pairs.iter().enumerate() {
                    hits[*row] |= u8::from(truths.bits(place) != 0 && truths.is_valid(place));
                }
                Ok(())
            });
            if outcome.is_err() {
                break;
            }
        }
        self.registers = parent;
        self.rows = rows;
        self.found[number] = found;
        for register in &read {
            match self.pipeline.registers[*register] {
                Origin::Column(_) => self.registers[*register].forget_selected(),
                _ => self.registers[*register].clear(),
            }
        }
        outcome?;
        let found = &mut self.found[number];
        self.rows.each(|row| found[row] = if hits[row] != 0 { 0 } else { NONE });
        self.keep(number, probe.kind);
        Ok(())
    }

    /// Leaves the rows that a probe keeps.
    fn keep(&mut self, number: usize, kind: JoinKind) {
        let found = &self.found[number];
        match kind {
            JoinKind::Inner | JoinKind::Semi => self.rows.retain(|row| found[row] != NONE),
            JoinKind::Anti => self.rows.retain(|row| found[row] == NONE),
            JoinKind::Left | JoinKind::Mark => {}
        }
    }

    /// Probes a table of bits by offsets of a column, without computing keys; false where keys are no such offsets.
    fn probe_by_offset(&mut self, number: usize, probe: &HostProbe, table: &Table) -> bool {
        let ([key], Some(low), Some(bits)) = (&probe.keys[..], probe.pack.only_low(), table.bits()) else {
            return false;
        };
        let Some(register) = key.register().filter(|_| probe.codes[0].is_none() && probe.residual.is_none()) else {
            return false;
        };
        if !matches!(self.pipeline.registers[register], Origin::Column(_)) {
            return false;
        }
        self.read(register);
        let register = &self.registers[register];
        let (Some(Values::Offsets(reference)), None) = (register.values, &register.valid) else { return false };
        // Keys are offsets from the lowest key: those below it are large ones.
        let delta = reference.wrapping_sub(low as i64) as u64;
        let (offsets, found) = (&register.buffer.offsets, &mut self.found[number]);
        let mut find = |row: usize| {
            let key = delta.wrapping_add(u64::from(offsets[row]));
            let word = bits.get((key / 64) as usize).copied().unwrap_or(0);
            let is_there = word >> (key % 64) & 1 != 0;
            found[row] = if is_there { key as u32 } else { NONE };
            is_there
        };
        match probe.kind {
            JoinKind::Inner | JoinKind::Semi => self.rows.retain(find),
            JoinKind::Anti => self.rows.retain(|row| !find(row)),
            JoinKind::Left | JoinKind::Mark => self.rows.each(|row| {
                find(row);
            }),
        }
        true
    }

    /// Reads the registers of a program, and widens offsets.
    ///
    /// # Errors
    /// Sums of groups that have left their type.
    fn load<'p>(&mut self, programs: impl IntoIterator<Item = &'p Program>) -> Result<()> {
        for register in programs.into_iter().flat_map(|program| &program.registers) {
            self.load_register(*register)?;
        }
        Ok(())
    }

    fn load_register(&mut self, register: usize) -> Result<()> {
        self.read(register);
        self.registers[register].widen(&self.rows);
        match self.raises {
            true => Err(EngineError::Evaluation("an overflow")),
            false => Ok(()),
        }
    }

    /// Reads a register, if it was not read of this vector.
    fn read(&mut self, register: usize) {
        if self.registers[register].values.is_some() {
            return;
        }
        let (chunk, vector) = (self.chunk, self.vector);
        match &self.pipeline.registers[register] {
            Origin::Column(column) => match self.scanned {
                Scanned::Table { columns, .. } => {
                    let register = &mut self.registers[register];
                    register.values = Some(columns[*column].read(chunk, vector, &mut register.buffer));
                    if let Some(words) = columns[*column].validity(chunk, vector) {
                        register.set_validity(words);
                    }
                }
                Scanned::Groups { rows, key_words, is_wide } => {
                    let (first, register) = (vector * ROWS, &mut self.registers[register]);
                    let word = |row: usize| match (*column, *is_wide) {
                        (0, false) => rows.words[(first + row) * rows.row_words].wrapping_add(1),
                        (0, true) => 1,
                        (column, false) => rows.words[(first + row) * rows.row_words + key_words + column - 1],
                        (column, true) => rows.words[(first + row) * rows.row_words + column - 1],
                    };
                    self.rows.each(|row| {
                        register.buffer.integers[row] = word(row) as i64;
                        register.buffer.floats[row] = f64::from_bits(word(row));
                    });
                    register.fill(Values::Integers, None);
                }
            },
            Origin::Value(value) => self.read_value(register, value),
            Origin::Payload { step, column } => {
                let HostStep::Probe(probe) = &self.pipeline.steps[*step] else { return };
                let Some(table) = self.tables[probe.build].as_ref() else { return };
                let payload = &table.payload[*column];
                let target = &mut self.registers[register];
                let (integers, floats) = (&mut *target.buffer.integers, &mut *target.buffer.floats);
                let may_lack = probe.kind == JoinKind::Left;
                let valid = payload.gather(&self.found[*step], &self.rows, integers, floats, may_lack);
                target.fill(if payload.is_float { Values::Floats } else { Values::Integers }, valid);
            }
            Origin::Computed => {}
            Origin::Mark { step } => {
                let (found, target) = (&self.found[*step], &mut self.registers[register]);
                self.rows.each(|row| target.buffer.integers[row] = i64::from(found[row] != NONE));
                target.fill(Values::Integers, None);
            }
        }
    }

    /// Computes a value of a group.
    fn read_value(&mut self, register: usize, value: &GroupValue) {
        let Scanned::Groups { rows: groups, key_words, .. } = self.scanned else { return };
        let first = self.vector * ROWS;
        let words = |row: usize| &groups.words[(first + row) * groups.row_words..][..groups.row_words];
        let target = &mut self.registers[register];
        let (integers, floats) = (&mut target.buffer.integers, &mut target.buffer.floats);
        let mut valid = Own::new();
        let is_float = value.facts.ty.is_float();
        let mut raises = false;
        self.rows.each(|row| {
            let words = words(row);
            let (number, is_valid) = match &value.read {
                GroupRead::Key { part, .. } => key_value(part, words),
                GroupRead::Aggregate(output) => {
                    let cell = |cell: usize| words[key_words + cell];
                    let is_valid = output.count.is_none_or(|count| cell(count) != 0);
                    (read_cells(output.read, cell), is_valid)
                }
                GroupRead::Stored { .. } => (0, false),
            };
            valid[row] = u8::from(is_valid);
            raises |= is_valid && !is_float && i64::try_from(number).is_err() && value.facts.ty != Ty::U64;
            integers[row] = number as i64;
            if is_float {
                floats[row] = match (&value.read, value.facts.ty) {
                    (GroupRead::Aggregate(output), _) if matches!(output.read, Read::Nearest(_)) => number as f64,
                    (GroupRead::Key { .. }, Ty::F32) => f32::from_bits(number as u32).into(),
                    (_, Ty::F32) => f64::from(f64::from_bits(number as u64) as f32),
                    _ => f64::from_bits(number as u64),
                };
            }
        });
        self.raises |= raises;
        let has_nulls = value.facts.nullable;
        target.fill(if is_float { Values::Floats } else { Values::Integers }, has_nulls.then_some(valid));
    }

    fn sink(&mut self, first: u64) -> Result<()> {
        let pipeline = self.pipeline;
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
            HostSink::Groups { plan, keys, calls, cells, first_register } => {
                self.compute_columns(*first_register)?;
                let inputs = calls.iter().flat_map(|call| call.argument.iter().chain(&call.filter));
                self.load(keys.iter().chain(inputs))?;
                cells.iter().try_for_each(|register| self.load_register(*register))?;
                let mut rows = std::mem::take(&mut self.rows);
                self.pack(keys, &plan.pack, &mut rows)?;
                if let (Local::Groups(groups), Some(keys)) = (&mut self.local, &self.sink_keys) {
                    groups.enter(keys, &rows);
                    groups.add(calls, (&self.registers, *first_register), &rows)?;
                }
                self.rows = rows;
            }
            HostSink::First { keys, outputs, row, k } => {
                self.load(keys.iter().map(|key| &key.value).chain(outputs))?;
                if let Local::First(ranked) = &mut self.local {
                    let number = |place: usize| match self.scanned {
                        // Matches of a row have no number of their own.
                        _ if self.is_multiplied => first,
                        Scanned::Table { .. } => first + u64::from(rows_of_places()[place]),
                        Scanned::Groups { .. } => first + place as u64,
                    };
                    ranked.push((keys, outputs, row), &self.registers, (&self.rows, &number))?;
                    ranked.trim(*k, row.words());
                }
            }
            HostSink::Rows { plan, columns, .. } => {
                self.load(columns)?;
                if let Local::Rows(packed) = &mut self.local {
                    packed.push((columns, &plan.pack), &self.registers, &self.rows)?;
                }
            }
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
            match &value.data {
                Data::Integers(slots) => {
                    with_slots!(slots, at => rows.each(|row| target.buffer.integers[row] = at(row)));
                }
                Data::Floats(slots) => with_slots!(slots, at => rows.each(|row| target.buffer.floats[row] = at(row))),
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
            target.fill(if is_float { Values::Floats } else { Values::Integers }, valid);
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

fn values<'r>(programs: &[Program], registers: &'r [Register], rows: &Selection) -> Result<Vec<Value<'r>>> {
    programs.iter().map(|program| program.evaluate(registers, rows)).collect()
}

/// A part of a packed key, and whether it is valid.
fn key_value(part: &KeyPart, words: &[u64]) -> (i128, bool) {
    let place = u128::from(words[part.word] / part.stride) % part.places;
    match part.null {
        Null::First if place == 0 => (0, false),
        Null::First => (part.low + place as i128 - 1, true),
        Null::Never => (part.low + place as i128, true),
        Null::Apart { word, stride } => (part.low + place as i128, words[word] / stride % 2 == 0),
    }
}

/// The value of cells; a float is its bits.
fn read_cells(read: Read, cell: impl Fn(usize) -> u64) -> i128 {
    match read {
        Read::Integer(sum) | Read::Nearest(sum) => (cell(sum) as i64).into(),
        Read::Float(sum) => cell(sum).into(),
        Read::Wide { low, middle: Some(middle), high, .. } => {
            let (low, middle) = (i128::from(cell(low)), i128::from(cell(middle)));
            (i128::from(cell(high) as i64) << 64) + (middle << 32) + low
        }
        Read::Wide { low, high, .. } => (i128::from(cell(high) as i64) << 32) + i128::from(cell(low)),
        Read::Image { cell: image, signed, turned, float } => {
            let image = if turned { !cell(image) } else { cell(image) };
            match (float, signed) {
                (true, _) => {
                    let bits = (image ^ 1 << 63) as i64;
                    ((bits ^ ((bits >> 63) as u64 >> 1) as i64) as u64).into()
                }
                (false, true) => ((image ^ 1 << 63) as i64).into(),
                (false, false) => image.into(),
            }
        }
        Read::Fixed { cell: first, window, infinite } => {
            let mut sum = FloatSum::new();
            sum.add_cells(window.first, (first..first + window.limbs).map(|limb| cell(limb) as i64), cell(infinite));
            sum.value().to_bits().into()
        }
    }
}

/// Values of groups, a vector of them at a time, for the expressions of a result.
///
/// # Errors
/// Evaluation errors of groups.
pub(super) fn over_groups(
    groups: &GroupRows,
    key_words: usize,
    (programs, origins): (&[Program], &[Origin]),
    mut visit: impl FnMut(&[Value<'_>], &Selection),
) -> Result<()> {
    let scanned = Scanned::Groups { rows: groups, key_words, is_wide: false };
    let pipeline = HostPipeline::of_values(origins.to_vec());
    let mut worker = Worker::new(&pipeline, &scanned, &[]);
    for vector in 0..groups.count.div_ceil(ROWS) {
        worker.vector = vector;
        worker.registers.iter_mut().for_each(Register::clear);
        worker.rows.start_in_order(groups.count - vector * ROWS);
        worker.load(programs)?;
        visit(&values(programs, &worker.registers, &worker.rows)?, &worker.rows);
    }
    Ok(())
}

/// What a sink of a pipeline has become.
pub(super) enum Output {
    Table(Table),
    Groups(GroupRows, Arc<crate::plan::groups::GroupsPlan>),
    First(Vec<u64>, usize),
    Rows(Vec<u64>, usize),
}
