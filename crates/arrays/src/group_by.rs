//! The k - 1 aggregations in one scan of sorted cells.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, chapter 4. The group-bys are
//! the prefixes of the dimensions, of lengths 1 to k - 1. Cells are added to the finest group alone; a group that ends
//! is added to the group of the next shorter prefix (the top-down approach of section 4.1).
//!
//! Every scheme of one order of dimensions adds in the same order, so that sums of doubles agree to the bit.

use super::{Result, SchemeError, Shape, Value};
use crate::key::{DIMENSIONS_MAX, Tuple};

/// Sums of one group-by, groups in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupBy<V> {
    dimensions: Vec<usize>,
    coordinates: Vec<u32>,
    sums: Vec<V>,
}

impl<V: Value> GroupBy<V> {
    /// Groups of these dimensions, in ascending order.
    pub(crate) fn new(dimensions: Vec<usize>, coordinates: Vec<u32>, sums: Vec<V>) -> Self {
        Self { dimensions, coordinates, sums }
    }

    /// Dimensions of the group-by, in the order of its coordinates.
    pub fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    /// Number of groups with a filled cell.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// True if there is no group.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Coordinates of all groups as one flat list of `len() * dimensions().len()`.
    pub fn coordinates(&self) -> &[u32] {
        &self.coordinates
    }

    /// Sums of all groups.
    pub fn sums(&self) -> &[V] {
        &self.sums
    }

    /// The group-by with dimension numbers of the shape whose dimensions this one has in reverse order.
    pub(crate) fn reversed(mut self, shape: &Shape) -> Self {
        self.dimensions.iter_mut().for_each(|dimension| *dimension = shape.dimensions() - 1 - *dimension);
        self
    }

    /// Groups in order: coordinates and sum.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u32], V)> {
        self.coordinates.chunks_exact(self.dimensions.len()).zip(self.sums.iter().copied())
    }
}

/// Running sums of the k - 1 group-bys of a scan.
pub(crate) struct PrefixSums<V: Value> {
    /// Coordinates of the open group of the finest group-by.
    open: Tuple,
    /// Sum of the open group of each group-by; the prefix of length n at n - 1.
    running: Vec<V::Sum>,
    finished: Vec<GroupBy<V>>,
    any: bool,
    overflow: Option<SchemeError>,
}

impl<V: Value> PrefixSums<V> {
    /// Sums over an array whose dimensions are scanned in this order, slowest first.
    pub(crate) fn new(order: &[usize]) -> Self {
        let lengths = 1..order.len();
        let group_by =
            |length: usize| GroupBy { dimensions: order[..length].to_vec(), coordinates: Vec::new(), sums: Vec::new() };
        let finished: Vec<_> = lengths.map(group_by).collect();
        let running = vec![V::Sum::default(); finished.len()];
        Self { open: [0; DIMENSIONS_MAX], running, finished, any: false, overflow: None }
    }

    /// Opens the finest group of these coordinates, k - 1 of them, and finishes the groups that end with it.
    pub(crate) fn enter(&mut self, group: &[u32]) {
        if self.any {
            match (0..group.len()).find(|dimension| group[*dimension] != self.open[*dimension]) {
                Some(changed) => self.finish_above(changed),
                None => return,
            }
        }
        self.any = true;
        self.open[..group.len()].copy_from_slice(group);
    }

    /// Adds a cell of the open group.
    #[inline]
    pub(crate) fn add(&mut self, value: V) {
        if let Some(finest) = self.running.last_mut() {
            *finest += value.widen();
        }
    }

    /// Finishes the groups of prefixes longer than `changed`.
    fn finish_above(&mut self, changed: usize) {
        for level in (changed..self.running.len()).rev() {
            let sum = std::mem::take(&mut self.running[level]);
            if level > 0 {
                self.running[level - 1] += sum;
            }
            let group = &self.open[..=level];
            let finished = &mut self.finished[level];
            finished.coordinates.extend_from_slice(group);
            finished.sums.push(V::narrow(sum).unwrap_or_default());
            if V::narrow(sum).is_none() && self.overflow.is_none() {
                let dimensions = finished.dimensions.clone();
                self.overflow = Some(SchemeError::SumOverflow { dimensions, group: group.to_vec() });
            }
        }
    }

    /// The group-bys, shortest prefix first. An error names the first group whose sum overflows.
    pub(crate) fn finish(mut self) -> Result<Vec<GroupBy<V>>> {
        if self.any {
            self.finish_above(0);
        }
        self.overflow.map_or(Ok(self.finished), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums<V: Value>(cells: &[([u32; 3], V)]) -> Result<Vec<GroupBy<V>>> {
        let mut sums = PrefixSums::new(&[0, 1, 2]);
        for (tuple, value) in cells {
            sums.enter(&tuple[..2]);
            sums.add(*value);
        }
        sums.finish()
    }

    #[test]
    fn groups_of_both_prefixes() {
        let found =
            sums(&[([0, 0, 0], 5i64), ([0, 0, 2], 6), ([0, 1, 0], -6), ([2, 0, 0], 1), ([2, 0, 1], -1)]).unwrap();
        let groups = |group_by: &GroupBy<i64>| (group_by.coordinates.clone(), group_by.sums.clone());
        assert_eq!(groups(&found[0]), (vec![0, 2], vec![5, 0]));
        assert_eq!(groups(&found[1]), (vec![0, 0, 0, 1, 2, 0], vec![11, -6, 0]));
        assert_eq!(found[1].dimensions(), &[0, 1]);
    }

    #[test]
    fn an_overflowing_group_is_named_and_one_that_comes_back_is_not() {
        let found = sums(&[([0, 0, 0], i64::MAX), ([0, 0, 1], 1), ([0, 0, 2], -1)]).unwrap();
        assert_eq!(found[0].sums(), &[i64::MAX]);
        let error = sums(&[([1, 4, 0], i64::MAX), ([1, 4, 1], 1)]).unwrap_err();
        assert_eq!(error.to_string(), "the sum of group [1, 4] of dimensions [0, 1] exceeds 64 bits");
    }

    #[test]
    fn nothing_has_no_groups() {
        assert!(sums::<f64>(&[]).unwrap().iter().all(GroupBy::is_empty));
        assert_eq!(PrefixSums::<i64>::new(&[0]).finish(), Ok(Vec::new()));
    }
}
