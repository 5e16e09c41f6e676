//! Texts as decimals, as PostgreSQL reads numbers: blanks around, a sign, an exponent.
//!
//! Arrow 59.3 takes no exponents and no blanks in a cast, cuts digits off in files, and wraps around where a number
//! with an exponent has more digits than the type's integers. Casts of texts and declared columns of text files are
//! read here, by any count of digits. Digits past the scale are rounded, halves away from zero.
//!
//! Most texts have digits of 64 bits and no exponent: [`short`] reads them byte by byte, and leaves all others to
//! [`parse`]. The file goes once Arrow reads them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Builder, Decimal256Builder, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, i256};
use datafusion::error::{DataFusionError, Result};

/// A text that is no value of a decimal type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Its position among the texts.
    pub(crate) row: usize,
    pub(crate) text: String,
    /// Whether it is a number, which then has too many digits before the point.
    pub(crate) is_number: bool,
}

/// Whether texts are read as values of a type here.
pub(crate) fn is_read(target: &DataType) -> bool {
    matches!(target, DataType::Decimal128(..) | DataType::Decimal256(..))
}

/// Texts as decimals of a type, or the first that is none; where texts `may_fail`, such ones are NULL.
///
/// # Errors
/// [`DataFusionError::Internal`] for other types.
pub(crate) fn read(texts: &ArrayRef, target: &DataType, may_fail: bool) -> Result<Result<ArrayRef, Misfit>> {
    let texts = cast(texts, &DataType::Utf8View)?;
    let texts = texts.as_string_view();
    Ok(match *target {
        DataType::Decimal128(precision, scale) => {
            let mut values =
                Decimal128Builder::with_capacity(texts.len()).with_precision_and_scale(precision, scale)?;
            let narrow = |found: Option<i256>| found.and_then(i256::to_i128);
            let parsed = |text: &str| match short(text.as_bytes(), precision, scale) {
                None => parse(text, precision, scale).map(narrow),
                found => Ok(found),
            };
            let done = each(texts, may_fail, parsed, |value| values.append_option(value));
            done.map(|()| Arc::new(values.finish()) as ArrayRef)
        }
        DataType::Decimal256(precision, scale) => {
            let mut values =
                Decimal256Builder::with_capacity(texts.len()).with_precision_and_scale(precision, scale)?;
            let parsed = |text: &str| match short(text.as_bytes(), precision, scale) {
                None => parse(text, precision, scale),
                found => Ok(found.map(i256::from_i128)),
            };
            let done = each(texts, may_fail, parsed, |value| values.append_option(value));
            done.map(|()| Arc::new(values.finish()) as ArrayRef)
        }
        ref other => return Err(DataFusionError::Internal(format!("texts read as {other}, which is no decimal"))),
    })
}

/// Hands the value of each text on; none for NULL.
fn each<V>(
    texts: &StringViewArray,
    may_fail: bool,
    parsed: impl Fn(&str) -> Result<Option<V>, NoNumber>,
    mut append: impl FnMut(Option<V>),
) -> Result<(), Misfit> {
    for (row, text) in texts.iter().enumerate() {
        let Some(text) = text else {
            append(None);
            continue;
        };
        match parsed(text) {
            Ok(Some(value)) => append(Some(value)),
            _ if may_fail => append(None),
            other => return Err(Misfit { row, text: text.into(), is_number: other.is_ok() }),
        }
    }
    Ok(())
}

/// Powers of ten that 128 bits hold.
const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut power = 1;
    while power < powers.len() {
        powers[power] = powers[power - 1] * 10;
        power += 1;
    }
    powers
};
/// Digits that 64 bits hold, whatever they are.
const SHORT: usize = 19;

/// The number that a short text of digits and a point is, in units of the scale; none of any other text, and of what
/// has too many digits.
fn short(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if text.len() > SHORT {
        return None;
    }
    let (mut units, mut point) = (0_u64, None);
    for (index, byte) in text.iter().enumerate() {
        match byte.wrapping_sub(b'0') {
            digit @ 0..=9 => units = units * 10 + u64::from(digit),
            _ if *byte == b'.' && point.is_none() => point = Some(index),
            _ => return None,
        }
    }
    let fraction = point.map_or(0, |point| text.len() - point - 1);
    if text.len() == usize::from(point.is_some()) {
        return None;
    }
    let shift = i16::from(scale) - fraction as i16;
    let power = POWERS.get(usize::from(shift.unsigned_abs()))?;
    let value = match shift >= 0 {
        true => i128::from(units).checked_mul(*power)?,
        false => {
            let (whole, rest) = (i128::from(units) / power, i128::from(units) % power);
            whole + i128::from(rest * 2 >= *power)
        }
    };
    let limit = POWERS[usize::from(precision.min(DECIMAL128_MAX_PRECISION))];
    (value < limit).then_some(if is_negative { -value } else { value })
}

/// A text that is no number.
#[derive(Debug, PartialEq, Eq)]
struct NoNumber;

/// The number that a text is, in units of the scale; none if it has too many digits.
fn parse(text: &str, precision: u8, scale: i8) -> Result<Option<i256>, NoNumber> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
        return Err(NoNumber);
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Some(i256::ZERO));
    }
    // Where the units of the scale end in the digits.
    let end = digits.len() as i64 + exponent - fraction.len() as i64 + i64::from(scale);
    let (kept, rounds_up) = match usize::try_from(end) {
        Err(_) => return Ok(Some(i256::ZERO)),
        Ok(end) if end > usize::from(precision) => return Ok(None),
        Ok(end) if end >= digits.len() => (format!("{digits:0<end$}"), false),
        Ok(end) => (digits[..end].to_string(), digits.as_bytes()[end] >= b'5'),
    };
    let kept = if kept.is_empty() { Some(i256::ZERO) } else { i256::from_string(&kept) };
    let value = kept.and_then(|kept| if rounds_up { kept.checked_add(i256::ONE) } else { Some(kept) });
    let limit = i256::from_i128(10).checked_pow(u32::from(precision));
    let value = value.zip(limit).filter(|(value, limit)| value < limit).map(|(value, _)| value);
    Ok(value.map(|value| if is_negative { value.wrapping_neg() } else { value }))
}

/// An exponent; one that is too long for its type is as good as the longest.
fn exponent_of(text: &str) -> Result<i64, NoNumber> {
    const MOST: i64 = 1_000_000_000_000;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NoNumber);
    }
    Ok(sign * digits.parse().unwrap_or(MOST).min(MOST))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, DictionaryArray, StringArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn texts_are_read_as_numbers() {
        let read = |text: &str| parse(text, 12, 2).map(|value| value.and_then(i256::to_i128));
        for (text, units) in [
            ("1e3", 100_000),
            (" -12.345 ", -1_235),
            ("+.5", 50),
            ("5.", 500),
            ("0.005", 1),
            ("0.0049", 0),
            ("1234567.89E-4", 12_346),
            ("0e400", 0),
            ("1e-400", 0),
            ("-9999999999.994", -999_999_999_999),
            ("00000000000000000000001", 100),
        ] {
            assert_eq!(read(text), Ok(Some(units)), "{text}");
            // A short text has the same number wherever it is read.
            let short = short(text.as_bytes(), 12, 2);
            assert_eq!(short.unwrap_or(units), units, "{text}");
            assert_eq!(short.is_none(), text.contains([' ', 'e', 'E']) || text.len() > 20, "{text}");
        }
        for text in ["", " ", ".", "e3", "1e", "1e+", "1 2", "0x1", "NaN", "--1", "-", "1_000", "1e3.5", "1.2.3"] {
            assert_eq!(read(text), Err(NoNumber), "{text}");
            assert_eq!(short(text.as_bytes(), 12, 2), None, "{text}");
        }
        for text in ["1e400", "1e99999999999999999999", "9999999999.995", "-10000000000"] {
            assert_eq!(read(text), Ok(None), "{text}");
            assert_eq!(short(text.as_bytes(), 12, 2), None, "{text}");
        }
        assert_eq!(parse("9.5e75", 76, 0).unwrap().map(|value| value.to_string().len()), Some(76));
        let digits = format!("{}.5e-90", "7".repeat(100));
        assert_eq!(parse(&digits, 12, 2).unwrap(), Some(i256::from_i128(777_777_777_778)));
    }

    #[test]
    fn short_texts_are_shifted_to_every_scale() {
        for (text, precision, scale, expected) in [
            ("9999999999999999999", 38, 19, Some(99_999_999_999_999_999_990_000_000_000_000_000_000)),
            ("9999999999999999999", 38, 20, None),
            ("9999999999999999999", 19, 0, Some(9_999_999_999_999_999_999)),
            (".5", 38, 38, Some(50_000_000_000_000_000_000_000_000_000_000_000_000)),
            ("0.000000000000000050", 3, 0, Some(0)),
            ("250", 3, -2, Some(3)),
            ("9999999999999999999", 76, 3, Some(9_999_999_999_999_999_999_000)),
        ] {
            let expected: Option<i128> = expected;
            let expected = expected.filter(|_| text.len() <= SHORT);
            assert_eq!(short(text.as_bytes(), precision, scale), expected, "{text} at {scale}");
            let parsed = parse(text, precision, scale).unwrap().and_then(i256::to_i128);
            assert_eq!(expected.unwrap_or_else(|| parsed.unwrap_or(-1)), parsed.unwrap_or(-1), "{text} at {scale}");
        }
    }

    #[test]
    fn texts_of_every_form_are_read_and_the_first_misfit_told() {
        let texts = vec![Some("1.005"), None, Some(" 2e0")];
        let of = |texts: ArrayRef| read(&texts, &DataType::Decimal128(5, 2), false).unwrap();
        let expected = Decimal128Array::from(vec![Some(101), None, Some(200)]).with_precision_and_scale(5, 2).unwrap();
        let expected: ArrayRef = Arc::new(expected);
        assert_eq!(of(Arc::new(StringArray::from(texts.clone()))).unwrap().as_ref(), expected.as_ref());
        let dictionary: DictionaryArray<Int32Type> = texts.into_iter().collect();
        assert_eq!(of(Arc::new(dictionary)).unwrap().as_ref(), expected.as_ref());
        for (text, is_number) in [("x", false), ("1000", true)] {
            let texts: ArrayRef = Arc::new(StringArray::from(vec!["1", text]));
            assert_eq!(of(texts.clone()), Err(Misfit { row: 1, text: text.into(), is_number }));
            let read = read(&texts, &DataType::Decimal256(5, 2), true).unwrap().unwrap();
            assert_eq!((read.len(), read.null_count()), (2, 1));
        }
    }
}
