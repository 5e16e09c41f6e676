//! `typeof`: the name of a type as `CAST` takes it.

use std::sync::{Arc, LazyLock};

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

/// The name of the function that no statement calls: Arrow's name of a type as SQL's.
pub(crate) const TYPE_IN_SQL: &str = "warpcube_type_in_sql";

/// The function, which no registry has.
pub(crate) fn type_in_sql() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(TypeInSql { signature }))
    });
    FUNCTION.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeInSql {
    signature: Signature,
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
        let names = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8)?;
        let named: StringArray = names.as_string::<i32>().iter().map(|name| name.map(types_in_sql)).collect();
        Ok(ColumnarValue::Array(Arc::new(named)))
    }
}
