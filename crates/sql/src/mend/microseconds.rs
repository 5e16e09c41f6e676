//! Functions that give timestamps of nanoseconds in DataFusion 55.2, which end in 2262, and of microseconds here:
//! `now`, `to_timestamp` and `date_bin`; and the type of series of times ([`super::time_series`]).
//!
//! Series of nanoseconds keep them. A session without a zone has DataFusion's functions as they are.
//!
//! The file goes once DataFusion's timestamps have microseconds.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type, Int64Type, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Expr};

use super::conversion::is_text;
use super::each_value;
use crate::time_units::per_second;

/// The type with microseconds in place of nanoseconds.
fn data_type(of: &DataType) -> DataType {
    match of {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::List(item) => DataType::List(field(item.clone())),
        other => other.clone(),
    }
}

/// The field with microseconds in place of nanoseconds.
pub(super) fn field(of: FieldRef) -> FieldRef {
    Arc::new(of.as_ref().clone().with_data_type(data_type(of.data_type())))
}

/// The constant in microseconds; a time of day keeps its type.
pub(super) fn literal(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::TimestampNanosecond(ticks, zone), metadata) => {
            let ticks = ticks.map(|ticks| ticks.div_euclid(1_000));
            Expr::Literal(ScalarValue::TimestampMicrosecond(ticks, zone), metadata)
        }
        Expr::Literal(ScalarValue::Time64Nanosecond(ticks), metadata) => {
            Expr::Literal(ScalarValue::Time64Nanosecond(ticks.map(|ticks| ticks - ticks.rem_euclid(1_000))), metadata)
        }
        other => other,
    }
}

/// The microseconds since 1970 of numbers of seconds, rounded.
///
/// # Errors
/// A number that 64 bits of microseconds do not hold.
pub(super) fn of_seconds(seconds: &ColumnarValue) -> Result<ColumnarValue> {
    const MICROS: i64 = per_second(TimeUnit::Microsecond);
    each_value(seconds, |seconds| {
        let refused = |seconds: &dyn std::fmt::Display| {
            DataFusionError::Execution(format!("{seconds} seconds since 1970 are past all timestamps"))
        };
        let micros: Int64Array = match seconds.data_type() {
            whole if whole.is_integer() => {
                let seconds = cast_strictly(seconds, &DataType::Int64)?;
                let of = |seconds: i64| seconds.checked_mul(MICROS).ok_or_else(|| refused(&seconds));
                seconds.as_primitive::<Int64Type>().try_unary(of)?
            }
            float if float.is_floating() => {
                let seconds = cast(seconds, &DataType::Float64)?;
                seconds.as_primitive::<Float64Type>().try_unary(|seconds| {
                    let micros = (seconds * MICROS as f64).round();
                    // 2^63 is the first that an i64 does not hold.
                    let is_held = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
                    if is_held { Ok(micros as i64) } else { Err(refused(&seconds)) }
                })?
            }
            _ => {
                let micros = cast_strictly(seconds, &DataType::Decimal128(38, 6))?;
                let of = |micros: i128| i64::try_from(micros).map_err(|_| refused(&(micros / i128::from(MICROS))));
                micros.as_primitive::<Decimal128Type>().try_unary(of)?
            }
        };
        Ok(Arc::new(micros))
    })
}

/// The types of arguments of `date_bin`: a time keeps its unit, dates and texts have microseconds, and an origin has
/// nanoseconds.
pub(super) fn coerced_of_bins(from: &[DataType]) -> Result<Vec<DataType>> {
    let refused = |reason: String| Err(DataFusionError::Plan(format!("date_bin takes {reason}")));
    let ([stride, time], origin) = match from {
        [stride, time, origin @ ..] if origin.len() < 2 => ([stride, time], origin.first()),
        _ => return refused("an interval, a time and an origin".into()),
    };
    let stride = match stride {
        DataType::Interval(_) => stride.clone(),
        text if is_text(text) || text.is_null() => DataType::Interval(IntervalUnit::MonthDayNano),
        other => return refused(format!("an interval, not {other}")),
    };
    let time = match time {
        DataType::Timestamp(_, _) | DataType::Time32(_) | DataType::Time64(_) => time.clone(),
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        text if is_text(text) || text.is_null() => DataType::Timestamp(TimeUnit::Microsecond, None),
        other => return refused(format!("a date, a timestamp or a time, not {other}")),
    };
    let origin = origin.map(|origin| match (origin, &time) {
        (DataType::Timestamp(_, Some(own)), DataType::Timestamp(_, Some(_))) => {
            DataType::Timestamp(TimeUnit::Nanosecond, Some(own.clone()))
        }
        (_, DataType::Timestamp(_, zone)) => DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
        (own, _) => own.clone(),
    });
    Ok([stride, time].into_iter().chain(origin).collect())
}

/// Refuses bins of times that nanoseconds do not hold, which are NULL in DataFusion: more rows than have a NULL among
/// the operands, width, time and start.
pub(super) fn check_bins(operands: &[ColumnarValue], bins: &ColumnarValue, rows: usize) -> Result<()> {
    let nulls = |values: &ColumnarValue| match values {
        ColumnarValue::Array(values) => values.null_count(),
        ColumnarValue::Scalar(value) if value.is_null() => rows,
        ColumnarValue::Scalar(_) => 0,
    };
    match operands.iter().map(nulls).sum::<usize>() < nulls(bins) {
        true => Err(DataFusionError::Execution("date_bin of a time that nanoseconds since 1970 do not hold".into())),
        false => Ok(()),
    }
}

/// A cast that raises for what the type does not hold.
fn cast_strictly(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let strict = arrow::compute::CastOptions { safe: false, ..Default::default() };
    Ok(arrow::compute::cast_with_options(values, to, &strict)?)
}
