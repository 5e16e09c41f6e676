//! Windows ordered by what DataFusion has no RANGE frames over: times, binary values, intervals; frames of ROWS and
//! GROUPS whose offsets overflow when a row's number is added to them; frames without a row.
//!
//! DataFusion 55.2 gives a window with ORDER BY a RANGE frame and refuses one over such a key, that of `rank()` among
//! them. A frame whose bounds are UNBOUNDED or CURRENT ROW is the same in groups of equal keys.
//!
//! A frame that begins behind its end, as `ROWS BETWEEN 3 FOLLOWING AND 2 FOLLOWING`, has no row, as in PostgreSQL and
//! DuckDB; DataFusion's planner for the CPU refuses it. The planner compares intervals by their months, then by their
//! days, then by their nanoseconds, and so refuses `BETWEEN '36 hours' PRECEDING AND '1 day' PRECEDING`, which has
//! rows: it takes an end of `'-1 day' FOLLOWING`.
//!
//! The file goes once DataFusion looks at the type of a key only where a bound is an offset, and has empty frames.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::{each_expression, each_node};
use crate::walk::{PlanWalk, Walk};

/// The rule, before types are coerced.
#[derive(Debug)]
pub(super) struct FramesOfGroups;

impl AnalyzerRule for FramesOfGroups {
    fn name(&self) -> &str {
        "frames_of_groups"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_window = |expr: &Expr| matches!(expr, Expr::WindowFunction(_));
        let mended = plan.transform_up_nested(|plan| {
            each_expression(plan, is_window, |expr, schema| expr.transform_up(|expr| Ok(in_groups(expr, schema))))
        })?;
        Ok(mended.data)
    }
}

/// The plan with a frame of one row, of which nothing is taken, in the place of each frame without a row, and with
/// bounds that the planner takes in the place of those that it compares wrongly.
///
/// # Errors
/// A frame that has rows for some keys alone, since months have no one length.
pub(super) fn without_empty(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_one_sided =
        |expr: &Expr| matches!(expr, Expr::WindowFunction(it) if far_and_near(&it.params.window_frame).is_some());
    each_node(plan, |plan| {
        each_expression(plan, is_one_sided, |expr, schema| {
            expr.transform_up(|mut expr| {
                let Expr::WindowFunction(function) = &mut expr else { return Ok(Transformed::no(expr)) };
                let params = &mut function.params;
                let Some((far, near)) = far_and_near(&params.window_frame) else { return Ok(Transformed::no(expr)) };
                let key = params.order_by.first().map(|key| key.expr.get_type(schema)).transpose()?;
                let is_zoned = matches!(key, Some(DataType::Timestamp(_, Some(_))));
                let is_empty = is_shorter(far, near, is_zoned).ok_or_else(|| {
                    let text = "a frame between months and days, or days and hours, of which either may be longer";
                    DataFusionError::NotImplemented(text.into())
                })?;
                if !is_empty {
                    let is_refused = far < near;
                    if is_refused {
                        turn(&mut params.window_frame)?;
                    }
                    return Ok(Transformed::new_transformed(expr, is_refused));
                }
                let row = WindowFrameBound::CurrentRow;
                params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Rows, row.clone(), row);
                match (&function.fun, params.args.first_mut()) {
                    (WindowFunctionDefinition::AggregateUDF(_), _) => params.filter = Some(Box::new(lit(false))),
                    (WindowFunctionDefinition::WindowUDF(of), Some(value)) if OF_FRAMES.contains(&of.name()) => {
                        *value = Expr::Literal(ScalarValue::try_from(&value.get_type(schema)?)?, None);
                    }
                    _ => {}
                }
                Ok(Transformed::yes(expr))
            })
        })
    })
}

/// Window functions that look at their frame.
const OF_FRAMES: [&str; 3] = ["first_value", "last_value", "nth_value"];

/// The offsets of a frame whose bounds are on the same side of the current row; it has no row where the first one is
/// shorter.
fn far_and_near(frame: &WindowFrame) -> Option<(&ScalarValue, &ScalarValue)> {
    use WindowFrameBound::{Following, Preceding};
    let (far, near) = match (&frame.start_bound, &frame.end_bound) {
        (Preceding(start), Preceding(end)) => (start, end),
        (Following(start), Following(end)) => (end, start),
        _ => return None,
    };
    (!far.is_null() && !near.is_null()).then_some((far, near))
}

/// Whether an offset is shorter than another one; none where it is so from some keys alone.
fn is_shorter(one: &ScalarValue, other: &ScalarValue, is_zoned: bool) -> Option<bool> {
    const DAY: i128 = 86_400_000_000_000;
    let (ScalarValue::IntervalMonthDayNano(Some(one)), ScalarValue::IntervalMonthDayNano(Some(other))) = (one, other)
    else {
        return Some(one < other);
    };
    let [months, days, rest] = [
        i128::from(one.months) - i128::from(other.months),
        i128::from(one.days) - i128::from(other.days),
        i128::from(one.nanoseconds) - i128::from(other.nanoseconds),
    ];
    let parts = [months, days, rest];
    if parts.iter().all(|part| *part >= 0) {
        return Some(false);
    }
    if parts.iter().all(|part| *part <= 0) {
        return Some(true);
    }
    // A month is 28 to 31 days, and 4,800 months are 146,097 days; a zone may leave out a day or have one twice.
    let count = months.abs();
    let mean = count * 146_097 / 4_800;
    let shortest = (count * 28).max(mean - 5) * DAY;
    let longest = (count * 31).min(mean + 5) * DAY;
    let (least, most) = if months < 0 { (-longest, -shortest) } else { (shortest, longest) };
    let slack = if is_zoned { DAY } else { 0 };
    let rest = days * DAY + rest;
    match (least + rest - slack, most + rest + slack) {
        (least, _) if least >= 0 => Some(false),
        (_, most) if most < 0 => Some(true),
        _ => None,
    }
}

/// Has the bound that is nearer to the current row say the same by an offset to the other side.
fn turn(frame: &mut WindowFrame) -> Result<()> {
    use WindowFrameBound::{Following, Preceding};
    match (&frame.start_bound, &frame.end_bound) {
        (Preceding(_), Preceding(end)) => frame.end_bound = Following(end.arithmetic_negate()?),
        (Following(start), _) => frame.start_bound = Preceding(start.arithmetic_negate()?),
        _ => {}
    }
    Ok(())
}

fn in_groups(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::WindowFunction(mut function) = expr else { return Transformed::no(expr) };
    let frame = &function.params.window_frame;
    let is_plain = |bound: &WindowFrameBound| bound.is_unbounded() || *bound == WindowFrameBound::CurrentRow;
    let key = function.params.order_by.first().and_then(|key| key.expr.get_type(schema).ok());
    let is_shortened = frame.units != WindowFrameUnits::Range && {
        let frame = &mut function.params.window_frame;
        shorten(&mut frame.start_bound) | shorten(&mut frame.end_bound)
    };
    let frame = &function.params.window_frame;
    let changes = frame.units == WindowFrameUnits::Range
        && is_plain(&frame.start_bound)
        && is_plain(&frame.end_bound)
        && key.is_some_and(|key| !has_ranges(&key));
    if changes {
        let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
        function.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    }
    Transformed::new_transformed(Expr::WindowFunction(function), changes || is_shortened)
}

/// Takes an offset that is longer than any partition for the longest one to which a row's number can be added.
fn shorten(bound: &mut WindowFrameBound) -> bool {
    const MOST: u64 = 1 << 62;
    match bound {
        WindowFrameBound::Preceding(ScalarValue::UInt64(Some(offset)))
        | WindowFrameBound::Following(ScalarValue::UInt64(Some(offset)))
            if *offset > MOST =>
        {
            *offset = MOST;
            true
        }
        _ => false,
    }
}

/// Whether DataFusion takes a RANGE frame over keys of a type.
fn has_ranges(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => has_ranges(values),
        DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 | DataType::Boolean | DataType::Null => true,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => true,
        other => other.is_numeric() || other.is_string(),
    }
}
