//! Pointer arrays of blocked schemes: where the cells of a block begin and end.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 3.2.1 (rptr), 3.3.2
//! (rptr_c, compwrd) and 3.4.1 (bptr). The thesis marks an empty block by -1 and looks ahead for the end of a filled
//! one; here an empty block begins where the next one does, so that two neighbouring entries bound each block.

use std::fmt::Debug;
use std::ops::Range;

use super::ranked_bitmap::RankedBitmap;
use super::{ArrayData, NamedArray};

/// Pointers from blocks to positions of cells.
pub(crate) trait Pointers: Debug + Send + Sync + Sized {
    /// Bytes of the arrays that grow with the number of blocks; absent above 128 bits.
    fn bytes_of(blocks: u128) -> Option<u128>;

    /// Pointers of `blocks` blocks over cells whose blocks are `of_cells`, ascending.
    fn new(blocks: u64, of_cells: impl ExactSizeIterator<Item = u64> + Clone) -> Self;

    /// Positions of the cells of a block.
    fn range(&self, block: u64) -> Range<usize>;

    /// Calls `visit` with every filled block among `blocks` and the positions of its cells, ascending.
    fn filled(&self, blocks: Range<u64>, visit: impl FnMut(u64, Range<usize>));

    /// Bytes of all arrays.
    fn bytes(&self) -> u64;

    /// The arrays; `name` is that of the pointers.
    fn arrays<V>(&self, name: &'static str) -> Vec<NamedArray<'_, V>>;
}

/// A pointer for every block, and one for the end: blocks + 1 entries.
#[derive(Debug)]
pub(crate) struct Dense {
    starts: Vec<u64>,
}

impl Pointers for Dense {
    fn bytes_of(blocks: u128) -> Option<u128> {
        blocks.checked_add(1)?.checked_mul(size_of::<u64>() as u128)
    }

    fn new(blocks: u64, of_cells: impl ExactSizeIterator<Item = u64> + Clone) -> Self {
        let mut starts = Vec::with_capacity(blocks as usize + 1);
        let cells = of_cells.len() as u64;
        for (position, block) in (0..).zip(of_cells) {
            if starts.len() as u64 <= block {
                starts.resize(block as usize + 1, position);
            }
        }
        starts.resize(blocks as usize + 1, cells);
        Self { starts }
    }

    #[inline]
    fn range(&self, block: u64) -> Range<usize> {
        self.starts[block as usize] as usize..self.starts[block as usize + 1] as usize
    }

    #[inline]
    fn filled(&self, blocks: Range<u64>, mut visit: impl FnMut(u64, Range<usize>)) {
        let starts = &self.starts[blocks.start as usize..=blocks.end as usize];
        // A run of empty blocks is one comparison.
        if starts.first() == starts.last() {
            return;
        }
        for (block, bounds) in blocks.zip(starts.windows(2)) {
            if bounds[0] < bounds[1] {
                visit(block, bounds[0] as usize..bounds[1] as usize);
            }
        }
    }

    fn bytes(&self) -> u64 {
        size_of_val(self.starts.as_slice()) as u64
    }

    fn arrays<V>(&self, name: &'static str) -> Vec<NamedArray<'_, V>> {
        vec![NamedArray { name, data: ArrayData::Words64(&self.starts) }]
    }
}

/// A pointer for every filled block, found by its rank in a bitmap, and one for the end.
#[derive(Debug)]
pub(crate) struct Ranked {
    bitmap: RankedBitmap,
    starts: Vec<u64>,
}

impl Pointers for Ranked {
    fn bytes_of(blocks: u128) -> Option<u128> {
        RankedBitmap::words_of(blocks).checked_mul((size_of::<u32>() + size_of::<u64>()) as u128)
    }

    fn new(blocks: u64, of_cells: impl ExactSizeIterator<Item = u64> + Clone) -> Self {
        let cells = of_cells.len() as u64;
        let (mut starts, mut last) = (Vec::new(), None);
        for (position, block) in (0..).zip(of_cells.clone()) {
            if last != Some(block) {
                starts.push(position);
                last = Some(block);
            }
        }
        starts.push(cells);
        starts.shrink_to_fit();
        Self { bitmap: RankedBitmap::new(blocks, of_cells), starts }
    }

    #[inline]
    fn range(&self, block: u64) -> Range<usize> {
        match self.bitmap.rank(block) {
            (rank, true) => self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize,
            (_, false) => 0..0,
        }
    }

    #[inline]
    fn filled(&self, blocks: Range<u64>, mut visit: impl FnMut(u64, Range<usize>)) {
        self.bitmap.ones(blocks, |block, rank| {
            visit(block, self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize);
        });
    }

    fn bytes(&self) -> u64 {
        let bitmap = size_of_val(self.bitmap.words()) + size_of_val(self.bitmap.counts());
        (bitmap + size_of_val(self.starts.as_slice())) as u64
    }

    fn arrays<V>(&self, name: &'static str) -> Vec<NamedArray<'_, V>> {
        vec![
            NamedArray { name, data: ArrayData::Words64(&self.starts) },
            NamedArray { name: "compwrd", data: ArrayData::Words32(self.bitmap.words()) },
            NamedArray { name: "count1", data: ArrayData::Words64(self.bitmap.counts()) },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of the 13 cells of the thesis's example, of which 8 of 15 rows are filled.
    const ROWS: [u64; 13] = [0, 0, 2, 2, 6, 7, 7, 8, 8, 12, 12, 13, 14];

    fn check<P: Pointers>(pointers: &P) {
        assert_eq!([0, 1, 2, 5, 6, 8, 11, 14].map(|row| pointers.range(row).len()), [2, 0, 2, 0, 1, 2, 0, 1]);
        assert_eq!((pointers.range(7), pointers.range(14)), (5..7, 12..13));
        let mut filled = Vec::new();
        pointers.filled(1..13, |row, cells| filled.push((row, cells)));
        assert_eq!(filled, [(2, 2..4), (6, 4..5), (7, 5..7), (8, 7..9), (12, 9..11)]);
        pointers.filled(3..6, |row, _| panic!("row {row} is empty"));
        pointers.filled(15..15, |row, _| panic!("row {row} does not exist"));
    }

    #[test]
    fn both_kinds_bound_the_same_cells() {
        check(&Dense::new(15, ROWS.into_iter()));
        check(&Ranked::new(15, ROWS.into_iter()));
    }

    #[test]
    fn bytes_are_those_foretold() {
        let (dense, ranked) = (Dense::new(15, ROWS.into_iter()), Ranked::new(15, ROWS.into_iter()));
        assert_eq!(Some(u128::from(dense.bytes())), Dense::bytes_of(15));
        assert_eq!(Some(u128::from(ranked.bytes()) - 9 * 8), Ranked::bytes_of(15));
        assert_eq!((Dense::bytes_of(u128::MAX), Dense::bytes_of(u128::MAX / 8)), (None, None));
    }
}
