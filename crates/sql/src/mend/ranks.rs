//! `row_number`, `rank`, `dense_rank` and `ntile` are BIGINT, as in PostgreSQL and DuckDB.
//!
//! They are unsigned in DataFusion 55.2, where `rank() OVER w * 10 / 3` is a decimal and `rank() OVER a - rank() OVER
//! b` overflows. The file goes once these functions are BIGINT.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;

/// The functions of a session, with a sign.
pub(crate) fn functions(state: &SessionState) -> Vec<WindowUDF> {
    let signed = |name: &&str| Some(WindowUDF::new_from_impl(Signed(state.udwf(name).ok()?)));
    ["row_number", "rank", "dense_rank", "ntile"].iter().filter_map(signed).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Signed(Arc<WindowUDF>);

impl WindowUDFImpl for Signed {
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
        Ok(Box::new(SignedEvaluator(self.0.inner().partition_evaluator(arguments)?)))
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.0.field(arguments)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(DataType::Int64)))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.0.sort_options()
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

/// An evaluator whose numbers have a sign.
#[derive(Debug)]
struct SignedEvaluator(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for SignedEvaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.0.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.0.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate_all(values, rows)?, &DataType::Int64)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.0.evaluate(values, range)?.cast_to(&DataType::Int64)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate_all_with_rank(rows, ranks)?, &DataType::Int64)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.0.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.0.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.0.include_rank()
    }
}
