//! Rows as a result: those of joins and of windows, and groups that a filter or a limit leaves.
//!
//! ```text
//! Projection: s_name                              Device: the same rows, in no order
//!   Join: ps_partkey = l_partkey
//!     TableScan: partsupp                    →
//!     Aggregate: groupBy=[[l_partkey]]
//!       TableScan: lineitem
//! ```
//!
//! A limit stays above the node, which gives as many rows as it lets pass. A full join is two nodes: the left join, and
//! the rows of the right side without a match. Rows of one table are looked up ([`super::look_ups`]).

use std::sync::Arc;

use datafusion::logical_expr::{FetchType, Join, Limit, LogicalPlan, Projection, SkipType, Union};
use warpcube_engine::{BindingCache, Sink};

use super::describe::describe;
use super::graph::{Core, Graph, source_of};
use super::tables::TableFacts;
use super::tree::Tree;
use super::{Finish, Lowered, Reason, Refused, device, reducers, unions};

/// Whether a plan is an aggregation by groups.
pub(super) fn is_grouped(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty())
}

/// Whether a plan gives the rows of a join or of windows, or filters groups.
pub(super) fn gives_rows(plan: &LogicalPlan) -> bool {
    match source_of(plan) {
        LogicalPlan::Join(_) | LogicalPlan::Window(_) => true,
        source => is_grouped(source) && is_filtered(plan),
    }
}

/// Whether a filter stands above what a plan projects and filters.
pub(super) fn is_filtered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(_) => true,
        LogicalPlan::Projection(projection) => is_filtered(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_filtered(&alias.input),
        _ => false,
    }
}

/// Whether a limit is one of rows or groups.
pub(super) fn limits_rows(limit: &Limit) -> bool {
    let source = source_of(&limit.input);
    let has_rows = matches!(source, LogicalPlan::Join(_) | LogicalPlan::Window(_));
    rows_let_pass(limit).is_some() && (is_grouped(source) || has_rows)
}

/// The rows that a limit needs.
fn rows_let_pass(limit: &Limit) -> Option<u64> {
    let (Ok(FetchType::Literal(Some(fetch))), Ok(SkipType::Literal(skip))) =
        (limit.get_fetch_type(), limit.get_skip_type())
    else {
        return None;
    };
    fetch.checked_add(skip).map(|rows| rows as u64)
}

/// The plan in place of one for which [`gives_rows`] holds.
pub(super) fn all(plan: &LogicalPlan, facts: &TableFacts, refused: &mut Vec<Refused>) -> Result<LogicalPlan, Reason> {
    each_branch(plan, &mut |plan| device(lower(plan, None, facts)?, plan.clone(), facts, refused))
}

/// The union of what is made of each branch of a plan; of the plan itself if it has none.
fn each_branch(
    plan: &LogicalPlan,
    make: &mut impl FnMut(&LogicalPlan) -> Result<LogicalPlan, Reason>,
) -> Result<LogicalPlan, Reason> {
    let Some(branches) = unions::branches(plan)? else { return make(plan) };
    let inputs = branches.iter().map(|branch| make(branch).map(Arc::new)).collect::<Result<_, Reason>>()?;
    Ok(LogicalPlan::Union(Union { inputs, schema: plan.schema().clone() }))
}

/// The plan in place of a limit for which [`limits_rows`] holds.
pub(super) fn some(limit: &Limit, facts: &TableFacts, refused: &mut Vec<Refused>) -> Result<LogicalPlan, Reason> {
    let rows = rows_let_pass(limit);
    let input = each_branch(&limit.input, &mut |plan| device(lower(plan, rows, facts)?, plan.clone(), facts, refused))?;
    Ok(LogicalPlan::Limit(Limit { input: Arc::new(input), ..limit.clone() }))
}

/// The plan in place of a full join: a left join, and the rows of the right side without a match.
pub(super) fn full_join(join: &Join, facts: &TableFacts, refused: &mut Vec<Refused>) -> Result<LogicalPlan, Reason> {
    let mut half = |half: LogicalPlan| match half {
        LogicalPlan::Projection(projection) => {
            let input = Arc::new(all(&projection.input, facts, refused)?);
            let lonely = Projection::try_new_with_schema(projection.expr, input, projection.schema);
            lonely.map(LogicalPlan::Projection).map_err(|error| error.strip_backtrace())
        }
        join => all(&join, facts, refused),
    };
    let inputs = unions::halves(join)?.map(&mut half).into_iter().map(|half| half.map(Arc::new));
    let inputs = inputs.collect::<Result<_, Reason>>()?;
    Ok(LogicalPlan::Union(Union { inputs, schema: join.schema.clone() }))
}

/// Translates a plan of rows or groups, of which so many are enough.
fn lower(plan: &LogicalPlan, limit: Option<u64>, facts: &TableFacts) -> Result<Lowered, Reason> {
    facts.shared.look_at(plan)?;
    let mut graph = Graph::new(facts.options.clone());
    let mut core = Core::default();
    let outputs = graph.flatten(plan, facts, &mut core)?;
    reducers::reduce(&mut graph, &mut core);
    let tree = Tree::plan(&graph, &core, &outputs)?;
    let (mut fragment, tables) = tree.pipelines(&outputs, |translator| {
        let fields = outputs.iter().zip(plan.schema().fields());
        let columns = fields.map(|(expr, field)| Ok((translator.translate(expr)?, field.data_type().clone())));
        Ok(Sink::Rows { columns: columns.collect::<Result<_, Reason>>()?, limit })
    })?;
    fragment.overflow = facts.overflow;
    Ok(Lowered {
        finish: (0..outputs.len()).map(Finish::Group).collect(),
        fragment,
        tables,
        groups_max: None,
        arguments: tree.into_arguments(),
        what: describe(plan, "rows"),
        binding: BindingCache::default(),
        derived: Default::default(),
        last_results: Default::default(),
        identity: String::new(),
        join: None,
        cardinality: Default::default(),
    })
}
