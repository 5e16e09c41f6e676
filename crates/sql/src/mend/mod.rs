//! Mends of DataFusion's defects: rules before the optimiser, and passes over the final plan for what runs on the CPU.
//!
//! Rules of the analyzer change what a statement means where DataFusion reads it otherwise than SQL does; templates,
//! views and prepared statements all go through them.
//!
//! Lowering looks at plain expressions, so that the passes come after it: they rewrite what stays in the lowered plan,
//! and the plan that each device node keeps for the CPU. A pass leaves the names, types and order of columns as they
//! are. Each file names the defect and what would make its mend unnecessary. Plans travel without mends; the session
//! that receives them makes its own.
//!
//! Invariant: a plan is mended once. Device nodes hold plans that are mended already, and no pass looks into them.

mod arguments;
mod arithmetic;
mod averages;
mod bits;
mod bounds;
mod byte_texts;
pub(crate) mod calendar;
mod canonical;
pub(crate) mod cast_functions;
mod casts;
mod coarser_sets;
pub(crate) mod coarser_times;
pub(crate) mod common_types;
mod conclusions;
mod constants;
mod conversion;
mod decimals;
mod distinct_orders;
mod distinct_sums;
pub(crate) mod domains;
mod equal_sets;
pub(crate) mod exact_sums;
pub(crate) mod extension_outputs;
mod extension_types;
mod extremes;
mod failing_casts;
pub(crate) mod finer_columns;
mod finer_operands;
pub(crate) mod finer_times;
pub(crate) mod float_sums;
mod frames;
mod grouping_calls;
mod grouping_sets;
mod growth;
mod guards;
mod held_filters;
pub(crate) mod in_zone;
mod inserted_columns;
mod interval_products;
mod intervals;
mod joins;
pub(crate) mod key_names;
pub(crate) mod lengths;
mod list_calls;
mod list_elements;
mod list_floats;
pub(crate) mod lists;
mod microseconds;
mod mixed;
pub(crate) mod moments;
mod moved_instants;
mod names;
mod nan;
pub(crate) mod narrow_casts;
pub(crate) mod nested_casts;
mod nested_orders;
mod nth_values;
mod nullif;
mod ordered_inputs;
mod ordered_sets;
pub(crate) mod pairs;
mod partition_keys;
pub(crate) mod pass_through;
mod picks;
mod projections;
pub(crate) mod quantiles;
mod raising;
pub(crate) mod ranks;
mod recursion;
mod replacements;
mod rounded_casts;
mod rowless_subqueries;
mod set_operations;
mod shifted_sums;
mod shifts;
pub(crate) mod shown_types;
mod signed;
mod single_casts;
mod sliding;
mod sorts;
mod spans;
mod statistics;
pub(crate) mod sums;
mod time_series;
pub(crate) mod timezone;
mod told_casts;
mod truth_sums;
mod type_names;
mod union_names;
mod unnest;
mod unordered_casts;
pub(crate) mod variances;
mod views;
pub(crate) mod wall_texts;
mod whole_decimals;
mod whole_times;
mod zones;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::prelude::SessionContext;

use crate::functions;
use crate::shared::ShareTables;
use crate::walk::{PlanWalk, Walk};

pub(crate) use distinct_sums::DistinctTotal;
pub(crate) use grouping_sets::FinestSets;
pub(crate) use joins::{optimizer_rules, physical_optimizer_rules};
pub(crate) use type_names::TypeNames;

/// The rules that analyse plans: what coercion would do wrong, DataFusion's, then what looks at coerced types.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(frames::FramesOfGroups));
    rules.insert(0, Arc::new(grouping_calls::GroupingCalls));
    // The number of a set has its type before calls read it.
    rules.insert(0, Arc::new(equal_sets::EqualSets));
    // Quotients have their digits before they get common types.
    rules.insert(0, Arc::new(mixed::DoublesBesideFloats));
    rules.insert(0, Arc::new(decimals::ScaleDividends));
    rules.insert(0, Arc::new(decimals::LiteralDigits));
    rules.insert(0, Arc::new(zones::NamedZones));
    rules.insert(0, Arc::new(extension_types::ExtensionTypes));
    rules.insert(0, Arc::new(byte_texts::ByteTexts));
    rules.insert(0, Arc::new(finer_operands::FinerOperands));
    rules.insert(0, Arc::new(recursion::TypesOfSteps));
    rules.insert(0, Arc::new(ordered_inputs::OrderedInputs));
    rules.insert(0, Arc::new(truth_sums::TruthSums));
    rules.insert(0, Arc::new(told_casts::ToldCasts));
    rules.push(Arc::new(inserted_columns::InsertedColumns));
    rules.push(Arc::new(whole_times::WholeTimes));
    rules.push(Arc::new(views::ViewsAlone));
    rules.push(Arc::new(shown_types::ShownTypes));
    rules.push(Arc::new(zones::SessionZone));
    rules.push(Arc::new(constants::OneNan));
    rules.push(Arc::new(set_operations::CountDuplicates));
    rules.push(Arc::new(intervals::IntervalLengths));
    rules.push(Arc::new(nested_orders::NestedOrders));
    rules.push(Arc::new(variances::BareArguments));
    rules.push(Arc::new(casts::MendedCasts));
    rules.push(Arc::new(finer_times::FinerTimes));
    rules.push(Arc::new(arithmetic::CheckConstants));
    rules.push(Arc::new(lists::HideLists));
    rules.push(Arc::new(unnest::UnnestSubqueries));
    rules.push(Arc::new(rowless_subqueries::NullWithoutRow));
    rules.push(Arc::new(ShareTables));
    rules
}

/// The rules that decide types of literals' neighbours and digits of averages, among DataFusion's own.
pub(crate) fn rules_of_types() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    // Quotients have their digits before they get common types.
    rules.insert(0, Arc::new(mixed::DoublesBesideFloats));
    rules.insert(0, Arc::new(decimals::ScaleDividends));
    rules.push(Arc::new(averages::RoundedAverages));
    rules
}

/// The planners of expressions: ours, then DataFusion's.
pub(crate) fn expr_planners() -> Vec<Arc<dyn ExprPlanner>> {
    let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(names::SessionExprPlanner)];
    planners.extend(SessionStateDefaults::default_expr_planners());
    planners
}

/// Registers the functions of a session that are ours, and those that are mended themselves.
pub(crate) fn register(context: &SessionContext) {
    let state = context.state();
    context.register_udf(timezone::function(state.config_options()));
    functions::functions().for_each(|udf| context.register_udf(udf));
    let of_lists = functions::of_elements().into_iter().chain([functions::list_reduce()]);
    of_lists.for_each(|function| context.register_higher_order_function(Arc::new(function)));
    domains::functions(&state)
        .into_iter()
        .chain(arguments::functions(&state))
        .chain(list_calls::function(&state))
        .for_each(|udf| context.register_udf(udf));
    list_elements::functions(&context.state()).into_iter().for_each(|udf| context.register_udf(udf));
    quantiles::functions(&state)
        .into_iter()
        .chain(ordered_sets::functions())
        .chain(truth_sums::function(&state))
        .for_each(|udaf| context.register_udaf(udaf));
    shifts::functions(&state)
        .into_iter()
        .chain(ranks::functions(&state))
        .chain(nth_values::function(&state))
        .for_each(|udwf| context.register_udwf(udwf));
}

/// A function of a name that no registry has, for plans that come from another session.
pub(crate) fn unregistered(name: &str) -> Option<Arc<ScalarUDF>> {
    let in_zone = || (name == in_zone::NAME).then(in_zone::function);
    in_zone()
        .or_else(|| lengths::function(name))
        .or_else(|| coarser_times::function(name))
        .or_else(|| interval_products::function(name))
        .or_else(|| moved_instants::function(name))
        .or_else(|| wall_texts::function(name))
        .or_else(|| cast_functions::function(name))
        .or_else(|| nested_casts::function(name))
        .or_else(|| nested_orders::function(name))
        .or_else(|| unnest::function(name))
        .or_else(|| (name == functions::TYPE_IN_SQL).then(|| functions::type_in_sql(BTreeMap::new())))
}

/// The zone that a session shows instants in; none where that is UTC.
pub(crate) fn shown_zone(options: &ConfigOptions) -> Option<&str> {
    in_zone::zone_of(options).filter(|zone| !zones::is_utc(zone))
}

/// The plan with all mends that it needs; `options` are the session's settings.
pub(crate) fn for_cpu(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
    let plan = finer_columns::mend(partition_keys::mend(frames::without_empty(plan)?)?)?;
    let plan = variances::mend(distinct_orders::mend(plan)?)?;
    let plan = statistics::mend(nan::mend(sliding::mend(plan)?)?)?;
    let plan = averages::mend(guards::mend(arithmetic::check(conclusions::mend(plan)?, options)?)?)?;
    key_names::mend(sums::check(unordered_casts::mend(plan)?, options)?)
}

/// Rewrites the expressions of a node that have a candidate within, under the names they had; `rewrite` is given the
/// columns that they may read.
fn each_expression(
    plan: LogicalPlan,
    is_candidate: impl Fn(&Expr) -> bool,
    mut rewrite: impl FnMut(Expr, &DFSchemaRef) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    in_expressions(plan, &is_candidate, &mut rewrite)
}

fn in_expressions(
    plan: LogicalPlan,
    is_candidate: &dyn Fn(&Expr) -> bool,
    rewrite: &mut dyn FnMut(Expr, &DFSchemaRef) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    // Most nodes have none, and a join's schema is made of both of its sides.
    let mut found = false;
    plan.apply_exprs(|expr| {
        found |= expr.exists(|expr| Ok(is_candidate(expr)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    let schema = match (&plan, plan.inputs().as_slice()) {
        (LogicalPlan::TableScan(scan), _) => scan.projected_schema.clone(),
        (_, [input]) => input.schema().clone(),
        (_, inputs) => Arc::new(merge_schema(inputs)),
    };
    let mut one = |expr: Expr| {
        if !expr.exists(|expr| Ok(is_candidate(expr)))? {
            return Ok(Transformed::no(expr));
        }
        let saved = names.save(&expr);
        Ok(rewrite(expr, &schema)?.update_data(|expr| saved.restore(expr)))
    };
    plan.map_exprs(|expr| match expr {
        // Its items have names, it has none.
        sets @ Expr::GroupingSet(_) => sets.map_children(&mut one),
        expr => one(expr),
    })
}

/// The value of a function of one argument: of a constant as of an array with it alone.
fn each_value(value: &ColumnarValue, of: impl FnOnce(&ArrayRef) -> Result<ArrayRef>) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(values) => ColumnarValue::Array(of(values)?),
        ColumnarValue::Scalar(value) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&of(&value.to_array_of_size(1)?)?, 0)?)
        }
    })
}

/// Operands of chains that lean to the left; longer ones are balanced, so that no step over them is deep.
const LEANING_MAX: usize = 32;

/// A chain of AND or of OR over operands in their order.
fn chain(op: Operator, mut operands: Vec<Expr>) -> Expr {
    let join = |left, right| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    if operands.len() <= LEANING_MAX {
        return operands.into_iter().reduce(join).unwrap_or_else(|| Expr::Literal((op == Operator::And).into(), None));
    }
    let right = operands.split_off(operands.len() / 2);
    join(chain(op, operands), chain(op, right))
}

/// The operands of a chain, in their order.
fn operands(expr: Expr, chained: Operator) -> Vec<Expr> {
    let (mut operands, mut rest) = (Vec::new(), vec![expr]);
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op == chained => rest.extend([*right, *left]),
            operand => operands.push(operand),
        }
    }
    operands
}

/// Rewrites each node of a plan, inputs and subqueries before those that read them. A leaf that is an extension, as a
/// fragment of the device is, keeps its expressions.
fn each_node(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let skip = |plan: LogicalPlan| {
        let next = if is_foreign_leaf(&plan) { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue };
        Ok(Transformed::new(plan, false, next))
    };
    // A node whose inputs are passed over is still looked at itself.
    let others = |plan: LogicalPlan| match is_foreign_leaf(&plan) {
        true => Ok(Transformed::no(plan)),
        false => rewrite(plan),
    };
    Ok(plan.transform_down_up_nested(skip, others)?.data)
}

fn is_foreign_leaf(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Extension(extension) if extension.node.inputs().is_empty())
}
