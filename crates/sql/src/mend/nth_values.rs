//! `nth_value` counts from 1: `nth_value(x, 0)` over a window is an error, as in PostgreSQL.
//!
//! DataFusion 55.2 gives NULL for every row. The file goes once it refuses.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::PhysicalExpr;

/// The function of a session, mended.
pub(crate) fn function(state: &SessionState) -> Option<WindowUDF> {
    Some(WindowUDF::new_from_impl(NthValue(state.udwf("nth_value").ok()?)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NthValue(Arc<WindowUDF>);

impl WindowUDFImpl for NthValue {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn expressions(&self, arguments: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.0.expressions(arguments)
    }

    fn partition_evaluator(&self, arguments: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let place = arguments.input_exprs().get(1).and_then(|place| place.downcast_ref::<Literal>());
        let place = place.map(|place| place.value().cast_to(&DataType::Int64)).transpose()?;
        if place == Some(ScalarValue::Int64(Some(0))) {
            return Err(DataFusionError::Plan("nth_value counts rows from 1, found 0".into()));
        }
        self.0.inner().partition_evaluator(arguments)
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.0.field(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(arguments)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        self.0.reverse_expr()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn limit_effect(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.0.inner().limit_effect(arguments)
    }
}
