//! Blocked schemes: leading dimensions by pointer, trailing dimensions by key. xCRS, BxCRS and hybrid.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 3.2 to 3.4, 4.2, 4.3 and appendix A.1. A block is
//! one tuple of the leading dimensions; its cells are the keys between two pointers, ascending. xCRS is the case of
//! one trailing dimension, whose key is the coordinate itself.
//!
//! A sub-array asks for its blocks in runs that neighbour in the last leading dimension, and searches the first cell
//! inside of each block where the thesis tests every cell of a row.

use std::ops::Range;

use super::linear::Linear;
use super::pointers::Pointers;
use super::sorted::gallop;
use super::sub_array::Step;
use super::{
    ArrayData, Cells, GroupBy, Limits, NamedArray, PrefixSums, Result, Scheme, SchemeError, Shape, Sizes, Storage,
    StoredKey, SubArray, Value, lockstep,
};
use crate::key::{DIMENSIONS_MAX, KeyLayout, Tuple};

/// Scheme and names of arrays of a blocked array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) scheme: Scheme,
    /// Name of the array of keys.
    pub(crate) keys: &'static str,
    /// Name of the array of pointers.
    pub(crate) pointers: &'static str,
}

/// An array in a blocked scheme. `split` dimensions lead.
#[derive(Debug)]
pub(crate) struct Blocked<V, K, P> {
    names: Names,
    shape: Shape,
    split: usize,
    leading: Linear,
    layout: KeyLayout,
    pointers: P,
    keys: Vec<K>,
    values: Vec<V>,
}

impl<V: Value, K: StoredKey, P: Pointers> Blocked<V, K, P> {
    /// The scheme over `cells` with `split` leading dimensions. An error gives the bytes of pointers above the limit.
    pub(crate) fn new(names: Names, cells: &Cells<V>, split: usize, limits: &Limits) -> Result<Self> {
        let shape = cells.shape().clone();
        let blocks = shape.product(0..split);
        let sized = blocks.and_then(|blocks| Some((blocks, P::bytes_of(blocks)?)));
        let (blocks, bytes) = sized.ok_or(SchemeError::PointersOverflow { scheme: names.scheme })?;
        limits.check(names.scheme, blocks, bytes)?;
        let leading = Linear::new(&shape, 0..split).ok_or(SchemeError::OffsetWidth { scheme: names.scheme })?;
        let layout = KeyLayout::of_part(&shape.sizes()[split..]);
        let pointers = P::new(blocks as u64, cells.tuples().map(|tuple| leading.encode(&tuple[..split])));
        let keys = cells.tuples().map(|tuple| layout.pack(&tuple[split..])).collect();
        Ok(Self { names, split, leading, layout, pointers, keys, values: cells.values().to_vec(), shape })
    }

    /// Positions of the cells of the tuple's block, and the tuple's key within it.
    #[inline]
    fn locate(&self, tuple: &[u32]) -> (Range<usize>, K) {
        let range = self.pointers.range(self.leading.encode(&tuple[..self.split]));
        (range, self.layout.pack(&tuple[self.split..]))
    }

    fn find(&self, tuple: &[u32]) -> Option<usize> {
        let (range, key) = self.locate(tuple);
        self.keys[range.clone()].binary_search(&key).ok().map(|position| range.start + position)
    }

    /// Calls `visit` with each filled block, its tuple in front of `tuple`, and the positions of its cells.
    fn for_each_block(&self, mut visit: impl FnMut(&mut [u32], Range<usize>)) {
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let mut reached = 0;
        self.pointers.filled(0..self.leading.places() as u64, |block, cells| {
            self.leading.advance(&mut tuple[..self.split], block - reached);
            reached = block;
            visit(&mut tuple[..self.shape.dimensions()], cells);
        });
    }

    /// Adds the cells of one block that lie inside `trailing`; the block's tuple stands in front of `tuple`.
    fn push_inside(&self, cells: Range<usize>, trailing: &SubArray, tuple: &mut [u32], inside: &mut Cells<V>) {
        let lower_bound = |within: Range<usize>, first: &[u32]| {
            let key: K = self.layout.pack(first);
            gallop(within, |position| self.keys[position] < key)
        };
        let mut next: Tuple = [0; DIMENSIONS_MAX];
        let mut position = lower_bound(cells.clone(), trailing.low());
        while position < cells.end {
            self.layout.unpack_to(self.keys[position], &mut tuple[self.split..]);
            match trailing.step(&tuple[self.split..], &mut next) {
                Step::Inside => {
                    inside.push(tuple, self.values[position]);
                    position += 1;
                }
                Step::Skip => position = lower_bound(position + 1..cells.end, &next[..tuple.len() - self.split]),
                Step::Past => break,
            }
        }
    }
}

impl<V: Value, K: StoredKey, P: Pointers> Storage<V> for Blocked<V, K, P> {
    fn scheme(&self) -> Scheme {
        self.names.scheme
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
        let push = |position: Option<usize>| found.push(position.map(|position| self.values[position]));
        lockstep::find_all(&self.keys, tuples, |tuple| self.locate(tuple), push);
        Ok(found)
    }

    fn sub_array(&self, area: &SubArray) -> Result<Cells<V>> {
        area.check(&self.shape)?;
        let mut inside = Cells::empty(self.shape.clone());
        let (leading, trailing) = area.split(self.split);
        // The last leading dimension is a run of neighbouring blocks.
        let last = self.split.saturating_sub(1);
        let (outer, run) = leading.split(last);
        let (low, high) = (run.low().first().copied(), run.high().first().copied());
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        outer.for_each_tuple(|outer| {
            tuple[..last].copy_from_slice(outer);
            tuple[last] = low.unwrap_or_default();
            let first = self.leading.encode(&tuple[..self.split]);
            let run = high.unwrap_or_default() - low.unwrap_or_default();
            self.pointers.filled(first..first + u64::from(run) + 1, |block, cells| {
                if self.split > 0 {
                    tuple[last] = low.unwrap_or_default() + (block - first) as u32;
                }
                self.push_inside(cells, &trailing, &mut tuple[..self.shape.dimensions()], &mut inside);
            });
        });
        Ok(inside)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u32], V)) {
        self.for_each_block(|tuple, cells| {
            for position in cells {
                self.layout.unpack_to(self.keys[position], &mut tuple[self.split..]);
                visit(tuple, self.values[position]);
            }
        });
    }

    fn prefix_sums(&self) -> Result<Vec<GroupBy<V>>> {
        let dimensions = self.shape.dimensions();
        let order: Vec<usize> = (0..dimensions).collect();
        let mut sums = PrefixSums::new(&order);
        let last = self.layout.bits().last().copied().unwrap_or_default();
        self.for_each_block(|tuple, cells| {
            let mut open = None;
            for position in cells {
                let group = self.keys[position].without(last);
                if open != Some(group) {
                    open = Some(group);
                    self.layout.unpack_to(self.keys[position], &mut tuple[self.split..]);
                    sums.enter(&tuple[..dimensions - 1]);
                }
                sums.add(self.values[position]);
            }
        });
        sums.finish()
    }

    fn sizes(&self) -> Sizes {
        let index_bytes = self.pointers.bytes() + size_of_val(self.keys.as_slice()) as u64;
        Sizes { index_bytes, value_bytes: size_of_val(self.values.as_slice()) as u64 }
    }

    fn arrays(&self) -> Vec<NamedArray<'_, V>> {
        let mut arrays = self.pointers.arrays(self.names.pointers);
        arrays.push(NamedArray { name: self.names.keys, data: K::array(&self.keys) });
        arrays.push(NamedArray { name: "val", data: ArrayData::Values(&self.values) });
        arrays
    }

    fn replace(&mut self, tuple: &[u32], value: V) -> Result<Option<V>> {
        self.shape.check_one(tuple)?;
        let position = self.find(tuple);
        Ok(position.map(|position| std::mem::replace(&mut self.values[position], value)))
    }
}
