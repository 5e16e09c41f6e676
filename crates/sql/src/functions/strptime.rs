//! `strptime` and `try_strptime` of DuckDB: texts as timestamps by patterns of `strftime`.
//!
//! Parts may have fewer digits than `strftime` writes; blanks in front of a text are passed over, and a text that goes
//! on behind the pattern is refused. What a pattern lacks is that of 1900-01-01 00:00:00. A text with an offset (`%z`)
//! is the time of UTC.

use arrow::array::AsArray;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use datafusion::error::Result;

use super::{Arguments, Own, Text, Texts, Time, raised};

/// Names of months, in their order.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Names of days, from Sunday on.
pub(super) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("strptime", &[Text, Text], Time, |args| {
        args.times(|row| {
            let (text, pattern) = (args.text(0).value(row), args.text(1).value(row));
            let refused = || raised(format!("'{text}' is no time by the pattern '{pattern}'"));
            parsed(text, pattern)?.map(Some).ok_or_else(refused)
        })
    }),
    Own::new("strptime", &[Text, Texts], Time, |args| {
        args.times(|row| {
            let text = args.text(0).value(row);
            let refused = || raised(format!("'{text}' is no time by any of the patterns"));
            by_first(args, row)?.map(Some).ok_or_else(refused)
        })
    }),
    Own::new("try_strptime", &[Text, Texts], Time, |args| args.times(|row| by_first(args, row))),
    Own::new("try_strptime", &[Text, Text], Time, |args| {
        args.times(|row| parsed(args.text(0).value(row), args.text(1).value(row)))
    }),
];

/// The time of a text by the first pattern of a list that it follows.
fn by_first(args: &Arguments, row: usize) -> Result<Option<NaiveDateTime>> {
    let patterns = args.columns[1].as_list::<i32>().value(row);
    for pattern in patterns.as_string::<i32>().iter().flatten() {
        if let Some(time) = parsed(args.text(0).value(row), pattern)? {
            return Ok(Some(time));
        }
    }
    Ok(None)
}

/// What a text says of a time.
struct Parts {
    year: i32,
    month: u32,
    day: u32,
    day_of_year: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    is_afternoon: Option<bool>,
    /// Seconds east of UTC.
    offset: i64,
}

/// What stands for `%%` while longer parts are written out.
const ESCAPED: &str = "\u{1}";

/// The time of a text; none if it does not follow the pattern.
///
/// # Errors
/// A pattern with a part that is not known.
fn parsed(text: &str, pattern: &str) -> Result<Option<NaiveDateTime>> {
    let mut parts = Parts {
        year: 1900,
        month: 1,
        day: 1,
        day_of_year: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
        is_afternoon: None,
        offset: 0,
    };
    let pattern = pattern
        .replace("%%", ESCAPED)
        .replace("%c", "%Y-%m-%d %H:%M:%S")
        .replace("%x", "%Y-%m-%d")
        .replace("%X", "%H:%M:%S");
    let pattern = pattern.replace(ESCAPED, "%%");
    let (mut rest, mut wanted) = (text.trim_start(), pattern.chars());
    let mut follows = true;
    while let Some(character) = wanted.next() {
        let after = match character {
            '%' => {
                let part = wanted.next().and_then(|part| if part == '-' { wanted.next() } else { Some(part) });
                let unknown = || raised(format!("the pattern '{pattern}' has a part that strptime does not know"));
                let part = part.filter(|part| "aAwdbBmyYHIpMSfgnzZj%".contains(*part)).ok_or_else(unknown)?;
                parts.take(part, rest)
            }
            blank if blank.is_whitespace() => Some(rest.trim_start()),
            literal => rest.strip_prefix(literal),
        };
        match after {
            Some(after) if follows => rest = after,
            _ => follows = false,
        }
    }
    Ok((follows && rest.trim_start().is_empty()).then(|| parts.time()).flatten())
}

/// The digits that a text begins with, at most so many, as a number; how many they are; and the rest.
fn digits(text: &str, most: usize) -> Option<(u32, usize, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let number = text[..count].parse().ok()?;
    Some((number, count, &text[count..]))
}

/// Which of some names a text begins with, or with the first letters of which, case aside; and the rest.
pub(super) fn name<'t>(text: &'t str, names: &[&str], letters: Option<usize>) -> Option<(u32, &'t str)> {
    names.iter().enumerate().find_map(|(at, name)| {
        let name = &name[..letters.unwrap_or(name.len())];
        let front = text.get(..name.len())?;
        front.eq_ignore_ascii_case(name).then(|| (at as u32, &text[name.len()..]))
    })
}

impl Parts {
    /// Takes a part from the front of a text, and gives the rest.
    fn take<'t>(&mut self, part: char, text: &'t str) -> Option<&'t str> {
        let mut number = |place: fn(&mut Parts) -> &mut u32, most: usize, range: std::ops::RangeInclusive<u32>| {
            let (value, _, rest) = digits(text, most)?;
            *place(self) = value;
            range.contains(&value).then_some(rest)
        };
        match part {
            'd' => number(|parts| &mut parts.day, 2, 1..=31),
            'm' => number(|parts| &mut parts.month, 2, 1..=12),
            'H' => number(|parts| &mut parts.hour, 2, 0..=23),
            'I' => number(|parts| &mut parts.hour, 2, 1..=12),
            'M' => number(|parts| &mut parts.minute, 2, 0..=59),
            'S' => number(|parts| &mut parts.second, 2, 0..=59),
            'a' => name(text, &DAYS, Some(3)).map(|(_, rest)| rest),
            'A' => name(text, &DAYS, None).map(|(_, rest)| rest),
            'w' => digits(text, 1).filter(|(day, ..)| *day < 7).map(|(_, _, rest)| rest),
            'b' | 'B' => {
                let (month, rest) = name(text, &MONTHS, (part == 'b').then_some(3))?;
                self.month = month + 1;
                Some(rest)
            }
            'y' => {
                let (year, _, rest) = digits(text, 2)?;
                self.year = year as i32 + if year < 69 { 2000 } else { 1900 };
                Some(rest)
            }
            'Y' => {
                let (sign, unsigned) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
                let (year, _, rest) = digits(unsigned, 4)?;
                self.year = sign * year as i32;
                Some(rest)
            }
            'j' => {
                let (day, _, rest) = digits(text, 3)?;
                self.day_of_year = Some(day);
                Some(rest)
            }
            'p' => {
                let (half, rest) = name(text, &["AM", "PM"], None)?;
                self.is_afternoon = Some(half == 1);
                Some(rest)
            }
            'f' | 'g' | 'n' => {
                let most = if part == 'g' { 3 } else { 9 };
                let (fraction, count, rest) = digits(text, most)?;
                self.nanos = fraction * 10_u32.pow(9 - count as u32);
                Some(rest)
            }
            'z' => {
                if let Some(rest) = text.strip_prefix(['Z', 'z']) {
                    return Some(rest);
                }
                let sign = if text.starts_with('-') { -1 } else { 1 };
                let (hours, _, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
                let minutes = digits(rest.strip_prefix(':').unwrap_or(rest), 2);
                let (minutes, rest) = minutes.map_or((0, rest), |(minutes, _, rest)| (minutes, rest));
                self.offset = sign * i64::from(hours * 3600 + minutes * 60);
                (hours < 24 && minutes < 60).then_some(rest)
            }
            // The name of a zone that UTC has.
            'Z' => ["UTC", "GMT", "Z"].iter().find_map(|zone| text.strip_prefix(zone)),
            _ => text.strip_prefix('%'),
        }
    }

    fn time(&self) -> Option<NaiveDateTime> {
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(self.year, day)?,
            None => NaiveDate::from_ymd_opt(self.year, self.month, self.day)?,
        };
        let hour = match self.is_afternoon {
            Some(is_afternoon) if (1..=12).contains(&self.hour) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
            Some(_) => return None,
            None => self.hour,
        };
        // A timestamp has microseconds.
        let nanos = self.nanos / 1_000 * 1_000;
        let time = NaiveTime::from_hms_nano_opt(hour, self.minute, self.second, nanos)?;
        date.and_time(time).checked_sub_signed(TimeDelta::seconds(self.offset))
    }
}
