//! Lists and structs have one order: a NULL within one is larger than all other values, as in DuckDB.
//!
//! DataFusion 55.2 orders the NULLs within by where a sort wants those of its rows, and takes them for the smallest in
//! `<`, `greatest` and `least`; MIN and MAX of structs follow no order. Once types are coerced, this rule compares,
//! sorts and chooses by keys of bytes ([`crate::nested_keys`]). Sorts whose NULLs are largest have the order already.
//!
//! Floats within are equal by their bits in DataFusion. Here `=`, IN, CASE with an operand and NULLIF compare them with
//! one NaN and one zero, before constants are folded; [`super::nan`] does so where later rules compare.
//!
//! Invariant: what the rule makes orders no lists or structs, and is not made again, so that a plan that is analysed
//! twice stays as it is. The file goes once Arrow and DataFusion have this order.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::expr::{SetComparison, Sort};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, BinaryExpr, ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan,
    Operator, Projection, ReversedUDAF, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    WindowFunctionDefinition, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::canonical::{is_nested, one_zero};
use super::intervals::compares;
use super::{each_expression, nullif};
use crate::functions::sorted_list;
use crate::nested_keys::{has_keys, keys};
use crate::walk::{PlanWalk, Walk};

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct NestedOrders;

impl AnalyzerRule for NestedOrders {
    fn name(&self) -> &str {
        "nested_orders"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let ordered = plan.transform_up_nested(|plan| {
            let plan =
                each_expression(plan, may_order, |expr, schema| expr.transform_up(|expr| in_expression(expr, schema)))?;
            plan.transform_data(|plan| {
                Ok(match plan {
                    LogicalPlan::Sort(mut sort) => {
                        let is_changed = by_keys(&mut sort.expr, sort.input.schema());
                        Transformed::new_transformed(LogicalPlan::Sort(sort), is_changed)
                    }
                    LogicalPlan::Distinct(Distinct::On(mut on)) => {
                        let sorted = on.sort_expr.as_mut();
                        let is_changed = sorted.is_some_and(|order| by_keys(order, on.input.schema()));
                        Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), is_changed)
                    }
                    plan => Transformed::no(plan),
                })
            })
        })?;
        Ok(ordered.data)
    }
}

/// Whether an expression may compare or choose values.
fn may_order(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => compares(*op),
        Expr::Between(_) | Expr::SetComparison(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_) => true,
        Expr::InList(_) | Expr::Case(_) => true,
        Expr::ScalarFunction(function) => matches!(function.name(), GREATEST | LEAST | SORT | NULLIF),
        _ => false,
    }
}

fn is_ordering(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// An expression whose outermost step orders no lists or structs.
fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let type_of = |expr: &Expr| expr.get_type(schema).ok().filter(has_keys);
    let are_alike = |one: &Expr, others: &[&Expr]| {
        type_of(one).is_some_and(|one| {
            others.iter().all(|other| type_of(other).is_some_and(|other| one.equals_datatype(&other)))
        })
    };
    Ok(Transformed::yes(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_ordering(op) && are_alike(&left, &[&right]) => {
            Expr::BinaryExpr(BinaryExpr::new(Box::new(key(*left)), op, Box::new(key(*right))))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && !is_ordering(op) && is_nested(&left, schema) =>
        {
            Expr::BinaryExpr(BinaryExpr::new(Box::new(one_zero(*left)), op, Box::new(one_zero(*right))))
        }
        Expr::InList(mut list) if is_nested(&list.expr, schema) => {
            list.list.iter_mut().chain([list.expr.as_mut()]).for_each(|value| *value = one_zero(std::mem::take(value)));
            Expr::InList(list)
        }
        Expr::Case(mut case) if case.expr.as_ref().is_some_and(|operand| is_nested(operand, schema)) => {
            let whens = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
            whens.chain(case.expr.as_deref_mut()).for_each(|value| *value = one_zero(std::mem::take(value)));
            Expr::Case(case)
        }
        Expr::ScalarFunction(function) if nullif::is_of_floats(&function, schema) => nullif::of_floats(function.args),
        Expr::Between(mut between) if are_alike(&between.expr, &[&between.low, &between.high]) => {
            for side in [&mut between.expr, &mut between.low, &mut between.high] {
                **side = key(std::mem::take(side));
            }
            Expr::Between(between)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
            if is_ordering(op)
                && type_of(&expr)
                    .is_some_and(|one| one.equals_datatype(subquery.subquery.schema().field(0).data_type())) =>
        {
            let column = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
            let keys = Projection::try_new(vec![key(column)], subquery.subquery.clone())?;
            let subquery = subquery.with_plan(Arc::new(LogicalPlan::Projection(keys)));
            Expr::SetComparison(SetComparison::new(Box::new(key(*expr)), subquery, op, quantifier))
        }
        Expr::ScalarFunction(function) if matches!(function.name(), GREATEST | LEAST) => {
            let others: Vec<&Expr> = function.args.iter().skip(1).collect();
            match function.args.first().is_some_and(|first| are_alike(first, &others)) {
                true => FUNCTIONS[if function.name() == LEAST { 2 } else { 1 }].call(function.args),
                false => return Ok(Transformed::no(Expr::ScalarFunction(function))),
            }
        }
        Expr::ScalarFunction(mut function) if function.name() == SORT => {
            let is_nested = |list: &Expr| match list.get_type(schema) {
                Ok(DataType::List(elements)) => has_keys(elements.data_type()),
                _ => false,
            };
            if !function.args.first().is_some_and(is_nested) {
                return Ok(Transformed::no(Expr::ScalarFunction(function)));
            }
            let mut words = function.args.drain(1..).map(|word| cast(word, DataType::Utf8)).collect::<Vec<_>>();
            // What is left out is what DataFusion has in its place.
            words.extend(["ASC", "NULLS FIRST"].iter().skip(words.len()).map(|word| lit(*word)));
            function.args.extend(words);
            match sorted_list(function.args.clone()) {
                Some(sorted) => sorted,
                None => return Ok(Transformed::no(Expr::ScalarFunction(function))),
            }
        }
        Expr::AggregateFunction(mut function) => {
            // Distinct values come in orders of theirs alone.
            let is_sorted = !function.params.distinct && by_keys(&mut function.params.order_by, schema);
            let extreme = extreme(&function.func, &function.params.args, schema);
            let is_changed = is_sorted || extreme.is_some();
            extreme.into_iter().for_each(|extreme| function.func = extreme);
            return Ok(Transformed::new_transformed(Expr::AggregateFunction(function), is_changed));
        }
        Expr::WindowFunction(mut function) => {
            let is_sorted = by_keys(&mut function.params.order_by, schema);
            let extreme = match &function.fun {
                WindowFunctionDefinition::AggregateUDF(of) => extreme(of, &function.params.args, schema),
                WindowFunctionDefinition::WindowUDF(_) => None,
            };
            let is_changed = is_sorted || extreme.is_some();
            extreme.into_iter().for_each(|extreme| function.fun = WindowFunctionDefinition::AggregateUDF(extreme));
            return Ok(Transformed::new_transformed(Expr::WindowFunction(function), is_changed));
        }
        other => return Ok(Transformed::no(other)),
    }))
}

/// Gives keys of lists and structs where a sort has NULL before what is larger; whether there are such.
fn by_keys(order: &mut [Sort], schema: &DFSchema) -> bool {
    let mut is_changed = false;
    for by in order {
        let has_own = by.asc != by.nulls_first;
        if !has_own && by.expr.get_type(schema).is_ok_and(|data_type| has_keys(&data_type)) {
            by.expr = key(std::mem::take(&mut by.expr));
            is_changed = true;
        }
    }
    is_changed
}

const GREATEST: &str = "greatest";
const LEAST: &str = "least";
const SORT: &str = "array_sort";
const NULLIF: &str = "nullif";

/// A function of this file; no statement can call it, since no registry has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Key,
    Greatest,
    Least,
}

impl Kind {
    /// The name in plans that travel.
    fn name(self) -> &'static str {
        match self {
            Kind::Key => "warpcube_nested_key",
            Kind::Greatest => "warpcube_greatest_nested",
            Kind::Least => "warpcube_least_nested",
        }
    }
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    let signature = Signature::variadic_any(Volatility::Immutable);
    [Kind::Key, Kind::Greatest, Kind::Least]
        .map(|kind| Arc::new(ScalarUDF::new_from_impl(OfNested { kind, signature: signature.clone() })))
});

/// The function of a name, for plans that come from another session.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

/// The key of a list or a struct.
fn key(value: Expr) -> Expr {
    FUNCTIONS[0].call(vec![value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfNested {
    kind: Kind,
    signature: Signature,
}

impl ScalarUDFImpl for OfNested {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(if self.kind == Kind::Key { DataType::Binary } else { arguments[0].clone() })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let found = match self.kind {
            Kind::Key => Arc::new(keys(&arrays[0])?),
            kind => chosen(kind == Kind::Greatest, &arrays)?,
        };
        let is_scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(found),
        })
    }
}

/// The largest or the smallest value of each row; NULLs do not count.
fn chosen(is_greatest: bool, arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let keys = arrays.iter().map(keys).collect::<Result<Vec<_>>>()?;
    let best = |row: usize| {
        let better = |best: usize, next: usize| match (keys[best].is_valid(row), keys[next].is_valid(row)) {
            (false, true) => next,
            (true, true) if is_better(is_greatest, keys[next].value(row), keys[best].value(row)) => next,
            _ => best,
        };
        ((1..arrays.len()).fold(0, better), row)
    };
    let rows: Vec<(usize, usize)> = (0..arrays[0].len()).map(best).collect();
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    Ok(interleave(&arrays, &rows)?)
}

fn is_better(is_greatest: bool, key: &[u8], than: &[u8]) -> bool {
    if is_greatest { key > than } else { key < than }
}

/// The function in place of DataFusion's MIN or MAX of lists or structs; none where it is something else.
fn extreme(function: &Arc<AggregateUDF>, arguments: &[Expr], schema: &DFSchema) -> Option<Arc<AggregateUDF>> {
    let is_max = function.inner().is::<Max>();
    let [value] = arguments else { return None };
    let is_taken = (is_max || function.inner().is::<Min>()) && has_keys(&value.get_type(schema).ok()?);
    is_taken.then(|| Arc::new(AggregateUDF::new_from_impl(Extreme { original: function.clone(), is_max })))
}

/// MIN or MAX of lists or structs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    original: Arc<AggregateUDF>,
    is_max: bool,
}

impl Extreme {
    fn values(&self, arguments: &AccumulatorArgs, leave: bool) -> Box<dyn Accumulator> {
        let data_type = arguments.return_field.data_type().clone();
        Box::new(Values { is_max: self.is_max, leave, data_type, values: BTreeMap::new() })
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.original.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.original.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.values(&arguments, false))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.values(&arguments, true))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.original.state_fields(arguments)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// The extreme of a group, or all values of a frame, which leave it again, with how often each is there.
#[derive(Debug)]
struct Values {
    is_max: bool,
    /// Whether values leave.
    leave: bool,
    data_type: DataType,
    values: BTreeMap<Vec<u8>, (ScalarValue, usize)>,
}

impl Values {
    fn best(&self) -> Option<(&Vec<u8>, &(ScalarValue, usize))> {
        if self.is_max { self.values.last_key_value() } else { self.values.first_key_value() }
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let keys = keys(&values[0])?;
        for (row, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            let is_kept = self.leave || self.best().is_none_or(|(best, _)| is_better(self.is_max, key, best));
            if !is_kept {
                continue;
            }
            if !self.leave {
                self.values.clear();
            }
            match self.values.get_mut(key) {
                Some((_, count)) => *count += 1,
                None => {
                    let value = ScalarValue::try_from_array(&values[0], row)?;
                    self.values.insert(key.to_vec(), (value.compacted(), 1));
                }
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for key in keys(&values[0])?.iter().flatten() {
            if let Some((_, count)) = self.values.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    self.values.remove(key);
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.leave
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.best() {
            Some((_, (value, _))) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        let of_value = |(key, (value, _)): (&Vec<u8>, &(ScalarValue, usize))| key.capacity() + value.size();
        size_of_val(self) + self.values.iter().map(of_value).sum::<usize>()
    }
}
