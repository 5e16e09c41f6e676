//! From DataFusion's final logical plan to fragments for the engine.
//!
//! Every aggregation, sort ([`top_k`]), window ([`windows`]) and join or filter of groups ([`rows`]) is looked at
//! once, from the top down: its input is flattened to a graph of scans, equi-joins and filters ([`graph`], [`joins`]),
//! the graph is arranged as a tree with the largest table at its root ([`tree`], [`writer`]) by the equalities among
//! relations ([`ties`]), expressions are translated ([`expr`]), and the whole is replaced by one extension node
//! ([`node`]) that keeps the original plan for the CPU. What cannot be translated stays as it was, with the reason.
//! Shapes only: nothing here depends on the values in the tables.

mod aggregate;
mod aggregation;
mod arguments;
mod calls;
mod cardinality;
mod columns;
mod constants;
mod dates;
mod derived;
mod describe;
mod distinct;
mod eager;
mod expr;
mod filled;
mod finish;
mod first_of_partitions;
mod flatten;
mod functions;
mod graph;
mod grouping_sets;
mod host_operators;
mod joins;
mod look_ups;
mod node;
mod operators;
mod order_statistics;
mod over_derived;
mod pairs;
mod reducers;
mod repeated;
mod rounding;
mod rows;
mod shared;
mod shared_tables;
mod strings;
mod tables;
mod ties;
mod top_k;
mod tree;
mod unions;
mod windows;
mod writer;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Extension, LogicalPlan, Sort, Subquery};
use parking_lot::Mutex;
use warpcube_engine::{AggregateKind, BindingCache, Fragment, Pipeline, Sink, TopK};

use arguments::Argument;
pub(crate) use cardinality::Cardinality;
pub(crate) use derived::DerivedColumn;
pub(crate) use describe::describe;
pub(crate) use filled::{fill, param_values};
pub(crate) use finish::Finish;
pub(crate) use host_operators::host_operators;
pub(crate) use node::DeviceNode;
use over_derived::DerivedCache;
use shared_tables::SharedTables;
pub(crate) use tables::{AggregationsApart, TableFacts, TableInfo, describe_table, describe_tables, version_now};
pub(crate) use top_k::project_late;

use crate::mend;
use crate::shared::{Shared, over, split};
use crate::walk::PlanWalk;

/// Why something stays on the CPU.
pub(crate) type Reason = String;

/// Decides where lowered fragments run.
pub(crate) trait Placer: Debug + Send + Sync {
    /// The fragment, if it is to run on the device, with the most groups of its result that are worth bringing back.
    ///
    /// # Errors
    /// Why it is to run on the CPU.
    fn place(&self, lowered: Lowered) -> Result<Lowered, Reason>;
}

/// A fragment with what is needed to run it and to finish its result.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// Device work.
    pub(crate) fragment: Fragment,
    /// The table behind each of the fragment's tables.
    pub(crate) tables: Vec<Arc<TableInfo>>,
    /// Most groups of its result that are worth bringing back, where that matters.
    pub(crate) groups_max: Option<u64>,
    /// How each output column is made of groups and aggregates; of rows each column is one.
    pub(crate) finish: Vec<Finish>,
    /// What the fragment takes before it is bound.
    pub(crate) arguments: Vec<Argument>,
    /// The fragment in a few words, for reports.
    pub(crate) what: String,
    /// The results that its scalar subqueries had last, and the same with these.
    pub(crate) last_results: Mutex<Option<(Vec<ScalarValue>, Arc<Lowered>)>>,
    /// What its last run was bound to.
    pub(crate) binding: BindingCache,
    /// Derived columns that may be in place of its columns of strings.
    pub(crate) derived: DerivedCache,
    /// What it is remembered by if a run finds that it cannot run on the device: its plan and its tables' versions.
    pub(crate) identity: String,
    /// The same of the rows of the join below it, which are then not brought back either.
    pub(crate) join: Option<String>,
    /// How many rows it gives.
    pub(crate) cardinality: Arc<Cardinality>,
}

impl Lowered {
    /// The scalar subqueries whose results it takes.
    pub(crate) fn subqueries(&self) -> impl Iterator<Item = &Subquery> {
        self.arguments.iter().filter_map(Argument::subquery)
    }

    /// Whether the root aggregates.
    pub(crate) fn aggregates(&self) -> bool {
        matches!(self.fragment.pipelines.last().map(|root| &root.sink), Some(Sink::Aggregate { .. }))
    }

    /// Whether the root gives all rows of tables in an order.
    pub(crate) fn sorts_rows(&self) -> bool {
        let root = self.fragment.pipelines.last().map(|root| &root.sink);
        matches!(root, Some(Sink::TopK(TopK { k: None, .. }))) && !self.has_groups()
    }

    /// Whether the root gives rows of a table in their order.
    pub(crate) fn looks_up(&self) -> bool {
        let root = self.fragment.pipelines.last().map(|root| &root.sink);
        matches!(root, Some(Sink::TopK(TopK { k: None, keys, .. })) if keys.is_empty())
    }

    /// Whether windows are computed.
    pub(crate) fn has_windows(&self) -> bool {
        let windows = |pipeline: &Pipeline| matches!(&pipeline.sink, Sink::TopK(top) if !top.windows.is_empty());
        self.fragment.pipelines.iter().any(windows)
    }

    /// Whether anything is grouped.
    pub(crate) fn has_groups(&self) -> bool {
        let groups = |pipeline: &Pipeline| matches!(pipeline.sink, Sink::Aggregate { .. });
        self.fragment.pipelines.iter().any(groups)
    }

    /// Whether the root gives rows as they are.
    pub(crate) fn gives_rows(&self) -> bool {
        matches!(self.fragment.pipelines.last().map(|root| &root.sink), Some(Sink::Rows { .. }))
    }

    /// The fragment that gives groups and aggregates as they are, of exact sums the accumulators.
    pub(crate) fn with_states(&self) -> Lowered {
        let mut fragment = self.fragment.clone();
        fragment.result.clear();
        let root = fragment.branches(fragment.pipelines.len().saturating_sub(1));
        let branches = fragment.pipelines.get_mut(root).unwrap_or_default();
        let calls = branches.iter_mut().flat_map(|branch| match &mut branch.sink {
            Sink::Aggregate { aggregates, .. } => aggregates.as_mut_slice(),
            _ => &mut [],
        });
        let sums = calls.filter(|call| call.kind == AggregateKind::ExactSum);
        sums.for_each(|call| call.data_type = DataType::Binary);
        self.with_fragment(fragment)
    }

    /// The same with other device work, for which nothing is bound yet.
    fn with_fragment(&self, fragment: Fragment) -> Lowered {
        Lowered {
            fragment,
            tables: self.tables.clone(),
            groups_max: self.groups_max,
            finish: self.finish.clone(),
            arguments: self.arguments.clone(),
            what: self.what.clone(),
            last_results: Mutex::default(),
            binding: BindingCache::default(),
            derived: DerivedCache::default(),
            identity: self.identity.clone(),
            join: self.join.clone(),
            cardinality: self.cardinality.clone(),
        }
    }
}

/// Most fragments remembered as unfit; past them all are forgotten, and found out again.
const REFUSALS_MAX: usize = 4096;

/// Fragments that a run found unfit for the device, with the reason; planned again they stay on the CPU, where they
/// run in as many partitions as everything else.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    reasons: Mutex<HashMap<String, Reason>>,
    count: AtomicU64,
}

impl Refusals {
    /// How many there have been so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Remembers a fragment, and the rows of its join.
    pub(crate) fn remember(&self, lowered: &Lowered, reason: &str) {
        for identity in std::iter::once(&lowered.identity).chain(&lowered.join) {
            if self.foresee(identity, reason) {
                self.count.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Remembers a fragment of a plan that is still made: no other plan is worth making again. Whether it is new.
    pub(crate) fn foresee(&self, identity: &str, reason: &str) -> bool {
        let mut reasons = self.reasons.lock();
        if reasons.len() >= REFUSALS_MAX {
            reasons.clear();
        }
        reasons.insert(identity.to_string(), reason.to_string()).is_none()
    }

    /// Why a fragment does not run on the device, if it was remembered.
    pub(crate) fn reason(&self, identity: &str) -> Option<Reason> {
        self.reasons.lock().get(identity).cloned()
    }
}

/// A part of a plan that stays on the CPU.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// The part in a few words.
    pub(crate) what: String,
    /// Why.
    pub(crate) reason: Reason,
}

/// Replaces what can run on the device in a statement's plan and in the tables that it shares; the reasons of what
/// cannot are appended to `refused`.
pub(crate) fn lower(plan: &LogicalPlan, facts: &mut TableFacts, refused: &mut Vec<Refused>) -> Result<LogicalPlan> {
    let (query, tables) = split(plan.clone())?;
    facts.shared = SharedTables::of(&query, tables)?;
    let looked_up = match !facts.apart && look_ups::looks_up(&query) {
        true => look_ups::look_up(&query, facts, refused).ok(),
        false => None,
    };
    let query = match looked_up {
        Some(device) => device,
        None => lower_parts(&query, facts, refused)?,
    };
    let (mut tables, mut lowered): (Vec<Shared>, Vec<Shared>) = (facts.shared.read_by(&query)?, Vec::new());
    // Parts of tables may have taken in others.
    while let Some(next) = tables.pop() {
        if !lowered.iter().any(|known| known.id == next.id) {
            let plan = lower_parts(&next.plan, facts, refused)?;
            tables.extend(facts.shared.read_by(&plan)?);
            lowered.push(Shared { plan, ..next });
        }
    }
    lowered.sort_by_key(|table| table.id);
    over(query, lowered)
}

/// Replaces what can run on the device in one plan.
fn lower_parts(plan: &LogicalPlan, facts: &TableFacts, refused: &mut Vec<Refused>) -> Result<LogicalPlan> {
    // Refused plans whose parts are looked at, each with the fragments placed and the reasons told before it.
    let (mut wholes, mut placed) = (Vec::new(), 0);
    let lowered = plan.clone().transform_down_nested(|plan| {
        let (lowered, input, what, is_whole) = match &plan {
            LogicalPlan::Aggregate(aggregate) => {
                (lower_one(aggregate, facts, refused), &*aggregate.input, "aggregate", false)
            }
            LogicalPlan::Sort(sort) if top_k::orders_table(sort) => {
                (first_rows(sort, facts, refused), &*sort.input, top_k::what(sort), false)
            }
            LogicalPlan::Sort(sort) if !facts.apart && unions::has_first_rows(sort) => {
                (unions::first_rows_of_branches(sort, facts, refused), &*sort.input, "top-k", true)
            }
            LogicalPlan::Sort(sort) if !facts.apart && top_k::orders_output(sort) => {
                (first_rows(sort, facts, refused), &*sort.input, "sort", true)
            }
            LogicalPlan::Limit(limit) if !facts.apart && rows::limits_rows(limit) => {
                (rows::some(limit, facts, refused), &*limit.input, "rows", true)
            }
            LogicalPlan::Join(join) if !facts.apart && join.join_type == JoinType::Full => {
                (rows::full_join(join, facts, refused), &plan, "rows", true)
            }
            _ if !facts.apart && rows::gives_rows(&plan) => (rows::all(&plan, facts, refused), &plan, "rows", true),
            _ => return Ok(Transformed::no(plan)),
        };
        match lowered {
            // The node keeps its original plan to itself: nothing below is looked at again.
            Ok(plan) => {
                placed += 1;
                Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump))
            }
            Err(reason) => {
                let one = Refused { what: describe(input, what), reason };
                match is_whole {
                    true => wholes.push((one, placed, refused.len())),
                    false => refused.push(one),
                }
                Ok(Transformed::no(plan))
            }
        }
    })?;
    // The reason of a whole is told where parts of it run on the device, and where they have no reasons of their own.
    let told = refused.len();
    for (whole, placed_before, told_before) in wholes {
        let is_alone = placed > placed_before || told == told_before;
        if is_alone && !refused.iter().any(|known| known.reason == whole.reason) {
            refused.push(whole);
        }
    }
    Ok(lowered.data)
}

/// The plan in place of one aggregation.
fn lower_one(
    aggregate: &Aggregate,
    facts: &TableFacts,
    refused: &mut Vec<Refused>,
) -> std::result::Result<LogicalPlan, Reason> {
    let mut whole = |aggregate: &Aggregate| {
        device(aggregation::lower(aggregate, facts)?, LogicalPlan::Aggregate(aggregate.clone()), facts, refused)
    };
    let Some(split) = distinct::split(aggregate)? else { return whole(aggregate) };
    repeated::copied(&aggregate.input)?;
    let parts = split.parts().map(whole).collect::<std::result::Result<_, _>>()?;
    split.joined(parts, aggregate).map_err(|error| error.strip_backtrace())
}

/// The plan in place of a sort. Where the device does not compute what a projection below makes of the rows, the CPU
/// does so for rows that the device has ordered.
fn first_rows(sort: &Sort, facts: &TableFacts, refused: &mut Vec<Refused>) -> std::result::Result<LogicalPlan, Reason> {
    let ordered = |sort: &Sort, lowered: Lowered, refused: &mut Vec<Refused>| {
        let node = device(lowered, LogicalPlan::Sort(sort.clone()), facts, refused)?;
        Ok::<_, Reason>(LogicalPlan::Sort(Sort { input: Arc::new(node), ..sort.clone() }))
    };
    let reason = match top_k::lower(sort, facts) {
        Ok(lowered) => return ordered(sort, lowered, refused),
        Err(reason) => reason,
    };
    let Some((projection, below)) = top_k::below(sort) else { return Err(reason) };
    let Ok(lowered) = top_k::lower(&below, facts) else { return Err(reason) };
    let mut projection = projection.clone();
    projection.input = Arc::new(ordered(&below, lowered, refused)?);
    Ok(LogicalPlan::Sort(Sort { input: Arc::new(LogicalPlan::Projection(projection)), ..sort.clone() }))
}

/// The join that a plan works on, row by row or as a whole.
fn join_of(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match graph::source_of(plan) {
        join @ LogicalPlan::Join(_) => Some(join),
        LogicalPlan::Aggregate(aggregate) => join_of(&aggregate.input),
        LogicalPlan::Sort(sort) => join_of(&sort.input),
        LogicalPlan::Limit(limit) => join_of(&limit.input),
        _ => None,
    }
}

/// The node of a fragment that was lowered from `original`, if the fragment is to run on the device.
fn device(
    mut lowered: Lowered,
    original: LogicalPlan,
    facts: &TableFacts,
    refused: &mut Vec<Refused>,
) -> std::result::Result<LogicalPlan, Reason> {
    let versions: Vec<&str> = lowered.tables.iter().map(|table| table.version.as_str()).collect();
    let identity = |plan: &LogicalPlan| format!("{} {} {versions:?}", facts.under, plan.display_indent());
    let join = join_of(&original).map(identity);
    let original = facts.shared.below(original).map_err(columns::text)?;
    let identity = identity(&original);
    let asked = [Some(&identity), join.as_ref().filter(|_| lowered.gives_rows())];
    if let Some(reason) = asked.into_iter().flatten().find_map(|identity| facts.refusals.reason(identity)) {
        return Err(reason);
    }
    (lowered.identity, lowered.join) = (identity, join);
    if let Some(placer) = &facts.placer {
        lowered = placer.place(lowered)?;
    }
    let on_cpu = |plan| mend::for_cpu(plan, &facts.options).map_err(|error| error.strip_backtrace());
    let subqueries = lowered.arguments.iter_mut().filter_map(|argument| match argument {
        Argument::Parameter(_) => None,
        Argument::Subquery(subquery) => Some(subquery),
    });
    for argument in subqueries {
        let plan = lower_parts(&argument.subquery, facts, refused).map_err(|error| error.strip_backtrace())?;
        argument.subquery = Arc::new(on_cpu(plan)?);
    }
    let mended = on_cpu(original.clone())?;
    let node = DeviceNode::new(lowered, original, mended);
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}
