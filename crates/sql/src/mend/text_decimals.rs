//! Casts of texts to decimals, as PostgreSQL reads numbers: blanks around, a sign, an exponent.
//!
//! Arrow 59.3 knows no exponents there (`'1e3'` is an error), and no blanks. Digits past the scale are rounded, halves
//! away from zero; what has more digits before the point than the type is an error, of TRY_CAST a NULL.
//!
//! The file goes once Arrow reads them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Decimal256Array};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, i256};
use datafusion::error::{DataFusionError, Result};

/// Texts as decimals of a type; what is no such number is NULL where it `may_fail`.
///
/// # Errors
/// A text that is no number of the type, unless it may fail.
pub(super) fn read(texts: &ArrayRef, target: &DataType, may_fail: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::LargeUtf8)?;
    let (precision, scale) = match target {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => (*precision, *scale),
        other => return Err(DataFusionError::Internal(format!("texts read as {other}, which is no decimal"))),
    };
    let read = |text: &str| match parse(text, precision, scale) {
        None if !may_fail => Err(DataFusionError::Execution(format!(
            "Cannot cast string '{text}' to value of DECIMAL({precision}, {scale}) type"
        ))),
        read => Ok(read),
    };
    let values = texts.as_string::<i64>().iter().map(|text| text.map_or(Ok(None), read));
    let values = values.collect::<Result<Vec<Option<i256>>>>()?;
    let wide = Decimal256Array::from(values).with_precision_and_scale(DECIMAL256_MAX_PRECISION, scale)?;
    Ok(match target {
        // All digits are within the precision.
        DataType::Decimal128(..) => {
            let narrow: Decimal128Array = wide.iter().map(|value| value.and_then(i256::to_i128)).collect();
            Arc::new(narrow.with_precision_and_scale(precision, scale)?)
        }
        _ => Arc::new(wide.with_precision_and_scale(precision, scale)?),
    })
}

/// The number that a text is, in units of the scale; none if it is no number or has too many digits.
fn parse(text: &str, precision: u8, scale: i8) -> Option<i256> {
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
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(i256::ZERO);
    }
    // Where the units of the scale end in the digits.
    let fraction = i64::try_from(fraction.len()).ok()?;
    let end = i64::try_from(digits.len()).ok()? + exponent - fraction + i64::from(scale);
    let (kept, rounds_up) = match usize::try_from(end) {
        Err(_) => return Some(i256::ZERO),
        Ok(end) if end > usize::from(precision) => return None,
        Ok(end) if end >= digits.len() => (format!("{digits:0<end$}"), false),
        Ok(end) => (digits[..end].to_string(), digits.as_bytes()[end] >= b'5'),
    };
    let kept = if kept.is_empty() { i256::ZERO } else { i256::from_string(&kept)? };
    let value = if rounds_up { kept.checked_add(i256::ONE)? } else { kept };
    let limit = i256::from_i128(10).checked_pow(u32::from(precision))?;
    (value < limit).then(|| if is_negative { value.wrapping_neg() } else { value })
}

/// An exponent; one that is too long for its type is as good as the longest.
fn exponent_of(text: &str) -> Option<i64> {
    const MOST: i64 = 1_000_000_000;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(sign * digits.parse().unwrap_or(MOST).min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_numbers() {
        let read = |text: &str| parse(text, 12, 2).and_then(i256::to_i128);
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
            assert_eq!(read(text), Some(units), "{text}");
        }
        let wrong = ["", " ", ".", "e3", "1e", "1e+", "1e400", "1e99999999999999999999", "1 2", "0x1", "NaN", "--1"];
        for text in wrong.into_iter().chain(["9999999999.995", "1_000", "1e3.5"]) {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(parse("9.5e75", 76, 0).map(|value| value.to_string().len()), Some(76));
    }
}
