//! From the text of a statement to its plan, which has not been optimised yet.

use std::sync::Arc;
use std::time::Instant;

use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as ParsedStatement;
use tracing::Instrument;

use super::Connection;
use super::define;
use super::parsed::{check_view, deallocates_all, declares_types, executed, plan_parsed, resolved};
use super::prepared::Fresh;
use crate::error::Result;
use crate::plans::Epoch;
use crate::report::{Phase, StatementReport};
use crate::rewrite::rewrite;
use crate::syntax::{self, Again, Altered, Declared};

/// A statement that was read.
pub(super) enum Read {
    /// There is nothing to do.
    Nothing,
    /// All prepared statements are forgotten.
    DeallocateAll,
    Planned(Box<ReadPlan>),
}

/// The plan of a statement, and what its text says beside it.
pub(super) struct ReadPlan {
    pub(super) plan: LogicalPlan,
    /// The prepared statement that it executes.
    pub(super) fresh: Option<Fresh>,
    /// The SELECT that its RETURNING is.
    pub(super) returning: Option<ParsedStatement>,
    /// What it declares of the rows of a table that it makes.
    pub(super) declared: Declared,
    /// The table that it gives another name.
    pub(super) renamed: Option<TableReference>,
    /// Whether it says of what types its parameters are.
    pub(super) has_types: bool,
    /// The tables that it names, and those by their full names that its rows are of.
    pub(super) references: Vec<TableReference>,
    pub(super) tables: Arc<[TableReference]>,
}

impl Connection {
    /// Reads a statement, with its names in the case that its tables have them in. Gives what a plan depends on, and
    /// the state to go on with.
    pub(super) async fn read(&self, sql: &str, report: &Arc<StatementReport>) -> Result<(Read, Epoch, SessionState)> {
        let (epoch, mut state) = self.planning();
        state.config_mut().set_extension(report.clone());
        let (mut again, mut executing): (Option<Again>, _) = (None, None);
        let read = loop {
            let reading = again.as_ref().map_or(&state, |again| &again.state);
            match Box::pin(self.read_with(sql, reading, &mut executing, report)).await {
                Ok(read) => break read,
                Err(error) => again = Some(syntax::again(&state, sql, again.take(), error).await?),
            }
        };
        let (epoch, state) = executing.unwrap_or((epoch, state));
        Ok((read, epoch, state))
    }

    /// Reads a statement with a state; one that executes a prepared statement is planned with that one's, which is put
    /// into `executing`.
    async fn read_with(
        &self,
        sql: &str,
        state: &SessionState,
        executing: &mut Option<(Epoch, SessionState)>,
        report: &Arc<StatementReport>,
    ) -> Result<Read> {
        let mut phase = Instant::now();
        let parsing = syntax::parse_returning(state, sql).instrument(tracing::info_span!("parse"));
        let (mut parsed, returning) = parsing.await.and_then(|(parsed, select)| Ok((rewrite(parsed)?, select)))?;
        phase = report.end_phase(Phase::Parse, phase);
        let mut fresh = None;
        if let Some(name) = executed(&parsed) {
            let (epoch, mut own, found) = self.freshen_prepared(&name).await?;
            own.config_mut().set_extension(report.clone());
            (*executing, fresh) = (Some((epoch, own)), found);
        }
        let state = executing.as_ref().map_or(state, |(_, own)| own);
        check_view(state, &parsed)?;
        let mut declared = Declared::take(&mut parsed)?;
        let mut renamed = None;
        match syntax::altered(state, &mut parsed).await? {
            Some(Some(altered)) => {
                let table;
                Altered { statement: parsed, declared, renamed, table } = altered;
                declared.is_temporary = define::is_temporary(state, &table) == Some(true);
            }
            Some(None) => return Ok(Read::Nothing),
            None => {}
        }
        let has_types = declares_types(&parsed);
        if deallocates_all(&parsed) {
            return Ok(Read::DeallocateAll);
        }
        let references = state.resolve_table_references(&parsed)?;
        let tables = match &fresh {
            Some(fresh) => resolved(fresh.tables().iter().cloned(), state),
            None => resolved(references.iter().cloned(), state),
        };
        let plan = plan_parsed(state, parsed).instrument(tracing::info_span!("plan")).await?;
        report.end_phase(Phase::Plan, phase);
        let read = ReadPlan { plan, fresh, returning, declared, renamed, has_types, references, tables };
        Ok(Read::Planned(Box::new(read)))
    }
}
