//! A cuboid as it goes to a sink.

use super::columns::Columns;
use crate::key::{Key, KeyLayout};
use crate::{Result, SchemeError, Value};

/// The groups of some dimensions, in ascending order of their keys. Columns that no rule asked for are empty.
#[derive(Debug, Clone)]
pub struct Cuboid<'a, K, V> {
    /// Dimensions of the layout of the rows, in the order of the keys' coordinates; none of the grand total.
    pub dimensions: &'a [usize],
    /// Layout of the keys, whose dimension `i` is `dimensions[i]`.
    pub layout: &'a KeyLayout,
    /// The key of each group.
    pub keys: &'a [K],
    /// Source rows of each group.
    pub counts: &'a [u64],
    /// Sum of each group.
    pub sums: &'a [V],
    /// Least value of each group.
    pub least: &'a [V],
    /// Largest value of each group.
    pub largest: &'a [V],
}

impl<K: Key, V: Value> Cuboid<'_, K, V> {
    /// Number of groups.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there is no group.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Coordinates of a group, one a dimension of the cuboid.
    pub fn coordinates(&self, group: usize) -> Vec<u32> {
        self.layout.unpack(self.keys[group])
    }

    /// The average of a group, in units of the values; absent if rule AVG was not asked for.
    pub fn average(&self, group: usize) -> Option<f64> {
        Some(self.sums.get(group)?.double() / *self.counts.get(group)? as f64)
    }
}

/// Groups in host memory, from which cuboids are given and made.
pub(crate) struct Level<K, V: Value> {
    pub(crate) order: Vec<usize>,
    pub(crate) layout: KeyLayout,
    pub(crate) keys: Vec<K>,
    pub(crate) columns: Columns<V>,
}

impl<K: Key, V: Value> Level<K, V> {
    /// Gives the cuboid to a sink.
    ///
    /// # Errors
    /// A sum that does not fit its type; that of the sink.
    pub(crate) fn give<E: From<SchemeError>>(
        &self,
        sink: &mut impl FnMut(Cuboid<'_, K, V>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let sums = self.sums()?;
        let Columns { counts, least, largest, .. } = &self.columns;
        sink(Cuboid {
            dimensions: &self.order,
            layout: &self.layout,
            keys: &self.keys,
            counts: counts.as_deref().unwrap_or_default(),
            sums: &sums,
            least: least.as_deref().unwrap_or_default(),
            largest: largest.as_deref().unwrap_or_default(),
        })
    }

    fn sums(&self) -> Result<Vec<V>> {
        let sums = self.columns.sums.iter().flatten().zip(&self.keys);
        let narrow = |(sum, key): (&V::Sum, &K)| {
            V::narrow(*sum).ok_or_else(|| SchemeError::SumOverflow {
                dimensions: self.order.clone(),
                group: self.layout.unpack(*key),
            })
        };
        sums.map(narrow).collect()
    }
}
