//! Scalar functions that DataFusion 55.2 lacks, with the answers of PostgreSQL, or of DuckDB where PostgreSQL has none.
//!
//! Each form of a function is a line of a table ([`Own`]): its name, its arguments, the type of its values and a body
//! that computes a column from columns. Arguments are coerced to the first form that takes them without reading a text
//! as something else, then to the first that takes them at all. A row with a NULL argument has NULL.
//!
//! Functions that are no more than a name or an expression of others are lines of the table in [`crate::syntax`].

mod digests;
mod elements;
mod flatten;
mod format;
mod json;
mod json_changes;
mod json_numbers;
mod jsonb;
mod list_sums;
mod lists;
mod number_pattern;
mod numbers;
mod paths;
mod pattern;
mod reduce;
mod session;
mod strptime;
mod structs;
mod texts;
mod times;
mod truncation;
mod type_names;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Float64Array, Int64Array, ListBuilder,
    StringArray, StringBuilder, TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit, TimestampMicrosecondType,
};
use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility, lit,
};

use crate::extension_types::ExtensionType;
use crate::words::sql_name;
use crate::zone_clocks::offset_on_wall;

pub(crate) use digests::{url_decoded, uuid_of_bytes};
pub(crate) use elements::functions as of_elements;
pub(crate) use json::leads_to_several;
pub(crate) use pattern::{is_pattern, read as read_by_pattern, to_char};
pub(crate) use reduce::function as list_reduce;
pub(crate) use truncation::truncated;
pub(crate) use type_names::{TYPE_IN_SQL, type_in_sql};

/// What an argument or a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// As the type of values, a text of that extension type.
    Uuid,
    /// The same.
    Json,
    Bytes,
    Long,
    Unsigned,
    Double,
    /// A decimal; as the type of values, that of the first argument with one digit more.
    Decimal,
    Boolean,
    Date,
    /// A timestamp; of an instant its zone is kept. As the type of values, that of the first instant among the
    /// arguments, or a timestamp without a zone.
    Time,
    Interval,
    /// A list of texts.
    Texts,
    /// A list of integers.
    Longs,
    /// A list of any elements; as the type of values, that of the first argument.
    List,
    /// The sum of the elements of the first argument, a list.
    Total,
    /// How often the elements of the first argument, a list, are in it.
    Histogram,
    /// The members of all arguments, which are structs.
    Joined,
    /// The map of the first argument, or of the pairs of which it is a list.
    Mapped,
    /// Anything, as it is.
    Any,
}

use Kind::{
    Any, Boolean, Bytes, Date, Decimal, Double, Histogram, Interval, Joined, Json, List, Long, Longs, Mapped, Text,
    Texts, Time, Total, Unsigned, Uuid,
};

impl Kind {
    fn data_type(self) -> DataType {
        match self {
            Text | Uuid | Json => DataType::Utf8,
            Bytes => DataType::Binary,
            Long => DataType::Int64,
            Unsigned => DataType::UInt64,
            Double => DataType::Float64,
            Boolean => DataType::Boolean,
            Date => DataType::Date32,
            Time => DataType::Timestamp(TimeUnit::Microsecond, None),
            Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Texts => DataType::new_list(DataType::Utf8, true),
            Longs => DataType::new_list(DataType::Int64, true),
            Any | Decimal | List | Histogram | Joined | Total | Mapped => DataType::Null,
        }
    }

    /// The type that a value of another becomes as such an argument; none if it is none. Texts are read as times and
    /// intervals if they `may_be_read`.
    fn taken(self, from: &DataType, may_be_read: bool) -> Option<DataType> {
        let from = match from {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        let is_bytes = matches!(from, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
            || matches!(from, DataType::FixedSizeBinary(_));
        let is_date = matches!(from, DataType::Date32 | DataType::Date64);
        let is_taken = from.is_null()
            || match self {
                Text | Uuid | Json => from.is_string(),
                Bytes => is_bytes,
                Long | Unsigned => from.is_integer(),
                Double => from.is_numeric(),
                Decimal => matches!(from, DataType::Decimal128(_, _)),
                Boolean => *from == DataType::Boolean,
                Date => is_date,
                Time => is_date || matches!(from, DataType::Timestamp(_, _)) || may_be_read && from.is_string(),
                Interval => {
                    matches!(from, DataType::Interval(_) | DataType::Duration(_)) || may_be_read && from.is_string()
                }
                Texts | Longs | List => {
                    matches!(from, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _))
                }
                Any => true,
                Histogram | Joined | Total | Mapped => false,
            };
        is_taken.then(|| match (self, from) {
            (Any | Decimal, from) => from.clone(),
            (Time, DataType::Timestamp(_, zone)) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            (List, DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _)) => {
                DataType::List(field.clone())
            }
            (List, _) => DataType::new_list(DataType::Null, true),
            (kind, _) => kind.data_type(),
        })
    }
}

/// One form of a function: its name, its arguments, the type of its values, and how they are computed.
struct Own {
    name: &'static str,
    takes: &'static [Kind],
    /// Whether the last argument may be left out or repeated.
    repeats_last: bool,
    gives: Kind,
    rows: fn(&Arguments) -> Result<ArrayRef>,
}

impl Own {
    const fn new(
        name: &'static str,
        takes: &'static [Kind],
        gives: Kind,
        rows: fn(&Arguments) -> Result<ArrayRef>,
    ) -> Own {
        Own { name, takes, repeats_last: false, gives, rows }
    }

    const fn repeating_last(self) -> Own {
        Own { repeats_last: true, ..self }
    }

    /// The types that arguments become; none if the form does not take them.
    fn coerced(&self, from: &[DataType], may_be_read: bool) -> Option<Vec<DataType>> {
        let fits = self.takes.len() == from.len() || self.repeats_last && from.len() + 1 >= self.takes.len();
        let kind = |place: usize| self.takes[place.min(self.takes.len() - 1)];
        let taken = || from.iter().enumerate().map(|(at, from)| kind(at).taken(from, may_be_read)).collect();
        fits.then(taken).flatten()
    }

    /// The form as it is called.
    fn shown(&self) -> String {
        let mut names: Vec<String> = self.takes.iter().map(|kind| type_names::of_kind(*kind)).collect();
        names.extend(self.repeats_last.then(|| "…".to_string()));
        format!("{}({})", self.name, names.join(", "))
    }
}

/// All forms.
fn all() -> impl Iterator<Item = &'static Own> {
    let tables = [
        digests::ALL,
        format::ALL,
        json::ALL,
        json_changes::ALL,
        jsonb::ALL,
        list_sums::ALL,
        lists::ALL,
        numbers::ALL,
        paths::ALL,
        session::ALL,
        strptime::ALL,
        structs::ALL,
        texts::ALL,
        times::ALL,
    ];
    tables.into_iter().flatten()
}

/// The functions, for a session.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let mut by_name: BTreeMap<&str, Vec<&'static Own>> = BTreeMap::new();
    for own in all() {
        by_name.entry(own.name).or_default().push(own);
    }
    let made = |(name, forms)| {
        let signature = Signature::new(TypeSignature::UserDefined, Volatility::Immutable);
        ScalarUDF::new_from_impl(OwnFunction { name, forms, signature })
    };
    by_name.into_iter().map(made).chain([flatten::function(), type_names::function()])
}

/// Characters of a text between two places: `s[first:last]`.
pub(crate) fn text_slice(text: Expr, first: Expr, last: Expr) -> Option<Expr> {
    let function = functions().find(|function| function.name() == "text_slice")?;
    Some(function.call(vec![text, first, last]))
}

/// The extension type of what a function gives.
pub(crate) fn extension_type(function: &ScalarUDF) -> Option<ExtensionType> {
    let Some(own) = function.inner().downcast_ref::<OwnFunction>() else {
        return (function.name() == "uuid").then_some(ExtensionType::Uuid);
    };
    match own.forms.first()?.gives {
        Uuid => Some(ExtensionType::Uuid),
        Json => Some(ExtensionType::Json),
        _ => None,
    }
}

/// A text as a value of an extension type.
///
/// # Errors
/// A text that is none.
pub(crate) fn read_as(to: ExtensionType, text: &str) -> Result<String> {
    match to {
        ExtensionType::Uuid => digests::uuid(text),
        ExtensionType::Json => json::checked(text),
    }
}

/// JSON as an argument of a function that writes JSON, which is not written as a text.
pub(crate) fn as_it_is(json: Expr) -> Expr {
    json::as_it_is(json)
}

/// The function that reads texts as values of an extension type.
pub(crate) fn reader(to: ExtensionType) -> Result<Arc<ScalarUDF>> {
    own(to.reader())
}

fn own(name: &str) -> Result<Arc<ScalarUDF>> {
    static OWN: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| functions().map(Arc::new).collect());
    let found = OWN.iter().find(|function| function.name() == name);
    found.cloned().ok_or_else(|| DataFusionError::Internal(format!("no function {name}")))
}

/// A double as a whole number, halves as the even one.
pub(crate) fn rounded_even(double: Expr) -> Option<Expr> {
    Some(own("round_even").ok()?.call(vec![double, lit(0_i64)]))
}

/// The text that bytes are in UTF-8.
pub(crate) fn decoded(bytes: Expr) -> Result<Expr> {
    Ok(own("decode")?.call(vec![bytes]))
}

/// How many bytes there are.
pub(crate) fn byte_count(arguments: Vec<Expr>) -> Result<Expr> {
    Ok(own("octet_length")?.call(arguments))
}

/// What a path or a number finds in JSON: `j['a']`.
pub(crate) fn in_json(json: Expr, path: Expr) -> Option<Expr> {
    Some(own("json_extract").ok()?.call(vec![json, path]))
}

/// Whether JSON covers other JSON: `j @> part`.
pub(crate) fn covers(whole: Expr, part: Expr) -> Result<Expr> {
    Ok(own("jsonb_contains")?.call(vec![whole, part]))
}

/// A list in an order, where the elements have keys of their own; `arguments` are those of `array_sort`.
pub(crate) fn sorted_list(arguments: Vec<Expr>) -> Option<Expr> {
    let list = arguments.first()?.clone();
    Some(own("list_select").ok()?.call(vec![list, own("list_grade_up").ok()?.call(arguments)]))
}

/// The function that reads lists of texts as lists of UUIDs.
pub(crate) fn reader_of_lists() -> Result<Arc<ScalarUDF>> {
    own("as_uuids")
}

/// Whether a function of ours takes instants apart, or writes them, in the session's zone.
pub(crate) fn takes_apart(name: &str) -> bool {
    let writes = |own: &Own| own.takes.contains(&Any) && matches!(own.gives, Json | Text);
    all().any(|own| own.name == name && (own.takes.contains(&Time) || writes(own)))
}

/// The columns that a function is computed of.
struct Arguments {
    columns: Vec<ArrayRef>,
    rows: usize,
    options: Arc<ConfigOptions>,
}

impl Arguments {
    fn text(&self, place: usize) -> &StringArray {
        self.columns[place].as_string()
    }

    fn bytes(&self, place: usize) -> &BinaryArray {
        self.columns[place].as_binary()
    }

    fn longs(&self, place: usize) -> &Int64Array {
        self.columns[place].as_primitive::<Int64Type>()
    }

    fn doubles(&self, place: usize) -> &Float64Array {
        self.columns[place].as_primitive::<Float64Type>()
    }

    fn interval(&self, place: usize, row: usize) -> IntervalMonthDayNano {
        self.columns[place].as_primitive::<IntervalMonthDayNanoType>().value(row)
    }

    fn date(&self, place: usize, row: usize) -> i32 {
        self.columns[place].as_primitive::<Date32Type>().value(row)
    }

    /// What a clock on a wall shows, of an instant in its zone.
    fn time(&self, place: usize, row: usize) -> Result<NaiveDateTime> {
        let column = &self.columns[place];
        let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
        let time = time_of(micros)?;
        let DataType::Timestamp(_, Some(zone)) = column.data_type() else { return Ok(time) };
        Ok(time + Tz::from_str(zone)?.offset_from_utc_datetime(&time).fix())
    }

    /// The type of the first instant among the arguments.
    fn instant(&self) -> Option<DataType> {
        let types: Vec<DataType> = self.columns.iter().map(|column| column.data_type().clone()).collect();
        instant_among(&types).cloned()
    }

    /// The microseconds of a time: since 1970 in UTC beside an instant, `zoned`, in whose zone a time without one is.
    fn micros(&self, place: usize, row: usize, zoned: Option<&DataType>) -> Result<i64> {
        let column = &self.columns[place];
        let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
        match (column.data_type(), zoned) {
            (DataType::Timestamp(_, None), Some(DataType::Timestamp(_, Some(zone)))) => {
                // Where clocks show a time twice or never, that of standard time, as casts have it.
                let offset = i64::from(offset_on_wall(&Tz::from_str(zone)?, time_of(micros)?));
                Ok(micros - offset * 1_000_000)
            }
            _ => Ok(micros),
        }
    }

    /// The value of each row that has all its arguments.
    fn each<T>(&self, mut value: impl FnMut(usize) -> Result<Option<T>>) -> Result<Vec<Option<T>>> {
        // A column of the type NULL keeps no bits for its rows.
        let has = |column: &ArrayRef, row| !column.data_type().is_null() && column.is_valid(row);
        let has_all = |row: usize| self.columns.iter().all(|column| has(column, row));
        (0..self.rows).map(|row| if has_all(row) { value(row) } else { Ok(None) }).collect()
    }

    fn texts(&self, value: impl FnMut(usize) -> Result<Option<String>>) -> Result<ArrayRef> {
        Ok(Arc::new(StringArray::from_iter(self.each(value)?)))
    }

    fn blobs(&self, value: impl FnMut(usize) -> Result<Option<Vec<u8>>>) -> Result<ArrayRef> {
        Ok(Arc::new(BinaryArray::from_iter(self.each(value)?)))
    }

    fn integers(&self, value: impl FnMut(usize) -> Result<Option<i64>>) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from_iter(self.each(value)?)))
    }

    fn floats(&self, value: impl FnMut(usize) -> Result<Option<f64>>) -> Result<ArrayRef> {
        Ok(Arc::new(Float64Array::from_iter(self.each(value)?)))
    }

    fn booleans(&self, value: impl FnMut(usize) -> Result<Option<bool>>) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::from_iter(self.each(value)?)))
    }

    fn dates(&self, value: impl FnMut(usize) -> Result<Option<i32>>) -> Result<ArrayRef> {
        Ok(Arc::new(Date32Array::from_iter(self.each(value)?)))
    }

    fn times(&self, value: impl FnMut(usize) -> Result<Option<NaiveDateTime>>) -> Result<ArrayRef> {
        let micros = self.each(value)?.into_iter().map(|time| time.map(|time| time.and_utc().timestamp_micros()));
        Ok(Arc::new(TimestampMicrosecondArray::from_iter(micros)))
    }

    fn lists(&self, value: impl FnMut(usize) -> Result<Option<Vec<String>>>) -> Result<ArrayRef> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for list in self.each(value)? {
            lists.append_option(list.map(|list| list.into_iter().map(Some)));
        }
        Ok(Arc::new(lists.finish()))
    }
}

/// The type of the first instant among arguments.
fn instant_among(types: &[DataType]) -> Option<&DataType> {
    types.iter().find(|found| matches!(found, DataType::Timestamp(_, Some(_))))
}

/// A time by microseconds since 1970.
fn time_of(micros: i64) -> Result<NaiveDateTime> {
    let time = DateTime::from_timestamp_micros(micros).map(|time| time.naive_utc());
    time.ok_or_else(|| raised("a time that no calendar has".into()))
}

/// The error of a row.
fn raised(reason: String) -> DataFusionError {
    DataFusionError::Execution(reason)
}

/// A function of the tables in a session.
#[derive(Debug)]
struct OwnFunction {
    name: &'static str,
    forms: Vec<&'static Own>,
    signature: Signature,
}

impl OwnFunction {
    /// The form of a call with coerced arguments.
    fn form(&self, types: &[DataType]) -> Result<&'static Own> {
        let form = self.forms.iter().find(|form| form.coerced(types, false).is_some_and(|coerced| coerced == types));
        form.copied().ok_or_else(|| DataFusionError::Internal(format!("{} has not been coerced", self.name)))
    }
}

impl std::fmt::Debug for Own {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown())
    }
}

impl PartialEq for OwnFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OwnFunction {}

impl Hash for OwnFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OwnFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, from: &[DataType]) -> Result<Vec<DataType>> {
        let coerced = |may_be_read| self.forms.iter().find_map(|form| form.coerced(from, may_be_read));
        coerced(false).or_else(|| coerced(true)).ok_or_else(|| {
            let called: Vec<String> = from.iter().map(sql_name).collect();
            let forms: Vec<String> = self.forms.iter().map(|form| form.shown()).collect();
            let (name, called, forms) = (self.name, called.join(", "), forms.join(", "));
            DataFusionError::Plan(format!("{name}({called}) does not exist; there are {forms}; a CAST may be missing"))
        })
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match (self.form(arguments)?.gives, arguments.first()) {
            (List, Some(DataType::List(field))) => DataType::List(Arc::new(field.as_ref().clone().with_nullable(true))),
            (Decimal, Some(DataType::Decimal128(precision, scale))) => numbers::one_digit_more(*precision, *scale),
            (Joined, _) => structs::joined_type(arguments)?,
            (Total, Some(DataType::List(field))) => list_sums::total_type(field.data_type())?,
            (Histogram, Some(DataType::List(field))) => lists::histogram_type(field.data_type()),
            // NULL says nothing of a type.
            (Mapped, Some(first)) => lists::map_type(arguments.iter().find(|it| !it.is_null()).unwrap_or(first))?,
            (Time, _) => instant_among(arguments).cloned().unwrap_or_else(|| Time.data_type()),
            (gives, _) => gives.data_type(),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let form = self.form(&types)?;
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<_>>()?;
        let values = (form.rows)(&Arguments { columns, rows, options: args.config_options })?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
            false => ColumnarValue::Array(values),
        })
    }
}
