//! The thesis's synthetic arrays: uniformly spread cells of a given number, dimensionality and sparsity.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 6.2 and algorithm 11.
//! Cells follow each other by random steps through the row-major order. The algorithm draws steps `rand() % q` for the
//! mean distance q of two cells, which repeats cells (step 0) and fills half of the array. Steps here are drawn from
//! `1..=2q - 1`: their mean is q and no cell repeats. Steps that pass the end of the array are drawn again, smaller.

use super::{Cells, Result, SchemeError, Shape, Value};
use crate::key::DIMENSIONS_MAX;
use crate::random::Random;

/// Dimensionalities of the thesis's data sets.
pub const DIMENSIONS: [usize; 4] = [2, 3, 4, 8];
/// Cells of the thesis's data sets.
pub const CELLS: [usize; 5] = [2_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000];
/// Sparsities of the thesis's data sets.
pub const SPARSITIES: [f64; 4] = [0.90, 0.95, 0.99, 0.999];
/// The array to be generated. Equal specifications give equal arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Specification {
    shape: Shape,
    cells: usize,
    seed: u64,
}

impl Specification {
    /// An array of `cells` filled cells in `dimensions` dimensions, of which the share `sparsity` is empty.
    ///
    /// The thesis prints the sizes of one case alone (table 6.1). Here all dimensions but the last have
    /// ⌊N^(1 / (k + 1))⌋ elements for N = cells / (1 - sparsity), and the last has what is left.
    pub fn new(dimensions: usize, cells: usize, sparsity: f64, seed: u64) -> Result<Self> {
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(SchemeError::Dimensions { found: dimensions });
        }
        let places = (cells as f64 / (1.0 - sparsity)).round();
        if cells == 0 || !(0.0..1.0).contains(&sparsity) || places > 2f64.powi(62) {
            return Err(SchemeError::Specification { cells, sparsity: sparsity.to_string() });
        }
        let size = places.powf(1.0 / (dimensions + 1) as f64).floor().max(1.0);
        let rows = size.powi(dimensions as i32 - 1);
        let last = (places / rows).ceil();
        if last > f64::from(u32::MAX) {
            return Err(SchemeError::Specification { cells, sparsity: sparsity.to_string() });
        }
        let mut sizes = vec![size as u32; dimensions - 1];
        sizes.push(last as u32);
        Self::of_shape(Shape::new(sizes)?, cells, seed)
    }

    /// An array of a given shape. An error if the cells do not fit it.
    pub fn of_shape(shape: Shape, cells: usize, seed: u64) -> Result<Self> {
        let places = shape.places()?;
        match (1..=places.min(1 << 63)).contains(&(cells as u128)) {
            true => Ok(Self { shape, cells, seed }),
            false => Err(SchemeError::Crowded { cells, places }),
        }
    }

    /// The specification with another seed: the thesis's data set B beside A, cells to look up.
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..self.clone() }
    }

    /// Shape of the array.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of filled cells.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Coordinates of the cells, one flat list of `cells() * k`, in row-major order and unique.
    pub fn coordinates(&self) -> Result<Vec<u32>> {
        let steps = self.steps(&mut Random::new(self.seed))?;
        let sizes = self.shape.sizes();
        let mut tuple = vec![0u32; sizes.len()];
        let mut coordinates = Vec::with_capacity(self.cells * sizes.len());
        for step in steps {
            // Algorithm 11: the step is added to the last coordinate and carried.
            let mut carry = step;
            for (at, size) in tuple.iter_mut().zip(sizes).rev() {
                let moved = u128::from(*at) + carry;
                *at = (moved % u128::from(*size)) as u32;
                carry = moved / u128::from(*size);
            }
            coordinates.extend_from_slice(&tuple);
        }
        Ok(coordinates)
    }

    /// The distance of the first cell from the first place, and of each further cell from the one in front.
    fn steps(&self, random: &mut Random) -> Result<Vec<u128>> {
        let places = self.shape.places()?;
        let mean = (places / self.cells as u128).min(1 << 62) as u64;
        let draw = |random: &mut Random| 1 + random.below(2 * mean - 1);
        let mut steps: Vec<u64> = (0..self.cells).map(|_| draw(random)).collect();
        let mut sum: u128 = steps.iter().map(|step| u128::from(*step)).sum();
        while sum > places {
            let step = &mut steps[random.below(self.cells as u64) as usize];
            let again = draw(random).min(*step);
            sum -= u128::from(*step - again);
            *step = again;
        }
        Ok((0..).zip(steps).map(|(index, step): (usize, _)| u128::from(step) - u128::from(index == 0)).collect())
    }

    /// The array with doubles in 1.0..100.0, as the thesis draws them.
    pub fn doubles(&self) -> Result<Cells<f64>> {
        self.filled(|random| 1.0 + 99.0 * (random.next() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// The array with decimals of scale 2 in 1.00..=100.00, as integers.
    pub fn hundredths(&self) -> Result<Cells<i64>> {
        self.filled(|random| 100 + random.below(9901) as i64)
    }

    fn filled<V: Value>(&self, draw: impl Fn(&mut Random) -> V) -> Result<Cells<V>> {
        // A random stream of its own, so that coordinates depend on the seed alone and not on values.
        let mut random = Random::new(!self.seed);
        let values = (0..self.cells).map(|_| draw(&mut random)).collect();
        Cells::new(self.shape.clone(), self.coordinates()?, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_array_is_filled_from_end_to_end() {
        for seed in 0..20 {
            let specification = Specification::new(3, 10_000, 0.95, seed).unwrap();
            let cells = specification.doubles().unwrap();
            assert_eq!(cells.len(), 10_000);
            let places = cells.shape().places().unwrap();
            assert!((200_000..205_000).contains(&places), "{places}");
            // Each quarter of the slowest dimension's neighbours holds about its share.
            let size = cells.shape().sizes()[0];
            let lower = cells.tuples().filter(|tuple| tuple[0] < size / 2).count();
            let share = f64::from(size / 2) / f64::from(size) * 10_000.0;
            assert!((lower as f64 - share).abs() < 300.0, "{lower} of {share}");
            assert!(cells.values().iter().all(|value| (1.0..100.0).contains(value)));
        }
    }

    #[test]
    fn full_and_single_arrays() {
        let shape = Shape::new([3, 4]).unwrap();
        let full = Specification::of_shape(shape.clone(), 12, 1).unwrap().hundredths().unwrap();
        assert_eq!((full.tuple(0), full.tuple(11), full.len()), (&[0, 0][..], &[2, 3][..], 12));
        assert!(full.values().iter().all(|value| (100..=10_000).contains(value)));
        let single = Specification::of_shape(shape.clone(), 1, 1).unwrap().hundredths().unwrap();
        assert_eq!(single.len(), 1);
        let error = Specification::of_shape(shape, 13, 1).unwrap_err();
        assert_eq!(error.to_string(), "13 cells do not fit an array of 12 places");
    }

    #[test]
    fn seeds_decide_all() {
        let specification = Specification::new(4, 1000, 0.99, 7).unwrap();
        assert_eq!(specification.doubles(), specification.doubles());
        assert_eq!(specification.doubles().unwrap().coordinates(), specification.coordinates().unwrap());
        let other = specification.with_seed(8);
        assert_eq!(other.shape(), specification.shape());
        assert_ne!(other.coordinates(), specification.coordinates());
    }

    #[test]
    fn the_sparsities_of_the_thesis_are_met() {
        for dimensions in DIMENSIONS {
            for sparsity in SPARSITIES {
                let specification = Specification::new(dimensions, CELLS[0], sparsity, 1).unwrap();
                let found = 1.0 - CELLS[0] as f64 / specification.shape().places().unwrap() as f64;
                assert!((found - sparsity).abs() < 0.002, "{dimensions} dimensions: {found} for {sparsity}");
            }
        }
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for (dimensions, cells, sparsity) in [(0, 1, 0.5), (33, 1, 0.5), (2, 0, 0.5), (2, 5, 1.0), (2, 5, -0.1)] {
            assert!(Specification::new(dimensions, cells, sparsity, 0).is_err(), "{dimensions} {cells} {sparsity}");
        }
        assert!(Specification::new(2, 5, f64::NAN, 0).is_err() && Specification::new(1, 5_000_000, 0.999, 0).is_err());
    }
}
