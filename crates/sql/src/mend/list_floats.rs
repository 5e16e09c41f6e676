//! Functions that compare values of lists: NaNs of any bits are one value there, and so are zeros of both signs.
//!
//! DataFusion 55.2 compares values of lists by their bits: `array_position([-0e0], 0e0)` is NULL, and
//! `array_distinct([-0e0, 0e0])` keeps both. Here these functions are given lists and values of one NaN and one zero,
//! which is also what they give back. So are maps made of such keys, and keys looked up in them.
//!
//! The file goes once they compare as `=` does.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::canonical::is_constant;
use crate::canonical_floats::{canonical, holds_floats, with_canonical_keys};

/// Functions that compare values of lists.
const NAMES: [&str; 20] = [
    "array_distinct",
    "array_except",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "array_max",
    "array_min",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_sort",
    "array_union",
    MAP,
    MAP_EXTRACT,
];
/// The function that makes a map of a list of keys and one of values.
const MAP: &str = "map";
/// The function that looks a key up.
const MAP_EXTRACT: &str = "map_extract";

/// Whether an expression is a call of such a function.
pub(super) fn is_of_lists(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if NAMES.contains(&function.name()))
}

/// A call of such a function over floats, over one NaN and one zero; any other expression as it is.
pub(super) fn of_one_value(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let holds = |value: &Expr| value.get_type(schema).is_ok_and(|data_type| holds_floats(&data_type));
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args })
            if NAMES.contains(&func.name()) && !func.inner().is::<OfOneValue>() && args.iter().any(holds) =>
        {
            let func = Arc::new(ScalarUDF::new_from_impl(OfOneValue(func)));
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
        }
        other => Transformed::no(other),
    }
}

/// A function of DataFusion's over one NaN and one zero.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfOneValue(Arc<ScalarUDF>);

impl ScalarUDFImpl for OfOneValue {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.0.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(arguments)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    /// `array_has` becomes a list of IN, which [`super::nan`] mends where the value is no constant.
    fn simplify(&self, arguments: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match arguments.last().is_some_and(|value| !is_constant(value)) {
            true => self.0.simplify(arguments, info),
            false => Ok(ExprSimplifyResult::Original(arguments)),
        }
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // Values of maps keep their bits.
        let compared = if self.name() == MAP { 1 } else { arguments.args.len() };
        for argument in &mut arguments.args[..compared] {
            let one = if matches!(argument.data_type(), DataType::Map(..)) { with_canonical_keys } else { canonical };
            match argument {
                ColumnarValue::Array(array) => *array = one(array),
                ColumnarValue::Scalar(value) if holds_floats(&value.data_type()) => {
                    *value = ScalarValue::try_from_array(&one(&value.to_array()?), 0)?;
                }
                ColumnarValue::Scalar(_) => {}
            }
        }
        self.0.invoke_with_args(arguments)
    }
}
