//! The coordinate scheme (index-value pairs): one array of coordinates a dimension, cells in row-major order.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 2.1.1. Any shape fits;
//! a lookup is a binary search that compares tuples.

use std::cmp::Ordering;

use super::sorted::{Sorted, SortedIndex, gallop};
use super::{ArrayData, Cells, NamedArray, Scheme, Storage, Value};
use crate::key::DIMENSIONS_MAX;

/// Names of the arrays, one a dimension, slowest first.
const NAMES: [&str; DIMENSIONS_MAX] = [
    "ind1", "ind2", "ind3", "ind4", "ind5", "ind6", "ind7", "ind8", "ind9", "ind10", "ind11", "ind12", "ind13",
    "ind14", "ind15", "ind16", "ind17", "ind18", "ind19", "ind20", "ind21", "ind22", "ind23", "ind24", "ind25",
    "ind26", "ind27", "ind28", "ind29", "ind30", "ind31", "ind32",
];

/// Coordinates of the cells, one array a dimension.
#[derive(Debug)]
struct Coordinates {
    columns: Vec<Vec<u32>>,
    cells: usize,
}

impl Coordinates {
    #[inline]
    fn compare(&self, position: usize, tuple: &[u32]) -> Ordering {
        for (column, at) in self.columns.iter().zip(tuple) {
            match column[position].cmp(at) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        Ordering::Equal
    }
}

impl SortedIndex for Coordinates {
    fn find(&self, tuple: &[u32]) -> Option<usize> {
        let (mut low, mut high) = (0, self.cells);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare(middle, tuple) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn lower_bound(&self, tuple: &[u32], from: usize) -> usize {
        gallop(from..self.cells, |position| self.compare(position, tuple).is_lt())
    }

    fn decode(&self, position: usize, tuple: &mut [u32]) {
        tuple.iter_mut().zip(&self.columns).for_each(|(at, column)| *at = column[position]);
    }

    fn opens_group(&self, position: usize) -> bool {
        let leading = &self.columns[..self.columns.len() - 1];
        leading.iter().any(|column| column[position] != column[position - 1])
    }

    fn bytes(&self) -> u64 {
        (self.columns.len() * self.cells * size_of::<u32>()) as u64
    }

    fn arrays<V>(&self) -> Vec<NamedArray<'_, V>> {
        let array = |(name, column)| NamedArray { name, data: ArrayData::Words32(column) };
        NAMES.into_iter().zip(self.columns.iter().map(Vec::as_slice)).map(array).collect()
    }
}

/// Builds the coordinate scheme.
pub(crate) fn build<V: Value>(cells: &Cells<V>) -> Box<dyn Storage<V>> {
    let column = |dimension: usize| cells.tuples().map(|tuple| tuple[dimension]).collect();
    let columns = (0..cells.shape().dimensions()).map(column).collect();
    Box::new(Sorted::new(Scheme::Coordinate, cells, Coordinates { columns, cells: cells.len() }))
}
