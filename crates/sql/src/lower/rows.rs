//! Joins over aggregations, and groups that a filter leaves, whose rows are the result.
//!
//! ```text
//! Projection: s_name                              Device: the same rows, in no order
//!   Join: ps_partkey = l_partkey
//!     TableScan: partsupp                    →
//!     Aggregate: groupBy=[[l_partkey]]
//!       TableScan: lineitem
//! ```
//!
//! A join of tables alone stays with the CPU: its rows are most of what there is to do, and they would have to be
//! brought back.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use warpcube_engine::{BindingCache, Sink};

use super::graph::{Core, Graph, describe};
use super::tables::TableFacts;
use super::tree::Tree;
use super::{Finish, Lowered, Reason};

/// Whether a plan joins or filters groups and gives the rows.
pub(super) fn joins_groups(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => joins_groups(&projection.input),
        LogicalPlan::Filter(filter) => filters_groups(&filter.input) || joins_groups(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => joins_groups(&alias.input),
        LogicalPlan::Join(_) => has_groups(plan),
        _ => false,
    }
}

/// Whether what is filtered are groups.
fn filters_groups(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => filters_groups(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => filters_groups(&alias.input),
        LogicalPlan::Aggregate(aggregate) => !aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// Whether any groups lie below.
pub(super) fn has_groups(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = plan.apply(|plan| {
        found |= matches!(plan, LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty());
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Translates a plan for which [`joins_groups`] holds.
pub(super) fn lower(plan: &LogicalPlan, facts: &TableFacts) -> Result<Lowered, Reason> {
    let mut graph = Graph::new(facts.options.clone());
    let mut core = Core::default();
    let outputs = graph.flatten(plan, facts, &mut core)?;
    let tree = Tree::plan(&graph, &core, &outputs)?;
    let (mut fragment, tables) = tree.pipelines(&outputs, |translator| {
        let fields = outputs.iter().zip(plan.schema().fields());
        let columns = fields.map(|(expr, field)| Ok((translator.translate(expr)?, field.data_type().clone())));
        Ok(Sink::Rows(columns.collect::<Result<_, Reason>>()?))
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
        valued: Default::default(),
        identity: String::new(),
    })
}
