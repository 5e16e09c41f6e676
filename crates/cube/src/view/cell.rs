//! Texts of cells.

use crate::aggregate::CellValue;
use crate::model::{Measure, Number, NumberFormat, Rule};

/// The text of a measure's value.
pub fn cell_text(measure: &Measure, value: CellValue) -> String {
    let (number, scale) = match value {
        CellValue::Decimal { units, scale } => (Number::Decimal { digits: units.into(), scale }, Some(scale)),
        CellValue::Double(value) => (Number::Double(value), None),
    };
    let pattern = measure.format.as_ref().filter(|_| measure.rule != Rule::Count);
    let format = pattern.and_then(|pattern| pattern.parse().ok());
    format.unwrap_or_else(|| NumberFormat::plain(scale)).text(number)
}

/// The text of `units` / 10^`scale`.
pub(crate) fn decimal_text(units: i128, scale: u8) -> String {
    let digits = usize::from(scale);
    let sign = if units < 0 { "-" } else { "" };
    let text = format!("{:0width$}", units.unsigned_abs(), width = digits + 1);
    let (whole, fraction) = text.split_at(text.len() - digits);
    if digits == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}
