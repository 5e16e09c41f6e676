//! The filled base cells nearest to a point.

use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::{AggregateError, Progress};
use crate::facts::Facts;

/// A filled base cell near a point; neighbours order by distance, then by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Sum over dimensions of the difference of positions (L1).
    pub distance: u64,
    /// The cell's place in the facts.
    pub cell: usize,
}

/// The `count` base cells filled in a measure that are nearest to `point`, nearest first, cells of one distance in the
/// order of keys.
///
/// `positions[d][b]` is the position of base element `b` of dimension `d`; absent where base elements stand in their
/// order. `point` holds one position a dimension. A page is skipped if the dimensions without positions prove it too
/// far away.
///
/// # Errors
/// Another number of dimensions than the facts have, a coordinate without position, a wish to stop.
///
/// # Panics
/// If the facts have no such measure.
pub fn nearest(
    facts: &Facts,
    measure: usize,
    positions: &[Option<&[u32]>],
    point: &[u32],
    count: usize,
    progress: &Progress,
) -> Result<Vec<Neighbour>, AggregateError> {
    check(facts, positions, point)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let pages = facts.pages().len();
    progress.expect(pages as u64);
    let parts = (0..pages).into_par_iter().try_fold(BinaryHeap::new, |mut found: BinaryHeap<Neighbour>, page| {
        progress.step()?;
        let farthest = if found.len() < count { u64::MAX } else { found.peek().map_or(0, |last| last.distance) };
        if page_distance(facts, positions, point, page) <= farthest {
            nearest_of_page(facts, measure, positions, point, page, count, &mut found);
        }
        Ok(found)
    });
    let parts: Vec<BinaryHeap<Neighbour>> = parts.collect::<Result<_, AggregateError>>()?;
    let mut all: Vec<Neighbour> = parts.into_iter().flatten().collect();
    all.sort_unstable();
    all.truncate(count);
    Ok(all)
}

fn check(facts: &Facts, positions: &[Option<&[u32]>], point: &[u32]) -> Result<(), AggregateError> {
    let dimensions = facts.layout().dimensions();
    if positions.len() != dimensions || point.len() != dimensions {
        let reason = format!(
            "the cube has {dimensions} dimensions, the point has {}, positions have {}",
            point.len(),
            positions.len()
        );
        return Err(AggregateError::Shape { reason });
    }
    for (dimension, positions) in positions.iter().enumerate() {
        let most = facts.pages().coordinate_max(dimension);
        if let (Some(positions), Some(most)) = (positions, most)
            && positions.len() <= most as usize
        {
            let reason = format!("base element {most} of dimension {dimension} has no position");
            return Err(AggregateError::Shape { reason });
        }
    }
    Ok(())
}

/// A lower bound of the distance of a page's cells.
fn page_distance(facts: &Facts, positions: &[Option<&[u32]>], point: &[u32], page: usize) -> u64 {
    let bounds = facts.pages().bounds(page).iter().zip(positions).zip(point);
    bounds
        .map(|((&(least, greatest), positions), &at)| match positions {
            None => u64::from(least.saturating_sub(at).max(at.saturating_sub(greatest))),
            Some(_) => 0,
        })
        .sum()
}

fn nearest_of_page(
    facts: &Facts,
    measure: usize,
    positions: &[Option<&[u32]>],
    point: &[u32],
    page: usize,
    count: usize,
    found: &mut BinaryHeap<Neighbour>,
) {
    let cells = facts.pages().cells(page);
    let mut distances = vec![0_u64; cells.len()];
    let mut coordinates = vec![0; cells.len()];
    for (dimension, (positions, &at)) in positions.iter().zip(point).enumerate() {
        facts.coordinates(cells.clone(), dimension, &mut coordinates);
        for (distance, &base) in distances.iter_mut().zip(&coordinates) {
            let position = positions.map_or(base, |positions| positions[base as usize]);
            *distance += u64::from(position.abs_diff(at));
        }
    }
    let column = &facts.columns()[measure];
    for (cell, distance) in cells.zip(distances).filter(|(cell, _)| column.is_filled(*cell)) {
        let neighbour = Neighbour { distance, cell };
        if found.len() < count {
            found.push(neighbour);
        } else if let Some(mut last) = found.peek_mut()
            && neighbour < *last
        {
            *last = neighbour;
        }
    }
}
