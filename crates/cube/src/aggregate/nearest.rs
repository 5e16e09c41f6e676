//! The filled base cells nearest to a point.

use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::{AggregateError, Progress};
use crate::facts::{Facts, Segment};

/// A filled base cell near a point; those of a segment order by distance, then by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Sum over dimensions of the difference of positions (L1).
    pub distance: u64,
    /// The cell's place in the facts ([`Facts::at`]).
    pub cell: usize,
}

/// The `count` base cells filled in a measure that are nearest to `point`, nearest first, cells of one distance in the
/// order of keys.
///
/// `positions[d][b]` is the position of base element `b` of dimension `d`; absent where base elements stand in their
/// order. `point` holds one position a dimension. Pages are visited by the least distance that their bounds allow,
/// until that is larger than the distances found: `progress` counts the visited ones.
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
    let axes: Vec<Axis> = positions.iter().zip(point).map(|(positions, at)| Axis::new(*positions, *at)).collect();
    let mut found = Vec::new();
    for (start, segment) in facts.placed() {
        let near = nearest_of(segment, measure, (positions, &axes), point, count, progress)?;
        found.extend(near.into_iter().map(|near| Neighbour { cell: start + near.cell, ..near }));
    }
    if facts.segments().len() > 1 {
        found.sort_by_key(|near| (near.distance, facts.key(near.cell)));
        found.truncate(count);
    }
    Ok(found)
}

/// The nearest cells of a segment.
fn nearest_of(
    facts: &Segment,
    measure: usize,
    (positions, axes): (&[Option<&[u32]>], &[Axis]),
    point: &[u32],
    count: usize,
    progress: &Progress,
) -> Result<Vec<Neighbour>, AggregateError> {
    let distance = |page: usize| {
        let bounds = facts.pages().bounds(page).iter().zip(axes);
        (bounds.map(|(&bounds, axis)| u64::from(axis.least(bounds))).sum::<u64>(), page)
    };
    let mut pages: Vec<(u64, usize)> = (0..facts.pages().len()).into_par_iter().map(distance).collect();
    pages.par_sort_unstable();
    progress.expect(pages.len() as u64);
    let (mut found, mut rest, mut round) = (Vec::new(), pages.as_slice(), rayon::current_num_threads());
    loop {
        // Cells of the farthest distance and a smaller key count before one that was found.
        let farthest = |found: &Vec<Neighbour>| found.last().filter(|_| found.len() == count).map(|last| last.distance);
        let farthest = farthest(&found).unwrap_or(u64::MAX);
        rest = &rest[..rest.partition_point(|(distance, _)| *distance <= farthest)];
        if rest.is_empty() {
            return Ok(found);
        }
        let (next, later) = rest.split_at(round.min(rest.len()));
        let parts = next.par_iter().try_fold(BinaryHeap::new, |mut found: BinaryHeap<Neighbour>, (_, page)| {
            progress.step()?;
            nearest_of_page(facts, measure, positions, point, *page, count, &mut found);
            Ok(found)
        });
        let parts: Vec<BinaryHeap<Neighbour>> = parts.collect::<Result<_, AggregateError>>()?;
        found.extend(parts.into_iter().flatten());
        found.sort_unstable();
        found.truncate(count);
        (rest, round) = (later, round * 2);
    }
}

/// Distances of base elements along a dimension.
enum Axis {
    /// Base elements stand in their order: the point's position.
    Ordered(u32),
    /// Least distances of base elements as a tree: the two children of place n are 2n and 2n + 1, leaves begin in the
    /// middle.
    Placed(Vec<u32>),
}

impl Axis {
    fn new(positions: Option<&[u32]>, at: u32) -> Axis {
        let Some(positions) = positions else { return Axis::Ordered(at) };
        let mut tree = vec![u32::MAX; 2 * positions.len()];
        for (base, position) in positions.iter().enumerate() {
            tree[positions.len() + base] = position.abs_diff(at);
        }
        for place in (1..positions.len()).rev() {
            tree[place] = tree[2 * place].min(tree[2 * place + 1]);
        }
        Axis::Placed(tree)
    }

    /// The least distance of the base elements from one coordinate to another.
    fn least(&self, (least, greatest): (u32, u32)) -> u32 {
        let tree = match self {
            Axis::Ordered(at) => return least.saturating_sub(*at).max(at.saturating_sub(greatest)),
            Axis::Placed(tree) => tree,
        };
        let (mut from, mut to) = (least as usize + tree.len() / 2, greatest as usize + 1 + tree.len() / 2);
        let mut distance = u32::MAX;
        while from < to {
            if from % 2 == 1 {
                distance = distance.min(tree[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                distance = distance.min(tree[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        distance
    }
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
        let most = facts.coordinate_max(dimension);
        if let (Some(positions), Some(most)) = (positions, most)
            && positions.len() <= most as usize
        {
            let reason = format!("base element {most} of dimension {dimension} has no position");
            return Err(AggregateError::Shape { reason });
        }
    }
    Ok(())
}

fn nearest_of_page(
    facts: &Segment,
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
