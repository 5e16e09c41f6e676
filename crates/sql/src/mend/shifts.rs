//! `lag` and `lead` with IGNORE NULLS, with a negative offset below LIMIT, with an offset of NULL, and with a default
//! of another type.
//!
//! DataFusion 55.2 evaluates both row by row where it can. With IGNORE NULLS it then counts NULLs of a lead and loses
//! rows of a partition's end; evaluated over whole partitions they are right, and so they are here. An offset of NULL
//! is taken for zero: it gives NULL. `lag(v, -2)` and a lag whose window was turned round look forward, and yet a
//! LIMIT above is taken for one of their input. A default is cut to the type of the value (`lag(i, 1, 1.5)`): both
//! have their common type, as in PostgreSQL.
//!
//! The file goes once DataFusion's evaluator is right row by row, and knows where it looks.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::PhysicalExpr;

/// The functions of a session, mended.
pub(crate) fn functions(state: &SessionState) -> Vec<WindowUDF> {
    let mended = |name: &&str| {
        let original = state.udwf(name).ok()?;
        let signature = Signature::user_defined(Volatility::Immutable);
        Some(WindowUDF::new_from_impl(Shift { original, signature, is_reversed: false }))
    };
    ["lag", "lead"].iter().filter_map(mended).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shift {
    original: Arc<WindowUDF>,
    signature: Signature,
    /// Whether the rows of the window come in the opposite order.
    is_reversed: bool,
}

impl WindowUDFImpl for Shift {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let wrong = || {
            let name = self.original.name();
            Err(DataFusionError::Plan(format!("{name} takes a value, an offset that is an integer, and a default")))
        };
        let is_offset = |offset: &DataType| offset.is_integer() || offset.is_null();
        match arguments {
            [value] => Ok(vec![value.clone()]),
            [value, offset] if is_offset(offset) => Ok(vec![value.clone(), DataType::Int64]),
            [value, offset, default] if is_offset(offset) => {
                let common = common_type(value, default);
                Ok(vec![common.clone(), DataType::Int64, common])
            }
            _ => wrong(),
        }
    }

    fn expressions(&self, arguments: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.original.expressions(arguments)
    }

    fn partition_evaluator(&self, arguments: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        if let Some(Some(ScalarValue::Int64(None) | ScalarValue::Null)) = arguments.input_exprs().get(1).map(constant) {
            let data_type = arguments.input_fields()[0].data_type().clone();
            return Ok(Box::new(Unknown(data_type)));
        }
        let is_whole = arguments.ignore_nulls();
        let evaluator = self.original.inner().partition_evaluator(arguments)?;
        Ok(if is_whole { Box::new(Whole(evaluator)) } else { evaluator })
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.original.field(arguments)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        let reversed = Shift { is_reversed: !self.is_reversed, ..self.clone() };
        ReversedUDWF::Reversed(Arc::new(WindowUDF::new_from_impl(reversed)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }

    /// A function that looks back alone needs no rows beyond those of a LIMIT. With IGNORE NULLS, of which nothing is
    /// known here, there is no bound to how far it looks.
    fn limit_effect(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        let is_back = (self.original.name() == "lag") != self.is_reversed;
        let offset = arguments.get(1).map_or(Some(ScalarValue::Int64(Some(1))), constant);
        match offset {
            Some(ScalarValue::Int64(Some(offset))) if is_back == (offset >= 0) || offset == 0 => LimitEffect::None,
            _ => LimitEffect::Unknown,
        }
    }
}

fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    expr.downcast_ref::<Literal>().map(|literal| literal.value().clone())
}

/// The type of a value and its default: the value's, where they are not both numbers.
fn common_type(value: &DataType, default: &DataType) -> DataType {
    if value.is_null() {
        return default.clone();
    }
    if !value.is_numeric() || !default.is_numeric() {
        return value.clone();
    }
    match value.is_floating() || default.is_floating() {
        true if value == default => value.clone(),
        true => DataType::Float64,
        false => comparison_coercion(value, default).unwrap_or_else(|| value.clone()),
    }
}

/// An evaluator that is given whole partitions.
#[derive(Debug)]
struct Whole(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for Whole {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }
}

/// NULL for every row.
#[derive(Debug)]
struct Unknown(DataType);

impl PartitionEvaluator for Unknown {
    fn evaluate_all(&mut self, _values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(new_null_array(&self.0, rows))
    }
}
