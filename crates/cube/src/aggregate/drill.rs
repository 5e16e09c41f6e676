//! Drill-through: the base cells below one target, with their weights.

use super::area::Area;
use super::target::{Search, lists};
use super::{AggregateError, Progress};
use crate::facts::{Facts, Precise};

/// A filled base cell below a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaseCell {
    /// The cell's place in the facts ([`Facts::at`]).
    pub cell: usize,
    /// Product of its weights over all dimensions.
    pub weight: f64,
}

/// The filled base cells below one target of an area under the maps of a measure, in the order of keys: `count` of them
/// after the first `skip`. A cell counts if it has a value of the measure.
///
/// # Errors
/// An area of another cube, a target beyond the area, a wish to stop.
///
/// # Panics
/// If the facts have no such measure.
pub fn drill_through(
    facts: &Facts,
    area: &Area,
    measure: usize,
    target: &[u32],
    skip: usize,
    count: usize,
    progress: &Progress,
) -> Result<Vec<BaseCell>, AggregateError> {
    area.check(facts, u64::MAX)?;
    let shape = area.shape();
    if target.len() != shape.len() || target.iter().zip(&shape).any(|(one, size)| one >= size) {
        return Err(AggregateError::Shape { reason: format!("target {target:?} lies outside of {shape:?}") });
    }
    let lists = lists(&area.maps_of(measure));
    // Cells before those that are asked for may lie in any segment.
    let most = skip.saturating_add(count);
    let mut cells = Vec::new();
    for (start, segment) in facts.placed() {
        let (column, before) = (&segment.columns()[measure], cells.len());
        Search::new(segment, &lists).visit(target, progress, |cell, entries| {
            if column.is_filled(cell) && cells.len() - before < most {
                let weights = entries.iter().zip(&lists).map(|(&entry, list)| list.weights[entry]);
                let weight = weights.fold(Precise::from_f64(1.0), Precise::times).to_f64();
                cells.push(BaseCell { cell: start + cell, weight });
            }
            cells.len() - before < most
        })?;
    }
    if facts.segments().len() > 1 {
        cells.sort_by_key(|cell| facts.key(cell.cell));
    }
    Ok(cells.into_iter().skip(skip).take(count).collect())
}
