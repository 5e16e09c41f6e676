//! Elements of the source that are away: what was made by hand at them is kept for their return.

use std::collections::HashSet;

use super::found::{key, place};
use super::{EdgeByHand, Keeping, caption_by_hand, has_labels_of_table};
use crate::build::BuildError;
use crate::model::{Above, Absent, Attribute, Edge, ElementId, Unlinked, folded};

impl Keeping<'_> {
    /// Gathers what was made by hand at elements that are away, with the numbers of the cube; each gets a number in the
    /// dimension. `is_load` gathers edges that were taken away, alone.
    pub(super) fn gather_absent(&mut self, is_load: bool) -> Result<(), BuildError> {
        let old = self.old;
        let of_elements = old.elements().iter().flat_map(|id| old.element(*id).unlinked());
        let of_absent = old.absent().iter().flat_map(|absent| &absent.unlinked);
        let parents: HashSet<ElementId> = of_elements.chain(of_absent).map(|unlinked| unlinked.parent).collect();
        let of_source = old.elements().iter().filter(|id| !old.element(**id).is_handmade());
        let gone = of_source.filter(|id| !self.now.contains_key(id)).map(|id| self.by_hand(*id));
        let gone = gone.chain(old.absent().iter().filter(|one| !self.now.contains_key(&one.id)).cloned());
        for mut absent in gone.collect::<Vec<_>>() {
            absent.is_unlinked_from = parents.contains(&absent.id);
            if is_load {
                let Absent { id, key, place, unlinked, is_unlinked_from, .. } = absent;
                absent = Absent { unlinked, is_unlinked_from, ..Absent::new(id, key, place) };
            }
            if absent.is_empty() {
                continue;
            }
            let number = self.dimension.unused_id()?;
            self.away.insert(absent.id, number);
            if let Some(gone) = old.get(absent.id) {
                self.told.away.push(gone.name().to_owned());
            }
            self.absent.push(absent);
        }
        Ok(())
    }

    /// What was made by hand at an element of the cube that is away.
    fn by_hand(&self, id: ElementId) -> Absent {
        let (old, element, definition) = (self.old, self.old.element(id), self.definition);
        let stays = |end: &ElementId| old.element(*end).is_handmade() && !self.now.contains_key(end);
        let above = element.parents().iter().filter(|parent| stays(parent)).filter_map(|parent| {
            let children = old.element(*parent).children();
            let place = children.iter().position(|edge| edge.child == id)?;
            Some(Above { parent: *parent, weight: children[place].weight, place })
        });
        let is_named = element.is_renamed() && !old.has_name_of_values(id);
        let mut absent = Absent {
            name: is_named.then(|| element.name().to_owned()),
            caption: caption_by_hand(element, definition).map(str::to_owned),
            displaced: element.displaced().to_vec(),
            attributes: self.attributes(id),
            above: above.collect(),
            children: element.children().iter().filter(|edge| stays(&edge.child)).copied().collect(),
            unlinked: element.unlinked().to_vec(),
            is_default: old.chosen_default() == Some(id) && definition.default.is_none(),
            ..Absent::new(id, key(element).to_owned(), place(old, id))
        };
        // Of alternative names beside those of a table it is not known which ones changes gave.
        if definition.names.is_empty() || !absent.is_empty() {
            absent.aliases = self.aliases_by_hand(id);
        }
        absent
    }

    /// Alternative names of an element of the cube, its key and those that values of levels gave it excepted.
    pub(super) fn aliases_by_hand(&self, id: ElementId) -> Vec<String> {
        let element = self.old.element(id);
        let mut given = self.old.names_of_values(id);
        given.push(key(element).to_owned());
        element.aliases().iter().filter(|alias| !given.contains(alias)).cloned().collect()
    }

    /// Attributes of an element of the cube that the definition does not give.
    pub(super) fn attributes(&self, id: ElementId) -> Vec<(String, Attribute)> {
        let is_of_table = has_labels_of_table(self.old.element(id), self.definition);
        let given = self.definition.attributes.iter().filter(|_| is_of_table).map(|name| folded(name));
        let given: HashSet<String> = given.collect();
        let columns = self.old.attributes().iter().filter(|column| !given.contains(&folded(&column.name)));
        columns
            .filter_map(|column| Some((column.name.clone(), self.old.attribute(id, &column.name)?.clone())))
            .collect()
    }

    /// Puts what was gathered into the dimension, with the numbers of the dimension.
    pub(super) fn keep_absent(&mut self) {
        let (now, away) = (&self.now, &self.away);
        let renumbered = std::mem::take(&mut self.absent).into_iter().map(|absent| Absent {
            id: away[&absent.id],
            above: absent
                .above
                .iter()
                .filter_map(|above| Some(Above { parent: *now.get(&above.parent)?, ..*above }))
                .collect(),
            children: absent
                .children
                .iter()
                .filter_map(|edge| Some(Edge { child: *now.get(&edge.child)?, ..*edge }))
                .collect(),
            unlinked: absent
                .unlinked
                .iter()
                .filter_map(|unlinked| {
                    let parent = *now.get(&unlinked.parent).or_else(|| away.get(&unlinked.parent))?;
                    Some(Unlinked { parent, ..*unlinked })
                })
                .collect(),
            ..absent
        });
        let renumbered = renumbered.collect();
        self.dimension.set_absent(renumbered);
    }

    /// Edges of elements that are back with elements made by hand.
    pub(super) fn edges_of_back(&self) -> impl Iterator<Item = EdgeByHand> + use<> {
        let mut edges: Vec<(usize, ElementId, ElementId, f64)> = Vec::new();
        for absent in self.old.absent() {
            let Some(id) = self.now.get(&absent.id).copied() else { continue };
            let parent = |above: &Above| Some((above.place, *self.now.get(&above.parent)?, id, above.weight));
            edges.extend(absent.above.iter().filter_map(parent));
            let child = |edge: &Edge| Some((usize::MAX, id, *self.now.get(&edge.child)?, edge.weight));
            edges.extend(absent.children.iter().filter_map(child));
        }
        edges.sort_by_key(|(place, ..)| *place);
        edges.into_iter().map(|(place, parent, child, weight)| EdgeByHand { parent, child, weight, place: Some(place) })
    }
}
