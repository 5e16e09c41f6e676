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

/// The text of an interval as Arrow reads it, in units without signs of plus; none if it is one. A number at the end
/// that has no unit is one of seconds.
pub(crate) fn in_units(text: &str) -> Option<String> {
    let units = in_units_told(text);
    let is_number = |word: &str| word.parse::<f64>().is_ok() && word.ends_with(|last: char| last.is_ascii_digit());
    match units.as_deref().unwrap_or(text).split_whitespace().next_back() {
        Some(last) if is_number(last) => Some(format!("{} seconds", units.as_deref().unwrap_or(text).trim())),
        _ => units,
    }
}

/// The same, where a number without a unit stays one.
fn in_units_told(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if let Some(units) = of_iso(trimmed) {
        return Some(units);
    }
    // PostgreSQL writes `@ 1 day ago` in one of its styles.
    let (rest, is_ago) = match trimmed.rsplit_once(char::is_whitespace) {
        Some((rest, last)) if last.eq_ignore_ascii_case("ago") => (rest, true),
        _ => (trimmed, false),
    };
    let rest = rest.strip_prefix('@').unwrap_or(rest).trim_start();
    let years = with_years(rest);
    let clock = without_clock(years.as_deref().unwrap_or(rest)).or(years);
    let told = clock.as_deref().unwrap_or(rest);
    if !is_ago && !told.contains('+') && rest.len() == trimmed.len() {
        return clock;
    }
    let word = |word: &str| {
        let bare = word.strip_prefix('+').unwrap_or(word);
        let is_number = bare.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '.'));
        match (is_ago && is_number, bare.strip_prefix('-')) {
            (false, _) => bare.to_string(),
            (true, Some(positive)) => positive.to_string(),
            (true, None) => format!("-{bare}"),
        }
    };
    Some(told.split_whitespace().map(word).collect::<Vec<_>>().join(" "))
}

/// The text of an interval by ISO 8601, `P1Y2M3DT4H5M6.5S` or `P0001-02-03T04:05:06`, in units; none of another one.
fn of_iso(text: &str) -> Option<String> {
    let (outer, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let parts = rest.strip_prefix(['P', 'p'])?;
    let (date, time) = parts.split_once(['T', 't']).unwrap_or((parts, ""));
    let mut units = Vec::new();
    let mut put = |number: &str, unit: &str| {
        let number = number.strip_prefix('+').unwrap_or(number);
        let (is_negative, digits) = match number.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, number),
        };
        let sign = if is_negative != outer { "-" } else { "" };
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.')
            && digits.bytes().any(|digit| digit.is_ascii_digit());
        units.push(format!("{sign}{digits} {unit}"));
        is_number.then_some(())
    };
    let listed = |part: &str, separator: char| {
        let numbers: Vec<String> = part.split(separator).map(String::from).collect();
        (numbers.len() == 3).then_some(numbers)
    };
    const OF_DATE: [(char, &str); 4] = [('Y', "years"), ('M', "mons"), ('W', "weeks"), ('D', "days")];
    const OF_TIME: [(char, &str); 3] = [('H', "hours"), ('M', "minutes"), ('S', "seconds")];
    for (part, known, separator) in [(date, OF_DATE.as_slice(), '-'), (time, OF_TIME.as_slice(), ':')] {
        if let Some(numbers) = listed(part, separator).filter(|_| !part.ends_with(char::is_alphabetic)) {
            let names = known.iter().filter(|(letter, _)| *letter != 'W');
            numbers.iter().zip(names).try_for_each(|(number, (_, unit))| put(number, unit))?;
            continue;
        }
        let mut rest = part;
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let letter = rest[end..].chars().next()?.to_ascii_uppercase();
            let (_, unit) = known.iter().find(|(known, _)| *known == letter)?;
            put(&rest[..end], unit)?;
            rest = &rest[end + 1..];
        }
    }
    (!units.is_empty()).then(|| units.join(" "))
}

/// The text of an interval whose first word is one of years and months, `1-2`; none of another one.
fn with_years(text: &str) -> Option<String> {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (sign, bare) = match first.strip_prefix('-') {
        Some(bare) => ("-", bare),
        None => ("", first.strip_prefix('+').unwrap_or(first)),
    };
    let (years, months) = digits(bare)?;
    let (months, behind) = digits(months.strip_prefix('-')?)?;
    behind.is_empty().then(|| format!("{sign}{years} years {sign}{months} mons {rest}").trim_end().to_string())
}

/// The text of an interval of several fields, `'1-2' YEAR TO MONTH`, in units; none of a text that is not of these.
pub(crate) fn of_fields(text: &str, first: &str, last: &str) -> Option<String> {
    const FIELDS: [&str; 4] = ["DAY", "HOUR", "MINUTE", "SECOND"];
    let text = text.trim();
    let (sign, bare) = match text.strip_prefix('-') {
        Some(bare) => ("-", bare),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let is_number = |number: &&str| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    if (first, last) == ("YEAR", "MONTH") {
        return match is_number(&bare) {
            true => Some(format!("{sign}{bare} mons")),
            false => with_years(text).filter(|_| !text.contains(char::is_whitespace)),
        };
    }
    let place = |field: &str| FIELDS.iter().position(|known| *known == field);
    let fields = FIELDS.get(place(first)?..=place(last)?)?;
    let numbers: Vec<&str> = bare.split([' ', ':']).collect();
    let fields = if numbers.len() == 1 { &fields[fields.len() - 1..] } else { fields };
    let (seconds, whole) = numbers.split_last()?;
    let is_last = is_number(seconds) || last == "SECOND" && seconds.parse::<f64>().is_ok();
    let is_list = numbers.len() == fields.len() && whole.iter().all(is_number) && is_last;
    let unit = |(number, field): (&&str, &&str)| format!("{sign}{number} {}s", field.to_lowercase());
    is_list.then(|| numbers.iter().zip(fields).map(unit).collect::<Vec<_>>().join(" "))
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
            ("1-2", Some("1 years 2 mons")),
            ("-1-2 3 4:05", Some("-1 years -2 mons 3 days 4 hours 05 minutes 0 seconds")),
            ("P1Y2M3W4DT5H6M7.5S", Some("1 years 2 mons 3 weeks 4 days 5 hours 6 minutes 7.5 seconds")),
            ("-P1DT-2H", Some("-1 days 2 hours")),
            ("P0001-02-03T04:05:06", Some("0001 years 02 mons 03 days 04 hours 05 minutes 06 seconds")),
            ("PT", None),
            ("P1X", None),
            ("@ 1 day -2 hours ago", Some("-1 day 2 hours")),
            ("1 day 02:00 ago", Some("-1 day -02 hours -00 minutes -0 seconds")),
        ] {
            assert_eq!(in_units(text).as_deref(), expected, "{text}");
        }
        for (text, first, last, expected) in [
            ("1-2", "YEAR", "MONTH", Some("1 years 2 mons")),
            ("-3", "YEAR", "MONTH", Some("-3 mons")),
            ("1 2", "DAY", "HOUR", Some("1 days 2 hours")),
            ("1 2:03:04.5", "DAY", "SECOND", Some("1 days 2 hours 03 minutes 04.5 seconds")),
            ("3:04", "MINUTE", "SECOND", Some("3 minutes 04 seconds")),
            ("3:04", "HOUR", "MINUTE", Some("3 hours 04 minutes")),
            ("3:04:05", "HOUR", "MINUTE", None),
            ("1 day", "HOUR", "MINUTE", None),
        ] {
            assert_eq!(of_fields(text, first, last).as_deref(), expected, "{text} {first} TO {last}");
        }
    }
}
