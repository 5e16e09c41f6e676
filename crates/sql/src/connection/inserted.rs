//! The source of an INSERT is planned as a query of its own.
//!
//! DataFusion 55.2 reads each VALUES within an INSERT, however deep it stands, with the types of the table's columns:
//! `INSERT INTO t SELECT k * 2 FROM (VALUES (1.5)) v(k)` doubles 1 where the column is an integer, and statements that
//! change tables, which are INSERTs here, would look for other rows than those that WHERE names. So the source takes
//! the place of the INSERT until it is planned, also below EXPLAIN and PREPARE. Its columns are cast once types are
//! coerced ([`crate::mend`]). VALUES that are the whole source stay as they are: their cells are cast to the columns'
//! types one by one. The file goes once DataFusion does so.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    Cast, DmlStatement, Explain, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, PlanType, Prepare, Projection,
    Statement as PlanStatement, ToStringifiedPlan, WriteOp,
};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, ObjectName, Query, SetExpr, Statement as SqlStatement, TableObject,
    TypedString, UnaryOperator, Value, Values,
};

use crate::catalog::plan_statement;
use crate::error::{Result, SqlError};
use crate::extension_types::ExtensionType;
use crate::memory_table::Role;
use crate::mend::common_types::{check_column, is_on_calendar};
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
    let (TableObject::TableName(name), Some(source)) = (&insert.table, &mut insert.source) else {
        return plan_statement(state, parsed).await;
    };
    if values_of(source).is_some() {
        check_cells(state, name, &insert.columns, source).await?;
        return with_cells(plan_statement(state, parsed).await?);
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
    /// INSERT of a source's rows: its columns by position, and defaults for the rest.
    fn of(&self, source: LogicalPlan) -> Result<LogicalPlan> {
        let source = match Role::of_name(self.name.table()) {
            Some((Role::Changed, _)) => with_cast_branches(source, &self.table.schema())?,
            _ => source,
        };
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
                    check_column(field, given.data_type())?;
                    Expr::Column(Column::from((qualifier, given)))
                }
                None => {
                    let default = self.table.get_column_default(field.name()).cloned();
                    let default = default.unwrap_or(Expr::Literal(ScalarValue::Null, None));
                    Expr::Cast(Cast::new(Box::new(default), field.data_type().clone()))
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

/// The changes of a table with each branch of a MERGE's values cast to the type of its column: clauses of MERGE set a
/// column each for itself, and have no type in common.
fn with_cast_branches(source: LogicalPlan, schema: &Schema) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(mut rows) = source else { return Ok(source) };
    let case_of = |expr: &Expr| matches!(expr.clone().unalias(), Expr::Case(_));
    // UPDATE has one action for all of its rows.
    if rows.expr.len() != schema.fields().len() || !rows.expr.get(1).is_some_and(case_of) {
        return Ok(LogicalPlan::Projection(rows));
    }
    let input = rows.input.schema().clone();
    for (value, field) in rows.expr.iter_mut().zip(schema.fields()).skip(2) {
        let cast = |branch: &mut Box<Expr>| -> Result<()> {
            check_column(field, &branch.get_type(&input)?)?;
            **branch = Expr::Cast(Cast::new(std::mem::take(branch), field.data_type().clone()));
            Ok(())
        };
        let case = match value {
            Expr::Alias(alias) => alias.expr.as_mut(),
            value => value,
        };
        if let Expr::Case(case) = case {
            case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr).try_for_each(cast)?;
        }
    }
    Ok(LogicalPlan::Projection(Projection::try_new(rows.expr, rows.input)?))
}

/// Refuses numbers in VALUES for columns of dates, and dates for those of numbers: the planner casts cell by cell.
/// Lists and structs for columns of JSON become JSON.
async fn check_cells(
    state: &SessionState,
    name: &ObjectName,
    columns: &[ObjectName],
    source: &mut Query,
) -> Result<()> {
    let (_, table) = syntax::found_table(state, name).await?;
    let schema = table.schema();
    let named = columns.iter().map(syntax::column_name).collect::<Result<Vec<_>>>()?;
    let field = |place: usize| match named.is_empty() {
        true => schema.fields().get(place).cloned(),
        false => schema.fields().iter().find(|field| Some(field.name()) == named.get(place)).cloned(),
    };
    for row in values_of_mut(source).into_iter().flat_map(|values| &mut values.rows) {
        for (place, cell) in row.content.iter_mut().enumerate() {
            let is_json = field(place).is_some_and(|field| ExtensionType::of(&field) == Some(ExtensionType::Json));
            if is_json && matches!(cell, SqlExpr::Array(_) | SqlExpr::Dictionary(_) | SqlExpr::Map(_)) {
                *cell = syntax::as_json(std::mem::replace(cell, SqlExpr::value(Value::Null)));
            }
        }
    }
    let Some(values) = values_of(source) else { return Ok(()) };
    let has_kind = |field: &Field| field.data_type().is_numeric() || is_on_calendar(field.data_type());
    let (mut computed, mut fields) = (Vec::new(), Vec::new());
    for row in &values.rows {
        for (place, cell) in row.content.iter().enumerate() {
            match (constant_type(cell), field(place)) {
                (Some(given), Some(field)) => check_column(&field, &given)?,
                (None, Some(field)) if has_kind(&field) && !matches!(cell, SqlExpr::Value(_)) => {
                    computed.push(cell.clone());
                    fields.push(field);
                }
                _ => {}
            }
        }
    }
    let types = computed_types(state, source, computed).await;
    fields
        .iter()
        .zip(types)
        .try_for_each(|(field, given)| given.map_or(Ok(()), |given| Ok(check_column(field, &given)?)))
}

/// The types of cells once they are coerced; none of those that cannot be planned, whose error the statement gives.
async fn computed_types(state: &SessionState, source: &Query, cells: Vec<SqlExpr>) -> Vec<Option<DataType>> {
    let mut query = source.clone();
    let Some(row) = values_of_mut(&mut query).and_then(|values| {
        values.rows.truncate(1);
        values.rows.first_mut()
    }) else {
        return Vec::new();
    };
    if cells.is_empty() {
        return Vec::new();
    }
    row.content = cells;
    (query.order_by, query.limit_clause) = (None, None);
    let statement = ParsedStatement::Statement(Box::new(SqlStatement::Query(Box::new(query))));
    let Ok(plan) = plan_statement(state, statement).await else { return Vec::new() };
    let analyzed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {});
    match analyzed {
        Ok(LogicalPlan::Values(values)) => {
            let type_of = |cell: &Expr| cell.get_type(&DFSchema::empty()).ok();
            values.values.first().map(|row| row.iter().map(type_of).collect()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn values_of(source: &Query) -> Option<&Values> {
    match source.body.as_ref() {
        SetExpr::Values(values) => Some(values),
        SetExpr::Query(query) => values_of(query),
        _ => None,
    }
}

fn values_of_mut(source: &mut Query) -> Option<&mut Values> {
    match source.body.as_mut() {
        SetExpr::Values(values) => Some(values),
        SetExpr::Query(query) => values_of_mut(query),
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
            Some(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        _ => None,
    }
}

/// The plan with VALUES whose cells are cast to the types of their columns: the planner casts none where the first
/// branch of a CASE has the type. A cell may be NULL: the table refuses a NULL where there must be none, and names the
/// row.
fn with_cells(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let of_node = |plan: LogicalPlan| match plan {
        LogicalPlan::Values(mut values) => {
            let fields = values
                .schema
                .iter()
                .map(|(qualifier, field)| (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(true))));
            values.schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), values.schema.metadata().clone())?);
            for row in &mut values.values {
                for (cell, field) in row.iter_mut().zip(values.schema.fields()) {
                    if !matches!(cell, Expr::Literal(..) | Expr::Cast(_)) {
                        *cell = Expr::Cast(Cast::new(Box::new(std::mem::take(cell)), field.data_type().clone()));
                    }
                }
            }
            Ok(Transformed::yes(LogicalPlan::Values(values)))
        }
        plan @ LogicalPlan::Projection(_) => Ok(Transformed::yes(plan.recompute_schema()?)),
        plan => Ok(Transformed::no(plan)),
    };
    Ok(plan.transform_up(of_node)?.data)
}
