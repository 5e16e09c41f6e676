//! Sorted keys in the narrower of two widths.

use std::ops::Range;

use warpcube_arrays::key::KeyLayout;

/// Keys of stored cells, strictly ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// Keys of at most 64 bits.
    Narrow(Vec<u64>),
    /// Keys of at most 128 bits.
    Wide(Vec<u128>),
}

impl Keys {
    /// Number of keys.
    pub fn len(&self) -> usize {
        match self {
            Keys::Narrow(keys) => keys.len(),
            Keys::Wide(keys) => keys.len(),
        }
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of cell `index`.
    pub fn get(&self, index: usize) -> u128 {
        match self {
            Keys::Narrow(keys) => u128::from(keys[index]),
            Keys::Wide(keys) => keys[index],
        }
    }

    /// Writes one coordinate of each cell of `range` to the first places of `out`.
    pub fn coordinates(&self, layout: &KeyLayout, range: Range<usize>, dimension: usize, out: &mut [u32]) {
        let (shift, mask) = (layout.shift(dimension), layout.coordinate_max(dimension));
        match self {
            Keys::Narrow(keys) => {
                for (out, key) in out.iter_mut().zip(&keys[range]) {
                    *out = (key >> shift) as u32 & mask;
                }
            }
            Keys::Wide(keys) => {
                for (out, key) in out.iter_mut().zip(&keys[range]) {
                    *out = (key >> shift) as u32 & mask;
                }
            }
        }
    }

    /// The first cell of `range` whose key is at least `key`; the end of the range if there is none.
    pub fn lower_bound(&self, range: Range<usize>, key: u128) -> usize {
        match self {
            // A key beyond 64 bits is beyond every narrow key.
            Keys::Narrow(keys) => match u64::try_from(key) {
                Ok(key) => range.start + keys[range].partition_point(|&other| other < key),
                Err(_) => range.end,
            },
            Keys::Wide(keys) => range.start + keys[range].partition_point(|&other| other < key),
        }
    }

    /// The first place whose key does not exceed the key before it.
    pub(super) fn first_unsorted(&self) -> Option<usize> {
        let found = match self {
            Keys::Narrow(keys) => keys.windows(2).position(|pair| pair[0] >= pair[1]),
            Keys::Wide(keys) => keys.windows(2).position(|pair| pair[0] >= pair[1]),
        };
        found.map(|place| place + 1)
    }
}
