//! The last step of an aggregation, on the host: averages and variances from sums and counts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};

use crate::lower::{Finish, Spread};

/// The node's output from the fragment's batch, whose first `groups` columns are groups.
pub(crate) fn finish(batch: &RecordBatch, groups: usize, steps: &[Finish], schema: &SchemaRef) -> Result<RecordBatch> {
    let aggregate = |index: usize| batch.column(groups + index);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(steps.len());
    for (step, field) in steps.iter().zip(schema.fields()) {
        let column = match step {
            Finish::Group(index) => batch.column(*index).clone(),
            Finish::Aggregate(index) => aggregate(*index).clone(),
            Finish::Average { sum, count } => average(aggregate(*sum), aggregate(*count)),
            Finish::DecimalAverage { sum, count, more_digits } => {
                decimal_average(aggregate(*sum), aggregate(*count), *more_digits, field.data_type())?
            }
            Finish::Variance { sum, squares, count, spread } => {
                variance(aggregate(*sum), aggregate(*squares), aggregate(*count), *spread)
            }
        };
        columns.push(match column.data_type() == field.data_type() {
            true => column,
            false => cast(&column, field.data_type())?,
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn average(sum: &ArrayRef, count: &ArrayRef) -> ArrayRef {
    let (sum, count) = (sum.as_primitive::<Float64Type>(), count.as_primitive::<Int64Type>());
    let quotient = |row: usize| match count.value(row) {
        0 => None,
        count => Some(sum.value(row) / count as f64),
    };
    Arc::new((0..sum.len()).map(quotient).collect::<Float64Array>())
}

/// As DataFusion's: the sum is scaled up, then divided and truncated.
fn decimal_average(sum: &ArrayRef, count: &ArrayRef, more_digits: u32, data_type: &DataType) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = data_type else {
        return Err(DataFusionError::Internal(format!("an average of decimals of type {data_type}")));
    };
    let (sum, count) = (sum.as_primitive::<Decimal128Type>(), count.as_primitive::<Int64Type>());
    let mut values = Vec::with_capacity(sum.len());
    for row in 0..sum.len() {
        let value = match count.value(row) {
            0 => None,
            count => {
                let scaled = sum.value(row).checked_mul(10i128.pow(more_digits));
                let scaled = scaled
                    .ok_or_else(|| DataFusionError::Execution("Arithmetic Overflow in AvgAccumulator".to_string()))?;
                Some(scaled / i128::from(count))
            }
        };
        values.push(value);
    }
    Ok(Arc::new(Decimal128Array::from(values).with_precision_and_scale(*precision, *scale)?))
}

/// The numerator `n Σx² − (Σx)²` is exact wherever it fits, so that nothing cancels.
fn variance(sum: &ArrayRef, squares: &ArrayRef, count: &ArrayRef, spread: Spread) -> ArrayRef {
    let (sum, squares) = (sum.as_primitive::<Decimal128Type>(), squares.as_primitive::<Decimal128Type>());
    let count = count.as_primitive::<Int64Type>();
    let value = |row: usize| {
        let n = count.value(row);
        let divisor = if spread.sample { n - 1 } else { n };
        if divisor <= 0 {
            return None;
        }
        let (sum, squares) = (sum.value(row), squares.value(row));
        let exact = squares.checked_mul(n.into()).zip(sum.checked_mul(sum)).map(|(one, other)| (one - other) as f64);
        let numerator = exact.unwrap_or(squares as f64 * n as f64 - sum as f64 * sum as f64).max(0.0);
        let unit = 10f64.powi(-2 * i32::from(spread.scale));
        let variance = numerator / (n as f64 * divisor as f64) * unit;
        Some(if spread.root { variance.sqrt() } else { variance })
    };
    Arc::new((0..sum.len()).map(value).collect::<Float64Array>())
}
