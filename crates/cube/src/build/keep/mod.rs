//! Merge of a live cube's dimension into the source's: a refresh keeps what people made by hand, a load keeps less.
//!
//! Elements that a change added stay, with every edge that has one of them at an end; an edge between two elements of
//! the source is the source's, and stays away if a change has taken it away. An element of the source that was renamed
//! keeps its new name unless the source has it for another element ([`names`]). A name that values of levels gave is
//! the one that they give now, and the former one finds the element where no other has it. Captions, attributes,
//! alternative names and the default element stay where the definition gives none. What was made by hand at an element
//! that the source does not have comes back with it ([`away`]). A load keeps edges away, former names of levels, and a
//! default element in whose place no total comes.

mod away;
mod found;
mod moved;
mod names;

use std::collections::{HashMap, HashSet};

use self::found::{found, key};
use self::moved::moved;
use super::BuildError;
use super::report::{BuildReport, DefaultMove, GivenName, MovedElement, NamedElements, RenamedElement, TakenName};
use crate::define::DimensionDefinition;
use crate::error::ModelError;
use crate::model::{
    Absent, Attribute, AttributeKind, Change, Dimension, DimensionBuilder, Displaced, Element, ElementId, ElementKind,
    Unlinked, folded,
};

/// What a merge did to a dimension of the source.
#[derive(Default)]
pub(super) struct Kept {
    /// Names of elements that the cube did not have.
    pub(super) added: Vec<String>,
    /// Names of elements that the dimension no longer has.
    pub(super) removed: Vec<String>,
    pub(super) moved: Vec<MovedElement>,
    pub(super) default: Option<DefaultMove>,
    pub(super) told: Told,
}

impl Kept {
    /// A dimension of the source alone.
    pub(super) fn new(added: Vec<String>) -> Kept {
        Kept { added, ..Kept::default() }
    }

    /// Adds what became of a dimension to a report.
    pub(super) fn reported(self, dimension: &Dimension, report: &mut BuildReport) {
        let name = dimension.name();
        let Kept { added, removed, moved, default, told } = self;
        report.added.extend(NamedElements::of(name, added));
        report.removed.extend(NamedElements::of(name, removed));
        report.moved.extend(moved);
        report.defaults.extend(default);
        report.defaults_kept.extend(told.default_kept);
        report.unlinked.extend(NamedElements::of(name, told.unlinked));
        report.renamed.extend(told.renamed);
        report.respelled.extend(told.respelled);
        report.taken.extend(told.taken);
        report.given.extend(told.given);
        report.adopted.extend(NamedElements::of(name, told.adopted));
        report.away.extend(NamedElements::of(name, told.away));
        report.dropped.extend(NamedElements::of(name, told.dropped));
        report.nowhere.extend(NamedElements::of(name, told.nowhere));
        report.two_paths.extend(dimension.two_paths());
    }
}

/// Kept and dropped parts that the report lists.
#[derive(Default)]
pub(super) struct Told {
    /// Edges of the source that stay away, as `child from parent`.
    pub(super) unlinked: Vec<String>,
    /// Elements whose values give them another name than before.
    pub(super) renamed: Vec<RenamedElement>,
    /// Elements whose name the source writes in another case than before.
    pub(super) respelled: Vec<RenamedElement>,
    /// Alternative names of the source that elements made by hand have.
    pub(super) taken: Vec<TakenName>,
    /// Names that changes gave elements, and that other elements have now.
    pub(super) given: Vec<GivenName>,
    /// Elements that were made by hand, and are the source's now.
    pub(super) adopted: Vec<String>,
    /// Elements that are gone, and at which something was made by hand.
    pub(super) away: Vec<String>,
    /// What was made by hand and is dropped.
    pub(super) dropped: Vec<String>,
    /// Elements that lie below nothing, as edges of the source stay away from them.
    pub(super) nowhere: Vec<String>,
    /// The default element that stays, and the one that the rule gives.
    pub(super) default_kept: Option<DefaultMove>,
}

/// A merge by a refresh whose dimension has all elements, and of the edges those of the source alone.
pub(super) struct Refreshed<'a> {
    keeping: Keeping<'a>,
    /// Elements of the source.
    of_source: Vec<ElementId>,
}

impl<'a> Refreshed<'a> {
    /// The first part of a merge: elements, their names, and edges that changes have taken away.
    pub(super) fn new(
        source: Dimension,
        old: &'a Dimension,
        definition: &'a DimensionDefinition,
    ) -> Result<Refreshed<'a>, BuildError> {
        let mut keeping = Keeping::new(source, old, definition);
        let of_source = keeping.dimension.elements().to_vec();
        keeping.gather_absent(false)?;
        keeping.names()?;
        keeping.former_names()?;
        keeping.elements()?;
        keeping.unlinked()?;
        Ok(Refreshed { keeping, of_source })
    }

    /// Gives the dimension away until [`Refreshed::finished`].
    pub(super) fn lend(&mut self) -> Result<Dimension, BuildError> {
        let empty = DimensionBuilder::new(self.keeping.dimension.name())?.finish()?;
        Ok(std::mem::replace(&mut self.keeping.dimension, empty))
    }

    /// The dimension with edges made by hand and labels; `filled` tells whether facts lie at a coordinate.
    pub(super) fn finished(
        self,
        dimension: Dimension,
        filled: &dyn Fn(u32) -> bool,
    ) -> Result<(Dimension, Kept), BuildError> {
        let Refreshed { mut keeping, of_source } = self;
        keeping.dimension = dimension;
        keeping.edges(filled)?;
        keeping.labels()?;
        keeping.default()?;
        keeping.keep_absent();
        keeping.nowhere();
        let Keeping { dimension, old, now, told, .. } = keeping;
        let known: HashSet<ElementId> = old.elements().iter().filter_map(|id| now.get(id).copied()).collect();
        let name = |id: &ElementId| dimension.element(*id).name().to_owned();
        let added = of_source.iter().filter(|id| !known.contains(*id)).map(name).collect();
        let gone = old.elements().iter().filter(|id| !now.contains_key(*id));
        let removed = gone.map(|id| old.element(*id).name().to_owned()).collect();
        let moved = moved(old, &dimension, &now);
        let default = moved_default(old, &dimension, &now);
        Ok((dimension, Kept { added, removed, moved, default, told }))
    }
}

/// Merge by a load; `added` are the elements for its report.
pub(super) fn carried(
    source: Dimension,
    old: &Dimension,
    definition: &DimensionDefinition,
    added: Vec<String>,
) -> Result<(Dimension, Kept), BuildError> {
    let mut keeping = Keeping::new(source, old, definition);
    keeping.told.dropped = keeping.made_by_hand();
    keeping.gather_absent(true)?;
    keeping.former_names()?;
    keeping.unlinked()?;
    if keeping.dimension.whole_root().is_none() {
        keeping.default()?;
    }
    keeping.keep_absent();
    keeping.nowhere();
    let Keeping { dimension, now, told, .. } = keeping;
    let default = moved_default(old, &dimension, &now);
    Ok((dimension, Kept { default, told, ..Kept::new(added) }))
}

/// The default elements before and after, if they differ.
fn moved_default(old: &Dimension, dimension: &Dimension, now: &HashMap<ElementId, ElementId>) -> Option<DefaultMove> {
    let (before, after) = (old.default_element()?, dimension.default_element()?);
    (now.get(&before) != Some(&after)).then(|| DefaultMove {
        dimension: dimension.name().to_owned(),
        before: old.element(before).name().to_owned(),
        after: dimension.element(after).name().to_owned(),
    })
}

fn is_name_of(element: &Element, name: &str) -> bool {
    element.name() == name
}

/// True if rows of the dimension's table may give an element a caption and attributes: not if a change made it, if the
/// definition lists it, or if it is of a level above the base.
pub(crate) fn has_labels_of_table(element: &Element, definition: &DimensionDefinition) -> bool {
    let is_of_rows = element.member().is_none() || element.kind() == ElementKind::Base;
    let mut listed = definition.consolidated.names().chain(definition.all.as_deref());
    !element.is_handmade() && is_of_rows && !listed.any(|name| name == key(element))
}

/// The caption of an element, unless it is the value of a level that a longer name is made of.
fn own_caption(element: &Element) -> Option<&str> {
    let is_own = |caption: &&str| element.member().is_none_or(|member| member.value != *caption);
    element.has_caption().then(|| element.caption()).filter(is_own)
}

/// The caption that a change gave an element.
fn caption_by_hand<'a>(element: &'a Element, definition: &DimensionDefinition) -> Option<&'a str> {
    let is_of_table = definition.caption.is_some() && has_labels_of_table(element, definition);
    own_caption(element).filter(|_| !is_of_table)
}

/// An element of the cube or one that is absent there, with what a refresh keeps of both.
struct KeptElement<'a> {
    id: ElementId,
    /// Its name in the source.
    key: &'a str,
    /// Its name, unless values of levels gave it.
    name: Option<&'a str>,
    caption: Option<&'a str>,
    aliases: &'a [String],
    displaced: &'a [Displaced],
    unlinked: &'a [Unlinked],
    absent: Option<&'a Absent>,
}

/// Elements of a cube by position, those that are absent behind them.
fn held<'a>(old: &'a Dimension, definition: &DimensionDefinition) -> Vec<KeptElement<'a>> {
    let of_element = |id: &ElementId| {
        let element = old.element(*id);
        KeptElement {
            id: *id,
            key: key(element),
            name: (!old.has_name_of_values(*id)).then(|| element.name()),
            caption: caption_by_hand(element, definition),
            aliases: element.aliases(),
            displaced: element.displaced(),
            unlinked: element.unlinked(),
            absent: None,
        }
    };
    let of_absent = |absent: &'a Absent| KeptElement {
        id: absent.id,
        key: &absent.key,
        name: absent.name.as_deref(),
        caption: absent.caption.as_deref(),
        aliases: &absent.aliases,
        displaced: &absent.displaced,
        unlinked: &absent.unlinked,
        absent: Some(absent),
    };
    old.elements().iter().map(of_element).chain(old.absent().iter().map(of_absent)).collect()
}

/// An edge of the cube with an element made by hand at an end.
struct EdgeByHand {
    parent: ElementId,
    child: ElementId,
    weight: f64,
    /// Its place among its siblings; at their end if absent.
    place: Option<usize>,
}

/// A dimension of the source while the kept parts are added to it.
struct Keeping<'a> {
    dimension: Dimension,
    old: &'a Dimension,
    definition: &'a DimensionDefinition,
    /// Elements of the cube, absent ones included, to those of the dimension.
    now: HashMap<ElementId, ElementId>,
    /// Names that the source has for elements, of those that rows had for elements made by hand.
    met: HashSet<String>,
    /// What was made by hand at elements that are away, and their numbers in the dimension by those of the cube.
    absent: Vec<Absent>,
    away: HashMap<ElementId, ElementId>,
    /// Base elements of the source that edges made by hand turned into groups, with the coordinates that they had.
    grouped: Vec<(ElementId, u32)>,
    told: Told,
}

impl<'a> Keeping<'a> {
    fn new(source: Dimension, old: &'a Dimension, definition: &'a DimensionDefinition) -> Keeping<'a> {
        let by_hand = || old.elements().iter().map(|id| old.element(*id)).filter(|element| element.is_handmade());
        let names = by_hand().flat_map(Element::source_names);
        let met = names.filter(|name| source.holder(name).is_some()).cloned().collect();
        let now = found(old, &source);
        let adopted = old.elements().iter().filter(|id| now.contains_key(*id) && old.element(**id).is_handmade());
        let adopted = adopted.map(|id| old.element(*id).name().to_owned()).collect();
        let respelled = old.elements().iter().filter_map(|id| {
            let (element, after) = (old.element(*id), source.element(*now.get(id)?).name());
            let is_respelled = !element.is_handmade() && key(element) != after && folded(key(element)) == folded(after);
            let (dimension, before, after) = (source.name().to_owned(), key(element).to_owned(), after.to_owned());
            is_respelled.then_some(RenamedElement { dimension, before, after })
        });
        let told = Told { adopted, respelled: respelled.collect(), ..Told::default() };
        let (absent, away, grouped) = Default::default();
        Keeping { dimension: source, old, definition, now, met, absent, away, grouped, told }
    }

    fn apply(&mut self, change: Change) -> Result<Option<ElementId>, BuildError> {
        Ok(self.dimension.apply(change, &|_| false)?.added)
    }

    /// Adds an edge made by hand, unless it is there; true if it was added. One that the source does not allow now is
    /// dropped: it would make a cycle, or facts lie at the parent.
    fn link(&mut self, edge: &EdgeByHand, filled: &dyn Fn(u32) -> bool) -> bool {
        let EdgeByHand { parent, child, weight, place } = *edge;
        if self.dimension.element(parent).children().iter().any(|edge| edge.child == child) {
            return false;
        }
        let reason = match self.dimension.apply(Change::Link { parent, child, weight, place }, filled) {
            Ok(effect) => {
                self.grouped.extend(effect.freed_base.map(|base| (parent, base)));
                return true;
            }
            Err(ModelError::HasFacts { .. }) => "where facts lie".to_owned(),
            Err(ModelError::Cycle { .. }) => "which lies below it".to_owned(),
            Err(other) => other.to_string(),
        };
        self.drop_edge(parent, child, &reason);
        false
    }

    fn drop_edge(&mut self, parent: ElementId, child: ElementId, reason: &str) {
        let name = |id| self.dimension.element(id).name();
        self.told.dropped.push(format!("{} below {}, {reason}", name(child), name(parent)));
    }

    /// Drops edges made by hand until no weights are refused, of each refusal the edge that adds most to it. Elements
    /// that such edges alone had made groups are base elements again.
    fn lighten(&mut self, mut edges: Vec<(ElementId, ElementId)>) -> Result<(), BuildError> {
        while let Some(heaviest) = self.dimension.heaviest(&edges) {
            let (parent, child) = edges.swap_remove(heaviest);
            if let Err(ModelError::WeightSum { element, sum, max, .. }) = self.dimension.check_weights() {
                let reason = format!("by which the weights below {element} add up to {sum:e}, more than {max:e}");
                self.drop_edge(parent, child, &reason);
            }
            self.apply(Change::Unlink { parent, child })?;
        }
        for (id, base) in std::mem::take(&mut self.grouped) {
            if self.dimension.element(id).children().is_empty() {
                self.dimension.restore_base(id, base);
            }
        }
        Ok(())
    }

    /// Removes the edges of the source that changes have removed.
    fn unlinked(&mut self) -> Result<(), BuildError> {
        for held in held(self.old, self.definition) {
            let Some(child) = self.now.get(&held.id).copied() else { continue };
            for unlinked in held.unlinked {
                let Some(parent) = self.now.get(&unlinked.parent).copied() else {
                    if let Some(parent) = self.away.get(&unlinked.parent).copied() {
                        self.dimension.keep_unlinked(child, Unlinked { parent, is_gone: true, ..*unlinked })?;
                    }
                    continue;
                };
                let edge = self.dimension.element(parent).children().iter().find(|edge| edge.child == child).copied();
                let weight = edge.map_or(unlinked.weight, |edge| edge.weight);
                if edge.is_some() {
                    self.apply(Change::Unlink { parent, child })?;
                    let name = |id| self.dimension.element(id).name();
                    self.told.unlinked.push(format!("{} from {}", name(child), name(parent)));
                }
                self.dimension.keep_unlinked(child, Unlinked { parent, weight, is_gone: edge.is_none() })?;
            }
        }
        Ok(())
    }

    /// Tells the elements that lie below nothing, as edges of the source stay away from them.
    fn nowhere(&mut self) {
        let dimension = &self.dimension;
        let names = dimension.unlinked_roots().map(|id| dimension.element(id).name().to_owned()).collect();
        self.told.nowhere = names;
    }

    /// Keeps the cube's default element by rule, if the rule gives another one now.
    fn default(&mut self) -> Result<(), BuildError> {
        if self.definition.default.is_some() || self.dimension.chosen_default().is_some() {
            return Ok(());
        }
        let stays = self.old.default_element().and_then(|before| self.now.get(&before).copied());
        if let (Some(stays), Some(after)) = (stays, self.dimension.default_element())
            && stays != after
        {
            self.dimension.set_default(Some(stays))?;
            let name = |id| self.dimension.element(id).name().to_owned();
            let (dimension, before, after) = (self.dimension.name().to_owned(), name(stays), name(after));
            self.told.default_kept = Some(DefaultMove { dimension, before, after });
        }
        Ok(())
    }

    /// Adds elements made by hand that the source does not have, each after its predecessor in the cube. If such a name
    /// is an alternative name in the source, rows of the source still find the source's element by it; queries find the
    /// added one.
    fn elements(&mut self) -> Result<(), BuildError> {
        let mut before = None;
        for old in self.old.elements() {
            let element = self.old.element(*old);
            if element.is_handmade() && !self.now.contains_key(old) {
                let position = before.map_or(0, |before| self.dimension.position(before) as usize + 1);
                let (name, kind) = (element.name().to_owned(), element.kind());
                self.take_alias(&name, None)?;
                let added = self.apply(Change::Add { name, kind, position: Some(position) })?;
                self.now.extend(added.map(|added| (*old, added)));
                for name in element.source_names().iter().filter(|name| !self.met.contains(*name)) {
                    if let Some(element) = added {
                        self.dimension.apply(Change::SourceName { element, name: name.clone() }, &|_| false)?;
                    }
                }
            }
            before = self.now.get(old).copied().or(before);
        }
        Ok(())
    }

    /// Adds the edges of the cube with an element made by hand at an end.
    fn edges(&mut self, filled: &dyn Fn(u32) -> bool) -> Result<(), BuildError> {
        let mut edges = Vec::new();
        for old in self.old.elements() {
            let element = self.old.element(*old);
            for (place, edge) in element.children().iter().enumerate() {
                let is_kept = [*old, edge.child].iter().any(|end| self.is_handmade(*end));
                if let (true, Some(parent), Some(child)) = (is_kept, self.now.get(old), self.now.get(&edge.child)) {
                    let place = (!self.is_handmade(*old)).then_some(place);
                    edges.push(EdgeByHand { parent: *parent, child: *child, weight: edge.weight, place });
                }
            }
        }
        edges.extend(self.edges_of_back());
        edges.retain(|edge| self.link(edge, filled));
        self.lighten(edges.iter().map(|edge| (edge.parent, edge.child)).collect())
    }

    /// True if an element of the cube was made by hand and is not the source's now.
    fn is_handmade(&self, old: ElementId) -> bool {
        self.now.get(&old).is_some_and(|element| self.dimension.element(*element).is_handmade())
    }

    /// Keeps captions, alternative names, attributes and the chosen default element, if the definition gives none.
    fn labels(&mut self) -> Result<(), BuildError> {
        let (old, definition) = (self.old, self.definition);
        for held in held(old, definition) {
            let Some(id) = self.now.get(&held.id).copied() else { continue };
            if let (Some(caption), None) = (held.caption, own_caption(self.dimension.element(id))) {
                self.dimension.set_caption(id, Some(caption))?;
                self.caption_of_another(held.id, id, caption)?;
            }
            self.aliases(&held, id)?;
            let attributes = match held.absent {
                Some(absent) => absent.attributes.clone(),
                None => self.attributes(held.id),
            };
            for (name, value) in attributes {
                if self.dimension.attribute(id, &name).is_none() {
                    self.attribute(id, &name, value)?;
                }
            }
        }
        if definition.default.is_none() {
            let back = old.absent().iter().find(|absent| absent.is_default && self.now.contains_key(&absent.id));
            let default = back.map(|absent| absent.id).or(old.chosen_default());
            self.dimension.set_default(default.and_then(|default| self.now.get(&default).copied()))?;
        }
        Ok(())
    }

    /// Gives an element an attribute that a change gave it, of the kind that the source's values have now. A text that
    /// is no number is dropped from an attribute of numbers.
    fn attribute(&mut self, id: ElementId, name: &str, value: Attribute) -> Result<(), BuildError> {
        let kind = self.dimension.attribute_column(name).map(|column| self.dimension.attributes()[column].kind);
        let value = match (kind, value) {
            (Some(AttributeKind::Text), Attribute::Number(number)) => Attribute::Text(number.to_string()),
            (Some(AttributeKind::Number), Attribute::Text(text)) => match text.parse() {
                Ok(number) if f64::is_finite(number) => Attribute::Number(number),
                _ => {
                    self.told.dropped.push(format!("{name} of {}", self.dimension.element(id).name()));
                    return Ok(());
                }
            },
            (_, value) => value,
        };
        Ok(self.dimension.set_attribute(id, name, value)?)
    }

    /// What was made by hand and a load drops, a text each.
    fn made_by_hand(&self) -> Vec<String> {
        let (old, mut all) = (self.old, Vec::new());
        for id in old.elements() {
            let (element, now) = (old.element(*id), self.now.get(id));
            if element.is_handmade() {
                all.extend(now.is_none().then(|| element.name().to_owned()));
                continue;
            }
            let of = now.map_or(key(element), |now| self.dimension.element(*now).name());
            let is_named = element.is_renamed() && !old.has_name_of_values(*id) && !is_name_of(element, of);
            let aliases = if self.definition.names.is_empty() { self.aliases_by_hand(*id) } else { Vec::new() };
            let names = is_named.then(|| element.name().to_owned()).into_iter().chain(aliases);
            let names = names.chain(element.displaced().iter().map(|displaced| displaced.name.clone()));
            all.extend(names.map(|name| format!("name {name} of {of}")));
            let caption = caption_by_hand(element, self.definition);
            all.extend(caption.map(|caption| format!("caption {caption} of {of}")));
            let attributes = self.attributes(*id).into_iter();
            let by_hand = |(name, value): (String, Attribute)| {
                now.is_none_or(|now| self.dimension.attribute(*now, &name) != Some(&value)).then_some(name)
            };
            all.extend(attributes.filter_map(by_hand).map(|name| format!("{name} of {of}")));
        }
        all.extend(
            old.absent().iter().filter(|absent| absent.is_more_than_unlinked()).map(|absent| absent.key.clone()),
        );
        all
    }
}
