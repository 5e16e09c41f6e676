//! Doubles as whole numbers, for the algorithms that add up words of 64 bits.
//!
//! The doubles of a measure are multiples of a power of two, the unit. A double is cut into limbs: 32 bits of its
//! magnitude in units each, under its sign. Each limb is a column of whole numbers (`source.rs`) that an algorithm
//! adds up as it adds up decimals; the host makes doubles of the sums of limbs.
//!
//! Sums are exact. They are also those of the CPU, which adds pairs of doubles: with at most [`SUM_BITS_MAX`] bits for
//! the sum of all magnitudes no addition of pairs rounds, and both round once at the end (`facts/precise.rs`).

use super::error::DeviceError;
use crate::facts::{FactColumn, Facts, Values};

/// Bits of a limb.
pub(super) const LIMB_BITS: u32 = 32;
/// Bits of sums that pairs of doubles add without rounding: low parts keep three bits of room.
const SUM_BITS_MAX: i32 = 100;

/// The doubles of a measure in limbs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DoubleLimbs {
    /// The exponent of the unit.
    unit: i32,
    /// Limbs of the greatest magnitude; at least 1.
    pub(super) count: usize,
    /// The sum of all magnitudes, rounded.
    magnitude: f64,
}

impl DoubleLimbs {
    /// The limbs of a measure whose doubles are added up; nothing where its greatest magnitude has too many bits.
    pub(super) fn of(facts: &Facts, measure: usize) -> Option<DoubleLimbs> {
        let columns = facts.segments().iter().map(|segment| match &segment.columns()[measure] {
            column @ FactColumn { values: Values::Doubles(values), .. } => Some((column, values)),
            _ => None,
        });
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let filled = columns.into_iter().flat_map(|(column, values)| {
            (0..values.len()).filter(move |cell| column.is_filled(*cell)).map(move |cell| values[cell])
        });
        let (mut unit, mut top, mut magnitude) = (i32::MAX, i32::MIN, 0.0);
        for value in filled.filter(|value| *value != 0.0) {
            let (mantissa, exponent) = parts(value);
            unit = unit.min(exponent + mantissa.trailing_zeros() as i32);
            top = top.max(exponent + (u64::BITS - mantissa.leading_zeros()) as i32);
            magnitude += value.abs();
        }
        if unit == i32::MAX {
            return Some(DoubleLimbs { unit: 0, count: 1, magnitude });
        }
        let count = (top - unit).unsigned_abs().div_ceil(LIMB_BITS) as usize;
        (top - unit <= SUM_BITS_MAX).then_some(DoubleLimbs { unit, count, magnitude })
    }

    /// A limb of a double.
    pub(super) fn limb(&self, value: f64, limb: usize) -> i64 {
        let (mantissa, exponent) = parts(value);
        let magnitude = match mantissa {
            0 => 0,
            _ if exponent >= self.unit => u128::from(mantissa) << (exponent - self.unit),
            _ => u128::from(mantissa) >> (self.unit - exponent),
        };
        let limb = (magnitude >> (LIMB_BITS as usize * limb)) as u32;
        if value < 0.0 { -i64::from(limb) } else { limb.into() }
    }

    /// Refuses weights under which a sum may have too many bits.
    pub(super) fn check(&self, weights: f64) -> Result<(), DeviceError> {
        let most = self.magnitude * weights.max(1.0);
        let bits = most.log2().ceil() as i32 + 1 - self.unit;
        if most == 0.0 || (bits <= SUM_BITS_MAX && most < f64::MAX) {
            return Ok(());
        }
        let reason = format!("sums of doubles may have {bits} bits, of which the CPU keeps {SUM_BITS_MAX}");
        Err(DeviceError::Unsupported { reason })
    }

    /// The double next to the sum of limbs' sums.
    pub(super) fn sum(&self, limbs: impl DoubleEndedIterator<Item = i64>) -> f64 {
        // Sums of limbs overlap, and the whole has fewer than 128 bits.
        let sum = limbs.rev().fold(0_i128, |sum, limb| (sum << LIMB_BITS).wrapping_add(limb.into()));
        let half = 2.0_f64.powi(self.unit / 2);
        sum as f64 * half * 2.0_f64.powi(self.unit - self.unit / 2)
    }
}

/// A finite double's magnitude as a whole number and the exponent of its unit.
fn parts(value: f64) -> (u64, i32) {
    let exponent = (value.to_bits() >> 52 & 0x7ff) as i32;
    let fraction = value.to_bits() & ((1 << 52) - 1);
    (if exponent > 0 { fraction | 1 << 52 } else { fraction }, exponent.max(1) - 1075)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_are_the_double() {
        for (values, count) in [
            (&[0.1, -12_345.67, 0.0, 1e9][..], 3),
            (&[3.0, -7.0], 1),
            (&[f64::from_bits(1), -f64::MIN_POSITIVE], 2),
            (&[f64::MAX, -2.0_f64.powi(960)], 2),
        ] {
            let unit = values.iter().filter(|value| **value != 0.0).map(|value| {
                let (mantissa, exponent) = parts(*value);
                exponent + mantissa.trailing_zeros() as i32
            });
            let limbs = DoubleLimbs { unit: unit.min().unwrap(), count, magnitude: 0.0 };
            for value in values {
                assert_eq!(limbs.sum((0..count).map(|limb| limbs.limb(*value, limb))), *value, "{value:e}");
            }
        }
    }
}
