//! Exact sums of integers and decimals, in 256 bits.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, i256};
use datafusion::error::Result;

/// Digits of decimals whose squares, added over 10^10 rows and times their number, fit in 256 bits.
pub(crate) const DIGITS_MAX: u8 = 28;

/// `n Σxy − Σx Σy`, the sum of products of deviations from the means times the count, rounded once.
pub(super) fn deviations(sums: [i256; 2], products: i256, count: u64) -> f64 {
    let [one, other] = sums;
    rounded(products.wrapping_mul(i256::from_i128(count.into())).wrapping_sub(one.wrapping_mul(other)))
}

/// An integer as a double, rounded once.
pub(super) fn rounded(exact: i256) -> f64 {
    let sign = if exact.is_negative() { -1.0 } else { 1.0 };
    let (low, high) = exact.wrapping_abs().to_parts();
    let high = high.cast_unsigned();
    if high == 0 {
        return sign * low as f64;
    }
    // 128 bits from the first one on; a bit for those that are left out.
    let shift = 128 - high.leading_zeros();
    let (kept, rest) = match shift {
        128 => (high, low),
        shift => ((high << (128 - shift)) | (low >> shift), low << (128 - shift)),
    };
    sign * (kept | u128::from(rest != 0)) as f64 * 2f64.powi(shift as i32)
}

/// Digits after the point of a type whose values are added exactly.
pub(crate) fn scale_of(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal128(precision, scale) if *precision <= DIGITS_MAX => Some(*scale),
        data_type if data_type.is_integer() => Some(0),
        _ => None,
    }
}

/// Values as decimals.
pub(super) fn exact_values(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Decimal128(_, _) => column.clone(),
        _ => cast(column, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_rounded_once() {
        let of = |values: &[i128]| {
            let (mut sum, mut squares) = (i256::ZERO, i256::ZERO);
            for value in values.iter().map(|value| i256::from_i128(*value)) {
                sum = sum.wrapping_add(value);
                squares = squares.wrapping_add(value.wrapping_mul(value));
            }
            deviations([sum, sum], squares, values.len() as u64)
        };
        assert_eq!(of(&[10i128.pow(27) + 1, 10i128.pow(27) + 3]), 4.0);
        assert_eq!(of(&[5, 5, 5]), 0.0);
        // Past 128 bits: (2 · 10^27)² is 4 · 10^54.
        assert_eq!(of(&[10i128.pow(27), -(10i128.pow(27))]), 4e54);
        // Of products the sign stays.
        let one = i256::from_i128(10i128.pow(27));
        assert_eq!(deviations([one, one.wrapping_neg()], i256::ZERO, 2), 1e54);
        assert_eq!(deviations([one, one], i256::ZERO, 2), -1e54);
    }
}
