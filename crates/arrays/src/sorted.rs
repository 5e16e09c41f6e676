//! Schemes that keep one sorted index entry a cell: coordinate, offset-value and BESS.
//!
//! Lookups and sub-arrays are binary searches, lookups by key many at a time; a sub-array gallops from each run of
//! cells inside to the next. Iteration and aggregation are one scan.

use std::fmt::Debug;
use std::ops::Range;
use std::slice::ChunksExact;

use super::sub_array::Step;
use super::{
    ArrayData, Cells, GroupBy, NamedArray, PrefixSums, Result, Scheme, Shape, Sizes, Storage, SubArray, Value,
};
use crate::key::{DIMENSIONS_MAX, Tuple};

/// The index of a sorted scheme: one entry a cell, in row-major order.
pub(crate) trait SortedIndex: Debug + Send + Sync {
    /// Position of the cell with these coordinates.
    fn find(&self, tuple: &[u32]) -> Option<usize>;

    /// Calls `found` with the position of each cell of a list of tuples, in the list's order.
    fn find_all(&self, tuples: ChunksExact<'_, u32>, found: impl FnMut(Option<usize>)) {
        tuples.map(|tuple| self.find(tuple)).for_each(found);
    }

    /// First position at or after `from` whose cell is not before these coordinates. The search gallops.
    fn lower_bound(&self, tuple: &[u32], from: usize) -> usize;

    /// Writes the coordinates of a cell.
    fn decode(&self, position: usize, tuple: &mut [u32]);

    /// True if the cell differs from the one in front of it in more than the last dimension.
    fn opens_group(&self, position: usize) -> bool;

    /// Bytes of the index.
    fn bytes(&self) -> u64;

    /// Arrays of the index.
    fn arrays<V>(&self) -> Vec<NamedArray<'_, V>>;
}

/// A sorted index with the values of its cells.
#[derive(Debug)]
pub(crate) struct Sorted<V, I> {
    scheme: Scheme,
    shape: Shape,
    index: I,
    values: Vec<V>,
}

impl<V: Value, I: SortedIndex> Sorted<V, I> {
    /// The index of `cells` with their values.
    pub(crate) fn new(scheme: Scheme, cells: &Cells<V>, index: I) -> Self {
        Self { scheme, shape: cells.shape().clone(), index, values: cells.values().to_vec() }
    }
}

impl<V: Value, I: SortedIndex> Storage<V> for Sorted<V, I> {
    fn scheme(&self) -> Scheme {
        self.scheme
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn get(&self, coordinates: &[u32]) -> Result<Vec<Option<V>>> {
        let mut found = Vec::with_capacity(self.shape.tuples(coordinates)?);
        let tuples = coordinates.chunks_exact(self.shape.dimensions());
        tuples.clone().enumerate().try_for_each(|(cell, tuple)| self.shape.check(cell, tuple))?;
        self.index.find_all(tuples, |position| found.push(position.map(|position| self.values[position])));
        Ok(found)
    }

    fn sub_array(&self, area: &SubArray) -> Result<Cells<V>> {
        area.check(&self.shape)?;
        let mut inside = Cells::empty(self.shape.clone());
        let (mut tuple, mut next): (Tuple, Tuple) = ([0; DIMENSIONS_MAX], [0; DIMENSIONS_MAX]);
        let tuple = &mut tuple[..self.shape.dimensions()];
        let mut position = self.index.lower_bound(area.low(), 0);
        while position < self.values.len() {
            self.index.decode(position, tuple);
            match area.step(tuple, &mut next) {
                Step::Inside => {
                    inside.push(tuple, self.values[position]);
                    position += 1;
                }
                Step::Skip => position = self.index.lower_bound(&next[..tuple.len()], position + 1),
                Step::Past => break,
            }
        }
        Ok(inside)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u32], V)) {
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let tuple = &mut tuple[..self.shape.dimensions()];
        for (position, value) in self.values.iter().enumerate() {
            self.index.decode(position, tuple);
            visit(tuple, *value);
        }
    }

    fn prefix_sums(&self) -> Result<Vec<GroupBy<V>>> {
        let dimensions = self.shape.dimensions();
        let order: Vec<usize> = (0..dimensions).collect();
        let mut sums = PrefixSums::new(&order);
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        for (position, value) in self.values.iter().enumerate() {
            if position == 0 || self.index.opens_group(position) {
                self.index.decode(position, &mut tuple[..dimensions]);
                sums.enter(&tuple[..dimensions - 1]);
            }
            sums.add(*value);
        }
        sums.finish()
    }

    fn sizes(&self) -> Sizes {
        Sizes { index_bytes: self.index.bytes(), value_bytes: size_of_val(self.values.as_slice()) as u64 }
    }

    fn arrays(&self) -> Vec<NamedArray<'_, V>> {
        let mut arrays = self.index.arrays();
        arrays.push(NamedArray { name: "val", data: ArrayData::Values(&self.values) });
        arrays
    }

    fn replace(&mut self, tuple: &[u32], value: V) -> Result<Option<V>> {
        self.shape.check_one(tuple)?;
        let position = self.index.find(tuple);
        Ok(position.map(|position| std::mem::replace(&mut self.values[position], value)))
    }
}

/// First position of `within` for which `before` is false, found in steps that double from the start of the range.
///
/// `before` is true for a leading part of the range and false for the rest.
#[inline]
pub(crate) fn gallop(within: Range<usize>, mut before: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut step) = (within.start, 1);
    let mut high = within.end;
    while low < within.end {
        let probe = low.saturating_add(step - 1).min(within.end - 1);
        if !before(probe) {
            high = probe;
            break;
        }
        low = probe + 1;
        step *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_equals_a_linear_search() {
        for length in 0..40 {
            for start in 0..=length {
                for boundary in start..=length {
                    assert_eq!(gallop(start..length, |position| position < boundary), boundary);
                }
            }
        }
    }
}
