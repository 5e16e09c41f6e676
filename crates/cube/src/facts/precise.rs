//! Sums of doubles with twice their precision: an unevaluated pair *high + low* (double-double arithmetic).
//!
//! Numerics: a sum of *n* products is within about *n*·2⁻¹⁰⁴ of Σ|w·v|, far below the 10⁻¹² that doubles promise; whole
//! numbers below 2¹⁰⁶ are exact. A sum depends on the order of its terms, in bits that rounding to a double almost
//! always drops: every algorithm therefore fixes the order, so that its bits are repeatable. A sum that passes the
//! largest double on its way is not finite; a [`Large`] one has the room. Source: Joldes, Muller, Popescu, *Tight and
//! rigorous error bounds for basic building blocks of double-word arithmetic* (2017), algorithms 6 and 9.

/// A number as the unevaluated sum of two doubles.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Precise {
    high: f64,
    low: f64,
}

impl Precise {
    /// Nothing added.
    pub(crate) const ZERO: Precise = Precise { high: 0.0, low: 0.0 };

    /// The exact value of a double.
    pub(crate) fn from_f64(value: f64) -> Precise {
        Precise { high: value, low: 0.0 }
    }

    /// The number of a device, as its two doubles.
    pub(crate) fn of_parts(high: f64, low: f64) -> Precise {
        Precise { high, low }
    }

    /// A whole number, exact below 2¹⁰⁶.
    pub(crate) fn from_i128(value: i128) -> Precise {
        let high = value as f64;
        Precise { high, low: value.wrapping_sub(high as i128) as f64 }
    }

    /// The sum of two numbers.
    pub(crate) fn plus(self, other: Precise) -> Precise {
        let (high, high_rest) = two_sum(self.high, other.high);
        let (low, low_rest) = two_sum(self.low, other.low);
        let (high, rest) = fast_two_sum(high, high_rest + low);
        let (high, low) = fast_two_sum(high, low_rest + rest);
        Precise { high, low }
    }

    /// The number times a double.
    pub(crate) fn times(self, factor: f64) -> Precise {
        if factor == 1.0 {
            return self;
        }
        let product = self.high * factor;
        let rest = self.high.mul_add(factor, -product);
        let (high, low) = fast_two_sum(product, self.low.mul_add(factor, rest));
        Precise { high, low }
    }

    /// The number moved away from zero.
    pub(crate) fn away_from_zero(self, by: f64) -> Precise {
        self.plus(Precise::from_f64(by.copysign(self.high)))
    }

    /// The nearest double, without −0.0; not finite beyond the largest double.
    pub(crate) fn to_f64(self) -> f64 {
        self.high + self.low + 0.0
    }

    /// True unless the sum has passed the largest double, on its way too: infinity and NaN stay.
    pub(crate) fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }

    /// The nearest whole number, halves away from zero; nothing if it does not fit into 64 bits.
    pub(crate) fn to_i64(self) -> Option<i64> {
        if self.high.is_nan() || self.high.abs() > 1e19 {
            return None;
        }
        let whole = self.high.round();
        let rest = self.high - whole;
        // Doubles from 2⁵² on are whole: all that is left to round lies in the low part.
        let step = if self.high.abs() >= 4_503_599_627_370_496.0 {
            if self.high > 0.0 { (self.low + 0.5).floor() } else { (self.low - 0.5).ceil() }
        } else if rest == -0.5 && self.low < 0.0 {
            -1.0
        } else if rest == 0.5 && self.low > 0.0 {
            1.0
        } else {
            0.0
        };
        i64::try_from(whole as i128 + step as i128).ok()
    }
}

/// A sum with room beyond the largest double, in units of 2^[`Large::EXPONENT`].
///
/// Numerics: a term loses at most 2⁻¹⁰⁷⁴ units, or 2⁻⁷⁴. Sums that need the room have terms of 2¹⁰²³ and more.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Large(pub(crate) Precise);

impl Large {
    /// The exponent of the unit. Products of doubles and weights up to this power of two have room.
    pub(crate) const EXPONENT: i32 = 1000;
    /// 2¹⁰⁰⁰.
    const UNIT: f64 = f64::from_bits(((Large::EXPONENT + 1023) as u64) << 52);
    /// 10³⁰⁰ and its exponent, between a unit and numbers of one digit.
    const DECIMAL_UNIT: (f64, i32) = (1e300, 300);

    /// The value of a double.
    pub(crate) fn from_f64(value: f64) -> Large {
        Large(Precise::from_f64(value / Large::UNIT))
    }

    /// The value of a number without room.
    pub(crate) fn from_precise(value: Precise) -> Large {
        Large(Precise { high: value.high / Large::UNIT, low: value.low / Large::UNIT })
    }

    /// The number without its room; not finite beyond the largest double.
    pub(crate) fn to_precise(self) -> Precise {
        // High and low parts of one number: the high one alone may pass the largest double.
        Precise { high: self.0.high * Large::UNIT, low: self.0.low * Large::UNIT }
    }

    /// The number divided by a double of at least 1, rounded.
    pub(crate) fn divided(self, by: f64) -> f64 {
        // The mean of doubles is one: only rounding passes the largest.
        (self.0.to_f64() / by * Large::UNIT).clamp(f64::MIN, f64::MAX)
    }

    /// The number in errors, with six digits.
    pub(crate) fn text(self) -> String {
        let (unit, exponent) = Large::DECIMAL_UNIT;
        let rounded = format!("{:.5e}", self.0.to_f64() * (Large::UNIT / unit));
        match rounded.split_once('e').map(|(digits, power)| (digits, power.parse::<i32>())) {
            Some((digits, Ok(power))) => {
                let digits = digits.trim_end_matches('0').trim_end_matches('.');
                format!("{digits}e{}", power + exponent)
            }
            _ => "a number of more than 600 digits".to_string(),
        }
    }
}

/// The sum of two doubles and its rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// The sum of two doubles, the first not smaller in magnitude, and its rounding error.
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> Precise {
        values.iter().fold(Precise::default(), |sum, &value| sum.plus(Precise::from_f64(value)))
    }

    #[test]
    fn small_terms_survive_large_ones() {
        assert_eq!(sum(&[1e20, 1.0, -1e20]).to_f64(), 1.0);
        assert_eq!(sum(&[0.1; 10]).to_f64(), 1.0);
        assert_eq!(sum(&[-0.0]).to_f64().to_bits(), 0);
        assert!(!sum(&[f64::MAX, f64::MAX]).to_f64().is_finite());
    }

    #[test]
    fn large_sums_pass_the_largest_double_and_come_back() {
        let large =
            |values: &[f64]| values.iter().fold(Large::default(), |sum, &v| Large(sum.0.plus(Large::from_f64(v).0)));
        assert!(!sum(&[1e308, 1e308, -1e308]).is_finite());
        assert_eq!(large(&[1e308, 1e308, -1e308]).to_precise().to_f64(), 1e308);
        assert_eq!(large(&[f64::MAX, f64::MAX, 1.0, -f64::MAX, -f64::MAX]).to_precise().to_f64(), 1.0);
        assert_eq!(large(&[f64::MAX, f64::MAX]).divided(2.0), f64::MAX);
        assert_eq!(large(&[1e308, 1e308]).text(), "2e308");
        assert_eq!(large(&[-1.5e308; 7]).text(), "-1.05e309");
    }

    #[test]
    fn whole_numbers_of_64_bits_are_exact() {
        for value in [0, 1, -1, i64::MAX, i64::MIN, i64::MAX - 1, (1 << 53) + 1, -(1 << 53) - 1] {
            assert_eq!(Precise::from_i128(value.into()).to_i64(), Some(value));
        }
        assert_eq!(Precise::from_i128(i128::from(i64::MAX) + 1).to_i64(), None);
        assert_eq!(Precise::from_i128(i128::from(i64::MIN) - 1).to_i64(), None);
    }

    #[test]
    fn halves_round_away_from_zero() {
        let half = |value: i128| Precise::from_i128(value).times(0.5).to_i64();
        for whole in [0_i64, 1, 7, (1 << 52) - 1, 1 << 52, (1 << 53) + 1, (1 << 60) + 1] {
            assert_eq!(half(i128::from(whole) * 2 + 1), Some(whole + 1), "{whole} and a half");
            assert_eq!(half(-i128::from(whole) * 2 - 1), Some(-whole - 1), "-{whole} and a half");
        }
        assert_eq!(sum(&[0.5, -1e-30]).to_i64(), Some(0));
        assert_eq!(sum(&[-0.5, 1e-30]).to_i64(), Some(0));
        assert_eq!(sum(&[2.5, 1e-30]).to_i64(), Some(3));
    }

    #[test]
    fn numbers_move_away_from_zero() {
        // 5 × 0.3 is below a half, as the double 0.3 is below 0.3.
        for (value, units) in [(5, 2), (-5, -2), (0, 0), (6, 2)] {
            let product = Precise::from_i128(value).times(0.3);
            assert_eq!(product.away_from_zero(1e-15).to_i64(), Some(units), "{value}");
        }
        assert_eq!(Precise::from_i128(5).times(0.3).to_i64(), Some(1));
        let large = Precise::from_i128(i64::MAX.into());
        assert_eq!(large.away_from_zero(1e-7).to_i64(), Some(i64::MAX));
    }

    #[test]
    fn products_keep_what_a_double_drops() {
        let third = 1.0 / 3.0;
        let product = Precise::from_i128((1 << 60) + 1).times(third).times(3.0);
        // The double 1/3 is 2⁻⁵⁴/3 below a third: the product misses 2⁶⁰ + 1 by about 2⁶.
        assert_eq!(product.to_i64(), Some((1 << 60) + 1 - 64));
        assert_eq!(sum(&[f64::NAN]).to_i64(), None);
    }
}
