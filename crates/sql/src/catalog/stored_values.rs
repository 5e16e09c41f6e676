//! Columns of Parquet files whose values no cast of Arrow reads: UUIDs of 16 bytes, and intervals.
//!
//! A UUID becomes its text. An INTERVAL of Parquet is three unsigned numbers of 32 bits, little-endian: months, days
//! and milliseconds. Arrow 59.3 reads days and milliseconds alone, so that footers hide the type from it
//! ([`plain`]), and the 12 bytes are read here. Intervals within lists, structs and maps are refused: their months
//! would be lost.
//!
//! The file goes once Arrow reads months, and casts bytes of UUIDs to text.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef};
use datafusion::common::Result as DataFusionResult;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::physical_plan::ExecutionPlan;
use parquet::basic::{ConvertedType, Type as PhysicalType};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::footer_facts::ChangedFooters;
use crate::error::SqlError;
use crate::extension_types::ExtensionType;
use crate::functions::uuid_of_bytes;
use crate::walk::Walk;

/// The type of intervals in tables.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Bytes of an INTERVAL of Parquet.
const INTERVAL_BYTES: i32 = 12;
/// Bytes of a UUID.
const UUID_BYTES: i32 = 16;

/// Whether a column of a table may have intervals of Parquet files.
pub(super) fn has_intervals(schema: &Schema) -> bool {
    schema.fields().iter().any(|field| matches!(field.data_type(), DataType::Interval(_)))
}

/// A scan that reads such values; any other plan as it is.
///
/// # Errors
/// [`SqlError::Unsupported`] for a scan of a column with intervals within.
pub(crate) fn with_stored_values(plan: Arc<dyn ExecutionPlan>) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let Some(scan) = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>()) else { return Ok(plan) };
    let Some(source) = scan.file_source.downcast_ref::<ParquetSource>() else { return Ok(plan) };
    if let Some(field) = plan.schema().fields().iter().find(|field| loses_months(field.data_type())) {
        return Err(refused(field.name()));
    }
    let schema = scan.file_schema();
    let has_uuids = || schema.fields().iter().any(|field| ExtensionType::of(field) == Some(ExtensionType::Uuid));
    let has_intervals = has_intervals(schema);
    if !has_intervals && !has_uuids() && !schema.fields().iter().any(|field| field.data_type().is_nested()) {
        return Ok(plan);
    }
    let mut builder = FileScanConfigBuilder::from(scan.clone()).with_expr_adapter(Some(Arc::new(StoredValues)));
    if let Some(factory) = source.parquet_file_reader_factory().filter(|_| has_intervals) {
        // Footers tell columns of intervals as bytes.
        let plain = Arc::new(ChangedFooters { files: factory.clone(), change: plain });
        // Bounds of intervals are none, and the page index is of the type that the footer had.
        let source = source.clone().with_enable_page_index(false).with_parquet_file_reader_factory(plain);
        builder = builder.with_source(Arc::new(source));
    }
    Ok(DataSourceExec::from_data_source(builder.build()))
}

fn refused(column: &str) -> DataFusionError {
    SqlError::Unsupported(format!("intervals within column '{column}' of a Parquet file")).into()
}

/// Expressions over columns of a table as expressions over those of one of its files.
#[derive(Debug)]
struct StoredValues;

impl PhysicalExprAdapterFactory for StoredValues {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> DataFusionResult<Arc<dyn PhysicalExprAdapter>> {
        let mut read = Vec::new();
        let mut fields: Vec<FieldRef> = Vec::with_capacity(table.fields().len());
        for field in table.fields() {
            let stored = file.field_with_name(field.name()).ok();
            let kind = stored.and_then(|stored| Kind::of(stored, field));
            if let Some((kind, stored)) = kind.zip(stored) {
                read.push((field.clone(), kind));
                fields.push(Arc::new(stored.clone()));
            } else {
                fields.push(field.clone());
            }
        }
        // What is read here is a column of the file's own type to the other casts.
        let table = Arc::new(Schema::new_with_metadata(fields, table.metadata().clone()));
        let casts = DefaultPhysicalExprAdapterFactory.create(table, file.clone())?;
        Ok(Arc::new(Adapter { casts, read, file }))
    }
}

#[derive(Debug)]
struct Adapter {
    /// The casts of all other columns.
    casts: Arc<dyn PhysicalExprAdapter>,
    read: Vec<(FieldRef, Kind)>,
    file: SchemaRef,
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
        let over_file = self.casts.rewrite(expr)?;
        let read = over_file.transform_down(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
            if let Ok(stored) = self.file.field_with_name(column.name())
                && loses_months(stored.data_type())
            {
                return Err(refused(column.name()));
            }
            let Some((field, kind)) = self.read.iter().find(|(field, _)| field.name() == column.name()) else {
                return Ok(Transformed::no(expr));
            };
            let function = Arc::new(ScalarUDF::new_from_impl(Read::new(*kind, field.data_type().clone())));
            let (name, options) = (function.name().to_string(), Arc::new(ConfigOptions::default()));
            let read = ScalarFunctionExpr::new(&name, function, vec![expr], field.clone(), options);
            Ok(Transformed::new(Arc::new(read) as Arc<dyn PhysicalExpr>, true, TreeNodeRecursion::Jump))
        })?;
        Ok(read.data)
    }
}

/// Whether Arrow would read values of a type without their months.
fn loses_months(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(unit) => *unit == IntervalUnit::DayTime,
        DataType::List(items) | DataType::LargeList(items) | DataType::FixedSizeList(items, _) => {
            loses_months(items.data_type())
        }
        DataType::Map(entries, _) => loses_months(entries.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| loses_months(field.data_type())),
        _ => false,
    }
}

/// What bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Uuid,
    Interval,
}

impl Kind {
    /// What the bytes of a file's column are to a table; none for other columns.
    fn of(stored: &Field, field: &Field) -> Option<Kind> {
        match (stored.data_type(), field.data_type()) {
            (DataType::FixedSizeBinary(INTERVAL_BYTES), DataType::Interval(_)) => Some(Kind::Interval),
            (DataType::FixedSizeBinary(UUID_BYTES), _) if ExtensionType::of(field) == Some(ExtensionType::Uuid) => {
                Some(Kind::Uuid)
            }
            _ => None,
        }
    }
}

/// Bytes as values of a type; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Read {
    kind: Kind,
    to: DataType,
    signature: Signature,
}

impl Read {
    fn new(kind: Kind, to: DataType) -> Read {
        Read { kind, to, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Read {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Uuid => "warpcube_uuid_of_bytes",
            Kind::Interval => "warpcube_interval_of_bytes",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> DataFusionResult<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let values = arguments.args[0].to_array(arguments.number_rows)?;
        let bytes = values.as_fixed_size_binary();
        let read: ArrayRef = match self.kind {
            Kind::Uuid => {
                let texts = bytes.iter().map(|bytes| bytes.map(uuid_of_bytes).transpose());
                Arc::new(texts.collect::<DataFusionResult<StringArray>>()?)
            }
            Kind::Interval => {
                let intervals = bytes.iter().map(|bytes| bytes.map(interval).transpose());
                Arc::new(intervals.collect::<DataFusionResult<IntervalMonthDayNanoArray>>()?)
            }
        };
        Ok(ColumnarValue::Array(cast(&read, &self.to)?))
    }
}

/// An interval of Parquet.
fn interval(bytes: &[u8]) -> DataFusionResult<IntervalMonthDayNano> {
    let part = |place: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(4 * place..4 * place + 4)?.try_into().ok()?))
    };
    let read = || {
        let (months, days) = (i32::try_from(part(0)?).ok()?, i32::try_from(part(1)?).ok()?);
        Some(IntervalMonthDayNano::new(months, days, i64::from(part(2)?) * 1_000_000))
    };
    read().ok_or_else(|| SqlError::Execution("overflow: an interval of a Parquet file".into()).into())
}

/// The footer of a file whose columns of intervals are told as bytes.
///
/// # Errors
/// What `parquet` says of a type that it does not write.
fn plain(metadata: &ParquetMetaData) -> ParquetResult<ParquetMetaData> {
    let file = metadata.file_metadata();
    let root = file.schema_descr().root_schema();
    let column = |column: &TypePtr| match column.as_ref() {
        Type::PrimitiveType { basic_info, type_length, .. }
            if basic_info.converted_type() == ConvertedType::INTERVAL && *type_length == INTERVAL_BYTES =>
        {
            let id = basic_info.has_id().then(|| basic_info.id());
            let bytes = Type::primitive_type_builder(column.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY);
            let bytes = bytes.with_length(INTERVAL_BYTES).with_repetition(basic_info.repetition()).with_id(id);
            Ok(Arc::new(bytes.build()?))
        }
        _ => Ok(column.clone()),
    };
    let columns = root.get_fields().iter().map(column).collect::<ParquetResult<_>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_string),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(Arc::new(root))),
        file.column_orders().cloned(),
    );
    Ok(ParquetMetaData::new(file, metadata.row_groups().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_three_parts() {
        let of = |parts: [u32; 3]| interval(&parts.map(u32::to_le_bytes).concat());
        assert_eq!(of([14, 3, 1]).unwrap(), IntervalMonthDayNano::new(14, 3, 1_000_000));
        assert_eq!(of([0, 0, u32::MAX]).unwrap(), IntervalMonthDayNano::new(0, 0, 4_294_967_295_000_000));
        assert!(of([u32::MAX, 0, 0]).is_err() && interval(&[0; 11]).is_err());
    }

    #[test]
    fn months_are_lost_at_any_depth() {
        let interval = DataType::Interval(IntervalUnit::DayTime);
        let list = DataType::new_list(interval.clone(), true);
        assert!(loses_months(&interval) && loses_months(&list));
        assert!(loses_months(&DataType::Struct(vec![Field::new("a", list, true)].into())));
        assert!(!loses_months(&INTERVAL) && !loses_months(&DataType::new_list(INTERVAL, true)));
    }
}
