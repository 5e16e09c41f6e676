//! VAR and STDDEV of integers and decimals, exact until the last step; so are statistics of pairs ([`super::pairs`]).
//!
//! DataFusion 55.2 makes doubles of such values: where they are large beside their differences, digits are lost
//! (`stddev(x + 1000000000000)`), and the order of rows shows. Here the casts go when types are coerced, before the
//! optimiser computes what several calls share. In the final plan the values and their squares are added in 256 bits;
//! the device's sums end in the same last step ([`variance`]), so that both places give the same bits. Frames that
//! slide take values away exactly. Decimals of more than [`DIGITS_MAX`] digits stay doubles.
//!
//! The file goes once DataFusion adds such values exactly.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal256Array, Float64Array, UInt64Array};
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, i256};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::stddev::{Stddev, StddevPop};
use datafusion::functions_aggregate::variance::{VariancePopulation, VarianceSample};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, ExprSchemable, GroupsAccumulator, LogicalPlan,
    ReversedUDAF, Signature, Volatility, WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;

use super::exact_sums::{deviations, exact_values, scale_of};
use super::moments::Statistic;
use super::pairs::Pairs;
use super::{each_expression, each_node};
use crate::walk::{PlanWalk, Walk};

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

/// A variance or its root from exact sums of values and of their squares.
pub(crate) fn variance(sum: i256, squares: i256, count: u64, spread: Spread) -> Option<f64> {
    let divisor = count.checked_sub(u64::from(spread.sample)).filter(|divisor| *divisor > 0)?;
    let units = 10f64.powi(2 * i32::from(spread.scale));
    let variance = deviations([sum, sum], squares, count) / (count as f64 * divisor as f64 * units);
    Some(if spread.root { variance.sqrt() } else { variance })
}

/// The rule that takes the casts to doubles from arguments whose values are added exactly, once types are coerced.
#[derive(Debug)]
pub(super) struct BareArguments;

impl AnalyzerRule for BareArguments {
    fn name(&self) -> &str {
        "bare_arguments"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mended = plan.transform_up_nested(|plan| {
            in_calls(plan, |_, args, schema| {
                let is_exact = !args.is_empty() && args.iter().all(|arg| is_cast_of_exact(arg, schema));
                if is_exact {
                    args.iter_mut().for_each(|arg| {
                        if let Expr::Cast(cast) = arg {
                            *arg = std::mem::take(&mut *cast.expr);
                        }
                    });
                }
                is_exact
            })
        })?;
        Ok(mended.data)
    }
}

/// Whether an argument is a double made of a value that is added exactly.
fn is_cast_of_exact(arg: &Expr, schema: &DFSchema) -> bool {
    let Expr::Cast(cast) = arg else { return false };
    *cast.field.data_type() == DataType::Float64
        && cast.expr.get_type(schema).is_ok_and(|data_type| scale_of(&data_type).is_some())
}

/// The plan with exact variances of integers and decimals, and their statistics of pairs.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| {
        let is_window = matches!(plan, LogicalPlan::Window(_));
        in_calls(plan, |function, args, schema| {
            let types = args.iter().map(|arg| arg.get_type(schema)).collect::<Result<Vec<_>>>().unwrap_or_default();
            let exact = match types.as_slice() {
                [one] => scale_of(one).and_then(|scale| Variance::of(function, scale)),
                // Floats over frames are added by `sliding`.
                [one, other] if !is_window || scale_of(one).is_some() => Pairs::of(function, [one, other]),
                _ => None,
            };
            exact.map(|exact| *function = exact).is_some()
        })
    })
}

/// Changes the variances and statistics of pairs of a node, which are given with their arguments and the columns that
/// these may read; `change` says whether it has changed one.
fn in_calls(
    plan: LogicalPlan,
    mut change: impl FnMut(&mut Arc<AggregateUDF>, &mut [Expr], &DFSchema) -> bool,
) -> Result<Transformed<LogicalPlan>> {
    if !matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
        return Ok(Transformed::no(plan));
    }
    each_expression(
        plan,
        |expr| called(expr).is_some(),
        |expr, schema| {
            expr.transform_up(|mut expr| {
                let changed = match &mut expr {
                    Expr::AggregateFunction(function) if !function.params.distinct && is_variance(&function.func) => {
                        change(&mut function.func, &mut function.params.args, schema)
                    }
                    Expr::WindowFunction(function) if !function.params.distinct => match &mut function.fun {
                        WindowFunctionDefinition::AggregateUDF(of) if is_variance(of) => {
                            change(of, &mut function.params.args, schema)
                        }
                        _ => false,
                    },
                    _ => false,
                };
                Ok(Transformed::new_transformed(expr, changed))
            })
        },
    )
}

/// The variance or statistic of pairs that an expression calls.
fn called(expr: &Expr) -> Option<&Arc<AggregateUDF>> {
    let function = match expr {
        Expr::AggregateFunction(function) => &function.func,
        Expr::WindowFunction(function) => match &function.fun {
            WindowFunctionDefinition::AggregateUDF(function) => function,
            WindowFunctionDefinition::WindowUDF(_) => return None,
        },
        _ => return None,
    };
    is_variance(function).then_some(function)
}

/// Whether a function is one of DataFusion's.
fn is_variance(function: &AggregateUDF) -> bool {
    spread(function).is_some() || Statistic::of_pairs(function).is_some()
}

/// Whether a function of DataFusion's is one of a sample, and whether it is a root; none if it is no variance.
fn spread(function: &AggregateUDF) -> Option<(bool, bool)> {
    let inner = function.inner();
    match () {
        () if inner.is::<VarianceSample>() => Some((true, false)),
        () if inner.is::<VariancePopulation>() => Some((false, false)),
        () if inner.is::<Stddev>() => Some((true, true)),
        () if inner.is::<StddevPop>() => Some((false, true)),
        () => None,
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
        let (sample, root) = spread(function)?;
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

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let spread = self.spread;
        Ok(Box::new(SumsOfGroups { spread, counts: Vec::new(), sums: Vec::new(), squares: Vec::new() }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Columns of a state: counts, sums and sums of squares.
fn parts(states: &[ArrayRef]) -> Result<(&UInt64Array, &Decimal256Array, &Decimal256Array)> {
    let [counts, sums, squares] = states else {
        return Err(DataFusionError::Internal("the state of a variance is torn".into()));
    };
    Ok((counts.as_primitive(), sums.as_primitive(), squares.as_primitive()))
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
        let mut sums = Sums { spread, count: 0, sum: i256::ZERO, squares: i256::ZERO };
        for value in exact_values(column)?.as_primitive::<Decimal128Type>().iter().flatten() {
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
        let (counts, sums, squares) = parts(states)?;
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

/// Exact sums for each group.
struct SumsOfGroups {
    spread: Spread,
    counts: Vec<u64>,
    sums: Vec<i256>,
    squares: Vec<i256>,
}

impl SumsOfGroups {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        self.sums.resize(groups, i256::ZERO);
        self.squares.resize(groups, i256::ZERO);
    }

    fn add(&mut self, group: usize, count: u64, sum: i256, squares: i256) {
        self.counts[group] += count;
        self.sums[group] = self.sums[group].wrapping_add(sum);
        self.squares[group] = self.squares[group].wrapping_add(squares);
    }

    fn add_value(&mut self, group: usize, value: i128) {
        let value = i256::from_i128(value);
        self.add(group, 1, value, value.wrapping_mul(value));
    }

    fn take(&mut self, emit_to: EmitTo) -> (Vec<u64>, Vec<i256>, Vec<i256>) {
        let counts = emit_to.take_needed(&mut self.counts);
        (counts, emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.squares))
    }
}

impl GroupsAccumulator for SumsOfGroups {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.resize(total);
        let values = exact_values(&columns[0])?;
        let values = values.as_primitive::<Decimal128Type>();
        for (row, &group) in groups.iter().enumerate() {
            let is_left_out = filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row));
            if values.is_valid(row) && !is_left_out {
                self.add_value(group, values.value(row));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        let (counts, sums, squares) = parts(states)?;
        for (row, &group) in groups.iter().enumerate().filter(|(row, _)| counts.is_valid(*row)) {
            self.add(group, counts.value(row), sums.value(row), squares.value(row));
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (counts, sums, squares) = self.take(emit_to);
        let rows = counts.into_iter().zip(sums).zip(squares);
        let variances = rows.map(|((count, sum), squares)| variance(sum, squares, count, self.spread));
        Ok(Arc::new(variances.collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (counts, sums, squares) = self.take(emit_to);
        let wide = |values: Vec<i256>| {
            let values = Decimal256Array::from_iter_values(values);
            values.with_precision_and_scale(DECIMAL256_MAX_PRECISION, 0)
        };
        Ok(vec![Arc::new(UInt64Array::from(counts)), Arc::new(wide(sums)?), Arc::new(wide(squares)?)])
    }

    fn convert_to_state(&self, columns: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = columns[0].len();
        let mut each = SumsOfGroups { spread: self.spread, counts: Vec::new(), sums: Vec::new(), squares: Vec::new() };
        each.update_batch(columns, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.counts.capacity() * size_of::<u64>() + (self.sums.capacity() + self.squares.capacity()) * size_of::<i256>()
    }
}
