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
    /// The weight by which the pass multiplies facts of each base element; absent if all weights are 1.
    pub(super) weights_of_base: Option<Vec<i32>>,
    /// Number of classes.
    pub(super) count: u32,
    /// Entries of each target: `offsets[t]..offsets[t + 1]` of the two below.
    pub(super) offsets: Vec<u32>,
    /// Class of an entry.
    pub(super) classes: Vec<u32>,
    /// Word of the weight of an entry.
    pub(super) weights: Vec<i64>,
    /// The greatest magnitude of a whole weight, at least 1.
    pub(super) magnitude: u64,
    /// The word of the weight 1.
    unit: i64,
    /// True if every base element with facts has a class.
    covers_all: bool,
}

/// Targets of a base element with the words of their weights.
type Row = Vec<(u32, i64)>;

/// How weights count, and what their words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weighting {
    /// Membership alone: every weight is 1.
    Members,
    /// Whole numbers; others are refused.
    Whole,
    /// Doubles, by their bits.
    Doubles,
    /// Membership alone, with 1 as a double.
    DoubleMembers,
}

impl Weighting {
    /// The word of a weight.
    fn word(self, weight: f64) -> Option<i64> {
        match self {
            Weighting::Members | Weighting::DoubleMembers => Some(self.unit()),
            Weighting::Whole => (weight.fract() == 0.0 && weight.abs() < WHOLE_MAX).then_some(weight as i64),
            // 0 and -0 are one weight.
            Weighting::Doubles => Some((weight + 0.0).to_bits() as i64),
        }
    }

    /// The word of 1.
    fn unit(self) -> i64 {
        match self {
            Weighting::Members | Weighting::Whole => 1,
            Weighting::Doubles | Weighting::DoubleMembers => 1.0_f64.to_bits() as i64,
        }
    }
}

/// Whole weights stay below this, 2^62.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

impl Classes {
    /// The classes of a map. Bit `b` of `present` is 1 if base element `b` has facts. The pass over facts multiplies by
    /// weights only if `folds`, whole weights of 32 bits. `None` if whole weights are wanted and one is not.
    pub(super) fn of(map: &TargetMap, weighting: Weighting, folds: bool, present: &[u64]) -> Option<Classes> {
        let rows: Vec<(u32, Row)> = rows(map, weighting, present)?;
        // The pass over facts looks up every base element with facts, those beyond the map as well.
        let bases = rows.last().map_or(0, |last| last.0 as usize + 1).max(map.bases() as usize);
        let covers_all = rows.iter().all(|(_, row)| !row.is_empty());
        let is_single = rows.iter().all(|(_, row)| row.len() <= 1);
        let magnitude = rows.iter().flat_map(|(_, row)| row).map(|(_, weight)| weight.unsigned_abs()).max();
        let magnitude = magnitude.filter(|_| weighting == Weighting::Whole).unwrap_or(1).max(1);
        let mut folded = None;
        let mut classes = Classes::of_rows(map, bases, &rows, weighting.unit());
        let folds = folds && weighting == Weighting::Whole && magnitude <= i32::MAX as u64;
        if folds && is_single && !classes.is_selection() {
            let unit = |(base, row): &(u32, Row)| (*base, row.iter().map(|(target, _)| (*target, 1)).collect());
            let by_target = Classes::of_rows(map, bases, &rows.iter().map(unit).collect::<Vec<_>>(), 1);
            if by_target.count < classes.count {
                let mut weights = vec![1; bases];
                rows.iter()
                    .for_each(|(base, row)| weights[*base as usize] = row.first().map_or(1, |entry| entry.1 as i32));
                (classes, folded) = (by_target, Some(weights));
            }
        }
        Some(Classes { weights_of_base: folded, magnitude, covers_all, ..classes })
    }

    fn of_rows(map: &TargetMap, bases: usize, rows: &[(u32, Row)], unit: i64) -> Classes {
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
        let (weights_of_base, magnitude, covers_all) = (None, 1, true);
        Classes { of_base, weights_of_base, count, offsets, classes, weights, magnitude, unit, covers_all }
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
            && self.weights.iter().all(|weight| *weight == self.unit)
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
fn rows(map: &TargetMap, weighting: Weighting, present: &[u64]) -> Option<Vec<(u32, Row)>> {
    let is_present = |base: &u32| present[*base as usize / 64] >> (base % 64) & 1 == 1;
    let row = |base| {
        let (targets, weights) = if base < map.bases() { map.targets_of(base) } else { (&[][..], &[][..]) };
        let entries = targets.iter().zip(weights).map(|(target, weight)| Some((*target, weighting.word(*weight)?)));
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

    /// The classes that the pass over facts may fold weights into.
    fn whole(map: &TargetMap, present: &[u64]) -> Classes {
        Classes::of(map, Weighting::Whole, true, present).unwrap()
    }

    fn entries(classes: &Classes, target: usize) -> Vec<(u32, i64)> {
        let entries = classes.offsets[target] as usize..classes.offsets[target + 1] as usize;
        classes.classes[entries.clone()].iter().copied().zip(classes.weights[entries].iter().copied()).collect()
    }

    #[test]
    fn base_elements_of_equal_weights_are_one_class() {
        let year = vec![(0, 1.0), (1, 1.0), (2, 1.0), (3, -3.0)];
        let map = TargetMap::from_targets(5, &[year, vec![(1, 1.0)], vec![]]).unwrap();
        let classes = whole(&map, &all(&map));
        assert_eq!(classes.of_base, [1, 2, 1, 0, NO_CLASS]);
        assert_eq!((classes.count, classes.targets()), (3, 3));
        assert_eq!(entries(&classes, 0), [(0, -3), (1, 1), (2, 1)]);
        assert_eq!((entries(&classes, 1), entries(&classes, 2)), (vec![(2, 1)], vec![]));
        assert_eq!((classes.magnitude, classes.is_trivial(), classes.is_selection()), (3, false, false));
        let members = Classes::of(&map, Weighting::Members, true, &all(&map)).unwrap();
        assert_eq!((members.of_base, members.magnitude), (vec![0, 1, 0, 0, NO_CLASS], 1));
    }

    #[test]
    fn selections_and_single_totals_are_known() {
        let identity = whole(&TargetMap::identity(4), &[0b1111]);
        assert!(identity.is_selection() && !identity.is_trivial());
        assert_eq!(identity.selected(), [0, 1, 2, 3]);
        let total = TargetMap::from_targets(3, &[vec![(0, 1.0), (1, 1.0), (2, 1.0)]]).unwrap();
        let total = whole(&total, &[0b111]);
        assert!(total.is_trivial() && total.is_selection());
        let half = TargetMap::from_targets(1, &[vec![(0, 0.5)]]).unwrap();
        assert_eq!(Classes::of(&half, Weighting::Whole, true, &[1]), None);
        for weighting in [Weighting::Members, Weighting::DoubleMembers] {
            let members = Classes::of(&half, weighting, true, &[1]).unwrap();
            assert!(members.is_trivial() && members.is_selection());
        }
        let doubles = Classes::of(&half, Weighting::Doubles, true, &[1]).unwrap();
        assert!(doubles.is_trivial() && !doubles.is_selection());
        assert_eq!(entries(&doubles, 0), [(0, 0.5_f64.to_bits() as i64)]);
    }

    #[test]
    fn base_elements_without_facts_have_no_class() {
        let classes = whole(&TargetMap::identity(4), &[0b1010]);
        assert_eq!(classes.of_base, [NO_CLASS, 0, NO_CLASS, 1]);
        assert_eq!((classes.selected(), classes.is_selection(), classes.is_trivial()), (vec![1, 3], true, false));
        let one = whole(&TargetMap::identity(4), &[0b0100]);
        assert!(one.is_trivial() && one.selected() == [2]);
        let beyond = whole(&TargetMap::identity(2), &[0b1010]);
        assert_eq!(beyond.of_base, [NO_CLASS, 0, NO_CLASS, NO_CLASS]);
        assert!(!beyond.is_trivial());
    }

    #[test]
    fn weights_of_single_targets_are_left_to_the_pass() {
        let map = TargetMap::from_targets(4, &[vec![(0, 2.0), (1, 3.0)], vec![(3, -1.0)]]).unwrap();
        let classes = whole(&map, &all(&map));
        assert_eq!((classes.of_base.as_slice(), classes.count), (&[0, 0, NO_CLASS, 1][..], 2));
        assert_eq!((classes.weights_of_base.clone(), classes.magnitude), (Some(vec![2, 3, 1, -1]), 3));
        assert!(classes.is_selection() && !classes.is_trivial());
        let unfolded = Classes::of(&map, Weighting::Whole, false, &all(&map)).unwrap();
        assert_eq!((unfolded.weights_of_base.clone(), unfolded.count, unfolded.is_selection()), (None, 3, false));
        // One weight a target merges no classes: the matrix has it.
        let map = TargetMap::from_targets(2, &[vec![(0, 2.0), (1, 2.0)]]).unwrap();
        let classes = whole(&map, &all(&map));
        assert_eq!((classes.weights_of_base.clone(), classes.is_trivial()), (None, true));
        assert_eq!((entries(&classes, 0), classes.is_selection()), (vec![(0, 2)], false));
    }
}
