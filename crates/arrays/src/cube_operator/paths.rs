//! The paths of the lattice of cuboids: fewest chains, each of which is a chain of prefixes.
//!
//! Source: algorithm 7 of Wang, *Sparse Array Representations … on GPUs*, section 4.5.1, after Ross and Srivastava,
//! *Fast Computation of Sparse Datacubes* (VLDB 1997): the symmetric chain decomposition of the subsets of k
//! dimensions. No path has two cuboids of one length and ⌈k / 2⌉ of the dimensions are chosen in C(k, ⌈k / 2⌉) ways, so
//! fewer paths do not reach all cuboids. The order of a path's dimensions puts those of its shortest cuboid first and
//! each further one behind them, so that rows in that order have the groups of every cuboid of the path side by side.
//!
//! Paths ascend by their orders, so that neighbours share prefixes. Of A, B, C, D:
//!
//! ```text
//! A·B·C·D → A·B·C → A·B → A → all      C·A·D → C·A → C
//! B·C·D   → B·C   → B                  C·D
//! B·D                                  D·A·B → D·A → D
//! ```

use std::ops::RangeInclusive;

/// Dimensions of a cuboid, a bit each.
pub(crate) type Mask = u32;

/// Cuboids that are prefixes of one order of dimensions, one of every length of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Dimensions of the longest cuboid.
    pub order: Vec<usize>,
    /// Dimensions of the shortest cuboid; 0 if the path ends with the grand total.
    pub shortest: usize,
}

impl Path {
    /// Lengths of the cuboids.
    pub fn lengths(&self) -> RangeInclusive<usize> {
        self.shortest..=self.order.len()
    }
}

/// The C(k, ⌈k / 2⌉) paths that have each subset of k dimensions once. The first one has the order of `dimensions`,
/// which are different numbers below 32.
pub fn paths(dimensions: &[usize]) -> Vec<Path> {
    // Chains of masks, the longest cuboid first.
    let mut chains: Vec<Vec<Mask>> = vec![vec![0]];
    for dimension in dimensions.iter().rev() {
        let bit = 1 << dimension;
        let mut next = Vec::with_capacity(2 * chains.len());
        for mut chain in chains {
            let mut with: Vec<Mask> = chain.iter().map(|mask| mask | bit).collect();
            with.extend(chain.pop());
            next.push(with);
            if !chain.is_empty() {
                next.push(chain);
            }
        }
        chains = next;
    }
    let place = |dimension: &usize| dimensions.iter().position(|other| other == dimension);
    let mut paths: Vec<Path> = chains.iter().map(|chain| in_order(dimensions, chain)).collect();
    paths.sort_by_cached_key(|path| path.order.iter().map(place).collect::<Vec<_>>());
    paths
}

/// The path of a chain.
fn in_order(dimensions: &[usize], chain: &[Mask]) -> Path {
    let mut order: Vec<usize> = Vec::with_capacity(dimensions.len());
    for mask in chain.iter().rev() {
        let added = dimensions.iter().filter(|dimension| mask & !mask_of(&order) & 1 << **dimension != 0);
        let added: Vec<usize> = added.copied().collect();
        order.extend(added);
    }
    Path { shortest: order.len() + 1 - chain.len(), order }
}

/// The mask of some dimensions.
pub(crate) fn mask_of(dimensions: &[usize]) -> Mask {
    dimensions.iter().fold(0, |mask, dimension| mask | 1 << dimension)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn binomial(n: u64, k: u64) -> u64 {
        (0..k).fold(1, |product, at| product * (n - at) / (at + 1))
    }

    #[test]
    fn the_fewest_paths_have_every_cuboid_once() {
        for k in 0..=16usize {
            let dimensions: Vec<usize> = (0..k).collect();
            let paths = paths(&dimensions);
            assert_eq!(paths.len() as u64, binomial(k as u64, k.div_ceil(2) as u64), "{k} dimensions");
            let mut seen = HashSet::new();
            for path in &paths {
                for length in path.lengths() {
                    let cuboid = mask_of(&path.order[..length]);
                    assert_eq!(cuboid.count_ones() as usize, length, "{path:?} repeats a dimension");
                    assert!(seen.insert(cuboid), "{path:?} has a cuboid of another path");
                }
            }
            assert_eq!(seen.len(), 1 << k);
            assert_eq!((&paths[0].order, paths[0].shortest), (&dimensions, 0));
            assert!(paths.is_sorted_by(|one, other| one.order < other.order));
        }
    }

    #[test]
    fn the_paths_of_the_thesis() {
        // G(4) of section 4.5.1 has these sets; the order within a path is ours where the shortest cuboid leaves it
        // open.
        let found: Vec<(Vec<usize>, usize)> =
            paths(&[0, 1, 2, 3]).into_iter().map(|path| (path.order, path.shortest)).collect();
        let expected = [
            (vec![0, 1, 2, 3], 0),
            (vec![1, 2, 3], 1),
            (vec![1, 3], 2),
            (vec![2, 0, 3], 1),
            (vec![2, 3], 2),
            (vec![3, 0, 1], 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn dimensions_may_be_any_numbers_in_any_order() {
        let found = paths(&[31, 4]);
        assert_eq!((&found[0].order, &found[1].order), (&vec![31, 4], &vec![4]));
    }
}
