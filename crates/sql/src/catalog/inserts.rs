//! What INSERT into a table over files is held to: its location is no pattern of folders, and columns that are declared
//! NOT NULL take no NULL.
//!
//! NOT NULL says nothing of the files that are there: plans read every column as one that may be NULL. The rows of an
//! INSERT are checked before they reach the sink that writes them.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::SchemaProvider;
use datafusion::common::Column;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::DmlStatement;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, WriteOp,
};

use super::schema::ConnectionSchema;
use crate::error::{Result, SqlError};
use crate::locations::is_pattern;
use crate::memory_table::Rules;

/// A plan that runs, with the rows of an INSERT into a table over files checked.
///
/// # Errors
/// [`SqlError::Unsupported`] for a table over a pattern of folders.
pub(crate) fn with_checked_inserts(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = Arc::new(with_checked_inserts(Arc::unwrap_or_clone(analyze.input), state)?);
            Ok(LogicalPlan::Analyze(analyze))
        }
        LogicalPlan::Dml(insert) if matches!(insert.op, WriteOp::Insert(_)) => {
            Ok(LogicalPlan::Dml(with_checked_rows(insert, state)?))
        }
        other => Ok(other),
    }
}

fn with_checked_rows(mut insert: DmlStatement, state: &SessionState) -> Result<DmlStatement> {
    let schema: Arc<dyn Any + Send + Sync> = state.schema_for_ref(insert.table_name.clone())?;
    let Ok(schema) = schema.downcast::<ConnectionSchema>() else { return Ok(insert) };
    let name = insert.table_name.table();
    let Some(table) = schema.external(name) else {
        if !schema.table_exist(name) {
            check_location(name)?;
        }
        return Ok(insert);
    };
    table.locations().iter().try_for_each(|location| check_location(location))?;
    let fields = insert.input.schema().fields();
    let columns: Vec<_> =
        fields.iter().map(|field| (field.name().clone(), table.not_null.contains(field.name()))).collect();
    let Some(first) = columns.iter().position(|(_, not_null)| *not_null) else { return Ok(insert) };
    let all: Vec<Expr> = insert.input.schema().columns().into_iter().map(Expr::Column).collect();
    let checked = ScalarUDF::new_from_impl(Checked {
        table: name.to_string(),
        columns,
        first,
        signature: Signature::variadic_any(Volatility::Volatile),
    });
    let item = |(number, column): (usize, Column)| match number == first {
        true => checked.call(all.clone()).alias_qualified(column.relation, column.name),
        false => Expr::Column(column),
    };
    let items: Vec<Expr> = insert.input.schema().columns().into_iter().enumerate().map(item).collect();
    let input = Arc::unwrap_or_clone(insert.input);
    insert.input = Arc::new(LogicalPlanBuilder::from(input).project(items)?.build()?);
    Ok(insert)
}

/// Refuses a location that may mean several folders: rows go into one.
fn check_location(location: &str) -> Result<()> {
    match location.trim_end_matches('/').rsplit_once('/') {
        Some((folder, _)) if is_pattern(folder) => Err(SqlError::Unsupported(format!(
            "INSERT into a table over folders of a pattern ('{location}'); name the folder that takes the rows"
        ))),
        _ => Ok(()),
    }
}

/// Gives a column of rows that have no NULL where there must be none. All columns of a row are its arguments, so that
/// an error shows the row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    table: String,
    /// Names, and whether the columns are NOT NULL.
    columns: Vec<(String, bool)>,
    /// The column that it gives.
    first: usize,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        "not_null_of_table"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> DataFusionResult<DataType> {
        Ok(arguments[self.first].clone())
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        if arguments.number_rows > 0 {
            let columns: Vec<ArrayRef> = ColumnarValue::values_to_arrays(&arguments.args)?;
            let schema = |may_be_null: bool| {
                let field = |((name, not_null), column): (&(String, bool), &ArrayRef)| {
                    Field::new(name, column.data_type().clone(), may_be_null || !not_null)
                };
                Arc::new(Schema::new(self.columns.iter().zip(&columns).map(field).collect::<Vec<_>>()))
            };
            let rules = Rules::of(&self.table, schema(false));
            rules.admit(&RecordBatch::try_new(schema(true), columns)?)?;
        }
        Ok(arguments.args.swap_remove(self.first))
    }
}
