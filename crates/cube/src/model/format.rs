//! Number formats as spreadsheets have them: `#,##0`, `0.00`, `#,##0.0 %`, `€ 0`.
//!
//! A pattern is a prefix, digits and a suffix. `0` is a digit that is always shown, `#` one that is shown if it is not
//! a leading or trailing zero; a comma between them groups thousands; `%` in prefix or suffix shows hundredths.
//! Values are rounded half away from zero, doubles by all digits that they have in base 10.

use std::fmt;
use std::str::FromStr;

/// Digits behind the point that a pattern may have.
const DIGITS_MAX: usize = 30;

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
    prefix: String,
    suffix: String,
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
        NumberFormat {
            prefix: String::new(),
            suffix: String::new(),
            whole_min: 1,
            fraction,
            groups: true,
            percent: false,
        }
    }

    /// The text of a number.
    pub fn text(&self, number: Number) -> String {
        let places = self.fraction.1;
        let (negative, digits) = match number {
            Number::Decimal { digits, scale } => decimal_digits(digits, scale, places, self.percent),
            Number::Double(value) if !value.is_finite() => return value.to_string(),
            Number::Double(value) => (value < 0.0, double_digits(value.abs(), places, self.percent)),
        };
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let whole = format!("{:0>width$}", whole.trim_start_matches('0'), width = self.whole_min);
        let shown = fraction.trim_end_matches('0').len().max(self.fraction.0);
        let is_zero = digits.bytes().all(|digit| digit == b'0');
        let mut text = String::new();
        if negative && !is_zero {
            text.push('-');
        }
        text.push_str(&self.prefix);
        text.push_str(&if self.groups { grouped(&whole) } else { whole });
        if shown > 0 {
            text.push('.');
            text.push_str(&fraction[..shown]);
        }
        text.push_str(&self.suffix);
        text
    }
}

/// Sign and digits of a decimal, rounded to so many behind the point.
fn decimal_digits(digits: i128, scale: u8, places: usize, percent: bool) -> (bool, String) {
    let behind = i32::from(scale) - if percent { 2 } else { 0 } - places as i32;
    let text = digits.unsigned_abs().to_string();
    let rounded = if behind <= 0 {
        format!("{text}{}", "0".repeat(behind.unsigned_abs() as usize))
    } else {
        let divisor = 10_u128.checked_pow(behind.unsigned_abs());
        let halves = |divisor: u128| (digits.unsigned_abs() / (divisor / 2)).div_ceil(2);
        divisor.map_or(0, halves).to_string()
    };
    (digits < 0, rounded)
}

/// Digits of a positive double, rounded to so many behind the point.
fn double_digits(value: f64, places: usize, percent: bool) -> String {
    let places = places + if percent { 2 } else { 0 };
    // The formatter rounds halves to the even digit; above a half the next double has the digits of the larger one.
    let is_half = fraction_bits(value) == places as i32 + 1;
    let shown = if is_half { value.next_up() } else { value };
    format!("{shown:.places$}").replace('.', "")
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
        let is_digit = |c: char| matches!(c, '#' | '0' | ',' | '.');
        let start = pattern.find(['#', '0']).ok_or_else(|| format!("format {pattern:?} has no # or 0"))?;
        let length = pattern[start..].find(|c| !is_digit(c)).unwrap_or(pattern.len() - start);
        let (digits, suffix) = pattern[start..].split_at(length);
        let prefix = &pattern[..start];
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let wrong = |reason: &str| Err(format!("format {pattern:?}: {reason}"));
        if suffix.contains(['#', '0']) || prefix.contains(',') {
            return wrong("digits stand together");
        }
        if fraction.contains(['.', ',']) || fraction.contains("#0") {
            return wrong("behind the point stand zeros, then #");
        }
        if whole.replace(',', "").contains("0#") {
            return wrong("before the point stand #, then zeros");
        }
        if fraction.len() > DIGITS_MAX || whole.len() > DIGITS_MAX {
            return wrong("too many digits");
        }
        Ok(NumberFormat {
            prefix: prefix.to_string(),
            suffix: suffix.to_string(),
            whole_min: whole.matches('0').count(),
            fraction: (fraction.matches('0').count(), fraction.len()),
            groups: whole.contains(','),
            percent: prefix.contains('%') || suffix.contains('%'),
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
        assert_eq!(NumberFormat::plain(Some(2)).text(Number::Decimal { digits: 150_000, scale: 2 }), "1,500.00");
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused() {
        for pattern in ["", "abc", "0#", "0.#0", "0 0", "0.0.0", "0.0,0"] {
            assert!(pattern.parse::<NumberFormat>().is_err(), "{pattern:?}");
        }
    }

    proptest! {
        #[test]
        fn all_digits_are_the_number(digits in any::<i64>(), scale in 0_u8..=18) {
            let text = Number::Decimal { digits: digits.into(), scale }.to_string();
            prop_assert_eq!(text.replace('.', "").parse::<i128>().unwrap(), i128::from(digits));
            let format = NumberFormat { groups: false, ..NumberFormat::plain(Some(scale)) };
            prop_assert_eq!(format.text(Number::Decimal { digits: digits.into(), scale }), text);
        }
    }
}
