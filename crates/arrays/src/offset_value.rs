//! The offset-value scheme: row-major offsets of the cells, partitioned where an offset would overflow 64 bits.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 2.1.2. The trailing
//! dimensions whose sizes multiply to at most 2^64 make up one partition; the leading ones number the partitions. An
//! array of at most 2^64 places has one partition.

use std::ops::Range;
use std::slice::ChunksExact;

use super::linear::Linear;
use super::sorted::{Sorted, SortedIndex, gallop};
use super::{ArrayData, Cells, NamedArray, Result, Scheme, SchemeError, Storage, Value, lockstep};

/// Offsets of the cells by partition.
#[derive(Debug)]
struct Offsets {
    /// Dimensions that number the partitions.
    split: usize,
    leading: Linear,
    trailing: Linear,
    /// Size of the last dimension.
    row: u64,
    /// Numbers of the partitions with a cell, ascending.
    partitions: Vec<u64>,
    /// Position of the first cell of each partition, and the number of cells.
    starts: Vec<u64>,
    offsets: Vec<u64>,
}

impl Offsets {
    fn new<V: Value>(cells: &Cells<V>) -> Result<Self> {
        let shape = cells.shape();
        let dimensions = shape.dimensions();
        let trailing = (0..dimensions).find_map(|split| Some((split, Linear::new(shape, split..dimensions)?)));
        let leading = trailing.as_ref().and_then(|(split, _)| Linear::new(shape, 0..*split));
        let scheme = Scheme::OffsetValue;
        let (Some((split, trailing)), Some(leading)) = (trailing, leading) else {
            return Err(SchemeError::OffsetWidth { scheme });
        };
        let row = u64::from(shape.sizes()[dimensions - 1]);
        let (mut partitions, mut starts) = (Vec::new(), Vec::new());
        let mut offsets = Vec::with_capacity(cells.len());
        for tuple in cells.tuples() {
            let partition = leading.encode(&tuple[..split]);
            if partitions.last() != Some(&partition) {
                partitions.push(partition);
                starts.push(offsets.len() as u64);
            }
            offsets.push(trailing.encode(&tuple[split..]));
        }
        starts.push(offsets.len() as u64);
        Ok(Self { split, leading, trailing, row, partitions, starts, offsets })
    }

    /// Number among the filled partitions of the one with these coordinates, or of the next one.
    #[inline]
    fn partition(&self, tuple: &[u32]) -> (usize, bool) {
        let number = self.leading.encode(&tuple[..self.split]);
        let index = self.partitions.partition_point(|partition| *partition < number);
        (index, self.partitions.get(index) == Some(&number))
    }

    fn cells_of(&self, partition: usize) -> Range<usize> {
        self.starts[partition] as usize..self.starts[partition + 1] as usize
    }

    /// Number among the filled partitions of the one that holds a cell.
    #[inline]
    fn partition_of(&self, position: usize) -> usize {
        match self.partitions.len() {
            1 => 0,
            _ => self.starts.partition_point(|start| *start <= position as u64) - 1,
        }
    }
}

impl SortedIndex for Offsets {
    fn find(&self, tuple: &[u32]) -> Option<usize> {
        let (partition, filled) = self.partition(tuple);
        if !filled {
            return None;
        }
        let cells = self.cells_of(partition);
        let offset = self.trailing.encode(&tuple[self.split..]);
        self.offsets[cells.clone()].binary_search(&offset).ok().map(|position| cells.start + position)
    }

    fn find_all(&self, tuples: ChunksExact<'_, u32>, found: impl FnMut(Option<usize>)) {
        let locate = |tuple: &[u32]| {
            let offset = self.trailing.encode(&tuple[self.split..]);
            match self.partition(tuple) {
                (partition, true) => (self.cells_of(partition), offset),
                (_, false) => (0..0, offset),
            }
        };
        lockstep::find_all(&self.offsets, tuples, locate, found);
    }

    fn lower_bound(&self, tuple: &[u32], from: usize) -> usize {
        let (partition, filled) = self.partition(tuple);
        if !filled {
            return from.max(self.starts[partition] as usize);
        }
        let cells = self.cells_of(partition);
        let offset = self.trailing.encode(&tuple[self.split..]);
        let start = from.max(cells.start);
        gallop(start..cells.end.max(start), |position| self.offsets[position] < offset)
    }

    fn decode(&self, position: usize, tuple: &mut [u32]) {
        self.trailing.decode(self.offsets[position], &mut tuple[self.split..]);
        if self.split > 0 {
            self.leading.decode(self.partitions[self.partition_of(position)], &mut tuple[..self.split]);
        }
    }

    fn opens_group(&self, position: usize) -> bool {
        let partition_opens = || self.starts[self.partition_of(position)] as usize == position;
        self.offsets[position] / self.row != self.offsets[position - 1] / self.row
            || self.split > 0 && partition_opens()
    }

    fn bytes(&self) -> u64 {
        let directory = size_of_val(self.partitions.as_slice()) + size_of_val(self.starts.as_slice());
        let directory = if self.split > 0 { directory } else { 0 };
        (directory + size_of_val(self.offsets.as_slice())) as u64
    }

    fn arrays<V>(&self) -> Vec<NamedArray<'_, V>> {
        let mut arrays = vec![NamedArray { name: "offset", data: ArrayData::Words64(&self.offsets) }];
        if self.split > 0 {
            arrays.push(NamedArray { name: "partition", data: ArrayData::Words64(&self.partitions) });
            arrays.push(NamedArray { name: "pptr", data: ArrayData::Words64(&self.starts) });
        }
        arrays
    }
}

/// Builds the offset-value scheme. An error if even partitions do not make offsets fit.
pub(crate) fn build<V: Value>(cells: &Cells<V>) -> Result<Box<dyn Storage<V>>> {
    Ok(Box::new(Sorted::new(Scheme::OffsetValue, cells, Offsets::new(cells)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn offsets_of_the_thesis_have_one_partition() {
        let shape = Shape::new([5, 3, 4]).unwrap();
        let cells = Cells::new(shape, vec![0, 0, 0, 0, 2, 2, 2, 0, 3], vec![205i64, 170, 149]).unwrap();
        let offsets = Offsets::new(&cells).unwrap();
        assert_eq!((offsets.split, &offsets.offsets, offsets.bytes()), (0, &vec![0, 10, 27], 24));
    }

    #[test]
    fn partitions_begin_above_64_bits() {
        let tuples = [[0, 0, 0, 1], [0, 1, 0, 0], [7, 0, 0, 0], [7, 0, 0, 9]].concat();
        let shape = Shape::new([10, 10, u32::MAX, u32::MAX]).unwrap();
        let offsets = Offsets::new(&Cells::new(shape, tuples, vec![1i64, 2, 3, 4]).unwrap()).unwrap();
        assert_eq!((offsets.split, offsets.partitions), (2, vec![0, 1, 70]));
        assert_eq!((offsets.starts, offsets.offsets), (vec![0, 1, 2, 4], vec![1, 0, 0, 9]));
        let wide = Cells::<i64>::empty(Shape::new([u32::MAX; 5]).unwrap());
        assert!(matches!(Offsets::new(&wide), Err(SchemeError::OffsetWidth { .. })));
        let even = Cells::<i64>::empty(Shape::new([16; 32]).unwrap());
        assert_eq!(Offsets::new(&even).unwrap().split, 16);
    }
}
