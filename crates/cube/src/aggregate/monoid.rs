//! What a measure adds up: commutative monoids on which weights act.
//!
//! Every algorithm is written once over [`Monoid`]. Contraction needs a weight to distribute over `join`, which holds
//! for sums, and for extremes, whose only weight is "member".

use crate::facts::{Large, Precise};

/// A commutative monoid on which weights act.
pub(crate) trait Monoid: Copy + Send + Sync + PartialEq + 'static {
    /// A weight.
    type Weight: Copy + Send + Sync + PartialEq;
    /// The neutral element.
    const NEUTRAL: Self;
    /// The weight that changes nothing.
    const UNIT: Self::Weight;

    /// The value of a decimal.
    fn of_decimal(value: i64) -> Self;
    /// The value of a double.
    fn of_double(value: f64) -> Self;
    /// The weight of a map's entry.
    fn weight(weight: f64) -> Self::Weight;
    /// Two values as one.
    fn join(self, other: Self) -> Self;
    /// The value under a weight.
    fn weigh(self, weight: Self::Weight) -> Self;
}

/// Sums of decimals under whole weights whose bound fits 64 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Narrow(pub(crate) i64);

impl Monoid for Narrow {
    type Weight = i64;
    const NEUTRAL: Narrow = Narrow(0);
    const UNIT: i64 = 1;

    fn of_decimal(value: i64) -> Narrow {
        Narrow(value)
    }

    fn of_double(_: f64) -> Narrow {
        unreachable!("doubles add up with twice their precision")
    }

    fn weight(weight: f64) -> i64 {
        weight as i64
    }

    fn join(self, other: Narrow) -> Narrow {
        Narrow(self.0 + other.0)
    }

    fn weigh(self, weight: i64) -> Narrow {
        Narrow(self.0 * weight)
    }
}

/// Sums of decimals under whole weights whose bound fits 128 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wide(pub(crate) i128);

impl Monoid for Wide {
    type Weight = i128;
    const NEUTRAL: Wide = Wide(0);
    const UNIT: i128 = 1;

    fn of_decimal(value: i64) -> Wide {
        Wide(value.into())
    }

    fn of_double(_: f64) -> Wide {
        unreachable!("doubles add up with twice their precision")
    }

    fn weight(weight: f64) -> i128 {
        weight as i128
    }

    fn join(self, other: Wide) -> Wide {
        Wide(self.0 + other.0)
    }

    fn weigh(self, weight: i128) -> Wide {
        Wide(self.0 * weight)
    }
}

impl Monoid for Precise {
    type Weight = f64;
    const NEUTRAL: Precise = Precise::ZERO;
    const UNIT: f64 = 1.0;

    fn of_decimal(value: i64) -> Precise {
        Precise::from_i128(value.into())
    }

    fn of_double(value: f64) -> Precise {
        Precise::from_f64(value)
    }

    fn weight(weight: f64) -> f64 {
        weight
    }

    fn join(self, other: Precise) -> Precise {
        self.plus(other)
    }

    fn weigh(self, weight: f64) -> Precise {
        self.times(weight)
    }
}

impl Monoid for Large {
    type Weight = f64;
    const NEUTRAL: Large = Large(Precise::ZERO);
    const UNIT: f64 = 1.0;

    fn of_decimal(value: i64) -> Large {
        Large::from_f64(value as f64)
    }

    fn of_double(value: f64) -> Large {
        Large::from_f64(value)
    }

    fn weight(weight: f64) -> f64 {
        weight
    }

    fn join(self, other: Large) -> Large {
        Large(self.0.plus(other.0))
    }

    fn weigh(self, weight: f64) -> Large {
        Large(self.0.times(weight))
    }
}

/// Sums of the magnitudes of terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Magnitude(pub(crate) f64);

impl Monoid for Magnitude {
    type Weight = f64;
    const NEUTRAL: Magnitude = Magnitude(0.0);
    const UNIT: f64 = 1.0;

    fn of_decimal(value: i64) -> Magnitude {
        Magnitude(value.unsigned_abs() as f64)
    }

    fn of_double(value: f64) -> Magnitude {
        Magnitude(value.abs())
    }

    fn weight(weight: f64) -> f64 {
        weight.abs()
    }

    fn join(self, other: Magnitude) -> Magnitude {
        Magnitude(self.0 + other.0)
    }

    fn weigh(self, weight: f64) -> Magnitude {
        Magnitude(self.0 * weight)
    }
}

/// The least value, or the greatest: a whole number whose order is that of values, or the reverse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extreme<const GREATEST: bool>(i64);

impl<const GREATEST: bool> Extreme<GREATEST> {
    fn turned(value: i64) -> i64 {
        if GREATEST { !value } else { value }
    }

    /// The value that a device has as an unsigned word, whose greatest is the extreme (see [`Extreme::ORDER`]).
    pub(crate) fn of_word(word: u64) -> Self {
        Extreme((word ^ i64::MAX as u64) as i64)
    }

    /// The bits that differ in a value and in the word of a device, once doubles are in the order of whole numbers.
    pub(crate) const ORDER: u64 = if GREATEST { 1 << 63 } else { i64::MAX as u64 };

    /// The decimal.
    pub(crate) fn decimal(self) -> i64 {
        Self::turned(self.0)
    }

    /// The double.
    pub(crate) fn double(self) -> f64 {
        f64::from_bits(ordered(Self::turned(self.0)) as u64)
    }
}

impl<const GREATEST: bool> Monoid for Extreme<GREATEST> {
    type Weight = ();
    const NEUTRAL: Self = Extreme(i64::MAX);
    const UNIT: () = ();

    fn of_decimal(value: i64) -> Self {
        Extreme(Self::turned(value))
    }

    fn of_double(value: f64) -> Self {
        Extreme(Self::turned(ordered(value.to_bits() as i64)))
    }

    fn weight(_: f64) {}

    fn join(self, other: Self) -> Self {
        Extreme(self.0.min(other.0))
    }

    fn weigh(self, (): ()) -> Self {
        self
    }
}

/// The bits of a double as a whole number of the same order, and back.
fn ordered(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_keep_order_and_bits() {
        let values = [f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-300, 2.0, f64::MAX];
        for (place, &value) in values.iter().enumerate() {
            for &other in &values[place..] {
                let least = Extreme::<false>::of_double(value).join(Extreme::of_double(other));
                let greatest = Extreme::<true>::of_double(value).join(Extreme::of_double(other));
                assert_eq!((least.double(), greatest.double()), (value, other));
            }
        }
        for value in [i64::MIN, -7, 0, 5, i64::MAX] {
            let (least, greatest) = (Extreme::<false>::ORDER, Extreme::<true>::ORDER);
            assert_eq!(Extreme::<false>::of_word(value as u64 ^ least).decimal(), value);
            assert_eq!(Extreme::<true>::of_word(value as u64 ^ greatest).decimal(), value);
        }
        assert_eq!(Extreme::<true>::of_word(0), Extreme::NEUTRAL);
        let greatest = Extreme::<true>::of_decimal(i64::MIN).join(Extreme::of_decimal(-3));
        assert_eq!(greatest.decimal(), -3);
        assert_eq!(Extreme::<false>::of_decimal(i64::MIN).join(Extreme::NEUTRAL).decimal(), i64::MIN);
    }
}
