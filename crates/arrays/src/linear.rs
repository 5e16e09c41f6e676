//! Linear addresses: the row-major offset of a tuple of neighbouring dimensions.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 2.1.2.

use std::ops::Range;

use super::Shape;

/// Row-major offsets of neighbouring dimensions, at most 2^64 places.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    sizes: Vec<u64>,
    places: u128,
}

impl Linear {
    /// Offsets of these dimensions of a shape; absent above 2^64 places. No dimensions have one place.
    pub(crate) fn new(shape: &Shape, dimensions: Range<usize>) -> Option<Self> {
        let places = shape.product(dimensions.clone()).filter(|places| *places <= 1 << 64)?;
        Some(Self { sizes: shape.sizes()[dimensions].iter().map(|size| u64::from(*size)).collect(), places })
    }

    /// Places addressed.
    pub(crate) fn places(&self) -> u128 {
        self.places
    }

    /// Offset of a tuple.
    #[inline]
    pub(crate) fn encode(&self, tuple: &[u32]) -> u64 {
        // Wrapping never loses a bit: the last offset is below 2^64.
        self.sizes.iter().zip(tuple).fold(0u64, |offset, (size, at)| offset.wrapping_mul(*size) + u64::from(*at))
    }

    /// Writes the tuple of an offset.
    #[inline]
    pub(crate) fn decode(&self, mut offset: u64, tuple: &mut [u32]) {
        for (size, at) in self.sizes.iter().zip(tuple).rev() {
            *at = (offset % size) as u32;
            offset /= size;
        }
    }

    /// Moves a tuple ahead by `places`. Divisions are made only where a coordinate passes its size (section 4.2).
    #[inline]
    pub(crate) fn advance(&self, tuple: &mut [u32], places: u64) {
        let mut carry = places;
        for (size, at) in self.sizes.iter().zip(tuple).rev() {
            let moved = u128::from(*at) + u128::from(carry);
            if moved < u128::from(*size) {
                *at = moved as u32;
                return;
            }
            *at = (moved % u128::from(*size)) as u32;
            carry = (moved / u128::from(*size)) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_the_thesis() {
        // Table 2.3, row-major order.
        let linear = Linear::new(&Shape::new([5, 3, 4]).unwrap(), 0..3).unwrap();
        assert_eq!([[0, 0, 0], [0, 2, 2], [2, 0, 3], [2, 1, 0]].map(|tuple| linear.encode(&tuple)), [0, 10, 27, 28]);
    }

    #[test]
    fn offsets_come_back_and_advance() {
        for sizes in [vec![5, 3, 4], vec![1, 7, 1], vec![u32::MAX, u32::MAX], vec![16; 16]] {
            let linear = Linear::new(&Shape::new(sizes.clone()).unwrap(), 0..sizes.len()).unwrap();
            let last = (linear.places() - 1) as u64;
            for offset in [0, 1, last / 3, last / 2, last - 1, last].into_iter().filter(|offset| *offset <= last) {
                let (mut tuple, mut moved) = (vec![9; sizes.len()], vec![0; sizes.len()]);
                linear.decode(offset, &mut tuple);
                assert_eq!(linear.encode(&tuple), offset);
                linear.advance(&mut moved, offset / 3);
                linear.advance(&mut moved, offset - offset / 3);
                assert_eq!(moved, tuple);
            }
        }
    }

    #[test]
    fn more_than_64_bits_have_no_offset() {
        let shape = Shape::new([16; 17]).unwrap();
        assert!(Linear::new(&shape, 0..17).is_none() && Linear::new(&shape, 1..17).is_some());
        assert_eq!(Linear::new(&shape, 3..3).unwrap().encode(&[]), 0);
    }
}
