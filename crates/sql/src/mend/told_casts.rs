//! Calls in place of casts, whose names have the casts: those of keys of groups (`syntax/told_casts.rs`).
//!
//! A call stands from the planner to the first rule of the analyzer, which takes it away and leaves the names that it
//! made. The file goes with the other.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use crate::walk::{PlanWalk, Walk};

static TOLD: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Told { signature: Signature::any(1, Volatility::Immutable) })));

/// A cast as a call.
pub(super) fn told(cast: Expr) -> Expr {
    TOLD.call(vec![cast])
}

/// The rule, before all others.
#[derive(Debug)]
pub(super) struct ToldCasts;

impl AnalyzerRule for ToldCasts {
    fn name(&self) -> &str {
        "told_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_told = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.func.inner().is::<Told>());
        let plain = plan.transform_up_nested(|plan| {
            each_expression(plan, is_told, |expr, _| {
                expr.transform_up(|expr| {
                    Ok(match expr {
                        Expr::ScalarFunction(mut call) if call.func.inner().is::<Told>() => {
                            Transformed::yes(call.args.remove(0))
                        }
                        other => Transformed::no(other),
                    })
                })
            })
        })?;
        Ok(plain.data)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Told {
    signature: Signature,
}

impl ScalarUDFImpl for Told {
    fn name(&self) -> &str {
        "warpcube_told"
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(arguments[0].to_string())
    }

    fn display_name(&self, arguments: &[Expr]) -> Result<String> {
        self.schema_name(arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(arguments.arg_fields[0].clone())
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(arguments.args.remove(0))
    }
}
