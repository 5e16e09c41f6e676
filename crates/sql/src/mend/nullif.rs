//! NULLIF of floats, to which zeros of both signs are equal, as they are to `=`, and of lists and structs with floats
//! within.
//!
//! DataFusion compares the bits. Unnecessary once it compares as `=` does.

use std::sync::{Arc, LazyLock};

use arrow::compute::kernels::cmp::eq;
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::utils::normalize_float_zero;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::canonical::is_compared;
use crate::nested_keys::keys;

static NULLIF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(NullIf { signature: Signature::any(2, Volatility::Immutable) }))
});

/// Whether a function is DataFusion's `nullif` of floats, or of values with floats within.
pub(super) fn is_of_floats(function: &ScalarFunction, schema: &DFSchema) -> bool {
    let is_own = function.func.inner().is::<NullIf>();
    function.name() == "nullif" && !is_own && function.args.first().is_some_and(|value| is_compared(value, schema))
}

/// `nullif(…)` of two such values of one type.
pub(super) fn of_floats(arguments: Vec<Expr>) -> Expr {
    NULLIF.call(arguments)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullIf {
    signature: Signature,
}

impl ScalarUDFImpl for NullIf {
    fn name(&self) -> &str {
        "nullif"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = arguments.args[0].to_array(arguments.number_rows)?;
        let unwanted = arguments.args[1].to_array(arguments.number_rows)?;
        let equal = match values.data_type().is_nested() {
            true => eq(&keys(&values)?, &keys(&unwanted)?)?,
            false => eq(&normalize_float_zero(&values), &normalize_float_zero(&unwanted))?,
        };
        Ok(ColumnarValue::Array(nullif(&values, &equal)?))
    }
}
