//! Where groups are accumulated, and how each pipeline adds to them.

use arrow::datatypes::DataType;
use warpcube_column::VECTOR_ROWS;

use crate::error::Result;
use crate::facts::{Facts, analyse};
use crate::format::in_bytes;
use crate::ir::{AggregateCall, Expr};
use crate::plan::blocks::{LARGE_WARPS, QUEUE_BYTES_MAX, SMALL_BLOCK};
use crate::plan::cells::{Accumulators, Cell, CellOp, Part, Read, SumBounds, United};
use crate::plan::group_values::aggregate_facts;
use crate::plan::groups::{Adding, Grouping, GroupsPlan, entry_bytes};
use crate::plan::growth::{GROUP_SLOTS_MAX, grown};
use crate::plan::input::{Branch, PipelineInput};
use crate::plan::keys::KeyPack;
use crate::plan::order::{Item, Planned};
use crate::plan::run_plan::{OrderedPlan, RunPlan, WholeRuns};
use crate::plan::runs;
use crate::plan::split::Split;
use crate::plan::table::TableLayout;
use crate::tuning::{GROUP_SLOTS, Tuning};

/// Whether the bitmap that rows are tested by first fits shared memory beside a block's cells, if it does without them:
/// all rows look at it, and few come as far as the cells.
fn leaves_room(input: &PipelineInput, dense: &[Planned], cell_bytes: usize) -> bool {
    let bitmap = |planned: &Planned| match &planned.item {
        Item::Probe(probe, _) => {
            let table = input.tables[probe.build].as_deref()?;
            (table.layout == TableLayout::Direct).then(|| table.bitmap_bytes())
        }
        Item::Filter(_) | Item::Limit { .. } => None,
    };
    let free = input.shared_limit.saturating_sub(LARGE_WARPS * QUEUE_BYTES_MAX);
    dense.iter().find_map(bitmap).is_none_or(|bytes| bytes > free || bytes + cell_bytes <= free)
}

/// How many copies of cells there are, if one takes `bytes`: a power of two.
fn copies(bytes: usize, tuning: &Tuning) -> u64 {
    let most = (tuning.copies_bytes / bytes.max(1)).clamp(1, tuning.group_copies.max(1) as usize) as u64;
    1 << most.ilog2()
}

/// Slots that a hashed group table has at first: those of the guess, or twice as many as its keys have distinct values,
/// where that is known to be more. Products of distinct values say little once they reach the number of rows.
fn slots(input: &PipelineInput, groups: &[&Expr], rows: u64) -> u64 {
    let count = |expr: &&Expr| match (expr, input.branch) {
        (Expr::Reg(register), Some(branch)) => *branch.union.distinct_counts.get(*register)?,
        (Expr::Reg(register), None) => input.columns.get(*register)?.distinct_count,
        _ => None,
    };
    let groups = groups.iter().map(count).try_fold(1u64, |product, count| product.checked_mul(count?));
    let known = groups.filter(|groups| *groups <= rows / 2 && input.group_slots >= GROUP_SLOTS);
    input.group_slots.max(known.map_or(0, |groups| (2 * groups).next_power_of_two().min(GROUP_SLOTS_MAX)))
}

/// Plans the groups of a pipeline, or of all branches of a union.
pub(crate) fn plan(
    input: &PipelineInput,
    (groups, aggregates): (&[(Expr, DataType)], &[AggregateCall]),
    registers: &[Option<Facts>],
    split: &Split,
) -> Result<GroupsPlan> {
    // The groups of a union are laid out once, over the columns that its branches share.
    let united: Vec<Option<United>>;
    let (groups, aggregates, united, registers, scanned_rows) = match input.branch {
        Some(Branch { union, .. }) => (
            union.groups.as_slice(),
            union.aggregates.as_slice(),
            union.united.as_slice(),
            union.columns.as_slice(),
            union.rows,
        ),
        None => {
            let of = |call: &AggregateCall| United::of(call, input.values, input.columns.len());
            united = aggregates.iter().map(of).collect::<Result<_>>()?;
            (groups, aggregates, united.as_slice(), registers, input.rows)
        }
    };
    let aggregates: Vec<_> = aggregates.iter().zip(united.iter().map(Option::as_ref)).collect();
    let (rows, unmatched) = (input.rows_out(), input.unmatched_rows());
    let sums = SumBounds { rows, unmatched, whole_sums: input.whole_sums, overflow: input.overflow };
    let exprs: Vec<&Expr> = groups.iter().map(|(expr, _)| expr).collect();
    let (values, _) = analyse(&exprs, registers, input.overflow)?;
    let pack = KeyPack::of_groups(&values);
    let mut cells = Accumulators::of(&aggregates, registers, groups.is_empty(), sums)?;
    cells.matches_max = cells.matches_max.map(|most| most.min(input.tuning.counted_matches));
    let share = split.share();
    // Twice the rows are never filled past half.
    let most = sums.rows.clamp(16, 1 << 60).saturating_mul(2).next_power_of_two();
    let slots = if input.has_limit { most.min(GROUP_SLOTS_MAX) } else { slots(input, &exprs, scanned_rows).min(most) };
    let question = Question { input, split, pack: &pack, cells: &cells, rows: scanned_rows, share, slots };
    let (grouping, why) = if groups.is_empty() { (Grouping::Single, "no keys".into()) } else { question.grouping() };
    let cell_count = cells.cells.len() + usize::from(grouping == Grouping::Private);
    let runs = RunPlan::of_groups(input, split, (&exprs, &pack), (&cells.cells, grouping), share);
    let in_order = runs.as_ref().filter(|runs| runs.whole == WholeRuns::Listed);
    let ordered = in_order.map(|_| OrderedPlan::of(input, split, &exprs));
    let slots = ordered.map_or(slots, |_| runs::end_slots(input, split));
    let hashed = if ordered.is_some() { slots } else { grown(slots, input.growth).min(most).min(GROUP_SLOTS_MAX) };
    let places = if grouping == Grouping::Hashed { hashed } else { pack.domain };
    let places = if input.scanned { places.next_multiple_of(VECTOR_ROWS as u64) } else { places };
    let copies = match grouping {
        Grouping::Dense if question.only_sums() && question.is_crowded() && !input.scanned && runs.is_none() => {
            copies(places as usize * 8 * cell_count.max(1), input.tuning)
        }
        _ => 1,
    };
    let cached = match grouping {
        Grouping::Dense | Grouping::Hashed if copies == 1 && runs.is_none() => question.cached(),
        _ => 0,
    };
    let columns = groups.iter().zip(&values).map(|((_, ty), value)| (ty.clone(), value.dictionary.clone())).collect();
    let mut plan = GroupsPlan {
        grouping,
        pack,
        columns,
        texts: values.iter().map(|value| value.texts).collect(),
        places,
        grows: grouping == Grouping::Hashed && ordered.is_none() && slots < most && !input.has_limit,
        copies,
        cached,
        seed: input.table_seed(),
        cells,
        cell_count,
        values: None,
        computed: None,
        runs,
        ordered,
        why,
    };
    if input.scanned || !input.result.is_empty() {
        let facts = aggregate_facts(&aggregates, registers, (input.rows_out(), input.overflow))?;
        let values = plan.values_of(&values, &facts);
        match input.scanned {
            true => plan.values = Some(values),
            false => plan.computed = Some(GroupsPlan::computed_of(values, input.result, input.overflow)?),
        }
    }
    Ok(plan)
}

/// What the place of groups is decided by.
struct Question<'a> {
    input: &'a PipelineInput<'a>,
    split: &'a Split,
    pack: &'a KeyPack,
    cells: &'a Accumulators,
    /// Rows of the scan, and the share of them that comes to the sink.
    rows: u64,
    share: f64,
    /// Slots of a hash table.
    slots: u64,
}

impl Question<'_> {
    fn only_sums(&self) -> bool {
        self.cells.cells.iter().all(|cell| cell.op == CellOp::Add)
    }

    /// Entries of a block's cache of cells, where enough rows come to the sink and a cache can hold what they add to.
    fn cached(&self) -> usize {
        let (tuning, cells) = (self.input.tuning, &self.cells.cells);
        let is_worth = self.share * self.rows as f64 >= tuning.cached_rows as f64;
        if cells.is_empty() || !is_worth || cells.iter().any(|cell| cell.op.is_of_many_limbs()) {
            return 0;
        }
        let most = tuning.cache_bytes / entry_bytes(cells.len());
        most.checked_ilog2().filter(|bits| *bits >= 5).map_or(0, |bits| 1 << bits)
    }

    /// Whether many rows fall into each group.
    fn is_crowded(&self) -> bool {
        self.share * self.rows as f64 >= self.input.tuning.shared_rows * self.pack.domain as f64
    }

    fn grouping(&self) -> (Grouping, String) {
        let Question { input, split, pack, cells, rows, slots, .. } = self;
        let cell_count = cells.cells.len();
        let private_bytes = (pack.domain as usize).saturating_mul((cell_count + 1) * 8 * 32);
        let many_limbs = cells.cells.iter().any(|cell| cell.op.is_of_many_limbs());
        let private_fits = !many_limbs
            && private_bytes <= input.tuning.private_bytes
            && SMALL_BLOCK as usize / 32 * (private_bytes + QUEUE_BYTES_MAX) <= input.shared_limit;
        let shared_bytes = (pack.domain as usize).saturating_mul(cell_count * 8 + 1);
        let has_limbs = cells.outputs.iter().any(|output| matches!(output.read, Read::Fixed { .. }));
        let keys = || match pack.is_wide() {
            true => "keys of more than 63 bits".to_string(),
            false => format!("keys of {} values", pack.domain),
        };
        let crowd = || format!("{:.1} rows a group", self.share * *rows as f64 / pack.domain.max(1) as f64);
        match pack.domain {
            _ if private_fits && *rows >= input.tuning.private_rows => {
                (Grouping::Private, format!("{}, {} a warp", keys(), in_bytes(private_bytes as u64)))
            }
            _ if shared_bytes <= input.tuning.shared_bytes.min(input.shared_limit / 2)
                && self.only_sums()
                && self.is_crowded()
                && leaves_room(input, &split.dense, shared_bytes) =>
            {
                (Grouping::Shared, format!("{}, {} a block, {}", keys(), in_bytes(shared_bytes as u64), crowd()))
            }
            // Limbs take many cells a place: where most places stay empty they are better hashed.
            domain if has_limbs && domain > *slots => {
                (Grouping::Hashed, format!("{}, and limbs of exact sums in each place", keys()))
            }
            domain if domain <= input.tuning.dense_groups => (Grouping::Dense, format!("{}, {}", keys(), crowd())),
            _ => (Grouping::Hashed, format!("{}, more than {}", keys(), input.tuning.dense_groups)),
        }
    }
}

/// How a pipeline adds to each cell of its groups.
pub(crate) fn adding(input: &PipelineInput, groups: &GroupsPlan, split: &Split) -> Vec<Adding> {
    // A queue is drained one row a lane at a time: there is nothing to add up before.
    let slots = if split.in_place { split.slots } else { usize::MAX };
    let add = |cell: &Cell| {
        if groups.grouping != Grouping::Single {
            return Adding::Rows { all: false, narrow: false };
        }
        let of_call = cell.call.map(|call| &groups.cells.inputs[call]);
        let by_column = of_call.filter(|_| cell.op == CellOp::Add).and_then(|of_call| of_call.by_register());
        let column = by_column.and_then(|register| column_of(input, register));
        // Every row gets to the end, so that its validity is that of the step.
        let loaded = column.filter(|column| split.in_place && split.rows.is_empty() && split.loaded.contains(column));
        let is_zero = |column: &usize| {
            let is_itself = cell.call.is_some_and(|call| groups.cells.inputs[call].is_register());
            input.branch.is_none() && is_itself && input.columns[*column].layout.is_zero_where_null()
        };
        let all = match (cell.part, loaded) {
            (Part::One, Some(column)) => return Adding::Counted(column),
            // Zeros may be added, whatever they stand for.
            (Part::Integer | Part::Low | Part::Middle | Part::High { .. } | Part::Highest, Some(column)) => {
                is_zero(&column)
            }
            _ => false,
        };
        Adding::Rows { all, narrow: cell.adds_in_32_bits(slots) }
    };
    groups.cells.cells.iter().map(add).collect()
}

/// The scanned column whose validity a register of the sink has.
fn column_of(input: &PipelineInput, register: usize) -> Option<usize> {
    let register = match input.branch {
        None => register,
        Some(Branch { union, number, .. }) => union.branches.get(number)?.get(register)?.validity.register()?,
    };
    (register < input.columns.len()).then_some(register)
}
