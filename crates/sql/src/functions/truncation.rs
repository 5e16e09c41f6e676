//! `date_trunc` over all years of the calendar.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use chrono::{Datelike, NaiveDate};
use datafusion::error::Result;

use super::raised;
use crate::calendar_units::unit_of;
use crate::time_units::per_second;
use crate::zone_clocks::Clocks;

const DAY_SECONDS: i64 = 86_400;
/// Days from year 1 to 1970.
const EPOCH_DAY: i64 = 719_163;

/// Timestamps cut to a unit, in their own ticks; an instant as the clocks of its zone show it. What is shorter than a
/// day is cut off of what goes by, so that an hour that clocks show twice has two starts, as in PostgreSQL.
///
/// # Errors
/// A unit that is none, and times whose start no calendar has.
pub(crate) fn truncated(times: &ArrayRef, unit: &str) -> Result<ArrayRef> {
    let DataType::Timestamp(ticks, _) = times.data_type() else {
        return Err(raised(format!("date_trunc of a {}", times.data_type())));
    };
    let second = per_second(*ticks);
    let unit = unit_of(unit).unwrap_or(unit);
    let start: Start = match unit {
        "microsecond" => multiple((second / 1_000_000).max(1)),
        "millisecond" => multiple((second / 1_000).max(1)),
        "second" => multiple(second),
        "minute" => multiple(60 * second),
        "hour" => multiple(3_600 * second),
        "day" => multiple(DAY_SECONDS * second),
        // Day 0 was a Thursday, weeks start with Monday.
        "week" => of_days(second, |day| Some(day - (day + 3).rem_euclid(7))),
        "month" => of_months(second, |date| (date.year(), date.month())),
        "quarter" => of_months(second, |date| (date.year(), date.month0() / 3 * 3 + 1)),
        "year" => of_months(second, |date| (date.year(), 1)),
        "decade" => of_months(second, |date| (date.year().div_euclid(10) * 10, 1)),
        "century" => of_months(second, |date| ((date.year() - 1).div_euclid(100) * 100 + 1, 1)),
        "millennium" => of_months(second, |date| ((date.year() - 1).div_euclid(1_000) * 1_000 + 1, 1)),
        other => return Err(raised(format!("'{other}' is no unit of date_trunc; there are {UNITS}"))),
    };
    let refused = || raised(format!("the {unit} of a time that no calendar has"));
    let in_calendar = |time: i64| NaiveDate::from_num_days_from_ce_opt(ce_day(time.div_euclid(DAY_SECONDS * second))?);
    let numbers = cast(times, &DataType::Int64)?;
    let clocks = Clocks::of(times.data_type())?.ok_or_else(refused)?;
    let is_of_day = ["microsecond", "millisecond", "second", "minute", "hour"].contains(&unit);
    let cut = |time: i64| {
        let wall = clocks.wall(time)?;
        let cut = in_calendar(wall).and_then(|_| start(wall))?;
        if is_of_day { cut.checked_sub(wall)?.checked_add(time) } else { clocks.instant(cut) }
    };
    let cut = |time: Option<i64>| time.map(|time| cut(time).ok_or_else(refused)).transpose();
    let cut: Int64Array = numbers.as_primitive::<Int64Type>().iter().map(cut).collect::<Result<_>>()?;
    Ok(cast(&(Arc::new(cut) as ArrayRef), times.data_type())?)
}

const UNITS: &str = "microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, decade, century, \
                     millennium";

/// Days from year 1 to a day that is counted from 1970.
fn ce_day(day: i64) -> Option<i32> {
    i32::try_from(day.checked_add(EPOCH_DAY)?).ok()
}

type Start = Box<dyn Fn(i64) -> Option<i64>>;

/// The multiple of some ticks at or before a time.
fn multiple(size: i64) -> Start {
    Box::new(move |time| time.div_euclid(size).checked_mul(size))
}

/// The start of a day that is found by a day.
fn of_days(second: i64, start: impl Fn(i64) -> Option<i64> + 'static) -> Start {
    let size = DAY_SECONDS * second;
    Box::new(move |time| start(time.div_euclid(size))?.checked_mul(size))
}

/// The first of a month that is found by a date.
fn of_months(second: i64, month: impl Fn(NaiveDate) -> (i32, u32) + 'static) -> Start {
    of_days(second, move |day| {
        let date = NaiveDate::from_num_days_from_ce_opt(ce_day(day)?)?;
        let (year, month) = month(date);
        Some(i64::from(NaiveDate::from_ymd_opt(year, month, 1)?.num_days_from_ce()) - EPOCH_DAY)
    })
}
