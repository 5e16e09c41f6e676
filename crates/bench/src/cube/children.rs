//! Child kernels of a query, counted from its facts (the thesis's table 5.7).
//!
//! A parent has [`PARENT_CELLS`] relevant cells and a child of a thread a target. A child has as many blocks as its
//! targets fill, or one block that walks over them as often. Parents come in batches of [`BATCH_PARENTS`].

use std::ops::Range;

use rayon::prelude::*;
use warpcube_cube::aggregate::TargetMap;
use warpcube_cube::device::{BATCH_PARENTS, CHILD_THREADS, PARENT_CELLS};
use warpcube_cube::facts::Facts;

/// Facts that a thread counts at a time, and pieces of them whose counts are held together.
const PIECE_FACTS: usize = 1 << 16;
const PIECES: usize = 256;

/// Child kernels of one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Children {
    /// Child kernels: parents with relevant cells.
    pub(super) kernels: u64,
    /// Blocks of children that have as many as their targets fill.
    pub(super) blocks: u64,
    /// Batches of parents.
    pub(super) batches: u64,
}

impl Children {
    /// Counts the children over the first measure of facts; `maps` has the targets of each dimension.
    pub(super) fn of(facts: &Facts, maps: &[TargetMap]) -> Children {
        let lengths = |map: &TargetMap| (0..map.bases()).map(|base| map.targets_of(base).0.len() as u64).collect();
        let lengths: Vec<Vec<u64>> = maps.iter().map(lengths).collect();
        let parents = (facts.len() as u64).div_ceil(PARENT_CELLS.into());
        let mut children = Children { kernels: 0, blocks: 0, batches: parents.div_ceil(BATCH_PARENTS) };
        let (mut cells, mut targets) = (0, 0);
        let starts: Vec<usize> = (0..facts.len()).step_by(PIECE_FACTS).collect();
        for starts in starts.chunks(PIECES) {
            let piece = |from: &usize| counts(facts, &lengths, *from..(from + PIECE_FACTS).min(facts.len()));
            let pieces: Vec<Vec<u64>> = starts.par_iter().map(piece).collect();
            for count in pieces.into_iter().flatten() {
                (cells, targets) = (cells + 1, targets + count);
                if cells == PARENT_CELLS {
                    children.add(targets);
                    (cells, targets) = (0, 0);
                }
            }
        }
        if cells > 0 {
            children.add(targets);
        }
        children
    }

    /// Adds a child of so many targets.
    fn add(&mut self, targets: u64) {
        self.kernels += 1;
        self.blocks += targets.div_ceil(CHILD_THREADS.into());
    }
}

/// Targets of each relevant fact of a range, in order.
fn counts(facts: &Facts, lengths: &[Vec<u64>], range: Range<usize>) -> Vec<u64> {
    let mut products = vec![1; range.len()];
    let mut coordinates = vec![0; range.len()];
    for (dimension, lengths) in lengths.iter().enumerate() {
        facts.base().keys().coordinates(facts.layout(), range.clone(), dimension, &mut coordinates);
        for (product, base) in products.iter_mut().zip(&coordinates) {
            *product *= lengths[*base as usize];
        }
    }
    let measure = &facts.base().columns()[0];
    let filled = range.zip(products).filter(|(fact, _)| measure.is_filled(*fact));
    filled.map(|(_, count)| count).filter(|count| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{BenchCube, Definition, Draw};
    use super::*;

    #[test]
    fn children_are_those_of_cells_taken_one_by_one() {
        for definition in Definition::all().unwrap() {
            let cube = BenchCube::new(definition).unwrap();
            let facts = Draw::new(&cube, Some(200_000)).unwrap().facts().unwrap();
            assert!(facts.len() > 2 * PIECE_FACTS, "facts of several pieces");
            for (name, query) in &cube.definition.queries {
                let area = cube.area(query).unwrap();
                let targets = |fact: usize| {
                    let cell = facts.cell(fact);
                    let lists = cell.iter().zip(area.maps()).map(|(base, map)| map.targets_of(*base).0.len());
                    lists.product::<usize>()
                };
                let relevant: Vec<usize> = (0..facts.len()).map(targets).filter(|targets| *targets > 0).collect();
                let each = relevant.chunks(768).map(|cells| cells.iter().sum::<usize>().div_ceil(1024));
                let blocks: Vec<usize> = each.collect();
                let found = Children::of(&facts, area.maps());
                let expected = (blocks.len() as u64, blocks.iter().sum::<usize>() as u64);
                assert_eq!((found.kernels, found.blocks), expected, "{name}");
                assert_eq!(found.batches, 1, "{name}");
            }
        }
    }
}
