//! DataFusion with nothing of ours: the judge of benchmarks' answers and the rival of their times.
//!
//! A connection on the CPU would not do: it plans by templates, reads through a catalog of its own and takes the user's
//! settings, so that what it gains or loses by them would be credited to DataFusion.

use std::path::Path;

use arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use crate::error::Result;
use crate::mend;

/// A plain context of DataFusion with a connection's defaults of DataFusion's own settings.
pub struct Baseline {
    context: SessionContext,
}

impl std::fmt::Debug for Baseline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Baseline").finish_non_exhaustive()
    }
}

impl Default for Baseline {
    fn default() -> Self {
        let mut config = SessionConfig::new();
        right_defaults(config.options_mut());
        // No sort that DataFusion leaves out is part of its times.
        config.options_mut().sql_parser.enable_subquery_sort_elimination = true;
        // Types of quotients and ranks, those of floats beside decimals, and averages are compared like with like.
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let state = builder.with_analyzer_rules(mend::rules_of_types()).build();
        let ranks = mend::ranks::functions(&state);
        let context = SessionContext::new_with_state(state);
        ranks.into_iter().for_each(|function| context.register_udwf(function));
        Baseline { context }
    }
}

/// DataFusion's settings where its defaults are not SQL's, or give wrong answers in version 55.2.
///
/// - Literals with a point are decimals: `'4.07'::decimal(12, 2) = 4.07`.
/// - The extremes of plain columns hide rows from the other aggregates beside them: with max(a) known, files and row
///   groups of smaller a are left out of max(b + 0) too.
/// - First groups alone, as of `SELECT DISTINCT f … ORDER BY f LIMIT 3`, hold a NaN as often as it comes or fail over a
///   float, and memory is reserved for as many groups as LIMIT and OFFSET name.
///
/// Subqueries keep their sorts, whose order aggregates and LIMIT above them read ([`crate::mend`] takes the others
/// away). Columns know where the text has them, for the errors that name one.
pub(crate) fn right_defaults(options: &mut ConfigOptions) {
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.collect_spans = true;
    options.sql_parser.enable_subquery_sort_elimination = false;
    without_wrong_filters(options);
    options.optimizer.enable_topk_aggregation = false;
}

/// The second of these alone: a switch of DataFusion's for all dynamic filters switches this one on.
pub(crate) fn without_wrong_filters(options: &mut ConfigOptions) {
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
}

impl Baseline {
    /// Makes a table of a Parquet file, or of all Parquet files in a folder.
    pub async fn register_parquet(&self, name: &str, path: &Path) -> Result<()> {
        let end = if path.is_dir() { "/" } else { "" };
        let path = format!("{}{end}", path.display());
        Ok(self.context.register_parquet(name, path, ParquetReadOptions::default()).await?)
    }

    /// Runs one statement and gives all its rows.
    pub async fn collect(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        Ok(self.context.sql(sql).await?.collect().await?)
    }
}
