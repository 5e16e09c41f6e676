//! Plans that leave for another database, and plans that come from one.

use std::sync::Arc;
use std::time::Instant;

use tracing::Instrument;

use super::{Connection, Execution};
use crate::codec;
use crate::error::{Result, SqlError};
use crate::report::StatementReport;
use crate::statement::OwnStatement;
use crate::stream::{Deadline, registered};

impl Connection {
    /// Plans a query and gives its plan as bytes, which a connection to another database runs with
    /// [`Connection::run_encoded`].
    ///
    /// Both have to be of the same version of Warpcube. Files travel by their paths and have to be there at the other
    /// end; other tables travel by name. Functions of the moment, `now()` say, have this connection's value.
    ///
    /// ```
    /// use warpcube_sql::{Database, DatabaseOptions};
    ///
    /// # let runtime = tokio::runtime::Runtime::new().unwrap();
    /// # runtime.block_on(async {
    /// let here = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu"))?.connect();
    /// let there = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu"))?.connect();
    /// let bytes = here.encode_plan("SELECT 1 + 1 AS two").await?;
    /// let batches = there.run_encoded(&bytes).await?.collect().await?;
    /// assert_eq!(batches[0].num_rows(), 1);
    /// # Ok::<(), warpcube_sql::SqlError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// What is wrong with the statement, and [`SqlError::PlanEncode`] for one that is no query or has no exact
    /// encoding.
    pub async fn encode_plan(&self, sql: &str) -> Result<Vec<u8>> {
        let report = StatementReport::new();
        let statement = self.registration(sql, &report);
        statement.begin();
        let deadline = self.with_settings(|settings| settings.timeout).map(Deadline::after);
        let encoded = self.guarded(&report, deadline, self.encoded(sql)).await;
        encoded.inspect(|_| statement.forget()).map_err(|error| statement.failed(error))
    }

    async fn encoded(&self, sql: &str) -> Result<Vec<u8>> {
        if OwnStatement::parse(sql)?.is_some() {
            return Err(SqlError::PlanEncode("expected a query, found a statement about the session".into()));
        }
        let state = self.state();
        let plan = self.planned(sql).await?;
        let optimized = state.optimize(&plan)?;
        let planned = self.planner().lower_alone(&optimized, &state).await?;
        codec::encode(&planned.plan, &state.task_ctx())
    }

    /// Runs a plan that another connection encoded, with the tables, settings and device of this one.
    ///
    /// # Errors
    /// [`SqlError::PlanDecode`] for bytes that are no plan of this version, or name tables that are not here; whatever
    /// else is wrong before the first row. Later errors come through the stream.
    pub async fn run_encoded(&self, bytes: &[u8]) -> Result<Execution> {
        self.run_encoded_with(bytes, StatementReport::new()).await
    }

    /// Runs an encoded plan with a report that the caller holds already, so that it can be cancelled while it is
    /// planned.
    ///
    /// # Errors
    /// As [`Connection::run_encoded`].
    pub async fn run_encoded_with(&self, bytes: &[u8], report: Arc<StatementReport>) -> Result<Execution> {
        let statement = self.registration(&format!("encoded plan of {} bytes", bytes.len()), &report);
        statement.begin();
        let deadline = self.with_settings(|settings| settings.timeout).map(Deadline::after);
        let span = tracing::info_span!("encoded plan", bytes = bytes.len());
        let work = self.start_encoded(bytes, &report, deadline).instrument(span);
        let started = self.guarded(&report, deadline, work).await;
        let execution = started.map_err(|error| statement.failed(error))?;
        Ok(Execution { stream: registered(execution.stream, statement), ..execution })
    }

    async fn start_encoded(
        &self,
        bytes: &[u8],
        report: &Arc<StatementReport>,
        deadline: Option<Deadline>,
    ) -> Result<Execution> {
        let clock = Instant::now();
        let mut state = self.state();
        state.config_mut().set_extension(report.clone());
        report.note_planned();
        let plan = codec::decode(bytes, &state.task_ctx())?;
        codec::check_files(&plan, &state).await?;
        let planned = self.planner().lower(&plan, &state).await?;
        self.run_planned(state, &planned, None, report, deadline, clock).await
    }
}
