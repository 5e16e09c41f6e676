//! The date table: the 2557 days of 1992 to 1998, with nothing drawn. The names of weekdays run one day ahead of the
//! calendar (1 January 1992 was a Wednesday and is called Thursday): the reference counts them so.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringBuilder};

use super::dists::{HOLIDAYS, MONTHS, SEASONS, WEEKDAYS};
use super::scale::DAYS;

/// A day of the calendar, as numbers counted from 1.
#[derive(Clone, Copy)]
struct Day {
    year: i32,
    month: i32,
    day: i32,
    of_year: i32,
}

static CALENDAR: [Day; DAYS as usize] = calendar();

/// The key (yyyymmdd) of each day.
pub(super) static DATE_KEYS: [i32; DAYS as usize] = {
    let mut keys = [0; DAYS as usize];
    let mut i = 0;
    while i < keys.len() {
        let Day { year, month, day, .. } = CALENDAR[i];
        keys[i] = year * 10_000 + month * 100 + day;
        i += 1;
    }
    keys
};

const fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 => 29,
        2 => 28,
        _ => 31,
    }
}

const fn calendar() -> [Day; DAYS as usize] {
    let mut today = Day { year: 1992, month: 1, day: 1, of_year: 1 };
    let mut days = [today; DAYS as usize];
    let mut i = 0;
    while i < days.len() {
        days[i] = today;
        today.day += 1;
        today.of_year += 1;
        if today.day > days_in_month(today.year, today.month) {
            today.day = 1;
            today.month += 1;
        }
        if today.month > 12 {
            today = Day { year: today.year + 1, month: 1, day: 1, of_year: 1 };
        }
        i += 1;
    }
    days
}

/// The columns of the days in `range`, counted from 0.
pub(super) fn columns(range: Range<u64>) -> Vec<ArrayRef> {
    let range = range.start as usize..range.end as usize;
    let days = &CALENDAR[range.clone()];
    let ints = |of: &dyn Fn(usize, &Day) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(range.clone().zip(days).map(|(i, day)| of(i, day))))
    };
    let strings = |of: &dyn Fn(usize, &Day, &mut String)| -> ArrayRef {
        let (mut builder, mut text) = (StringBuilder::new(), String::new());
        for (i, day) in range.clone().zip(days) {
            text.clear();
            of(i, day, &mut text);
            builder.append_value(&text);
        }
        Arc::new(builder.finish())
    };
    let month = |day: &Day| MONTHS[day.month as usize - 1];
    vec![
        ints(&|i, _| DATE_KEYS[i]),
        strings(&|_, day, to| _ = write!(to, "{} {}, {}", month(day), day.day, day.year)),
        strings(&|i, _, to| to.push_str(WEEKDAYS[weekday(i) as usize - 1])),
        strings(&|_, day, to| to.push_str(month(day))),
        ints(&|_, day| day.year),
        ints(&|_, day| day.year * 100 + day.month),
        strings(&|_, day, to| _ = write!(to, "{}{}", &month(day)[..3], day.year)),
        ints(&|i, _| weekday(i)),
        ints(&|_, day| day.day),
        ints(&|_, day| day.of_year),
        ints(&|_, day| day.month),
        ints(&|_, day| day.of_year / 7 + 1),
        strings(&|_, day, to| to.push_str(season(day))),
        ints(&|i, _| i32::from(weekday(i) == 7)),
        ints(&|_, day| i32::from(day.day == days_in_month(day.year, day.month))),
        ints(&|_, day| i32::from(HOLIDAYS.contains(&(day.month, day.day)))),
        ints(&|i, _| i32::from(!matches!(weekday(i), 1 | 7))),
    ]
}

/// The number of the weekday, Sunday being 1, one day ahead (see the module's head).
fn weekday(index: usize) -> i32 {
    (index as i32 + 4) % 7 + 1
}

fn season(day: &Day) -> &'static str {
    let fits =
        |&&(_, first, last, until): &&(_, i32, i32, i32)| (first..=last).contains(&day.month) && day.day <= until;
    SEASONS.iter().find(fits).map_or("", |season| season.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_ends_where_it_should() {
        assert_eq!((DATE_KEYS[0], DATE_KEYS[59], DATE_KEYS[2556]), (19920101, 19920229, 19981231));
        assert_eq!(CALENDAR[365].of_year, 366);
    }
}
