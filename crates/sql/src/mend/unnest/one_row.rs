//! A value of a scalar subquery that may have had several rows: the rows that read it raise.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const NAME: &str = "warpcube_one_row";

/// The function of a name, for plans that come from another session.
pub(in super::super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    (name == NAME).then(|| Arc::new(OneRow::function()))
}

/// A value, if it is that of one row at most.
pub(super) fn one_row(value: Expr, rows: Expr) -> Expr {
    OneRow::function().call(vec![value, rows])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneRow(Signature);

impl OneRow {
    fn function() -> ScalarUDF {
        ScalarUDF::new_from_impl(OneRow(Signature::any(2, Volatility::Immutable)))
    }
}

impl ScalarUDFImpl for OneRow {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, rows] = arguments.args.as_slice() else {
            return Err(DataFusionError::Internal(format!("{NAME} has two arguments")));
        };
        let rows = rows.to_array(arguments.number_rows)?;
        if rows.as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1) {
            return Err(DataFusionError::Execution("Scalar subquery returned more than one row".into()));
        }
        Ok(value.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::Field;
    use datafusion::config::ConfigOptions;

    use super::*;

    #[test]
    fn several_rows_raise() {
        let column = |values: Vec<Option<i64>>| ColumnarValue::Array(Arc::new(Int64Array::from(values)) as ArrayRef);
        let found = function(NAME).expect("a function of that name");
        let value = |rows: Vec<Option<i64>>| {
            let field = Arc::new(Field::new("value", DataType::Int64, true));
            found.invoke_with_args(ScalarFunctionArgs {
                args: vec![column(vec![Some(7), None]), column(rows)],
                arg_fields: vec![field.clone(), field.clone()],
                number_rows: 2,
                return_field: field,
                config_options: Arc::new(ConfigOptions::default()),
            })
        };
        assert!(value(vec![Some(1), None]).is_ok());
        assert!(value(vec![Some(1), Some(2)]).unwrap_err().to_string().contains("more than one row"));
    }
}
