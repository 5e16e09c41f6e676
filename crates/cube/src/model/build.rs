//! Building a dimension: element by element, from explicit lists, or from a parent-child table.
//!
//! The builder checks names and edges as they come and cycles once at the end, in time linear in elements and edges.

use std::collections::HashSet;

use super::names::{NameIndex, ParentKeys, is_blank, nearest};
use super::topology::WEIGHT_MAX;
use super::{Dimension, Edge, Element, ElementId, ElementKind, topology};
use crate::error::{ModelError, Path, Result};

/// Builds a dimension in bulk.
#[derive(Debug)]
pub struct DimensionBuilder {
    dimension: Dimension,
    edges: HashSet<(ElementId, ElementId)>,
}

/// A row of a parent-child table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParentRow<'a> {
    /// Name of the element.
    pub key: &'a str,
    /// Name of its parent; `None` for a root.
    pub parent: Option<&'a str>,
    /// Text shown in its place.
    pub caption: Option<&'a str>,
    /// Weight of the element in its parent; 1 where the table has no weights.
    pub weight: f64,
}

/// A consolidated element of the explicit form: its name, and its children's names with their weights.
pub type Consolidation<'a> = (&'a str, &'a [(&'a str, f64)]);

impl DimensionBuilder {
    /// A builder of a dimension without elements.
    ///
    /// # Errors
    /// [`ModelError::EmptyName`].
    pub fn new(name: &str) -> Result<Self> {
        if is_blank(name) {
            return Err(ModelError::EmptyName { place: "the list of dimensions".to_owned() });
        }
        let dimension = Dimension { name: name.to_owned(), ..Dimension::default() };
        Ok(Self { dimension, edges: HashSet::new() })
    }

    /// A builder that adds to a dimension.
    pub fn resume(dimension: Dimension) -> Self {
        let below = |id: &ElementId| {
            let parent = *id;
            dimension.element(parent).children.iter().map(move |edge| (parent, edge.child))
        };
        let edges = dimension.order.iter().flat_map(below).collect();
        Self { dimension, edges }
    }

    /// Makes room for so many elements.
    pub fn reserve(&mut self, elements: usize) {
        self.dimension.slots.reserve(elements);
        self.dimension.order.reserve(elements);
        if self.dimension.slots.is_empty() {
            self.dimension.names = NameIndex::with_capacity(elements);
        }
    }

    /// Appends an element; base elements take coordinates in the order in which they are added.
    ///
    /// # Errors
    /// [`ModelError::EmptyName`], [`ModelError::DuplicateName`], [`ModelError::TooMany`].
    pub fn add(&mut self, name: &str, kind: ElementKind) -> Result<ElementId> {
        self.dimension.append(name, kind)
    }

    /// Appends a child to a consolidated element.
    ///
    /// # Errors
    /// [`ModelError::Weight`] for a weight beyond [`WEIGHT_MAX`], [`ModelError::DuplicateChild`],
    /// [`ModelError::TextParent`] for a text parent, [`ModelError::BaseParent`] for a base parent,
    /// [`ModelError::NoSuchId`].
    pub fn link(&mut self, parent: ElementId, child: ElementId, weight: f64) -> Result<()> {
        self.dimension.check_weight(&[parent, child], weight)?;
        self.dimension.check_edge(parent, child)?;
        if !self.edges.insert((parent, child)) {
            let path = self.dimension.path(&[parent, child]);
            return Err(ModelError::DuplicateChild { dimension: self.dimension.name.clone(), path });
        }
        self.dimension.element_mut(parent).children.push(Edge { child, weight });
        self.dimension.element_mut(child).parents.push(parent);
        self.dimension.topology.take();
        Ok(())
    }

    /// The dimension as built so far, for its labels: names, captions, attributes, the default element.
    ///
    /// Functions of levels, positions and weights panic here if the edges so far hold a cycle.
    pub fn dimension(&mut self) -> &mut Dimension {
        &mut self.dimension
    }

    /// The finished dimension.
    ///
    /// # Errors
    /// [`ModelError::Cycle`] with the cycle.
    pub fn finish(self) -> Result<Dimension> {
        self.dimension.check_cycles()?;
        Ok(self.dimension)
    }
}

impl Dimension {
    /// The dimension of a list of base elements and consolidations over them, in this order. Consolidations may name
    /// one another in any order.
    ///
    /// # Errors
    /// Those of [`DimensionBuilder`]; [`ModelError::UnknownInPath`] for an unknown child,
    /// [`ModelError::AmbiguousCase`] for one whose name several elements have in other case.
    pub fn from_lists(name: &str, elements: &[&str], consolidated: &[Consolidation<'_>]) -> Result<Self> {
        let mut builder = DimensionBuilder::new(name)?;
        for element in elements {
            builder.add(element, ElementKind::Base)?;
        }
        let parents = consolidated.iter().map(|(parent, _)| builder.add(parent, ElementKind::Consolidated));
        let parents = parents.collect::<Result<Vec<_>>>()?;
        for (parent, (_, children)) in parents.into_iter().zip(consolidated) {
            for (child, weight) in *children {
                let Some(child_id) = builder.dimension.find_key(child) else {
                    let from = builder.dimension.element(parent).name.clone();
                    return Err(builder.dimension.unknown_in_path(vec![from, (*child).to_owned()], child));
                };
                builder.link(parent, child_id, *weight)?;
            }
        }
        builder.finish()
    }

    /// The dimension of a parent-child table, elements in the order of its rows. Keys that are parents become
    /// consolidated elements, others base elements. A key in several rows has several parents and its first caption.
    ///
    /// # Errors
    /// Those of [`DimensionBuilder`]; [`ModelError::UnknownInPath`] for a parent that is no key,
    /// [`ModelError::AmbiguousCase`] for one that several keys are in other case.
    pub fn from_parents(name: &str, rows: &[ParentRow<'_>]) -> Result<Self> {
        let mut builder = DimensionBuilder::new(name)?;
        builder.reserve(rows.len());
        let parents = ParentKeys::of(rows.iter().map(|row| (row.key, row.parent)));
        for row in rows {
            let id = match builder.dimension.holder(row.key) {
                Some(id) => id,
                None if parents.has(row.key) => builder.add(row.key, ElementKind::Consolidated)?,
                None => builder.add(row.key, ElementKind::Base)?,
            };
            if builder.dimension.element(id).caption.is_none() && row.caption.is_some() {
                builder.dimension.set_caption(id, row.caption)?;
            }
        }
        for row in rows {
            let Some(parent) = row.parent else { continue };
            let (Some(parent_id), Some(child)) =
                (builder.dimension.find_key(parent), builder.dimension.find_key(row.key))
            else {
                let path = vec![parent.to_owned(), row.key.to_owned()];
                return Err(builder.dimension.unknown_in_path(path, parent));
            };
            builder.link(parent_id, child, row.weight)?;
        }
        builder.finish()
    }

    /// Appends an element without edges.
    pub(super) fn append(&mut self, name: &str, kind: ElementKind) -> Result<ElementId> {
        let id = self.next_id()?;
        self.claim(name, id)?;
        self.append_unnamed(name, kind)
    }

    /// Appends an element whose name is entered into the index by the caller.
    pub(super) fn append_unnamed(&mut self, name: &str, kind: ElementKind) -> Result<ElementId> {
        let id = self.next_id()?;
        let base = (kind == ElementKind::Base).then_some(self.bases.len() as u32);
        if base.is_some() {
            self.bases.push(Some(id));
        }
        self.slots.push(Some(Element::new(name.to_owned(), kind, base)));
        self.order.push(id);
        self.topology.take();
        Ok(id)
    }

    pub(super) fn next_id(&self) -> Result<ElementId> {
        let number = u32::try_from(self.slots.len()).ok().filter(|number| *number < u32::MAX);
        number.map(ElementId).ok_or_else(|| self.too_many("elements", u32::MAX as usize))
    }

    /// Refuses an edge whose ends do not live or whose parent cannot hold children.
    pub(super) fn check_edge(&self, parent: ElementId, child: ElementId) -> Result<()> {
        self.living(child)?;
        let (dimension, element) = (self.name.clone(), self.living(parent)?.name.clone());
        match self.element(parent).kind {
            ElementKind::Consolidated => Ok(()),
            ElementKind::Text => Err(ModelError::TextParent { dimension, element }),
            ElementKind::Base => Err(ModelError::BaseParent { dimension, element }),
        }
    }

    /// Refuses the weight of a new edge beyond [`WEIGHT_MAX`].
    pub(super) fn check_weight(&self, edge: &[ElementId; 2], weight: f64) -> Result<()> {
        self.check_finite(edge, weight)?;
        if weight.abs() <= WEIGHT_MAX { Ok(()) } else { Err(self.wrong_weight(edge, weight)) }
    }

    /// Refuses the weight of an edge that is no number.
    pub(super) fn check_finite(&self, edge: &[ElementId; 2], weight: f64) -> Result<()> {
        edge.iter().try_for_each(|id| self.living(*id).map(drop))?;
        if weight.is_finite() { Ok(()) } else { Err(self.wrong_weight(edge, weight)) }
    }

    fn wrong_weight(&self, edge: &[ElementId; 2], weight: f64) -> ModelError {
        ModelError::Weight { dimension: self.name.clone(), path: self.path(edge), weight, max: WEIGHT_MAX }
    }

    pub(super) fn check_cycles(&self) -> Result<()> {
        match topology::sorted(&self.slots) {
            Ok(_) => Ok(()),
            Err(cycle) => Err(ModelError::Cycle { dimension: self.name.clone(), path: self.path(&cycle) }),
        }
    }

    fn unknown_in_path(&self, path: Vec<String>, name: &str) -> ModelError {
        if let Some(ambiguous) = self.ambiguous(name) {
            return ambiguous;
        }
        let nearest = nearest(name, self.all_names());
        ModelError::UnknownInPath { dimension: self.name.clone(), path: Path(path), name: name.to_owned(), nearest }
    }
}
