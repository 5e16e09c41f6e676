//! `median` of decimals with the digit that a mean of two has more, and of dates and timestamps, `percentile_cont` with
//! all digits of its fraction, and bounds of what approximate percentiles are asked for.
//!
//! DataFusion 55.2 cuts the mean of two decimals off to their scale, and weighs the two values that a percentile lies
//! between by millionths. Its accumulators give the values that they have collected as their state; of these the
//! results are computed here. DataFusion has no median of times: it is that of their counts of units, rounded up, as in
//! DuckDB, and that of dates is a timestamp. An approximate percentile reserves memory for all centroids that it is
//! asked for, and ends the process where there is less.
//!
//! The file goes once DataFusion's results have these digits, and its digests grow with their values.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowNativeTypeOp, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, Field, FieldRef,
    Float64Type, Int64Type, TimeUnit, i256,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Documentation, EmitTo, GroupsAccumulator, Signature,
    Volatility,
};
use datafusion::physical_plan::PhysicalExpr;

use super::picks::Pick;
use crate::decimal_floats::floats;
use crate::words::sql_name;

/// Most centroids of an approximate percentile: 16 MB of them.
const CENTROIDS_MAX: u64 = 1_000_000;

/// The functions of a session, mended.
pub(crate) fn functions(state: &SessionState) -> Vec<AggregateUDF> {
    let kinds = [
        ("median", Kind::Median),
        ("percentile_cont", Kind::Percentile),
        ("approx_percentile_cont", Kind::Digest { centroids: 2 }),
        ("approx_percentile_cont_with_weight", Kind::Digest { centroids: 3 }),
    ];
    let mended = |(name, kind)| {
        let original = state.udaf(name).ok()?;
        let signature = match kind {
            Kind::Median => Signature::user_defined(Volatility::Immutable),
            _ => original.signature().clone(),
        };
        Some(AggregateUDF::new_from_impl(Quantile { original, kind, signature }))
    };
    kinds.into_iter().filter_map(mended).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Median,
    Percentile,
    /// An approximation, with the place of the number of its centroids among the arguments.
    Digest {
        centroids: usize,
    },
}

/// A function over DataFusion's accumulator of the same values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantile {
    original: Arc<AggregateUDF>,
    kind: Kind,
    signature: Signature,
}

/// The type of the median of times.
fn median_of_times(values: &DataType) -> Option<DataType> {
    match values {
        DataType::Date32 | DataType::Date64 => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Timestamp(..) => Some(values.clone()),
        _ => None,
    }
}

impl Quantile {
    /// What is computed of the values; none where DataFusion's result is right.
    fn rule(&self, arguments: &AccumulatorArgs) -> Result<Option<Rule>> {
        let value = arguments.expr_fields[0].data_type();
        match self.kind {
            Kind::Median if value.is_decimal() => {
                Ok(Some(Rule::Mean { target: arguments.return_field.data_type().clone() }))
            }
            Kind::Median if median_of_times(value).is_some() => {
                Ok(Some(Rule::Middle { target: arguments.return_field.data_type().clone() }))
            }
            Kind::Percentile if value.is_floating() => {
                let Some(ScalarValue::Float64(Some(fraction))) = constant(&arguments.exprs[1], arguments)? else {
                    return Ok(None);
                };
                let is_descending = arguments.order_bys.first().is_some_and(|key| key.options.descending);
                let fraction = if is_descending { 1.0 - fraction } else { fraction };
                Ok(Some(Rule::Percentile { fraction, target: value.clone() }))
            }
            Kind::Digest { centroids } => {
                let wanted = match arguments.exprs.get(centroids) {
                    Some(wanted) => constant(wanted, arguments)?,
                    None => None,
                };
                let wanted = wanted.and_then(|wanted| u64::try_from(wanted.cast_to(&DataType::UInt64).ok()?).ok());
                match wanted {
                    Some(wanted) if wanted > CENTROIDS_MAX => Err(DataFusionError::Plan(format!(
                        "{} takes at most {CENTROIDS_MAX} centroids, found {wanted}",
                        self.original.name()
                    ))),
                    _ => Ok(None),
                }
            }
            Kind::Median | Kind::Percentile => Ok(None),
        }
    }
}

/// The arguments of an accumulator of the counts of times, in the place of one of times.
fn counted<T>(arguments: AccumulatorArgs, make: impl FnOnce(AccumulatorArgs) -> T) -> T {
    match median_of_times(arguments.expr_fields[0].data_type()) {
        Some(_) => {
            let count: FieldRef = Arc::new(Field::new("count", DataType::Int64, true));
            make(AccumulatorArgs {
                expr_fields: std::slice::from_ref(&count),
                return_field: count.clone(),
                ..arguments
            })
        }
        None => make(arguments),
    }
}

/// The value of an argument that is a constant.
pub(super) fn constant(argument: &Arc<dyn PhysicalExpr>, arguments: &AccumulatorArgs) -> Result<Option<ScalarValue>> {
    let nothing = RecordBatch::new_empty(Arc::new(arguments.schema.clone()));
    Ok(match argument.evaluate(&nothing)? {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(_) => None,
    })
}

impl AggregateUDFImpl for Quantile {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn aliases(&self) -> &[String] {
        self.original.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let time = match (self.kind, arguments) {
            (Kind::Median, [value]) => median_of_times(value),
            _ => None,
        };
        match (self.kind, time) {
            (_, Some(time)) => Ok(vec![time]),
            (Kind::Median, None) => {
                let field = |value: &DataType| Arc::new(Field::new("value", value.clone(), true));
                let fields: Vec<FieldRef> = arguments.iter().map(field).collect();
                let coerced = fields_with_udf(&fields, self.original.as_ref()).map_err(|_| {
                    let called: Vec<String> = arguments.iter().map(sql_name).collect();
                    DataFusionError::Plan(format!(
                        "median({}) does not exist; there are median(number), median(DATE), median(TIMESTAMP); a CAST \
                         may be missing",
                        called.join(", ")
                    ))
                })?;
                Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
            }
            _ => self.original.coerce_types(arguments),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if let (Kind::Median, Some(time)) = (self.kind, arguments.first().and_then(median_of_times)) {
            return Ok(time);
        }
        let original = self.original.return_type(arguments)?;
        let finer = |precision: u8, scale: i8| match precision {
            0..DECIMAL128_MAX_PRECISION => DataType::Decimal128(precision + 1, scale + 1),
            DECIMAL256_MAX_PRECISION.. => DataType::Decimal256(precision, scale),
            _ => DataType::Decimal256(precision + 1, scale + 1),
        };
        Ok(match (self.kind, &original) {
            (
                Kind::Median,
                DataType::Decimal32(precision, scale)
                | DataType::Decimal64(precision, scale)
                | DataType::Decimal128(precision, scale)
                | DataType::Decimal256(precision, scale),
            ) => finer(*precision, *scale),
            _ => original,
        })
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let rule = self.rule(&arguments)?;
        let collected = counted(arguments, |arguments| self.original.accumulator(arguments))?;
        Ok(match rule {
            Some(rule) => Box::new(Collected::new(collected, rule)),
            None => collected,
        })
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        // States of distinct values do not say how often each is in the frame.
        let rule = if arguments.is_distinct { None } else { self.rule(&arguments)? };
        let collected = counted(arguments, |arguments| self.original.create_sliding_accumulator(arguments))?;
        Ok(match rule {
            Some(rule) => Box::new(Collected::new(collected, rule)),
            None => collected,
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if self.kind == Kind::Median && median_of_times(arguments.input_fields[0].data_type()).is_some() {
            let count: FieldRef = Arc::new(Field::new("count", DataType::Int64, true));
            let input_fields = std::slice::from_ref(&count);
            return self.original.state_fields(StateFieldsArgs {
                input_fields,
                return_field: count.clone(),
                ..arguments
            });
        }
        self.original.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        counted(arguments, |arguments| self.original.groups_accumulator_supported(arguments))
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let rule = self.rule(&arguments)?;
        let collected = counted(arguments, |arguments| self.original.create_groups_accumulator(arguments))?;
        Ok(match rule {
            Some(rule) => Box::new(CollectedGroups::new(collected, rule)),
            None => collected,
        })
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.original.simplify()
    }

    /// Percentiles sort their values themselves.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match self.kind {
            Kind::Percentile => AggregateOrderSensitivity::Insensitive,
            Kind::Median | Kind::Digest { .. } => self.original.order_sensitivity(),
        }
    }

    fn supports_within_group_clause(&self) -> bool {
        self.original.inner().supports_within_group_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }
}

/// What is computed of the values of a group.
#[derive(Debug)]
pub(super) enum Rule {
    /// The value in the middle of decimals, or the mean of the two.
    Mean { target: DataType },
    /// The time in the middle, or that between the two.
    Middle { target: DataType },
    /// The value at a fraction of floats, between two of them in proportion.
    Percentile { fraction: f64, target: DataType },
    /// One of the values.
    Pick(Pick),
}

impl Rule {
    /// The arguments that the accumulator below takes: `array_agg` has one.
    fn collected<'a>(&self, arguments: &'a [ArrayRef]) -> Result<Cow<'a, [ArrayRef]>> {
        Ok(match self {
            Rule::Pick(_) => Cow::Borrowed(&arguments[..1]),
            Rule::Middle { .. } => Cow::Owned(vec![cast(&arguments[0], &DataType::Int64)?]),
            Rule::Mean { .. } | Rule::Percentile { .. } => Cow::Borrowed(arguments),
        })
    }

    /// The results of lists of values, one a group.
    fn of_lists(&self, collected: &ArrayRef) -> Result<ArrayRef> {
        let lists = collected.as_list::<i32>();
        match self {
            Rule::Pick(pick) => pick.of_lists(collected),
            Rule::Mean { target } => {
                let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = target else {
                    return Err(DataFusionError::Internal(format!("a median of type {target}")));
                };
                // With the digit that a half takes.
                let wide = DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale);
                let mean = |values: Option<ArrayRef>| {
                    let Some(values) = values else { return Ok(None) };
                    let mut values = cast(&values, &wide)?.as_primitive::<Decimal256Type>().values().to_vec();
                    let middle = values.len() / 2;
                    let is_even = values.len().is_multiple_of(2);
                    if values.is_empty() {
                        return Ok(None);
                    }
                    let (below, high, _) = values.select_nth_unstable(middle);
                    let low = below.iter().max().copied().filter(|_| is_even).unwrap_or(*high);
                    let sum = low.add_checked(*high)?;
                    Ok(Some(sum.div_wrapping(i256::from_i128(2))))
                };
                let means = lists.iter().map(mean).collect::<Result<Vec<Option<i256>>>>()?;
                let means = arrow::array::Decimal256Array::from(means)
                    .with_precision_and_scale(DECIMAL256_MAX_PRECISION, *scale)?;
                Ok(cast(&(Arc::new(means) as ArrayRef), target)?)
            }
            Rule::Middle { target } => {
                let middle = |values: Option<ArrayRef>| {
                    let mut values = values?.as_primitive::<Int64Type>().values().to_vec();
                    let place = values.len() / 2;
                    let is_even = values.len().is_multiple_of(2);
                    let (below, high, _) = (!values.is_empty()).then(|| values.select_nth_unstable(place))?;
                    let low = below.iter().max().copied().filter(|_| is_even).unwrap_or(*high);
                    // The half of a unit counts as one.
                    i64::try_from((i128::from(low) + i128::from(*high) + 1).div_euclid(2)).ok()
                };
                let found: ArrayRef = Arc::new(Int64Array::from_iter(lists.iter().map(middle)));
                Ok(cast(&found, target)?)
            }
            Rule::Percentile { fraction, target } => {
                let at = |values: Option<ArrayRef>| {
                    let Some(values) = values else { return Ok(None) };
                    let mut values =
                        floats(&values, &DataType::Float64)?.as_primitive::<Float64Type>().values().to_vec();
                    Ok(percentile(&mut values, *fraction))
                };
                let found = lists.iter().map(at).collect::<Result<Vec<Option<f64>>>>()?;
                let found: ArrayRef = Arc::new(arrow::array::Float64Array::from(found));
                Ok(cast(&found, target)?)
            }
        }
    }
}

/// The value at a fraction of others.
fn percentile(values: &mut [f64], fraction: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = fraction * last as f64;
    let (below, weight) = (place.floor(), place - place.floor());
    let below = (below as usize).min(last);
    let (_, low, above) = values.select_nth_unstable_by(below, |one, other| one.compare(*other));
    let low = *low;
    let high = above.iter().copied().min_by(|one, other| one.compare(*other));
    Some(match high {
        Some(high) if weight > 0.0 && high != low => between(low, high, weight),
        _ => low,
    })
}

/// The value at a share of the way between two: an infinity is everywhere between itself and a finite one.
fn between(low: f64, high: f64, weight: f64) -> f64 {
    match (low.is_infinite(), high.is_infinite()) {
        (true, false) => low,
        (false, true) => high,
        _ => low + (high - low) * weight,
    }
}

/// DataFusion's accumulator with a result of ours.
#[derive(Debug)]
pub(super) struct Collected {
    values: Box<dyn Accumulator>,
    rule: Rule,
}

impl Collected {
    /// An accumulator whose state is the list of its values.
    pub(super) fn new(values: Box<dyn Accumulator>, rule: Rule) -> Collected {
        Collected { values, rule }
    }
}

impl Accumulator for Collected {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(&self.rule.collected(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.retract_batch(&self.rule.collected(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.values.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    /// The state takes the values away, which a frame that moves on still needs; a list that is the result stays.
    fn evaluate(&mut self) -> Result<ScalarValue> {
        if let Rule::Pick(_) = self.rule {
            let picked = self.rule.of_lists(&self.values.evaluate()?.to_array_of_size(1)?)?;
            return ScalarValue::try_from_array(&picked, 0);
        }
        let states = self.values.state()?.iter().map(|state| state.to_array_of_size(1)).collect::<Result<Vec<_>>>()?;
        let found = self.rule.of_lists(&states[0])?;
        self.values.merge_batch(&states)?;
        ScalarValue::try_from_array(&found, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn size(&self) -> usize {
        self.values.size()
    }
}

/// The same for groups.
pub(super) struct CollectedGroups {
    values: Box<dyn GroupsAccumulator>,
    rule: Rule,
}

impl CollectedGroups {
    /// An accumulator whose states are the lists of values of groups.
    pub(super) fn new(values: Box<dyn GroupsAccumulator>, rule: Rule) -> CollectedGroups {
        CollectedGroups { values, rule }
    }
}

impl fmt::Debug for CollectedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectedGroups").field("rule", &self.rule).finish_non_exhaustive()
    }
}

impl GroupsAccumulator for CollectedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.values.update_batch(&self.rule.collected(values)?, groups, filter, total)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.values.merge_batch(states, groups, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.rule.of_lists(&self.values.state(emit_to)?[0])
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.values.state(emit_to)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.values.convert_to_state(&self.rule.collected(values)?, filter)
    }

    fn size(&self) -> usize {
        self.values.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_has_all_digits_of_its_fraction() {
        let at = |fraction| percentile(&mut [2e9, 1.0, 1e9 + 1.0], fraction);
        assert_eq!(at(0.0), Some(1.0));
        assert_eq!(at(0.5), Some(1e9 + 1.0));
        assert_eq!(at(1.0), Some(2e9));
        assert_eq!(at(0.123456789), Some(246_913_579.0));
        assert_eq!(percentile(&mut [f64::INFINITY, f64::INFINITY], 0.5), Some(f64::INFINITY));
        assert_eq!(percentile(&mut [f64::NEG_INFINITY, 1.0], 0.5), Some(f64::NEG_INFINITY));
        assert_eq!(percentile(&mut [1.0, f64::INFINITY], 0.5), Some(f64::INFINITY));
        assert!(percentile(&mut [f64::NEG_INFINITY, f64::INFINITY], 0.5).unwrap().is_nan());
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
