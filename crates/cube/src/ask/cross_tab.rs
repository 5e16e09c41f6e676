//! Cross-tabs: the cells of an area laid out in pages, rows and columns.

use std::cmp::Ordering;

use super::area::{AskError, Asked};
use super::label::{Label, heading, labels, place_format};
use crate::aggregate::{CellValue, Cells};
use crate::model::{CubeModel, NumberFormat};
use crate::query::{BoundSet, BoundTable, CubeAxis, Direction, Extreme, MEASURES};
use crate::view::visible;

/// A cross-tab with its heads.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossTabAnswer {
    /// The places of axes that are neither rows, columns nor pages: name of the axis, caption, whether it is a default.
    pub heading: Vec<(String, String, bool)>,
    /// Names of the axes that lie in rows, outermost first.
    pub row_axes: Vec<String>,
    /// Names of the axes that lie in columns, outermost first.
    pub column_axes: Vec<String>,
    /// Names of the axes that pages are made of.
    pub page_axes: Vec<String>,
    /// The pages; without `empty` those that have a filled cell.
    pub pages: Vec<Page>,
    /// Rows and columns that no page shows, because none of their cells is shown.
    pub hidden: (u64, u64),
    /// True if only the largest or smallest cells are shown.
    pub is_extreme: bool,
    /// The number format of the elements that the heading shows, if one has a format.
    pub format: Option<NumberFormat>,
    /// Texts at cells of the area, which pages do not have; 0 where nobody has counted them.
    pub texts: u64,
}

/// One table of a cross-tab.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// A head for each page axis.
    pub labels: Vec<Label>,
    /// Heads of the columns that are shown, one for each column axis.
    pub columns: Vec<Vec<Label>>,
    /// The rows that are shown.
    pub rows: Vec<Line>,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// A head for each row axis.
    pub labels: Vec<Label>,
    /// A cell for each column; nothing where it is empty.
    pub cells: Vec<Option<CellValue>>,
    /// The measure of each cell, by position.
    pub measures: Vec<usize>,
}

/// Most cells of a cross-tab over all pages: a few gigabytes of text.
const SHOWN_MAX: u64 = 10_000_000;

/// Lays out cells. Without `top` or `bottom` every cell of the area has a place; with them only those cells are shown.
///
/// Work and memory are those of the filled cells and of the pages that have some; under `empty` those of the area.
///
/// # Errors
/// [`AskError::Shown`] for more than 10 million places of cells, before memory is taken for them.
pub fn cross_tab(
    model: &CubeModel,
    table: &BoundTable,
    asked: &Asked,
    cells: &Cells,
) -> Result<CrossTabAnswer, AskError> {
    let axes = [&table.pages, &table.rows, &table.columns].map(|sets| Layout::new(model, sets, asked));
    let [pages, rows, columns] = &axes;
    let mut placed = placed(table, &axes, cells);
    placed.sort_unstable_by_key(|cell| (cell.page, cell.row, cell.column));
    let hidden = match table.shows_empty {
        true => (0, 0),
        false => {
            (rows.count - distinct(&placed, |cell| cell.row), columns.count - distinct(&placed, |cell| cell.column))
        }
    };
    let shown = match table.shows_empty {
        true => [pages, rows, columns].iter().fold(1, |shown: u64, axis| shown.saturating_mul(axis.count)),
        false => placed.chunk_by(|one, other| one.page == other.page).map(filled_size).sum(),
    };
    if shown > SHOWN_MAX {
        return Err(AskError::Shown { shown, most: SHOWN_MAX });
    }
    let pages: Vec<Page> = match table.shows_empty {
        true => {
            let (all_rows, all_columns) = ((0..rows.count).collect::<Vec<_>>(), (0..columns.count).collect::<Vec<_>>());
            let of_page = |page| placed.partition_point(|cell| cell.page < page)..;
            (0..pages.count).map(|page| page_of(page, &all_rows, &all_columns, &placed[of_page(page)], &axes)).collect()
        }
        false => placed.chunk_by(|one, other| one.page == other.page).map(|cells| filled_page(cells, &axes)).collect(),
    };
    let names = |sets: &[BoundSet]| sets.iter().map(|set| axis_name(model, set.axis)).collect();
    let place = |place: &crate::query::BoundPlace| {
        (axis_name(model, place.axis), heading(model, place.axis, &place.target), place.is_default)
    };
    // A cube of one measure need not say which.
    let is_shown = |place: &&crate::query::BoundPlace| place.axis != CubeAxis::Measures || model.measures().len() > 1;
    Ok(CrossTabAnswer {
        heading: table.point.iter().filter(is_shown).map(place).collect(),
        row_axes: names(&table.rows),
        column_axes: names(&table.columns),
        page_axes: names(&table.pages),
        hidden,
        pages,
        is_extreme: table.extreme.is_some(),
        format: place_format(model, &table.point),
        texts: 0,
    })
}

/// The places of an axis: combinations of the targets of its sets, the last set's changing first. Of no sets there is
/// one.
struct Layout<'a> {
    sets: &'a [BoundSet],
    labels: Vec<Vec<Label>>,
    /// Measures of the query, by position in the cube.
    measures: &'a [usize],
    count: u64,
}

/// A cell with its place on each axis.
struct Placed {
    page: u64,
    row: u64,
    column: u64,
    value: CellValue,
}

impl<'a> Layout<'a> {
    fn new(model: &CubeModel, sets: &'a [BoundSet], asked: &'a Asked) -> Layout<'a> {
        let count = sets.iter().fold(1, |count: u64, set| count.saturating_mul(set.targets.len() as u64));
        let labels = sets.iter().map(|set| labels(model, set)).collect();
        Layout { sets, labels, measures: &asked.measures, count }
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
    fn targets(&self, mut number: u64) -> Vec<usize> {
        let mut targets = vec![0; self.sets.len()];
        for (target, set) in targets.iter_mut().zip(self.sets).rev() {
            *target = (number % set.targets.len() as u64) as usize;
            number /= set.targets.len() as u64;
        }
        targets
    }

    /// The heads of a place, one for each set.
    fn heads(&self, number: u64) -> Vec<Label> {
        self.targets(number).into_iter().zip(&self.labels).map(|(target, labels)| labels[target].clone()).collect()
    }

    /// The measure that a place has, if measures lie on this axis.
    fn measure(&self, number: u64) -> Option<usize> {
        let set = self.sets.iter().position(|set| set.axis == CubeAxis::Measures)?;
        Some(self.measures[self.targets(number)[set]])
    }
}

/// The cells that are shown, with their places.
fn placed(table: &BoundTable, axes: &[Layout<'_>; 3], cells: &Cells) -> Vec<Placed> {
    let place = |measure: usize, cell: usize| {
        let value = cells.columns()[measure].value(cell)?;
        let target = cells.target(cell);
        let [page, row, column] = axes.each_ref().map(|axis| axis.number(&target, measure));
        Some(Placed { page, row, column, value })
    };
    match table.extreme {
        Some(Extreme { direction, count }) => {
            let kept = extremes(cells, direction, count as usize);
            kept.into_iter().filter_map(|(measure, cell)| place(measure, cell)).collect()
        }
        None => {
            let all = (0..cells.len()).flat_map(|cell| (0..cells.columns().len()).map(move |measure| (measure, cell)));
            all.filter_map(|(measure, cell)| place(measure, cell)).collect()
        }
    }
}

/// The `count` largest or smallest cells over all measures, as (column, cell), the first one first; equal ones by
/// measure, then by target.
pub(crate) fn extremes(cells: &Cells, direction: Direction, count: usize) -> Vec<(usize, usize)> {
    let ends = |column: usize| match direction {
        Direction::Top => cells.top(count, column),
        Direction::Bottom => cells.bottom(count, column),
    };
    let columns = 0..cells.columns().len();
    let mut all: Vec<(usize, usize)> =
        columns.flat_map(|column| ends(column).into_iter().map(move |cell| (column, cell))).collect();
    let value = |&(column, cell): &(usize, usize)| cells.columns()[column].value(cell);
    all.sort_by(|one, other| {
        let order = value(one).zip(value(other)).map_or(Ordering::Equal, |(one, other)| one.compare(other));
        if direction == Direction::Top { order.reverse() } else { order }
    });
    all.truncate(count);
    all
}

/// The number of different places of cells on an axis.
fn distinct(cells: &[Placed], place: impl Fn(&Placed) -> u64) -> u64 {
    let mut places: Vec<u64> = cells.iter().map(place).collect();
    places.sort_unstable();
    places.dedup();
    places.len() as u64
}

/// The rows and columns that cells of a page lie in; `cells` are in the order of rows.
fn filled_lines(cells: &[Placed]) -> (Vec<u64>, Vec<u64>) {
    let mut rows: Vec<u64> = cells.iter().map(|cell| cell.row).collect();
    rows.dedup();
    let mut columns: Vec<u64> = cells.iter().map(|cell| cell.column).collect();
    columns.sort_unstable();
    columns.dedup();
    (rows, columns)
}

/// Places of the cells of a page that shows filled rows and columns.
fn filled_size(cells: &[Placed]) -> u64 {
    let (rows, columns) = filled_lines(cells);
    rows.len() as u64 * columns.len() as u64
}

/// A page of the rows and columns that its cells lie in; `cells` are in the order of rows.
fn filled_page(cells: &[Placed], axes: &[Layout<'_>; 3]) -> Page {
    let (rows, columns) = filled_lines(cells);
    page_of(cells[0].page, &rows, &columns, cells, axes)
}

/// A page of some rows and columns, both ascending; `cells` begins with its cells, in the order of rows.
fn page_of(page: u64, rows: &[u64], columns: &[u64], cells: &[Placed], axes: &[Layout<'_>; 3]) -> Page {
    let [of_pages, of_rows, of_columns] = axes;
    let of_page = of_pages.measure(page);
    let of_column: Vec<Option<usize>> = columns.iter().map(|column| of_columns.measure(*column)).collect();
    let mut left = cells;
    let line = |&row: &u64| {
        let mut line = vec![None; columns.len()];
        while let Some((cell, rest)) = left.split_first().filter(|(cell, _)| (cell.page, cell.row) == (page, row)) {
            if let Ok(at) = columns.binary_search(&cell.column) {
                line[at] = Some(cell.value);
            }
            left = rest;
        }
        // A measure that lies on no axis is the only one.
        let of_row = of_page.or_else(|| of_rows.measure(row)).or_else(|| of_rows.measures.first().copied());
        let measures = of_column.iter().map(|of_column| of_column.or(of_row).unwrap_or_default());
        Line { labels: of_rows.heads(row), cells: line, measures: measures.collect() }
    };
    Page {
        labels: of_pages.heads(page),
        rows: rows.iter().map(line).collect(),
        columns: columns.iter().map(|column| of_columns.heads(*column)).collect(),
    }
}

fn axis_name(model: &CubeModel, axis: CubeAxis) -> String {
    match axis {
        CubeAxis::Dimension(position) => visible(model.dimensions()[position].name()).into_owned(),
        CubeAxis::Measures => MEASURES.to_string(),
    }
}
