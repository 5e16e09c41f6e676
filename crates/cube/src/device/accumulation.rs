//! The values that the pass over facts adds up, and the monoid by which classes become targets: chosen for each
//! component. `kernels/scan_sums.cuh`, `kernels/limbs.cuh` and `kernels/monoids.cuh` are the device's side of this
//! file.
//!
//! Decimals under whole weights add up in 64 bits if bounds prove that they hold, else in 128. Under other weights the
//! pass is the same, and products are pairs of doubles. Doubles are whole numbers to the pass, in units of a power of
//! two that the greatest and the least magnitude of a measure tell: their sums are exact and have no order. Least and
//! greatest values are the greatest of unsigned words.

use super::error::DeviceError;
use crate::facts::{Facts, Large};

/// Whole numbers below this, 2^53, are doubles.
const DOUBLES_EXACT: f64 = 9_007_199_254_740_992.0;
/// Bits of sums of 128 bits, without sign: one is spare.
const WIDE_BITS: u32 = 126;
/// Limbs of doubles, 32 bits each: three hold all bits of doubles whose magnitudes are up to 2^43 apart, five hold
/// those that count of doubles up to 2^120 apart.
const DOUBLE_LIMBS: std::ops::RangeInclusive<u32> = 3..=5;
/// Bits of the least double that a unit leaves: an error of half a unit is below 2^-41, or 5·10^-13, of it.
const LEAST_BITS: i32 = 40;
/// Exponents of doubles whose sums have normal doubles as units.
const EXPONENT_MIN: i32 = -800;

/// The summand of a fact: the values of `WC_VALUES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FactValues {
    /// Whole numbers.
    Whole = 0,
    /// 1 a fact.
    Ones = 1,
    /// Doubles, as whole numbers of several limbs.
    Doubles = 2,
    /// Words whose greatest is kept.
    Order = 3,
}

/// The elements that weights multiply: the values of `WC_MONOID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum DeviceMonoid {
    /// Sums of 64 bits under whole weights.
    Narrow,
    /// Sums of 128 bits under whole weights.
    Wide,
    /// Pairs of doubles under any weights.
    Precise,
    /// The greatest word of members.
    Greatest,
}

/// How a component adds up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Accumulation {
    pub(super) values: FactValues,
    /// Words of 64 bits of a sum of the pass.
    pub(super) limbs: u32,
    pub(super) monoid: DeviceMonoid,
    /// Column of the facts with values and validity.
    pub(super) column: usize,
    /// Parameters of the pass, as words.
    pub(super) parameters: Vec<u64>,
    /// The unit of a sum of limbs, where pairs of doubles follow.
    pub(super) unit: f64,
}

impl DeviceMonoid {
    /// The name in kernel text.
    pub(super) fn text(self) -> &'static str {
        match self {
            DeviceMonoid::Narrow => "CubeNarrow",
            DeviceMonoid::Wide => "CubeWide",
            DeviceMonoid::Precise => "CubePrecise",
            DeviceMonoid::Greatest => "CubeGreatest",
        }
    }

    /// Words of 64 bits of a sum.
    pub(super) fn words(self) -> u64 {
        match self {
            DeviceMonoid::Narrow | DeviceMonoid::Greatest => 1,
            DeviceMonoid::Wide | DeviceMonoid::Precise => 2,
        }
    }
}

impl Accumulation {
    /// Whole numbers of a column.
    pub(super) fn whole(column: usize, limbs: u32, monoid: DeviceMonoid) -> Accumulation {
        Accumulation { values: FactValues::Whole, limbs, monoid, column, parameters: Vec::new(), unit: 1.0 }
    }

    /// 1 for each fact that has a value in a column.
    pub(super) fn ones(column: usize) -> Accumulation {
        Accumulation { values: FactValues::Ones, ..Accumulation::whole(column, 1, DeviceMonoid::Narrow) }
    }

    /// Values whose greatest words are those of `order`, doubles in the order of whole numbers.
    pub(super) fn order(column: usize, is_double: bool, order: u64) -> Accumulation {
        let turned = if is_double { i64::MAX as u64 } else { 0 };
        let greatest = Accumulation::whole(column, 1, DeviceMonoid::Greatest);
        Accumulation { values: FactValues::Order, parameters: vec![turned, order], ..greatest }
    }

    /// The doubles of a measure.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for magnitudes so far apart that the least would lose more than half of the 10^-12
    /// that doubles promise.
    pub(super) fn doubles(facts: &Facts, measure: usize) -> Result<Accumulation, DeviceError> {
        let (least, most) = facts.double_range(measure);
        let exponent = if most == 0.0 { 0 } else { exponent(most) + 1 };
        // Magnitudes are below 2^(32 * limbs) units.
        let unit = |limbs: u32| exponent - 32 * limbs as i32;
        let holds = |limbs: &u32| most == 0.0 || least >= power_of_two(unit(*limbs) + LEAST_BITS);
        let Some(limbs) = DOUBLE_LIMBS.filter(|_| exponent >= EXPONENT_MIN).find(holds) else {
            let name = &facts.measures()[measure].name;
            let reason = format!("measure {name} has doubles from {least:e} to {most:e}, whose sums would lose digits");
            return Err(DeviceError::Unsupported { reason });
        };
        let (scale, unit) = (power_of_two(-unit(limbs)), power_of_two(unit(limbs)));
        let sums = Accumulation::whole(measure, limbs, DeviceMonoid::Precise);
        Ok(Accumulation { values: FactValues::Doubles, parameters: vec![scale.to_bits()], unit, ..sums })
    }

    /// Gives pairs of doubles room beyond the largest double: they become numbers of [`Large`].
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] where small sums would lose digits.
    pub(super) fn enlarge(&mut self) -> Result<(), DeviceError> {
        let exponent = exponent(self.unit) - Large::EXPONENT;
        if exponent < EXPONENT_MIN {
            let reason = "sums of products with weights pass the largest double".to_string();
            return Err(DeviceError::Unsupported { reason });
        }
        self.unit = power_of_two(exponent);
        Ok(())
    }

    /// True if limbs become sums of two words before they are multiplied.
    pub(super) fn has_pairs(&self) -> bool {
        self.monoid.words() == 2
    }
}

/// The bound of sums of so many values up to `most`; `magnitudes` has the greatest weight of each dimension.
pub(super) fn bound(most: u128, values: usize, magnitudes: impl Iterator<Item = u64>) -> u128 {
    // A fact has one weight a dimension: no sum passes the sum of magnitudes times the largest weights.
    let all = most.saturating_mul(values as u128);
    magnitudes.fold(all, |bound, magnitude| bound.saturating_mul(magnitude.into()))
}

/// The greatest magnitude of a measure's decimals, at least 1, so that products of weights hold, too.
pub(super) fn most(facts: &Facts, measure: usize) -> u128 {
    // The magnitude is rounded to a double: the next one is not below it.
    let most = facts.magnitude(measure);
    let most = if most < DOUBLES_EXACT { most.max(1.0) } else { most.next_up() };
    most as u128
}

/// True if sums of this bound hold in 64 bits.
pub(super) fn is_narrow(bound: u128) -> bool {
    bound <= i64::MAX as u128
}

/// True if sums of this bound hold in 128 bits.
pub(super) fn is_wide(bound: u128) -> bool {
    bound < 1 << WIDE_BITS
}

/// The exponent of the power of two that is not above a positive normal double; below -1022 for others.
fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52) as i32 - 1023
}

/// A power of two as a normal double.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_have_their_exponents() {
        for power in [-900, -1, 0, 1, 52, 1023] {
            assert_eq!(power_of_two(power), 2.0_f64.powi(power));
            assert_eq!(exponent(power_of_two(power)), power);
            assert_eq!(exponent(power_of_two(power).next_up()), power);
        }
        assert_eq!((exponent(3.0), exponent(0.7), exponent(f64::MAX)), (1, -1, 1023));
    }
}
