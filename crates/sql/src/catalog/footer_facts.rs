//! What the footers of Parquet files leave unknown, and the order that they prove of rows.
//!
//! The defects: DataFusion 55.2 takes a row group without bounds of a column for one without values, takes a count of
//! NULLs that is missing for zero, and believes bounds that the format says not to: those of the old fields, which
//! compare bytes of text as signed numbers, those of types without an order, and NaN. A scan corrected by
//! [`crate::mend`] tells none of these: files and groups of files have no bounds of such a column ([`Gaps`]), and
//! row groups are pruned by footers without such statistics ([`believable`]). The module goes once DataFusion and
//! `parquet` do so.
//!
//! Invariant: what is missing is unknown; nothing here makes bounds narrower.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::{ObjectMeta, PutPayload};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::SortOrder;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

use super::memory::FileMemory;
use super::row_order::RowOrder;

type Bytes = <PutPayload as IntoIterator>::Item;

/// The writer that left out counts of NULLs that are zero, and its first version that does not.
const OMITS_ZEROS: (&str, u32) = ("parquet-rs version ", 53);

/// What is unknown of a column, because a row group does not tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Gaps {
    pub(crate) low: bool,
    pub(crate) high: bool,
    pub(crate) nulls: bool,
}

/// What the footer of a file tells, as far as it is believed.
#[derive(Debug)]
pub(crate) struct FooterFacts {
    /// The columns with their types in the file; files of equal columns share it.
    pub(crate) schema: SchemaRef,
    /// The columns of which something is unknown, by ascending place in the schema.
    pub(crate) gaps: Box<[(usize, Gaps)]>,
    /// Whether the footer has statistics that readers must not see.
    pub(crate) misleads: bool,
    /// The order of the file's rows; none where it is unknown.
    pub(crate) order: Option<RowOrder>,
}

impl FooterFacts {
    fn of(metadata: &ParquetMetaData) -> Option<FooterFacts> {
        let file = metadata.file_metadata();
        let descriptor = file.schema_descr();
        let schema = Arc::new(parquet_to_arrow_schema(descriptor, file.key_value_metadata()).ok()?);
        let omits_zeros = omits_zeros(metadata);
        let groups = || metadata.row_groups().iter().filter(|group| group.num_rows() > 0);
        let leaves = leaves(descriptor);
        let roots = descriptor.root_schema().get_fields();
        let mut gaps = Vec::new();
        for (place, field) in schema.fields().iter().enumerate() {
            let leaf = match roots.get(place).is_some_and(|root| root.name() == field.name()) {
                true => leaves[place],
                false => leaf_of(descriptor, field.name()),
            };
            let found = match leaf {
                Some(leaf) => groups().fold(Gaps::default(), |gaps, group| {
                    let told = Told::by(group.column(leaf), omits_zeros);
                    let is_empty = told.nulls == Some(group.num_rows() as u64);
                    Gaps {
                        low: gaps.low || !told.low && !is_empty,
                        high: gaps.high || !told.high && !is_empty,
                        nulls: gaps.nulls || told.nulls.is_none(),
                    }
                }),
                None => Gaps { low: true, high: true, nulls: true },
            };
            if found != Gaps::default() {
                gaps.push((place, found));
            }
        }
        let misleads = groups().flat_map(|group| group.columns()).any(|chunk| Told::by(chunk, omits_zeros).misleads);
        let order = RowOrder::of(metadata, &schema);
        Some(FooterFacts { schema, gaps: gaps.into(), misleads, order })
    }

    /// Bytes of memory, without the schema.
    pub(super) fn bytes(&self) -> usize {
        let order = self.order.as_ref().map_or(0, RowOrder::bytes);
        size_of::<FooterFacts>() + size_of_val(&*self.gaps) + order
    }

    /// Reads the footer of a file, or remembers it; none where it cannot be read.
    pub(crate) async fn read(state: &dyn Session, url: &ObjectStoreUrl, file: &ObjectMeta) -> Option<Arc<FooterFacts>> {
        let memory = state.config().get_extension::<FileMemory>();
        if let Some(known) = memory.as_ref().and_then(|memory| memory.footer(url, file)) {
            return Some(known);
        }
        let runtime = state.runtime_env();
        let store = runtime.object_store(url).ok()?;
        let cache = runtime.cache_manager.get_file_metadata_cache();
        let footer = DFParquetMetadata::new(store.as_ref(), file).with_file_metadata_cache(Some(cache));
        let facts = FooterFacts::of(footer.fetch_metadata().await.ok()?.as_ref())?;
        Some(match memory {
            Some(memory) => memory.note_footer(url, file, facts),
            None => Arc::new(facts),
        })
    }
}

/// What a column chunk tells, as far as it is believed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    pub(super) low: bool,
    pub(super) high: bool,
    pub(super) nulls: Option<u64>,
    /// Whether there is something that readers take for more than it is.
    misleads: bool,
}

impl Told {
    pub(super) fn by(chunk: &ColumnChunkMetaData, omits_zeros: bool) -> Told {
        let Some(statistics) = chunk.statistics() else { return Told::default() };
        let descriptor = chunk.column_descr();
        let order = descriptor.sort_order();
        let is_believed = order != SortOrder::UNDEFINED
            && (order == SortOrder::SIGNED || !statistics.is_min_max_deprecated())
            && !has_nan(statistics);
        let (low, high) = (statistics.min_bytes_opt().is_some(), statistics.max_bytes_opt().is_some());
        let is_zero = omits_zeros || descriptor.max_def_level() == 0;
        let nulls = statistics.null_count_opt().or(is_zero.then_some(0));
        Told {
            low: low && is_believed,
            high: high && is_believed,
            nulls,
            misleads: (low || high) && !is_believed || nulls.is_none(),
        }
    }
}

/// Whether the file's writer leaves counts of NULLs out where they are zero.
pub(super) fn omits_zeros(metadata: &ParquetMetaData) -> bool {
    let version = metadata.file_metadata().created_by().and_then(|writer| writer.strip_prefix(OMITS_ZEROS.0));
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| major < OMITS_ZEROS.1)
}

/// The leaf of each column, none for those that are nested.
fn leaves(schema: &SchemaDescriptor) -> Vec<Option<usize>> {
    let roots = schema.root_schema().get_fields();
    let mut leaves = vec![None; roots.len()];
    for leaf in 0..schema.num_columns() {
        let root = schema.get_column_root_idx(leaf);
        if roots[root].is_primitive() {
            leaves[root] = Some(leaf);
        }
    }
    leaves
}

/// The leaf of a column that is not nested.
pub(super) fn leaf_of(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    let root = schema.root_schema().get_fields().iter().position(|field| field.name() == name)?;
    let is_plain = schema.root_schema().get_fields()[root].is_primitive();
    (0..schema.num_columns()).find(|leaf| is_plain && schema.get_column_root_idx(*leaf) == root)
}

fn has_nan(statistics: &Statistics) -> bool {
    let is_nan = |value: Option<&f64>| value.is_some_and(|value| value.is_nan());
    match statistics {
        Statistics::Float(bounds) => [bounds.min_opt(), bounds.max_opt()].into_iter().flatten().any(|it| it.is_nan()),
        Statistics::Double(bounds) => is_nan(bounds.min_opt()) || is_nan(bounds.max_opt()),
        _ => false,
    }
}

/// The footer without statistics that mislead.
///
/// # Errors
/// What `parquet` says of a footer that it does not write.
fn believable(metadata: &ParquetMetaData) -> ParquetResult<ParquetMetaData> {
    let omits_zeros = omits_zeros(metadata);
    let column = |chunk: &ColumnChunkMetaData| match Told::by(chunk, omits_zeros).misleads {
        true => chunk.clone().into_builder().clear_statistics().build(),
        false => Ok(chunk.clone()),
    };
    let group = |group: &RowGroupMetaData| {
        let columns = group.columns().iter().map(column).collect::<ParquetResult<_>>()?;
        group.clone().into_builder().set_column_metadata(columns).build()
    };
    let groups = metadata.row_groups().iter().map(group).collect::<ParquetResult<_>>()?;
    Ok(metadata.clone().into_builder().set_row_groups(groups).build())
}

/// Readers of files whose footers have no statistics that mislead.
#[derive(Debug)]
pub(crate) struct BelievableFooters(pub(crate) Arc<dyn ParquetFileReaderFactory>);

impl ParquetFileReaderFactory for BelievableFooters {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> DataFusionResult<Box<dyn AsyncFileReader + Send>> {
        let reader = self.0.create_reader(partition, file, metadata_size_hint, metrics)?;
        Ok(Box::new(BelievableFooter(reader)))
    }
}

struct BelievableFooter(Box<dyn AsyncFileReader + Send>);

impl AsyncFileReader for BelievableFooter {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.0.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.0.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let read = self.0.get_metadata(options);
        async move { Ok(Arc::new(believable(read.await?.as_ref())?)) }.boxed()
    }
}
