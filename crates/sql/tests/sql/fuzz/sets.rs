//! Grouping sets: ROLLUP, CUBE and GROUPING SETS.

use super::query::Generator;

/// Grouping sets over the group expressions of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Sets {
    /// All of them.
    #[default]
    One,
    /// The first so many of them, for every number.
    Rollup,
    /// Every choice of them.
    Cube,
    /// These choices, a bit a group expression.
    Chosen(Vec<usize>),
}

impl Sets {
    /// The same sets of expressions before which another one has come, which the first set has, too.
    pub(super) fn move_behind_first(&mut self) {
        if let Sets::Chosen(sets) = self {
            sets.iter_mut().enumerate().for_each(|(at, set)| *set = *set << 1 | usize::from(at == 0));
        }
    }

    /// The grouping by some expressions.
    pub(super) fn over(&self, groups: &[String]) -> String {
        let all = groups.join(", ");
        match self {
            Sets::One => all,
            Sets::Rollup => format!("ROLLUP ({all})"),
            Sets::Cube => format!("CUBE ({all})"),
            Sets::Chosen(sets) => {
                let set = |bits: &usize| {
                    let chosen = groups.iter().enumerate().filter(|(at, _)| bits >> at & 1 != 0);
                    format!("({})", chosen.map(|(_, group)| group.as_str()).collect::<Vec<_>>().join(", "))
                };
                format!("GROUPING SETS ({})", sets.iter().map(set).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Generator<'_> {
    /// Grouping sets over a few different expressions.
    pub(super) fn sets(&mut self, groups: &mut Vec<String>) -> Sets {
        let mut seen = Vec::new();
        groups.retain(|group| {
            !seen.contains(group) && {
                seen.push(group.clone());
                true
            }
        });
        groups.truncate(4);
        match self.random.below(3) {
            0 => Sets::Rollup,
            1 => Sets::Cube,
            _ => {
                let drawn = (0..1 + self.random.below(4)).map(|_| self.random.below(1 << groups.len()));
                let mut sets: Vec<usize> = drawn.collect();
                // The query selects each of the expressions, which one of the sets has to have.
                let missing = ((1 << groups.len()) - 1) & !sets.iter().fold(0, |all, set| all | set);
                sets.extend((missing != 0).then_some(missing));
                Sets::Chosen(sets)
            }
        }
    }
}
