//! Names of a dimension: lookup that ignores case, and the names nearest to an unknown one.

use hashbrown::HashMap;

use super::ElementId;
use crate::error::Nearest;

/// Edits at most between an unknown name and one that is suggested for it.
const EDITS_MAX: usize = 3;
/// Names suggested for an unknown one.
const SUGGESTIONS_MAX: usize = 3;

/// The form under which names are compared: lower case.
pub(crate) fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// Names, aliases and captions of a dimension's elements. Names and aliases are unique when folded, captions are not.
#[derive(Clone, Debug, Default)]
pub(super) struct NameIndex {
    names: HashMap<String, ElementId>,
    captions: HashMap<String, Vec<ElementId>>,
    /// Elements whose name in the source is none of theirs.
    of_source: HashMap<String, ElementId>,
    /// Elements that had a name by a change, which other elements have now.
    displaced: HashMap<String, Vec<ElementId>>,
}

impl NameIndex {
    pub(super) fn with_capacity(elements: usize) -> Self {
        Self { names: HashMap::with_capacity(elements), ..Self::default() }
    }

    /// Enters a name; returns its holder if it is taken.
    pub(super) fn claim(&mut self, name: &str, id: ElementId) -> Result<(), ElementId> {
        match self.names.entry(folded(name)) {
            hashbrown::hash_map::Entry::Occupied(entry) => Err(*entry.get()),
            hashbrown::hash_map::Entry::Vacant(entry) => {
                entry.insert(id);
                Ok(())
            }
        }
    }

    pub(super) fn release(&mut self, name: &str) {
        self.names.remove(&folded(name));
    }

    /// Enters a name of the source; returns its holder if that is another element.
    pub(super) fn claim_source(&mut self, name: &str, id: ElementId) -> Result<(), ElementId> {
        match *self.of_source.entry(folded(name)).or_insert(id) {
            holder if holder == id => Ok(()),
            holder => Err(holder),
        }
    }

    pub(super) fn release_source(&mut self, name: &str) {
        self.of_source.remove(&folded(name));
    }

    /// The element that rows of the source have this name for.
    pub(super) fn get_of_source(&self, name: &str) -> Option<ElementId> {
        let folded = folded(name);
        self.of_source.get(&folded).or_else(|| self.names.get(&folded)).copied()
    }

    pub(super) fn add_caption(&mut self, caption: &str, id: ElementId) {
        self.captions.entry(folded(caption)).or_default().push(id);
    }

    pub(super) fn remove_caption(&mut self, caption: &str, id: ElementId) {
        drop_holder(&mut self.captions, caption, id);
    }

    pub(super) fn add_displaced(&mut self, name: &str, id: ElementId) {
        self.displaced.entry(folded(name)).or_default().push(id);
    }

    pub(super) fn remove_displaced(&mut self, name: &str, id: ElementId) {
        drop_holder(&mut self.displaced, name, id);
    }

    /// Elements that had this name by a change.
    pub(super) fn displaced(&self, name: &str) -> &[ElementId] {
        self.displaced.get(&folded(name)).map_or(&[], Vec::as_slice)
    }

    /// The element with this name or alias.
    pub(super) fn get(&self, name: &str) -> Option<ElementId> {
        self.names.get(&folded(name)).copied()
    }

    /// Elements with this caption.
    pub(super) fn captioned(&self, caption: &str) -> &[ElementId] {
        self.captions.get(&folded(caption)).map_or(&[], Vec::as_slice)
    }
}

/// Takes an element from those of a name.
fn drop_holder(names: &mut HashMap<String, Vec<ElementId>>, name: &str, id: ElementId) {
    let key = folded(name);
    if let Some(holders) = names.get_mut(&key) {
        holders.retain(|holder| *holder != id);
        if holders.is_empty() {
            names.remove(&key);
        }
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
