//! Order of a dimension's graph: children before parents, levels, roots, the default element, cycles.
//!
//! All passes are loops over a topological order (Kahn, Topological sorting of large networks, 1962): a hierarchy may
//! be as deep as it has elements.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::{Dimension, ElementId, ElementKind};
use crate::error::Path;

impl Dimension {
    /// Level of an element: 0 for base and text elements, one above the highest child for others; a consolidated
    /// element without children has level 1.
    pub fn level(&self, id: ElementId) -> u32 {
        self.topology().levels[id.index()]
    }

    /// Elements of a level by position.
    pub fn of_level(&self, level: u32) -> Vec<ElementId> {
        let levels = &self.topology().levels;
        self.order.iter().copied().filter(|id| levels[id.index()] == level).collect()
    }

    /// The highest level; `None` if the dimension has no element.
    pub fn highest_level(&self) -> Option<u32> {
        let levels = &self.topology().levels;
        self.order.iter().map(|id| levels[id.index()]).max()
    }

    /// Elements without parents by position.
    pub fn roots(&self) -> &[ElementId] {
        &self.topology().roots
    }

    /// Position of an element in the order of the dimension, from 0.
    pub fn position(&self, id: ElementId) -> u32 {
        self.topology().positions[id.index()]
    }

    /// All elements, every parent before its children.
    pub fn parents_first(&self) -> Vec<ElementId> {
        let ranks = &self.topology().ranks;
        let mut sorted = self.order.clone();
        sorted.sort_unstable_by_key(|id| std::cmp::Reverse(ranks[id.index()]));
        sorted
    }

    /// Elements below `id`, itself excluded, each once: depth first, parents before children, children in their order.
    pub fn descendants(&self, id: ElementId) -> Vec<ElementId> {
        self.depth_first(id, |_| true)
    }

    /// Descendants that a path of at most `edges` edges reaches, in the order of [`Dimension::descendants`].
    pub fn descendants_within(&self, id: ElementId, edges: usize) -> Vec<ElementId> {
        let mut near = vec![false; self.slots.len()];
        let mut layer = vec![id];
        for _ in 0..edges {
            let mut below = Vec::new();
            for edge in layer.iter().flat_map(|id| self.element(*id).children()) {
                if !std::mem::replace(&mut near[edge.child.index()], true) {
                    below.push(edge.child);
                }
            }
            if below.is_empty() {
                break;
            }
            layer = below;
        }
        self.depth_first(id, |child| near[child.index()])
    }

    /// Elements that some path of exactly `edges` edges reaches, each once; `children_at(id, 1)` are the children.
    pub fn children_at(&self, id: ElementId, edges: usize) -> Vec<ElementId> {
        let mut stamps = vec![0; self.slots.len()];
        let mut layer = vec![id];
        for step in 1..=edges {
            let mut below = Vec::new();
            for edge in layer.iter().flat_map(|id| self.element(*id).children()) {
                if std::mem::replace(&mut stamps[edge.child.index()], step) != step {
                    below.push(edge.child);
                }
            }
            layer = below;
            if layer.is_empty() {
                break;
            }
        }
        layer
    }

    /// All elements as they are listed: by position where each consolidated element stands directly above or below one
    /// that it consists of and has all its children on that side, else every root above its [`Dimension::descendants`],
    /// roots by the first element at or below them. An element of several parents stands at the first one.
    pub fn nested(&self) -> Vec<ElementId> {
        let is_beside = |(at, id): (usize, &ElementId)| {
            let children = &self.element(*id).children;
            let is_part =
                |at: Option<usize>| at.and_then(|at| self.order.get(at)).is_some_and(|other| self.is_part(*other, *id));
            let is_on_side =
                |side: Ordering| children.iter().all(|edge| (self.position(edge.child) as usize).cmp(&at) == side);
            children.is_empty()
                || is_part(at.checked_sub(1)) && is_on_side(Ordering::Less)
                || is_part(Some(at + 1)) && is_on_side(Ordering::Greater)
        };
        if self.order.iter().enumerate().all(is_beside) {
            return self.order.clone();
        }
        let mut roots = self.roots().to_vec();
        let first = self.first_positions();
        roots.sort_by_key(|root| first[root.index()]);
        let mut seen = vec![false; self.slots.len()];
        let mut found = Vec::with_capacity(self.order.len());
        let mut stack: Vec<ElementId> = roots.into_iter().rev().collect();
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut seen[id.index()], true) {
                found.push(id);
                stack.extend(self.element(id).children.iter().rev().map(|edge| edge.child));
            }
        }
        found
    }

    /// For each element of a list the number of elements before it that it is part of, without another list between
    /// them; what is no element begins another list. An element of which a child stands elsewhere in the list, below
    /// nothing, has nothing below it: those that do would look like all of it.
    pub(crate) fn depths(&self, list: &[Option<ElementId>]) -> Vec<u32> {
        let all = self.depths_below(list, &HashSet::new());
        let of_depth = |is_wanted: fn(u32) -> bool| {
            list.iter().zip(&all).filter_map(move |(element, depth)| element.filter(|_| is_wanted(*depth)))
        };
        let below: HashSet<ElementId> = of_depth(|depth| depth > 0).collect();
        let alone = of_depth(|depth| depth == 0).filter(|id| !below.contains(id));
        let parted: HashSet<ElementId> = alone.flat_map(|id| self.element(id).parents().iter().copied()).collect();
        if parted.is_empty() { all } else { self.depths_below(list, &parted) }
    }

    fn depths_below(&self, list: &[Option<ElementId>], parted: &HashSet<ElementId>) -> Vec<u32> {
        let mut above: Vec<ElementId> = Vec::new();
        let depth = |element: &Option<ElementId>| {
            let Some(element) = *element else {
                above.clear();
                return 0;
            };
            while above.last().is_some_and(|last| !self.is_part(element, *last)) {
                above.pop();
            }
            let depth = above.len() as u32;
            if !parted.contains(&element) {
                above.push(element);
            }
            depth
        };
        list.iter().map(depth).collect()
    }

    /// The least position of each element and all below it, by element number.
    fn first_positions(&self) -> Vec<u32> {
        let ranks = &self.topology().ranks;
        let mut upwards = self.order.clone();
        upwards.sort_unstable_by_key(|id| ranks[id.index()]);
        let mut first = self.topology().positions.clone();
        for id in upwards {
            let below = self.element(id).children.iter().map(|edge| first[edge.child.index()]).min();
            first[id.index()] = first[id.index()].min(below.unwrap_or(u32::MAX));
        }
        first
    }

    /// True if a path of parents leads from an element to another.
    pub(crate) fn is_part(&self, element: ElementId, whole: ElementId) -> bool {
        let wanted = self.level(whole);
        let (mut open, mut seen) = (vec![element], HashSet::new());
        while let Some(next) = open.pop() {
            for parent in self.element(next).parents() {
                if *parent == whole {
                    return true;
                }
                if self.level(*parent) < wanted && seen.insert(*parent) {
                    open.push(*parent);
                }
            }
        }
        false
    }

    /// Base elements at or below `id`, each once, in the order of [`Dimension::descendants`].
    pub fn leaves(&self, id: ElementId) -> Vec<ElementId> {
        if self.element(id).kind == ElementKind::Base {
            return vec![id];
        }
        let mut leaves = self.descendants(id);
        leaves.retain(|leaf| self.element(*leaf).kind == ElementKind::Base);
        leaves
    }

    /// Elements above `id`, itself excluded, each once, those with the fewest edges between first.
    pub fn ancestors(&self, id: ElementId) -> Vec<ElementId> {
        let mut seen = vec![false; self.slots.len()];
        let mut found = vec![id];
        let mut next = 0;
        while next < found.len() {
            for parent in self.element(found[next]).parents() {
                if !std::mem::replace(&mut seen[parent.index()], true) {
                    found.push(*parent);
                }
            }
            next += 1;
        }
        found.remove(0);
        found
    }

    /// A path from `id` to each of two of its children and on to a base element below both that `is_wanted`, if there
    /// is one.
    pub(crate) fn paths_that_meet(&self, id: ElementId, is_wanted: impl Fn(ElementId) -> bool) -> Option<[Path; 2]> {
        // By element number: the child below which the element was found first.
        let mut found_below = vec![None; self.slots.len()];
        for edge in self.element(id).children() {
            let mut open = vec![edge.child];
            while let Some(below) = open.pop() {
                match found_below[below.index()] {
                    Some(child) if child == edge.child => {}
                    Some(child) => {
                        let Some(leaf) = self.leaves(below).into_iter().find(|leaf| is_wanted(*leaf)) else { continue };
                        let path = |child| {
                            let down = self.path_down(child, leaf).unwrap_or_default();
                            self.path(&[&[id], &*down].concat())
                        };
                        return Some([child, edge.child].map(path));
                    }
                    None => {
                        found_below[below.index()] = Some(edge.child);
                        open.extend(self.element(below).children().iter().map(|edge| edge.child));
                    }
                }
            }
        }
        None
    }

    /// A path from `from` down to `to`, both included; `None` if `to` lies not at or below `from`.
    pub(super) fn path_down(&self, from: ElementId, to: ElementId) -> Option<Vec<ElementId>> {
        let mut above = vec![None; self.slots.len()];
        let mut stack = vec![to];
        while let Some(id) = stack.pop() {
            if id == from {
                let mut path = vec![id];
                while let Some(below) = above[path[path.len() - 1].index()].filter(|_| path[path.len() - 1] != to) {
                    path.push(below);
                }
                return Some(path);
            }
            for parent in self.element(id).parents() {
                if above[parent.index()].is_none() {
                    above[parent.index()] = Some(id);
                    stack.push(*parent);
                }
            }
        }
        None
    }

    fn depth_first(&self, id: ElementId, enters: impl Fn(ElementId) -> bool) -> Vec<ElementId> {
        let mut seen = vec![false; self.slots.len()];
        let mut found = Vec::new();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            found.push(id);
            let children = self.element(id).children.iter().rev().map(|edge| edge.child);
            stack.extend(children.filter(|child| !seen[child.index()] && enters(*child)));
        }
        found.remove(0);
        found
    }
}
