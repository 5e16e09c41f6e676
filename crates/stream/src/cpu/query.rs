//! Queries on one core: a descent from the root on the popular path, side links off it.

use super::build::{Source, joined};
use crate::error::Result;
use crate::query::{Answers, Bound, Query, Rows, SubCube, bounds, is_on_path, lowest};
use crate::schema::{Measure, Schema};
use crate::tree::{Level, Tree};

/// The cells of some queries.
pub(super) fn answer(schema: &Schema, tree: &Tree, queries: &[Query]) -> Result<Answers> {
    let measures = schema.measures();
    let mut answers = Answers { measures: measures.len(), ..Answers::default() };
    for (number, query) in queries.iter().enumerate() {
        let bounds = bounds(schema, number, &query.conditions)?;
        let cell = match is_on_path(&bounds) {
            _ if tree.leaves() == 0 => None,
            true => node_on_path(tree, &bounds).map(|(level, node)| {
                let of_node = |measure: &Vec<i64>| measure[node as usize];
                tree.levels[level].measures.iter().map(of_node).collect::<Vec<i64>>()
            }),
            false => cell_off_path(measures, tree, &bounds)?,
        };
        answers.found.push(cell.is_some());
        answers.values.extend(cell.unwrap_or_else(|| vec![0; measures.len()]));
    }
    Ok(answers)
}

/// The node that the values of the first levels lead to.
fn node_on_path(tree: &Tree, bounds: &[Option<Bound<'_>>]) -> Option<(usize, u32)> {
    let mut node = 0;
    let last = lowest(bounds);
    for (level, bound) in bounds.iter().enumerate().take(last + 1).skip(1) {
        let above = &tree.levels[level - 1];
        let (first, count) = (above.leftmost_children[node as usize], above.child_counts[node as usize]);
        let keys = &tree.levels[level].keys[first as usize..(first + count) as usize];
        node = first + keys.binary_search(&bound.as_ref()?.low).ok()? as u32;
    }
    Some((last, node))
}

/// The cell of the nodes of the lowest level with a bound that meet all bounds.
fn cell_off_path(measures: &[Measure], tree: &Tree, bounds: &[Option<Bound<'_>>]) -> Result<Option<Vec<i64>>> {
    let level = lowest(bounds);
    let nodes = matching(tree, level, bounds);
    if nodes.is_empty() {
        return Ok(None);
    }
    let of_measure = |(number, measure): (usize, &Measure)| {
        let column = &tree.levels[level].measures[number];
        joined(*measure, number, nodes.iter().map(|node| column[*node as usize]))
    };
    measures.iter().enumerate().map(of_measure).collect::<Result<Vec<i64>>>().map(Some)
}

/// Nodes of a level that meet the bounds of it and all above, found along side links.
fn matching(tree: &Tree, level: usize, bounds: &[Option<Bound<'_>>]) -> Vec<u32> {
    let Some(bound) = &bounds[level] else { return Vec::new() };
    let Level { header, side_links, .. } = &tree.levels[level];
    let first = header.keys.partition_point(|key| *key < bound.low);
    let entries = (first..header.keys.len()).take_while(|entry| header.keys[*entry] <= bound.high);
    let mut nodes = Vec::new();
    for entry in entries.filter(|entry| bound.holds(header.keys[*entry])) {
        let links = header.first[entry] as usize..(header.first[entry] + header.counts[entry]) as usize;
        nodes.extend(side_links[links].iter().filter(|node| is_below(tree, level, **node, bounds)));
    }
    nodes
}

/// Whether the nodes above a node meet their bounds.
fn is_below(tree: &Tree, level: usize, mut node: u32, bounds: &[Option<Bound<'_>>]) -> bool {
    let Some(first) = bounds.iter().position(Option::is_some) else { return true };
    for above in (first..level).rev() {
        node = tree.levels[above + 1].parents[node as usize];
        let key = tree.levels[above].keys[node as usize];
        if bounds[above].as_ref().is_some_and(|bound| !bound.holds(key)) {
            return false;
        }
    }
    true
}

/// The cells of a sub-cube: nodes of the lowest level that it names, sorted by the inquired keys and joined.
pub(super) fn sub_cube(schema: &Schema, tree: &Tree, asked: &SubCube) -> Result<Rows> {
    let bounds = crate::query::sub_cube(schema, asked)?;
    let levels = schema.levels_of(&asked.inquired);
    let level = levels.iter().copied().max().unwrap_or(0).max(lowest(&bounds));
    let nodes: Vec<u32> = match level {
        _ if tree.leaves() == 0 => Vec::new(),
        level if bounds[level].is_some() => {
            let mut nodes = matching(tree, level, &bounds);
            nodes.sort_unstable();
            nodes
        }
        level => {
            let all = 0..tree.levels[level].keys.len() as u32;
            all.filter(|node| is_below(tree, level, *node, &bounds)).collect()
        }
    };
    let source = Source::of_nodes(tree, level, &nodes, &levels).sorted();
    let order: Vec<u32> = source.rows().collect();
    let cells = source.assembled(schema.measures(), &order)?;
    Ok(cells.rows())
}

impl Schema {
    /// The levels of some dimensions.
    pub(crate) fn levels_of(&self, dimensions: &[usize]) -> Vec<usize> {
        let level = |dimension: &usize| self.path().iter().position(|of_level| of_level == dimension);
        dimensions.iter().filter_map(level).map(|at| at + 1).collect()
    }
}

impl Tree {
    /// The leaves with their whole paths.
    pub(crate) fn rows(&self) -> Rows {
        let Some(last) = self.levels.last() else { return Rows::default() };
        let mut keys = Vec::new();
        let mut nodes: Vec<u32> = (0..last.keys.len() as u32).collect();
        for level in self.levels[1..].iter().rev() {
            keys.push(nodes.iter().map(|node| level.keys[*node as usize]).collect());
            nodes.iter_mut().for_each(|node| *node = level.parents[*node as usize]);
        }
        keys.reverse();
        Rows { keys, measures: last.measures.clone() }
    }
}
