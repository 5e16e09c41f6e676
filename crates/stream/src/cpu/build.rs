//! Building on one core: rows in order become levels from the root on, then measures roll up from the leaves.
//!
//! A build, a batch and a removal differ in their rows alone: tuples; leaves and the tuples of a batch, merged; leaves
//! that stay.

use std::cmp::Ordering;

use crate::error::{Result, StreamError};
use crate::query::Bound;
use crate::schema::{Measure, Schema};
use crate::tree::{Header, Level, Tree};
use crate::tuples::Tuples;

/// Header tables up to this cardinality are counted, not sorted, whatever the number of nodes.
const COUNTED_MIN: usize = 1 << 16;

/// Rows that a tree is made of: a column a level below the root, and a column a measure.
pub(super) struct Source {
    columns: Vec<Vec<u32>>,
    measures: Vec<Vec<i64>>,
    rows: usize,
}

impl Source {
    /// Tuples as they came.
    pub(super) fn of_tuples(schema: &Schema, tuples: &Tuples) -> Source {
        let columns = schema.path().iter().map(|dimension| tuples.attributes()[*dimension].clone()).collect();
        let of_measure = |measure: &Measure| match measure.value() {
            Some(value) => tuples.values()[value].clone(),
            None => vec![1; tuples.len()],
        };
        Source { columns, measures: schema.measures().iter().map(of_measure).collect(), rows: tuples.len() }
    }

    /// The leaves of a tree.
    pub(super) fn of_leaves(tree: &Tree, schema: &Schema) -> Source {
        let levels: Vec<usize> = (1..schema.levels()).collect();
        let nodes: Vec<u32> = (0..tree.leaves() as u32).collect();
        Source::of_nodes(tree, levels.len(), &nodes, &levels)
    }

    /// Some nodes of a level, with the keys of levels from it up to the root.
    pub(super) fn of_nodes(tree: &Tree, level: usize, nodes: &[u32], levels: &[usize]) -> Source {
        let mut columns = vec![Vec::new(); levels.len()];
        let mut at = nodes.to_vec();
        for above in (1..=level).rev() {
            let of_level = &tree.levels[above];
            if let Some(column) = levels.iter().position(|wanted| *wanted == above) {
                columns[column] = taken(&of_level.keys, &at);
            }
            at.iter_mut().for_each(|node| *node = of_level.parents[*node as usize]);
        }
        let measures = tree.levels[level].measures.iter().map(|measure| taken(measure, nodes)).collect();
        Source { columns, measures, rows: nodes.len() }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.rows as u32
    }

    /// Whether a row meets the bounds of all levels.
    pub(super) fn meets(&self, row: u32, bounds: &[Option<Bound<'_>>]) -> bool {
        let holds = |(column, bound): (&Vec<u32>, &Option<Bound<'_>>)| {
            bound.as_ref().is_none_or(|bound| bound.holds(column[row as usize]))
        };
        self.columns.iter().zip(&bounds[1..]).all(holds)
    }

    /// The rows in the order of their keys.
    pub(super) fn sorted(mut self) -> Source {
        let width = |column: &Vec<u32>| column.iter().max().map_or(0, |largest| u32::BITS - largest.leading_zeros());
        let widths: Vec<u32> = self.columns.iter().map(width).collect();
        let order: Vec<u32> = if widths.iter().sum::<u32>() <= u128::BITS {
            // Keys side by side in one number; sorted ones give columns back without a look at the rows.
            let keys =
                |row: u32| self.columns.iter().zip(&widths).map(move |(column, width)| (column[row as usize], width));
            let packed = |row| keys(row).fold(0, |key: u128, (value, width)| key << width | u128::from(value));
            let mut packed: Vec<(u128, u32)> = self.rows().map(|row| (packed(row), row)).collect();
            packed.sort_unstable();
            let mut shift = 0;
            for (column, width) in self.columns.iter_mut().zip(&widths).rev() {
                let mask = (1u64 << width) - 1;
                let value = |(key, _): &(u128, u32)| ((key >> shift) as u64 & mask) as u32;
                if *width > 0 {
                    column.iter_mut().zip(&packed).for_each(|(to, from)| *to = value(from));
                }
                shift += width;
            }
            packed.into_iter().map(|(_, row)| row).collect()
        } else {
            let mut order: Vec<u32> = self.rows().collect();
            order.sort_unstable_by(|one, other| self.compare(*one, *other).then(one.cmp(other)));
            self.columns.iter_mut().for_each(|column| *column = taken(column, &order));
            order
        };
        self.measures.iter_mut().for_each(|measure| *measure = taken(measure, &order));
        self
    }

    fn compare(&self, one: u32, other: u32) -> Ordering {
        let keys = |column: &Vec<u32>| column[one as usize].cmp(&column[other as usize]);
        self.columns.iter().map(keys).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The rows of both, and their order; the rows of this one are sorted.
    pub(super) fn merged(mut self, batch: Source) -> (Source, Vec<u32>) {
        let old = self.rows as u32;
        let batch = batch.sorted();
        let all = |own: &mut [Vec<_>], more: Vec<Vec<_>>| {
            own.iter_mut().zip(more).for_each(|(own, more): (&mut Vec<u32>, Vec<u32>)| own.extend(more));
        };
        all(&mut self.columns, batch.columns);
        self.measures.iter_mut().zip(batch.measures).for_each(|(own, more)| own.extend(more));
        self.rows += batch.rows;
        let mut order = Vec::with_capacity(self.rows);
        let mut next = 0;
        for row in old..self.rows as u32 {
            while next < old && self.compare(next, row).is_lt() {
                order.push(next);
                next += 1;
            }
            order.push(row);
        }
        order.extend(next..old);
        (self, order)
    }

    /// The tree of some rows, in the order of their keys.
    pub(super) fn assembled(&self, measures: &[Measure], order: &[u32]) -> Result<Tree> {
        let depth = self.columns.len();
        let mut levels = vec![Level::default(); depth + 1];
        // The first row of each leaf, and their number behind the last.
        let mut starts = Vec::new();
        for (at, row) in order.iter().enumerate() {
            let differs = match at.checked_sub(1).map(|before| order[before]) {
                Some(before) => self.first_difference(before, *row),
                None => Some(0),
            };
            let Some(first) = differs else { continue };
            starts.push(at as u32);
            for level in first..=depth {
                let parent = match level {
                    0 => 0,
                    level => levels[level - 1].keys.len() as u32 - 1,
                };
                let leftmost = if level == depth { 0 } else { levels[level + 1].keys.len() as u32 };
                let own = &mut levels[level];
                own.keys.push(if level == 0 { 0 } else { self.columns[level - 1][*row as usize] });
                own.parents.push(parent);
                own.leftmost_children.push(leftmost);
                own.child_counts.push(0);
                if let Some(above) = level.checked_sub(1) {
                    levels[above].child_counts[parent as usize] += 1;
                }
            }
        }
        starts.push(order.len() as u32);
        let count = levels.iter().map(|level| level.keys.len() as u64).sum();
        if count >= u64::from(u32::MAX) {
            return Err(StreamError::TooMany { count, what: "nodes" });
        }
        for (number, measure) in measures.iter().enumerate() {
            let of_rows = &self.measures[number];
            let mut below: Vec<i64> = Vec::with_capacity(starts.len() - 1);
            for ends in starts.windows(2) {
                let rows = &order[ends[0] as usize..ends[1] as usize];
                below.push(joined(*measure, number, rows.iter().map(|row| of_rows[*row as usize]))?);
            }
            for level in (0..=depth).rev() {
                levels[level].measures.push(below);
                if let Some(above) = level.checked_sub(1) {
                    below = rolled_up(*measure, number, &levels[above], &levels[level].measures[number])?;
                } else {
                    break;
                }
            }
        }
        levels.iter_mut().for_each(Level::link);
        Ok(Tree { levels })
    }

    /// The first level in which two rows differ.
    fn first_difference(&self, one: u32, other: u32) -> Option<usize> {
        let differs = |column: &Vec<u32>| column[one as usize] != column[other as usize];
        self.columns.iter().position(differs).map(|column| column + 1)
    }
}

/// The values of some rows.
fn taken<T: Copy>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| column[*row as usize]).collect()
}

/// The measures of nodes from those of their children.
fn rolled_up(measure: Measure, number: usize, level: &Level, below: &[i64]) -> Result<Vec<i64>> {
    let children = level.leftmost_children.iter().zip(&level.child_counts);
    let of_node = |(first, count): (&u32, &u32)| {
        let (first, count) = (*first as usize, *count as usize);
        joined(measure, number, below[first..first + count].iter().copied())
    };
    children.map(of_node).collect()
}

/// One state of some, at least one.
pub(super) fn joined(measure: Measure, number: usize, states: impl Iterator<Item = i64>) -> Result<i64> {
    match measure {
        Measure::Sum(_) | Measure::Count => {
            let sum: i128 = states.map(i128::from).sum();
            i64::try_from(sum).map_err(|_| StreamError::Overflow { measure: number })
        }
        Measure::Min(_) => Ok(states.min().unwrap_or(i64::MAX)),
        Measure::Max(_) => Ok(states.max().unwrap_or(i64::MIN)),
    }
}

impl Level {
    /// Makes side links and the header table.
    fn link(&mut self) {
        let Some(largest) = self.keys.iter().max().map(|largest| *largest as usize) else { return };
        if largest < self.keys.len().max(COUNTED_MIN) {
            let mut counts = vec![0u32; largest + 1];
            self.keys.iter().for_each(|key| counts[*key as usize] += 1);
            let mut first = 0;
            for (key, count) in counts.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
                self.header.push(key as u32, first, *count);
                // From here on the place of the next node of the key.
                first += std::mem::replace(count, first);
            }
            self.side_links = vec![0; self.keys.len()];
            for (key, node) in self.keys.iter().zip(0..) {
                let place = &mut counts[*key as usize];
                self.side_links[*place as usize] = node;
                *place += 1;
            }
            return;
        }
        let mut nodes: Vec<u64> = self.keys.iter().zip(0..).map(|(key, node)| u64::from(*key) << 32 | node).collect();
        nodes.sort_unstable();
        self.side_links = nodes.iter().map(|node| *node as u32).collect();
        let mut first = 0;
        for run in nodes.chunk_by(|one, other| one >> 32 == other >> 32) {
            self.header.push((run[0] >> 32) as u32, first, run.len() as u32);
            first += run.len() as u32;
        }
    }
}

impl Header {
    fn push(&mut self, key: u32, first: u32, count: u32) {
        self.keys.push(key);
        self.first.push(first);
        self.counts.push(count);
    }
}
