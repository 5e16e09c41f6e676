//! The facts of a cube as stored columns.

use std::ops::Range;
use std::sync::Arc;

use super::{Bitmap, FactMeasure, FactsError, Keys, Pages, Rule, ValueType};
use crate::key::KeyLayout;

/// Values of a measure, one a cell. The value of an empty cell has no meaning.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Decimals: whole numbers, the value times 10^scale; row counts of a COUNT.
    Decimals(Vec<i64>),
    /// Finite doubles.
    Doubles(Vec<f64>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Decimals(values) => values.len(),
            Values::Doubles(values) => values.len(),
        }
    }

    /// True if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type, without scale, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Values::Decimals(_) => "decimals",
            Values::Doubles(_) => "doubles",
        }
    }

    /// True if the values are of a measure's type.
    pub(super) fn suit(&self, value_type: ValueType) -> bool {
        matches!(
            (self, value_type),
            (Values::Decimals(_), ValueType::Decimal { .. }) | (Values::Doubles(_), ValueType::Double)
        )
    }
}

/// A stored measure.
#[derive(Debug, Clone, PartialEq)]
pub struct FactColumn {
    /// Name, rule and type.
    pub measure: FactMeasure,
    /// One value a cell: sums of an AVG ([`Facts::carries`] has what they are beyond the type), row counts of a COUNT.
    pub values: Values,
    /// Filled cells; absent if all are filled.
    pub filled: Option<Bitmap>,
    /// Rows with a value, one number a cell, of an AVG; absent if each filled cell has one row.
    pub counts: Option<Vec<u64>>,
}

impl FactColumn {
    /// True if cell `index` has a value.
    pub fn is_filled(&self, index: usize) -> bool {
        self.filled.as_ref().is_none_or(|filled| filled.get(index))
    }

    /// The greatest magnitude of a stored value, those of empty cells included.
    fn magnitude(&self) -> f64 {
        match &self.values {
            Values::Decimals(values) => values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0) as f64,
            Values::Doubles(values) => values.iter().fold(0.0, |most, value| most.max(value.abs())),
        }
    }

    /// The least and the greatest magnitude of the doubles of filled cells, zeros left out; of other values 0 and 0.
    fn double_range(&self) -> (f64, f64) {
        let Values::Doubles(values) = &self.values else { return (0.0, 0.0) };
        let cells = values.iter().enumerate().filter(|(cell, value)| **value != 0.0 && self.is_filled(*cell));
        let range =
            |(least, most): (f64, f64), (_, value): (usize, &f64)| (least.min(value.abs()), most.max(value.abs()));
        match cells.fold((f64::INFINITY, 0.0), range) {
            (_, 0.0) => (0.0, 0.0),
            range => range,
        }
    }
}

/// The filled base cells of a cube, sorted by key.
#[derive(Debug, Clone)]
pub struct Facts {
    layout: KeyLayout,
    keys: Keys,
    columns: Vec<FactColumn>,
    rows: Option<Vec<u64>>,
    /// One entry a column.
    carries: Vec<Option<Vec<i64>>>,
    /// One entry a column.
    cancelled: Vec<Option<Vec<f64>>>,
    pages: Pages,
    magnitudes: Vec<f64>,
    double_ranges: Vec<(f64, f64)>,
    stored: Option<Arc<str>>,
}

/// Equal cells, wherever they are stored.
impl PartialEq for Facts {
    fn eq(&self, other: &Facts) -> bool {
        let parts = |facts: &Facts| (facts.layout.clone(), facts.pages.page_cells());
        parts(self) == parts(other)
            && self.keys == other.keys
            && self.columns == other.columns
            && self.rows == other.rows
            && self.carries == other.carries
            && self.cancelled == other.cancelled
    }
}

impl Facts {
    /// Facts from stored arrays: keys strictly ascending, `columns` of one value a key, `rows` the number of source
    /// rows of each key (absent if each has one), pages of `page_cells` cells.
    ///
    /// # Errors
    /// [`FactsError::Damaged`] if an invariant of the module does not hold.
    pub fn from_parts(
        layout: KeyLayout,
        keys: Keys,
        columns: Vec<FactColumn>,
        rows: Option<Vec<u64>>,
        page_cells: usize,
    ) -> Result<Facts, FactsError> {
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
        Ok(Facts::from_checked(layout, keys, columns, rows, page_cells))
    }

    /// Facts from arrays whose invariants hold.
    pub(super) fn from_checked(
        layout: KeyLayout,
        keys: Keys,
        columns: Vec<FactColumn>,
        rows: Option<Vec<u64>>,
        page_cells: usize,
    ) -> Facts {
        let pages = Pages::of(&layout, &keys, page_cells);
        let magnitudes = columns.iter().map(FactColumn::magnitude).collect();
        let double_ranges = columns.iter().map(FactColumn::double_range).collect();
        let (carries, cancelled) = (vec![None; columns.len()], vec![None; columns.len()]);
        Facts { layout, keys, columns, rows, carries, cancelled, pages, magnitudes, double_ranges, stored: None }
    }

    /// With the state of the cube whose files have these facts.
    pub(crate) fn stored_in(self, state: &str) -> Facts {
        Facts { stored: Some(state.into()), ..self }
    }

    /// The state of the cube from whose files the facts were read; absent for facts that are not stored.
    pub(crate) fn stored(&self) -> Option<&str> {
        self.stored.as_deref()
    }

    /// With the carries of each measure's values, for measures of AVG one a cell.
    pub(crate) fn with_carries(self, carries: Vec<Option<Vec<i64>>>) -> Facts {
        Facts { carries, ..self }
    }

    /// With what the rows of cells cancelled, for measures of sums of doubles one a cell.
    pub(crate) fn with_cancelled(self, cancelled: Vec<Option<Vec<f64>>>) -> Facts {
        Facts { cancelled, ..self }
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

    /// Number of filled base cells.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if no cell is filled.
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

    /// Coordinates of a cell.
    pub fn cell(&self, index: usize) -> Vec<u32> {
        self.layout.unpack(self.keys.get(index))
    }

    /// The cell of a coordinate tuple, if it is filled.
    pub fn find(&self, coordinates: &[u32]) -> Option<usize> {
        let fits = |(dimension, &coordinate): (usize, &u32)| coordinate <= self.layout.coordinate_max(dimension);
        if coordinates.len() != self.layout.dimensions() || !coordinates.iter().enumerate().all(fits) {
            return None;
        }
        let key = self.layout.pack(coordinates);
        let index = self.keys.lower_bound(0..self.len(), key);
        (index < self.len() && self.keys.get(index) == key).then_some(index)
    }

    /// Writes one coordinate of each cell of `range` to the first places of `out`.
    pub(crate) fn coordinates(&self, range: Range<usize>, dimension: usize, out: &mut [u32]) {
        self.keys.coordinates(&self.layout, range, dimension, out);
    }

    /// The greatest magnitude of a measure's stored values.
    pub(crate) fn magnitude(&self, measure: usize) -> f64 {
        self.magnitudes[measure]
    }

    /// The least and the greatest magnitude of a measure's doubles, zeros left out; 0 and 0 without others.
    pub(crate) fn double_range(&self, measure: usize) -> (f64, f64) {
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
