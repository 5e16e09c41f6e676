//! Patterns of PostgreSQL for numbers: `to_char(1234.5, 'FM9,990.00')`.
//!
//! A number is rounded to the digits of its pattern, halves away from zero; one with more digits in front of the point
//! than the pattern has shows `#`. Its sign stands before the first digit unless the pattern has a place for it.

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::{DataFusionError, Result};

use super::format::scientific;
use crate::error::SqlError;

/// Where the sign stands.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    /// Before the first digit, where it is a minus; else a blank.
    Minus,
    /// Before the first digit, in angle brackets around a negative number, or behind the last digit.
    Leading,
    Trailing,
    Brackets,
    /// At a place of its own.
    Placed,
}

enum Piece {
    /// A digit, which may be a zero in front of the number.
    Digit {
        is_zero: bool,
    },
    Point,
    Group,
    /// `MI`, and `SG` if a plus is shown.
    Sign {
        has_plus: bool,
    },
    Ordinal {
        is_upper: bool,
    },
    Literal(String),
}

struct Pattern {
    pieces: Vec<Piece>,
    is_bare: bool,
    sign: Sign,
    /// Digits behind `V`, by which the number is shifted.
    shift: usize,
    is_roman: bool,
    is_power: bool,
}

/// Numbers by their patterns, one a row.
///
/// # Errors
/// A pattern with a part that is not known.
pub(super) fn to_char(values: &ArrayRef, patterns: &StringArray) -> Result<StringArray> {
    let is_float = values.data_type().is_floating();
    let values = if is_float { cast(values, &DataType::Float64)? } else { values.clone() };
    let options = FormatOptions::new();
    let digits = ArrayFormatter::try_new(&values, &options)?;
    let mut last: Option<(&str, Pattern)> = None;
    let shown = |row: usize| {
        if values.is_null(row) || patterns.is_null(row) {
            return Ok(None);
        }
        let text = patterns.value(row);
        let pattern = match last.take() {
            Some((of, pattern)) if of == text => pattern,
            _ => parsed(text)?,
        };
        // A float has as many digits as it needs to be told from others.
        let number = match is_float {
            true => values.as_primitive::<Float64Type>().value(row).to_string(),
            false => digits.value(row).try_to_string()?,
        };
        let shown = pattern.shown(&number);
        last = Some((text, pattern));
        Ok(Some(shown))
    };
    (0..values.len()).map(shown).collect()
}

fn parsed(text: &str) -> Result<Pattern> {
    let mut pattern =
        Pattern { pieces: Vec::new(), is_bare: false, sign: Sign::Minus, shift: 0, is_roman: false, is_power: false };
    let (mut rest, mut is_shifted, mut has_digit) = (text, false, false);
    while let Some(first) = rest.chars().next() {
        let has = |word: &str| rest.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word));
        let mut length = first.len_utf8();
        match first {
            '9' | '0' => {
                has_digit = true;
                pattern.shift += usize::from(is_shifted);
                pattern.pieces.push(Piece::Digit { is_zero: first == '0' });
            }
            '.' | 'D' | 'd' => pattern.pieces.push(Piece::Point),
            ',' | 'G' | 'g' => pattern.pieces.push(Piece::Group),
            '"' => {
                let (literal, after) = quoted(&rest[1..]);
                pattern.pieces.push(Piece::Literal(literal));
                length = rest.len() - after.len();
            }
            'V' | 'v' => is_shifted = true,
            _ if has("EEEE") => (pattern.is_power, length) = (true, 4),
            _ if has("FM") => (pattern.is_bare, length) = (true, 2),
            _ if has("RN") => (pattern.is_roman, length) = (true, 2),
            _ if has("PR") => (pattern.sign, length) = (Sign::Brackets, 2),
            _ if has("MI") || has("SG") => {
                pattern.sign = Sign::Placed;
                pattern.pieces.push(Piece::Sign { has_plus: has("SG") });
                length = 2;
            }
            _ if has("TH") => {
                pattern.pieces.push(Piece::Ordinal { is_upper: rest.starts_with('T') });
                length = 2;
            }
            'S' | 's' => pattern.sign = if has_digit { Sign::Trailing } else { Sign::Leading },
            other if other.is_ascii_alphabetic() => {
                let reason = format!("'{other}' in the pattern '{text}' of a number");
                return Err(DataFusionError::from(SqlError::Unsupported(reason)));
            }
            other => pattern.pieces.push(Piece::Literal(other.to_string())),
        }
        rest = &rest[length..];
    }
    Ok(pattern)
}

/// Digits in front of the point, without zeros, and behind it.
fn rounded(number: &str, shift: usize, places: usize) -> (String, String) {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    let point = whole.len() + shift;
    let end = point + places;
    let is_up = digits.get(end).is_some_and(|digit| *digit >= 5);
    digits.resize(end, 0);
    let mut carry = is_up;
    for digit in digits.iter_mut().rev() {
        *digit += u8::from(carry);
        carry = *digit == 10;
        *digit %= 10;
    }
    let text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    let (whole, fraction) = text.split_at(point);
    let whole = if carry { format!("1{whole}") } else { whole.trim_start_matches('0').to_string() };
    (whole, fraction.to_string())
}

impl Pattern {
    fn shown(&self, number: &str) -> String {
        let (is_negative, size) = number.strip_prefix('-').map_or((false, number), |size| (true, size));
        if self.is_roman {
            return self.roman(size, is_negative);
        }
        let point = self.pieces.iter().position(|piece| matches!(piece, Piece::Point));
        let is_digit = |piece: &&Piece| matches!(piece, Piece::Digit { .. });
        let places = point.map_or(0, |point| self.pieces[point..].iter().filter(is_digit).count());
        let room = self.pieces.iter().filter(is_digit).count() - places;
        if self.is_power {
            let shown = scientific(size.parse().unwrap_or(f64::NAN), places);
            let sign = if is_negative {
                "-"
            } else if self.is_bare {
                ""
            } else {
                " "
            };
            return format!("{sign}{shown}");
        }
        let is_number = size.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let (whole, fraction) =
            if is_number { rounded(size, self.shift, places) } else { (String::new(), String::new()) };
        let is_zero = whole.is_empty() && fraction.bytes().all(|digit| digit == b'0');
        let is_negative = is_negative && !is_zero;
        let fits = is_number && whole.len() <= room;
        // The first place that has a digit; a whole number has one, whatever its pattern.
        let zero =
            self.pieces.iter().filter(is_digit).position(|piece| matches!(piece, Piece::Digit { is_zero: true }));
        let mut start = room - whole.len().min(room);
        if places == 0 && whole.is_empty() {
            start = room.saturating_sub(1);
        }
        start = zero.filter(|zero| *zero < room).map_or(start, |zero| zero.min(start));
        start = if fits { start } else { 0 };
        // Zeros at the end go with blanks, up to the last that is asked for.
        let asked = self.pieces.iter().filter(is_digit).skip(room);
        let asked = asked.enumerate().filter(|(_, piece)| matches!(piece, Piece::Digit { is_zero: true })).last();
        let kept = match self.is_bare {
            true => fraction.trim_end_matches('0').len().max(asked.map_or(0, |(at, _)| at + 1)),
            false => places,
        };
        let mut text = String::new();
        let (mut at, mut is_signed, mut is_behind, mut after_last) = (0, false, false, 0);
        let digits: String = format!("{whole:0>room$}");
        for piece in &self.pieces {
            let begins = match piece {
                Piece::Digit { .. } => is_behind || at >= start,
                Piece::Point => true,
                _ => false,
            };
            if begins && !is_signed {
                text.push_str(self.front(is_negative));
                is_signed = true;
            }
            match piece {
                Piece::Digit { .. } if is_behind => {
                    let shown = fraction.as_bytes().get(at - room).filter(|_| at - room < kept);
                    text.extend(if fits { shown.map(|digit| char::from(*digit)) } else { Some('#') });
                    at += 1;
                    after_last = text.len();
                }
                Piece::Digit { .. } => {
                    let digit =
                        if fits { digits.as_bytes().get(at).map(|digit| char::from(*digit)) } else { Some('#') };
                    match at >= start {
                        true => text.extend(digit),
                        false if !self.is_bare => text.push(' '),
                        false => {}
                    }
                    at += 1;
                    after_last = text.len();
                }
                Piece::Point => {
                    is_behind = true;
                    text.push('.');
                    after_last = text.len();
                }
                Piece::Group if is_signed => text.push(','),
                Piece::Group if !self.is_bare => text.push(' '),
                Piece::Group => {}
                Piece::Sign { has_plus } => match (is_negative, has_plus) {
                    (true, _) => text.push('-'),
                    (false, true) => text.push('+'),
                    (false, false) if !self.is_bare => text.push(' '),
                    (false, false) => {}
                },
                Piece::Ordinal { is_upper } => {
                    let ending = ordinal(&whole);
                    text.push_str(&if *is_upper { ending.to_uppercase() } else { ending.to_string() });
                }
                Piece::Literal(literal) => text.push_str(literal),
            }
        }
        text.insert_str(after_last.min(text.len()), self.back(is_negative));
        text
    }

    /// What stands before the first digit.
    fn front(&self, is_negative: bool) -> &'static str {
        match (self.sign, is_negative) {
            (Sign::Minus | Sign::Leading, true) => "-",
            (Sign::Leading, false) => "+",
            (Sign::Brackets, true) => "<",
            (Sign::Minus | Sign::Brackets, false) if !self.is_bare => " ",
            _ => "",
        }
    }

    /// What stands behind the last digit.
    fn back(&self, is_negative: bool) -> &'static str {
        match (self.sign, is_negative) {
            (Sign::Trailing, true) => "-",
            (Sign::Trailing, false) => "+",
            (Sign::Brackets, true) => ">",
            (Sign::Brackets, false) if !self.is_bare => " ",
            _ => "",
        }
    }

    fn roman(&self, size: &str, is_negative: bool) -> String {
        const WIDTH: usize = 15;
        let (whole, _) = rounded(size, 0, 0);
        let number = whole.parse::<u32>().ok().filter(|number| (1..4_000).contains(number) && !is_negative);
        let Some(mut number) = number else { return "#".repeat(WIDTH) };
        let mut text = String::new();
        for (value, numeral) in NUMERALS {
            while number >= value {
                text.push_str(numeral);
                number -= value;
            }
        }
        if self.is_bare { text } else { format!("{text:>WIDTH$}") }
    }
}

const NUMERALS: [(u32, &str); 13] = [
    (1_000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// The numeral of a month, from 1 on.
pub(super) fn roman(month: u32) -> &'static str {
    const MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
    MONTHS.get(month as usize - 1).copied().unwrap_or_default()
}

/// The ending of an ordinal number with these digits.
pub(super) fn ordinal(digits: &str) -> &'static str {
    let is_teen = digits.len() > 1 && digits.as_bytes()[digits.len() - 2] == b'1';
    match digits.as_bytes().last() {
        Some(b'1') if !is_teen => "st",
        Some(b'2') if !is_teen => "nd",
        Some(b'3') if !is_teen => "rd",
        _ => "th",
    }
}

/// The text up to a quote, in which a backslash takes the next character as it is, and what follows the quote.
pub(super) fn quoted(text: &str) -> (String, &str) {
    let (mut inner, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (inner, &text[at + 1..]),
            '\\' => inner.extend(characters.next().map(|(_, next)| next)),
            other => inner.push(other),
        }
    }
    (inner, "")
}
