//! Lengths of intervals and durations in nanoseconds, and what follows from them: extremes, and days and time.
//!
//! [`super::intervals`] says where they stand for intervals.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, IntervalMonthDayNanoArray, new_empty_array,
};
use arrow::compute::{cast, interleave, not, nullif, prep_null_mask_filter};
use arrow::datatypes::{DataType, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, EmitTo, Expr, GroupsAccumulator, ReversedUDAF,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::span_lengths::{DAY_NANOSECONDS, LENGTH, length_of, lengths};

pub(super) const DAYS_AND_TIME: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// A function of this file; no statement can call it, since no registry has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Length,
    DaysAndTime,
    /// The part `epoch`.
    Seconds,
    Chosen(Extremum),
}

/// Which of several intervals is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Extremum {
    Greatest,
    Least,
}

const KINDS: [Kind; 5] =
    [Kind::Length, Kind::DaysAndTime, Kind::Seconds, Kind::Chosen(Extremum::Greatest), Kind::Chosen(Extremum::Least)];

impl Kind {
    /// The name in plans that travel.
    fn name(self) -> &'static str {
        match self {
            Kind::Length => "warpcube_interval_length",
            Kind::DaysAndTime => "warpcube_days_and_time",
            Kind::Seconds => "warpcube_interval_seconds",
            Kind::Chosen(Extremum::Greatest) => "warpcube_greatest_interval",
            Kind::Chosen(Extremum::Least) => "warpcube_least_interval",
        }
    }

    fn function(self) -> Arc<ScalarUDF> {
        let place = KINDS.iter().position(|kind| *kind == self).unwrap_or_default();
        FUNCTIONS[place].clone()
    }
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 5]> = LazyLock::new(|| {
    let signature = Signature::variadic_any(Volatility::Immutable);
    KINDS.map(|kind| Arc::new(ScalarUDF::new_from_impl(OfIntervals { kind, signature: signature.clone() })))
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    KINDS.into_iter().find(|kind| kind.name() == name).map(Kind::function)
}

/// The length of an interval or a duration.
pub(super) fn length(span: Expr) -> Expr {
    Kind::Length.function().call(vec![span])
}

/// A duration as an interval of days and time.
pub(super) fn days_and_time(duration: Expr) -> Expr {
    Kind::DaysAndTime.function().call(vec![duration])
}

/// The seconds of an interval: a year has 365.25 days and a month beside it 30, as in PostgreSQL and DuckDB. DataFusion
/// 55.2 counts twelve months of 30 days.
pub(super) fn seconds(span: Expr) -> Expr {
    Kind::Seconds.function().call(vec![span])
}

/// The longest or the shortest of several intervals of one type.
pub(super) fn chosen(extremum: Extremum, intervals: Vec<Expr>) -> Expr {
    Kind::Chosen(extremum).function().call(intervals)
}

/// Whether values of a type are intervals.
pub(super) fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfIntervals {
    kind: Kind,
    signature: Signature,
}

impl ScalarUDFImpl for OfIntervals {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Length => LENGTH,
            Kind::DaysAndTime => DAYS_AND_TIME,
            Kind::Seconds => DataType::Float64,
            Kind::Chosen(_) => arguments[0].clone(),
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let of = |arrays: &[ArrayRef]| match self.kind {
            Kind::Length => Ok(Arc::new(lengths(&arrays[0])?) as ArrayRef),
            Kind::DaysAndTime => Ok(Arc::new(in_days(&lengths(&arrays[0])?)?) as ArrayRef),
            Kind::Seconds => Ok(Arc::new(in_seconds(&arrays[0])?) as ArrayRef),
            Kind::Chosen(extremum) => choose(extremum, arrays),
        };
        let found = of(&arrays)?;
        let is_scalar = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(found),
        })
    }
}

fn in_seconds(spans: &ArrayRef) -> Result<Float64Array> {
    const DAY_SECONDS: f64 = 86_400.0;
    let spans = cast(spans, &DAYS_AND_TIME)?;
    Ok(spans.as_primitive::<IntervalMonthDayNanoType>().unary(|span| {
        let days = f64::from(span.months / 12) * 365.25 + f64::from(span.months % 12 * 30) + f64::from(span.days);
        days * DAY_SECONDS + span.nanoseconds as f64 / 1e9
    }))
}

/// Lengths as days and time, both of one sign.
fn in_days(lengths: &Decimal128Array) -> Result<IntervalMonthDayNanoArray> {
    lengths.try_unary(|length| {
        let too_long = |_| DataFusionError::Execution(format!("overflow: an interval of {length} nanoseconds"));
        let days = i32::try_from(length / DAY_NANOSECONDS).map_err(too_long)?;
        let rest = i64::try_from(length % DAY_NANOSECONDS).map_err(too_long)?;
        Ok(IntervalMonthDayNano::new(0, days, rest))
    })
}

/// The longest or shortest value of each row; NULLs do not count.
fn choose(extremum: Extremum, arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let lengths = arrays.iter().map(lengths).collect::<Result<Vec<_>>>()?;
    let wanted = extremum.wanted();
    let best = |row: usize| {
        let better = |best: usize, next: usize| match (lengths[best].is_valid(row), lengths[next].is_valid(row)) {
            (false, true) => next,
            (true, true) if lengths[next].value(row).cmp(&lengths[best].value(row)) == wanted => next,
            _ => best,
        };
        ((1..arrays.len()).fold(0, better), row)
    };
    let rows: Vec<(usize, usize)> = (0..arrays[0].len()).map(best).collect();
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    Ok(interleave(&arrays, &rows)?)
}

impl Extremum {
    /// How a better value compares with the best one before.
    fn wanted(self) -> Ordering {
        match self {
            Extremum::Greatest => Ordering::Greater,
            Extremum::Least => Ordering::Less,
        }
    }
}

/// MIN or MAX of intervals by length, in place of DataFusion's.
pub(super) fn extreme(original: &Arc<AggregateUDF>, is_max: bool) -> Arc<AggregateUDF> {
    let extremum = if is_max { Extremum::Greatest } else { Extremum::Least };
    Arc::new(AggregateUDF::new_from_impl(Extreme { original: original.clone(), extremum }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    original: Arc<AggregateUDF>,
    extremum: Extremum,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.original.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.original.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(Best { extremum: self.extremum, data_type, best: None }))
    }

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(BestOfGroups { extremum: self.extremum, data_type, best: Vec::new() }))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(Frame { extremum: self.extremum, data_type, values: Counted::default() }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.original.state_fields(arguments)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// What intervals of all units are told apart by: the length, then months, days and nanoseconds, so that which of
/// several equal ones is found does not depend on their order.
pub(super) type Rank = (i128, i32, i32, i64);

/// The ranks of values that are not NULL, with the values as months, days and nanoseconds.
pub(super) fn ranks(values: &ArrayRef) -> Result<Vec<Rank>> {
    let parts = cast(values, &DAYS_AND_TIME)?;
    let parts = parts.as_primitive::<IntervalMonthDayNanoType>();
    Ok(parts.iter().flatten().map(|span| (length_of(span), span.months, span.days, span.nanoseconds)).collect())
}

/// The value of a rank in a unit of intervals.
pub(super) fn of_rank(rank: Option<Rank>, data_type: &DataType) -> Result<ScalarValue> {
    let Some((_, months, days, nanoseconds)) = rank else { return ScalarValue::try_from(data_type) };
    Ok(match data_type {
        DataType::Interval(IntervalUnit::YearMonth) => ScalarValue::IntervalYearMonth(Some(months)),
        DataType::Interval(IntervalUnit::DayTime) => {
            let milliseconds = i32::try_from(nanoseconds / 1_000_000).unwrap_or(i32::MAX);
            ScalarValue::new_interval_dt(days, milliseconds)
        }
        _ => ScalarValue::new_interval_mdn(months, days, nanoseconds),
    })
}

/// The extreme of what was seen; its state is a value too.
#[derive(Debug)]
struct Best {
    extremum: Extremum,
    data_type: DataType,
    best: Option<Rank>,
}

impl Accumulator for Best {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let wanted = self.extremum.wanted();
        let better = |best: Rank, next: Rank| if next.cmp(&best) == wanted { next } else { best };
        self.best = self.best.into_iter().chain(ranks(&values[0])?).reduce(better);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        of_rank(self.best, &self.data_type)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The extreme of each group; its state is a value too.
struct BestOfGroups {
    extremum: Extremum,
    data_type: DataType,
    best: Vec<Option<Rank>>,
}

impl GroupsAccumulator for BestOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.best.resize(total, None);
        let wanted = self.extremum.wanted();
        let valid = groups.iter().enumerate().filter(|(row, _)| values[0].is_valid(*row));
        for ((row, &group), next) in valid.zip(ranks(&values[0])?) {
            let is_left_out = filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row));
            let best = &mut self.best[group];
            if !is_left_out && best.is_none_or(|best| next.cmp(&best) == wanted) {
                *best = Some(next);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let best = emit_to.take_needed(&mut self.best);
        let values = best.into_iter().map(|rank| of_rank(rank, &self.data_type)).collect::<Result<Vec<_>>>()?;
        match values.is_empty() {
            true => Ok(new_empty_array(&self.data_type)),
            false => ScalarValue::iter_to_array(values),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let Some(filter) = filter else { return Ok(vec![values[0].clone()]) };
        let left_out = not(&prep_null_mask_filter(filter))?;
        Ok(vec![nullif(&values[0], &left_out)?])
    }

    fn size(&self) -> usize {
        self.best.capacity() * size_of::<Option<Rank>>()
    }
}

/// The intervals of a frame or a group, each with how often it is there.
#[derive(Debug, Default)]
pub(super) struct Counted(pub(super) BTreeMap<Rank, usize>);

impl Counted {
    pub(super) fn add(&mut self, values: &ArrayRef) -> Result<()> {
        for rank in ranks(values)? {
            *self.0.entry(rank).or_default() += 1;
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, values: &ArrayRef) -> Result<()> {
        for rank in ranks(values)? {
            if let Some(count) = self.0.get_mut(&rank) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(&rank);
                }
            }
        }
        Ok(())
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.0.len() * size_of::<(Rank, usize)>()
    }
}

/// The extreme of a frame that values leave again: all of them with their numbers.
#[derive(Debug)]
struct Frame {
    extremum: Extremum,
    data_type: DataType,
    values: Counted,
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.add(&values[0])
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.remove(&values[0])
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let best = match self.extremum {
            Extremum::Greatest => self.values.0.last_key_value(),
            Extremum::Least => self.values.0.first_key_value(),
        };
        of_rank(best.map(|(rank, _)| *rank), &self.data_type)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}
