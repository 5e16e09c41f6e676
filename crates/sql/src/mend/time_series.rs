//! `range` and `generate_series` of times: lists of the times from a start to a stop, in steps of an interval.
//!
//! DataFusion 55.2 counts them in nanoseconds, which end in 2262, ends one of instants at the first step that leads to
//! a time which clocks show twice or never, and gives dates where a step has hours. Here they have the ticks of their
//! type, steps are those of [`crate::zone_clocks`], and dates are timestamps, as in PostgreSQL and DuckDB.
//!
//! The file goes once DataFusion's series have microseconds and such steps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::conversion::is_text;
use super::intervals::is_span;
use super::lengths::DAYS_AND_TIME;
use crate::zone_clocks::Clocks;

/// The types of arguments of a series of times: both ends have one unit and one zone; none of another series.
pub(super) fn coerced(from: &[DataType]) -> Option<Vec<DataType>> {
    let [ends @ .., step] = from else { return None };
    let is_time = |own: &DataType| matches!(own, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
    let is_step = is_span(step) || is_text(step) || step.is_null();
    if ends.len() != 2 || !is_step || !ends.iter().any(is_time) {
        return None;
    }
    let is_fine = |own: &DataType| matches!(own, DataType::Timestamp(TimeUnit::Nanosecond, _));
    let unit = if ends.iter().any(is_fine) { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
    let zone = ends.iter().find_map(|own| match own {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    });
    let end = DataType::Timestamp(unit, zone);
    Some(vec![end.clone(), end, DAYS_AND_TIME])
}

/// The lists of a call of `name`; none of a series of others.
///
/// # Errors
/// A step that leads nowhere.
pub(super) fn lists(name: &str, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
    let DataType::List(item) = args.return_field.data_type() else { return Ok(None) };
    let Some(clocks) = Clocks::of(item.data_type())? else { return Ok(None) };
    let [start, stop, step] = args.args.as_slice() else { return Ok(None) };
    let is_constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let ends = [start, stop].map(|end| {
        let end = cast(&end.to_array(rows)?, item.data_type())?;
        Ok::<_, DataFusionError>(cast(&end, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
    });
    let [starts, stops] = ends;
    let steps = cast(&step.to_array(rows)?, &DAYS_AND_TIME)?;
    let series = Series { name, clocks, takes_stop: name == "generate_series" };
    let lists = series.lists(&starts?, &stops?, &steps, item)?;
    Ok(Some(match is_constant {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?),
        false => ColumnarValue::Array(Arc::new(lists)),
    }))
}

struct Series<'n> {
    name: &'n str,
    clocks: Clocks,
    /// Whether the stop may be the last element.
    takes_stop: bool,
}

impl Series<'_> {
    fn lists(&self, starts: &Int64Array, stops: &Int64Array, steps: &ArrayRef, item: &FieldRef) -> Result<ListArray> {
        let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
        let (mut ticks, mut lengths) = (Vec::new(), Vec::with_capacity(starts.len()));
        for row in 0..starts.len() {
            let before = ticks.len();
            if starts.is_valid(row) && stops.is_valid(row) && steps.is_valid(row) {
                self.append(starts.value(row), stops.value(row), steps.value(row), &mut ticks)?;
            }
            lengths.push(ticks.len() - before);
        }
        let nulls = NullBuffer::union(NullBuffer::union(starts.nulls(), stops.nulls()).as_ref(), steps.nulls());
        let ticks: ArrayRef = Arc::new(Int64Array::from(ticks));
        let values = cast(&ticks, item.data_type())?;
        Ok(ListArray::try_new(item.clone(), OffsetBuffer::from_lengths(lengths), values, nulls)?)
    }

    /// Appends the times of one series.
    fn append(&self, start: i64, stop: i64, step: IntervalMonthDayNano, ticks: &mut Vec<i64>) -> Result<()> {
        let is_back = self.clocks.moved(start, step).is_some_and(|next| next < start);
        let (mut time, sign) = (start, if is_back { -1 } else { 1 });
        let is_before_stop = |time: i64| match time.cmp(&stop) as i8 * sign {
            0 => self.takes_stop,
            order => order < 0,
        };
        while is_before_stop(time) {
            ticks.push(time);
            let Some(next) = self.clocks.moved(time, step) else { break };
            if next == time || (next < time) != is_back {
                let reason = format!("a step of {} that leads nowhere, or back again", self.name);
                return Err(DataFusionError::Execution(reason));
            }
            time = next;
        }
        Ok(())
    }
}
