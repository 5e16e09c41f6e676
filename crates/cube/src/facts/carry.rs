//! Sums of an AVG beyond the type of its values: a stored value and a carry.
//!
//! A sum of decimals is value + carry · 2⁶⁴, one of doubles value + carry · 2¹⁰⁰⁰ ([`Large`]). The carry is 0 where the
//! value alone is the sum. Only an AVG has others: its result lies within the range of its values, whatever their sum.

use super::{Large, Precise, Rule, Segment, ValueType, Values};

/// A sum of decimals as value and carry.
pub(super) fn split_decimal(sum: i128) -> (i64, i64) {
    let value = sum as i64;
    (value, ((sum - i128::from(value)) >> u64::BITS) as i64)
}

/// The sum of decimals of a value and a carry.
pub(crate) fn whole_decimal(value: i64, carry: i64) -> i128 {
    i128::from(value) + (i128::from(carry) << u64::BITS)
}

/// A sum of doubles beyond the largest one as value and carry.
pub(super) fn split_double(sum: Large) -> (f64, i64) {
    let carry = sum.0.to_f64().round();
    let value = Large(sum.0.plus(Precise::from_f64(-carry))).to_precise().to_f64();
    (value, carry as i64)
}

/// The sum of doubles of a value and a carry.
pub(crate) fn whole_double(value: f64, carry: i64) -> Large {
    Large(Large::from_f64(value).0.plus(Precise::from_i128(carry.into())))
}

impl Segment {
    /// The average of a filled cell of an AVG.
    pub(crate) fn average(&self, measure: usize, cell: usize) -> f64 {
        let column = &self.columns()[measure];
        debug_assert_eq!(column.measure.rule, Rule::Avg);
        let carry = self.carries(measure).map_or(0, |carries| carries[cell]);
        let count = column.counts.as_ref().map_or(1, |counts| counts[cell]) as f64;
        match (&column.values, column.measure.value_type, carry) {
            (Values::Decimals(values), ValueType::Decimal { scale }, _) => {
                whole_decimal(values[cell], carry) as f64 / 10_f64.powi(scale.into()) / count
            }
            (Values::Decimals(values), ..) => whole_decimal(values[cell], carry) as f64 / count,
            (Values::Doubles(values), _, 0) => values[cell] / count,
            (Values::Doubles(values), ..) => whole_double(values[cell], carry).divided(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_from_their_parts() {
        let large = i128::from(i64::MAX);
        for sum in
            [0, 1, -1, large, large + 1, -large - 1, -large - 2, 12 * 10_i128.pow(18), i128::MAX / 2, i128::MIN / 2]
        {
            let (value, carry) = split_decimal(sum);
            assert_eq!(whole_decimal(value, carry), sum);
            assert_eq!(carry == 0, i64::try_from(sum).is_ok(), "{sum}");
        }
        let sum =
            |values: &[f64]| values.iter().fold(Large::default(), |sum, v| Large(sum.0.plus(Large::from_f64(*v).0)));
        for values in [&[f64::MAX, f64::MAX][..], &[-1.5e308; 7], &[1.7e308, 1e308, 3.0]] {
            let (value, carry) = split_double(sum(values));
            assert!(value.is_finite() && carry != 0);
            let by = values.len() as f64;
            assert_eq!(whole_double(value, carry).divided(by), sum(values).divided(by), "{values:?}");
        }
    }
}
