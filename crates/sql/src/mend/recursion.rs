//! A recursive query has the types of its first term; a step of others is refused where a cast would lose something.
//!
//! DataFusion 55.2 casts the rows of each step to the types of the first term in silence: `SELECT 1 UNION ALL SELECT
//! x + 0.5` gives 1 for ever. As in PostgreSQL such a step is an error. Integers of any width are taken, since the cast
//! raises for what does not fit; so are types that the first term's is the common type with. A CASE, whose type is that
//! of its first branch when the planner looks, is cast here.
//!
//! The rule stands before all others, where the casts that the planner added are outermost. Those that a step writes
//! itself stand twice ([`crate::syntax`]), so that they are told from the planner's.
//!
//! A parameter of another type than the one that the statement was planned with would leave the step's table as it was
//! planned: such a query is refused, too.
//!
//! The file goes once DataFusion refuses such steps.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Projection, RecursiveQuery};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use super::conversion::is_text;
use crate::error::SqlError;
use crate::syntax::TableOfWith;
use crate::time_units::per_second;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

/// The rule.
#[derive(Debug)]
pub(super) struct TypesOfSteps;

impl AnalyzerRule for TypesOfSteps {
    fn name(&self) -> &str {
        "types_of_steps"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let settled = plan.transform_up_nested(|plan| match plan {
            LogicalPlan::RecursiveQuery(query) => settled(query),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(settled.data)
    }
}

/// A query whose step has the types of its first term.
fn settled(mut query: RecursiveQuery) -> Result<Transformed<LogicalPlan>> {
    check_table(&query)?;
    let LogicalPlan::Projection(Projection { expr, input, .. }) = query.recursive_term.as_ref() else {
        return Ok(Transformed::no(LogicalPlan::RecursiveQuery(query)));
    };
    let (mut items, mut changed) = (expr.clone(), false);
    for (item, field) in items.iter_mut().zip(query.static_term.schema().fields()) {
        let declared = field.data_type();
        let Some((found, is_cast)) = found_type(item, declared, input.schema()) else { continue };
        if !is_lossless(&found, declared) {
            let name = TableOfWith::of(&query.name).map_or(query.name.as_str(), |table| table.name);
            let (column, first, step) = (field.name(), sql_name(declared), sql_name(&found));
            return Err(SqlError::Planning(format!(
                "column '{column}' of recursive query '{name}' is {first} in its first term and {step} in its \
                 recursive one; write CAST(… AS {step}) in the first, or CAST(… AS {first}) in the other"
            ))
            .into());
        }
        if !is_cast {
            let name = item.schema_name().to_string();
            let value = Box::new(std::mem::take(item).unalias());
            *item = Expr::Cast(Cast::new(value, declared.clone())).alias(name);
            changed = true;
        }
    }
    if changed {
        query.recursive_term = Arc::new(LogicalPlan::Projection(Projection::try_new(items, input.clone())?));
    }
    Ok(Transformed::new_transformed(LogicalPlan::RecursiveQuery(query), changed))
}

/// Refuses a query whose step reads its table with other types than the first term has.
fn check_table(query: &RecursiveQuery) -> Result<()> {
    let (first, mut found) = (query.static_term.schema(), None);
    query.recursive_term.apply_nested(|plan| {
        if let LogicalPlan::TableScan(scan) = plan
            && let Ok(provider) = source_as_provider(&scan.source)
            && let Some(table) = provider.downcast_ref::<CteWorkTable>().filter(|table| table.name() == query.name)
        {
            let schema = table.schema();
            let mut pairs = schema.fields().iter().zip(first.fields());
            let other = pairs.find(|(read, field)| read.data_type() != field.data_type());
            found = other.map(|(read, field)| (read.clone(), field.clone()));
        }
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    let Some((read, field)) = found else { return Ok(()) };
    let name = TableOfWith::of(&query.name).map_or(query.name.as_str(), |table| table.name);
    let (column, planned, given) = (field.name(), sql_name(read.data_type()), sql_name(field.data_type()));
    Err(SqlError::Planning(format!(
        "column '{column}' of recursive query '{name}' was planned as {planned}, and its parameter makes it {given}; \
         declare the types of parameters, PREPARE name(type, …) AS, or write CAST($1 AS {given})"
    ))
    .into())
}

/// The type of an item of a step that has another one than the first term, once types are coerced, and whether the
/// planner casts it; none for a text that is written.
fn found_type(item: &Expr, declared: &DataType, schema: &DFSchema) -> Option<(DataType, bool)> {
    let (value, is_cast) = match item.clone().unalias() {
        Expr::Cast(Cast { expr, field }) if field.data_type() == declared => (*expr, true),
        other => (other, false),
    };
    let coerced = value.clone().rewritten_up(&mut TypeCoercionRewriter::new(schema)).map(|coerced| coerced.data);
    let found = coerced.as_ref().unwrap_or(&value).get_type(schema).ok()?;
    let is_written = is_cast && matches!(value, Expr::Literal(..)) && is_text(&found);
    (found != *declared && !is_written).then_some((found, is_cast))
}

/// Whether values of a type are values of another one, or raise.
fn is_lossless(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Date32, Date64, Dictionary, FixedSizeList, Float16, Float32, Float64, LargeList, List, Null, Struct, Time32,
        Time64, Timestamp,
    };
    let scale = |data_type: &DataType| match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        other => other.is_integer().then_some(0),
    };
    match (from, to) {
        _ if from == to || *from == Null => true,
        (Dictionary(_, from), to) => is_lossless(from, to),
        (from, Dictionary(_, to)) => is_lossless(from, to),
        _ if is_text(from) && is_text(to) => true,
        // Of integers and decimals what lacks digits before the point raises.
        _ if scale(from).is_some() && scale(to).is_some() => scale(from) <= scale(to),
        (from, Float16 | Float32 | Float64) if scale(from).is_some() => true,
        (Float16, Float32 | Float64) | (Float32, Float64) | (Date32 | Date64, Timestamp(..)) => true,
        (Date32, Date64) | (Date64, Date32) => true,
        (Timestamp(one, None), Timestamp(other, _)) => per_second(*one) <= per_second(*other),
        (Timestamp(one, Some(_)), Timestamp(other, Some(_))) => per_second(*one) <= per_second(*other),
        (Time32(one) | Time64(one), Time32(other) | Time64(other)) => per_second(*one) <= per_second(*other),
        (List(from) | LargeList(from) | FixedSizeList(from, _), List(to) | LargeList(to) | FixedSizeList(to, _)) => {
            is_lossless(from.data_type(), to.data_type())
        }
        (Struct(from), Struct(to)) if from.len() == to.len() => {
            from.iter().zip(to).all(|(from, to)| is_lossless(from.data_type(), to.data_type()))
        }
        _ => false,
    }
}
