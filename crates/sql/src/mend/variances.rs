//! VAR and STDDEV of integers and decimals, exact until the last step.
//!
//! DataFusion 55.2 makes doubles of such values: where they are large beside their differences, digits are lost
//! (`stddev(x + 1000000000000)`), and the order of rows shows. Here, in the final plan, the values and their squares
//! are added in 256 bits; the device's sums end in the same last step ([`variance`]), so that both places give the
//! same bits. Frames that slide take values away exactly. Decimals of more than [`DIGITS_MAX`] digits stay doubles.
//!
//! The file goes once DataFusion adds such values exactly.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, UInt64Type};
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Field, FieldRef, i256};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::stddev::{Stddev, StddevPop};
use datafusion::functions_aggregate::variance::{VariancePopulation, VarianceSample};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, LogicalPlan, ReversedUDAF, Signature, Volatility,
    WindowFunctionDefinition,
};

use super::{each_expression, each_node};

/// Digits of decimals whose squares, added over 10^10 rows and times their number, fit in 256 bits.
pub(crate) const DIGITS_MAX: u8 = 28;

/// Which measure of spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Spread {
    /// Of a sample: divided by one less than the count.
    pub(crate) sample: bool,
    /// The root: a standard deviation.
    pub(crate) root: bool,
    /// Digits after the point of the values.
    pub(crate) scale: i8,
}

/// `n Σx² − (Σx)²`, the sum of squared deviations from the mean times the count, rounded once.
fn deviations(sum: i256, squares: i256, count: u64) -> f64 {
    let exact = squares.wrapping_mul(i256::from_i128(count.into())).wrapping_sub(sum.wrapping_mul(sum));
    let (low, high) = exact.to_parts();
    let high = high.max(0) as u128;
    if high == 0 {
        return low as f64;
    }
    // 128 bits from the first one on; a bit for those that are left out.
    let shift = 128 - high.leading_zeros();
    let (kept, rest) = match shift {
        128 => (high, low),
        shift => ((high << (128 - shift)) | (low >> shift), low << (128 - shift)),
    };
    (kept | u128::from(rest != 0)) as f64 * 2f64.powi(shift as i32)
}

/// A variance or its root from exact sums of values and of their squares.
pub(crate) fn variance(sum: i256, squares: i256, count: u64, spread: Spread) -> Option<f64> {
    let divisor = count.checked_sub(u64::from(spread.sample)).filter(|divisor| *divisor > 0)?;
    let units = 10f64.powi(2 * i32::from(spread.scale));
    let variance = deviations(sum, squares, count) / (count as f64 * divisor as f64 * units);
    Some(if spread.root { variance.sqrt() } else { variance })
}

/// The plan with exact variances of integers and decimals.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| {
        if !matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
            return Ok(Transformed::no(plan));
        }
        let is_candidate = |expr: &Expr| matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_));
        each_expression(plan, is_candidate, |expr, schema| {
            let scale = |args: &[Expr]| match args {
                [Expr::Cast(cast)] if *cast.field.data_type() == DataType::Float64 => {
                    scale_of(&cast.expr.get_type(schema.as_ref()).ok()?)
                }
                _ => None,
            };
            expr.transform_up(|expr| {
                Ok(match expr {
                    Expr::AggregateFunction(mut function) if !function.params.distinct => {
                        let exact = scale(&function.params.args).and_then(|scale| Variance::of(&function.func, scale));
                        let is_new = exact.is_some();
                        if let Some(exact) = exact {
                            function.func = exact;
                            bare(&mut function.params.args);
                        }
                        Transformed::new_transformed(Expr::AggregateFunction(function), is_new)
                    }
                    Expr::WindowFunction(mut function) if !function.params.distinct => {
                        let exact = match (&function.fun, scale(&function.params.args)) {
                            (WindowFunctionDefinition::AggregateUDF(own), Some(scale)) => Variance::of(own, scale),
                            _ => None,
                        };
                        let is_new = exact.is_some();
                        if let Some(exact) = exact {
                            function.fun = WindowFunctionDefinition::AggregateUDF(exact);
                            bare(&mut function.params.args);
                        }
                        Transformed::new_transformed(Expr::WindowFunction(function), is_new)
                    }
                    other => Transformed::no(other),
                })
            })
        })
    })
}

/// Takes the casts to doubles away.
fn bare(args: &mut [Expr]) {
    for arg in args {
        if let Expr::Cast(cast) = arg {
            *arg = std::mem::take(&mut *cast.expr);
        }
    }
}

/// Digits after the point of a type whose values are added exactly.
pub(crate) fn scale_of(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal128(precision, scale) if *precision <= DIGITS_MAX => Some(*scale),
        data_type if data_type.is_integer() => Some(0),
        _ => None,
    }
}

/// VAR or STDDEV of integers or decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Variance {
    /// DataFusion's function.
    original: Arc<AggregateUDF>,
    spread: Spread,
    signature: Signature,
}

impl Variance {
    /// The function in place of DataFusion's; none if it is no variance.
    fn of(function: &Arc<AggregateUDF>, scale: i8) -> Option<Arc<AggregateUDF>> {
        let inner = function.inner();
        let (sample, root) = match () {
            () if inner.is::<VarianceSample>() => (true, false),
            () if inner.is::<VariancePopulation>() => (false, false),
            () if inner.is::<Stddev>() => (true, true),
            () if inner.is::<StddevPop>() => (false, true),
            () => return None,
        };
        let signature = Signature::any(1, Volatility::Immutable);
        let own = Variance { original: function.clone(), spread: Spread { sample, root, scale }, signature };
        Some(Arc::new(AggregateUDF::new_from_impl(own)))
    }
}

impl AggregateUDFImpl for Variance {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sums { spread: self.spread, count: 0, sum: i256::ZERO, squares: i256::ZERO }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name, data_type| Arc::new(Field::new(format_state_name(arguments.name, name), data_type, true));
        let wide = || DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0);
        Ok(vec![field("count", DataType::UInt64), field("sum", wide()), field("squares", wide())])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Exact sums of values, as integers of their last digit, and of their squares.
#[derive(Debug)]
struct Sums {
    spread: Spread,
    count: u64,
    sum: i256,
    squares: i256,
}

impl Sums {
    /// Sums of the valid values of a column.
    fn of(column: &ArrayRef, spread: Spread) -> Result<Sums> {
        let column = match column.data_type() {
            DataType::Decimal128(_, _) => column.clone(),
            _ => cast(column, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0))?,
        };
        let mut sums = Sums { spread, count: 0, sum: i256::ZERO, squares: i256::ZERO };
        for value in column.as_primitive::<Decimal128Type>().iter().flatten() {
            let value = i256::from_i128(value);
            sums.count += 1;
            sums.sum = sums.sum.wrapping_add(value);
            sums.squares = sums.squares.wrapping_add(value.wrapping_mul(value));
        }
        Ok(sums)
    }

    fn add(&mut self, other: &Sums) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.squares = self.squares.wrapping_add(other.squares);
    }
}

impl Accumulator for Sums {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add(&Sums::of(&columns[0], self.spread)?);
        Ok(())
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let gone = Sums::of(&columns[0], self.spread)?;
        self.count -= gone.count;
        self.sum = self.sum.wrapping_sub(gone.sum);
        self.squares = self.squares.wrapping_sub(gone.squares);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let wide = |value| ScalarValue::Decimal256(Some(value), DECIMAL256_MAX_PRECISION, 0);
        Ok(vec![ScalarValue::UInt64(Some(self.count)), wide(self.sum), wide(self.squares)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [counts, sums, squares] = states else {
            return Err(DataFusionError::Internal("the state of a variance is torn".into()));
        };
        let counts = counts.as_primitive::<UInt64Type>();
        let (sums, squares) = (sums.as_primitive::<Decimal256Type>(), squares.as_primitive::<Decimal256Type>());
        for row in (0..counts.len()).filter(|row| counts.is_valid(*row)) {
            let (count, sum, squares) = (counts.value(row), sums.value(row), squares.value(row));
            self.add(&Sums { spread: self.spread, count, sum, squares });
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(variance(self.sum, self.squares, self.count, self.spread)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_rounded_once() {
        let of = |values: &[i128]| {
            let (mut sum, mut squares) = (i256::ZERO, i256::ZERO);
            for value in values.iter().map(|value| i256::from_i128(*value)) {
                sum = sum.wrapping_add(value);
                squares = squares.wrapping_add(value.wrapping_mul(value));
            }
            deviations(sum, squares, values.len() as u64)
        };
        assert_eq!(of(&[10i128.pow(27) + 1, 10i128.pow(27) + 3]), 4.0);
        assert_eq!(of(&[5, 5, 5]), 0.0);
        // Past 128 bits: (2 · 10^27)² is 4 · 10^54.
        assert_eq!(of(&[10i128.pow(27), -(10i128.pow(27))]), 4e54);
    }
}
