//! Drill-through, nearest cells, counts of work.

use proptest::prelude::*;
use warpcube_cube::aggregate::{AggregateError, Progress, drill_through, nearest, work};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, Rule, ValueType};

use crate::random::{BALANCED, any_weight, cases, whole_weight};

/// True if a place has a value of a measure.
fn is_filled(facts: &Facts, measure: usize, place: usize) -> bool {
    let (segment, cell) = facts.at(place);
    segment.columns()[measure].is_filled(cell)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn drill_through_lists_the_cells_of_every_target(
        case in cases(any_weight()),
        measure in 0..BALANCED,
        skip in 0..4_usize,
        count in 0..6_usize,
    ) {
        let (facts, maps, area) = (case.facts(), case.maps(), case.area());
        let targets_of = |cell: usize| {
            let lengths = maps.iter().zip(facts.cell(cell)).map(|(map, base)| map.targets_of(base).0.len());
            lengths.product::<usize>() as u64
        };
        let drill = |target: &[u32], skip, count| {
            drill_through(&facts, &area, measure, target, skip, count, &Progress::new()).unwrap()
        };
        let mut listed = 0;
        for rank in 0..area.targets() as u64 {
            let target = tuple(&area.shape(), rank);
            let cells = drill(&target, 0, usize::MAX);
            listed += cells.len() as u64;
            prop_assert!(cells.is_sorted_by(|one, other| one.cell < other.cell));
            for base_cell in &cells {
                prop_assert!(is_filled(&facts, measure, base_cell.cell));
                let bases = facts.cell(base_cell.cell).into_iter().zip(&maps).zip(&target);
                let weights = bases.map(|((base, map), target)| {
                    let (targets, weights) = map.targets_of(base);
                    weights[targets.binary_search(target).unwrap()]
                });
                let weight: f64 = weights.product();
                prop_assert!((base_cell.weight - weight).abs() <= 1e-12 * weight.abs());
            }
            let expected: Vec<_> = cells.into_iter().skip(skip).take(count).collect();
            prop_assert_eq!(drill(&target, skip, count), expected);
        }
        let counted = work(&facts, &maps);
        let filled = (0..facts.len()).filter(|&cell| is_filled(&facts, measure, cell));
        prop_assert_eq!(listed, filled.map(targets_of).sum::<u64>());
        prop_assert_eq!(counted.additions, (0..facts.len()).map(targets_of).sum::<u64>());
        let relevant = (0..facts.len()).filter(|&cell| targets_of(cell) > 0).count();
        prop_assert_eq!(counted.relevant_cells, relevant as u64);
    }

    #[test]
    fn nearest_cells_are_those_of_a_full_sort(
        case in cases(whole_weight()),
        point in prop::collection::vec(0..12_u32, 6),
        count in 0..20_usize,
        measure in 0..BALANCED,
        reversed in prop::collection::vec(any::<bool>(), 6),
    ) {
        let facts = case.facts();
        let tables: Vec<Vec<u32>> = (0..case.sizes.len()).map(|dimension| case.positions(dimension)).collect();
        let positions: Vec<Option<&[u32]>> =
            tables.iter().zip(&reversed).map(|(table, reversed)| reversed.then_some(table.as_slice())).collect();
        let point = &point[..case.sizes.len()];
        let distance = |cell: usize| -> u64 {
            let at = facts.cell(cell).into_iter().zip(&positions);
            let at = at.map(|(base, positions)| positions.map_or(base, |positions| positions[base as usize]));
            at.zip(point).map(|(at, &wanted)| u64::from(at.abs_diff(wanted))).sum()
        };
        let filled = (0..facts.len()).filter(|&cell| is_filled(&facts, measure, cell));
        let mut expected: Vec<(u64, usize)> = filled.map(|cell| (distance(cell), cell)).collect();
        expected.sort_unstable();
        expected.truncate(count);
        let found = nearest(&facts, measure, &positions, point, count, &Progress::new()).unwrap();
        prop_assert_eq!(found.iter().map(|found| (found.distance, found.cell)).collect::<Vec<_>>(), expected);
    }
}

fn tuple(shape: &[u32], mut rank: u64) -> Vec<u32> {
    let mut tuple: Vec<u32> = Vec::new();
    for &size in shape.iter().rev() {
        tuple.insert(0, (rank % u64::from(size)) as u32);
        rank /= u64::from(size);
    }
    tuple
}

#[test]
fn bad_points_and_targets_are_refused() {
    let case = crate::random::Case {
        sizes: vec![3],
        spare_bits: 0,
        rows: vec![crate::random::Row { cell: vec![2], decimal: Some(1), double: None }],
        targets: vec![vec![vec![(2, 1.0)]]],
        balance: None,
        page_cells: 4,
    };
    let (facts, area) = (case.facts(), case.area());
    for target in [&[1][..], &[], &[0, 0]] {
        let error = drill_through(&facts, &area, 0, target, 0, 9, &Progress::new());
        assert!(matches!(error, Err(AggregateError::Shape { .. })), "{target:?}");
    }
    assert!(nearest(&facts, 0, &[None], &[0, 0], 1, &Progress::new()).is_err());
    let short = nearest(&facts, 0, &[Some(&[0, 1])], &[0], 1, &Progress::new()).unwrap_err();
    let expected = "the area does not fit the cube: base element 2 of dimension 0 has no position";
    assert_eq!(short.to_string(), expected);
    let stopped = Progress::new();
    stopped.cancel();
    assert_eq!(nearest(&facts, 0, &[None], &[0], 1, &stopped), Err(AggregateError::Cancelled));
    assert_eq!(drill_through(&facts, &area, 0, &[0], 0, 9, &stopped), Err(AggregateError::Cancelled));
}

/// Base elements in another order than their positions, too.
#[test]
fn pages_that_are_too_far_away_are_not_visited() {
    let layout = KeyLayout::for_sizes(&[1000, 10]).unwrap();
    let mut loader = Loader::new(layout, vec![FactMeasure::new("v", Rule::Sum, ValueType::Double)]);
    let cells: Vec<(u32, u32)> = (0..1000).flat_map(|one| (0..10).map(move |other| (one, other))).collect();
    let (ones, others): (Vec<u32>, Vec<u32>) = cells.into_iter().unzip();
    let values = vec![1.0; ones.len()];
    loader.append(&[&ones, &others], &[InputColumn { values: InputValues::Doubles(&values), filled: None }]).unwrap();
    let facts = loader.finish(10).unwrap();
    let reversed: Vec<u32> = (0..1000).rev().collect();
    for (positions, expected) in [(None, 700), (Some(reversed.as_slice()), 299)] {
        let progress = Progress::new();
        let found = nearest(&facts, 0, &[positions, None], &[700, 4], 5, &progress).unwrap();
        let near: Vec<Vec<u32>> = found.iter().map(|near| facts.cell(near.cell)).collect();
        let distances: Vec<u64> = found.iter().map(|near| near.distance).collect();
        assert_eq!((near[0].as_slice(), distances), (&[expected, 4][..], vec![0, 1, 1, 1, 1]));
        assert!(progress.done() < 100, "{} of {} pages", progress.done(), progress.total());
    }
}
