//! `x AT TIME ZONE 'z'`, which is `timezone('z', x)` in PostgreSQL: what clocks of a zone show at an instant, and the
//! instant at which they show a time.
//!
//! DataFusion 55.2 has a cast in its place, which leaves an instant an instant. The parser's tree has the function
//! instead ([`crate::syntax`]), and [`super::zones`] replaces it by what it means before types are coerced, so that
//! nothing ever runs it. A text or a date is an instant of the session's zone, as in PostgreSQL. Without a zone of the
//! session it is DataFusion's cast.
//!
//! The file goes once DataFusion's AT TIME ZONE gives times without a zone for instants.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::in_zone::{in_zone, unit_of, zone_of};

/// The function that a session knows.
pub(crate) fn function(config: &ConfigOptions) -> ScalarUDF {
    let has_zone = zone_of(config).is_some();
    ScalarUDF::new_from_impl(TimeZone { signature: Signature::any(2, Volatility::Immutable), has_zone })
}

/// What a call of the function means; none if an expression is no such call. `session` is the session's zone.
pub(super) fn meaning(expr: &Expr, session: &str, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::ScalarFunction(call) = expr else { return Ok(None) };
    let [Expr::Literal(zone, _), value] = call.args.as_slice() else { return Ok(None) };
    let Some(function) = call.func.inner().downcast_ref::<TimeZone>() else { return Ok(None) };
    let zone = named(Some(zone))?;
    let cast = |expr: Expr, target: DataType| Expr::Cast(Cast::new(Box::new(expr), target));
    if !function.has_zone {
        return Ok(Some(cast(value.clone(), DataType::Timestamp(TimeUnit::Nanosecond, Some(zone.into())))));
    }
    let from = value.get_type(schema)?;
    let unit = unit_of(&from, TimeUnit::Microsecond);
    if let DataType::Timestamp(_, None) = from {
        return Ok(Some(in_zone(value.clone(), zone, unit)));
    }
    let instant = match from {
        DataType::Timestamp(_, Some(_)) => value.clone(),
        _ => cast(value.clone(), DataType::Timestamp(unit, Some(session.into()))),
    };
    Ok(Some(to_local_time().call(vec![cast(instant, DataType::Timestamp(unit, Some(zone.into())))])))
}

/// The zone that an argument names.
fn named(zone: Option<&ScalarValue>) -> Result<&str> {
    let zone = zone.and_then(|zone| zone.try_as_str().flatten());
    let zone = zone.ok_or_else(|| DataFusionError::Plan("AT TIME ZONE needs the name of a zone in quotes".into()))?;
    match Tz::from_str(zone) {
        Ok(_) => Ok(zone),
        Err(_) => Err(DataFusionError::Plan(format!("'{zone}' is no time zone; there are 'Europe/Berlin', '+02:00'"))),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeZone {
    signature: Signature,
    /// Whether the session has a zone.
    has_zone: bool,
}

impl ScalarUDFImpl for TimeZone {
    fn name(&self) -> &str {
        "timezone"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        Some(function(config))
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type of a time follows from its zone".into()))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let zone = named(arguments.scalar_arguments[0])?;
        let value = &arguments.arg_fields[1];
        let (unit, zone) = match value.data_type() {
            _ if !self.has_zone => (TimeUnit::Nanosecond, Some(zone.into())),
            DataType::Timestamp(unit, None) => (*unit, Some(zone.into())),
            DataType::Timestamp(unit, Some(_)) => (*unit, None),
            other if other.is_string() || matches!(other, DataType::Date32 | DataType::Date64 | DataType::Null) => {
                (TimeUnit::Microsecond, None)
            }
            other => {
                let reason = format!("AT TIME ZONE takes a timestamp, a date or a text, not {other}");
                return Err(DataFusionError::Plan(reason));
            }
        };
        Ok(Arc::new(Field::new(self.name(), DataType::Timestamp(unit, zone), true)))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal("AT TIME ZONE has not been given its meaning".into()))
    }
}
