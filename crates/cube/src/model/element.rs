//! Elements of a dimension: kinds, weighted edges and attributes.

use serde::{Deserialize, Serialize};

/// Number of an element within its dimension: dense from 0, stable under every change, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ElementId(pub(crate) u32);

impl ElementId {
    /// The id of the element with this number.
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Kind of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementKind {
    /// Facts lie at base elements; each has a coordinate.
    Base,
    /// Consolidates its children with their weights; a consolidated element without children is empty.
    Consolidated,
    /// Holds text cells alone; has no coordinate and contributes nothing to its parents.
    Text,
}

/// Edge of a consolidation from a parent to a child.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// The child.
    pub child: ElementId,
    /// Factor of the child's value in the parent's; finite.
    #[serde(with = "super::exact")]
    pub weight: f64,
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attribute {
    /// A finite number.
    Number(#[serde(with = "super::exact")] f64),
    /// A text.
    Text(String),
}

/// Identity of an element in a level hierarchy: the row values that lead to it; later moves and names do not change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Position of the hierarchy in [`super::Dimension::hierarchies`].
    pub hierarchy: u16,
    /// Position of the level in [`super::Hierarchy::levels`], 0 is the top.
    pub level: u16,
    /// Element of the next level above that is not NULL; `None` at the top.
    pub parent: Option<ElementId>,
    /// Value of the level's column.
    pub value: String,
}

/// An edge of the source that a change has taken away, seen from the child. A refresh and a load leave it out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unlinked {
    /// The parent.
    pub parent: ElementId,
    /// The weight that the edge had last; finite.
    #[serde(with = "super::exact")]
    pub weight: f64,
    /// True if the source had no such edge when it was read last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
}

/// A name that a change gave an element, and that the source has for another one now. A refresh gives it back once it
/// is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Displaced {
    /// The name.
    pub name: String,
    /// True for the primary name; false for an alternative name or a caption.
    pub is_primary: bool,
}

/// An element of a dimension. Names and edges change through [`super::Dimension::apply`] alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Element {
    pub(super) name: String,
    pub(super) kind: ElementKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) caption: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) aliases: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attributes: Vec<(u16, Attribute)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) children: Vec<Edge>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) parents: Vec<ElementId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<Member>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) handmade: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) renamed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unlinked: Vec<Unlinked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// Former versions stored one name as `source_name`.
    #[serde(default, alias = "source_name", deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    pub(super) source_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) displaced: Vec<Displaced>,
}

/// A text, or a list of texts.
fn one_or_more<'de, D: serde::Deserializer<'de>>(stored: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        More(Vec<String>),
    }
    Ok(match Texts::deserialize(stored)? {
        Texts::One(text) => vec![text],
        Texts::More(texts) => texts,
    })
}

impl Element {
    /// An element without edges.
    pub(super) fn new(name: String, kind: ElementKind, base: Option<u32>) -> Self {
        Self {
            name,
            kind,
            base,
            caption: None,
            aliases: Vec::new(),
            attributes: Vec::new(),
            children: Vec::new(),
            parents: Vec::new(),
            member: None,
            handmade: false,
            renamed: false,
            unlinked: Vec::new(),
            key: None,
            source_names: Vec::new(),
            displaced: Vec::new(),
        }
    }

    /// Primary name, unique in the dimension, case ignored.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Text that output shows: the caption if one is set, else the name.
    pub fn caption(&self) -> &str {
        self.caption.as_deref().unwrap_or(&self.name)
    }

    /// True if it has a caption of its own.
    pub fn has_caption(&self) -> bool {
        self.caption.is_some()
    }

    /// True if [`super::Change::Add`] made it; other elements come from a source.
    pub fn is_handmade(&self) -> bool {
        self.handmade
    }

    /// True if [`super::Change::Rename`] or [`super::Change::RenameAll`] gave its name.
    pub fn is_renamed(&self) -> bool {
        self.renamed
    }

    /// Edges of the source to parents that changes have taken away ([`super::Change::KeepUnlinked`]).
    pub fn unlinked(&self) -> &[Unlinked] {
        &self.unlinked
    }

    /// The name that the source gave it, by which a refresh knows it; `None` if that is its name, for elements made by
    /// hand, and for elements that former versions renamed.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Names that rows of the source have for it ([`super::Change::SourceName`]) beside its name and alternative ones;
    /// queries find other elements by them.
    pub fn source_names(&self) -> &[String] {
        &self.source_names
    }

    /// Names that changes gave it and other elements have now ([`super::Change::Displace`]).
    pub fn displaced(&self) -> &[Displaced] {
        &self.displaced
    }

    /// Alternative names, each unique in the dimension like names.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// Kind of the element.
    pub fn kind(&self) -> ElementKind {
        self.kind
    }

    /// Coordinate of a base element; `None` for other kinds.
    pub fn base(&self) -> Option<u32> {
        self.base
    }

    /// Weighted children in their order.
    pub fn children(&self) -> &[Edge] {
        &self.children
    }

    /// Parents in the order in which the edges were made; the first is the parent that indentation follows.
    pub fn parents(&self) -> &[ElementId] {
        &self.parents
    }

    /// Place in a level hierarchy, for elements made from level columns.
    pub fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    /// Position of an edge to `child` among the children.
    pub(super) fn edge_to(&self, child: ElementId) -> Option<usize> {
        self.children.iter().position(|edge| edge.child == child)
    }
}
