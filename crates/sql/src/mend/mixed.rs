//! Floats beside decimals are doubles, and times of several units are times of nanoseconds.
//!
//! DataFusion 55.2 makes a float that meets a decimal a decimal of 15 digits behind the point: `x = 0.5` fails over a
//! NaN, 1e30 and 1e-20 are lost. As literals with a point are decimals, this is what most statements over floats
//! write. Here the decimal becomes a double, in comparisons and arithmetic ([`super::names`]), IN, BETWEEN, CASE,
//! functions whose arguments share a type, keys of joins (those of USING, INTERSECT and EXCEPT among them), comparisons
//! with subqueries, and columns of UNION.
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

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    Between, BinaryExpr, Case, Cast, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Projection, Subquery, Union,
};
use datafusion::optimizer::AnalyzerRule;

use super::conversion::is_text;
use super::each_expression;
use super::intervals::compares;
use crate::error::SqlError;
use crate::syntax::has_nanoseconds;
use crate::text_bytes::is_bytes;
use crate::time_units::per_second;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

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

fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(_, _) | DataType::Decimal256(_, _))
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Time32(_) | DataType::Time64(_))
}

/// What expressions of several types become.
#[derive(Debug, Clone)]
enum Common {
    Double,
    Time,
    /// Timestamps of a unit and a zone, beside dates and texts.
    Timestamp(TimeUnit, Option<Arc<str>>),
    /// Decimals of 76 digits, so many of them behind the point.
    Wide(i8),
    /// Bytes, beside texts that are read as such.
    Bytes,
}

impl Common {
    fn of(&self, expr: Expr, schema: &DFSchema) -> Expr {
        match self {
            Common::Double => double(expr, schema),
            Common::Time => {
                let finest = DataType::Time64(TimeUnit::Nanosecond);
                match expr.get_type(schema) {
                    Ok(found) if is_time(&found) && found != finest => Expr::Cast(Cast::new(Box::new(expr), finest)),
                    _ => expr,
                }
            }
            Common::Timestamp(unit, zone) => match expr.get_type(schema) {
                Ok(DataType::Date32 | DataType::Date64) => {
                    Expr::Cast(Cast::new(Box::new(expr), DataType::Timestamp(*unit, None)))
                }
                Ok(text) if is_text(&text) => {
                    let constant = match &expr {
                        Expr::Literal(value, _) => value.try_as_str().flatten(),
                        _ => None,
                    };
                    let unit = match constant.map(has_nanoseconds) {
                        Some(true) => TimeUnit::Nanosecond,
                        Some(false) => TimeUnit::Microsecond,
                        None => *unit,
                    };
                    Expr::Cast(Cast::new(Box::new(expr), DataType::Timestamp(unit, zone.clone())))
                }
                _ => expr,
            },
            Common::Bytes => match expr.get_type(schema) {
                Ok(text) if is_text(&text) => Expr::Cast(Cast::new(Box::new(expr), DataType::Binary)),
                _ => expr,
            },
            Common::Wide(scale) => {
                let wide = DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale);
                match expr.get_type(schema) {
                    Ok(found) if (found.is_integer() || is_decimal(&found)) && found != wide => {
                        Expr::Cast(Cast::new(Box::new(expr), wide))
                    }
                    _ => expr,
                }
            }
        }
    }
}

/// The same, and an error for numbers beside dates.
fn checked<'a>(exprs: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> Result<Option<Common>> {
    let typed = |expr: &'a Expr| Some((expr, expr.get_type(schema).ok()?));
    let typed: Vec<(&Expr, DataType)> = exprs.into_iter().filter_map(typed).collect();
    check_kinds(typed.iter().map(|(_, data_type)| data_type))?;
    let of_value = |expr: &Expr, data_type: &DataType| match expr {
        Expr::Literal(value, _) => Digits::of_value(value),
        _ => Digits::of(data_type),
    };
    let digits = typed.iter().filter_map(|(expr, data_type)| of_value(expr, data_type)).collect();
    let types: Vec<DataType> = typed.into_iter().map(|(_, data_type)| data_type).collect();
    Ok(brought_together(&types, digits))
}

/// Two sides of a comparison in their common type; the flag says that one of them changed.
///
/// # Errors
/// A number beside a date.
fn compared(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr, bool)> {
    // A chain leans to the left, and its type takes a look at all of it: the right operand decides first.
    let may_mix = |found: DataType| found.is_numeric() || is_on_calendar(&found) || is_text(&found);
    if !right.get_type(schema).is_ok_and(may_mix) {
        return Ok((left, right, false));
    }
    Ok(match checked([&left, &right], schema)? {
        Some(common) => (common.of(left, schema), common.of(right, schema), true),
        None => (left, right, false),
    })
}

/// Whether a type is one of dates, timestamps or times of day.
pub(crate) fn is_on_calendar(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(data_type, Date32 | Date64 | Timestamp(..) | Time32(_) | Time64(_))
}

/// What makes a date or a time of a number, by its type.
pub(super) fn of_number(date: &DataType) -> &'static str {
    match date {
        DataType::Timestamp(..) => {
            "to_timestamp(n) of seconds since 1970, to_timestamp_millis(n), to_timestamp_micros(n)"
        }
        DataType::Time32(_) | DataType::Time64(_) => "make_time(hour, minute, second)",
        _ => "DATE '1970-01-01' + n",
    }
}

/// Refuses types of numbers beside types of dates.
///
/// # Errors
/// [`SqlError::Planning`], with both types.
pub(crate) fn check_kinds<'a>(types: impl IntoIterator<Item = &'a DataType> + Clone) -> Result<()> {
    let number = types.clone().into_iter().find(|data_type| data_type.is_numeric());
    let date = types.into_iter().find(|data_type| is_on_calendar(data_type));
    match (number, date) {
        (Some(number), Some(date)) => {
            let (number, kind, remedy) = (sql_name(number), sql_name(date), of_number(date));
            let reason = format!("{number} and {kind} have no common type; write CAST(… AS {number}), or {remedy}");
            Err(SqlError::Planning(reason).into())
        }
        _ => Ok(()),
    }
}

/// Refuses a number for a column of dates, and a date for one of numbers.
///
/// # Errors
/// [`SqlError::Planning`], with the column and both types.
pub(crate) fn check_column(column: &Field, given: &DataType) -> Result<()> {
    let (name, kind) = (column.name(), column.data_type());
    let remedy = match is_on_calendar(kind) {
        true if given.is_numeric() => of_number(kind).to_string(),
        false if kind.is_numeric() && is_on_calendar(given) => format!("CAST(… AS {})", sql_name(kind)),
        _ => return Ok(()),
    };
    let (number, date) = if given.is_numeric() { (given, kind) } else { (kind, given) };
    let (one, other) = (sql_name(number), sql_name(date));
    let reason = format!("column '{name}': {one} and {other} have no common type; write {remedy}");
    Err(SqlError::Planning(reason).into())
}

/// What expressions become that have several types which DataFusion does not bring together.
fn common<'a>(exprs: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> Option<Common> {
    common_of(exprs.into_iter().filter_map(|expr| expr.get_type(schema).ok()))
}

/// The same, of values that are to be of one type.
fn shared(types: impl IntoIterator<Item = DataType>) -> Option<Common> {
    let types: Vec<DataType> = types.into_iter().collect();
    let digits = types.iter().filter_map(Digits::of).collect();
    brought_together(&types, digits)
}

/// What values of several types become, whose numbers have so many digits.
fn brought_together(types: &[DataType], digits: Vec<Digits>) -> Option<Common> {
    let is_beside_bytes = |found: &DataType| is_bytes(found) || is_text(found) || found.is_null();
    let are_bytes = || types.iter().any(is_bytes) && types.iter().any(is_text) && types.iter().all(is_beside_bytes);
    common_of(types.iter().cloned())
        .or_else(|| with_texts(types))
        .or_else(|| wide(types, digits))
        .or_else(|| are_bytes().then_some(Common::Bytes))
}

/// Digits before and behind the point of a number.
#[derive(Debug, Clone, Copy)]
struct Digits {
    whole: i16,
    scale: i8,
}

impl Digits {
    /// Those of all values of a type of integers or decimals.
    fn of(data_type: &DataType) -> Option<Digits> {
        let whole = match data_type {
            DataType::Int8 | DataType::UInt8 => 3,
            DataType::Int16 | DataType::UInt16 => 5,
            DataType::Int32 | DataType::UInt32 => 10,
            DataType::Int64 => 19,
            DataType::UInt64 => 20,
            DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
                return Some(Digits { whole: i16::from(*precision) - i16::from(*scale), scale: *scale });
            }
            _ => return None,
        };
        Some(Digits { whole, scale: 0 })
    }

    /// Those of a constant; a NULL has none.
    fn of_value(value: &ScalarValue) -> Option<Digits> {
        let of_type = Digits::of(&value.data_type()).filter(|_| !value.is_null())?;
        let unscaled = match value {
            ScalarValue::Decimal128(Some(unscaled), ..) => unscaled.to_string(),
            ScalarValue::Decimal256(Some(unscaled), ..) => unscaled.to_string(),
            integer => integer.to_string(),
        };
        let digits = unscaled.trim_start_matches(['-', '0']).len() as i16;
        Some(Digits { whole: digits - i16::from(of_type.scale), ..of_type })
    }
}

/// The wide type of decimals, and of integers beside them, which DataFusion's common type has no room for.
fn wide(types: &[DataType], digits: Vec<Digits>) -> Option<Common> {
    let is_wide = |data_type: &DataType| matches!(data_type, DataType::Decimal256(..));
    let room = if types.iter().any(is_wide) { DECIMAL256_MAX_PRECISION } else { DECIMAL128_MAX_PRECISION };
    let whole = digits.iter().map(|digits| digits.whole).max()?;
    let scale = digits.iter().map(|digits| digits.scale).max()?;
    let has_room = whole + i16::from(scale) <= i16::from(room);
    (!has_room && types.iter().any(is_decimal)).then_some(Common::Wide(scale))
}

/// The type of timestamps beside texts; those of arithmetic are no timestamps.
fn with_texts(types: &[DataType]) -> Option<Common> {
    if !types.iter().any(is_text) {
        return None;
    }
    let (unit, zone) = finest(types)?;
    let unit = if unit == TimeUnit::Nanosecond { unit } else { TimeUnit::Microsecond };
    Some(Common::Timestamp(unit, zone))
}

/// The finest unit of timestamps among some types, and the first of their zones.
fn finest(types: &[DataType]) -> Option<(TimeUnit, Option<Arc<str>>)> {
    let timestamp = |data_type: &DataType| match data_type {
        DataType::Timestamp(unit, zone) => Some((*unit, zone.clone())),
        _ => None,
    };
    let timestamps = || types.iter().filter_map(timestamp);
    let unit = timestamps().map(|(unit, _)| unit).max_by_key(|unit| per_second(*unit))?;
    Some((unit, timestamps().find_map(|(_, zone)| zone)))
}

fn common_of(types: impl IntoIterator<Item = DataType>) -> Option<Common> {
    let types: Vec<DataType> = types.into_iter().collect();
    let is_date = |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Date64);
    let times: HashSet<&DataType> = types.iter().filter(|data_type| is_time(data_type)).collect();
    if types.iter().any(DataType::is_floating) && types.iter().any(is_decimal) {
        return Some(Common::Double);
    }
    if times.len() > 1 {
        return Some(Common::Time);
    }
    // Nanoseconds are DataFusion's to bring together with a date.
    let (unit, zone) = finest(&types).filter(|(unit, _)| types.iter().any(is_date) && *unit != TimeUnit::Nanosecond)?;
    Some(Common::Timestamp(unit, zone))
}

/// A decimal as a double; anything else as it is. A literal is rounded once, from its digits.
fn double(expr: Expr, schema: &DFSchema) -> Expr {
    if !expr.get_type(schema).is_ok_and(|data_type| is_decimal(&data_type)) {
        return expr;
    }
    if let Expr::Literal(value @ (ScalarValue::Decimal128(Some(_), _, _) | ScalarValue::Decimal256(Some(_), _, _)), _) =
        &expr
        && let Some(number) = digits(value).and_then(|digits| digits.parse::<f64>().ok())
    {
        return Expr::Literal(ScalarValue::Float64(Some(number)), None);
    }
    Expr::Cast(Cast::new(Box::new(expr), DataType::Float64))
}

/// A decimal as a number with an exponent.
fn digits(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => Some(format!("{unscaled}e{}", -i16::from(*scale))),
        ScalarValue::Decimal256(Some(unscaled), _, scale) => Some(format!("{unscaled}e{}", -i16::from(*scale))),
        _ => None,
    }
}
