//! Aggregations as fragments, with all below them.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use warpcube_engine::BindingCache;

use super::aggregate::result;
use super::calls::as_function;
use super::columns::rewrite;
use super::describe::describe;
use super::graph::{Core, Graph, Grouped, Input};
use super::grouping_sets::Sets;
use super::tables::TableFacts;
use super::unions::branches;
use super::writer::Aggregation;
use super::{Lowered, Reason, distinct, eager, order_statistics, reducers};
use crate::mend::moments::Statistic;

impl Grouped {
    /// Flattens the input of an aggregation.
    pub(crate) fn of(aggregate: &Aggregate, facts: &TableFacts) -> Result<Grouped, Reason> {
        let (keys, sets) = Sets::of(aggregate)?;
        let values = distinct::values(aggregate)?;
        let value = match values.as_slice() {
            [] => None,
            [value] => Some(value),
            several => return Err(format!("distinct values of {} expressions", several.len())),
        };
        if let (Some(sets), Some(_)) = (&sets, value) {
            sets.check_with_value()?;
        }
        let is_plain = sets.is_none() && value.is_none();
        if facts.apart && !is_plain {
            return Err("states of grouping sets, or of distinct values".into());
        }
        let sorted = order_statistics::rewrite(aggregate)?;
        if sorted.is_some() && (facts.apart || !is_plain) {
            return Err("order statistics of grouping sets, beside distinct values, or their states".into());
        }
        let is_of_pairs = |call| as_function(call).is_ok_and(|call| Statistic::of_pairs(&call.func).is_some());
        if facts.apart && aggregate.aggr_expr.iter().any(is_of_pairs) {
            return Err("states of statistics of pairs".into());
        }
        let rewritten = match sorted {
            None if !facts.apart && is_plain => eager::take_apart(aggregate)?,
            sorted => sorted,
        };
        let (input, groups, calls) = match &rewritten {
            Some(rewritten) => (&rewritten.input, &rewritten.groups, &rewritten.calls),
            None => (aggregate.input.as_ref(), &keys, &aggregate.aggr_expr),
        };
        let branch = |plan: &LogicalPlan| {
            let mut graph = Graph::new(facts.options.clone());
            let mut core = Core::default();
            let inputs = graph.flatten(plan, facts, &mut core)?;
            let base = |expr: &Expr| rewrite(expr, plan.schema(), &inputs);
            let groups = groups.iter().map(base).collect::<Result<Vec<_>, _>>()?;
            let calls = calls.iter().map(base).collect::<Result<Vec<_>, _>>()?;
            let value = value.map(base).transpose()?;
            Ok::<_, Reason>(Input { graph, core, groups, calls, value })
        };
        let inputs = match branches(input)? {
            Some(plans) => plans.iter().map(branch).collect::<Result<_, _>>()?,
            None => vec![branch(input)?],
        };
        let types: Vec<DataType> = aggregate.schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let group_count = groups.len() + usize::from(sets.is_some());
        Ok(Grouped { inputs, types, group_count, sets, float_sums: facts.float_sums, shared: None })
    }
}

/// Translates an aggregation with all below it.
pub(crate) fn lower(aggregate: &Aggregate, facts: &TableFacts) -> Result<Lowered, Reason> {
    facts.shared.look_at(&aggregate.input)?;
    let mut grouped = Grouped::of(aggregate, facts)?;
    for Input { graph, core, .. } in &mut grouped.inputs {
        reducers::reduce(graph, core);
    }
    let Aggregation { mut fragment, tables, arguments, finish } = Aggregation::of(&grouped)?;
    fragment.overflow = facts.overflow;
    if let Some(root) = fragment.pipelines.last() {
        fragment.result = result(&finish, &grouped.types, &root.sink)?;
    }
    Ok(Lowered {
        fragment,
        tables,
        groups_max: None,
        finish,
        arguments,
        what: describe(&aggregate.input, "aggregate"),
        binding: BindingCache::default(),
        derived: Default::default(),
        last_results: Default::default(),
        identity: String::new(),
        join: None,
        cardinality: Default::default(),
    })
}
