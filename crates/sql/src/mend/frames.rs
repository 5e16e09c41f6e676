//! Windows ordered by what DataFusion has no RANGE frames over: times, binary values, intervals; frames of ROWS and
//! GROUPS whose offsets overflow when a row's number is added to them; frames without a row.
//!
//! DataFusion 55.2 gives a window with ORDER BY a RANGE frame and refuses one over such a key, that of `rank()` among
//! them. A frame whose bounds are UNBOUNDED or CURRENT ROW is the same in groups of equal keys.
//!
//! A frame that begins behind its end, as `ROWS BETWEEN 3 FOLLOWING AND 2 FOLLOWING`, has no row, as in PostgreSQL and
//! DuckDB; DataFusion's planner for the CPU refuses it.
//!
//! The file goes once DataFusion looks at the type of a key only where a bound is an offset, and has empty frames.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
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

/// The plan with a frame of one row, of which nothing is taken, in the place of each frame without a row.
pub(super) fn without_empty(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_empty = |expr: &Expr| match expr {
        Expr::WindowFunction(function) => has_no_row(&function.params.window_frame),
        _ => false,
    };
    each_node(plan, |plan| {
        each_expression(plan, is_empty, |expr, schema| {
            expr.transform_up(|mut expr| {
                let Expr::WindowFunction(function) = &mut expr else { return Ok(Transformed::no(expr)) };
                let params = &mut function.params;
                if !has_no_row(&params.window_frame) {
                    return Ok(Transformed::no(expr));
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

/// Whether a frame begins behind its end, on the same side of the current row.
fn has_no_row(frame: &WindowFrame) -> bool {
    use WindowFrameBound::{Following, Preceding};
    match (&frame.start_bound, &frame.end_bound) {
        (Preceding(start), Preceding(end)) => !start.is_null() && !end.is_null() && start < end,
        (Following(start), Following(end)) => !start.is_null() && !end.is_null() && start > end,
        _ => false,
    }
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
