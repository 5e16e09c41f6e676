//! Classes of base elements: those that every target of an area weighs alike.

use hashbrown::HashMap;

use crate::aggregate::TargetMap;

/// The class of a base element that no fact has, or that lies below no target.
pub(super) const NO_CLASS: u32 = u32::MAX;

/// The classes of one dimension, with the targets they count for.
///
/// Base elements without facts have no class. Classes are numbered in the order of their targets. Where every base
/// element has one target at most and the targets have members of several weights, classes are the targets, and the
/// pass over facts multiplies by the weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Classes {
    /// The class of each base element, or [`NO_CLASS`].
    pub(super) of_base: Vec<u32>,
    /// What the pass multiplies facts of each base element by; absent where all weights are 1.
    pub(super) weights_of_base: Option<Vec<i32>>,
    /// Number of classes.
    pub(super) count: u32,
    /// Entries of each target: `offsets[t]..offsets[t + 1]` of the two below.
    pub(super) offsets: Vec<u32>,
    /// Class of an entry.
    pub(super) classes: Vec<u32>,
    /// Weight of an entry.
    pub(super) weights: Vec<i64>,
    /// The greatest magnitude of a weight, at least 1.
    pub(super) magnitude: u64,
    /// True if every base element with facts has a class.
    covers_all: bool,
}

/// Targets of a base element with their weights.
type Row = Vec<(u32, i64)>;

impl Classes {
    /// The classes of a map with whole weights; of its membership alone unless `weighted`. Bit `b` of `present` is 1 if
    /// base element `b` has facts. `None` if a weight is not whole or takes more than 32 bits.
    pub(super) fn of(map: &TargetMap, weighted: bool, present: &[u64]) -> Option<Classes> {
        let rows: Vec<(u32, Row)> = rows(map, weighted, present)?;
        // The pass over facts looks up every base element with facts, those beyond the map as well.
        let bases = rows.last().map_or(0, |last| last.0 as usize + 1).max(map.bases() as usize);
        let covers_all = rows.iter().all(|(_, row)| !row.is_empty());
        let is_single = rows.iter().all(|(_, row)| row.len() <= 1);
        let magnitude = rows.iter().flat_map(|(_, row)| row).map(|(_, weight)| weight.unsigned_abs()).max();
        let mut folded = None;
        let mut classes = Classes::of_rows(map, bases, &rows);
        if is_single && !classes.is_selection() {
            let unit = |(base, row): &(u32, Row)| (*base, row.iter().map(|(target, _)| (*target, 1)).collect());
            let by_target = Classes::of_rows(map, bases, &rows.iter().map(unit).collect::<Vec<_>>());
            if by_target.count < classes.count {
                let mut weights = vec![1; bases];
                rows.iter()
                    .for_each(|(base, row)| weights[*base as usize] = row.first().map_or(1, |entry| entry.1 as i32));
                (classes, folded) = (by_target, Some(weights));
            }
        }
        Some(Classes { weights_of_base: folded, magnitude: magnitude.unwrap_or(1).max(1), covers_all, ..classes })
    }

    fn of_rows(map: &TargetMap, bases: usize, rows: &[(u32, Row)]) -> Classes {
        let mut numbers: HashMap<&[(u32, i64)], u32> = HashMap::new();
        rows.iter().filter(|(_, row)| !row.is_empty()).for_each(|(_, row)| _ = numbers.insert(row, 0));
        let mut sorted: Vec<&[(u32, i64)]> = numbers.keys().copied().collect();
        sorted.sort_unstable();
        sorted.iter().enumerate().for_each(|(number, row)| _ = numbers.insert(*row, number as u32));
        let mut of_base = vec![NO_CLASS; bases];
        for (base, row) in rows.iter().filter(|(_, row)| !row.is_empty()) {
            of_base[*base as usize] = numbers[row.as_slice()];
        }
        let mut by_target: Vec<Vec<(u32, i64)>> = vec![Vec::new(); map.targets() as usize];
        for (class, row) in sorted.iter().enumerate() {
            row.iter().for_each(|(target, weight)| by_target[*target as usize].push((class as u32, *weight)));
        }
        let (mut offsets, mut classes, mut weights) = (vec![0], Vec::new(), Vec::new());
        for entries in by_target {
            classes.extend(entries.iter().map(|(class, _)| *class));
            weights.extend(entries.iter().map(|(_, weight)| *weight));
            offsets.push(classes.len() as u32);
        }
        let count = sorted.len() as u32;
        Classes { of_base, weights_of_base: None, count, offsets, classes, weights, magnitude: 1, covers_all: true }
    }

    /// Number of targets.
    pub(super) fn targets(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// True if all facts are of the one class there is: the pass over facts need not look.
    pub(super) fn is_trivial(&self) -> bool {
        self.count == 1 && self.covers_all && self.weights_of_base.is_none()
    }

    /// True if every class is one target at weight 1, each another: classes need no multiplication, only the number of
    /// their target.
    pub(super) fn is_selection(&self) -> bool {
        self.classes.len() == self.count as usize
            && self.weights.iter().all(|weight| *weight == 1)
            && self.offsets.windows(2).all(|pair| pair[1] - pair[0] <= 1)
    }

    /// The target of each class of a selection, ascending.
    pub(super) fn selected(&self) -> Vec<u32> {
        (0..self.targets())
            .filter(|target| self.offsets[*target as usize] < self.offsets[*target as usize + 1])
            .collect()
    }
}

/// The targets of each base element that has facts; none of those beyond the map.
fn rows(map: &TargetMap, weighted: bool, present: &[u64]) -> Option<Vec<(u32, Row)>> {
    let whole = |weight: f64| match weighted {
        true => (weight.fract() == 0.0 && weight.abs() <= f64::from(i32::MAX)).then_some(weight as i64),
        false => Some(1),
    };
    let is_present = |base: &u32| present[*base as usize / 64] >> (base % 64) & 1 == 1;
    let row = |base| {
        let (targets, weights) = if base < map.bases() { map.targets_of(base) } else { (&[][..], &[][..]) };
        let entries = targets.iter().zip(weights).map(|(target, weight)| Some((*target, whole(*weight)?)));
        Some((base, entries.collect::<Option<Row>>()?))
    };
    (0..64 * present.len() as u64).map(|base| base as u32).filter(is_present).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All base elements of a map.
    fn all(map: &TargetMap) -> [u64; 1] {
        [(1 << map.bases()) - 1]
    }

    fn entries(classes: &Classes, target: usize) -> Vec<(u32, i64)> {
        let entries = classes.offsets[target] as usize..classes.offsets[target + 1] as usize;
        classes.classes[entries.clone()].iter().copied().zip(classes.weights[entries].iter().copied()).collect()
    }

    #[test]
    fn base_elements_of_equal_weights_are_one_class() {
        let year = vec![(0, 1.0), (1, 1.0), (2, 1.0), (3, -3.0)];
        let map = TargetMap::from_targets(5, &[year, vec![(1, 1.0)], vec![]]).unwrap();
        let classes = Classes::of(&map, true, &all(&map)).unwrap();
        assert_eq!(classes.of_base, [1, 2, 1, 0, NO_CLASS]);
        assert_eq!((classes.count, classes.targets()), (3, 3));
        assert_eq!(entries(&classes, 0), [(0, -3), (1, 1), (2, 1)]);
        assert_eq!((entries(&classes, 1), entries(&classes, 2)), (vec![(2, 1)], vec![]));
        assert_eq!((classes.magnitude, classes.is_trivial(), classes.is_selection()), (3, false, false));
        let members = Classes::of(&map, false, &all(&map)).unwrap();
        assert_eq!((members.of_base, members.magnitude), (vec![0, 1, 0, 0, NO_CLASS], 1));
    }

    #[test]
    fn selections_and_single_totals_are_known() {
        let identity = Classes::of(&TargetMap::identity(4), true, &[0b1111]).unwrap();
        assert!(identity.is_selection() && !identity.is_trivial());
        assert_eq!(identity.selected(), [0, 1, 2, 3]);
        let total = TargetMap::from_targets(3, &[vec![(0, 1.0), (1, 1.0), (2, 1.0)]]).unwrap();
        let total = Classes::of(&total, true, &[0b111]).unwrap();
        assert!(total.is_trivial() && total.is_selection());
        let half = TargetMap::from_targets(1, &[vec![(0, 0.5)]]).unwrap();
        assert_eq!(Classes::of(&half, true, &[1]), None);
        assert!(Classes::of(&half, false, &[1]).is_some_and(|classes| classes.is_trivial()));
    }

    #[test]
    fn base_elements_without_facts_have_no_class() {
        let classes = Classes::of(&TargetMap::identity(4), true, &[0b1010]).unwrap();
        assert_eq!(classes.of_base, [NO_CLASS, 0, NO_CLASS, 1]);
        assert_eq!((classes.selected(), classes.is_selection(), classes.is_trivial()), (vec![1, 3], true, false));
        let one = Classes::of(&TargetMap::identity(4), true, &[0b0100]).unwrap();
        assert!(one.is_trivial() && one.selected() == [2]);
        let beyond = Classes::of(&TargetMap::identity(2), true, &[0b1010]).unwrap();
        assert_eq!(beyond.of_base, [NO_CLASS, 0, NO_CLASS, NO_CLASS]);
        assert!(!beyond.is_trivial());
    }

    #[test]
    fn weights_of_single_targets_are_left_to_the_pass() {
        let map = TargetMap::from_targets(4, &[vec![(0, 2.0), (1, 3.0)], vec![(3, -1.0)]]).unwrap();
        let classes = Classes::of(&map, true, &all(&map)).unwrap();
        assert_eq!((classes.of_base.as_slice(), classes.count), (&[0, 0, NO_CLASS, 1][..], 2));
        assert_eq!((classes.weights_of_base.clone(), classes.magnitude), (Some(vec![2, 3, 1, -1]), 3));
        assert!(classes.is_selection() && !classes.is_trivial());
        // One weight a target merges no classes: the matrix has it.
        let map = TargetMap::from_targets(2, &[vec![(0, 2.0), (1, 2.0)]]).unwrap();
        let classes = Classes::of(&map, true, &all(&map)).unwrap();
        assert_eq!((classes.weights_of_base.clone(), classes.is_trivial()), (None, true));
        assert_eq!((entries(&classes, 0), classes.is_selection()), (vec![(0, 2)], false));
    }
}
