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
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::object_store::PutPayload;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::chunk_statistics::{ChunkStatistics, leaf_of, leaves, omits_zeros};
use super::row_order::RowOrder;

type Bytes = <PutPayload as IntoIterator>::Item;

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
    /// What a footer tells; none where its columns have no types of Arrow.
    pub(super) fn of(metadata: &ParquetMetaData) -> Option<FooterFacts> {
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
                    let statistics = ChunkStatistics::of(group.column(leaf), omits_zeros);
                    let is_empty = statistics.nulls == Some(group.num_rows() as u64);
                    Gaps {
                        low: gaps.low || !statistics.low && !is_empty,
                        high: gaps.high || !statistics.high && !is_empty,
                        nulls: gaps.nulls || statistics.nulls.is_none(),
                    }
                }),
                None => Gaps { low: true, high: true, nulls: true },
            };
            if found != Gaps::default() {
                gaps.push((place, found));
            }
        }
        let misleads =
            groups().flat_map(|group| group.columns()).any(|chunk| ChunkStatistics::of(chunk, omits_zeros).misleads);
        let order = RowOrder::of(metadata, &schema);
        Some(FooterFacts { schema, gaps: gaps.into(), misleads, order })
    }

    /// Bytes of memory, without the schema.
    pub(super) fn bytes(&self) -> usize {
        let order = self.order.as_ref().map_or(0, RowOrder::bytes);
        size_of::<FooterFacts>() + size_of_val(&*self.gaps) + order
    }
}

/// The footer without statistics that mislead.
///
/// # Errors
/// What `parquet` says of a footer that it does not write.
fn believable(metadata: &ParquetMetaData) -> ParquetResult<ParquetMetaData> {
    let omits_zeros = omits_zeros(metadata);
    let column = |chunk: &ColumnChunkMetaData| match ChunkStatistics::of(chunk, omits_zeros).misleads {
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

/// Readers of files without statistics that mislead.
pub(crate) fn believable_footers(files: Arc<dyn ParquetFileReaderFactory>) -> ChangedFooters {
    ChangedFooters { files, change: believable }
}

/// How a footer is changed once it is read.
pub(super) type Change = fn(&ParquetMetaData) -> ParquetResult<ParquetMetaData>;

/// Readers of files that change their footers.
#[derive(Debug)]
pub(crate) struct ChangedFooters {
    pub(super) files: Arc<dyn ParquetFileReaderFactory>,
    pub(super) change: Change,
}

impl ParquetFileReaderFactory for ChangedFooters {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> DataFusionResult<Box<dyn AsyncFileReader + Send>> {
        let reader = self.files.create_reader(partition, file, metadata_size_hint, metrics)?;
        Ok(Box::new(ChangedFooter { reader, change: self.change }))
    }
}

struct ChangedFooter {
    reader: Box<dyn AsyncFileReader + Send>,
    change: Change,
}

impl AsyncFileReader for ChangedFooter {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.reader.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.reader.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let (read, change) = (self.reader.get_metadata(options), self.change);
        async move { Ok(Arc::new(change(read.await?.as_ref())?)) }.boxed()
    }
}
