//! Lengths of intervals and durations, by which intervals are equal: a month is 30 days and a day 24 hours, as in
//! PostgreSQL.
//!
//! The longest interval has 25 digits of nanoseconds, so that lengths are decimals of 38 digits and none behind the
//! point.

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, TimeUnit,
};
use datafusion::error::{DataFusionError, Result};

pub(crate) const DAY_NANOSECONDS: i128 = 86_400_000_000_000;
const MONTH_DAYS: i128 = 30;
/// The type of lengths.
pub(crate) const LENGTH: DataType = DataType::Decimal128(38, 0);

/// The lengths of intervals or durations.
pub(crate) fn lengths(spans: &ArrayRef) -> Result<Decimal128Array> {
    let of_seconds = |per_tick: i128| move |ticks: i64| i128::from(ticks) * per_tick;
    let lengths: Decimal128Array = match spans.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            let of = |months: i32| i128::from(months) * MONTH_DAYS * DAY_NANOSECONDS;
            spans.as_primitive::<IntervalYearMonthType>().unary(of)
        }
        DataType::Interval(IntervalUnit::DayTime) => spans
            .as_primitive::<IntervalDayTimeType>()
            .unary(|span| i128::from(span.days) * DAY_NANOSECONDS + i128::from(span.milliseconds) * 1_000_000),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            spans.as_primitive::<IntervalMonthDayNanoType>().unary(length_of)
        }
        DataType::Duration(TimeUnit::Second) => {
            spans.as_primitive::<DurationSecondType>().unary(of_seconds(1_000_000_000))
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            spans.as_primitive::<DurationMillisecondType>().unary(of_seconds(1_000_000))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            spans.as_primitive::<DurationMicrosecondType>().unary(of_seconds(1_000))
        }
        DataType::Duration(TimeUnit::Nanosecond) => spans.as_primitive::<DurationNanosecondType>().unary(of_seconds(1)),
        DataType::Null => return Ok(cast(spans, &LENGTH)?.as_primitive::<Decimal128Type>().clone()),
        other => return Err(DataFusionError::Internal(format!("the length of a {other}"))),
    };
    Ok(lengths.with_data_type(LENGTH))
}

pub(crate) fn length_of(span: IntervalMonthDayNano) -> i128 {
    let days = i128::from(span.months) * MONTH_DAYS + i128::from(span.days);
    days * DAY_NANOSECONDS + i128::from(span.nanoseconds)
}
