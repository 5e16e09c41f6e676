//! Texts of cells.

use crate::aggregate::CellValue;
use crate::model::{Measure, Number, NumberFormat, Rule};

/// Doubles without a format are written in full from the first magnitude to below the second; others as `1.5e20`.
const IN_FULL: std::ops::Range<f64> = 1e-5..1e15;
/// Digits behind the point of those.
const DIGITS: usize = 6;

/// The text of a measure's value, in the format of an element if there is one, else in that of the measure.
pub fn cell_text(measure: &Measure, of_element: Option<&NumberFormat>, value: CellValue) -> String {
    let (number, scale) = match value {
        CellValue::Decimal { units, scale } => (Number::Decimal { digits: units.into(), scale }, Some(scale)),
        CellValue::Double(value) => (Number::Double(value), None),
    };
    let pattern = measure.format.as_ref().filter(|_| measure.rule != Rule::Count);
    let of_element = of_element.filter(|_| measure.rule != Rule::Count).cloned();
    let format: Option<NumberFormat> = of_element.or_else(|| pattern.and_then(|pattern| pattern.parse().ok()));
    if let (CellValue::Double(value), None) = (value, &format)
        && value != 0.0
        && value.is_finite()
        && !IN_FULL.contains(&value.abs())
    {
        let rounded = format!("{value:.DIGITS$e}");
        let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
        let rounded = format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
        // The shortest digits of a double below the least normal one are fewer than its exact ones.
        let shortest = format!("{value:e}");
        return if shortest.len() <= rounded.len() { shortest } else { rounded };
    }
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
