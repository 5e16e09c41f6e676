//! Dates and times that no calendar has.
//!
//! Arrow 59 shows what is past the years of its calendar, or past the hours of a day, as the text of an error in the
//! place of the value. Such values come from files, and are an error of what would write them as text.
//!
//! The file goes once Arrow's writers of text refuse them.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampSecondType,
};
use arrow::temporal_conversions::{
    date32_to_datetime, date64_to_datetime, time32ms_to_time, time32s_to_time, time64ns_to_time, time64us_to_time,
    timestamp_ms_to_datetime, timestamp_s_to_datetime, timestamp_us_to_datetime,
};

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
