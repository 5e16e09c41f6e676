//! Elements of the source that it does not have now.
//!
//! A delivery may lack an element that the next one has again. What was made by hand at it is kept apart from the
//! elements of the dimension, and comes back with it.

use serde::{Deserialize, Serialize};

use super::{Attribute, Displaced, Edge, ElementId, Unlinked};

/// What was made by hand at an element that the source did not have when it was read last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    /// Its number, by which [`Unlinked`] names it. No element of the dimension has it.
    pub id: ElementId,
    /// Its name in the source.
    pub key: String,
    /// Row values that lead to it, in a dimension of levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Vec<Option<String>>>,
    /// Its name, if a change gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its caption, if a change gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Its alternative names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Names that changes gave it and other elements have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub displaced: Vec<Displaced>,
    /// Attributes that the definition does not give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, Attribute)>,
    /// Its edges from elements made by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Above>,
    /// Its edges to elements made by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Edge>,
    /// Edges of the source to parents that changes have taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlinked: Vec<Unlinked>,
    /// True if changes have taken edges of the source to children away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unlinked_from: bool,
    /// True if a change made it the default element.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

/// An edge from an element made by hand to an absent one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Above {
    /// The element made by hand.
    pub parent: ElementId,
    /// The weight; finite.
    #[serde(with = "super::exact")]
    pub weight: f64,
    /// The place among the children of the parent.
    pub place: usize,
}

impl Absent {
    /// An absent element at which nothing was made by hand.
    pub(crate) fn new(id: ElementId, key: String, place: Option<Vec<Option<String>>>) -> Absent {
        let (name, caption, aliases, displaced, attributes) = Default::default();
        let (above, children, unlinked) = Default::default();
        let (is_unlinked_from, is_default) = (false, false);
        Absent {
            id,
            key,
            place,
            name,
            caption,
            aliases,
            displaced,
            attributes,
            above,
            children,
            unlinked,
            is_unlinked_from,
            is_default,
        }
    }

    /// True if nothing was made by hand at it.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_more_than_unlinked() && self.unlinked.is_empty() && !self.is_unlinked_from
    }

    /// True if more was made by hand at it than edges taken away, which a load keeps.
    pub(crate) fn is_more_than_unlinked(&self) -> bool {
        let Absent { name, caption, aliases, displaced, attributes, above, children, is_default, .. } = self;
        let is_named = name.is_some() || caption.is_some() || !aliases.is_empty() || !displaced.is_empty();
        is_named || !attributes.is_empty() || !above.is_empty() || !children.is_empty() || *is_default
    }

    /// Forgets all edges with an element that was removed.
    pub(super) fn forget(&mut self, id: ElementId) {
        self.above.retain(|above| above.parent != id);
        self.children.retain(|edge| edge.child != id);
        self.unlinked.retain(|unlinked| unlinked.parent != id);
    }
}
