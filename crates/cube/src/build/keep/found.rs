//! Identity: which element of the source an element of the cube is.
//!
//! An element is known by the name that the source gave it, never by another element's alternative name; an element of
//! levels first by the values that lead to it, whatever elements are called.

use std::collections::{HashMap, HashSet};

use super::is_name_of;
use crate::model::{Dimension, Element, ElementId, LevelIndex, folded};

/// The source's element of each element of the cube that it has, absent ones included.
pub(super) fn found(old: &Dimension, source: &Dimension) -> HashMap<ElementId, ElementId> {
    let index = (!source.hierarchies().is_empty()).then(|| LevelIndex::new(source, 0));
    let levels = source.hierarchies().first().map_or(0, |hierarchy| hierarchy.levels.len());
    let at = |values: &[Option<String>]| {
        let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
        index.as_ref().filter(|_| values.len() == levels)?.find(&values)
    };
    let named = |name: &str| source.find_key(name).filter(|found| is_name_of(source.element(*found), name));
    let mut taken = HashSet::new();
    let mut now = HashMap::new();
    for id in old.elements() {
        let found = place(old, *id).and_then(|values| at(&values));
        if let Some(found) = found.filter(|found| taken.insert(*found)) {
            now.insert(*id, found);
        }
    }
    // Elements whose key is known come first; the names of the others are guesses.
    let is_stored = |id: &&ElementId| {
        let element = old.element(**id);
        element.key().is_some() || !element.is_renamed()
    };
    let of_source = old.elements().iter().filter(|id| !old.element(**id).is_handmade());
    let (stored, others): (Vec<&ElementId>, Vec<&ElementId>) = of_source.partition(is_stored);
    for id in stored.into_iter().chain(others) {
        if now.contains_key(id) {
            continue;
        }
        let mut found = keys(old, *id).into_iter().filter_map(named);
        if let Some(found) = found.find(|found| taken.insert(*found)) {
            now.insert(*id, found);
        }
    }
    // The source takes an element made by hand over if it has one of its name.
    for id in old.elements().iter().filter(|id| old.element(**id).is_handmade()) {
        let element = old.element(*id);
        let name = element.source_names().first().map_or(element.name(), String::as_str);
        if let Some(found) = named(name).filter(|found| taken.insert(*found)) {
            now.insert(*id, found);
        }
    }
    // What was made by hand at an element that is back is that of an element of its name, too.
    for absent in old.absent() {
        let by_key = || named(&absent.key);
        let found = absent.place.as_ref().and_then(|values| at(values)).or_else(by_key);
        now.extend(found.map(|found| (absent.id, found)));
    }
    now
}

/// The names that the source may have for an element: its key; of an element that a former version renamed, names that
/// rows find it by. Those that values of levels gave it before are among them.
fn keys(old: &Dimension, id: ElementId) -> Vec<&str> {
    let element = old.element(id);
    let aliases = element.aliases().iter().map(String::as_str);
    match element.key() {
        None if element.is_renamed() => {
            let of_rows = element.source_names().iter().map(String::as_str).chain(aliases);
            of_rows.chain([element.name()]).collect()
        }
        key => {
            let of_values: HashSet<String> = old.names_of_values(id).iter().map(|name| folded(name)).collect();
            let former = aliases.filter(|alias| of_values.contains(&folded(alias)));
            std::iter::once(key.unwrap_or(element.name())).chain(former).collect()
        }
    }
}

/// The name of an element in the source when it was read last.
pub(super) fn key(element: &Element) -> &str {
    let of_rows = || element.is_renamed().then(|| element.source_names().iter().chain(element.aliases()).next());
    element.key().or_else(|| of_rows().flatten().map(String::as_str)).unwrap_or(element.name())
}

/// The row values of an element of the first level hierarchy, from the top level down.
pub(super) fn place(dimension: &Dimension, id: ElementId) -> Option<Vec<Option<String>>> {
    let mut values = vec![None; dimension.hierarchies().first()?.levels.len()];
    let mut next = Some(id);
    while let Some(id) = next {
        let member = dimension.get(id)?.member().filter(|member| member.hierarchy == 0)?;
        *values.get_mut(usize::from(member.level))? = Some(member.value.clone());
        next = member.parent;
    }
    Some(values)
}
