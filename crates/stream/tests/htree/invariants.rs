//! What holds of every tree.

use std::ops::Range;

use warpcube_stream::{Measure, Tree};

use crate::model::MEASURES;

/// Checks the arrays of a tree against each other.
pub fn check(tree: &Tree, depth: usize) {
    assert_eq!(tree.levels.len(), depth + 1);
    let is_empty = tree.leaves() == 0;
    assert_eq!(tree.levels[0].keys.len(), usize::from(!is_empty), "one root, or none of an empty tree");
    for (number, level) in tree.levels.iter().enumerate() {
        let nodes = level.keys.len();
        let columns = [&level.parents, &level.leftmost_children, &level.child_counts, &level.side_links];
        assert!(columns.iter().all(|column| column.len() == nodes), "level {number}");
        assert!(level.measures.len() == MEASURES.len() && level.measures.iter().all(|one| one.len() == nodes));
        // Paths ascend: parents do, and keys below one parent.
        let paths: Vec<(u32, u32)> = level.parents.iter().copied().zip(level.keys.iter().copied()).collect();
        assert!(paths.windows(2).all(|pair| pair[0] < pair[1]), "level {number}");
        let children = |node: usize| -> Range<usize> {
            let first = level.leftmost_children[node] as usize;
            first..first + level.child_counts[node] as usize
        };
        if let Some(below) = tree.levels.get(number + 1) {
            let mut next = 0;
            for node in 0..nodes {
                let own = children(node);
                assert!(own.start == next && !own.is_empty(), "level {number}: children follow each other");
                next = own.end;
                assert!(below.parents[own.clone()].iter().all(|parent| *parent as usize == node));
                for (at, measure) in MEASURES.iter().enumerate() {
                    let states = || below.measures[at][own.clone()].iter().copied();
                    let expected = match measure {
                        Measure::Sum(_) | Measure::Count => states().sum(),
                        Measure::Min(_) => states().min().unwrap(),
                        Measure::Max(_) => states().max().unwrap(),
                    };
                    assert_eq!(level.measures[at][node], expected, "level {number}, measure {at}");
                }
            }
            assert_eq!(next, below.keys.len());
        } else {
            assert!(level.leftmost_children.iter().chain(&level.child_counts).all(|none| *none == 0));
        }
        check_header(level);
    }
}

/// Side links have every node once, by key and number; the header says where keys begin.
fn check_header(level: &warpcube_stream::Level) {
    let linked: Vec<(u32, u32)> = level.side_links.iter().map(|node| (level.keys[*node as usize], *node)).collect();
    let mut sorted: Vec<(u32, u32)> = level.keys.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    assert_eq!(linked, sorted);
    let runs: Vec<(u32, u32, u32)> = {
        let mut first = 0;
        let of_run = |run: &[(u32, u32)]| {
            let entry = (run[0].0, first, run.len() as u32);
            first += run.len() as u32;
            entry
        };
        sorted.chunk_by(|one, other| one.0 == other.0).map(of_run).collect()
    };
    let header = &level.header;
    assert!(header.keys.len() == header.first.len() && header.keys.len() == header.counts.len());
    let entries = header.keys.iter().zip(&header.first).zip(&header.counts);
    assert_eq!(entries.map(|((key, first), count)| (*key, *first, *count)).collect::<Vec<_>>(), runs);
}
