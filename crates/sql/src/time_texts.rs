//! Texts of timestamps, times of day and intervals are PostgreSQL's: `2024-01-01 10:00:00.5`, of instants `2024-01-01
//! 10:00:00+01`, `10:00:00.5`, and `1 year 2 mons -3 days +04:05:06`.
//!
//! Texts that become intervals are read by the same rules.
//!
//! Arrow 59 writes `2024-01-01T10:00:00.500` and an offset with minutes or a Z, so that `ts::text LIKE '2024-01-01 %'`
//! finds nothing, and counts months of intervals, and hours, minutes and seconds in words. The file goes once Arrow's
//! casts write so.

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeZone, Timelike};
use datafusion::error::{DataFusionError, Result};

use crate::text_times::digits;
use crate::time_units::per_second;

/// Whether values of a type are timestamps, times of day, intervals or durations.
pub(crate) fn is_time(data_type: &DataType) -> bool {
    use DataType::{Time32, Time64, Timestamp};
    matches!(data_type, Timestamp(_, _) | Time32(_) | Time64(_)) || is_interval(data_type)
}

/// Whether values of a type are intervals, or durations, which are shown as such.
pub(crate) fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

/// The texts of timestamps, times of day, intervals or durations, as a type of texts.
pub(crate) fn texts(times: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    if let DataType::Duration(unit) = times.data_type() {
        let counts = cast(times, &DataType::Int64)?;
        let spans = counts.as_primitive::<Int64Type>().iter().map(|count| count.map(|count| in_days(count, *unit)));
        let written = spans.map(|span| span.transpose().map(|span| span.map(interval)));
        let written = written.collect::<Result<StringArray>>()?;
        return Ok(cast(&(Arc::new(written) as ArrayRef), target)?);
    }
    if matches!(times.data_type(), DataType::Interval(_)) {
        let parts = cast(times, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        let written = parts.as_primitive::<IntervalMonthDayNanoType>().iter().map(|parts| parts.map(interval));
        return Ok(cast(&(Arc::new(written.collect::<StringArray>()) as ArrayRef), target)?);
    }
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

/// A duration as days and time, both of one sign.
fn in_days(count: i64, unit: TimeUnit) -> Result<IntervalMonthDayNano> {
    let day = 86_400 * per_second(unit);
    let too_long = |_| DataFusionError::Execution(format!("overflow: an interval of {count} {unit:?}s"));
    let days = i32::try_from(count / day).map_err(too_long)?;
    Ok(IntervalMonthDayNano::new(0, days, count % day * (1_000_000_000 / per_second(unit))))
}

/// An interval by its parts that are not zero. Behind a negative part a positive one has its sign.
fn interval(parts: IntervalMonthDayNano) -> String {
    let (mut text, mut is_behind_negative) = (String::new(), false);
    for (count, unit) in [(parts.months / 12, "year"), (parts.months % 12, "mon"), (parts.days, "day")] {
        if count != 0 {
            let blank = if text.is_empty() { "" } else { " " };
            let sign = if is_behind_negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(text, "{blank}{sign}{count} {unit}{plural}");
            is_behind_negative = count < 0;
        }
    }
    if parts.nanoseconds != 0 || text.is_empty() {
        let (seconds, rest) = (parts.nanoseconds.unsigned_abs() / 1_000_000_000, parts.nanoseconds.unsigned_abs());
        let blank = if text.is_empty() { "" } else { " " };
        let sign = match parts.nanoseconds < 0 {
            true => "-",
            false if is_behind_negative => "+",
            false => "",
        };
        let _ = write!(text, "{blank}{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write_fraction(&mut text, (rest % 1_000_000_000) as u32);
    }
    text
}

/// A time by its distance from 1970.
fn time_of(count: i64, unit: TimeUnit) -> Result<NaiveDateTime> {
    let parts = per_second(unit);
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
    write_fraction(text, time.nanosecond());
}

/// The digits of a second that are not zero.
fn write_fraction(text: &mut String, nanoseconds: u32) {
    if nanoseconds > 0 {
        let _ = write!(text, ".{nanoseconds:09}");
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

/// Texts as intervals of a type, with times of clocks and signs before units; where texts `may_fail`, those that are
/// none are NULL.
pub(crate) fn intervals(texts: &ArrayRef, target: &DataType, may_fail: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let told = texts.as_string::<i32>().iter();
    let told = told.map(|text| text.map(|text| in_units(text).unwrap_or_else(|| text.to_string())));
    let options = CastOptions { safe: may_fail, ..CastOptions::default() };
    Ok(cast_with_options(&told.collect::<StringArray>(), target, &options)?)
}

/// The text of an interval as Arrow reads it, in units without signs of plus; none if it is one.
pub(crate) fn in_units(text: &str) -> Option<String> {
    let units = without_clock(text);
    let told = units.as_deref().unwrap_or(text);
    let bare = |word: &str| word.strip_prefix('+').unwrap_or(word).to_string();
    match told.contains('+') {
        true => Some(told.split_whitespace().map(bare).collect::<Vec<_>>().join(" ")),
        false => units,
    }
}

/// The text of an interval in units; none if it has no time of a clock.
fn without_clock(text: &str) -> Option<String> {
    let (before, time) = match text.trim().rsplit_once(char::is_whitespace) {
        Some((before, time)) => (before.trim_end(), time),
        None => ("", text.trim()),
    };
    let (sign, clock) = match time.strip_prefix('-') {
        Some(clock) => ("-", clock),
        None => ("", time.strip_prefix('+').unwrap_or(time)),
    };
    let (hours, rest) = digits(clock)?;
    let (minutes, rest) = digits(rest.strip_prefix(':')?)?;
    let seconds = match rest.strip_prefix(':') {
        Some(seconds) => {
            let (whole, fraction) = digits(seconds)?;
            let is_fraction = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
            match fraction.strip_prefix('.') {
                Some(fraction) if !is_fraction(fraction) => return None,
                None if !fraction.is_empty() => return None,
                _ if whole.len() > 2 => return None,
                _ => seconds,
            }
        }
        None if rest.is_empty() => "0",
        None => return None,
    };
    // A number alone is one of days.
    let last = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let days = if last.parse::<i64>().is_ok() { " days" } else { "" };
    let units = format!("{before}{days} {sign}{hours} hours {sign}{minutes} minutes {sign}{seconds} seconds");
    Some(units.trim_start().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_their_parts_with_signs() {
        let of = |months, days, nanoseconds| interval(IntervalMonthDayNano::new(months, days, nanoseconds));
        assert_eq!(of(14, 3, 14_706_789_000_000), "1 year 2 mons 3 days 04:05:06.789");
        assert_eq!(of(-14, 3, -1), "-1 years -2 mons +3 days -00:00:00.000000001");
        assert_eq!(of(0, -1, 3_600_000_000_000), "-1 days +01:00:00");
        assert_eq!(of(0, 0, 0), "00:00:00");
        assert_eq!(of(394, 0, 0), "32 years 10 mons");
        assert_eq!(of(0, 0, i64::MIN), "-2562047:47:16.854775808");
    }

    #[test]
    fn intervals_have_units() {
        for (text, expected) in [
            ("04:05:06", Some("04 hours 05 minutes 06 seconds")),
            ("-04:05", Some("-04 hours -05 minutes -0 seconds")),
            ("1 day 04:05:06.5", Some("1 day 04 hours 05 minutes 06.5 seconds")),
            ("1 2:03", Some("1 days 2 hours 03 minutes 0 seconds")),
            ("1 day", None),
            ("-1 days +01:00:00", Some("-1 days 01 hours 00 minutes 00 seconds")),
            ("-1 years +3 days", Some("-1 years 3 days")),
            ("1 day 4:5:6x", None),
            ("4:5:6.x", None),
        ] {
            assert_eq!(in_units(text).as_deref(), expected, "{text}");
        }
    }
}
