//! Running the statements that are ours.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::{Execution, Session};
use crate::device_tables::{self, DeviceTables};
use crate::error::{Result, SqlError};
use crate::nearest::nearest;
use crate::report::StatementReport;
use crate::show;
use crate::statement::OwnStatement;
use crate::values::Origin;

impl Session {
    /// Runs a statement of ours.
    pub(super) async fn own(&self, statement: OwnStatement, report: &Arc<StatementReport>) -> Result<Execution> {
        let state = self.inner.context.state();
        let batch = match statement {
            OwnStatement::ShowAll { verbose } => {
                show::batch(&show::entries(&state), &self.inner.origins.lock(), verbose)?
            }
            OwnStatement::ShowSetting { name } => {
                crate::settings::setting(&name)?;
                let mut entries = show::entries(&state);
                entries.retain(|entry| entry.key == name);
                show::batch(&entries, &self.inner.origins.lock(), false)?
            }
            OwnStatement::ResetSetting { name } => {
                let start = &self.inner.start;
                let value = start.settings.value(&name)?;
                report.commit()?;
                self.assign(&name, &value, start.origins.get(&name).cloned().unwrap_or(Origin::Default))?;
                return Ok(self.nothing(report));
            }
            OwnStatement::ShowDeviceTables => {
                let tables = self.device_tables().map(|tables| tables.show()).unwrap_or_default();
                device_tables::batch(&tables)?
            }
            OwnStatement::LoadTable { table, columns } => {
                let tables = self.device_tables_for("LOAD TABLE")?;
                let provider = self.table(&state, &table).await?;
                let table = table.to_string();
                let provider = provider.ok_or_else(|| SqlError::UnknownTable { name: table.clone(), nearest: None })?;
                check_columns(&provider, &columns)?;
                device_tables::batch(&[tables.load(&state, &table, provider, &columns, report).await?])?
            }
            OwnStatement::EvictTable { table } => {
                let tables = self.device_tables_for("EVICT TABLE")?;
                let provider = self.table(&state, &table).await?;
                let (table, known) = (table.to_string(), provider.is_some());
                let evicted = tables.evict(&state, &table, provider).await?;
                if evicted.is_none() && !known {
                    return Err(SqlError::UnknownTable { name: table, nearest: None });
                }
                device_tables::batch(evicted.as_slice())?
            }
        };
        report.add_rows(batch.num_rows() as u64);
        report.finish();
        let schema = batch.schema();
        let rows = futures::stream::iter([Ok(batch)]);
        let stream = Box::pin(RecordBatchStreamAdapter::new(schema.clone(), rows.boxed()));
        Ok(Execution { schema, stream, report: report.clone(), plan: None, counts: false })
    }

    /// The table a name means now, or none.
    async fn table(&self, state: &SessionState, name: &TableReference) -> Result<Option<Arc<dyn TableProvider>>> {
        let schema = state.schema_for_ref(name.clone())?;
        Ok(schema.table(name.table()).await?)
    }

    fn device_tables_for(&self, statement: &'static str) -> Result<Arc<dyn DeviceTables>> {
        match (self.inner.device.reason(), self.device_tables()) {
            (None, Some(tables)) => Ok(tables),
            (reason, _) => {
                let reason = reason.unwrap_or_else(|| "device memory is not managed in this session".into());
                Err(SqlError::NoDevice { statement, reason })
            }
        }
    }
}

fn check_columns(table: &Arc<dyn TableProvider>, columns: &[String]) -> Result<()> {
    let schema = table.schema();
    let names = || schema.fields().iter().map(|field| field.name().clone());
    match columns.iter().find(|column| !names().any(|name| name == **column)) {
        Some(column) => Err(SqlError::UnknownColumn { name: column.clone(), nearest: nearest(column, names()) }),
        None => Ok(()),
    }
}
