//! What a sink does before and after the scan: cells of a warp or a block are made, and added to those of the device.

use std::fmt::Write;

use crate::codegen::build::tell_duplicate;
use crate::codegen::memory::BoundGroups;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::rows::flags;
use crate::codegen::sink::BoundSink;
use crate::plan::cells::CellOp;
use crate::plan::groups::{Grouping, SUMS_AT_ONCE};
use crate::plan::table::{TableLayout, Unique};

impl BoundSink {
    /// Text before and after the scan loop.
    pub(crate) fn frame(&self, params: &mut ParamList, cells_offset: usize, control: &str) -> (String, String) {
        let bound = match self {
            BoundSink::Groups(bound) => bound,
            BoundSink::Table(table) if table.unique != Unique::No && table.layout == TableLayout::Direct => {
                let raise = format!("    if (repeated != 0) {};\n", tell_duplicate(&flags(control), table.unique));
                return ("    uint32_t repeated = 0;\n".into(), raise);
            }
            BoundSink::Table(table) => {
                let runs = table.runs.as_ref().map(|runs| runs.frame(params, cells_offset));
                return (runs.unwrap_or_default(), String::new());
            }
            BoundSink::Rows(_) | BoundSink::List(_) => return (String::new(), String::new()),
            BoundSink::TopK(bound) => return (bound.frame(params), String::new()),
        };
        let (mut before, mut after) = (String::new(), String::new());
        // Where each lane counts its rows, the last cell does.
        let mut ops: Vec<CellOp> = bound.cells.cells.iter().map(|cell| cell.op).collect();
        ops.resize(bound.cell_count, CellOp::Add);
        match bound.grouping {
            Grouping::Single => {
                let cells = params.add("uint64_t*", bound.memory.first_cell(bound));
                let seen = params.add("uint8_t*", Argument::Region(bound.memory.seen));
                // Where another pipeline scans the group its cells are columns.
                let places = (bound.places > 1).then(|| params.add("uint64_t", Argument::U64(bound.places)));
                let at = |index: usize| match &places {
                    Some(places) => format!("{index} * {places}"),
                    None => index.to_string(),
                };
                // Many limbs have no registers: rows add to their cells.
                let reduced: Vec<(usize, CellOp)> =
                    ops.iter().copied().enumerate().filter(|(_, op)| !op.is_of_many_limbs()).collect();
                // Cells that all warps of the device add to are asked for one after the other: a block adds once.
                for some in reduced.chunks(SUMS_AT_ONCE) {
                    let (mut warps, mut block) = (String::new(), String::new());
                    for (place, (index, op)) in some.iter().enumerate() {
                        let (c_type, zero) =
                            if *op == CellOp::AddFloat { ("double", "0.0") } else { ("uint64_t", "0") };
                        let (reduce, add) =
                            if *op == CellOp::Max { ("wc_warp_max", "wc_max") } else { ("wc_warp_sum", "wc_add") };
                        let _ = writeln!(before, "    {c_type} sum{index} = {zero};");
                        let parts = format!("({c_type}*)shared + {}", place * 32);
                        let _ = writeln!(warps, "    wc_leave({parts}, {reduce}(sum{index}));");
                        let _ = writeln!(
                            block,
                            "        sum{index} = {reduce}(wc_left({parts}));
        if (lane == 0) {add}(({c_type}*){cells} + {}, sum{index});",
                            at(*index)
                        );
                    }
                    let _ = write!(
                        after,
                        "    __syncthreads();\n{warps}    __syncthreads();
    if (wc_warp() == 0) {{
{block}    }}\n"
                    );
                }
                let _ = writeln!(after, "    if (threadIdx.x == 0) *{seen} = 1;");
            }
            Grouping::Private => {
                let cells = params.add("uint64_t*", bound.memory.first_cell(bound));
                let seen = params.add(&format!("{}*", bound.mark_type()), Argument::Region(bound.memory.seen));
                let groups = params.add("uint64_t", Argument::U64(bound.pack.domain));
                let (places, mark) = (places_of(bound, &groups, params), bound.mark("group"));
                let cells_offset = params.add("uint64_t", Argument::U64(cells_offset as u64));
                let count = bound.cell_count;
                let _ = writeln!(
                    before,
                    "    uint64_t* const mine = (uint64_t*)(shared + {cells_offset}) + \
                     (uint64_t)wc_warp() * {groups} * {count} * 32 + lane;
    for (uint64_t at = 0; at < {groups} * {count}; ++at) mine[at * 32] = 0;"
                );
                let rows_cell = count - 1;
                let _ = writeln!(
                    after,
                    "    for (uint64_t group = 0; group < {groups}; ++group) {{
        const uint64_t rows = wc_warp_sum(mine[({rows_cell} * {groups} + group) * 32]);
        if (rows == 0) continue;
        if (lane == 0) {seen}[group] = {mark};"
                );
                for (index, op) in ops.iter().enumerate() {
                    let cell = format!("mine[({index} * {groups} + group) * 32]");
                    let at = format!("{cells} + {index} * {places} + group");
                    let line = match op {
                        CellOp::Add => {
                            format!("{{ const uint64_t v = wc_warp_sum({cell}); if (lane == 0) wc_add({at}, v); }}")
                        }
                        CellOp::Max => {
                            format!("{{ const uint64_t v = wc_warp_max({cell}); if (lane == 0) wc_max({at}, v); }}")
                        }
                        CellOp::AddFloat => format!(
                            "{{ const double v = wc_warp_sum(__longlong_as_double((int64_t){cell})); \
                             if (lane == 0) wc_add((double*)({at}), v); }}"
                        ),
                        CellOp::AddFixed | CellOp::Limb => unreachable!("many limbs are not private"),
                    };
                    let _ = writeln!(after, "        {line}");
                }
                let _ = writeln!(after, "    }}");
            }
            Grouping::Shared => {
                let cells = params.add("uint64_t*", bound.memory.first_cell(bound));
                let seen = params.add(&format!("{}*", bound.mark_type()), Argument::Region(bound.memory.seen));
                let groups = params.add("uint64_t", Argument::U64(bound.pack.domain));
                let (places, mark) = (places_of(bound, &groups, params), bound.mark("group"));
                let count = bound.cell_count;
                let offset = params.add("uint64_t", Argument::U64(cells_offset as u64));
                let _ = writeln!(
                    before,
                    "    uint32_t* const low = (uint32_t*)(shared + {offset});
    uint32_t* const high = low + {groups} * {count};
    uint8_t* const marks = (uint8_t*)(high + {groups} * {count});
    for (uint64_t at = threadIdx.x; at < 2 * {groups} * {count}; at += blockDim.x) low[at] = 0;
    for (uint64_t at = threadIdx.x; at < {groups}; at += blockDim.x) marks[at] = 0;
    __syncthreads();"
                );
                let _ = writeln!(
                    after,
                    "    __syncthreads();
    for (uint64_t group = threadIdx.x; group < {groups}; group += blockDim.x) {{
        if (marks[group] == 0) continue;
        {seen}[group] = {mark};
        for (uint64_t cell = 0; cell < {count}; ++cell) {{
            const uint64_t at = cell * {groups} + group;
            wc_add({cells} + cell * {places} + group, (uint64_t)high[at] << 32 | low[at]);
        }}
    }}"
                );
            }
            Grouping::Dense if bound.copies > 1 => {
                let cells = params.add("uint64_t*", bound.memory.first_cell(bound));
                let copies = params.add("uint64_t", Argument::U64(bound.copies));
                let words = params.add("uint64_t", Argument::U64(bound.places * bound.cell_count as u64));
                let _ = writeln!(before, "    uint64_t* const copy = {cells} + (block & ({copies} - 1)) * {words};");
            }
            Grouping::Dense | Grouping::Hashed => {}
        }
        if bound.cached > 0 {
            let offset = params.add("uint64_t", Argument::U64(cells_offset as u64));
            let (entries, count) = (bound.cached, bound.cell_count);
            let _ = writeln!(
                before,
                "    uint32_t* const cached = (uint32_t*)(shared + {offset});
    uint32_t* const owners = cached + {};
    for (uint32_t at = threadIdx.x; at < {}; at += blockDim.x) cached[at] = 0;
    __syncthreads();",
                2 * entries * count,
                (2 * count + 1) * entries
            );
            let cells = params.add("uint64_t*", bound.memory.first_cell(bound));
            let places = params.add("uint64_t", Argument::U64(bound.places));
            let mark = match bound.grouping {
                Grouping::Dense => {
                    let seen = params.add(&format!("{}*", bound.mark_type()), Argument::Region(bound.memory.seen));
                    format!("        {seen}[place] = {};\n", bound.mark("place"))
                }
                _ => String::new(),
            };
            let _ = write!(
                after,
                "    __syncthreads();
    for (uint32_t entry = threadIdx.x; entry < {entries}; entry += blockDim.x) {{
        if (owners[entry] == 0) continue;
        const uint64_t place = owners[entry] - 1;
{mark}"
            );
            for (index, op) in ops.iter().enumerate() {
                let (word, at) = (bound.cached_cell(index), bound.cell_at((&cells, &places), index, "place"));
                let line = match op {
                    CellOp::Add => format!("wc_add({at}, (uint64_t)({word})[{entries}] << 32 | *({word}));"),
                    CellOp::Max => format!("wc_max({at}, *(uint64_t*)({word}));"),
                    CellOp::AddFloat => format!("wc_add((double*)({at}), *(double*)({word}));"),
                    CellOp::AddFixed | CellOp::Limb => unreachable!("many limbs are not cached"),
                };
                let _ = writeln!(after, "        {line}");
            }
            after.push_str("    }\n");
        }
        if let Some(runs) = &bound.runs {
            before.push_str(&runs.frame(params, cells_offset));
        }
        (before, after)
    }
}

/// The distance of a group's cells in global memory; `groups` has the number of groups, which it is for a result.
fn places_of(bound: &BoundGroups, groups: &str, params: &mut ParamList) -> String {
    match bound.values {
        Some(_) => params.add("uint64_t", Argument::U64(bound.places)),
        None => groups.to_string(),
    }
}
