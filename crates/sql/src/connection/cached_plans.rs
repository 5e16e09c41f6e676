//! Plans that are kept between statements: what they depend on, and when they go.

use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::execution::{SessionState, SessionStateBuilder};

use super::{Connection, SettingsNumber};
use crate::error::Result;
use crate::exec::{PlanningState, SortedByDevice};
use crate::plans::{Epoch, PlanCache, Planned};

impl Connection {
    /// What plans depend on that are made with a state now.
    pub(super) fn epoch_of(&self, state: &SessionState) -> Epoch {
        let shared = &self.inner.database.shared;
        Epoch {
            catalog: shared.catalogs.generation(),
            settings: number_of(state),
            refusals: shared.planner.refusals(),
            prepared: None,
        }
    }

    /// A copy of the state to plan with, and what the plan will depend on: what changes of the catalog while it is
    /// planned makes it one of the past.
    pub(super) fn planning(&self) -> (Epoch, SessionState) {
        let state = self.state();
        (self.epoch_of(&state), state)
    }

    /// Whether the catalog and the refusals are still those of an epoch.
    pub(super) fn is_of_now(&self, epoch: Epoch) -> bool {
        let shared = &self.inner.database.shared;
        (shared.catalogs.generation(), shared.planner.refusals()) == (epoch.catalog, epoch.refusals)
    }

    /// Where plans of an epoch are kept: the connection keeps those that depend on what it has prepared.
    pub(super) fn plans_of(&self, epoch: Epoch) -> &PlanCache {
        match epoch.prepared {
            Some(_) => &self.inner.prepared.executed,
            None => &self.inner.database.shared.kept.plans,
        }
    }

    /// The plan of a statement that was planned before, if nothing it depends on has changed, and a copy of the state
    /// to run it with.
    pub(super) async fn planned_before(&self, sql: &str) -> Result<Option<(Arc<Planned>, SessionState)>> {
        self.settle();
        let epoch = self.epoch_of(&self.inner.context.state_ref().read());
        self.inner.database.drop_stale(epoch.catalog);
        let executed = Epoch { prepared: Some(self.inner.prepared.changes()), ..epoch };
        let known = |epoch| self.plans_of(epoch).get(sql, epoch);
        let Some((planned, tables)) = known(epoch).or_else(|| known(executed)) else { return Ok(None) };
        if planned.is_misplaced(self.planner().basis()) {
            return Ok(None);
        }
        let state = match planned.is_lean() {
            true => self.lean_state(),
            false => self.inner.context.state(),
        };
        let is_there = self.look_at(&tables, &state).await;
        Ok((is_there && number_of(&state) == epoch.settings && self.is_of_now(epoch)).then_some((planned, state)))
    }

    /// Looks at tables, whether they are there: naming one makes the catalog look at its files, and the generation
    /// grows where they have changed. Any trouble with a table is for the statement's own planning to tell.
    pub(super) async fn look_at(&self, tables: &[TableReference], state: &SessionState) -> bool {
        for table in tables {
            let Ok(schema) = state.schema_for_ref(table.clone()) else { return false };
            if !matches!(schema.table(table.table()).await, Ok(Some(_))) {
                return false;
            }
        }
        true
    }

    /// A copy of the state for plans with nothing to optimise: one partition, of the rules for physical plans the one
    /// that knows what the device has sorted.
    pub(super) fn lean_state(&self) -> SessionState {
        let mut lean = self.inner.lean.lock();
        let now = number_of(&self.inner.context.state_ref().read());
        match &*lean {
            Some(state) if number_of(state) == now => state.clone(),
            _ => {
                // Plans hold the functions they call: without the registries a state is copied in no time.
                let whole = self.inner.context.state();
                let state = SessionStateBuilder::new_from_existing(whole.clone())
                    .with_physical_optimizer_rules(vec![Arc::new(SortedByDevice)])
                    .with_scalar_functions(Vec::new())
                    .with_aggregate_functions(Vec::new())
                    .with_window_functions(Vec::new())
                    .build();
                let whole = Arc::new(PlanningState(Arc::new(whole)));
                let config = state.config().clone().with_target_partitions(1).with_extension(whole);
                let state = SessionStateBuilder::new_from_existing(state).with_config(config).build();
                lean.insert(state).clone()
            }
        }
    }
}

/// The number of a state's settings.
pub(super) fn number_of(state: &SessionState) -> u64 {
    state.config().get_extension::<SettingsNumber>().map_or(0, |number| number.0)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use arrow::array::Array;
    use datafusion::common::TableReference;

    use super::*;
    use crate::database::{Database, DatabaseOptions};
    use crate::memory_table::MemoryTable;

    async fn first_column(session: &Connection) -> Weak<dyn Array> {
        let table = session.context().table_provider(TableReference::bare("t")).await.unwrap();
        let table = table.downcast_ref::<MemoryTable>().unwrap();
        Arc::downgrade(table.partitions()[0][0].column(0))
    }

    /// Rows of an older version go with the next statement, whatever has read them.
    #[tokio::test]
    async fn rows_that_no_version_has_go() {
        let session = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu")).unwrap().connect();
        session.collect("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 1000)").await.unwrap();
        session.collect("CREATE VIEW v AS SELECT a + 1 AS b FROM t").await.unwrap();
        session.collect("PREPARE p AS SELECT sum(a) FROM t WHERE a > $1").await.unwrap();
        // Another connection, which runs no more statements.
        let idle = session.database().connect();
        idle.collect("PREPARE q AS SELECT max(a) FROM t WHERE a > $1").await.unwrap();
        idle.collect("EXECUTE q(5)").await.unwrap();
        let old = first_column(&session).await;
        for sql in
            ["SELECT sum(a) FROM t", "SELECT max(b) FROM v WHERE b < 5", "EXECUTE p(7)", "EXPLAIN SELECT a FROM t"]
        {
            session.collect(sql).await.unwrap();
            session.collect(sql).await.unwrap();
        }
        assert!(old.upgrade().is_some());
        session.collect("UPDATE t SET a = a + 1").await.unwrap();
        session.collect("SELECT 1").await.unwrap();
        assert!(old.upgrade().is_none(), "{} owners", old.strong_count());
        let found = session.collect("EXECUTE p(7)").await.unwrap();
        assert_eq!(
            arrow::util::pretty::pretty_format_batches(&found).unwrap().to_string().matches("501473").count(),
            1
        );
        let old = first_column(&session).await;
        session.collect("DROP TABLE t").await.unwrap();
        session.collect("SELECT 1").await.unwrap();
        assert!(old.upgrade().is_none(), "{} owners", old.strong_count());
    }
}
