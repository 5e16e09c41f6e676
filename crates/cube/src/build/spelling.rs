//! Spellings of level values: names ignore case, so that values of one level that differ in case alone are one value,
//! written as it came first.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use parking_lot::Mutex;

use crate::model::{Dimension, folded};

/// Spellings of a source that name the element of another spelling, as `TRUE as true`.
#[derive(Debug, Default)]
pub(super) struct Respelled(Mutex<BTreeSet<String>>);

impl Respelled {
    /// Notes how a value is written, if that is not the spelling of its element.
    pub(super) fn note(&self, written: &str, spelling: &str) {
        if written != spelling {
            self.0.lock().insert(format!("{written} as {spelling}"));
        }
    }

    /// What was noted, ascending.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock()).into_iter().collect()
    }
}

/// The spelling of every value, by level and folded value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spellings {
    levels: Vec<HashMap<String, String>>,
}

impl Spellings {
    /// No spellings of so many levels.
    pub(super) fn new(levels: usize) -> Spellings {
        Spellings { levels: vec![HashMap::new(); levels] }
    }

    /// The spellings that the elements of a dimension's first level hierarchy have.
    pub(super) fn of(dimension: &Dimension, levels: usize) -> Spellings {
        let mut spellings = Spellings::new(levels);
        for id in dimension.elements() {
            if let Some(member) = dimension.element(*id).member().filter(|member| member.hierarchy == 0) {
                spellings.spell(usize::from(member.level), &member.value);
            }
        }
        spellings
    }

    /// The spelling of a value, which is its own if it is the first.
    pub(super) fn spell(&mut self, level: usize, value: &str) -> String {
        self.enter(level, value).unwrap_or(value).to_owned()
    }

    /// Enters a value; gives the spelling that came before it, if one did.
    pub(super) fn enter(&mut self, level: usize, value: &str) -> Option<&str> {
        match self.levels.get_mut(level)?.entry(folded(value)) {
            Entry::Occupied(held) => Some(held.into_mut()),
            Entry::Vacant(free) => {
                free.insert(value.to_owned());
                None
            }
        }
    }

    /// The spelling of a value, its own if there is none.
    pub(super) fn of_value<'a>(&'a self, level: usize, value: &'a str) -> &'a str {
        let spelling = self.levels.get(level).and_then(|held| held.get(&folded(value)));
        spelling.map_or(value, String::as_str)
    }
}
