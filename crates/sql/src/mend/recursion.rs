//! A recursive query has the types of its first term; a step of others is refused where a cast would lose something.
//!
//! DataFusion 55.2 casts the rows of each step to the types of the first term in silence: `SELECT 1 UNION ALL SELECT
//! x + 0.5` gives 1 for ever. As in PostgreSQL such a step is an error. Integers of any width are taken, since the cast
//! raises for what does not fit; so are types that the first term's is the common type with.
//!
//! The rule stands before all others, where the casts that the planner added are outermost. Those that a step writes
//! itself stand twice ([`crate::syntax`]), so that they are told from the planner's.
//!
//! The file goes once DataFusion refuses such steps.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Projection, RecursiveQuery};
use datafusion::optimizer::AnalyzerRule;

use super::conversion::is_text;
use crate::error::SqlError;
use crate::syntax::TableOfWith;
use crate::time_units::per_second;
use crate::walk::PlanWalk;
use crate::words::sql_name;

/// The rule.
#[derive(Debug)]
pub(super) struct TypesOfSteps;

impl AnalyzerRule for TypesOfSteps {
    fn name(&self) -> &str {
        "types_of_steps"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_nested(|plan| {
            if let LogicalPlan::RecursiveQuery(query) = plan {
                check(query)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(plan)
    }
}

fn check(query: &RecursiveQuery) -> Result<()> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = query.recursive_term.as_ref() else { return Ok(()) };
    for (expr, field) in expr.iter().zip(query.static_term.schema().fields()) {
        let Some(found) = cast_from(expr, input.schema()) else { continue };
        let declared = field.data_type();
        if is_lossless(&found, declared) {
            continue;
        }
        let name = TableOfWith::of(&query.name).map_or(query.name.as_str(), |table| table.name);
        let (column, first, step) = (field.name(), sql_name(declared), sql_name(&found));
        return Err(SqlError::Planning(format!(
            "column '{column}' of recursive query '{name}' is {first} in its first term and {step} in its recursive \
             one; write CAST(… AS {step}) in the first, or CAST(… AS {first}) in the other"
        ))
        .into());
    }
    Ok(())
}

/// The type that the planner casts a column of a step from; none where it casts nothing, or a text that is written.
fn cast_from(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    let Expr::Cast(Cast { expr, field }) = expr.clone().unalias() else { return None };
    let found = expr.get_type(schema).ok()?;
    let is_written = matches!(*expr, Expr::Literal(..)) && is_text(&found);
    (found != *field.data_type() && !is_written).then_some(found)
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
