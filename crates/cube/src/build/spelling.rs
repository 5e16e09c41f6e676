//! Spellings of level values: facts name a value to the letter, else in other case where one value alone is so written.

use hashbrown::HashMap;

use crate::model::{Dimension, folded};

/// The spellings of every value, by level and folded value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spellings {
    levels: Vec<HashMap<String, Vec<String>>>,
}

impl Spellings {
    /// The spellings that the elements of a dimension's first level hierarchy have.
    pub(super) fn of(dimension: &Dimension, levels: usize) -> Spellings {
        let mut levels = vec![HashMap::<String, Vec<String>>::new(); levels];
        for id in dimension.elements() {
            let Some(member) = dimension.element(*id).member().filter(|member| member.hierarchy == 0) else { continue };
            let Some(level) = levels.get_mut(usize::from(member.level)) else { continue };
            let spellings = level.entry(folded(&member.value)).or_default();
            if !spellings.contains(&member.value) {
                spellings.push(member.value.clone());
            }
        }
        Spellings { levels }
    }

    /// The spelling of a value: its own, or the only one that differs from it in case alone.
    pub(super) fn of_value<'a>(&'a self, level: usize, value: &'a str) -> &'a str {
        match self.levels.get(level).and_then(|held| held.get(&folded(value))).map(Vec::as_slice) {
            Some([one]) => one,
            _ => value,
        }
    }
}
