//! Decimals as the floats nearest to them, which are those that their texts are read as.
//!
//! Arrow 59.3 rounds the digits to a double, and the quotient by the power of ten again: a decimal of more than 53 bits
//! may be off in its last place. A quotient is rounded once where the digits and the power of ten are floats
//! themselves; all other decimals are read from their texts here. The file goes once Arrow rounds once.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, DecimalType, Float32Type, Float64Type};
use datafusion::error::{DataFusionError, Result};

/// Digits of integers that are doubles, whatever the digits are, and the largest power of ten that is one.
const DOUBLE: (u8, i8) = (15, 22);
/// The same of floats of 32 bits.
const SINGLE: (u8, i8) = (7, 10);

/// Whether decimals of a type may be rounded twice in Arrow's cast to a type of floats.
pub(crate) fn is_rounded_twice(from: &DataType, to: &DataType) -> bool {
    let exact = match to {
        DataType::Float64 => DOUBLE,
        DataType::Float32 => SINGLE,
        _ => return false,
    };
    match from {
        DataType::Dictionary(_, values) => is_rounded_twice(values, to),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => *digits > exact.0 || !(0..=exact.1).contains(scale),
        _ => false,
    }
}

/// Decimals as the nearest floats of a type; other values as Arrow casts them.
///
/// # Errors
/// Those of Arrow's cast.
pub(crate) fn floats(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if !is_rounded_twice(values.data_type(), to) {
        return Ok(cast(values, to)?);
    }
    match (values.data_type(), to) {
        (DataType::Dictionary(_, of), _) => floats(&cast(values, of)?, to),
        (DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale), _) => {
            floats(&cast(values, &DataType::Decimal128(*digits, *scale))?, to)
        }
        (DataType::Decimal256(_, scale), DataType::Float32) => {
            nearest::<Decimal256Type, Float32Type>(values, *scale, |_| None)
        }
        (DataType::Decimal256(_, scale), _) => nearest::<Decimal256Type, Float64Type>(values, *scale, |_| None),
        (_, DataType::Float32) => {
            let decimals = values.as_primitive::<Decimal128Type>();
            nearest::<Decimal128Type, Float32Type>(values, decimals.scale(), |_| None)
        }
        _ => {
            let scale = values.as_primitive::<Decimal128Type>().scale();
            let power = (0..=DOUBLE.1).contains(&scale).then(|| 10f64.powi(scale.into()));
            let quotient = |units: i128| {
                let is_double = units.unsigned_abs() >> f64::MANTISSA_DIGITS == 0;
                power.filter(|_| is_double).map(|power| units as f64 / power)
            };
            nearest::<Decimal128Type, Float64Type>(values, scale, quotient)
        }
    }
}

/// Decimals as floats: what `quotient` leaves is read from its text.
fn nearest<D: DecimalType, F: ArrowPrimitiveType>(
    values: &ArrayRef,
    scale: i8,
    quotient: impl Fn(D::Native) -> Option<F::Native>,
) -> Result<ArrayRef>
where
    D::Native: Display,
    F::Native: FromStr,
{
    let float = |units: D::Native| -> Result<F::Native> {
        if let Some(quotient) = quotient(units) {
            return Ok(quotient);
        }
        let text = format!("{units}e{}", -i16::from(scale));
        text.parse().map_err(|_| DataFusionError::Internal(format!("no float of '{text}'")))
    };
    Ok(Arc::new(values.as_primitive::<D>().try_unary::<_, F, _>(float)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Decimal256Array};
    use arrow::datatypes::i256;

    use super::*;

    #[test]
    fn floats_are_those_of_texts() {
        let digits = [0, 1, -1, 15, (1 << 53) + 1, -(1 << 62) - 1, 10_i128.pow(38) - 1, 12345678901234567890123456789];
        for scale in [-3, 0, 1, 15, 22, 23, 38] {
            let texts = digits.map(|units| format!("{units}e{}", -i32::from(scale)));
            let narrow = Decimal128Array::from(digits.to_vec()).with_precision_and_scale(38, scale).unwrap();
            let wide = Decimal256Array::from_iter_values(digits.map(i256::from_i128));
            let wide = wide.with_precision_and_scale(76, scale).unwrap();
            for values in [Arc::new(narrow) as ArrayRef, Arc::new(wide)] {
                let doubles = floats(&values, &DataType::Float64).unwrap();
                let singles = floats(&values, &DataType::Float32).unwrap();
                for (row, text) in texts.iter().enumerate() {
                    let (double, single): (f64, f32) = (text.parse().unwrap(), text.parse().unwrap());
                    assert_eq!(doubles.as_primitive::<Float64Type>().value(row), double, "{text}");
                    assert_eq!(singles.as_primitive::<Float32Type>().value(row), single, "{text}");
                }
            }
        }
    }

    #[test]
    fn short_decimals_are_arrows() {
        let is_rounded_twice = |digits, scale, to| is_rounded_twice(&DataType::Decimal128(digits, scale), &to);
        assert!(!is_rounded_twice(15, 2, DataType::Float64));
        assert!(is_rounded_twice(16, 2, DataType::Float64));
        assert!(is_rounded_twice(15, -2, DataType::Float64));
        assert!(is_rounded_twice(15, 2, DataType::Float32));
        assert!(!is_rounded_twice(38, 2, DataType::Int64));
    }
}
