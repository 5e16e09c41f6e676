//! Statements one after the other: names become elements of the cube as the statements before have left it.

mod noted;

use std::cell::{OnceCell, RefCell};

use arrow::error::ArrowError;

use self::noted::{Noted, noted};
use super::aside::{self, Freed};
use super::report::{ChangeReport, FactsAside};
use crate::build::DefaultMove;
use crate::define::Definition;
use crate::error::ModelError;
use crate::model::{
    Attribute, Change, CubeModel, Dimension, ElementId, ElementKind, NUMBER_FORMAT, NumberFormat, Unlinked, folded,
};
use crate::query::{
    Action, ChangeStatement, ElementName, Literal, Neighbour, Placed, QueryError, Span, find_dimension, find_element,
    namesake_warning, quoted,
};
use crate::store::{CubeOrigin, StoredCube};

/// A cube that changes.
pub(super) struct Changing<'a> {
    old: &'a StoredCube,
    text: &'a str,
    model: CubeModel,
    /// Coordinates that have facts, by dimension.
    filled: Vec<OnceCell<Vec<bool>>>,
    freed: Vec<Freed>,
    /// Renames whose names other elements have; the renames behind them may free these.
    renames: Vec<Rename>,
    /// The model before the first of the renames in a row: their names stand for the elements that had them there.
    before_renames: Option<CubeModel>,
    /// Names that stand for one of several elements.
    warnings: RefCell<Vec<String>>,
    /// The definition, if a label needs it.
    definition: OnceCell<Option<Definition>>,
    noted: Noted,
    report: ChangeReport,
}

/// A rename that is not applied yet.
struct Rename {
    dimension: usize,
    element: ElementId,
    old: String,
    name: String,
    /// True if the element was found by its caption.
    is_caption: bool,
    span: Span,
}

impl<'a> Changing<'a> {
    pub(super) fn new(old: &'a StoredCube, text: &'a str) -> Changing<'a> {
        let filled = old.model.dimensions().iter().map(|_| OnceCell::new()).collect();
        let model = old.model.clone();
        let (freed, renames, before_renames, warnings, definition) = Default::default();
        let (noted, report) = Default::default();
        Changing { old, text, model, filled, freed, renames, before_renames, warnings, definition, noted, report }
    }

    /// Applies a statement. Renames in a row are applied together: each may take a name that one behind it frees.
    pub(super) fn apply(&mut self, statement: &ChangeStatement) -> Result<(), QueryError> {
        self.apply_unweighed(statement)?;
        let places = matches!(
            statement.action,
            Action::Add { .. } | Action::Link { .. } | Action::Move { .. } | Action::Relink { .. }
        );
        let mut dimensions = self.model.dimensions().iter().filter(|_| places);
        let checked = dimensions.try_for_each(Dimension::check_weights);
        checked.map_err(|error| self.error(statement.span, error.to_string()))
    }

    /// Applies a statement before the sums of weights are checked.
    fn apply_unweighed(&mut self, statement: &ChangeStatement) -> Result<(), QueryError> {
        if !matches!(statement.action, Action::Rename { .. }) {
            self.end_renames()?;
            self.before_renames = None;
        }
        self.report.changes += 1;
        let is_label = |action: &Action| {
            matches!(
                action,
                Action::Caption { .. } | Action::Alias { .. } | Action::Set { .. } | Action::Default { .. }
            )
        };
        self.report.is_not_exported |=
            is_label(&statement.action) && matches!(self.old.origin, Some(CubeOrigin::Palo(_)));
        let span = statement.span;
        match &statement.action {
            Action::Add { element, children, parents, place } => {
                self.add(element, children.as_deref(), parents, place.as_ref(), span)
            }
            Action::Rename { element, name } => self.rename(element, name, span),
            Action::Move { element, from, parents } => self.move_below(element, from.as_ref(), parents, span),
            Action::Link { element, parents } => {
                let (at, child) = self.found(element)?;
                parents.iter().try_for_each(|parent| self.link(at, child, parent, span))
            }
            Action::Unlink { element, parents } => {
                let (at, child) = self.found(element)?;
                parents.iter().try_for_each(|parent| {
                    let parent = self.within(at, parent)?;
                    self.unlink(at, child, parent, span)
                })
            }
            Action::Relink { element, parents } => self.relink(element, parents, span),
            Action::Place { element, place } => {
                let (at, id) = self.found(element)?;
                let wanted = self.position(at, place)?;
                // The element leaves its old position first.
                let position = wanted - usize::from((self.dimension(at).position(id) as usize) < wanted);
                self.note_element(at, id);
                self.change(at, Change::Reposition { element: id, position }, span).map(drop)
            }
            Action::Remove { elements } => elements.iter().try_for_each(|element| self.remove(element)),
            Action::Caption { element, caption } => {
                let (at, id) = self.found(element)?;
                self.note_label(at, id, "caption", |definition| definition.caption.is_some());
                self.change(at, Change::Caption { element: id, caption: caption.clone() }, span).map(drop)
            }
            Action::Alias { element, alias } => {
                let (at, id) = self.found(element)?;
                self.change(at, Change::Alias { element: id, alias: alias.clone() }, span).map(drop)
            }
            Action::Set { element, attribute, value } => {
                let (at, id) = self.found(element)?;
                let value = self.attribute(at, attribute, value);
                if let (NUMBER_FORMAT, Attribute::Text(pattern)) = (folded(attribute).as_str(), &value) {
                    pattern.parse::<NumberFormat>().map_err(|reason| self.error(span, reason))?;
                }
                let wanted = folded(attribute);
                self.note_label(at, id, attribute, |definition| {
                    definition.attributes.iter().any(|given| folded(given) == wanted)
                });
                let attribute = attribute.clone();
                self.change(at, Change::SetAttribute { element: id, attribute, value }, span).map(drop)
            }
            Action::Default { element } => {
                let (at, id) = self.found(element)?;
                if self.definition_of(at).is_some_and(|definition| definition.default.is_some()) {
                    let dimension = self.model.dimensions()[at].name();
                    noted(&mut self.report.labels_of_source, dimension, "the default element".to_owned());
                }
                self.change(at, Change::SetDefault { element: Some(id) }, span).map(drop)
            }
        }
    }

    /// The changed cube.
    pub(super) fn finish(mut self) -> Result<(StoredCube, ChangeReport), ArrowError> {
        self.tell_noted();
        let Changing { old, mut model, freed, mut report, warnings, .. } = self;
        let split = aside::split(old, &model, &freed)?;
        let facts_aside = freed.iter().zip(&split.facts_of).filter(|(_, facts)| **facts > 0);
        report.facts_aside = facts_aside
            .map(|(freed, facts)| FactsAside {
                dimension: model.dimensions()[freed.dimension].name().to_owned(),
                element: freed.name.clone(),
                facts: *facts,
            })
            .collect();
        for (at, before) in old.model.dimensions().iter().enumerate() {
            let Some(moved) = moved_default(before, &model.dimensions()[at]) else { continue };
            let stays = before.default_element().filter(|id| model.dimensions()[at].get(*id).is_some());
            let kept = Change::SetDefault { element: stays };
            match stays.is_some() && model.apply(at, kept, &|_| false).is_ok() {
                true => report.defaults_kept.push(moved),
                false => report.defaults.push(moved),
            }
        }
        let is_of_palo = matches!(old.origin, Some(CubeOrigin::Palo(_)));
        report.is_not_exported |= is_of_palo && !report.defaults_kept.is_empty();
        let dimensions = old.model.dimensions().iter().zip(model.dimensions());
        report.two_paths = dimensions.filter(|(old, new)| old != new).filter_map(|(_, new)| new.two_paths()).collect();
        report.warnings = warnings.into_inner();
        report.texts_aside = (old.texts.len() - split.texts.len()) as u64;
        let aside = old.aside.iter().cloned().chain(split.aside).collect();
        let (definition, origin) = (old.definition.clone(), old.origin.clone());
        let (facts, texts, scheme) = (split.facts, split.texts, old.scheme);
        Ok((StoredCube { model, facts, scheme, definition, texts, aside, origin }, report))
    }

    fn add(
        &mut self,
        element: &ElementName,
        children: Option<&[Placed]>,
        parents: &[Placed],
        place: Option<&Neighbour>,
        span: Span,
    ) -> Result<(), QueryError> {
        let at = self.dimension_of_new(element, children, parents, place)?;
        let kind = if children.is_some() { ElementKind::Consolidated } else { ElementKind::Base };
        let position = place.map(|place| self.position(at, place)).transpose()?;
        let added = self.change(at, Change::Add { name: element.name.clone(), kind, position }, span)?;
        let Some(id) = added else { return Ok(()) };
        for child in children.unwrap_or_default() {
            let (weight, child) = (child.weight, self.within(at, &child.element)?);
            self.change(at, Change::Link { parent: id, child, weight, place: None }, span)?;
        }
        parents.iter().try_for_each(|parent| self.link(at, id, parent, span))
    }

    /// The dimension of an element that is not there yet: the one that is named, else that of the elements around it.
    fn dimension_of_new(
        &self,
        element: &ElementName,
        children: Option<&[Placed]>,
        parents: &[Placed],
        place: Option<&Neighbour>,
    ) -> Result<usize, QueryError> {
        if let Some(dimension) = &element.dimension {
            return find_dimension(&self.model, self.text, dimension, element.span);
        }
        let beside = place.map(|(Neighbour::Before(name) | Neighbour::After(name))| name);
        let edges = children.unwrap_or_default().iter().chain(parents).map(|placed| &placed.element);
        match edges.chain(beside).next() {
            Some(name) => Ok(self.found(name)?.0),
            None if self.model.dimensions().len() == 1 => Ok(0),
            None => {
                let names: Vec<&str> = self.model.dimensions().iter().map(Dimension::name).collect();
                let message = format!(
                    "{} needs its dimension, one of {}: write dimension:{}, or below and a parent",
                    element.name,
                    names.join(", "),
                    crate::query::quoted(&element.name),
                );
                Err(self.error(element.span, message))
            }
        }
    }

    fn rename(&mut self, element: &ElementName, name: &str, span: Span) -> Result<(), QueryError> {
        let before = &*self.before_renames.get_or_insert_with(|| self.model.clone());
        // A name given by an earlier rename of the row counts too.
        let (at, id, is_caption) = match find_element(before, self.text, element) {
            Ok((at, id)) => (at, id, before.dimensions()[at].find_key(&element.name) != Some(id)),
            Err(_) => {
                let (at, id) = self.found(element)?;
                (at, id, self.dimension(at).find_key(&element.name) != Some(id))
            }
        };
        if self.renames.iter().any(|rename| (rename.dimension, rename.element) == (at, id)) {
            self.end_renames()?;
        }
        let old = self.dimension(at).element(id).name().to_owned();
        self.renames.push(Rename { dimension: at, element: id, old, name: name.to_owned(), is_caption, span });
        match self.rename_all(at) {
            Ok(()) => Ok(()),
            // A rename that follows may take that name away.
            Err(refused) if matches!(refused.0, ModelError::DuplicateName { .. }) => Ok(()),
            Err(refused) => Err(self.error(refused.1, refused.0.to_string())),
        }
    }

    /// Refuses renames to names that other elements still have.
    pub(super) fn end_renames(&mut self) -> Result<(), QueryError> {
        while let Some(rename) = self.renames.first() {
            self.rename_all(rename.dimension).map_err(|refused| self.error(refused.1, refused.0.to_string()))?;
        }
        Ok(())
    }

    /// Applies the renames of a dimension together, or none of them; an error comes with the place of its rename.
    fn rename_all(&mut self, at: usize) -> Result<(), Box<(ModelError, Span)>> {
        let renames = self.renames.iter().filter(|rename| rename.dimension == at);
        let names = renames.map(|rename| (rename.element, rename.name.clone())).collect();
        if let Err(error) = self.model.apply(at, Change::RenameAll { names }, &|_| false) {
            let span = self.span_of(at, &error);
            return Err(Box::new((error, span)));
        }
        let (done, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.renames).into_iter().partition(|rename| rename.dimension == at);
        self.renames = waiting;
        done.iter().try_for_each(|rename| self.label(rename).map_err(|error| Box::new((error, rename.span))))
    }

    /// The place of the rename that an error is of.
    fn span_of(&self, at: usize, error: &ModelError) -> Span {
        let mut renames = self.renames.iter().filter(|rename| rename.dimension == at);
        let found = match error {
            ModelError::DuplicateName { name, .. } => {
                let holder = self.dimension(at).holder(name);
                let gives_up =
                    self.renames.iter().any(|rename| rename.dimension == at && Some(rename.element) == holder);
                // Of two elements that get a name which is given up, the second is refused.
                let mut wrong = renames.filter(|rename| rename.name == *name);
                if gives_up { wrong.next_back() } else { wrong.next() }
            }
            _ => renames.next_back(),
        };
        found.expect("an error is of a rename").span
    }

    /// Gives a renamed element the labels that follow from its new name.
    fn label(&mut self, rename: &Rename) -> Result<(), ModelError> {
        let Rename { dimension: at, element, .. } = *rename;
        // Reports show captions: one by which the element was found would hide the new name.
        if rename.is_caption {
            self.note_label(at, element, "caption", |definition| definition.caption.is_some());
            let caption = Some(rename.name.clone());
            self.model.apply(at, Change::Caption { element, caption }, &|_| false)?;
        }
        if !self.has_source() {
            return Ok(());
        }
        // The source names the element as before. A name that was an alternative one of the element has changed places
        // with the old one; a name that another element has got is kept apart.
        let dimension = self.dimension(at);
        let named = dimension.element(element);
        let of_source = named.key().unwrap_or(&rename.old);
        let is_others = dimension.holder_of_source(of_source).is_some_and(|holder| {
            let names = dimension.element(holder).source_names();
            holder != element && names.iter().all(|name| name != of_source)
        });
        let holder = dimension.holder(&rename.old);
        if is_others && named.source_names().is_empty() {
            let name = of_source.to_owned();
            self.model.apply(at, Change::SourceName { element, name }, &|_| false)?;
        }
        if holder.is_none() {
            self.model.apply(at, Change::Alias { element, alias: rename.old.clone() }, &|_| false)?;
        }
        Ok(())
    }

    fn move_below(
        &mut self,
        element: &ElementName,
        from: Option<&ElementName>,
        parents: &[Placed],
        span: Span,
    ) -> Result<(), QueryError> {
        let (at, child) = self.found(element)?;
        let mut wanted: Vec<ElementId> = Vec::new();
        for parent in parents {
            let id = self.within(at, &parent.element)?;
            if wanted.contains(&id) {
                let message = format!("{} stands here a second time", parent.element);
                return Err(self.error(parent.element.span, message));
            }
            wanted.push(id);
        }
        let leaves = match from {
            Some(from) => vec![self.within(at, from)?],
            None => self.dimension(at).element(child).parents().to_vec(),
        };
        // A refresh keeps edges to elements made by hand, and so the move to one; it undoes others as a whole.
        let is_kept = wanted.iter().any(|parent| self.dimension(at).element(*parent).is_handmade());
        for parent in leaves {
            if !wanted.contains(&parent) || !self.is_parent(at, parent, child) {
                match is_kept {
                    true => self.unlink(at, child, parent, span)?,
                    false => {
                        self.note_edge(at, parent, child);
                        self.change(at, Change::Unlink { parent, child }, span)?;
                    }
                }
            }
        }
        for (parent, placed) in wanted.into_iter().zip(parents) {
            match self.is_parent(at, parent, child) {
                true => {
                    self.note_edge(at, parent, child);
                    self.change(at, Change::Weigh { parent, child, weight: placed.weight }, span)?;
                }
                false => self.link(at, child, placed, span)?,
            }
        }
        Ok(())
    }

    fn is_parent(&self, at: usize, parent: ElementId, child: ElementId) -> bool {
        self.dimension(at).element(child).parents().contains(&parent)
    }

    fn link(&mut self, at: usize, child: ElementId, parent: &Placed, span: Span) -> Result<(), QueryError> {
        let (weight, place, parent) = (parent.weight, parent.element.span, self.within(at, &parent.element)?);
        if self.is_parent(at, parent, child) {
            let name = |id| quoted(self.dimension(at).element(id).name());
            let (child, parent) = (name(child), name(parent));
            let message = format!(
                "{child} lies below {parent} already; its weight changes with move {child} from {parent} below \
                 {parent} weight {weight}"
            );
            return Err(self.error(place, message));
        }
        self.note_edge(at, parent, child);
        self.change(at, Change::Link { parent, child, weight, place: None }, span).map(drop)
    }

    /// Takes a child from a parent for good: a refresh leaves out this edge of the source.
    fn unlink(&mut self, at: usize, child: ElementId, parent: ElementId, span: Span) -> Result<(), QueryError> {
        let edge = self.dimension(at).element(parent).children().iter().find(|edge| edge.child == child).copied();
        self.change(at, Change::Unlink { parent, child }, span)?;
        if let Some(weight) = edge.filter(|_| self.is_of_source(at, parent, child)).map(|edge| edge.weight) {
            self.change(at, Change::KeepUnlinked { parent, child, weight }, span)?;
            self.noted.unlinked.push((at, [parent, child]));
        }
        Ok(())
    }

    /// Gives a child the edges back that changes have taken from it.
    fn relink(&mut self, element: &ElementName, parents: &[ElementName], span: Span) -> Result<(), QueryError> {
        let (at, child) = self.found(element)?;
        let unlinked = self.dimension(at).element(child).unlinked().to_vec();
        let dimension = self.dimension(at);
        let name = |held: &Unlinked| match dimension.get(held.parent) {
            Some(parent) => parent.name().to_owned(),
            None => dimension.absent_of(held.parent).map_or_else(String::new, |absent| absent.key.clone()),
        };
        let is_there = |held: &&Unlinked| !held.is_gone && dimension.get(held.parent).is_some();
        let refused = |place: Span, from: String| {
            let held = match unlinked.is_empty() {
                true => "is unlinked from no element".to_owned(),
                false => format!("is unlinked from {}", unlinked.iter().map(name).collect::<Vec<_>>().join(", ")),
            };
            self.error(place, format!("{element} {held}{from}: link places it below further ones"))
        };
        let gone = |place: Span, held: &Unlinked| {
            let parent = name(held);
            self.error(
                place,
                format!("the source does not have {element} below {parent} any more: link places it there"),
            )
        };
        let mut wanted = Vec::new();
        if parents.is_empty() {
            wanted.extend(unlinked.iter().filter(is_there).copied());
        }
        for parent in parents {
            let id = self.within(at, parent)?;
            let held = unlinked.iter().find(|held| held.parent == id);
            let held = held.ok_or_else(|| refused(parent.span, format!(", not from {parent}")))?;
            wanted.push(*Some(held).filter(is_there).ok_or_else(|| gone(parent.span, held))?);
        }
        if wanted.is_empty() {
            return Err(match unlinked.first() {
                Some(held) => gone(element.span, held),
                None => refused(element.span, String::new()),
            });
        }
        for Unlinked { parent, weight, .. } in wanted {
            self.change(at, Change::Link { parent, child, weight, place: None }, span)?;
        }
        Ok(())
    }

    fn remove(&mut self, element: &ElementName) -> Result<(), QueryError> {
        let (at, id) = self.found(element)?;
        self.note_element(at, id);
        self.change(at, Change::Remove { element: id }, element.span).map(drop)
    }

    /// Applies a change, and keeps in mind the coordinate that it frees; returns the element that it adds.
    fn change(&mut self, at: usize, change: Change, span: Span) -> Result<Option<ElementId>, QueryError> {
        let (facts, filled) = (&self.old.facts, &self.filled[at]);
        let is_filled = |base: u32| {
            let filled = filled.get_or_init(|| facts.coordinates(at));
            filled.get(base as usize).copied().unwrap_or(false)
        };
        let changed = self.model.apply(at, change, &is_filled);
        let effect = changed.map_err(|error| self.error(span, error.to_string()))?.effect;
        let before = &self.old.model.dimensions()[at];
        // Elements that statements before this one have added have no facts.
        if let Some((base, id)) = effect.freed_base.and_then(|base| Some((base, before.at_base(base)?))) {
            self.freed.push(Freed { dimension: at, base, name: before.element(id).name().to_owned() });
        }
        Ok(effect.added)
    }

    /// True if the cube has a source and both elements are of it.
    fn is_of_source(&self, at: usize, parent: ElementId, child: ElementId) -> bool {
        let is_handmade = |id| self.dimension(at).element(id).is_handmade();
        self.has_source() && !is_handmade(parent) && !is_handmade(child)
    }

    /// The value of an attribute as its kind takes it: a number without quotes is a text where the attribute has texts.
    fn attribute(&self, at: usize, name: &str, value: &Literal) -> Attribute {
        let dimension = self.dimension(at);
        let kind = dimension.attribute_column(name).map(|column| dimension.attributes()[column].kind);
        match value {
            // A format may be a number: 0.
            Literal::Number(_, text) if kind.is_none() && folded(name) == NUMBER_FORMAT => {
                Attribute::Text(text.clone())
            }
            Literal::Number(number, _) if kind != Some(crate::model::AttributeKind::Text) => Attribute::Number(*number),
            Literal::Number(_, text) => Attribute::Text(text.clone()),
            Literal::Text(text) => Attribute::Text(text.clone()),
        }
    }

    /// The position of a place among the elements.
    fn position(&self, at: usize, place: &Neighbour) -> Result<usize, QueryError> {
        let (name, behind) = match place {
            Neighbour::Before(name) => (name, 0),
            Neighbour::After(name) => (name, 1),
        };
        let id = self.within(at, name)?;
        Ok(self.dimension(at).position(id) as usize + behind)
    }

    fn found(&self, name: &ElementName) -> Result<(usize, ElementId), QueryError> {
        let (at, id) = find_element(&self.model, self.text, name)?;
        self.warnings.borrow_mut().extend(namesake_warning(self.dimension(at), id, &name.name));
        Ok((at, id))
    }

    /// The element of a name in one dimension.
    fn within(&self, at: usize, name: &ElementName) -> Result<ElementId, QueryError> {
        let dimension = self.dimension(at);
        if name.dimension.is_none() {
            let id = dimension.find(&name.name).map_err(|error| self.error(name.span, error.to_string()))?;
            self.warnings.borrow_mut().extend(namesake_warning(dimension, id, &name.name));
            return Ok(id);
        }
        let (found, id) = self.found(name)?;
        match found == at {
            true => Ok(id),
            false => {
                let message = format!("{name} stands in a change of dimension {}", dimension.name());
                Err(self.error(name.span, message))
            }
        }
    }

    fn has_source(&self) -> bool {
        self.old.definition.is_some()
    }

    fn dimension(&self, at: usize) -> &Dimension {
        &self.model.dimensions()[at]
    }

    fn error(&self, span: Span, message: String) -> QueryError {
        QueryError::new(self.text, span, message)
    }
}

/// The default element of a changed dimension if it is another one than before and was not set.
fn moved_default(old: &Dimension, new: &Dimension) -> Option<DefaultMove> {
    let (before, after) = (old.default_element()?, new.default_element()?);
    (before != after && new.chosen_default().is_none()).then(|| DefaultMove {
        dimension: new.name().to_owned(),
        before: old.element(before).name().to_owned(),
        after: new.element(after).name().to_owned(),
    })
}
