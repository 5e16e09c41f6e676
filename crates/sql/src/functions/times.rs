//! Dates, times and intervals, in microseconds over all years of the calendar.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, TimestampMicrosecondType};
use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone};
use datafusion::error::Result;

use crate::calendar_units::unit_of;

use super::{Arguments, Date, Double, Interval, Long, Own, Text, Time, raised, time_of};

const DAY_MICROS: i64 = 86_400_000_000;
/// Days from year 1 to 1970.
const EPOCH_DAY: i32 = 719_163;
/// Days from 1970 to 2000.
const DAY_OF_2000: i64 = 10_957;
/// Days from the first one that Julian days count to 1970.
const EPOCH_JULIAN: f64 = 2_440_588.0;

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("age", &[Time, Time], Interval, |args| {
        intervals(args, |row| Ok(age(args.time(0, row)?, args.time(1, row)?)))
    }),
    Own::new("century", &[Time], Long, |args| of_year(args, |year| spans_of(year, 100))),
    Own::new("date_sub", &[Text, Time, Time], Long, date_sub),
    Own::new("decade", &[Time], Long, |args| of_year(args, |year| year / 10)),
    Own::new("epoch_ms", &[Time], Long, |args| args.integers(|row| Ok(Some(micros(args, row).div_euclid(1_000))))),
    Own::new("epoch_ms", &[Long], Time, |args| args.times(|row| of_ticks(args.longs(0).value(row), 1_000))),
    Own::new("epoch_ns", &[Time], Long, |args| {
        args.integers(|row| {
            let nanos = micros(args, row).checked_mul(1_000);
            nanos.map(Some).ok_or_else(|| raised("epoch_ns of a time that 64 bits of nanoseconds do not hold".into()))
        })
    }),
    Own::new("epoch_us", &[Time], Long, |args| args.integers(|row| Ok(Some(micros(args, row))))),
    Own::new("era", &[Time], Long, |args| of_year(args, |year| i64::from(year > 0))),
    Own::new("julian", &[Time], Double, |args| {
        args.floats(|row| {
            let micros = args.time(0, row)?.and_utc().timestamp_micros();
            Ok(Some(EPOCH_JULIAN + micros as f64 / DAY_MICROS as f64))
        })
    }),
    Own::new("justify_interval", &[Interval], Interval, |args| {
        intervals(args, |row| Ok(justified(args.interval(0, row))))
    }),
    Own::new("last_day", &[Date], Date, |args| {
        args.dates(|row| {
            let last = date_of(args.date(0, row)).and_then(|date| date.with_day(date.num_days_in_month().into()));
            let last = last.map(|date| date.num_days_from_ce() - EPOCH_DAY);
            last.map(Some).ok_or_else(|| raised("last_day of a date that no calendar has".into()))
        })
    }),
    Own::new("make_timestamp", &[Long], Time, |args| args.times(|row| of_ticks(args.longs(0).value(row), 1))),
    Own::new("make_timestamp", &[Long, Long, Long, Long, Long, Double], Time, make_timestamp),
    Own::new("millennium", &[Time], Long, |args| of_year(args, |year| spans_of(year, 1_000))),
    Own::new("nanosecond", &[Time], Long, |args| {
        args.integers(|row| Ok(Some(args.time(0, row)?.and_utc().timestamp_micros().rem_euclid(60_000_000) * 1_000)))
    }),
    Own::new("time_bucket", &[Interval, Date], Date, |args| {
        args.dates(|row| {
            let day = i64::from(args.date(1, row));
            let bucket = bucket(args.interval(0, row), day * DAY_MICROS, None)?;
            Ok(Some(bucket.div_euclid(DAY_MICROS) as i32))
        })
    }),
    Own::new("time_bucket", &[Interval, Time], Time, |args| buckets(args, |_, _| Ok((None, 0)))),
    Own::new("time_bucket", &[Interval, Time, Interval], Time, |args| {
        buckets(args, |row, _| match args.interval(2, row) {
            IntervalMonthDayNano { months: 0, days, nanoseconds } => {
                Ok((None, i64::from(days) * DAY_MICROS + nanoseconds / 1_000))
            }
            _ => Err(raised("time_bucket with an offset of months".into())),
        })
    }),
    Own::new("time_bucket", &[Interval, Time, Time], Time, |args| {
        buckets(args, |row, zoned| Ok((Some(args.micros(2, row, zoned)?), 0)))
    }),
    Own::new("timezone_hour", &[Time], Long, |args| args.integers(|row| Ok(Some(offset(args, row)? / 3_600)))),
    Own::new("timezone_minute", &[Time], Long, |args| args.integers(|row| Ok(Some(offset(args, row)? % 3_600 / 60)))),
    Own::new("timezone_offset", &[Time], Long, |args| args.integers(|row| Ok(Some(offset(args, row)?)))),
    Own::new("to_centuries", &[Long], Interval, |args| parts(args, 1_200, 0)),
    Own::new("to_days", &[Long], Interval, |args| parts(args, 0, 1)),
    Own::new("to_decades", &[Long], Interval, |args| parts(args, 120, 0)),
    Own::new("to_hours", &[Long], Interval, |args| {
        of_seconds(args, |row| Some(args.longs(0).value(row) as f64 * 3_600.0))
    }),
    Own::new("to_microseconds", &[Long], Interval, |args| {
        intervals(args, |row| {
            Ok(args.longs(0).value(row).checked_mul(1_000).map(|nanos| IntervalMonthDayNano::new(0, 0, nanos)))
        })
    }),
    Own::new("to_millennia", &[Long], Interval, |args| parts(args, 12_000, 0)),
    Own::new("to_milliseconds", &[Double], Interval, |args| {
        of_seconds(args, |row| Some(args.doubles(0).value(row) / 1e3))
    }),
    Own::new("to_minutes", &[Long], Interval, |args| {
        of_seconds(args, |row| Some(args.longs(0).value(row) as f64 * 60.0))
    }),
    Own::new("to_months", &[Long], Interval, |args| parts(args, 1, 0)),
    Own::new("to_quarters", &[Long], Interval, |args| parts(args, 3, 0)),
    Own::new("to_seconds", &[Double], Interval, |args| of_seconds(args, |row| Some(args.doubles(0).value(row)))),
    Own::new("to_weeks", &[Long], Interval, |args| parts(args, 0, 7)),
    Own::new("to_years", &[Long], Interval, |args| parts(args, 12, 0)),
    Own::new("yearweek", &[Time], Long, |args| {
        args.integers(|row| {
            let week = args.time(0, row)?.iso_week();
            Ok(Some(i64::from(week.year()) * 100 + i64::from(week.week())))
        })
    }),
];

/// The ticks of the first argument; those of an instant are of no zone.
fn micros(args: &Arguments, row: usize) -> i64 {
    args.columns[0].as_primitive::<TimestampMicrosecondType>().value(row)
}

fn date_of(day: i32) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(day.checked_add(EPOCH_DAY)?)
}

fn of_year(args: &Arguments, value: impl Fn(i64) -> i64) -> Result<ArrayRef> {
    args.integers(|row| Ok(Some(value(args.time(0, row)?.year().into()))))
}

/// The time at so many ticks, each of some microseconds.
fn of_ticks(ticks: i64, micros: i64) -> Result<Option<NaiveDateTime>> {
    let micros = ticks.checked_mul(micros).ok_or_else(|| raised("a time that no calendar has".into()))?;
    time_of(micros).map(Some)
}

fn make_timestamp(args: &Arguments) -> Result<ArrayRef> {
    args.times(|row| {
        let [year, month, day, hour, minute] = std::array::from_fn(|place| args.longs(place).value(row));
        let seconds = args.doubles(5).value(row);
        let time = || {
            let date = NaiveDate::from_ymd_opt(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?)?;
            let start = date.and_hms_opt(hour.try_into().ok()?, minute.try_into().ok()?, 0)?;
            let micros = (seconds * 1e6).round();
            let is_of_minute = (0.0..=60e6).contains(&micros);
            is_of_minute.then(|| start + TimeDelta::microseconds(micros as i64))
        };
        let refused = || raised(format!("no time: {year}-{month:02}-{day:02} {hour:02}:{minute:02}:{seconds}"));
        time().map(Some).ok_or_else(refused)
    })
}

fn intervals(args: &Arguments, value: impl Fn(usize) -> Result<Option<IntervalMonthDayNano>>) -> Result<ArrayRef> {
    let checked = |row| value(row)?.map(Some).ok_or_else(|| raised("an interval out of range".into()));
    Ok(Arc::new(IntervalMonthDayNanoArray::from_iter(args.each(checked)?)))
}

/// Seconds that the zone of an instant is ahead of UTC; 0 of a time without one.
fn offset(args: &Arguments, row: usize) -> Result<i64> {
    let DataType::Timestamp(_, Some(zone)) = args.columns[0].data_type() else { return Ok(0) };
    let offset = Tz::from_str(zone)?.offset_from_utc_datetime(&time_of(micros(args, row))?).fix();
    Ok(offset.local_minus_utc().into())
}

/// An interval whose time is less than a day and whose days are less than a month of 30, all of one sign.
fn justified(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    const DAY_NANOS: i128 = DAY_MICROS as i128 * 1_000;
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    let nanos = days * DAY_NANOS + i128::from(interval.nanoseconds);
    let (days, nanos) = (nanos / DAY_NANOS, nanos % DAY_NANOS);
    let (months, days) = (i32::try_from(days / 30).ok()?, (days % 30) as i32);
    Some(IntervalMonthDayNano::new(months, days, nanos as i64))
}

/// So many times some months and days.
fn parts(args: &Arguments, months: i32, days: i32) -> Result<ArrayRef> {
    intervals(args, |row| {
        let count = i32::try_from(args.longs(0).value(row)).ok();
        let times = |part: i32| count.and_then(|count| count.checked_mul(part));
        Ok(times(months).zip(times(days)).map(|(months, days)| IntervalMonthDayNano::new(months, days, 0)))
    })
}

/// Seconds, to the microsecond.
fn of_seconds(args: &Arguments, seconds: impl Fn(usize) -> Option<f64>) -> Result<ArrayRef> {
    intervals(args, |row| {
        let micros = seconds(row).map(|seconds| (seconds * 1e6).round()).filter(|micros| micros.abs() < 9.2e15);
        Ok(micros.map(|micros| IntervalMonthDayNano::new(0, 0, micros as i64 * 1_000)))
    })
}

/// Whole months from one time to a later one, and the time that they lead to: the day is at most the month's last.
fn months_until(from: NaiveDateTime, to: NaiveDateTime) -> Option<(i32, NaiveDateTime)> {
    let month = |time: NaiveDateTime| time.year() * 12 + time.month0() as i32;
    let months = month(to) - month(from);
    (months - 1..=months).rev().find_map(|months| {
        let moved = moved(from, months)?;
        (moved <= to).then_some((months, moved))
    })
}

/// A time some months later or earlier.
fn moved(time: NaiveDateTime, months: i32) -> Option<NaiveDateTime> {
    let count = Months::new(months.unsigned_abs());
    if months < 0 { time.checked_sub_months(count) } else { time.checked_add_months(count) }
}

/// PostgreSQL's `age`: years, months, days and the time of day from one time to another.
fn age(to: NaiveDateTime, from: NaiveDateTime) -> Option<IntervalMonthDayNano> {
    let is_back = to < from;
    let (first, last) = if is_back { (to, from) } else { (from, to) };
    let mut nanos = (last.time() - first.time()).num_nanoseconds()?;
    let mut days = last.day() as i32 - first.day() as i32;
    let mut months = (last.year() - first.year()) * 12 + last.month() as i32 - first.month() as i32;
    if nanos < 0 {
        nanos += DAY_MICROS * 1_000;
        days -= 1;
    }
    if days < 0 {
        days += days_of_month(first.date())?;
        months -= 1;
    }
    let sign = if is_back { -1 } else { 1 };
    Some(IntervalMonthDayNano::new(months * sign, days * sign, nanos * i64::from(sign)))
}

fn days_of_month(date: NaiveDate) -> Option<i32> {
    let first = date.with_day(1)?;
    let days = first.checked_add_months(Months::new(1))?.signed_duration_since(first).num_days();
    i32::try_from(days).ok()
}

/// The number of a century or a millennium: there is none of 0, and the year 0 is the last one before Christ.
fn spans_of(year: i64, years: i64) -> i64 {
    if year > 0 { (year + years - 1) / years } else { year / years - 1 }
}

/// Whole units between two times, negative if the second is the earlier one. Days and longer units of instants are
/// those of a calendar and a clock on the wall, shorter ones the time that has gone by.
fn date_sub(args: &Arguments) -> Result<ArrayRef> {
    let zoned = args.instant();
    args.integers(|row| {
        let (from, to) = (args.time(1, row)?, args.time(2, row)?);
        let (first, last, sign) = if to < from { (to, from, -1) } else { (from, to, 1) };
        let name = args.text(0).value(row);
        let unit = unit_of(name).unwrap_or(name);
        let per_month = match unit {
            "month" => Some(1),
            "quarter" => Some(3),
            "year" => Some(12),
            "decade" => Some(120),
            "century" => Some(1_200),
            "millennium" => Some(12_000),
            _ => None,
        };
        if let Some(per_month) = per_month {
            let (months, _) = months_until(first, last).ok_or_else(|| raised("a time that no calendar has".into()))?;
            return Ok(Some(sign * i64::from(months / per_month)));
        }
        let micros = match unit {
            "microsecond" => 1,
            "millisecond" => 1_000,
            "second" => 1_000_000,
            "minute" => 60_000_000,
            "hour" => 3_600_000_000,
            "day" => DAY_MICROS,
            "week" => 7 * DAY_MICROS,
            _ => return Err(raised(format!("'{name}' is no unit of time"))),
        };
        if micros < DAY_MICROS {
            let [from, to] = [1, 2].map(|place| args.micros(place, row, zoned.as_ref()));
            return Ok(Some((to? - from?) / micros));
        }
        let between = last.and_utc().timestamp_micros() - first.and_utc().timestamp_micros();
        Ok(Some(sign * (between / micros)))
    })
}

/// The start of each time's bucket; a row has its origin, or the usual one moved by some microseconds. Buckets of
/// instants are those of UTC, as in DuckDB, so that an hour that clocks show twice has two.
fn buckets(
    args: &Arguments,
    origin: impl Fn(usize, Option<&DataType>) -> Result<(Option<i64>, i64)>,
) -> Result<ArrayRef> {
    let zoned = args.instant();
    let starts = args.times(|row| {
        let (origin, offset) = origin(row, zoned.as_ref())?;
        let micros = args.micros(1, row, zoned.as_ref())?;
        time_of(bucket(args.interval(0, row), micros - offset, origin)? + offset).map(Some)
    })?;
    let DataType::Timestamp(_, zone) = zoned.unwrap_or_else(|| starts.data_type().clone()) else { return Ok(starts) };
    Ok(Arc::new(starts.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt(zone)))
}

/// The start of a time's bucket. Buckets of months begin in January 2000, others on the Monday of 2000-01-03, where the
/// origin is not given.
fn bucket(width: IntervalMonthDayNano, micros: i64, origin: Option<i64>) -> Result<i64> {
    let overflow = || raised("time_bucket of a time that no calendar has".into());
    if width.months != 0 {
        if width.days != 0 || width.nanoseconds != 0 || width.months < 0 {
            return Err(raised("time_bucket of months takes a positive number of them alone".into()));
        }
        let start = |date: NaiveDate| date.num_days_from_ce() - EPOCH_DAY;
        let origin_of = time_of(origin.unwrap_or(DAY_OF_2000 * DAY_MICROS))?;
        let (time, first) = (time_of(micros)?, origin_of.date().with_day(1).ok_or_else(overflow)?);
        let month = |date: NaiveDate| date.year() * 12 + date.month0() as i32;
        let months = (month(time.date()) - month(first)).div_euclid(width.months) * width.months;
        let bucket = moved(first.and_time(origin_of.time()), months).ok_or_else(overflow)?;
        return Ok(i64::from(start(bucket.date())) * DAY_MICROS);
    }
    let width =
        i64::from(width.days).checked_mul(DAY_MICROS).and_then(|days| days.checked_add(width.nanoseconds / 1_000));
    let width = width.filter(|width| *width > 0).ok_or_else(|| raised("time_bucket takes a positive width".into()))?;
    // 2000-01-03 was a Monday.
    let origin = origin.unwrap_or((DAY_OF_2000 + 2) * DAY_MICROS);
    let since = micros.checked_sub(origin).ok_or_else(overflow)?;
    since.div_euclid(width).checked_mul(width).and_then(|start| start.checked_add(origin)).ok_or_else(overflow)
}
