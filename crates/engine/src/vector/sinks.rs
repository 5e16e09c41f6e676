//! Where the rows of a pipeline end, as programs.

use std::sync::Arc;

use super::first::FirstPlan;
use super::groups::Call;
use super::order::Order;
use super::origin::Origin;
use super::program::{Program, Scope};
use crate::error::{EngineError, Result, unsupported};
use crate::facts::{Facts, analyse};
use crate::ir::{AggregateCall, Expr, Fragment, Sink, TopK};
use crate::plan::cells::Part;
use crate::plan::groups::GroupsPlan;
use crate::plan::input::PipelineInput;
use crate::plan::keys::KeyPack;
use crate::plan::pipeline::plan;
use crate::plan::row_layout::RowLayout;
use crate::plan::rows::{ListPlan, ResultPlan};
use crate::plan::sink::SinkPlan;
use crate::plan::table::TablePlan;
use crate::plan::topk_rank::Ranks;
use crate::plan::windows::WindowsPlan;

#[derive(Debug)]
pub(super) enum HostSink {
    Table {
        plan: Arc<TablePlan>,
        keys: Vec<Program>,
        payload: Vec<Program>,
    },
    Groups {
        plan: Arc<GroupsPlan>,
        keys: Vec<Program>,
        calls: Vec<Call>,
        cells: Vec<usize>,
    },
    First(Box<FirstPlan>),
    Rows {
        plan: RowsPlan,
        columns: Vec<Program>,
        limit: Option<u64>,
    },
    /// Nothing: values are read of the registers.
    Nothing,
}

/// Packed rows.
#[derive(Debug)]
pub(super) enum RowsPlan {
    Result(Arc<ResultPlan>),
    /// Those that another pipeline scans.
    List(Arc<ListPlan>),
}

impl RowsPlan {
    pub(super) fn pack(&self) -> &KeyPack {
        match self {
            RowsPlan::Result(plan) => &plan.pack,
            RowsPlan::List(plan) => &plan.pack,
        }
    }
}

/// Most rows of a table of extremes, which keeps them all until the scan ends: query 21 of TPC-H at scale 10, with 60
/// million, takes 2.3 s so and 0.5 s where operators of files take that part.
const EXTREMES_ROWS_MAX: u64 = 1 << 22;

impl HostSink {
    /// The registers that it reads.
    pub(super) fn registers(&self) -> impl Iterator<Item = usize> {
        let (mut programs, mut cells): (Vec<&Program>, &[usize]) = (Vec::new(), &[]);
        match self {
            HostSink::Table { keys, payload, .. } => programs.extend(keys.iter().chain(payload)),
            HostSink::Groups { keys, calls, cells: scanned, .. } => {
                programs.extend(keys);
                programs.extend(calls.iter().flat_map(|call| call.argument.iter().chain(&call.filter)));
                cells = scanned;
            }
            HostSink::First(first) => programs.extend(first.order.programs().chain(&first.outputs)),
            HostSink::Rows { columns, .. } => programs.extend(columns),
            HostSink::Nothing => {}
        }
        let read: Vec<usize> = programs.into_iter().flat_map(|program| &program.registers).copied().collect();
        read.into_iter().chain(cells.to_vec())
    }

    /// The sink of a pipeline, which reads registers from `first_register` on.
    ///
    /// # Errors
    /// Unsupported for what no sink holds.
    pub(super) fn of(
        input: &PipelineInput<'_>,
        sink: &Sink,
        (scope, first_register): (&Scope<'_>, usize),
    ) -> Result<HostSink> {
        let compile = |expr: &Expr| scope.compile(expr);
        if let Sink::TopK(top) = sink {
            return Ok(HostSink::First(Box::new(first(input, top, scope)?)));
        }
        match (plan(input)?.sink, sink) {
            (SinkPlan::Table(plan), Sink::Build { keys, payload }) => {
                let keys = keys.iter().map(compile).collect::<Result<_>>()?;
                Ok(HostSink::Table { plan, keys, payload: payload.iter().map(compile).collect::<Result<_>>()? })
            }
            (SinkPlan::Table(_), Sink::Aggregate { .. }) if input.rows_out() > EXTREMES_ROWS_MAX => {
                unsupported("probes of the extremes of many millions of rows on the CPU's columns")
            }
            // Groups that are probed: a table of the extremes of each key.
            (SinkPlan::Table(plan), Sink::Aggregate { groups, aggregates }) => {
                let keys = groups.iter().map(|(key, _)| compile(key)).collect::<Result<_>>()?;
                let payload = aggregates.iter().flat_map(|call| &call.argument).map(compile);
                Ok(HostSink::Table { plan, keys, payload: payload.collect::<Result<_>>()? })
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
                Ok(HostSink::Groups { plan, keys, calls, cells })
            }
            (plan, Sink::Rows { columns, limit }) => {
                let columns = columns.iter().map(|(expr, _)| compile(expr)).collect::<Result<_>>()?;
                let plan = match plan {
                    SinkPlan::Rows(plan) => RowsPlan::Result(plan),
                    SinkPlan::List(plan) => RowsPlan::List(plan),
                    _ => return Err(other_kind()),
                };
                Ok(HostSink::Rows { plan, columns, limit: *limit })
            }
            _ => Err(other_kind()),
        }
    }
}

fn other_kind() -> EngineError {
    EngineError::Malformed("a sink of another kind".into())
}

/// Plans rows by an order.
fn first(input: &PipelineInput<'_>, top: &TopK, scope: &Scope<'_>) -> Result<FirstPlan> {
    let key = |key: &crate::ir::OrderKey| Ok((scope.compile(&key.expr)?, key.descending, key.nulls_first));
    let keys = top.keys.iter().map(key).collect::<Result<Vec<_>>>()?;
    let of_keys: Vec<Facts> = keys.iter().map(|(key, ..)| key.facts.clone()).collect();
    let order = Order::of(keys)?;
    let exprs: Vec<&Expr> = top.outputs.iter().map(|(expr, _)| expr).collect();
    let (facts, _) = analyse(&exprs, scope.registers, scope.overflow)?;
    let outputs = exprs.iter().map(|expr| scope.compile(expr)).collect::<Result<_>>()?;
    let row = RowLayout::of(&top.outputs, scope.registers, scope.overflow)?;
    let windows = match top.windows.is_empty() {
        true => None,
        false => {
            let ranks = Ranks::new(&top.keys, &of_keys, &[], input.rows_out())?;
            Some(WindowsPlan::new(&top.windows, (&ranks, &facts), input.rows_out(), input)?)
        }
    };
    let of_windows = windows.iter().flat_map(|windows| windows.row.values(&windows.facts, row.words()));
    let values = row.values(&facts, 0).into_iter().chain(of_windows).collect();
    let (k, skip, overflow) = (top.k, top.skip, input.overflow);
    Ok(FirstPlan { order, outputs, row, k, skip, windows, overflow, values })
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
