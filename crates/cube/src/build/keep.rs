//! Merge of a live cube's dimension into the source's: a refresh keeps what people made by hand, a load keeps less.
//!
//! A refresh keeps added elements and every edge with an added element at an end. An edge between two elements of the
//! source is the source's; it stays away if a change has removed it. A renamed element of the source keeps its new
//! name. An element of a level has the name that its values give now; its former name becomes an alternative name if no
//! other element has it. Captions, attributes, alternative names and the default element stay if the definition gives
//! none. A load keeps three things: removed edges, former names of levels, and the default element, unless the source
//! has a new total.

use std::collections::{HashMap, HashSet};

use super::BuildError;
use super::report::{DefaultMove, MovedElement, RenamedElement, TakenName};
use crate::define::DimensionDefinition;
use crate::model::{Attribute, Change, Dimension, Element, ElementId, LevelIndex, NUMBER_FORMAT, folded};

/// A dimension of the source with the kept parts of the cube's.
pub(super) struct Kept {
    pub(super) dimension: Dimension,
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
    pub(super) fn new(dimension: Dimension, added: Vec<String>) -> Kept {
        let (removed, moved) = (Vec::new(), Vec::new());
        Kept { dimension, added, removed, moved, default: None, told: Told::default() }
    }
}

/// Kept parts that the report lists.
#[derive(Default)]
pub(super) struct Told {
    /// Edges of the source that stay away, as `child from parent`.
    pub(super) unlinked: Vec<String>,
    /// Elements whose values give them another name than before.
    pub(super) renamed: Vec<RenamedElement>,
    /// Alternative names of the source that elements made by hand have.
    pub(super) taken: Vec<TakenName>,
    /// The default element that stays, and the one that the rule gives.
    pub(super) default_kept: Option<DefaultMove>,
}

/// Merge by a refresh.
pub(super) fn kept(source: Dimension, old: &Dimension, definition: &DimensionDefinition) -> Result<Kept, BuildError> {
    let mut keeping = Keeping::new(source, old);
    let of_source = keeping.dimension.elements().to_vec();
    keeping.names()?;
    keeping.former_names()?;
    keeping.elements()?;
    keeping.unlinked()?;
    keeping.edges()?;
    keeping.labels(definition)?;
    keeping.default(definition)?;
    let known: HashSet<ElementId> = keeping.now.values().copied().collect();
    let Keeping { dimension, now, told, .. } = keeping;
    let name = |id: &ElementId| dimension.element(*id).name().to_owned();
    let added = of_source.iter().filter(|id| !known.contains(*id)).map(name).collect();
    let gone = old.elements().iter().filter(|id| !now.contains_key(*id));
    let removed = gone.map(|id| old.element(*id).name().to_owned()).collect();
    let moved = moved(old, &dimension, &now);
    let default = moved_default(old, &dimension, &now);
    Ok(Kept { dimension, added, removed, moved, default, told })
}

/// Merge by a load; `added` are the elements for its report.
pub(super) fn carried(
    source: Dimension,
    old: &Dimension,
    definition: &DimensionDefinition,
    added: Vec<String>,
) -> Result<Kept, BuildError> {
    let mut keeping = Keeping::new(source, old);
    keeping.former_names()?;
    keeping.unlinked()?;
    if keeping.dimension.whole_root().is_none() {
        keeping.default(definition)?;
    }
    let Keeping { dimension, now, told, .. } = keeping;
    let default = moved_default(old, &dimension, &now);
    Ok(Kept { default, told, ..Kept::new(dimension, added) })
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

/// Maps elements of the cube to those of the source: by the place in a level hierarchy, else by name, else by an
/// alternative name. An element made by hand is mapped to an element of the same name alone.
fn found(old: &Dimension, source: &Dimension) -> HashMap<ElementId, ElementId> {
    let index = (!source.hierarchies().is_empty()).then(|| LevelIndex::new(source, 0));
    let levels = source.hierarchies().first().map_or(0, |hierarchy| hierarchy.levels.len());
    let by_place = |id: ElementId| {
        let values = place(old, id, levels)?;
        index.as_ref()?.find(&values.iter().map(Option::as_deref).collect::<Vec<_>>())
    };
    let mut taken = HashSet::new();
    let mut now = HashMap::new();
    let by_name = |id: ElementId| {
        let element = old.element(id);
        let name = element.source_name().unwrap_or(element.name());
        source.find_key(name).filter(|found| !element.is_handmade() || is_name_of(source.element(*found), name))
    };
    // Renamed elements come first: the source's name of one may be the present name of another.
    let is_exchanged = |id: &&ElementId| old.element(**id).source_name().is_some();
    let (exchanged, others): (Vec<&ElementId>, Vec<&ElementId>) = old.elements().iter().partition(is_exchanged);
    let all = || exchanged.iter().chain(&others).copied();
    // An element at the same place of a level hierarchy is the same one; names of other elements do not matter.
    for id in all() {
        if let Some(found) = by_place(*id).filter(|found| taken.insert(*found)) {
            now.insert(*id, found);
        }
    }
    for id in all() {
        if !now.contains_key(id)
            && let Some(found) = by_name(*id).filter(|found| taken.insert(*found))
        {
            now.insert(*id, found);
        }
    }
    for id in old.elements() {
        if !now.contains_key(id) && !old.element(*id).is_handmade() {
            // A renamed element keeps its key in the source as an alternative name; a caption or alternative name of
            // the source's element does not count.
            let by_key =
                |alias: &String| source.find_key(alias).filter(|found| is_name_of(source.element(*found), alias));
            let mut aliases = old.element(*id).aliases().iter().filter_map(by_key);
            if let Some(found) = aliases.find(|found| taken.insert(*found)) {
                now.insert(*id, found);
            }
        }
    }
    now
}

fn is_name_of(element: &Element, name: &str) -> bool {
    folded(element.name()) == folded(name)
}

/// The row values of an element of the first level hierarchy, from the top level down.
fn place(dimension: &Dimension, id: ElementId, levels: usize) -> Option<Vec<Option<String>>> {
    let mut values = vec![None; levels];
    let mut next = Some(id);
    while let Some(id) = next {
        let member = dimension.get(id)?.member().filter(|member| member.hierarchy == 0)?;
        *values.get_mut(usize::from(member.level))? = Some(member.value.clone());
        next = member.parent;
    }
    Some(values)
}

/// A dimension of the source while the kept parts are added to it.
struct Keeping<'a> {
    dimension: Dimension,
    old: &'a Dimension,
    /// Elements of the cube to those of the dimension.
    now: HashMap<ElementId, ElementId>,
    told: Told,
}

impl<'a> Keeping<'a> {
    fn new(source: Dimension, old: &'a Dimension) -> Keeping<'a> {
        Keeping { now: found(old, &source), dimension: source, old, told: Told::default() }
    }

    fn apply(&mut self, change: Change) -> Result<Option<ElementId>, BuildError> {
        // The facts are read later; those that name an element of another kind are refused then.
        Ok(self.dimension.apply(change, &|_| false)?.added)
    }

    /// Gives elements of the source their names in the cube, unless the definition gives such a name to another
    /// element.
    fn names(&mut self) -> Result<(), BuildError> {
        let mut renamed = Vec::new();
        for old in self.old.elements() {
            let Some(element) = self.now.get(old).copied() else { continue };
            let (name, of_source) = (self.old.element(*old).name(), self.dimension.element(element).name().to_owned());
            if self.old.element(*old).source_name().is_some() {
                self.apply(Change::SourceName { element, name: of_source.clone() })?;
            }
            if folded(name) != folded(&of_source) && !self.old.has_name_of_values(*old) {
                renamed.push((*old, element, name.to_owned(), of_source));
            }
        }
        for (_, element, name, _) in &renamed {
            self.take_alias(name, Some(*element))?;
        }
        // A name is free if no element has it, or if the element that has it gets another name too.
        loop {
            let given_up: HashSet<String> = renamed.iter().map(|(_, _, _, of_source)| folded(of_source)).collect();
            let is_free = |name: &str| self.dimension.find_key(name).is_none() || given_up.contains(&folded(name));
            let before = renamed.len();
            renamed.retain(|(_, _, name, _)| is_free(name));
            if renamed.len() == before {
                break;
            }
        }
        let names = renamed.iter().map(|(_, element, name, _)| (*element, name.clone())).collect();
        self.apply(Change::RenameAll { names })?;
        for (old, element, _, of_source) in &renamed {
            let is_other = self.old.find_key(of_source).is_some_and(|holder| holder != *old);
            if !is_other && self.dimension.find_key(of_source).is_none() {
                self.dimension.add_alias(*element, of_source)?;
            }
        }
        Ok(())
    }

    /// Adds former names of elements of levels as alternative names, if no element has them: if several elements now
    /// share a value, the one that was named by it is still found by it.
    fn former_names(&mut self) -> Result<(), BuildError> {
        for old in self.old.elements() {
            let (Some(element), before) = (self.now.get(old).copied(), self.old.element(*old)) else { continue };
            let after = self.dimension.element(element).name().to_owned();
            if before.member().is_none() || (before.aliases().is_empty() && is_name_of(before, &after)) {
                continue;
            }
            let of_values: HashSet<String> = self.old.names_of_values(*old).iter().map(|name| folded(name)).collect();
            let names = std::iter::once(before.name()).chain(before.aliases().iter().map(String::as_str));
            for name in names.filter(|name| of_values.contains(&folded(name))) {
                if self.dimension.find_key(name).is_none() {
                    self.dimension.add_alias(element, name)?;
                }
            }
            if self.old.has_name_of_values(*old) && !is_name_of(before, &after) {
                let (dimension, before) = (self.dimension.name().to_owned(), before.name().to_owned());
                self.told.renamed.push(RenamedElement { dimension, before, after });
            }
        }
        Ok(())
    }

    /// Removes the edges of the source that changes have removed.
    fn unlinked(&mut self) -> Result<(), BuildError> {
        for old in self.old.elements() {
            let Some(child) = self.now.get(old).copied() else { continue };
            for unlinked in self.old.element(*old).unlinked() {
                let Some(parent) = self.now.get(&unlinked.parent).copied() else { continue };
                let edge = self.dimension.element(parent).children().iter().find(|edge| edge.child == child).copied();
                let weight = edge.map_or(unlinked.weight, |edge| edge.weight);
                if edge.is_some() {
                    self.apply(Change::Unlink { parent, child })?;
                    let name = |id| self.dimension.element(id).name();
                    self.told.unlinked.push(format!("{} from {}", name(child), name(parent)));
                }
                self.apply(Change::KeepUnlinked { parent, child, weight })?;
            }
        }
        Ok(())
    }

    /// Keeps the cube's default element by rule, if the rule gives another one now.
    fn default(&mut self, definition: &DimensionDefinition) -> Result<(), BuildError> {
        if definition.default.is_some() || self.dimension.chosen_default().is_some() {
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
                if let (Some(element), Some(name)) = (added, element.source_name()) {
                    self.apply(Change::SourceName { element, name: name.to_owned() })?;
                }
            }
            before = self.now.get(old).copied().or(before);
        }
        Ok(())
    }

    /// Removes an alternative name from the element of the source that has it, unless it is `element`.
    fn take_alias(&mut self, name: &str, element: Option<ElementId>) -> Result<(), BuildError> {
        let Some(holder) = self.dimension.find_key(name).filter(|holder| Some(*holder) != element) else {
            return Ok(());
        };
        if is_name_of(self.dimension.element(holder), name) {
            return Ok(());
        }
        self.dimension.drop_alias(holder, name)?;
        let own = self.dimension.element(holder).source_name();
        if own.is_none_or(|own| self.dimension.find_key(own) == Some(holder)) {
            self.apply(Change::SourceName { element: holder, name: name.to_owned() })?;
        }
        let element = self.dimension.element(holder).name().to_owned();
        let dimension = self.dimension.name().to_owned();
        self.told.taken.push(TakenName { dimension, name: name.to_owned(), element });
        Ok(())
    }

    /// Adds the edges of the cube with an element made by hand at an end.
    fn edges(&mut self) -> Result<(), BuildError> {
        for old in self.old.elements() {
            let element = self.old.element(*old);
            for (place, edge) in element.children().iter().enumerate() {
                let is_kept = [*old, edge.child].iter().any(|end| self.is_handmade(*end));
                if let (true, Some(parent), Some(child)) = (is_kept, self.now.get(old), self.now.get(&edge.child)) {
                    let (parent, child, weight) = (*parent, *child, edge.weight);
                    let place = (!self.is_handmade(*old)).then_some(place);
                    self.apply(Change::Link { parent, child, weight, place })?;
                }
            }
        }
        Ok(())
    }

    /// True if an element of the cube was made by hand and is not the source's now.
    fn is_handmade(&self, old: ElementId) -> bool {
        self.now.get(&old).is_some_and(|element| self.dimension.element(*element).is_handmade())
    }

    /// Keeps captions, alternative names, attributes and the chosen default element, if the definition gives none.
    fn labels(&mut self, definition: &DimensionDefinition) -> Result<(), BuildError> {
        let mut given: HashSet<String> = definition.attributes.iter().map(|name| folded(name)).collect();
        given.extend((!definition.format.is_empty()).then(|| folded(NUMBER_FORMAT)));
        let attributes: Vec<&str> = self.old.attributes().iter().map(|column| column.name.as_str()).collect();
        let kept = attributes.into_iter().filter(|name| !given.contains(&folded(name))).collect::<Vec<_>>();
        for old in self.old.elements() {
            let Some(id) = self.now.get(old).copied() else { continue };
            let element = self.old.element(*old);
            // A level's value that is the caption of a longer name was not given by hand.
            let is_given = |element: &Element| {
                element.has_caption() && element.member().is_none_or(|member| member.value != element.caption())
            };
            if is_given(element) && !is_given(self.dimension.element(id)) && definition.caption.is_none() {
                self.dimension.set_caption(id, Some(element.caption()))?;
            }
            for alias in element.aliases() {
                if self.dimension.find_key(alias).is_none() {
                    self.dimension.add_alias(id, alias)?;
                }
            }
            for name in &kept {
                let value: Option<Attribute> = self.old.attribute(*old, name).cloned();
                if let Some(value) = value {
                    self.dimension.set_attribute(id, name, value)?;
                }
            }
        }
        if let Some(default) = self.old.chosen_default().filter(|_| definition.default.is_none()) {
            self.dimension.set_default(self.now.get(&default).copied())?;
        }
        Ok(())
    }
}

/// Parents of each element with their weights, by position of the parents.
type Parents = HashMap<ElementId, Vec<(ElementId, f64)>>;

fn parents(dimension: &Dimension) -> Parents {
    let mut parents = Parents::new();
    for parent in dimension.elements() {
        for edge in dimension.element(*parent).children() {
            parents.entry(edge.child).or_default().push((*parent, edge.weight));
        }
    }
    parents
}

/// The elements whose parents or weights have changed.
fn moved(old: &Dimension, dimension: &Dimension, now: &HashMap<ElementId, ElementId>) -> Vec<MovedElement> {
    let (before, after) = (parents(old), parents(dimension));
    let names = |dimension: &Dimension, edges: &[(ElementId, f64)]| {
        let name = |(parent, weight): &(ElementId, f64)| match dimension.element(*parent).name() {
            name if *weight == 1.0 => name.to_owned(),
            name => format!("{name} × {weight}"),
        };
        edges.iter().map(name).collect()
    };
    let of = |id: &ElementId| {
        let element = now.get(id)?;
        let (before, after) =
            (before.get(id).map_or(&[][..], Vec::as_slice), after.get(element).map_or(&[][..], Vec::as_slice));
        let mapped = before.iter().map(|(parent, weight)| (now.get(parent).copied(), weight.to_bits()));
        let held = after.iter().map(|(parent, weight)| (Some(*parent), weight.to_bits()));
        if mapped.collect::<HashSet<_>>() == held.collect::<HashSet<_>>() {
            return None;
        }
        Some(MovedElement {
            dimension: dimension.name().to_owned(),
            element: dimension.element(*element).name().to_owned(),
            before: names(old, before),
            after: names(dimension, after),
        })
    };
    old.elements().iter().filter_map(of).collect()
}
