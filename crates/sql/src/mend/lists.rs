//! IN lists that the optimiser cannot see through.
//!
//! DataFusion 55.2 reasons over two lists of one expression as over sets, and is wrong where
//! - a list holds placeholders: `x IN ($1, $2) AND x IN ($3, $4)` becomes false, since `$1` is not `$3`;
//! - a list holds columns: `x IN (y, 1) AND x IN (z, 1)` becomes `x IN (1)`;
//! - NULL is among the operands: `a IN (1, 2) AND a NOT IN (1, NULL)` becomes `a IN (2)`, and `NOT (x IN (1, 2) AND
//!   x IN (3, 4))` keeps rows whose `x` is NULL.
//!
//! So an analyzer rule turns every list, and every chain of OR over one column and constants, into a call of a
//! function, with NULLs split off first, and [`show_lists`] turns the calls of the final plan into lists again. What
//! a single list says is simplified before: casts are taken from its column. Placeholders may be items of a call, so
//! that statements with other values in their lists share a template.
//!
//! The file goes once the optimiser reasons over lists of non-null literals of columns that are never NULL alone.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::kernels::cmp;
use arrow::compute::or_kleene;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::{chain, each_expression, operands};
use crate::walk::{PlanWalk, Walk};

/// Longest list over a column that becomes a chain of comparisons, as DataFusion has it.
const CHAIN_MAX: usize = 3;

/// The name of the function, which no statement can call: it is in no registry.
const NAME: &str = "warpcube_in_list";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(InListFunction::new())));

/// The rule that hides lists.
#[derive(Debug)]
pub(crate) struct HideLists;

impl AnalyzerRule for HideLists {
    fn name(&self) -> &str {
        "hide_lists"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let config = Arc::new(config.clone());
        let hidden = plan.transform_down_nested(|plan| {
            each_expression(plan, is_list, |expr, schema| expr.transform_down(|expr| hide(expr, schema, &config)))
        })?;
        Ok(hidden.data)
    }
}

fn is_list(expr: &Expr) -> bool {
    matches!(expr, Expr::InList(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }))
}

/// An expression whose outermost step is no list and no chain of OR any more.
fn hide(expr: Expr, schema: &DFSchemaRef, config: &Arc<ConfigOptions>) -> Result<Transformed<Expr>> {
    match expr {
        Expr::InList(list) if list.list.is_empty() || is_subquery(&list) => Ok(Transformed::no(Expr::InList(list))),
        Expr::InList(list) => {
            let list = simplified(list, schema, config)?;
            // Items and the operand may hold lists of their own.
            Ok(Transformed::yes(call_of(list)))
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => merged(expr, schema, config),
        other => Ok(Transformed::no(other)),
    }
}

/// `x IN ((SELECT …))`, which the optimiser makes a subquery's IN.
fn is_subquery(list: &InList) -> bool {
    matches!(list.list.as_slice(), [Expr::ScalarSubquery(_)])
}

/// A list with constants folded, and without a cast of its column where that is not needed.
fn simplified(list: InList, schema: &DFSchemaRef, config: &Arc<ConfigOptions>) -> Result<InList> {
    let is_plain = |expr: &Expr| matches!(expr, Expr::Literal(..) | Expr::Placeholder(_) | Expr::Column(_));
    let is_cast = matches!(*list.expr, Expr::Cast(_) | Expr::TryCast(_));
    if !is_cast && list.list.iter().all(is_plain) {
        return Ok(list);
    }
    let simplifier = simplifier(schema, config);
    let folded = list.list.into_iter().map(|item| simplifier.simplify(item)).collect::<Result<Vec<_>>>()?;
    let list = InList { list: folded, ..list };
    let nullable = |item: &Expr| matches!(item, Expr::Literal(value, _) if value.is_null());
    if !is_cast || list.list.iter().any(nullable) {
        return Ok(list);
    }
    // Alone among others, no list is changed but by taking the cast away. A list that is short becomes comparisons.
    let mut long = list.clone();
    while long.list.len() <= CHAIN_MAX {
        long.list.push(long.list[0].clone());
    }
    match simplifier.simplify(Expr::InList(long))? {
        Expr::InList(mut taken) if taken.negated == list.negated && taken.list.len() > list.list.len() => {
            taken.list.truncate(list.list.len());
            Ok(taken)
        }
        Expr::InList(taken) if taken.negated == list.negated && taken.list.len() == list.list.len() => Ok(taken),
        _ => Ok(list),
    }
}

/// The call in place of a list, its NULLs split off.
fn call_of(list: InList) -> Expr {
    let InList { expr, list, negated } = list;
    let is_null = |item: &Expr| matches!(item, Expr::Literal(value, _) if value.is_null());
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    let (nulls, items): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_null);
    if items.is_empty() {
        return unknown;
    }
    let found = call(*expr, items);
    match (negated, nulls.is_empty()) {
        (false, true) => found,
        (false, false) => found.or(unknown),
        (true, true) => negate(found),
        (true, false) => negate(found).and(unknown),
    }
}

fn negate(found: Expr) -> Expr {
    match found {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => left.not_eq(*right),
        call => Expr::Not(Box::new(call)),
    }
}

fn call(expr: Expr, mut items: Vec<Expr>) -> Expr {
    if items.len() == 1 {
        return expr.eq(items.remove(0));
    }
    let args = std::iter::once(expr).chain(items).collect();
    Expr::ScalarFunction(ScalarFunction { func: FUNCTION.clone(), args })
}

/// The operand and the items of a call.
fn as_call(expr: &Expr) -> Option<(&Expr, &[Expr])> {
    match expr {
        Expr::ScalarFunction(function) if function.func.inner().is::<InListFunction>() => function.args.split_first(),
        _ => None,
    }
}

/// A chain of OR with its comparisons of one column, and its lists, merged into calls.
fn merged(expr: Expr, schema: &DFSchemaRef, config: &Arc<ConfigOptions>) -> Result<Transformed<Expr>> {
    let operands = operands(expr, Operator::Or).into_iter().map(|operand| without_casts(operand, schema, config));
    let operands = operands.collect::<Result<Vec<_>>>()?;
    let count = operands.len();
    let mut kept: Vec<Expr> = Vec::with_capacity(count);
    // What was merged by its column: its place among what is kept, the items, and these again to tell known ones.
    let mut lists: HashMap<Expr, (usize, Vec<Expr>, HashSet<Expr>)> = HashMap::new();
    for operand in operands {
        let Some((column, items)) = of_column(&operand) else {
            kept.push(operand);
            continue;
        };
        let is_new = !lists.contains_key(column);
        let (_, all, known) = lists.entry(column.clone()).or_insert_with(|| (kept.len(), Vec::new(), HashSet::new()));
        all.extend(items.iter().filter(|item| known.insert((*item).clone())).cloned());
        if is_new {
            kept.push(operand);
        }
    }
    let changed = kept.len() < count;
    for (column, (position, items, _)) in lists.into_iter().filter(|_| changed) {
        kept[position] = call(column, items);
    }
    // The operands alone: chains within the chain are the same chain.
    let mut hidden = changed;
    for operand in &mut kept {
        let inner = std::mem::take(operand).transform_down(|expr| hide(expr, schema, config))?;
        hidden |= inner.transformed;
        *operand = inner.data;
    }
    Ok(Transformed::new(chain(Operator::Or, kept), hidden, TreeNodeRecursion::Jump))
}

/// A comparison that types were coerced for, with its literal cast in place of its column.
fn without_casts(operand: Expr, schema: &DFSchemaRef, config: &Arc<ConfigOptions>) -> Result<Expr> {
    let is_cast = |expr: &Expr| matches!(expr, Expr::Cast(_));
    match &operand {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if is_cast(left) || is_cast(right) => {
            simplifier(schema, config).simplify(operand)
        }
        _ => Ok(operand),
    }
}

/// What folds constants of a plan with these columns.
pub(super) fn simplifier(schema: &DFSchemaRef, config: &Arc<ConfigOptions>) -> ExprSimplifier {
    let context = SimplifyContext::builder().with_schema(schema.clone()).with_config_options(config.clone()).build();
    ExprSimplifier::new(context)
}

/// A column that an operand of a chain compares with constants, and these.
fn of_column(expr: &Expr) -> Option<(&Expr, &[Expr])> {
    let is_constant = |expr: &Expr| match expr {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Placeholder(_) => true,
        _ => false,
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (left.as_ref(), right.as_ref()) {
            (column @ Expr::Column(_), constant) if is_constant(constant) => {
                Some((column, std::slice::from_ref(constant)))
            }
            (constant, column @ Expr::Column(_)) if is_constant(constant) => {
                Some((column, std::slice::from_ref(constant)))
            }
            _ => None,
        },
        other => as_call(other).filter(|(e, items)| matches!(e, Expr::Column(_)) && items.iter().all(is_constant)),
    }
}

/// The final plan with lists in place of calls.
pub(crate) fn show_lists(plan: LogicalPlan) -> Result<LogicalPlan> {
    let shown = plan.transform_down_nested(|plan| {
        each_expression(
            plan,
            |expr| as_call(expr).is_some(),
            |expr, _| {
                let shown = expr.transform_up(|expr| {
                    Ok(match expr {
                        Expr::Not(inner) => match *inner {
                            Expr::InList(list) if !list.negated => {
                                Transformed::yes(Expr::InList(InList { negated: true, ..list }))
                            }
                            inner => Transformed::no(Expr::Not(Box::new(inner))),
                        },
                        other => match as_call(&other) {
                            Some((operand, items)) => Transformed::yes(Expr::InList(InList::new(
                                Box::new(operand.clone()),
                                items.to_vec(),
                                false,
                            ))),
                            None => Transformed::no(other),
                        },
                    })
                })?;
                shown.transform_data(|expr| expr.transform_up(|expr| Ok(short(expr))))
            },
        )
    })?;
    Ok(shown.data)
}

/// A short list over a column as comparisons.
fn short(expr: Expr) -> Transformed<Expr> {
    let Expr::InList(list) = expr else { return Transformed::no(expr) };
    if list.list.len() > CHAIN_MAX || !matches!(*list.expr, Expr::Column(_)) {
        return Transformed::no(Expr::InList(list));
    }
    let InList { expr, list, negated } = list;
    let compared = list.into_iter().map(|item| match negated {
        true => expr.as_ref().clone().not_eq(item),
        false => expr.as_ref().clone().eq(item),
    });
    let chain = if negated { compared.reduce(Expr::and) } else { compared.reduce(Expr::or) };
    Transformed::yes(chain.unwrap_or_else(|| Expr::Literal(negated.into(), None)))
}

/// `operand IN (items…)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InListFunction {
    signature: Signature,
}

impl InListFunction {
    fn new() -> InListFunction {
        InListFunction { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for InListFunction {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Boolean, nullable)))
    }

    /// The optimiser evaluates predicates over rows of NULL.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let mut found: Option<BooleanArray> = None;
        for item in arrays.iter().skip(1) {
            let equal = cmp::eq(&arrays[0], item)?;
            found = Some(match found {
                Some(found) => or_kleene(&found, &equal)?,
                None => equal,
            });
        }
        let found = found.unwrap_or_else(|| BooleanArray::from(vec![false; args.number_rows]));
        Ok(ColumnarValue::Array(Arc::new(found) as ArrayRef))
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let items: Vec<String> = args.iter().skip(1).map(|item| item.schema_name().to_string()).collect();
        let operand = args.first().map(|operand| operand.schema_name().to_string()).unwrap_or_default();
        Ok(format!("{operand} IN ({})", items.join(", ")))
    }
}
