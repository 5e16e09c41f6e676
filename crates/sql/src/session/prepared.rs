//! Prepared statements: prepared anew when what they depend on has changed, optimised once for all parameters.
//!
//! Executing one takes the template of its plan ([`crate::plans::Templates`]), where there can be one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::datatypes::FieldRef;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::{DFSchema, ParamValues, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Deallocate, Execute, Expr, LogicalPlan, Prepare, Statement as PlanStatement};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::Session;
use crate::error::{Result, SqlError};
use crate::plans::{self, Epoch};
use crate::syntax;

/// What is needed to execute a prepared statement and to prepare it anew.
pub(super) struct Prepared {
    sql: String,
    tables: Vec<TableReference>,
    generation: u64,
    /// Number of changes to the settings, and to what is prepared, when it was last prepared.
    changes: u64,
    fields: Vec<FieldRef>,
    input: Arc<LogicalPlan>,
}

impl Session {
    /// Prepares a statement that reads these tables, planned under that generation of the catalog.
    pub(super) async fn prepare(
        &self,
        sql: &str,
        tables: Vec<TableReference>,
        generation: u64,
        prepare: Prepare,
    ) -> Result<()> {
        let _alone = self.inner.preparing.write().await;
        let plan = LogicalPlan::Statement(PlanStatement::Prepare(prepare.clone()));
        self.inner.context.execute_logical_plan(plan).await?;
        // Plans of statements that execute one of this name are kept no longer.
        let changes = self.inner.changes.fetch_add(1, Ordering::AcqRel) + 1;
        self.keep_prepared(sql.to_string(), tables, (generation, changes), prepare);
        Ok(())
    }

    fn keep_prepared(
        &self,
        sql: String,
        tables: Vec<TableReference>,
        (generation, changes): (u64, u64),
        Prepare { name, fields, input }: Prepare,
    ) {
        let prepared = Prepared { sql, tables, generation, changes, fields, input };
        self.inner.prepared.lock().insert(name, Arc::new(prepared));
    }

    /// Forgets a prepared statement.
    pub(super) async fn deallocate(&self, deallocate: Deallocate) -> Result<()> {
        let _alone = self.inner.preparing.write().await;
        let name = deallocate.name.clone();
        let plan = LogicalPlan::Statement(PlanStatement::Deallocate(deallocate));
        self.inner.context.execute_logical_plan(plan).await?;
        self.inner.prepared.lock().remove(&name);
        self.inner.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Prepares a statement anew if the catalog or the settings have changed since (types of columns, the time zone);
    /// looks at its tables' files first. Gives a copy of the session's state in which it is prepared, with the epoch
    /// of before.
    pub(super) async fn freshen_prepared(&self, name: &str) -> Result<(Epoch, SessionState)> {
        let known = |session: &Session| session.inner.prepared.lock().get(name).cloned();
        {
            // While nobody prepares anew: the session has no statement of the name for a moment then.
            let _shared = self.inner.preparing.read().await;
            let is_fresh = match known(self) {
                Some(prepared) => self.is_fresh(&prepared).await?,
                None => true,
            };
            if is_fresh {
                return Ok((self.epoch(), self.inner.context.state()));
            }
        }
        let _alone = self.inner.preparing.write().await;
        // Another thread may have done it meanwhile, or taken it away.
        if let Some(prepared) = known(self)
            && !self.is_fresh(&prepared).await?
        {
            self.prepare_anew(&prepared, name).await?;
        }
        Ok((self.epoch(), self.inner.context.state()))
    }

    /// Whether nothing has changed since a statement was prepared; looks at its tables' files.
    async fn is_fresh(&self, prepared: &Prepared) -> Result<bool> {
        let state = self.inner.context.state();
        for table in &prepared.tables {
            let schema = state.schema_for_ref(table.clone())?;
            schema.table(table.table()).await?;
        }
        let now = (self.inner.catalog.generation(), self.inner.changes.load(Ordering::Acquire));
        Ok(now == (prepared.generation, prepared.changes))
    }

    async fn prepare_anew(&self, prepared: &Prepared, name: &str) -> Result<()> {
        let (generation, changes) = (self.inner.catalog.generation(), self.inner.changes.load(Ordering::Acquire));
        let state = self.inner.context.state();
        let statement = syntax::parse(&state, &prepared.sql)?;
        let LogicalPlan::Statement(PlanStatement::Prepare(prepare)) = state.statement_to_plan(statement).await? else {
            return Err(SqlError::Internal("a prepared statement that prepares nothing".into()));
        };
        let before = LogicalPlan::Statement(PlanStatement::Deallocate(Deallocate { name: name.to_string() }));
        self.inner.context.execute_logical_plan(before).await?;
        let plan = LogicalPlan::Statement(PlanStatement::Prepare(prepare.clone()));
        self.inner.context.execute_logical_plan(plan).await?;
        self.keep_prepared(prepared.sql.clone(), prepared.tables.clone(), (generation, changes), prepare);
        Ok(())
    }

    /// The plan of a prepared statement with these parameters, not yet optimised; none where DataFusion has to judge.
    ///
    /// DataFusion's own prepared plan was optimised over placeholders, and concludes from them.
    pub(super) fn executed_anew(&self, state: &SessionState, execute: &Execute) -> Result<Option<LogicalPlan>> {
        let Some(prepared) = self.inner.prepared.lock().get(&execute.name).cloned() else { return Ok(None) };
        let Some(values) = values(&prepared.fields, &execute.parameters, state) else { return Ok(None) };
        Ok(Some(prepared.input.as_ref().clone().replace_params_with_values(&ParamValues::List(values))?))
    }

    /// The optimised plan of a prepared statement with these parameters, by its template.
    pub(super) fn executed_by_template(
        &self,
        state: &SessionState,
        execute: &Execute,
        epoch: Epoch,
    ) -> Result<Option<(LogicalPlan, bool)>> {
        let Some(prepared) = self.inner.prepared.lock().get(&execute.name).cloned() else { return Ok(None) };
        if !plans::are_immutable(&execute.parameters)? {
            return Ok(None);
        }
        let Some(values) = values(&prepared.fields, &execute.parameters, state) else { return Ok(None) };
        // A NULL may change the plan's shape.
        if values.iter().any(|value| value.value().is_null()) {
            return Ok(None);
        }
        let by_template = self.inner.templates.plan(&prepared.input, &ParamValues::List(values), epoch, state);
        let Some((plan, is_new)) = by_template else { return Ok(None) };
        // Casts of parameters and the like: what the optimiser folds where constants stand from the start.
        Ok(Some((plans::simplify(plan, state)?, is_new)))
    }
}

/// The parameters as values of the prepared types; none where there are none, or DataFusion has to judge.
fn values(fields: &[FieldRef], parameters: &[Expr], state: &SessionState) -> Option<Vec<ScalarAndMetadata>> {
    if fields.is_empty() || fields.len() != parameters.len() {
        return None;
    }
    // Folds `DATE '2020-01-01'` and `7 * 24`; without a time for `now()`, that stays as it is.
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(DFSchema::empty()))
        .with_config_options(state.config_options().clone())
        .build();
    let simplifier = ExprSimplifier::new(context);
    let value = |(field, parameter): (&FieldRef, &Expr)| {
        let Expr::Literal(value, metadata) = simplifier.simplify(parameter.clone()).ok()? else { return None };
        ScalarAndMetadata::new(value, metadata).cast_storage_to(field.data_type()).ok()
    };
    fields.iter().zip(parameters).map(value).collect::<Option<Vec<_>>>()
}
