//! Scans of files that conclude nothing from what is not known of them.
//!
//! Writers leave NaNs out of the bounds of a column. DataFusion 55.2 puts a literal in place of a column whose bounds
//! are equal in a file without NULLs, prunes files by bounds, and takes a filter that leaves one value between them for
//! a constant: NaNs are lost, or not sorted. A filter looks at bounds when it is made, so that scans come without those
//! of floats. Bounds of a file are those of its row groups that have some, and the order of its first row group counts
//! as that of all: what [`FooterFacts`] do not know is unknown here, and a scan is ordered as far as they prove it. An
//! order that is declared (`WITH ORDER`) tells how rows are written, and is believed of no file that is read.
//!
//! The file goes once DataFusion takes bounds of floats for those of what is not NaN, and missing ones for unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{TableType, provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use warpcube_column::is_string;

use super::each_node;
use crate::catalog::{BelievableFooters, FooterFacts, Gaps, RowOrder, listing_of};

/// Footers read at once.
const AT_ONCE: usize = 16;

/// The plan with scans that conclude nothing from what is not known.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| match plan {
        LogicalPlan::TableScan(mut scan) => {
            let has_floats = scan.source.schema().fields().iter().any(|field| field.data_type().is_floating());
            match source_as_provider(&scan.source) {
                Ok(table) if has_floats || listing_of(table.as_ref()).is_some() => {
                    scan.source = provider_as_source(Arc::new(KnownAlone(table)));
                    Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
                }
                _ => Ok(Transformed::no(LogicalPlan::TableScan(scan))),
            }
        }
        plan => Ok(Transformed::no(plan)),
    })
}

/// A table whose scans tell what is known alone.
#[derive(Debug)]
struct KnownAlone(Arc<dyn TableProvider>);

#[async_trait]
impl TableProvider for KnownAlone {
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
        Ok(known_alone(self.0.scan(state, projection, filters, limit).await?, state).await)
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, arguments: ScanArgs<'a>) -> Result<ScanResult> {
        Ok(known_alone(self.0.scan_with_args(state, arguments).await?.into_inner(), state).await.into())
    }
}

/// The facts of each file of each group; none for a file whose footer cannot be read.
type Facts = Vec<Vec<Option<Arc<FooterFacts>>>>;

/// A scan of files that tells what is known alone; any other plan as it is.
async fn known_alone(plan: Arc<dyn ExecutionPlan>, state: &dyn Session) -> Arc<dyn ExecutionPlan> {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let Some(scan) = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>()) else { return plan };
    let parquet = scan.file_source.downcast_ref::<ParquetSource>();
    let facts = match parquet {
        Some(_) => facts_of(scan, state).await,
        None => vec![Vec::new(); scan.file_groups.len()],
    };
    let schema = scan.file_schema();
    let order = parquet.and_then(|_| order_of(&facts, schema));
    let of_file = |facts: Option<&Option<Arc<FooterFacts>>>| match (parquet, facts) {
        (None, _) | (_, None) => gaps_of_floats(schema),
        (_, Some(facts)) => gaps(facts.as_deref(), schema),
    };
    let gaps: Vec<Vec<Vec<Gaps>>> = (scan.file_groups.iter().zip(&facts))
        .map(|(group, facts)| (0..group.len()).map(|file| of_file(facts.get(file))).collect())
        .collect();
    let of_group = |group: &[Vec<Gaps>]| group.iter().fold(gaps_of_floats(schema), |all, file| both(all, file));
    let of_all = gaps.iter().fold(gaps_of_floats(schema), |all, group| both(all, &of_group(group)));
    let misleads = facts.iter().flatten().flatten().any(|facts| facts.misleads);
    let is_known = of_all.iter().all(|gaps| *gaps == Gaps::default());
    if is_known && !misleads && scan.output_ordering.is_empty() && order.is_none() {
        return plan;
    }
    let groups = scan.file_groups.iter().zip(&gaps).map(|(group, gaps)| {
        let files = group.files().iter().cloned().zip(gaps).map(|(mut file, gaps)| {
            file.statistics = file.statistics.map(|statistics| Arc::new(without(&statistics, gaps)));
            file
        });
        let group_without: FileGroup = files.collect();
        match group.file_statistics(None) {
            Some(statistics) => group_without.with_statistics(Arc::new(without(statistics, &of_group(gaps)))),
            None => group_without,
        }
    });
    let mut builder = FileScanConfigBuilder::from(scan.clone())
        .with_file_groups(groups.collect())
        .with_preserve_order(order.is_some())
        .with_output_ordering(order.into_iter().collect());
    if let Some((source, factory)) =
        parquet.filter(|_| misleads).zip(parquet.and_then(|it| it.parquet_file_reader_factory()))
    {
        let source = source.clone().with_enable_page_index(false);
        let believable = Arc::new(BelievableFooters(factory.clone()));
        builder = builder.with_source(Arc::new(source.with_parquet_file_reader_factory(believable)));
    }
    let statistics = without(&scan.statistics(), &of_all);
    DataSourceExec::from_data_source(builder.with_statistics(statistics).build())
}

/// What the footers of a scan's files tell.
async fn facts_of(scan: &FileScanConfig, state: &dyn Session) -> Facts {
    let mut facts = Vec::with_capacity(scan.file_groups.len());
    for group in &scan.file_groups {
        let reads = group.iter().map(|file| FooterFacts::read(state, &scan.object_store_url, &file.object_meta));
        let reads: Vec<_> = reads.collect();
        facts.push(futures::stream::iter(reads).buffered(AT_ONCE).collect().await);
    }
    facts
}

/// The order of the rows of each group of files; none where it is not proved.
fn order_of(facts: &Facts, schema: &Schema) -> Option<LexOrdering> {
    let of_group = |group: &Vec<Option<Arc<FooterFacts>>>| {
        let mut orders = group.iter().map(|facts| facts.as_ref()?.order.clone());
        let first = orders.next()??;
        orders.try_fold(first, |before, next| before.then(next?))
    };
    let orders: Vec<RowOrder> = facts.iter().map(of_group).collect::<Option<_>>()?;
    let (first, others) = orders.split_first()?;
    let is_everywhere = |at: usize| others.iter().all(|other| other.keys().get(at) == first.keys().get(at));
    let keys = first.keys().iter().enumerate().take_while(|(at, _)| is_everywhere(*at)).map_while(|(_, key)| {
        let (position, field) = schema.column_with_name(&key.column)?;
        let is_same = same_order(&key.data_type, field.data_type());
        is_same.then(|| PhysicalSortExpr::new(Arc::new(Column::new(&key.column, position)), key.options))
    });
    LexOrdering::new(keys.collect::<Vec<_>>())
}

/// Whether values of a file's type have the same order as those of the table's type that they become.
fn same_order(in_file: &DataType, in_table: &DataType) -> bool {
    let is_bytes = |kind: &DataType| matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    let is_text = |kind: &DataType| is_string(kind) || is_bytes(kind);
    in_file == in_table || is_text(in_file) && is_text(in_table)
}

/// What is unknown of the columns of a file.
fn gaps(facts: Option<&FooterFacts>, schema: &Schema) -> Vec<Gaps> {
    let nothing: BTreeMap<String, Gaps> = BTreeMap::new();
    let known = facts.map_or(&nothing, |facts| &facts.gaps);
    let of_field = |(field, floats): (&Arc<arrow::datatypes::Field>, Gaps)| {
        let found = facts.map(|facts| facts.schema.field_with_name(field.name()));
        match found {
            None => Gaps { low: true, high: true, nulls: true },
            // The column is NULL in this file.
            Some(Err(_)) => floats,
            Some(Ok(found)) => {
                let bounds = !same_order(found.data_type(), field.data_type());
                let own = known.get(field.name()).copied().unwrap_or_default();
                union(union(own, floats), Gaps { low: bounds, high: bounds, nulls: false })
            }
        }
    };
    schema.fields().iter().zip(gaps_of_floats(schema)).map(of_field).collect()
}

/// What is unknown of any file: the bounds of floats.
fn gaps_of_floats(schema: &Schema) -> Vec<Gaps> {
    let of_field = |data_type: &DataType| {
        let is_float = data_type.is_floating();
        Gaps { low: is_float, high: is_float, nulls: false }
    };
    schema.fields().iter().map(|field| of_field(field.data_type())).collect()
}

fn union(a: Gaps, b: Gaps) -> Gaps {
    Gaps { low: a.low || b.low, high: a.high || b.high, nulls: a.nulls || b.nulls }
}

fn both(a: Vec<Gaps>, b: &[Gaps]) -> Vec<Gaps> {
    a.into_iter().zip(b).map(|(a, b)| union(a, *b)).collect()
}

/// Statistics without what is unknown.
fn without(statistics: &Statistics, gaps: &[Gaps]) -> Statistics {
    let mut statistics = statistics.clone();
    for (column, gaps) in statistics.column_statistics.iter_mut().zip(gaps) {
        if gaps.low {
            column.min_value = Precision::Absent;
        }
        if gaps.high {
            column.max_value = Precision::Absent;
        }
        if gaps.nulls {
            column.null_count = Precision::Absent;
        }
    }
    statistics
}
