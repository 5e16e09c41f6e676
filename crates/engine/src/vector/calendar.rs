//! Dates as days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").

use crate::ir::DatePart;

/// Days of 400 years.
const ERA: i64 = 146_097;

/// Year, month and day of a date.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// The first day of a month.
fn first_of(year: i64, month: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A part of a date.
pub(super) fn date_part(part: DatePart, days: i64) -> i64 {
    let (year, month, day) = civil(days);
    match part {
        DatePart::Year => year,
        DatePart::Quarter => (month + 2) / 3,
        DatePart::Month => month,
        DatePart::Day => day,
    }
}

/// A date so many months later; past the end of a shorter month its last day.
pub(super) fn months_later(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil(days);
    let number = 12 * year + month - 1 + months;
    let month = |number: i64| first_of(number.div_euclid(12), number.rem_euclid(12) + 1);
    let (first, next) = (month(number), month(number + 1));
    first + day.min(next - first) - 1
}
