//! Doubles as they are shown: sums without the digits that their terms do not leave.
//!
//! A source's decimals are rounded to doubles, by 2⁻⁵³ of each at most, and so a sum of terms that cancel each other
//! keeps a rest. Digits below the 15th of the sum of the terms' magnitudes are such a rest.

use super::{Cube, CubeError};
use crate::aggregate::{Cells, Progress, magnitudes};
use crate::ask::Asked;
use crate::facts::{Facts, Rule, ValueType, Values};
use crate::model::settled;

/// The part of a double that is dropped.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rest {
    /// All digits that the terms do not leave.
    Digits,
    /// Values that are nothing else; other ones keep their bits.
    Values,
}

impl Rest {
    fn taken_from(self, value: f64, magnitude: f64) -> f64 {
        // The unit of the 15th digit is at most this share of a magnitude.
        if self == Rest::Values && value.abs() > magnitude * 1e-14 {
            return value;
        }
        let settled = settled(value, magnitude);
        if self == Rest::Values && settled != 0.0 { value } else { settled }
    }
}

/// The value of a place in a text for people: 0 where it is nothing but a rest of its rows.
pub(super) fn base_shown(facts: &Facts, measure: usize, cell: usize, value: f64) -> f64 {
    if !facts.has_cancelled(measure) {
        return value;
    }
    let rows = facts.count(measure, cell) as f64;
    Rest::Values.taken_from(value, value.abs() + facts.cancelled(measure, cell) / rows)
}

/// The cells of an area without a rest. Terms are added up only where a bound of their magnitudes would change a value.
pub(super) fn shown(cube: &Cube, asked: &Asked, cells: Cells, rest: Rest) -> Result<Cells, CubeError> {
    let mut shown = cells;
    for column in 0..shown.columns().len() {
        let measure = shown.columns()[column].measure;
        let stored = &cube.facts.measures()[measure];
        let Values::Doubles(values) = &shown.columns()[column].values else { continue };
        let cancelled = cube.facts.segments().iter().filter_map(|segment| segment.cancelled(measure)).flatten();
        let cancelled = cancelled.fold(0.0, |most: f64, one| most.max(*one));
        let most = cube.facts.magnitude(measure) + cancelled;
        let most = match stored.rule {
            _ if stored.value_type != ValueType::Double => continue,
            Rule::Sum => {
                let weights = asked.area.maps_of(measure).into_iter().map(|map| map.magnitude());
                weights.fold(most * cube.facts.len() as f64, |most, weight| most * weight)
            }
            Rule::Avg => most,
            Rule::Count | Rule::Min | Rule::Max => continue,
        };
        if values.iter().all(|value| rest.taken_from(*value, most.min(f64::MAX)) == *value) {
            continue;
        }
        let magnitudes = magnitudes(&cube.facts, &asked.area, measure, &Progress::new());
        let magnitudes = magnitudes.map_err(|error| CubeError::aggregate(error, &cube.model, asked))?;
        let mut magnitudes = magnitudes.into_iter().peekable();
        let settled = values.iter().zip(shown.ranks()).map(|(value, rank)| {
            let magnitude = magnitudes.next_if(|(of, _)| of == rank).map_or(0.0, |(_, magnitude)| magnitude);
            rest.taken_from(*value, magnitude)
        });
        let settled = settled.collect();
        shown = shown.with_doubles(column, settled);
    }
    Ok(shown)
}
