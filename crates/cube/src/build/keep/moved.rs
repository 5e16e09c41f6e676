//! Elements that lie below other parents than before a refresh.

use std::collections::{HashMap, HashSet};

use crate::build::report::MovedElement;
use crate::model::{Dimension, ElementId};

/// Parents of each element with their weights, by position of the parents.
type Parents = HashMap<ElementId, Vec<(ElementId, f64)>>;

fn parents(dimension: &Dimension) -> Parents {
    let mut parents = Parents::new();
    for parent in dimension.elements() {
        for edge in dimension.element(*parent).children() {
            parents.entry(edge.child).or_default().push((*parent, edge.weight));
        }
    }
    parents
}

/// The elements whose parents or weights have changed.
pub(super) fn moved(old: &Dimension, dimension: &Dimension, now: &HashMap<ElementId, ElementId>) -> Vec<MovedElement> {
    let (before, after) = (parents(old), parents(dimension));
    let names = |dimension: &Dimension, edges: &[(ElementId, f64)]| {
        let name = |(parent, weight): &(ElementId, f64)| match dimension.element(*parent).name() {
            name if *weight == 1.0 => name.to_owned(),
            name => format!("{name} × {weight}"),
        };
        edges.iter().map(name).collect()
    };
    let of = |id: &ElementId| {
        let element = now.get(id)?;
        let (before, after) =
            (before.get(id).map_or(&[][..], Vec::as_slice), after.get(element).map_or(&[][..], Vec::as_slice));
        let mapped = before.iter().map(|(parent, weight)| (now.get(parent).copied(), weight.to_bits()));
        let held = after.iter().map(|(parent, weight)| (Some(*parent), weight.to_bits()));
        if mapped.collect::<HashSet<_>>() == held.collect::<HashSet<_>>() {
            return None;
        }
        Some(MovedElement {
            dimension: dimension.name().to_owned(),
            element: dimension.element(*element).name().to_owned(),
            before: names(old, before),
            after: names(dimension, after),
        })
    };
    old.elements().iter().filter_map(of).collect()
}
