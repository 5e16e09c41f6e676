//! Constants that are NaN are the one NaN, and zeros of IN, CASE with an operand, NULLIF and functions of lists the one
//! zero, before anything is concluded from them.
//!
//! The optimiser computes `0.0 / 0.0 > 1` and `-0e0 IN (0e0)` itself, over a NaN or a zero with a sign, before the
//! final plan is mended ([`super::nan`]). Unnecessary with that file.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::utils::normalize_float_zero_scalar;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::canonical::{is_arithmetic, is_constant, is_float, makes_nan, one_zero};
use super::{each_expression, list_floats, nullif};
use crate::canonical_floats::literal;
use crate::walk::{PlanWalk, Walk};

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct OneNan;

impl AnalyzerRule for OneNan {
    fn name(&self) -> &str {
        "one_nan"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let config = Arc::new(config.clone());
        let is_sought = |expr: &Expr| matches!(expr, Expr::Literal(..)) || list_floats::is_of_lists(expr);
        let mended = plan.transform_up_nested(|plan| {
            each_expression(plan, is_sought, |expr, schema| {
                let is_zero = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if is_signed_zero(value));
                // Before constants around them are computed.
                let lists = match expr.exists(|expr| Ok(list_floats::is_of_lists(expr)))? {
                    true => expr.transform_up(|expr| Ok(list_floats::of_one_value(expr, schema)))?,
                    false => Transformed::no(expr),
                };
                let (expr, of_lists) = (lists.data, lists.transformed);
                let is_lambda = |expr: &Expr| matches!(expr, Expr::HigherOrderFunction(_));
                let is_sought = |expr: &Expr| is_zero(expr) || may_make_nan(expr, schema) && is_constant(expr);
                if !expr.exists(|expr| Ok(is_lambda(expr) || is_sought(expr)))? {
                    return Ok(Transformed::new_transformed(expr, of_lists));
                }
                let context =
                    SimplifyContext::builder().with_schema(schema.clone()).with_config_options(config.clone()).build();
                let simplifier = ExprSimplifier::new(context);
                // What is compared alone may be another zero. A zero with a sign within a value may become all of it
                // when the plan is optimised.
                let is_zero = |expr: &Expr| match simplifier.simplify(expr.clone()) {
                    Ok(Expr::Literal(value, _)) => is_signed_zero(&value),
                    _ => false,
                };
                let within = |expr: &Expr| Ok(is_float(expr, schema) && is_constant(expr) && is_zero(expr));
                // So may what reads a lambda's parameter.
                let reads = |value: &Expr| value.exists(|expr| Ok(matches!(expr, Expr::LambdaVariable(_))));
                let compare = |value: &mut Expr| -> Result<()> {
                    if reads(value)? {
                        *value = one_zero(std::mem::take(value));
                    } else if is_constant(value) {
                        if let Ok(Expr::Literal(known, metadata)) = simplifier.simplify(value.clone()) {
                            let one = literal(&known).unwrap_or_else(|| normalize_float_zero_scalar(known));
                            *value = Expr::Literal(one, metadata);
                        }
                    } else if value.exists(within)? {
                        *value = one_zero(std::mem::take(value));
                    }
                    Ok(())
                };
                let mended = expr.transform_down(|expr| {
                    let expr = match expr {
                        Expr::InList(mut list) if is_float(&list.expr, schema) => {
                            list.list.iter_mut().chain([list.expr.as_mut()]).try_for_each(compare)?;
                            return Ok(Transformed::yes(Expr::InList(list)));
                        }
                        Expr::Case(mut case) if case.expr.as_ref().is_some_and(|value| is_float(value, schema)) => {
                            let whens = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                            whens.chain(case.expr.as_deref_mut()).try_for_each(compare)?;
                            return Ok(Transformed::yes(Expr::Case(case)));
                        }
                        Expr::ScalarFunction(function) if nullif::is_of_floats(&function, schema) => {
                            return Ok(Transformed::yes(nullif::of_floats(function.args)));
                        }
                        other => other,
                    };
                    if !may_make_nan(&expr, schema) || !is_constant(&expr) {
                        return Ok(Transformed::no(expr));
                    }
                    // A wrong constant is an error when it is computed.
                    Ok(match simplifier.simplify(expr.clone()) {
                        Ok(Expr::Literal(value, metadata)) if is_nan(&value) => {
                            let nan = literal(&value).unwrap_or(value);
                            Transformed::new(Expr::Literal(nan, metadata), true, TreeNodeRecursion::Jump)
                        }
                        _ => Transformed::no(expr),
                    })
                })?;
                Ok(Transformed { transformed: mended.transformed | of_lists, ..mended })
            })
        })?;
        Ok(mended.data)
    }
}

fn may_make_nan(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => is_arithmetic(binary.op) && is_float(expr, schema),
        Expr::Negative(_) | Expr::ScalarFunction(_) => is_float(expr, schema),
        Expr::Cast(cast) => makes_nan(&cast.expr, cast.field.data_type(), schema),
        Expr::TryCast(cast) => makes_nan(&cast.expr, cast.field.data_type(), schema),
        _ => false,
    }
}

fn is_signed_zero(value: &ScalarValue) -> bool {
    normalize_float_zero_scalar(value.clone()) != *value
}

fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float16(Some(value)) => value.is_nan(),
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        _ => false,
    }
}
