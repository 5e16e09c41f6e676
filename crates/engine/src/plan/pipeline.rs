//! The plan of a pipeline over loaded columns: all that is decided about it, as data, with the reasons in words.
//!
//! Kernels are written by it ([`crate::codegen`]), memory is laid out by it, and EXPLAIN prints it. Nothing is decided
//! behind it. Decisions rest on facts, which are proven, and on estimates, which never change a result.

use std::fmt;
use std::sync::Arc;

use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::format::in_bytes;
use crate::ir::Sink;
use crate::plan::blocks::LARGE_WARPS;
use crate::plan::blocks::QUEUE_BYTES_MAX;
use crate::plan::blocks::SMALL_BLOCK;
use crate::plan::bounds::may_skip;
use crate::plan::group_values::is_of_entry;
use crate::plan::groups::Grouping;
use crate::plan::input::PipelineInput;
use crate::plan::order::{self, Passing, Planned};
use crate::plan::shared::SharedMemory;
use crate::plan::sink::SinkPlan;
use crate::plan::split::Split;
use crate::plan::splitting::split;
use crate::plan::table::TableLayout;
use crate::plan::tickets::Tickets;
use crate::plan::vectors;
use crate::plan::vectors::VectorTest;

/// What is decided about a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct PipelinePlan {
    /// What is known of the registers.
    pub(crate) registers: Arc<[Option<Facts>]>,
    /// Steps in the order in which they are taken.
    pub(crate) order: Vec<Planned>,
    /// What passes its filters, with the constants that it was planned for.
    pub(crate) passing: Passing,
    /// Which steps run on whole vectors.
    pub(crate) split: Split,
    /// What the sink leaves.
    pub(crate) sink: SinkPlan,
    /// What is told of vectors before they are loaded.
    pub(crate) vectors: Vec<VectorTest>,
    /// Threads of a block and its shared memory.
    pub(crate) shared: SharedMemory,
    /// What warps draw in each launch of the scan.
    pub(crate) tickets: Vec<Tickets>,
    /// Whether the vectors of the next step are on their way while one is worked on.
    pub(crate) prefetch: bool,
    /// Whether steps whose rows are all there are worked on without a test of each.
    pub(crate) whole_steps: bool,
    /// Whether it scans groups that another pipeline wrote.
    pub(crate) scans_groups: bool,
    /// Whether warps stop where a row finds no room and go on in a later launch.
    pub(crate) resumes: bool,
}

/// A decision in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    /// What was decided.
    pub(crate) decision: String,
    /// Why so.
    pub(crate) why: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.decision, self.why)
    }
}

/// Plans a pipeline.
///
/// # Errors
/// Unsupported for what no kernel does, and for more shared memory than a block has.
pub(crate) fn plan(input: &PipelineInput) -> Result<PipelinePlan> {
    let values = input.values.iter().map(|value| &value.facts);
    let columns: Vec<Facts> = input.columns.iter().map(|column| &column.facts).chain(values).cloned().collect();
    let registers = order::registers(input.pipeline, &columns, input.tables)?;
    let bitmap_bytes_max = input.shared_limit.saturating_sub(LARGE_WARPS * QUEUE_BYTES_MAX);
    let limits = (input.overflow, bitmap_bytes_max, input.tuning);
    let (mut order, passing) = order::order(input.pipeline, columns.len(), &registers, input.tables, limits)?;
    let scans_groups = input.pipeline.source.table().is_none();
    if scans_groups {
        // Places without a group hold no values: nothing else may look at them.
        order.sort_by_key(|planned| !is_of_entry(planned));
    }
    let mut split = split(order.clone(), input)?;
    let sink = SinkPlan::of(input, &registers, &split)?;
    let skips = may_skip(input, &split);
    if skips {
        split.ahead = 1;
    }
    // What waits for the build of a small table, or for its groups, waits for the last warp.
    let waits = matches!(input.pipeline.sink, Sink::Build { .. }) || scans_groups;
    let least = if waits && !skips { split.slots as u64 * 32 } else { input.tuning.step_rows_max() };
    let tickets = Tickets::of(input, least);
    let resumes = sink.grows();
    let shared = SharedMemory::plan(input, &split, &sink);
    if shared.bytes > input.shared_limit {
        let (wanted, most) = (in_bytes(shared.bytes as u64), in_bytes(input.shared_limit as u64));
        return unsupported(format!("a kernel that takes {wanted} of shared memory, where a block has {most}"));
    }
    let vectors = vectors::plan(input, &split, &shared);
    // What is left by steps in turn is short; vectors that lie apart are asked for whole.
    let step_bytes = split.register_bytes(input) * split.slots as f64;
    let has_registers = shared.block <= SMALL_BLOCK || step_bytes <= input.tuning.large_prefetch as f64;
    let is_in_turn = split.ahead > 1 || !vectors.is_empty() || split.loaded.is_empty();
    let prefetch = input.tuning.prefetch && has_registers && !is_in_turn;
    // Rows of one group take so little that a test shows.
    let whole_steps = sink.is_single() && split.dense.is_empty() && split.ahead <= 1;
    Ok(PipelinePlan {
        registers: registers.into(),
        order,
        passing,
        split,
        sink,
        vectors,
        shared,
        tickets,
        prefetch,
        whole_steps,
        scans_groups,
        resumes,
    })
}

impl PipelinePlan {
    /// Whether it adds up rows by runs.
    pub(crate) fn by_runs(&self) -> bool {
        self.sink.runs().is_some()
    }

    /// What was decided, and why.
    pub(crate) fn reasons(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let mut add = |decision: String, why: &str| reasons.push(Reason { decision, why: why.to_string() });
        let Split { dense, certain, rows, loaded, slots, ahead, in_place, why, .. } = &self.split;
        let place = if *in_place { "in place" } else { "from a queue" };
        add(format!("{} steps on vectors, {} by row {place}", dense.len(), rows.len()), why);
        if !certain.is_empty() {
            add(format!("{} joins without a test", certain.len()), "each key that may come has its row");
        }
        let turns = if *ahead > 1 { format!(", {ahead} steps in turn") } else { String::new() };
        let next = if self.prefetch { ", the next on its way" } else { "" };
        let bytes = format!("{} read of columns", in_bytes(self.split.bytes as u64));
        add(format!("{} columns loaded whole, {slots} values a lane{turns}{next}", loaded.len()), &bytes);
        if self.tickets.len() > 1 {
            let chunks: usize = self.tickets.iter().map(|tickets| tickets.chunks.len()).sum();
            add(format!("{} launches", self.tickets.len()), &format!("{chunks} chunks"));
        }
        match &self.sink {
            SinkPlan::Table(table) => {
                let how = match table.layout {
                    TableLayout::Direct => "table indexed by key",
                    TableLayout::Hash => "hashed table",
                    TableLayout::Wide => "hashed table of wide keys",
                };
                add(format!("{how}, {} places", table.places), &table.why);
            }
            SinkPlan::Groups(groups, _) if groups.grouping == Grouping::Single => {
                add(format!("{}, {} cells", groups.grouping, groups.cell_count), &groups.why);
            }
            SinkPlan::Groups(groups, _) => {
                let copies = if groups.copies > 1 { format!(" in {} copies", groups.copies) } else { String::new() };
                let cells = format!("groups {}, {} cells{copies}", groups.grouping, groups.cell_count);
                add(format!("{cells}, {} places", groups.places), &groups.why);
            }
            SinkPlan::TopK(top) => add("rows by rank".into(), &top.decision.reason),
            SinkPlan::Rows(rows) if rows.is_enough => add(format!("room for {} rows", rows.capacity), "the limit"),
            SinkPlan::Rows(rows) => add(format!("room for {} rows", rows.capacity), "a guess, or all there are"),
            SinkPlan::List(list) => add(format!("a list of {} rows", list.places), "rows have several matches"),
        }
        if let SinkPlan::Groups(groups, _) = &self.sink
            && let Some(computed) = &groups.computed
        {
            add(format!("{} columns computed of groups", computed.exprs.len()), "expressions over aggregates");
        }
        if self.resumes {
            add("stops without room, goes on with more".into(), "there is room for fewer than may come");
        }
        if let Some(runs) = self.sink.runs() {
            add("rows added up by runs first".into(), &runs.why);
        }
        if !self.vectors.is_empty() {
            let columns = format!("{} of the steps know their bounds", self.vectors.len());
            add("vectors looked at before they are loaded".into(), &columns);
        }
        let SharedMemory { block, min_blocks, bytes, tables, why, .. } = &self.shared;
        let kept = format!("{} of shared memory, tables in it: {}", in_bytes(*bytes as u64), tables.len());
        add(format!("blocks of {block} threads, {min_blocks} a multiprocessor, {kept}"), why);
        reasons
    }
}
