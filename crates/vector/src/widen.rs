//! Offsets to integers.

use crate::ROWS;
use crate::dispatch::dispatch;

dispatch! {
    /// Adds a reference to offsets, modulo 2⁶⁴.
    pub fn widen(reference: i64, offsets: &[u32; ROWS], integers: &mut [i64; ROWS]) {
        for (integer, offset) in integers.iter_mut().zip(offsets) {
            *integer = reference.wrapping_add(i64::from(*offset));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wrap() {
        let mut integers = [0; ROWS];
        widen(i64::MAX, &std::array::from_fn(|at| at as u32), &mut integers);
        assert_eq!((integers[0], integers[1], integers[1023]), (i64::MAX, i64::MIN, i64::MIN + 1022));
    }
}
