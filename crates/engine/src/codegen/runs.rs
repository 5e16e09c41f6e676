//! Preaggregation of runs: rows of a step that have equal keys side by side are added up in shared memory, and the
//! sink's table is asked once a run instead of once a row.
//!
//! The reduction holds for rows in any order; it pays where keys come in runs, which the traits of key columns tell.
//! Where the only key is a sorted column, a run that neither begins nor ends a step is a whole group: it takes the next
//! place of a list, and only first and last runs of steps are looked up, in a small hash table. Places without a group
//! are those that warps have drawn and do not use. Entries of a large table of extremes are written once and not zeroed
//! then; those of first and last runs come from such a hash table, by a kernel behind the build (run_ends.cuh).

use std::fmt::Write;

use crate::arena::{Arena, Zone};
use crate::codegen::aggregate::{Cell, CellOp};
use crate::codegen::input::PipelineInput;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::pipeline::{LARGE_WARPS, SMALL_BLOCK, Split};
use crate::codegen::rows::RowWriter;
use crate::codegen::sink::Grouping;
use crate::error::Result;
use crate::facts::Facts;
use crate::ir::{Expr, Sink};
use crate::plan::keys::KeyPack;
use crate::plan::order::Item;
use crate::plan::table::{Keep, entry, places};

/// Rows that lie together in shared memory, and their words: `WC_RUN_WORDS` of runs.cuh.
const WORDS: usize = 144;
/// Slots of a lane among them.
const WORD_SLOTS: usize = 4;
/// The name of the key of a run.
pub(super) const RUN_KEY: &str = "key";
/// Most warps of a multiprocessor.
const WARPS_PER_MULTIPROCESSOR: u64 = 64;

/// How the runs of a step are added up.
#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    /// Slots of a lane in a step.
    slots: usize,
    /// C type of keys there.
    key_type: &'static str,
    /// What runs are added up to.
    cells: Vec<RunCell>,
    /// Whether rows of a whole step may be left out.
    pub(super) drops: bool,
    /// What becomes of runs that neither begin nor end a step.
    pub(super) whole: WholeRuns,
}

/// What becomes of runs that neither begin nor end a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeRuns {
    /// They are added to the entry of their key, as others are.
    Added,
    /// Keys are sorted: they are whole groups, and the sink has [`OrderedGroups`].
    Listed,
    /// Keys are sorted: they are stored as the entry of their key, and the table has `ends`.
    Stored,
}

/// The begin of what is done with a run that neither begins nor ends a step.
pub(super) const WHOLE_RUN: &str = "if (run != 0 && run + 1 != runs) {";

/// A cell of a run.
#[derive(Debug, Clone, Copy)]
struct RunCell {
    op: CellOp,
    /// Whether 32 bits hold its values and their sums over a step.
    is_narrow: bool,
}

impl RunCell {
    fn new(cell: &Cell, slots: usize) -> RunCell {
        let is_narrow = match cell.op {
            CellOp::Max => cell.most.is_some_and(|most| most <= u32::MAX.into()),
            _ => cell.adds_in_32_bits(slots * 32),
        };
        RunCell { op: cell.op, is_narrow }
    }

    /// C type of its values in shared memory, and their width.
    fn stored(self) -> (&'static str, usize) {
        if self.is_narrow { ("uint32_t", 4) } else { ("uint64_t", 8) }
    }
}

/// Groups in the order in which warps have found them, for a key by which the input is sorted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedGroups {
    /// `uint64_t` a place: key + 1, zero where there is no group.
    pub(crate) seen: Zone,
    /// Cells: for each cell, 8 bytes a place.
    pub(crate) cells: Zone,
    /// Places.
    pub(crate) places: u64,
    /// `uint64_t`: places given away.
    counter: Zone,
}

/// Traits of the columns that a key consists of; none if it has other parts.
fn traits<'a>(
    input: &'a PipelineInput<'_>,
    keys: &'a [&Expr],
) -> impl Iterator<Item = Option<warpcube_column::Traits>> + 'a {
    keys.iter().map(|key| match key {
        Expr::Reg(register) => *input.traits.get(*register)?,
        _ => None,
    })
}

/// Whether the rows of a pipeline will be added up by runs, when a `share` of them is left: the sink keeps one entry a
/// key, keys come in runs, and have too many values for a block to have an entry for each.
pub(super) fn are_likely(input: &PipelineInput, share: f64) -> bool {
    if input.branch.is_some() {
        return false;
    }
    let keys: Vec<&Expr> = match &input.pipeline.sink {
        Sink::Aggregate { groups, .. } => groups.iter().map(|(expr, _)| expr).collect(),
        Sink::Extremes { keys, .. } => keys.iter().collect(),
        _ => return false,
    };
    let values = |key: &&Expr| match key {
        Expr::Reg(register) => input.columns.get(*register)?.range.map(|(low, high)| (high - low) as f64 + 1.0),
        _ => None,
    };
    let domain = keys.iter().map(values).try_fold(1.0, |product, values| Some(product * values?));
    domain.is_some_and(|domain| domain > input.tuning.run_keys as f64) && RunPlan::pays(input, &keys, share)
}

/// Whether the one key is a column by which the input is sorted, without NULLs.
fn are_sorted(input: &PipelineInput, keys: &[&Expr]) -> bool {
    let is_valid = |key: &Expr| match key {
        Expr::Reg(register) => input.columns.get(*register).is_some_and(|facts| !facts.nullable),
        _ => false,
    };
    let is_sorted = traits(input, keys).all(|traits| traits.is_some_and(|traits| traits.is_sorted));
    input.tuning.ordered_groups && is_sorted && matches!(keys, [key] if is_valid(key))
}

/// Most steps of a scan: those at the end of a chunk are the only ones that are not whole.
fn steps(input: &PipelineInput, split: &Split) -> u64 {
    input.chunk_rows.iter().map(|rows| u64::from(*rows).div_ceil(split.slots as u64 * 32)).sum()
}

/// Slots of a hash table for the first and the last runs of steps.
pub(super) fn end_slots(input: &PipelineInput, split: &Split) -> u64 {
    (4 * steps(input, split)).next_power_of_two().max(warpcube_column::VECTOR_ROWS as u64)
}

/// The cell of an entry of extremes of this C type, and what raises it.
pub(super) fn raised(c_type: &str, value: String, condition: Option<String>) -> Cell {
    let most = if c_type == "uint32_t" { u32::MAX.into() } else { u64::MAX.into() };
    Cell { op: CellOp::Max, value, condition, most: Some(most) }
}

impl RunPlan {
    /// How the rows of groups are added up before they meet the sink's table: by runs, where that pays or where runs
    /// are groups. Branches of a union enter row by row: the keys of one are not those of another, nor are their steps.
    pub(super) fn of_groups(
        input: &PipelineInput,
        split: &Split,
        (keys, pack): (&[&Expr], &KeyPack),
        (cells, grouping): (&[Cell], Grouping),
        share: f64,
    ) -> Option<RunPlan> {
        let whole = match grouping {
            _ if input.branch.is_some() => return None,
            Grouping::Hashed if input.scanned && are_sorted(input, keys) => WholeRuns::Listed,
            Grouping::Dense | Grouping::Hashed => WholeRuns::Added,
            Grouping::Single | Grouping::Private | Grouping::Shared => return None,
        };
        let plan = RunPlan::new(split, pack, cells, (!split.rows.is_empty(), whole));
        let pays = whole == WholeRuns::Listed || RunPlan::pays(input, keys, share);
        (plan.is_possible(input, split, pack) && pays).then_some(plan)
    }

    /// How the rows of a table of extremes are added up before they enter it; `payload` are its columns.
    pub(super) fn of_extremes(
        input: &PipelineInput,
        split: &Split,
        (keys, pack): (&[Expr], &KeyPack),
        payload: &[(Facts, Keep)],
        share: f64,
    ) -> Result<Option<RunPlan>> {
        let keys: Vec<&Expr> = keys.iter().collect();
        let entries = payload.iter().map(|(value, keep)| entry(value, *keep)).collect::<Result<Vec<_>>>()?;
        let entry_bytes: u64 = entries.iter().map(|(_, width)| width).sum();
        let room = if input.whole_tables { 1.0 } else { share };
        let (is_direct, _, bytes) = places(pack, entry_bytes, (input.rows, room), input.tuning.direct_bytes);
        let is_stored = bytes >= input.tuning.ordered_bytes && is_direct && are_sorted(input, &keys);
        let whole = if is_stored { WholeRuns::Stored } else { WholeRuns::Added };
        // Keys that are NULL do not enter.
        let drops = !split.rows.is_empty() || input.columns.iter().any(|column| column.nullable);
        let cells: Vec<Cell> = entries.iter().map(|(c_type, _)| raised(c_type, String::new(), None)).collect();
        let plan = RunPlan::new(split, pack, &cells, (drops, whole));
        Ok((plan.is_possible(input, split, pack) && RunPlan::pays(input, &keys, share)).then_some(plan))
    }

    fn new(split: &Split, pack: &KeyPack, cells: &[Cell], (drops, whole): (bool, WholeRuns)) -> RunPlan {
        let key_type = if pack.domain <= u32::MAX.into() { "uint32_t" } else { "uint64_t" };
        let cells = cells.iter().map(|cell| RunCell::new(cell, split.slots)).collect();
        RunPlan { slots: split.slots, key_type, cells, drops, whole }
    }

    fn is_possible(&self, input: &PipelineInput, split: &Split, pack: &KeyPack) -> bool {
        let has_probes = split.dense.iter().any(|planned| matches!(planned.item, Item::Probe(_, _)));
        // What probes ask first lies in shared memory too, of blocks that may be large.
        let warps = if has_probes { LARGE_WARPS } else { SMALL_BLOCK as usize / 32 };
        let fits = self.warp_bytes() * warps <= input.shared_limit
            && self.warp_bytes() * SMALL_BLOCK as usize / 32 <= input.tuning.run_bytes;
        let many_limbs = self.cells.iter().any(|cell| cell.op.is_of_many_limbs());
        split.in_place && !split.multiplies && fits && !pack.is_wide() && !many_limbs
    }

    /// Whether keys come in runs that are long enough, when a `share` of rows is left.
    pub(crate) fn pays(input: &PipelineInput, keys: &[&Expr], share: f64) -> bool {
        // A tuple changes where one of its parts does.
        let runs = traits(input, keys).try_fold(0, |sum, traits| Some(sum + traits?.runs));
        runs.is_some_and(|runs| runs > 0 && share * input.rows as f64 >= input.tuning.run_rows * runs as f64)
    }

    fn rows(&self) -> usize {
        self.slots * 32
    }

    /// Entries of the keys of a step, or of the values of a cell.
    fn entries(&self) -> usize {
        self.slots / WORD_SLOTS * WORDS
    }

    /// C type and name of what a warp has in shared memory, and where it begins: keys, values of each cell, first rows
    /// of runs; and the bytes of all.
    fn arrays(&self) -> (Vec<(&'static str, String, usize)>, usize) {
        let mut bytes = 0;
        let mut place = |entries: usize, width: usize| {
            bytes += (entries * width).next_multiple_of(16);
            bytes - (entries * width).next_multiple_of(16)
        };
        let key_width = if self.key_type == "uint32_t" { 4 } else { 8 };
        let mut arrays = vec![(self.key_type, "run_keys".to_string(), place(self.entries(), key_width))];
        for (index, cell) in self.cells.iter().enumerate() {
            let (c_type, width) = cell.stored();
            arrays.push((c_type, format!("run_values{index}"), place(self.entries(), width)));
        }
        arrays.push(("uint16_t", "run_starts".into(), place(self.rows() + 1, 2)));
        (arrays, bytes)
    }

    /// Shared memory of a warp in bytes.
    pub(crate) fn warp_bytes(&self) -> usize {
        self.arrays().1
    }

    /// Text before the scan loop. No row is entered by what an earlier kernel left where the first row raises an error.
    pub(crate) fn frame(&self, params: &mut ParamList, cells_offset: usize) -> String {
        let offset = params.add("uint64_t", Argument::U64(cells_offset as u64));
        let (arrays, bytes) = self.arrays();
        let mut text = format!("    char* const runs_of_warp = shared + {offset} + wc_warp() * {bytes};\n");
        for (c_type, name, at) in arrays {
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
        cells: &[Cell],
        ordered: Option<&OrderedGroups>,
    ) -> Vec<Cell> {
        rows.line("const uint32_t at = wc_run_at(slot, lane);");
        rows.line(&format!("run_keys[at] = ({})({key});", self.key_type));
        for (index, (cell, own)) in cells.iter().zip(&self.cells).enumerate() {
            let c_type = own.stored().0;
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
        if let Some(ordered) = ordered {
            let counter = rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Zone(ordered.counter)));
            rows.line(&format!("places_of_step.take({counter}, runs > 2 ? runs - 2 : 0, lane);"));
        }
        self.add_up(rows);
        let total = |(index, (cell, own)): (usize, (&Cell, &RunCell))| {
            let value = match own.op {
                CellOp::Add if own.is_narrow => format!("(uint64_t)(int64_t)(int32_t)total{index}"),
                _ => format!("total{index}"),
            };
            Cell { value, condition: None, ..cell.clone() }
        };
        let totals: Vec<Cell> = cells.iter().zip(&self.cells).enumerate().map(total).collect();
        if let Some(ordered) = ordered {
            ordered.enter(rows, &totals);
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
        rows.line(&format!("const {} key = run_keys[wc_run_row(first)];", self.key_type));
        for (index, cell) in self.cells.iter().enumerate() {
            let (c_type, zero) = if cell.op == CellOp::AddFloat { ("double", "0.0") } else { (cell.stored().0, "0") };
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
                CellOp::Max => format!("total{index} = ({})wc_warp_max(total{index});", cell.stored().0),
                _ => format!("total{index} = wc_warp_sum(total{index});"),
            });
        }
        rows.line("}\nif (run >= runs || (together && lane != run)) continue;\n[&]() {");
    }

    /// Ends what is done with each run.
    pub(super) fn end(&self, rows: &mut RowWriter) {
        rows.line("}();\n}\n__syncwarp(WC_FULL_MASK);");
    }
}

impl OrderedGroups {
    /// Lays out places for the groups by this key.
    pub(super) fn lay_out(
        arena: &mut Arena,
        input: &PipelineInput,
        (split, keys, cells): (&Split, &[&Expr], usize),
    ) -> OrderedGroups {
        let rows = split.slots as u64 * 32;
        let runs: u64 = traits(input, keys).flatten().map(|traits| traits.runs).sum();
        // What warps have drawn and do not use; there are no more draws than steps.
        let steps = steps(input, split);
        let warps = u64::from(input.info.multiprocessors) * WARPS_PER_MULTIPROCESSOR;
        let places = (runs + rows * warps.min(steps)).min(rows * steps);
        let places = places.next_multiple_of(warpcube_column::VECTOR_ROWS as u64);
        OrderedGroups {
            seen: arena.zeroed(places as usize * 8),
            cells: arena.scratch(places as usize * 8 * cells.max(1)),
            places,
            counter: arena.zeroed(8),
        }
    }

    /// Writes what enters a run that is a whole group.
    fn enter(&self, rows: &mut RowWriter, totals: &[Cell]) {
        let (seen, cells, places) = rows.with_emitter(|emitter| {
            let seen = emitter.params.add("uint64_t*", Argument::Zone(self.seen));
            let cells = emitter.params.add("uint64_t*", Argument::Zone(self.cells));
            (seen, cells, emitter.params.add("uint64_t", Argument::U64(self.places)))
        });
        let flags = rows.flags();
        rows.line(WHOLE_RUN);
        rows.line("const uint64_t place = places_of_step.at(run - 1);");
        rows.line(&format!("if (place >= {places}) {{ atomicOr({flags}, (uint32_t)WC_TABLE_FULL); return; }}"));
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
}
