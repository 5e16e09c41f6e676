//! `query_log()`: the statements of the database that have ended, as rows. The log is read when the table is.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::{MemTable, TableType};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use crate::error::SqlError;
use crate::registry::Registry;

/// The table function, and the table that it gives.
#[derive(Debug, Clone)]
pub(crate) struct QueryLog {
    registry: Arc<Registry>,
    schema: SchemaRef,
}

impl QueryLog {
    /// The function's name.
    pub(crate) const NAME: &str = "query_log";

    /// The log of a registry.
    ///
    /// # Errors
    /// None that a registry gives rise to.
    pub(crate) fn new(registry: &Arc<Registry>) -> Result<QueryLog, SqlError> {
        Ok(QueryLog { registry: registry.clone(), schema: registry.log()?.schema() })
    }
}

impl TableFunctionImpl for QueryLog {
    fn call_with_args(&self, args: TableFunctionArgs) -> DataFusionResult<Arc<dyn TableProvider>> {
        match args.exprs() {
            [] => Ok(Arc::new(self.clone())),
            _ => Err(SqlError::Planning("query_log() takes no arguments".into()).into()),
        }
    }
}

#[async_trait]
impl TableProvider for QueryLog {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let table = MemTable::try_new(self.schema.clone(), vec![vec![self.registry.log()?]])?;
        table.scan(state, projection, filters, limit).await
    }
}
