//! Classes of base elements: those that every target of an area weighs alike.

use hashbrown::HashMap;

use crate::aggregate::TargetMap;

/// The class of a base element below no target.
pub(super) const NO_CLASS: u32 = u32::MAX;

/// The classes of one dimension, with the targets they count for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Classes {
    /// The class of each base element, or [`NO_CLASS`].
    pub(super) of_base: Vec<u32>,
    /// Number of classes.
    pub(super) count: u32,
    /// Entries of each target: `offsets[t]..offsets[t + 1]` of the two below.
    pub(super) offsets: Vec<u32>,
    /// Class of an entry.
    pub(super) classes: Vec<u32>,
    /// Weight of an entry.
    pub(super) weights: Vec<i64>,
}

impl Classes {
    /// The classes of a map with whole weights; `None` if a weight is not whole or takes more than 32 bits.
    pub(super) fn of(map: &TargetMap) -> Option<Classes> {
        let whole =
            |weight: f64| (weight.fract() == 0.0 && weight.abs() <= f64::from(i32::MAX)).then_some(weight as i64);
        let mut known: HashMap<Vec<(u32, i64)>, u32> = HashMap::new();
        let mut of_base = Vec::with_capacity(map.bases() as usize);
        for base in 0..map.bases() {
            let (targets, weights) = map.targets_of(base);
            if targets.is_empty() {
                of_base.push(NO_CLASS);
                continue;
            }
            let entries = targets.iter().zip(weights).map(|(target, weight)| Some((*target, whole(*weight)?)));
            let entries: Vec<(u32, i64)> = entries.collect::<Option<_>>()?;
            let next = known.len() as u32;
            of_base.push(*known.entry(entries).or_insert(next));
        }
        let count = known.len() as u32;
        let mut by_target: Vec<Vec<(u32, i64)>> = vec![Vec::new(); map.targets() as usize];
        for (entries, class) in &known {
            entries.iter().for_each(|(target, weight)| by_target[*target as usize].push((*class, *weight)));
        }
        let (mut offsets, mut classes, mut weights) = (vec![0], Vec::new(), Vec::new());
        for mut entries in by_target {
            entries.sort_unstable();
            classes.extend(entries.iter().map(|(class, _)| *class));
            weights.extend(entries.iter().map(|(_, weight)| *weight));
            offsets.push(classes.len() as u32);
        }
        Some(Classes { of_base, count, offsets, classes, weights })
    }

    /// Number of targets.
    pub(super) fn targets(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// True if every base element is of the one class there is: the pass over facts need not look.
    pub(super) fn is_trivial(&self) -> bool {
        self.count == 1 && self.of_base.iter().all(|class| *class == 0)
    }

    /// True if class `c` is target `c`, at weight 1.
    pub(super) fn is_identity(&self) -> bool {
        self.count == self.targets()
            && self.classes.len() == self.targets() as usize
            && self.weights.iter().all(|weight| *weight == 1)
            && self.classes.iter().enumerate().all(|(place, class)| place == *class as usize)
    }

    /// The greatest sum of magnitudes of weights of a target: what a bound of sums grows by.
    pub(super) fn growth(&self) -> i64 {
        let rows = self.offsets.windows(2).map(|pair| {
            let weights = &self.weights[pair[0] as usize..pair[1] as usize];
            weights.iter().map(|weight| weight.abs()).fold(0_i64, i64::saturating_add)
        });
        rows.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_elements_of_equal_weights_are_one_class() {
        let year = vec![(0, 1.0), (1, 1.0), (2, 1.0), (3, -1.0)];
        let map = TargetMap::from_targets(5, &[year, vec![(1, 1.0)], vec![]]).unwrap();
        let classes = Classes::of(&map).unwrap();
        assert_eq!(classes.of_base, [0, 1, 0, 2, NO_CLASS]);
        assert_eq!((classes.count, classes.targets()), (3, 3));
        let entries = |target: usize| {
            let entries = classes.offsets[target] as usize..classes.offsets[target + 1] as usize;
            classes.classes[entries.clone()].iter().copied().zip(classes.weights[entries].iter().copied()).collect()
        };
        assert_eq!(entries(0), [(0, 1), (1, 1), (2, -1)]);
        assert_eq!((entries(1), entries(2)), (vec![(1, 1)], vec![]));
        assert_eq!((classes.growth(), classes.is_trivial(), classes.is_identity()), (3, false, false));
    }

    #[test]
    fn identities_and_single_totals_are_known() {
        let identity = Classes::of(&TargetMap::identity(4)).unwrap();
        assert!(identity.is_identity() && !identity.is_trivial());
        let total = TargetMap::from_targets(3, &[vec![(0, 1.0), (1, 1.0), (2, 1.0)]]).unwrap();
        let total = Classes::of(&total).unwrap();
        assert!(total.is_trivial() && total.is_identity());
        assert_eq!(Classes::of(&TargetMap::from_targets(1, &[vec![(0, 0.5)]]).unwrap()), None);
    }
}
