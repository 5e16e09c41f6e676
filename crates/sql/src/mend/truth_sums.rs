//! `sum(b)` of a column of truth values counts the true ones, as in DuckDB.
//!
//! DataFusion 55.2 and PostgreSQL refuse it. Sessions have a function that takes truth values beside numbers; plans get
//! DataFusion's own, over a cast, before any other rule looks at them.
//!
//! The file goes once DataFusion adds up truth values.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::types::logical_boolean;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Cast, Coercion, Documentation, Expr, ExprSchemable, LogicalPlan,
    Signature, TypeSignature, TypeSignatureClass, WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use crate::walk::{PlanWalk, Walk};

/// The function of a session.
pub(crate) fn function(state: &SessionState) -> Option<AggregateUDF> {
    let original = state.udaf("sum").ok()?;
    let truth = Coercion::new_exact(TypeSignatureClass::Native(logical_boolean()));
    let of_numbers = original.signature();
    let forms = vec![of_numbers.type_signature.clone(), TypeSignature::Coercible(vec![truth])];
    let signature = Signature::one_of(forms, of_numbers.volatility);
    Some(AggregateUDF::new_from_impl(TruthSum { original, signature }))
}

/// The rule, before types are coerced.
#[derive(Debug)]
pub(super) struct TruthSums;

impl AnalyzerRule for TruthSums {
    fn name(&self) -> &str {
        "truth_sums"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mended = plan.transform_up_nested(|plan| {
            each_expression(
                plan,
                |expr| original_of(expr).is_some(),
                |expr, schema| {
                    expr.transform_up(|mut expr| {
                        let Some(original) = original_of(&expr).cloned() else { return Ok(Transformed::no(expr)) };
                        let args = match &mut expr {
                            Expr::AggregateFunction(call) => {
                                call.func = original;
                                &mut call.params.args
                            }
                            Expr::WindowFunction(call) => {
                                call.fun = WindowFunctionDefinition::AggregateUDF(original);
                                &mut call.params.args
                            }
                            _ => return Ok(Transformed::no(expr)),
                        };
                        for argument in args {
                            if argument.get_type(schema)? == DataType::Boolean {
                                *argument = Expr::Cast(Cast::new(Box::new(std::mem::take(argument)), DataType::Int64));
                            }
                        }
                        Ok(Transformed::yes(expr))
                    })
                },
            )
        })?;
        Ok(mended.data)
    }
}

/// DataFusion's function of a call of ours.
fn original_of(expr: &Expr) -> Option<&Arc<AggregateUDF>> {
    let function = match expr {
        Expr::AggregateFunction(call) => &call.func,
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => function,
            WindowFunctionDefinition::WindowUDF(_) => return None,
        },
        _ => return None,
    };
    function.inner().downcast_ref::<TruthSum>().map(|sum| &sum.original)
}

/// The sum of numbers or truth values; no plan that runs has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TruthSum {
    original: Arc<AggregateUDF>,
    signature: Signature,
}

impl AggregateUDFImpl for TruthSum {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Boolean] => Ok(DataType::Int64),
            _ => self.original.return_type(arguments),
        }
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.original.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.original.state_fields(arguments)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }
}
