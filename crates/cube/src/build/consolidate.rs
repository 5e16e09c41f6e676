//! Consolidations that a definition adds to a dimension: its list of consolidated elements, and one over all roots.

use std::collections::HashSet;

use super::BuildError;
use crate::define::{DimensionDefinition, Named};
use crate::error::{ModelError, Path};
use crate::model::{Dimension, DimensionBuilder, ElementId, ElementKind, folded, nearest};

/// Adds consolidations to a dimension. Edges are added if an end has a number from `first_new` on; other edges stay as
/// the dimension has them.
pub(super) fn consolidated(
    dimension: Dimension,
    definition: &DimensionDefinition,
    first_new: usize,
) -> Result<Dimension, BuildError> {
    let own: HashSet<String> = definition.consolidated.names().chain(definition.all.as_deref()).map(folded).collect();
    let is_own = |id: &ElementId| own.contains(&folded(dimension.element(*id).name()));
    let roots: Vec<ElementId> = dimension.roots().iter().copied().filter(|id| !is_own(id)).collect();
    let mut growth = Consolidation { builder: DimensionBuilder::resume(dimension), first_new };
    let parents = definition.consolidated.names().map(|name| growth.parent(name)).collect::<Result<Vec<_>, _>>()?;
    let mut lists = Vec::new();
    for (parent, (_, children)) in parents.into_iter().zip(definition.consolidated.iter()) {
        lists.push((parent, growth.children(parent, children)?));
    }
    if let Some(all) = &definition.all {
        let parent = growth.parent(all)?;
        for root in tops(roots, &lists) {
            // A new element may have come below it by another consolidation.
            let dimension = growth.builder.dimension();
            let is_below = !dimension.element(root).parents().is_empty() && dimension.ancestors(root).contains(&parent);
            if !is_below {
                growth.link(parent, root, 1.0)?;
            }
        }
    }
    Ok(growth.builder.finish()?)
}

/// Roots of a dimension, where a consolidation stands for its children if they are all roots and of weight 1: no base
/// element counts twice in the sum of what remains.
fn tops(mut roots: Vec<ElementId>, lists: &[(ElementId, Vec<(ElementId, f64)>)]) -> Vec<ElementId> {
    let mut left: Vec<&(ElementId, Vec<(ElementId, f64)>)> = lists.iter().collect();
    loop {
        let set: HashSet<ElementId> = roots.iter().copied().collect();
        let stands_for = |(_, children): &&(ElementId, Vec<(ElementId, f64)>)| {
            !children.is_empty() && children.iter().all(|(child, weight)| *weight == 1.0 && set.contains(child))
        };
        let Some(at) = left.iter().position(stands_for) else { return roots };
        let (parent, children) = left.remove(at);
        let below: HashSet<ElementId> = children.iter().map(|(child, _)| *child).collect();
        let first = roots.iter().position(|root| below.contains(root)).unwrap_or(roots.len());
        roots.insert(first, *parent);
        roots.retain(|root| !below.contains(root));
    }
}

/// A dimension that gets consolidations.
struct Consolidation {
    builder: DimensionBuilder,
    first_new: usize,
}

impl Consolidation {
    /// The element of a consolidation: of a refreshed dimension the one that it has, else a new one.
    fn parent(&mut self, name: &str) -> Result<ElementId, BuildError> {
        match self.builder.dimension().find_key(name).filter(|id| !self.is_new(*id)) {
            Some(held) => Ok(held),
            None => Ok(self.builder.add(name, ElementKind::Consolidated)?),
        }
    }

    fn children(&mut self, parent: ElementId, listed: &Named<f64>) -> Result<Vec<(ElementId, f64)>, BuildError> {
        let mut children = Vec::new();
        for (name, weight) in listed.iter() {
            let child = self.child(parent, name)?;
            self.link(parent, child, *weight)?;
            children.push((child, *weight));
        }
        Ok(children)
    }

    fn child(&mut self, parent: ElementId, name: &str) -> Result<ElementId, BuildError> {
        let dimension = self.builder.dimension();
        dimension.find(name).map_err(|error| match error {
            ModelError::UnknownElement { .. } => BuildError::Model(ModelError::UnknownInPath {
                dimension: dimension.name().to_owned(),
                path: Path(vec![dimension.element(parent).name().to_owned(), name.to_owned()]),
                name: name.to_owned(),
                nearest: nearest(name, dimension.all_names()),
            }),
            other => BuildError::Model(other),
        })
    }

    /// Adds an edge unless both of its ends were there before.
    fn link(&mut self, parent: ElementId, child: ElementId, weight: f64) -> Result<(), BuildError> {
        if self.is_new(parent) || self.is_new(child) {
            self.builder.link(parent, child, weight)?;
        }
        Ok(())
    }

    fn is_new(&self, id: ElementId) -> bool {
        id.index() >= self.first_new
    }
}
