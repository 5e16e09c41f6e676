//! `typeof`: the name of a type as `CAST` takes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::Kind;
use crate::words::{sql_name, types_in_sql};

/// The function.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(TypeOf { signature: Signature::any(1, Volatility::Immutable) })
}

/// What an argument of a kind is called in an error.
pub(super) fn of_kind(kind: Kind) -> String {
    match kind {
        Kind::Any => "any".into(),
        Kind::List => "list".into(),
        Kind::Decimal => "DECIMAL".into(),
        kind => sql_name(&kind.data_type()),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeOf {
    signature: Signature,
}

impl ScalarUDFImpl for TypeOf {
    fn name(&self) -> &str {
        "typeof"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = match args.args[0].data_type() {
            DataType::Null => "NULL".to_string(),
            other => sql_name(&other),
        };
        Ok(ColumnarValue::Scalar(ScalarValue::from(name)))
    }
}

/// The name of the function that no statement calls: Arrow's name of a column's type as SQL's. Its arguments are that
/// name, and those of the catalog, the schema, the table and the column.
pub(crate) const TYPE_IN_SQL: &str = "warpcube_type_in_sql";

/// The function, which no registry has; it has names of its own for some columns.
pub(crate) fn type_in_sql(named: BTreeMap<[String; 4], &'static str>) -> Arc<ScalarUDF> {
    let signature = Signature::any(5, Volatility::Stable);
    Arc::new(ScalarUDF::new_from_impl(TypeInSql { signature, named }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeInSql {
    signature: Signature,
    named: BTreeMap<[String; 4], &'static str>,
}

impl ScalarUDFImpl for TypeInSql {
    fn name(&self) -> &str {
        TYPE_IN_SQL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let text = |value: &ColumnarValue| Ok(cast(&value.to_array(args.number_rows)?, &DataType::Utf8)?);
        let texts = args.args.iter().map(text).collect::<Result<Vec<_>>>()?;
        let columns: Vec<&StringArray> = texts.iter().map(|column| column.as_string::<i32>()).collect();
        let own = |row: usize| {
            let [_, catalog, schema, table, column] = columns.as_slice() else { return None };
            self.named.get(&[catalog, schema, table, column].map(|names| names.value(row).to_string()))
        };
        let name = |(row, name): (usize, Option<&str>)| {
            own(row).map(|name| name.to_string()).or_else(|| name.map(types_in_sql))
        };
        let named: StringArray = columns[0].iter().enumerate().map(name).collect();
        Ok(ColumnarValue::Array(Arc::new(named)))
    }
}
