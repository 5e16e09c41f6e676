//! Names: those that changes gave stay where no element of the source has them, and come back where it has them no
//! more. A name of the source goes before one that a change gave; an alternative name of the source goes behind it.

use std::collections::HashSet;

use super::{Keeping, KeptElement, held, is_name_of};
use crate::build::BuildError;
use crate::build::report::{GivenName, RenamedElement, TakenName};
use crate::model::{Change, Displaced, ElementId, folded};

/// A name that a change gave an element.
struct Wanted {
    /// The element in the cube, and in the dimension.
    old: ElementId,
    element: ElementId,
    name: String,
    of_source: String,
}

impl Keeping<'_> {
    /// Gives elements of the source the names that changes gave them, those that the source has for others excepted.
    pub(super) fn names(&mut self) -> Result<(), BuildError> {
        let (mut wanted, mut displaced) = self.wanted();
        for Wanted { element, name, .. } in &wanted {
            self.take_alias(name, Some(*element))?;
        }
        // A name is free if no element has it, or if the element that has it gets another name too.
        loop {
            let given_up: HashSet<String> = wanted.iter().map(|wanted| wanted.of_source.clone()).collect();
            let is_free = |wanted: &Wanted| {
                let name = &wanted.name;
                self.dimension.holder(name).is_none() || given_up.contains(name)
            };
            let (free, others): (Vec<Wanted>, Vec<Wanted>) = wanted.into_iter().partition(is_free);
            wanted = free;
            if others.is_empty() {
                break;
            }
            displaced.extend(others);
        }
        let names = wanted.iter().map(|wanted| (wanted.element, wanted.name.clone())).collect();
        self.apply(Change::RenameAll { names })?;
        for Wanted { element, of_source, .. } in wanted {
            // Rows find the element by its key, though a query finds another one.
            let holder = self.old.holder(&of_source);
            let is_other = holder.is_some_and(|holder| self.now.get(&holder) != Some(&element));
            match self.dimension.holder(&of_source) {
                None if !is_other => self.dimension.add_alias(element, &of_source)?,
                holder if holder != Some(element) => {
                    self.apply(Change::SourceName { element, name: of_source }).map(drop)?;
                }
                _ => {}
            }
        }
        for Wanted { old, element, name, .. } in displaced {
            self.displace(old, element, &name, true)?;
        }
        Ok(())
    }

    /// Names that changes gave elements of the source, those that are displaced in the cube behind the others; and
    /// those that elements of the cube have still.
    fn wanted(&self) -> (Vec<Wanted>, Vec<Wanted>) {
        let (mut seen, mut names, mut displaced) = (HashSet::new(), HashSet::new(), Vec::new());
        let mut wanted = Vec::new();
        for held in held(self.old, self.definition) {
            let Some(element) = self.now.get(&held.id).copied() else { continue };
            let of_source = self.dimension.element(element).name().to_owned();
            // A name that the source writes in another case now is no name by hand.
            let is_by_hand = held.absent.is_some() || self.old.element(held.id).is_renamed();
            let is_wanted = |name: &&str| match is_by_hand {
                true => **name != *of_source,
                false => folded(name) != folded(&of_source),
            };
            let name = held.name.filter(is_wanted).map(str::to_owned);
            let waiting = held.displaced.iter().find(|held| held.is_primary).map(|held| held.name.clone());
            let one = |name| Wanted { old: held.id, element, name, of_source };
            match (name, waiting) {
                (Some(name), _) if seen.insert(element) && names.insert(name.clone()) => wanted.push(one(name)),
                (_, Some(name)) => displaced.push(one(name)),
                _ => {}
            }
        }
        displaced.retain(|one| one.name != one.of_source && seen.insert(one.element));
        let (free, held) = displaced.into_iter().partition(|one| {
            let holder = self.old.holder(&one.name).filter(|holder| *holder != one.old);
            let is_there = |id: ElementId| self.now.contains_key(&id) || self.old.element(id).is_handmade();
            !holder.is_some_and(is_there) && names.insert(one.name.clone())
        });
        wanted.extend::<Vec<Wanted>>(free);
        (wanted, held)
    }

    /// Adds former names of elements of levels as alternative names, if no element has them: if several elements now
    /// share a value, the one that was named by it is still found by it.
    pub(super) fn former_names(&mut self) -> Result<(), BuildError> {
        for old in self.old.elements() {
            let (Some(element), before) = (self.now.get(old).copied(), self.old.element(*old)) else { continue };
            let after = self.dimension.element(element).name().to_owned();
            if before.member().is_none() || (before.aliases().is_empty() && is_name_of(before, &after)) {
                continue;
            }
            let of_values = self.old.names_of_values(*old);
            let names = std::iter::once(before.name()).chain(before.aliases().iter().map(String::as_str));
            for name in names.filter(|name| of_values.iter().any(|of_values| of_values == name)) {
                if self.dimension.holder(name).is_none() && self.dimension.find_key(name) != Some(element) {
                    self.dimension.add_alias(element, name)?;
                }
            }
            if self.old.has_name_of_values(*old) && folded(before.name()) != folded(&after) {
                let (dimension, before) = (self.dimension.name().to_owned(), before.name().to_owned());
                self.told.renamed.push(RenamedElement { dimension, before, after });
            }
        }
        Ok(())
    }

    /// Removes an alternative name from the element of the source that has it, unless it is `element`. Rows of the
    /// source still find that one by the name.
    pub(super) fn take_alias(&mut self, name: &str, element: Option<ElementId>) -> Result<(), BuildError> {
        let Some(holder) = self.dimension.holder(name).filter(|holder| Some(*holder) != element) else {
            return Ok(());
        };
        if is_name_of(self.dimension.element(holder), name) {
            return Ok(());
        }
        self.dimension.drop_alias(holder, name)?;
        self.apply(Change::SourceName { element: holder, name: name.to_owned() })?;
        let element = self.dimension.element(holder).name().to_owned();
        let dimension = self.dimension.name().to_owned();
        self.told.taken.push(TakenName { dimension, name: name.to_owned(), element });
        Ok(())
    }

    /// Gives an element the alternative names of the cube's, and those that were displaced.
    pub(super) fn aliases(&mut self, held: &KeptElement<'_>, id: ElementId) -> Result<(), BuildError> {
        if held.aliases.is_empty() && held.displaced.is_empty() {
            return Ok(());
        }
        let displaced = held.displaced.iter().filter(|held| !held.is_primary).map(|held| (&held.name, true));
        let mut of_source = vec![held.key.to_owned()];
        if held.absent.is_none() {
            of_source.extend(self.old.names_of_values(held.id));
        }
        for (alias, is_displaced) in held.aliases.iter().map(|alias| (alias, false)).chain(displaced) {
            match self.dimension.holder(alias) {
                // A caption finds it again without it.
                None if is_displaced && folded(self.dimension.element(id).caption()) == folded(alias) => {}
                // The source writes this name in another case now, by which it is found.
                None if of_source.contains(alias) && self.dimension.find_key(alias) == Some(id) => {}
                None => self.dimension.add_alias(id, alias)?,
                Some(holder) if holder == id || of_source.contains(alias) => {}
                Some(holder) if is_name_of(self.dimension.element(holder), alias) => {
                    self.displace(held.id, id, alias, false)?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Notes the caption that a change gave an element, where queries found the element by it, and find another one of
    /// that name now.
    pub(super) fn caption_of_another(&mut self, old: ElementId, id: ElementId, text: &str) -> Result<(), BuildError> {
        let is_other = self.dimension.holder(text).is_some_and(|holder| holder != id);
        if is_other && self.old.find(text).is_ok_and(|found| found == old) {
            self.displace(old, id, text, false)?;
        }
        Ok(())
    }

    /// Notes a name that a change gave an element and another one has.
    fn displace(&mut self, old: ElementId, element: ElementId, name: &str, is_primary: bool) -> Result<(), BuildError> {
        let displaced = Displaced { name: name.to_owned(), is_primary };
        self.apply(Change::Displace { element, name: displaced })?;
        let is_same = |held: &ElementId| *held == old;
        if !self.old.displaced(name).iter().any(is_same) {
            let element = self.dimension.element(element).name().to_owned();
            let (dimension, name) = (self.dimension.name().to_owned(), name.to_owned());
            self.told.given.push(GivenName { dimension, name, element });
        }
        Ok(())
    }
}
