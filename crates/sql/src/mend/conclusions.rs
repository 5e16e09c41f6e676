//! Filters from whose arithmetic nothing is concluded about columns.
//!
//! DataFusion 55.2 computes intervals of columns backwards through a filter: `i / 2 = 1` makes `i` the constant 2, and
//! `t::date = X` makes `t` the midnight of that day, so that a sort by `i` or `t` is left out. Where a cast widens an
//! interval, planning fails ("Selectivity is out of limit"), and so it does for bounds that a cast to text below the
//! filter has put in another order. A filter with a cast or arithmetic, and one over anything but a table, is given a
//! condition that always holds and that intervals know nothing of; equalities of plain columns still make constants.
//! An equality with a function, `coalesce(s, s) = s`, makes both sides one sort key for some operators and two for
//! others, so that windows over them are refused: it is asked whether such an equality is true.
//!
//! The file goes once what loses digits is not computed backwards, and bounds are not cast to text.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Filter, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use super::canonical::is_arithmetic;
use super::unordered_casts::is_unordered_cast;
use super::{chain, each_node, operands};
use crate::walk::Walk;

static ALWAYS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Always { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The plan with filters that are not computed backwards.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = each_node(plan, |plan| match plan {
        LogicalPlan::Filter(filter)
            if split_conjunction(&filter.predicate)
                .into_iter()
                .any(|part| equates_calls(part, filter.input.schema())) =>
        {
            let schema = filter.input.schema();
            let opaque = |conjunct: Expr| if equates_calls(&conjunct, schema) { conjunct.is_true() } else { conjunct };
            let conjuncts = operands(filter.predicate, Operator::And).into_iter().map(opaque).collect();
            let filter = Filter::try_new(chain(Operator::And, conjuncts), filter.input)?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    each_node(plan, |plan| match plan {
        LogicalPlan::Filter(filter) if !is_table(&filter.input) || computes(&filter.predicate)? => {
            let column = filter.predicate.column_refs().into_iter().min().cloned();
            let Some(column) = column else { return Ok(Transformed::no(LogicalPlan::Filter(filter))) };
            let predicate = filter.predicate.and(ALWAYS.call(vec![Expr::Column(column)]));
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
        }
        plan => Ok(Transformed::no(plan)),
    })
}

/// Whether a conjunct is an equality of what functions compute, or casts that become functions.
fn equates_calls(conjunct: &Expr, schema: &DFSchema) -> bool {
    let is_call = |expr: &Expr| matches!(expr, Expr::ScalarFunction(_) | Expr::Case(_));
    let calls = |expr: &Expr| expr.exists(|expr| Ok(is_call(expr) || is_unordered_cast(expr, schema)));
    match conjunct {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            calls(left).unwrap_or(false) || calls(right).unwrap_or(false)
        }
        _ => false,
    }
}

/// Whether a plan is a table, whose bounds are those of its values.
fn is_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => is_table(&alias.input),
        LogicalPlan::TableScan(_) => true,
        _ => false,
    }
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
