//! Totals of intervals and durations, and aggregates of distinct intervals.
//!
//! DataFusion 55.2 adds months, days and nanoseconds with wrapping. Under `warpcube.overflow = 'error'` each of the
//! three is added in 128 bits here ([`super::sums`]), so that only a total can be too large. DISTINCT compares months,
//! days and nanoseconds as well, so that `1 month` and `30 days` are two values: here SUM and ARRAY_AGG of distinct
//! intervals take one value of each length, the least ([`super::lengths`]), in the order of lengths.
//!
//! The file goes once DataFusion's totals fail on overflow, and intervals compare by length.

use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::array_agg::ArrayAgg;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::{AggregateFunctionParams, NullTreatment};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

use super::lengths::{Counted, DAYS_AND_TIME, Rank, of_rank};
use crate::error::SqlError;

/// Months, days and the rest of a span, in the units of its type. A duration has the rest alone.
type Parts = [i128; 3];

/// Calls `add` with the row and the parts of each span.
fn each_valid(spans: &ArrayRef, mut add: impl FnMut(usize, Parts)) -> Result<()> {
    if let DataType::Interval(_) = spans.data_type() {
        let spans = cast(spans, &DAYS_AND_TIME)?;
        let spans = spans.as_primitive::<IntervalMonthDayNanoType>();
        for (row, span) in spans.values().iter().enumerate().filter(|(row, _)| spans.is_valid(*row)) {
            add(row, [span.months.into(), span.days.into(), span.nanoseconds.into()]);
        }
    } else {
        let ticks = cast(spans, &DataType::Int64)?;
        let ticks = ticks.as_primitive::<Int64Type>();
        for (row, value) in ticks.values().iter().enumerate().filter(|(row, _)| ticks.is_valid(*row)) {
            add(row, [0, 0, i128::from(*value)]);
        }
    }
    Ok(())
}

/// Adds parts, which have 64 bits at most: no number of rows leaves 128.
fn plus(sum: &mut Parts, [months, days, rest]: Parts) {
    sum[0] += months;
    sum[1] += days;
    sum[2] += rest;
}

/// A total of spans: a sum or an average.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    /// The call as errors name it.
    pub(super) name: String,
    pub(super) result: DataType,
    pub(super) is_average: bool,
}

impl Measure {
    /// The total of so many spans; NULL of none.
    fn of(&self, count: i64, sum: Parts) -> Result<ScalarValue> {
        if count == 0 {
            return ScalarValue::try_from(&self.result);
        }
        let parts = if self.is_average { sum.map(|part| part / i128::from(count)) } else { sum };
        span(parts, &self.result).ok_or_else(|| {
            let reason = format!("overflow: {} leaves {}", self.name, self.result);
            SqlError::Execution(reason).into()
        })
    }

    /// The columns of a state: the count and the parts of the sum.
    pub(super) fn state_fields(arguments: &StateFieldsArgs) -> Vec<FieldRef> {
        let wide = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);
        let columns = [("count", DataType::Int64), ("months", wide.clone()), ("days", wide.clone()), ("rest", wide)];
        let field = |(name, data_type)| Arc::new(Field::new(format_state_name(arguments.name, name), data_type, true));
        columns.map(field).to_vec()
    }

    pub(super) fn accumulator(self) -> Box<dyn Accumulator> {
        Box::new(Total { measure: self, count: 0, sum: Parts::default() })
    }

    pub(super) fn groups_accumulator(self) -> Box<dyn GroupsAccumulator> {
        Box::new(Totals { measure: self, counts: Vec::new(), sums: Vec::new() })
    }
}

/// The span of parts, if they fit.
fn span([months, days, rest]: Parts, data_type: &DataType) -> Option<ScalarValue> {
    let ticks = || i64::try_from(rest).ok();
    Some(match data_type {
        DataType::Interval(IntervalUnit::YearMonth) => ScalarValue::IntervalYearMonth(Some(months.try_into().ok()?)),
        DataType::Interval(IntervalUnit::DayTime) => {
            ScalarValue::new_interval_dt(days.try_into().ok()?, (rest / 1_000_000).try_into().ok()?)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            ScalarValue::new_interval_mdn(months.try_into().ok()?, days.try_into().ok()?, ticks()?)
        }
        DataType::Duration(TimeUnit::Second) => ScalarValue::DurationSecond(Some(ticks()?)),
        DataType::Duration(TimeUnit::Millisecond) => ScalarValue::DurationMillisecond(Some(ticks()?)),
        DataType::Duration(TimeUnit::Microsecond) => ScalarValue::DurationMicrosecond(Some(ticks()?)),
        DataType::Duration(TimeUnit::Nanosecond) => ScalarValue::DurationNanosecond(Some(ticks()?)),
        _ => return None,
    })
}

/// Counts and sums of a state's rows.
fn states(columns: &[ArrayRef]) -> Result<impl Iterator<Item = (usize, i64, Parts)> + '_> {
    let [counts, months, days, rest] = columns else {
        return Err(DataFusionError::Internal("the state of a total is torn".into()));
    };
    let counts = counts.as_primitive::<Int64Type>();
    let parts = [months, days, rest].map(|part| part.as_primitive::<Decimal128Type>());
    let rows = (0..counts.len()).filter(|row| counts.is_valid(*row));
    Ok(rows.map(move |row| (row, counts.value(row), parts.map(|part| part.value(row)))))
}

/// The columns of a state.
fn state_of(counts: Vec<i64>, sums: &[Parts]) -> Result<Vec<ArrayRef>> {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(counts))];
    for part in 0..3 {
        let values = Decimal128Array::from_iter_values(sums.iter().map(|sum| sum[part]));
        columns.push(Arc::new(values.with_precision_and_scale(DECIMAL128_MAX_PRECISION, 0)?));
    }
    Ok(columns)
}

/// One total.
#[derive(Debug)]
struct Total {
    measure: Measure,
    count: i64,
    sum: Parts,
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(&values[0], |_, value| {
            self.count += 1;
            plus(&mut self.sum, value);
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_valid(&values[0], |_, value| {
            self.count -= 1;
            plus(&mut self.sum, value.map(|part| -part));
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let columns = state_of(vec![self.count], &[self.sum])?;
        columns.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for (_, count, sum) in states(columns)? {
            self.count += count;
            plus(&mut self.sum, sum);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.measure.of(self.count, self.sum)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.measure.name.capacity()
    }
}

/// A total for each group.
struct Totals {
    measure: Measure,
    counts: Vec<i64>,
    sums: Vec<Parts>,
}

impl Totals {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        self.sums.resize(groups, Parts::default());
    }

    fn add(&mut self, group: usize, count: i64, sum: Parts) {
        self.counts[group] += count;
        plus(&mut self.sums[group], sum);
    }
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.resize(total);
        each_valid(&values[0], |row, value| {
            let is_left_out = filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row));
            if !is_left_out {
                self.add(groups[row], 1, value);
            }
        })
    }

    fn merge_batch(&mut self, columns: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        for (row, count, sum) in states(columns)? {
            self.add(groups[row], count, sum);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (counts, sums) = (emit_to.take_needed(&mut self.counts), emit_to.take_needed(&mut self.sums));
        if counts.is_empty() {
            return Ok(new_empty_array(&self.measure.result));
        }
        let totals = counts.into_iter().zip(sums).map(|(count, sum)| self.measure.of(count, sum));
        ScalarValue::iter_to_array(totals.collect::<Result<Vec<_>>>()?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let counts = emit_to.take_needed(&mut self.counts);
        state_of(counts, &emit_to.take_needed(&mut self.sums))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut each = Totals { measure: self.measure.clone(), counts: Vec::new(), sums: Vec::new() };
        each.update_batch(values, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.counts.capacity() * size_of::<i64>() + self.sums.capacity() * size_of::<Parts>()
    }
}

/// SUM or ARRAY_AGG of distinct intervals, in place of DataFusion's; `params` lose what the function does itself.
pub(super) fn of_distinct(
    function: &Arc<AggregateUDF>,
    params: &mut AggregateFunctionParams,
) -> Option<Arc<AggregateUDF>> {
    let key = params.order_by.first();
    // DataFusion refuses other orders.
    if key.is_some_and(|key| Some(&key.expr) != params.args.first()) {
        return None;
    }
    let collected = Collected {
        is_descending: key.is_some_and(|key| !key.asc),
        has_nulls_first: key.is_some_and(|key| key.nulls_first),
        leaves_nulls_out: params.null_treatment == Some(NullTreatment::IgnoreNulls),
    };
    let own = OfDistinct::of(function, collected)?;
    (params.distinct, params.order_by, params.null_treatment) = (false, Vec::new(), None);
    Some(own)
}

/// SUM or ARRAY_AGG of the distinct intervals of frames, in place of DataFusion's.
pub(super) fn of_distinct_in_frames(function: &Arc<AggregateUDF>, leaves_nulls_out: bool) -> Option<Arc<AggregateUDF>> {
    OfDistinct::of(function, Collected { is_descending: false, has_nulls_first: false, leaves_nulls_out })
}

/// How a list is made of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Collected {
    is_descending: bool,
    has_nulls_first: bool,
    leaves_nulls_out: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfDistinct {
    original: Arc<AggregateUDF>,
    /// None for a sum.
    collected: Option<Collected>,
}

impl OfDistinct {
    fn of(original: &Arc<AggregateUDF>, collected: Collected) -> Option<Arc<AggregateUDF>> {
        let inner = original.inner();
        if !inner.is::<Sum>() && !inner.is::<ArrayAgg>() {
            return None;
        }
        let collected = inner.is::<ArrayAgg>().then_some(collected);
        Some(Arc::new(AggregateUDF::new_from_impl(OfDistinct { original: original.clone(), collected })))
    }
}

impl AggregateUDFImpl for OfDistinct {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.original.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.expr_fields[0].data_type().clone();
        let result = arguments.return_field.data_type().clone();
        let name = format!("{}(DISTINCT …)", self.name());
        let sum = Measure { name, result, is_average: false };
        Ok(Box::new(Distinct { collected: self.collected, sum, data_type, values: Counted::default(), nulls: 0 }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format_state_name(arguments.name, "distinct");
        let item = Field::new_list_field(arguments.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new_list(name, item, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// All intervals of a frame or a group, with their numbers.
#[derive(Debug)]
struct Distinct {
    collected: Option<Collected>,
    sum: Measure,
    data_type: DataType,
    values: Counted,
    nulls: usize,
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.add(&values[0])?;
        self.nulls += values[0].null_count();
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.remove(&values[0])?;
        self.nulls -= values[0].null_count();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let ranks = self.values.0.keys().map(|rank| Some(*rank)).chain((self.nulls > 0).then_some(None));
        let values = ranks.map(|rank| of_rank(rank, &self.data_type)).collect::<Result<Vec<_>>>()?;
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.data_type))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|values| self.update_batch(&[values]))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut least: Vec<Rank> = self.values.0.keys().copied().collect();
        least.dedup_by_key(|(length, ..)| *length);
        let Some(collected) = self.collected else {
            let mut sum = Parts::default();
            for (_, months, days, nanoseconds) in &least {
                plus(&mut sum, [(*months).into(), (*days).into(), (*nanoseconds).into()]);
            }
            return self.sum.of(least.len() as i64, sum);
        };
        let mut ranks: Vec<Option<Rank>> = least.into_iter().map(Some).collect();
        if collected.is_descending {
            ranks.reverse();
        }
        if self.nulls > 0 && !collected.leaves_nulls_out {
            ranks.insert(if collected.has_nulls_first { 0 } else { ranks.len() }, None);
        }
        if ranks.is_empty() {
            return ScalarValue::try_from(&self.sum.result);
        }
        let values = ranks.into_iter().map(|rank| of_rank(rank, &self.data_type)).collect::<Result<Vec<_>>>()?;
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.data_type)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}
