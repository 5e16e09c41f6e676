//! The result of an aggregation: filled targets with a value of each measure.

use std::cmp::Ordering;

use super::area::{strides, tuple};
use super::decision::Place;
use super::request::AggregateReport;
use crate::facts::{Bitmap, ValueType, Values};

/// The filled targets of an area, in the order of their tuples.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    shape: Vec<u32>,
    ranks: Vec<u64>,
    columns: Vec<CellColumn>,
    report: AggregateReport,
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

    /// The order of the values themselves, decimals of any scale and doubles exactly; NaN stands beyond all numbers.
    pub fn compare(self, other: CellValue) -> Ordering {
        match (self, other) {
            (CellValue::Decimal { units, scale }, CellValue::Decimal { units: with, scale: other }) => {
                let digits = scale.max(other);
                let units_of = |units: i64, scale: u8| i128::from(units) * 10_i128.pow((digits - scale).into());
                units_of(units, scale).cmp(&units_of(with, other))
            }
            // Negative zero is zero, as it is to a decimal.
            (CellValue::Double(one), CellValue::Double(other)) => (one + 0.0).total_cmp(&(other + 0.0)),
            (CellValue::Decimal { units, scale }, CellValue::Double(double)) => compare(units.into(), scale, double),
            (CellValue::Double(double), CellValue::Decimal { units, scale }) => {
                compare(units.into(), scale, double).reverse()
            }
        }
    }
}

/// The order of `units` / 10^`scale` and a double.
fn compare(units: i128, scale: u8, double: f64) -> Ordering {
    if double < 0.0 {
        return compare(-units, scale, -double).reverse();
    }
    // Decimals lie below 2⁶³; the whole part of a double below 2⁶⁴ times 10¹⁸ fits 128 bits.
    if double.is_nan() || double.abs() >= 18_446_744_073_709_551_616.0 {
        return if double.is_sign_negative() { Ordering::Greater } else { Ordering::Less };
    }
    let unit = 10_i128.pow(scale.into());
    let whole = double.floor();
    let rest = units - whole as i128 * unit;
    if rest < 0 || rest >= unit {
        return rest.cmp(&0).then(Ordering::Greater);
    }
    // Both parts lie within 0 and 1: rest / unit and mantissa / 2^bits.
    let (mantissa, bits) = binary_fraction(double - whole);
    let (rest, mantissa) = (rest as u128, u128::from(mantissa) * unit as u128);
    if rest == 0 {
        return 0.cmp(&mantissa);
    }
    match rest.leading_zeros() >= bits {
        true => (rest << bits).cmp(&mantissa),
        // 2¹²⁸ at least, above 2⁵³ · 10¹⁸.
        false => Ordering::Greater,
    }
}

/// A double from 0 to below 1 as `mantissa` / 2^`bits`, exactly; `mantissa` is odd or 0.
fn binary_fraction(value: f64) -> (u64, u32) {
    let exponent = (value.to_bits() >> 52) as i32;
    let fraction = value.to_bits() & ((1 << 52) - 1);
    let mantissa = if exponent > 0 { fraction | 1 << 52 } else { fraction };
    if mantissa == 0 {
        return (0, 0);
    }
    let zeros = mantissa.trailing_zeros();
    (mantissa >> zeros, (1075 - exponent.max(1)) as u32 - zeros)
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
    pub fn new(shape: Vec<u32>, parts: Vec<MeasureCells>, mut report: AggregateReport) -> Cells {
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

    /// The report of the aggregation.
    pub fn report(&self) -> &AggregateReport {
        &self.report
    }

    /// The same cells with other doubles in a column.
    pub(crate) fn with_doubles(mut self, column: usize, values: Vec<f64>) -> Cells {
        self.columns[column].values = Values::Doubles(values);
        self
    }

    /// The same cells, which were aggregated where they were for the reasons of a place.
    pub(crate) fn placed(mut self, place: Place) -> Cells {
        let device = self.report.decision.place.device.take();
        self.report.decision.place = Place { device, ..place };
        self
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decimal(units: i64, scale: u8) -> CellValue {
        CellValue::Decimal { units, scale }
    }

    #[test]
    fn values_compare_without_rounding() {
        let large = 9_007_199_254_740_992;
        for (one, other, order) in [
            (decimal(large + 1, 0), decimal(large, 0), Ordering::Greater),
            (decimal(large + 1, 0), CellValue::Double(large as f64), Ordering::Greater),
            (decimal(large, 0), CellValue::Double(large as f64), Ordering::Equal),
            (decimal(1, 1), CellValue::Double(0.1), Ordering::Less),
            (decimal(-1, 1), CellValue::Double(-0.1), Ordering::Greater),
            (decimal(25, 2), CellValue::Double(0.25), Ordering::Equal),
            (decimal(-25, 2), CellValue::Double(-0.25), Ordering::Equal),
            (decimal(1, 18), CellValue::Double(5e-324), Ordering::Greater),
            (decimal(0, 18), CellValue::Double(5e-324), Ordering::Less),
            (decimal(0, 3), CellValue::Double(-0.0), Ordering::Equal),
            (CellValue::Double(0.0), CellValue::Double(-0.0), Ordering::Equal),
            (decimal(i64::MAX, 0), CellValue::Double(9_223_372_036_854_775_808.0), Ordering::Less),
            (decimal(i64::MIN, 0), CellValue::Double(-9_223_372_036_854_775_808.0), Ordering::Equal),
            (decimal(i64::MAX, 18), decimal(i64::MAX, 0), Ordering::Less),
            (decimal(1, 0), CellValue::Double(f64::INFINITY), Ordering::Less),
            (decimal(1, 0), CellValue::Double(f64::NEG_INFINITY), Ordering::Greater),
        ] {
            assert_eq!(one.compare(other), order, "{one:?} and {other:?}");
            assert_eq!(other.compare(one), order.reverse(), "{other:?} and {one:?}");
        }
    }

    proptest! {
        #[test]
        fn a_double_compares_as_its_decimal_digits(
            units in prop_oneof![any::<i64>(), -1000..1000_i64],
            scale in 0..=18_u8,
            double in prop_oneof![
                -1e4..1e4_f64,
                -1e19..1e19_f64,
                (-1000..1000_i64).prop_map(|eighths| eighths as f64 / 8.0),
            ],
        ) {
            // All digits of the double: those behind the decimal's scale only break ties.
            let text = format!("{:.*}", 1074, double.abs());
            let (whole, fraction) = text.split_once('.').unwrap();
            let head: i128 = format!("{whole}{}", &fraction[..scale.into()]).parse().unwrap();
            let tail = fraction[scale.into()..].bytes().any(|digit| digit != b'0');
            let magnitude = |units: i128| units.cmp(&head).then(if tail { Ordering::Less } else { Ordering::Equal });
            let expected = if double < 0.0 { magnitude(-i128::from(units)).reverse() } else { magnitude(units.into()) };
            prop_assert_eq!(decimal(units, scale).compare(CellValue::Double(double)), expected);
        }
    }
}
