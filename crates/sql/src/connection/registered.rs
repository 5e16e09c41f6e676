//! Tables of a connection alone that a program makes of its rows.

use std::sync::Arc;

use datafusion::catalog::{MemTable, SchemaProvider};
use datafusion::common::TableReference;

use super::{Connection, define};
use crate::catalog::{self, CATALOG, GivenRows, SCHEMA};
use crate::error::Result;
use crate::report::StatementReport;

impl Connection {
    /// Makes a table of the connection alone of these rows, as `CREATE OR REPLACE TEMP TABLE` does, without a copy of
    /// them.
    ///
    /// # Errors
    /// Batches that have not the columns of the schema, or more bytes than `warpcube.memory_limit` leaves.
    pub async fn register(&self, name: &str, (schema, batches): GivenRows) -> Result<()> {
        let table = Arc::new(MemTable::try_new(schema, vec![batches])?);
        let work = async { self.own_schema(name)?.register_table(name.to_string(), table) };
        catalog::define(&StatementReport::new(), "", true, true, work).await?;
        Ok(())
    }

    /// Drops a table of the connection alone; gives false where there is none of that name.
    pub async fn unregister(&self, name: &str) -> Result<bool> {
        if define::is_temporary(&self.state(), &full(name)) != Some(true) {
            return Ok(false);
        }
        let work = async { self.own_schema(name)?.deregister_table(name) };
        Ok(catalog::define(&StatementReport::new(), "", false, true, work).await?.is_some())
    }

    /// The schema whose names those of the connection alone are.
    fn own_schema(&self, name: &str) -> datafusion::error::Result<Arc<dyn SchemaProvider>> {
        self.state().schema_for_ref(full(name))
    }
}

fn full(name: &str) -> TableReference {
    TableReference::full(CATALOG, SCHEMA, name.to_string())
}
