//! A segment of facts: cells sorted by key, which never change, and which of them count.

use std::ops::Range;
use std::sync::Arc;

use warpcube_arrays::key::KeyLayout;

use super::{Bitmap, FactColumn, FactsError, Keys, Pages, Rule, Values};

/// Cells sorted by key, one a key.
///
/// A cell that a later segment has replaced or removed is not live: no measure is filled there.
#[derive(Debug, Clone)]
pub struct Segment {
    layout: KeyLayout,
    keys: Keys,
    columns: Vec<FactColumn>,
    rows: Option<Vec<u64>>,
    /// One entry a column.
    carries: Vec<Option<Vec<i64>>>,
    /// One entry a column.
    cancelled: Vec<Option<Vec<f64>>>,
    pages: Pages,
    /// Absent if all cells are live.
    live: Option<Bitmap>,
    magnitudes: Vec<f64>,
    double_ranges: Vec<(f64, f64)>,
    /// The state of a cube whose files have the cells, and the one whose files say which are live.
    stored: [Option<Arc<str>>; 2],
}

/// Equal cells, wherever they are stored.
impl PartialEq for Segment {
    fn eq(&self, other: &Segment) -> bool {
        (&self.layout, &self.keys, &self.columns) == (&other.layout, &other.keys, &other.columns)
            && (&self.rows, &self.carries, &self.cancelled) == (&other.rows, &other.carries, &other.cancelled)
            && (&self.live, self.pages.page_cells()) == (&other.live, other.pages.page_cells())
    }
}

impl Segment {
    /// A segment from stored arrays: keys strictly ascending, `columns` of one value a key, `rows` the number of source
    /// rows of each key (absent if each has one), pages of `page_cells` cells.
    ///
    /// # Errors
    /// [`FactsError::Damaged`] if an invariant of the module does not hold.
    pub(crate) fn from_parts(
        layout: KeyLayout,
        keys: Keys,
        columns: Vec<FactColumn>,
        rows: Option<Vec<u64>>,
        page_cells: usize,
    ) -> Result<Segment, FactsError> {
        check_keys(&layout, &keys)?;
        let cells = keys.len();
        let damaged = |reason: String| Err(FactsError::Damaged { reason });
        if rows.as_ref().is_some_and(|rows| rows.len() != cells || rows.contains(&0)) {
            return damaged(format!("row counts are not one positive number for each of {cells} cells"));
        }
        for column in &columns {
            check_column(column, cells)?;
        }
        if columns.iter().all(|column| column.filled.is_some())
            && let Some(cell) = (0..cells).find(|&cell| !columns.iter().any(|column| column.is_filled(cell)))
        {
            return damaged(format!("cell {:?} has no value", layout.unpack(keys.get(cell))));
        }
        Ok(Segment::from_checked(layout, keys, columns, rows, page_cells))
    }

    /// A segment from arrays whose invariants hold.
    pub(super) fn from_checked(
        layout: KeyLayout,
        keys: Keys,
        columns: Vec<FactColumn>,
        rows: Option<Vec<u64>>,
        page_cells: usize,
    ) -> Segment {
        let pages = Pages::of(&layout, &keys, page_cells);
        let (carries, cancelled) = (vec![None; columns.len()], vec![None; columns.len()]);
        let (live, stored) = (None, [None, None]);
        let (magnitudes, double_ranges) = (Vec::new(), Vec::new());
        Segment { layout, keys, columns, rows, carries, cancelled, pages, live, magnitudes, double_ranges, stored }
            .measured()
    }

    /// With the bounds of the values of its live cells.
    fn measured(self) -> Segment {
        let magnitudes = self.columns.iter().map(|column| column.magnitude(self.live.as_ref())).collect();
        let double_ranges = self.columns.iter().map(FactColumn::double_range).collect();
        Segment { magnitudes, double_ranges, ..self }
    }

    /// With the carries of each measure's values, for measures of AVG one a cell.
    pub(crate) fn with_carries(self, carries: Vec<Option<Vec<i64>>>) -> Segment {
        Segment { carries, ..self }
    }

    /// With what the rows of cells cancelled, for measures of sums of doubles one a cell.
    pub(crate) fn with_cancelled(self, cancelled: Vec<Option<Vec<f64>>>) -> Segment {
        Segment { cancelled, ..self }
    }

    /// The same cells, of which those that `live` does not mark do not count.
    pub(crate) fn with_live(self, live: Bitmap) -> Segment {
        let live: Bitmap = (0..live.len()).map(|cell| live.get(cell) && self.is_live(cell)).collect();
        if Some(&live) == self.live.as_ref() || live.count() == self.len() {
            return self;
        }
        let Segment { columns, stored: [cells, _], .. } = self;
        let columns = columns.into_iter().map(|column| {
            let filled: Bitmap = (0..live.len()).map(|cell| live.get(cell) && column.is_filled(cell)).collect();
            FactColumn { filled: Some(filled), ..column }
        });
        Segment { columns: columns.collect(), live: Some(live), stored: [cells, None], ..self }.measured()
    }

    /// With the state of the cube whose files have its cells, and the one whose files say which are live.
    pub(crate) fn stored_in(self, cells: &str, live: Option<&str>) -> Segment {
        Segment { stored: [Some(cells.into()), live.map(Into::into)], ..self }
    }

    /// The state of the cube from whose files the cells were read; absent for cells that are not stored.
    pub(crate) fn stored(&self) -> Option<&str> {
        self.stored[0].as_deref()
    }

    /// The state of the cube whose files say which cells are live; absent where none does.
    pub(crate) fn live_stored(&self) -> Option<&str> {
        self.stored[1].as_deref()
    }

    /// By how much the magnitudes of the rows of a cell exceed the magnitude of their sum, one a cell, where doubles of
    /// both signs were added up: the sum keeps no more digits than its rows leave. Absent if it is 0 everywhere.
    pub fn cancelled(&self, measure: usize) -> Option<&[f64]> {
        self.cancelled[measure].as_deref()
    }

    /// The carries of an AVG's sums, one a cell: a sum of decimals is its value and 2⁶⁴ times the carry, one of doubles
    /// its value and 2¹⁰⁰⁰ times the carry. Absent if each is 0.
    pub fn carries(&self, measure: usize) -> Option<&[i64]> {
        self.carries[measure].as_deref()
    }

    /// Layout of the keys.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// Number of cells, those that are not live included.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there is no cell.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The measures, in the order of definition.
    pub fn columns(&self) -> &[FactColumn] {
        &self.columns
    }

    /// Source rows of each cell; absent if each has one.
    pub fn row_counts(&self) -> Option<&[u64]> {
        self.rows.as_deref()
    }

    /// The pages.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The live cells; absent if all are.
    pub fn live(&self) -> Option<&Bitmap> {
        self.live.as_ref()
    }

    /// True if no later segment has replaced or removed a cell.
    pub fn is_live(&self, cell: usize) -> bool {
        self.live.as_ref().is_none_or(|live| live.get(cell))
    }

    /// Number of live cells.
    pub(super) fn live_cells(&self) -> usize {
        self.live.as_ref().map_or(self.len(), Bitmap::count)
    }

    /// The live cell of a key.
    pub(super) fn find(&self, key: u128) -> Option<usize> {
        let cell = self.keys.lower_bound(0..self.len(), key);
        (cell < self.len() && self.keys.get(cell) == key && self.is_live(cell)).then_some(cell)
    }

    /// Writes one coordinate of each cell of `range` to the first places of `out`.
    pub(crate) fn coordinates(&self, range: Range<usize>, dimension: usize, out: &mut [u32]) {
        self.keys.coordinates(&self.layout, range, dimension, out);
    }

    /// The greatest magnitude of a measure's values in live cells.
    pub(super) fn magnitude(&self, measure: usize) -> f64 {
        self.magnitudes[measure]
    }

    /// The least and the greatest magnitude of a measure's doubles in live cells, zeros left out; 0 and 0 without
    /// others.
    pub(super) fn double_range(&self, measure: usize) -> (f64, f64) {
        self.double_ranges[measure]
    }
}

fn check_keys(layout: &KeyLayout, keys: &Keys) -> Result<(), FactsError> {
    let damaged = |reason: String| Err(FactsError::Damaged { reason });
    if matches!(keys, Keys::Narrow(_)) != layout.is_narrow() {
        return damaged(format!("keys are not of the width that {} bits take", layout.total_bits()));
    }
    if let Some(place) = keys.first_unsorted() {
        return damaged(format!("the key of cell {place} does not exceed the one before it"));
    }
    let bits = layout.total_bits();
    if !keys.is_empty() && bits < 128 && keys.get(keys.len() - 1) >> bits != 0 {
        return damaged(format!("the last key has more than {bits} bits"));
    }
    Ok(())
}

fn check_column(column: &FactColumn, cells: usize) -> Result<(), FactsError> {
    let FactColumn { measure, values, filled, counts } = column;
    let damaged = |reason: String| Err(FactsError::Damaged { reason: format!("measure {}: {reason}", measure.name) });
    let lengths = [Some(values.len()), filled.as_ref().map(Bitmap::len), counts.as_ref().map(Vec::len)];
    if lengths.iter().flatten().any(|&length| length != cells) {
        return damaged(format!("its columns do not have {cells} cells"));
    }
    if !values.suit(measure.value_type) {
        return damaged(format!("{} are stored as {}", measure.value_type, values.kind()));
    }
    if counts.is_some() && measure.rule != Rule::Avg {
        return damaged(format!("row counts belong to AVG, the rule is {}", measure.rule));
    }
    if let Values::Doubles(values) = values
        && let Some(place) = values.iter().position(|value| !value.is_finite() || value.to_bits() == 1 << 63)
    {
        return damaged(format!("cell {place} holds {}", values[place]));
    }
    Ok(())
}
