//! `SHOW DEVICE TABLES`, `LOAD TABLE` and `EVICT TABLE` over the engine's resident columns.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::datasource::ViewTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use tokio::runtime::Handle;
use warpcube_column::{ColumnError, ColumnOrigin, LoadLimits, Storage, TableRequest, TableSummary};
use warpcube_gpu::CancelSwitch;

use super::source::{TableColumns, load_limits};
use crate::cancel::ThrowOnDrop;
use crate::device_tables::{DeviceColumn, DeviceTable};
use crate::diagnose::{self, Suspect};
use crate::engines::Engines;
use crate::error::{Result, SqlError};
use crate::lower::describe_table;
use crate::report::StatementReport;
use crate::settings::Settings;

/// The tables on the engine's device.
pub(crate) struct EngineTables {
    engines: Arc<Engines>,
}

fn entry(summary: TableSummary) -> DeviceTable {
    let columns = summary.columns.into_iter().map(|column| DeviceColumn {
        name: column.facts.name.clone(),
        encoding: match &column.facts.dictionary {
            Some(strings) => format!("{} dictionary({})", column.encoding, strings.len()),
            None => column.encoding,
        },
        bits_per_value: column.bits_per_value,
        distinct: column.facts.traits.map(|traits| traits.distinct),
        sorted: column.facts.traits.map(|traits| traits.is_sorted),
        bytes: column.bytes,
        host_bytes: column.host_bytes,
        hits: column.hits,
        origin: match column.origin {
            Some(ColumnOrigin::Source) => "source",
            Some(ColumnOrigin::File) => "file",
            Some(ColumnOrigin::Host) | None => "host",
        },
    });
    DeviceTable { name: summary.table, rows: summary.rows, columns: columns.collect() }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> SqlError {
    SqlError::from(DataFusionError::External(Box::new(error)))
}

impl EngineTables {
    /// The tables of a database.
    pub(crate) fn new(engines: Arc<Engines>) -> EngineTables {
        EngineTables { engines }
    }

    /// What is in device memory.
    pub(crate) fn show(&self) -> Vec<DeviceTable> {
        let Some(engine) = self.engines.get() else { return Vec::new() };
        engine.residency().summaries().into_iter().map(entry).collect()
    }

    /// Brings columns of a table to the device, all of them where `columns` is empty. `table` is what the name means
    /// to the connection now. The time goes to the report.
    pub(crate) async fn load(
        &self,
        state: &SessionState,
        name: &str,
        table: Arc<dyn TableProvider>,
        columns: &[String],
        report: &StatementReport,
    ) -> Result<DeviceTable> {
        let engine = self.engines.get().ok_or_else(|| failed(std::io::Error::other("the device is gone")))?;
        if table.is::<ViewTable>() {
            let reason = format!("'{name}' is a view: LOAD TABLE takes the tables that it reads");
            return Err(SqlError::from(DataFusionError::Plan(reason)));
        }
        let info = Arc::new(describe_table(name.to_string(), table, state).await?);
        let schema = info.provider.schema();
        let wanted = |index: &usize| {
            let field = schema.field(*index);
            match columns.is_empty() {
                true => Storage::of(field.data_type()).is_some(),
                false => columns.contains(field.name()),
            }
        };
        let positions: Vec<usize> = (0..schema.fields().len()).filter(wanted).collect();
        let settings = state.config_options().extensions.get::<Settings>().cloned().unwrap_or_default();
        let cancel: Arc<CancelSwitch> = Arc::default();
        let _throw = ThrowOnDrop(cancel.clone());
        let limits = LoadLimits { cancelled: cancel.flag().clone(), ..load_limits(&settings) };
        report.cancel().attach(&cancel);
        if !engine.residency().is_resident(&info.key, &info.version, &positions) {
            report.follow_load(&limits.rows_done, info.rows.unwrap_or(0));
        }
        let state = Arc::new(state.clone());
        let source = TableColumns::new(info.clone(), state.clone(), Handle::current(), limits.threads);
        let (key, device) = (info.key.clone(), engine.clone());
        let pinned = tokio::task::spawn_blocking(move || {
            let requests = [TableRequest { source: Arc::new(source), columns: positions, coded: Vec::new() }];
            device.residency().admit(&requests, &limits, |_| Ok::<_, ColumnError>(0))
        });
        let pinned = match pinned.await.map_err(failed)? {
            Ok(pinned) => pinned,
            Err(error) => {
                let error = failed(error);
                let plan = info.provider.scan(state.as_ref(), None, &[], None).await;
                return Err(match plan {
                    Ok(plan) => diagnose::explain(Suspect::of_plan(&plan), error).await,
                    Err(_) => error,
                });
            }
        };
        report.add_load(&pinned.loaded);
        drop(pinned);
        let summary = engine.residency().summary_of(&key);
        summary.map(entry).ok_or_else(|| failed(std::io::Error::other("the table left the device at once")))
    }

    /// Takes a table's columns off the device; gives what was there, or none. `table` is what the name means to the
    /// connection now, or none where the catalog does not know it any more.
    pub(crate) async fn evict(
        &self,
        state: &SessionState,
        name: &str,
        table: Option<Arc<dyn TableProvider>>,
    ) -> Result<Option<DeviceTable>> {
        let Some(engine) = self.engines.get() else { return Ok(None) };
        let residency = engine.residency();
        let evicted = match table {
            // Tables of several schemas may have one name, and one table several.
            Some(table) => {
                let info = describe_table(name.to_string(), table, state).await?;
                residency.evict(&info.key)
            }
            None => residency.evict_by_name(name),
        };
        Ok(evicted.map(entry))
    }
}
