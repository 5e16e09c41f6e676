//! The function that reads a time on the wall as an instant.
//!
//! Arrow's cast fails for times that the clocks of a zone show twice or never. Here they are those of standard time,
//! as in PostgreSQL: 02:30 of the night in which clocks go forward from 2 to 3 is half past three, and of the night
//! in which they go back it is the later one. Texts without seconds are read, which Arrow asks for.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, LargeStringArray};
use arrow::compute::{CastOptions, cast, cast_with_options, is_null};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::conversion::is_text;
use super::each_value;
use crate::text_times::Wall;
use crate::zone_clocks::Clocks;

/// The function's name in plans that travel; no statement can call it, since no registry has it.
pub(crate) const NAME: &str = "warpcube_in_zone";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(InZone { signature: Signature::any(3, Volatility::Immutable) }))
});

/// The function, for plans that come from another session.
pub(crate) fn function() -> Arc<ScalarUDF> {
    FUNCTION.clone()
}

/// The instant at which clocks of a zone show what `value` says: a timestamp without a zone, a date, or a text, where
/// one that names an offset is an instant of its own. An instant stays one. A text is read as its target's unit has it.
pub(super) fn in_zone(value: Expr, zone: &str, target: TimeUnit) -> Expr {
    let has_nanoseconds = target == TimeUnit::Nanosecond;
    let options = [ScalarValue::from(zone), ScalarValue::from(has_nanoseconds)];
    FUNCTION.call([value].into_iter().chain(options.map(|option| Expr::Literal(option, None))).collect())
}

/// Whether an expression is a call of the function.
pub(super) fn is_in_zone(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.inner().is::<InZone>())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InZone {
    signature: Signature,
}

/// The session's zone, if it has one.
pub(super) fn zone_of(config: &ConfigOptions) -> Option<&str> {
    config.execution.time_zone.as_deref().filter(|zone| !zone.is_empty())
}

/// The unit of an instant read from a value of a type. A date has microseconds, and so has a text, but for a target of
/// nanoseconds.
pub(super) fn unit_of(value: &DataType, target: TimeUnit) -> TimeUnit {
    match value {
        DataType::Timestamp(unit, _) => *unit,
        text if is_text(text) && target == TimeUnit::Nanosecond => target,
        _ => TimeUnit::Microsecond,
    }
}

impl ScalarUDFImpl for InZone {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of an instant follows from its zone".into()))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let zone = arguments.scalar_arguments[1].and_then(|zone| zone.try_as_str().flatten());
        let zone = zone.ok_or_else(|| DataFusionError::Internal("an instant without a zone".into()))?;
        let has_nanoseconds = matches!(arguments.scalar_arguments[2], Some(ScalarValue::Boolean(Some(true))));
        let target = if has_nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        let unit = unit_of(arguments.arg_fields[0].data_type(), target);
        Ok(Arc::new(Field::new(self.name(), DataType::Timestamp(unit, Some(zone.into())), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let target = arguments.return_field.data_type();
        each_value(&arguments.args[0], |values| instants(values, target))
    }
}

/// The instants that values name in the zone of a type.
fn instants(values: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let wall = Wall::of(target).unwrap_or(Wall::Instant);
    let whole = |texts: &ArrayRef| -> Result<ArrayRef> {
        let texts = cast(texts, &DataType::LargeUtf8)?;
        let texts = texts.as_string::<i64>().iter().map(|text| text.map(|text| wall.bare(text)));
        Ok(Arc::new(texts.collect::<LargeStringArray>()))
    };
    let values = &if is_text(values.data_type()) { whole(values)? } else { values.clone() };
    let instants = cast(values, target)?;
    if instants.null_count() == values.null_count() {
        return Ok(instants);
    }
    // Clocks do not show what is missing, or show it twice; or it is no time at all, which is an error.
    let DataType::Timestamp(unit, _) = *target else {
        return Err(DataFusionError::Internal(format!("an instant of type {target}")));
    };
    let walls = cast_with_options(values, &DataType::Timestamp(unit, None), &strict)?;
    let walls = cast(&walls, &DataType::Int64)?;
    let walls = walls.as_primitive::<Int64Type>();
    let clocks = Clocks::of(target)?;
    let missing = is_null(&instants)?;
    let known = cast(&instants, &DataType::Int64)?;
    let known = known.as_primitive::<Int64Type>();
    let read = |row: usize| match missing.value(row) && walls.is_valid(row) {
        false => Ok(known.is_valid(row).then(|| known.value(row))),
        true => {
            let wall = walls.value(row);
            let instant = clocks.as_ref().and_then(|clocks| clocks.instant(wall));
            let refused = || DataFusionError::Execution(format!("clock time {wall} is no instant in {target}"));
            instant.map(Some).ok_or_else(refused)
        }
    };
    let read: Int64Array = (0..walls.len()).map(read).collect::<Result<_>>()?;
    let read: ArrayRef = Arc::new(read);
    Ok(cast(&cast(&read, &DataType::Timestamp(unit, Some("UTC".into())))?, target)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn times_that_clocks_show_twice_or_never_are_those_of_standard_time() {
        for (zone, wall, expected) in [
            ("Europe/Berlin", "2024-03-31 01:59:00", "2024-03-31T00:59:00Z"),
            ("Europe/Berlin", "2024-03-31 02:30:00", "2024-03-31T01:30:00Z"),
            ("Europe/Berlin", "2024-10-27 02:30:00", "2024-10-27T01:30:00Z"),
            ("Europe/Berlin", "2024-10-27 02:30:00+02:00", "2024-10-27T00:30:00Z"),
            ("America/New_York", "2024-03-10 02:30:00", "2024-03-10T07:30:00Z"),
            ("America/New_York", "2024-11-03 01:30:00", "2024-11-03T06:30:00Z"),
            ("America/New_York", "2024-07-04", "2024-07-04T04:00:00Z"),
        ] {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![Some(wall), None]));
            let of = |values: &ArrayRef, unit| {
                let target = DataType::Timestamp(unit, Some(zone.into()));
                let instants = instants(values, &target).unwrap();
                assert!(instants.is_null(1));
                let utc = cast(&instants, &DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))).unwrap();
                cast(&utc, &DataType::Utf8).unwrap().as_string::<i32>().value(0).to_string()
            };
            assert_eq!(of(&texts, TimeUnit::Nanosecond), expected, "{wall} in {zone}");
            if !wall.contains('+') {
                for unit in [TimeUnit::Second, TimeUnit::Microsecond] {
                    let walls = cast(&texts, &DataType::Timestamp(unit, None)).unwrap();
                    assert_eq!(of(&walls, unit), expected, "{wall} in {zone}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_time_is_an_error() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["2024-13-01"]));
        assert!(instants(&texts, &DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into()))).is_err());
    }
}
