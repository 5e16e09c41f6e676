//! Statements that define tables and views.
//!
//! A `CREATE OR REPLACE` that fails loses nothing, `DROP` takes what it names, and `CREATE TABLE` makes a table in
//! memory of ours ([`crate::memory_table`]), whose rules are what the statement declares ([`Declared`]): the rows of a
//! query are charged to `warpcube.memory_limit`, as those of the tables that are in memory already are, and columns may
//! be NULL where nothing is declared, whatever those of the query say. All else is DataFusion's.

use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::datasource::source_as_provider;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{
    Cast, CreateMemoryTable, CreateView, DdlStatement, DropTable, DropView, EmptyRelation, Expr, ExprSchemable,
    LogicalPlan, LogicalPlanBuilder, Volatility,
};
use datafusion::physical_plan::execute_stream_partitioned;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, ExprWithAlias};
use futures::TryStreamExt;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::Connection;
use crate::catalog::{self, ConnectionSchema};
use crate::diagnose::{self, Suspect};
use crate::error::{Result, SqlError};
use crate::extension_types::ExtensionType;
use crate::formats;
use crate::functions;
use crate::memory_table::{Charged, Check, ColumnDefault, Key, Ledger, MemoryTable, Rules};
use crate::mend::common_types::check_kinds;
use crate::report::StatementReport;
use crate::syntax::{Declared, DeclaredKey};
use crate::walk::{PlanWalk, Walk};

impl Connection {
    /// Runs a definition of that text with the statement's state.
    pub(super) async fn define(
        &self,
        state: SessionState,
        definition: DdlStatement,
        mut declared: Declared,
        text: &str,
        report: &Arc<StatementReport>,
    ) -> Result<()> {
        check_definition(&definition)?;
        declared.is_temporary |= is_among_temporary(&state, &definition)?;
        check_drop(&state, &definition).await?;
        let (replaces, unless_there) = (replaces(&definition), unless_there(&definition));
        let context = SessionContext::new_with_state(state.clone());
        // On the heap: the future is large, and is moved.
        let is_temporary = declared.is_temporary;
        let defined = Box::pin(self.define_checked(state, definition, declared));
        let defined = catalog::define(report, text, replaces, is_temporary, defined);
        let defined = defined.instrument(tracing::info_span!("execute")).await;
        // A statement of another connection may have been quicker.
        defined.or_else(|error| match unless_there.is_some_and(|made| made.is_there(&context)) {
            true => Ok(()),
            false => Err(error),
        })
    }

    async fn define_checked(&self, state: SessionState, definition: DdlStatement, declared: Declared) -> Result<()> {
        match definition {
            DdlStatement::CreateMemoryTable(table) => self.create_table(state, table, declared).await,
            DdlStatement::DropTable(DropTable { name, .. }) | DdlStatement::DropView(DropView { name, .. })
                if is_there(&state, &name) =>
            {
                // DataFusion takes an error of the schema for a table that is not there.
                state.schema_for_ref(name.clone())?.deregister_table(name.table())?;
                Ok(())
            }
            mut definition => {
                if let DdlStatement::CreateExternalTable(table) = &definition {
                    check_defaults(&table.column_defaults, table.schema.as_arrow(), &state)?;
                }
                if let DdlStatement::CreateView(view) = &mut definition {
                    check_lasting(view, &state)?;
                    if declared.is_temporary {
                        // Plans that its name means something to are the connection's.
                        self.give();
                    }
                    view.input = Arc::new(analyzed(&view.input, &state)?);
                    // DataFusion takes files that the name is a path of for a table.
                    view.or_replace |= !is_there(&state, &view.name);
                }
                // The catalog is shared, so a table made by the statement's own copy is in the database.
                let context = SessionContext::new_with_state(state);
                let plan = LogicalPlan::Ddl(definition);
                context.execute_logical_plan(plan).await?;
                Ok(())
            }
        }
    }

    /// Makes a table in memory, of the rows of a query where there is one.
    async fn create_table(&self, state: SessionState, table: CreateMemoryTable, declared: Declared) -> Result<()> {
        let CreateMemoryTable { name, input, if_not_exists, or_replace, constraints: _, column_defaults, temporary } =
            table;
        if temporary {
            return Err(SqlError::Unsupported("temporary tables in PREPARE".into()));
        }
        let context = SessionContext::new_with_state(state.clone());
        let exists = match declared.is_temporary {
            true => {
                let exists = is_temporary(&state, &name).ok_or_else(|| {
                    SqlError::Unsupported(format!("a temporary table in another schema than {}", catalog::SCHEMA))
                })?;
                // Plans over its name are the connection's.
                self.give();
                exists
            }
            false => context.table_exist(name.clone())?,
        };
        match (if_not_exists, or_replace) {
            (true, true) => return Err(SqlError::Planning("'IF NOT EXISTS' cannot coexist with 'REPLACE'".into())),
            (true, false) if exists => return Ok(()),
            (false, false) if exists => return Err(SqlError::Planning(format!("Table '{name}' already exists"))),
            _ => {}
        }
        let input = analyzed(read_as_declared(input, &declared)?.as_ref(), &state)?;
        let schema = of_table(input.schema().as_arrow(), &declared)?;
        let column_defaults = match column_defaults.is_empty() {
            true => planned_defaults(&declared, &state)?,
            false => column_defaults,
        };
        check_defaults(column_defaults.iter().map(|(column, default)| (column, default)), &schema, &state)?;
        let rules = Arc::new(rules(&name, schema, &declared, &state)?);
        let plan = state.create_physical_plan(&input).await?;
        let tables = self.inner.database.shared.catalogs.tables();
        let mut partitions = JoinSet::new();
        for (number, rows) in execute_stream_partitioned(plan.clone(), state.task_ctx())?.into_iter().enumerate() {
            partitions.spawn(collected(number, rows, rules.clone(), tables.ledger.clone()));
        }
        let mut batches: Vec<Charged> = (0..partitions.len()).map(|_| Charged::default()).collect();
        while let Some(done) = partitions.join_next().await {
            match done {
                Ok(Ok((number, rows))) => batches[number] = rows,
                Ok(Err(error)) => return Err(diagnose::explain(Suspect::of_plan(&plan), error).await),
                Err(failed) if failed.is_panic() => resume_unwind(failed.into_panic()),
                Err(_) => return Err(SqlError::Cancelled),
            }
        }
        let written: HashMap<String, _> = declared.defaults.into_iter().collect();
        let default = |(column, planned): (String, Expr)| {
            let written = written.get(&column)?.clone();
            Some((column, ColumnDefault { planned, written }))
        };
        let defaults = column_defaults.into_iter().filter_map(default).collect();
        let rules = Arc::into_inner(rules).ok_or_else(|| SqlError::Internal("rules that are still in use".into()))?;
        let table = MemoryTable::new(name.table(), rules, defaults, batches, tables.clone())?;
        if or_replace && exists {
            context.deregister_table(name.clone())?;
        }
        context.register_table(name, Arc::new(table))?;
        Ok(())
    }
}

/// Whether a table is there that is one of the connection alone; none for a schema without such tables.
pub(super) fn is_temporary(state: &SessionState, name: &TableReference) -> Option<bool> {
    state.schema_for_ref(name.clone()).ok()?.downcast_ref::<ConnectionSchema>()?.has_temporary(name.table())
}

/// Whether a table is made in the schema of temporary tables.
fn is_among_temporary(state: &SessionState, definition: &DdlStatement) -> Result<bool> {
    let is_among = |name: &TableReference| {
        name.schema().is_some_and(|schema| catalog::TEMPORARY.contains(&schema)) && is_temporary(state, name).is_some()
    };
    let name = match definition {
        DdlStatement::CreateMemoryTable(table) => return Ok(is_among(&table.name)),
        DdlStatement::CreateView(view) => return Ok(is_among(&view.name)),
        DdlStatement::CreateExternalTable(table) => &table.name,
        _ => return Ok(false),
    };
    match is_among(name) {
        true => Err(SqlError::Unsupported(format!("'{name}', a table over files that is temporary"))),
        false => Ok(false),
    }
}

/// Refuses a view over a table that ends with the connection, or with the statement: names of a view mean the same to
/// every connection.
fn check_lasting(view: &CreateView, state: &SessionState) -> Result<()> {
    let mut found = None;
    view.input.apply_nested(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        let table = source_as_provider(&scan.source)?;
        let is_given = table.downcast_ref::<MemoryTable>().is_some_and(|table| !table.is_listed());
        found = match is_given {
            true => Some(format!("a view over '{}', which is no table of the catalog", scan.table_name)),
            false if is_temporary(state, &scan.table_name) == Some(true) => {
                Some(format!("a view over '{}', a temporary table", scan.table_name))
            }
            false => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    found.map_or(Ok(()), |reason| Err(SqlError::Unsupported(reason)))
}

/// The defaults of a table that is altered, whose statement defines no columns.
fn planned_defaults(declared: &Declared, state: &SessionState) -> Result<Vec<(String, Expr)>> {
    let planned = |(column, default): &(String, SqlExpr)| {
        let written = ExprWithAlias { expr: default.clone(), alias: None };
        Ok((column.clone(), state.create_logical_expr_from_sql_expr(written, &DFSchema::empty())?))
    };
    declared.defaults.iter().map(planned).collect()
}

/// A plan with the types that it has when it runs: rules of the analyzer change some.
fn analyzed(plan: &LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    Ok(state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {})?)
}

/// The rows of a partition of a table that is made.
async fn collected(
    number: usize,
    mut rows: SendableRecordBatchStream,
    rules: Arc<Rules>,
    ledger: Arc<Ledger>,
) -> Result<(usize, Charged)> {
    let mut charged = Charged::default();
    while let Some(batch) = rows.try_next().await? {
        let batch = rules.admit(&batch)?;
        let charge = ledger.charge(rules.table(), &batch)?;
        charged.push(batch, Arc::new(charge));
    }
    Ok((number, charged))
}

/// A query whose columns are values of the extension types that are declared for them: the planner casts to texts.
fn read_as_declared(query: Arc<LogicalPlan>, declared: &Declared) -> Result<Arc<LogicalPlan>> {
    let has_query = !matches!(query.as_ref(), LogicalPlan::EmptyRelation(_));
    if !has_query || declared.extension_types.is_empty() {
        return Ok(query);
    }
    let item = |column: Column| match declared.extension_types.iter().find(|(name, _)| *name == column.name) {
        Some((name, to)) => Ok(functions::reader(*to)?.call(vec![Expr::Column(column)]).alias(name)),
        None => Ok(Expr::Column(column)),
    };
    let items = query.schema().columns().into_iter().map(item).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(LogicalPlanBuilder::from(Arc::unwrap_or_clone(query)).project(items)?.build()?))
}

/// The columns of a table made of a query's rows; those that are declared NOT NULL, or in a primary key, have no NULL.
fn of_table(query: &Schema, declared: &Declared) -> Result<SchemaRef> {
    let mut names = HashSet::new();
    if let Some(field) = query.fields().iter().find(|field| !names.insert(field.name())) {
        let reason = format!("two columns of the table would be named '{}'; name one otherwise with AS", field.name());
        return Err(SqlError::Planning(reason));
    }
    let column = |field: &Arc<Field>| {
        let nullable = field.as_ref().clone().with_nullable(!declared.is_not_null(field.name()));
        // What enters the table is read.
        ExtensionType::of(field).map_or(nullable.clone(), |of| of.read(nullable))
    };
    let fields: Vec<Field> = query.fields().iter().map(column).collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, query.metadata().clone())))
}

/// The rules of a table with these declarations.
fn rules(name: &TableReference, schema: SchemaRef, declared: &Declared, state: &SessionState) -> Result<Rules> {
    let number = |column: &String| {
        schema.index_of(column).map_err(|_| SqlError::UnknownColumn { name: column.clone(), nearest: None })
    };
    let key = |key: &DeclaredKey| {
        let columns = key.columns.iter().map(number).collect::<Result<Vec<_>>>()?;
        Ok(Key { is_primary: key.is_primary, columns })
    };
    let keys = declared.keys.iter().map(key).collect::<Result<Vec<_>>>()?;
    let columns = DFSchema::try_from(schema.clone())?;
    let check = |check: &SqlExpr| {
        let text = check.to_string();
        let written = ExprWithAlias { expr: check.clone(), alias: None };
        let planned = state.create_logical_expr_from_sql_expr(written, &columns)?;
        if planned.get_type(&columns)? != DataType::Boolean {
            return Err(SqlError::Planning(format!("CHECK ({text}) is no condition")));
        }
        // The analyzer's rules read it as they read a filter.
        let empty = EmptyRelation { produce_one_row: false, schema: Arc::new(columns.clone()) };
        let filter = LogicalPlanBuilder::from(LogicalPlan::EmptyRelation(empty)).filter(planned)?.build()?;
        let LogicalPlan::Filter(filter) = analyzed(&filter, state)? else {
            return Err(SqlError::Unsupported(format!("CHECK ({text})")));
        };
        if filter.predicate.exists(|expr| Ok(has_other_values(expr)))? {
            let reason = format!("CHECK ({text}), which may hold at one time and not at another");
            return Err(SqlError::Unsupported(reason));
        }
        let condition = state.create_physical_expr(filter.predicate, &columns)?;
        Ok(Check { text, condition })
    };
    let checks = declared.checks.iter().map(check).collect::<Result<Vec<_>>>()?;
    Ok(Rules::of(name.table(), schema).with(keys, checks))
}

/// Whether an expression is a call that may give another value each time.
fn has_other_values(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(function) => function.func.signature().volatility != Volatility::Immutable,
        _ => false,
    }
}

/// Computes defaults as INSERT does, but for those that may be another value each time.
///
/// # Errors
/// [`SqlError::Planning`] for one that is no value of its column's type.
fn check_defaults<'a>(
    defaults: impl IntoIterator<Item = (&'a String, &'a Expr)>,
    schema: &Schema,
    state: &SessionState,
) -> Result<()> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .map_err(|error| SqlError::Internal(error.to_string()))?;
    for (column, default) in defaults {
        let Ok(field) = schema.field_with_name(column) else { continue };
        let computed = || -> Result<()> {
            check_kinds([field.data_type(), &default.get_type(&DFSchema::empty())?])?;
            let value = match ExtensionType::of(field) {
                Some(of) => functions::reader(of)?.call(vec![default.clone()]),
                None => Expr::Cast(Cast::new(Box::new(default.clone()), field.data_type().clone())),
            };
            let plan = analyzed(&LogicalPlanBuilder::empty(true).project([value.alias(column)])?.build()?, state)?;
            for value in plan.expressions() {
                if value.exists(|expr| Ok(has_other_values(expr)))? {
                    continue;
                }
                state.create_physical_expr(value.unalias(), &DFSchema::empty())?.evaluate(&row)?;
            }
            Ok(())
        };
        computed().map_err(|error| match error.bare() {
            SqlError::Execution(reason) | SqlError::Planning(reason) => {
                SqlError::Planning(format!("DEFAULT of column '{column}': {reason}"))
            }
            other => other,
        })?;
    }
    Ok(())
}

/// Checks a definition for what DataFusion does not.
fn check_definition(definition: &DdlStatement) -> Result<()> {
    match definition {
        DdlStatement::CreateExternalTable(table) => {
            formats::stored_as(&table.file_type, &table.locations.join(", ")).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Whether a definition takes the place of a table or a view.
fn replaces(definition: &DdlStatement) -> bool {
    match definition {
        DdlStatement::CreateExternalTable(table) => table.or_replace,
        DdlStatement::CreateMemoryTable(table) => table.or_replace,
        DdlStatement::CreateView(view) => view.or_replace,
        _ => false,
    }
}

/// What a definition with IF NOT EXISTS makes.
enum Made {
    Table(TableReference),
    /// The catalog's name, where it is said, and the schema's.
    Schema(Option<String>, String),
}

impl Made {
    fn is_there(&self, context: &SessionContext) -> bool {
        match self {
            Made::Table(name) => context.table_exist(name.clone()).unwrap_or(false),
            Made::Schema(catalog, schema) => {
                let default = context.state_ref().read().config_options().catalog.default_catalog.clone();
                let catalog = context.catalog(catalog.as_ref().unwrap_or(&default));
                catalog.is_some_and(|catalog| catalog.schema(schema).is_some())
            }
        }
    }
}

/// What a definition makes unless it is there.
fn unless_there(definition: &DdlStatement) -> Option<Made> {
    match definition {
        DdlStatement::CreateExternalTable(table) if table.if_not_exists => Some(Made::Table(table.name.clone())),
        DdlStatement::CreateMemoryTable(table) if table.if_not_exists => Some(Made::Table(table.name.clone())),
        DdlStatement::CreateCatalogSchema(schema) if schema.if_not_exists => {
            let parts = schema.schema_name.split_once('.');
            let (catalog, name) =
                parts.map_or((None, schema.schema_name.as_str()), |(catalog, name)| (Some(catalog.to_string()), name));
            Some(Made::Schema(catalog, name.to_string()))
        }
        _ => None,
    }
}

/// Whether a schema has a table or a view of a name.
fn is_there(state: &SessionState, name: &TableReference) -> bool {
    state.schema_for_ref(name.clone()).is_ok_and(|schema| schema.table_exist(name.table()))
}

/// A `DROP TABLE` takes no view, a `DROP VIEW` no table, and neither a file that is a table by its name.
async fn check_drop(state: &SessionState, definition: &DdlStatement) -> Result<()> {
    let (name, if_exists, wanted, other) = match definition {
        DdlStatement::DropTable(drop) => (&drop.name, drop.if_exists, "table", "view"),
        DdlStatement::DropView(drop) => (&drop.name, drop.if_exists, "view", "table"),
        _ => return Ok(()),
    };
    let Ok(schema) = state.schema_for_ref(name.clone()) else { return Ok(()) };
    let found = schema.table(name.table()).await;
    if !schema.table_exist(name.table()) {
        return match (found, if_exists) {
            (Ok(None), _) | (_, true) => Ok(()),
            (Ok(Some(_)) | Err(_), false) => Err(SqlError::Planning(format!(
                "there is no {wanted} '{0}' to drop; '{0}' names files, which DROP does not delete",
                name.table()
            ))),
        };
    }
    let Ok(Some(found)) = found else { return Ok(()) };
    match (found.table_type() == datafusion::datasource::TableType::View) == (wanted == "view") {
        true => Ok(()),
        false => {
            let statement = other.to_uppercase();
            Err(SqlError::Planning(format!("'{name}' is a {other}, no {wanted}; use DROP {statement}")))
        }
    }
}
