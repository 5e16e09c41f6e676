//! Prepared statements: prepared anew when what they depend on has changed, optimised once for all parameters.
//!
//! Executing one takes the template of its plan ([`crate::plans::Templates`]), where there can be one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::{DFSchema, ParamValues, ScalarValue, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    Cast, Deallocate, Execute, Expr, LogicalPlan, LogicalPlanBuilder, Prepare, Statement as PlanStatement,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::parser::Statement as ParsedStatement;
use parking_lot::Mutex;

use super::Connection;
use super::parsed::planned;
use crate::catalog::Catalogs;
use crate::database::HoldsPlans;
use crate::error::{Result, SqlError};
use crate::mend::common_types::check_kinds;
use crate::plans::{self, Epoch, PlanCache, Template, Templates};
use crate::walk::Walk;

/// What a connection has prepared.
#[derive(Default)]
pub(super) struct PreparedStatements {
    statements: Mutex<HashMap<String, Arc<Prepared>>>,
    /// Held alone while a statement is prepared, prepared anew or forgotten.
    preparing: tokio::sync::RwLock<()>,
    /// Number of statements that were prepared or forgotten: a name may mean something else after each.
    changes: AtomicU64,
    /// The plans of statements that execute one.
    pub(super) executed: PlanCache,
}

/// What is needed to execute a prepared statement and to prepare it anew.
struct Prepared {
    sql: String,
    tables: Vec<TableReference>,
    /// What it was last prepared under.
    epoch: Epoch,
    fields: Vec<FieldRef>,
    /// Whether the statement declares the types of its parameters; otherwise they are inferred.
    has_types: bool,
    /// Whether its tables tell when they change ([`plans::tells_changes`]); otherwise it is prepared anew each time.
    tells_changes: bool,
    /// What its RETURNING selects from the rows that it changes.
    returning: Option<ParsedStatement>,
    /// The plan; none once the catalog has changed, since it holds its tables.
    input: Mutex<Option<Arc<LogicalPlan>>>,
}

/// A prepared statement that nothing has changed for, to be executed.
pub(super) struct Fresh {
    prepared: Arc<Prepared>,
    input: Arc<LogicalPlan>,
}

impl PreparedStatements {
    /// Number of changes to what is prepared.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

impl HoldsPlans for PreparedStatements {
    fn drop_stale(&self, generation: u64) {
        self.executed.drop_stale(generation);
        self.statements.lock().values().for_each(|prepared| prepared.drop_stale(generation));
    }
}

impl Connection {
    /// Prepares a statement that reads these tables, planned under that epoch; `has_types` says that it declares the
    /// types of its parameters.
    ///
    /// DataFusion keeps plans that were optimised over placeholders, before their types are coerced; here the plan is
    /// kept as it was written.
    pub(super) async fn prepare(
        &self,
        sql: &str,
        tables: Vec<TableReference>,
        epoch: Epoch,
        Prepare { name, fields, input }: Prepare,
        has_types: bool,
        returning: Option<ParsedStatement>,
    ) -> Result<()> {
        let own = &self.inner.prepared;
        let _alone = own.preparing.write().await;
        if own.statements.lock().contains_key(&name) {
            return Err(SqlError::Planning(format!("Prepared statement '{name}' already exists; DEALLOCATE it first")));
        }
        let tells_changes = plans::tells_changes(&input, &self.inner.database.shared.catalogs)?;
        let (sql, input) = (sql.to_string(), Mutex::new(Some(input)));
        let prepared = Prepared { sql, tables, epoch, fields, has_types, tells_changes, returning, input };
        own.statements.lock().insert(name, Arc::new(prepared));
        own.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Forgets all prepared statements.
    pub(super) async fn deallocate_all(&self) {
        let own = &self.inner.prepared;
        let _alone = own.preparing.write().await;
        own.statements.lock().clear();
        own.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Forgets a prepared statement.
    pub(super) async fn deallocate(&self, deallocate: &Deallocate) -> Result<()> {
        let own = &self.inner.prepared;
        let _alone = own.preparing.write().await;
        if own.statements.lock().remove(&deallocate.name).is_none() {
            return Err(unknown(&deallocate.name));
        }
        own.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Prepares a statement anew if the catalog or the settings have changed since (types of columns, the time zone);
    /// looks at its tables' files first. Gives the statement, if there is one of the name, with a copy of the state to
    /// plan with and the epoch.
    pub(super) async fn freshen_prepared(&self, name: &str) -> Result<(Epoch, SessionState, Option<Fresh>)> {
        let own = &self.inner.prepared;
        {
            let _shared = own.preparing.read().await;
            let (epoch, state) = self.executing();
            let Some(prepared) = own.statements.lock().get(name).cloned() else { return Ok((epoch, state, None)) };
            if let Some(fresh) = self.fresh(prepared, epoch, &state).await? {
                return Ok((epoch, state, Some(fresh)));
            }
        }
        let _alone = own.preparing.write().await;
        let (mut epoch, state) = self.executing();
        // Another thread may have done it meanwhile, or taken it away.
        let Some(prepared) = own.statements.lock().get(name).cloned() else { return Ok((epoch, state, None)) };
        let fresh = match self.fresh(prepared.clone(), epoch, &state).await? {
            Some(fresh) => fresh,
            None => {
                // Looking at its tables may have changed the catalog.
                epoch = Epoch { prepared: epoch.prepared, ..self.epoch_of(&state) };
                let catalogs = &self.inner.database.shared.catalogs;
                let fresh = prepared_anew(&prepared, epoch, &state, catalogs).await?;
                own.statements.lock().insert(name.to_string(), fresh.prepared.clone());
                fresh
            }
        };
        Ok((epoch, state, Some(fresh)))
    }

    /// What [`Connection::planning`] gives, for a statement that executes a prepared one. The caller keeps what is
    /// prepared from changing.
    fn executing(&self) -> (Epoch, SessionState) {
        let (epoch, state) = self.planning();
        (Epoch { prepared: Some(self.inner.prepared.changes()), ..epoch }, state)
    }

    /// A statement if nothing has changed since it was prepared; looks at its tables' files.
    async fn fresh(&self, prepared: Arc<Prepared>, epoch: Epoch, state: &SessionState) -> Result<Option<Fresh>> {
        if !prepared.tells_changes {
            return Ok(None);
        }
        for table in &prepared.tables {
            let schema = state.schema_for_ref(table.clone())?;
            schema.table(table.table()).await?;
        }
        let known = (prepared.epoch.catalog, prepared.epoch.settings);
        let is_fresh = known == (epoch.catalog, epoch.settings) && self.is_of_now(epoch);
        let input = prepared.input.lock().clone().filter(|_| is_fresh);
        Ok(input.map(|input| Fresh { prepared, input }))
    }
}

/// A statement prepared anew under an epoch.
async fn prepared_anew(prepared: &Prepared, epoch: Epoch, state: &SessionState, catalogs: &Catalogs) -> Result<Fresh> {
    let (plan, returning) = planned(state, &prepared.sql).await?;
    let LogicalPlan::Statement(PlanStatement::Prepare(prepare)) = plan else {
        return Err(SqlError::Internal("a prepared statement that prepares nothing".into()));
    };
    let input = prepare.input;
    let prepared = Prepared {
        sql: prepared.sql.clone(),
        tables: prepared.tables.clone(),
        epoch,
        fields: prepare.fields,
        has_types: prepared.has_types,
        tells_changes: plans::tells_changes(&input, catalogs)?,
        returning,
        input: Mutex::new(Some(input.clone())),
    };
    Ok(Fresh { prepared: Arc::new(prepared), input })
}

/// The plan of a prepared statement with these parameters, not yet optimised, and its RETURNING.
///
/// # Errors
/// There is no such statement, or it takes other parameters.
pub(super) fn executed_anew(
    fresh: Option<&Fresh>,
    state: &SessionState,
    execute: &Execute,
) -> Result<(LogicalPlan, Option<ParsedStatement>)> {
    let Fresh { prepared, input } = fresh.ok_or_else(|| unknown(&execute.name))?;
    let (expected, given) = (prepared.parameters(input)?, execute.parameters.len());
    if expected != given {
        let name = &execute.name;
        let reason = format!("Prepared statement '{name}' expects {expected} parameters, but {given} provided");
        return Err(SqlError::Planning(reason));
    }
    let values = prepared.values(&execute.parameters, state)?;
    let plan = input.as_ref().clone().replace_params_with_values(&ParamValues::List(values))?;
    Ok((plan, prepared.returning.clone()))
}

/// A template, the values that a statement takes for its parameters, and whether the template was made now.
type Filling = (Arc<Template>, Vec<ScalarValue>, bool);

impl Fresh {
    /// The tables that the statement names.
    pub(super) fn tables(&self) -> &[TableReference] {
        &self.prepared.tables
    }

    /// The template of the statement and the values that it takes for these parameters; the flag says that the template
    /// was made now. None where there can be no template, and for values that it cannot take.
    pub(super) fn template(
        &self,
        state: &SessionState,
        execute: &Execute,
        (epoch, catalogs): (Epoch, &Catalogs),
        templates: &Templates,
    ) -> Result<Option<Filling>> {
        let Fresh { prepared, input } = self;
        let count = prepared.fields.len();
        if count == 0 || count != execute.parameters.len() || !plans::are_immutable(&execute.parameters)? {
            return Ok(None);
        }
        let Ok(values) = prepared.values(&execute.parameters, state) else { return Ok(None) };
        // A NULL may change the plan's shape, and a value of another type its types.
        let of_type = |(value, field): (&ScalarAndMetadata, &FieldRef)| {
            !value.value().is_null() && value.value().data_type() == *field.data_type()
        };
        if !values.iter().zip(&prepared.fields).all(of_type) {
            return Ok(None);
        }
        let template = templates.get(input, &prepared.fields, (epoch, catalogs), state);
        let values = values.into_iter().map(|value| value.value);
        Ok(template.map(|(template, is_new)| (template, values.collect(), is_new)))
    }
}

impl Prepared {
    /// Drops the plan if it is of an older generation of the catalog.
    fn drop_stale(&self, generation: u64) {
        if self.epoch.catalog < generation {
            *self.input.lock() = None;
        }
    }

    /// How many parameters the statement has. Those whose types nothing tells have no field.
    fn parameters(&self, input: &LogicalPlan) -> Result<usize> {
        match self.has_types {
            true => Ok(self.fields.len()),
            false => Ok(input.get_parameter_names()?.len()),
        }
    }

    /// The parameters as values: of the declared types, or, where a value is the same in it, of the type that the
    /// statement's own expressions ask for, otherwise of their own type.
    fn values(&self, parameters: &[Expr], state: &SessionState) -> Result<Vec<ScalarAndMetadata>> {
        let simplifier = simplifier(state);
        // Where one field is missing, it is not known of which parameter.
        let fields = if self.fields.len() == parameters.len() { self.fields.as_slice() } else { &[] };
        let value = |(number, parameter): (usize, &Expr)| {
            let own = constant(parameter, &simplifier, state)?;
            let Some(field) = fields.get(number) else { return Ok(own) };
            let value = own.value();
            check_kinds([field.data_type(), &value.data_type()])?;
            if self.has_types {
                return cast_as_in_sql(own, field, &simplifier, state);
            }
            let cast = own.clone().cast_storage_to(field.data_type());
            // A decimal that is a whole number is none where it divides, and no integer's quotient has its digits.
            let is_same = |cast: &ScalarAndMetadata| {
                let is_kept = keeps_kind(&value.data_type(), &cast.value().data_type());
                value.is_null() || is_kept && cast.value().cast_to(&value.data_type()).is_ok_and(|back| back == *value)
            };
            Ok(cast.ok().filter(is_same).unwrap_or(own))
        };
        parameters.iter().enumerate().map(value).collect()
    }
}

/// Folds constants as in a statement that begins now.
fn simplifier(state: &SessionState) -> ExprSimplifier {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(DFSchema::empty()))
        .with_config_options(state.config_options().clone())
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    ExprSimplifier::new(context)
}

/// The value of an argument of EXECUTE, as `SELECT <argument>` gives it.
///
/// # Errors
/// [`SqlError::Unsupported`] for an argument with a subquery or a volatile function, and those of computing it.
fn constant(argument: &Expr, simplifier: &ExprSimplifier, state: &SessionState) -> Result<ScalarAndMetadata> {
    if let Expr::Literal(value, metadata) = argument {
        return Ok(ScalarAndMetadata::new(value.clone(), metadata.clone()));
    }
    let is_open = |expr: &Expr| {
        Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
            || expr.is_volatile_node())
    };
    if argument.exists(is_open)? {
        let reason = format!("'{argument}' as a parameter of EXECUTE; it takes constants");
        return Err(SqlError::Unsupported(reason));
    }
    let plan = LogicalPlanBuilder::empty(true).project([argument.clone()])?.build()?;
    let analyzed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    let computed = analyzed.expressions().pop().ok_or_else(|| SqlError::Internal("an argument that is lost".into()))?;
    let computed = simplifier.simplify(computed.unalias())?;
    if let Expr::Literal(value, metadata) = computed {
        return Ok(ScalarAndMetadata::new(value, metadata));
    }
    // What the simplifier leaves, as a cast that fails, is computed, and gives its error.
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .map_err(|error| SqlError::Internal(error.to_string()))?;
    let value = state.create_physical_expr(computed, &DFSchema::empty())?.evaluate(&row)?.into_array(1)?;
    Ok(ScalarAndMetadata::new(ScalarValue::try_from_array(&value, 0)?, None))
}

/// A value of a declared type, by the rules that CAST has in a statement.
fn cast_as_in_sql(
    value: ScalarAndMetadata,
    field: &FieldRef,
    simplifier: &ExprSimplifier,
    state: &SessionState,
) -> Result<ScalarAndMetadata> {
    let (from, to) = (value.value().data_type(), field.data_type());
    if from == *to || from.is_integer() && to.is_integer() {
        return Ok(value.cast_storage_to(to)?);
    }
    let own = Expr::Literal(value.value().clone(), None);
    let cast = constant(&Expr::Cast(Cast::new(Box::new(own), to.clone())), simplifier, state)?;
    Ok(ScalarAndMetadata::new(cast.value, value.metadata))
}

/// Whether a value of one type computes as it is when it is one of another: an integer may be any number, and what is
/// no number anything.
fn keeps_kind(from: &DataType, to: &DataType) -> bool {
    match from {
        from if from.is_decimal() => to.is_decimal() || !to.is_numeric(),
        from if from.is_floating() => to.is_floating() || !to.is_numeric(),
        _ => true,
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::Planning(format!("Prepared statement '{name}' does not exist"))
}
