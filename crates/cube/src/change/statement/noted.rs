//! What a refresh undoes of changes, and what it keeps: told once, as the last of the changes has left it.

use super::Changing;
use crate::build::has_labels_of_table;
use crate::change::report::SourceElements;
use crate::define::{DimensionDefinition, parse};
use crate::model::{Dimension, ElementId, NUMBER_FORMAT, folded};

/// What a refresh undoes or keeps, by dimensions.
#[derive(Default)]
pub(super) struct Noted {
    /// Elements of the source that were removed or placed, with their names.
    pub(super) elements: Vec<(usize, String)>,
    /// Edges between two elements of the source that were changed: the parent and the child.
    pub(super) edges: Vec<(usize, [ElementId; 2])>,
    /// Edges of the source that are to stay away: the parent and the child.
    pub(super) unlinked: Vec<(usize, [ElementId; 2])>,
}

impl Changing<'_> {
    /// Notes an element of the source that is removed, or placed otherwise in the order.
    pub(super) fn note_element(&mut self, at: usize, id: ElementId) {
        if self.is_of_source(at, id, id) {
            self.noted.elements.push((at, self.dimension(at).element(id).name().to_owned()));
        }
    }

    /// Notes an edge between elements of the source, which a refresh brings back.
    pub(super) fn note_edge(&mut self, at: usize, parent: ElementId, child: ElementId) {
        if self.is_of_source(at, parent, child) {
            self.noted.edges.push((at, [parent, child]));
        }
    }

    /// Notes a label that the definition or its table gives an element.
    pub(super) fn note_label(
        &mut self,
        at: usize,
        id: ElementId,
        label: &str,
        is_given: impl Fn(&DimensionDefinition) -> bool,
    ) {
        let (dimension, is_format) = (self.dimension(at), folded(label) == NUMBER_FORMAT);
        let element = dimension.element(id);
        let is_listed = |definition: &DimensionDefinition| {
            is_format && definition.format.names().any(|name| dimension.find(name).is_ok_and(|listed| listed == id))
        };
        let is_of_source = self.definition_of(at).is_some_and(|definition| {
            is_listed(definition) || (is_given(definition) && has_labels_of_table(element, definition))
        });
        if is_of_source {
            let (dimension, label) = (dimension.name().to_owned(), format!("{label} of {}", element.name()));
            noted(&mut self.report.labels_of_source, &dimension, label);
        }
    }

    /// The definition of a dimension.
    pub(super) fn definition_of(&self, at: usize) -> Option<&DimensionDefinition> {
        let definition = self.definition.get_or_init(|| parse(self.old.definition.as_deref()?).ok()).as_ref()?;
        let name = self.dimension(at).name();
        definition.dimensions.iter().find(|(own, _)| *own == name).map(|(_, definition)| definition)
    }

    /// Tells what a refresh undoes, and which edges stay away, as the last of the changes have left them.
    pub(super) fn tell_noted(&mut self) {
        let Noted { elements, edges, unlinked } = std::mem::take(&mut self.noted);
        let (of, report) = (self.model.dimensions(), &mut self.report);
        for (at, name) in elements {
            noted(&mut report.of_source, of[at].name(), name);
        }
        let weight = |dimension: &Dimension, [parent, child]: [ElementId; 2]| {
            let edge = dimension.get(parent)?.children().iter().find(|edge| edge.child == child)?;
            Some(edge.weight)
        };
        let kept = |dimension: &Dimension, [parent, child]: [ElementId; 2]| {
            dimension.get(child)?.unlinked().iter().find(|held| held.parent == parent && !held.is_gone).copied()
        };
        for (at, edge) in edges {
            let before = &self.old.model.dimensions()[at];
            let of_source = weight(before, edge).or_else(|| Some(kept(before, edge)?.weight));
            if let Some(child) = of[at].get(edge[1]).filter(|_| weight(&of[at], edge) != of_source) {
                noted(&mut report.of_source, of[at].name(), child.name().to_owned());
            }
        }
        for (at, edge) in unlinked.into_iter().filter(|(at, edge)| kept(&of[*at], *edge).is_some()) {
            let name = |id| of[at].element(id).name();
            noted(&mut report.unlinked, of[at].name(), format!("{} from {}", name(edge[1]), name(edge[0])));
        }
        for (before, after) in self.old.model.dimensions().iter().zip(of) {
            let was: Vec<ElementId> = before.unlinked_roots().collect();
            for id in after.unlinked_roots().filter(|id| !was.contains(id)) {
                noted(&mut report.nowhere, after.name(), after.element(id).name().to_owned());
            }
        }
    }
}

/// Adds a name to those of a dimension, once.
pub(super) fn noted(all: &mut Vec<SourceElements>, dimension: &str, name: String) {
    match all.iter_mut().find(|noted| noted.dimension == dimension) {
        Some(noted) if noted.names.contains(&name) => {}
        Some(noted) => noted.names.push(name),
        None => all.push(SourceElements { dimension: dimension.to_owned(), names: vec![name] }),
    }
}
