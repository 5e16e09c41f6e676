//! Cross-tabs: the cells of an area laid out in pages, rows and columns.

use super::area::Asked;
use super::label::{Label, caption_at, labels};
use crate::aggregate::{CellValue, Cells};
use crate::model::CubeModel;
use crate::query::{BoundSet, BoundTable, CubeAxis, Direction, MEASURES};

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
    /// The pages; without page axes there is one.
    pub pages: Vec<Page>,
    /// Rows and columns that were left out, because none of their cells is shown, over all pages.
    pub hidden: (u64, u64),
    /// True if only the largest or smallest cells are shown.
    pub is_extreme: bool,
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

/// Lays out cells. Without `top` or `bottom` every cell of the area has a place; with them only those cells are shown.
pub fn cross_tab(model: &CubeModel, table: &BoundTable, asked: &Asked, cells: &Cells) -> CrossTabAnswer {
    let extremes = table.extreme.map(|extreme| Kept::new(cells, extreme.direction, extreme.count as usize));
    let layout = Layout { asked, cells, kept: extremes, base: base_place(table, asked) };
    let heads = |sets: &[BoundSet]| combinations(&sets.iter().map(|set| labels(model, set)).collect::<Vec<_>>());
    let (row_heads, column_heads) = (heads(&table.rows), heads(&table.columns));
    let (mut pages, mut hidden) = (Vec::new(), (0, 0));
    for (page, page_labels) in heads(&table.pages).into_iter().enumerate() {
        let page_place = layout.placed(&layout.base, &table.pages, page);
        let lines = row_heads.iter().enumerate().map(|(row, row_labels)| {
            let row_place = layout.placed(&page_place, &table.rows, row);
            let line =
                (0..column_heads.len()).map(|column| layout.cell(&layout.placed(&row_place, &table.columns, column)));
            let (cells, measures) = line.unzip();
            Line { labels: row_labels.clone(), cells, measures }
        });
        let whole = Page { labels: page_labels, columns: column_heads.clone(), rows: lines.collect() };
        let shown = if table.shows_empty { whole } else { without_empty(whole, &mut hidden) };
        pages.push(shown);
    }
    let names = |sets: &[BoundSet]| sets.iter().map(|set| axis_name(model, set.axis)).collect();
    let place = |place: &crate::query::BoundPlace| {
        (axis_name(model, place.axis), caption_at(model, place.axis, &place.target), place.is_default)
    };
    // A cube of one measure need not say which.
    let is_shown = |place: &&crate::query::BoundPlace| place.axis != CubeAxis::Measures || model.measures().len() > 1;
    CrossTabAnswer {
        heading: table.point.iter().filter(is_shown).map(place).collect(),
        row_axes: names(&table.rows),
        column_axes: names(&table.columns),
        page_axes: names(&table.pages),
        pages,
        hidden,
        is_extreme: table.extreme.is_some(),
    }
}

/// A place in the area: the target of each dimension, and the column of the measure.
#[derive(Clone)]
struct PlaceInArea {
    targets: Vec<u32>,
    measure: usize,
}

struct Layout<'a> {
    asked: &'a Asked,
    cells: &'a Cells,
    kept: Option<Kept>,
    base: PlaceInArea,
}

/// The cells that `top` or `bottom` keeps, by column and number.
struct Kept(std::collections::HashSet<(usize, usize)>);

impl Kept {
    /// The first `count` cells over all columns; equal ones by measure, then by target.
    fn new(cells: &Cells, direction: Direction, count: usize) -> Kept {
        let ends = |column: usize| match direction {
            Direction::Top => cells.top(count, column),
            Direction::Bottom => cells.bottom(count, column),
        };
        let columns = 0..cells.columns().len();
        let mut all: Vec<(usize, usize)> =
            columns.flat_map(|column| ends(column).into_iter().map(move |cell| (column, cell))).collect();
        let value =
            |&(column, cell): &(usize, usize)| cells.columns()[column].value(cell).map_or(0.0, CellValue::to_f64);
        all.sort_by(|one, other| {
            let order = value(one).total_cmp(&value(other));
            if direction == Direction::Top { order.reverse() } else { order }
        });
        all.truncate(count);
        Kept(all.into_iter().collect())
    }
}

impl Layout<'_> {
    /// The place with the targets of combination `number` of some sets.
    fn placed(&self, place: &PlaceInArea, sets: &[BoundSet], mut number: usize) -> PlaceInArea {
        let mut placed = place.clone();
        for set in sets.iter().rev() {
            let target = number % set.targets.len();
            number /= set.targets.len();
            match set.axis {
                CubeAxis::Dimension(position) => placed.targets[position] = target as u32,
                CubeAxis::Measures => placed.measure = target,
            }
        }
        placed
    }

    /// The cell at a place, and its measure.
    fn cell(&self, place: &PlaceInArea) -> (Option<CellValue>, usize) {
        let found = self.cells.find(&place.targets);
        let is_kept = |cell: &usize| self.kept.as_ref().is_none_or(|kept| kept.0.contains(&(place.measure, *cell)));
        let value = found.filter(is_kept).and_then(|cell| self.cells.columns()[place.measure].value(cell));
        (value, self.asked.measures[place.measure])
    }
}

/// The place that all cells share: the first target everywhere.
fn base_place(table: &BoundTable, asked: &Asked) -> PlaceInArea {
    debug_assert!(table.point.iter().all(|place| match place.axis {
        CubeAxis::Dimension(position) => asked.targets[position].len() == 1,
        CubeAxis::Measures => asked.measures.len() == 1,
    }));
    PlaceInArea { targets: vec![0; asked.targets.len()], measure: 0 }
}

/// All combinations of one head of each set, the last set's changing first; of no sets one combination.
fn combinations(sets: &[Vec<Label>]) -> Vec<Vec<Label>> {
    sets.iter().fold(vec![Vec::new()], |heads, set| {
        let longer = |head: &Vec<Label>| {
            set.iter().map(|label| head.iter().cloned().chain([label.clone()]).collect()).collect::<Vec<Vec<Label>>>()
        };
        heads.iter().flat_map(longer).collect()
    })
}

/// The page without rows and columns of empty cells alone; counts them.
fn without_empty(page: Page, hidden: &mut (u64, u64)) -> Page {
    let Page { labels, columns, rows } = page;
    let is_filled = |column: usize| rows.iter().any(|row| row.cells[column].is_some());
    let filled: Vec<bool> = (0..columns.len()).map(is_filled).collect();
    let (row_count, column_count) = (rows.len(), columns.len());
    fn kept<T>(all: Vec<T>, filled: &[bool]) -> Vec<T> {
        all.into_iter().zip(filled).filter(|(_, filled)| **filled).map(|(one, _)| one).collect()
    }
    let has_cell = |row: &Line| row.cells.iter().any(Option::is_some);
    let short =
        |row: Line| Line { labels: row.labels, cells: kept(row.cells, &filled), measures: kept(row.measures, &filled) };
    let rows: Vec<Line> = rows.into_iter().filter(has_cell).map(short).collect();
    let columns = kept(columns, &filled);
    hidden.0 += (row_count - rows.len()) as u64;
    hidden.1 += (column_count - columns.len()) as u64;
    Page { labels, columns, rows }
}

fn axis_name(model: &CubeModel, axis: CubeAxis) -> String {
    match axis {
        CubeAxis::Dimension(position) => model.dimensions()[position].name().to_string(),
        CubeAxis::Measures => MEASURES.to_string(),
    }
}
