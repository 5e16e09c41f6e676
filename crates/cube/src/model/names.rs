//! Names of a dimension: lookup to the letter, then without regard to case, and the names nearest to an unknown one.

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

use super::ElementId;
use crate::error::Nearest;

/// Edits at most between an unknown name and one that is suggested for it.
const EDITS_MAX: usize = 3;
/// Names suggested for an unknown one.
const SUGGESTIONS_MAX: usize = 3;

/// The form in which names that differ in case alone are the same: lower case.
pub fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// True if a text names nothing: it has no character but blanks.
pub(crate) fn is_blank(name: &str) -> bool {
    name.trim().is_empty()
}

/// The elements of names. A name has one element to the letter; names that differ in case alone lie together.
#[derive(Clone, Debug, Default)]
struct Names {
    /// The first name of each folded one.
    first: HashMap<String, Spelling>,
    /// The other names of a folded one, in the order in which they came.
    further: HashMap<String, Vec<Spelling>>,
}

/// A name and its element.
#[derive(Clone, Debug)]
struct Spelling {
    /// The name; `None` if it is the folded one.
    name: Option<Box<str>>,
    id: ElementId,
}

impl Spelling {
    fn name<'a>(&'a self, folded: &'a str) -> &'a str {
        self.name.as_deref().unwrap_or(folded)
    }
}

impl Names {
    /// Enters a name; returns its element if it has one.
    fn claim(&mut self, name: &str, id: ElementId) -> Result<(), ElementId> {
        let folded = folded(name);
        if let Some(holder) = self.exact_of(&folded, name) {
            return Err(holder);
        }
        let spelling = Spelling { name: (folded != name).then(|| name.into()), id };
        match self.first.entry(folded) {
            Entry::Occupied(first) => self.further.entry(first.key().clone()).or_default().push(spelling),
            Entry::Vacant(free) => drop(free.insert(spelling)),
        }
        Ok(())
    }

    fn release(&mut self, name: &str) {
        let folded = folded(name);
        let Some(first) = self.first.get_mut(&folded) else { return };
        let further = self.further.get_mut(&folded);
        match (first.name(&folded) == name, further) {
            (true, None) => drop(self.first.remove(&folded)),
            (true, Some(further)) => *first = further.remove(0),
            (false, further) => {
                further.into_iter().for_each(|further| further.retain(|held| held.name(&folded) != name));
            }
        }
        if self.further.get(&folded).is_some_and(Vec::is_empty) {
            self.further.remove(&folded);
        }
    }

    /// The names of a folded one with their elements.
    fn of(&self, folded: &str) -> impl Iterator<Item = (&str, ElementId)> {
        self.first.get_key_value(folded).into_iter().flat_map(|(folded, first)| {
            let further = self.further.get(folded).into_iter().flatten();
            std::iter::once(first).chain(further).map(move |held| (held.name(folded), held.id))
        })
    }

    fn exact_of(&self, folded: &str, name: &str) -> Option<ElementId> {
        self.of(folded).find(|(held, _)| *held == name).map(|(_, id)| id)
    }

    fn exact(&self, name: &str) -> Option<ElementId> {
        self.exact_of(&folded(name), name)
    }
}

/// The element of all names, if it is one.
fn sole<'a>(mut names: impl Iterator<Item = (&'a str, ElementId)>) -> Option<ElementId> {
    let (_, first) = names.next()?;
    names.all(|(_, id)| id == first).then_some(first)
}

/// Names, aliases and captions of a dimension's elements. Names and aliases are unique to the letter, captions are not.
#[derive(Clone, Debug, Default)]
pub(super) struct NameIndex {
    names: Names,
    /// Captions, folded.
    captions: HashMap<String, Vec<ElementId>>,
    /// Elements whose name in the source is none of theirs.
    of_source: Names,
    /// Elements that had a name by a change, which other elements have now.
    displaced: HashMap<String, Vec<ElementId>>,
}

impl NameIndex {
    pub(super) fn with_capacity(elements: usize) -> Self {
        let names = Names { first: HashMap::with_capacity(elements), ..Names::default() };
        Self { names, ..Self::default() }
    }

    /// Enters a name; returns its holder if it is taken.
    pub(super) fn claim(&mut self, name: &str, id: ElementId) -> Result<(), ElementId> {
        self.names.claim(name, id)
    }

    pub(super) fn release(&mut self, name: &str) {
        self.names.release(name);
    }

    /// Enters a name of the source; returns its holder if that is another element.
    pub(super) fn claim_source(&mut self, name: &str, id: ElementId) -> Result<(), ElementId> {
        self.of_source.claim(name, id).or_else(|holder| if holder == id { Ok(()) } else { Err(holder) })
    }

    pub(super) fn release_source(&mut self, name: &str) {
        self.of_source.release(name);
    }

    /// The element that rows of the source have this name for, to the letter.
    pub(super) fn exact_of_source(&self, name: &str) -> Option<ElementId> {
        let folded = folded(name);
        self.of_source.exact_of(&folded, name).or_else(|| self.names.exact_of(&folded, name))
    }

    /// The element that rows of the source have this name for: to the letter, else the only one without regard to case.
    pub(super) fn get_of_source(&self, name: &str) -> Option<ElementId> {
        self.exact_of_source(name).or_else(|| sole(self.alike_of_source(&folded(name))))
    }

    /// Names that rows of the source have for elements, of a folded one.
    pub(super) fn alike_of_source(&self, folded: &str) -> impl Iterator<Item = (&str, ElementId)> {
        let is_own = |(name, _): &(&str, ElementId)| self.of_source.exact(name).is_none();
        self.of_source.of(folded).chain(self.names.of(folded).filter(is_own))
    }

    pub(super) fn add_caption(&mut self, caption: &str, id: ElementId) {
        self.captions.entry(folded(caption)).or_default().push(id);
    }

    pub(super) fn remove_caption(&mut self, caption: &str, id: ElementId) {
        drop_holder(&mut self.captions, &folded(caption), id);
    }

    pub(super) fn add_displaced(&mut self, name: &str, id: ElementId) {
        self.displaced.entry(name.to_owned()).or_default().push(id);
    }

    pub(super) fn remove_displaced(&mut self, name: &str, id: ElementId) {
        drop_holder(&mut self.displaced, name, id);
    }

    /// Elements that had this name by a change, to the letter.
    pub(super) fn displaced(&self, name: &str) -> &[ElementId] {
        self.displaced.get(name).map_or(&[], Vec::as_slice)
    }

    /// The element with this name or alias, to the letter.
    pub(super) fn exact(&self, name: &str) -> Option<ElementId> {
        self.names.exact(name)
    }

    /// The element with this name or alias: to the letter, else the only one without regard to case.
    pub(super) fn get(&self, name: &str) -> Option<ElementId> {
        let folded = folded(name);
        self.names.exact_of(&folded, name).or_else(|| sole(self.names.of(&folded)))
    }

    /// Names and aliases that are this text without regard to case, with their elements.
    pub(super) fn alike(&self, name: &str) -> Vec<(&str, ElementId)> {
        self.names.of(&folded(name)).collect()
    }

    /// Names and aliases of several elements that differ in case alone, by the first element.
    pub(super) fn all_alike(&self) -> Vec<Vec<(&str, ElementId)>> {
        let all = self.names.further.keys().filter(|folded| sole(self.names.of(folded)).is_none());
        let mut all: Vec<Vec<(&str, ElementId)>> = all.map(|folded| self.names.of(folded).collect()).collect();
        all.sort_unstable_by_key(|names| (names[0].1, names[0].0));
        all
    }

    /// Elements with this caption.
    pub(super) fn captioned(&self, caption: &str) -> &[ElementId] {
        self.captions.get(&folded(caption)).map_or(&[], Vec::as_slice)
    }
}

/// Takes an element from those of a key.
fn drop_holder(names: &mut HashMap<String, Vec<ElementId>>, key: &str, id: ElementId) {
    if let Some(holders) = names.get_mut(key) {
        holders.retain(|holder| *holder != id);
        if holders.is_empty() {
            names.remove(key);
        }
    }
}

/// Which keys of a parent-child table are parents.
pub(crate) struct ParentKeys<'a> {
    exact: HashSet<&'a str>,
    /// Parents, folded, that are no key to the letter.
    alike: HashSet<String>,
}

impl<'a> ParentKeys<'a> {
    /// The parents among the keys of rows of a key and its parent.
    pub(crate) fn of(rows: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone) -> Self {
        let keys: HashSet<&str> = rows.clone().map(|(key, _)| key).collect();
        let exact: HashSet<&str> = rows.filter_map(|(_, parent)| parent).collect();
        let alike = exact.iter().filter(|parent| !keys.contains(*parent)).map(|parent| folded(parent)).collect();
        Self { exact, alike }
    }

    /// True if a row names this key as its parent: to the letter, or without regard to case if no key is so written.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.exact.contains(key) || (!self.alike.is_empty() && self.alike.contains(&folded(key)))
    }
}

/// The candidates within a few edits of `name`, nearest first: at most a third of its characters and at most
/// [`EDITS_MAX`] differ. Swapped neighbours are one edit (optimal string alignment).
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Nearest {
    let wanted = folded(name);
    let length = wanted.chars().count();
    let most = (length / 3).min(EDITS_MAX);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= most)
        .map(|candidate| (strsim::osa_distance(&wanted, &folded(candidate)), candidate))
        .filter(|(edits, _)| *edits <= most)
        .collect();
    near.sort_unstable();
    near.dedup();
    Nearest(near.into_iter().take(SUGGESTIONS_MAX).map(|(_, candidate)| candidate.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = ["Revenue", "Cost", "Margin", "Reverse"];
        assert_eq!(nearest("revenu", names).0, ["Revenue"]);
        assert_eq!(nearest("Reveneu", names).0, ["Revenue"]);
        assert_eq!(nearest("Cast", names).0, ["Cost"]);
        assert!(nearest("Units", names).0.is_empty());
        assert!(nearest("Co", names).0.is_empty());
    }
}
