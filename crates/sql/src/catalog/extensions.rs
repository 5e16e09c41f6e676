//! Columns that have extension types: those of Parquet files, as this program or another one wrote them, and those of
//! all tables, for `information_schema.columns`.
//!
//! DataFusion 55.2 forgets the metadata of fields. A file has the type in the Arrow schema of its writer, or as a
//! logical type of Parquet. A table's column has it if each of the files has. Columns of intervals have their type in
//! tables here, too ([`super::stored_values`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{CatalogProviderList, Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path as ObjectPath;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::LogicalType;
use parquet::file::metadata::ParquetMetaData;

use super::stored_values::{INTERVAL, has_intervals};
use crate::error::Result;
use crate::extension_types::ExtensionType;

/// The command of a table over Parquet files whose columns were inferred, with extension types, and one type of
/// intervals. None if no column has one.
pub(super) async fn typed(
    state: &dyn Session,
    command: &CreateExternalTable,
    listing: &ListingTable,
    files: &[PathBuf],
) -> Result<Option<CreateExternalTable>> {
    let schema = listing.schema();
    let may_have = |field: &Arc<Field>| field.data_type().is_string() || is_uuid(field.data_type());
    let has_intervals = has_intervals(&schema);
    let mut types: BTreeMap<String, ExtensionType> = BTreeMap::new();
    if command.file_type != "PARQUET" || !has_intervals && !schema.fields().iter().any(may_have) {
        return Ok(None);
    }
    for (number, path) in files.iter().enumerate() {
        let found = types_of(state, path).await.unwrap_or_default();
        match number {
            0 => types = found,
            _ => types.retain(|name, of| found.get(name) == Some(of)),
        }
        if types.is_empty() {
            break;
        }
    }
    if types.is_empty() && !has_intervals {
        return Ok(None);
    }
    let field = |field: &Arc<Field>| match (types.get(field.name()).filter(|_| may_have(field)), field.data_type()) {
        (Some(of), _) => of.stored(field),
        (None, DataType::Interval(_)) => field.as_ref().clone().with_data_type(INTERVAL),
        (None, _) => field.as_ref().clone(),
    };
    let fields: Vec<Field> = schema.fields().iter().map(field).collect();
    let mut changed = command.clone();
    changed.schema = Arc::new(DFSchema::try_from(Schema::new_with_metadata(fields, schema.metadata().clone()))?);
    changed.table_partition_cols = listing.options().table_partition_cols.iter().map(|(key, _)| key.clone()).collect();
    Ok(Some(changed))
}

/// The extension types of a file's columns by name; none where its footer cannot be read.
async fn types_of(state: &dyn Session, path: &Path) -> Option<BTreeMap<String, ExtensionType>> {
    let runtime = state.runtime_env();
    let store = runtime.object_store(ObjectStoreUrl::local_filesystem()).ok()?;
    let location = ObjectPath::from_absolute_path(std::path::absolute(path).ok()?).ok()?;
    let file = store.head(&location).await.ok()?;
    let cache = runtime.cache_manager.get_file_metadata_cache();
    let footer = DFParquetMetadata::new(store.as_ref(), &file).with_file_metadata_cache(Some(cache));
    in_footer(footer.fetch_metadata().await.ok()?.as_ref())
}

fn in_footer(metadata: &ParquetMetaData) -> Option<BTreeMap<String, ExtensionType>> {
    let file = metadata.file_metadata();
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()).ok()?;
    let columns = file.schema_descr().root_schema().get_fields();
    let of_column = |(field, column): (&Arc<Field>, &parquet::schema::types::TypePtr)| {
        let of_parquet = match column.get_basic_info().logical_type_ref() {
            Some(LogicalType::Json) => Some(ExtensionType::Json),
            Some(LogicalType::Uuid) if is_uuid(field.data_type()) => Some(ExtensionType::Uuid),
            _ => None,
        };
        let of = ExtensionType::of(field).or_else(|| ExtensionType::unread(field)).or(of_parquet)?;
        Some((field.name().clone(), of))
    };
    Some(schema.fields().iter().zip(columns).filter_map(of_column).collect())
}

/// Whether a column may have UUIDs in bytes.
fn is_uuid(data_type: &DataType) -> bool {
    *data_type == DataType::FixedSizeBinary(16)
}

/// The names in SQL of the extension types of all columns, by catalog, schema, table and column.
pub(crate) async fn extension_types(catalogs: &dyn CatalogProviderList) -> BTreeMap<[String; 4], &'static str> {
    let mut found = BTreeMap::new();
    for catalog in catalogs.catalog_names() {
        let Some(of_catalog) = catalogs.catalog(&catalog) else { continue };
        for schema in of_catalog.schema_names() {
            let Some(of_schema) = of_catalog.schema(&schema) else { continue };
            for table in of_schema.table_names() {
                // A table that cannot be read has no columns there either.
                let Ok(Some(provider)) = of_schema.table(&table).await else { continue };
                for field in provider.schema().fields() {
                    if let Some(of) = ExtensionType::of(field).or_else(|| ExtensionType::unread(field)) {
                        let names = [&catalog, &schema, &table, field.name()].map(String::clone);
                        found.insert(names, of.name());
                    }
                }
            }
        }
    }
    found
}
