//! Loading of rows: checks, sorting by key, folding of rows of one key.

use rayon::prelude::*;
use warpcube_arrays::key::{DIMENSIONS_MAX, Key, KeyLayout, Tuple};

use super::column::gather;
use super::fold::{Folded, Groups, RowColumn, extend_optional};
use super::{
    Bitmap, FactColumn, FactMeasure, Facts, FactsError, InputColumn, InputValues, Keys, Rule, Segment, Values,
};

/// Collects rows and folds them into [`Facts`].
///
/// Rows of one key fold by the measure's rule: SUM adds, in 128 bits; COUNT counts rows with a value; AVG keeps their
/// sum, which may be beyond the measure's type, and count; MIN and MAX keep one. NULL values are empty, and a key
/// without any value is dropped. Doubles of one key are sorted before they are added with twice their precision, so
/// that the order of rows never shows in the result.
#[derive(Debug)]
pub struct Loader {
    layout: KeyLayout,
    measures: Vec<FactMeasure>,
    keys: Keys,
    columns: Vec<RowColumn>,
    /// Source rows of each row; absent while each is one.
    rows: Option<Vec<u64>>,
}

impl Loader {
    /// A loader without rows. Without measures no cell has a value, and every row is dropped.
    pub fn new(layout: KeyLayout, measures: Vec<FactMeasure>) -> Loader {
        let keys = if layout.is_narrow() { Keys::Narrow(Vec::new()) } else { Keys::Wide(Vec::new()) };
        let columns = measures.iter().map(RowColumn::new).collect();
        Loader { layout, measures, keys, columns, rows: None }
    }

    /// Rows collected so far.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if no row was collected.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds rows: `coordinates[d]` is the column of dimension `d`, `values[m]` that of measure `m`; all are of one
    /// length.
    ///
    /// # Errors
    /// Columns of another number or length, coordinates beyond the layout, values of another type, NaN and infinities.
    /// After an error no row of this append is kept.
    pub fn append(&mut self, coordinates: &[&[u32]], values: &[InputColumn<'_>]) -> Result<(), FactsError> {
        let rows = self.check_shape(coordinates, values)?;
        self.check_coordinates(coordinates)?;
        for (measure, input) in self.measures.iter().zip(values) {
            check_finite(measure, input)?;
        }
        let before = self.len();
        self.extend_keys(rows, coordinates);
        for (column, input) in self.columns.iter_mut().zip(values) {
            column.extend(before, rows, input);
        }
        extend_optional(&mut self.rows, before, rows, 1, None);
        Ok(())
    }

    /// Adds the cells of other facts, which fold as the rows that they came from do; a sum of doubles was rounded once
    /// when those were folded.
    ///
    /// # Errors
    /// Facts of another layout or of other measures.
    pub fn append_facts(&mut self, facts: &Facts) -> Result<(), FactsError> {
        let other_cube = |reason: String| Err(FactsError::OtherCube { reason });
        if facts.layout() != &self.layout {
            return other_cube(format!("bits {:?} and {:?}", self.layout.bits(), facts.layout().bits()));
        }
        if self.measures != facts.measures() {
            return other_cube("the measures differ in number, name, rule or type".to_string());
        }
        let merged = facts.merged();
        let (before, rows, facts) = (self.len(), facts.len(), merged.base());
        match (&mut self.keys, facts.keys()) {
            (Keys::Narrow(keys), Keys::Narrow(more)) => keys.extend_from_slice(more),
            (Keys::Wide(keys), Keys::Wide(more)) => keys.extend_from_slice(more),
            _ => return other_cube("the widths of keys differ".to_string()),
        }
        for (measure, (column, more)) in self.columns.iter_mut().zip(facts.columns()).enumerate() {
            column.extend_stored(before, more, (facts.carries(measure), facts.cancelled(measure)));
        }
        extend_optional(&mut self.rows, before, rows, 1, facts.row_counts());
        Ok(())
    }

    /// Sorts and folds all rows; pages have `page_cells` cells. Runs on all cores of the current rayon pool.
    ///
    /// # Errors
    /// [`FactsError::Overflow`] for the first cell, by key, whose rows add up beyond the measure's type.
    pub fn finish(self, page_cells: usize) -> Result<Facts, FactsError> {
        let Loader { layout, measures, keys, columns, rows } = self;
        let (keys, groups) = match keys {
            Keys::Narrow(keys) => {
                let (keys, groups) = Groups::of(keys);
                (Keys::Narrow(keys), groups)
            }
            Keys::Wide(keys) => {
                let (keys, groups) = Groups::of(keys);
                (Keys::Wide(keys), groups)
            }
        };
        let folded = measures.iter().zip(&columns).map(|(measure, column)| {
            groups.fold(measure.rule, column).map_err(|(group, sum, limit)| FactsError::Overflow {
                cell: layout.unpack(keys.get(group)),
                measure: measure.name.clone(),
                sum,
                limit,
            })
        });
        let folded: Vec<Folded> = folded.collect::<Result<_, _>>()?;
        let rows = groups.row_counts(rows.as_deref());
        drop((groups, columns));
        Ok(without_empty_cells(layout, keys, measures, folded, rows, page_cells))
    }

    fn check_shape(&self, coordinates: &[&[u32]], values: &[InputColumn<'_>]) -> Result<usize, FactsError> {
        let count = |what, expected: usize, found: usize| match found == expected {
            true => Ok(()),
            false => Err(FactsError::Columns { what, expected, found }),
        };
        count("dimensions", self.layout.dimensions(), coordinates.len())?;
        count("measures", self.measures.len(), values.len())?;
        let expected = coordinates[0].len();
        let length = |what, column, found: usize| match found == expected {
            true => Ok(()),
            false => Err(FactsError::Length { what, column, expected, found }),
        };
        for (dimension, column) in coordinates.iter().enumerate() {
            length("dimensions", dimension, column.len())?;
        }
        for (index, (measure, input)) in self.measures.iter().zip(values).enumerate() {
            let (found, suits) = match input.values {
                InputValues::Decimals(values) => (values.len(), !measure.is_double()),
                InputValues::Doubles(values) => (values.len(), measure.is_double()),
                InputValues::Rows => (expected, false),
            };
            length("measures", index, found)?;
            length("measures", index, input.filled.map_or(expected, <[bool]>::len))?;
            if !suits && measure.rule != Rule::Count {
                let (measure, expected) = (measure.name.clone(), measure.value_type.to_string());
                return Err(FactsError::Type { measure, expected, found: input.values.kind() });
            }
        }
        Ok(expected)
    }

    fn check_coordinates(&self, coordinates: &[&[u32]]) -> Result<(), FactsError> {
        for (dimension, column) in coordinates.iter().enumerate() {
            let most = self.layout.coordinate_max(dimension);
            if let Some(row) = column.iter().position(|&coordinate| coordinate > most) {
                let bits = self.layout.bits()[dimension];
                return Err(FactsError::Coordinate { row, dimension, coordinate: column[row], bits });
            }
        }
        Ok(())
    }

    fn extend_keys(&mut self, rows: usize, coordinates: &[&[u32]]) {
        match &mut self.keys {
            Keys::Narrow(keys) => keys.extend(packed::<u64>(&self.layout, rows, coordinates)),
            Keys::Wide(keys) => keys.extend(packed::<u128>(&self.layout, rows, coordinates)),
        }
    }
}

/// The keys of rows whose coordinates are columns.
fn packed<K: Key>(layout: &KeyLayout, rows: usize, coordinates: &[&[u32]]) -> impl Iterator<Item = K> {
    let mut tuple: Tuple = [0; DIMENSIONS_MAX];
    (0..rows).map(move |row| {
        tuple.iter_mut().zip(coordinates).for_each(|(coordinate, column)| *coordinate = column[row]);
        layout.pack(&tuple[..coordinates.len()])
    })
}

fn check_finite(measure: &FactMeasure, input: &InputColumn<'_>) -> Result<(), FactsError> {
    let InputValues::Doubles(values) = input.values else { return Ok(()) };
    let is_filled = |row: usize| input.filled.is_none_or(|filled| filled[row]);
    match (0..values.len()).find(|&row| !values[row].is_finite() && is_filled(row)) {
        Some(row) => Err(FactsError::NotFinite { row, measure: measure.name.clone(), value: values[row].to_string() }),
        None => Ok(()),
    }
}

/// Facts of the cells that have a value of some measure.
fn without_empty_cells(
    layout: KeyLayout,
    mut keys: Keys,
    measures: Vec<FactMeasure>,
    mut folded: Vec<Folded>,
    mut rows: Option<Vec<u64>>,
    page_cells: usize,
) -> Facts {
    let is_kept = |cell: usize| folded.iter().any(|column| column.filled.as_ref().is_none_or(|filled| filled[cell]));
    let kept: Vec<usize> = (0..keys.len()).into_par_iter().filter(|&cell| is_kept(cell)).collect();
    if kept.len() < keys.len() {
        keys = match keys {
            Keys::Narrow(keys) => Keys::Narrow(gather(&keys, &kept)),
            Keys::Wide(keys) => Keys::Wide(gather(&keys, &kept)),
        };
        rows = rows.map(|rows| gather(&rows, &kept));
        folded = folded.into_iter().map(|column| column.gathered(&kept)).collect();
    }
    let columns =
        measures.into_iter().zip(folded).map(|(measure, Folded { values, filled, counts, carries, cancelled })| {
            let filled =
                filled.filter(|filled| filled.contains(&false)).map(|filled| filled.into_iter().collect::<Bitmap>());
            (FactColumn { measure, values, filled, counts }, (carries, cancelled))
        });
    let (columns, (carries, cancelled)) = columns.unzip();
    let segment = Segment::from_checked(layout.clone(), keys, columns, rows, page_cells);
    Facts::of_segments(layout, vec![segment.with_carries(carries).with_cancelled(cancelled).into()])
}

impl Folded {
    fn gathered(self, places: &[usize]) -> Folded {
        let values = match self.values {
            Values::Decimals(values) => Values::Decimals(gather(&values, places)),
            Values::Doubles(values) => Values::Doubles(gather(&values, places)),
        };
        let filled = self.filled.map(|filled| gather(&filled, places));
        let carries = self.carries.map(|carries| gather(&carries, places));
        let cancelled = self.cancelled.map(|cancelled| gather(&cancelled, places));
        Folded { values, filled, carries, cancelled, counts: self.counts.map(|counts| gather(&counts, places)) }
    }
}
