//! The components of aggregates, a column each, and how they are joined by groups.

use super::asked::Rule;
use super::rows::Rows;
use crate::Value;
use crate::key::Key;

/// Components that rules are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Components {
    /// Source rows: COUNT, AVG.
    pub count: bool,
    /// Sum of the values: SUM, AVG.
    pub sum: bool,
    /// The least value: MIN.
    pub least: bool,
    /// The largest value: MAX.
    pub largest: bool,
}

impl Components {
    /// Those of some rules.
    pub fn of(rules: &[Rule]) -> Components {
        let any = |of: &[Rule]| rules.iter().any(|rule| of.contains(rule));
        Components {
            count: any(&[Rule::Count, Rule::Avg]),
            sum: any(&[Rule::Sum, Rule::Avg]),
            least: any(&[Rule::Min]),
            largest: any(&[Rule::Max]),
        }
    }
}

/// Components of groups, one entry a group; absent are those that no rule needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns<V: Value> {
    pub(crate) counts: Option<Vec<u64>>,
    pub(crate) sums: Option<Vec<V::Sum>>,
    pub(crate) least: Option<Vec<V>>,
    pub(crate) largest: Option<Vec<V>>,
}

impl<V: Value> Columns<V> {
    /// Components of `groups` groups of rows: row `r` belongs to group `of[r]`.
    pub(crate) fn of_rows<K: Key>(rows: &Rows<'_, K, V>, components: Components, of: &[u32], groups: usize) -> Self {
        let values = || rows.values().iter().copied();
        let Components { count, sum, least, largest } = components;
        Columns {
            counts: count.then(|| match rows.counts() {
                Some(counts) => joined(counts.iter().copied(), of, groups, 0, |sum, count| *sum += count),
                None => joined(std::iter::repeat(1), of, groups, 0, |sum, count| *sum += count),
            }),
            sums: sum.then(|| joined(values(), of, groups, V::Sum::default(), |sum, value| *sum += value.widen())),
            least: least.then(|| joined(values(), of, groups, V::LARGEST, lower)),
            largest: largest.then(|| joined(values(), of, groups, V::LEAST, raise)),
        }
    }

    /// Components of `groups` groups of these groups: group `g` of here belongs to group `of[g]`.
    pub(crate) fn grouped(&self, of: &[u32], groups: usize) -> Self {
        fn items<T: Copy>(column: &[T], of: &[u32], groups: usize, nothing: T, join: impl Fn(&mut T, T)) -> Vec<T> {
            joined(column.iter().copied(), of, groups, nothing, join)
        }
        let Columns { counts, sums, least, largest } = self;
        Columns {
            counts: counts.as_ref().map(|counts| items(counts, of, groups, 0, |sum, count| *sum += count)),
            sums: sums.as_ref().map(|sums| items(sums, of, groups, V::Sum::default(), |sum, part| *sum += part)),
            least: least.as_ref().map(|least| items(least, of, groups, V::LARGEST, lower)),
            largest: largest.as_ref().map(|largest| items(largest, of, groups, V::LEAST, raise)),
        }
    }

    /// The components at these places.
    pub(crate) fn at(&self, places: &[u32]) -> Self {
        fn taken<T: Copy>(column: Option<&Vec<T>>, places: &[u32]) -> Option<Vec<T>> {
            column.map(|column| places.iter().map(|place| column[*place as usize]).collect())
        }
        Columns {
            counts: taken(self.counts.as_ref(), places),
            sums: taken(self.sums.as_ref(), places),
            least: taken(self.least.as_ref(), places),
            largest: taken(self.largest.as_ref(), places),
        }
    }
}

fn lower<V: Value>(least: &mut V, value: V) {
    if value < *least {
        *least = value;
    }
}

fn raise<V: Value>(largest: &mut V, value: V) {
    if value > *largest {
        *largest = value;
    }
}

/// Joins items to `groups` groups, in the order of items.
fn joined<T, S: Copy>(
    items: impl Iterator<Item = T>,
    of: &[u32],
    groups: usize,
    nothing: S,
    join: impl Fn(&mut S, T),
) -> Vec<S> {
    let mut parts = vec![nothing; groups];
    of.iter().zip(items).for_each(|(group, item)| join(&mut parts[*group as usize], item));
    parts
}
