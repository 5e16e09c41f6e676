//! The oracle: every target from every row, in arithmetic of any precision.

use std::collections::BTreeMap;

use bigdecimal::{BigDecimal, FromPrimitive, ToPrimitive, Zero};
use warpcube_cube::aggregate::{Area, TargetMap};
use warpcube_cube::facts::{FactMeasure, Rule, ValueType};

use crate::random::{Case, Row, measures};

/// An exact value: the number, and the sum of the magnitudes of its terms.
#[derive(Debug, Clone)]
pub struct Exact {
    pub value: BigDecimal,
    pub magnitude: BigDecimal,
}

/// Exact values of one measure by target; empty targets are absent.
pub type Expected = BTreeMap<Vec<u32>, Exact>;

/// The exact value of a double.
pub fn exact(value: f64) -> BigDecimal {
    BigDecimal::from_f64(value).expect("finite")
}

/// The rows of every base cell that have a value, as exact numbers in units of the last digit.
fn base_cells(rows: &[Row], measure: &FactMeasure) -> BTreeMap<Vec<u32>, Vec<BigDecimal>> {
    let mut cells: BTreeMap<Vec<u32>, Vec<BigDecimal>> = BTreeMap::new();
    for row in rows {
        let value = match measure.value_type {
            ValueType::Decimal { .. } => row.decimal.map(BigDecimal::from),
            ValueType::Double => row.double.map(exact),
        };
        if let Some(value) = value {
            cells.entry(row.cell.clone()).or_default().push(value);
        }
    }
    cells
}

/// The value of a base cell: doubles that a cell holds are rounded once.
fn base_value(values: &[BigDecimal], value_type: ValueType) -> BigDecimal {
    let sum: BigDecimal = values.iter().sum();
    match value_type {
        ValueType::Decimal { .. } => sum,
        ValueType::Double => exact(sum.to_f64().expect("finite")),
    }
}

/// Every filled target of one measure.
pub fn expected(case: &Case, area: &Area, number: usize) -> Expected {
    let measure = &measures()[number];
    let maps = area.maps_of(number);
    let mut below: BTreeMap<Vec<u32>, Vec<(Vec<BigDecimal>, BigDecimal)>> = BTreeMap::new();
    for (cell, values) in base_cells(&case.rows, measure) {
        for (target, weight) in targets(&cell, &maps) {
            below.entry(target).or_default().push((values.clone(), weight));
        }
    }
    let value = |(target, cells): (Vec<u32>, Vec<_>)| (target, aggregate(measure, &cells));
    below.into_iter().map(value).collect()
}

/// The targets of a base cell with their weights.
fn targets(cell: &[u32], maps: &[&TargetMap]) -> Vec<(Vec<u32>, BigDecimal)> {
    let mut tuples = vec![(Vec::new(), BigDecimal::from(1))];
    for (map, &base) in maps.iter().zip(cell) {
        let (targets, weights) = map.targets_of(base);
        let extended = |(tuple, weight): &(Vec<u32>, BigDecimal)| {
            let with = |(&target, &more): (&u32, &f64)| ([tuple.as_slice(), &[target]].concat(), weight * exact(more));
            targets.iter().zip(weights).map(with).collect::<Vec<_>>()
        };
        tuples = tuples.iter().flat_map(extended).collect();
    }
    tuples
}

fn aggregate(measure: &FactMeasure, cells: &[(Vec<BigDecimal>, BigDecimal)]) -> Exact {
    let base = |values: &[BigDecimal]| base_value(values, measure.value_type);
    let rows: Vec<&BigDecimal> = cells.iter().flat_map(|cell| &cell.0).collect();
    let plain: BigDecimal = cells.iter().map(|cell| base(&cell.0)).sum();
    let magnitude = |terms: &mut dyn Iterator<Item = BigDecimal>| terms.map(|term| term.abs()).sum::<BigDecimal>();
    match measure.rule {
        Rule::Sum => {
            let terms: Vec<BigDecimal> = cells.iter().map(|(values, weight)| base(values) * weight).collect();
            Exact { value: terms.iter().sum(), magnitude: magnitude(&mut terms.into_iter()) }
        }
        Rule::Count => {
            let value = BigDecimal::from(rows.len() as u64);
            Exact { magnitude: value.clone(), value }
        }
        Rule::Avg => {
            let scale = if measure.value_type == ValueType::Double { 1 } else { 100 };
            let divisor = BigDecimal::from(rows.len() as u64 * scale);
            let magnitude = magnitude(&mut cells.iter().map(|cell| base(&cell.0))) / &divisor;
            Exact { value: plain / divisor, magnitude }
        }
        Rule::Min | Rule::Max => {
            let extreme = if measure.rule == Rule::Min { rows.into_iter().min() } else { rows.into_iter().max() };
            let value = extreme.cloned().unwrap_or_else(BigDecimal::zero);
            Exact { magnitude: value.abs(), value }
        }
    }
}
