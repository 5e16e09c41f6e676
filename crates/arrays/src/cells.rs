//! Filled cells of an array in index-value form: what schemes are built from and what sub-arrays are returned as.
//!
//! Invariants: coordinates lie within the shape; cells ascend in row-major order (dimension 0 slowest) and are unique.

use std::cmp::Ordering;

use super::{Result, SchemeError, Shape, Value};

/// Filled cells of a shape, in row-major order and unique.
///
/// Coordinates are one flat list of `len() * k` numbers, tuple after tuple; values are a list of `len()`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells<V> {
    shape: Shape,
    coordinates: Vec<u32>,
    values: Vec<V>,
}

impl<V: Value> Cells<V> {
    /// Cells that are in order. An error names the first cell outside of the shape, out of order or given twice.
    pub fn new(shape: Shape, coordinates: Vec<u32>, values: Vec<V>) -> Result<Self> {
        let cells = Self::checked(shape, coordinates, values)?;
        let dimensions = cells.shape.dimensions();
        let following = cells.coordinates.chunks_exact(dimensions).skip(1);
        for (index, (before, tuple)) in cells.coordinates.chunks_exact(dimensions).zip(following).enumerate() {
            match before.cmp(tuple) {
                Ordering::Less => {}
                Ordering::Equal => return Err(SchemeError::Duplicate { coordinates: tuple.to_vec() }),
                Ordering::Greater => {
                    return Err(SchemeError::Unsorted { cell: index + 1, coordinates: tuple.to_vec() });
                }
            }
        }
        Ok(cells)
    }

    /// Cells in any order. An error names a cell outside of the shape or given twice.
    pub fn from_unsorted(shape: Shape, coordinates: Vec<u32>, values: Vec<V>) -> Result<Self> {
        let cells = Self::checked(shape, coordinates, values)?;
        let sorted = cells.sorted();
        for index in 1..sorted.len() {
            if sorted.tuple(index - 1) == sorted.tuple(index) {
                return Err(SchemeError::Duplicate { coordinates: sorted.tuple(index).to_vec() });
            }
        }
        Ok(sorted)
    }

    fn checked(shape: Shape, coordinates: Vec<u32>, values: Vec<V>) -> Result<Self> {
        let dimensions = shape.dimensions();
        if coordinates.len() != values.len() * dimensions {
            return Err(SchemeError::Lengths { coordinates: coordinates.len(), dimensions, values: values.len() });
        }
        for (index, tuple) in coordinates.chunks_exact(dimensions).enumerate() {
            shape.check(index, tuple)?;
        }
        Ok(Self { shape, coordinates, values })
    }

    /// No cells.
    pub fn empty(shape: Shape) -> Self {
        Self { shape, coordinates: Vec::new(), values: Vec::new() }
    }

    /// No cells yet, with room for `cells`.
    pub(crate) fn with_capacity(shape: Shape, cells: usize) -> Self {
        let coordinates = Vec::with_capacity(cells * shape.dimensions());
        Self { shape, coordinates, values: Vec::with_capacity(cells) }
    }

    /// Adds a cell; the caller keeps the order, or calls [`Cells::sorted`] at the end.
    #[inline]
    pub(crate) fn push(&mut self, tuple: &[u32], value: V) {
        self.coordinates.extend_from_slice(tuple);
        self.values.push(value);
    }

    /// The cells in row-major order. Places that fit 128 bits are compared as one number, others tuple by tuple.
    pub(crate) fn sorted(self) -> Self {
        let order = match self.shape.places() {
            Ok(_) => self.order_by_offset(),
            Err(_) => self.order_by_tuple(),
        };
        let mut sorted = Self::with_capacity(self.shape.clone(), self.len());
        order.into_iter().for_each(|index| sorted.push(self.tuple(index), self.values[index]));
        sorted
    }

    fn order_by_offset(&self) -> Vec<usize> {
        let offset = |tuple: &[u32]| {
            let digits = tuple.iter().zip(self.shape.sizes());
            digits.fold(0u128, |offset, (coordinate, size)| offset * u128::from(*size) + u128::from(*coordinate))
        };
        let mut keyed: Vec<(u128, usize)> = self.tuples().map(offset).zip(0..).collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, index)| index).collect()
    }

    fn order_by_tuple(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by(|left, right| self.tuple(*left).cmp(self.tuple(*right)));
        order
    }

    /// The cells of the shape with its dimensions in reverse order, sorted there.
    pub(crate) fn reversed(&self) -> Self {
        let dimensions = self.shape.dimensions();
        let mut coordinates = self.coordinates.clone();
        coordinates.chunks_exact_mut(dimensions).for_each(<[u32]>::reverse);
        Self { shape: self.shape.reversed(), coordinates, values: self.values.clone() }.sorted()
    }

    /// Shape of the array.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of filled cells, `N_nz`.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if no cell is filled.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Coordinates of cell number `index`, one a dimension.
    #[inline]
    pub fn tuple(&self, index: usize) -> &[u32] {
        let dimensions = self.shape.dimensions();
        &self.coordinates[index * dimensions..(index + 1) * dimensions]
    }

    /// Coordinates of all cells, in order.
    pub fn tuples(&self) -> std::slice::ChunksExact<'_, u32> {
        self.coordinates.chunks_exact(self.shape.dimensions())
    }

    /// Coordinates of all cells as one flat list of `len() * k`.
    pub fn coordinates(&self) -> &[u32] {
        &self.coordinates
    }

    /// Values of all cells, in order.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Cells in order: coordinates and value.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u32], V)> {
        self.tuples().zip(self.values.iter().copied())
    }

    /// The same cells with other values; `change` is called in order.
    pub fn map<W: Value>(&self, change: impl FnMut(V) -> W) -> Cells<W> {
        let values = self.values.iter().copied().map(change).collect();
        Cells { shape: self.shape.clone(), coordinates: self.coordinates.clone(), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape::new([2, 3]).unwrap()
    }

    #[test]
    fn cells_out_of_place_are_named() {
        let new =
            |coordinates: &[u32]| Cells::new(shape(), coordinates.to_vec(), vec![7i64; 2]).unwrap_err().to_string();
        assert_eq!(new(&[0, 1, 0]), "3 coordinates of 2 dimensions do not belong to 2 cells");
        assert_eq!(new(&[0, 1, 0, 3]), "cell 1: coordinate 3 of dimension 1 is outside 0..3");
        assert_eq!(new(&[0, 1, 0, 1]), "cell [0, 1] is given twice: fold its values first");
        let unsorted = "cell 1 [0, 2] sorts before the cell in front of it: sort the cells, first dimension first";
        assert_eq!(new(&[1, 0, 0, 2]), unsorted);
    }

    #[test]
    fn cells_of_any_order_are_sorted() {
        let cells = Cells::from_unsorted(shape(), vec![1, 0, 0, 2, 0, 1], vec![3i64, 2, 1]).unwrap();
        assert_eq!((cells.coordinates(), cells.values()), (&[0, 1, 0, 2, 1, 0][..], &[1, 2, 3][..]));
        let twice = Cells::from_unsorted(shape(), vec![1, 0, 0, 2, 1, 0], vec![3i64, 2, 1]);
        assert_eq!(twice, Err(SchemeError::Duplicate { coordinates: vec![1, 0] }));
    }

    #[test]
    fn shapes_beyond_128_bits_are_sorted_by_tuple() {
        let wide = Shape::new([u32::MAX; 5]).unwrap();
        let cells = Cells::from_unsorted(wide, vec![9, 0, 0, 0, 1, 9, 0, 0, 0, 0], vec![1i64, 0]).unwrap();
        assert_eq!(cells.values(), &[0, 1]);
    }

    #[test]
    fn reversed_cells_are_sorted_by_their_last_dimension() {
        let cells = Cells::new(shape(), vec![0, 2, 1, 0, 1, 1], vec![1i64, 2, 3]).unwrap();
        let reversed = cells.reversed();
        assert_eq!((reversed.coordinates(), reversed.values()), (&[0, 1, 1, 1, 2, 0][..], &[2, 3, 1][..]));
        assert_eq!(reversed.reversed(), cells);
    }
}
