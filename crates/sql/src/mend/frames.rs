//! Windows ordered by what DataFusion has no RANGE frames over: times, binary values, intervals; frames of ROWS and
//! GROUPS whose offsets overflow when a row's number is added to them.
//!
//! DataFusion 55.2 gives a window with ORDER BY a RANGE frame and refuses one over such a key, that of `rank()` among
//! them. A frame whose bounds are UNBOUNDED or CURRENT ROW is the same in groups of equal keys.
//!
//! The file goes once DataFusion looks at the type of a key only where a bound is an offset.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
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
