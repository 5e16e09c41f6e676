//! A cube as a table: a row for each filled base cell.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DataFusionResult, Statistics, stats::Precision};
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use warpcube_cube::answer::{relation_batches, relation_schema};

use super::{OpenCube, of_cube};
use crate::error::{Result, SqlError};

/// The table of a cube's base cells: each dimension at base and on its levels, then the measures. Names are lower
/// case.
#[derive(Debug)]
pub(crate) struct CubeTable {
    open: Arc<OpenCube>,
    schema: SchemaRef,
}

impl CubeTable {
    pub(crate) fn new(open: Arc<OpenCube>) -> CubeTable {
        CubeTable { schema: in_lower_case(&relation_schema(&open.cube)), open }
    }

    /// What tells the table from others, and its rows from those of other states.
    pub(crate) fn key_and_version(&self) -> (String, String) {
        let OpenCube { folder, state, .. } = &*self.open;
        (format!("cube {}", folder.display()), format!("state {state}"))
    }
}

#[async_trait]
impl TableProvider for CubeTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let rows = Precision::Exact(self.open.cube.facts.len());
        Some(Statistics { num_rows: rows, ..Statistics::new_unknown(&self.schema) })
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let batches = match self.open.batches.get() {
            Some(batches) => batches.clone(),
            None => {
                let open = self.open.clone();
                let made = tokio::task::spawn_blocking(move || relation_batches(&open.cube)).await;
                let made = made.map_err(|error| SqlError::Internal(error.to_string()))?.map_err(of_cube)?;
                self.open.batches.get_or_init(|| made.into()).clone()
            }
        };
        let partitions = state.config().target_partitions().clamp(1, batches.len().max(1));
        let size = batches.len().div_ceil(partitions).max(1);
        let parts: Result<Vec<Vec<RecordBatch>>> =
            batches.chunks(size).map(|part| part.iter().map(|batch| renamed(batch, &self.schema)).collect()).collect();
        let mut parts = parts?;
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        Ok(MemorySourceConfig::try_new_exec(&parts, self.schema.clone(), projection.cloned())?)
    }
}

/// A schema with names in lower case, as SQL reads names without quotes.
pub(super) fn in_lower_case(schema: &Schema) -> SchemaRef {
    let lower = |field: &Arc<Field>| field.as_ref().clone().with_name(field.name().to_lowercase());
    Arc::new(Schema::new(schema.fields().iter().map(lower).collect::<Vec<_>>()))
}

/// The columns of a batch under the names of a schema.
pub(super) fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    RecordBatch::try_new(schema.clone(), batch.columns().to_vec())
        .map_err(|error| SqlError::Internal(error.to_string()))
}
