//! PTCS, PATRICIA trie compressed storage: a trie of bit-encoded keys, the scheme that takes insertions and removals.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 3.5 and appendix A.3.
//! Keys are those of BESS. A sub-array leaves out every sub-trie whose common bits lie outside of the bounds, where the
//! thesis finds the one sub-trie that holds both corners and tests its cells.

mod trie;

use self::trie::Trie;
use super::{
    Cells, GroupBy, NamedArray, PrefixSums, Result, Scheme, SchemeError, Shape, Sizes, Storage, SubArray, Value,
};
use crate::key::{DIMENSIONS_MAX, Key, KeyLayout, Tuple};

/// A sparse array in a PATRICIA trie.
#[derive(Debug)]
struct Ptcs<V, K: Key> {
    shape: Shape,
    layout: KeyLayout,
    /// Bits of a key.
    bits: u32,
    /// Dimension whose coordinate holds each bit, bits counted from 1 at the highest; entry 0 stands for the header.
    dimension_of: Vec<usize>,
    trie: Trie<K, V>,
}

/// Builds PTCS. An error gives the bits of a key that exceeds 128, or the cells that exceed 32-bit links.
pub(crate) fn build<V: Value>(cells: &Cells<V>) -> Result<Box<dyn Storage<V>>> {
    let layout = KeyLayout::of_part(cells.shape().sizes());
    match layout.total_bits() {
        0..=64 => Ok(Box::new(Ptcs::<V, u64>::new(cells, layout)?)),
        65..=128 => Ok(Box::new(Ptcs::<V, [u64; 2]>::new(cells, layout)?)),
        bits => Err(SchemeError::KeyWidth { scheme: Scheme::Ptcs, bits }),
    }
}

impl<V: Value, K: Key> Ptcs<V, K> {
    fn new(cells: &Cells<V>, layout: KeyLayout) -> Result<Self> {
        let keys = cells.tuples().map(|tuple| layout.pack::<K>(tuple));
        let trie = Trie::from_sorted(layout.total_bits(), keys.zip(cells.values().iter().copied()))?;
        let widths = layout.bits().iter().enumerate();
        let of_bits = widths.flat_map(|(dimension, bits)| std::iter::repeat_n(dimension, *bits as usize));
        let dimension_of = std::iter::once(0).chain(of_bits).collect();
        Ok(Self { shape: cells.shape().clone(), bits: layout.total_bits(), layout, dimension_of, trie })
    }

    fn dimensions(&self) -> usize {
        self.shape.dimensions()
    }

    /// False if no key of the sub-trie below link `side` of a node lies inside of `area`. The node tests `bit`, its
    /// parent `above`; `key` is any key below the node.
    fn may_hold(&self, area: &SubArray, key: K, above: u32, bit: u32, side: usize) -> bool {
        let dimension = self.dimension_of[bit as usize];
        let inside = |known: usize| {
            let at = self.layout.coordinate(key, known);
            area.low()[known] <= at && at <= area.high()[known]
        };
        // All keys below share the bits in front of `bit`: the coordinates of earlier dimensions are known.
        if !(self.dimension_of[above as usize]..dimension).all(inside) {
            return false;
        }
        let below = self.bits - bit - self.layout.shifts()[dimension];
        let known = u64::from(self.layout.coordinate(key, dimension)) >> (below + 1) << 1 | side as u64;
        let (first, last) = (known << below, ((known + 1) << below) - 1);
        first <= u64::from(area.high()[dimension]) && last >= u64::from(area.low()[dimension])
    }
}

impl<V: Value, K: Key> Storage<V> for Ptcs<V, K> {
    fn scheme(&self) -> Scheme {
        Scheme::Ptcs
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn len(&self) -> usize {
        self.trie.len()
    }

    fn get(&self, coordinates: &[u32]) -> Result<Vec<Option<V>>> {
        let mut found = Vec::with_capacity(self.shape.tuples(coordinates)?);
        for (cell, tuple) in coordinates.chunks_exact(self.dimensions()).enumerate() {
            self.shape.check(cell, tuple)?;
            found.push(self.trie.get(self.layout.pack(tuple)));
        }
        Ok(found)
    }

    fn sub_array(&self, area: &SubArray) -> Result<Cells<V>> {
        area.check(&self.shape)?;
        let mut inside = Cells::empty(self.shape.clone());
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let tuple = &mut tuple[..self.dimensions()];
        let enter = |key, above, bit, side| self.may_hold(area, key, above, bit, side);
        self.trie.traverse(enter, |key, value| {
            self.layout.unpack_to(key, tuple);
            if area.contains(tuple) {
                inside.push(tuple, value);
            }
        });
        Ok(inside)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[u32], V)) {
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let tuple = &mut tuple[..self.dimensions()];
        self.trie.traverse(
            |_, _, _, _| true,
            |key, value| {
                self.layout.unpack_to(key, tuple);
                visit(tuple, value);
            },
        );
    }

    fn prefix_sums(&self) -> Result<Vec<GroupBy<V>>> {
        let dimensions = self.dimensions();
        let order: Vec<usize> = (0..dimensions).collect();
        let mut sums = PrefixSums::new(&order);
        let last = self.layout.bits().last().copied().unwrap_or_default();
        let mut tuple: Tuple = [0; DIMENSIONS_MAX];
        let mut open = None;
        self.trie.traverse(
            |_, _, _, _| true,
            |key, value| {
                let group = key.without(last);
                if open != Some(group) {
                    open = Some(group);
                    self.layout.unpack_to(key, &mut tuple[..dimensions]);
                    sums.enter(&tuple[..dimensions - 1]);
                }
                sums.add(value);
            },
        );
        sums.finish()
    }

    fn sizes(&self) -> Sizes {
        self.trie.sizes()
    }

    fn arrays(&self) -> Vec<NamedArray<'_, V>> {
        Vec::new()
    }

    fn replace(&mut self, tuple: &[u32], value: V) -> Result<Option<V>> {
        self.shape.check_one(tuple)?;
        Ok(self.trie.replace(self.layout.pack(tuple), value))
    }

    fn insert(&mut self, tuple: &[u32], value: V) -> Result<Option<V>> {
        self.shape.check_one(tuple)?;
        self.trie.insert(self.layout.pack(tuple), value)
    }

    fn remove(&mut self, tuple: &[u32]) -> Result<Option<V>> {
        self.shape.check_one(tuple)?;
        Ok(self.trie.remove(self.layout.pack(tuple)))
    }
}
