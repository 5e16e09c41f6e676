//! Tables whose keys, the names of folders, are read here: those with a folder `key=__HIVE_DEFAULT_PARTITION__`, whose
//! rows have NULL for that key, and those with keys that a cast rounds.
//!
//! The defects: DataFusion 55.2 makes a key's value by Arrow's cast of the folder's name, so that the name of NULL is
//! an error for a number and a text for a string, and digits of a TIMESTAMP(0) are cut off; it declares keys NOT NULL,
//! so that `key IS NULL` is false before anything is read; and its pruning of folders reads the bit below a NULL, so
//! that `key = 0` would keep the rows of NULL. Such a table is a [`TextKeys`] here and all others stay listing tables.
//! It lists its files with keys as text, prunes them by filters over casts of that text, gives each file its values as
//! casts give them, and has every filter applied again to the rows.
//!
//! It goes when listing tables map that name to NULL (apache/datafusion, `datafusion-catalog-listing/src/helpers.rs`)
//! and Arrow's casts of texts round.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result as DataFusionResult, ScalarValue, Statistics, project_schema};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl, PartitionedFile,
};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::functions::core::expr_fn::nullif;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use crate::error::SqlError;
use crate::walk::Walk;

/// What stands for NULL in the name of a folder, as Hive and those after it write it.
pub(crate) const NULL_KEY: &str = "__HIVE_DEFAULT_PARTITION__";

/// The listing table that a provider is or is made of.
pub(crate) fn listing_of(provider: &dyn TableProvider) -> Option<&ListingTable> {
    let keys = || provider.downcast_ref::<TextKeys>().map(|keys| &keys.listing);
    keys().map_or_else(|| provider.downcast_ref(), |listing| listing.downcast_ref())
}

/// Whether keys of a table are read here: one of the paths has a folder that says that one is NULL, or a cast of a
/// folder's name rounds.
pub(super) fn are_read(listing: &ListingTable, files: &[PathBuf]) -> bool {
    use DataType::{Decimal128, Decimal256, Timestamp};
    let keys = &listing.options().table_partition_cols;
    let is_rounded = |kind: &DataType| {
        let is_coarse = matches!(kind, Timestamp(TimeUnit::Second | TimeUnit::Millisecond, _));
        is_coarse || matches!(kind, Decimal128(..) | Decimal256(..))
    };
    if keys.iter().any(|(_, kind)| is_rounded(kind)) {
        return true;
    }
    let names: Vec<String> = keys.iter().map(|(key, _)| format!("{key}={NULL_KEY}")).collect();
    let is_null = |path: &Path| path.iter().any(|part| names.iter().any(|name| part.to_str() == Some(name)));
    !names.is_empty() && files.iter().any(|path| is_null(path))
}

/// The same table at other places, with its keys as text if they are to be.
pub(crate) fn at_places(
    table: &ListingTable,
    urls: Vec<ListingTableUrl>,
    has_text_keys: bool,
) -> DataFusionResult<ListingTable> {
    let mut options = table.options().clone();
    for (_, kind) in options.table_partition_cols.iter_mut().filter(|_| has_text_keys) {
        *kind = DataType::Utf8;
    }
    let schema = file_schema(table);
    ListingTable::try_new(
        ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options).with_schema(schema),
    )
}

/// The same table with another format.
pub(crate) fn with_format(table: &ListingTable, format: Arc<dyn FileFormat>) -> DataFusionResult<ListingTable> {
    let options = ListingOptions { format, ..table.options().clone() };
    ListingTable::try_new(
        ListingTableConfig::new_with_multi_paths(table.table_paths().clone())
            .with_listing_options(options)
            .with_schema(file_schema(table)),
    )
}

/// The columns of a table's files.
fn file_schema(table: &ListingTable) -> SchemaRef {
    let keys = &table.options().table_partition_cols;
    let schema = table.schema();
    let of_files = |field: &&Arc<Field>| !keys.iter().any(|(key, _)| key == field.name());
    let fields: Vec<_> = schema.fields().iter().filter(of_files).cloned().collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// How texts become values of a type: as casts read them. Sessions have it among their extensions.
pub(crate) struct TextCasts {
    pub(crate) of_array: fn(&ArrayRef, &DataType) -> DataFusionResult<ArrayRef>,
    pub(crate) of_expr: fn(Expr, &DataType) -> DataFusionResult<Expr>,
}

/// A table over files in folders of keys, some of which are NULL.
#[derive(Debug)]
pub(crate) struct TextKeys {
    /// The table with the keys' own types; it knows everything but how to read.
    listing: Arc<dyn TableProvider>,
    /// The table with keys as text, which lists the files.
    texts: ListingTable,
    file_schema: SchemaRef,
    keys: Vec<Arc<Field>>,
    schema: SchemaRef,
}

impl TextKeys {
    pub(crate) fn new(listing: Arc<dyn TableProvider>) -> DataFusionResult<TextKeys> {
        let Some(table) = listing.downcast_ref::<ListingTable>() else {
            return Err(SqlError::Internal("keys of a table that is no listing table".into()).into());
        };
        let keys = table.options().table_partition_cols.iter();
        let keys: Vec<_> = keys.map(|(name, kind)| Arc::new(Field::new(name, kind.clone(), true))).collect();
        let texts = at_places(table, table.table_paths().clone(), true)?;
        let file_schema = file_schema(table);
        let fields: Vec<_> = file_schema.fields().iter().cloned().chain(keys.iter().cloned()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, file_schema.metadata().clone()));
        Ok(TextKeys { texts, file_schema, keys, schema, listing })
    }

    /// The table with the keys' own types.
    pub(crate) fn listing(&self) -> &Arc<dyn TableProvider> {
        &self.listing
    }

    /// The filters over keys alone, as filters over their texts.
    fn of_texts(&self, filters: &[Expr], casts: &TextCasts) -> DataFusionResult<Vec<Expr>> {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name().as_str()).collect();
        let of_keys = filters.iter().filter(|filter| expr_applicable_for_cols(&names, filter)).cloned();
        let of_text = |expr: Expr| match &expr {
            Expr::Column(column) => match self.keys.iter().find(|key| *key.name() == column.name) {
                Some(key) => (casts.of_expr)(nullif(expr, lit(NULL_KEY)), key.data_type()).map(Transformed::yes),
                None => Ok(Transformed::no(expr)),
            },
            _ => Ok(Transformed::no(expr)),
        };
        of_keys.map(|filter| Ok(filter.transform_up(of_text)?.data)).collect()
    }

    /// A listed file with values of the keys' types.
    fn typed(&self, mut file: PartitionedFile, casts: &TextCasts) -> DataFusionResult<PartitionedFile> {
        let typed = |(value, key): (&ScalarValue, &Arc<Field>)| match value {
            ScalarValue::Utf8(Some(text)) if text != NULL_KEY => {
                ScalarValue::try_from_array(&(casts.of_array)(&value.to_array()?, key.data_type())?, 0)
            }
            _ => ScalarValue::try_from(key.data_type()),
        };
        file.partition_values = file.partition_values.iter().zip(&self.keys).map(typed).collect::<Result<_, _>>()?;
        // Bounds of the texts say nothing of the values; those of the file's columns stay.
        if let Some(statistics) = &file.statistics {
            file.statistics = Some(Arc::new(self.without_keys(statistics)));
        }
        Ok(file)
    }

    /// Statistics without those of the keys.
    fn without_keys(&self, statistics: &Statistics) -> Statistics {
        let mut known = Statistics::new_unknown(&self.schema);
        (known.num_rows, known.total_byte_size) = (statistics.num_rows, statistics.total_byte_size);
        let columns = self.file_schema.fields().len();
        let of_files = statistics.column_statistics.iter().take(columns);
        known.column_statistics.iter_mut().zip(of_files).for_each(|(known, column)| known.clone_from(column));
        known
    }
}

#[async_trait]
impl TableProvider for TextKeys {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.listing.get_column_default(column)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let casts = state.config().get_extension::<TextCasts>();
        let casts = casts.ok_or_else(|| SqlError::Internal("a session without casts of texts".into()))?;
        let filters = self.of_texts(filters, &casts)?;
        let listed = self.texts.list_files_for_scan(state, &filters, None).await?;
        let url = self.texts.table_paths().first().map(ListingTableUrl::object_store);
        let Some(url) = url.filter(|_| !listed.file_groups.is_empty()) else {
            return Ok(Arc::new(EmptyExec::new(project_schema(&self.schema, projection)?)));
        };
        let typed = |group: FileGroup| {
            let files = group.into_inner().into_iter().map(|file| self.typed(file, &casts));
            Ok(FileGroup::new(files.collect::<DataFusionResult<Vec<_>>>()?))
        };
        let groups = listed.file_groups.into_iter().map(typed).collect::<DataFusionResult<Vec<_>>>()?;
        let format = &self.texts.options().format;
        let source = format.file_source(
            TableSchema::builder(self.file_schema.clone()).with_table_partition_cols(self.keys.clone()).build(),
        );
        let config = FileScanConfigBuilder::new(url, source)
            .with_file_groups(groups)
            .with_statistics(self.without_keys(&listed.statistics))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        format.create_physical_plan(state, config).await
    }
}
