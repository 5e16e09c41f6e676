//! Dates by walking years and months, nothing like the arithmetic of kernels.

use warpcube_engine::DatePart;

/// Adds up the lengths of years and months, nothing like the kernel's arithmetic either.
pub fn months_later(days: i128, months: i128) -> i128 {
    let [year, month, day] = [DatePart::Year, DatePart::Month, DatePart::Day].map(|part| date_part(part, days));
    let shifted = year * 12 + month - 1 + months;
    let (year, month) = (shifted.div_euclid(12), shifted.rem_euclid(12) as usize);
    let years: i128 = match year >= 1970 {
        true => (1970..year).map(|year| 365 + i128::from(leap(year))).sum(),
        false => -(year..1970).map(|year| 365 + i128::from(leap(year))).sum::<i128>(),
    };
    let lengths = month_lengths(year);
    years + lengths[..month].iter().sum::<i128>() + day.min(lengths[month]) - 1
}

fn leap(year: i128) -> bool {
    year % 4 == 0 && year % 100 != 0 || year % 400 == 0
}

fn month_lengths(year: i128) -> [i128; 12] {
    [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// Walks years and months from 1970: slow, and nothing like the kernel's arithmetic.
pub fn date_part(part: DatePart, mut days: i128) -> i128 {
    let mut year = 1970;
    while days < 0 {
        year -= 1;
        days += if leap(year) { 366 } else { 365 };
    }
    while days >= if leap(year) { 366 } else { 365 } {
        days -= if leap(year) { 366 } else { 365 };
        year += 1;
    }
    let lengths = month_lengths(year);
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    match part {
        DatePart::Year => year,
        DatePart::Quarter => month as i128 / 3 + 1,
        DatePart::Month => month as i128 + 1,
        DatePart::Day => days + 1,
    }
}
