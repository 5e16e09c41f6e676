//! Texts of timestamps and times of day are PostgreSQL's: `2024-01-01 10:00:00.5`, of instants `2024-01-01
//! 10:00:00+01`, and `10:00:00.5`.
//!
//! Arrow 59 writes `2024-01-01T10:00:00.500` and an offset with minutes or a Z, so that `ts::text LIKE '2024-01-01 %'`
//! finds nothing. The file goes once Arrow's casts write so.

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeZone, Timelike};
use datafusion::error::{DataFusionError, Result};

/// Whether values of a type are timestamps or times of day.
pub(crate) fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, _) | DataType::Time32(_) | DataType::Time64(_))
}

/// The texts of timestamps or times of day, as a type of texts.
pub(crate) fn texts(times: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let (unit, zone) = match times.data_type() {
        DataType::Timestamp(unit, zone) => (unit, zone.as_deref().map(Tz::from_str).transpose()?),
        DataType::Time32(unit) | DataType::Time64(unit) => (unit, None),
        _ => return Err(DataFusionError::Internal("the text of a time that is none".into())),
    };
    let is_of_day = !matches!(times.data_type(), DataType::Timestamp(_, _));
    let counts = cast(times, &DataType::Int64)?;
    let (mut texts, mut text) = (StringBuilder::new(), String::new());
    for count in counts.as_primitive::<Int64Type>() {
        let Some(count) = count else {
            texts.append_null();
            continue;
        };
        text.clear();
        let time = time_of(count, *unit)?;
        match zone {
            Some(zone) => {
                let offset = zone.offset_from_utc_datetime(&time).fix();
                write_time(&mut text, time + offset);
                write_offset(&mut text, offset.local_minus_utc());
            }
            None if is_of_day => write_time_of_day(&mut text, time),
            None => write_time(&mut text, time),
        }
        texts.append_value(&text);
    }
    Ok(cast(&(Arc::new(texts.finish()) as ArrayRef), target)?)
}

/// A time by its distance from 1970.
fn time_of(count: i64, unit: TimeUnit) -> Result<NaiveDateTime> {
    let parts: i64 = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let nanoseconds = count.rem_euclid(parts) * (1_000_000_000 / parts);
    let time = DateTime::from_timestamp(count.div_euclid(parts), nanoseconds as u32).map(|time| time.naive_utc());
    time.ok_or_else(|| DataFusionError::Execution("a time that no calendar has".into()))
}

/// Day and time of day.
fn write_time(text: &mut String, time: NaiveDateTime) {
    // No text is out of room.
    let _ = write!(text, "{:04}-{:02}-{:02} ", time.year(), time.month(), time.day());
    write_time_of_day(text, time);
}

/// The time of day, with the digits of a second that are not zero.
fn write_time_of_day(text: &mut String, time: NaiveDateTime) {
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let _ = write!(text, "{hour:02}:{minute:02}:{second:02}");
    if time.nanosecond() > 0 {
        let _ = write!(text, ".{:09}", time.nanosecond());
        text.truncate(text.trim_end_matches('0').len());
    }
}

/// Hours, with minutes and seconds where there are some.
fn write_offset(text: &mut String, seconds: i32) {
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    let _ = write!(text, "{sign}{:02}", seconds / 3_600);
    if seconds % 3_600 > 0 {
        let _ = write!(text, ":{:02}", seconds / 60 % 60);
    }
    if seconds % 60 > 0 {
        let _ = write!(text, ":{:02}", seconds % 60);
    }
}
