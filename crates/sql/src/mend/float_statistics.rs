//! Statistics of files without bounds of floats.
//!
//! Writers leave NaNs out of the bounds of a column. DataFusion 55.2 puts a literal in place of a column whose bounds
//! are equal in a file without NULLs, and prunes files by bounds, so that a NaN beside equal values is lost. Scans here
//! carry no bounds of floats.
//!
//! The file goes once DataFusion takes bounds of floats for those of what is not NaN.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// The rule, before all that looks at statistics.
#[derive(Debug)]
pub(super) struct NoBoundsOfFloats;

impl PhysicalOptimizerRule for NoBoundsOfFloats {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mended =
            plan.transform_up(|plan| Ok(without_bounds(&plan).map_or(Transformed::no(plan), Transformed::yes)))?;
        Ok(mended.data)
    }

    fn name(&self) -> &str {
        "no_bounds_of_floats"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A scan of files without bounds of floats; none where it has none.
fn without_bounds(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    let schema = scan.file_schema();
    if !schema.fields().iter().any(|field| field.data_type().is_floating()) {
        return None;
    }
    let groups = scan.file_groups.iter().map(|group| {
        let files = group.files().iter().cloned().map(|mut file| {
            file.statistics = file.statistics.map(|statistics| Arc::new(hidden(&statistics, schema)));
            file
        });
        let mended: FileGroup = files.collect();
        match group.file_statistics(None) {
            Some(statistics) => mended.with_statistics(Arc::new(hidden(statistics, schema))),
            None => mended,
        }
    });
    let builder = FileScanConfigBuilder::from(scan.clone()).with_file_groups(groups.collect());
    Some(DataSourceExec::from_data_source(builder.with_statistics(hidden(&scan.statistics(), schema)).build()))
}

fn hidden(statistics: &Statistics, schema: &Schema) -> Statistics {
    let mut statistics = statistics.clone();
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        if field.data_type().is_floating() {
            (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
        }
    }
    statistics
}
