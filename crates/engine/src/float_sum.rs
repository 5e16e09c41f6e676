//! Exact sums of doubles: the plain-Rust side of `kernels/fixed.cuh`, and the last step of what that has added up.
//!
//! Every finite double is a multiple of 2⁻¹⁰⁷⁴, so a sum of doubles is an integer of some 2,100 bits. It is kept as
//! limbs of 32 bits in signed 64-bit cells, which take about 2³⁰ additions before carries have to move (a
//! superaccumulator: Kulisch, *Computer Arithmetic and Validity*; Neal, arXiv 1505.05571). Integer additions commute,
//! so that a sum has the same bits whatever the order of its values and however they were divided among sums that were
//! merged.
//!
//! Numerics: the value is the exact sum rounded once, to nearest, ties to even; beyond the largest double it is an
//! infinity. A NaN, or infinities of both signs, make NaN. A sum of zeros, of either sign, and of nothing is +0.0.

/// Bits of a limb.
pub(crate) const LIMB_BITS: usize = 32;
/// Limbs that the sum of two doubles may need: exponents from 2⁻¹⁰⁷⁴ to 2¹⁰²³.
pub(crate) const LIMBS: usize = 66;
/// Limbs kept, one more for the carries of many.
const LIMBS_KEPT: usize = LIMBS + 1;
/// Additions after which carries move: a limb then stays far below 2⁶³.
const ADDITIONS_MAX: u32 = 1 << 30;
/// Bits of a double's mantissa, the leading one included.
const MANTISSA_BITS: usize = 53;

/// An exact sum of doubles.
#[derive(Debug, Clone)]
pub struct FloatSum {
    /// Limb *i* counts in units of 2^(32·i − 1074).
    limbs: Box<[i64; LIMBS_KEPT]>,
    /// Additions since carries were moved.
    additions: u32,
    /// Values that were +∞ or NaN, and those that were −∞ or NaN.
    infinite: [i64; 2],
}

impl Default for FloatSum {
    fn default() -> FloatSum {
        FloatSum { limbs: Box::new([0; LIMBS_KEPT]), additions: 0, infinite: [0; 2] }
    }
}

impl FloatSum {
    /// A sum of nothing.
    pub fn new() -> FloatSum {
        FloatSum::default()
    }

    /// The sum of integers, by that of them.
    pub(crate) fn of_integer(value: i64) -> FloatSum {
        let mut sum = FloatSum::new();
        sum.add((value >> 32) as f64 * (1u64 << 32) as f64);
        sum.add((value & u32::MAX as i64) as f64);
        sum
    }

    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.enter(value, 1);
    }

    /// Takes a value away that was added before.
    pub fn subtract(&mut self, value: f64) {
        self.enter(value, -1);
    }

    fn enter(&mut self, value: f64, times: i64) {
        if !value.is_finite() {
            self.infinite[0] += times * i64::from(value.is_nan() || value > 0.0);
            self.infinite[1] += times * i64::from(value.is_nan() || value < 0.0);
            return;
        }
        let (bits, sign) = (value.to_bits(), if value.is_sign_negative() { -times } else { times });
        let exponent = (bits >> 52 & 0x7ff) as usize;
        let fraction = bits & ((1 << 52) - 1);
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let position = exponent.max(1) - 1;
        let shifted = u128::from(mantissa) << (position % LIMB_BITS);
        let first = position / LIMB_BITS;
        for (part, limb) in self.limbs[first..first + 3].iter_mut().enumerate() {
            *limb += sign * i64::from((shifted >> (part * LIMB_BITS)) as u32);
        }
        self.count_addition();
    }

    /// Adds all that another sum has added.
    pub fn merge(&mut self, other: &FloatSum) {
        let mut other = other.clone();
        other.carry();
        for (limb, more) in self.limbs.iter_mut().zip(other.limbs.iter()) {
            *limb += more;
        }
        self.infinite[0] += other.infinite[0];
        self.infinite[1] += other.infinite[1];
        self.count_addition();
    }

    /// Adds the cells that the device has filled: limbs from limb `first` on, and a word that counts values that were
    /// +∞ or NaN in its lower half and those that were −∞ or NaN in its upper one.
    pub(crate) fn add_cells(&mut self, first: usize, cells: impl Iterator<Item = i64>, infinite: u64) {
        for (limb, cell) in (first..).zip(cells) {
            self.limbs[limb] += cell & 0xffff_ffff;
            self.limbs[limb + 1] += cell >> LIMB_BITS;
        }
        self.infinite[0] += (infinite & 0xffff_ffff) as i64;
        self.infinite[1] += (infinite >> 32) as i64;
        self.count_addition();
    }

    fn count_addition(&mut self) {
        self.additions += 1;
        if self.additions >= ADDITIONS_MAX {
            self.carry();
        }
    }

    /// Moves carries up: all limbs but the last are then below 2³² and not negative.
    fn carry(&mut self) {
        let mut carried = 0;
        for limb in &mut self.limbs[..LIMBS] {
            let whole = *limb + carried;
            (*limb, carried) = (whole & 0xffff_ffff, whole >> LIMB_BITS);
        }
        self.limbs[LIMBS] += carried;
        self.additions = 1;
    }

    /// The sum, rounded once to nearest, ties to even.
    pub fn value(&self) -> f64 {
        match self.infinite {
            [0, 0] => {}
            [_, 0] => return f64::INFINITY,
            [0, _] => return f64::NEG_INFINITY,
            _ => return f64::NAN,
        }
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.limbs[LIMBS] < 0;
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let magnitude = sum.magnitude();
        if negative { -magnitude } else { magnitude }
    }

    /// The value of limbs that were carried and are not negative.
    fn magnitude(&self) -> f64 {
        let Some(last) = self.limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        let limb = |index: usize| self.limbs.get(index).map_or(0, |limb| *limb as u128);
        let window = |at: usize| limb(at) | limb(at + 1) << LIMB_BITS | limb(at + 2) << (2 * LIMB_BITS);
        let bits = last * LIMB_BITS + 64 - self.limbs[last].leading_zeros() as usize;
        // Units of 2⁻¹⁰⁷⁴ below 2⁵³ are the bits of a double: subnormal, or with the smallest exponent.
        let Some(shift) = bits.checked_sub(MANTISSA_BITS) else { return f64::from_bits(window(0) as u64) };
        if shift >= 2046 {
            return f64::INFINITY;
        }
        let mantissa = (window(shift / LIMB_BITS) >> (shift % LIMB_BITS)) as u64;
        let is_up = shift > 0 && {
            let (at, bit) = ((shift - 1) / LIMB_BITS, (shift - 1) % LIMB_BITS);
            let half = self.limbs[at] >> bit & 1 == 1;
            let below = self.limbs[at] & ((1 << bit) - 1) != 0 || self.limbs[..at].iter().any(|limb| *limb != 0);
            half && (below || mantissa & 1 == 1)
        };
        // The leading one counts into the exponent, and so does a carry out of the mantissa, up to infinity.
        f64::from_bits(((shift as u64) << 52) + mantissa + u64::from(is_up))
    }

    /// The sum as bytes, for sums that are put together elsewhere.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut sum = self.clone();
        sum.carry();
        let first = sum.limbs.iter().position(|limb| *limb != 0).unwrap_or(0);
        let end = sum.limbs.iter().rposition(|limb| *limb != 0).map_or(0, |last| last + 1);
        let head = [sum.infinite[0], sum.infinite[1], first as i64];
        head.iter().chain(&sum.limbs[first..end.max(first)]).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The sum that [`FloatSum::to_bytes`] has written; `None` where the bytes are of something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<FloatSum> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
        let [one, other, first, limbs @ ..] = words.as_slice() else { return None };
        let first =
            usize::try_from(*first).ok().filter(|first| rest.is_empty() && first + limbs.len() <= LIMBS_KEPT)?;
        let mut sum = FloatSum { infinite: [*one, *other], additions: 1, ..FloatSum::new() };
        sum.limbs[first..first + limbs.len()].copy_from_slice(limbs);
        Some(sum)
    }

    /// Bytes of memory behind this value.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(self.limbs.as_ref())
    }
}

impl Extend<f64> for FloatSum {
    fn extend<T: IntoIterator<Item = f64>>(&mut self, values: T) {
        values.into_iter().for_each(|value| self.add(value));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = FloatSum::new();
        sum.extend(values.iter().copied());
        sum.value()
    }

    #[test]
    fn what_order_would_lose_is_kept() {
        assert_eq!(sum(&[1e300, 1.0, -1e300]), 1.0);
        assert_eq!(sum(&[1e16, 1.0, -1e16, 1e-300]), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -1e292]), f64::NEG_INFINITY);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[5e-324; 3]), 1.5e-323);
        assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), f64::MIN_POSITIVE.next_down());
        assert_eq!(sum(&[-5e-324, 1.0]), 1.0);
    }

    #[test]
    fn integers_are_rounded_once() {
        let ends = [0, 1, -1, (1 << 53) + 1, -(1 << 53) - 3, i64::MAX, i64::MIN, 0x7fff_ffff_ffff_fdff];
        ends.into_iter().for_each(|value| assert_eq!(FloatSum::of_integer(value).value(), value as f64, "{value}"));
    }

    #[test]
    fn ties_go_to_even() {
        let unit = 2f64.powi(53);
        assert_eq!(sum(&[unit, 1.0]), unit);
        assert_eq!(sum(&[unit, 1.0, 5e-324]), unit + 2.0);
        assert_eq!(sum(&[unit + 2.0, 1.0]), unit + 4.0);
        assert_eq!(sum(&[-unit, -1.0, -5e-324]), -unit - 2.0);
    }

    #[test]
    fn what_is_not_finite_decides() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert!(sum(&[1.0, nan]).is_nan() && sum(&[infinity, -infinity]).is_nan() && sum(&[-infinity, nan]).is_nan());
        assert_eq!(sum(&[infinity, 1.0, infinity, -f64::MAX]), infinity);
        assert_eq!(sum(&[-infinity, 1.0]), -infinity);
        let mut taken = FloatSum::new();
        taken.extend([nan, infinity, 2.0, 3.0]);
        [nan, infinity, 3.0].into_iter().for_each(|value| taken.subtract(value));
        assert_eq!(taken.value(), 2.0);
    }

    #[test]
    fn zeros_make_a_positive_zero() {
        for values in [&[][..], &[-0.0], &[-0.0, -0.0], &[0.0, -0.0], &[-1.5, 1.5]] {
            assert_eq!(sum(values).to_bits(), 0, "{values:?}");
        }
    }

    #[test]
    fn bytes_are_of_a_sum_or_refused() {
        let again = |values: &[f64]| {
            let mut sum = FloatSum::new();
            sum.extend(values.iter().copied());
            FloatSum::from_bytes(&sum.to_bytes()).unwrap().value().to_bits()
        };
        for values in [&[][..], &[-1e300, 5e-324], &[f64::MAX; 9], &[f64::NAN], &[-0.1, 0.3]] {
            assert_eq!(again(values), sum(values).to_bits(), "{values:?}");
        }
        assert!(FloatSum::from_bytes(&[0; 25]).is_none() && FloatSum::from_bytes(&[]).is_none());
        assert!(FloatSum::from_bytes(&[1; 40]).is_none());
    }

    /// Doubles of any bits, and many of a few exponents that cancel.
    fn doubles() -> impl Strategy<Value = Vec<f64>> {
        let near = (-(1i64 << 53)..1 << 53, -20i32..20).prop_map(|(whole, power)| whole as f64 * 2f64.powi(power));
        prop::collection::vec(prop_oneof![any::<f64>(), near], 0..60)
    }

    proptest! {
        #[test]
        fn order_and_division_do_not_matter(values in doubles(), cut in 0usize..60) {
            let whole = sum(&values);
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let (left, right) = values.split_at(cut.min(values.len()));
            let (mut one, mut other) = (FloatSum::new(), FloatSum::new());
            one.extend(left.iter().copied());
            other.extend(right.iter().copied());
            one.merge(&FloatSum::from_bytes(&other.to_bytes()).unwrap());
            for found in [sum(&sorted), one.value()] {
                prop_assert!(found.to_bits() == whole.to_bits() || found.is_nan() && whole.is_nan());
            }
        }

        /// Multiples of 2⁻⁴⁰ below 2⁶⁰ are integers of 100 bits, whose sum is known exactly and rounded by Rust.
        #[test]
        fn sums_are_those_of_integers(values in prop::collection::vec((any::<i64>(), 0u32..40), 0..60)) {
            let double = |(whole, power): &(i64, u32)| (whole >> 11) as f64 * 2f64.powi(*power as i32 - 40);
            let doubles: Vec<f64> = values.iter().map(double).collect();
            let exact: i128 = values.iter().map(|(whole, power)| i128::from(whole >> 11) << power).sum();
            prop_assert_eq!(sum(&doubles), exact as f64 * 2f64.powi(-40));
        }
    }
}
