//! The last step of an aggregation, on the host: variances from sums and counts.
//!
//! A variance of doubles is a difference of sums; where too many of its digits cancel, there is no result
//! ([`Cancelled`]) and the CPU, which takes the mean away from each value first, gives the answer.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, SchemaRef, i256};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::canonical_floats::canonical_nans;
use crate::lower::Finish;
use crate::mend::moments::{Moments, Statistic};
use crate::mend::pairs::PairSums;
use crate::mend::variances::{self, Spread};

/// Share of the sum of squares below which a difference of sums has too few digits left: sums are right to some 2⁻⁵⁰,
/// so that results keep ten digits.
const DIFFERENCE_MIN: f64 = 2e-5;

/// A variance whose digits cancel.
#[derive(Debug, thiserror::Error)]
#[error("a variance of values that are large beside their differences")]
pub(crate) struct Cancelled;

/// Rows that one core finishes at a time.
const PART_ROWS: usize = 1024;

/// The node's output from the fragment's batch: a column for each step, and for a variance the sums it is made of. Many
/// rows are computed on all cores.
pub(crate) fn finish(batch: &RecordBatch, steps: &[Finish], schema: &SchemaRef) -> Result<RecordBatch> {
    let computes =
        |step: &Finish| matches!(step, Finish::Variance { .. } | Finish::FloatVariance { .. } | Finish::Pairs { .. });
    let rows = batch.num_rows();
    if rows < 2 * PART_ROWS || !steps.iter().any(computes) {
        return finish_part(batch, steps, schema);
    }
    let part = |number: usize| {
        let first = number * PART_ROWS;
        finish_part(&batch.slice(first, PART_ROWS.min(rows - first)), steps, schema)
    };
    let parts = (0..rows.div_ceil(PART_ROWS)).into_par_iter().map(part).collect::<Result<Vec<_>>>()?;
    Ok(concat_batches(schema, &parts)?)
}

fn finish_part(batch: &RecordBatch, steps: &[Finish], schema: &SchemaRef) -> Result<RecordBatch> {
    let is_global = !steps.iter().any(|step| matches!(step, Finish::Group(_)));
    let mut rest = batch.columns();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(steps.len());
    for (step, field) in steps.iter().zip(schema.fields()) {
        let column = match step {
            Finish::Variance { spread, .. } => {
                let [sum, squares, count] = next(&mut rest)?;
                variance(sum, squares, count, *spread)
            }
            Finish::FloatVariance { spread, .. } => {
                let [sum, squares, low, high, count] = next(&mut rest)?;
                let doubles = [sum, squares, low, high].map(|column| column.as_primitive::<Float64Type>());
                let count = count.as_primitive::<Int64Type>();
                let value = |row: usize| match count.value(row) {
                    // Without groups DataFusion does not look at the value; in a group an infinite one shows.
                    1 if is_global && !spread.sample => Ok(Some(0.0)),
                    count => float_variance(doubles.map(|values| values.value(row)), count, *spread),
                };
                let values = (0..count.len()).map(value).collect::<Result<Float64Array, _>>();
                Arc::new(values.map_err(|error| DataFusionError::External(Box::new(error)))?)
            }
            Finish::Pairs { scales: Some(scales), statistic, .. } => {
                Moments::results(exact_moments(next(&mut rest)?, *scales), *statistic)
            }
            Finish::Pairs { scales: None, statistic, .. } => {
                let moments = float_moments(next(&mut rest)?, *statistic);
                let moments = moments.map_err(|error| DataFusionError::External(Box::new(error)))?;
                Moments::results(moments.into_iter(), *statistic)
            }
            _ => next::<1>(&mut rest)?[0].clone(),
        };
        columns.push(canonical_nans(&match column.data_type() == field.data_type() {
            true => column,
            false => cast(&column, field.data_type())?,
        }));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// The next columns.
fn next<'a, const COLUMNS: usize>(rest: &mut &'a [ArrayRef]) -> Result<&'a [ArrayRef; COLUMNS]> {
    let lacking = || DataFusionError::Internal("a fragment gives too few columns".into());
    let (columns, others) = rest.split_first_chunk().ok_or_else(lacking)?;
    *rest = others;
    Ok(columns)
}

fn variance(sum: &ArrayRef, squares: &ArrayRef, count: &ArrayRef, spread: Spread) -> ArrayRef {
    let (sum, squares) = (sum.as_primitive::<Decimal128Type>(), squares.as_primitive::<Decimal128Type>());
    let count = count.as_primitive::<Int64Type>();
    let value = |row: usize| {
        let [sum, squares] = [sum.value(row), squares.value(row)].map(i256::from_i128);
        variances::variance(sum, squares, count.value(row).unsigned_abs(), spread)
    };
    Arc::new((0..sum.len()).map(value).collect::<Float64Array>())
}

/// Moments of pairs of integers and decimals.
fn exact_moments([counts, sums @ ..]: &[ArrayRef; 6], scales: [i8; 2]) -> impl Iterator<Item = Moments> {
    let counts = counts.as_primitive::<Int64Type>();
    let sums = sums.each_ref().map(|sum| sum.as_primitive::<Decimal128Type>());
    (0..counts.len()).map(move |row| {
        let [one, other, squares, squares_of_other, products] = sums.map(|sum| i256::from_i128(sum.value(row)));
        let count = counts.value(row).unsigned_abs();
        PairSums { count, sums: [one, other], squares: [squares, squares_of_other], products }.moments(scales)
    })
}

/// Moments of pairs of floats, as far as a statistic reads them. NaN and infinities are left to the CPU.
fn float_moments(parts: &[ArrayRef; 10], statistic: Statistic) -> std::result::Result<Vec<Moments>, Cancelled> {
    let [counts, parts @ ..] = parts;
    let counts = counts.as_primitive::<Int64Type>();
    let parts = parts.each_ref().map(|part| part.as_primitive::<Float64Type>());
    let of_row = |row: usize| {
        let count = counts.value(row);
        if count == 0 {
            return Ok(Moments::default());
        }
        let [one, other, squares, squares_of_other, products, extremes @ ..] = parts.map(|part| part.value(row));
        let [low, high, low_of_other, high_of_other] = extremes;
        if !extremes.iter().all(|extreme| extreme.is_finite()) {
            return Err(Cancelled);
        }
        let n = count as f64;
        let deviations = [
            float_deviations([one, squares, low, high], count)?,
            float_deviations([other, squares_of_other, low_of_other, high_of_other], count)?,
        ];
        let is_flat = deviations.contains(&0.0);
        let of_products = if is_flat { 0.0 } else { products - one * other / n };
        let is_lost = of_products.abs() < DIFFERENCE_MIN * (squares * squares_of_other).sqrt();
        if statistic.is_of_products() && is_lost && !is_flat {
            return Err(Cancelled);
        }
        Ok(Moments::new(count.unsigned_abs(), [one / n, other / n], deviations, of_products))
    };
    (0..counts.len()).map(of_row).collect()
}

/// `Σx² − (Σx)² ÷ n`, the sum of squared deviations from the mean, if enough of its digits are left; `count` is not
/// zero.
pub(crate) fn float_deviations([sum, squares, low, high]: [f64; 4], count: i64) -> std::result::Result<f64, Cancelled> {
    if !low.is_finite() || !high.is_finite() {
        return Ok(f64::NAN);
    }
    if count == 1 || low == high {
        return Ok(0.0);
    }
    let difference = squares - sum * sum / count as f64;
    // Not so either where the squares overflowed.
    let enough = difference >= DIFFERENCE_MIN * squares && squares.is_finite();
    if enough { Ok(difference) } else { Err(Cancelled) }
}

fn float_variance(sums: [f64; 4], count: i64, spread: Spread) -> std::result::Result<Option<f64>, Cancelled> {
    let divisor = if spread.sample { count - 1 } else { count };
    if divisor <= 0 {
        return Ok(None);
    }
    let variance = float_deviations(sums, count)? / divisor as f64;
    Ok(Some(if spread.root { variance.sqrt() } else { variance }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variance_keeps_its_digits_or_is_none() {
        let population = Spread { sample: false, root: false, scale: 0 };
        let of = |values: &[f64]| {
            let sums = [values.iter().sum(), values.iter().map(|x| x * x).sum()];
            let extreme = |better: fn(f64, f64) -> f64| values.iter().copied().reduce(better).unwrap_or(0.0);
            float_variance([sums[0], sums[1], extreme(f64::min), extreme(f64::max)], values.len() as i64, population)
        };
        assert_eq!(of(&[1.0, 3.0]).unwrap(), Some(1.0));
        assert_eq!(of(&[0.1, 0.1, 0.1]).unwrap(), Some(0.0));
        assert_eq!(of(&[]).unwrap(), None);
        assert!(of(&[1e9, 1e9 + 1.0]).is_err());
        assert!(of(&[1e200, -1e200]).is_err());
        assert!(of(&[f64::INFINITY, 1.0]).unwrap().is_some_and(f64::is_nan));
        assert!(of(&[f64::INFINITY]).unwrap().is_some_and(f64::is_nan));
        let sample = Spread { sample: true, root: true, scale: 0 };
        assert_eq!(float_variance([2.0, 4.0, 2.0, 2.0], 1, sample).unwrap(), None);
        assert_eq!(float_variance([4.0, 10.0, 1.0, 3.0], 2, sample).unwrap(), Some(2f64.sqrt()));
    }
}
