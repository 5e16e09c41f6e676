//! Filters from whose arithmetic nothing is concluded about columns.
//!
//! DataFusion 55.2 computes intervals of columns backwards through a filter: `i / 2 = 1` makes `i` the constant 2, and
//! `t::date = X` makes `t` the midnight of that day, so that a sort by `i` or `t` is left out. Where a cast widens an
//! interval, planning fails ("Selectivity is out of limit"). A filter with a cast or arithmetic is given a condition
//! that always holds and that intervals know nothing of; equalities of plain columns still make constants.
//!
//! The file goes once what loses digits is not computed backwards.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Filter, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::each_node;
use super::nan::is_arithmetic;

static ALWAYS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Always { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The plan with filters that are not computed backwards.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| match plan {
        LogicalPlan::Filter(filter) if computes(&filter.predicate)? => {
            let column = filter.predicate.column_refs().into_iter().min().cloned();
            let Some(column) = column else { return Ok(Transformed::no(LogicalPlan::Filter(filter))) };
            let predicate = filter.predicate.and(ALWAYS.call(vec![Expr::Column(column)]));
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
        }
        plan => Ok(Transformed::no(plan)),
    })
}

/// Whether an expression has a cast or arithmetic.
fn computes(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| {
        Ok(match expr {
            Expr::Cast(_) | Expr::TryCast(_) | Expr::Negative(_) => true,
            Expr::BinaryExpr(binary) => is_arithmetic(binary.op),
            _ => false,
        })
    })
}

/// The function that is true of everything.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Always {
    signature: Signature,
}

impl ScalarUDFImpl for Always {
    fn name(&self) -> &str {
        "always"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }
}
