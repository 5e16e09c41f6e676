//! Changes of a live dimension. Each is checked as a whole before anything moves.

use std::collections::HashSet;

use super::{Attribute, AttributeKind, Dimension, Displaced, Edge, ElementId, ElementKind, Unlinked};
use crate::error::{ModelError, Result};

/// A change of one dimension.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Adds an element, which is then one made by hand; a base element takes the next coordinate.
    Add {
        /// Its name.
        name: String,
        /// Its kind.
        kind: ElementKind,
        /// Its position; `None` or a position past the end appends it.
        position: Option<usize>,
    },
    /// Places an element below a parent. A base parent without facts becomes consolidated and gives up its coordinate.
    Link {
        /// The parent.
        parent: ElementId,
        /// The child.
        child: ElementId,
        /// Its weight.
        weight: f64,
        /// Its place among its siblings; `None` or a place past the end appends it.
        place: Option<usize>,
    },
    /// Takes a child from a parent. A parent that loses its last child stays consolidated.
    Unlink {
        /// The parent.
        parent: ElementId,
        /// The child.
        child: ElementId,
    },
    /// Notes that a refresh and a load leave out the edge of the source between two elements. [`Change::Link`] of the
    /// two ends it.
    KeepUnlinked {
        /// The parent.
        parent: ElementId,
        /// The child.
        child: ElementId,
        /// The weight that the edge had.
        weight: f64,
    },
    /// Takes a child from one parent and appends it to another.
    Move {
        /// The child.
        child: ElementId,
        /// The parent that loses it.
        from: ElementId,
        /// The parent that gets it, under the rule of [`Change::Link`].
        to: ElementId,
        /// Its weight there.
        weight: f64,
    },
    /// Changes the weight of an edge.
    Weigh {
        /// The parent.
        parent: ElementId,
        /// The child.
        child: ElementId,
        /// The new weight.
        weight: f64,
    },
    /// Changes the primary name of an element.
    Rename {
        /// The element.
        element: ElementId,
        /// The new name.
        name: String,
    },
    /// Changes the primary names of several elements together: an element may get a name that another one gives up.
    RenameAll {
        /// Each element once, with its new name.
        names: Vec<(ElementId, String)>,
    },
    /// Adds a name that rows of the source have for an element, which may be a name of another element.
    SourceName {
        /// The element.
        element: ElementId,
        /// The name, unique among names of the source.
        name: String,
    },
    /// Notes that a name which a change gave an element is another one's now. [`Change::Rename`] of the element ends
    /// what is noted of its primary name.
    Displace {
        /// The element.
        element: ElementId,
        /// The name.
        name: Displaced,
    },
    /// Changes the position of an element, and its place below its parents: before the next of its siblings.
    Reposition {
        /// The element.
        element: ElementId,
        /// Its position among the others; a position past the end makes it the last.
        position: usize,
    },
    /// Removes an element with its edges; its children stay. If it is the default element, the rule of
    /// [`Dimension::default_element`] is in force again.
    Remove {
        /// The element.
        element: ElementId,
    },
    /// [`Dimension::set_caption`].
    Caption {
        /// The element.
        element: ElementId,
        /// The caption; `None` removes it.
        caption: Option<String>,
    },
    /// [`Dimension::add_alias`].
    Alias {
        /// The element.
        element: ElementId,
        /// The alternative name.
        alias: String,
    },
    /// [`Dimension::add_attribute`].
    AddAttribute {
        /// Name of the attribute.
        attribute: String,
        /// Kind of its values.
        kind: AttributeKind,
    },
    /// [`Dimension::set_attribute`].
    SetAttribute {
        /// The element.
        element: ElementId,
        /// Name of the attribute.
        attribute: String,
        /// Its value.
        value: Attribute,
    },
    /// [`Dimension::set_default`].
    SetDefault {
        /// The element; `None` returns to the rule.
        element: Option<ElementId>,
    },
}

/// The effect of a change on coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The element added.
    pub added: Option<ElementId>,
    /// Coordinate of a base element that was removed or became consolidated; facts there are to be set aside.
    pub freed_base: Option<u32>,
}

impl Dimension {
    /// Applies a change. `filled` tells whether facts lie at a coordinate.
    ///
    /// # Errors
    /// The error of the rule that the change breaks, with the path that shows it; the dimension is then as before.
    pub fn apply(&mut self, change: Change, filled: &dyn Fn(u32) -> bool) -> Result<Effect> {
        let mut effect = Effect::default();
        match change {
            Change::Add { name, kind, position } => {
                let id = self.append(&name, kind)?;
                self.element_mut(id).handmade = true;
                if let Some(position) = position {
                    self.reposition(id, position);
                }
                effect.added = Some(id);
            }
            Change::Link { parent, child, weight, place } => {
                self.check_new_edge(parent, child, weight, filled)?;
                effect.freed_base = self.consolidate(parent);
                self.insert_edge(parent, Edge { child, weight }, place);
            }
            Change::Unlink { parent, child } => {
                self.edge(parent, child)?;
                self.remove_edge(parent, child);
            }
            Change::KeepUnlinked { parent, child, weight } => {
                self.living(parent)?;
                self.keep_unlinked(child, Unlinked { parent, weight, is_gone: false })?;
            }
            Change::Move { child, from, to, weight } => {
                self.edge(from, child)?;
                self.check_new_edge(to, child, weight, filled)?;
                effect.freed_base = self.consolidate(to);
                self.remove_edge(from, child);
                self.insert_edge(to, Edge { child, weight }, None);
            }
            Change::Weigh { parent, child, weight } => {
                let place = self.edge(parent, child)?;
                self.check_weight(&[parent, child], weight)?;
                self.element_mut(parent).children[place].weight = weight;
            }
            Change::Rename { element, name } => self.rename(&[(element, name)])?,
            Change::RenameAll { names } => self.rename(&names)?,
            Change::SourceName { element, name } => self.add_source_name(element, name)?,
            Change::Displace { element, name } => self.displace(element, name)?,
            Change::Reposition { element, position } => {
                self.living(element)?;
                self.reposition(element, position);
            }
            Change::Remove { element } => effect.freed_base = self.remove(element)?,
            Change::Caption { element, caption } => {
                caption.as_deref().map(|caption| self.named(caption)).transpose()?;
                self.set_caption(element, caption.as_deref())?;
            }
            Change::Alias { element, alias } => self.add_alias(element, &alias)?,
            Change::AddAttribute { attribute, kind } => drop(self.add_attribute(&attribute, kind)?),
            Change::SetAttribute { element, attribute, value } => self.set_attribute(element, &attribute, value)?,
            Change::SetDefault { element } => {
                self.set_default(element)?;
                self.absent.iter_mut().for_each(|absent| absent.is_default = false);
            }
        }
        self.topology.take();
        Ok(effect)
    }

    /// Place of a child among its siblings.
    fn edge(&self, parent: ElementId, child: ElementId) -> Result<usize> {
        let (above, below) = (self.living(parent)?, self.living(child)?);
        above.edge_to(child).ok_or_else(|| ModelError::NoSuchChild {
            dimension: self.name.clone(),
            parent: above.name.clone(),
            child: below.name.clone(),
        })
    }

    fn check_new_edge(
        &self,
        parent: ElementId,
        child: ElementId,
        weight: f64,
        filled: &dyn Fn(u32) -> bool,
    ) -> Result<()> {
        let dimension = self.name.clone();
        match self.living(parent)?.base {
            Some(base) if filled(base) => {
                return Err(ModelError::HasFacts { dimension, element: self.element(parent).name.clone() });
            }
            Some(_) => self.check_weight(&[parent, child], weight)?,
            None => {
                self.check_weight(&[parent, child], weight)?;
                self.check_edge(parent, child)?;
            }
        }
        if self.element(parent).edge_to(child).is_some() {
            return Err(ModelError::DuplicateChild { dimension, path: self.path(&[parent, child]) });
        }
        if let Some(down) = self.path_down(child, parent) {
            let cycle: Vec<ElementId> = std::iter::once(parent).chain(down).collect();
            return Err(ModelError::Cycle { dimension, path: self.path(&cycle) });
        }
        Ok(())
    }

    /// Turns a base element into a consolidated one; returns the coordinate that it gave up.
    fn consolidate(&mut self, id: ElementId) -> Option<u32> {
        let element = self.element_mut(id);
        let base = element.base.take()?;
        element.kind = ElementKind::Consolidated;
        self.bases[base as usize] = None;
        Some(base)
    }

    /// Makes an element that [`Dimension::consolidate`] turned into a group, and that has lost its last child, a base
    /// element again, at the coordinate that it gave up.
    pub(crate) fn restore_base(&mut self, id: ElementId, base: u32) {
        let element = self.element_mut(id);
        (element.kind, element.base) = (ElementKind::Base, Some(base));
        self.bases[base as usize] = Some(id);
        self.topology.take();
    }

    fn insert_edge(&mut self, parent: ElementId, edge: Edge, place: Option<usize>) {
        let children = &mut self.element_mut(parent).children;
        let place = place.unwrap_or(children.len()).min(children.len());
        children.insert(place, edge);
        let child = self.element_mut(edge.child);
        child.parents.push(parent);
        child.unlinked.retain(|held| held.parent != parent);
    }

    fn remove_edge(&mut self, parent: ElementId, child: ElementId) {
        self.element_mut(parent).children.retain(|edge| edge.child != child);
        self.element_mut(child).parents.retain(|id| *id != parent);
    }

    /// Renames elements together: all names are given up before one is claimed.
    fn rename(&mut self, names: &[(ElementId, String)]) -> Result<()> {
        let mut claims = Vec::new();
        for (id, name) in names {
            self.named(name)?;
            let old = self.living(*id)?.name.clone();
            // An alternative name of the element and its name change places: both are the element's already.
            if self.holder(name) != Some(*id) {
                claims.push((*id, name, old));
            }
        }
        claims.iter().for_each(|(_, _, old)| self.names.release(old));
        for (place, (id, name, _)) in claims.iter().enumerate() {
            if let Err(holder) = self.names.claim(name, *id) {
                claims[..place].iter().for_each(|(_, claimed, _)| self.names.release(claimed));
                for (id, _, old) in &claims {
                    self.claim(old, *id)?;
                }
                // The holder is another one that gets the name, or has it already.
                let got = claims[..place].iter().find(|(id, _, _)| *id == holder).map(|(_, name, _)| *name);
                let other = got.unwrap_or(&self.element(holder).name).clone();
                return Err(ModelError::DuplicateName { dimension: self.name.clone(), name: (*name).clone(), other });
            }
        }
        for (id, name) in names {
            self.forget_displaced(*id, |displaced| displaced.is_primary);
            let element = self.element_mut(*id);
            element.renamed = true;
            let old = std::mem::replace(&mut element.name, name.clone());
            if !element.handmade && element.key.is_none() {
                element.key = Some(old.clone());
            }
            if let Some(alias) = element.aliases.iter_mut().find(|alias| *alias == name) {
                *alias = old;
            }
        }
        Ok(())
    }

    fn add_source_name(&mut self, id: ElementId, name: String) -> Result<()> {
        self.named(&name)?;
        self.living(id)?;
        self.claim_source(&name, id)?;
        let held = &mut self.element_mut(id).source_names;
        held.retain(|held| *held != name);
        held.push(name);
        Ok(())
    }

    fn displace(&mut self, id: ElementId, name: Displaced) -> Result<()> {
        self.named(&name.name)?;
        self.living(id)?;
        self.forget_displaced(id, |held| held.name == name.name);
        self.names.add_displaced(&name.name, id);
        self.element_mut(id).displaced.push(name);
        Ok(())
    }

    /// Forgets some of the names that other elements have.
    fn forget_displaced(&mut self, id: ElementId, is_over: impl Fn(&Displaced) -> bool) {
        let (over, held) = std::mem::take(&mut self.element_mut(id).displaced).into_iter().partition(is_over);
        self.element_mut(id).displaced = held;
        let over: Vec<Displaced> = over;
        over.iter().for_each(|displaced| self.names.remove_displaced(&displaced.name, id));
    }

    /// Notes an edge that changes have taken away; the parent may be an absent element.
    pub(crate) fn keep_unlinked(&mut self, child: ElementId, unlinked: Unlinked) -> Result<()> {
        self.living(child)?;
        self.check_finite(&[child, child], unlinked.weight)?;
        let held = &mut self.element_mut(child).unlinked;
        held.retain(|held| held.parent != unlinked.parent);
        held.push(unlinked);
        Ok(())
    }

    /// Gives an element another position among all, and the place among its siblings that goes with it.
    fn reposition(&mut self, id: ElementId, position: usize) {
        let position = position.min(self.order.len() - 1);
        if self.order[position] == id {
            return;
        }
        self.order.retain(|other| *other != id);
        self.order.insert(position, id);
        for parent in self.element(id).parents.clone() {
            let siblings: HashSet<ElementId> = self.element(parent).children.iter().map(|edge| edge.child).collect();
            let next = self.order[position + 1..].iter().find(|other| siblings.contains(*other)).copied();
            let children = &mut self.element_mut(parent).children;
            let Some(edge) = children.iter().position(|edge| edge.child == id).map(|at| children.remove(at)) else {
                continue;
            };
            let place = next.and_then(|next| children.iter().position(|edge| edge.child == next));
            children.insert(place.unwrap_or(children.len()), edge);
        }
        self.topology.take();
    }

    fn remove(&mut self, id: ElementId) -> Result<Option<u32>> {
        let element = self.living(id)?.clone();
        for parent in &element.parents {
            self.element_mut(*parent).children.retain(|edge| edge.child != id);
        }
        for edge in &element.children {
            self.element_mut(edge.child).parents.retain(|parent| *parent != id);
        }
        self.slots.iter_mut().flatten().for_each(|other| other.unlinked.retain(|held| held.parent != id));
        self.absent.iter_mut().for_each(|absent| absent.forget(id));
        self.absent.retain(|absent| !absent.is_empty());
        element.displaced.iter().for_each(|displaced| self.names.remove_displaced(&displaced.name, id));
        std::iter::once(&element.name).chain(&element.aliases).for_each(|name| self.names.release(name));
        element.source_names.iter().for_each(|name| self.names.release_source(name));
        if let Some(caption) = &element.caption {
            self.names.remove_caption(caption, id);
        }
        if let Some(base) = element.base {
            self.bases[base as usize] = None;
        }
        self.order.retain(|other| *other != id);
        self.default = self.default.filter(|default| *default != id);
        self.slots[id.index()] = None;
        Ok(element.base)
    }
}
