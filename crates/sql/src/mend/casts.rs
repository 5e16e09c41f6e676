//! Casts read, round and raise as SQL's do, by one walk over a plan once types are coerced.
//!
//! Casts of single values are those of `single_casts`, and what is within lists and structs goes through them
//! (`nested_casts`). Functions that read texts do so as casts, and numbers are cast to no date.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::common_types::{is_on_calendar, of_number};
use super::conversion::{Conversion, is_text};
use super::in_zone::{in_zone, zone_of};
use super::{each_expression, nested_casts, single_casts, wall_texts};
use crate::error::SqlError;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct MendedCasts;

impl AnalyzerRule for MendedCasts {
    fn name(&self) -> &str {
        "mended_casts"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_cast = |expr: &Expr| match expr {
            Expr::Cast(_) | Expr::TryCast(_) => true,
            Expr::ScalarFunction(function) => is_read(function),
            _ => false,
        };
        let mended = plan.transform_up_nested(|plan| {
            // Each row of VALUES is computed.
            let raises_early = matches!(plan, LogicalPlan::Values(_));
            each_expression(plan, is_cast, |expr, schema| {
                expr.transform_up(|expr| {
                    let (expr, is_other) = time_of_text(expr, zone_of(config), schema);
                    let Some(cast) = Conversion::of(&expr, schema) else {
                        return Ok(Transformed::new_transformed(expr, is_other));
                    };
                    check(&cast)?;
                    match nested_casts::of_items(&cast, zone_of(config))
                        .or_else(|| single_casts::mended(&cast, raises_early))
                    {
                        Some(mended) => Ok(Transformed::yes(mended)),
                        None => Ok(Transformed::new_transformed(expr, is_other)),
                    }
                })
            })
        })?;
        Ok(mended.data)
    }
}

const TO_DATE: &str = "to_date";
const TO_TIMESTAMP: &str = "to_timestamp";

/// Functions that read a text as casts do.
const READ: [&str; 6] =
    [TO_DATE, TO_TIMESTAMP, "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos"];

/// `to_date(s)` and its like. They ask for seconds, the first moves a text to UTC before it takes the day, and the
/// others read nanoseconds, which end in 2262.
fn is_read(function: &ScalarFunction) -> bool {
    READ.contains(&function.name()) && function.args.len() == 1
}

/// `to_date` and `to_timestamp` of a text as the casts that they are, and another function over the text as Arrow reads
/// it; any other expression as it is, without the flag.
fn time_of_text(expr: Expr, zone: Option<&str>, schema: &DFSchema) -> (Expr, bool) {
    match expr {
        Expr::ScalarFunction(mut function)
            if is_read(&function) && function.args[0].get_type(schema).is_ok_and(|from| is_text(&from)) =>
        {
            if function.name() == TO_DATE {
                let text = Box::new(std::mem::take(&mut function.args[0]));
                return (Expr::Cast(Cast::new(text, DataType::Date32)), true);
            }
            if let Some(zone) = zone.filter(|_| function.name() == TO_TIMESTAMP) {
                return (in_zone(std::mem::take(&mut function.args[0]), zone, TimeUnit::Microsecond), true);
            }
            let text = wall_texts::instant(&function.args[0]);
            let is_other = text.is_some();
            text.into_iter().for_each(|text| function.args[0] = text);
            (Expr::ScalarFunction(function), is_other)
        }
        expr => (expr, false),
    }
}

/// Refuses a number as a date or a time, as PostgreSQL does: DataFusion 55.2 counts seconds of integers and nanoseconds
/// of others.
///
/// # Errors
/// [`SqlError::Planning`], with what makes one of a number.
fn check(cast: &Conversion) -> Result<()> {
    let mut types = vec![(&cast.from, cast.to)];
    while let Some((from, to)) = types.pop() {
        if from.is_numeric() && is_on_calendar(to) {
            let (number, kind, remedy) = (sql_name(from), sql_name(to), of_number(to));
            return Err(SqlError::Planning(format!("{number} cannot be cast to {kind}; write {remedy}")).into());
        }
        types.extend(nested_casts::pairs(from, to).into_iter().flatten());
    }
    Ok(())
}
