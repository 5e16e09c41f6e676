//! Running the statements that are ours.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::{Connection, Execution};
use crate::access::Access;
use crate::catalog::{CATALOG, KeptCatalog, LASTING, SCHEMA};
use crate::device_tables;
use crate::error::{Result, SqlError};
use crate::exec::EngineTables;
use crate::locations::local_path;
use crate::nearest::nearest;
use crate::report::StatementReport;
use crate::show;
use crate::statement::OwnStatement;
use crate::values::{ReadOnly, SettingOrigin};

impl Connection {
    /// Runs a statement of ours.
    pub(super) async fn own(&self, statement: OwnStatement, report: &Arc<StatementReport>) -> Result<Execution> {
        let state = self.state();
        let access = Access::of(state.config_options());
        let batch = match statement {
            OwnStatement::ShowAll { verbose } => show::batch(&show::entries(&state), &self.origins(), verbose)?,
            OwnStatement::ShowSetting { name } => {
                crate::settings::setting(&name)?;
                let mut entries = show::entries(&state);
                entries.retain(|entry| entry.key == name);
                show::batch(&entries, &self.origins(), false)?
            }
            OwnStatement::ResetSetting { name } => {
                crate::settings::setting(&name)?;
                report.commit()?;
                self.reset(&name)?;
                return Ok(self.nothing(report));
            }
            OwnStatement::Attach { folder, name, read_only } => {
                access.check_shared("ATTACH")?;
                access.check_location(&folder)?;
                if folder == ":memory:" {
                    let reason =
                        "ATTACH ':memory:'; tables are in memory, and CREATE SCHEMA name makes a place for some";
                    return Err(SqlError::Unsupported(reason.into()));
                }
                let path = local_path(&folder).unwrap_or_else(|| PathBuf::from(&folder));
                let own = path.file_stem().map(|name| name.to_string_lossy().to_lowercase());
                let name = name.or(own).ok_or_else(|| SqlError::Syntax("expected ATTACH 'folder' AS name".into()))?;
                let read_only = read_only || self.with_settings(|settings| settings.read_only.is_on());
                // Opening a folder makes it.
                self.inner.database.shared.catalogs.check_free(&name)?;
                let kept = Arc::new(KeptCatalog::open(&path, read_only)?);
                report.commit()?;
                self.inner.database.shared.catalogs.attach(&name, &kept)?;
                return Ok(self.nothing(report));
            }
            OwnStatement::Detach { name } => {
                access.check_shared("DETACH")?;
                if state.config_options().catalog.default_catalog == name {
                    let reason = format!("catalog '{name}' is in use; USE another one first, as USE {CATALOG}");
                    return Err(SqlError::Planning(reason));
                }
                report.commit()?;
                self.inner.database.shared.catalogs.detach(&name)?;
                return Ok(self.nothing(report));
            }
            OwnStatement::Use { names } => {
                let (catalog, schema) = self.used(&state, &names)?;
                report.commit()?;
                self.assign("datafusion.catalog.default_catalog", &catalog, SettingOrigin::Statement)?;
                self.assign("datafusion.catalog.default_schema", &schema, SettingOrigin::Statement)?;
                return Ok(self.nothing(report));
            }
            OwnStatement::SetGlobal { name, value } => {
                access.check_shared("SET GLOBAL")?;
                let kept = self.kept_catalog()?;
                kept.check_writable()?;
                self.check_outranked(&name, &value)?;
                if name == "warpcube.read_only" {
                    let reason = "no session could take it back; give --read-only, or a token that is read-only";
                    return Err(SqlError::Unsupported(format!("SET GLOBAL {name}: {reason}")));
                }
                report.commit()?;
                let origin = SettingOrigin::Catalog(kept.folder().to_path_buf());
                self.assign(&name, &value, origin.clone())?;
                kept.keep_setting(&name, Some(&value))?;
                self.inner.database.begin_with(&name, Some((value, origin)));
                return Ok(self.nothing(report));
            }
            OwnStatement::ResetGlobal { name } => {
                access.check_shared("RESET GLOBAL")?;
                let kept = self.kept_catalog()?;
                self.check_setting(&name)?;
                report.commit()?;
                self.reset_global(&name)?;
                kept.keep_setting(&name, None)?;
                self.inner.database.begin_with(&name, None);
                return Ok(self.nothing(report));
            }
            OwnStatement::ShowQueries => self.inner.database.shared.registry.list()?,
            OwnStatement::Kill { number } => {
                let is_own_alone = self.with_settings(|settings| settings.read_only == ReadOnly::All);
                self.inner.database.shared.registry.kill(number, self.inner.session.clone(), is_own_alone)?;
                return Ok(self.nothing(report));
            }
            OwnStatement::ShowDeviceTables => device_tables::batch(&self.inner.database.resident_tables())?,
            OwnStatement::LoadTable { table, columns } => {
                access.check_shared("LOAD TABLE")?;
                let tables = self.device_tables_for("LOAD TABLE")?;
                let provider = self.table(&state, &table).await?;
                let table = table.to_string();
                let provider = provider.ok_or_else(|| SqlError::UnknownTable { name: table.clone(), nearest: None })?;
                check_columns(&provider, &columns)?;
                device_tables::batch(&[tables.load(&state, &table, provider, &columns, report).await?])?
            }
            OwnStatement::EvictTable { table } => {
                access.check_shared("EVICT TABLE")?;
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

    /// The catalog and the schema that USE names: a catalog with its first schema, a schema of the one in use, or both.
    fn used(&self, state: &SessionState, names: &[String]) -> Result<(String, String)> {
        let now = &state.config_options().catalog.default_catalog;
        let has = |catalog: &str, schema: &str| {
            state.catalog_list().catalog(catalog).is_some_and(|catalog| catalog.schema(schema).is_some())
        };
        let (catalog, schema) = match names {
            [catalog, schema] => (catalog.as_str(), schema.as_str()),
            [name] if has(name, SCHEMA) => (name.as_str(), SCHEMA),
            names => (now.as_str(), names.last().map_or(SCHEMA, String::as_str)),
        };
        match has(catalog, schema) {
            true => Ok((catalog.to_string(), schema.to_string())),
            false => Err(SqlError::Planning(format!("there is no catalog or schema '{}'", names.join(".")))),
        }
    }

    /// The catalog that keeps settings.
    fn kept_catalog(&self) -> Result<&Arc<KeptCatalog>> {
        let reason = "SET GLOBAL keeps a setting in a catalog, and this database has none that was opened with it: \
                      start the program with a folder, warpcube folder/";
        let kept = self.inner.database.shared.kept_catalog.as_ref();
        kept.ok_or_else(|| SqlError::Planning(reason.into()))
    }

    /// The table a name means now, or none: a temporary one by its name alone.
    async fn table(&self, state: &SessionState, name: &TableReference) -> Result<Option<Arc<dyn TableProvider>>> {
        let names = &state.config_options().catalog;
        let full = name.clone().resolve(&names.default_catalog, &names.default_schema);
        let is_first = name.schema().is_some() && *full.catalog == *CATALOG && *full.schema == *SCHEMA;
        let schema = match is_first {
            true => state.schema_for_ref(TableReference::full(CATALOG, LASTING, name.table()))?,
            false => state.schema_for_ref(name.clone())?,
        };
        Ok(schema.table(name.table()).await?)
    }

    fn device_tables_for(&self, statement: &'static str) -> Result<&EngineTables> {
        let shared = &self.inner.database.shared;
        match shared.device.get() {
            Some(_) => Ok(&shared.tables),
            None => Err(SqlError::NoDevice { statement, reason: shared.device.no_gpu().unwrap_or_default() }),
        }
    }

    /// Where the values of settings come from, the database's among them.
    fn origins(&self) -> BTreeMap<String, SettingOrigin> {
        let mut origins = self.inner.database.current().origins;
        origins.extend(self.inner.origins.lock().clone());
        origins
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
