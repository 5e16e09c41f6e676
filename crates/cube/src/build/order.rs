//! Order of a refreshed dimension's new elements: of values that ascend, each stands before the next greater one.

use std::collections::{HashMap, HashSet};

use super::BuildError;
use crate::model::{Dimension, ElementId};

/// Puts elements with numbers from `first_new` on into the order of ascending sequences: before the next element of
/// the sequence that was there, if there is one. Children of a parent follow.
pub(super) fn in_order(
    mut dimension: Dimension,
    sequences: &[Vec<ElementId>],
    first_new: usize,
) -> Result<Dimension, BuildError> {
    let is_new = |id: ElementId| id.index() >= first_new;
    let mut before: HashMap<ElementId, Vec<ElementId>> = HashMap::new();
    let mut moved: HashSet<ElementId> = HashSet::new();
    for sequence in sequences {
        let mut next = None;
        for id in sequence.iter().rev() {
            match next {
                _ if !is_new(*id) => next = Some(*id),
                Some(next) if moved.insert(*id) => before.entry(next).or_default().push(*id),
                _ => {}
            }
        }
    }
    if moved.is_empty() {
        return Ok(dimension);
    }
    let mut order = Vec::with_capacity(dimension.elements().len());
    for id in dimension.elements().iter().filter(|id| !moved.contains(*id)) {
        order.extend(before.remove(id).unwrap_or_default().into_iter().rev());
        order.push(*id);
    }
    dimension.reorder(&order)?;
    let parents: HashSet<ElementId> = moved.iter().flat_map(|id| dimension.element(*id).parents().to_vec()).collect();
    dimension.sort_children(parents)?;
    Ok(dimension)
}

/// The elements of each level on the way to base elements, in their order.
pub(super) fn by_level(dimension: &Dimension, bases: &[Option<ElementId>]) -> Vec<Vec<ElementId>> {
    let mut sequences: Vec<Vec<ElementId>> = Vec::new();
    for base in bases {
        let mut next = *base;
        while let Some(member) = next.and_then(|id| dimension.element(id).member()) {
            let level = usize::from(member.level);
            sequences.resize_with(sequences.len().max(level + 1), Vec::new);
            if sequences[level].last() != next.as_ref() {
                sequences[level].extend(next);
            }
            next = member.parent;
        }
    }
    sequences
}
