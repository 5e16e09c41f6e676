//! The part of a kernel that works on one row: columns and payload are loaded where they are first needed.

use std::fmt::Write;
use std::ops::Range;

use warpcube_column::ColumnReader;

use crate::arena::Arena;
use crate::codegen::expr::{Emitter, Value, c_type_of, vector_value};
use crate::codegen::filters::{Before, Site, Written};
use crate::codegen::keys::Packed;
use crate::codegen::memory::{Index, MatchesMemory, Operands, TableMemory};
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::stages::of_matches;
use crate::codegen::tables::{WIDE_NULL, hash_table, wide_table};
use crate::error::{EngineError, Result};
use crate::facts::Facts;
use crate::ir::{Expr, JoinKind, Probe, Ty};
use crate::plan::input::{Branch, PipelineInput};
use crate::plan::order::{Item, Planned};
use crate::plan::table::{PayloadColumn, TableLayout, TablePlan, table};

/// Matches that a thread looks at before it asks again whether the run is lost; with fewer it does not ask.
const WALK_ASKED: u32 = 1024;

/// A probe whose entry may still have to be found.
#[derive(Debug, Clone)]
struct Pending {
    probe: Probe,
    /// Whether its residual can raise an error.
    residual_raises: bool,
    /// Registers of its payload, and of its mark.
    payload: Range<usize>,
    /// Name of the entry's index, and of the truth value that there is one (left and mark joins).
    entry: Option<(String, Option<String>)>,
    /// Whether the entry is one of several matches, which later stages are given.
    is_match: bool,
}

/// Writes the statements of one row.
pub(crate) struct RowWriter<'a> {
    input: &'a PipelineInput<'a>,
    operands: Operands<'a>,
    readers: &'a [ColumnReader],
    params: &'a mut ParamList,
    arena: &'a mut Arena,
    error_slot: &'a str,
    next: &'a mut usize,
    passed: Vec<usize>,
    /// Slots of a lane in a step, if rows are worked on in place.
    in_place: Option<usize>,
    registers: Vec<Option<Value>>,
    pending: Vec<Pending>,
    /// What a row does up to each probe that may have several matches, with the name of the table's row numbers.
    stages: Vec<(String, String)>,
    /// What a row does, once what is done with each run of rows is being written.
    of_row: Option<String>,
    /// What its filters wrote.
    filters: Vec<Site>,
    out: String,
}

/// Statements of a row, and of the runs that rows of a step have left in shared memory.
pub(crate) struct Statements {
    pub(crate) row: String,
    pub(crate) runs: Option<String>,
    /// What filters wrote among them.
    pub(crate) filters: Vec<Site>,
}

impl<'a> RowWriter<'a> {
    /// A writer for rows whose columns `passed` come as arguments `x<column>`.
    pub(crate) fn new(
        (input, operands): (&'a PipelineInput<'a>, Operands<'a>),
        readers: &'a [ColumnReader],
        params: &'a mut ParamList,
        arena: &'a mut Arena,
        error_slot: &'a str,
        next: &'a mut usize,
        passed: &[usize],
    ) -> RowWriter<'a> {
        RowWriter {
            input,
            operands,
            readers,
            params,
            arena,
            error_slot,
            next,
            passed: passed.to_vec(),
            in_place: None,
            registers: vec![None; input.columns.len() + input.values.len()],
            pending: Vec::new(),
            stages: Vec::new(),
            of_row: None,
            filters: Vec::new(),
            out: String::new(),
        }
    }

    /// The same for rows that are worked on in place, so many slots of a lane in a step.
    pub(crate) fn in_place(self, slots: Option<usize>) -> RowWriter<'a> {
        RowWriter { in_place: slots, ..self }
    }

    /// Ends what a row does: what follows is done once a step, by all lanes.
    pub(crate) fn begin_runs(&mut self) {
        self.of_row = Some(std::mem::take(&mut self.out));
    }

    /// Whether the scan resumes.
    pub(crate) fn resumes(&self) -> bool {
        self.operands.scan.stop.is_some()
    }

    /// What is done with a row, or a run of rows, that finds no room: where there is room for all, keys collide.
    pub(crate) fn no_room(&self) -> String {
        let (control, pipeline) = (self.error_slot, self.input.index);
        let noted = match self.in_place.filter(|_| self.of_row.is_none()) {
            _ if !self.resumes() => return format!("{{ atomicOr({}, (uint32_t)WC_LONG_RUN); return; }}", self.flags()),
            Some(slots) => format!("unplaced |= 1u << wc_slot_of<{slots}>(row - begin);"),
            None => "unplaced = 1;".into(),
        };
        format!("{{ {noted} wc_no_room({control}, {pipeline}); return; }}")
    }

    /// Whether all lanes of a warp have to come together, because rows have several matches.
    pub(crate) fn multiplies(&self) -> bool {
        !self.stages.is_empty()
    }

    /// The statements: of `row`; where rows have several matches, of the warp's rows `row0` that are `valid0`
    /// ([`of_matches`]), whose matches are counted if `counts`.
    pub(crate) fn finish(mut self, counts: bool) -> Statements {
        let filters = std::mem::take(&mut self.filters);
        if let Some(row) = self.of_row.take() {
            return Statements { row, runs: Some(self.out), filters };
        }
        if self.stages.is_empty() {
            return Statements { row: self.out, runs: None, filters };
        }
        let (control, resumes) = (self.error_slot, self.resumes());
        let text = of_matches(&self.stages, &self.out, (control, resumes, counts));
        Statements { row: text, runs: None, filters }
    }

    /// The word that holds the run's flags, behind that of its error.
    pub(crate) fn flags(&self) -> String {
        flags(self.error_slot)
    }

    /// Appends a statement.
    pub(crate) fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// A step that rows reaching `process` have passed; its payload may still be asked for.
    pub(crate) fn already_tested(&mut self, planned: &Planned) {
        if let Item::Probe(probe, payload) = &planned.item {
            let (probe, payload, residual_raises) = (probe.clone(), payload.clone(), planned.residual_raises);
            self.pending.push(Pending { probe, residual_raises, payload, entry: None, is_match: false });
        }
    }

    /// Writes a step; rows it drops return.
    pub(crate) fn step(&mut self, planned: &Planned) -> Result<()> {
        match &planned.item {
            Item::Filter(expr) => {
                let truth = self.filter(expr, planned.part)?;
                self.line(&format!("if (!{truth}) return;"));
                Ok(())
            }
            Item::Probe(probe, payload) => self.probe(probe, payload, planned.residual_raises),
            Item::Limit { skip, rows } => {
                self.limit(*skip, *rows);
                Ok(())
            }
        }
    }

    /// Writes what computes a conjunct of the filters, and notes what that was; the condition that it holds.
    fn filter(&mut self, expr: &Expr, part: usize) -> Result<String> {
        self.ensure_all(expr)?;
        let (before, out, next) = (Before::of(self.params, self.arena), self.out.len(), *self.next);
        let mut registers = vec![None; self.registers.len()];
        expr.registers(&mut |register| registers[register].clone_from(&self.registers[register]));
        let truth = self.with_emitter(|emitter| emitter.emit(expr))?.truth();
        let text = self.out[out..].to_string() + &truth;
        let written = Written::Statements { registers: registers.into(), next, step_slots: None };
        self.filters.push(before.site(part, written, text, (self.params, self.arena)));
        Ok(truth)
    }

    /// Writes what counts the row and lets it pass if its number is within the limit.
    fn limit(&mut self, skip: u64, rows: u64) {
        let region = self.arena.zeroed(8);
        let counter = self.params.add("uint64_t*", Argument::Region(region));
        let (skip, end) = (Argument::U64(skip), Argument::U64(skip.saturating_add(rows)));
        let (skip, end) = (self.params.add("uint64_t", skip), self.params.add("uint64_t", end));
        let number = self.name();
        // A count that is full is only read: rows behind it would wait for one another.
        self.line(&format!("if (wc_load_relaxed({counter}) >= {end}) return;"));
        self.line(&format!("const uint64_t {number} = wc_fetch_add({counter}, (uint64_t)1);"));
        self.line(&format!("if ({number} < {skip} || {number} >= {end}) return;"));
    }

    /// Writes what finds the entry of a row: its name, and that of the truth value that there is one.
    fn find(&mut self, probe: &Probe) -> Result<(String, String)> {
        let (table, memory) = self.table(probe)?;
        let (places, seed) = (table.places, table.seed);
        let key = self.packed(probe, true)?;
        let inside = &key.inside;
        let (entry, found) = (self.name(), self.name());
        match memory.index {
            Index::Bitmap(bitmap) => {
                let packed = key.word();
                let bits = self.params.add("const uint32_t*", Argument::Region(bitmap));
                let test = format!("const bool {found} = {inside} && wc_test_bit({bits}, {packed});");
                self.line(&test);
                self.line(&format!("const uint64_t {entry} = {packed};"));
            }
            Index::Keys(keys) => {
                let target = self.with_emitter(|emitter| hash_table(emitter, keys, places, seed));
                let find = format!("wc_table_find({target}, {})", key.word());
                self.line(&format!("const uint64_t {entry} = ({inside}) ? {find} : ~0ULL;"));
                self.line(&format!("const bool {found} = {entry} != ~0ULL;"));
            }
            Index::Wide { states, words } => {
                let target =
                    self.with_emitter(|emitter| wide_table(emitter, (states, Argument::Region(words)), (places, seed)));
                let name = self.name();
                self.line(&format!("const uint64_t {name}[] = {{{}}};", key.list()));
                let find = format!("wc_wide_find({target}, {name})");
                self.line(&format!("const uint64_t {entry} = ({inside}) ? {find} : ~0ULL;"));
                self.line(&format!("const bool {found} = {entry} != ~0ULL;"));
            }
        }
        Ok((entry, found))
    }

    fn probe(&mut self, probe: &Probe, payload: &Range<usize>, residual_raises: bool) -> Result<()> {
        let goes_on = probe.kind.keeps_rows();
        let (_, memory) = self.table(probe)?;
        let (key_entry, key_found) = self.find(probe)?;
        if matches!(probe.kind, JoinKind::Inner | JoinKind::Semi) {
            self.line(&format!("if (!{key_found}) return;"));
        }
        let (entry, found) = self.meets((probe, residual_raises), payload, (&key_entry, &key_found))?;
        match probe.kind {
            JoinKind::Semi if probe.residual.is_some() => self.line(&format!("if (!{found}) return;")),
            JoinKind::Anti => self.line(&format!("if ({found}) return;")),
            _ => {}
        }
        let joins = matches!(probe.kind, JoinKind::Inner | JoinKind::Left);
        if let Some(matches) = memory.matches.filter(|_| joins) {
            return self.each_match(probe, payload, matches, (&key_entry, &found));
        }
        let entry = Some((entry, goes_on.then_some(found)));
        let (probe, payload) = (probe.clone(), payload.clone());
        self.pending.push(Pending { probe, residual_raises, payload, entry, is_match: false });
        Ok(())
    }

    /// Writes the search for an entry of the key that meets the residual: its name, and that of the truth value that
    /// there is one. Without a residual this is the entry that was found.
    ///
    /// A thread walks the matches of its row until one meets the residual; to the end if the residual may raise an
    /// error, as it does on the CPU whatever other matches are. Every [`WALK_ASKED`] matches it asks whether the run is
    /// lost: a key may have any number of them.
    fn meets(
        &mut self,
        (probe, may_raise): (&Probe, bool),
        payload: &Range<usize>,
        (entry, found): (&str, &str),
    ) -> Result<(String, String)> {
        let Some(residual) = &probe.residual else { return Ok((entry.into(), found.into())) };
        let (_, memory) = self.table(probe)?;
        // What the residual reads of the row is loaded once, outside of the walk.
        let mut read = Vec::new();
        residual.registers(&mut |register| read.push(register));
        read.sort_unstable();
        read.dedup();
        let (own, kept): (Vec<usize>, Vec<usize>) = read.into_iter().partition(|register| payload.contains(register));
        kept.into_iter().try_for_each(|register| self.ensure(register))?;
        let (of_row, before) = (self.registers.clone(), std::mem::take(&mut self.out));
        let (candidate, met) = (self.name(), self.name());
        for register in own {
            self.load_entry((probe, register - payload.start), register, (&candidate, None))?;
        }
        let value = self.with_emitter(|emitter| emitter.emit(residual))?;
        let body = std::mem::replace(&mut self.out, before);
        self.registers = of_row;
        let truth = value.truth();
        let test = |from: &str| {
            format!("const uint64_t {candidate} = {from};\n[&]() {{\n{body}{met} = {met} || {truth};\n}}();")
        };
        self.line(&format!("bool {met} = false;"));
        let Some(matches) = memory.matches else {
            self.line(&format!("if ({found}) {{\n{}\n}}", test(entry)));
            return Ok((entry.into(), met));
        };
        let mut region = |region| self.params.add("const uint32_t*", Argument::Region(region));
        let (counts, firsts, order) = (region(matches.counts), region(matches.firsts), region(matches.order));
        let (from, count, at) = (self.name(), self.name(), self.name());
        let control = self.error_slot;
        let more = if may_raise { String::new() } else { format!(" && !{met}") };
        self.line(&format!(
            "if ({found}) {{
const uint32_t {from} = {firsts}[{entry}], {count} = {counts}[{entry}];
for (uint32_t {at} = 0; {at} != {count}{more}; ++{at}) {{
if ({count} >= {WALK_ASKED} && {at} % {WALK_ASKED} == 0 && wc_is_lost({control})) break;
{}
}}
}}",
            test(&format!("{order}[{from} + {at}]"))
        ));
        Ok((entry.into(), met))
    }

    /// Ends a stage with the matches of an entry, and begins the next, in which nothing of the row is loaded.
    fn each_match(
        &mut self,
        probe: &Probe,
        payload: &Range<usize>,
        matches: MatchesMemory,
        (entry, found): (&str, &str),
    ) -> Result<()> {
        let mut region = |region| self.params.add("const uint32_t*", Argument::Region(region));
        let (counts, firsts, order) = (region(matches.counts), region(matches.firsts), region(matches.order));
        if probe.kind == JoinKind::Left {
            self.line(&format!("first = WC_NO_MATCH, count = 1;\nif (!{found}) return;"));
        }
        self.line(&format!("first = {firsts}[{entry}], count = {counts}[{entry}];"));
        let stage = self.stages.len();
        self.stages.push((std::mem::take(&mut self.out), order));
        self.registers = vec![None; self.input.columns.len() + self.input.values.len()];
        self.passed.clear();
        let is_again = |pending: &&mut Pending| !pending.is_match;
        self.pending.iter_mut().filter(is_again).for_each(|pending| pending.entry = None);
        let matched = (probe.kind == JoinKind::Left).then(|| format!("(match{stage} != WC_NO_MATCH)"));
        let entry = Some((format!("match{stage}"), matched));
        let (of_match, own) = (probe.clone(), payload.clone());
        self.pending.push(Pending { probe: of_match, residual_raises: false, payload: own, entry, is_match: true });
        if let Some(residual) = &probe.residual {
            // A row is here without a match once, if none of them meets the residual.
            let is_match = format!("match{stage} != WC_NO_MATCH");
            self.ensure_all(residual)?;
            let value = self.with_emitter(|emitter| emitter.emit_guarded(residual, Some(&is_match)))?;
            self.line(&format!("if ({is_match} && !{}) return;", value.truth()));
        }
        Ok(())
    }

    /// Writes the probe's packed key and the condition that it lies in the table's domain.
    fn packed(&mut self, probe: &Probe, check: bool) -> Result<Packed> {
        let (table, _) = self.table(probe)?;
        let keys = probe.keys.iter().map(|key| self.emit(key)).collect::<Result<Vec<_>>>()?;
        self.with_emitter(|emitter| {
            let keys = emitter.codes_of(table, keys)?;
            Ok(table.pack.emit_checked(emitter, &keys, check))
        })
    }

    /// The table that a probe looks into.
    fn table(&self, probe: &Probe) -> Result<(&'a TablePlan, &'a TableMemory)> {
        bound_table(self.input, self.operands, probe)
    }

    fn name(&mut self) -> String {
        *self.next += 1;
        format!("t{}", self.next)
    }

    /// Writes what computes an expression, loading what it reads.
    pub(crate) fn emit(&mut self, expr: &Expr) -> Result<Value> {
        self.ensure_all(expr)?;
        self.with_emitter(|emitter| emitter.emit(expr))
    }

    /// Loads what an expression reads.
    fn ensure_all(&mut self, expr: &Expr) -> Result<()> {
        let mut needed = Vec::new();
        expr.registers(&mut |register| needed.push(register));
        needed.into_iter().try_for_each(|register| self.ensure(register))
    }

    /// Writes the columns of the union that the pipeline is a branch of: from there on they are the registers.
    pub(crate) fn enter_union(&mut self) -> Result<()> {
        let Some(Branch { union, number, .. }) = self.input.branch else { return Ok(()) };
        let mut values: Vec<Option<Value>> = Vec::with_capacity(union.columns.len());
        for (column, facts) in union.branches[number].iter().zip(union.columns.iter().flatten()) {
            self.ensure_all(&column.expr)?;
            let guard = column.guard.and_then(|guard| Some(values[guard].as_ref()?.truth()));
            let value = self.with_emitter(|emitter| {
                let value = emitter.emit_guarded(&column.expr, guard.as_deref())?;
                Ok::<_, EngineError>(emitter.shared(value, facts))
            })?;
            values.push(Some(value));
        }
        self.registers = values;
        Ok(())
    }

    /// Lends an emitter over the row's registers and takes over its statements.
    pub(crate) fn with_emitter<R>(&mut self, write: impl FnOnce(&mut Emitter) -> R) -> R {
        let mut emitter =
            Emitter::new(&self.registers, self.params, self.arena, (self.error_slot, self.input.overflow), self.next);
        let result = write(&mut emitter);
        let statements = emitter.out;
        self.out.push_str(&statements);
        result
    }

    fn ensure(&mut self, register: usize) -> Result<()> {
        if self.registers.get(register).is_some_and(Option::is_some) {
            return Ok(());
        }
        if register < self.input.columns.len() {
            self.load_column(register);
            return Ok(());
        }
        if let Some(value) = self.input.values.get(register - self.input.columns.len()) {
            let mut columns = Vec::new();
            value.columns(&mut |column| columns.push(column));
            columns.into_iter().try_for_each(|column| self.ensure(column))?;
            let value = self.with_emitter(|emitter| value.emit(emitter))?;
            self.registers[register] = Some(value);
            return Ok(());
        }
        // Steps may have been reordered: what counts is whose payload the register is, not which probe came last.
        match self.pending.iter().position(|pending| pending.payload.contains(&register)) {
            Some(position) => self.load_payload(position, register),
            None => Ok(()),
        }
    }

    fn load_column(&mut self, column: usize) {
        let template = &self.input.columns[column];
        let stored = match self.passed.contains(&column) {
            true => format!("x{column}"),
            false => {
                let c_type = self.input.columns[column].layout.value_type();
                let _ = writeln!(self.out, "const {c_type} r{column} = {};", self.readers[column].gather());
                format!("r{column}")
            }
        };
        let valid = template.nullable.then(|| match self.passed.contains(&column) {
            true => format!("xn{column}"),
            false => {
                let _ = writeln!(self.out, "const bool rn{column} = wc_row_valid(n{column}, row);");
                format!("rn{column}")
            }
        });
        let code = vector_value(template, &stored);
        self.registers[column] = Some(Value::new(template.facts.clone(), code, valid));
    }

    fn load_payload(&mut self, position: usize, register: usize) -> Result<()> {
        let pending = self.pending[position].clone();
        let (entry, matched) = match pending.entry {
            Some(entry) => entry,
            None => {
                let goes_on = pending.probe.kind.keeps_rows();
                let direct = self.table(&pending.probe)?.0.layout == TableLayout::Direct;
                let found = match direct && !goes_on {
                    true => {
                        let packed = self.packed(&pending.probe, false)?;
                        let entry = self.name();
                        self.line(&format!("const uint64_t {entry} = {};", packed.word()));
                        (entry, None)
                    }
                    false => {
                        let (entry, found) = self.find(&pending.probe)?;
                        let probe = (&pending.probe, pending.residual_raises);
                        let (entry, found) = self.meets(probe, &pending.payload, (&entry, &found))?;
                        (entry, goes_on.then_some(found))
                    }
                };
                self.pending[position].entry = Some(found.clone());
                found
            }
        };
        if pending.probe.kind == JoinKind::Mark && register + 1 == pending.payload.end {
            let facts = Facts::new(Ty::Bool, false, Ty::Bool.bounds());
            self.write(register, Value::new(facts, matched.unwrap_or_default(), None));
            return Ok(());
        }
        self.load_entry((&pending.probe, register - pending.payload.start), register, (&entry, matched))
    }

    /// Loads a register from an entry of a payload column, by its position; NULL where `matched` is false.
    fn load_entry(
        &mut self,
        (probe, position): (&Probe, usize),
        register: usize,
        (entry, matched): (&str, Option<String>),
    ) -> Result<()> {
        let (table, memory) = self.table(probe)?;
        let column: &PayloadColumn = &table.payload[position];
        let pointer = self.params.add(&format!("const {}*", column.c_type), Argument::Region(memory.payload[position]));
        let stored = self.name();
        // Not through the read-only cache: this kernel may start while the one that writes the table still runs.
        let load = format!("{pointer}[{entry}]");
        let load = match &matched {
            Some(matched) => format!("{matched} ? {load} : ({})0", column.c_type),
            None => load,
        };
        self.line(&format!("const {} {stored} = {load};", column.c_type));
        let result = c_type_of(&column.facts);
        let is_float = column.facts.ty.is_float();
        let code = if is_float || column.is_wide() {
            format!("(({result}){stored})")
        } else {
            let offset = self.params.add("int64_t", Argument::I64(column.offset()));
            format!("(({result}){})", column.value(&stored, &offset))
        };
        let own = column.facts.nullable.then(|| match is_float {
            true => format!("!wc_is_nan_null({stored})"),
            false if column.is_wide() => format!("({stored} != {WIDE_NULL})"),
            false => format!("({stored} != 0)"),
        });
        let valid = match (matched, own) {
            (None, own) => own,
            (Some(matched), None) => Some(matched),
            (Some(matched), Some(own)) => Some(format!("({matched} && {own})")),
        };
        self.write(register, Value::new(column.facts.clone(), code, valid));
        Ok(())
    }

    fn write(&mut self, register: usize, value: Value) {
        if self.registers.len() <= register {
            self.registers.resize(register + 1, None);
        }
        self.registers[register] = Some(value);
    }
}

/// The table that a probe looks into.
fn bound_table<'a>(
    input: &PipelineInput<'a>,
    operands: Operands<'a>,
    probe: &Probe,
) -> Result<(&'a TablePlan, &'a TableMemory)> {
    let memory = operands.tables.get(probe.build).and_then(Option::as_ref);
    let is_not_there = || EngineError::Malformed(format!("the table of pipeline {} lies nowhere", probe.build));
    Ok((table(input.tables, probe)?, memory.ok_or_else(is_not_there)?))
}

/// The condition that a row of loaded vectors has a partner in a table that is a bitmap, in shared memory by the name
/// `staged` if it is there, or has none.
pub(crate) fn dense_probe(
    emitter: &mut Emitter,
    probe: &Probe,
    (input, operands): (&PipelineInput, Operands),
    staged: Option<String>,
) -> Result<String> {
    let key = dense_key(emitter, probe, input)?;
    let bits = staged.map_or_else(|| bitmap_of(emitter, probe, (input, operands)), Ok)?;
    let test = format!("({} && wc_test_bit({bits}, {}))", key.inside, key.word());
    Ok(if probe.kind == JoinKind::Anti { format!("!{test}") } else { test })
}

/// The same of a bitmap in device memory, for rows that are `left`. Others look at its first word, so that the words of
/// many rows are on their way together.
pub(crate) fn far_probe(
    emitter: &mut Emitter,
    probe: &Probe,
    (input, operands): (&PipelineInput, Operands),
    left: &str,
) -> Result<String> {
    let key = dense_key(emitter, probe, input)?;
    let bits = bitmap_of(emitter, probe, (input, operands))?;
    let test = format!("wc_test_far({bits}, ({left}) & ({}), {})", key.inside, key.word());
    Ok(if probe.kind == JoinKind::Anti { format!("({left}) & !{test}") } else { test })
}

fn dense_key(emitter: &mut Emitter, probe: &Probe, input: &PipelineInput) -> Result<Packed> {
    let table = table(input.tables, probe)?;
    let keys = probe.keys.iter().map(|key| emitter.emit(key)).collect::<Result<Vec<_>>>()?;
    let keys = emitter.codes_of(table, keys)?;
    Ok(table.pack.emit_checked(emitter, &keys, true))
}

fn bitmap_of(emitter: &mut Emitter, probe: &Probe, (input, operands): (&PipelineInput, Operands)) -> Result<String> {
    let bitmap = bound_table(input, operands, probe)?.1.bitmap();
    let bitmap = bitmap.ok_or_else(|| EngineError::Malformed("a dense probe of a hashed table".into()))?;
    Ok(emitter.params.add("const uint32_t*", Argument::Region(bitmap)))
}

/// The word that holds a run's flags, in the control region behind the word of its error.
pub(super) fn flags(control: &str) -> String {
    format!("(uint32_t*)({control} + 1)")
}
