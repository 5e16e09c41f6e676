//! Number formats as spreadsheets have them: `#,##0`, `0.00`, `#,##0.0 %`, `€ 0`, `#,##0;(#,##0);"-"`.
//!
//! A pattern has one to three sections: for positive numbers, for negative ones, for zero. A section is a prefix,
//! digits and a suffix. `0` is a digit that is always shown, `#` one that is shown if it is not a leading or trailing
//! zero; a comma between them groups thousands; `%` in prefix or suffix shows hundredths. Text in quotes and a
//! character behind `\` stand for themselves, `_` and a character for a space. A number that rounds to zero is zero.
//! Values are rounded half away from zero, doubles by their first 15 digits.

use std::fmt;
use std::str::FromStr;

/// The attribute of elements whose cells have a number format of their own.
pub const NUMBER_FORMAT: &str = "number_format";
/// Digits behind the point that a pattern may have.
const DIGITS_MAX: usize = 30;
/// Sections that a pattern may have.
const SECTIONS_MAX: usize = 3;
/// Digits of a double that a decimal of so many digits always keeps.
const DOUBLE_DIGITS: i32 = 15;

/// A number to be shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number times 10^-scale.
    Decimal {
        /// The digits as a whole number.
        digits: i128,
        /// Digits behind the point.
        scale: u8,
    },
    /// A double.
    Double(f64),
}

/// How numbers are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberFormat {
    positive: Section,
    negative: Option<Section>,
    zero: Option<Section>,
}

/// How positive numbers, negative ones or zeros are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Section {
    prefix: String,
    suffix: String,
    /// False for a section of text alone.
    has_digits: bool,
    /// Digits before the point, at least.
    whole_min: usize,
    /// Digits behind the point, at least and at most.
    fraction: (usize, usize),
    groups: bool,
    percent: bool,
}

impl NumberFormat {
    /// The format of values without a pattern: all digits of a decimal's scale, up to six of a double, groups of
    /// thousands.
    pub fn plain(scale: Option<u8>) -> NumberFormat {
        let fraction = scale.map_or((0, 6), |scale| (scale.into(), scale.into()));
        let positive = Section { has_digits: true, whole_min: 1, fraction, groups: true, ..Section::default() };
        NumberFormat { positive, negative: None, zero: None }
    }

    /// The text of a number.
    pub fn text(&self, number: Number) -> String {
        let is_negative = match number {
            Number::Decimal { digits, .. } => digits < 0,
            Number::Double(value) if !value.is_finite() => return value.to_string(),
            Number::Double(value) => value < 0.0,
        };
        let section = self.negative.as_ref().filter(|_| is_negative).unwrap_or(&self.positive);
        let digits = section.digits(number);
        let has_sign = is_negative && self.negative.is_none();
        match digits.bytes().all(|digit| digit == b'0') {
            false => section.text(&digits, has_sign),
            true => {
                let section = self.zero.as_ref().unwrap_or(&self.positive);
                section.text(&section.digits(Number::Decimal { digits: 0, scale: 0 }), false)
            }
        }
    }
}

impl Section {
    /// The digits of a number's magnitude that this section shows, the point left out. A section of text alone has
    /// those of the number, so that it tells zero from other numbers.
    fn digits(&self, number: Number) -> String {
        let places = if self.has_digits { self.fraction.1 } else { DIGITS_MAX };
        match number {
            Number::Decimal { digits, scale } => decimal_digits(digits, scale, places, self.percent),
            Number::Double(value) => double_digits(value.abs(), places, self.percent),
        }
    }

    /// The text of a number of these digits.
    fn text(&self, digits: &str, has_sign: bool) -> String {
        let sign = if has_sign { "-" } else { "" };
        let Section { prefix, suffix, .. } = self;
        if !self.has_digits {
            return format!("{sign}{prefix}{suffix}");
        }
        let places = self.fraction.1;
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let whole = format!("{:0>width$}", whole.trim_start_matches('0'), width = self.whole_min);
        let whole = if self.groups { grouped(&whole) } else { whole };
        let shown = fraction.trim_end_matches('0').len().max(self.fraction.0);
        let point = if shown > 0 { "." } else { "" };
        format!("{sign}{prefix}{whole}{point}{}{suffix}", &fraction[..shown])
    }
}

/// A sum rounded to its meaningful digits: those up to the 15th digit of `magnitude`, the sum of the terms' magnitudes.
pub(crate) fn settled(value: f64, magnitude: f64) -> f64 {
    if !(value.is_finite() && magnitude.is_finite() && value.abs() < magnitude) {
        return value;
    }
    let places = DOUBLE_DIGITS - 1 - magnitude.log10().floor() as i32;
    match usize::try_from(places) {
        Ok(places) => format!("{value:.places$}").parse::<f64>().map_or(value, |value| value + 0.0),
        Err(_) => {
            let unit = 10_f64.powi(-places);
            (value / unit).round() * unit + 0.0
        }
    }
}

/// Digits of a decimal's magnitude, rounded to so many behind the point.
fn decimal_digits(digits: i128, scale: u8, places: usize, percent: bool) -> String {
    let behind = i32::from(scale) - if percent { 2 } else { 0 } - places as i32;
    if behind <= 0 {
        return format!("{}{}", digits.unsigned_abs(), "0".repeat(behind.unsigned_abs() as usize));
    }
    let divisor = 10_u128.checked_pow(behind.unsigned_abs());
    let halves = |divisor: u128| (digits.unsigned_abs() / (divisor / 2)).div_ceil(2);
    divisor.map_or(0, halves).to_string()
}

/// Digits of a positive double, rounded to so many behind the point; behind the first 15 of them, and the point, stand
/// zeros.
fn double_digits(value: f64, places: usize, percent: bool) -> String {
    let wanted = places + if percent { 2 } else { 0 };
    let places = wanted.min((f64::from(DOUBLE_DIGITS - 1) - value.log10().floor()).max(0.0) as usize);
    // The formatter rounds halves to the even digit; above a half the next double has the digits of the larger one.
    let is_half = fraction_bits(value) == places as i32 + 1;
    let shown = if is_half { value.next_up() } else { value };
    format!("{shown:.places$}{}", "0".repeat(wanted - places)).replace('.', "")
}

/// Digits behind the point of a double in base 2, and so in base 10, where the last one is 5; none or negative for
/// whole numbers.
fn fraction_bits(value: f64) -> i32 {
    let exponent = (value.to_bits() >> 52 & 0x7ff) as i32;
    let fraction = value.to_bits() & ((1 << 52) - 1);
    let mantissa = if exponent > 0 { fraction | 1 << 52 } else { fraction };
    1075 - exponent.max(1) - mantissa.trailing_zeros() as i32
}

/// Digits with a comma before each three from the right.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl FromStr for NumberFormat {
    type Err = String;

    fn from_str(pattern: &str) -> Result<NumberFormat, String> {
        let colon = |reason: String| format!(": {reason}");
        let sections = sections(pattern).map_err(colon).and_then(|sections| {
            if sections.len() > SECTIONS_MAX {
                return Err(": sections are for positive numbers, negative ones and zero, three at most".into());
            }
            let sections = sections.iter().map(|section| Section::of(section).map_err(colon));
            let sections = sections.collect::<Result<Vec<_>, _>>()?;
            match sections.first().is_some_and(|section| section.has_digits) {
                true => Ok(sections),
                false => Err(" has no # or 0".to_string()),
            }
        });
        let mut sections = sections.map_err(|reason| format!("format {pattern:?}{reason}"))?.into_iter();
        let positive = sections.next().unwrap_or_default();
        Ok(NumberFormat { positive, negative: sections.next(), zero: sections.next() })
    }
}

/// A character of a pattern: one that means something, or one that stands for itself.
#[derive(Clone, Copy)]
enum Sign {
    Meant(char),
    Literal(char),
}

/// The sections of a pattern.
fn sections(pattern: &str) -> Result<Vec<Vec<Sign>>, String> {
    let mut sections = vec![Vec::new()];
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let mut push = |sign| sections.last_mut().into_iter().for_each(|section| section.push(sign));
        match c {
            '"' => loop {
                match rest.next() {
                    Some('"') => break,
                    Some(c) => push(Sign::Literal(c)),
                    None => return Err("a quote is not closed".to_string()),
                }
            },
            '\\' => push(Sign::Literal(rest.next().ok_or("a character is missing behind \\")?)),
            '_' => {
                rest.next().ok_or("a character is missing behind _")?;
                push(Sign::Literal(' '));
            }
            '[' => {
                let end = |rest: &str| rest.find(']').map_or(rest.len(), |end| end + 1);
                let named = &rest.as_str()[..end(rest.as_str())];
                return Err(format!("[{named} is not shown: colours and conditions are not done; leave it out"));
            }
            '*' | '?' | '@' => {
                let what = match c {
                    '*' => "fills a column",
                    '?' => "pads digits",
                    _ => "stands for texts",
                };
                return Err(format!("{c} {what} in spreadsheets, which is not done; \\{c} shows the character"));
            }
            ';' => sections.push(Vec::new()),
            c => push(Sign::Meant(c)),
        }
    }
    Ok(sections)
}

impl Section {
    fn of(signs: &[Sign]) -> Result<Section, String> {
        let starts = |at: usize| matches!(signs.get(at), Some(Sign::Meant('#' | '0')));
        let is_point = |at: usize| matches!(signs.get(at), Some(Sign::Meant('.')));
        let start = (0..signs.len()).find(|&at| starts(at) || (is_point(at) && starts(at + 1)));
        let text = |signs: &[Sign]| {
            let character = |sign: &Sign| match sign {
                Sign::Meant(c) | Sign::Literal(c) => *c,
            };
            signs.iter().map(character).collect::<String>()
        };
        let has = |signs: &[Sign], wanted: &[char]| {
            signs.iter().any(|sign| matches!(sign, Sign::Meant(c) if wanted.contains(c)))
        };
        let is_digit = |sign: &Sign| matches!(sign, Sign::Meant('#' | '0' | ',' | '.'));
        let (prefix, rest) = signs.split_at(start.unwrap_or(signs.len()));
        let (digits, suffix) = rest.split_at(rest.iter().position(|sign| !is_digit(sign)).unwrap_or(rest.len()));
        let digits = text(digits);
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        if has(suffix, &['#', '0']) || has(prefix, &[',']) {
            return Err("digits stand together".to_string());
        }
        if digits.ends_with(',') {
            return Err("a comma behind the digits divides by 1,000 in spreadsheets, which is not done; divide in a \
                        query"
                .to_string());
        }
        if fraction.contains(['.', ',']) || fraction.contains("#0") {
            return Err("behind the point stand zeros, then #".to_string());
        }
        if whole.replace(',', "").contains("0#") {
            return Err("before the point stand #, then zeros".to_string());
        }
        if fraction.len() > DIGITS_MAX || whole.len() > DIGITS_MAX {
            return Err("too many digits".to_string());
        }
        Ok(Section {
            prefix: text(prefix),
            suffix: text(suffix),
            has_digits: start.is_some(),
            whole_min: whole.matches('0').count(),
            fraction: (fraction.matches('0').count(), fraction.len()),
            groups: whole.contains(','),
            percent: has(prefix, &['%']) || has(suffix, &['%']),
        })
    }
}

impl fmt::Display for Number {
    /// The number with all of its digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Double(value) => write!(f, "{value}"),
            Number::Decimal { digits, scale } => {
                let (sign, places) = (if *digits < 0 { "-" } else { "" }, usize::from(*scale));
                let text = format!("{:0>width$}", digits.unsigned_abs(), width = places + 1);
                let (whole, fraction) = text.split_at(text.len() - places);
                if fraction.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{fraction}") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(pattern: &str, digits: i128, scale: u8) -> String {
        pattern.parse::<NumberFormat>().unwrap().text(Number::Decimal { digits, scale })
    }

    #[test]
    fn decimals() {
        for (pattern, digits, scale, text) in [
            ("#,##0", 123_456_789, 2, "1,234,568"),
            ("#,##0", -49, 2, "0"),
            ("#,##0", -50, 2, "-1"),
            ("0.00", 5, 0, "5.00"),
            ("0.0#", 1_250, 3, "1.25"),
            ("0.0#", 1_000, 3, "1.0"),
            ("#.##", 25, 2, ".25"),
            ("000", 7, 0, "007"),
            ("0.0 %", 1_234, 4, "12.3 %"),
            ("0%", 1, 0, "100%"),
            ("€ #,##0.00", -123_456, 2, "-€ 1,234.56"),
            (".00", 5, 2, ".05"),
            ("#,##0;(#,##0)", -123_456, 2, "(1,235)"),
            ("#,##0;(#,##0)", 123_456, 2, "1,235"),
            ("#,##0_);(#,##0)", 123_456, 2, "1,235 "),
            ("#,##0;(#,##0)", -49, 2, "0"),
            ("#,##0.00;-#,##0.00;\"-\"", 0, 2, "-"),
            ("#,##0.00;-#,##0.00;\"-\"", -1, 2, "-0.01"),
            ("0;-0;\"none\"", 4, 1, "none"),
            ("0;\"minus\"", -4, 1, "minus"),
            ("0 \"0 #\";\\#0", -5, 0, "#5"),
            ("0 \"0 #\";\\#0", 5, 0, "5 0 #"),
            ("0.0 %;(0.0 %)", -1_234, 4, "(12.3 %)"),
            ("0;;", 0, 0, ""),
            ("0", i128::MAX, 0, "170141183460469231731687303715884105727"),
            ("0", i128::MIN, 18, "-170141183460469231732"),
        ] {
            assert_eq!(shown(pattern, digits, scale), text, "{pattern} of {digits} e-{scale}");
        }
    }

    #[test]
    fn doubles() {
        let shown = |pattern: &str, value| pattern.parse::<NumberFormat>().unwrap().text(Number::Double(value));
        assert_eq!(shown("#,##0.00", -1234.567), "-1,234.57");
        assert_eq!(shown("0.0%", 0.12345), "12.3%");
        assert_eq!(shown("0", -0.2), "0");
        for (pattern, value, text) in [
            ("0", 0.5, "1"),
            ("0", 2.5, "3"),
            ("0", -2.5, "-3"),
            ("0", 3.5, "4"),
            ("0.0", 0.25, "0.3"),
            ("0.00", 1.125, "1.13"),
            // These doubles lie beside the half that their shortest digits name.
            ("0.00", 1.005, "1.00"),
            ("0.0", 0.15, "0.1"),
            ("0.0", 0.35, "0.3"),
            ("0.0", 0.45, "0.5"),
            ("0%", 0.125, "13%"),
            ("0.0%", 0.1235, "12.3%"),
            ("0", 4_503_599_627_370_495.5, "4503599627370496"),
            ("0", 4_503_599_627_370_494.5, "4503599627370495"),
            ("0", 1e22, "10000000000000000000000"),
        ] {
            assert_eq!(shown(pattern, value), text, "{pattern} of {value}");
        }
        assert_eq!(NumberFormat::plain(None).text(Number::Double(0.1 + 0.2)), "0.3");
        assert_eq!(NumberFormat::plain(None).text(Number::Double(12_345_678_901.345)), "12,345,678,901.345");
        assert_eq!(shown("0.000000", 12_345_678_901.345), "12345678901.345000");
        assert_eq!(NumberFormat::plain(Some(2)).text(Number::Decimal { digits: 150_000, scale: 2 }), "1,500.00");
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused() {
        for pattern in ["", "abc", "0#", "0.#0", "0 0", "0.0.0", "0.0,0", ";0", "0;0;0;@", "0\\", "0 \"a"] {
            assert!(pattern.parse::<NumberFormat>().is_err(), "{pattern:?}");
        }
        for (pattern, word) in [
            ("[Red]-#,##0", "[Red]"),
            ("0;[Blue]0", "[Blue]"),
            ("#,##0.0,", "divides"),
            ("#,##0,", "divides"),
            ("* 0", "fills"),
            ("0??", "pads"),
        ] {
            let error = pattern.parse::<NumberFormat>().unwrap_err();
            assert!(error.contains(word) && error.contains(pattern), "{error}");
        }
    }

    #[test]
    fn what_terms_leave_of_a_sum() {
        for (value, magnitude, left) in [
            (5.551115123125783e-17, 1.0, 0.0),
            (-2.220446049250313e-16, 1.01, 0.0),
            (0.345_001_220_703_125, 12_345_678_901.0, 0.345),
            (1e-3, 1.0, 1e-3),
            (1.5, 1e300, 0.0),
            (3e15, 5e30, 0.0),
            (3e16, 5e30, 3e16),
            (1.005, 1.005, 1.005),
            (f64::NEG_INFINITY, 1.0, f64::NEG_INFINITY),
            (1.0, f64::INFINITY, 1.0),
        ] {
            assert_eq!(settled(value, magnitude), left, "{value} of {magnitude}");
        }
    }

    fn plain_digits(scale: u8) -> NumberFormat {
        let mut format = NumberFormat::plain(Some(scale));
        format.positive.groups = false;
        format
    }

    proptest! {
        #[test]
        fn all_digits_are_the_number(digits in any::<i64>(), scale in 0_u8..=18) {
            let text = Number::Decimal { digits: digits.into(), scale }.to_string();
            prop_assert_eq!(text.replace('.', "").parse::<i128>().unwrap(), i128::from(digits));
            let format = plain_digits(scale);
            prop_assert_eq!(format.text(Number::Decimal { digits: digits.into(), scale }), text);
        }
    }
}
