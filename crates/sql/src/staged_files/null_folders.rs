//! Keys that are NULL in statements that write into folders `key=value`.
//!
//! The defect: DataFusion 55.2 (`datafusion-datasource/src/write/demux.rs`) takes the value below a NULL for the name
//! of its folder: 0, 1970-01-01, false or nothing. Here keys are text before they reach it, with the name that stands
//! for NULL in NULL's place; that makes keys of other types work too (decimals, timestamps). Where the columns stay in
//! the files besides (`keep_partition_by_columns`) they must keep their types, so that a key that is NULL is an error.
//!
//! It goes when the demultiplexer looks at validity.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast, lit, when,
};

use crate::catalog::NULL_KEY;

/// The rows of `input` with `keys` as the sink has to be given them: values of their types, where a table has types for
/// them. `kept` says that they stay in the files.
pub(super) fn with_null_folders(
    input: LogicalPlan,
    keys: &[(String, Option<DataType>)],
    kept: bool,
) -> Result<LogicalPlan> {
    let of_sink = |column: Column| {
        let column_expr = Expr::Column(column.clone());
        let Some((_, kind)) = keys.iter().find(|(key, _)| *key == column.name) else { return Ok(column_expr) };
        let column_expr = match kind {
            Some(kind) => cast(column_expr, kind.clone()),
            None => column_expr,
        };
        let key = match kept {
            true => ScalarUDF::from(NotNull::new(&column.name)).call(vec![column_expr]),
            false => when(column_expr.clone().is_null(), lit(NULL_KEY)).otherwise(cast(column_expr, DataType::Utf8))?,
        };
        Ok(key.alias_qualified(column.relation, column.name))
    };
    let columns = input.schema().columns().into_iter().map(of_sink).collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(Arc::new(input)).project(columns)?.build()
}

/// Its argument, or an error where that is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NotNull {
    column: String,
    signature: Signature,
}

impl NotNull {
    fn new(column: &str) -> NotNull {
        // Volatile: no rule may conclude anything of what it does not give.
        NotNull { column: column.to_string(), signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for NotNull {
    fn name(&self) -> &str {
        "not_null_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = arguments.args.swap_remove(0);
        let is_null = match &value {
            ColumnarValue::Array(array) => array.logical_null_count() > 0,
            ColumnarValue::Scalar(scalar) => scalar.is_null(),
        };
        match is_null && arguments.number_rows > 0 {
            true => exec_err!(
                "column '{}' is NULL, which no folder can stand for while the column is kept in its files \
                 (datafusion.execution.keep_partition_by_columns)",
                self.column
            ),
            false => Ok(value),
        }
    }
}
