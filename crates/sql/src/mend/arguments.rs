//! Functions of DataFusion that are looked at in each call: replacements are put in its words
//! ([`super::replacements`]), and what would take too much memory is refused ([`super::growth`]).
//!
//! `to_timestamp` and its like promise instants in the session's zone, and give timestamps without one for a column of
//! texts in DataFusion 55.2, which is an internal error. The values are those instants: here they are called so. Those
//! of seconds and milliseconds cut digits off, towards 1970; here they round texts and times to the unit, as casts do.
//! That goes once the functions keep their promise and round.
//!
//! `to_char` takes patterns of strftime and gives any other text back as it is; here a pattern of words without a `%`
//! is refused. It gives the first row's text for all where the time is a constant and patterns are none; here each row
//! has its own. Both go once DataFusion's function does so.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::conversion::is_text;
use super::{each_value, growth, replacements};
use crate::error::SqlError;
use crate::time_units::{per_second, rounded_to};

/// Functions that give instants.
const INSTANTS: [&str; 5] =
    ["to_timestamp", "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos"];

/// Functions that give instants of coarse units.
const COARSE: [&str; 2] = ["to_timestamp_seconds", "to_timestamp_millis"];
/// The function that reads the texts of coarse ones, with their digits.
const MICROSECONDS: &str = "to_timestamp_micros";

/// The functions of a session, mended.
pub(crate) fn functions(state: &SessionState) -> Vec<ScalarUDF> {
    let of_growth = growth::FUNCTIONS.iter().map(|(name, growth)| (*name, Look::Growth(*growth)));
    let all = of_growth.chain([("regexp_replace", Look::Replacement), ("to_char", Look::Pattern)]);
    let mended = |(name, look): (&str, Look)| {
        let finer = COARSE.contains(&name).then(|| state.udf(MICROSECONDS).ok()).flatten();
        Some(ScalarUDF::new_from_impl(Looked { original: state.udf(name).ok()?, finer, look }))
    };
    let instants = INSTANTS.map(|name| (name, Look::Instant));
    all.chain(instants).filter_map(mended).collect()
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Look {
    Replacement,
    Pattern,
    Growth(growth::Growth),
    Instant,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Looked {
    original: Arc<ScalarUDF>,
    /// DataFusion's function of microseconds, where this is one of instants of a coarser unit.
    finer: Option<Arc<ScalarUDF>>,
    look: Look,
}

impl Looked {
    /// Instants of the promised type, texts and times rounded to its unit.
    fn instants(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let promised = args.return_field.data_type().clone();
        let DataType::Timestamp(unit, zone) = &promised else {
            return Err(DataFusionError::Internal(format!("instants of type {promised}")));
        };
        if let (Some(finer), Some(text)) = (&self.finer, args.args.first())
            && is_text(&text.data_type())
        {
            let fine = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            let times = as_promised(finer.inner().invoke_with_args(args)?, &fine)?;
            return each_value(&times, |times| rounded_to(times, *unit))?.cast_to(&promised, None);
        }
        if let Some(time) = args.args.first_mut()
            && let DataType::Timestamp(fine, _) = time.data_type()
            && per_second(fine) > per_second(*unit)
        {
            *time = each_value(time, |times| rounded_to(times, *unit))?;
        }
        // The function around checks the type.
        as_promised(self.original.inner().invoke_with_args(args)?, &promised)
    }
}

impl ScalarUDFImpl for Looked {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn aliases(&self) -> &[String] {
        self.original.aliases()
    }

    fn signature(&self) -> &Signature {
        self.original.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.original.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.original.return_field_from_args(args)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.look {
            Look::Replacement => replacements::in_rust(&mut args)?,
            Look::Pattern => of_strftime(&mut args)?,
            Look::Growth(growth) => growth::check(self.name(), growth, &args)?,
            Look::Instant => {
                args.args.iter().skip(1).try_for_each(with_minutes)?;
                return self.instants(args);
            }
        }
        self.original.invoke_with_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let updated = |function: &Arc<ScalarUDF>| Some(Arc::new(function.inner().with_updated_config(config)?));
        let finer = self.finer.as_ref().and_then(updated);
        Some(ScalarUDF::new_from_impl(Looked { original: updated(&self.original)?, finer, look: self.look }))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.original.simplify(args, info)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.original.output_ordering(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.original.coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }
}

/// Arguments of `to_char` as it reads them.
///
/// # Errors
/// A pattern that names no part of a time, as `YYYY`.
fn of_strftime(args: &mut ScalarFunctionArgs) -> Result<()> {
    let [time, pattern] = args.args.as_mut_slice() else { return Ok(()) };
    if matches!(time.data_type(), DataType::Duration(_)) {
        return Ok(());
    }
    if let (ColumnarValue::Scalar(_), ColumnarValue::Array(_)) = (&time, &pattern) {
        *time = ColumnarValue::Array(time.to_array(args.number_rows)?);
    }
    let check = |pattern: &str| match pattern.contains('%') || !pattern.contains(|c: char| c.is_ascii_alphabetic()) {
        true => Ok(()),
        false => {
            let reason = format!("to_char with the pattern '{pattern}'; patterns are those of strftime: '%Y-%m-%d'");
            Err(SqlError::Unsupported(reason).into())
        }
    };
    match pattern {
        ColumnarValue::Scalar(pattern) => pattern.try_as_str().flatten().map_or(Ok(()), check),
        ColumnarValue::Array(patterns) => {
            let patterns = cast(patterns, &DataType::LargeUtf8)?;
            patterns.as_string::<i64>().iter().flatten().try_for_each(check)
        }
    }
}

/// Refuses patterns that have the hour and no minutes, of which DataFusion 55.2 reads the date alone.
fn with_minutes(patterns: &ColumnarValue) -> Result<()> {
    let check = |pattern: &str| {
        let has = |parts: [&str; 4]| parts.iter().any(|part| pattern.contains(part));
        match has(["%H", "%I", "%k", "%l"]) && !has(["%M", "%-M", "%_M", "%0M"]) {
            true => {
                Err(SqlError::Unsupported(format!("the pattern '{pattern}', which has hours and no minutes")).into())
            }
            false => Ok(()),
        }
    };
    match patterns {
        ColumnarValue::Scalar(pattern) => pattern.try_as_str().flatten().map_or(Ok(()), check),
        ColumnarValue::Array(patterns) if is_text(patterns.data_type()) => {
            let patterns = cast(patterns, &DataType::LargeUtf8)?;
            patterns.as_string::<i64>().iter().flatten().try_for_each(check)
        }
        ColumnarValue::Array(_) => Ok(()),
    }
}

/// Instants as values of the type that was promised.
fn as_promised(instants: ColumnarValue, promised: &DataType) -> Result<ColumnarValue> {
    if instants.data_type() == *promised {
        return Ok(instants);
    }
    // A cast between the types would read them as what clocks show.
    instants.cast_to(&DataType::Int64, None)?.cast_to(promised, None)
}
