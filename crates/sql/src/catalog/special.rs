//! The two kinds of tables that DataFusion has none for.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;

use crate::error::SqlError;

/// A base table that is a plan over another: a `.tbl` file without the empty column after its last separator.
///
/// DataFusion puts the plan in the table's place while it analyses a statement, so that planners and the device see
/// the listing table below.
#[derive(Debug)]
pub(crate) struct DerivedTable {
    pub(crate) plan: LogicalPlan,
}

#[async_trait]
impl TableProvider for DerivedTable {
    fn schema(&self) -> SchemaRef {
        self.plan.schema().inner().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let view = datafusion::datasource::ViewTable::new(self.plan.clone(), None);
        view.scan(state, projection, filters, limit).await
    }
}

/// A table whose files cannot be read any more, or a view whose tables are gone: it still describes itself, can be
/// dropped as what it is, and a scan of it gives the error.
#[derive(Debug)]
pub(crate) struct BrokenTable {
    pub(crate) schema: SchemaRef,
    pub(crate) kind: TableType,
    pub(crate) error: SqlError,
}

#[async_trait]
impl TableProvider for BrokenTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        self.kind
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        Err(self.error.clone().into())
    }
}
