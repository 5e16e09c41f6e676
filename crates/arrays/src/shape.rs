//! Shape of a sparse array: the size of each dimension, with products checked in 128 bits.
//!
//! Dimension 0 varies slowest. Dimension `j` here is `d_(k-1-j)` of Wang, *Sparse Array Representations and Some
//! Selected Array Operations on GPUs*, Table 2.1; the last dimension is its `d_0`.

use std::ops::Range;

use super::{Result, SchemeError};
use crate::key::{DIMENSIONS_MAX, coordinate_bits};

/// Sizes of 1 to 32 dimensions, each at least 1. Dimension 0 varies slowest in row-major order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    sizes: Vec<u32>,
}

impl Shape {
    /// Shape of these sizes, slowest dimension first. An error names a wrong number of dimensions or an empty one.
    pub fn new(sizes: impl Into<Vec<u32>>) -> Result<Self> {
        let sizes = sizes.into();
        if sizes.is_empty() || sizes.len() > DIMENSIONS_MAX {
            return Err(SchemeError::Dimensions { found: sizes.len() });
        }
        match sizes.iter().position(|size| *size == 0) {
            Some(dimension) => Err(SchemeError::EmptyDimension { dimension }),
            None => Ok(Self { sizes }),
        }
    }

    /// Number of dimensions, `k`.
    pub fn dimensions(&self) -> usize {
        self.sizes.len()
    }

    /// Sizes, slowest dimension first: `D_(k-1) … D_0` of the thesis.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Places of the array, filled or not: `N_k` of the thesis. An error if they exceed 128 bits.
    pub fn places(&self) -> Result<u128> {
        self.product(0..self.dimensions()).ok_or(SchemeError::TooManyPlaces { dimensions: self.dimensions() })
    }

    /// Product of the sizes of some neighbouring dimensions; 1 for none, absent above 128 bits.
    pub fn product(&self, dimensions: Range<usize>) -> Option<u128> {
        self.sizes[dimensions].iter().try_fold(1u128, |product, size| product.checked_mul(u128::from(*size)))
    }

    /// Sum of the bits of neighbouring dimensions, `⌈log2 D⌉` each (section 2.1.3).
    pub fn bits(&self, dimensions: Range<usize>) -> u32 {
        self.sizes[dimensions].iter().map(|size| coordinate_bits(*size as usize)).sum()
    }

    /// The shape with its dimensions in reverse order.
    pub fn reversed(&self) -> Self {
        Self { sizes: self.sizes.iter().rev().copied().collect() }
    }

    /// Tuples in a flat list of coordinates. An error if the last tuple is cut short.
    pub(crate) fn tuples(&self, coordinates: &[u32]) -> Result<usize> {
        let (length, dimensions) = (coordinates.len(), self.dimensions());
        let tuples = length / dimensions;
        match length % dimensions {
            0 => Ok(tuples),
            _ => Err(SchemeError::Lengths { coordinates: length, dimensions, values: tuples + 1 }),
        }
    }

    /// Checks the tuple of cell number `cell` against the sizes.
    #[inline]
    pub(crate) fn check(&self, cell: usize, tuple: &[u32]) -> Result<()> {
        if tuple.iter().zip(&self.sizes).all(|(coordinate, size)| coordinate < size) {
            return Ok(());
        }
        Err(self.outside(cell, tuple))
    }

    #[cold]
    fn outside(&self, cell: usize, tuple: &[u32]) -> SchemeError {
        let dimension = tuple.iter().zip(&self.sizes).position(|(coordinate, size)| coordinate >= size).unwrap_or(0);
        let (coordinate, size) = (tuple[dimension], self.sizes[dimension]);
        SchemeError::Outside { cell, dimension, coordinate, size }
    }

    /// Checks a single tuple, its length included.
    pub(crate) fn check_one(&self, tuple: &[u32]) -> Result<()> {
        let dimensions = self.dimensions();
        if tuple.len() != dimensions {
            return Err(SchemeError::Lengths { coordinates: tuple.len(), dimensions, values: 1 });
        }
        self.check(0, tuple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_hold_nothing_are_refused() {
        assert_eq!(Shape::new([]), Err(SchemeError::Dimensions { found: 0 }));
        assert_eq!(Shape::new([2; 33]), Err(SchemeError::Dimensions { found: 33 }));
        assert_eq!(Shape::new([3, 0, 2]), Err(SchemeError::EmptyDimension { dimension: 1 }));
    }

    #[test]
    fn products_are_checked_in_128_bits() {
        assert_eq!(Shape::new([5, 3, 4]).unwrap().places(), Ok(60));
        assert_eq!(Shape::new([u32::MAX; 4]).unwrap().places(), Ok(u128::from(u32::MAX).pow(4)));
        let wide = Shape::new([16; 32]).unwrap();
        assert_eq!((wide.places(), wide.bits(0..32)), (Err(SchemeError::TooManyPlaces { dimensions: 32 }), 128));
        assert_eq!(wide.product(16..32), Some(1 << 64));
        assert_eq!(wide.product(4..4), Some(1));
    }
}
