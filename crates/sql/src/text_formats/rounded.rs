//! Decimals and timestamps of text files, read with more digits than are declared and then rounded.
//!
//! A decimal is read with one digit more, of which arrow's cast rounds halves away from zero; what follows that digit
//! says nothing about the nearest value. It is read as one of 76 digits, since the digits of a text with an exponent
//! wrap around in arrow's parser where the type has fewer. A timestamp is read to the microsecond, as a cast of a text
//! does.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Schema, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, apply_expression_roots};

use crate::time_units::rounded_to;
use crate::walk::Walk;

/// Files of text some of whose columns are rounded.
#[derive(Clone)]
pub(super) struct Rounded {
    /// The source of the format, of all columns as they are read.
    pub(super) plain: Arc<dyn FileSource>,
    /// The columns as they are declared.
    table_schema: TableSchema,
    projection: ProjectionExprs,
}

impl Rounded {
    /// The source of a table's files, of which `plain` reads columns of other types; none where there is nothing to
    /// round.
    pub(super) fn new(
        table_schema: &TableSchema,
        plain: impl FnOnce(TableSchema) -> Arc<dyn FileSource>,
    ) -> Option<Rounded> {
        let declared = table_schema.file_schema();
        if !declared.fields().iter().any(|field| read_as(field.data_type()).is_some()) {
            return None;
        }
        let read = |field: &FieldRef| wider(field).unwrap_or_else(|| field.clone());
        let fields = declared.fields().iter().map(read).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new_with_metadata(fields, declared.metadata().clone()));
        let keys = table_schema.table_partition_cols().iter().cloned().collect::<Vec<_>>();
        let all: Vec<usize> = (0..table_schema.table_schema().fields().len()).collect();
        Some(Rounded {
            plain: plain(TableSchema::builder(schema).with_table_partition_cols(keys).build()),
            projection: ProjectionExprs::from_indices(&all, table_schema.table_schema()),
            table_schema: table_schema.clone(),
        })
    }

    /// The same columns of another source.
    pub(super) fn over(&self, plain: Arc<dyn FileSource>) -> Rounded {
        Rounded { plain, ..self.clone() }
    }

    /// An expression over declared columns as one over columns as they are read.
    fn of_read(&self, expr: Arc<dyn PhysicalExpr>, options: &Arc<ConfigOptions>) -> Result<Arc<dyn PhysicalExpr>> {
        let fields = self.table_schema.file_schema().fields();
        let rounded = |expr: Arc<dyn PhysicalExpr>| {
            let field = expr.downcast_ref::<Column>().and_then(|column| fields.get(column.index()));
            let Some(field) = field.filter(|field| read_as(field.data_type()).is_some()) else {
                return Ok(Transformed::no(expr));
            };
            let function = Arc::new(ScalarUDF::new_from_impl(Declared::new(field.data_type())));
            let name = function.name().to_string();
            let call = ScalarFunctionExpr::new(&name, function, vec![expr], field.clone(), options.clone());
            Ok(Transformed::new(Arc::new(call) as Arc<dyn PhysicalExpr>, true, TreeNodeRecursion::Jump))
        };
        Ok(expr.transform_down(rounded)?.data)
    }
}

impl FileSource for Rounded {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let options = Arc::new(ConfigOptions::default());
        let projection = self.projection.clone().try_map_exprs(|expr| self.of_read(expr, &options))?;
        let read = self.plain.try_pushdown_projection(&projection)?;
        read.as_ref().unwrap_or(&self.plain).create_file_opener(store, config, partition)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(self.over(self.plain.with_batch_size(batch_size)))
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let projection = self.projection.try_merge(projection)?;
        Ok(Some(Arc::new(Rounded { projection, ..self.clone() })))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.plain.metrics()
    }

    fn file_type(&self) -> &str {
        self.plain.file_type()
    }

    fn supports_repartitioning(&self) -> bool {
        self.plain.supports_repartitioning()
    }

    fn fmt_extra(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt_extra(kind, f)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.iter(), f)
    }
}

/// The type that values are read as before they are rounded; none of a type whose texts are read as they are. Decimals
/// of 76 digits have no wider type.
fn read_as(declared: &DataType) -> Option<DataType> {
    use DataType::{
        Decimal32, Decimal64, Decimal128, Decimal256, FixedSizeList, LargeList, List, Map, Struct, Timestamp,
    };
    Some(match declared {
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => match *precision < DECIMAL256_MAX_PRECISION {
            true => Decimal256(DECIMAL256_MAX_PRECISION, scale + 1),
            false => return None,
        },
        Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => Timestamp(TimeUnit::Microsecond, zone.clone()),
        List(items) => List(wider(items)?),
        LargeList(items) => LargeList(wider(items)?),
        FixedSizeList(items, length) => FixedSizeList(wider(items)?, *length),
        Map(entries, is_sorted) => Map(wider(entries)?, *is_sorted),
        Struct(fields) if fields.iter().any(|field| read_as(field.data_type()).is_some()) => {
            Struct(fields.iter().map(|field| wider(field).unwrap_or_else(|| field.clone())).collect())
        }
        _ => return None,
    })
}

/// A field as it is read, where it is read otherwise than it is declared.
fn wider(field: &FieldRef) -> Option<FieldRef> {
    let of =
        |data_type| Field::new(field.name(), data_type, field.is_nullable()).with_metadata(field.metadata().clone());
    read_as(field.data_type()).map(|data_type| Arc::new(of(data_type)))
}

/// Values that were read, as values of the declared type.
///
/// # Errors
/// A decimal that has too many digits once it is rounded.
fn declared(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct, Timestamp};
    let nulls = values.nulls().cloned();
    let values: ArrayRef = match to {
        _ if values.data_type() == to => return Ok(values.clone()),
        Timestamp(unit, _) => rounded_to(values, *unit)?,
        List(items) => {
            let list = values.as_list::<i32>();
            let inner = declared(list.values(), items.data_type())?;
            return Ok(Arc::new(ListArray::try_new(items.clone(), list.offsets().clone(), inner, nulls)?));
        }
        LargeList(items) => {
            let list = values.as_list::<i64>();
            let inner = declared(list.values(), items.data_type())?;
            return Ok(Arc::new(LargeListArray::try_new(items.clone(), list.offsets().clone(), inner, nulls)?));
        }
        FixedSizeList(items, length) => {
            let inner = declared(values.as_fixed_size_list().values(), items.data_type())?;
            return Ok(Arc::new(FixedSizeListArray::try_new(items.clone(), *length, inner, nulls)?));
        }
        Map(entries, is_sorted) => {
            let map = values.as_map();
            let inner: ArrayRef = Arc::new(map.entries().clone());
            let inner = declared(&inner, entries.data_type())?.as_struct().clone();
            return Ok(Arc::new(MapArray::try_new(entries.clone(), map.offsets().clone(), inner, nulls, *is_sorted)?));
        }
        Struct(fields) => {
            let members = values.as_struct().columns().iter().zip(fields);
            let members = members.map(|(member, field)| declared(member, field.data_type())).collect::<Result<_>>()?;
            return Ok(Arc::new(StructArray::try_new(fields.clone(), members, nulls)?));
        }
        _ => values.clone(),
    };
    Ok(cast_with_options(&values, to, &CastOptions { safe: false, ..CastOptions::default() })?)
}

/// Its argument as a value of the declared type; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Declared {
    to: DataType,
    signature: Signature,
}

impl Declared {
    fn new(to: &DataType) -> Declared {
        Declared { to: to.clone(), signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Declared {
    fn name(&self) -> &str {
        "warpcube_declared"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = arguments.args[0].to_array(arguments.number_rows)?;
        Ok(ColumnarValue::Array(declared(&values, &self.to)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal64Array, Decimal128Array, TimestampMicrosecondArray, TimestampSecondArray};
    use arrow::buffer::OffsetBuffer;

    use super::*;

    #[test]
    fn one_digit_more_is_read() {
        for (declared, expected) in [
            (DataType::Decimal128(10, 2), Some(DataType::Decimal256(76, 3))),
            (DataType::Decimal128(38, 0), Some(DataType::Decimal256(76, 1))),
            (DataType::Decimal256(75, 75), Some(DataType::Decimal256(76, 76))),
            (DataType::Decimal256(76, 0), None),
            (DataType::Timestamp(TimeUnit::Microsecond, None), None),
            (DataType::Int64, None),
            (DataType::new_list(DataType::Int64, true), None),
        ] {
            assert_eq!(read_as(&declared), expected, "{declared}");
        }
    }

    #[test]
    fn values_are_rounded_wherever_they_stand() {
        let decimals: ArrayRef = Arc::new(
            Decimal64Array::from(vec![Some(1_005), Some(-1_005), Some(1_004), None])
                .with_precision_and_scale(11, 3)
                .unwrap(),
        );
        let to = DataType::Decimal128(10, 2);
        let expected = Decimal128Array::from(vec![Some(101), Some(-101), Some(100), None]);
        let expected: ArrayRef = Arc::new(expected.with_precision_and_scale(10, 2).unwrap());
        assert_eq!(&declared(&decimals, &to).unwrap(), &expected);
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![700_000, 400_000, -700_000, -400_000]));
        let members =
            vec![Field::new("d", decimals.data_type().clone(), true), Field::new("t", times.data_type().clone(), true)];
        let read = StructArray::try_new(members.into(), vec![decimals, times], None).unwrap();
        let to: Vec<Field> =
            vec![Field::new("d", to, true), Field::new("t", DataType::Timestamp(TimeUnit::Second, None), true)];
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 0, -1, 0]));
        let rounded = StructArray::try_new(to.into(), vec![expected, times], None).unwrap();
        let list = |items: StructArray| -> ArrayRef {
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths([1, 3]);
            Arc::new(ListArray::try_new(field, offsets, Arc::new(items), None).unwrap())
        };
        let rounded = list(rounded);
        assert_eq!(&declared(&list(read), rounded.data_type()).unwrap(), &rounded);
        let full: ArrayRef = Arc::new(Decimal64Array::from(vec![9_995]).with_precision_and_scale(4, 3).unwrap());
        assert!(declared(&full, &DataType::Decimal128(3, 2)).is_err());
    }
}
