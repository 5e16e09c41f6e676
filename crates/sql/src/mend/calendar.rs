//! Dates and times that no calendar has.
//!
//! Arrow 59 casts any number to a date, a time or a timestamp, and shows what is past the years of its calendar, or
//! past the hours of a day, as the text of an error in the place of the value. Here a cast of such a number raises, and
//! a TRY_CAST gives NULL. What comes from elsewhere, as from files, is an error of what would write it as text.
//!
//! The file goes once Arrow's casts of numbers check their range.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::compute::{CastOptions, cast_with_options, nullif};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampSecondType,
};
use arrow::temporal_conversions::{
    date32_to_datetime, date64_to_datetime, time32ms_to_time, time32s_to_time, time64ns_to_time, time64us_to_time,
    timestamp_ms_to_datetime, timestamp_s_to_datetime, timestamp_us_to_datetime,
};
use arrow::util::display::FormatOptions;
use datafusion::error::Result;

use crate::error::SqlError;
use crate::words::sql_name;

/// Whether a type of dates or times has values that no calendar has. Nanoseconds in 64 bits end in 2262.
pub(super) fn has_end(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    match data_type {
        Timestamp(unit, _) => *unit != TimeUnit::Nanosecond,
        Date32 | Date64 | Time32(_) | Time64(_) => true,
        _ => false,
    }
}

/// Numbers as dates or times; those that no calendar has become NULL if they may fail, else raise.
pub(super) fn read(numbers: &ArrayRef, target: &DataType, may_fail: bool) -> Result<ArrayRef> {
    let options = CastOptions { safe: may_fail, format_options: FormatOptions::default() };
    let values = cast_with_options(numbers, target, &options)?;
    let Some(beyond) = beyond(&values).filter(|beyond| beyond.true_count() > 0) else { return Ok(values) };
    if may_fail {
        return Ok(nullif(&values, &beyond)?);
    }
    let row = beyond.values().set_indices().next().unwrap_or_default();
    let number = arrow::util::display::array_value_to_string(numbers, row)?;
    Err(SqlError::Execution(format!("{number} is out of range for {}", sql_name(target))).into())
}

/// Which values of an array of dates or times no calendar has; none for an array that has them all.
pub(crate) fn beyond(array: &dyn Array) -> Option<BooleanArray> {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    Some(match array.data_type() {
        Date32 => without::<Date32Type, _>(array, date32_to_datetime),
        Date64 => without::<Date64Type, _>(array, date64_to_datetime),
        Time32(Second) => without::<Time32SecondType, _>(array, time32s_to_time),
        Time32(Millisecond) => without::<Time32MillisecondType, _>(array, time32ms_to_time),
        Time64(Microsecond) => without::<Time64MicrosecondType, _>(array, time64us_to_time),
        Time64(Nanosecond) => without::<Time64NanosecondType, _>(array, time64ns_to_time),
        Timestamp(Second, _) => without::<TimestampSecondType, _>(array, timestamp_s_to_datetime),
        Timestamp(Millisecond, _) => without::<TimestampMillisecondType, _>(array, timestamp_ms_to_datetime),
        Timestamp(Microsecond, _) => without::<TimestampMicrosecondType, _>(array, timestamp_us_to_datetime),
        _ => return None,
    })
}

fn without<T: ArrowPrimitiveType, V>(array: &dyn Array, value: impl Fn(T::Native) -> Option<V>) -> BooleanArray {
    let values = array.as_primitive::<T>();
    let is_beyond = values.values().iter().enumerate().map(|(row, of)| values.is_valid(row) && value(*of).is_none());
    is_beyond.collect::<Vec<bool>>().into()
}
