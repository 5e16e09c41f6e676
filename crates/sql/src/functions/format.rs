//! `format('{:>5} {}', …)` and `printf('%5d %s', …)` of DuckDB: texts with values in places.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::error::Result;

use crate::nested_texts::texts_of;

use super::{Any, Arguments, Own, Text, raised};

/// Widest field and most digits.
const LENGTH_MAX: usize = 10_000;

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("format", &[Text, Any], Text, |args| filled(args, in_braces)).repeating_last(),
    Own::new("printf", &[Text, Any], Text, |args| filled(args, of_percent)).repeating_last(),
];

/// A value to be shown.
enum Value {
    Integer(i64),
    Float(f64),
    Text(String),
}

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Centre,
    Right,
}

/// How a value is shown.
struct Spec {
    fill: char,
    align: Option<Align>,
    /// What stands before a number that is not negative.
    plus: Option<char>,
    is_alternate: bool,
    pads_zeros: bool,
    width: usize,
    thousands: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            fill: ' ',
            align: None,
            plus: None,
            is_alternate: false,
            pads_zeros: false,
            width: 0,
            thousands: None,
            precision: None,
            kind: None,
        }
    }
}

/// The values of a row, in their order.
struct Values {
    /// Numbers, and the texts of other values.
    shown: Vec<ArrayRef>,
    row: usize,
    next: usize,
}

impl Values {
    fn of(&mut self, place: Option<usize>) -> Result<Value> {
        let at = place.unwrap_or(self.next);
        self.next = at + 1;
        let column = self.shown.get(at).ok_or_else(|| raised(format!("the text has no value for place {}", at + 1)))?;
        Ok(match column.data_type() {
            DataType::Int64 => Value::Integer(column.as_primitive::<Int64Type>().value(self.row)),
            DataType::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(self.row)),
            _ => Value::Text(column.as_string::<i32>().value(self.row).to_string()),
        })
    }
}

type Fill = fn(&str, &mut Values) -> Result<String>;

fn filled(args: &Arguments, fill: Fill) -> Result<ArrayRef> {
    let wide = |column: &ArrayRef| match column.data_type() {
        // Numbers past those of 64 bits with a sign stay texts.
        DataType::UInt64 => {
            let signed = cast(column, &DataType::Int64)?;
            if signed.null_count() == column.null_count() { Ok(signed) } else { texts_of(column) }
        }
        number if number.is_integer() => Ok(cast(column, &DataType::Int64)?),
        number if number.is_numeric() => Ok(cast(column, &DataType::Float64)?),
        _ => texts_of(column),
    };
    let shown = args.columns[1..].iter().map(wide).collect::<Result<_>>()?;
    let mut values = Values { shown, row: 0, next: 0 };
    args.texts(|row| {
        (values.row, values.next) = (row, 0);
        fill(args.text(0).value(row), &mut values).map(Some)
    })
}

/// The text with `{…}` filled in; `{{` and `}}` are braces.
fn in_braces(text: &str, values: &mut Values) -> Result<String> {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        shown.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            shown.push_str(brace);
            rest = after;
            continue;
        }
        let inner = (brace == "{").then(|| after.split_once('}')).flatten();
        let (inner, after) = inner.ok_or_else(|| raised(format!("'{text}' has a brace without its other")))?;
        let (place, spec) = inner.split_once(':').unwrap_or((inner, ""));
        let refused = || raised(format!("'{{{inner}}}' is no place of a format"));
        let place = match place {
            "" => None,
            number => Some(number.parse().map_err(|_| refused())?),
        };
        let spec = spec_of_braces(spec).ok_or_else(refused)?;
        shown.push_str(&spec.shown(values.of(place)?)?);
        rest = after;
    }
    Ok(shown + rest)
}

/// What stands behind the colon: `[[fill]align][sign][#][0][width][,][.precision][type]`.
fn spec_of_braces(text: &str) -> Option<Spec> {
    let mut spec = Spec::default();
    let align = |character: char| match character {
        '<' => Some(Align::Left),
        '^' => Some(Align::Centre),
        '>' => Some(Align::Right),
        _ => None,
    };
    let mut rest = text;
    let mut characters = text.chars();
    let (first, second) = (characters.next(), characters.next());
    if let Some((fill, sign)) = first.zip(second.and_then(align)) {
        (spec.fill, spec.align) = (fill, Some(sign));
        rest = &rest[fill.len_utf8() + 1..];
    } else if let Some(sign) = first.and_then(align) {
        spec.align = Some(sign);
        rest = &rest[1..];
    }
    if let Some(after) = rest.strip_prefix(['+', '-', ' ']) {
        spec.plus = rest.chars().next().filter(|sign| *sign != '-');
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('#') {
        (spec.is_alternate, rest) = (true, after);
    }
    if let Some(after) = rest.strip_prefix('0') {
        (spec.pads_zeros, rest) = (true, after);
    }
    (spec.width, rest) = number(rest)?;
    if let Some(after) = rest.strip_prefix([',', '_', '\'']) {
        (spec.thousands, rest) = (rest.chars().next(), after);
    }
    if let Some(after) = rest.strip_prefix('.') {
        let (digits, after) = number(after)?;
        (spec.precision, rest) = (Some(digits), after);
    }
    spec.with_kind(rest)
}

/// The text with `%…` filled in; `%%` is a percent sign.
fn of_percent(text: &str, values: &mut Values) -> Result<String> {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((front, after)) = rest.split_once('%') {
        shown.push_str(front);
        if let Some(after) = after.strip_prefix('%') {
            shown.push('%');
            rest = after;
            continue;
        }
        let end = after.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'l' | 'h'));
        let spec = end.and_then(|end| Some((spec_of_percent(&after[..=end])?, end)));
        let (spec, end) = spec.ok_or_else(|| raised(format!("'%{after}' is no place of a printf")))?;
        shown.push_str(&spec.shown(values.of(None)?)?);
        rest = &after[end + 1..];
    }
    Ok(shown + rest)
}

/// What stands behind the percent sign: `[flags][width][.precision][l]type`.
fn spec_of_percent(text: &str) -> Option<Spec> {
    // A width stands to the right of texts, too.
    let mut spec = Spec { align: Some(Align::Right), ..Spec::default() };
    let mut rest = text;
    while let Some(flag) = rest.chars().next().filter(|flag| "-+ 0#,'_".contains(*flag)) {
        match flag {
            '-' => spec.align = Some(Align::Left),
            '+' | ' ' => spec.plus = Some(flag),
            '0' => spec.pads_zeros = true,
            '#' => spec.is_alternate = true,
            thousands => spec.thousands = Some(thousands),
        }
        rest = &rest[1..];
    }
    (spec.width, rest) = number(rest)?;
    if let Some(after) = rest.strip_prefix('.') {
        let (digits, after) = number(after)?;
        (spec.precision, rest) = (Some(digits), after);
    }
    spec.pads_zeros &= spec.align == Some(Align::Right);
    if spec.pads_zeros {
        spec.align = None;
    }
    let kind = match rest.trim_start_matches(['l', 'h']) {
        "i" | "u" => "d",
        other => other,
    };
    spec.with_kind(kind)
}

/// The number that a text begins with, 0 without one, and the rest.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    (number <= LENGTH_MAX).then_some((number, rest))
}

impl Spec {
    fn with_kind(mut self, kind: &str) -> Option<Spec> {
        self.kind = match kind {
            "" => None,
            "d" | "x" | "X" | "o" | "b" | "B" | "f" | "F" | "e" | "E" | "g" | "G" | "s" | "c" => kind.chars().next(),
            _ => return None,
        };
        Some(self)
    }

    fn shown(&self, value: Value) -> Result<String> {
        let refused = |of: &str| Err(raised(format!("the format '{}' of {of}", self.kind.unwrap_or_default())));
        match (value, self.kind) {
            (Value::Integer(number), None | Some('d' | 'x' | 'X' | 'o' | 'b' | 'B')) => {
                let digits = self.digits(number.unsigned_abs());
                Ok(self.number(number < 0, &digits))
            }
            (Value::Integer(number), Some('c')) => {
                let character = u32::try_from(number).ok().and_then(char::from_u32);
                let character = character.ok_or_else(|| raised(format!("{number} is no character")))?;
                Ok(self.padded(character.to_string(), Align::Left))
            }
            (Value::Integer(_), Some('s')) => refused("a whole number"),
            (Value::Integer(number), _) => Ok(self.float(number as f64)),
            (Value::Float(number), None | Some('f' | 'F' | 'e' | 'E' | 'g' | 'G')) => Ok(self.float(number)),
            (Value::Float(_), _) => refused("a number with a point"),
            (Value::Text(text), None | Some('s')) => {
                let text = self.precision.map(|most| text.chars().take(most).collect()).unwrap_or(text);
                Ok(self.padded(text, Align::Left))
            }
            (Value::Text(_), _) => refused("a text"),
        }
    }

    /// The digits of a number without its sign.
    fn digits(&self, number: u64) -> String {
        match (self.kind, self.is_alternate) {
            (Some('x'), false) => format!("{number:x}"),
            (Some('x'), true) => format!("{number:#x}"),
            (Some('X'), false) => format!("{number:X}"),
            (Some('X'), true) => format!("0X{number:X}"),
            (Some('o'), false) => format!("{number:o}"),
            (Some('o'), true) => format!("0{number:o}"),
            (Some('b' | 'B'), false) => format!("{number:b}"),
            (Some('b' | 'B'), true) => format!("{number:#b}"),
            _ => number.to_string(),
        }
    }

    fn float(&self, number: f64) -> String {
        let size = number.abs();
        let is_upper = self.kind.is_some_and(|kind| kind.is_ascii_uppercase());
        let digits = match self.kind.map(|kind| kind.to_ascii_lowercase()) {
            _ if !number.is_finite() => if number.is_nan() { "nan" } else { "inf" }.to_string(),
            Some('f') => format!("{size:.*}", self.precision.unwrap_or(6)),
            Some('e') => scientific(size, self.precision.unwrap_or(6)),
            Some('g') => general(size, self.precision.unwrap_or(6)),
            _ if self.precision.is_some() => general(size, self.precision.unwrap_or(6)),
            _ if size != 0.0 && !(1e-4..1e16).contains(&size) => {
                let shortest = format!("{size:e}");
                shortest.split_once('e').map_or(shortest.clone(), |(front, power)| with_power(front, power))
            }
            // A float tells itself from a whole number.
            _ if size.fract() == 0.0 => format!("{size:.1}"),
            _ => size.to_string(),
        };
        self.number(number.is_sign_negative(), &if is_upper { digits.to_uppercase() } else { digits })
    }

    /// A number with its sign, thousands and width.
    fn number(&self, is_negative: bool, digits: &str) -> String {
        let sign = if is_negative { Some('-') } else { self.plus };
        let sign = sign.map(String::from).unwrap_or_default();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (whole, rest) = digits.split_at(end);
        let whole: String = match self.thousands {
            None => whole.to_string(),
            Some(mark) => {
                let before = |at: usize| (at > 0 && (whole.len() - at).is_multiple_of(3)).then_some(mark);
                whole.chars().enumerate().flat_map(|(at, digit)| before(at).into_iter().chain([digit])).collect()
            }
        };
        let shown = format!("{whole}{rest}");
        if self.pads_zeros && self.align.is_none() {
            let zeros = self.width.saturating_sub(sign.len() + shown.len());
            return format!("{sign}{}{shown}", "0".repeat(zeros));
        }
        self.padded(sign + &shown, Align::Right)
    }

    fn padded(&self, text: String, usual: Align) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align.unwrap_or(usual) {
            Align::Left => 0,
            Align::Centre => missing / 2,
            Align::Right => missing,
        };
        let fill = |count: usize| self.fill.to_string().repeat(count);
        fill(before) + &text + &fill(missing - before)
    }
}

/// `1.5e+03`, with so many digits behind the point.
pub(super) fn scientific(size: f64, digits: usize) -> String {
    let shown = format!("{size:.digits$e}");
    shown.split_once('e').map_or(shown.clone(), |(front, power)| with_power(front, power))
}

fn with_power(front: &str, power: &str) -> String {
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{front}e{sign}{power:0>2}")
}

/// C's `%g`: so many digits, by a power where the point would be far from them, without zeros at the end.
fn general(size: f64, digits: usize) -> String {
    let digits = digits.max(1);
    let by_power = scientific(size, digits - 1);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    let power = by_power.split_once('e').and_then(|(front, power)| Some((front, power.parse::<i32>().ok()?)));
    match power {
        Some((_, power)) if (-4..digits as i32).contains(&power) => {
            without_zeros(&format!("{size:.*}", (digits as i32 - 1 - power) as usize))
        }
        Some((front, power)) => with_power(&without_zeros(front), &power.to_string()),
        None => by_power,
    }
}
