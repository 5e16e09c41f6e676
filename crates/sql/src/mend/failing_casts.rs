//! A cast of a constant that fails raises where a row computes it, and nowhere else.
//!
//! DataFusion 55.2 raises the error of such a cast while it plans, though it leaves other constants that fail, as
//! `1 / 0`, to their rows: `CASE WHEN false THEN CAST('x' AS INT) ELSE 1 END` is an error there. Here the cast is a
//! function with the same error.
//!
//! The file goes once the simplifier leaves these casts as they are.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;

/// The rule, once types are coerced and casts mended.
#[derive(Debug)]
pub(super) struct FailingCasts;

impl AnalyzerRule for FailingCasts {
    fn name(&self) -> &str {
        "failing_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mended = plan.transform_up_with_subqueries(|plan| {
            // Each of its rows is computed.
            if matches!(plan, LogicalPlan::Values(_)) {
                return Ok(Transformed::no(plan));
            }
            each_expression(plan, fails, |expr, _| {
                expr.transform_up(|expr| match expr {
                    Expr::Cast(cast) if is_failing(&cast) => {
                        let failing = FailingCast::to(cast.field.data_type().clone());
                        Ok(Transformed::yes(ScalarUDF::new_from_impl(failing).call(vec![*cast.expr])))
                    }
                    other => Ok(Transformed::no(other)),
                })
            })
        })?;
        Ok(mended.data)
    }
}

fn fails(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast(cast) if is_failing(cast))
}

fn is_failing(cast: &Cast) -> bool {
    matches!(cast.expr.as_ref(), Expr::Literal(value, _) if value.cast_to(cast.field.data_type()).is_err())
}

/// Begins the function's name in plans that travel; the type follows.
const NAME: &str = "warpcube_failing_cast_";

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let target = name.strip_prefix(NAME)?.parse().ok()?;
    Some(Arc::new(ScalarUDF::new_from_impl(FailingCast::to(target))))
}

/// A cast to a type; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FailingCast {
    name: String,
    target: DataType,
    signature: Signature,
}

impl FailingCast {
    fn to(target: DataType) -> FailingCast {
        FailingCast { name: format!("{NAME}{target}"), target, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for FailingCast {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.target.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        arguments.args[0].cast_to(&self.target, None)
    }
}
