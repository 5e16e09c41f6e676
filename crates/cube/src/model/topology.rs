//! Order of a dimension's graph: ranks, levels, positions, roots, cycles.

use super::{Element, ElementId, ElementKind};

/// Mark of an element that was removed.
const NONE: u32 = u32::MAX;

/// Largest magnitude of a weight, and of the sum of the weights of all base elements below an element over all paths:
/// the cells of one dimension's elements stay far below the largest double.
pub const WEIGHT_MAX: f64 = 1e15;

/// Facts derived from the edges and positions of a dimension; computed once after a change.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    /// Rank by element number: every child has a lower rank than its parents.
    pub(super) ranks: Vec<u32>,
    /// Level by element number.
    pub(super) levels: Vec<u32>,
    /// Position by element number.
    pub(super) positions: Vec<u32>,
    /// Elements without parents, by position.
    pub(super) roots: Vec<ElementId>,
    /// True if every edge has a whole weight.
    pub(super) whole: bool,
    /// Sum of the weights of all base elements below an element, by element number.
    pub(super) totals: Vec<f64>,
    /// Sum of their magnitudes over all base elements and paths, by element number.
    pub(super) magnitudes: Vec<f64>,
    /// The first element by rank whose sum of magnitudes is more than [`WEIGHT_MAX`].
    pub(super) too_heavy: Option<ElementId>,
}

impl Topology {
    /// The topology of elements, the living ones in an order.
    ///
    /// # Errors
    /// The first cycle, its first element repeated at the end.
    pub(super) fn of(slots: &[Option<Element>], order: &[ElementId]) -> Result<Self, Vec<ElementId>> {
        let sorted = sorted(slots)?;
        let element = |id: &ElementId| slots[id.index()].as_ref().expect("elements of the order live");
        let mut ranks = vec![NONE; slots.len()];
        let mut levels = vec![0; slots.len()];
        let mut totals = vec![0.0; slots.len()];
        let (mut magnitudes, mut too_heavy) = (vec![0.0_f64; slots.len()], None);
        let mut whole = true;
        for (rank, id) in sorted.iter().enumerate() {
            let element = element(id);
            ranks[id.index()] = rank as u32;
            levels[id.index()] = match element.kind {
                ElementKind::Consolidated => {
                    1 + element.children.iter().map(|edge| levels[edge.child.index()]).max().unwrap_or(0)
                }
                ElementKind::Base | ElementKind::Text => 0,
            };
            totals[id.index()] = match element.kind {
                ElementKind::Base => 1.0,
                _ => element.children.iter().map(|edge| edge.weight * totals[edge.child.index()]).sum(),
            };
            magnitudes[id.index()] = match element.kind {
                ElementKind::Base => 1.0,
                _ => element.children.iter().map(|edge| edge.weight.abs() * magnitudes[edge.child.index()]).sum(),
            };
            let magnitude = magnitudes[id.index()];
            too_heavy = too_heavy.or((magnitude > WEIGHT_MAX).then_some(*id));
            whole &= element.children.iter().all(|edge| edge.weight.fract() == 0.0);
        }
        let mut positions = vec![NONE; slots.len()];
        for (position, id) in order.iter().enumerate() {
            positions[id.index()] = position as u32;
        }
        let roots = order.iter().copied().filter(|id| element(id).parents.is_empty()).collect();
        Ok(Self { ranks, levels, positions, roots, whole, totals, magnitudes, too_heavy })
    }
}

/// Living elements, every child before its parents; the cycle, first id repeated at the end, if there is one.
pub(super) fn sorted(slots: &[Option<Element>]) -> Result<Vec<ElementId>, Vec<ElementId>> {
    let mut open: Vec<u32> = slots.iter().map(|slot| slot.as_ref().map_or(0, |e| e.children.len() as u32)).collect();
    let mut sorted: Vec<ElementId> = Vec::with_capacity(slots.len());
    let living = || (0..slots.len()).filter(|i| slots[*i].is_some());
    sorted.extend(living().filter(|i| open[*i] == 0).map(|i| ElementId(i as u32)));
    let mut next = 0;
    while next < sorted.len() {
        let parents = slots[sorted[next].index()].as_ref().map_or(&[][..], |element| &element.parents);
        for parent in parents {
            open[parent.index()] -= 1;
            if open[parent.index()] == 0 {
                sorted.push(*parent);
            }
        }
        next += 1;
    }
    match living().find(|i| open[*i] > 0) {
        None => Ok(sorted),
        Some(start) => Err(cycle_from(slots, &open, ElementId(start as u32))),
    }
}

/// The cycle reached from an element that Kahn's pass left open: each such element has an open child.
fn cycle_from(slots: &[Option<Element>], open: &[u32], start: ElementId) -> Vec<ElementId> {
    let mut seen = vec![NONE; slots.len()];
    let mut path = vec![start];
    loop {
        let last = path[path.len() - 1];
        if seen[last.index()] != NONE {
            return path.split_off(seen[last.index()] as usize);
        }
        seen[last.index()] = path.len() as u32 - 1;
        let children = slots[last.index()].as_ref().map_or(&[][..], |element| &element.children);
        match children.iter().find(|edge| open[edge.child.index()] > 0) {
            Some(edge) => path.push(edge.child),
            None => return path,
        }
    }
}
