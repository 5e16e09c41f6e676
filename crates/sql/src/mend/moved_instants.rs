//! Instants that intervals of days or months move, on the calendar of a zone whose clocks change.
//!
//! DataFusion 55.2 raises where such a sum is a time that clocks show twice or never. Here it is an instant
//! ([`crate::zone_clocks`]), as in PostgreSQL. The bounds of a RANGE frame of days or months are found by such sums,
//! too, within DataFusion, which takes a frame to go to the end of its partition where one fails: a row whose frame
//! begins or ends at such a time raises.
//!
//! The file goes once DataFusion's sums have values there.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, WindowFrameBound, WindowFrameUnits,
};

use super::lengths::DAYS_AND_TIME;
use crate::error::SqlError;
use crate::zone_clocks::Clocks;

/// What a function does with an instant and an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Later,
    Earlier,
    /// Gives the instant, unless the interval moves it to a time that clocks show twice or never.
    Checked,
}

const NAMES: [(&str, Kind); 3] = [
    ("warpcube_later_instant", Kind::Later),
    ("warpcube_earlier_instant", Kind::Earlier),
    ("warpcube_instant_of_frame", Kind::Checked),
];

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    NAMES.map(|(name, kind)| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(OfInstants { name, kind, signature }))
    })
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

/// An instant that an interval moves on the calendar of its own zone.
pub(super) fn moved(instant: Expr, op: Operator, interval: Expr) -> Expr {
    let kind = if op == Operator::Minus { Kind::Earlier } else { Kind::Later };
    let interval = Expr::Cast(Cast::new(Box::new(interval), DAYS_AND_TIME));
    FUNCTIONS[kind as usize].call(vec![instant, interval])
}

/// Whether an interval is a constant of time alone, which is the same in all zones.
pub(super) fn is_time_alone(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(it)), _) => it.months == 0 && it.days == 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(it)), _) => it.days == 0,
        Expr::Cast(cast) => is_time_alone(&cast.expr),
        _ => false,
    }
}

/// The intervals by which the bounds of a RANGE frame lie before or behind its row, as far as they have days or months.
pub(super) fn offsets(window: &WindowFunction) -> Vec<IntervalMonthDayNano> {
    let params = &window.params;
    let (WindowFrameUnits::Range, [key]) = (params.window_frame.units, params.order_by.as_slice()) else {
        return Vec::new();
    };
    let offset = |bound: &WindowFrameBound| {
        let (offset, is_behind) = match bound {
            WindowFrameBound::Preceding(offset) => (offset, false),
            WindowFrameBound::Following(offset) => (offset, true),
            WindowFrameBound::CurrentRow => return None,
        };
        let ScalarValue::IntervalMonthDayNano(Some(by)) = offset else { return None };
        let by = if is_behind == key.asc { Some(*by) } else { negated(*by) };
        by.filter(|by| by.months != 0 || by.days != 0)
    };
    [&params.window_frame.start_bound, &params.window_frame.end_bound].into_iter().filter_map(offset).collect()
}

/// The key of a window whose frame has such bounds.
pub(super) fn checked(key: Expr, offsets: Vec<IntervalMonthDayNano>) -> Expr {
    let interval = |by| Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(by)), None);
    offsets.into_iter().fold(key, |key, by| FUNCTIONS[Kind::Checked as usize].call(vec![key, interval(by)]))
}

/// Whether a key is that of such a window.
pub(super) fn is_checked(key: &Expr) -> bool {
    let is_it = |call: &OfInstants| call.kind == Kind::Checked;
    matches!(key, Expr::ScalarFunction(call) if call.func.inner().downcast_ref::<OfInstants>().is_some_and(is_it))
}

fn negated(by: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = by;
    Some(IntervalMonthDayNano::new(months.checked_neg()?, days.checked_neg()?, nanoseconds.checked_neg()?))
}

/// A function of this file; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfInstants {
    name: &'static str,
    kind: Kind,
    signature: Signature,
}

impl OfInstants {
    fn of_values(&self, instants: &ArrayRef, intervals: &ArrayRef) -> Result<ArrayRef> {
        let data_type = instants.data_type();
        let clocks = Clocks::of(data_type)?
            .ok_or_else(|| DataFusionError::Internal(format!("{} of a {data_type}", self.name)))?;
        let ticks = cast(instants, &DataType::Int64)?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let overflow = || DataFusionError::Execution("overflow: an interval moves an instant past the calendar".into());
        let of = |(instant, by)| match self.kind {
            Kind::Later => clocks.moved(instant, by).ok_or_else(overflow),
            Kind::Earlier => negated(by).and_then(|by| clocks.moved(instant, by)).ok_or_else(overflow),
            Kind::Checked if clocks.is_change(instant, by) => {
                let text = "a RANGE frame of days or months that begins or ends at a time which clocks show twice or \
                            never; order by the timestamp that clocks show, t::TIMESTAMP";
                Err(SqlError::Unsupported(text.into()).into())
            }
            Kind::Checked => Ok(instant),
        };
        let pairs = ticks.as_primitive::<Int64Type>().iter().zip(intervals);
        let values: Int64Array =
            pairs.map(|(instant, by)| instant.zip(by).map(of).transpose()).collect::<Result<_>>()?;
        Ok(cast(&(Arc::new(values) as ArrayRef), data_type)?)
    }
}

impl ScalarUDFImpl for OfInstants {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    /// As nullable as the sum: results are checked against the plan's schema.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name, args.arg_fields[0].data_type().clone(), nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_scalars = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let values = self.of_values(&arrays[0], &arrays[1])?;
        Ok(match are_scalars {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
            false => ColumnarValue::Array(values),
        })
    }
}
