//! A cast of a constant that fails raises where a row computes it, and nowhere else.
//!
//! DataFusion 55.2 raises the error of such a cast while it plans, though it leaves other constants that fail, as
//! `1 / 0`, to their rows: `CASE WHEN false THEN CAST('x' AS INT) ELSE 1 END` is an error there. Here the cast is a
//! function with the same error.
//!
//! The file goes once the simplifier leaves these casts as they are.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::casts::Conversion;

/// The function in place of a cast of a constant that fails.
pub(super) fn failing(cast: &Conversion) -> Option<Expr> {
    let Expr::Literal(value, _) = cast.operand else { return None };
    let fails = !cast.may_fail && value.cast_to(cast.to).is_err();
    let failing = || ScalarUDF::new_from_impl(FailingCast::to(cast.to.clone())).call(vec![cast.operand.clone()]);
    fails.then(failing)
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
