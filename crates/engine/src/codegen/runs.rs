//! Runs of rows with equal keys in kernel source ([`crate::plan::runs`]).

use std::fmt::Write;

use crate::codegen::aggregate::CellText;
use crate::codegen::memory::OrderedMemory;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::rows::RowWriter;
use crate::plan::cells::CellOp;
use crate::plan::run_plan::OrderedPlan;
use crate::plan::run_plan::RunCell;
use crate::plan::run_plan::RunPlan;
use crate::plan::run_plan::WholeRuns;

/// The name of the key of a run.
pub(super) const RUN_KEY: &str = "key";

/// The begin of what is done with a run that neither begins nor ends a step.
pub(super) const WHOLE_RUN: &str = "if (run != 0 && run + 1 != runs) {";

impl RunCell {
    /// C type of its values in shared memory.
    fn c_type(self) -> &'static str {
        if self.is_narrow { "uint32_t" } else { "uint64_t" }
    }
}

impl RunPlan {
    /// C type of keys in shared memory.
    fn key_type(&self) -> &'static str {
        if self.has_short_keys { "uint32_t" } else { "uint64_t" }
    }

    /// C type and name of what a warp has in shared memory, and where it begins.
    fn arrays(&self) -> impl Iterator<Item = (&'static str, String, usize)> {
        let values = self.cells.iter().enumerate().map(|(index, cell)| (cell.c_type(), format!("run_values{index}")));
        let arrays = std::iter::once((self.key_type(), "run_keys".to_string())).chain(values);
        let arrays = arrays.chain([("uint16_t", "run_starts".to_string())]);
        arrays.zip(self.places().0).map(|((c_type, name), at)| (c_type, name, at))
    }

    /// Text before the scan loop. No row is entered by what an earlier kernel left where the first row raises an error.
    pub(crate) fn frame(&self, params: &mut ParamList, cells_offset: usize) -> String {
        let offset = params.add("uint64_t", Argument::U64(cells_offset as u64));
        let bytes = self.warp_bytes();
        let mut text = format!("    char* const runs_of_warp = shared + {offset} + wc_warp() * {bytes};\n");
        for (c_type, name, at) in self.arrays() {
            let _ = writeln!(text, "    {c_type}* const {name} = ({c_type}*)(runs_of_warp + {at});");
        }
        let _ = writeln!(text, "    wc_clear_runs<{}>(run_keys, lane);", self.slots);
        if self.whole == WholeRuns::Listed {
            let _ = writeln!(text, "    WcPlaces<{}> places_of_step;", self.rows());
        }
        text
    }

    /// The statement that leaves out the rows of a step, where some of it may not be entered.
    pub(super) fn clear(&self) -> String {
        let test = match self.drops {
            true => String::new(),
            false => format!("if (alive != {}u) ", (1u64 << self.slots) - 1),
        };
        format!("            {test}wc_clear_runs<{}>(run_keys, lane);\n", self.slots)
    }

    /// Writes what leaves a row in shared memory, and begins what is done with each run: `key`, and the cells that it
    /// returns.
    pub(super) fn begin(
        &self,
        rows: &mut RowWriter,
        key: &str,
        cells: &[CellText],
        ordered: Option<(OrderedPlan, OrderedMemory)>,
    ) -> Vec<CellText> {
        rows.line("const uint32_t at = wc_run_at(slot, lane);");
        rows.line(&format!("run_keys[at] = ({})({key});", self.key_type()));
        for (index, (cell, own)) in cells.iter().zip(&self.cells).enumerate() {
            let c_type = own.c_type();
            let value = match cell.op {
                CellOp::AddFloat => format!("(uint64_t)__double_as_longlong({})", cell.value),
                _ => format!("({c_type})({})", cell.value),
            };
            let value =
                cell.condition.as_ref().map_or(value.clone(), |test| format!("({test}) ? {value} : ({c_type})0"));
            rows.line(&format!("run_values{index}[at] = {value};"));
        }
        rows.begin_runs();
        rows.line(&format!("const uint32_t runs = wc_find_runs<{}>(run_keys, run_starts, lane);", self.slots));
        if let Some((_, ordered)) = ordered {
            let counter =
                rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Region(ordered.counter)));
            rows.line(&format!("places_of_step.take({counter}, runs > 2 ? runs - 2 : 0, lane);"));
        }
        self.add_up(rows);
        let total = |(index, (cell, own)): (usize, (&CellText, &RunCell))| {
            let value = match own.op {
                CellOp::Add if own.is_narrow => format!("(uint64_t)(int64_t)(int32_t)total{index}"),
                _ => format!("total{index}"),
            };
            CellText { op: cell.op, value, condition: None }
        };
        let totals: Vec<CellText> = cells.iter().zip(&self.cells).enumerate().map(total).collect();
        if let Some((plan, memory)) = ordered {
            enter_ordered(rows, plan, memory, &totals);
        }
        totals
    }

    /// Writes what adds up the cells of a run into `total…`, before they are entered by one lane.
    fn add_up(&self, rows: &mut RowWriter) {
        // A lane walks through a run; where runs are long, all lanes walk through one.
        rows.line("const bool together = runs <= WC_LONG_RUNS;");
        rows.line("for (uint32_t next = 0; next < runs; next += together ? 1 : 32) {");
        rows.line("const uint32_t run = together ? next : next + lane;");
        rows.line(
            "const uint32_t first = run < runs ? run_starts[run] : 0, end = run < runs ? run_starts[run + 1] : 0;",
        );
        rows.line(&format!("const {} key = run_keys[wc_run_row(first)];", self.key_type()));
        for (index, cell) in self.cells.iter().enumerate() {
            let (c_type, zero) = if cell.op == CellOp::AddFloat { ("double", "0.0") } else { (cell.c_type(), "0") };
            rows.line(&format!("{c_type} total{index} = {zero};"));
        }
        rows.line("for (uint32_t row = first + (together ? lane : 0); row < end; row += together ? 32 : 1) {");
        rows.line("const uint32_t at = wc_run_row(row);\nif (run_keys[at] != key) continue;");
        for (index, cell) in self.cells.iter().enumerate() {
            let value = format!("run_values{index}[at]");
            rows.line(&match cell.op {
                CellOp::Max => format!("total{index} = {value} > total{index} ? {value} : total{index};"),
                CellOp::AddFloat => format!("total{index} += __longlong_as_double((int64_t){value});"),
                _ => format!("total{index} += {value};"),
            });
        }
        rows.line("}\nif (together) {");
        for (index, cell) in self.cells.iter().enumerate() {
            rows.line(&match cell.op {
                CellOp::Max => format!("total{index} = ({})wc_warp_max(total{index});", cell.c_type()),
                _ => format!("total{index} = wc_warp_sum(total{index});"),
            });
        }
        rows.line(match rows.resumes() {
            true => "}\nif (run < runs && (!together || lane == run)) [&]() {",
            false => "}\nif (run >= runs || (together && lane != run)) continue;\n[&]() {",
        });
    }

    /// Ends what is done with each run.
    pub(super) fn end(&self, rows: &mut RowWriter) {
        if rows.resumes() {
            let slots = self.slots;
            rows.line(&format!(
                "}}();
const uint32_t failed = __ballot_sync(WC_FULL_MASK, unplaced != 0);
if (failed != 0) {{
unplaced = wc_runs_left<{slots}>(run_keys, run_starts, runs, next, together, failed, lane);
break;
}}
}}
__syncwarp(WC_FULL_MASK);"
            ));
            return;
        }
        rows.line("}();\n}\n__syncwarp(WC_FULL_MASK);");
    }
}

/// Writes what enters a run that is a whole group.
fn enter_ordered(rows: &mut RowWriter, plan: OrderedPlan, memory: OrderedMemory, totals: &[CellText]) {
    let (seen, cells, places) = rows.with_emitter(|emitter| {
        let seen = emitter.params.add("uint64_t*", Argument::Region(memory.seen));
        let cells = emitter.params.add("uint64_t*", Argument::Region(memory.cells));
        (seen, cells, emitter.params.add("uint64_t", Argument::U64(plan.places)))
    });
    let flags = rows.flags();
    rows.line(WHOLE_RUN);
    rows.line("const uint64_t place = places_of_step.at(run - 1);");
    rows.line(&format!("if (place >= {places}) {{ atomicOr({flags}, (uint32_t)WC_LONG_RUN); return; }}"));
    rows.line(&format!("{seen}[place] = (uint64_t)key + 1;"));
    for (index, total) in totals.iter().enumerate() {
        let value = match total.op {
            CellOp::AddFloat => format!("(uint64_t)__double_as_longlong({})", total.value),
            _ => total.value.clone(),
        };
        rows.line(&format!("{cells}[{index} * {places} + place] = {value};"));
    }
    rows.line("return;\n}");
}
