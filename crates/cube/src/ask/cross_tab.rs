//! Cross-tabs: the cells of an area laid out in pages, rows and columns.

use super::area::Asked;
use super::error::CubeError;
use super::label::{Label, heading, labels, place_format};
use super::places::{AxisPlaces, Placed, cells_of, filled_columns, filled_rows, placed, ranked};
use crate::aggregate::{CellValue, Cells};
use crate::model::{CubeModel, NumberFormat};
use crate::query::{BoundSet, BoundTable, CubeAxis, MEASURES};
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
    /// Rows and columns without a value, which no page shows.
    pub hidden: (u64, u64),
    /// Other rows that no page shows, because `top` or `bottom` keeps none of their places.
    pub rows_cut: u64,
    /// True if `top` or `bottom` ranks the rows of each page.
    pub is_ranked: bool,
    /// The number format of the elements that the heading shows, if one has a format.
    pub format: Option<NumberFormat>,
    /// Texts at cells of the area, which pages do not have; 0 if they were not counted.
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

/// Lays out cells. Without `top` or `bottom` every cell of the area has a place; with them the rows of each page that
/// they keep ([`ranked`]) stand in the order of their values, with all columns that the page has without them.
///
/// Work and memory are those of the filled cells and of the pages that have some; under `empty` those of the area.
///
/// # Errors
/// [`CubeError::Shown`] for more than 10 million places of cells, before memory is taken for them.
pub fn cross_tab(
    model: &CubeModel,
    table: &BoundTable,
    asked: &Asked,
    cells: &Cells,
) -> Result<CrossTabAnswer, CubeError> {
    let mut axes = [&table.pages, &table.rows, &table.columns].map(|sets| Layout::new(model, sets, asked));
    if table.extreme.is_some() {
        axes[1].labels.iter_mut().flatten().for_each(|label| label.indent = 0);
    }
    let [pages, rows, columns] = axes.each_ref().map(|axis| axis.places);
    let placed = placed(table, cells);
    let rows_max = table.extreme.as_ref().map_or(u64::MAX, |extreme| extreme.count);
    let (with_value, hidden) = match table.shows_empty {
        true => (rows.count, (0, 0)),
        false => {
            let filled = distinct(placed.iter().map(|cell| cell.row));
            (filled, (rows.count - filled, columns.count - distinct(placed.iter().map(|cell| cell.column))))
        }
    };
    let of_pages = || placed.chunk_by(|one, other| one.page == other.page);
    let shown = match table.shows_empty {
        true => [pages.count, rows.count.min(rows_max), columns.count].iter().copied().fold(1, u64::saturating_mul),
        false => of_pages().map(|cells| filled_size(cells, rows_max)).sum(),
    };
    if shown > SHOWN_MAX {
        return Err(CubeError::Shown { shown, most: SHOWN_MAX });
    }
    let ranked = table.extreme.as_ref().map(|extreme| ranked(table, extreme, &placed));
    let rows_cut = ranked
        .as_ref()
        .map_or(0, |ranked| with_value - distinct(ranked.iter().flat_map(|page| page.rows.iter().copied())));
    let mut ranked = ranked.map(Vec::into_iter);
    // Pages come in the order of the ranked ones.
    let mut ranked_rows = |rows: Vec<u64>| match &mut ranked {
        Some(ranked) => ranked.next().map_or(Vec::new(), |page| page.rows),
        None => rows,
    };
    let pages: Vec<Page> = match table.shows_empty {
        true => {
            let all_columns: Vec<u64> = (0..columns.count).collect();
            let page = |page| {
                let rows = ranked_rows((0..rows.count.min(rows_max)).collect());
                page_of(page, &rows, &all_columns, cells_of(&placed, |cell| cell.page.cmp(&page)), &axes)
            };
            (0..pages.count).map(page).collect()
        }
        false => {
            let page = |cells: &[Placed]| {
                page_of(cells[0].page, &ranked_rows(filled_rows(cells)), &filled_columns(cells), cells, &axes)
            };
            of_pages().map(page).filter(|page| !page.rows.is_empty()).collect()
        }
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
        rows_cut,
        pages,
        is_ranked: table.extreme.is_some(),
        format: place_format(model, &table.point),
        texts: 0,
    })
}

/// The places of an axis with their heads.
struct Layout<'a> {
    places: AxisPlaces<'a>,
    labels: Vec<Vec<Label>>,
    /// Measures of the query, by position in the cube.
    measures: &'a [usize],
}

impl<'a> Layout<'a> {
    fn new(model: &CubeModel, sets: &'a [BoundSet], asked: &'a Asked) -> Layout<'a> {
        let labels = sets.iter().map(|set| labels(model, set)).collect();
        Layout { places: AxisPlaces::new(sets), labels, measures: &asked.measures }
    }

    /// The heads of a place, one for each set.
    fn heads(&self, number: u64) -> Vec<Label> {
        let targets = self.places.targets(number);
        targets.into_iter().zip(&self.labels).map(|(target, labels)| labels[target].clone()).collect()
    }

    /// The measure that a place has, if measures lie on this axis.
    fn measure(&self, number: u64) -> Option<usize> {
        let set = self.places.sets.iter().position(|set| set.axis == CubeAxis::Measures)?;
        Some(self.measures[self.places.targets(number)[set]])
    }
}

/// The number of different places.
fn distinct(places: impl Iterator<Item = u64>) -> u64 {
    let mut places: Vec<u64> = places.collect();
    places.sort_unstable();
    places.dedup();
    places.len() as u64
}

/// Places of the cells of a page that shows filled columns and some of the filled rows.
fn filled_size(cells: &[Placed], rows_max: u64) -> u64 {
    rows_max.min(filled_rows(cells).len() as u64) * filled_columns(cells).len() as u64
}

/// A page of some rows and ascending columns; `cells` are those of the page, in the order of rows.
fn page_of(page: u64, rows: &[u64], columns: &[u64], cells: &[Placed], axes: &[Layout<'_>; 3]) -> Page {
    let [of_pages, of_rows, of_columns] = axes;
    let of_page = of_pages.measure(page);
    let of_column: Vec<Option<usize>> = columns.iter().map(|column| of_columns.measure(*column)).collect();
    let line = |&row: &u64| {
        let mut line = vec![None; columns.len()];
        for cell in cells_of(cells, |cell| cell.row.cmp(&row)) {
            if let Ok(at) = columns.binary_search(&cell.column) {
                line[at] = Some(cell.value);
            }
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
