//! A top-k or a sort of all rows: how ranks are selected, how many candidates there are, and what a row of the result
//! looks like.
//!
//! Where candidates are few, the last block of the scan puts them in order and reads the columns of the result.

use std::fmt::Write;

use warpcube_column::VECTOR_ROWS;
use warpcube_gpu::prims::topk::{BLOCK_SORT_MAX, TopKSpec};
use warpcube_gpu::prims::{Element, SortColumn, SortSpec};

use crate::error::{EngineError, Result, unsupported};
use crate::facts::{Facts, analyse};
use crate::ir::{Expr, TopK};
use crate::plan::group_values::GroupValue;
use crate::plan::growth::grown;
use crate::plan::input::PipelineInput;
use crate::plan::order::Item;
use crate::plan::partition_bounds::PartitionBounds;
use crate::plan::row_layout::RowLayout;
use crate::plan::split::Split;
use crate::plan::table::first_rows;
use crate::plan::tickets::ranges;
use crate::plan::topk_form::{Decision, Form, Question};
use crate::plan::topk_rank::{Part, Ranks};
use crate::plan::windows::WindowsPlan;

/// Words in front of the rows of the output: error, flags, number of rows, whether a threshold was taken.
pub(crate) const HEAD_WORDS: usize = 4;

/// The word of them that has the number of rows.
pub(crate) const ROWS_WORD: usize = 2;

/// Rows by their ranks, of which the best are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankedPlan {
    /// Number of ranks, and of the best.
    pub(crate) count: u64,
    pub(crate) k: u64,
}

/// An output that is a part of ranks in order.
#[derive(Debug, Clone)]
pub(crate) struct OutputPart {
    pub(crate) part: Part,
    pub(crate) facts: Facts,
    /// Whether it lies beside ranks.
    pub(crate) is_beside: bool,
}

/// A top-k.
#[derive(Debug, Clone)]
pub(crate) struct TopPlan {
    pub(crate) ranks: Ranks,
    pub(crate) decision: Decision,
    /// Rows of the table, and of the result at most.
    pub(crate) rows: u64,
    pub(crate) k: u64,
    /// Whether all rows are wanted, for which the room may prove too small.
    pub(crate) is_sort: bool,
    /// Whether the room for all rows, which another pipeline scans, may prove too small.
    pub(crate) grows: bool,
    /// Whether these are groups, of which there is room for as many as one block sorts.
    pub(crate) expects_few: bool,
    /// Rows of the result.
    pub(crate) row: RowLayout,
    /// What windows make of them.
    pub(crate) windows: Option<WindowsPlan>,
    /// Of the first rows so many are left out.
    pub(crate) skip: u64,
    /// The values of the rows, where another pipeline scans them. Each word of a row is then a column.
    pub(crate) values: Option<Vec<GroupValue>>,
    /// Number of the first row of each chunk.
    pub(crate) first_rows: Vec<u64>,
    /// The outputs that are read of the ranks in order: keys, and values that ranks carry.
    pub(crate) output_parts: Vec<Option<OutputPart>>,
    /// The type of the numbers of rows in order; none where ranks in order tell all that is read.
    pub(crate) order: Option<Element>,
    /// Candidates in any order, or all rows at their places.
    pub(crate) candidates: RankedPlan,
    /// The sample.
    pub(crate) sample: Option<RankedPlan>,
    /// What rows of a partition have to reach.
    pub(crate) bounds: Option<PartitionBounds>,
    /// Whether the last block of the scan does what follows the scan.
    pub(crate) by_last_block: bool,
    /// True if a key of the tail can raise an error, which is then raised for every row that passes the steps.
    pub(crate) tail_raises: bool,
    /// The same of the columns of the result.
    pub(crate) outputs_raise: bool,
    /// Bytes of scratch memory of both selections.
    pub(crate) scratch_bytes: usize,
    /// The seed that rows are drawn with.
    pub(crate) seed: u64,
}

impl TopPlan {
    /// Places of the rows that another pipeline scans, whole vectors of them.
    pub(crate) fn places(&self) -> u64 {
        self.rows_given().next_multiple_of(VECTOR_ROWS as u64)
    }

    /// Most rows that it gives.
    pub(crate) fn rows_given(&self) -> u64 {
        self.k.saturating_sub(self.skip).max(1)
    }

    /// Words of a row that another pipeline scans.
    pub(crate) fn words(&self) -> usize {
        self.row.words() + self.windows.as_ref().map_or(0, |windows| windows.row.words())
    }

    /// Whether all candidates are sorted, instead of the best being selected.
    pub(crate) fn sorts(&self) -> bool {
        self.decision.form.sorts(&self.ranks)
    }

    /// The type of what a sort moves with ranks: numbers of rows, or what is carried beside them.
    pub(crate) fn payload(&self) -> Option<Element> {
        self.order.or(self.ranks.is_beside.then_some(Element::U32))
    }

    /// Whether the sort of all candidates leaves their ranks in order where its scratch memory begins.
    pub(crate) fn leaves_ranks(&self) -> bool {
        self.sorts() && sort_of(&self.ranks, Some(Element::U32)).leaves_keys()
    }

    /// The C type of places among ranks.
    pub(crate) fn number_type(&self) -> &'static str {
        self.decision.form.spec(&self.ranks, self.rows, self.k).rows.c_type()
    }

    /// Whether any output is computed of a row's columns.
    pub(crate) fn reads_rows(&self) -> bool {
        self.output_parts.iter().any(Option::is_none)
    }

    /// The selection of the best of some ranks.
    pub(crate) fn selection(&self, ranked: &RankedPlan) -> TopKSpec {
        let spec = self.decision.form.spec(&self.ranks, self.rows, ranked.k);
        TopKSpec { keys: Some(ranked.count), ..spec }
    }

    /// Bytes of the best ranks, and of where they lay: where all are sorted the latter alone, of all ranks.
    pub(crate) fn best_bytes(&self, ranked: &RankedPlan) -> [usize; 2] {
        let row_bytes = self.payload().map_or(0, Element::bytes);
        match self.sorts() {
            _ if self.by_last_block => [0, 0],
            false => [ranked.k as usize * self.ranks.element().bytes(), ranked.k as usize * row_bytes],
            true => [0, ranked.count as usize * row_bytes],
        }
    }

    /// Dynamic shared memory of the last block of the scan.
    pub(crate) fn last_block_bytes(&self) -> u32 {
        // The block tells its threads whether it is the last in a word of it.
        (self.candidates.count as u32 * self.ranks.element().bytes() as u32).max(4)
    }
}

/// Whether computing any of some expressions can raise an error.
fn may_raise(input: &PipelineInput, exprs: &[&Expr], registers: &[Option<Facts>]) -> Result<bool> {
    let (_, mut raise) = analyse(exprs, registers, input.overflow)?;
    exprs.iter().for_each(|expr| expr.registers(&mut |register| raise |= input.is_fallible(register)));
    Ok(raise)
}

/// The sort of all ranks, by their tails where they have some, the largest first.
pub(crate) fn sort_of(ranks: &Ranks, row: Option<Element>) -> SortSpec {
    let column = SortColumn { descending: true, ..SortColumn::of(ranks.element()) };
    let columns = match ranks.tail_bits {
        Some(_) => vec![column; 2],
        None => {
            let below = ranks.carried_below();
            vec![SortColumn { bits: below + ranks.bits().max(1), below, ..column }]
        }
    };
    SortSpec { columns, row }
}

/// Whether a value of a rank tells an output.
fn is_read_of_ranks(facts: &Facts) -> bool {
    !facts.is_wide() && facts.texts.is_none()
}

/// Rows that there is room for in a sort of all: as many as a table without filters has, a guess of those that pass,
/// and of groups as many as one block sorts, until there were more; where partitions have bounds, those that are
/// expected to reach them.
fn room_of_all(input: &PipelineInput, rows: u64, bounds: Option<&PartitionBounds>) -> u64 {
    if let Some(bounds) = bounds {
        return rows.min(grown(bounds.candidates(), input.growth));
    }
    match input.pipeline.source.table() {
        Some(_) if input.pipeline.steps.is_empty() => rows,
        None if input.scanned => rows.min(grown(BLOCK_SORT_MAX, input.growth)),
        None if !input.many_sorted => rows.min(BLOCK_SORT_MAX),
        _ => rows.min(input.guessed_rows()),
    }
}

/// Decides a top-k.
///
/// # Errors
/// Unsupported for keys, numbers of rows and algorithms that do not go together.
pub(crate) fn plan(input: &PipelineInput, top: &TopK, registers: &[Option<Facts>], split: &Split) -> Result<TopPlan> {
    // The sample of a top-k and its scan would let other rows pass.
    if split.rows.iter().any(|planned| matches!(planned.item, Item::Limit { .. })) {
        return unsupported("the first rows by an order of any rows that a limit lets pass");
    }
    if top.skip > 0 && !input.scanned {
        return Err(EngineError::Malformed("a result of first rows some of which are left out".into()));
    }
    let exprs: Vec<&Expr> = top.keys.iter().map(|key| &key.expr).collect();
    let (values, _) = analyse(&exprs, registers, input.overflow)?;
    let rows = input.rows;
    let numbered = Ranks::new(&top.keys, &values, input.determined, rows)?;
    let bounds =
        top.first.map(|first| PartitionBounds::new(first, &top.windows, &numbered, rows)).transpose()?.flatten();
    let k = top.k.map_or_else(|| room_of_all(input, rows, bounds.as_ref()), |k| k.min(rows));
    let by_place = match (top.k, Form::of_all(k, input.tuning)) {
        (None, form @ Form::Sort { .. }) if form.appends(rows).is_none() && bounds.is_none() => {
            numbered.by_place(input.may_lack_rows())
        }
        _ => None,
    };
    let outputs: Vec<&Expr> = top.outputs.iter().map(|(expr, _)| expr).collect();
    let (facts, _) = analyse(&outputs, registers, input.overflow)?;
    let carrying = by_place.as_ref().and_then(|ranks| {
        let is_first = |at: &usize| !outputs[..*at].iter().any(|known| known.is_same(outputs[*at]));
        let is_key = |at: usize| ranks.whole(&top.keys, outputs[at]).is_some() && is_read_of_ranks(&facts[at]);
        let others = (0..outputs.len()).filter(is_first).filter(|at| !is_key(*at));
        ranks.carrying(&others.map(|at| (at, &facts[at])).collect::<Vec<_>>())
    });
    let ranks = carrying.or(by_place).unwrap_or(numbered);
    let tail_raises = may_raise(input, &exprs[ranks.first_behind().unwrap_or(exprs.len())..], registers)?;
    let question = Question {
        info: input.info,
        tuning: input.tuning,
        ranks: &ranks,
        rows,
        k,
        is_sort: top.k.is_none(),
        named: top.algorithm,
        failed: input.failed_thresholds,
        scan_bytes: split.bytes,
    };
    let mut decision = question.decide()?;
    if let Some(PartitionBounds { rows, partitions, .. }) = bounds {
        let _ = write!(decision.reason, ", those that reach the bounds of the first {rows} of {partitions} partitions");
    }
    let row = RowLayout::of(&top.outputs, registers, input.overflow)?;
    let outputs_raise = may_raise(input, &outputs, registers)?;
    if !top.windows.is_empty() && (!input.scanned || top.k.is_some()) {
        return Err(EngineError::Malformed("windows of a result, or of some rows".into()));
    }
    let windows = (!top.windows.is_empty()).then(|| WindowsPlan::new(&top.windows, (&ranks, &facts), rows, input));
    let windows = windows.transpose()?;
    if input.multiplies() {
        return Err(EngineError::Malformed("a top-k of rows that have several matches and no number".into()));
    }
    // Candidates that one block sorts in shared memory.
    let has_few = |candidates: u64| {
        let bytes = candidates as usize * ranks.element().bytes();
        candidates <= BLOCK_SORT_MAX && bytes <= input.shared_limit
    };
    let by_last_block = match decision.form {
        Form::Threshold { sample: None, room } => {
            !input.scanned && !decision.form.sorts(&ranks) && has_few(room) && ranges(input).len() == 1
        }
        _ => false,
    };
    let mut plan = TopPlan {
        rows,
        k,
        is_sort: top.k.is_none(),
        grows: top.k.is_none() && input.scanned && k < rows,
        expects_few: top.k.is_none() && input.pipeline.source.table().is_none() && !input.many_sorted,
        first_rows: first_rows(input.chunk_rows),
        output_parts: vec![None; top.outputs.len()],
        order: None,
        candidates: RankedPlan { count: decision.form.candidates(rows), k },
        sample: match decision.form {
            Form::Threshold { sample: Some(sample), .. } => Some(RankedPlan { count: sample.rows, k: sample.place }),
            _ => None,
        },
        bounds,
        by_last_block,
        tail_raises,
        outputs_raise,
        scratch_bytes: 0,
        seed: input.seed,
        ranks,
        decision,
        skip: top.skip,
        values: input.scanned.then(|| {
            let of_windows = windows.iter().flat_map(|windows| windows.row.values(&windows.facts, row.words()));
            row.values(&facts, 0).into_iter().chain(of_windows).collect()
        }),
        row,
        windows,
    };
    if plan.leaves_ranks() {
        let part_of = |(expr, facts): (&&Expr, &Facts)| {
            let key = plan.ranks.whole(&top.keys, expr).map(|part| {
                let Part { shift, .. } = plan.ranks.parts[part];
                Part { shift: shift + plan.ranks.key_shift(), ..plan.ranks.parts[part].clone() }
            });
            let is_beside = plan.ranks.is_beside && key.is_none();
            let carried = || plan.ranks.carried.iter().find(|part| outputs[part.key].is_same(expr)).cloned();
            let part = key.or_else(carried).filter(|_| is_read_of_ranks(facts))?;
            Some(OutputPart { part, facts: facts.clone(), is_beside })
        };
        plan.output_parts = outputs.iter().zip(&facts).map(part_of).collect();
    }
    let tells_all = plan.leaves_ranks() && plan.ranks.by_place && !plan.reads_rows();
    plan.order = (!tells_all).then(|| plan.selection(&plan.candidates).rows);
    let scratch = |ranked: &RankedPlan| match plan.sorts() {
        false => plan.selection(ranked).scratch_bytes(input.info, ranked.count),
        true => sort_of(&plan.ranks, plan.payload()).scratch_bytes(input.info, ranked.count),
    };
    if !by_last_block {
        plan.scratch_bytes = plan.sample.iter().chain([&plan.candidates]).map(scratch).max().unwrap_or(0);
    }
    Ok(plan)
}
