//! Parts and truncations of dates and timestamps and their sums with intervals, as arithmetic over days and ticks.
//!
//! A timestamp is a number of ticks since 1970 and floors to days; a day becomes year, month and day on the device
//! ([`DatePart`]). The first day of a year or quarter is found by taking away the days since then, so that its bounds
//! stay as narrow as those of the day. Timestamps with a time zone other than UTC are left to the CPU.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use warpcube_engine::{BinaryOp, DatePart, Expr as Device, Literal, Ty, UnaryOp};

use super::Reason;
use crate::time_units::{EPOCH_SECONDS, per_second};

const DAY_SECONDS: i64 = 86_400;
const DAY_MICROS: i64 = DAY_SECONDS * 1_000_000;
/// The day since 1970 that buckets of days and times begin on, and the year of those of months.
const DAY_OF_BUCKETS: i64 = 10_959;
const YEAR_OF_MONTHS: i64 = 2000;
const LEAP_DAYS_BEFORE_1970: i64 = 477;

/// Ticks of a second; `None` if the type has no ticks, or a time zone whose days are not those of UTC.
fn ticks(data_type: &DataType) -> Option<i64> {
    match data_type {
        DataType::Date64 => Some(1_000),
        DataType::Timestamp(unit, zone) if zone.as_ref().is_none_or(|zone| is_utc(zone)) => Some(per_second(*unit)),
        _ => None,
    }
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "Etc/UTC" | "+00:00" | "+00" | "+0000")
}

fn long(number: i64) -> Device {
    Device::Literal(Literal::Int(number.into()), Ty::I64)
}

fn int(number: i32) -> Device {
    Device::Literal(Literal::Int(number.into()), Ty::I32)
}

fn op(op: BinaryOp, left: Device, right: Device) -> Device {
    Device::binary(op, left, right)
}

/// `value` divided by a positive number, rounded down; intermediate results never leave the range of the quotient.
fn floor_quotient(value: Device, divisor: i64) -> Device {
    if divisor == 1 {
        return value;
    }
    let quotient = op(BinaryOp::Div, value.clone(), long(divisor));
    let below = op(BinaryOp::Lt, op(BinaryOp::Rem, value, long(divisor)), long(0));
    Device::Case(vec![(below, op(BinaryOp::Sub, quotient.clone(), long(1)))], Box::new(quotient))
}

/// The remainder of [`floor_quotient`], never negative.
fn floor_remainder(value: Device, divisor: i64) -> Device {
    let remainder = op(BinaryOp::Rem, value, long(divisor));
    let below = op(BinaryOp::Lt, remainder.clone(), long(0));
    Device::Case(vec![(below, op(BinaryOp::Add, remainder.clone(), long(divisor)))], Box::new(remainder))
}

fn narrow(value: Device) -> Device {
    Device::Cast(Box::new(value), Ty::I32)
}

fn widen(value: Device) -> Device {
    Device::Cast(Box::new(value), Ty::I64)
}

/// Days since 1970 of a date or timestamp.
pub(crate) fn days(value: Device, data_type: &DataType) -> Option<Device> {
    if *data_type == DataType::Date32 {
        return Some(value);
    }
    Some(narrow(floor_quotient(value, DAY_SECONDS * ticks(data_type)?)))
}

/// The date of a `Date64` by a cast, which cuts towards 1970.
pub(crate) fn whole_days(value: Device) -> Device {
    narrow(op(BinaryOp::Div, value, long(DAY_SECONDS * 1_000)))
}

/// A date as a timestamp, or a timestamp in another unit; `None` for other types. What leaves 64 bits raises, as on the
/// CPU.
pub(crate) fn timestamp(value: Device, from: &DataType, unit: TimeUnit) -> Option<Device> {
    let wide = |value: Device, factor: i64| match factor {
        1 => value,
        _ => {
            let factor = Device::Literal(Literal::Int(factor.into()), Ty::I128);
            widen(op(BinaryOp::Mul, Device::Cast(Box::new(value), Ty::I128), factor))
        }
    };
    match from {
        DataType::Date32 => Some(wide(value, DAY_SECONDS * per_second(unit))),
        DataType::Timestamp(own, None) => match (per_second(*own), per_second(unit)) {
            (finer, coarser) if finer > coarser => Some(op(BinaryOp::Div, value, long(finer / coarser))),
            (coarser, finer) => Some(wide(value, finer / coarser)),
        },
        _ => None,
    }
}

/// A timestamp as the nearest multiple of a coarser unit, in its own ticks: halves away from 2000, as on the CPU. What
/// leaves 64 bits raises; the CPU has the multiple before it.
pub(crate) fn rounded(value: Device, data_type: &DataType, unit: TimeUnit) -> Option<Device> {
    let DataType::Timestamp(own, _) = data_type else { return None };
    let second = per_second(*own);
    let step = second / per_second(unit);
    let rest = floor_remainder(value.clone(), step);
    let is_half = op(BinaryOp::Eq, rest.clone(), long(step / 2));
    let is_late = op(BinaryOp::Ge, value.clone(), long(EPOCH_SECONDS * second));
    let is_up = op(BinaryOp::Or, op(BinaryOp::Gt, rest.clone(), long(step / 2)), op(BinaryOp::And, is_half, is_late));
    let exact = |value| Device::Cast(Box::new(value), Ty::I128);
    let below = op(BinaryOp::Sub, exact(value), exact(rest));
    let above = op(BinaryOp::Add, below.clone(), exact(long(step)));
    Some(widen(Device::Case(vec![(is_up, above)], Box::new(below))))
}

/// A part of a date or timestamp, as an `Int32`.
pub(crate) fn part(part: &str, value: Device, data_type: &DataType) -> Result<Device, Reason> {
    let refuse = || format!("the date part '{part}' of {data_type}");
    let of_date = match part {
        "year" => Some(DatePart::Year),
        "quarter" => Some(DatePart::Quarter),
        "month" => Some(DatePart::Month),
        "day" => Some(DatePart::Day),
        _ => None,
    };
    if let Some(part) = of_date {
        return Ok(Device::DatePart(part, Box::new(days(value, data_type).ok_or_else(refuse)?)));
    }
    if matches!(part, "dow" | "isodow" | "doy" | "week") {
        let day = days(value, data_type).ok_or_else(refuse)?;
        // Day 0 was a Thursday.
        let of_week = |offset| floor_remainder(op(BinaryOp::Add, widen(day.clone()), long(offset)), 7);
        return Ok(match part {
            "dow" => narrow(of_week(4)),
            "isodow" => narrow(op(BinaryOp::Add, of_week(3), long(1))),
            "doy" => day_of_year(&day),
            _ => {
                // A week belongs to the year of its Thursday.
                let thursday = op(BinaryOp::Add, op(BinaryOp::Sub, widen(day.clone()), of_week(3)), long(3));
                let before = op(BinaryOp::Sub, day_of_year(&narrow(thursday)), int(1));
                op(BinaryOp::Add, op(BinaryOp::Div, before, int(7)), int(1))
            }
        });
    }
    if let "millisecond" | "microsecond" = part {
        let ticks = ticks(data_type).ok_or_else(refuse)?;
        let of_minute = floor_remainder(value, 60 * ticks);
        let wanted = if part == "millisecond" { 1_000 } else { 1_000_000 };
        return Ok(narrow(match ticks > wanted {
            true => op(BinaryOp::Div, of_minute, long(ticks / wanted)),
            false => op(BinaryOp::Mul, of_minute, long(wanted / ticks)),
        }));
    }
    let (seconds, modulus) = match part {
        "hour" => (3600, 24),
        "minute" => (60, 60),
        "second" => (1, 60),
        _ => return Err(refuse()),
    };
    let ticks = ticks(data_type).ok_or_else(refuse)?;
    let of_day = floor_remainder(value, DAY_SECONDS * ticks);
    let whole = op(BinaryOp::Div, of_day, long(seconds * ticks));
    Ok(narrow(op(BinaryOp::Rem, whole, long(modulus))))
}

/// A timestamp cut to a unit of time, in its own ticks.
pub(crate) fn truncate(unit: &str, value: Device, data_type: &DataType) -> Result<Device, Reason> {
    let refuse = || format!("the truncation of {data_type} to '{unit}'");
    if *data_type == DataType::Date64 {
        return Err(refuse());
    }
    let ticks = ticks(data_type).ok_or_else(refuse)?;
    // The CPU raises for times that no calendar has.
    let value = Device::InCalendar(Box::new(value), DAY_SECONDS * ticks);
    let seconds = match unit {
        "second" => Some(1),
        "minute" => Some(60),
        "hour" => Some(3600),
        "day" => Some(DAY_SECONDS),
        _ => None,
    };
    if let Some(seconds) = seconds {
        let size = seconds * ticks;
        return Ok(op(BinaryOp::Mul, floor_quotient(value, size), long(size)));
    }
    let day = days(value, data_type).ok_or_else(refuse)?;
    let of_date = |part| Device::DatePart(part, Box::new(day.clone()));
    let first = match unit {
        "week" => {
            // Weeks start with Monday, three days before day 0.
            let wide = widen(day);
            op(BinaryOp::Sub, wide.clone(), floor_remainder(op(BinaryOp::Add, wide, long(3)), 7))
        }
        "month" => {
            let before = op(BinaryOp::Sub, of_date(DatePart::Day), int(1));
            widen(op(BinaryOp::Sub, day.clone(), before))
        }
        "quarter" => {
            let month = op(BinaryOp::Sub, op(BinaryOp::Mul, of_date(DatePart::Quarter), int(3)), int(2));
            let first = days_before(&of_date(DatePart::Year), month);
            let before = op(BinaryOp::Sub, op(BinaryOp::Sub, day_of_year(&day), first), int(1));
            widen(op(BinaryOp::Sub, day.clone(), before))
        }
        "year" => {
            let before = op(BinaryOp::Sub, day_of_year(&day), int(1));
            widen(op(BinaryOp::Sub, day.clone(), before))
        }
        _ => return Err(refuse()),
    };
    Ok(op(BinaryOp::Mul, first, long(DAY_SECONDS * ticks)))
}

/// A date or timestamp an interval later, or earlier if `back`: months first, then days, then the rest, as on the CPU.
/// The CPU raises where the value or one of these sums is outside of its calendar.
///
/// `None` if the interval has a part that the type has no ticks for.
pub(crate) fn shifted(value: Device, data_type: &DataType, interval: &ScalarValue, back: bool) -> Option<Device> {
    let (months, days, nanos) = match interval {
        ScalarValue::IntervalMonthDayNano(Some(parts)) => (parts.months, parts.days, parts.nanoseconds),
        ScalarValue::IntervalDayTime(Some(parts)) => (0, parts.days, i64::from(parts.milliseconds) * 1_000_000),
        ScalarValue::IntervalYearMonth(Some(months)) => (*months, 0, 0),
        _ => return None,
    };
    let sign = if back { -1 } else { 1 };
    let (months, days, nanos) = (months.checked_mul(sign)?, days.checked_mul(sign)?, nanos.checked_mul(sign.into())?);
    if *data_type == DataType::Date32 {
        let in_calendar = |value| Device::InCalendar(Box::new(value), 1);
        let moved = if months == 0 { in_calendar(value) } else { Device::AddMonths(Box::new(value), months) };
        // Sums in 32 bits would wrap unseen.
        let sum = |moved| narrow(in_calendar(op(BinaryOp::Add, widen(moved), long(days.into()))));
        return (nanos == 0).then(|| if days == 0 { moved } else { sum(moved) });
    }
    let ticks = ticks(data_type)?;
    let day_ticks = DAY_SECONDS * ticks;
    let tick_nanos = 1_000_000_000 / ticks;
    if nanos % tick_nanos != 0 || *data_type == DataType::Date64 {
        return None;
    }
    let in_calendar = |value| Device::InCalendar(Box::new(value), day_ticks);
    let value = in_calendar(value);
    // Sums in 64 bits would wrap unseen where the CPU raises; 128 bits cost nothing where the bounds are near.
    let exact = |value| Device::Cast(Box::new(value), Ty::I128);
    let number = |number: i128| Device::Literal(Literal::Int(number), Ty::I128);
    let moved = match months {
        0 => exact(value),
        _ => {
            let day = narrow(floor_quotient(value.clone(), day_ticks));
            let later = exact(Device::AddMonths(Box::new(day), months));
            let of_day = exact(floor_remainder(value, day_ticks));
            op(BinaryOp::Add, op(BinaryOp::Mul, later, number(day_ticks.into())), of_day)
        }
    };
    let parts = [i128::from(days) * i128::from(day_ticks), i128::from(nanos / tick_nanos)];
    let sum = |moved, part| in_calendar(op(BinaryOp::Add, moved, number(part)));
    Some(widen(parts.into_iter().filter(|part| *part != 0).fold(moved, sum)))
}

/// The last day of a date's or timestamp's month, as a date.
pub(crate) fn last_day(value: Device, data_type: &DataType) -> Option<Device> {
    let day = Device::InCalendar(Box::new(days(value, data_type)?), 1);
    let part = |part| Device::DatePart(part, Box::new(day.clone()));
    let month = part(DatePart::Month);
    let is_short = Device::Among(Box::new(month.clone()), Arc::new([4, 6, 9, 11]));
    let february = Device::Case(vec![(is_leap(&part(DatePart::Year)), long(29))], Box::new(long(28)));
    let is_february = op(BinaryOp::Eq, month, int(2));
    let length = Device::Case(vec![(is_february, february), (is_short, long(30))], Box::new(long(31)));
    let before = op(BinaryOp::Sub, widen(day.clone()), widen(part(DatePart::Day)));
    Some(narrow(op(BinaryOp::Add, before, length)))
}

/// Seconds since 1970 as a double.
pub(crate) fn epoch(value: Device, data_type: &DataType) -> Option<Device> {
    let double = |value| Device::Cast(Box::new(value), Ty::F64);
    let number = |number: i64| Device::Literal(Literal::Float(number as f64), Ty::F64);
    match data_type {
        DataType::Date32 => Some(op(BinaryOp::Mul, double(value), number(DAY_SECONDS))),
        DataType::Timestamp(unit, _) => match per_second(*unit) {
            1 => Some(double(value)),
            ticks => Some(op(BinaryOp::Div, double(value), number(ticks))),
        },
        _ => None,
    }
}

/// Microseconds since 1970 in another unit, of so many or of a part of one; what leaves 64 bits raises.
pub(crate) fn of_micros(value: Device, unit: TimeUnit) -> Option<Device> {
    match unit {
        TimeUnit::Millisecond => Some(floor_quotient(value, 1_000)),
        finer => timestamp(value, &DataType::Timestamp(TimeUnit::Microsecond, None), finer),
    }
}

/// A century, a decade or a millennium.
pub(crate) fn years(name: &str, value: Device, data_type: &DataType) -> Option<Device> {
    let day = Device::InCalendar(Box::new(days(value, data_type)?), 1);
    let year = widen(Device::DatePart(DatePart::Year, Box::new(day)));
    let of = |count: i64| {
        let above = op(BinaryOp::Div, op(BinaryOp::Add, year.clone(), long(count - 1)), long(count));
        let below = op(BinaryOp::Sub, op(BinaryOp::Div, year.clone(), long(count)), long(1));
        let is_above = op(BinaryOp::Gt, year.clone(), long(0));
        Device::Case(vec![(is_above, above)], Box::new(below))
    };
    match name {
        "decade" => Some(op(BinaryOp::Div, year, long(10))),
        "century" => Some(of(100)),
        "millennium" => Some(of(1_000)),
        _ => None,
    }
}

/// The first date, or timestamp of microseconds, of the bucket of one: buckets of months begin in January 2000, others
/// on the Monday of 2000-01-03. `None` for a width that is no constant, or is none.
pub(crate) fn bucket(value: Device, data_type: &DataType, width: &ScalarValue) -> Option<Device> {
    let ScalarValue::IntervalMonthDayNano(Some(width)) = width else { return None };
    let is_date = *data_type == DataType::Date32;
    if !is_date && ticks(data_type)? != 1_000_000 {
        return None;
    }
    let ticks_of_day = if is_date { 1 } else { DAY_MICROS };
    let value = Device::InCalendar(Box::new(value), ticks_of_day);
    if width.months != 0 {
        // The value is written about a thousand times.
        if !matches!(&value, Device::InCalendar(inner, _) if matches!(**inner, Device::Reg(_))) {
            return None;
        }
        if width.months < 0 || width.days != 0 || width.nanoseconds != 0 {
            return None;
        }
        let day = days(value, data_type)?;
        let part = |part| widen(Device::DatePart(part, Box::new(day.clone())));
        let year = op(BinaryOp::Mul, op(BinaryOp::Sub, part(DatePart::Year), long(YEAR_OF_MONTHS)), long(12));
        let month = op(BinaryOp::Add, year, op(BinaryOp::Sub, part(DatePart::Month), long(1)));
        let first = op(BinaryOp::Sub, month.clone(), floor_remainder(month, width.months.into()));
        let year = op(BinaryOp::Add, floor_quotient(first.clone(), 12), long(YEAR_OF_MONTHS));
        let day = first_of_month(year, narrow(op(BinaryOp::Add, floor_remainder(first, 12), long(1))));
        return Some(if is_date { narrow(day) } else { op(BinaryOp::Mul, day, long(DAY_MICROS)) });
    }
    let micros = i64::from(width.days).checked_mul(DAY_MICROS)?.checked_add(width.nanoseconds / 1_000)?;
    let width = if is_date { micros / DAY_MICROS } else { micros };
    if width <= 0 || is_date && micros % DAY_MICROS != 0 {
        return None;
    }
    let value = widen(value);
    let since = op(BinaryOp::Sub, value.clone(), long((DAY_OF_BUCKETS * ticks_of_day) % width));
    let start = op(BinaryOp::Sub, value, floor_remainder(since, width));
    Some(if is_date { narrow(start) } else { start })
}

/// Days since 1970 of the first of a month.
fn first_of_month(year: Device, month: Device) -> Device {
    let before = op(BinaryOp::Sub, year.clone(), long(1));
    let leaps = |every| floor_quotient(before.clone(), every);
    let leap_days = op(BinaryOp::Add, op(BinaryOp::Sub, leaps(4), leaps(100)), leaps(400));
    let plain = op(BinaryOp::Mul, op(BinaryOp::Sub, year.clone(), long(1970)), long(365));
    let of_year = op(BinaryOp::Add, plain, op(BinaryOp::Sub, leap_days, long(LEAP_DAYS_BEFORE_1970)));
    op(BinaryOp::Add, of_year, widen(days_before(&narrow(year), month)))
}

/// The number of a day in its year, from 1 on.
fn day_of_year(day: &Device) -> Device {
    let part = |part| Device::DatePart(part, Box::new(day.clone()));
    op(BinaryOp::Add, days_before(&part(DatePart::Year), part(DatePart::Month)), part(DatePart::Day))
}

/// Days of a year before the first of a month.
///
/// From March on, months have 31, 30, 31, 30, 31 days in turn: (153 m + 2) / 5 days before the m-th after March.
fn days_before(year: &Device, month: Device) -> Device {
    let winter = Device::Case(vec![(is_leap(year), int(60))], Box::new(int(59)));
    let since_march = op(BinaryOp::Sub, month.clone(), int(3));
    let later = op(BinaryOp::Div, op(BinaryOp::Add, op(BinaryOp::Mul, since_march, int(153)), int(2)), int(5));
    let early = op(BinaryOp::Mul, op(BinaryOp::Sub, month.clone(), int(1)), int(31));
    let after_february = op(BinaryOp::Gt, month, int(2));
    Device::Case(vec![(after_february, op(BinaryOp::Add, later, winter))], Box::new(early))
}

/// Whether a year has a 29th of February.
fn is_leap(year: &Device) -> Device {
    let divides = |number| {
        let remainder = op(BinaryOp::Rem, year.clone(), int(number));
        op(BinaryOp::Eq, remainder, int(0))
    };
    let century = Device::Unary(UnaryOp::Not, Box::new(divides(100)));
    op(BinaryOp::And, divides(4), op(BinaryOp::Or, century, divides(400)))
}
