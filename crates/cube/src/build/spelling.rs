//! Spellings of level values: names ignore case, so that values of one level that differ in case alone are one value,
//! written as it came first.

use hashbrown::HashMap;

use crate::model::{Dimension, folded};

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
        let Some(held) = self.levels.get_mut(level) else { return value.to_owned() };
        held.entry(folded(value)).or_insert_with(|| value.to_owned()).clone()
    }

    /// The spelling of a value, its own if there is none.
    pub(super) fn of_value<'a>(&'a self, level: usize, value: &'a str) -> &'a str {
        let spelling = self.levels.get(level).and_then(|held| held.get(&folded(value)));
        spelling.map_or(value, String::as_str)
    }
}
