//! Functions of numbers that are defined on a part of them alone: `sqrt`, `ln`, `log2`, `log10`, `acos`, `asin`,
//! `acosh` and `atanh`.
//!
//! DataFusion 55.2 asks each of them how it orders a column, and they fail where the column's bounds reach out of their
//! domain. The plan of `ORDER BY sqrt(x)` over several partitions then has no order at all, which a check finds: the
//! statement ends with an error of the planner. Here a function of which no order is known has none.
//!
//! The file goes once `output_ordering` of these functions does not fail.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The functions.
const NAMES: [&str; 8] = ["sqrt", "ln", "log2", "log10", "acos", "asin", "acosh", "atanh"];

/// Those that a session knows, mended.
pub(crate) fn functions(state: &SessionState) -> Vec<ScalarUDF> {
    let mended = |name: &&str| Some(ScalarUDF::new_from_impl(OnItsDomain(state.udf(name).ok()?)));
    NAMES.iter().filter_map(mended).collect()
}

/// A function that is ordered where it says so without an error.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnItsDomain(Arc<ScalarUDF>);

impl ScalarUDFImpl for OnItsDomain {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.0.simplify(args, info)
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.0.evaluate_bounds(input)
    }

    fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>> {
        self.0.propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(self.0.output_ordering(inputs).unwrap_or(SortProperties::Unordered))
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}
