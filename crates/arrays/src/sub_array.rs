//! Sub-arrays: a range of coordinates for each dimension, and the walk of an ordered list of cells through one.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 3.1 (bounds L and H)
//! and 7.2.1.3 (the three measured sub-arrays). A scan of sorted cells skips to the next tuple inside of the bounds
//! where the thesis tests every cell.

use super::{Result, SchemeError, Shape};
use crate::key::{DIMENSIONS_MAX, Tuple};

/// A sub-array: the lowest and the highest coordinate of each dimension, both inside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubArray {
    low: Vec<u32>,
    high: Vec<u32>,
}

/// Place of a cell in relation to a sub-array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The cell lies inside.
    Inside,
    /// The cell lies outside; the next tuple inside was written.
    Skip,
    /// No tuple inside follows the cell.
    Past,
}

impl SubArray {
    /// Sub-array of these bounds, both inclusive, one a dimension. An error names a range that is reversed or outside.
    pub fn new(shape: &Shape, low: impl Into<Vec<u32>>, high: impl Into<Vec<u32>>) -> Result<Self> {
        let (low, high) = (low.into(), high.into());
        for bounds in [&low, &high] {
            let (coordinates, dimensions) = (bounds.len(), shape.dimensions());
            if coordinates != dimensions {
                return Err(SchemeError::Lengths { coordinates, dimensions, values: 1 });
            }
        }
        for (dimension, size) in shape.sizes().iter().copied().enumerate() {
            let (low, high) = (low[dimension], high[dimension]);
            if low > high || high >= size {
                return Err(SchemeError::Bounds { dimension, low, high, size });
            }
        }
        Ok(Self { low, high })
    }

    /// The whole array.
    pub fn whole(shape: &Shape) -> Self {
        let high = shape.sizes().iter().map(|size| size - 1).collect();
        Self { low: vec![0; shape.dimensions()], high }
    }

    /// The sub-array that fixes some dimensions to one coordinate each and leaves the others whole: a slice.
    pub fn slice(shape: &Shape, fixed: &[(usize, u32)]) -> Result<Self> {
        let mut slice = Self::whole(shape);
        for (dimension, coordinate) in fixed.iter().copied() {
            let dimensions = shape.dimensions();
            let size = *shape.sizes().get(dimension).ok_or(SchemeError::NoDimension { dimension, dimensions })?;
            if coordinate >= size {
                return Err(SchemeError::Bounds { dimension, low: coordinate, high: coordinate, size });
            }
            (slice.low[dimension], slice.high[dimension]) = (coordinate, coordinate);
        }
        Ok(slice)
    }

    /// The three sub-arrays of section 7.2.1.3: few rows whole, a part of many rows, and an inner box.
    ///
    /// Upper bounds are inclusive there and cut at the last coordinate here. Of one dimension the first is the whole.
    pub fn measured(shape: &Shape) -> [Self; 3] {
        let last = shape.dimensions() - 1;
        let bound = |dimension: usize, hundredths: u64| {
            let size = u64::from(shape.sizes()[dimension]);
            (size * hundredths / 100).min(size - 1) as u32
        };
        let bounds = |hundredths: &dyn Fn(usize) -> u64| {
            (0..=last).map(|dimension| bound(dimension, hundredths(last - dimension))).collect::<Vec<u32>>()
        };
        // The closures take the thesis's numbers of dimensions, which count from the fastest.
        let rows = bounds(&|thesis| [100, 25, 95][thesis.min(2)]);
        let parts = bounds(&|thesis| [25, 100, 95][thesis.min(2)]);
        let zero = vec![0; last + 1];
        [
            Self { low: zero.clone(), high: rows },
            Self { low: zero, high: parts },
            Self { low: bounds(&|_| 10), high: bounds(&|_| 85) },
        ]
    }

    /// Lowest coordinates, one a dimension.
    pub fn low(&self) -> &[u32] {
        &self.low
    }

    /// Highest coordinates, one a dimension, inclusive.
    pub fn high(&self) -> &[u32] {
        &self.high
    }

    /// An error if the sub-array is not one of `shape`.
    pub(crate) fn check(&self, shape: &Shape) -> Result<()> {
        Self::new(shape, self.low.as_slice(), self.high.as_slice()).map(drop)
    }

    /// The sub-array with its dimensions in reverse order.
    pub(crate) fn reversed(&self) -> Self {
        let reverse = |bounds: &[u32]| bounds.iter().rev().copied().collect();
        Self { low: reverse(&self.low), high: reverse(&self.high) }
    }

    /// The bounds of the dimensions before `split` and of those from there on.
    pub(crate) fn split(&self, split: usize) -> (Self, Self) {
        let part = |range: std::ops::Range<usize>| Self {
            low: self.low[range.clone()].to_vec(),
            high: self.high[range].to_vec(),
        };
        (part(0..split), part(split..self.low.len()))
    }

    /// True if the tuple lies inside.
    pub(crate) fn contains(&self, tuple: &[u32]) -> bool {
        tuple.iter().zip(&self.low).zip(&self.high).all(|((at, low), high)| low <= at && at <= high)
    }

    /// Where `tuple` lies; the first tuple inside that follows it in row-major order is written to `next` if it is
    /// outside.
    #[inline]
    pub(crate) fn step(&self, tuple: &[u32], next: &mut Tuple) -> Step {
        let bounds = self.low.iter().zip(&self.high);
        match tuple.iter().zip(bounds).position(|(at, (low, high))| at < low || at > high) {
            None => Step::Inside,
            Some(dimension) => self.skip(tuple, dimension, next),
        }
    }

    /// Writes the first tuple inside that follows `tuple`, whose first coordinate outside is that of `dimension`.
    fn skip(&self, tuple: &[u32], dimension: usize, next: &mut Tuple) -> Step {
        let mut kept = dimension;
        if tuple[dimension] > self.high[dimension] {
            // An earlier coordinate moves up: the last one that is below its bound.
            match (0..dimension).rev().find(|earlier| tuple[*earlier] < self.high[*earlier]) {
                Some(earlier) => {
                    next[..earlier].copy_from_slice(&tuple[..earlier]);
                    next[earlier] = tuple[earlier] + 1;
                    kept = earlier + 1;
                }
                None => return Step::Past,
            }
        } else {
            next[..dimension].copy_from_slice(&tuple[..dimension]);
        }
        next[kept..tuple.len()].copy_from_slice(&self.low[kept..]);
        Step::Skip
    }

    /// Calls `visit` with each tuple inside, in row-major order.
    pub(crate) fn for_each_tuple(&self, mut visit: impl FnMut(&[u32])) {
        let dimensions = self.low.len();
        let mut tuple = [0; DIMENSIONS_MAX];
        tuple[..dimensions].copy_from_slice(&self.low);
        loop {
            visit(&tuple[..dimensions]);
            let Some(moved) = (0..dimensions).rev().find(|dimension| tuple[*dimension] < self.high[*dimension]) else {
                return;
            };
            tuple[moved] += 1;
            tuple[moved + 1..dimensions].copy_from_slice(&self.low[moved + 1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_measured_sub_arrays() {
        let shape = Shape::new([40, 50, 100]).unwrap();
        let bounds = SubArray::measured(&shape).map(|area| (area.low, area.high));
        assert_eq!(bounds[0], (vec![0, 0, 0], vec![38, 12, 99]));
        assert_eq!(bounds[1], (vec![0, 0, 0], vec![38, 49, 25]));
        assert_eq!(bounds[2], (vec![4, 5, 10], vec![34, 42, 85]));
        for shape in [Shape::new([1]).unwrap(), Shape::new([2, 1]).unwrap(), Shape::new([u32::MAX; 32]).unwrap()] {
            SubArray::measured(&shape).iter().for_each(|area| area.check(&shape).unwrap());
        }
    }

    #[test]
    fn bounds_out_of_place_are_named() {
        let shape = Shape::new([4, 5]).unwrap();
        let reversed = SubArray::new(&shape, [0, 3], [3, 2]).unwrap_err().to_string();
        assert_eq!(reversed, "bounds 3..=2 of dimension 1 do not lie in order within 0..5");
        assert!(SubArray::new(&shape, [0, 0], [4, 4]).is_err() && SubArray::new(&shape, [0], [3, 4]).is_err());
        let missing = SubArray::slice(&shape, &[(2, 0)]).unwrap_err();
        assert_eq!(missing, SchemeError::NoDimension { dimension: 2, dimensions: 2 });
        assert!(SubArray::slice(&shape, &[(1, 5)]).is_err());
        assert_eq!(SubArray::slice(&shape, &[(1, 4)]), SubArray::new(&shape, [0, 4], [3, 4]));
    }

    #[test]
    fn a_step_leads_to_the_next_tuple_inside() {
        let shape = Shape::new([4, 4, 3]).unwrap();
        let area = SubArray::new(&shape, [1, 1, 0], [2, 2, 1]).unwrap();
        let mut inside = Vec::new();
        area.for_each_tuple(|tuple| inside.push(tuple.to_vec()));
        assert_eq!(inside.len(), 8);
        SubArray::whole(&shape).for_each_tuple(|tuple| {
            let mut next = [0; DIMENSIONS_MAX];
            let step = area.step(tuple, &mut next);
            let expected = inside.iter().find(|candidate| candidate.as_slice() >= tuple);
            match step {
                Step::Inside => assert_eq!(expected.map(Vec::as_slice), Some(tuple)),
                Step::Skip => assert_eq!(expected.map(Vec::as_slice), Some(&next[..3]), "{tuple:?}"),
                Step::Past => assert_eq!(expected, None),
            }
        });
    }
}
