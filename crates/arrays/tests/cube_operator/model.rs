//! Random rows, and the CUBE of them by brute force.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use warpcube_arrays::cube_operator::{Algorithm, Costs, Cuboid, Extent, Plan, Rows, Rule, cube};
use warpcube_arrays::key::{Key, KeyLayout};
use warpcube_arrays::{SchemeError, Value};

pub const RULES: [Rule; 5] = [Rule::Sum, Rule::Count, Rule::Min, Rule::Max, Rule::Avg];
pub const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Auto, Algorithm::Paths, Algorithm::SmallestParent, Algorithm::Dense, Algorithm::Hash];

/// Count, sum, least and largest value of a group.
pub type Group<V> = (u64, V, V, V);
/// Groups by the ascending dimensions of their cuboid and the coordinates in them.
pub type Groups<V> = BTreeMap<(Vec<usize>, Vec<u32>), Group<V>>;

/// Rows with room for all their coordinates.
#[derive(Debug, Clone)]
pub struct Table {
    pub layout: KeyLayout,
    pub tuples: Vec<Vec<u32>>,
    pub values: Vec<i64>,
    pub counts: Vec<u64>,
}

impl Table {
    pub fn keys<K: Key>(&self) -> Vec<K> {
        self.tuples.iter().map(|tuple| self.layout.pack(tuple)).collect()
    }

    /// The CUBE of some dimensions.
    pub fn brute_force(&self, dimensions: &[usize]) -> Groups<i64> {
        let mut groups = Groups::new();
        for subset in 0..1u32 << dimensions.len() {
            let chosen = |place: &usize| subset & 1 << place != 0;
            let mut cuboid: Vec<usize> = (0..dimensions.len()).filter(chosen).map(|place| dimensions[place]).collect();
            cuboid.sort_unstable();
            for ((tuple, value), count) in self.tuples.iter().zip(&self.values).zip(&self.counts) {
                let of = cuboid.iter().map(|dimension| tuple[*dimension]).collect();
                let group = groups.entry((cuboid.clone(), of)).or_insert((0, 0, i64::MAX, i64::MIN));
                *group = (group.0 + count, group.1 + value, group.2.min(*value), group.3.max(*value));
            }
        }
        groups
    }
}

/// Adds a cuboid to the groups; holds that its keys ascend and that it comes once.
pub fn collect<K: Key, V: Value>(groups: &mut Groups<V>, cuboid: &Cuboid<'_, K, V>) {
    assert!(!cuboid.is_empty() && cuboid.keys.is_sorted_by(|one, other| one < other), "{:?}", cuboid.dimensions);
    let mut places: Vec<usize> = (0..cuboid.dimensions.len()).collect();
    places.sort_by_key(|place| cuboid.dimensions[*place]);
    let dimensions: Vec<usize> = places.iter().map(|place| cuboid.dimensions[*place]).collect();
    for group in 0..cuboid.len() {
        let coordinates = cuboid.coordinates(group);
        let of = places.iter().map(|place| coordinates[*place]).collect();
        let (count, sum) = (cuboid.counts[group], cuboid.sums[group]);
        assert_eq!(cuboid.average(group), Some(sum.double() / count as f64));
        let found = (count, sum, cuboid.least[group], cuboid.largest[group]);
        let before = groups.insert((dimensions.clone(), of), found);
        assert!(before.is_none(), "{dimensions:?} comes twice");
    }
}

/// The CUBE by an algorithm on one core.
pub fn by<K: Key, V: Value + Debug>(
    rows: &Rows<'_, K, V>,
    extent: &Extent,
    dimensions: &[usize],
    algorithm: Algorithm,
) -> Groups<V> {
    let plan = Plan::new(extent, dimensions, &RULES, algorithm, &Costs::CPU).unwrap();
    let mut groups = Groups::new();
    cube(rows, &plan, |cuboid| {
        collect(&mut groups, &cuboid);
        Ok::<(), SchemeError>(())
    })
    .unwrap();
    groups
}

/// Tables of 1 to 6 dimensions and the dimensions of a CUBE in any order; some tables have rows enough for passes of
/// the radix sort.
pub fn table() -> impl Strategy<Value = (Table, Vec<usize>)> {
    let bits = prop::collection::vec(0..=6u32, 1..=6);
    let rows = prop_oneof![8 => 0..60usize, 1 => Just(900usize)];
    (bits, rows).prop_flat_map(|(bits, rows)| {
        let tuple: Vec<_> = bits.iter().map(|bits| 0..=((1u32 << bits) - 1)).collect();
        let tuples = prop::collection::vec(tuple, rows);
        let values = prop::collection::vec(-1000..1000i64, rows);
        let counts = prop_oneof![Just(vec![1; rows]).boxed(), prop::collection::vec(1..5u64, rows).boxed()];
        let all: Vec<usize> = (0..bits.len()).collect();
        let dimensions = (0..=bits.len()).prop_flat_map(move |many| {
            let chosen = prop::sample::subsequence(all.clone(), many);
            chosen.prop_shuffle()
        });
        (Just(KeyLayout::new(&bits).unwrap()), tuples, values, counts, dimensions, any::<bool>()).prop_map(
            |(layout, mut tuples, values, counts, dimensions, is_sorted)| {
                if is_sorted {
                    tuples.sort();
                }
                (Table { layout, tuples, values, counts }, dimensions)
            },
        )
    })
}
