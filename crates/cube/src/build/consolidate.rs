//! Consolidations that a definition adds to a dimension: its list of consolidated elements, and one over all roots.

use std::collections::HashSet;

use super::BuildError;
use crate::define::{DimensionDefinition, Named};
use crate::error::{ModelError, Path};
use crate::model::{Dimension, DimensionBuilder, ElementId, ElementKind, nearest};

/// Tolerance of the sum of a base element's shares, which is 1 apart from the rounding of decimal fractions.
const WEIGHT_TOLERANCE: f64 = 1e-9;

/// Adds the consolidations of a definition to a dimension.
pub(super) fn consolidated(dimension: Dimension, definition: &DimensionDefinition) -> Result<Dimension, BuildError> {
    let roots: Vec<ElementId> = dimension.roots().to_vec();
    let mut builder = DimensionBuilder::resume(dimension);
    let parents = definition.consolidated.names().map(|name| builder.add(name, ElementKind::Consolidated));
    let parents = parents.collect::<Result<Vec<_>, _>>()?;
    let mut lists = Vec::new();
    for (parent, (_, listed)) in parents.into_iter().zip(definition.consolidated.iter()) {
        lists.push((parent, children(&mut builder, parent, listed)?));
    }
    if let Some(all) = &definition.all {
        let parent = builder.add(all, ElementKind::Consolidated)?;
        for root in tops(roots, &lists) {
            builder.link(parent, root, 1.0)?;
        }
    }
    let dimension = builder.finish()?;
    if let Some(all) = definition.all.as_ref().and_then(|all| dimension.find_key(all)) {
        refuse_double_counts(&dimension, all)?;
    }
    Ok(dimension)
}

/// Refuses an element over all roots that counts a base element more than once. Weights that share a base element out
/// among several roots add up to 1.
fn refuse_double_counts(dimension: &Dimension, all: ElementId) -> Result<(), BuildError> {
    let below = dimension.base_weights(all)?;
    let counts_otherwise = |leaf: ElementId| {
        let place = dimension.element(leaf).base().and_then(|base| below.bases.binary_search(&base).ok());
        place.is_some_and(|place| (below.weights[place] - 1.0).abs() > WEIGHT_TOLERANCE)
    };
    match dimension.paths_that_meet(all, counts_otherwise) {
        None => Ok(()),
        Some([one, other]) => Err(BuildError::Definition {
            place: format!("dimensions.{}", dimension.name()),
            message: format!(
                "all would count base elements several times: {one} and {other}; without all, name the total in \
                 consolidated or in the table"
            ),
        }),
    }
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

/// Links the children that a definition lists to their parent.
fn children(
    builder: &mut DimensionBuilder,
    parent: ElementId,
    listed: &Named<f64>,
) -> Result<Vec<(ElementId, f64)>, BuildError> {
    let mut children = Vec::new();
    for (name, weight) in listed.iter() {
        let child = child(builder.dimension(), parent, name)?;
        builder.link(parent, child, *weight)?;
        children.push((child, *weight));
    }
    Ok(children)
}

fn child(dimension: &Dimension, parent: ElementId, name: &str) -> Result<ElementId, BuildError> {
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
