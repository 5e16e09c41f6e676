//! Patterns of PostgreSQL for dates, times and intervals: `to_char(t, 'YYYY-MM-DD HH24:MI')` and the texts that
//! `to_date` and `to_timestamp` read by them.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::{Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike};
use datafusion::error::{DataFusionError, Result};

use super::number_pattern::{ordinal, quoted, roman};
use super::strptime::{DAYS, MONTHS, name};
use super::{number_pattern, raised, time_of};
use crate::error::SqlError;

const SECOND_MICROS: i64 = 1_000_000;
const DAY_MICROS: i64 = 86_400 * SECOND_MICROS;
/// Days from the first one that Julian days count to the last of year 0.
const JULIAN_OF_YEAR_0: i32 = 1_721_425;

/// Parts of a time, longer ones before those that they begin with.
const PARTS: [&str; 51] = [
    "MONTH", "SSSSS", "Y,YYY", "A.M.", "P.M.", "A.D.", "B.C.", "HH24", "HH12", "IDDD", "IYYY", "SSSS", "YYYY", "DAY",
    "DDD", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "IYY", "MON", "TZH", "TZM", "YYY", "AD", "AM", "BC", "CC", "DD",
    "DY", "HH", "ID", "IW", "IY", "MI", "MM", "MS", "OF", "PM", "RM", "SS", "TZ", "US", "WW", "YY", "D", "I", "J", "Q",
];
/// Parts of one letter that others begin with, too.
const LETTERS: [&str; 2] = ["W", "Y"];

/// A piece of a pattern.
enum Piece<'p> {
    Part {
        name: &'static str,
        /// The part as it is written, whose case is that of words.
        written: &'p str,
        /// Without blanks and zeros that fill a width.
        is_bare: bool,
        /// `th` or `TH` behind a number.
        ordinal: Option<&'p str>,
    },
    Literal(String),
}

/// Whether a pattern is one of PostgreSQL's and none of `strftime`.
pub(crate) fn is_pattern(text: &str) -> bool {
    !text.contains('%')
}

fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest, mut is_bare) = (Vec::new(), pattern, false);
    let begins = |text: &str, word: &str| text.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word));
    while let Some(first) = rest.chars().next() {
        if ["FM", "FX", "TM"].iter().any(|prefix| rest.starts_with(prefix)) {
            is_bare |= rest.starts_with("FM");
            rest = &rest[2..];
            continue;
        }
        if let Some(name) = PARTS.into_iter().chain(LETTERS).find(|part| begins(rest, part)) {
            let (written, after) = rest.split_at(name.len());
            let ordinal = after.get(..2).filter(|suffix| matches!(*suffix, "th" | "TH"));
            rest = &after[ordinal.map_or(0, str::len)..];
            pieces.push(Piece::Part { name, written, is_bare, ordinal });
            is_bare = false;
            continue;
        }
        let (literal, after) = match first {
            '"' => quoted(&rest[1..]),
            '\\' => {
                rest[1..].chars().next().map_or((String::new(), ""), |c| (c.to_string(), &rest[1 + c.len_utf8()..]))
            }
            other => (other.to_string(), &rest[other.len_utf8()..]),
        };
        rest = after;
        match pieces.last_mut() {
            Some(Piece::Literal(before)) => before.push_str(&literal),
            _ => pieces.push(Piece::Literal(literal)),
        }
    }
    pieces
}

/// A value as a pattern shows it.
struct Moment {
    /// The date, of all but intervals and times of day.
    date: Option<NaiveDate>,
    /// Years, months and days of an interval.
    span: [i64; 3],
    /// Microseconds since midnight, or of an interval all that are no days.
    micros: i64,
    /// The zone's name and seconds east of UTC, of an instant.
    zone: Option<(String, i32)>,
}

/// Values by their patterns, one a row.
///
/// # Errors
/// A pattern with a part that the type lacks.
pub(crate) fn to_char(values: &ArrayRef, patterns: &StringArray) -> Result<StringArray> {
    let values = match values.data_type() {
        number if number.is_numeric() => return number_pattern::to_char(values, patterns),
        DataType::Timestamp(_, zone) => cast(values, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?,
        DataType::Time32(_) | DataType::Time64(_) => cast(values, &DataType::Time64(TimeUnit::Microsecond))?,
        DataType::Duration(_) => cast(values, &DataType::Duration(TimeUnit::Microsecond))?,
        DataType::Interval(_) => cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?,
        _ => cast(values, &DataType::Timestamp(TimeUnit::Microsecond, None))?,
    };
    let shown = |row: usize| {
        let is_null = values.is_null(row) || patterns.is_null(row);
        (!is_null).then(|| shown(&moment(&values, row)?, patterns.value(row))).transpose()
    };
    (0..values.len()).map(shown).collect()
}

fn moment(values: &ArrayRef, row: usize) -> Result<Moment> {
    let (date, span, micros) = match values.data_type() {
        DataType::Time64(_) => (None, [0; 3], values.as_primitive::<Time64MicrosecondType>().value(row)),
        DataType::Duration(_) => {
            let micros = values.as_primitive::<DurationMicrosecondType>().value(row);
            (None, [0, 0, micros / DAY_MICROS], micros % DAY_MICROS)
        }
        DataType::Interval(_) => {
            let span = values.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let months = i64::from(span.months);
            (None, [months / 12, months % 12, span.days.into()], span.nanoseconds / 1_000)
        }
        _ => {
            let time = time_of(values.as_primitive::<TimestampMicrosecondType>().value(row))?;
            let DataType::Timestamp(_, Some(zone)) = values.data_type() else { return Ok(of_clock(time, None)) };
            let local = Tz::from_str(zone)?.from_utc_datetime(&time);
            let zone = (local.format("%Z").to_string(), local.offset().fix().local_minus_utc());
            return Ok(of_clock(local.naive_local(), Some(zone)));
        }
    };
    Ok(Moment { date, span, micros, zone: None })
}

fn of_clock(time: NaiveDateTime, zone: Option<(String, i32)>) -> Moment {
    let since_midnight = i64::from(time.num_seconds_from_midnight()) * SECOND_MICROS;
    let micros = since_midnight + i64::from(time.nanosecond() / 1_000);
    Moment { date: Some(time.date()), span: [0; 3], micros, zone }
}

fn shown(moment: &Moment, pattern: &str) -> Result<String> {
    let mut text = String::new();
    for piece in pieces(pattern) {
        match piece {
            Piece::Literal(literal) => text.push_str(&literal),
            Piece::Part { name, written, is_bare, ordinal: suffix } => {
                let part = moment.part(name, written, is_bare).ok_or_else(|| {
                    let kind =
                        if moment.date.is_some() { "a timestamp without a zone" } else { "an interval or a time" };
                    DataFusionError::from(SqlError::Unsupported(format!("'{written}' in the pattern of {kind}")))
                })?;
                text.push_str(&part);
                if let Some(suffix) = suffix {
                    let ending = ordinal(&part);
                    text.push_str(&if suffix == "TH" { ending.to_uppercase() } else { ending.to_string() });
                }
            }
        }
    }
    Ok(text)
}

/// A word in the case in which its part is written, filled with blanks up to a width.
fn word(word: &str, written: &str, width: usize, is_bare: bool) -> String {
    let mut letters = written.chars();
    let is_upper = |letter: Option<char>| letter.is_some_and(char::is_uppercase);
    let cased = match (is_upper(letters.next()), is_upper(letters.next())) {
        (true, true) => word.to_uppercase(),
        (true, false) => word.to_string(),
        (false, _) => word.to_lowercase(),
    };
    if is_bare { cased } else { format!("{cased:width$}") }
}

impl Moment {
    /// A part's text; none if the value has no such part.
    fn part(&self, name: &str, written: &str, is_bare: bool) -> Option<String> {
        let number = |value: i64, width: usize| match is_bare {
            true => value.to_string(),
            // A sign takes no digit's place.
            false => format!("{value:00$}", width + usize::from(value < 0)),
        };
        let hour = self.micros / (3_600 * SECOND_MICROS);
        let of = |unit: i64, count: i64| self.micros / unit % count;
        // Digits behind a point keep their zeros.
        let fraction = |digits: u32| {
            let value = of(10_i64.pow(6 - digits), 10_i64.pow(digits));
            format!("{value:00$}", digits as usize)
        };
        let is_late = hour.rem_euclid(24) >= 12;
        Some(match name {
            "HH24" => number(hour, 2),
            "HH" | "HH12" => number(if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            "MI" => number(of(60 * SECOND_MICROS, 60), 2),
            "SS" => number(of(SECOND_MICROS, 60), 2),
            "MS" => fraction(3),
            "US" => fraction(6),
            "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => fraction(u32::from(name.as_bytes()[2] - b'0')),
            "SSSS" | "SSSSS" => number(self.micros / SECOND_MICROS, 0),
            "AM" | "PM" => word(if is_late { "PM" } else { "AM" }, written, 0, is_bare),
            "A.M." | "P.M." => match written.starts_with(char::is_uppercase) {
                true => if is_late { "P.M." } else { "A.M." }.to_string(),
                false => if is_late { "p.m." } else { "a.m." }.to_string(),
            },
            "TZ" => word(&zone_name(self.zone.as_ref()?), written, 0, true),
            "OF" | "TZH" | "TZM" => {
                let east = self.zone.as_ref()?.1;
                let (sign, minutes) = (if east < 0 { '-' } else { '+' }, east.abs() / 60);
                match (name, minutes % 60) {
                    ("TZM", minutes) => format!("{minutes:02}"),
                    ("OF", minutes @ 1..) => format!("{sign}{:02}:{minutes:02}", east.abs() / 3_600),
                    _ => format!("{sign}{:02}", minutes / 60),
                }
            }
            _ => match self.date {
                Some(date) => of_date(date, name, written, is_bare, number)?,
                None => {
                    let [years, months, days] = self.span;
                    match name {
                        "YYYY" => number(years, 4),
                        "YYY" => number(years % 1_000, 3),
                        "YY" => number(years % 100, 2),
                        "Y" => number(years % 10, 1),
                        "MM" => number(months, 2),
                        "DD" => number(days, 2),
                        _ => return None,
                    }
                }
            },
        })
    }
}

/// The short name of a zone: that of UTC, or its offset, where it has none of its own.
fn zone_name((name, east): &(String, i32)) -> String {
    let minutes = east.abs() / 60;
    let sign = if *east < 0 { '-' } else { '+' };
    match (name.starts_with(['+', '-']), minutes / 60, minutes % 60) {
        (false, ..) => name.to_uppercase(),
        (true, 0, 0) => "UTC".into(),
        (true, hours, 0) => format!("{sign}{hours:02}"),
        (true, hours, minutes) => format!("{sign}{hours:02}:{minutes:02}"),
    }
}

/// A part of a date; none for what is no such part.
fn of_date(
    date: NaiveDate,
    name: &str,
    written: &str,
    is_bare: bool,
    number: impl Fn(i64, usize) -> String,
) -> Option<String> {
    // Before year 1 is year 1 BC.
    let of_era = |year: i32| i64::from(if year > 0 { year } else { 1 - year });
    let (year, iso) = (of_era(date.year()), of_era(date.iso_week().year()));
    let (weekday, from_monday) = (date.weekday().num_days_from_sunday(), date.weekday().number_from_monday());
    Some(match name {
        "YYYY" => number(year, 4),
        "YYY" => number(year % 1_000, 3),
        "YY" => number(year % 100, 2),
        "Y" => number(year % 10, 1),
        "Y,YYY" => format!("{},{:03}", year / 1_000, year % 1_000),
        "IYYY" => number(iso, 4),
        "IYY" => number(iso % 1_000, 3),
        "IY" => number(iso % 100, 2),
        "I" => number(iso % 10, 1),
        "BC" | "AD" => word(if date.year() > 0 { "AD" } else { "BC" }, written, 0, true),
        "B.C." | "A.D." => match written.starts_with(char::is_uppercase) {
            true => if date.year() > 0 { "A.D." } else { "B.C." }.to_string(),
            false => if date.year() > 0 { "a.d." } else { "b.c." }.to_string(),
        },
        "MONTH" => word(MONTHS[date.month0() as usize], written, 9, is_bare),
        "MON" => word(&MONTHS[date.month0() as usize][..3], written, 3, is_bare),
        "MM" => number(date.month().into(), 2),
        "RM" => word(roman(date.month()), written, 4, is_bare),
        "DAY" => word(DAYS[weekday as usize], written, 9, is_bare),
        "DY" => word(&DAYS[weekday as usize][..3], written, 3, is_bare),
        "DDD" => number(date.ordinal().into(), 3),
        "IDDD" => number((i64::from(date.iso_week().week()) - 1) * 7 + i64::from(from_monday), 3),
        "DD" => number(date.day().into(), 2),
        "D" => number(i64::from(weekday) + 1, 1),
        "ID" => number(from_monday.into(), 1),
        "W" => number(i64::from(date.day0() / 7) + 1, 1),
        "WW" => number(i64::from(date.ordinal0() / 7) + 1, 2),
        "IW" => number(date.iso_week().week().into(), 2),
        "CC" => number((year + 99) / 100, 2),
        "J" => number((date.num_days_from_ce() + JULIAN_OF_YEAR_0).into(), 0),
        "Q" => number(i64::from(date.month0() / 3) + 1, 1),
        _ => return None,
    })
}

/// What a text says of a time.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    is_before_christ: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    iso: [Option<i64>; 3],
    hour: i64,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    seconds_of_day: Option<i64>,
    offset: Option<[i64; 2]>,
    sign: i64,
}

/// A text that follows a pattern as timestamps are written, with its offset if it has one.
///
/// # Errors
/// A text that does not follow it, and a part that is only written and never read.
pub(crate) fn read(text: &str, pattern: &str) -> Result<String> {
    let refused = || raised(format!("'{text}' is no time by the pattern '{pattern}'"));
    let (mut read, mut rest) = (Read::default(), text);
    let pieces = pieces(pattern);
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Literal(literal) => {
                let next = pieces.get(at + 1);
                let is_signed = matches!(next, Some(Piece::Part { name: "TZH" | "OF", .. }));
                rest = after_literal(rest, literal, is_signed).ok_or_else(refused)?;
            }
            Piece::Part { name, written, is_bare, ordinal } => {
                // A number reads as many digits as it has where a separator or nothing follows.
                let is_free = match pieces.get(at + 1) {
                    Some(Piece::Literal(literal)) => !literal.starts_with(|c: char| c.is_ascii_digit()),
                    Some(Piece::Part { .. }) => *is_bare,
                    None => true,
                };
                let front = rest.trim_start();
                let taken = read.take(name, front, is_free).ok_or_else(|| {
                    DataFusionError::from(SqlError::Unsupported(format!("'{written}' in a pattern that reads")))
                })?;
                rest = taken.ok_or_else(refused)?;
                if ordinal.is_some() {
                    rest = rest.get(2..).ok_or_else(refused)?;
                }
            }
        }
    }
    read.written().ok_or_else(refused)
}

/// The text behind a literal: a separator stands for any separators or none, a letter for one character. A minus is a
/// sign in front of an offset (`is_signed`), and a separator elsewhere.
fn after_literal<'t>(text: &'t str, literal: &str, is_signed: bool) -> Option<&'t str> {
    let is_separator = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
    let is_sign = |c: char| c == '+' || c == '-' && is_signed;
    literal.chars().try_fold(text, |rest, character| match is_separator(character) {
        true => Some(rest.trim_start_matches(|c: char| is_separator(c) && !is_sign(c) || c.is_whitespace())),
        false => rest.chars().next().map(|first| &rest[first.len_utf8()..]),
    })
}

impl Read {
    /// Takes a part from the front of a text and gives the rest, none if the text lacks it; none for a part that is
    /// never read.
    fn take<'t>(&mut self, part: &str, text: &'t str, is_free: bool) -> Option<Option<&'t str>> {
        let digits = |most: usize| {
            let most = if is_free { 18 } else { most };
            let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
            Some((text[..count].parse::<i64>().ok()?, count, &text[count..]))
        };
        let fixed = |most: usize| {
            let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
            Some((text[..count].parse::<i64>().ok()?, count, &text[count..]))
        };
        let mut number = |place: &mut dyn FnMut(&mut Read, i64, usize), most: usize| {
            digits(most).map(|(value, count, rest)| {
                place(self, value, count);
                rest
            })
        };
        // Short years are those next to 2020.
        let near = |year: i64| match year {
            ..70 => year + 2_000,
            70..100 => year + 1_900,
            100..520 => year + 2_000,
            520..1_000 => year + 1_000,
            _ => year,
        };
        let fraction = |digits: usize| {
            fixed(digits).map(|(value, count, rest)| (value * 10_i64.pow(6 - count.min(6) as u32), rest))
        };
        let of_word = |names: &[&str], letters: Option<usize>| name(text, names, letters);
        Some(match part {
            "YYYY" => {
                number(&mut |read, value, count| read.year = Some(if count < 4 { near(value) } else { value }), 4)
            }
            "YYY" => number(&mut |read, value, _| read.year = Some(near(value)), 3),
            "YY" => number(&mut |read, value, _| read.year = Some(near(value)), 2),
            "Y" => number(&mut |read, value, _| read.year = Some(near(value)), 1),
            "Y,YYY" => (|| {
                let (thousands, _, rest) = fixed(3)?;
                let rest = rest.strip_prefix(',')?;
                self.year = Some(thousands * 1_000 + rest.get(..3)?.parse::<i64>().ok()?);
                Some(&rest[3..])
            })(),
            "MM" => number(&mut |read, value, _| read.month = Some(value), 2),
            "DD" => number(&mut |read, value, _| read.day = Some(value), 2),
            "DDD" => number(&mut |read, value, _| read.day_of_year = Some(value), 3),
            "J" => number(&mut |read, value, _| read.julian = Some(value), 18),
            "IYYY" => number(&mut |read, value, _| read.iso[0] = Some(value), 4),
            "IW" => number(&mut |read, value, _| read.iso[1] = Some(value), 2),
            "ID" => number(&mut |read, value, _| read.iso[2] = Some(value), 1),
            "HH24" => number(&mut |read, value, _| read.hour = value, 2),
            "HH" | "HH12" => number(
                &mut |read, value, _| {
                    read.hour = value;
                    read.is_afternoon = read.is_afternoon.or(Some(false));
                },
                2,
            ),
            "MI" => number(&mut |read, value, _| read.minute = value, 2),
            "SS" => number(&mut |read, value, _| read.second = value, 2),
            "SSSS" | "SSSSS" => number(&mut |read, value, _| read.seconds_of_day = Some(value), 5),
            "MS" | "FF3" => fraction(3).map(|(micros, rest)| {
                self.micros = micros;
                rest
            }),
            "US" | "FF1" | "FF2" | "FF4" | "FF5" | "FF6" => fraction(6).map(|(micros, rest)| {
                self.micros = micros;
                rest
            }),
            "MONTH" => of_word(&MONTHS, None).or_else(|| of_word(&MONTHS, Some(3))).map(|(month, rest)| {
                self.month = Some(i64::from(month) + 1);
                rest
            }),
            "MON" => of_word(&MONTHS, Some(3)).map(|(month, rest)| {
                self.month = Some(i64::from(month) + 1);
                rest
            }),
            "DAY" => of_word(&DAYS, None).or_else(|| of_word(&DAYS, Some(3))).map(|(_, rest)| rest),
            "DY" => of_word(&DAYS, Some(3)).map(|(_, rest)| rest),
            "AM" | "PM" | "A.M." | "P.M." => of_word(&["A.M.", "P.M.", "AM", "PM"], None).map(|(half, rest)| {
                self.is_afternoon = Some(half % 2 == 1);
                rest
            }),
            "BC" | "AD" | "B.C." | "A.D." => of_word(&["A.D.", "B.C.", "AD", "BC"], None).map(|(era, rest)| {
                self.is_before_christ = era % 2 == 1;
                rest
            }),
            "TZH" | "OF" => (|| {
                self.sign = if text.starts_with('-') { -1 } else { 1 };
                let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
                let (hours, rest) = (unsigned.get(..2)?.parse::<i64>().ok()?, &unsigned[2..]);
                let minutes = rest.strip_prefix(':').filter(|_| part == "OF");
                let minutes = minutes.and_then(|rest| Some((rest.get(..2)?.parse::<i64>().ok()?, &rest[2..])));
                let (minutes, rest) = minutes.unwrap_or((0, rest));
                self.offset = Some([hours, minutes]);
                Some(rest)
            })(),
            "TZM" => fixed(2).map(|(minutes, _, rest)| {
                self.offset = Some([self.offset.map_or(0, |[hours, _]| hours), minutes]);
                rest
            }),
            _ => return None,
        })
    }

    /// The time as timestamps are written; none where no calendar has it.
    fn written(&self) -> Option<String> {
        let year = self.year.unwrap_or(0);
        let year = if self.is_before_christ { 1 - year } else { year };
        let date = match (self.julian, self.iso, self.day_of_year) {
            (Some(day), ..) => {
                NaiveDate::from_num_days_from_ce_opt(i32::try_from(day).ok()?.checked_sub(JULIAN_OF_YEAR_0)?)?
            }
            (_, [Some(year), week, day], _) => {
                let first = NaiveDate::from_isoywd_opt(year.try_into().ok()?, 1, chrono::Weekday::Mon)?;
                let days = (week.unwrap_or(1) - 1).checked_mul(7)? + day.unwrap_or(1) - 1;
                first.checked_add_signed(chrono::TimeDelta::try_days(days)?)?
            }
            (_, _, Some(day)) => NaiveDate::from_yo_opt(year.try_into().ok()?, day.try_into().ok()?)?,
            _ => {
                let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
                NaiveDate::from_ymd_opt(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?)?
            }
        };
        let hour = match self.is_afternoon {
            Some(is_afternoon) if (1..=12).contains(&self.hour) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
            Some(_) => return None,
            None => self.hour,
        };
        let [hour, minute, second] = match self.seconds_of_day {
            Some(seconds) => [seconds / 3_600, seconds / 60 % 60, seconds % 60],
            None => [hour, self.minute, self.second],
        };
        let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        let offset = self.offset.map(|[hours, minutes]| {
            let sign = if self.sign < 0 { '-' } else { '+' };
            format!("{sign}{hours:02}:{minutes:02}")
        });
        let shown = |offset: String| format!("{date} {hour:02}:{minute:02}:{second:02}.{:06}{offset}", self.micros);
        is_time.then(|| shown(offset.unwrap_or_default()))
    }
}
