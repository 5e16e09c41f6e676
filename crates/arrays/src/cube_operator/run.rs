//! The runs of a plan on one core.

use std::collections::HashMap;

use super::columns::Columns;
use super::cuboid::{Cuboid, Level};
use super::grouping::{Groups, Reorder, Sorted, below, dense, hashed, prefixes, reordered};
use super::plan::{Plan, Run, Source, Way};
use super::rows::Rows;
use crate::key::{Key, KeyLayout};
use crate::{SchemeError, Value};

/// Gives the cuboids of rows to `sink`, one after the other, by a plan for rows of this layout. A cuboid comes behind
/// those that it is made from. Cuboids without groups are not given.
///
/// # Errors
/// A plan for another layout; a sum that does not fit its type; that of the sink, which ends the work.
pub fn cube<K: Key, V: Value, E: From<SchemeError>>(
    rows: &Rows<'_, K, V>,
    plan: &Plan,
    sink: impl FnMut(Cuboid<'_, K, V>) -> Result<(), E>,
) -> Result<(), E> {
    if plan.layout != *rows.layout() {
        return Err(SchemeError::OtherLayout.into());
    }
    let mut runs: HashMap<&Source, Vec<&Run>> = HashMap::new();
    plan.runs().iter().for_each(|run| runs.entry(&run.source).or_default().push(run));
    let order: Vec<usize> = (0..rows.layout().dimensions()).collect();
    Operator { plan, rows, runs, sink }.expand(&Grouped::Rows(rows, &order))
}

/// What runs group.
enum Grouped<'a, K, V: Value> {
    Rows(&'a Rows<'a, K, V>, &'a [usize]),
    Level(&'a Level<K, V>),
}

impl<K: Key, V: Value> Grouped<'_, K, V> {
    fn keys(&self) -> &[K] {
        match self {
            Grouped::Rows(rows, _) => rows.keys(),
            Grouped::Level(level) => &level.keys,
        }
    }

    fn layout(&self) -> &KeyLayout {
        match self {
            Grouped::Rows(rows, _) => rows.layout(),
            Grouped::Level(level) => &level.layout,
        }
    }

    fn order(&self) -> &[usize] {
        match self {
            Grouped::Rows(_, order) => order,
            Grouped::Level(level) => &level.order,
        }
    }
}

struct Operator<'a, K, V, F> {
    plan: &'a Plan,
    rows: &'a Rows<'a, K, V>,
    runs: HashMap<&'a Source, Vec<&'a Run>>,
    sink: F,
}

impl<K: Key, V: Value, F> Operator<'_, K, V, F> {
    /// Makes all cuboids that are made from a source, and those made from them.
    fn expand<E: From<SchemeError>>(&mut self, from: &Grouped<'_, K, V>) -> Result<(), E>
    where
        F: FnMut(Cuboid<'_, K, V>) -> Result<(), E>,
    {
        let source = match from {
            Grouped::Rows(..) => Source::Rows,
            Grouped::Level(level) => Source::Cuboid(level.order.clone()),
        };
        let mut sorted = None;
        for run in self.runs.remove(&source).unwrap_or_default() {
            let levels = self.levels(from, run, &mut sorted);
            levels.iter().try_for_each(|level| level.give(&mut self.sink))?;
            let is_source = |level: &Level<K, V>| self.runs.contains_key(&Source::Cuboid(level.order.clone()));
            let sources: Vec<Level<K, V>> = levels.into_iter().filter(is_source).collect();
            for level in sources {
                self.expand(&Grouped::Level(&level))?;
            }
        }
        Ok(())
    }

    /// The cuboids of a run, the longest first.
    fn levels(&self, from: &Grouped<'_, K, V>, run: &Run, sorted: &mut Option<Sorted<K>>) -> Vec<Level<K, V>> {
        let layout = reordered(from.layout(), from.order(), &run.order);
        let groups = match run.way {
            Way::Sort { shared } => {
                let sorted = sorted.get_or_insert_with(|| Sorted::new(from.order(), from.layout(), from.keys()));
                sorted.arrange(&run.order, shared);
                sorted.groups(run.lengths())
            }
            Way::Dense | Way::Hash => {
                let reorder = Reorder::new(from.layout(), from.order(), &run.order);
                let keys = from.keys().iter().map(|key| reorder.key(*key));
                let longest = match run.way {
                    Way::Dense => dense(keys, layout.total_bits()),
                    Way::Hash | Way::Sort { .. } => hashed(keys, layout.total_bits()),
                };
                let belows: Vec<u32> = run.lengths().skip(1).map(|length| below(&layout, length)).collect();
                let shorter = prefixes(longest.keys.iter().copied(), &belows);
                std::iter::once(longest).chain(shorter).collect()
            }
        };
        let mut levels: Vec<Level<K, V>> = Vec::with_capacity(groups.len());
        for (length, Groups { keys, of }) in run.lengths().zip(groups) {
            let columns = match (levels.last(), from) {
                (Some(above), _) => above.columns.grouped(&of, keys.len()),
                (None, Grouped::Level(level)) => level.columns.grouped(&of, keys.len()),
                (None, Grouped::Rows(..)) => Columns::of_rows(self.rows, self.plan.components, &of, keys.len()),
            };
            let order = run.order[..length].to_vec();
            let layout = reordered(&layout, &run.order, &order);
            levels.push(Level { order, layout, keys, columns });
        }
        levels
    }
}
