//! Floats beside decimals are doubles, and times of several units are times of nanoseconds.
//!
//! DataFusion 55.2 makes a float that meets a decimal a decimal of 15 digits behind the point: `x = 0.5` fails over a
//! NaN, 1e30 and 1e-20 are lost. As literals with a point are decimals, this is what most statements over floats
//! write. Here the decimal becomes a double, in comparisons and arithmetic ([`super::names`]), IN, BETWEEN, CASE,
//! functions whose arguments share a type (of lists and values: [`super::list_elements`]), keys of joins (those of
//! USING, INTERSECT and EXCEPT among them), comparisons with subqueries, and columns of UNION. In the same places
//! lists, structs and maps have such types within ([`super::common_types`]).
//!
//! Decimals of unlike scales, integers among them, that have no room in 38 digits together (DECIMAL(38, 0) beside
//! DECIMAL(38, 10)) become decimals of 76, where DataFusion's common type overflows. A value that 76 digits of the
//! larger scale do not hold raises. Constants have the digits of their values.
//!
//! `nvl` and its other name `ifnull` take no decimals in DataFusion, which makes doubles of them: they are `coalesce`.
//!
//! Times of two units have no common type in DataFusion, so that a column of microseconds is not comparable with a
//! literal: both become nanoseconds, in the same places.
//!
//! A date or a text beside a timestamp is one of nanoseconds in DataFusion, which end in 2262. Beside timestamps
//! without nanoseconds a date becomes one of the finest of their units, and a text one of microseconds, in the same
//! places; a constant text with more digits keeps them. `date_part` reads a text as one of microseconds, too.
//!
//! Texts beside bytes are bytes, in the same places.
//!
//! Roots, logarithms and functions of angles are of doubles, as in PostgreSQL and DuckDB: DataFusion computes those of
//! a REAL in its precision.
//!
//! Numbers and dates, timestamps or times have no common type: DataFusion makes days since 1970 of integers, in
//! silence. In the same places they are refused, as in PostgreSQL.
//!
//! The file goes once DataFusion coerces a float and a decimal to a double, decimals to a type that has room for all, a
//! time to the finer unit, a date and a text to the timestamp's unit, and no number to a date.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    Between, BinaryExpr, Case, Cast, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Projection, Subquery, Union,
};
use datafusion::optimizer::AnalyzerRule;

use super::common_types::{Common, check_kinds, checked, common, is_decimal, is_on_calendar, shared};
use super::conversion::is_text;
use super::each_expression;
use super::intervals::compares;
use crate::walk::{PlanWalk, Walk};

/// The rule, before types are coerced.
#[derive(Debug)]
pub(crate) struct DoublesBesideFloats;

impl AnalyzerRule for DoublesBesideFloats {
    fn name(&self) -> &str {
        "doubles_beside_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_up_nested(|plan| match plan {
            LogicalPlan::Union(union) => in_union(union),
            LogicalPlan::Join(join) => in_expressions(LogicalPlan::Join(in_keys(join)?)),
            plan => in_expressions(plan),
        })?;
        Ok(changed.data)
    }
}

fn in_expressions(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let changed =
        each_expression(plan, is_candidate, |expr, schema| expr.transform_up(|expr| in_expression(expr, schema)))?;
    match changed.transformed {
        true => changed.map_data(LogicalPlan::recompute_schema),
        false => Ok(changed),
    }
}

fn is_candidate(expr: &Expr) -> bool {
    match expr {
        Expr::InList(_) | Expr::Between(_) | Expr::Case(_) | Expr::BinaryExpr(_) => true,
        Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::ScalarFunction(function) => {
            let name = function.name();
            OF_ONE_TYPE.contains(&name) || OF_DOUBLES.contains(&name) || name == DATE_PART
        }
        _ => false,
    }
}

/// Functions whose arguments share a type.
const OF_ONE_TYPE: [&str; 8] = ["coalesce", "greatest", "least", "make_array", "nullif", "nvl", "nvl2", "power"];

/// Functions of doubles.
const OF_DOUBLES: [&str; 23] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cot", "degrees", "exp", "ln",
    "log", "log10", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh",
];

/// The function that reads a text as a timestamp of nanoseconds.
const DATE_PART: &str = "date_part";

/// Keys of a join in their common types.
fn in_keys(mut join: Join) -> Result<Join> {
    let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
    for (one, other) in &mut join.on {
        let (Ok(of_one), Ok(of_other)) = (one.get_type(&left), other.get_type(&right)) else { continue };
        check_kinds([&of_one, &of_other])?;
        if let Some(common) = shared([of_one, of_other]) {
            *one = common.of(std::mem::take(one), &left);
            *other = common.of(std::mem::take(other), &right);
        }
    }
    Ok(join)
}

/// A value and the column of a subquery that it is compared with, in their common type.
fn beside_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let inner = subquery.subquery.schema().clone();
    let Some((table, field)) = inner.iter().next() else { return Ok(false) };
    check_kinds(expr.get_type(schema).iter().chain([field.data_type()]))?;
    let types = expr.get_type(schema).ok().into_iter().chain([field.data_type().clone()]);
    let Some(common) = shared(types) else { return Ok(false) };
    *expr = common.of(std::mem::take(expr), schema);
    let column = Expr::from((table, field));
    let cast = common.of(column.clone(), &inner);
    if cast != column {
        let cast = cast.alias_qualified(table.cloned(), field.name());
        let projection = Projection::try_new(vec![cast], subquery.subquery.clone())?;
        subquery.subquery = Arc::new(LogicalPlan::Projection(projection));
    }
    Ok(true)
}

fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::InSubquery(mut comparison) => {
            let changed = beside_subquery(&mut comparison.expr, &mut comparison.subquery, schema)?;
            Transformed::new_transformed(Expr::InSubquery(comparison), changed)
        }
        Expr::SetComparison(mut comparison) => {
            let changed = beside_subquery(&mut comparison.expr, &mut comparison.subquery, schema)?;
            Transformed::new_transformed(Expr::SetComparison(comparison), changed)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right, changed) = match compares(op) {
                true => compared(*left, *right, schema)?,
                false => operands(*left, *right, schema),
            };
            let binary = BinaryExpr { left: Box::new(left), op, right: Box::new(right) };
            Transformed::new_transformed(Expr::BinaryExpr(binary), changed)
        }
        Expr::InList(InList { expr, list, negated }) => match checked(list.iter().chain([expr.as_ref()]), schema)? {
            Some(common) => {
                let list = list.into_iter().map(|item| common.of(item, schema)).collect();
                Transformed::yes(Expr::InList(InList { expr: Box::new(common.of(*expr, schema)), list, negated }))
            }
            None => Transformed::no(Expr::InList(InList { expr, list, negated })),
        },
        Expr::Between(Between { expr, negated, low, high }) => match checked([expr.as_ref(), &low, &high], schema)? {
            Some(common) => {
                let [expr, low, high] = [expr, low, high].map(|expr| Box::new(common.of(*expr, schema)));
                Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
            }
            None => Transformed::no(Expr::Between(Between { expr, negated, low, high })),
        },
        Expr::Case(case) => in_case(case, schema)?,
        Expr::ScalarFunction(mut function) if OF_ONE_TYPE.contains(&function.name()) => {
            // The first argument of nvl2 is only looked at for NULL.
            let first = usize::from(function.name() == "nvl2" && !function.args.is_empty());
            let is_nvl = function.name() == "nvl";
            if is_nvl {
                function.func = coalesce();
            }
            let common = checked(&function.args[first..], schema)?;
            if let Some(common) = &common {
                for argument in &mut function.args[first..] {
                    *argument = common.of(std::mem::take(argument), schema);
                }
            }
            Transformed::new_transformed(Expr::ScalarFunction(function), is_nvl || common.is_some())
        }
        Expr::ScalarFunction(mut function) if OF_DOUBLES.contains(&function.name()) => {
            let mut is_changed = false;
            for argument in &mut function.args {
                if matches!(argument.get_type(schema), Ok(DataType::Float16 | DataType::Float32)) {
                    *argument = Expr::Cast(Cast::new(Box::new(std::mem::take(argument)), DataType::Float64));
                    is_changed = true;
                }
            }
            Transformed::new_transformed(Expr::ScalarFunction(function), is_changed)
        }
        Expr::ScalarFunction(mut function) if function.name() == DATE_PART => {
            let is_read = |time: &Expr| time.get_type(schema).is_ok_and(|found| is_text(&found));
            let text = function.args.get_mut(1).filter(|time| is_read(time));
            let is_text = text.is_some();
            if let Some(text) = text {
                *text = Common::Timestamp(TimeUnit::Microsecond, None).of(std::mem::take(text), schema);
            }
            Transformed::new_transformed(Expr::ScalarFunction(function), is_text)
        }
        other => Transformed::no(other),
    })
}

/// What a CASE compares, and what it gives.
fn in_case(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut changed = false;
    let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
    if let Some(operand) = &case.expr
        && let Some(common) = checked(whens.chain([operand.as_ref()]), schema)?
    {
        changed = true;
        case.expr = case.expr.map(|operand| Box::new(common.of(*operand, schema)));
        let whens = case.when_then_expr.into_iter();
        case.when_then_expr = whens.map(|(when, then)| (Box::new(common.of(*when, schema)), then)).collect();
    }
    let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
    if let Some(common) = checked(results.chain(case.else_expr.as_deref()), schema)? {
        changed = true;
        let whens = case.when_then_expr.into_iter();
        case.when_then_expr = whens.map(|(when, then)| (when, Box::new(common.of(*then, schema)))).collect();
        case.else_expr = case.else_expr.map(|otherwise| Box::new(common.of(*otherwise, schema)));
    }
    Ok(Transformed::new_transformed(Expr::Case(case), changed))
}

/// Columns of the inputs become values of their common types. Before types are coerced, a union among the inputs has
/// the types of its own first input, so that those of all its inputs are looked at.
fn in_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let columns = union.inputs.iter().map(|input| input.schema().fields().len()).min().unwrap_or(0);
    let mixed: Vec<Option<Common>> = (0..columns)
        .map(|column| {
            let mut types = Vec::new();
            union.inputs.iter().for_each(|input| types_of(input, column, &mut types));
            check_kinds(&types)?;
            // Times of several units have a common type among columns of a union.
            Ok(shared(types).filter(|common| !matches!(common, Common::Time)))
        })
        .collect::<Result<_>>()?;
    if mixed.iter().all(Option::is_none) {
        // A first input that is a union may have changed.
        let of =
            |schema: &DFSchema| -> Vec<DataType> { schema.fields().iter().map(|f| f.data_type().clone()).collect() };
        let is_right = union.inputs.first().is_none_or(|first| of(first.schema()) == of(&union.schema));
        return match is_right {
            true => Ok(Transformed::no(LogicalPlan::Union(union))),
            false => Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?))),
        };
    }
    let inputs = union.inputs.into_iter().map(|input| with_common(input, &mixed)).collect::<Result<_>>()?;
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// The types of a column of a plan: of a union those of its inputs.
fn types_of(plan: &LogicalPlan, column: usize, types: &mut Vec<DataType>) {
    match plan {
        LogicalPlan::Union(union) => union.inputs.iter().for_each(|input| types_of(input, column, types)),
        LogicalPlan::Distinct(Distinct::All(input)) => types_of(input, column, types),
        plan => types.extend(plan.schema().fields().get(column).map(|field| field.data_type().clone())),
    }
}

/// An input of a union with values of common types in some columns.
fn with_common(input: Arc<LogicalPlan>, columns: &[Option<Common>]) -> Result<Arc<LogicalPlan>> {
    let plan = match input.as_ref() {
        LogicalPlan::Union(union) => {
            let inputs = union.inputs.iter().map(|input| with_common(input.clone(), columns)).collect::<Result<_>>()?;
            LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            LogicalPlan::Distinct(Distinct::All(with_common(input.clone(), columns)?))
        }
        _ => {
            let schema = input.schema().clone();
            let exprs = schema.iter().enumerate().map(|(index, (table, field))| {
                let column = Expr::from((table, field));
                let Some(Some(common)) = columns.get(index) else { return column };
                match common.of(column.clone(), &schema) {
                    cast if cast != column => cast.alias_qualified(table.cloned(), field.name()),
                    _ => column,
                }
            });
            LogicalPlan::Projection(Projection::try_new(exprs.collect(), input)?)
        }
    };
    Ok(Arc::new(plan))
}

/// Two operands in their common type; the flag says that one of them changed.
pub(super) fn operands(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr, bool) {
    // A chain leans to the left, and its type takes a look at all of it: the right operand decides first.
    let may_mix = |found: DataType| found.is_floating() || is_decimal(&found) || is_on_calendar(&found);
    if !right.get_type(schema).is_ok_and(may_mix) {
        return (left, right, false);
    }
    match common([&left, &right], schema) {
        Some(common) => (common.of(left, schema), common.of(right, schema), true),
        None => (left, right, false),
    }
}

/// Two sides of a comparison in their common type; the flag says that one of them changed.
///
/// # Errors
/// A number beside a date.
fn compared(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr, bool)> {
    // A chain leans to the left, and its type takes a look at all of it: the right operand decides first.
    let may_mix =
        |found: DataType| found.is_numeric() || is_on_calendar(&found) || is_text(&found) || found.is_nested();
    if !right.get_type(schema).is_ok_and(may_mix) {
        return Ok((left, right, false));
    }
    Ok(match checked([&left, &right], schema)? {
        Some(common) => (common.of(left, schema), common.of(right, schema), true),
        None => (left, right, false),
    })
}
