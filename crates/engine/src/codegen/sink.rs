//! The end of a pipeline in kernel source: rows enter a join table or go into accumulators.

use arrow::datatypes::DataType;

use crate::arena::Arena;
use crate::codegen::aggregate::cells;
use crate::codegen::build::build_row;
use crate::codegen::memory::{
    Bound, BoundGroups, BoundList, BoundRows, BoundTable, GroupsMemory, ListMemory, TableMemory, lay_out_result,
};
use crate::codegen::params::Argument;
use crate::codegen::partials::Partials;
use crate::codegen::rows::RowWriter;
use crate::codegen::runs::RUN_KEY;
use crate::codegen::tables::{hash_table, wide_table};
use crate::codegen::topk::BoundTop;
use crate::error::{EngineError, Result};
use crate::ir::{AggregateCall, Expr, Sink};
use crate::plan::cells::{Cell, CellOp};
use crate::plan::groups::{Adding, Grouping};
use crate::plan::input::{Branch, PipelineInput};
use crate::plan::sink::SinkPlan;

/// What a sink leaves behind for later pipelines and for the result.
#[derive(Debug, Clone)]
pub(crate) enum BoundSink {
    /// A table.
    Table(BoundTable),
    /// Groups.
    Groups(BoundGroups),
    /// The first rows by an order.
    TopK(Box<BoundTop>),
    /// Rows of a result.
    Rows(BoundRows),
    /// Rows that another pipeline scans.
    List(BoundList),
}

impl BoundSink {
    /// Lays out what the sink of a pipeline leaves; the groups or rows of a union's first branch are those of the
    /// others.
    pub(crate) fn lay_out(
        arena: &mut Arena,
        plan: &SinkPlan,
        (pipeline, first): (usize, Option<&BoundSink>),
    ) -> BoundSink {
        match plan {
            SinkPlan::Table(plan) => {
                BoundSink::Table(Bound { plan: plan.clone(), memory: TableMemory::lay_out(arena, plan) })
            }
            SinkPlan::Groups(plan, _) => {
                let memory = match first {
                    Some(BoundSink::Groups(first)) => first.memory,
                    _ => GroupsMemory::lay_out(arena, plan),
                };
                BoundSink::Groups(Bound { plan: plan.clone(), memory })
            }
            SinkPlan::TopK(plan) => BoundSink::TopK(Box::new(BoundTop::lay_out(arena, plan, pipeline))),
            SinkPlan::Rows(plan) => BoundSink::Rows(Bound { plan: plan.clone(), memory: lay_out_result(arena, plan) }),
            SinkPlan::List(plan) => {
                let memory = match first {
                    Some(BoundSink::List(first)) => first.memory,
                    _ => ListMemory::lay_out(arena, plan),
                };
                BoundSink::List(Bound { plan: plan.clone(), memory })
            }
        }
    }

    /// Writes what one row does.
    pub(super) fn row(&self, rows: &mut RowWriter, input: &PipelineInput, plan: &SinkPlan) -> Result<Partials> {
        match (self, plan, &input.pipeline.sink) {
            (BoundSink::Table(table), _, Sink::Build { keys, payload }) => {
                build_row(rows, &keys.iter().collect::<Vec<_>>(), &payload.iter().collect::<Vec<_>>(), table)?;
            }
            (BoundSink::Table(table), _, Sink::Aggregate { groups, aggregates }) => {
                let keys: Vec<&Expr> = groups.iter().map(|(key, _)| key).collect();
                let values: Vec<&Expr> = aggregates.iter().filter_map(|call| call.argument.as_ref()).collect();
                build_row(rows, &keys, &values, table)?;
            }
            (BoundSink::Groups(bound), SinkPlan::Groups(_, adding), Sink::Aggregate { groups, aggregates }) => {
                let (groups, aggregates) = match input.branch {
                    Some(Branch { union, .. }) => (&union.groups, &union.aggregates),
                    None => (groups, aggregates),
                };
                return aggregate_row(rows, groups, aggregates, bound, adding);
            }
            (BoundSink::TopK(bound), _, Sink::TopK(top)) => bound.row(rows, top)?,
            (BoundSink::Rows(bound), _, Sink::Rows { columns, .. }) => bound.row(rows, columns)?,
            (BoundSink::List(bound), _, Sink::Rows { columns, .. }) => {
                rows.enter_union()?;
                bound.row(rows, input.branch.map_or(columns, |branch| &branch.union.groups))?;
            }
            _ => return Err(EngineError::Malformed(format!("pipeline {} leaves something else", input.index))),
        }
        Ok(Partials::default())
    }
}

/// Tells whether the block's cache has an entry for the row's group, at `place` of the table.
fn enter_cache(rows: &mut RowWriter, bound: &BoundGroups, place: &str) {
    if bound.cached > 0 {
        rows.line(&format!("const uint32_t entry = (uint32_t)({place}) & {};", bound.cached - 1));
        rows.line(&format!("const bool is_cached = wc_owns(owners + entry, (uint32_t)({place}) + 1);"));
    }
}

fn aggregate_row(
    rows: &mut RowWriter,
    groups: &[(Expr, DataType)],
    aggregates: &[AggregateCall],
    bound: &BoundGroups,
    adding: &[Adding],
) -> Result<Partials> {
    rows.enter_union()?;
    let keys = groups.iter().map(|(expr, _)| rows.emit(expr)).collect::<Result<Vec<_>>>()?;
    let mut needed: Vec<usize> = Vec::new();
    let exprs = aggregates.iter().flat_map(AggregateCall::inputs);
    exprs.for_each(|expr| expr.registers(&mut |register| needed.push(register)));
    needed.extend(bound.cells.cells.iter().filter_map(Cell::of_scanned));
    for register in needed {
        rows.emit(&Expr::Reg(register))?;
    }
    let mut summed = rows.with_emitter(|emitter| cells(emitter, &bound.cells, aggregates))?;
    let packed = match bound.grouping {
        Grouping::Single => None,
        _ => Some(rows.with_emitter(|emitter| bound.pack.emit(emitter, &keys))),
    };
    let mut group = match &packed {
        Some(packed) if !bound.pack.is_wide() => packed.word().to_string(),
        _ => String::new(),
    };
    if let Some(runs) = &bound.runs {
        summed = runs.begin(rows, &group, &summed, bound.ordered.zip(bound.memory.ordered));
        group = RUN_KEY.into();
    }
    let full = format!("if (place == ~0ULL) {}", rows.no_room());
    let place = match bound.grouping {
        Grouping::Single => String::new(),
        Grouping::Private => group,
        Grouping::Shared => {
            rows.line(&format!("marks[{group}] = 1;"));
            group
        }
        Grouping::Dense => {
            let mark_pointer = format!("{}*", bound.mark_type());
            let seen =
                rows.with_emitter(|emitter| emitter.params.add(&mark_pointer, Argument::Region(bound.memory.seen)));
            enter_cache(rows, bound, &group);
            // Looked at first: that comes from the cache, and writes of many rows to few groups wait for each other.
            let alone = if bound.cached > 0 { "!is_cached && " } else { "" };
            rows.line(&format!("if ({alone}{seen}[{group}] == 0) {seen}[{group}] = {};", bound.mark(&group)));
            group
        }
        Grouping::Hashed => {
            let (slots, by) = (bound.memory.seen, (bound.places, bound.seed));
            let stride = bound.slot_words().map_or_else(String::new, |words| format!("<{words}>"));
            rows.line("bool is_new;");
            match packed.filter(|_| bound.pack.is_wide()) {
                Some(packed) => {
                    let words = Argument::Within(slots, 8);
                    let target = rows.with_emitter(|emitter| wide_table(emitter, (slots, words), by));
                    rows.line(&format!("const uint64_t key[] = {{{}}};", packed.list()));
                    rows.line(&format!("const uint64_t place = wc_wide_enter{stride}({target}, key, &is_new);"));
                }
                None => {
                    let target = rows.with_emitter(|emitter| hash_table(emitter, slots, by.0, by.1));
                    rows.line(&format!("const uint64_t place = wc_table_enter{stride}({target}, {group}, &is_new);"));
                }
            }
            rows.line(&full);
            enter_cache(rows, bound, "place");
            "place".to_string()
        }
    };
    let (cells, places) = match bound.grouping {
        Grouping::Single if !summed.iter().any(|cell| cell.op.is_of_many_limbs()) => Default::default(),
        Grouping::Shared => {
            let groups = Argument::U64(bound.pack.domain);
            (String::new(), rows.with_emitter(|emitter| emitter.params.add("uint64_t", groups)))
        }
        _ => rows.with_emitter(|emitter| {
            let cells = match bound.grouping {
                Grouping::Private => "mine".to_string(),
                Grouping::Dense if bound.copies > 1 => "copy".to_string(),
                _ => emitter.params.add("uint64_t*", bound.memory.first_cell(bound)),
            };
            let places = if bound.grouping == Grouping::Private { bound.pack.domain } else { bound.places };
            (cells, emitter.params.add("uint64_t", Argument::U64(places)))
        }),
    };
    let mut partials = Partials::default();
    for (index, cell) in summed.iter().enumerate().filter(|(_, cell)| cell.op != CellOp::Limb) {
        let (all, narrow) = match adding[index] {
            Adding::Counted(column) => {
                partials.count(index, column);
                continue;
            }
            Adding::Rows { all, narrow } => (all, narrow),
        };
        let condition = cell.condition.as_deref().filter(|_| !all);
        let update = match bound.grouping {
            Grouping::Single if narrow => {
                partials.add(index);
                format!("part{index} += (uint32_t)({});", cell.value)
            }
            Grouping::Single => match cell.op {
                CellOp::Add | CellOp::AddFloat => format!("sum{index} += {};", cell.value),
                CellOp::Max => format!("{{ const uint64_t v = {}; if (v > sum{index}) sum{index} = v; }}", cell.value),
                CellOp::AddFixed | CellOp::Limb => {
                    // Where another pipeline scans the group its cells are columns.
                    let at = if bound.places > 1 { format!("{index} * {places}") } else { index.to_string() };
                    format!("wc_fixed_add({cells} + {at}, {places}, {});", cell.value)
                }
            },
            Grouping::Private => {
                let at = format!("mine[({index} * {places} + {place}) * 32]");
                match cell.op {
                    CellOp::Add => format!("{at} += {};", cell.value),
                    CellOp::Max => format!("{{ const uint64_t v = {}; if (v > {at}) {at} = v; }}", cell.value),
                    CellOp::AddFloat => format!(
                        "{at} = (uint64_t)__double_as_longlong(__longlong_as_double((int64_t){at}) + {});",
                        cell.value
                    ),
                    CellOp::AddFixed | CellOp::Limb => unreachable!("many limbs are not private"),
                }
            }
            Grouping::Shared => {
                let at = format!("{index} * {places} + {place}");
                format!("wc_add_halves(low + {at}, high + {at}, {});", cell.value)
            }
            Grouping::Dense | Grouping::Hashed => {
                let at = bound.cell_at((&cells, &places), index, &place);
                let cached = (bound.cached > 0).then(|| bound.cached_cell(index));
                match (cell.op, cached) {
                    (CellOp::Add, Some(cached)) => format!(
                        "wc_add_cached(is_cached, {cached}, {cached} + {}, {at}, {});",
                        bound.cached, cell.value
                    ),
                    (CellOp::Max, Some(cached)) => {
                        format!("wc_max_cached(is_cached, (uint64_t*)({cached}), {at}, {});", cell.value)
                    }
                    (CellOp::AddFloat, Some(cached)) => {
                        format!("wc_add_cached(is_cached, (double*)({cached}), (double*)({at}), {});", cell.value)
                    }
                    (CellOp::Add, None) => format!("wc_add({at}, {});", cell.value),
                    (CellOp::Max, None) => format!("wc_max({at}, {});", cell.value),
                    (CellOp::AddFloat, None) => format!("wc_add((double*)({at}), {});", cell.value),
                    (CellOp::AddFixed | CellOp::Limb, _) => {
                        let apart = if bound.slot_words().is_some() { "1" } else { &places };
                        format!("wc_fixed_add({at}, {apart}, {});", cell.value)
                    }
                }
            }
        };
        match condition {
            Some(condition) => rows.line(&format!("if ({condition}) {update}")),
            None => rows.line(&update),
        }
    }
    if bound.grouping == Grouping::Private {
        rows.line(&format!("mine[({} * {places} + {place}) * 32] += 1ULL;", bound.cell_count - 1));
    }
    if let Some(runs) = &bound.runs {
        runs.end(rows);
    }
    Ok(partials)
}
