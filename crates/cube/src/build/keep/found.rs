//! Identity: which element of the source an element of the cube is.
//!
//! An element is known by the name that the source gave it, never by another element's alternative name; an element of
//! levels first by the values that lead to it, whatever elements are called. A name that the source writes in another
//! case now is that element's, if the source has one such name and one element of the cube is left for it.

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
    let named = |name: &str| source.holder(name).filter(|found| is_name_of(source.element(*found), name));
    let alike = |name: &str| {
        let found = source.find_key(name)?;
        (folded(source.element(found).name()) == folded(name)).then_some(found)
    };
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
    let by_hand = || old.elements().iter().filter(|id| old.element(**id).is_handmade());
    let name_by_hand = |id: &ElementId| {
        let element = old.element(*id);
        element.source_names().first().map_or(element.name(), String::as_str)
    };
    for id in by_hand() {
        if let Some(found) = named(name_by_hand(id)).filter(|found| taken.insert(*found)) {
            now.insert(*id, found);
        }
    }
    // What was made by hand at an element that is back is that of an element of its name, too.
    for absent in old.absent() {
        let by_key = || named(&absent.key);
        if let Some(found) = absent.place.as_ref().and_then(|values| at(values)).or_else(by_key) {
            taken.insert(found);
            now.insert(absent.id, found);
        }
    }
    // A name that the source writes in another case is the same one if it is the only one left on both sides.
    let of_source = old.elements().iter().filter(|id| !old.element(**id).is_handmade());
    let of_source = of_source.map(|id| (*id, key(old.element(*id)))).collect::<Vec<_>>();
    let of_hand = by_hand().map(|id| (*id, name_by_hand(id))).collect();
    let of_absent = old.absent().iter().map(|absent| (absent.id, absent.key.as_str())).collect();
    for names in [of_source, of_hand, of_absent] {
        let mut found: HashMap<ElementId, Vec<ElementId>> = HashMap::new();
        for (id, name) in names.into_iter().filter(|(id, _)| !now.contains_key(id)) {
            if let Some(one) = alike(name).filter(|one| !taken.contains(one)) {
                found.entry(one).or_default().push(id);
            }
        }
        for (one, ids) in found {
            taken.insert(one);
            if let [id] = ids[..] {
                now.insert(id, one);
            }
        }
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
            let of_values = old.names_of_values(id);
            let former = aliases.filter(|alias| of_values.iter().any(|name| name == alias));
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
