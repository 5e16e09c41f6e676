//! The source of an INSERT is planned as a query of its own.
//!
//! DataFusion 55.2 reads each VALUES within an INSERT, however deep it stands, with the types of the table's columns:
//! `INSERT INTO t SELECT k * 2 FROM (VALUES (1.5)) v(k)` doubles 1 where the column is an integer, and statements that
//! change tables, which are INSERTs here, would look for other rows than those that WHERE names. So the source takes
//! the place of the INSERT until it is planned, also below EXPLAIN and PREPARE. VALUES that are the whole source stay
//! as they are: their cells are of the columns' types one by one. The file goes once DataFusion does so.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    DmlStatement, Explain, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, PlanType, Prepare,
    Statement as PlanStatement, ToStringifiedPlan, WriteOp,
};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, ObjectName, Query, SetExpr, Statement as SqlStatement, TableObject,
    TypedString, UnaryOperator, Value, Values,
};

use crate::catalog::plan_statement;
use crate::error::{Result, SqlError};
use crate::mend::mixed::check_kinds;
use crate::syntax;
use crate::walk::Walk;

/// An INSERT without its source.
struct Target {
    name: TableReference,
    table: Arc<dyn TableProvider>,
    /// The columns that are named.
    columns: Vec<String>,
    op: InsertOp,
}

/// Plans a statement.
pub(super) async fn plan(state: &SessionState, mut parsed: ParsedStatement) -> DataFusionResult<LogicalPlan> {
    let Some(statement) = statement_of(&mut parsed) else { return plan_statement(state, parsed).await };
    let SqlStatement::Insert(insert) = statement else { return plan_statement(state, parsed).await };
    let (TableObject::TableName(name), Some(source)) = (&insert.table, &insert.source) else {
        return plan_statement(state, parsed).await;
    };
    if values_of(source).is_some() {
        check_cells(state, name, &insert.columns, source).await?;
        // A NULL where there must be none is for the table to refuse, which names the row.
        return with_nulls(plan_statement(state, parsed).await?);
    }
    let (name, table) = syntax::found_table(state, name).await?;
    let columns = insert.columns.iter().map(syntax::column_name).collect::<Result<Vec<_>>>()?;
    let op = if insert.overwrite { InsertOp::Overwrite } else { InsertOp::Append };
    if let Some(source) = insert.source.take() {
        *statement = SqlStatement::Query(source);
    }
    Ok(within(plan_statement(state, parsed).await?, &Target { name, table, columns, op })?)
}

/// The statement itself, below EXPLAIN and PREPARE too.
fn statement_of(parsed: &mut ParsedStatement) -> Option<&mut SqlStatement> {
    match parsed {
        ParsedStatement::Explain(explain) => statement_of(&mut explain.statement),
        ParsedStatement::Statement(statement) => Some(match statement.as_mut() {
            SqlStatement::Prepare { statement, .. } => statement.as_mut(),
            statement => statement,
        }),
        _ => None,
    }
}

/// The plan with the INSERT around its source.
fn within(plan: LogicalPlan, target: &Target) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Explain(explain) => {
            let plan = Arc::new(within(Arc::unwrap_or_clone(explain.plan), target)?);
            let stringified_plans = vec![plan.to_stringified(PlanType::InitialLogicalPlan)];
            LogicalPlan::Explain(Explain { plan, stringified_plans, ..explain })
        }
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = Arc::new(within(Arc::unwrap_or_clone(analyze.input), target)?);
            LogicalPlan::Analyze(analyze)
        }
        LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
            let input = Arc::new(within(Arc::unwrap_or_clone(prepare.input), target)?);
            LogicalPlan::Statement(PlanStatement::Prepare(Prepare { input, ..prepare }))
        }
        source => target.of(source)?,
    })
}

impl Target {
    /// INSERT of a source's rows: its columns by position, cast to the types of the table's, and defaults for the rest.
    fn of(&self, source: LogicalPlan) -> Result<LogicalPlan> {
        let schema = self.table.schema();
        let mut places = vec![None; schema.fields().len()];
        match self.columns.is_empty() {
            true => places.iter_mut().enumerate().for_each(|(column, place)| *place = Some(column)),
            false => {
                for (number, name) in self.columns.iter().enumerate() {
                    let unknown = |_| SqlError::UnknownColumn { name: name.clone(), nearest: None };
                    if places[schema.index_of(name).map_err(unknown)?].replace(number).is_some() {
                        return Err(SqlError::Planning(format!("column '{name}' is named twice in INSERT")));
                    }
                }
            }
        }
        let (given, expected) = (source.schema().fields().len(), places.iter().flatten().count());
        if given != expected {
            let reason = format!("{given} values for {expected} columns in INSERT INTO {}", self.name);
            return Err(SqlError::Planning(reason));
        }
        let item = |(field, place): (&Arc<Field>, &Option<usize>)| {
            let value = match place {
                Some(place) => {
                    let (qualifier, given) = source.schema().qualified_field(*place);
                    check_kind(field, given.data_type())?;
                    let column = Expr::Column(Column::from((qualifier, given)));
                    column.cast_to(field.data_type(), source.schema())?
                }
                None => {
                    let default = self.table.get_column_default(field.name()).cloned();
                    let default = default.unwrap_or(Expr::Literal(ScalarValue::Null, None));
                    default.cast_to(field.data_type(), &DFSchema::empty())?
                }
            };
            Ok(value.alias(field.name()))
        };
        let items = schema.fields().iter().zip(&places).map(item).collect::<Result<Vec<_>>>()?;
        let rows = LogicalPlanBuilder::from(source).project(items)?.build()?;
        let target = provider_as_source(self.table.clone());
        let insert = DmlStatement::new(self.name.clone(), target, WriteOp::Insert(self.op), Arc::new(rows));
        Ok(LogicalPlan::Dml(insert))
    }
}

/// Refuses a number for a column of dates, and a date for one of numbers.
fn check_kind(column: &Field, given: &DataType) -> Result<()> {
    check_kinds([column.data_type(), given]).map_err(|error| match SqlError::from(error) {
        SqlError::Planning(reason) => SqlError::Planning(format!("column '{}': {reason}", column.name())),
        other => other,
    })
}

/// The same for constants of VALUES, which the planner casts cell by cell.
async fn check_cells(state: &SessionState, name: &ObjectName, columns: &[ObjectName], source: &Query) -> Result<()> {
    let Some(values) = values_of(source) else { return Ok(()) };
    let (_, table) = syntax::found_table(state, name).await?;
    let schema = table.schema();
    let named = columns.iter().map(syntax::column_name).collect::<Result<Vec<_>>>()?;
    let field = |place: usize| match named.is_empty() {
        true => schema.fields().get(place).cloned(),
        false => schema.fields().iter().find(|field| Some(field.name()) == named.get(place)).cloned(),
    };
    for row in &values.rows {
        for (place, cell) in row.content.iter().enumerate() {
            if let (Some(given), Some(field)) = (constant_type(cell), field(place)) {
                check_kind(&field, &given)?;
            }
        }
    }
    Ok(())
}

fn values_of(source: &Query) -> Option<&Values> {
    match source.body.as_ref() {
        SetExpr::Values(values) => Some(values),
        SetExpr::Query(query) => values_of(query),
        _ => None,
    }
}

/// The type of a number, a date or a timestamp that is written as one.
fn constant_type(cell: &SqlExpr) -> Option<DataType> {
    match cell {
        SqlExpr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.contains(['.', 'e', 'E']) => Some(DataType::Float64),
            Value::Number(..) => Some(DataType::Int64),
            _ => None,
        },
        SqlExpr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => constant_type(expr),
        SqlExpr::Nested(expr) => constant_type(expr),
        SqlExpr::TypedString(TypedString { data_type: SqlType::Date, .. }) => Some(DataType::Date32),
        SqlExpr::TypedString(TypedString { data_type: SqlType::Timestamp(..), .. }) => {
            Some(DataType::Timestamp(TimeUnit::Nanosecond, None))
        }
        _ => None,
    }
}

/// The plan with VALUES whose columns may all be NULL.
fn with_nulls(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let of_node = |plan: LogicalPlan| match plan {
        LogicalPlan::Values(mut values) if values.schema.fields().iter().any(|field| !field.is_nullable()) => {
            let fields = values
                .schema
                .iter()
                .map(|(qualifier, field)| (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(true))));
            values.schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), values.schema.metadata().clone())?);
            Ok(Transformed::yes(LogicalPlan::Values(values)))
        }
        plan @ LogicalPlan::Projection(_) => Ok(Transformed::yes(plan.recompute_schema()?)),
        plan => Ok(Transformed::no(plan)),
    };
    Ok(plan.transform_up(of_node)?.data)
}
