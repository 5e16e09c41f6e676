//! Casts read, round and raise as SQL's do, by one walk over a plan once types are coerced.
//!
//! Each change stands in a file of its own, with the defect that it mends: functions of `cast_functions` take the place
//! of a cast (`text_decimals`, `nested_casts`, `failing_casts`), the others that of its operand. A cast that a change
//! makes goes through those behind it.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::cast_functions::CastFunction;
use super::conversion::{Conversion, is_text};
use super::mixed::{is_on_calendar, of_number};
use super::{coarser_times, each_expression, failing_casts, narrow_casts, nested_casts, rounded_casts, wall_texts};
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

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
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
                    let (expr, is_other) = time_of_text(expr, schema);
                    let Some(cast) = Conversion::of(&expr, schema) else { return Ok(Transformed::no(expr)) };
                    check(&cast)?;
                    match mended(&cast, raises_early) {
                        Some(mended) => Ok(Transformed::yes(mended)),
                        None => Ok(Transformed::new_transformed(expr, is_other)),
                    }
                })
            })
        })?;
        Ok(mended.data)
    }
}

/// Functions that read a text as casts do.
const READ: [&str; 6] = [
    "to_date",
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_timestamp_nanos",
];

/// `to_date(s)` and its like. They ask for seconds, and the first moves a text to UTC before it takes the day.
fn is_read(function: &ScalarFunction) -> bool {
    READ.contains(&function.name()) && function.args.len() == 1
}

/// `to_date` of a text as the cast that it is, and another function over the text as Arrow reads it; any other
/// expression as it is, without the flag.
fn time_of_text(expr: Expr, schema: &DFSchema) -> (Expr, bool) {
    match expr {
        Expr::ScalarFunction(mut function)
            if is_read(&function) && function.args[0].get_type(schema).is_ok_and(|from| is_text(&from)) =>
        {
            if function.name() == READ[0] {
                let text = Box::new(std::mem::take(&mut function.args[0]));
                return (Expr::Cast(Cast::new(text, DataType::Date32)), true);
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

/// The expression in a cast's place, if there is another.
pub(super) fn mended(cast: &Conversion, raises_early: bool) -> Option<Expr> {
    if let Some(read) = CastFunction::of_text(cast).or_else(|| CastFunction::of_items(cast)) {
        return Some(read);
    }
    let schema = cast.schema;
    // No two of them take operands of the same types, but for texts whose zone goes before they are rounded.
    let bare = wall_texts::operand(cast).map(|bare| cast.of_operand(bare));
    let of_bare = bare.as_ref().and_then(|bare| Conversion::of(bare, schema));
    let inner = of_bare.as_ref().unwrap_or(cast);
    let made = |expr: Expr| match Conversion::of(&expr, schema).and_then(|cast| finished(&cast, raises_early)) {
        Some(finished) => finished,
        None => expr,
    };
    let operand = rounded_casts::operand(inner).map(made).or_else(|| coarser_times::operand(inner, made));
    let within = operand.map(|operand| cast.of_operand(operand)).or(bare);
    match &within {
        Some(within) => finished(&Conversion::of(within, schema)?, raises_early).or_else(|| Some(within.clone())),
        None => finished(cast, raises_early),
    }
}

/// The changes behind all that make casts.
fn finished(cast: &Conversion, raises_early: bool) -> Option<Expr> {
    let widened = narrow_casts::widened(cast).map(|operand| cast.of_operand(operand));
    widened.or_else(|| if raises_early { None } else { failing_casts::failing(cast) })
}
