//! A dimension: elements, their order, names, attributes and coordinates.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::names::{NameIndex, is_blank, nearest};
use super::topology::Topology;
use super::{Absent, Attribute, Element, ElementId, ElementKind};
use crate::error::{ModelError, Path, Result};

/// Tolerance of the test whether weights below a root may all be 1, as a share of the base elements.
const TOTAL_TOLERANCE: f64 = 1e-6;

/// Kind of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttributeKind {
    /// Finite numbers.
    Number,
    /// Texts.
    Text,
}

/// An attribute that elements of a dimension may carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeColumn {
    /// Name, unique in the dimension, case ignored.
    pub name: String,
    /// Kind of the values.
    pub kind: AttributeKind,
}

/// A hierarchy made of level columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    /// Name of the hierarchy.
    pub name: String,
    /// Names of its levels from the top down.
    pub levels: Vec<String>,
}

/// The elements that a text stands for.
pub(crate) struct NameMatches {
    /// True if the text is a name, alternative name or caption to the letter.
    pub(crate) is_exact: bool,
    /// One element by a name; several by a caption that they share.
    pub(crate) elements: Vec<ElementId>,
}

/// A directed acyclic graph of named elements with weighted consolidations.
///
/// Invariants: an id belongs to one element for ever; every base element has one coordinate (*base index*) and no two
/// the same; a removed element leaves its id and its coordinate unused; names and aliases are unique to the letter;
/// edges are recorded at both ends and form no cycle.
///
/// Functions that take an [`ElementId`] panic if the element does not live in this dimension, as indexing does;
/// [`Dimension::get`] tells.
#[derive(Clone, Debug, Default)]
pub struct Dimension {
    pub(super) name: String,
    pub(super) slots: Vec<Option<Element>>,
    pub(super) order: Vec<ElementId>,
    pub(super) bases: Vec<Option<ElementId>>,
    pub(super) default: Option<ElementId>,
    pub(super) attributes: Vec<AttributeColumn>,
    pub(super) hierarchies: Vec<Hierarchy>,
    pub(super) absent: Vec<Absent>,
    pub(super) names: NameIndex,
    pub(super) topology: OnceLock<Topology>,
}

impl PartialEq for Dimension {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.slots == other.slots
            && self.order == other.order
            && self.bases == other.bases
            && self.default == other.default
            && self.attributes == other.attributes
            && self.hierarchies == other.hierarchies
            && self.absent == other.absent
    }
}

impl Dimension {
    /// Name of the dimension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The element with this id, if it lives.
    pub fn get(&self, id: ElementId) -> Option<&Element> {
        self.slots.get(id.index())?.as_ref()
    }

    /// The element with this id.
    ///
    /// # Panics
    /// If the element does not live in this dimension.
    pub fn element(&self, id: ElementId) -> &Element {
        match self.get(id) {
            Some(element) => element,
            None => panic!("dimension '{}' has no element number {}", self.name, id.0),
        }
    }

    /// Living elements by position.
    pub fn elements(&self) -> &[ElementId] {
        &self.order
    }

    /// Exclusive bound of element numbers, removed elements included.
    pub fn id_count(&self) -> usize {
        self.slots.len()
    }

    /// Exclusive bound of coordinates, those of removed base elements included.
    pub fn base_count(&self) -> usize {
        self.bases.len()
    }

    /// The base element at a coordinate; `None` past the last one and at coordinates of removed elements.
    pub fn at_base(&self, base: u32) -> Option<ElementId> {
        self.bases.get(base as usize).copied().flatten()
    }

    /// Level hierarchies of the dimension.
    pub fn hierarchies(&self) -> &[Hierarchy] {
        &self.hierarchies
    }

    /// Attributes that elements of the dimension may carry.
    pub fn attributes(&self) -> &[AttributeColumn] {
        &self.attributes
    }

    /// The element named so: by its name, alternative name or caption as they are written, else by one of them without
    /// regard to case; names count before captions.
    ///
    /// # Errors
    /// [`ModelError::UnknownElement`] with the nearest names; [`ModelError::AmbiguousCase`] if several names differ
    /// from the text in case alone; [`ModelError::AmbiguousCaption`] if the text is the caption of several elements and
    /// the name of none.
    pub fn find(&self, name: &str) -> Result<ElementId> {
        let NameMatches { is_exact, elements } = self.matches(name);
        if let Some(ambiguous) = self.ambiguous(name).filter(|_| !is_exact) {
            return Err(ambiguous);
        }
        match elements.as_slice() {
            [one] => Ok(*one),
            [] => Err(ModelError::UnknownElement {
                dimension: self.name.clone(),
                name: name.to_owned(),
                nearest: nearest(name, self.all_names()),
            }),
            several => Err(ModelError::AmbiguousCaption {
                dimension: self.name.clone(),
                caption: name.to_owned(),
                candidates: several.iter().map(|id| self.element(*id).name.clone()).collect(),
            }),
        }
    }

    /// The elements that a text stands for, by the first of: a name, a caption, a name without regard to case, a
    /// caption without regard to case.
    pub(crate) fn matches(&self, text: &str) -> NameMatches {
        if let Some(id) = self.names.exact(text) {
            return NameMatches { is_exact: true, elements: vec![id] };
        }
        let captioned = self.names.captioned(text);
        let has_caption = |id: &&ElementId| self.element(**id).caption.as_deref() == Some(text);
        let exact: Vec<ElementId> = captioned.iter().filter(has_caption).copied().collect();
        if !exact.is_empty() {
            return NameMatches { is_exact: true, elements: exact };
        }
        let mut named: Vec<ElementId> = self.names.alike(text).into_iter().map(|(_, id)| id).collect();
        named.sort_unstable();
        named.dedup();
        NameMatches { is_exact: false, elements: if named.is_empty() { captioned.to_vec() } else { named } }
    }

    /// The element with this name or alias: to the letter, else the only one without regard to case. Captions do not
    /// count.
    pub fn find_key(&self, name: &str) -> Option<ElementId> {
        self.names.get(name)
    }

    /// The element with this name or alias to the letter.
    pub fn holder(&self, name: &str) -> Option<ElementId> {
        self.names.exact(name)
    }

    /// The error of a text that is no name to the letter, and that names of several elements are in other case.
    pub(crate) fn ambiguous(&self, name: &str) -> Option<ModelError> {
        let is_none = self.holder(name).is_none() && self.find_key(name).is_none();
        let candidates: Vec<String> = if is_none { spellings(self.names.alike(name)) } else { Vec::new() };
        (!candidates.is_empty()).then(|| ModelError::AmbiguousCase {
            dimension: self.name.clone(),
            name: name.to_owned(),
            candidates,
        })
    }

    /// The names and aliases of several elements that differ in case alone.
    pub(crate) fn all_alike(&self) -> Vec<Vec<String>> {
        self.names.all_alike().into_iter().map(spellings).collect()
    }

    /// The name or alias of an element by which a text finds it; the text itself if it has none.
    pub(crate) fn spelling_of<'a>(&'a self, id: ElementId, text: &'a str) -> &'a str {
        let mut names = self.names.alike(text).into_iter().filter(|(_, of)| *of == id).map(|(name, _)| name);
        if self.holder(text) == Some(id) { text } else { names.next_back().unwrap_or(text) }
    }

    /// Elements of the source that it did not have when it was read last, with what was made by hand at them.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// Sets the absent elements, whose numbers are those of [`Dimension::unused_id`].
    pub(crate) fn set_absent(&mut self, absent: Vec<Absent>) {
        self.absent = absent;
    }

    /// A number that no element gets.
    ///
    /// # Errors
    /// [`ModelError::TooMany`].
    pub(crate) fn unused_id(&mut self) -> Result<ElementId> {
        let id = self.next_id()?;
        self.slots.push(None);
        self.topology.take();
        Ok(id)
    }

    /// Elements without parents that changes have taken from a parent which the source has for them.
    pub(crate) fn unlinked_roots(&self) -> impl Iterator<Item = ElementId> {
        let is_taken = |held: &super::Unlinked| !held.is_gone && self.get(held.parent).is_some();
        let is_one = move |element: &Element| element.parents.is_empty() && element.unlinked.iter().any(is_taken);
        self.order.iter().copied().filter(move |id| is_one(self.element(*id)))
    }

    /// The absent element of this number.
    pub(crate) fn absent_of(&self, id: ElementId) -> Option<&Absent> {
        self.absent.iter().find(|absent| absent.id == id)
    }

    /// Elements that had this name by a change, and gave it to the element of the source that has it now.
    pub(crate) fn displaced(&self, name: &str) -> &[ElementId] {
        self.names.displaced(name)
    }

    /// The element that rows of the source have this name for, one of its [`Element::source_names`], else its name or
    /// alias: to the letter, else the only one without regard to case.
    pub fn find_of_source(&self, name: &str) -> Option<ElementId> {
        self.names.get_of_source(name)
    }

    /// The element that rows of the source have this name for to the letter.
    pub(crate) fn holder_of_source(&self, name: &str) -> Option<ElementId> {
        self.names.exact_of_source(name)
    }

    /// Names that rows of the source have for elements and that are this text without regard to case.
    pub(crate) fn alike_of_source(&self, name: &str) -> Vec<String> {
        spellings(self.names.alike_of_source(&super::names::folded(name)).collect())
    }

    /// Names, aliases and captions of all elements, by position.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|id| self.element(*id)).flat_map(|element| {
            let aliases = element.aliases.iter().map(String::as_str);
            std::iter::once(element.name.as_str()).chain(aliases).chain(element.caption.as_deref())
        })
    }

    /// The element that a query takes where it names none of this dimension: the one set, else the first root that
    /// holds every base element at weight 1, else the first base element, else the first element; `None` without any.
    pub fn default_element(&self) -> Option<ElementId> {
        self.default
            .or_else(|| self.whole_root())
            .or_else(|| self.order.iter().copied().find(|id| self.element(*id).kind == ElementKind::Base))
            .or_else(|| self.order.first().copied())
    }

    /// The default element that was set; `None` where the rule of [`Dimension::default_element`] is in force.
    pub fn chosen_default(&self) -> Option<ElementId> {
        self.default
    }

    /// The first root that holds every base element at weight 1.
    pub(crate) fn whole_root(&self) -> Option<ElementId> {
        let count = self.bases.iter().flatten().count();
        let topology = self.topology();
        let tolerance = count as f64 * TOTAL_TOLERANCE;
        let holds_all = |id: &ElementId| {
            (topology.totals[id.index()] - count as f64).abs() <= tolerance
                && self
                    .base_weights(*id)
                    .is_ok_and(|below| below.bases.len() == count && below.weights.iter().all(|weight| *weight == 1.0))
        };
        if count == 0 { None } else { topology.roots.iter().copied().find(holds_all) }
    }

    /// Sets the default element, or returns to the rule of [`Dimension::default_element`].
    ///
    /// # Errors
    /// [`ModelError::NoSuchId`].
    pub fn set_default(&mut self, id: Option<ElementId>) -> Result<()> {
        id.map(|id| self.living(id)).transpose()?;
        self.default = id;
        Ok(())
    }

    /// Puts the parents of an element into another order; indentation follows the first.
    ///
    /// # Errors
    /// [`ModelError::NoSuchId`]; [`ModelError::NoSuchChild`] unless `parents` names each parent once.
    pub fn order_parents(&mut self, id: ElementId, parents: &[ElementId]) -> Result<()> {
        let mut wanted = parents.to_vec();
        let mut held = self.living(id)?.parents.clone();
        wanted.sort_unstable();
        held.sort_unstable();
        if wanted != held {
            let stranger = |one: &[ElementId], other: &[ElementId]| one.iter().copied().find(|id| !other.contains(id));
            let odd = stranger(&wanted, &held).or_else(|| stranger(&held, &wanted)).unwrap_or(wanted[0]);
            let (parent, child) = (self.living(odd)?.name.clone(), self.element(id).name.clone());
            return Err(ModelError::NoSuchChild { dimension: self.name.clone(), parent, child });
        }
        self.element_mut(id).parents = parents.to_vec();
        Ok(())
    }

    /// Sets or removes the caption of an element. Captions may repeat.
    ///
    /// # Errors
    /// [`ModelError::NoSuchId`].
    pub fn set_caption(&mut self, id: ElementId, caption: Option<&str>) -> Result<()> {
        let old = self.living(id)?.caption.clone();
        if let Some(old) = old {
            self.names.remove_caption(&old, id);
        }
        if let Some(caption) = caption {
            self.names.add_caption(caption, id);
        }
        self.element_mut(id).caption = caption.map(str::to_owned);
        Ok(())
    }

    /// Adds an alternative name.
    ///
    /// # Errors
    /// [`ModelError::NoSuchId`], [`ModelError::EmptyName`], [`ModelError::DuplicateName`].
    pub fn add_alias(&mut self, id: ElementId, alias: &str) -> Result<()> {
        self.living(id)?;
        self.claim(alias, id)?;
        self.element_mut(id).aliases.push(alias.to_owned());
        Ok(())
    }

    /// Takes an alternative name from an element.
    ///
    /// # Errors
    /// [`ModelError::NoSuchId`].
    pub(crate) fn drop_alias(&mut self, id: ElementId, alias: &str) -> Result<()> {
        let is_other = |held: &String| held != alias;
        if !self.living(id)?.aliases.iter().all(is_other) {
            self.names.release(alias);
            self.element_mut(id).aliases.retain(is_other);
        }
        Ok(())
    }

    /// Value of an element's attribute, the attribute's name without regard to case.
    pub fn attribute(&self, id: ElementId, name: &str) -> Option<&Attribute> {
        let column = self.attribute_column(name)?;
        self.element(id).attributes.iter().find(|(at, _)| usize::from(*at) == column).map(|(_, value)| value)
    }

    /// Position of an attribute in [`Dimension::attributes`], case ignored.
    pub fn attribute_column(&self, name: &str) -> Option<usize> {
        let wanted = super::names::folded(name);
        self.attributes.iter().position(|column| super::names::folded(&column.name) == wanted)
    }

    /// Position of an attribute in [`Dimension::attributes`]; one that is new takes the last, and elements have no
    /// value of it yet.
    ///
    /// # Errors
    /// [`ModelError::EmptyName`], [`ModelError::TooMany`].
    pub fn add_attribute(&mut self, name: &str, kind: AttributeKind) -> Result<usize> {
        self.named(name)?;
        match self.attribute_column(name) {
            Some(column) => Ok(column),
            None if self.attributes.len() > usize::from(u16::MAX) => Err(self.too_many("attributes", 1 << 16)),
            None => {
                self.attributes.push(AttributeColumn { name: name.to_owned(), kind });
                Ok(self.attributes.len() - 1)
            }
        }
    }

    /// Sets an attribute of an element; the first value of a new attribute decides its kind.
    ///
    /// # Errors
    /// [`ModelError::NoSuchId`]; [`ModelError::EmptyName`]; [`ModelError::Attribute`] for a number that is not finite
    /// or a value of the other kind.
    pub fn set_attribute(&mut self, id: ElementId, name: &str, value: Attribute) -> Result<()> {
        let element = self.living(id)?.name.clone();
        self.named(name)?;
        let (dimension, attribute) = (self.name.clone(), name.to_owned());
        let refused =
            move |found: String, wanted| Err(ModelError::Attribute { dimension, attribute, element, found, wanted });
        let kind = match &value {
            Attribute::Number(number) if !number.is_finite() => {
                return refused(number.to_string(), "give it a finite number");
            }
            Attribute::Number(_) => AttributeKind::Number,
            Attribute::Text(_) => AttributeKind::Text,
        };
        let column = self.add_attribute(name, kind)?;
        match (self.attributes[column].kind, &value) {
            (AttributeKind::Number, Attribute::Text(text)) => {
                return refused(format!("the text '{text}'"), "the attribute holds numbers");
            }
            (AttributeKind::Text, Attribute::Number(number)) => {
                return refused(format!("the number {number}"), "the attribute holds texts");
            }
            _ => {}
        }
        let held = &mut self.element_mut(id).attributes;
        held.retain(|(at, _)| usize::from(*at) != column);
        held.push((column as u16, value));
        Ok(())
    }

    pub(super) fn topology(&self) -> &Topology {
        let cycle = |cycle: Vec<ElementId>| panic!("a cycle of consolidations: {}", self.path(&cycle));
        // Finished dimensions have no cycle.
        self.topology.get_or_init(|| Topology::of(&self.slots, &self.order).unwrap_or_else(cycle))
    }

    pub(super) fn element_mut(&mut self, id: ElementId) -> &mut Element {
        match self.slots.get_mut(id.index()) {
            Some(Some(element)) => element,
            _ => panic!("dimension '{}' has no element number {}", self.name, id.0),
        }
    }

    pub(super) fn living(&self, id: ElementId) -> Result<&Element> {
        self.get(id).ok_or_else(|| ModelError::NoSuchId { dimension: self.name.clone(), id: id.0 })
    }

    /// Refuses names without a character that is no blank.
    pub(super) fn named(&self, name: &str) -> Result<()> {
        if is_blank(name) {
            return Err(ModelError::EmptyName { place: format!("dimension '{}'", self.name) });
        }
        Ok(())
    }

    /// Enters a name or alias into the index.
    pub(super) fn claim(&mut self, name: &str, id: ElementId) -> Result<()> {
        self.named(name)?;
        self.enter(name, id)
    }

    /// Enters a name or alias of a stored model into the index; former versions took blanks for names.
    pub(super) fn enter(&mut self, name: &str, id: ElementId) -> Result<()> {
        self.names.claim(name, id).map_err(|holder| ModelError::DuplicateName {
            dimension: self.name.clone(),
            name: name.to_owned(),
            other: self.get(holder).map_or_else(|| name.to_owned(), |element| element.name.clone()),
        })
    }

    /// Enters a name of the source into the index.
    pub(super) fn claim_source(&mut self, name: &str, id: ElementId) -> Result<()> {
        self.names.claim_source(name, id).map_err(|holder| ModelError::DuplicateName {
            dimension: self.name.clone(),
            name: name.to_owned(),
            other: self.get(holder).map_or_else(|| name.to_owned(), |element| element.name.clone()),
        })
    }

    /// Names of the elements along a path.
    pub(super) fn path(&self, ids: &[ElementId]) -> Path {
        Path(ids.iter().map(|id| self.element(*id).name.clone()).collect())
    }

    pub(super) fn too_many(&self, what: &'static str, max: usize) -> ModelError {
        ModelError::TooMany { dimension: self.name.clone(), what, max }
    }
}

/// The texts of names.
fn spellings(names: Vec<(&str, ElementId)>) -> Vec<String> {
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}
