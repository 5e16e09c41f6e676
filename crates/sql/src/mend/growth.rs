//! Functions whose results are as large as an argument says: `repeat`, `lpad`, `rpad`, `range`, `generate_series`,
//! `array_repeat` and `array_resize`.
//!
//! DataFusion 55.2 reserves what it is asked for, whatever the memory limit is: the process ends where there is less
//! memory, and a list of more than 2^31 elements is a panic. Here a call is an error whose rows would take more than
//! `warpcube.memory_limit`, or half of the machine's memory where there is no limit. The bytes are estimated from
//! below: what passes may still fail. Positions that a search in a list starts from are held to be at least 1.
//!
//! The file goes once DataFusion asks its memory pool.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::device::host_memory;
use crate::error::SqlError;
use crate::settings::Settings;
use crate::span_lengths::lengths;
use crate::time_units::per_second;

/// What the size of a result follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// A text, as often as a number.
    Text,
    /// As many characters as a number.
    Characters,
    /// As many elements as the number in a place.
    Elements(usize),
    /// From a value to another, in steps.
    Series,
    /// None: an argument that counts from 1.
    Position,
}

/// The functions by name.
pub(super) const FUNCTIONS: [(&str, Growth); 8] = [
    ("repeat", Growth::Text),
    ("lpad", Growth::Characters),
    ("rpad", Growth::Characters),
    ("array_repeat", Growth::Elements(1)),
    ("array_resize", Growth::Elements(1)),
    ("range", Growth::Series),
    ("generate_series", Growth::Series),
    ("array_position", Growth::Position),
];

/// Bytes of an element of a list, at least.
const ELEMENT_BYTES: f64 = 8.0;
/// Most elements that the lists of a batch may have together.
const ELEMENTS_MAX: f64 = i32::MAX as f64;

/// Refuses a call whose result would be too large.
pub(super) fn check(name: &str, growth: Growth, args: &ScalarFunctionArgs) -> Result<()> {
    let rows = args.number_rows;
    // Sizes as doubles: what they lose does not matter here, and nothing overflows.
    let sizes = match growth {
        Growth::Position => return check_position(name, args),
        Growth::Text => {
            let texts = array(&args.args[0], rows)?;
            let bytes = cast(&length(&texts)?, &DataType::Float64)?;
            zipped(bytes.as_primitive(), &numbers(&args.args[1], rows)?, |bytes, times| bytes * times)
        }
        Growth::Characters => numbers(&args.args[1], rows)?,
        Growth::Elements(place) => match args.args.get(place) {
            Some(count) => numbers(count, rows)?,
            None => return Ok(()),
        },
        Growth::Series => series(&args.args, rows)?,
    };
    let is_one = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    // A size that follows from constants alone is that of each row.
    let times = if is_one || sizes.len() == rows { 1.0 } else { rows as f64 };
    let total = times * sizes.iter().flatten().map(|size| size.max(0.0)).sum::<f64>();
    let is_list = matches!(growth, Growth::Elements(_) | Growth::Series);
    if is_list && total > ELEMENTS_MAX {
        let reason = format!("{name} would give lists of {total:.0} elements, and {ELEMENTS_MAX:.0} are most");
        return Err(DataFusionError::Execution(reason));
    }
    let bytes = total * if is_list { ELEMENT_BYTES } else { 1.0 };
    // Most calls are small, and ask nothing of the machine.
    const SMALL: f64 = (64 << 20) as f64;
    if bytes <= SMALL {
        return Ok(());
    }
    let settings = args.config_options.extensions.get::<Settings>();
    let memory = host_memory()?;
    let limit = settings.and_then(|settings| settings.database.memory_limit.bytes(memory)).unwrap_or(memory / 2);
    match bytes > limit as f64 {
        true => {
            Err(SqlError::Memory(format!("{name} would give {bytes:.0} bytes, more than the limit of {limit}")).into())
        }
        false => Ok(()),
    }
}

/// Refuses a place in a list that is before its first.
fn check_position(name: &str, args: &ScalarFunctionArgs) -> Result<()> {
    let Some(start) = args.args.get(2) else { return Ok(()) };
    match numbers(start, args.number_rows)?.iter().flatten().any(|place| place < 1.0) {
        true => Err(DataFusionError::Execution(format!("{name} counts elements from 1"))),
        false => Ok(()),
    }
}

fn array(argument: &ColumnarValue, rows: usize) -> Result<ArrayRef> {
    match argument {
        ColumnarValue::Array(array) => Ok(array.clone()),
        // A constant is looked at once.
        ColumnarValue::Scalar(value) => value.to_array_of_size(rows.min(1)),
    }
}

/// The numbers of an argument; NULL for what is none.
fn numbers(argument: &ColumnarValue, rows: usize) -> Result<Float64Array> {
    Ok(cast(&array(argument, rows)?, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

/// Pairs of two arrays, of which a scalar has one row.
fn zipped(one: &Float64Array, other: &Float64Array, size: impl Fn(f64, f64) -> f64) -> Float64Array {
    let at = |array: &Float64Array, row: usize| {
        let row = if array.len() == 1 { 0 } else { row };
        (row < array.len() && array.is_valid(row)).then(|| array.value(row))
    };
    (0..one.len().max(other.len())).map(|row| Some(size(at(one, row)?, at(other, row)?))).collect()
}

/// Elements of series: of numbers, or of times by the lengths of their steps.
fn series(args: &[ColumnarValue], rows: usize) -> Result<Float64Array> {
    let zero = ColumnarValue::Scalar(ScalarValue::Int64(Some(0)));
    let one = ColumnarValue::Scalar(ScalarValue::Int64(Some(1)));
    let (start, stop, step) = match args {
        [stop] => (&zero, stop, &one),
        [start, stop] => (start, stop, &one),
        [start, stop, step] => (start, stop, step),
        _ => return Ok(Float64Array::new_null(rows)),
    };
    let is_span = matches!(step.data_type(), DataType::Interval(_) | DataType::Duration(_));
    let ends = |end: &ColumnarValue| match is_span {
        // Nanoseconds, as steps are.
        true => {
            let nanoseconds = |ticks: f64| match end.data_type() {
                DataType::Date32 => ticks * 86_400e9,
                DataType::Date64 => ticks * 1e6,
                DataType::Timestamp(unit, _) => ticks * (1_000_000_000 / per_second(unit)) as f64,
                _ => ticks,
            };
            let ticks = array(end, rows)?;
            let ticks = match ticks.data_type() {
                DataType::Date32 => cast(&ticks, &DataType::Int32)?,
                _ => ticks,
            };
            let ticks = cast(&ticks, &DataType::Int64)?;
            Ok(ticks.as_primitive::<Int64Type>().unary(|ticks| nanoseconds(ticks as f64)))
        }
        false => numbers(end, rows),
    };
    let steps = match is_span {
        true => {
            let lengths = lengths(&array(step, rows)?)?;
            lengths.unary::<_, Float64Type>(|length| length as f64)
        }
        false => numbers(step, rows)?,
    };
    let apart = zipped(&ends(start)?, &ends(stop)?, |start, stop| stop - start);
    Ok(zipped(&apart, &steps, |apart, step| if step == 0.0 { 0.0 } else { apart / step }))
}
