//! Columns of stored cells.

use super::{Bitmap, FactMeasure, ValueType};

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
    /// One value a cell: sums of an AVG ([`super::Segment::carries`] has what they are beyond the type), row counts of
    /// a COUNT.
    pub values: Values,
    /// Filled cells, without those that a later segment has replaced or removed; absent if all are filled.
    pub filled: Option<Bitmap>,
    /// Rows with a value, one number a cell, of an AVG; absent if each filled cell has one row.
    pub counts: Option<Vec<u64>>,
}

impl FactColumn {
    /// True if cell `index` has a value.
    pub fn is_filled(&self, index: usize) -> bool {
        self.filled.as_ref().is_none_or(|filled| filled.get(index))
    }

    /// The cells at these places.
    pub(crate) fn at(&self, places: &[usize]) -> FactColumn {
        let values = match &self.values {
            Values::Decimals(values) => Values::Decimals(gather(values, places)),
            Values::Doubles(values) => Values::Doubles(gather(values, places)),
        };
        let filled = self.filled.as_ref().filter(|filled| places.iter().any(|place| !filled.get(*place)));
        FactColumn {
            measure: self.measure.clone(),
            values,
            filled: filled.map(|filled| places.iter().map(|place| filled.get(*place)).collect()),
            counts: self.counts.as_ref().map(|counts| gather(counts, places)),
        }
    }

    /// The greatest magnitude of a stored value, those of empty cells included, but of no cell that is not `live`.
    pub(super) fn magnitude(&self, live: Option<&Bitmap>) -> f64 {
        let is_live = |cell: usize| live.is_none_or(|live| live.get(cell));
        match &self.values {
            Values::Decimals(values) => {
                let live = values.iter().enumerate().filter(|(cell, _)| is_live(*cell));
                live.map(|(_, value)| value.unsigned_abs()).max().unwrap_or(0) as f64
            }
            Values::Doubles(values) => {
                let live = values.iter().enumerate().filter(|(cell, _)| is_live(*cell));
                live.fold(0.0, |most, (_, value)| most.max(value.abs()))
            }
        }
    }

    /// The least and the greatest magnitude of the doubles of filled cells, zeros left out; of other values 0 and 0.
    pub(super) fn double_range(&self) -> (f64, f64) {
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

pub(super) fn gather<T: Copy>(values: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| values[place]).collect()
}
