//! How near the cells of two algorithms have to be.

use std::sync::Arc;

use proptest::prelude::*;
use warpcube_cube::aggregate::{
    Algorithm, Area, CellColumn, CellValue, Cells, Progress, Request, TargetMap, aggregate,
};
use warpcube_cube::answer::{Cube, TableAnswer};
use warpcube_cube::facts::{FactColumn, Facts, Values};

/// Checks cells against those of the single-threaded source-based algorithm: decimals under whole weights, counts and
/// extremes to the bit; decimals under other weights within one last digit; doubles within 10^-12 of the sum of
/// magnitudes |w·v|.
pub fn check_cells(
    cube: &Cube,
    expected: &TableAnswer,
    found: &TableAnswer,
    is_whole: bool,
    name: &str,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.cells.ranks(), expected.cells.ranks(), "{}", name);
    let mut magnitudes: Option<Cells> = None;
    for (number, (found, wanted)) in found.cells.columns().iter().zip(expected.cells.columns()).enumerate() {
        let is_exact = found.values == wanted.values && found.filled == wanted.filled;
        if is_exact {
            continue;
        }
        prop_assert_eq!(&found.filled, &wanted.filled, "{} {}", name, found.name);
        let magnitudes = magnitudes.get_or_insert_with(|| magnitudes_of(cube, expected));
        check_column(found, wanted, &magnitudes.columns()[number], is_whole, name)?;
    }
    Ok(())
}

fn check_column(
    found: &CellColumn,
    expected: &CellColumn,
    magnitudes: &CellColumn,
    is_whole: bool,
    name: &str,
) -> Result<(), TestCaseError> {
    for cell in 0..found.values.len() {
        match (found.value(cell), expected.value(cell)) {
            (Some(CellValue::Decimal { units, .. }), Some(CellValue::Decimal { units: expected, .. })) => {
                let least = if is_whole { 0 } else { 1 };
                prop_assert!(units.abs_diff(expected) <= least, "{name} {}: {units} {expected}", found.name);
            }
            (Some(CellValue::Double(found_value)), Some(CellValue::Double(expected))) => {
                let magnitude = magnitudes.value(cell).map_or(0.0, CellValue::to_f64);
                let is_near = (found_value - expected).abs() <= 1e-12 * magnitude;
                prop_assert!(is_near, "{name} {}: {found_value} {expected} of {magnitude}", found.name);
            }
            (found_value, expected) => prop_assert_eq!(found_value, expected, "{} {}", name, found.name),
        }
    }
    Ok(())
}

/// The same cells of magnitudes of values under magnitudes of weights.
fn magnitudes_of(cube: &Cube, answer: &TableAnswer) -> Cells {
    let column = |column: &FactColumn| {
        let values = match &column.values {
            Values::Decimals(values) => Values::Decimals(values.iter().map(|value| value.abs()).collect()),
            Values::Doubles(values) => Values::Doubles(values.iter().map(|value| value.abs()).collect()),
        };
        FactColumn { values, ..column.clone() }
    };
    let facts = &cube.facts;
    let columns = facts.base().columns().iter().map(column).collect();
    let rows = facts.base().row_counts().map(<[u64]>::to_vec);
    let of_magnitudes =
        Facts::from_parts(facts.layout().clone(), facts.base().keys().clone(), columns, rows, 64).unwrap();
    let map = |map: &TargetMap| {
        let mut lists = map.lists();
        lists.iter_mut().flatten().for_each(|entry| entry.1 = entry.1.abs());
        TargetMap::from_targets(map.bases(), &lists).unwrap()
    };
    let asked = &answer.asked;
    let mut area = Area::new(asked.area.maps().iter().map(map).collect());
    for &measure in &asked.measures {
        for (dimension, own) in asked.area.maps_of(measure).into_iter().enumerate() {
            area = area.with_measure_map(measure, dimension, map(own)).unwrap();
        }
    }
    let request = Request::by(Algorithm::Source);
    aggregate(&Arc::new(of_magnitudes), &area, &asked.measures, &request, &Progress::new()).unwrap()
}
