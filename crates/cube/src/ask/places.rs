//! Places of cells on the axes of a cross-tab, and the rows that `top` and `bottom` keep.

use std::cmp::Ordering;

use crate::aggregate::{CellValue, Cells};
use crate::query::{BoundExtreme, BoundSet, BoundTable, CubeAxis, Direction};

/// The places of an axis: combinations of the targets of its sets, the last set's changing first. Of no sets there is
/// one.
#[derive(Clone, Copy)]
pub(crate) struct AxisPlaces<'a> {
    pub(crate) sets: &'a [BoundSet],
    pub(crate) count: u64,
}

/// A cell with its place on each axis.
pub(crate) struct Placed {
    pub(crate) page: u64,
    pub(crate) row: u64,
    pub(crate) column: u64,
    pub(crate) value: CellValue,
}

/// The rows of a page that `top` or `bottom` keeps, in the order of their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankedPage {
    pub(crate) page: u64,
    pub(crate) rows: Vec<u64>,
}

impl<'a> AxisPlaces<'a> {
    pub(crate) fn new(sets: &'a [BoundSet]) -> AxisPlaces<'a> {
        AxisPlaces {
            sets,
            count: sets.iter().fold(1, |count: u64, set| count.saturating_mul(set.targets.len() as u64)),
        }
    }

    /// The number of the place of a cell: targets by dimension, and the column of its measure.
    fn number(&self, target: &[u32], measure: usize) -> u64 {
        self.sets.iter().fold(0, |number, set| {
            let at = match set.axis {
                CubeAxis::Dimension(position) => target[position].into(),
                CubeAxis::Measures => measure as u64,
            };
            number * set.targets.len() as u64 + at
        })
    }

    /// The position of each set's target at a place.
    pub(super) fn targets(&self, mut number: u64) -> Vec<usize> {
        let mut targets = vec![0; self.sets.len()];
        for (target, set) in targets.iter_mut().zip(self.sets).rev() {
            *target = (number % set.targets.len() as u64) as usize;
            number /= set.targets.len() as u64;
        }
        targets
    }
}

/// All cells with a value, by page, row and column.
pub(crate) fn placed(table: &BoundTable, cells: &Cells) -> Vec<Placed> {
    let axes = [&table.pages, &table.rows, &table.columns].map(|sets| AxisPlaces::new(sets));
    let place = |(measure, cell): (usize, usize)| {
        let value = cells.columns()[measure].value(cell)?;
        let target = cells.target(cell);
        let [page, row, column] = axes.map(|axis| axis.number(&target, measure));
        Some(Placed { page, row, column, value })
    };
    let all = (0..cells.len()).flat_map(|cell| (0..cells.columns().len()).map(move |measure| (measure, cell)));
    let mut placed: Vec<Placed> = all.filter_map(place).collect();
    placed.sort_unstable_by_key(|cell| (cell.page, cell.row, cell.column));
    placed
}

/// The rows of each page that an extreme keeps, ranked by their cells in one column: the first that is shown, of those
/// that the extreme names. Rows of equal values stand in the order of the query, rows without a value in this column
/// are last. Under `empty` every page and row takes part, else those with a value. `placed` is in the order of
/// [`placed`].
pub(crate) fn ranked(table: &BoundTable, extreme: &BoundExtreme, placed: &[Placed]) -> Vec<RankedPage> {
    let [pages, rows, columns] = [&table.pages, &table.rows, &table.columns].map(|sets| AxisPlaces::new(sets));
    let is_named = |column: u64| {
        let targets = columns.targets(column);
        extreme.by.iter().all(|(set, target)| targets[*set] == *target)
    };
    let of_page = |page: u64, cells: &[Placed]| {
        let shown: Box<dyn Iterator<Item = u64>> = match table.shows_empty {
            true => Box::new(0..columns.count),
            false => Box::new(filled_columns(cells).into_iter()),
        };
        let column = shown.into_iter().find(|column| is_named(*column));
        let mut valued: Vec<(u64, CellValue)> =
            cells.iter().filter(|cell| Some(cell.column) == column).map(|cell| (cell.row, cell.value)).collect();
        let is_valued = |row: &u64| valued.binary_search_by_key(row, |(row, _)| *row).is_ok();
        let most = usize::try_from(extreme.count).unwrap_or(usize::MAX);
        let missing = most.saturating_sub(valued.len());
        let empty: Vec<u64> = match table.shows_empty {
            true => (0..rows.count).filter(|row| !is_valued(row)).take(missing).collect(),
            false => filled_rows(cells).into_iter().filter(|row| !is_valued(row)).take(missing).collect(),
        };
        valued.sort_by(|(_, one), (_, other)| match extreme.direction {
            Direction::Top => one.compare(*other).reverse(),
            Direction::Bottom => one.compare(*other),
        });
        valued.truncate(most);
        RankedPage { page, rows: valued.into_iter().map(|(row, _)| row).chain(empty).collect() }
    };
    if table.shows_empty {
        return (0..pages.count).map(|page| of_page(page, cells_of(placed, |cell| cell.page.cmp(&page)))).collect();
    }
    placed.chunk_by(|one, other| one.page == other.page).map(|cells| of_page(cells[0].page, cells)).collect()
}

/// The cells for which an order along the cells is `Equal`.
pub(super) fn cells_of(cells: &[Placed], order: impl Fn(&Placed) -> Ordering) -> &[Placed] {
    let start = cells.partition_point(|cell| order(cell).is_lt());
    let end = cells.partition_point(|cell| order(cell).is_le());
    &cells[start..end]
}

/// The rows that cells of a page lie in, ascending.
pub(super) fn filled_rows(cells: &[Placed]) -> Vec<u64> {
    let mut rows: Vec<u64> = cells.iter().map(|cell| cell.row).collect();
    rows.dedup();
    rows
}

/// The columns that cells of a page lie in, ascending.
pub(super) fn filled_columns(cells: &[Placed]) -> Vec<u64> {
    let mut columns: Vec<u64> = cells.iter().map(|cell| cell.column).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}
