//! Functions of one string column, computed by DataFusion's own expressions over the column's dictionary.

use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use warpcube_engine::DictionaryFunction;

use super::Reason;

/// An expression over one string column.
pub(crate) struct StringExpression {
    text: String,
    data_type: DataType,
    schema: arrow::datatypes::SchemaRef,
    expr: Arc<dyn PhysicalExpr>,
}

impl StringExpression {
    /// An expression whose only column is `column`; functions such as `to_unixtime` ask the options for a time zone.
    pub(crate) fn new(
        expr: &Expr,
        column: &Column,
        schema: &DFSchema,
        options: &Arc<ConfigOptions>,
    ) -> Result<StringExpression, Reason> {
        let text = |error: datafusion::error::DataFusionError| error.strip_backtrace();
        let field = schema.field_from_column(column).map_err(text)?;
        let arrow_schema = Arc::new(arrow::datatypes::Schema::new(vec![field.as_ref().clone().with_nullable(true)]));
        let relation = column.relation.clone().ok_or("a column of no relation")?;
        let own = DFSchema::try_from_qualified_schema(relation, &arrow_schema).map_err(text)?;
        let props = ExecutionProps { config_options: Some(options.clone()), ..ExecutionProps::new() };
        let physical = create_physical_expr(expr, &own, &props, &PhysicalPlanningContext::default()).map_err(text)?;
        Ok(StringExpression {
            text: expr.to_string(),
            data_type: field.data_type().clone(),
            schema: arrow_schema,
            expr: physical,
        })
    }
}

impl fmt::Debug for StringExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl DictionaryFunction for StringExpression {
    fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
        let rows = strings.len();
        let input = cast(strings, &self.data_type).map_err(|error| error.to_string())?;
        let batch = RecordBatch::try_new(self.schema.clone(), vec![input]).map_err(|error| error.to_string())?;
        let result = self.expr.evaluate(&batch).map_err(|error| error.strip_backtrace())?;
        result.into_array(rows).map_err(|error| error.strip_backtrace())
    }

    fn describe(&self) -> String {
        self.text.clone()
    }
}
