//! Plans of statements that differ in constants of conditions alone, by the shape of their text ([`super::holes`]).
//!
//! The text of a shape is a statement with parameters. It is parsed and planned once, with the types that its columns
//! give the parameters, as a template ([`super::template`]); a statement of that shape takes the template with its own
//! values, and is neither parsed nor planned.
//!
//! Invariants. A parameter is compared with columns and with nothing else ([`parameters`]), and has the columns' type.
//! A value is used only where it is the same in that type ([`Constant::value`]): SQL compares a column with a constant
//! in a type that holds all values of both, so that the comparison in the column's type has the same outcome. All else
//! is planned from the statement's own text.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, ScalarValue, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan, Operator, Subquery, WindowFunctionDefinition};
use quick_cache::sync::Cache;
use warpcube_column::is_string;

use super::epoch::{TextAsked, TextKey};
use super::holes::{Constant, days, nanoseconds};
use super::template::Template;
use super::{Epoch, cache};
use crate::walk::{PlanWalk, Walk};

/// Shapes kept.
const SHAPES_MAX: usize = 256;

/// What is known of a shape.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Its text has a plan.
    Planned(Arc<PlannedShape>),
    /// Holes for which it has `false` are constants of a narrower shape: more than columns is compared with them.
    Narrower(Arc<[bool]>),
    /// Statements of that shape are planned one by one.
    Unfit,
}

/// The plan of a shape.
#[derive(Debug)]
pub(crate) struct PlannedShape {
    /// The plan of its text.
    pub(crate) template: Template,
    /// The types of the parameters.
    pub(crate) types: Vec<DataType>,
    /// The tables to look at before it is used.
    pub(crate) tables: Arc<[TableReference]>,
    /// Whether numbers with a point are decimals.
    pub(crate) has_decimals: bool,
}

/// Shapes by their texts and the settings, each with the epoch that it is known under.
#[derive(Debug)]
pub(crate) struct Shapes {
    entries: Cache<TextKey, (Epoch, Shape)>,
}

impl Default for Shapes {
    fn default() -> Shapes {
        Shapes { entries: cache(SHAPES_MAX) }
    }
}

impl Shapes {
    /// What is known of a shape under this epoch.
    pub(crate) fn get(&self, text: &str, epoch: Epoch) -> Option<Shape> {
        let key = TextAsked { text, settings: epoch.settings };
        self.entries.get(&key).filter(|(known, _)| *known == epoch).map(|(_, shape)| shape)
    }

    /// Drops plans of older generations of the catalog.
    pub(crate) fn drop_stale(&self, generation: u64) {
        self.entries.retain(|_, (epoch, _)| epoch.catalog >= generation);
    }

    /// Keeps what is known of a shape; one that has not been used for long leaves.
    pub(crate) fn keep(&self, text: String, epoch: Epoch, shape: Shape) {
        let key = TextKey { text: text.into_boxed_str(), settings: epoch.settings };
        self.entries.insert(key, (epoch, shape));
    }
}

impl PlannedShape {
    /// The values of a statement's constants; none where one of them is another value in its parameter's type.
    pub(crate) fn values(&self, constants: &[Constant]) -> Option<Vec<ScalarValue>> {
        let values = constants.iter().zip(&self.types).map(|(constant, to)| constant.value(to, self.has_decimals));
        values.collect()
    }
}

impl Constant {
    /// The constant as a value of a column's type, if it is the same there.
    fn value(&self, to: &DataType, has_decimals: bool) -> Option<ScalarValue> {
        match (self, to) {
            (Constant::Number(text), DataType::Decimal128(precision, scale)) => {
                let unscaled = unscaled(text, *scale).filter(|_| has_decimals || !text.contains('.'))?;
                let most = 10i128.checked_pow((*precision).into())?;
                (-most < unscaled && unscaled < most).then_some(ScalarValue::Decimal128(
                    Some(unscaled),
                    *precision,
                    *scale,
                ))
            }
            (Constant::Number(text), to) => integer(text.parse().ok()?, to),
            (Constant::Text(text), to) if is_string(to) => string(text, to),
            // What matches everything or one string is planned as that.
            (Constant::Pattern(text), to) if is_string(to) => {
                let is_plain = text.contains(['%', '_']) && text.bytes().any(|byte| byte != b'%');
                string(text, to).filter(|_| is_plain)
            }
            (Constant::Text(text), DataType::Date32) => days(text).map(|days| ScalarValue::Date32(Some(days))),
            (Constant::Date(days), DataType::Date32) => Some(ScalarValue::Date32(Some(*days))),
            (Constant::Text(text), DataType::Timestamp(unit, None)) => time(nanoseconds(text)?, *unit),
            (Constant::Time(nanoseconds), DataType::Timestamp(unit, None)) => time(*nanoseconds, *unit),
            _ => None,
        }
    }
}

fn integer(value: i128, to: &DataType) -> Option<ScalarValue> {
    Some(match to {
        DataType::Int8 => ScalarValue::Int8(Some(value.try_into().ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(value.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(value.try_into().ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(value.try_into().ok()?)),
        DataType::UInt8 => ScalarValue::UInt8(Some(value.try_into().ok()?)),
        DataType::UInt16 => ScalarValue::UInt16(Some(value.try_into().ok()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(value.try_into().ok()?)),
        DataType::UInt64 => ScalarValue::UInt64(Some(value.try_into().ok()?)),
        _ => return None,
    })
}

/// A time in another unit, if it is a whole number of these.
fn time(nanoseconds: i64, unit: TimeUnit) -> Option<ScalarValue> {
    let ticks = |each: i64| (nanoseconds % each == 0).then_some(Some(nanoseconds / each));
    Some(match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(ticks(1_000_000_000)?, None),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(ticks(1_000_000)?, None),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(ticks(1_000)?, None),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(Some(nanoseconds), None),
    })
}

fn string(text: &str, to: &DataType) -> Option<ScalarValue> {
    Some(match to {
        DataType::Utf8 => ScalarValue::Utf8(Some(text.into())),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(text.into())),
        DataType::Utf8View => ScalarValue::Utf8View(Some(text.into())),
        _ => return None,
    })
}

/// A number in units of the last of `scale` decimals, if it has no more decimals that are not zero.
fn unscaled(text: &str, scale: i8) -> Option<i128> {
    let scale = usize::try_from(scale).ok()?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > scale {
        return None;
    }
    format!("{whole}{decimals:0<scale$}").parse().ok()
}

/// The types of a plan's parameters, of which there are `count`; none of one that is not compared with columns of its
/// type alone, in filters, or whose type is not among those whose comparisons are exact. Numbers of rows that windows
/// give are no such columns: how many of them are wanted is part of a plan
/// ([`crate::lower`], first rows of partitions).
pub(crate) fn parameters(plan: &LogicalPlan, count: usize) -> Result<Vec<Option<DataType>>> {
    let mut found = Found::default();
    found.look_at(plan, false)?;
    let type_of = |number: usize| match found.parameters.remove(&number) {
        Some(Parameter { data_type, places, compared }) if places == compared => data_type,
        _ => None,
    };
    Ok((1..=count).map(type_of).collect())
}

/// What is known of a parameter.
#[derive(Default)]
struct Parameter {
    data_type: Option<DataType>,
    /// How often the plan has it.
    places: usize,
    /// How often it is compared with a column of its type.
    compared: usize,
}

/// Parameters that a plan has been found to have, by number.
#[derive(Default)]
struct Found {
    parameters: BTreeMap<usize, Parameter>,
}

impl Found {
    /// Looks at a plan, and at its subqueries. Filters above an aggregation count for nothing in correlated subqueries:
    /// the optimiser asks what they give for no row.
    fn look_at(&mut self, plan: &LogicalPlan, is_correlated: bool) -> Result<()> {
        plan.apply(|plan| {
            let filter = match plan {
                LogicalPlan::Filter(filter) if !(is_correlated && aggregates(&filter.input)?) => Some(filter),
                _ => None,
            };
            plan.apply_exprs(|expr| {
                expr.apply(|expr| {
                    if let Some((number, data_type)) = parameter_of(expr) {
                        let parameter = self.parameters.entry(number).or_default();
                        parameter.places += 1;
                        parameter.data_type.get_or_insert(data_type);
                    }
                    if let Some(Subquery { subquery, outer_ref_columns, .. }) = subquery_of(expr) {
                        self.look_at(subquery, !outer_ref_columns.is_empty())?;
                    }
                    let Some(filter) = filter else { return Ok(TreeNodeRecursion::Continue) };
                    for (column, parameter) in comparisons(expr) {
                        let Some((number, data_type)) = parameter_of(parameter) else { continue };
                        let parameter = self.parameters.entry(number).or_default();
                        let is_same = *parameter.data_type.get_or_insert_with(|| data_type.clone()) == data_type;
                        let place = filter.input.schema().index_of_column(column)?;
                        let of_column = filter.input.schema().field(place).data_type();
                        let is_fit = is_same && *of_column == data_type && is_exact(&data_type);
                        parameter.compared += usize::from(is_fit && !is_of_window(&filter.input, place));
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(())
    }
}

/// The subquery that an expression has.
fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::SetComparison(compared) => Some(&compared.subquery),
        _ => None,
    }
}

/// Whether there is an aggregation in a plan.
fn aggregates(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| Ok(matches!(plan, LogicalPlan::Aggregate(_))))
}

/// Whether the column at this place of a plan is what a function of windows gives, as numbers of rows are.
fn is_of_window(plan: &LogicalPlan, place: usize) -> bool {
    match plan {
        LogicalPlan::Window(window) => match place.checked_sub(window.input.schema().fields().len()) {
            None => is_of_window(&window.input, place),
            Some(call) => window.window_expr.get(call).is_some_and(|call| match unaliased(call) {
                Expr::WindowFunction(function) => matches!(function.fun, WindowFunctionDefinition::WindowUDF(_)),
                _ => false,
            }),
        },
        LogicalPlan::Projection(projection) => {
            let column = projection.expr.get(place).and_then(|expr| unaliased(expr).try_as_col());
            let place = column.and_then(|column| projection.input.schema().index_of_column(column).ok());
            place.is_some_and(|place| is_of_window(&projection.input, place))
        }
        LogicalPlan::SubqueryAlias(alias) => is_of_window(&alias.input, place),
        LogicalPlan::Filter(filter) => is_of_window(&filter.input, place),
        LogicalPlan::Sort(sort) => is_of_window(&sort.input, place),
        _ => false,
    }
}

/// What an expression is beneath its names.
fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        expr => expr,
    }
}

/// Whether nothing is lost, and nothing is unequal to itself, in comparisons of a type.
fn is_exact(data_type: &DataType) -> bool {
    data_type.is_integer()
        || is_string(data_type)
        || matches!(data_type, DataType::Decimal128(_, _) | DataType::Date32 | DataType::Timestamp(_, None))
}

/// What an expression compares columns with, if it does nothing else.
fn comparisons(expr: &Expr) -> Vec<(&Column, &Expr)> {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right }) => {
            match (left.try_as_col(), right.try_as_col()) {
                (Some(column), _) => vec![(column, right.as_ref())],
                (_, Some(column)) => vec![(column, left.as_ref())],
                _ => Vec::new(),
            }
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            expr.try_as_col().map_or_else(Vec::new, |column| vec![(column, low.as_ref()), (column, high.as_ref())])
        }
        Expr::InList(InList { expr, list, .. }) => {
            let column = expr.try_as_col();
            column.map_or_else(Vec::new, |column| list.iter().map(|item| (column, item)).collect())
        }
        Expr::Like(like) if like.escape_char.is_none() => {
            like.expr.try_as_col().map_or_else(Vec::new, |column| vec![(column, like.pattern.as_ref())])
        }
        _ => Vec::new(),
    }
}

/// The number and the type of a parameter.
fn parameter_of(expr: &Expr) -> Option<(usize, DataType)> {
    let Expr::Placeholder(placeholder) = expr else { return None };
    let number = placeholder.id.strip_prefix('$')?.parse().ok()?;
    Some((number, placeholder.field.as_ref()?.data_type().clone()))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::functions_aggregate::sum::sum_udaf;
    use datafusion::functions_window::expr_fn::row_number;
    use datafusion::logical_expr::expr::{Placeholder, WindowFunction};
    use datafusion::logical_expr::{LogicalPlanBuilder, ident, lit};
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn numbers_of_rows_are_compared_with_constants() {
        let total = WindowFunction::new(WindowFunctionDefinition::AggregateUDF(sum_udaf()), vec![ident("column1")]);
        let of = |function: Expr, data_type: DataType, column: &str| {
            let field = Arc::new(Field::new("", data_type, true));
            let parameter = Expr::Placeholder(Placeholder::new_with_field("$1".into(), Some(field)));
            let values = LogicalPlanBuilder::values(vec![vec![lit(1_i64)]]).unwrap();
            let name = function.schema_name().to_string();
            let numbered = values.window(vec![function]).unwrap();
            let named = numbered.project(vec![ident("column1"), ident(name).alias("n")]).unwrap().alias("t").unwrap();
            let filtered = named.filter(ident(column).lt_eq(parameter)).unwrap().build().unwrap();
            parameters(&filtered, 1).unwrap()
        };
        // Numbers of rows are BIGINT here, and UInt64 in DataFusion.
        let signed = crate::mend::ranks::functions(&SessionContext::new().state()).remove(0);
        let signed = Expr::from(WindowFunction::new(WindowFunctionDefinition::WindowUDF(Arc::new(signed)), vec![]));
        assert_eq!(of(row_number(), DataType::Int64, "column1"), [Some(DataType::Int64)]);
        assert_eq!(of(row_number(), DataType::UInt64, "n"), [None]);
        assert_eq!(of(signed, DataType::Int64, "n"), [None]);
        assert_eq!(of(Expr::from(total), DataType::Int64, "n"), [Some(DataType::Int64)]);
    }

    #[test]
    fn numbers_keep_their_value_or_are_none() {
        let decimal = |text: &str| Constant::Number(text.into()).value(&DataType::Decimal128(6, 2), true);
        let unscaled = |text: &str| match decimal(text) {
            Some(ScalarValue::Decimal128(Some(value), 6, 2)) => Some(value),
            _ => None,
        };
        for (text, expected) in [
            ("1", Some(100)),
            ("-1.5", Some(-150)),
            ("-0.05", Some(-5)),
            ("0.0700", Some(7)),
            ("9999.99", Some(999_999)),
            ("10000", None),
            ("0.071", None),
        ] {
            assert_eq!(unscaled(text), expected, "{text}");
        }
        assert_eq!(Constant::Number("1.5".into()).value(&DataType::Decimal128(6, 2), false), None);
        let integer = |text: &str, to: &DataType| Constant::Number(text.into()).value(to, true);
        assert_eq!(integer("127", &DataType::Int8), Some(ScalarValue::Int8(Some(127))));
        assert_eq!(integer("128", &DataType::Int8), None);
        assert_eq!(integer("-1", &DataType::UInt64), None);
        assert_eq!(integer("1.0", &DataType::Int64), None);
        assert_eq!(integer("1", &DataType::Float64), None);
        assert_eq!(integer("1", &DataType::Utf8), None);
    }

    #[test]
    fn texts_are_strings_dates_or_none() {
        let date = |text: &str| Constant::Text(text.into()).value(&DataType::Date32, true);
        assert_eq!(date("1970-01-02"), Some(ScalarValue::Date32(Some(1))));
        for text in ["1970-02-30", "1970-1-2", "1970-01-02 ", "1970-01-02T00:00:00", ""] {
            assert_eq!(date(text), None, "{text}");
        }
        assert_eq!(Constant::Date(1).value(&DataType::Utf8, true), None);
        let time = |text: &str, unit| Constant::Text(text.into()).value(&DataType::Timestamp(unit, None), true);
        let second = Some(ScalarValue::TimestampSecond(Some(86_401), None));
        assert_eq!(time("1970-01-02 00:00:01", TimeUnit::Second), second);
        assert_eq!(time("1970-01-02 00:00:01.5", TimeUnit::Second), None);
        let time = Constant::Time(1_500_000).value(&DataType::Timestamp(TimeUnit::Microsecond, None), true);
        assert_eq!(time, Some(ScalarValue::TimestampMicrosecond(Some(1_500), None)));
        assert_eq!(Constant::Time(0).value(&DataType::Timestamp(TimeUnit::Second, Some("UTC".into())), true), None);
        assert_eq!(Constant::Text("1".into()).value(&DataType::Int64, true), None);
        let pattern = |text: &str| Constant::Pattern(text.into()).value(&DataType::Utf8View, true);
        assert_eq!(pattern("a%"), Some(ScalarValue::Utf8View(Some("a%".into()))));
        assert!(["%", "%%", "a", ""].iter().all(|text| pattern(text).is_none()));
    }
}
