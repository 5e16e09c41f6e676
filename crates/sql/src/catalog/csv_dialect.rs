//! How a CSV file is written: its delimiter, its quote and whether it has a header, told by a sample of its lines.
//!
//! What a reader takes by default stays so wherever lines fit it: another delimiter is taken only where the default one
//! gives one column, or columns that differ in number, and the other one gives each line as many, or stands in each
//! line at least: then the reader says which line has too few or too many values. A first line is a
//! header unless all of its values are such as the lines below have and at least one of these is no text. The types of
//! columns follow the rules of `arrow`, but for numbers with leading zeros, which are codes and text.

use std::borrow::Cow;

use arrow::datatypes::{DataType, TimeUnit};
use chrono::NaiveDate;

use crate::csv_lines::Characters;

/// Delimiters that are looked for, the default first.
pub(super) const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Quotes that are looked for, the default first.
const QUOTES: [u8; 2] = [b'"', b'\''];
/// What some programs write in front of UTF-8; it is no part of the first value.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Records whose columns are counted.
const COUNTED: usize = 1000;
/// Records that types are told by, as in DuckDB; a word in a later one is for the reader to refuse, with its line.
const TYPED: usize = 20_480;

/// What is given of a file's dialect, by options or its extension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) delimiter: Option<u8>,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) comment: Option<u8>,
    /// Whether a line may have fewer values than others.
    pub(crate) truncated: bool,
    /// Texts that are NULL, a line each.
    pub(crate) nulls: Option<Box<str>>,
}

/// What the values of a column are, one bit a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kinds(u16);

const BOOL: u16 = 1;
const INT: u16 = 1 << 1;
const FLOAT: u16 = 1 << 2;
const DATE: u16 = 1 << 3;
/// Timestamps, and those with more digits than microseconds have.
const MICROSECONDS: u16 = 1 << 4;
const NANOSECONDS: u16 = 1 << 5;
const TEXT: u16 = 1 << 8;
/// Digits that are no number: with leading zeros, or more than 64 bits hold.
const CODE: u16 = 1 << 9;
const NUMBER: u16 = INT | FLOAT;
/// Timestamps with a zone, and those without one.
const INSTANT: u16 = 1 << 10;
const WALL: u16 = 1 << 11;
/// Timestamps of a zone other than UTC.
const SHIFTED: u16 = 1 << 12;
/// Numbers with a comma, as `1.234,5` or `1,234`.
const COMMA: u16 = 1 << 13;
const TIMESTAMP: u16 = MICROSECONDS | NANOSECONDS;
const TEMPORAL: u16 = DATE | TIMESTAMP | INSTANT | WALL | SHIFTED;

impl Kinds {
    /// The kind of a value; none of an empty one, which is NULL.
    fn of(value: &[u8]) -> Kinds {
        let Ok(text) = std::str::from_utf8(value) else { return Kinds(TEXT) };
        Kinds(match text {
            "" => 0,
            "NaN" | "nan" | "inf" | "-inf" => FLOAT,
            _ if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => BOOL,
            _ => number(text).or_else(|| time(text)).or_else(|| comma_number(text)).unwrap_or(TEXT),
        })
    }

    /// True for numbers of which some have a comma.
    fn has_commas(self) -> bool {
        self.0 & COMMA != 0 && self.0 & !(COMMA | NUMBER) == 0
    }

    pub(crate) fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Whether there are timestamps of a zone other than UTC.
    pub(crate) fn is_shifted(self) -> bool {
        self.0 & SHIFTED != 0 && self.0 & !TEMPORAL == 0
    }

    fn is_known(self) -> bool {
        self.0 != 0
    }

    /// The kinds of a column whose values begin as these and go on as others: numbers may get a fraction and dates a
    /// time of day, but a word among them is for the reader to refuse, with its line.
    pub(crate) fn going_on_as(self, others: Kinds) -> Kinds {
        let all = self.and(others);
        let family = [NUMBER, TEMPORAL, BOOL].into_iter().find(|family| self.is_known() && self.0 & !family == 0);
        match family {
            Some(family) if all.0 & CODE == 0 => Kinds(all.0 & family),
            _ => all,
        }
    }

    /// The type that holds all of the values.
    pub(crate) fn data_type(self) -> DataType {
        let zone = (self.0 & INSTANT != 0).then(|| "UTC".into());
        let timestamp = |unit| DataType::Timestamp(unit, zone.clone());
        match self.0 {
            0 => DataType::Null,
            BOOL => DataType::Boolean,
            INT => DataType::Int64,
            kinds if kinds & !NUMBER == 0 => DataType::Float64,
            DATE => DataType::Date32,
            // No one type has texts with a zone and texts without one.
            kinds if kinds & INSTANT != 0 && kinds & (DATE | WALL) != 0 => DataType::Utf8,
            kinds if kinds & !TEMPORAL == 0 => timestamp(match kinds & NANOSECONDS {
                0 => TimeUnit::Microsecond,
                _ => TimeUnit::Nanosecond,
            }),
            _ => DataType::Utf8,
        }
    }
}

/// The kind of a number.
fn number(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let bytes = digits.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) && !bytes.is_empty() {
        let is_code = bytes.len() > 1 && bytes[0] == b'0';
        return Some(if is_code || text.parse::<i64>().is_err() { CODE } else { INT });
    }
    if matches!(bytes, [b'0', b'0'..=b'9', ..]) && digits.parse::<f64>().is_ok() {
        return Some(CODE);
    }
    let is_written_so = bytes.iter().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(byte));
    let begins = matches!(bytes.first(), Some(b'0'..=b'9' | b'.'));
    (is_written_so && begins && digits.parse::<f64>().is_ok()).then_some(FLOAT)
}

/// The kind of a number with a comma in front of its fraction or between thousands.
fn comma_number(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text).as_bytes();
    let is_digit = |at: usize| digits.get(at).is_some_and(u8::is_ascii_digit);
    let fits = |(at, byte): (usize, &u8)| match byte {
        b'0'..=b'9' => true,
        b',' => is_digit(at + 1),
        b'.' | b' ' | b'\'' => at > 0 && is_digit(at - 1) && is_digit(at + 1),
        _ => false,
    };
    (digits.contains(&b',') && digits.iter().enumerate().all(fits)).then_some(COMMA)
}

/// The kind of a date or a timestamp.
fn time(text: &str) -> Option<u16> {
    let fits = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                b'T' => byte == b'T' || byte == b' ',
                wanted => byte == wanted,
            })
    };
    if fits(text, "0000-00-00") {
        return is_on_calendar(text).then_some(DATE);
    }
    let rest = text.get(19..).filter(|_| fits(&text[..19], "0000-00-00T00:00:00") && is_on_calendar(text))?;
    let zone_of = |zone: &str| match zone {
        "" => WALL,
        "Z" | "z" | "+00" | "+00:00" | "+0000" => INSTANT,
        _ => INSTANT | SHIFTED,
    };
    let Some(fraction) = rest.strip_prefix('.') else {
        return (!rest.starts_with(|byte: char| byte.is_ascii_digit())).then_some(MICROSECONDS | zone_of(rest));
    };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match digits {
        1..=6 => MICROSECONDS,
        7..=9 => NANOSECONDS,
        _ => return None,
    };
    Some(unit | zone_of(&fraction[digits..]))
}

/// Whether digits of the shape of a date, or of a date and a time, are of a day and a time of day that there are.
fn is_on_calendar(text: &str) -> bool {
    let part = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u32>().ok());
    let is_less = |from: usize, most: u32| part(from, from + 2).is_none_or(|part| part < most);
    let day = part(0, 4).zip(part(5, 7)).zip(part(8, 10));
    day.is_some_and(|((year, month), day)| NaiveDate::from_ymd_opt(year as i32, month, day).is_some())
        && is_less(11, 24)
        && is_less(14, 60)
        && is_less(17, 60)
}

/// A sample of a file: its first lines, and whole lines from further places.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) head: Vec<u8>,
    pub(crate) parts: Vec<Vec<u8>>,
}

/// How a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    /// Whether the first line is a header; none where nothing tells.
    pub(crate) header: Option<bool>,
    /// The values of the first line, and their kinds.
    pub(crate) first: Vec<String>,
    pub(crate) first_kinds: Vec<Kinds>,
    /// The kinds of the columns below the first line: in the first records, in the front of the file and all over it.
    pub(crate) kinds: Vec<Kinds>,
    pub(crate) front: Vec<Kinds>,
    pub(crate) spread: Vec<Kinds>,
}

impl Dialect {
    /// The dialect of a sample, without kinds where lines differ in their number of values; none of an empty one.
    pub(crate) fn of(sample: &Sample, given: &Given) -> Option<Dialect> {
        let head = sample.head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&sample.head);
        let characters =
            |delimiter, quote| Characters { delimiter, quote, escape: given.escape, comment: given.comment };
        let quote = given.quote.unwrap_or_else(|| {
            let [usual, other] = QUOTES;
            let delimiters = given.delimiter.map_or(DELIMITERS.to_vec(), |delimiter| vec![delimiter]);
            let is_other = |delimiter: &u8| is_quoted(head, characters(*delimiter, usual), other);
            if delimiters.iter().any(is_other) { other } else { usual }
        });
        let width = |delimiter: u8| width(head, characters(delimiter, quote), given.truncated);
        let widest = |delimiters: &[u8]| {
            let widths = delimiters.iter().filter_map(|delimiter| Some((width(*delimiter)?, *delimiter)));
            widths.filter(|(width, _)| *width > 1).rev().max_by_key(|(width, _)| *width)
        };
        let leaves_commas = |delimiter: &u8| {
            memchr::memchr(*delimiter, head).is_some() && leaves_commas(head, characters(*delimiter, quote))
        };
        let delimiter = given.delimiter.unwrap_or_else(|| match width(DELIMITERS[0]) {
            Some(2..) => {
                let others: Vec<u8> = DELIMITERS[1..].iter().copied().filter(leaves_commas).collect();
                widest(&others).map_or(DELIMITERS[0], |(_, delimiter)| delimiter)
            }
            _ => {
                let widest = widest(&DELIMITERS);
                let is_in_each = |delimiter: &u8| is_in_each(head, characters(*delimiter, quote));
                let in_each = || DELIMITERS.into_iter().find(is_in_each);
                widest.map(|(_, delimiter)| delimiter).or_else(in_each).unwrap_or(DELIMITERS[0])
            }
        });
        let columns = width(delimiter).unwrap_or(0);
        let characters = characters(delimiter, quote);
        let mut first: Option<(Vec<String>, Vec<Kinds>)> = None;
        let mut second: Option<Vec<String>> = None;
        let texts = |record: &[Cow<[u8]>]| record.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
        let (mut kinds, mut front, mut counted) = (vec![Kinds::default(); columns], vec![Kinds::default(); columns], 0);
        let nulls: Vec<&[u8]> = given.nulls.iter().flat_map(|nulls| nulls.lines()).map(str::as_bytes).collect();
        let kinds_of = |value: &[u8]| if nulls.contains(&value) { Kinds::default() } else { Kinds::of(value) };
        let note = |kinds: &mut Vec<Kinds>, record: &[Cow<[u8]>]| {
            kinds.iter_mut().zip(record).for_each(|(kinds, value)| *kinds = kinds.and(kinds_of(value)));
            true
        };
        records(head, characters, &mut |record| {
            if first.is_some() {
                second.get_or_insert_with(|| texts(record));
                counted += 1;
                return note(if counted <= TYPED { &mut kinds } else { &mut front }, record);
            }
            first = Some((texts(record), record.iter().map(|it| kinds_of(it)).collect()));
            true
        });
        front.iter_mut().zip(&kinds).for_each(|(front, first)| *front = front.and(*first));
        let mut spread = front.clone();
        sample.parts.iter().for_each(|part| records(part, characters, &mut |record| note(&mut spread, record)));
        let (first, first_kinds) = first?;
        let header = match are_years(&first, &second.unwrap_or_default()) {
            true => Some(true),
            false => has_header(&first, &first_kinds, &kinds),
        };
        Some(Dialect { delimiter, quote, header, first, first_kinds, kinds, front, spread })
    }
}

/// Whether a first line is a header, by its values and those below; none where nothing tells.
fn has_header(first: &[String], first_kinds: &[Kinds], below: &[Kinds]) -> Option<bool> {
    let has_value = |kind: u16| first_kinds.iter().any(|kinds| kinds.0 & kind != 0);
    let is_typed = |below: &Kinds| below.is_known() && below.data_type() != DataType::Utf8;
    let is_other = |(own, below): (&Kinds, &Kinds)| {
        is_typed(below) && own.is_known() && below.and(*own).data_type() == DataType::Utf8
    };
    let pairs = || first_kinds.iter().zip(below);
    if pairs().any(is_other) {
        return Some(true);
    }
    if pairs().any(|(own, below)| is_typed(below) && own.is_known()) {
        return Some(false);
    }
    let has_commas =
        |(own, below): (&Kinds, &Kinds)| own.is_known() && below.is_known() && own.and(*below).has_commas();
    if pairs().any(has_commas) {
        return Some(false);
    }
    // Text below, or nothing: a number or a date is no name, but for years and the like above columns of text.
    let is_alone = below.iter().all(|below| !below.is_known());
    (is_alone && has_value(NUMBER | TEMPORAL | COMMA) && first.len() > 1).then_some(false)
}

/// Whether the numbers of a first line are years that follow one another, and the second has a number that is no year
/// below one: a header such as `region,2020,2021`.
fn are_years(first: &[String], second: &[String]) -> bool {
    let years: Vec<u16> = first.iter().filter_map(|value| year(value)).collect();
    let is_name = |value: &String| year(value).is_some() || Kinds::of(value.as_bytes()).0 == TEXT;
    let mut below = first.iter().zip(second).filter(|(value, _)| year(value).is_some()).map(|(_, below)| below);
    years.len() > 1
        && years.windows(2).all(|pair| pair[0] + 1 == pair[1])
        && first.iter().all(is_name)
        && below.any(|below| year(below).is_none() && Kinds::of(below.as_bytes()).0 & !(NUMBER | COMMA) == 0)
}

fn year(text: &str) -> Option<u16> {
    text.parse().ok().filter(|year| (1900..2100).contains(year) && text.len() == 4)
}

/// How many values all of the first records have; none if they differ, or there is no record.
fn width(text: &[u8], characters: Characters, truncated: bool) -> Option<usize> {
    let (mut width, mut alike, mut counted) = (None, true, 0);
    records(text, characters, &mut |record| {
        let own = record.len();
        match width {
            None => width = Some(own),
            Some(known) if truncated => width = Some(known.max(own)),
            Some(known) => alike &= known == own,
        }
        counted += 1;
        alike && counted < COUNTED
    });
    width.filter(|_| alike)
}

/// Whether a column of the first records below the first, or of the only one, has numbers with commas alone.
fn leaves_commas(text: &[u8], characters: Characters) -> bool {
    let (mut kinds, mut counted) = (Vec::<Kinds>::new(), 0);
    records(text, characters, &mut |record| {
        if counted == 1 {
            kinds.clear();
        }
        kinds.resize(kinds.len().max(record.len()), Kinds::default());
        kinds.iter_mut().zip(record).for_each(|(kinds, value)| *kinds = kinds.and(Kinds::of(value)));
        counted += 1;
        counted < COUNTED
    });
    kinds.into_iter().any(Kinds::has_commas)
}

/// Whether each of the first records has a delimiter, and there are several.
fn is_in_each(text: &[u8], characters: Characters) -> bool {
    let (mut in_each, mut counted) = (true, 0);
    records(text, characters, &mut |record| {
        in_each &= record.len() > 1;
        counted += 1;
        in_each && counted < COUNTED
    });
    in_each && counted > 1
}

/// Whether values stand between the quote `other`, and none between the usual one.
fn is_quoted(text: &[u8], characters: Characters, other: u8) -> bool {
    let is_between = |value: &[u8], quote: u8| value.len() > 1 && value[0] == quote && value.last() == Some(&quote);
    let (mut quoted, mut has_usual, mut counted) = (Vec::<bool>::new(), false, 0);
    has_usual |= text.contains(&characters.quote);
    if has_usual || !text.contains(&other) {
        return false;
    }
    let alike = width(text, Characters { quote: other, ..characters }, false).is_some();
    records(text, Characters { quote: other, ..characters }, &mut |_| {
        counted += 1;
        counted < COUNTED
    });
    let plain = Characters { quote: 0, ..characters };
    let mut lines = 0;
    records(text, plain, &mut |record| {
        if lines > 0 {
            quoted.resize(quoted.len().max(record.len()), true);
            quoted.iter_mut().zip(record).for_each(|(all, value)| *all &= is_between(value, other));
        }
        lines += 1;
        lines < COUNTED
    });
    // A value with a delimiter between quotes is cut in two where nothing quotes.
    alike && counted > 1 && (quoted.contains(&true) || width(text, plain, false).is_none())
}

/// What is called with the values of a record; false ends the look.
pub(crate) type Visit<'a> = dyn FnMut(&[Cow<[u8]>]) -> bool + 'a;

/// Gives the values of each record of a text that begins with one, until `visit` is false.
pub(crate) fn records(text: &[u8], characters: Characters, visit: &mut Visit<'_>) {
    let Characters { delimiter, quote, escape, comment } = characters;
    let is_end = |byte: u8| byte == b'\n' || byte == b'\r';
    let mut at = 0;
    let mut record: Vec<Cow<[u8]>> = Vec::new();
    while at < text.len() {
        if is_end(text[at]) {
            at += 1;
            continue;
        }
        if Some(text[at]) == comment {
            at += memchr::memchr(b'\n', &text[at..]).unwrap_or(text.len() - at);
            continue;
        }
        record.clear();
        loop {
            let mut value: Cow<[u8]> = Cow::Borrowed(&[]);
            if text.get(at) == Some(&quote) && quote != 0 {
                at += 1;
                loop {
                    let rest = &text[at..];
                    let next = match escape {
                        Some(escape) => memchr::memchr2(quote, escape, rest),
                        None => memchr::memchr(quote, rest),
                    };
                    // A quote that is never closed is for another look to find.
                    let Some(next) = next else { return };
                    join(&mut value, &rest[..next]);
                    at += next + 1;
                    match text.get(at) {
                        Some(byte) if Some(rest[next]) == escape && escape != Some(quote) => {
                            join(&mut value, std::slice::from_ref(byte));
                            at += 1;
                        }
                        Some(byte) if *byte == quote => {
                            join(&mut value, std::slice::from_ref(byte));
                            at += 1;
                        }
                        _ => break,
                    }
                }
            }
            let rest = &text[at..];
            let end = memchr::memchr3(delimiter, b'\n', b'\r', rest).unwrap_or(rest.len());
            join(&mut value, &rest[..end]);
            at += end;
            record.push(value);
            match text.get(at) {
                Some(byte) if *byte == delimiter => at += 1,
                _ => break,
            }
        }
        if !visit(&record) {
            return;
        }
    }
}

/// Puts bytes behind a value.
fn join<'a>(value: &mut Cow<'a, [u8]>, bytes: &'a [u8]) {
    match value.is_empty() {
        true => *value = Cow::Borrowed(bytes),
        false if bytes.is_empty() => {}
        false => value.to_mut().extend_from_slice(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(text: &str) -> Option<Dialect> {
        Dialect::of(&Sample { head: text.into(), parts: Vec::new() }, &Given::default())
    }

    #[test]
    fn delimiters_quotes_and_headers_are_told_by_lines() {
        for (text, delimiter, quote, header) in [
            ("a,b\n1,2\n", b',', b'"', Some(true)),
            ("1,x\n2,y\n", b',', b'"', Some(false)),
            ("x,y\nz,w\n", b',', b'"', None),
            ("a|b\n1|2\n", b'|', b'"', Some(true)),
            ("a;b\n1,5;2\n2,5;x\n", b';', b'"', None),
            ("a;b\n1,5;2\n2,5;3\n", b';', b'"', Some(true)),
            ("a\tb\n1\t2,3\n", b'\t', b'"', Some(true)),
            ("a;b,c\n1;2,3\n", b';', b'"', Some(true)),
            ("a;b,c\n1;x,3\n", b',', b'"', Some(true)),
            ("A;1,5\nB;2,5\n", b';', b'"', Some(false)),
            ("A;Jan;1,5\nB;Feb;-1.202,5\n", b';', b'"', Some(false)),
            ("A|1,5\nB|2,5\n", b'|', b'"', Some(false)),
            ("A\t1,234.5\nB\t2,5\n", b'\t', b'"', Some(false)),
            ("A;x, y;1,5\nB;x, z;2,5\n", b';', b'"', Some(false)),
            ("A;1,5\n", b';', b'"', Some(false)),
            ("\"K, N\";\"B, E\"\nA;1,5\nB;2\n", b';', b'"', None),
            ("\"A\";\"1,5\"\n\"B\";\"2,5\"\n", b';', b'"', Some(false)),
            ("\"A;1\",5\n\"B;2\",5\n", b',', b'"', Some(false)),
            ("A,\"1,5\"\nB,\"2,5\"\n", b',', b'"', Some(false)),
            ("x;y,1\nz;w,2\n", b',', b'"', Some(false)),
            ("a;b\n1,5;x\n2,5;y\n", b';', b'"', None),
            ("v\n1,5\n2,5\n", b',', b'"', None),
            ("text\nx; y\nz\n", b',', b'"', None),
            ("a,b\n'x,1',2\n'y',3\n", b',', b'\'', Some(true)),
            ("a,b\nit's,2\nno,3\n", b',', b'"', Some(true)),
            ("id,2020,2021\n1,5,6\n", b',', b'"', Some(true)),
            ("\u{feff}\"id\",x\n1,5\n", b',', b'"', Some(true)),
            ("2024-01-01,1\n2024-01-02,2\n", b',', b'"', Some(false)),
            ("a,b\n", b',', b'"', None),
            ("1,2\n", b',', b'"', Some(false)),
            ("n\n1\n", b',', b'"', Some(true)),
            ("\"a;b\";c\n\"1;2\";3\n", b';', b'"', Some(true)),
        ] {
            let found = dialect(text).unwrap_or_else(|| panic!("{text:?}"));
            assert_eq!((found.delimiter, found.quote, found.header), (delimiter, quote, header), "{text:?}");
        }
        for (text, delimiter) in [("a,b\n1\n2,3,4\n", b','), ("a;b\n1,5;2\n2;3;4\n", b';')] {
            let found = dialect(text).unwrap();
            assert_eq!((found.delimiter, found.kinds.len()), (delimiter, 0), "{text}");
        }
        assert_eq!(dialect(""), None);
    }

    #[test]
    fn types_hold_all_values() {
        for (values, expected) in [
            (&["1", "-2", ""][..], DataType::Int64),
            (&["1", "2.5", "1e3", ".5", "nan"], DataType::Float64),
            (&["01067", "80331"], DataType::Utf8),
            (&["-01"], DataType::Utf8),
            (&["0", "-0"], DataType::Int64),
            (&["0.5"], DataType::Float64),
            (&["98765432109876543210"], DataType::Utf8),
            (&["9223372036854775807"], DataType::Int64),
            (&["true", "FALSE"], DataType::Boolean),
            (&["true", "1"], DataType::Utf8),
            (&["2024-01-05"], DataType::Date32),
            (&["2024-01-05", "2024-01-05 08:00:00"], DataType::Timestamp(TimeUnit::Microsecond, None)),
            (&["2024-01-05T08:00:00.25Z"], DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            (&["2024-01-05 08:00:00+02", ""], DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            (&["2024-01-05 08:00:00+02", "2024-01-05 08:00:00"], DataType::Utf8),
            (&["2024-01-05 08:00:00+02", "2024-01-05"], DataType::Utf8),
            (&["2024-01-05 08:00:00.1234567"], DataType::Timestamp(TimeUnit::Nanosecond, None)),
            (&["2024-01-05 08:00:001"], DataType::Utf8),
            (&["2024-01-05", "1"], DataType::Utf8),
            (&["1-2", "."], DataType::Utf8),
            (&["+1"], DataType::Utf8),
            (&["", ""], DataType::Null),
        ] {
            let kinds = values.iter().fold(Kinds::default(), |all, value| all.and(Kinds::of(value.as_bytes())));
            assert_eq!(kinds.data_type(), expected, "{values:?}");
        }
    }

    #[test]
    fn words_behind_numbers_are_no_text() {
        let kinds = |value: &str| Kinds::of(value.as_bytes());
        for (first, later, expected) in [
            ("1", "2.5", DataType::Float64),
            ("1", "cheap", DataType::Int64),
            ("1", "01", DataType::Utf8),
            ("1", "true", DataType::Int64),
            ("2024-01-05", "2024-01-05 08:00:00", DataType::Timestamp(TimeUnit::Microsecond, None)),
            ("2024-01-05", "NA", DataType::Date32),
            ("x", "1", DataType::Utf8),
            ("", "x", DataType::Utf8),
            ("true", "1", DataType::Boolean),
        ] {
            assert_eq!(kinds(first).going_on_as(kinds(later)).data_type(), expected, "{first} {later}");
        }
    }

    #[test]
    fn records_are_split_as_readers_do() {
        let plain = Characters { delimiter: b',', quote: b'"', escape: None, comment: Some(b'#') };
        let escaped = Characters { escape: Some(b'\\'), ..plain };
        for (text, characters, expected) in [
            ("a,b\r\n1,2", plain, "a|b/1|2"),
            ("\"say \"\"so\"\"\",x\n\n#no\n\"two\nlines\",\n", plain, "say \"so\"|x/two\nlines|"),
            ("\"a\\\"b\",c\n", escaped, "a\"b|c"),
            ("5\" pipe,x\n", plain, "5\" pipe|x"),
            ("a\n\"open,b\n", plain, "a"),
        ] {
            let mut found = Vec::new();
            records(text.as_bytes(), characters, &mut |record| {
                let values: Vec<_> = record.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
                found.push(values.join("|"));
                true
            });
            assert_eq!(found.join("/"), expected, "{text:?}");
        }
    }
}
