//! The end of a pipeline: rows enter a join table or go into accumulators.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::{Dictionary, VECTOR_ROWS};

use crate::arena::{Arena, Zone};
use crate::codegen::aggregate::{Accumulators, COUNTED, CellOp, Output, Read, SumBounds, are_sums_of};
use crate::codegen::build::{self, Unique, build_row, hash_table, wide_table};
use crate::codegen::expr::{Emitter, Value};
use crate::codegen::frame::SUMS_AT_ONCE;
use crate::codegen::group_values::{GroupValue, aggregate_facts, group_values};
use crate::codegen::input::{Branch, PipelineInput};
use crate::codegen::list::{self, BoundList};
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::partials::Partials;
use crate::codegen::pipeline::{LARGE_WARPS, QUEUE_BYTES_MAX, Split};
use crate::codegen::result_rows::{self, BoundRows};
use crate::codegen::rows::RowWriter;
use crate::codegen::runs::{self, OrderedGroups, RUN_KEY, RunPlan, WholeRuns};
use crate::codegen::topk::{self, BoundTop};
use crate::error::{Result, unsupported};
use crate::facts::{Facts, Texts, analyse};
use crate::ir::{AggregateCall, Expr, Sink, TopK};
use crate::plan::keys::KeyPack;
use crate::plan::order::{Item, Planned};
use crate::plan::table::{BuiltTable, TableLayout};

/// Slots of a hashed group table at first.
pub(crate) const GROUP_SLOTS_FIRST: u64 = 1 << 20;
/// Slots it may grow to.
pub(crate) const GROUP_SLOTS_MAX: u64 = 1 << 30;
/// Domains of groups up to this size are indexed directly.
const DENSE_GROUPS_MAX: u64 = 1 << 22;
/// Lanes' private cells may take this many bytes of shared memory a warp.
const PRIVATE_CELL_BYTES_MAX: usize = 14 << 10;
/// Warps of the block that private cells are used in.
const SMALL_BLOCK_WARPS: usize = 8;
/// Below this many rows private cells are not worth their zeroing.
const PRIVATE_ROWS_MIN: u64 = 1 << 16;
/// A block's shared cells may take this many bytes; bitmaps need the rest.
const SHARED_CELL_BYTES_MAX: usize = 64 << 10;
/// Rows a group from which on a block's cells are worth their zeroing and flushing: below, atomic operations in global
/// memory seldom meet.
const SHARED_ROWS_PER_GROUP_MIN: f64 = 64.0;
/// Most bytes that copies of cells in global memory take.
const COPIES_BYTES_MAX: usize = 4 << 20;

/// Where groups are accumulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// One group: registers, then one atomic operation a warp.
    Single,
    /// Few groups: a copy a lane in shared memory, then one atomic operation a warp and cell.
    Private,
    /// Some thousand groups that many rows fall into: a copy a block in shared memory, as halves of 32 bits.
    Shared,
    /// Cells in global memory, indexed by packed key.
    Dense,
    /// Cells in global memory, found by hashing; or, of an ordered aggregation, by a list beside those.
    Hashed,
}

/// What a sink leaves behind for later pipelines and for the result.
#[derive(Debug, Clone)]
pub(crate) enum BoundSink {
    /// A table.
    Table(BuiltTable),
    /// Groups.
    Groups(BoundGroups),
    /// The first rows by an order.
    TopK(Box<BoundTop>),
    /// Rows of a result.
    Rows(BoundRows),
    /// Rows that another pipeline scans.
    List(BoundList),
}

/// Accumulated groups and how to read them.
#[derive(Debug, Clone)]
pub(crate) struct BoundGroups {
    /// Where groups are accumulated.
    pub(crate) grouping: Grouping,
    /// Packing of group keys.
    pub(crate) pack: KeyPack,
    /// Group columns: Arrow type and strings.
    pub(crate) columns: Vec<(DataType, Option<Arc<Dictionary>>)>,
    /// The columns whose strings' places group columns are, if they are.
    pub(crate) texts: Vec<Option<Texts>>,
    /// Places of the group table.
    pub(crate) places: u64,
    /// A byte a place (dense), or 8 bytes a slot: key + 1 (hashed, and where another pipeline scans the groups), or the
    /// slot's state where a key has several words; zero where there is no group.
    pub(crate) seen: Zone,
    /// Keys of several words, side by side.
    pub(crate) words: Option<Zone>,
    /// The same where another pipeline scans the groups: 8 bytes a place for each word.
    pub(crate) word_columns: Option<Zone>,
    /// Cells: for each copy and cell, 8 bytes a place.
    pub(crate) cells: Zone,
    /// Copies of the cells, a power of two: blocks take them in turn, so that atomic operations of many rows on few
    /// groups seldom meet. Their sum is the cell.
    pub(crate) copies: u64,
    /// What hashes are seeded with.
    pub(crate) seed: u64,
    /// Number of cells.
    pub(crate) cell_count: usize,
    /// How results are read.
    pub(crate) outputs: Vec<Output>,
    /// The cell that each part of an aggregate asked for.
    pub(crate) requested: Vec<usize>,
    /// The values of groups, where another pipeline scans them. Every group then has its packed key plus one in 8
    /// bytes of `seen`, and places are whole vectors.
    pub(crate) values: Option<Vec<GroupValue>>,
    /// How rows are added up before they meet the table.
    pub(crate) runs: Option<RunPlan>,
    /// The groups that are not looked up.
    pub(crate) ordered: Option<OrderedGroups>,
}

impl BoundGroups {
    /// The C type of an entry of `seen`.
    pub(crate) fn mark_type(&self) -> &'static str {
        if self.values.is_some() || self.grouping == Grouping::Hashed { "uint64_t" } else { "uint8_t" }
    }

    /// The entry of `seen` of the group with this packed key.
    pub(crate) fn mark(&self, key: &str) -> String {
        if self.values.is_some() { format!("(uint64_t)({key}) + 1") } else { "1".into() }
    }
}

/// A sink, laid out.
pub(crate) enum SinkPlan<'a> {
    /// A table is built.
    Build { keys: &'a [Expr], payload: Vec<&'a Expr>, table: BuiltTable, unique: Unique, runs: Option<RunPlan> },
    /// Groups are accumulated.
    Aggregate { groups: &'a [(Expr, DataType)], aggregates: &'a [AggregateCall], bound: BoundGroups, sums: SumBounds },
    /// The first rows by an order are found.
    TopK { top: &'a TopK, bound: Box<BoundTop> },
    /// Rows are the result.
    Rows { columns: &'a [(Expr, DataType)], bound: BoundRows },
    /// Rows are scanned by another pipeline.
    List { columns: Vec<&'a Expr>, bound: BoundList },
}

/// Whether the bitmap that rows are tested by first fits shared memory beside a block's cells, if it does without them:
/// all rows look at it, and few come as far as the cells.
fn leaves_room(input: &PipelineInput, dense: &[Planned], cell_bytes: usize) -> bool {
    let bitmap = |planned: &Planned| match &planned.item {
        Item::Probe(probe, _) => match &input.tables[probe.build].as_ref()?.layout {
            TableLayout::Direct { bitmap } => Some(bitmap.bytes()),
            _ => None,
        },
        Item::Filter(_) | Item::Limit { .. } => None,
    };
    let free = input.shared_limit.saturating_sub(LARGE_WARPS * QUEUE_BYTES_MAX);
    dense.iter().find_map(bitmap).is_none_or(|bytes| bytes > free || bytes + cell_bytes <= free)
}

/// How many copies of cells there are, if one takes `bytes`: a power of two, at most `wanted`.
fn copies(bytes: usize, wanted: u32) -> u64 {
    let most = (COPIES_BYTES_MAX / bytes.max(1)).clamp(1, wanted.max(1) as usize) as u64;
    1 << most.ilog2()
}

/// Slots that a hashed group table has at first: those of the guess, or twice as many as its keys have distinct values,
/// where that is known to be more. Products of distinct values say little once they reach the number of rows.
fn slots(input: &PipelineInput, groups: &[&Expr], rows: u64) -> u64 {
    let distinct_counts = input.branch.map_or(input.distinct_counts, |branch| &branch.union.distinct_counts);
    let count = |expr: &&Expr| match expr {
        Expr::Reg(register) => *distinct_counts.get(*register)?,
        _ => None,
    };
    let groups = groups.iter().map(count).try_fold(1u64, |product, count| product.checked_mul(count?));
    let known = groups.filter(|groups| *groups <= rows / 2 && input.group_slots >= GROUP_SLOTS_FIRST);
    input.group_slots.max(known.map_or(0, |groups| (2 * groups).next_power_of_two().min(GROUP_SLOTS_MAX)))
}

/// Lays out the sink of a pipeline.
pub(super) fn plan<'a>(
    input: &PipelineInput<'a>,
    registers: &[Option<Facts>],
    split: &Split,
    arena: &mut Arena,
) -> Result<SinkPlan<'a>> {
    let Split { rows, dense, .. } = split;
    match &input.pipeline.sink {
        Sink::Build { keys, payload: values } | Sink::Extremes { keys, values } => {
            build::plan(input, registers, split, (keys, values), arena)
        }
        Sink::Aggregate { groups, aggregates } => {
            // The groups of a union are laid out once, over the columns that its branches share.
            let (groups, aggregates, registers, scanned_rows) = match input.branch {
                Some(Branch { union, .. }) => (&union.groups, &union.aggregates, union.columns.as_slice(), union.rows),
                None => (groups, aggregates, registers, input.rows),
            };
            let sums = SumBounds { rows: input.rows_out(), whole_sums: input.whole_sums, overflow: input.overflow };
            if let Some(bound) = input.branch.and_then(|branch| branch.groups) {
                return Ok(SinkPlan::Aggregate { groups, aggregates, bound: bound.clone(), sums });
            }
            let exprs: Vec<&Expr> = groups.iter().map(|(expr, _)| expr).collect();
            let (values, _) = analyse(&exprs, registers, input.overflow)?;
            let pack = KeyPack::of_groups(&values)?;
            let columns =
                groups.iter().zip(&values).map(|((_, ty), value)| (ty.clone(), value.dictionary.clone())).collect();
            let accumulators = accumulators(registers, aggregates, groups.is_empty(), sums)?;
            let cell_count = accumulators.cells.len();
            let private_bytes = (pack.domain as usize).saturating_mul((cell_count + 1) * 8 * 32);
            let many_limbs = accumulators.cells.iter().any(|cell| cell.op.is_of_many_limbs());
            let private_fits = !many_limbs
                && private_bytes <= PRIVATE_CELL_BYTES_MAX
                && SMALL_BLOCK_WARPS * (private_bytes + QUEUE_BYTES_MAX) <= input.shared_limit;
            let shared_bytes = (pack.domain as usize).saturating_mul(cell_count * 8 + 1);
            let only_sums = accumulators.cells.iter().all(|cell| cell.op == CellOp::Add);
            let share: f64 = rows.iter().chain(dense).map(|planned| planned.share).product();
            let crowded = share * scanned_rows as f64 >= SHARED_ROWS_PER_GROUP_MIN * pack.domain as f64;
            // Twice the rows are never filled past half.
            let slots = slots(input, &exprs, scanned_rows)
                .min(sums.rows.clamp(16, 1 << 60).saturating_mul(2).next_power_of_two());
            let has_limbs = accumulators.outputs.iter().any(|output| matches!(output.read, Read::Fixed { .. }));
            let grouping = match pack.domain {
                _ if groups.is_empty() => Grouping::Single,
                _ if private_fits && scanned_rows >= PRIVATE_ROWS_MIN => Grouping::Private,
                _ if shared_bytes <= SHARED_CELL_BYTES_MAX.min(input.shared_limit / 2)
                    && only_sums
                    && crowded
                    && leaves_room(input, dense, shared_bytes) =>
                {
                    Grouping::Shared
                }
                // Limbs take many cells a place: where most places stay empty they are better hashed.
                domain if has_limbs && domain > slots => Grouping::Hashed,
                0..=DENSE_GROUPS_MAX => Grouping::Dense,
                _ => Grouping::Hashed,
            };
            let cell_count = cell_count + usize::from(grouping == Grouping::Private);
            let runs = RunPlan::of_groups(input, split, (&exprs, &pack), (&accumulators.cells, grouping), share);
            let in_order = runs.as_ref().filter(|runs| runs.whole == WholeRuns::Listed);
            let ordered = in_order.map(|_| OrderedGroups::lay_out(arena, input, (split, &exprs, cell_count)));
            let slots = ordered.map_or(slots, |_| runs::end_slots(input, split));
            let places = if grouping == Grouping::Hashed { slots } else { pack.domain };
            let places = if input.scanned { places.next_multiple_of(VECTOR_ROWS as u64) } else { places };
            let entry = if grouping == Grouping::Hashed || input.scanned { 8 } else { 1 };
            let seen = arena.zeroed(places as usize * entry);
            let copy_bytes = places as usize * 8 * cell_count.max(1);
            let copies = match grouping {
                Grouping::Dense if only_sums && crowded && !input.scanned && runs.is_none() => {
                    copies(copy_bytes, input.tuning.group_copies)
                }
                _ => 1,
            };
            let cells = arena.zeroed(copy_bytes * copies as usize);
            let words = pack.is_wide().then(|| arena.scratch(places as usize * 8 * pack.words));
            let word_columns = words.filter(|_| input.scanned).map(|words| arena.scratch(words.bytes()));
            let Accumulators { outputs, requested, .. } = accumulators;
            let mut bound = BoundGroups {
                grouping,
                pack,
                columns,
                texts: values.iter().map(|value| value.texts).collect(),
                places,
                seen,
                words,
                word_columns,
                cells,
                copies,
                seed: input.seed,
                cell_count,
                outputs,
                requested,
                values: None,
                runs,
                ordered,
            };
            if input.scanned {
                if groups.is_empty() {
                    return unsupported("an aggregation without groups that is not the result");
                }
                let facts = aggregate_facts(aggregates, registers, (input.rows_out(), input.overflow))?;
                bound.values = Some(group_values(&bound, &values, &facts)?);
            }
            Ok(SinkPlan::Aggregate { groups, aggregates, bound, sums })
        }
        // The sample of a top-k and its scan would let other rows pass.
        Sink::TopK(_) if rows.iter().any(|planned| matches!(planned.item, Item::Limit { .. })) => {
            unsupported("the first rows by an order of any rows that a limit lets pass")
        }
        Sink::TopK(top) => {
            let bound = Box::new(topk::plan(input, top, registers, split.bytes, arena)?);
            Ok(SinkPlan::TopK { top, bound })
        }
        Sink::Rows { columns, .. } if input.scanned => {
            let columns: Vec<&Expr> = columns.iter().map(|(expr, _)| expr).collect();
            let bound = list::plan(input, &columns, registers, arena)?;
            Ok(SinkPlan::List { columns, bound })
        }
        Sink::Rows { columns, limit } => {
            let bound = result_rows::plan(input, (columns, *limit), registers, arena)?;
            Ok(SinkPlan::Rows { columns, bound })
        }
    }
}

/// The accumulators of a sink as far as they can be known before code is written.
fn accumulators(
    registers: &[Option<Facts>],
    aggregates: &[AggregateCall],
    single: bool,
    sums: SumBounds,
) -> Result<Accumulators> {
    let (mut params, mut arena, mut next) = (ParamList::default(), Arena::default(), 0);
    let register = |(number, facts): (usize, &Option<Facts>)| Some(Value::register(number, facts.as_ref()?));
    let registers: Vec<Option<Value>> = registers.iter().enumerate().map(register).collect();
    let mut emitter = Emitter::new(&registers, &mut params, &mut arena, ("0", sums.overflow), &mut next);
    fill(&mut emitter, aggregates, single, sums, None)
}

/// Adds the aggregates' cells; a global aggregation counts its rows to tell NULL from a value. `settled` are the
/// cells of the dry run.
fn fill(
    emitter: &mut Emitter,
    aggregates: &[AggregateCall],
    single: bool,
    sums: SumBounds,
    settled: Option<Vec<usize>>,
) -> Result<Accumulators> {
    let mut accumulators = Accumulators { settled, ..Accumulators::default() };
    for call in aggregates {
        accumulators.add(emitter, call, sums)?;
    }
    if single {
        let counted = accumulators.count(None);
        for (output, call) in accumulators.outputs.iter_mut().zip(aggregates) {
            if output.count.is_none() && call.kind != crate::ir::AggregateKind::Count {
                output.count = Some(counted);
            }
        }
    }
    Ok(accumulators)
}

impl SinkPlan<'_> {
    /// What later pipelines and the result need.
    pub(crate) fn bound(self) -> BoundSink {
        match self {
            SinkPlan::Build { table, .. } => BoundSink::Table(table),
            SinkPlan::Aggregate { bound, .. } => BoundSink::Groups(bound),
            SinkPlan::TopK { bound, .. } => BoundSink::TopK(bound),
            SinkPlan::Rows { bound, .. } => BoundSink::Rows(bound),
            SinkPlan::List { bound, .. } => BoundSink::List(bound),
        }
    }

    /// How rows are added up before they meet the table, if they are.
    pub(crate) fn runs(&self) -> Option<&RunPlan> {
        match self {
            SinkPlan::Build { runs, .. } => runs.as_ref(),
            SinkPlan::Aggregate { bound, .. } => bound.runs.as_ref(),
            _ => None,
        }
    }

    /// Shared memory a warp for private cells or for runs, in bytes.
    pub(crate) fn shared_cell_bytes(&self) -> usize {
        if let Some(runs) = self.runs() {
            return runs.warp_bytes();
        }
        match self {
            SinkPlan::Aggregate { bound, .. } if bound.grouping == Grouping::Private => {
                bound.pack.domain as usize * bound.cell_count * 8 * 32
            }
            _ => 0,
        }
    }

    /// Shared memory a block for the sums of its warps, in bytes, once nothing else lies there any more.
    pub(crate) fn warp_sum_bytes(&self) -> usize {
        match self {
            SinkPlan::Aggregate { bound, .. } if bound.grouping == Grouping::Single => {
                bound.cell_count.min(SUMS_AT_ONCE) * 32 * 8
            }
            _ => 0,
        }
    }

    /// Shared memory a block for its cells, in bytes: lower halves, upper halves, marks.
    pub(crate) fn block_cell_bytes(&self) -> usize {
        match self {
            SinkPlan::Aggregate { bound, .. } if bound.grouping == Grouping::Shared => {
                (bound.pack.domain as usize * (bound.cell_count * 8 + 1)).next_multiple_of(16)
            }
            _ => 0,
        }
    }

    /// Writes what one row does, a lane working on at most `slots` rows between two folds ([`Partials`]).
    pub(crate) fn row(&self, rows: &mut RowWriter, slots: usize) -> Result<Partials> {
        match self {
            SinkPlan::Build { keys, payload, table, unique, runs } => {
                build_row(rows, keys, payload, table, (*unique, runs.as_ref()))?;
                Ok(Partials::default())
            }
            SinkPlan::Aggregate { groups, aggregates, bound, sums } => {
                aggregate_row(rows, groups, aggregates, bound, *sums, slots)
            }
            SinkPlan::TopK { top, bound } => bound.row(rows, top).map(|()| Partials::default()),
            SinkPlan::Rows { columns, bound } => bound.row(rows, columns).map(|()| Partials::default()),
            SinkPlan::List { columns, bound } => bound.row(rows, columns).map(|()| Partials::default()),
        }
    }

    /// Whether all rows go into one group.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, SinkPlan::Aggregate { bound, .. } if bound.grouping == Grouping::Single)
    }
}

fn aggregate_row(
    rows: &mut RowWriter,
    groups: &[(Expr, DataType)],
    aggregates: &[AggregateCall],
    bound: &BoundGroups,
    sums: SumBounds,
    slots: usize,
) -> Result<Partials> {
    let is_branch = rows.enter_union()?;
    let keys = groups.iter().map(|(expr, _)| rows.emit(expr)).collect::<Result<Vec<_>>>()?;
    let exprs = aggregates.iter().flat_map(|call| call.argument.iter().chain(&call.filter));
    for expr in exprs {
        let mut needed = Vec::new();
        expr.registers(&mut |register| needed.push(register));
        for register in needed {
            rows.emit(&Expr::Reg(register))?;
        }
    }
    let single = bound.grouping == Grouping::Single;
    let accumulators =
        rows.with_emitter(|emitter| fill(emitter, aggregates, single, sums, Some(bound.requested.clone())))?;
    let packed = match bound.grouping {
        Grouping::Single => None,
        _ => Some(rows.with_emitter(|emitter| bound.pack.emit(emitter, &keys))),
    };
    let mut group = match (&packed, bound.words) {
        (Some(packed), None) => packed.word().to_string(),
        _ => String::new(),
    };
    let mut summed = accumulators.cells;
    if let Some(runs) = &bound.runs {
        summed = runs.begin(rows, &group, &summed, bound.ordered.as_ref());
        group = RUN_KEY.into();
    }
    let flags = rows.flags();
    let full = format!("if (place == ~0ULL) {{ lost = true; atomicOr({flags}, (uint32_t)WC_TABLE_FULL); return; }}");
    let place = match bound.grouping {
        Grouping::Single => String::new(),
        Grouping::Private => group,
        Grouping::Shared => {
            rows.line(&format!("marks[{group}] = 1;"));
            group
        }
        Grouping::Dense => {
            let mark_pointer = format!("{}*", bound.mark_type());
            let seen = rows.with_emitter(|emitter| emitter.params.add(&mark_pointer, Argument::Zone(bound.seen)));
            // Looked at first: that comes from the cache, and writes of many rows to few groups wait for each other.
            rows.line(&format!("if ({seen}[{group}] == 0) {seen}[{group}] = {};", bound.mark(&group)));
            group
        }
        Grouping::Hashed if bound.words.is_some() => {
            let (words, packed) = (bound.words.expect("just seen"), packed.expect("groups have a key"));
            let target =
                rows.with_emitter(|emitter| wide_table(emitter, (bound.seen, words), bound.places - 1, bound.seed));
            rows.line(&format!("const uint64_t key[] = {{{}}};", packed.list()));
            rows.line("bool is_new;");
            rows.line("if (lost) return;");
            rows.line(&format!("const uint64_t place = wc_wide_enter({target}, key, &is_new);"));
            rows.line(&full);
            if let Some(columns) = bound.word_columns {
                let (columns, places) = rows.with_emitter(|emitter| {
                    let columns = emitter.params.add("uint64_t*", Argument::Zone(columns));
                    (columns, emitter.params.add("uint64_t", Argument::U64(bound.places)))
                });
                let words = bound.pack.words;
                rows.line("if (is_new) {");
                rows.line(&format!(
                    "for (int word = 0; word < {words}; ++word) {columns}[word * {places} + place] = key[word];"
                ));
                rows.line("}");
            }
            "place".to_string()
        }
        Grouping::Hashed => {
            let target = rows.with_emitter(|emitter| hash_table(emitter, bound.seen, bound.places - 1, bound.seed));
            rows.line("if (lost) return;");
            rows.line("bool is_new;");
            rows.line(&format!("const uint64_t place = wc_table_enter({target}, {group}, &is_new);"));
            rows.line(&full);
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
                _ => emitter.params.add("uint64_t*", Argument::Zone(bound.cells)),
            };
            let places = if bound.grouping == Grouping::Private { bound.pack.domain } else { bound.places };
            (cells, emitter.params.add("uint64_t", Argument::U64(places)))
        }),
    };
    let mut partials = Partials::default();
    for (index, cell) in summed.iter().enumerate().filter(|(_, cell)| cell.op != CellOp::Limb) {
        let mut condition = cell.condition.as_deref();
        if single
            && cell.op == CellOp::Add
            && let Some(column) = condition.and_then(|condition| rows.validity_of(condition))
        {
            if cell.value == COUNTED {
                partials.count(index, column);
                continue;
            }
            // Zeros may be added, whatever they stand for.
            if !is_branch && rows.is_zero_where_null(column) && are_sums_of(column, aggregates) {
                condition = None;
            }
        }
        let update = match bound.grouping {
            Grouping::Single if cell.adds_in_32_bits(slots) => {
                partials.add(index);
                format!("part{index} += (uint32_t)({});", cell.value)
            }
            Grouping::Single => match cell.op {
                CellOp::Add | CellOp::AddFloat => format!("sum{index} += {};", cell.value),
                CellOp::Max => format!("{{ const uint64_t v = {}; if (v > sum{index}) sum{index} = v; }}", cell.value),
                CellOp::AddFixed | CellOp::Limb => {
                    format!("wc_fixed_add({cells} + {index}, {places}, {});", cell.value)
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
                let at = format!("{cells} + {index} * {places} + {place}");
                match cell.op {
                    CellOp::Add => format!("wc_add({at}, {});", cell.value),
                    CellOp::Max => format!("wc_max({at}, {});", cell.value),
                    CellOp::AddFloat => format!("wc_add((double*)({at}), {});", cell.value),
                    CellOp::AddFixed | CellOp::Limb => format!("wc_fixed_add({at}, {places}, {});", cell.value),
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
