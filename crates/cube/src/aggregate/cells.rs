//! The result of an aggregation: filled targets with a value of each measure.

use super::area::{strides, tuple};
use super::request::Report;
use crate::facts::{Bitmap, ValueType, Values};

/// The filled targets of an area, in the order of their tuples.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    shape: Vec<u32>,
    ranks: Vec<u64>,
    columns: Vec<CellColumn>,
    report: Report,
}

/// A measure of all filled targets.
#[derive(Debug, Clone, PartialEq)]
pub struct CellColumn {
    /// Number of the measure in the facts.
    pub measure: usize,
    /// Name of the measure.
    pub name: String,
    /// Type of the values: that of the measure; double for AVG.
    pub value_type: ValueType,
    /// One value a filled target; without meaning where the measure is empty.
    pub values: Values,
    /// Targets with a value of this measure; absent if all have one.
    pub filled: Option<Bitmap>,
}

/// The value of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellValue {
    /// A decimal: `units` / 10^scale.
    Decimal {
        /// The value in units of the last digit.
        units: i64,
        /// Digits after the point.
        scale: u8,
    },
    /// A double.
    Double(f64),
}

impl CellValue {
    /// The value as a double, rounded.
    pub fn to_f64(self) -> f64 {
        match self {
            CellValue::Decimal { units, scale } => units as f64 / 10_f64.powi(scale.into()),
            CellValue::Double(value) => value,
        }
    }
}

impl CellColumn {
    /// The value of a filled target; nothing where this measure is empty.
    pub fn value(&self, cell: usize) -> Option<CellValue> {
        if self.filled.as_ref().is_some_and(|filled| !filled.get(cell)) {
            return None;
        }
        Some(match (&self.values, self.value_type) {
            (Values::Decimals(values), ValueType::Decimal { scale }) => {
                CellValue::Decimal { units: values[cell], scale }
            }
            (Values::Decimals(values), ValueType::Double) => CellValue::Double(values[cell] as f64),
            (Values::Doubles(values), _) => CellValue::Double(values[cell]),
        })
    }
}

/// The cells of one measure: `column` has a value for each of `ranks`.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureCells {
    /// The values; all are filled.
    pub column: CellColumn,
    /// Row-major numbers of the filled targets within the area, ascending.
    pub ranks: Vec<u64>,
}

impl Cells {
    /// Brings the measures together: a target is filled if one of them is.
    pub fn new(shape: Vec<u32>, parts: Vec<MeasureCells>, mut report: Report) -> Cells {
        let mut ranks = parts.first().map(|part| part.ranks.clone()).unwrap_or_default();
        if parts.iter().any(|part| part.ranks != ranks) {
            ranks = parts.iter().flat_map(|part| part.ranks.iter().copied()).collect();
            ranks.sort_unstable();
            ranks.dedup();
        }
        report.filled_targets = ranks.len() as u64;
        let columns = parts.into_iter().map(|part| part.spread(&ranks)).collect();
        Cells { shape, ranks, columns, report }
    }

    /// Number of targets of each dimension.
    pub fn shape(&self) -> &[u32] {
        &self.shape
    }

    /// Number of filled targets.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// True if no target is filled.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Row-major numbers of the filled targets within the shape, ascending.
    pub fn ranks(&self) -> &[u64] {
        &self.ranks
    }

    /// The target of each dimension of filled target `cell`.
    pub fn target(&self, cell: usize) -> Vec<u32> {
        tuple(&self.shape, self.ranks[cell])
    }

    /// The measures, in the order asked for.
    pub fn columns(&self) -> &[CellColumn] {
        &self.columns
    }

    /// The place of a target among the filled ones.
    pub fn find(&self, target: &[u32]) -> Option<usize> {
        let fits = target.len() == self.shape.len() && target.iter().zip(&self.shape).all(|(one, size)| one < size);
        let rank = || target.iter().zip(strides(&self.shape)).map(|(&one, stride)| u64::from(one) * stride).sum();
        fits.then(|| self.ranks.binary_search(&rank()).ok()).flatten()
    }

    /// What the aggregation did.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The `count` filled targets of the greatest values in a column, the greatest first; equal values in the order of
    /// targets. Targets without a value are left out.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn top(&self, count: usize, column: usize) -> Vec<usize> {
        self.ends(count, column, true)
    }

    /// The `count` filled targets of the least values in a column, the least first; otherwise as [`Cells::top`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn bottom(&self, count: usize, column: usize) -> Vec<usize> {
        self.ends(count, column, false)
    }

    fn ends(&self, count: usize, column: usize, greatest: bool) -> Vec<usize> {
        let CellColumn { values, filled, .. } = &self.columns[column];
        let is_filled = |&cell: &usize| filled.as_ref().is_none_or(|filled| filled.get(cell));
        let mut cells: Vec<usize> = (0..self.len()).filter(is_filled).collect();
        let by_value = |&one: &usize, &other: &usize| {
            let order = match values {
                Values::Decimals(values) => values[one].cmp(&values[other]),
                Values::Doubles(values) => values[one].total_cmp(&values[other]),
            };
            if greatest { order.reverse() } else { order }.then(one.cmp(&other))
        };
        if count < cells.len() {
            if count > 0 {
                cells.select_nth_unstable_by(count - 1, by_value);
            }
            cells.truncate(count);
        }
        cells.sort_unstable_by(by_value);
        cells
    }
}

impl MeasureCells {
    /// The column over all filled targets.
    fn spread(self, all: &[u64]) -> CellColumn {
        let MeasureCells { mut column, ranks } = self;
        if ranks.len() == all.len() {
            return column;
        }
        let mut own = ranks.iter().enumerate().peekable();
        let places: Vec<Option<usize>> =
            all.iter().map(|rank| own.next_if(|(_, own)| *own == rank).map(|(place, _)| place)).collect();
        column.values = match &column.values {
            Values::Decimals(values) => Values::Decimals(spread(values, &places)),
            Values::Doubles(values) => Values::Doubles(spread(values, &places)),
        };
        column.filled = Some(places.iter().map(Option::is_some).collect());
        column
    }
}

fn spread<T: Copy + Default>(values: &[T], places: &[Option<usize>]) -> Vec<T> {
    places.iter().map(|place| place.map_or(T::default(), |place| values[place])).collect()
}
