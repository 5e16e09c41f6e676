//! The catalogs of a database, and what one connection sees of them.
//!
//! [`Catalogs`] holds catalogs with their schemas and tables once for all connections. A connection's state has
//! [`CatalogView`] for its list of catalogs: names that need a state to be looked up (files, views, tables whose files
//! have changed) are looked up with that connection's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{Result as DataFusionResult, exec_err};
use datafusion::execution::SessionState;
use parking_lot::RwLock;

use super::connection_state::ConnectionState;
use super::kept::KeptCatalog;
use super::schema::{ConnectionSchema, Tables, commit_definition};
use super::{CATALOG, LASTING, SCHEMA, TEMPORARY};
use crate::error::{Result, SqlError};
use crate::memory_table::Common;

/// All catalogs of a database.
#[derive(Debug)]
pub(crate) struct Catalogs {
    tables: Common,
    catalogs: RwLock<BTreeMap<String, Catalog>>,
}

/// A catalog.
#[derive(Debug, Clone)]
enum Catalog {
    Own(Arc<Schemas>),
    /// One that an embedding program registered.
    Foreign(Arc<dyn CatalogProvider>),
}

/// The schemas of a catalog.
#[derive(Debug, Default)]
struct Schemas {
    all: RwLock<BTreeMap<String, Schema>>,
    /// Where definitions are kept, and the name that the catalog has here.
    kept: Option<(Arc<KeptCatalog>, String)>,
}

impl Schemas {
    /// Those of a kept catalog, which is called `name` here.
    fn of_kept(kept: &Arc<KeptCatalog>, name: &str) -> Schemas {
        let schema = |(schema, definitions): (String, _)| {
            let tables = Tables::of_kept(&schema, kept, name, definitions);
            (schema, Schema::Own(Arc::new(tables)))
        };
        let all = kept.schemas().into_iter().map(schema).collect();
        Schemas { all: RwLock::new(all), kept: Some((kept.clone(), name.to_string())) }
    }
}

fn check_free(catalogs: &BTreeMap<String, Catalog>, name: &str) -> Result<()> {
    let is_schema = |catalog: &Catalog| match catalog {
        Catalog::Own(schemas) => schemas.all.read().contains_key(name),
        Catalog::Foreign(catalog) => catalog.schema(name).is_some(),
    };
    match name == INFORMATION_SCHEMA || catalogs.contains_key(name) || catalogs.values().any(is_schema) {
        true => Err(SqlError::Planning(format!("'{name}' is there already; ATTACH … AS another name"))),
        false => Ok(()),
    }
}

/// A schema.
#[derive(Debug, Clone)]
enum Schema {
    Own(Arc<Tables>),
    /// One that an embedding program registered.
    Foreign(Arc<dyn SchemaProvider>),
}

impl Catalogs {
    /// The first catalog: as it is kept, or with its first schema, which is empty.
    pub(crate) fn new(tables: Common, kept: Option<&Arc<KeptCatalog>>) -> Catalogs {
        let schemas = match kept {
            Some(kept) => Schemas::of_kept(kept, CATALOG),
            None => {
                let first = Schema::Own(Arc::new(Tables::new(SCHEMA, None)));
                Schemas { all: RwLock::new([(SCHEMA.to_string(), first)].into()), kept: None }
            }
        };
        Catalogs { tables, catalogs: RwLock::new([(CATALOG.to_string(), Catalog::Own(Arc::new(schemas)))].into()) }
    }

    /// Grows whenever a name may mean something else than before.
    pub(crate) fn generation(&self) -> u64 {
        self.tables.generation.load(Ordering::Acquire)
    }

    /// What tables in memory share: they change by themselves, and have their memory charged.
    pub(crate) fn tables(&self) -> &Common {
        &self.tables
    }

    pub(crate) fn changed(&self) {
        self.tables.changed();
    }

    /// Names of all tables and of their columns as they were when last looked at.
    pub(crate) fn describe(&self) -> Vec<(String, Vec<String>)> {
        self.schemas().iter().flat_map(|schema| schema.describe()).collect()
    }

    /// Takes all tables in memory to their current versions.
    pub(crate) fn drop_stale(&self) {
        self.schemas().iter().for_each(|schema| schema.drop_stale());
    }

    /// Whether a listing table is that of a table over files, whose files are looked at when a statement names it.
    pub(crate) fn looks_at(&self, listing: &Arc<dyn TableProvider>) -> bool {
        self.schemas().iter().any(|schema| schema.looks_at(listing))
    }

    /// Adds a kept catalog.
    ///
    /// # Errors
    /// [`SqlError::Planning`] for a name that a catalog or a schema has.
    pub(crate) fn attach(&self, name: &str, kept: &Arc<KeptCatalog>) -> Result<()> {
        let mut catalogs = self.catalogs.write();
        check_free(&catalogs, name)?;
        catalogs.insert(name.to_string(), Catalog::Own(Arc::new(Schemas::of_kept(kept, name))));
        drop(catalogs);
        self.changed();
        Ok(())
    }

    /// Whether a kept catalog may have a name.
    ///
    /// # Errors
    /// [`SqlError::Planning`] for the name of another catalog, or of a schema.
    pub(crate) fn check_free(&self, name: &str) -> Result<()> {
        check_free(&self.catalogs.read(), name)
    }

    /// Takes a kept catalog away that was added.
    ///
    /// # Errors
    /// [`SqlError::Planning`] for another name.
    pub(crate) fn detach(&self, name: &str) -> Result<()> {
        let mut catalogs = self.catalogs.write();
        let is_attached = |catalog: &Catalog| matches!(catalog, Catalog::Own(schemas) if schemas.kept.is_some());
        if name == CATALOG || !catalogs.get(name).is_some_and(is_attached) {
            return Err(SqlError::Planning(format!("no catalog '{name}' was attached")));
        }
        if let Some(Catalog::Own(schemas)) = catalogs.remove(name) {
            schemas.all.read().values().for_each(|schema| match schema {
                Schema::Own(tables) => tables.close(),
                Schema::Foreign(_) => {}
            });
        }
        drop(catalogs);
        self.changed();
        Ok(())
    }

    fn schemas(&self) -> Vec<Arc<Tables>> {
        let of_catalog = |catalog: &Catalog| match catalog {
            Catalog::Own(schemas) => schemas.all.read().values().cloned().collect(),
            Catalog::Foreign(_) => Vec::new(),
        };
        let own = |schema| match schema {
            Schema::Own(tables) => Some(tables),
            Schema::Foreign(_) => None,
        };
        self.catalogs.read().values().flat_map(of_catalog).filter_map(own).collect()
    }
}

/// The catalogs of a database as one connection sees them.
#[derive(Debug, Clone)]
pub(crate) struct CatalogView {
    catalogs: Arc<Catalogs>,
    state: ConnectionState,
    /// The tables of the connection alone, under the names of the first schema.
    temporary: Arc<Tables>,
}

impl CatalogView {
    /// What the connection of that state sees.
    pub(crate) fn new(catalogs: Arc<Catalogs>, state: Weak<RwLock<SessionState>>) -> CatalogView {
        CatalogView { catalogs, state: ConnectionState(state), temporary: Arc::new(Tables::new(SCHEMA, None)) }
    }
}

impl CatalogProviderList for CatalogView {
    /// `CREATE DATABASE` brings an empty catalog of DataFusion's; one of ours takes its place. One that is there stays.
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        let catalog = match catalog.schema_names().is_empty() {
            true => Catalog::Own(Arc::default()),
            false => Catalog::Foreign(catalog),
        };
        match self.catalogs.catalogs.write().entry(name) {
            Entry::Occupied(there) => return Some(self.seen(there.key(), there.get())),
            Entry::Vacant(place) => _ = place.insert(catalog),
        }
        self.catalogs.changed();
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        self.catalogs.catalogs.read().keys().cloned().collect()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        self.catalogs.catalogs.read().get(name).map(|catalog| self.seen(name, catalog))
    }
}

impl CatalogView {
    fn seen(&self, name: &str, catalog: &Catalog) -> Arc<dyn CatalogProvider> {
        match catalog {
            Catalog::Own(schemas) => {
                Arc::new(ConnectionCatalog { view: self.clone(), schemas: schemas.clone(), is_first: name == CATALOG })
            }
            Catalog::Foreign(catalog) => catalog.clone(),
        }
    }
}

/// A catalog as one connection sees it.
#[derive(Debug)]
struct ConnectionCatalog {
    view: CatalogView,
    schemas: Arc<Schemas>,
    /// Whether it is the catalog that a database begins with.
    is_first: bool,
}

impl ConnectionCatalog {
    fn seen(&self, name: &str, schema: &Schema) -> Arc<dyn SchemaProvider> {
        match schema {
            Schema::Own(tables) => Arc::new(ConnectionSchema::new(
                self.view.state.clone(),
                self.view.catalogs.tables.clone(),
                tables.clone(),
                (self.is_first && name == SCHEMA).then(|| self.view.temporary.clone()),
            )),
            Schema::Foreign(schema) => schema.clone(),
        }
    }
}

impl CatalogProvider for ConnectionCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.all.read().keys().cloned().collect()
    }

    /// A name that is no schema's may be that of a catalog that was attached: `name.view` is in its first schema. The
    /// first catalog has a schema of temporary tables, and its first schema has a name without them.
    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let known = if self.is_first && name == LASTING { SCHEMA } else { name };
        if let Some(schema) = self.schemas.all.read().get(known) {
            return Some(self.seen(name, schema));
        }
        if self.is_first && TEMPORARY.contains(&name) {
            return Some(self.seen(SCHEMA, &Schema::Own(self.view.temporary.clone())));
        }
        let Catalog::Own(attached) = self.view.catalogs.catalogs.read().get(name)?.clone() else { return None };
        attached.kept.as_ref()?;
        let schemas = attached.clone();
        ConnectionCatalog { view: self.view.clone(), schemas, is_first: false }.schema(SCHEMA)
    }

    /// `CREATE SCHEMA` brings an empty schema of DataFusion's; one of ours takes its place. One that is there, with its
    /// tables, stays: of two statements that find none, one is second.
    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> DataFusionResult<Option<Arc<dyn SchemaProvider>>> {
        let schema = match schema.table_names().is_empty() {
            true => Schema::Own(Arc::new(Tables::new(name, self.schemas.kept.clone()))),
            false => Schema::Foreign(schema),
        };
        let mut schemas = self.schemas.all.write();
        if schemas.contains_key(name) {
            return exec_err!("Schema '{name}' already exists");
        }
        commit_definition()?;
        if let Some((kept, _)) = &self.schemas.kept {
            kept.keep_schema(name, true)?;
        }
        schemas.insert(name.to_string(), schema);
        self.view.catalogs.changed();
        Ok(None)
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> DataFusionResult<Option<Arc<dyn SchemaProvider>>> {
        let mut schemas = self.schemas.all.write();
        let Some(schema) = schemas.get(name).map(|schema| self.seen(name, schema)) else { return Ok(None) };
        let held = match schemas.get(name) {
            Some(Schema::Own(tables)) => tables.names(),
            _ => schema.table_names(),
        };
        if !cascade && !held.is_empty() {
            return exec_err!("schema '{name}' holds {}; add CASCADE to drop them too", held.join(", "));
        }
        commit_definition()?;
        if let Some((kept, _)) = &self.schemas.kept {
            kept.keep_schema(name, false)?;
        }
        if let Some(Schema::Own(tables)) = schemas.remove(name) {
            tables.close();
        }
        self.view.catalogs.changed();
        Ok(Some(schema))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema as ArrowSchema;
    use datafusion::catalog::{MemTable, MemoryCatalogProvider, MemorySchemaProvider};
    use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};

    use super::*;

    /// Two connections' views without states.
    fn views() -> [CatalogView; 2] {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let catalogs = Arc::new(Catalogs::new(Common::new(&pool), None));
        [(); 2].map(|()| CatalogView::new(catalogs.clone(), Weak::new()))
    }

    fn table() -> Arc<MemTable> {
        Arc::new(MemTable::try_new(Arc::new(ArrowSchema::empty()), vec![Vec::new()]).unwrap())
    }

    #[test]
    fn of_two_that_make_one_schema_the_second_is_refused() {
        let [a, b] = views();
        let catalogs = [&a, &b].map(|view| view.catalog(CATALOG).unwrap());
        catalogs[0].register_schema("s", Arc::new(MemorySchemaProvider::new())).unwrap();
        catalogs[0].schema("s").unwrap().register_table("t".into(), table()).unwrap();
        let second = catalogs[1].register_schema("s", Arc::new(MemorySchemaProvider::new()));
        assert!(second.unwrap_err().to_string().contains("Schema 's' already exists"));
        assert!(a.register_catalog("d".into(), Arc::new(MemoryCatalogProvider::new())).is_none());
        let made = a.catalog("d").unwrap();
        made.register_schema("s", Arc::new(MemorySchemaProvider::new())).unwrap();
        assert!(b.register_catalog("d".into(), Arc::new(MemoryCatalogProvider::new())).is_some());
        assert_eq!(b.catalog("d").unwrap().schema_names(), ["s"]);
        assert_eq!(catalogs[1].schema("s").unwrap().table_names(), ["t"]);
    }

    #[test]
    fn a_schema_that_was_dropped_takes_no_tables() {
        let [a, b] = views();
        let catalog = a.catalog(CATALOG).unwrap();
        catalog.register_schema("s", Arc::new(MemorySchemaProvider::new())).unwrap();
        // A statement has found the schema when another one drops it.
        let found = b.catalog(CATALOG).unwrap().schema("s").unwrap();
        let before = a.catalogs.generation();
        catalog.deregister_schema("s", false).unwrap();
        assert!(a.catalogs.generation() > before);
        let late = found.register_table("t".into(), table());
        assert!(late.unwrap_err().to_string().contains("schema 's' has been dropped"));
    }
}
