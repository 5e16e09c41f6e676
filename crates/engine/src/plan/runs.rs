//! Which rows are added up by runs before they meet the sink's table: rows of a step that have equal keys side by side
//! are added up in shared memory, and the table is asked once a run instead of once a row.
//!
//! The reduction holds for rows in any order; it pays where keys come in runs, which the traits of key columns tell.
//! Where the only key is a sorted column, a run that neither begins nor ends a step is a whole group: it takes the next
//! place of a list, and only first and last runs of steps are looked up, in a small hash table. Places without a group
//! are those that warps have drawn and do not use. Entries of a large table of extremes are written once and not zeroed
//! then; those of first and last runs come from such a hash table, by a kernel behind the build (run_ends.cuh).

use crate::ir::{Expr, Sink};
use crate::plan::blocks::LARGE_WARPS;
use crate::plan::blocks::SMALL_BLOCK;
use crate::plan::cells::{Cell, CellOp};
use crate::plan::groups::Grouping;
use crate::plan::input::PipelineInput;
use crate::plan::keys::KeyPack;
use crate::plan::order::Item;
use crate::plan::run_plan::{OrderedPlan, RunCell, RunPlan, WholeRuns};
use crate::plan::split::Split;
use crate::plan::table::PayloadColumn;
use crate::plan::tickets::ranges;

/// Most warps of a multiprocessor.
const WARPS_PER_MULTIPROCESSOR: u64 = 64;

/// Traits of the columns that a key consists of; none if it has other parts.
fn traits<'a>(
    input: &'a PipelineInput<'_>,
    keys: &'a [&Expr],
) -> impl Iterator<Item = Option<warpcube_column::Traits>> + 'a {
    keys.iter().map(|key| match key {
        Expr::Reg(register) => input.columns.get(*register)?.traits,
        _ => None,
    })
}

/// Whether the rows of a pipeline will be added up by runs, when a `share` of them is left: the sink keeps one entry a
/// key, keys come in runs, and have too many values for a block to have an entry for each.
pub(crate) fn are_likely(input: &PipelineInput, share: f64) -> bool {
    if input.branch.is_some() {
        return false;
    }
    let keys: Vec<&Expr> = match &input.pipeline.sink {
        Sink::Aggregate { groups, .. } => groups.iter().map(|(expr, _)| expr).collect(),
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
pub(crate) fn end_slots(input: &PipelineInput, split: &Split) -> u64 {
    (4 * steps(input, split)).next_power_of_two().max(warpcube_column::VECTOR_ROWS as u64)
}

impl RunPlan {
    /// How the rows of groups are added up before they meet the sink's table: by runs, where that pays or where runs
    /// are groups. Branches of a union enter row by row: the keys of one are not those of another, nor are their steps.
    pub(crate) fn of_groups(
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
        let run_cell = |cell: &Cell| RunCell { op: cell.op, is_narrow: cell.adds_in_32_bits(split.slots * 32) };
        let cells = cells.iter().map(run_cell).collect();
        let plan = RunPlan::new(split, pack, cells, (!split.rows.is_empty(), whole), why(input, keys, share));
        let pays = whole == WholeRuns::Listed || RunPlan::pays(input, keys, share);
        (plan.is_possible(input, split, pack) && pays).then_some(plan)
    }

    /// How the rows of a table of extremes are added up before they enter it; `payload` are its columns, `by_key` its
    /// bytes if it is indexed by key.
    pub(crate) fn of_extremes(
        input: &PipelineInput,
        split: &Split,
        (keys, pack): (&[&Expr], &KeyPack),
        (payload, by_key): (&[PayloadColumn], Option<u64>),
        share: f64,
    ) -> Option<RunPlan> {
        let is_large = by_key.is_some_and(|bytes| bytes >= input.tuning.ordered_bytes);
        let is_stored = is_large && are_sorted(input, keys);
        let whole = if is_stored { WholeRuns::Stored } else { WholeRuns::Added };
        // Keys that are NULL do not enter.
        let drops = !split.rows.is_empty() || input.columns.iter().any(|column| column.nullable);
        let run_cell = |column: &PayloadColumn| RunCell { op: CellOp::Max, is_narrow: column.width == 4 };
        let cells = payload.iter().map(run_cell).collect();
        let plan = RunPlan::new(split, pack, cells, (drops, whole), why(input, keys, share));
        (plan.is_possible(input, split, pack) && RunPlan::pays(input, keys, share)).then_some(plan)
    }

    fn new(
        split: &Split,
        pack: &KeyPack,
        cells: Vec<RunCell>,
        (drops, whole): (bool, WholeRuns),
        why: String,
    ) -> RunPlan {
        let has_short_keys = pack.domain <= u32::MAX.into();
        let why = if whole == WholeRuns::Added { why } else { format!("the key is sorted, {why}") };
        RunPlan { slots: split.slots, has_short_keys, cells, drops, whole, why }
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
}

/// The length of runs in words.
fn why(input: &PipelineInput, keys: &[&Expr], share: f64) -> String {
    let runs: u64 = traits(input, keys).flatten().map(|traits| traits.runs).sum();
    format!("{:.1} rows a run, {} or more", share * input.rows as f64 / runs.max(1) as f64, input.tuning.run_rows)
}

impl OrderedPlan {
    /// Places for the groups by this key.
    pub(crate) fn of(input: &PipelineInput, split: &Split, keys: &[&Expr]) -> OrderedPlan {
        let rows = split.slots as u64 * 32;
        let runs: u64 = traits(input, keys).flatten().map(|traits| traits.runs).sum();
        // What warps have drawn and do not use; there are no more draws than steps.
        let steps = steps(input, split);
        let launches = ranges(input).len() as u64;
        let warps = launches * u64::from(input.info.multiprocessors) * WARPS_PER_MULTIPROCESSOR;
        let places = (runs + rows * warps.min(steps)).min(rows * steps);
        OrderedPlan { places: places.next_multiple_of(warpcube_column::VECTOR_ROWS as u64) }
    }
}
