//! The interface of a sparse array, and what it tells of its arrays.

use std::fmt::Debug;

use super::{Cells, GroupBy, Result, Scheme, SchemeError, Shape, SubArray, Value};
use crate::key::Key;

/// A sparse array in one storage scheme.
///
/// Coordinates are given and returned with one entry a dimension, dimension 0 first.
pub trait Storage<V: Value>: Debug + Send + Sync {
    /// The scheme.
    fn scheme(&self) -> Scheme;

    /// Shape of the array.
    fn shape(&self) -> &Shape;

    /// Number of filled cells, `N_nz`.
    fn len(&self) -> usize;

    /// True if no cell is filled.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of many cells: one a tuple of the flat list `coordinates`, absent where the cell is empty. Tuples may
    /// come in any order and repeat. An error names a coordinate outside of the shape.
    fn get(&self, coordinates: &[u32]) -> Result<Vec<Option<V>>>;

    /// The filled cells of a sub-array, in row-major order.
    fn sub_array(&self, area: &SubArray) -> Result<Cells<V>>;

    /// Calls `visit` with every filled cell in the scheme's order: row-major, but for xCCS (last dimension slowest).
    fn for_each(&self, visit: &mut dyn FnMut(&[u32], V));

    /// All filled cells, in row-major order.
    fn cells(&self) -> Cells<V> {
        let mut cells = Cells::with_capacity(self.shape().clone(), self.len());
        self.for_each(&mut |tuple, value| cells.push(tuple, value));
        cells
    }

    /// The k - 1 aggregations of one scan (chapter 4): sums by the prefixes of the scheme's order of dimensions,
    /// shortest prefix first. That order is 0, 1, …, k - 1; of xCCS it is k - 1, …, 1, 0. An error names a sum that
    /// overflows.
    fn prefix_sums(&self) -> Result<Vec<GroupBy<V>>>;

    /// Bytes of the index and of the values.
    fn sizes(&self) -> Sizes;

    /// The arrays of the scheme, by name. A trie has nodes and no arrays.
    fn arrays(&self) -> Vec<NamedArray<'_, V>>;

    /// Replaces the value of a filled cell and returns the old one; an empty cell stays empty and gives none.
    fn replace(&mut self, tuple: &[u32], value: V) -> Result<Option<V>>;

    /// Fills a cell and returns the value it had. Only PTCS can; other schemes refuse.
    fn insert(&mut self, tuple: &[u32], value: V) -> Result<Option<V>> {
        let _ = (tuple, value);
        Err(SchemeError::Fixed { scheme: self.scheme(), operation: "insert" })
    }

    /// Empties a cell and returns the value it had. Only PTCS can; other schemes refuse.
    fn remove(&mut self, tuple: &[u32]) -> Result<Option<V>> {
        let _ = tuple;
        Err(SchemeError::Fixed { scheme: self.scheme(), operation: "remove" })
    }
}

/// Bytes that a scheme takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of everything that is no value: keys, coordinates, pointers, rank tables, links.
    pub index_bytes: u64,
    /// Bytes of the values.
    pub value_bytes: u64,
}

impl Sizes {
    /// Bytes of index and values, `S_scheme`.
    pub fn total(&self) -> u64 {
        self.index_bytes + self.value_bytes
    }

    /// The storage ratio of section 7.1: bytes of the scheme to those of the dense array of the same values.
    pub fn ratio<V: Value>(&self, shape: &Shape) -> Result<f64> {
        Ok(self.total() as f64 / (shape.places()? as f64 * size_of::<V>() as f64))
    }
}

/// One array of a scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedArray<'a, V> {
    /// Name of the array in the thesis: `val`, `bei`, `cind`, `rptr`, `bptr`, `rptr_c`, `compwrd`, `count1`, ….
    pub name: &'static str,
    /// Its entries.
    pub data: ArrayData<'a, V>,
}

/// Entries of an array of a scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrayData<'a, V> {
    /// Words of 32 bits.
    Words32(&'a [u32]),
    /// Words of 64 bits.
    Words64(&'a [u64]),
    /// Numbers of 128 bits, the higher word first.
    Pairs64(&'a [[u64; 2]]),
    /// Values of the cells.
    Values(&'a [V]),
}

impl<V> ArrayData<'_, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Words32(words) => words.len(),
            Self::Words64(words) => words.len(),
            Self::Pairs64(pairs) => pairs.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// True if the array has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the entries.
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Words32(words) => size_of_val(*words),
            Self::Words64(words) => size_of_val(*words),
            Self::Pairs64(pairs) => size_of_val(*pairs),
            Self::Values(values) => size_of_val(*values),
        };
        bytes as u64
    }
}

/// A key in an array of a scheme.
pub(crate) trait StoredKey: Key {
    /// The keys as an array.
    fn array<V>(keys: &[Self]) -> ArrayData<'_, V>;
}

impl StoredKey for u32 {
    fn array<V>(keys: &[u32]) -> ArrayData<'_, V> {
        ArrayData::Words32(keys)
    }
}

impl StoredKey for u64 {
    fn array<V>(keys: &[u64]) -> ArrayData<'_, V> {
        ArrayData::Words64(keys)
    }
}

impl StoredKey for [u64; 2] {
    fn array<V>(keys: &[[u64; 2]]) -> ArrayData<'_, V> {
        ArrayData::Pairs64(keys)
    }
}
