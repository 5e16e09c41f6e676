//! Statistics of files without bounds of floats.
//!
//! Writers leave NaNs out of the bounds of a column. DataFusion 55.2 puts a literal in place of a column whose bounds
//! are equal in a file without NULLs, prunes files by bounds, and takes a filter that leaves one value between them for
//! a constant: NaNs are lost, or not sorted. A filter looks at bounds when it is made, so that scans come without them.
//!
//! The file goes once DataFusion takes bounds of floats for those of what is not NaN.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{TableType, provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::each_node;

/// The plan with scans that carry no bounds of floats.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| match plan {
        LogicalPlan::TableScan(mut scan)
            if scan.source.schema().fields().iter().any(|field| field.data_type().is_floating()) =>
        {
            let Ok(table) = source_as_provider(&scan.source) else {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            };
            scan.source = provider_as_source(Arc::new(WithoutBounds(table)));
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        plan => Ok(Transformed::no(plan)),
    })
}

/// A table whose scans carry no bounds of floats.
#[derive(Debug)]
struct WithoutBounds(Arc<dyn TableProvider>);

#[async_trait]
impl TableProvider for WithoutBounds {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.0.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(without_bounds(self.0.scan(state, projection, filters, limit).await?))
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, arguments: ScanArgs<'a>) -> Result<ScanResult> {
        Ok(without_bounds(self.0.scan_with_args(state, arguments).await?.into_inner()).into())
    }
}

/// A scan of files without bounds of floats; any other plan as it is.
fn without_bounds(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let Some(scan) = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>()) else { return plan };
    let schema = scan.file_schema();
    let groups = scan.file_groups.iter().map(|group| {
        let files = group.files().iter().cloned().map(|mut file| {
            file.statistics = file.statistics.map(|statistics| Arc::new(without(&statistics, schema)));
            file
        });
        let group_without: FileGroup = files.collect();
        match group.file_statistics(None) {
            Some(statistics) => group_without.with_statistics(Arc::new(without(statistics, schema))),
            None => group_without,
        }
    });
    let builder = FileScanConfigBuilder::from(scan.clone()).with_file_groups(groups.collect());
    let statistics = without(&scan.statistics(), schema);
    DataSourceExec::from_data_source(builder.with_statistics(statistics).build())
}

/// Statistics without bounds of floats.
fn without(statistics: &Statistics, schema: &Schema) -> Statistics {
    let mut statistics = statistics.clone();
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        if field.data_type().is_floating() {
            (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
        }
    }
    statistics
}
