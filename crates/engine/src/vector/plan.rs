//! What the CPU does of a fragment: its pipelines as they are planned for a device, with their steps and sinks as
//! programs.

use std::collections::BTreeSet;
use std::sync::Arc;

use warpcube_column::{Dictionary, Relation};
use warpcube_gpu::{DeviceInfo, DevicePtr};

use super::groups::Call;
use super::program::{Program, Scope};
use super::rows::Key;
use crate::arena::Pointer;
use crate::dictionaries::codes;
use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::ir::{AggregateCall, BinaryOp, Expr, Fragment, JoinKind, Pipeline, Probe, Sink, Source, Ty};
use crate::plan::cells::Part;
use crate::plan::group_values::GroupValue;
use crate::plan::groups::GroupsPlan;
use crate::plan::input::{Branch, PipelineInput, limit, rows_out, unmatched_rows};
use crate::plan::keys::KeyPack;
use crate::plan::order::{self, Item};
use crate::plan::pipeline::plan;
use crate::plan::ready::{malformed, over_output, unique};
use crate::plan::row_layout::RowLayout;
use crate::plan::rows::ResultPlan;
use crate::plan::sink::SinkPlan;
use crate::plan::table::{TablePlan, Tables, table};
use crate::plan::union::{self, Member, Union};
use crate::plan::unread::without_unread;
use crate::plan::view::{ColumnView, View, of_table};
use crate::tuning::Tuning;

/// A pipeline.
#[derive(Debug)]
pub(super) struct HostPipeline {
    pub(super) source: Source,
    /// What its registers are read of.
    pub(super) registers: Vec<Origin>,
    pub(super) steps: Vec<HostStep>,
    /// What the branches of a union make of rows before the sink that they share.
    pub(super) columns: Vec<UnionColumn>,
    pub(super) sink: HostSink,
    /// Most rows that come to the sink, those of all branches of a union.
    pub(super) rows_out: u64,
}

/// A column of a branch of a union.
#[derive(Debug)]
pub(super) struct UnionColumn {
    pub(super) program: Program,
    /// The column that tells for which rows it is computed.
    pub(super) guard: Option<usize>,
}

impl HostPipeline {
    /// Notes what is read behind each probe.
    fn with_reads(mut self) -> HostPipeline {
        let mut read: BTreeSet<usize> = self.sink.registers().collect();
        read.extend(self.columns.iter().flat_map(|column| &column.program.registers));
        for step in (0..self.steps.len()).rev() {
            let is_there = |register: &usize| match &self.registers[*register] {
                Origin::Column(_) | Origin::Word { .. } | Origin::Value(_) => true,
                Origin::Payload { step: of, .. } | Origin::Mark { step: of } => *of < step,
                Origin::Computed => false,
            };
            let behind = read.iter().copied().filter(is_there).collect();
            match &mut self.steps[step] {
                HostStep::Range { column, .. } => drop(read.insert(*column)),
                HostStep::Filter(program) => read.extend(&program.registers),
                HostStep::Probe(probe) => {
                    probe.read_behind = behind;
                    read.extend(probe.keys.iter().chain(&probe.residual).flat_map(|program| &program.registers));
                }
            }
        }
        self
    }

    /// A scan of groups whose registers are these, without a sink of its own.
    pub(super) fn of_values(registers: Vec<Origin>) -> HostPipeline {
        let sink =
            HostSink::First { keys: Vec::new(), outputs: Vec::new(), row: RowLayout { columns: Vec::new() }, k: None };
        HostPipeline { source: Source::Output(0), registers, steps: Vec::new(), columns: Vec::new(), sink, rows_out: 0 }
    }
}

/// What a register is read of.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// A column of the scanned table.
    Column(usize),
    /// A word of the rows of an output.
    Word { column: usize, is_float: bool },
    /// A value that is computed of columns of an output.
    Value(Box<GroupValue>),
    /// A column of the table of a step's probe.
    Payload { step: usize, column: usize },
    /// Whether a step's probe has found an entry.
    Mark { step: usize },
    /// A column of a branch of a union.
    Computed,
}

#[derive(Debug)]
pub(super) enum HostStep {
    /// Integers of a column within bounds.
    Range {
        column: usize,
        low: i64,
        high: i64,
    },
    Filter(Program),
    Probe(HostProbe),
}

#[derive(Debug)]
pub(super) struct HostProbe {
    pub(super) build: usize,
    pub(super) keys: Vec<Program>,
    /// Codes of each key's strings among those of the table's, where they are other ones.
    pub(super) codes: Vec<Option<Arc<Vec<u32>>>>,
    pub(super) facts: Vec<Facts>,
    /// How the table packs its keys.
    pub(super) pack: KeyPack,
    pub(super) kind: JoinKind,
    pub(super) residual: Option<Program>,
    /// Whether a row may have several matches whose payload is read.
    pub(super) several: bool,
    /// The registers that are read behind it, of those that are there before it.
    pub(super) read_behind: Vec<usize>,
}

#[derive(Debug)]
pub(super) enum HostSink {
    Table { plan: Arc<TablePlan>, keys: Vec<Program>, payload: Vec<Program> },
    Groups { plan: Arc<GroupsPlan>, keys: Vec<Program>, calls: Vec<Call>, cells: Vec<usize>, first_register: usize },
    First { keys: Vec<Key>, outputs: Vec<Program>, row: RowLayout, k: Option<u64> },
    Rows { plan: Arc<ResultPlan>, columns: Vec<Program>, limit: Option<u64> },
}

impl HostSink {
    /// The registers that it reads.
    fn registers(&self) -> impl Iterator<Item = usize> {
        let (mut programs, mut cells): (Vec<&Program>, &[usize]) = (Vec::new(), &[]);
        match self {
            HostSink::Table { keys, payload, .. } => programs.extend(keys.iter().chain(payload)),
            HostSink::Groups { keys, calls, cells: scanned, .. } => {
                programs.extend(keys);
                programs.extend(calls.iter().flat_map(|call| call.argument.iter().chain(&call.filter)));
                cells = scanned;
            }
            HostSink::First { keys, outputs, .. } => {
                programs.extend(keys.iter().map(|key| &key.value).chain(outputs));
            }
            HostSink::Rows { columns, .. } => programs.extend(columns),
        }
        let read: Vec<usize> = programs.into_iter().flat_map(|program| &program.registers).copied().collect();
        read.into_iter().chain(cells.to_vec())
    }
}

/// What a run may find to be otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HostGuesses {
    /// A bit a pipeline whose table has several rows for a key.
    pub(super) several: u32,
    /// Whether exact sums of floats keep limbs for every finite value.
    pub(super) whole_sums: bool,
}

/// Plans a fragment over columns in host memory.
///
/// # Errors
/// Unsupported for what is not done here.
pub(super) fn plan_fragment(
    fragment: &Fragment,
    tables: &[Relation],
    (info, tuning, guesses): (&DeviceInfo, &Tuning, HostGuesses),
) -> Result<Vec<HostPipeline>> {
    let fragment = without_unread(fragment);
    let count = fragment.pipelines.len();
    let mut built: Vec<Option<Arc<TablePlan>>> = vec![None; count];
    let mut pipelines: Vec<HostPipeline> = Vec::with_capacity(count);
    let (mut ready, mut union) = (Vec::new(), None);
    for index in 0..count {
        let branches = fragment.branches(index);
        if branches.start == index {
            let of = |index: usize| Ready::of(&fragment, index, tables, (&built, &pipelines));
            ready = branches.clone().map(of).collect::<Result<Vec<_>>>()?;
            union = match ready.len() {
                1 => None,
                _ => Some(Union::of(&ready.iter().map(Ready::member).collect::<Vec<_>>(), fragment.overflow)?),
            };
        }
        let number = index - branches.start;
        let Some(Ready { scanned, pipeline, registers, rows, .. }) = ready.get(number) else {
            return Err(malformed(index, "is the end of an empty union"));
        };
        let groups = match pipelines.get(branches.start).map(|pipeline| &pipeline.sink) {
            Some(HostSink::Groups { plan, .. }) => Some(plan),
            _ => None,
        };
        let branch = union.as_ref().map(|union| Branch { union, number, groups });
        let input = PipelineInput {
            index,
            pipeline,
            columns: &scanned.columns,
            values: &scanned.values,
            rows: *rows,
            chunk_rows: &scanned.chunks,
            skips: false,
            tables: &built,
            unique: unique(&fragment, index, guesses.several),
            several: guesses.several.checked_shr(index as u32).unwrap_or(0) & 1 != 0,
            determined: &[],
            result: if branches.end == count { &fragment.result } else { &[] },
            scanned: fragment.pipelines.iter().any(|other| other.source == Source::Output(branches.end - 1)),
            has_limit: branches.clone().any(|branch| limit(&fragment.pipelines[branch]).is_some()),
            probed: fragment.is_probed(index),
            branch,
            info,
            shared_limit: info.shared_memory_per_block,
            group_slots: tuning.group_slots,
            growth: 0,
            behind: false,
            seed: 0,
            whole_sums: guesses.whole_sums,
            failed_thresholds: 0,
            many_sorted: true,
            overflow: fragment.overflow,
            tuning,
        };
        let host = plan_pipeline(&input, scanned, registers)?;
        if let HostSink::Table { plan, .. } = &host.sink {
            built[index] = Some(plan.clone());
        }
        pipelines.push(host);
    }
    Ok(pipelines)
}

/// A pipeline over what it scans, before it is planned.
struct Ready<'a> {
    scanned: View<'a>,
    pipeline: Pipeline,
    registers: Vec<Option<Facts>>,
    rows: u64,
    rows_out: u64,
    unmatched_rows: Option<u64>,
}

impl<'a> Ready<'a> {
    fn of(
        fragment: &Fragment,
        index: usize,
        tables: &'a [Relation],
        (built, before): (&Tables, &[HostPipeline]),
    ) -> Result<Ready<'a>> {
        let pipeline = &fragment.pipelines[index];
        let (scanned, pipeline) = match pipeline.source {
            Source::Table(number) => {
                let relation = tables.get(number).ok_or_else(|| malformed(index, "scans a table that is not there"))?;
                (of_table(number, relation), pipeline.clone())
            }
            Source::Output(of) => {
                let scanned = view_of(before.get(of).map(|pipeline| &pipeline.sink))?;
                let pipeline = over_output(pipeline, &scanned);
                (scanned, pipeline)
            }
        };
        let values = scanned.values.iter().map(|value| &value.facts);
        let columns: Vec<Facts> = scanned.columns.iter().map(|column| &column.facts).chain(values).cloned().collect();
        let registers = order::registers(&pipeline, &columns, built)?;
        if registers.iter().flatten().any(|facts| facts.texts.is_some()) {
            return unsupported("strings without a dictionary on the CPU's columns");
        }
        let rows = match pipeline.source {
            Source::Table(_) => scanned.rows(),
            // No more groups than rows that were grouped, and one at least.
            Source::Output(of) => before.get(of).map_or(1, |scanned| scanned.rows_out.max(1)),
        };
        let (rows_out, unmatched_rows) = (rows_out(&pipeline, rows, built), unmatched_rows(&pipeline, built));
        Ok(Ready { scanned, pipeline, registers, rows, rows_out, unmatched_rows })
    }

    fn member(&self) -> Member<'_> {
        Member {
            sink: &self.pipeline.sink,
            registers: &self.registers,
            columns: &self.scanned.columns,
            values: &self.scanned.values,
            rows: self.rows,
            rows_out: self.rows_out,
            unmatched_rows: self.unmatched_rows,
        }
    }
}

/// The view of what a pipeline leaves: columns of words, which values are computed of.
fn view_of(sink: Option<&HostSink>) -> Result<View<'static>> {
    let words = |facts: Vec<Facts>, values: Vec<GroupValue>, has_entries: bool| {
        let nowhere = || vec![Pointer::Address(DevicePtr::NULL)];
        let columns = facts.into_iter().map(|facts| ColumnView::of_words(facts, nowhere(), 1)).collect();
        // How many rows there are is known when they are there.
        View { chunks: vec![1 << 20], has_entries, count: None, columns, values }
    };
    match sink {
        Some(HostSink::Groups { plan, .. }) => {
            Ok(words(plan.column_facts(), plan.values.clone().unwrap_or_default(), false))
        }
        _ => unsupported("a scan of other rows than groups on the CPU's columns"),
    }
}

fn plan_pipeline(input: &PipelineInput<'_>, scanned: &View<'_>, facts: &[Option<Facts>]) -> Result<HostPipeline> {
    let pipeline = input.pipeline;
    let scope = Scope { registers: facts, overflow: input.overflow };
    let limits = (input.overflow, usize::MAX, input.tuning);
    let columns = scanned.columns.len() + scanned.values.len();
    let (planned, _) = order::order(pipeline, columns, facts, input.tables, limits)?;
    let is_table = pipeline.source.table().is_some();
    let origin = |(column, view): (usize, &ColumnView<'_>)| match is_table {
        true => Origin::Column(column),
        false => Origin::Word { column, is_float: view.facts.ty.is_float() },
    };
    let mut registers: Vec<Origin> = scanned.columns.iter().enumerate().map(origin).collect();
    registers.extend(scanned.values.iter().map(|value| Origin::Value(Box::new(value.clone()))));
    registers.resize(facts.len(), Origin::Column(usize::MAX));
    let mut steps = Vec::with_capacity(planned.len());
    for planned in &planned {
        match &planned.item {
            Item::Filter(expr) => match range(expr, facts, scanned.columns.len()) {
                Some(step) => steps.push(step),
                None => steps.push(HostStep::Filter(scope.compile(expr)?)),
            },
            Item::Probe(probe, own) => {
                let step = steps.len();
                let width = table(input.tables, probe)?.payload.len();
                for (column, register) in own.clone().enumerate() {
                    registers[register] = match probe.has_payload() && column < width {
                        true => Origin::Payload { step, column },
                        false => Origin::Mark { step },
                    };
                }
                steps.push(HostStep::Probe(plan_probe(input, probe, &scope)?));
            }
            Item::Limit { .. } => return unsupported("limits below other operators on the CPU's columns"),
        }
    }
    let (source, rows_out) = (pipeline.source, input.rows_out());
    let Some(Branch { union, number, .. }) = input.branch else {
        let sink = plan_sink(input, &pipeline.sink, (&scope, 0))?;
        return Ok(HostPipeline { source, registers, steps, columns: Vec::new(), sink, rows_out }.with_reads());
    };
    // The sink of a union reads columns behind the registers of each branch.
    let first = registers.len();
    let column = |(column, facts): (&union::Column, &Option<Facts>)| {
        let program = match facts {
            Some(facts) => scope.compile_as(&column.expr, facts)?,
            None => scope.compile(&column.expr)?,
        };
        Ok(UnionColumn { program, guard: column.guard })
    };
    let columns = union.branches[number].iter().zip(&union.columns).map(column).collect::<Result<Vec<_>>>()?;
    registers.resize(first + columns.len(), Origin::Computed);
    let all: Vec<Option<Facts>> = facts.iter().chain(&union.columns).cloned().collect();
    let shifted = |expr: &Expr| {
        let mut expr = expr.clone();
        expr.change(&mut |expr| {
            if let Some(register) = expr.register() {
                *register += first;
            }
        });
        expr
    };
    let groups = union.groups.iter().map(|(expr, data_type)| (shifted(expr), data_type.clone())).collect();
    let aggregates = union.aggregates.iter().map(|call| AggregateCall {
        argument: call.argument.as_ref().map(shifted),
        filter: call.filter.as_ref().map(shifted),
        ..call.clone()
    });
    let sink = Sink::Aggregate { groups, aggregates: aggregates.collect() };
    let scope = Scope { registers: &all, overflow: input.overflow };
    let sink = plan_sink(input, &sink, (&scope, first))?;
    Ok(HostPipeline { source, registers, steps, columns, sink, rows_out }.with_reads())
}

/// A comparison of a column without NULLs and a constant as a range.
fn range(expr: &Expr, facts: &[Option<Facts>], columns: usize) -> Option<HostStep> {
    let (column, op, constant) = expr.against_constant()?;
    let facts = facts.get(column)?.as_ref().filter(|_| column < columns)?;
    if facts.nullable || facts.ty.is_float() || facts.ty == Ty::U64 || facts.is_wide() {
        return None;
    }
    let (low, high) = match op {
        BinaryOp::Eq => (constant, constant),
        BinaryOp::Lt => (i128::MIN, constant - 1),
        BinaryOp::Le => (i128::MIN, constant),
        BinaryOp::Gt => (constant + 1, i128::MAX),
        BinaryOp::Ge => (constant, i128::MAX),
        _ => return None,
    };
    let within = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    // An empty range stays empty.
    if low > i64::MAX.into() || high < i64::MIN.into() {
        return Some(HostStep::Range { column, low: 1, high: 0 });
    }
    Some(HostStep::Range { column, low: within(low), high: within(high) })
}

fn plan_probe(input: &PipelineInput<'_>, probe: &Probe, scope: &Scope<'_>) -> Result<HostProbe> {
    let built = table(input.tables, probe)?;
    let keys = probe.keys.iter().map(|key| scope.compile(key)).collect::<Result<Vec<_>>>()?;
    let same = |(key, own): (&Program, &Option<Arc<Dictionary>>)| match (&key.facts.dictionary, own) {
        (Some(of), Some(among)) if !Arc::ptr_eq(of, among) => Some(Arc::new(codes(of, among))),
        _ => None,
    };
    let codes: Vec<_> = keys.iter().zip(&built.strings).map(same).collect();
    let facts = keys.iter().zip(&codes).map(|(key, codes)| match codes {
        Some(_) => Facts { range: None, ..key.facts.clone() },
        None => key.facts.clone(),
    });
    let facts = facts.collect();
    let several = built.matches.is_some();
    if several && probe.residual.is_some() && probe.kind == JoinKind::Left {
        return unsupported("conditions of outer joins with several matches on the CPU's columns");
    }
    let residual = probe.residual.as_ref().map(|residual| scope.compile(residual)).transpose()?;
    let (build, kind, pack) = (probe.build, probe.kind, built.pack.clone());
    Ok(HostProbe { build, keys, codes, facts, pack, kind, residual, several, read_behind: Vec::new() })
}

fn plan_sink(input: &PipelineInput<'_>, sink: &Sink, (scope, first_register): (&Scope<'_>, usize)) -> Result<HostSink> {
    let compile = |expr: &Expr| scope.compile(expr);
    if let Sink::TopK(top) = sink {
        if input.scanned || !top.windows.is_empty() || top.first.is_some() || top.skip > 0 {
            return unsupported("windows and first rows that are scanned on the CPU's columns");
        }
        let key = |key: &crate::ir::OrderKey| {
            let (descending, nulls_first) = (key.descending, key.nulls_first);
            Ok(Key { value: compile(&key.expr)?, descending, nulls_first })
        };
        let keys = top.keys.iter().map(key).collect::<Result<_>>()?;
        let outputs = top.outputs.iter().map(|(expr, _)| compile(expr)).collect::<Result<_>>()?;
        let row = RowLayout::of(&top.outputs, scope.registers, scope.overflow)?;
        return Ok(HostSink::First { keys, outputs, row, k: top.k });
    }
    match (plan(input)?.sink, sink) {
        (SinkPlan::Table(plan), Sink::Build { keys, payload }) => {
            let keys = keys.iter().map(compile).collect::<Result<_>>()?;
            Ok(HostSink::Table { plan, keys, payload: payload.iter().map(compile).collect::<Result<_>>()? })
        }
        (SinkPlan::Groups(plan, _), Sink::Aggregate { groups, aggregates }) => {
            let call = |call: &AggregateCall| {
                let argument = call.argument.as_ref().filter(|_| !call.unites).map(compile).transpose()?;
                Ok(Call { argument, filter: call.filter.as_ref().map(compile).transpose()? })
            };
            let calls = aggregates.iter().map(call).collect::<Result<_>>()?;
            let keys = groups.iter().map(|(key, _)| compile(key)).collect::<Result<_>>()?;
            let cells = plan.cells.cells.iter().filter_map(|cell| match cell.part {
                Part::Cell(register) => Some(first_register + register),
                _ => None,
            });
            let cells = cells.collect();
            Ok(HostSink::Groups { plan, keys, calls, cells, first_register })
        }
        (SinkPlan::Rows(plan), Sink::Rows { columns, limit }) => {
            let columns = columns.iter().map(|(expr, _)| compile(expr)).collect::<Result<_>>()?;
            Ok(HostSink::Rows { plan, columns, limit: *limit })
        }
        _ => unsupported("tables of groups and lists of rows on the CPU's columns"),
    }
}

/// The expressions of a computed result as programs over the values of groups.
///
/// # Errors
/// Unsupported for what is not computed here.
pub(super) fn computed(plan: &GroupsPlan, fragment: &Fragment) -> Result<Option<(Vec<Program>, Vec<Origin>)>> {
    let Some(computed) = &plan.computed else { return Ok(None) };
    let facts: Vec<Option<Facts>> = computed.values.iter().map(|value| Some(value.facts.clone())).collect();
    let scope = Scope { registers: &facts, overflow: fragment.overflow };
    let programs = computed.exprs.iter().map(|expr| scope.compile(expr)).collect::<Result<_>>()?;
    let origins = computed.values.iter().map(|value| Origin::Value(Box::new(value.clone()))).collect();
    Ok(Some((programs, origins)))
}
