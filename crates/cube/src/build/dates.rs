//! Dates of Arrow values: days since 1970-01-01 in the proleptic Gregorian calendar.
//!
//! Source of the calendar arithmetic: Hinnant, *chrono-compatible low-level date algorithms*: years begin in March, so
//! that the day of a leap year is the last, and repeat every 400 years.

use arrow::array::{Array, AsArray, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};

/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
const DAY_SECONDS: i64 = 86_400;

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: u8,
    /// 1 to 31.
    pub(super) day: u8,
}

impl Civil {
    /// The date of a number of days since 1970-01-01.
    pub(super) fn of_days(days: i64) -> Civil {
        let shifted = i128::from(days) + i128::from(EPOCH_DAYS);
        let era = shifted.div_euclid(ERA_DAYS.into()) as i64;
        let day_of_era = shifted.rem_euclid(ERA_DAYS.into()) as i64;
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil { year, month: month as u8, day: day as u8 }
    }

    /// Days since 1970-01-01.
    pub(super) fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month_from_march = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(self.day) - 1;
        era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH_DAYS
    }

    /// A date whose month and day are in the calendar.
    pub(super) fn checked((year, month, day): (i64, u8, Option<u8>)) -> Option<(i64, u8, Option<u8>)> {
        let is_month = (1..=12).contains(&month);
        let is_day = |day: u8| (1..=days_of_month(year, month)).contains(&i64::from(day));
        (is_month && day.is_none_or(is_day)).then_some((year, month, day))
    }

    /// The date of a text: `2026-03-31`, also with a time of day behind it, or `2026-03`, whose day is absent.
    pub(super) fn parse(text: &str) -> Option<(i64, u8, Option<u8>)> {
        let mut parts = text.trim().splitn(3, '-');
        let number = |part: &str, digits: usize| {
            let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse::<i64>().ok()).flatten()
        };
        let year = number(parts.next()?, 4)?;
        let month = number(parts.next()?, 2).filter(|month| (1..=12).contains(month))? as u8;
        let Some(rest) = parts.next() else { return Some((year, month, None)) };
        let (day, time) = rest.split_at_checked(2)?;
        let day = number(day, 2).filter(|day| (1..=days_of_month(year, month)).contains(day))? as u8;
        let has_time = time.starts_with(['T', 't', ' ']) && time[1..].starts_with(|c: char| c.is_ascii_digit());
        (time.is_empty() || has_time).then_some((year, month, Some(day)))
    }
}

fn days_of_month(year: i64, month: u8) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// True for dates and timestamps; of timestamps with a time zone, for those at a fixed distance from UTC.
pub(super) fn is_moment(data_type: &DataType) -> bool {
    match data_type {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None) => true,
        DataType::Timestamp(_, Some(zone)) => zone_seconds(zone).is_some(),
        _ => false,
    }
}

/// Days of an array of moments; nothing for other types.
pub(super) fn days(array: &dyn Array) -> Option<Int64Array> {
    if let DataType::Date32 = array.data_type() {
        return Some(array.as_primitive::<Date32Type>().unary(i64::from));
    }
    let (ticks, a_second, offset) = ticks(array)?;
    let day = |tick: i64| tick.div_euclid(a_second).saturating_add(offset).div_euclid(DAY_SECONDS);
    Some(ticks.unary(day))
}

/// The text of a moment: its date, and its time of day unless that is midnight.
pub(super) fn moment_text(array: &dyn Array, row: usize) -> Option<String> {
    let Civil { year, month, day } = Civil::of_days(days(&array.slice(row, 1))?.value(0));
    let date = format!("{year:04}-{month:02}-{day:02}");
    let Some((ticks, a_second, offset)) = ticks(&array.slice(row, 1)) else { return Some(date) };
    let seconds = ticks.value(0).div_euclid(a_second).saturating_add(offset).rem_euclid(DAY_SECONDS);
    let fraction = ticks.value(0).rem_euclid(a_second);
    if seconds == 0 && fraction == 0 {
        return Some(date);
    }
    let time = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let digits = a_second.ilog10() as usize;
    Some(if fraction == 0 { format!("{date} {time}") } else { format!("{date} {time}.{fraction:0digits$}") })
}

/// Ticks since 1970-01-01, ticks of a second, and the seconds by which local time is ahead.
fn ticks(array: &dyn Array) -> Option<(Int64Array, i64, i64)> {
    fn of<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array) -> Int64Array {
        let array: &PrimitiveArray<T> = array.as_primitive();
        array.reinterpret_cast::<Int64Type>()
    }
    Some(match array.data_type() {
        DataType::Date64 => (of::<Date64Type>(array), 1_000, 0),
        DataType::Timestamp(unit, zone) => {
            let offset = zone.as_ref().map_or(Some(0), |zone| zone_seconds(zone))?;
            match unit {
                TimeUnit::Second => (of::<TimestampSecondType>(array), 1, offset),
                TimeUnit::Millisecond => (of::<TimestampMillisecondType>(array), 1_000, offset),
                TimeUnit::Microsecond => (of::<TimestampMicrosecondType>(array), 1_000_000, offset),
                TimeUnit::Nanosecond => (of::<TimestampNanosecondType>(array), 1_000_000_000, offset),
            }
        }
        _ => return None,
    })
}

/// Seconds by which a time zone is ahead of UTC; nothing for zones with summer time.
fn zone_seconds(zone: &str) -> Option<i64> {
    if ["UTC", "Z", "Etc/UTC", "GMT"].iter().any(|utc| zone.eq_ignore_ascii_case(utc)) {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let hours: i64 = is_offset.then(|| digits[..2].parse().ok()).flatten()?;
    let minutes: i64 = if digits.len() == 4 { digits[2..].parse().ok()? } else { 0 };
    Some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use arrow::array::{TimestampMicrosecondArray, TimestampSecondArray};

    use super::*;

    #[test]
    fn dates_at_the_edges_of_the_calendar() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_543, (2026, 3, 31)),
            (-719_468, (0, 3, 1)),
            (-25_509, (1900, 2, 28)),
            (-25_508, (1900, 3, 1)),
        ] {
            let Civil { year, month, day } = Civil::of_days(days);
            assert_eq!((year, month, day), date, "{days}");
            assert_eq!(Civil { year, month, day }.days(), days);
        }
        // The whole range of 64 bits has dates; none of them overflows.
        Civil::of_days(i64::MAX);
        Civil::of_days(i64::MIN);
    }

    #[test]
    fn texts_of_dates() {
        for (text, date) in [
            ("2026-03-31", Some((2026, 3, Some(31)))),
            ("2026-03-31T10:00:00", Some((2026, 3, Some(31)))),
            ("2026-03-31 10:00", Some((2026, 3, Some(31)))),
            (" 2026-03 ", Some((2026, 3, None))),
            ("2024-02-29", Some((2024, 2, Some(29)))),
            ("2026-02-29", None),
            ("2026-13", None),
            ("2026-3", None),
            ("2026-03-3", None),
            ("2026-03-31x", None),
            ("2026-03-31T", None),
            ("2026-03-é", None),
            ("2026", None),
            ("", None),
        ] {
            assert_eq!(Civil::parse(text), date, "{text}");
        }
    }

    #[test]
    fn moments_of_time_zones_at_a_fixed_distance() {
        let late = TimestampSecondArray::from(vec![20_543 * 86_400 + 82_800]);
        assert_eq!(moment_text(&late, 0).unwrap(), "2026-03-31 23:00:00");
        let ahead = late.clone().with_timezone("+02:00");
        assert_eq!(days(&ahead).unwrap().value(0), 20_544);
        assert_eq!(moment_text(&ahead, 0).unwrap(), "2026-04-01 01:00:00");
        assert!(is_moment(ahead.data_type()) && !is_moment(late.with_timezone("Europe/Paris").data_type()));
        let before = TimestampMicrosecondArray::from(vec![-1, 0]);
        assert_eq!(moment_text(&before, 0).unwrap(), "1969-12-31 23:59:59.999999");
        assert_eq!(moment_text(&before, 1).unwrap(), "1970-01-01");
    }
}
