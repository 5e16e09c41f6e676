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

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
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
use crate::catalog::{FooterFacts, Gaps, RowOrder, believable_footers, footer_facts, listing_of, with_stored_values};

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
        let plan = with_stored_values(self.0.scan(state, projection, filters, limit).await?)?;
        Ok(known_alone(plan, state).await)
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, arguments: ScanArgs<'a>) -> Result<ScanResult> {
        let plan = with_stored_values(self.0.scan_with_args(state, arguments).await?.into_inner())?;
        Ok(known_alone(plan, state).await.into())
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
    let mut tables = TableGaps::of(schema);
    let mut of_file = |facts: Option<&Option<Arc<FooterFacts>>>| match (parquet, facts) {
        (None, _) | (_, None) => tables.floats.clone(),
        (_, Some(facts)) => tables.of_file(facts.as_deref()),
    };
    let gaps: Vec<Vec<Arc<[Gaps]>>> = (scan.file_groups.iter().zip(&facts))
        .map(|(group, facts)| (0..group.len()).map(|file| of_file(facts.get(file))).collect())
        .collect();
    let floats = &tables.floats;
    let of_all = of_files(gaps.iter().flatten(), floats);
    let misleads = facts.iter().flatten().flatten().any(|facts| facts.misleads);
    if is_known(&of_all) && !misleads && scan.output_ordering.is_empty() && order.is_none() {
        return plan;
    }
    let groups = scan.file_groups.iter().zip(&gaps).map(|(group, gaps)| {
        let files = group.files().iter().cloned().zip(gaps).map(|(mut file, gaps)| {
            if !is_known(gaps) {
                file.statistics = file.statistics.map(|statistics| Arc::new(without(&statistics, gaps)));
            }
            file
        });
        let group_without: FileGroup = files.collect();
        match group.file_statistics(None) {
            Some(statistics) => {
                group_without.with_statistics(Arc::new(without(statistics, &of_files(gaps.iter(), floats))))
            }
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
        let believable = Arc::new(believable_footers(factory.clone()));
        builder = builder.with_source(Arc::new(source.with_parquet_file_reader_factory(believable)));
    }
    let statistics = without(&scan.statistics(), &of_all);
    DataSourceExec::from_data_source(builder.with_statistics(statistics).build())
}

/// What the footers of a scan's files tell.
async fn facts_of(scan: &FileScanConfig, state: &dyn Session) -> Facts {
    let mut facts = Vec::with_capacity(scan.file_groups.len());
    for group in &scan.file_groups {
        let reads = group.iter().map(|file| footer_facts(state, &scan.object_store_url, &file.object_meta));
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

/// What is unknown of the columns of a table, file by file. Files with equal columns and no gaps share one list: such a
/// file costs no walk over its columns.
struct TableGaps<'a> {
    schema: &'a Schema,
    /// Of any file: the bounds of floats.
    floats: Arc<[Gaps]>,
    /// Of a file whose footer cannot be read.
    unread: Arc<[Gaps]>,
    /// By the address of a file's schema, which the facts of the scan keep alive.
    files: HashMap<*const Schema, FileColumns>,
}

/// The columns of files of one schema.
struct FileColumns {
    /// By column of the table its place in the file; none where it is NULL in the file.
    places: Vec<Option<usize>>,
    /// What is unknown where the footer tells all.
    gaps: Arc<[Gaps]>,
}

impl TableGaps<'_> {
    fn of(schema: &Schema) -> TableGaps<'_> {
        let of_field = |data_type: &DataType| {
            let is_float = data_type.is_floating();
            Gaps { low: is_float, high: is_float, nulls: false }
        };
        let floats = schema.fields().iter().map(|field| of_field(field.data_type())).collect();
        let unread = vec![Gaps { low: true, high: true, nulls: true }; schema.fields().len()].into();
        TableGaps { schema, floats, unread, files: HashMap::new() }
    }

    fn of_file(&mut self, facts: Option<&FooterFacts>) -> Arc<[Gaps]> {
        let Some(facts) = facts else { return self.unread.clone() };
        let columns = self.files.entry(Arc::as_ptr(&facts.schema));
        let columns = columns.or_insert_with(|| FileColumns::of(self.schema, &self.floats, &facts.schema));
        if facts.gaps.is_empty() {
            return columns.gaps.clone();
        }
        let own = |place: usize| {
            let found = facts.gaps.binary_search_by_key(&place, |(place, _)| *place).ok()?;
            Some(facts.gaps[found].1)
        };
        let of_column = |(place, gaps): (&Option<usize>, &Gaps)| union(*gaps, place.and_then(own).unwrap_or_default());
        columns.places.iter().zip(&*columns.gaps).map(of_column).collect()
    }
}

impl FileColumns {
    fn of(table: &Schema, floats: &[Gaps], file: &Schema) -> FileColumns {
        // The first of several columns of a name.
        let mut by_name = HashMap::new();
        file.fields().iter().enumerate().for_each(|(place, field)| {
            by_name.entry(field.name().as_str()).or_insert(place);
        });
        let places: Vec<Option<usize>> =
            table.fields().iter().map(|field| by_name.get(field.name().as_str()).copied()).collect();
        let of_column = |((place, field), floats): ((&Option<usize>, &Arc<Field>), &Gaps)| {
            let bounds = place.is_some_and(|place| !same_order(file.field(place).data_type(), field.data_type()));
            union(*floats, Gaps { low: bounds, high: bounds, nulls: false })
        };
        let gaps = places.iter().zip(table.fields()).zip(floats).map(of_column).collect();
        FileColumns { places, gaps }
    }
}

/// What is unknown of files together.
fn of_files<'a>(files: impl Iterator<Item = &'a Arc<[Gaps]>>, floats: &[Gaps]) -> Vec<Gaps> {
    let (mut all, mut last) = (floats.to_vec(), None);
    for file in files.filter(|file| !last.replace(*file).is_some_and(|last: &Arc<[Gaps]>| Arc::ptr_eq(last, file))) {
        all.iter_mut().zip(&**file).for_each(|(all, file)| *all = union(*all, *file));
    }
    all
}

fn is_known(gaps: &[Gaps]) -> bool {
    gaps.iter().all(|gaps| *gaps == Gaps::default())
}

fn union(a: Gaps, b: Gaps) -> Gaps {
    Gaps { low: a.low || b.low, high: a.high || b.high, nulls: a.nulls || b.nulls }
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Gaps = Gaps { low: false, high: false, nulls: false };
    const LOW: Gaps = Gaps { low: true, high: false, nulls: false };
    const BOUNDS: Gaps = Gaps { low: true, high: true, nulls: false };

    fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
        let fields = columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn facts(schema: &SchemaRef, gaps: &[(usize, Gaps)]) -> FooterFacts {
        FooterFacts { schema: schema.clone(), gaps: gaps.into(), misleads: false, order: None }
    }

    #[test]
    fn files_of_equal_columns_share_what_is_unknown() {
        let (int, float) = (DataType::Int64, DataType::Float64);
        let table = schema(&[("a", int.clone()), ("f", float.clone()), ("b", int.clone()), ("c", int.clone())]);
        let file = schema(&[("b", DataType::Int32), ("f", float), ("a", int)]);
        let mut gaps = TableGaps::of(&table);
        let (first, second) = (gaps.of_file(Some(&facts(&file, &[]))), gaps.of_file(Some(&facts(&file, &[]))));
        assert!(Arc::ptr_eq(&first, &second));
        // A column of another type has no bounds of the table's, one that is not in the file is NULL.
        assert_eq!(*first, [NOTHING, BOUNDS, BOUNDS, NOTHING]);
        let third = gaps.of_file(Some(&facts(&file, &[(2, LOW)])));
        assert_eq!(*third, [LOW, BOUNDS, BOUNDS, NOTHING]);
        assert_eq!(of_files([&first, &second, &third].into_iter(), &gaps.floats), *third);
        let unread = gaps.of_file(None);
        assert!(unread.iter().all(|gaps| gaps.nulls && gaps.low && gaps.high));
    }
}
