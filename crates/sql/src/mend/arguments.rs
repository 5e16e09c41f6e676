//! Functions of DataFusion that are looked at in each call: replacements are put in its words
//! ([`super::replacements`]), and what would take too much memory is refused ([`super::growth`]).
//!
//! `to_timestamp` and its like promise instants in the session's zone, and give timestamps without one for a column of
//! texts in DataFusion 55.2, which is an internal error. The values are those instants: here they are called so. Those
//! of seconds and milliseconds cut digits off, towards 1970; here they round texts and times to the unit, as casts do.
//! That goes once the functions keep their promise and round.
//!
//! `to_char` takes patterns of strftime of dates and times, and gives any other text back as it is; here a pattern
//! without a `%` is one of PostgreSQL's, and numbers and intervals have those, too. So do `to_date` and `to_timestamp`.
//! `date_trunc` counts in nanoseconds, which end in 2262, and has no unit above the year. Here it counts in the ticks
//! of its argument, and a date has microseconds. That goes once DataFusion's does so.
//!
//! `ceil`, `floor` and `trunc` of decimals are those of [`super::whole_decimals`].
//!
//! `now`, `to_timestamp` and `date_bin` give nanoseconds ([`super::microseconds`]), and so do `range` and
//! `generate_series` of times ([`super::time_series`]).
//!
//! `to_char` gives the first row's text for all where the time is a constant and patterns are none; here each row has
//! its own. That goes once DataFusion's function does so.

use std::sync::{Arc, LazyLock};

use arrow::array::{AsArray, BooleanArray, StringArray};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, nullif};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::conversion::is_text;
use super::in_zone::zone_of;
use super::{each_value, growth, microseconds, replacements, time_series, whole_decimals};
use crate::error::SqlError;
use crate::functions::{is_pattern, read_by_pattern, to_char, truncated};
use crate::time_units::{per_second, rounded_to};

/// Functions that give instants.
const INSTANTS: [&str; 5] =
    [TO_TIMESTAMP, "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos"];

/// Functions that give instants of coarse units, and the one that gives microseconds where the session has a zone.
const COARSE: [&str; 3] = ["to_timestamp_seconds", "to_timestamp_millis", TO_TIMESTAMP];
const TO_TIMESTAMP: &str = "to_timestamp";
/// The function that reads the texts of coarse ones, with their digits.
const MICROSECONDS: &str = "to_timestamp_micros";

/// The functions of a session, mended.
pub(crate) fn functions(state: &SessionState) -> Vec<ScalarUDF> {
    let has_zone = zone_of(state.config_options()).is_some();
    let of_growth = growth::FUNCTIONS.iter().map(|(name, growth)| (*name, Look::Growth(*growth)));
    let all = of_growth.chain([
        ("regexp_replace", Look::Replacement),
        ("to_char", Look::Pattern),
        ("to_date", Look::Date),
        ("date_trunc", Look::Truncation),
        ("date_bin", Look::Bins),
        ("now", Look::Now),
        ("current_time", Look::Now),
        ("ceil", Look::Whole),
        ("floor", Look::Whole),
        ("trunc", Look::Whole),
    ]);
    let mended = |(name, look): (&str, Look)| {
        let finer = COARSE.contains(&name).then(|| state.udf(MICROSECONDS).ok()).flatten();
        Some(ScalarUDF::new_from_impl(Looked { original: state.udf(name).ok()?, finer, has_zone, look }))
    };
    let instants = INSTANTS.map(|name| (name, Look::Instant));
    all.chain(instants).filter_map(mended).collect()
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Look {
    Replacement,
    Pattern,
    Date,
    Truncation,
    Bins,
    Now,
    Growth(growth::Growth),
    Instant,
    Whole,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Looked {
    original: Arc<ScalarUDF>,
    /// DataFusion's function of microseconds, where this is one of instants of a coarser unit.
    finer: Option<Arc<ScalarUDF>>,
    /// Whether the session has a zone; without one timestamps are as DataFusion has them.
    has_zone: bool,
    look: Look,
}

impl Looked {
    /// Instants of the promised type, texts and times rounded to its unit.
    fn instants(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let promised = args.return_field.data_type().clone();
        let DataType::Timestamp(unit, zone) = &promised else {
            return Err(DataFusionError::Internal(format!("instants of type {promised}")));
        };
        let is_micros = *unit == TimeUnit::Microsecond && self.name() == TO_TIMESTAMP;
        let finer = self.finer.as_ref().filter(|_| *unit != TimeUnit::Nanosecond);
        if let (Some(finer), Some(text)) = (finer, args.args.first())
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
        if is_micros && let Some(value) = args.args.first() {
            match value.data_type() {
                number if number.is_numeric() => return microseconds::of_seconds(value)?.cast_to(&promised, None),
                DataType::Timestamp(_, _) | DataType::Null => return value.cast_to(&promised, None),
                _ => {}
            }
        }
        // The function around checks the type.
        as_promised(self.original.inner().invoke_with_args(args)?, &promised)
    }
}

impl Looked {
    /// Whether DataFusion's function gives nanoseconds where this one gives microseconds.
    fn in_microseconds(&self, first: Option<&DataType>) -> bool {
        let is_fine = matches!(first, Some(DataType::Timestamp(TimeUnit::Nanosecond, _)));
        self.has_zone
            && match self.look {
                Look::Now => true,
                Look::Instant => self.name() == TO_TIMESTAMP,
                Look::Growth(growth::Growth::Series) => !is_fine,
                _ => false,
            }
    }

    /// The texts of `to_char`, each by its own pattern.
    fn shown(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, pattern] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("to_char without a pattern".into()));
        };
        let of = value.data_type();
        if let (ColumnarValue::Scalar(_), ColumnarValue::Scalar(pattern)) = (value, pattern) {
            let is_datafusions = pattern.try_as_str().flatten().is_none_or(|pattern| is_datafusions(pattern, &of));
            if is_datafusions {
                return self.original.inner().invoke_with_args(args);
            }
            let (value, pattern) = (value.to_array(1)?, pattern.to_array()?);
            let shown = to_char(&value, pattern.as_string())?;
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&shown, 0)?));
        }
        let rows = args.number_rows;
        let (value, patterns) = (value.to_array(rows)?, pattern.to_array(rows)?);
        let texts = patterns.as_string::<i32>();
        let is_theirs = |text: Option<&str>| Some(text.is_some_and(|text| is_datafusions(text, &of)));
        let theirs: BooleanArray = texts.iter().map(is_theirs).collect();
        if theirs.true_count() == 0 {
            return Ok(ColumnarValue::Array(Arc::new(to_char(&value, texts)?)));
        }
        let ours = to_char(&value, nullif(&patterns, &theirs)?.as_string())?;
        let of_theirs = nullif(&patterns, &arrow::compute::not(&theirs)?)?;
        args.args = vec![ColumnarValue::Array(value), ColumnarValue::Array(of_theirs)];
        let shown = self.original.inner().invoke_with_args(args)?.to_array(rows)?;
        Ok(ColumnarValue::Array(zip(&theirs, &shown, &ours)?))
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
        static OURS: LazyLock<Signature> = LazyLock::new(|| Signature::user_defined(Volatility::Immutable));
        match self.look {
            Look::Pattern | Look::Truncation => &OURS,
            Look::Bins | Look::Growth(growth::Growth::Series) if self.has_zone => &OURS,
            _ => self.original.signature(),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.original.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let first = args.arg_fields.first().map(|field| field.data_type().clone());
        // With digits to keep, `trunc` keeps the scale.
        let is_whole = self.look == Look::Whole && args.arg_fields.len() == 1;
        let field = self.original.return_field_from_args(args)?;
        Ok(match first.as_ref().filter(|_| is_whole).and_then(whole_decimals::data_type) {
            Some(data_type) => Arc::new(field.as_ref().clone().with_data_type(data_type)),
            None if self.in_microseconds(first.as_ref()) => microseconds::field(field),
            None => field,
        })
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.look {
            Look::Replacement => replacements::in_rust(&mut args)?,
            Look::Pattern => return self.shown(args),
            Look::Date => by_pattern(&mut args)?,
            Look::Truncation => {
                if let Some(truncated) = truncation(&args)? {
                    return Ok(truncated);
                }
            }
            Look::Growth(growth) => {
                growth::check(self.name(), growth, &args)?;
                if growth == growth::Growth::Series
                    && let Some(lists) = time_series::lists(self.name(), &args)?
                {
                    return Ok(lists);
                }
                let promised = args.return_field.data_type().clone();
                let result = self.original.inner().invoke_with_args(args)?;
                return if result.data_type() == promised { Ok(result) } else { result.cast_to(&promised, None) };
            }
            Look::Bins if self.has_zone => {
                let (operands, rows) = (args.args.clone(), args.number_rows);
                let bins = self.original.inner().invoke_with_args(args)?;
                microseconds::check_bins(&operands, &bins, rows)?;
                return Ok(bins);
            }
            Look::Bins | Look::Now => {}
            Look::Whole => {
                if let [decimals] = args.args.as_slice()
                    && whole_decimals::data_type(&decimals.data_type()).is_some()
                {
                    return whole_decimals::values(self.name(), decimals);
                }
            }
            Look::Instant => {
                by_pattern(&mut args)?;
                args.args.iter().skip(1).try_for_each(with_minutes)?;
                return self.instants(args);
            }
        }
        self.original.invoke_with_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let updated = |function: &Arc<ScalarUDF>| Some(Arc::new(function.inner().with_updated_config(config)?));
        let finer = self.finer.as_ref().and_then(updated);
        let has_zone = zone_of(config).is_some();
        let original = updated(&self.original);
        if original.is_none() && has_zone == self.has_zone {
            return None;
        }
        let original = original.unwrap_or_else(|| self.original.clone());
        Some(ScalarUDF::new_from_impl(Looked { original, finer, has_zone, look: self.look }))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let simplified = self.original.simplify(args, info)?;
        Ok(match simplified {
            ExprSimplifyResult::Simplified(expr) if self.in_microseconds(None) => {
                ExprSimplifyResult::Simplified(microseconds::literal(expr))
            }
            simplified => simplified,
        })
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.original.output_ordering(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match self.look {
            Look::Pattern => coerced_of_char(arg_types),
            Look::Truncation => coerced_of_truncation(arg_types, self.has_zone),
            Look::Bins if self.has_zone => microseconds::coerced_of_bins(arg_types),
            Look::Growth(growth::Growth::Series) if self.has_zone => match time_series::coerced(arg_types) {
                Some(coerced) => Ok(coerced),
                None => coerced_by(&self.original, arg_types),
            },
            _ => self.original.coerce_types(arg_types),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }
}

/// The types of arguments as a function of DataFusion's has them.
fn coerced_by(function: &ScalarUDF, from: &[DataType]) -> Result<Vec<DataType>> {
    let fields: Vec<FieldRef> = from.iter().map(|own| Arc::new(Field::new("", own.clone(), true))).collect();
    let coerced = fields_with_udf(&fields, function)?;
    Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
}

/// The types of arguments of `to_char`: what is no number and no time is read as a timestamp.
fn coerced_of_char(from: &[DataType]) -> Result<Vec<DataType>> {
    let [value, pattern] = from else {
        return Err(DataFusionError::Plan("to_char takes a value and a pattern".into()));
    };
    let value = match value {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    let value = match value {
        text if is_text(text) || text.is_null() => DataType::Timestamp(TimeUnit::Microsecond, None),
        other if other.is_numeric() || other.is_temporal() => other.clone(),
        other => return Err(DataFusionError::Plan(format!("to_char takes a number or a time, not {other}"))),
    };
    match is_text(pattern) || pattern.is_null() {
        true => Ok(vec![value, DataType::Utf8]),
        false => Err(DataFusionError::Plan(format!("to_char takes a text as its pattern, not {pattern}"))),
    }
}

/// The types of arguments of `date_trunc`: dates have microseconds, and texts are read as timestamps.
fn coerced_of_truncation(from: &[DataType], has_zone: bool) -> Result<Vec<DataType>> {
    let [unit, time] = from else {
        return Err(DataFusionError::Plan("date_trunc takes a unit and a time".into()));
    };
    let time = match time {
        DataType::Timestamp(_, _) | DataType::Time32(_) | DataType::Time64(_) => time.clone(),
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        text if is_text(text) || text.is_null() => {
            let unit = if has_zone { TimeUnit::Microsecond } else { TimeUnit::Nanosecond };
            DataType::Timestamp(unit, None)
        }
        other => {
            return Err(DataFusionError::Plan(format!("date_trunc takes a date, a timestamp or a time, not {other}")));
        }
    };
    match is_text(unit) {
        true => Ok(vec![unit.clone(), time]),
        false => Err(DataFusionError::Plan(format!("date_trunc takes a text as its unit, not {unit}"))),
    }
}

/// Timestamps cut to a unit; none where DataFusion's function cuts them: times of day.
fn truncation(args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
    let [ColumnarValue::Scalar(unit), times] = args.args.as_slice() else { return Ok(None) };
    let Some(unit) = unit.try_as_str().flatten() else { return Ok(None) };
    match times.data_type() {
        DataType::Timestamp(_, _) => each_value(times, |times| truncated(times, unit)).map(Some),
        _ => Ok(None),
    }
}

/// Whether a pattern of `to_char` is DataFusion's for values of a type.
fn is_datafusions(pattern: &str, of: &DataType) -> bool {
    match of {
        DataType::Duration(_) => ["iso8601", "pretty"].contains(&pattern.to_lowercase().as_str()),
        DataType::Interval(_) => false,
        number if number.is_numeric() => false,
        _ => !is_pattern(pattern),
    }
}

/// A text that a pattern of PostgreSQL's reads, as times are written.
fn by_pattern(args: &mut ScalarFunctionArgs) -> Result<()> {
    let [texts, ColumnarValue::Scalar(pattern)] = args.args.as_slice() else { return Ok(()) };
    let pattern = pattern.try_as_str().flatten().filter(|pattern| is_pattern(pattern));
    let Some(pattern) = pattern.filter(|_| is_text(&texts.data_type())) else { return Ok(()) };
    let read = each_value(texts, |texts| {
        let texts = cast(texts, &DataType::Utf8)?;
        let read =
            texts.as_string::<i32>().iter().map(|text| text.map(|text| read_by_pattern(text, pattern)).transpose());
        Ok(Arc::new(read.collect::<Result<StringArray>>()?))
    })?;
    args.args = vec![read];
    args.arg_fields.truncate(1);
    Ok(())
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
