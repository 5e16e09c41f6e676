//! Values that a text format has no word for.
//!
//! The defect: arrow's writer of JSON (59) writes NULL for NaN and the infinities, and both writers of text write bytes
//! as digits that are read back as text. Here bytes are refused, and a value that is no number ends the statement.
//!
//! It goes when the writers refuse what they cannot write.

use arrow::array::{Array, AsArray, downcast_dictionary_array};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion::common::{Column, Result};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::error::SqlError;

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
    if format == "csv" {
        return Ok(input);
    }
    // Types are settled when the plan is analysed: any column may become one of floats.
    let of_sink = |column: Column| {
        let finite = ScalarUDF::from(Finite::new(&column.name)).call(vec![Expr::Column(column.clone())]);
        finite.alias_qualified(column.relation, column.name)
    };
    let columns: Vec<Expr> = schema.columns().into_iter().map(of_sink).collect();
    Ok(LogicalPlanBuilder::from(input).project(columns)?.build()?)
}

fn is_bytes(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(kind, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
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

/// Whether a value of an array, or within one, is NaN or infinite, which JSON has no number for.
pub fn has_no_number(array: &dyn Array) -> bool {
    match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().iter().flatten().any(|value| !value.is_finite()),
        DataType::Float32 => array.as_primitive::<Float32Type>().iter().flatten().any(|value| !value.is_finite()),
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().flatten().any(|value| !value.is_finite()),
        DataType::List(_) => array.as_list::<i32>().iter().flatten().any(|list| has_no_number(&list)),
        DataType::LargeList(_) => array.as_list::<i64>().iter().flatten().any(|list| has_no_number(&list)),
        DataType::FixedSizeList(_, _) => array.as_fixed_size_list().iter().flatten().any(|list| has_no_number(&list)),
        DataType::Map(_, _) => array.as_map().iter().flatten().any(|entries| has_no_number(&entries)),
        DataType::Struct(_) => array.as_struct().columns().iter().any(|column| has_no_number(column)),
        DataType::Dictionary(_, _) => downcast_dictionary_array!(
            array => has_no_number(array.values()),
            _ => false
        ),
        _ => false,
    }
}

/// The error of a column with a value that is no number.
pub fn no_number(column: &str) -> String {
    format!(
        "column '{column}' has NaN or an infinity, which JSON has no number for; write it as text (CAST {column} AS \
         VARCHAR) or leave it out"
    )
}

/// Its argument, or an error where a value of it is no number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Finite {
    column: String,
    signature: Signature,
}

impl Finite {
    fn new(column: &str) -> Finite {
        // Volatile: no rule may conclude anything of what it does not give.
        Finite { column: column.to_string(), signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for Finite {
    fn name(&self) -> &str {
        "finite_in_json"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = arguments.args.swap_remove(0);
        let rows = arguments.number_rows;
        let is_wrong = match &value {
            ColumnarValue::Array(array) => has_no_number(array),
            ColumnarValue::Scalar(scalar) => rows > 0 && has_no_number(&scalar.to_array()?),
        };
        match is_wrong {
            true => Err(DataFusionError::Execution(no_number(&self.column))),
            false => Ok(value),
        }
    }
}
