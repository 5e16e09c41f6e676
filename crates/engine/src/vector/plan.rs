//! What the CPU does of a fragment: its pipelines as they are planned for a device, with their steps and sinks as
//! programs.

use std::collections::BTreeSet;
use std::sync::Arc;

use warpcube_column::{Dictionary, Relation};
use warpcube_gpu::{DeviceInfo, DevicePtr};

use super::origin::Origin;
use super::program::{Program, Scope};
use super::sinks::{HostSink, RowsPlan};
use crate::arena::Pointer;
use crate::dictionaries::codes;
use crate::error::{EngineError, Result, unsupported};
use crate::facts::Facts;
use crate::ir::{AggregateCall, BinaryOp, Expr, Fragment, JoinKind, Probe, Sink, Source, Ty};
use crate::plan::group_values::GroupValue;
use crate::plan::input::{Branch, PipelineInput, limit};
use crate::plan::keys::KeyPack;
use crate::plan::order::{self, Item};
use crate::plan::ready::{Ready, malformed, unique};
use crate::plan::table::{TablePlan, Tables, table};
use crate::plan::union::{self, Union};
use crate::plan::unread::without_unread;
use crate::plan::view::{ColumnView, View};
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
    /// The register of the first of those.
    pub(super) first_column: usize,
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
                HostStep::Limit { .. } => {}
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
        let (source, steps, columns) = (Source::Output(0), Vec::new(), Vec::new());
        HostPipeline { source, registers, steps, columns, first_column: 0, sink: HostSink::Nothing, rows_out: 0 }
    }
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
    /// Of the rows that come here, any of them, those from number `skip` to before number `end` go on.
    Limit {
        skip: u64,
        end: u64,
    },
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
    let (mut all, mut union) = (Vec::new(), None);
    for index in 0..count {
        let branches = fragment.branches(index);
        if branches.start == index {
            let of = |index: usize| ready(&fragment, index, tables, (&built, &pipelines));
            all = branches.clone().map(of).collect::<Result<Vec<_>>>()?;
            union = match all.len() {
                1 => None,
                _ => Some(Union::of(&all.iter().map(Ready::member).collect::<Vec<_>>(), fragment.overflow)?),
            };
        }
        let number = index - branches.start;
        let Some(Ready { scanned, pipeline, registers, rows, .. }) = all.get(number) else {
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

/// A pipeline whose tables and rows are planned.
fn ready<'a>(
    fragment: &'a Fragment,
    index: usize,
    tables: &'a [Relation],
    (built, before): (&Tables, &[HostPipeline]),
) -> Result<Ready<'a>> {
    let left = |of: usize| {
        let left = before.get(of).ok_or_else(|| malformed(index, &format!("scans the rows of {of}")))?;
        // No more groups than rows that were grouped, and one at least.
        let rows = left.rows_out.max(1);
        Ok((view_of(&left.sink, rows)?, rows))
    };
    let ready = Ready::of(fragment, index, (tables, built), left)?;
    match ready.has_texts() {
        true => unsupported("strings without a dictionary on the CPU's columns"),
        false => Ok(ready),
    }
}

/// Most rows that a table is planned for whose build scans an output; it is refused where more come.
const TABLE_ROWS_MAX: u64 = 1 << 24;

/// The view of what a pipeline leaves, at most so many rows: columns of words, which values are computed of.
fn view_of<'a>(sink: &HostSink, rows: u64) -> Result<View<'a>> {
    let words = |facts: Vec<Facts>, values: Vec<GroupValue>| {
        let nowhere = || vec![Pointer::Address(DevicePtr::NULL)];
        let columns = facts.into_iter().map(|facts| ColumnView::of_words(facts, nowhere(), 1)).collect();
        View { chunks: vec![rows.min(TABLE_ROWS_MAX) as u32], has_entries: false, count: None, columns, values }
    };
    match sink {
        HostSink::Groups { plan, .. } => Ok(words(plan.column_facts(), plan.values.clone().unwrap_or_default())),
        HostSink::First(plan) => {
            let word = Facts::new(Ty::U64, false, None);
            Ok(words(vec![word; plan.row_words()], plan.values.clone()))
        }
        HostSink::Rows { plan: RowsPlan::List(plan), .. } => Ok(words(plan.column_facts(), plan.values())),
        _ => Err(EngineError::Malformed("a scan of what is not there".into())),
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
            Item::Limit { skip, rows } => {
                steps.push(HostStep::Limit { skip: *skip, end: skip.saturating_add(*rows) });
            }
        }
    }
    let (source, rows_out) = (pipeline.source, input.rows_out());
    let Some(Branch { union, number, .. }) = input.branch else {
        let sink = HostSink::of(input, &pipeline.sink, (&scope, 0))?;
        let (columns, first_column) = (Vec::new(), 0);
        return Ok(HostPipeline { source, registers, steps, columns, first_column, sink, rows_out }.with_reads());
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
    let sink = match &pipeline.sink {
        Sink::Rows { limit, .. } => Sink::Rows { columns: groups, limit: *limit },
        _ => Sink::Aggregate { groups, aggregates: aggregates.collect() },
    };
    let scope = Scope { registers: &all, overflow: input.overflow };
    let sink = HostSink::of(input, &sink, (&scope, first))?;
    Ok(HostPipeline { source, registers, steps, columns, first_column: first, sink, rows_out }.with_reads())
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
    let residual = probe.residual.as_ref().map(|residual| scope.compile(residual)).transpose()?;
    let (build, kind, pack) = (probe.build, probe.kind, built.pack.clone());
    Ok(HostProbe { build, keys, codes, facts, pack, kind, residual, several, read_behind: Vec::new() })
}
