//! What the CUBE operator aggregates: rows with packed keys.

use super::asked::CUBE_DIMENSIONS_MAX;
use crate::key::{Key, KeyLayout};
use crate::{Result, SchemeError, Value};

/// Most bits of a dimension whose different coordinates are counted.
const COUNTED_BITS_MAX: u32 = 24;

/// Rows of a sparse array or of facts: keys (BESS), values and numbers of source rows. Keys may repeat and come in any
/// order.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, K, V> {
    layout: &'a KeyLayout,
    keys: &'a [K],
    values: &'a [V],
    counts: Option<&'a [u64]>,
}

impl<'a, K: Key, V: Value> Rows<'a, K, V> {
    /// Rows with one value each. `counts` has the source rows that a row stands for, absent if each is one: facts of
    /// a rule AVG hold sums with such counts.
    ///
    /// # Errors
    /// Lists of several lengths; 2^32 rows or more.
    pub fn new(layout: &'a KeyLayout, keys: &'a [K], values: &'a [V], counts: Option<&'a [u64]>) -> Result<Self> {
        let rows = keys.len();
        if rows != values.len() || counts.is_some_and(|counts| counts.len() != rows) {
            return Err(SchemeError::CubeRows { keys: rows, values: values.len() });
        }
        if u32::try_from(rows).is_err() {
            return Err(SchemeError::TooManyRows { rows });
        }
        Ok(Rows { layout, keys, values, counts })
    }

    /// Layout of the keys.
    pub fn layout(&self) -> &'a KeyLayout {
        self.layout
    }

    /// The keys.
    pub fn keys(&self) -> &'a [K] {
        self.keys
    }

    /// The values.
    pub fn values(&self) -> &'a [V] {
        self.values
    }

    /// Source rows of each row; absent if each is one.
    pub fn counts(&self) -> Option<&'a [u64]> {
        self.counts
    }

    /// What a plan needs to know of the rows; reads the keys once a dimension.
    pub fn extent(&self) -> Extent {
        let dimensions = 0..self.layout.dimensions();
        Extent {
            layout: self.layout.clone(),
            rows: self.keys.len() as u64,
            cardinalities: dimensions.map(|dimension| self.cardinality(dimension)).collect(),
            is_sorted: self.keys.is_sorted(),
        }
    }

    fn cardinality(&self, dimension: usize) -> u64 {
        let bits = self.layout.bits()[dimension];
        if bits > COUNTED_BITS_MAX {
            return (self.keys.len() as u64).min(1 << bits);
        }
        let mut is_there = vec![false; 1 << bits];
        self.keys.iter().for_each(|key| is_there[self.layout.coordinate(*key, dimension) as usize] = true);
        is_there.iter().filter(|is_there| **is_there).count() as u64
    }
}

/// What a plan needs to know of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Layout of the keys.
    pub layout: KeyLayout,
    /// Number of rows.
    pub rows: u64,
    /// Different coordinates of each dimension of the layout; of more than 24 bits an upper bound.
    pub cardinalities: Vec<u64>,
    /// True if the keys ascend.
    pub is_sorted: bool,
}

/// Refuses dimensions that are none of the layout's, repeat, or are too many for all their combinations.
pub(crate) fn check_dimensions(layout: &KeyLayout, dimensions: &[usize]) -> Result<()> {
    if dimensions.len() > CUBE_DIMENSIONS_MAX {
        return Err(SchemeError::CubeDimensions { found: dimensions.len() });
    }
    for (at, dimension) in dimensions.iter().enumerate() {
        if *dimension >= layout.dimensions() {
            return Err(SchemeError::NoDimension { dimension: *dimension, dimensions: layout.dimensions() });
        }
        if dimensions[..at].contains(dimension) {
            return Err(SchemeError::Repeated { dimension: *dimension });
        }
    }
    Ok(())
}
