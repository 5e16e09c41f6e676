//! Tables that a program gives its statements, by names that neither the catalog nor files have: its data frames.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemTable, TableProvider};
use parking_lot::Mutex;

use crate::error::{Result, SqlError};
use crate::memory_table::{Common, MemoryTable};

tokio::task_local! {
    /// The tables that are given to the statement being planned.
    static GIVEN: Arc<GivenTables>;
}

/// The columns and the rows of a table that is given.
pub type GivenRows = (SchemaRef, Vec<RecordBatch>);

/// Finds the table of a name; none where the program has no such table.
type Find = Box<dyn Fn(&str) -> Result<Option<GivenRows>> + Send + Sync>;

/// Tables that a program gives a statement. A table is asked for once, and stays what it was then.
///
/// Statements read it like a table in memory, without a copy of its rows, on the device too; none can write it.
pub struct GivenTables {
    find: Find,
    found: Mutex<BTreeMap<String, Option<Arc<MemoryTable>>>>,
}

impl fmt::Debug for GivenTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenTables").field("found", &self.found.lock().keys()).finish_non_exhaustive()
    }
}

impl GivenTables {
    /// Tables that `find` finds. It is called on a thread that works for the statement, and may block.
    pub fn new(find: impl Fn(&str) -> Result<Option<GivenRows>> + Send + Sync + 'static) -> Arc<GivenTables> {
        Arc::new(GivenTables { find: Box::new(find), found: Mutex::default() })
    }

    fn table(&self, name: &str, common: &Common) -> Result<Option<Arc<MemoryTable>>> {
        if let Some(found) = self.found.lock().get(name) {
            return Ok(found.clone());
        }
        let rows = tokio::task::block_in_place(|| (self.find)(name))?;
        let table = |(schema, batches)| {
            let table = MemTable::try_new(schema, vec![batches])?;
            let table = MemoryTable::of_registered(name, &table, common.clone())?;
            table.be_given();
            Ok::<_, SqlError>(Arc::new(table))
        };
        let found = rows.map(table).transpose()?;
        Ok(self.found.lock().entry(name.to_string()).or_insert(found).clone())
    }
}

/// Plans a statement among tables that are given to it.
pub(crate) async fn among<T>(given: Option<&Arc<GivenTables>>, work: impl Future<Output = T>) -> T {
    match given {
        Some(given) => GIVEN.scope(given.clone(), work).await,
        None => work.await,
    }
}

/// The table of that name that is given to the statement being planned.
pub(super) fn given(name: &str, common: &Common) -> Result<Option<Arc<dyn TableProvider>>> {
    let Ok(given) = GIVEN.try_with(Arc::clone) else { return Ok(None) };
    Ok(given.table(name, common)?.map(|table| table as Arc<dyn TableProvider>))
}
