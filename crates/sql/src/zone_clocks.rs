//! Clocks on the walls of a zone: what they show at an instant, the instant at which they show a time, and instants
//! that intervals move.
//!
//! Of the times that clocks show twice or never the later instant is taken, as in PostgreSQL: 02:30 of the night in
//! which clocks go forward from 2 to 3 is half past three, and of the night in which they go back it is the second one.
//! Months, then days are counted on the wall, and time by what goes by.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use arrow::error::ArrowError;
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone};

use crate::time_units::per_second;

/// Seconds of a day.
const DAY_SECONDS: i64 = 86_400;
/// Days from year 1 to 1970.
const EPOCH_DAY: i64 = 719_163;

/// Seconds that a zone is ahead of UTC when its clocks show a time.
pub(crate) fn offset_on_wall(zone: &Tz, wall: NaiveDateTime) -> i32 {
    if let Some(offset) = zone.offset_from_local_datetime(&wall).single() {
        return offset.fix().local_minus_utc();
    }
    let near = |days: i64| {
        let near = wall.checked_add_signed(TimeDelta::days(days)).unwrap_or(wall);
        zone.offset_from_utc_datetime(&near).fix().local_minus_utc()
    };
    // The smaller offset makes the later instant.
    near(-1).min(near(1))
}

/// Clocks that tell ticks since 1970; those without a zone show UTC.
pub(crate) struct Clocks {
    zone: Option<Tz>,
    /// Ticks of a second.
    second: i64,
}

impl Clocks {
    /// The clocks of a type of timestamps; none of another type.
    ///
    /// # Errors
    /// A zone that there is not.
    pub(crate) fn of(data_type: &DataType) -> Result<Option<Clocks>, ArrowError> {
        let DataType::Timestamp(unit, zone) = data_type else { return Ok(None) };
        let zone = zone.as_deref().map(Tz::from_str).transpose()?;
        Ok(Some(Clocks { zone, second: per_second(*unit) }))
    }

    fn time(&self, ticks: i64) -> Option<NaiveDateTime> {
        DateTime::from_timestamp(ticks.div_euclid(self.second), 0).map(|time| time.naive_utc())
    }

    /// What clocks show at an instant; none past the calendar.
    pub(crate) fn wall(&self, instant: i64) -> Option<i64> {
        let Some(zone) = &self.zone else { return Some(instant) };
        let offset = zone.offset_from_utc_datetime(&self.time(instant)?).fix().local_minus_utc();
        instant.checked_add(i64::from(offset) * self.second)
    }

    /// The instant at which clocks show a time.
    pub(crate) fn instant(&self, wall: i64) -> Option<i64> {
        let Some(zone) = &self.zone else { return Some(wall) };
        wall.checked_sub(i64::from(offset_on_wall(zone, self.time(wall)?)) * self.second)
    }

    /// An instant moved by an interval; none past what ticks or the calendar hold.
    pub(crate) fn moved(&self, instant: i64, by: IntervalMonthDayNano) -> Option<i64> {
        self.moved_by_way_of(instant, by, |wall| self.instant(wall))
    }

    /// Whether an interval moves an instant to a time that clocks show twice or never.
    pub(crate) fn is_change(&self, instant: i64, by: IntervalMonthDayNano) -> bool {
        let Some(zone) = &self.zone else { return false };
        let mut is_change = false;
        self.moved_by_way_of(instant, by, |wall| {
            is_change |= zone.offset_from_local_datetime(&self.time(wall)?).single().is_none();
            self.instant(wall)
        });
        is_change
    }

    fn moved_by_way_of(
        &self,
        instant: i64,
        by: IntervalMonthDayNano,
        mut instant_of: impl FnMut(i64) -> Option<i64>,
    ) -> Option<i64> {
        let IntervalMonthDayNano { months, days, nanoseconds } = by;
        let mut moved = instant;
        if months != 0 {
            moved = instant_of(self.in_months(self.wall(moved)?, months)?)?;
        }
        if days != 0 {
            moved =
                instant_of(self.wall(moved)?.checked_add(i64::from(days).checked_mul(DAY_SECONDS * self.second)?)?)?;
        }
        moved.checked_add(nanoseconds.div_euclid(1_000_000_000 / self.second))
    }

    /// A time on the wall some months later or earlier; the day is at most the month's last.
    fn in_months(&self, wall: i64, months: i32) -> Option<i64> {
        let day = DAY_SECONDS * self.second;
        let (date, rest) = (wall.div_euclid(day), wall.rem_euclid(day));
        let date = NaiveDate::from_num_days_from_ce_opt(i32::try_from(date.checked_add(EPOCH_DAY)?).ok()?)?;
        let count = Months::new(months.unsigned_abs());
        let date = if months < 0 { date.checked_sub_months(count) } else { date.checked_add_months(count) }?;
        (i64::from(date.num_days_from_ce()) - EPOCH_DAY).checked_mul(day)?.checked_add(rest)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn intervals_lead_past_the_changes_of_clocks() {
        let ticks = |text: &str, unit| DateTime::parse_from_rfc3339(text).unwrap().timestamp() * per_second(unit);
        let (hour, day) = (3_600_000_000_000, IntervalMonthDayNano::new(0, 1, 0));
        for (zone, from, by, to, is_change) in [
            ("Europe/Berlin", "2024-03-30T01:30:00Z", day, "2024-03-31T01:30:00Z", true),
            ("Europe/Berlin", "2024-03-30T00:59:00Z", day, "2024-03-31T00:59:00Z", false),
            ("Europe/Berlin", "2024-03-30T02:00:00Z", day, "2024-03-31T01:00:00Z", false),
            ("Europe/Berlin", "2024-10-26T00:30:00Z", day, "2024-10-27T01:30:00Z", true),
            (
                "Europe/Berlin",
                "2024-04-01T00:30:00Z",
                IntervalMonthDayNano::new(0, -1, 0),
                "2024-03-31T01:30:00Z",
                true,
            ),
            (
                "Europe/Berlin",
                "2024-02-29T01:30:00Z",
                IntervalMonthDayNano::new(1, 2, hour),
                "2024-03-31T02:30:00Z",
                true,
            ),
            ("America/New_York", "2024-03-09T07:30:00Z", day, "2024-03-10T07:30:00Z", true),
            ("Pacific/Apia", "2011-12-29T20:00:00Z", day, "2011-12-30T20:00:00Z", true),
            ("+02:00", "2024-01-31T12:00:00Z", IntervalMonthDayNano::new(1, 0, 0), "2024-02-29T12:00:00Z", false),
        ] {
            for unit in [TimeUnit::Second, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
                let clocks = Clocks::of(&DataType::Timestamp(unit, Some(zone.into()))).unwrap().unwrap();
                let from = ticks(from, unit);
                assert_eq!(clocks.moved(from, by), Some(ticks(to, unit)), "{zone} {from} {by:?}");
                assert_eq!(clocks.is_change(from, by), is_change, "{zone} {from} {by:?}");
            }
        }
        let clocks = Clocks::of(&DataType::Timestamp(TimeUnit::Microsecond, None)).unwrap().unwrap();
        assert_eq!(clocks.moved(-1, IntervalMonthDayNano::new(0, 0, -1)), Some(-2));
        assert_eq!(clocks.moved(i64::MAX, day), None);
        assert_eq!(clocks.moved(0, IntervalMonthDayNano::new(i32::MAX, 0, 0)), None);
        assert!(Clocks::of(&DataType::Timestamp(TimeUnit::Second, Some("Mars/Olympus".into()))).is_err());
        assert!(Clocks::of(&DataType::Date32).unwrap().is_none());
    }
}
