//! Values that a text format has no word for.
//!
//! The defect: arrow's writer of JSON (59) writes NULL for NaN and the infinities, and both writers of text write bytes
//! as digits that are read back as text; of dates and times past the calendar that of JSON writes the text of an error.
//! Here bytes are refused, and a value that is no number, or that no calendar has, ends the statement. The writer of
//! CSV refuses lists, structs and maps, which are written as their texts. Intervals are written as casts write them.
//!
//! It goes when the writers refuse what they cannot write, and that of CSV writes lists.

use arrow::array::{Array, AsArray, downcast_dictionary_array, new_empty_array};
use arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::common::{Column, Result};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};

use crate::error::SqlError;
use crate::mend::calendar::beyond;
use crate::nested_texts::{is_nested, with_texts_of_intervals};
use crate::text_bytes::is_bytes;
use crate::time_texts::is_interval;
use crate::words::sql_name;

/// The rows of `input`, each value of which a format (by its extension) has a word for.
pub(super) fn lossless(input: LogicalPlan, format: &str) -> crate::error::Result<LogicalPlan> {
    if !matches!(format, "csv" | "json") {
        return Ok(input);
    }
    let schema = input.schema();
    if let Some(field) = schema.fields().iter().find(|field| any(field.data_type(), &is_bytes)) {
        let (name, format) = (field.name(), format.to_uppercase());
        return Err(SqlError::Unsupported(format!(
            "bytes in {format} (column '{name}'); write encode({name}, 'hex') or encode({name}, 'base64')"
        )));
    }
    let is_csv = format == "csv";
    // The writers have a text of their own for intervals.
    let is_text = |field: &FieldRef| is_nested(field.data_type()) || is_interval(field.data_type());
    if is_csv && !schema.fields().iter().any(is_text) {
        return Ok(input);
    }
    // Types are settled when the plan is analysed: any column may become one of floats or dates.
    let of_sink = |(column, field): (Column, &FieldRef)| {
        let value = Expr::Column(column.clone());
        let written = match is_csv {
            true if is_text(field) => cast(value, DataType::Utf8),
            true => return value,
            false => ScalarUDF::from(Writable::new(&column.name)).call(vec![value]),
        };
        written.alias_qualified(column.relation, column.name)
    };
    let columns: Vec<Expr> = schema.columns().into_iter().zip(schema.fields()).map(of_sink).collect();
    Ok(LogicalPlanBuilder::from(input).project(columns)?.build()?)
}

/// Whether a type or one within it is of a kind.
fn any(data_type: &DataType, is_one: &dyn Fn(&DataType) -> bool) -> bool {
    use DataType::{Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded, Struct};
    match data_type {
        List(field)
        | LargeList(field)
        | ListView(field)
        | LargeListView(field)
        | FixedSizeList(field, _)
        | Map(field, _)
        | RunEndEncoded(_, field) => any(field.data_type(), is_one),
        Struct(fields) => fields.iter().any(|field| any(field.data_type(), is_one)),
        Dictionary(_, values) => any(values, is_one),
        plain => is_one(plain),
    }
}

/// Why JSON has no word for a value of a column, or for one within it: NaN and the infinities are no numbers there, and
/// a date or a time may be past the calendar.
pub fn unwritable(column: &str, array: &dyn Array) -> Option<String> {
    let no_number = || {
        format!(
            "column '{column}' has NaN or an infinity, which JSON has no number for; write it as text (CAST {column} \
             AS VARCHAR) or leave it out"
        )
    };
    let no_date = || {
        let kind = sql_name(array.data_type());
        format!("column '{column}' of {kind} has a value that no calendar has; write it as a number or leave it out")
    };
    let is_beyond = |array: &dyn Array| beyond(array).is_some_and(|beyond| beyond.true_count() > 0);
    has(array, &is_no_number).then(no_number).or_else(|| has(array, &is_beyond).then(no_date))
}

fn is_no_number(array: &dyn Array) -> bool {
    match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().iter().flatten().any(|value| !value.is_finite()),
        DataType::Float32 => array.as_primitive::<Float32Type>().iter().flatten().any(|value| !value.is_finite()),
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().flatten().any(|value| !value.is_finite()),
        _ => false,
    }
}

/// Whether an array is one that is sought, or has one within.
fn has(array: &dyn Array, is_sought: &dyn Fn(&dyn Array) -> bool) -> bool {
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().iter().flatten().any(|list| has(&list, is_sought)),
        DataType::LargeList(_) => array.as_list::<i64>().iter().flatten().any(|list| has(&list, is_sought)),
        DataType::FixedSizeList(_, _) => array.as_fixed_size_list().iter().flatten().any(|list| has(&list, is_sought)),
        DataType::Map(_, _) => array.as_map().iter().flatten().any(|entries| has(&entries, is_sought)),
        DataType::Struct(_) => array.as_struct().columns().iter().any(|column| has(column, is_sought)),
        DataType::Dictionary(_, _) => downcast_dictionary_array!(
            array => has(array.values(), is_sought),
            _ => false
        ),
        _ => is_sought(array),
    }
}

/// Its argument with intervals as texts, or an error where JSON has no word for a value of it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Writable {
    column: String,
    signature: Signature,
}

impl Writable {
    fn new(column: &str) -> Writable {
        // Volatile: no rule may conclude anything of what it does not give.
        Writable { column: column.to_string(), signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Writable {
    fn name(&self) -> &str {
        "writable_in_json"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let values = new_empty_array(arguments.first().unwrap_or(&DataType::Null));
        Ok(with_texts_of_intervals(&values)?.data_type().clone())
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = arguments.args.swap_remove(0);
        let rows = arguments.number_rows;
        let reason = match &value {
            ColumnarValue::Array(array) => unwritable(&self.column, array),
            ColumnarValue::Scalar(scalar) if rows > 0 => unwritable(&self.column, &scalar.to_array()?),
            ColumnarValue::Scalar(_) => None,
        };
        match reason {
            Some(reason) => Err(DataFusionError::Execution(reason)),
            None => Ok(ColumnarValue::Array(with_texts_of_intervals(&value.to_array(rows)?)?)),
        }
    }
}
