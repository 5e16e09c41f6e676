//! Plans that are kept between statements: what they depend on, and when they go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::TableReference;
use datafusion::execution::{SessionState, SessionStateBuilder};

use super::Session;
use crate::error::Result;
use crate::exec::{PlanningState, SortedByDevice};
use crate::plans::{Epoch, Planned};

impl Session {
    /// Drops plans of older generations of the catalog, once a generation: they hold tables, and tables in memory hold
    /// their rows.
    fn drop_stale(&self, generation: u64) {
        if self.inner.kept_generation.fetch_max(generation, Ordering::AcqRel) >= generation {
            return;
        }
        self.inner.plans.drop_stale(generation);
        self.inner.shapes.drop_stale(generation);
        self.inner.templates.drop_stale(generation);
        self.inner.prepared.lock().values().for_each(|prepared| prepared.drop_stale(generation));
        self.schemas().iter().for_each(|schema| schema.drop_stale());
    }

    /// What plans made now depend on.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch {
            catalog: self.inner.catalog.generation(),
            settings: self.inner.changes.load(Ordering::Acquire),
            refusals: self.inner.planner.refusals(),
        }
    }

    /// The plan of a statement that was planned before, if nothing it depends on has changed, and a copy of the state
    /// to run it with.
    pub(super) async fn planned_before(&self, sql: &str) -> Result<Option<(Arc<Planned>, SessionState)>> {
        let epoch = self.epoch();
        self.drop_stale(epoch.catalog);
        let Some((planned, tables)) = self.inner.plans.get(sql, epoch) else { return Ok(None) };
        if planned.is_misplaced(self.inner.planner.basis()) {
            return Ok(None);
        }
        let state = match planned.is_lean() {
            true => self.lean_state(epoch.settings),
            false => self.inner.context.state(),
        };
        let is_there = self.look_at(&tables, &state).await;
        Ok((is_there && self.epoch() == epoch).then_some((planned, state)))
    }

    /// Looks at tables, whether they are there: naming one makes the catalog look at its files, and the generation
    /// grows where they have changed. Any trouble with a table is for the statement's own planning to tell.
    pub(super) async fn look_at(&self, tables: &[TableReference], state: &SessionState) -> bool {
        for table in tables {
            let Ok(schema) = state.schema_for_ref(table.clone()) else { return false };
            // A path in place of a name is looked at without a trace in the generation.
            if !schema.table_exist(table.table()) || !matches!(schema.table(table.table()).await, Ok(Some(_))) {
                return false;
            }
        }
        true
    }

    /// A copy of the state for plans with nothing to optimise: one partition, of the rules for physical plans the one
    /// that knows what the device has sorted.
    pub(super) fn lean_state(&self, settings: u64) -> SessionState {
        let mut lean = self.inner.lean.lock();
        match &*lean {
            Some((known, state)) if *known == settings => state.clone(),
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
                lean.insert((settings, state)).1.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use arrow::array::Array;
    use datafusion::common::TableReference;

    use super::*;
    use crate::memory_table::MemoryTable;
    use crate::session::SessionOptions;

    async fn first_column(session: &Session) -> Weak<dyn Array> {
        let table = session.context().table_provider(TableReference::bare("t")).await.unwrap();
        let table = table.downcast_ref::<MemoryTable>().unwrap();
        Arc::downgrade(table.partitions()[0][0].column(0))
    }

    /// Rows of an older version go with the next statement, whatever has read them.
    #[tokio::test]
    async fn rows_that_no_version_has_go() {
        let session = Session::new(SessionOptions::new().with("warpcube.device", "cpu")).unwrap();
        session.collect("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 1000)").await.unwrap();
        session.collect("CREATE VIEW v AS SELECT a + 1 AS b FROM t").await.unwrap();
        session.collect("PREPARE p AS SELECT sum(a) FROM t WHERE a > $1").await.unwrap();
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
