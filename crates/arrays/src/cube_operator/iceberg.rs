//! The iceberg CUBE: groups of at least a number of source rows, from few dimensions to many.
//!
//! Source: Beyer and Ramakrishnan, *Bottom-Up Computation of Sparse and Iceberg CUBEs* (SIGMOD 1999). A group of few
//! rows has no refinement of more, so its rows are dropped before further dimensions are looked at. BUC goes on with
//! one group after the other; here all groups of a cuboid are refined together, so that cuboids come whole.

use super::asked::Rule;
use super::columns::{Columns, Components};
use super::cuboid::{Cuboid, Level};
use super::grouping::{Reorder, hashed, reordered};
use super::rows::{Extent, Rows, check_dimensions};
use super::sort::{Record, sort};
use crate::key::Key;
use crate::{SchemeError, Value};

/// What an iceberg CUBE has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Iceberg {
    /// Cuboids with a group.
    pub cuboids: u64,
    /// Groups given.
    pub groups: u64,
    /// Cells that were sorted, once for each cuboid; without pruning 2^k − 1 times the cells of all dimensions.
    pub sorted: u64,
}

/// Gives the groups with COUNT of at least `minimum` to `sink`, cuboid after cuboid. Dimensions are refined from the
/// one of most coordinates on, which prunes first. Cuboids without such groups are not given.
///
/// # Errors
/// Dimensions that the layout lacks, that repeat, or that are more than 16; a sum that does not fit its type; that of
/// the sink.
pub fn iceberg<K: Key, V: Value, E: From<SchemeError>>(
    rows: &Rows<'_, K, V>,
    dimensions: &[usize],
    rules: &[Rule],
    minimum: u64,
    sink: impl FnMut(Cuboid<'_, K, V>) -> Result<(), E>,
) -> Result<Iceberg, E> {
    check_dimensions(rows.layout(), dimensions)?;
    let order = refining_order(&rows.extent(), dimensions);
    let all: Vec<usize> = (0..rows.layout().dimensions()).collect();
    let layout = reordered(rows.layout(), &all, &order);
    let reorder = Reorder::new(rows.layout(), &all, &order);
    let groups = hashed(rows.keys().iter().map(|key| reorder.key(*key)), layout.total_bits());
    let components = Components { count: true, ..Components::of(rules) };
    let columns = Columns::of_rows(rows, components, &groups.of, groups.keys.len());
    let counts = columns.counts.clone().unwrap_or_default();
    let items: Vec<u32> = (0..groups.keys.len() as u32).collect();
    let cells = Level { order, layout, keys: groups.keys, columns };
    let mut search = Search { cells, counts, minimum, sink, found: Iceberg::default(), spare: Vec::new() };
    let ends = if search.counts.iter().sum::<u64>() < minimum || items.is_empty() { vec![] } else { vec![items.len()] };
    search.go_on(&Refined { places: Vec::new(), items, ends })?;
    Ok(search.found)
}

/// Dimensions in the order in which they are refined: the one of most coordinates first.
pub(crate) fn refining_order(extent: &Extent, dimensions: &[usize]) -> Vec<usize> {
    let mut order = dimensions.to_vec();
    order.sort_by_key(|dimension| std::cmp::Reverse(extent.cardinalities[*dimension]));
    order
}

/// The groups of a cuboid that have enough rows.
struct Refined {
    /// The cuboid's dimensions, as ascending places in the order of the cells.
    places: Vec<usize>,
    /// Cells, group after group.
    items: Vec<u32>,
    /// Where each group ends among the items.
    ends: Vec<usize>,
}

impl Refined {
    fn groups(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.items[start..*end])
    }
}

struct Search<K, V: Value, F> {
    /// The groups of all dimensions.
    cells: Level<K, V>,
    /// Source rows of each cell.
    counts: Vec<u64>,
    minimum: u64,
    sink: F,
    found: Iceberg,
    spare: Vec<Record<u32>>,
}

impl<K: Key, V: Value, F> Search<K, V, F> {
    /// Gives a cuboid, and those with further dimensions behind its last one.
    fn go_on<E: From<SchemeError>>(&mut self, cuboid: &Refined) -> Result<(), E>
    where
        F: FnMut(Cuboid<'_, K, V>) -> Result<(), E>,
    {
        if cuboid.ends.is_empty() {
            return Ok(());
        }
        self.found.cuboids += 1;
        self.found.groups += cuboid.ends.len() as u64;
        self.level(cuboid).give(&mut self.sink)?;
        let first = cuboid.places.last().map_or(0, |last| last + 1);
        for place in first..self.cells.order.len() {
            let refined = self.refined(cuboid, place);
            self.go_on(&refined)?;
        }
        Ok(())
    }

    /// The groups of a cuboid by one dimension more that have enough rows.
    fn refined(&mut self, cuboid: &Refined, place: usize) -> Refined {
        let Search { cells, counts, minimum, found, spare, .. } = self;
        let places = cuboid.places.iter().copied().chain([place]).collect();
        let mut refined = Refined { places, items: Vec::new(), ends: Vec::new() };
        let mut records: Vec<Record<u32>> = Vec::new();
        for group in cuboid.groups() {
            let coordinate = |item: u32| cells.layout.coordinate(cells.keys[item as usize], place);
            records.clear();
            records.extend(group.iter().map(|item| (coordinate(*item), *item)));
            found.sorted += records.len() as u64;
            sort(&mut records, spare, 0..cells.layout.bits()[place]);
            for part in records.chunk_by(|one, other| one.0 == other.0) {
                if part.iter().map(|record| counts[record.1 as usize]).sum::<u64>() >= *minimum {
                    refined.items.extend(part.iter().map(|record| record.1));
                    refined.ends.push(refined.items.len());
                }
            }
        }
        refined
    }

    fn level(&self, cuboid: &Refined) -> Level<K, V> {
        let Level { order, layout, keys, columns } = &self.cells;
        let dimensions: Vec<usize> = cuboid.places.iter().map(|place| order[*place]).collect();
        let reorder = Reorder::new(layout, order, &dimensions);
        let mut of = Vec::with_capacity(cuboid.items.len());
        (0..).zip(cuboid.groups()).for_each(|(number, group)| of.extend(group.iter().map(|_| number)));
        Level {
            layout: reordered(layout, order, &dimensions),
            keys: cuboid.groups().map(|group| reorder.key(keys[group[0] as usize])).collect(),
            columns: columns.at(&cuboid.items).grouped(&of, cuboid.ends.len()),
            order: dimensions,
        }
    }
}
