//! The session's catalog: tables that notice when their files change, and files that are tables by their name.
//!
//! DataFusion keeps what a `CREATE` statement saw: the schema of a file, the plan of a view. Here a table is looked
//! at again whenever a statement names it ([`schema`]): files replaced by others of another shape are read anew,
//! views are planned from their text, a file that is gone is an error and not an empty table. [`files`] turns
//! `CREATE EXTERNAL TABLE` and `FROM 'file.parquet'` into DataFusion's listing tables, with the checks DataFusion does
//! not make.
//!
//! Invariants: [`CatalogShared::generation`] grows whenever a name may mean something else than before, so that
//! whatever was planned under an older one is stale; a name gives DataFusion's own `ListingTable` or `ViewTable` or a
//! [`MemoryTable`](crate::memory_table::MemoryTable) at its current version, never a wrapper (but for `.tbl` files,
//! tables with keys that are NULL and tables whose files are gone).

mod csv_dialect;
mod csv_newlines;
mod csv_types;
mod data_file_store;
mod files;
mod footer_facts;
mod footers;
mod formats;
mod inserts;
mod json_types;
mod json_values;
mod lacking;
mod memory;
mod null_keys;
mod partitions;
mod patterns;
mod row_order;
mod schema;
mod snapshot;
mod sniff;
mod special;
mod text_files;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProviderFactory};
use datafusion::common::{Result as DataFusionResult, exec_err};
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::RwLock;

use crate::locations::AllowedPaths;
use crate::memory_table::Common;
use crate::settings::Settings;

pub(crate) use data_file_store::{DataFileStore, KEPT_SUFFIX};
pub(crate) use files::{ExternalTableFactory, check_received, files_of_set, means_text, replaceable_files};
pub(crate) use footer_facts::{BelievableFooters, FooterFacts, Gaps};
pub(crate) use formats::{compression_of, stored_as, written_as};
pub(crate) use inserts::held;
pub(crate) use memory::FileMemory;
pub(crate) use null_keys::{NULL_KEY, listing_of, with_text_keys};
pub(crate) use row_order::RowOrder;
use schema::commit_definition;
pub(crate) use schema::{SessionSchema, define, plan_statement};
pub use snapshot::FileSnapshot;
pub(crate) use sniff::{SniffCsv, sql_name};
pub(crate) use text_files::{Copies, TEXT_FILES, TextReading, WrittenColumns};

pub use crate::default_schema::{CATALOG, SCHEMA};

/// The spellings of `STORED AS` that are taken.
pub(crate) const FILE_TYPES: [&str; 11] =
    ["PARQUET", "CSV", "TSV", "TBL", "JSON", "NDJSON", "JSONL", "ARROW", "IPC", "FEATHER", "PSV"];

/// What all schemas of one session share.
#[derive(Debug, Default)]
pub struct CatalogShared {
    tables: Common,
    state: OnceLock<Weak<parking_lot::RwLock<SessionState>>>,
}

impl CatalogShared {
    /// Grows whenever a name may mean something else than before.
    pub fn generation(&self) -> u64 {
        self.tables.generation.load(Ordering::Acquire)
    }

    /// What tables in memory share: they change by themselves, and have their memory charged.
    pub(crate) fn tables(&self) -> &Common {
        &self.tables
    }

    pub(crate) fn changed(&self) {
        self.tables.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Ties the catalog to its session, once; without it tables are not looked at again.
    pub(crate) fn attach(&self, state: Weak<parking_lot::RwLock<SessionState>>) {
        let _ = self.state.set(state);
    }

    /// A copy of the session's state. Copying costs some microseconds, so it is taken only where it is needed.
    pub(crate) fn session(&self) -> Option<SessionState> {
        self.state.get()?.upgrade().map(|state| state.read().clone())
    }

    /// The folders that the session may reach.
    fn allowed(&self) -> Option<AllowedPaths> {
        let state = self.state.get()?.upgrade()?;
        let state = state.read();
        state.config_options().extensions.get::<Settings>()?.allowed_paths.clone()
    }

    fn runtime(&self) -> Option<Arc<RuntimeEnv>> {
        self.state.get()?.upgrade().map(|state| state.read().runtime_env().clone())
    }
}

/// The catalog of a session: schemas of ours.
#[derive(Debug)]
pub(crate) struct SessionCatalog {
    shared: Arc<CatalogShared>,
    schemas: RwLock<BTreeMap<String, Arc<dyn SchemaProvider>>>,
}

impl SessionCatalog {
    pub(crate) fn new(shared: Arc<CatalogShared>) -> SessionCatalog {
        let schema: Arc<dyn SchemaProvider> = Arc::new(SessionSchema::new(SCHEMA, shared.clone()));
        SessionCatalog { shared, schemas: RwLock::new([(SCHEMA.to_string(), schema)].into()) }
    }
}

impl CatalogProvider for SessionCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.read().keys().cloned().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.schemas.read().get(name).cloned()
    }

    /// `CREATE SCHEMA` brings an empty schema of DataFusion's; one of ours takes its place.
    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> DataFusionResult<Option<Arc<dyn SchemaProvider>>> {
        let schema = match schema.table_names().is_empty() {
            true => Arc::new(SessionSchema::new(name, self.shared.clone())) as Arc<dyn SchemaProvider>,
            false => schema,
        };
        commit_definition()?;
        self.shared.changed();
        Ok(self.schemas.write().insert(name.to_string(), schema))
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> DataFusionResult<Option<Arc<dyn SchemaProvider>>> {
        let mut schemas = self.schemas.write();
        if let Some(schema) = schemas.get(name)
            && !cascade
            && !schema.table_names().is_empty()
        {
            return exec_err!(
                "schema '{name}' holds {}; add CASCADE to drop them too",
                schema.table_names().join(", ")
            );
        }
        commit_definition()?;
        self.shared.changed();
        Ok(schemas.remove(name))
    }
}

/// The factories for `CREATE EXTERNAL TABLE`, by spelling of `STORED AS`.
pub(crate) fn table_factories() -> impl Iterator<Item = (String, Arc<dyn TableProviderFactory>)> {
    FILE_TYPES.into_iter().map(|name| {
        let factory: Arc<dyn TableProviderFactory> = Arc::new(ExternalTableFactory);
        (name.to_string(), factory)
    })
}
