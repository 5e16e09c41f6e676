//! Functions in the place of casts: texts that become decimals ([`crate::text_decimals`]), decimals that become floats
//! ([`crate::decimal_floats`]), times and intervals that become texts, and intervals that were some
//! ([`crate::time_texts`]), texts and integers that become bytes and bytes that become texts ([`crate::text_bytes`]),
//! and casts that rows compute ([`super::failing_casts`]).
//!
//! A function's name has its kind and its type, so that plans travel; no statement can call it, since no registry has
//! it.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::conversion::Conversion;
use super::each_value;
use crate::decimal_floats::{floats, is_rounded_twice};
use crate::text_bytes::is_bytes;
use crate::text_decimals::{is_read, read};
use crate::{text_bytes, time_texts};

/// How a function converts its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// By Arrow's cast, once a row computes it.
    Late,
    /// From a text to a decimal; another text raises.
    Decimal,
    /// From a text to a decimal; another text becomes NULL.
    TryDecimal,
    /// From a decimal to the nearest float.
    Float,
    /// From a text to an interval; another text raises.
    Interval,
    /// From a text to an interval; another text becomes NULL.
    TryInterval,
    /// From a timestamp, a time of day or an interval to a text.
    TimeText,
    /// From a text with escapes to bytes; an escape that is none raises.
    Bytes,
    /// From a text with escapes to bytes; an escape that is none makes it NULL.
    TryBytes,
    /// From bytes to a text with escapes.
    BytesText,
    /// From an integer to its bytes.
    IntegerBytes,
}

/// How the names of functions begin; the type follows.
const NAMES: [(&str, Kind); 11] = [
    ("warpcube_late_cast_", Kind::Late),
    ("warpcube_decimal_", Kind::Decimal),
    (TRY_DECIMAL, Kind::TryDecimal),
    (FLOAT, Kind::Float),
    ("warpcube_interval_of_text_", Kind::Interval),
    (TRY_INTERVAL, Kind::TryInterval),
    ("warpcube_time_text_", Kind::TimeText),
    ("warpcube_bytes_of_text_", Kind::Bytes),
    (TRY_BYTES, Kind::TryBytes),
    (BYTES_TEXT, Kind::BytesText),
    (INTEGER_BYTES, Kind::IntegerBytes),
];
/// How the names of functions begin that have a value for all arguments.
pub(super) const TRY_DECIMAL: &str = "warpcube_try_decimal_";
pub(super) const FLOAT: &str = "warpcube_float_";
pub(super) const TRY_INTERVAL: &str = "warpcube_try_interval_of_text_";
pub(super) const TRY_BYTES: &str = "warpcube_try_bytes_of_text_";
pub(super) const BYTES_TEXT: &str = "warpcube_text_of_bytes_";
pub(super) const INTEGER_BYTES: &str = "warpcube_bytes_of_integer_";

/// The function of a name, for plans that come from another session.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let (kind, target) = NAMES.iter().find_map(|(front, kind)| Some((*kind, name.strip_prefix(front)?)))?;
    let target: DataType = target.parse().ok()?;
    let is_kind = match kind {
        Kind::Late => true,
        Kind::Decimal | Kind::TryDecimal => is_read(&target),
        Kind::Float => target.is_floating(),
        Kind::Interval | Kind::TryInterval => matches!(target, DataType::Interval(_)),
        Kind::TimeText | Kind::BytesText => target.is_string(),
        Kind::Bytes | Kind::TryBytes | Kind::IntegerBytes => is_bytes(&target),
    };
    is_kind.then(|| Arc::new(CastFunction::function(kind, &target)))
}

/// A conversion to a type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CastFunction {
    name: String,
    kind: Kind,
    target: DataType,
    signature: Signature,
}

impl CastFunction {
    fn function(kind: Kind, target: &DataType) -> ScalarUDF {
        let front = NAMES.iter().find(|(_, other)| *other == kind).map_or("", |(front, _)| front);
        let name = format!("{front}{target}");
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::new_from_impl(CastFunction { name, kind, target: target.clone(), signature })
    }

    /// What reads a text as a decimal, an interval or bytes, rounds a decimal to a float, or writes a time or bytes as
    /// a text, in a cast's place; none for other casts.
    pub(super) fn in_place_of(cast: &Conversion) -> Option<Expr> {
        let reads = cast.is_of_text() && is_read(cast.to);
        let reads_interval = cast.is_of_text() && matches!(cast.to, DataType::Interval(_));
        let kind = match () {
            () if time_texts::is_time(&cast.from) && cast.to.is_string() => Kind::TimeText,
            () if is_rounded_twice(&cast.from, cast.to) => Kind::Float,
            () if reads_interval && cast.may_fail => Kind::TryInterval,
            () if reads_interval => Kind::Interval,
            () if reads && cast.may_fail => Kind::TryDecimal,
            () if reads => Kind::Decimal,
            () if cast.is_of_text() && is_bytes(cast.to) && cast.may_fail => Kind::TryBytes,
            () if cast.is_of_text() && is_bytes(cast.to) => Kind::Bytes,
            () if is_bytes(&cast.from) && cast.to.is_string() => Kind::BytesText,
            () if cast.from.is_integer() && is_bytes(cast.to) => Kind::IntegerBytes,
            () => return None,
        };
        Some(CastFunction::function(kind, cast.to).call(vec![cast.operand.clone()]))
    }

    /// The operand and the type of a cast that rows compute; none of another expression.
    pub(super) fn as_late(expr: &Expr) -> Option<(&Expr, &DataType)> {
        let Expr::ScalarFunction(call) = expr else { return None };
        let cast = call.func.inner().downcast_ref::<CastFunction>().filter(|cast| cast.kind == Kind::Late)?;
        Some((call.args.first()?, &cast.target))
    }

    /// The operand of a cast to a double, which a decimal may become by a function; none of another expression.
    pub(crate) fn as_double(expr: &Expr) -> Option<&Expr> {
        match expr {
            Expr::Cast(cast) if *cast.field.data_type() == DataType::Float64 => Some(&cast.expr),
            Expr::ScalarFunction(call) => {
                let cast = call.func.inner().downcast_ref::<CastFunction>()?;
                (cast.kind == Kind::Float && cast.target == DataType::Float64).then_some(call.args.first()?)
            }
            _ => None,
        }
    }

    /// The same cast, which rows compute and planning does not.
    pub(super) fn late(cast: &Conversion) -> Expr {
        CastFunction::function(Kind::Late, cast.to).call(vec![cast.operand.clone()])
    }
}

impl ScalarUDFImpl for CastFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.target.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = &arguments.args[0];
        match self.kind {
            Kind::Late => value.cast_to(&self.target, None),
            Kind::Float => each_value(value, |decimals| floats(decimals, &self.target)),
            Kind::Interval | Kind::TryInterval => {
                each_value(value, |texts| time_texts::intervals(texts, &self.target, self.kind == Kind::TryInterval))
            }
            Kind::TimeText => each_value(value, |times| time_texts::texts(times, &self.target)),
            Kind::Bytes | Kind::TryBytes => each_value(value, |texts| {
                text_bytes::read(texts, &self.target, self.kind == Kind::TryBytes)?
                    .map_err(|misfit| DataFusionError::Execution(misfit.reason()))
            }),
            Kind::BytesText => each_value(value, |bytes| Ok(text_bytes::texts(bytes, &self.target)?)),
            Kind::IntegerBytes => each_value(value, |values| Ok(text_bytes::of_integers(values, &self.target)?)),
            Kind::Decimal | Kind::TryDecimal => each_value(value, |texts| {
                read(texts, &self.target, self.kind == Kind::TryDecimal)?.map_err(|misfit| {
                    let (text, target) = (misfit.text, &self.target);
                    DataFusionError::Execution(format!("Cannot cast string '{text}' to value of {target} type"))
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_its_name() {
        let zoned = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("+01:00".into()));
        let decimal = DataType::Decimal128(12, 2);
        for (kind, target) in [
            (Kind::Late, &DataType::Int32),
            (Kind::Late, &zoned),
            (Kind::TryDecimal, &decimal),
            (Kind::Float, &DataType::Float32),
            (Kind::TimeText, &DataType::Utf8View),
            (Kind::TryBytes, &DataType::Binary),
        ] {
            let made = CastFunction::function(kind, target);
            let found = function(made.name()).expect("a function of that name");
            assert_eq!(*found, made);
        }
        assert!(function("warpcube_decimal_Int32").is_none());
        assert!(function("warpcube_decimal_").is_none());
    }
}
