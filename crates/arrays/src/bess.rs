//! BESS, bit-encoded sparse storage: one array of sorted keys and one of values.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 2.1.3. Keys take one word
//! of 64 bits, or two where the bits of the dimensions sum to more than 64; above 128 the shape is refused.

use std::slice::ChunksExact;

use super::sorted::{Sorted, SortedIndex, gallop};
use super::{Cells, NamedArray, Result, Scheme, SchemeError, Storage, StoredKey, Value, lockstep};
use crate::key::KeyLayout;

/// Sorted bit-encoded indexes.
#[derive(Debug)]
struct Keys<K> {
    layout: KeyLayout,
    /// Bits of the last dimension.
    last: u32,
    keys: Vec<K>,
}

impl<K: StoredKey> SortedIndex for Keys<K> {
    fn find(&self, tuple: &[u32]) -> Option<usize> {
        self.keys.binary_search(&self.layout.pack(tuple)).ok()
    }

    fn find_all(&self, tuples: ChunksExact<'_, u32>, found: impl FnMut(Option<usize>)) {
        let keys = &self.keys;
        lockstep::find_all(keys, tuples, |tuple| (0..keys.len(), self.layout.pack(tuple)), found);
    }

    fn lower_bound(&self, tuple: &[u32], from: usize) -> usize {
        let key: K = self.layout.pack(tuple);
        gallop(from..self.keys.len(), |position| self.keys[position] < key)
    }

    fn decode(&self, position: usize, tuple: &mut [u32]) {
        self.layout.unpack_to(self.keys[position], tuple);
    }

    fn opens_group(&self, position: usize) -> bool {
        self.keys[position].without(self.last) != self.keys[position - 1].without(self.last)
    }

    fn bytes(&self) -> u64 {
        size_of_val(self.keys.as_slice()) as u64
    }

    fn arrays<V>(&self) -> Vec<NamedArray<'_, V>> {
        vec![NamedArray { name: "bei", data: K::array(&self.keys) }]
    }
}

/// Builds BESS. An error gives the bits of a key that exceeds 128.
pub(crate) fn build<V: Value>(cells: &Cells<V>) -> Result<Box<dyn Storage<V>>> {
    let layout = KeyLayout::of_part(cells.shape().sizes());
    match layout.total_bits() {
        0..=64 => Ok(with_keys::<V, u64>(cells, layout)),
        65..=128 => Ok(with_keys::<V, [u64; 2]>(cells, layout)),
        bits => Err(SchemeError::KeyWidth { scheme: Scheme::Bess, bits }),
    }
}

fn with_keys<V: Value, K: StoredKey>(cells: &Cells<V>, layout: KeyLayout) -> Box<dyn Storage<V>> {
    let keys: Vec<K> = cells.tuples().map(|tuple| layout.pack(tuple)).collect();
    let last = layout.bits().last().copied().unwrap_or_default();
    Box::new(Sorted::new(Scheme::Bess, cells, Keys { layout, last, keys }))
}
