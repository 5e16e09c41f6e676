//! Texts of dates, timestamps and times of day, written out as Arrow reads them.
//!
//! Arrow 59 moves `2024-01-01 08:00:00+02` to UTC before it forgets the zone: 06:00, and for a text near midnight
//! another day. It asks for seconds, reads no time of day within a timestamp, takes a number that is a text, `'1'`, for
//! nanoseconds of a time of day, and cuts digits past those of its unit off. As in PostgreSQL, the zone of a text is
//! left out where the target has none, seconds may be left out, parts may have one digit, a time of day has a colon,
//! and digits past microseconds are rounded, halves away from 2000.
//!
//! Casts of texts and declared columns of CSV files are read so. The file goes once Arrow reads such texts.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use chrono::{Datelike, NaiveDateTime, TimeDelta, TimeZone};

use crate::zone_clocks::offset_on_wall;

/// What a text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wall {
    /// A date, or a timestamp of nanoseconds.
    Day,
    /// A time of day alone.
    Time,
    /// An instant of nanoseconds, by the zone of the text if it has one.
    Instant,
    /// A timestamp of microseconds or a coarser unit.
    Micros,
    /// An instant of microseconds or a coarser unit.
    InstantMicros,
}

impl Wall {
    pub(crate) fn of(data_type: &DataType) -> Option<Wall> {
        use DataType::{Date32, Date64, Time32, Time64, Timestamp};
        match data_type {
            Timestamp(TimeUnit::Nanosecond, None) | Date32 | Date64 => Some(Wall::Day),
            Timestamp(_, None) => Some(Wall::Micros),
            Time32(_) | Time64(_) => Some(Wall::Time),
            Timestamp(TimeUnit::Nanosecond, Some(_)) => Some(Wall::Instant),
            Timestamp(_, Some(_)) => Some(Wall::InstantMicros),
            _ => None,
        }
    }

    /// The text as Arrow reads it.
    pub(crate) fn bare(self, text: &str) -> Cow<'_, str> {
        let is_instant = matches!(self, Wall::Instant | Wall::InstantMicros);
        let whole = whole(if is_instant { text } else { without_zone(text) });
        match self {
            Wall::Day => whole,
            Wall::Instant => with_offset(whole),
            Wall::Micros => rounded(whole),
            Wall::InstantMicros => with_offset(rounded(whole)),
            Wall::Time if has_all_digits(&whole) => Cow::Owned(whole[DATE_BYTES + 1..].to_string()),
            Wall::Time if whole.contains(':') => whole,
            // No digits alone, which would be a number.
            Wall::Time => Cow::Owned(format!("{whole}:")),
        }
    }
}

/// A text that is no value of its column's type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Its position among the texts.
    pub(crate) row: usize,
    pub(crate) text: String,
}

/// Whether texts of files are read as values of a type here.
pub(crate) fn is_read(target: &DataType) -> bool {
    matches!(target, DataType::Timestamp(..) | DataType::Date32)
}

/// Texts as values of a type that [`is_read`], or the first that is none.
pub(crate) fn read(texts: &ArrayRef, target: &DataType) -> Result<Result<ArrayRef, Misfit>, ArrowError> {
    let values = cast(texts, target)?;
    let texts = cast(texts, &DataType::LargeUtf8)?;
    let texts = texts.as_string::<i64>();
    let Some(wall) = Wall::of(target) else {
        return Err(ArrowError::InvalidArgumentError(format!("texts read as {target}")));
    };
    let usual = if *target == DataType::Date32 { DATE_BYTES } else { SECOND_BYTES };
    let is_usual = |text: &str| text.len() <= usual;
    if values.null_count() == texts.null_count() && texts.iter().flatten().all(is_usual) {
        return Ok(Ok(values));
    }
    let bare: LargeStringArray = texts.iter().map(|text| text.map(|text| wall.bare(text))).collect();
    let values = cast(&(Arc::new(bare) as ArrayRef), target)?;
    Ok(match (0..texts.len()).find(|row| texts.is_valid(*row) && values.is_null(*row)) {
        Some(row) => Err(Misfit { row, text: texts.value(row).to_string() }),
        None => Ok(values),
    })
}

/// Bytes of `2024-01-01`, and of that with a time.
const DATE_BYTES: usize = 10;
const SECOND_BYTES: usize = 19;
const YEAR_MAX: i32 = 9_999;
/// Digits of microseconds.
const MICROSECONDS: usize = 6;

/// The text with all digits of a timestamp, if it is one.
pub(crate) fn whole(text: &str) -> Cow<'_, str> {
    let whole = if has_all_digits(text) { None } else { written_out(text) };
    whole.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Whether a text begins like `2024-01-01 08:00:00`.
fn has_all_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let signs = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    bytes.len() >= SECOND_BYTES
        && text.is_char_boundary(DATE_BYTES + 1)
        && matches!(bytes[DATE_BYTES], b' ' | b'T' | b't')
        && signs.iter().all(|(place, sign)| bytes[*place] == *sign)
}

/// The text of a timestamp with no more digits than microseconds have.
pub(crate) fn rounded(text: Cow<'_, str>) -> Cow<'_, str> {
    let parts = || {
        let text = (text.len() > SECOND_BYTES && text.is_ascii() && has_all_digits(&text)).then_some(text.as_ref())?;
        let (second, rest) = text.split_at(SECOND_BYTES);
        let (fraction, zone) = digits(rest.strip_prefix('.')?)?;
        let (kept, rest) = fraction.split_at_checked(MICROSECONDS).filter(|(_, rest)| !rest.is_empty())?;
        let (half, zeros) = rest.split_at(1);
        let is_half = half == "5" && zeros.bytes().all(|digit| digit == b'0');
        let is_up = if is_half { second >= "2000" } else { half >= "5" };
        let micros = kept.parse::<u32>().ok()? + u32::from(is_up);
        if micros < 1_000_000 {
            return Some(format!("{second}.{micros:06}{zone}"));
        }
        let time = NaiveDateTime::parse_from_str(&second.replacen(['T', 't'], " ", 1), "%Y-%m-%d %H:%M:%S").ok()?;
        // Arrow reads years of four digits.
        let next = time.checked_add_signed(TimeDelta::seconds(1)).filter(|next| next.year() <= YEAR_MAX)?;
        Some(format!("{}{zone}", next.format("%Y-%m-%d %H:%M:%S")))
    };
    match parts() {
        Some(rounded) => Cow::Owned(rounded),
        None => text,
    }
}

/// The text of a time of day or a timestamp without the offset or the name of a zone at its end.
fn without_zone(text: &str) -> &str {
    let Some(colon) = text.find(':') else { return text };
    let is_clock = |character: char| character.is_ascii_digit() || matches!(character, ':' | '.');
    let end = text[colon..].find(|character: char| !is_clock(character)).map_or(text.len(), |end| colon + end);
    let zone = text[end..].trim();
    let is_zone = || zone.eq_ignore_ascii_case("z") || zone.parse::<Tz>().is_ok();
    if !zone.is_empty() && is_zone() { &text[..end] } else { text }
}

/// The text of an instant with an offset in the place of its zone's name, where the clocks of the zone show its time
/// twice or never: that of standard time, as in PostgreSQL. Arrow refuses such a text.
fn with_offset(text: Cow<'_, str>) -> Cow<'_, str> {
    let settled = || {
        let front = without_zone(&text);
        let name = text[front.len()..].trim();
        let zone = Some(name).filter(|name| name.contains('/'))?.parse::<Tz>().ok()?;
        let time = NaiveDateTime::parse_from_str(&front.replacen(['T', 't'], " ", 1), "%Y-%m-%d %H:%M:%S%.f").ok()?;
        if zone.offset_from_local_datetime(&time).single().is_some() {
            return None;
        }
        let minutes = offset_on_wall(&zone, time) / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        Some(format!("{front}{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60))
    };
    match settled() {
        Some(settled) => Cow::Owned(settled),
        None => text,
    }
}

/// The text of a timestamp with all its digits; none if it is no timestamp of PostgreSQL's usual form, or has them.
pub(crate) fn written_out(text: &str) -> Option<String> {
    let mut rest = text.trim();
    let (year, after) = digits(rest)?;
    if year.len() != 4 {
        return None;
    }
    let (month, after) = digits(after.strip_prefix('-')?)?;
    let (day, after) = digits(after.strip_prefix('-')?)?;
    if month.len() > 2 || day.len() > 2 {
        return None;
    }
    let mut whole = format!("{year}-{month:0>2}-{day:0>2}");
    rest = after.strip_prefix(['T', 't']).unwrap_or(after.trim_start());
    if rest.is_empty() {
        return (whole != text).then_some(whole);
    }
    if rest.len() == after.len() {
        return None;
    }
    let (hour, after) = digits(rest)?;
    let (minute, after) = digits(after.strip_prefix(':')?)?;
    let (second, zone) = match after.strip_prefix(':') {
        Some(after) => digits(after)?,
        None => ("00", after),
    };
    if [hour, minute, second].iter().any(|part| part.len() > 2) {
        return None;
    }
    whole.push_str(&format!(" {hour:0>2}:{minute:0>2}:{second:0>2}{zone}"));
    let is_same = |(at, (one, other)): (usize, (char, char))| one == other || at == 10 && matches!(one, 'T' | 't');
    let has_all = text.len() == whole.len() && text.chars().zip(whole.chars()).enumerate().all(is_same);
    (!has_all).then_some(whole)
}

/// The digits that a text begins with, and the rest.
pub(crate) fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, StringViewArray, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn zones_are_left_out() {
        for (text, expected) in [
            ("2024-01-01 08:00:00+02", "2024-01-01 08:00:00"),
            ("2024-01-01T08:00:00.5-0530", "2024-01-01T08:00:00.5"),
            ("2024-01-01T08:00:00z", "2024-01-01T08:00:00"),
            ("2024-01-01 08:00:00 +01:00", "2024-01-01 08:00:00"),
            ("2024-01-01 08:00:00 Europe/Berlin", "2024-01-01 08:00:00"),
            ("08:00:00+02", "08:00:00"),
            ("2024-01-01 08:00:00", "2024-01-01 08:00:00"),
            ("2024-01-01", "2024-01-01"),
            ("2024-01-01 08:00:00 PM", "2024-01-01 08:00:00 PM"),
            ("2024-01-01 08:00:00 Mars/Olympus", "2024-01-01 08:00:00 Mars/Olympus"),
            ("10:00+x", "10:00+x"),
            ("", ""),
        ] {
            assert_eq!(without_zone(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_as_arrow_reads_them() {
        assert_eq!(Wall::Instant.bare("2024-01-01 8:00+02"), "2024-01-01 08:00:00+02");
        let long = "2024-01-01 08:00:00.1234567+02";
        assert_eq!((Wall::Day.bare(long), Wall::Instant.bare(long)), (long[..27].into(), long.into()));
        assert_eq!(Wall::Micros.bare(long), "2024-01-01 08:00:00.123457");
        assert_eq!(Wall::InstantMicros.bare(long), "2024-01-01 08:00:00.123457+02");
        let in_berlin = |time: &str| Wall::InstantMicros.bare(&format!("{time} Europe/Berlin")).into_owned();
        assert_eq!(in_berlin("2024-03-31 02:30:00.5"), "2024-03-31 02:30:00.5+01:00");
        assert_eq!(in_berlin("2024-10-27 02:30"), "2024-10-27 02:30:00+01:00");
        assert_eq!(in_berlin("2024-03-31 03:30"), "2024-03-31 03:30:00 Europe/Berlin");
        for (text, day, time) in [
            ("2024-01-01 08:00+02", "2024-01-01 08:00:00", "08:00:00"),
            ("2024-1-5 8:03:07.25 Europe/Berlin", "2024-01-05 08:03:07.25", "08:03:07.25"),
            ("2024-01-01T08:00:00.5Z", "2024-01-01T08:00:00.5", "08:00:00.5"),
            ("2024-01-01", "2024-01-01", "2024-01-01:"),
            ("8:00", "8:00", "8:00"),
            ("1", "1", "1:"),
            ("äöüäöüäöüäöü", "äöüäöüäöüäöü", "äöüäöüäöüäöü:"),
        ] {
            assert_eq!((Wall::Day.bare(text).as_ref(), Wall::Time.bare(text).as_ref()), (day, time), "{text}");
        }
    }

    #[test]
    fn digits_past_microseconds_are_rounded() {
        for (text, expected) in [
            ("2024-01-01 08:00:00.1234564", "2024-01-01 08:00:00.123456"),
            ("2024-01-01T08:00:00.1234565Z", "2024-01-01T08:00:00.123457Z"),
            ("1999-01-01 08:00:00.1234565", "1999-01-01 08:00:00.123456"),
            ("1999-01-01 08:00:00.12345651", "1999-01-01 08:00:00.123457"),
            ("2024-12-31 23:59:59.9999999+01", "2025-01-01 00:00:00+01"),
            ("9999-12-31 23:59:59.9999999", "9999-12-31 23:59:59.9999999"),
            ("2024-01-01 08:00:00.123456", "2024-01-01 08:00:00.123456"),
            ("2024-01-01 08:00:00", "2024-01-01 08:00:00"),
            ("2024-01-01", "2024-01-01"),
        ] {
            assert_eq!(rounded(text.into()), expected, "{text}");
        }
    }

    #[test]
    fn texts_of_files_are_read_as_casts_read_them() {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let texts = vec![Some("1970-01-01 00:00"), None, Some("1970-01-01T00:00:00.0000016+05"), Some("1970-1-2")];
        let texts: ArrayRef = Arc::new(StringViewArray::from(texts));
        let expected = TimestampMicrosecondArray::from(vec![Some(0), None, Some(2), Some(86_400_000_000)]);
        assert_eq!(&read(&texts, &micros).unwrap().unwrap(), &(Arc::new(expected) as ArrayRef));
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), None, Some(0), Some(1)]));
        assert_eq!(&read(&texts, &DataType::Date32).unwrap().unwrap(), &days);
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("1970-01-01"), Some("x")]));
        assert_eq!(read(&texts, &micros).unwrap(), Err(Misfit { row: 1, text: "x".into() }));
    }

    #[test]
    fn texts_have_all_digits() {
        for (text, expected) in [
            ("2024-01-01 08:00", Some("2024-01-01 08:00:00")),
            ("2024-01-01T08:00Z", Some("2024-01-01 08:00:00Z")),
            ("2024-1-5 8:03:7.25+01", Some("2024-01-05 08:03:07.25+01")),
            ("2024-1-5", Some("2024-01-05")),
            (" 2024-01-05  08:00 ", Some("2024-01-05 08:00:00")),
            ("2024-01-01 08:00 Europe/Berlin", Some("2024-01-01 08:00:00 Europe/Berlin")),
            ("2024-01-01 08:00:00", None),
            ("2024-01-01T08:00:00.5Z", None),
            ("2024-01-01", None),
            ("2024-01-01 080000", None),
            ("2024-01", None),
            ("now", None),
        ] {
            assert_eq!(written_out(text).as_deref(), expected, "{text}");
        }
    }
}
