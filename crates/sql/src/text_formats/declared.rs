//! Decimals, timestamps and intervals of text files, read in a form that has all digits and then made what is declared.
//!
//! A decimal is read as its text, of which [`crate::text_decimals`] makes a number as a cast does, and a date or a
//! timestamp of a CSV file as its text, too ([`crate::text_times`]), bytes and intervals
//! ([`crate::text_bytes`], [`crate::time_texts`]). A timestamp of a JSON file is read to the microsecond and rounded.
//!
//! JSON is opened here ([`super::json`]), since DataFusion's reader takes no number for a text.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, apply_expression_roots};

use super::form::TextForm;
use super::json::JsonOpener;
use crate::error::{A_CSV_FILE, A_JSON_FILE, SqlError};
use crate::text_bytes::{self, is_bytes};
use crate::time_units::rounded_to;
use crate::walk::Walk;
use crate::words::sql_name;
use crate::{text_decimals, text_times, time_texts};
use warpcube_column::is_string;

/// Files of text some of whose columns are read in another form.
#[derive(Clone)]
pub(super) struct DeclaredSource {
    /// The source of the format, of all columns as they are read.
    pub(super) plain: Arc<dyn FileSource>,
    form: TextForm,
    batch_size: Option<usize>,
    /// The columns as they are declared.
    table_schema: TableSchema,
    projection: ProjectionExprs,
}

impl DeclaredSource {
    /// The source of a table's files, of which `plain` reads columns of other types; none where the plain source reads
    /// all columns as they are declared.
    pub(super) fn new(
        table_schema: &TableSchema,
        form: TextForm,
        plain: impl FnOnce(TableSchema) -> Arc<dyn FileSource>,
    ) -> Option<DeclaredSource> {
        let declared = table_schema.file_schema();
        if form == TextForm::Csv && !declared.fields().iter().any(|field| read_as(field.data_type(), form).is_some()) {
            return None;
        }
        let keys = table_schema.table_partition_cols().iter().cloned().collect::<Vec<_>>();
        let all: Vec<usize> = (0..table_schema.table_schema().fields().len()).collect();
        Some(DeclaredSource {
            plain: plain(TableSchema::builder(read_schema(declared, form)).with_table_partition_cols(keys).build()),
            form,
            batch_size: None,
            projection: ProjectionExprs::from_indices(&all, table_schema.table_schema()),
            table_schema: table_schema.clone(),
        })
    }

    /// The same columns of another source.
    pub(super) fn over(&self, plain: Arc<dyn FileSource>) -> DeclaredSource {
        DeclaredSource { plain, ..self.clone() }
    }

    /// An expression over declared columns as one over columns as they are read.
    fn of_read(&self, expr: Arc<dyn PhysicalExpr>, options: &Arc<ConfigOptions>) -> Result<Arc<dyn PhysicalExpr>> {
        let fields = self.table_schema.file_schema().fields();
        let declared = |expr: Arc<dyn PhysicalExpr>| {
            let field = expr.downcast_ref::<Column>().and_then(|column| fields.get(column.index()));
            let Some(field) = field.filter(|field| read_as(field.data_type(), self.form).is_some()) else {
                return Ok(Transformed::no(expr));
            };
            let function = Arc::new(ScalarUDF::new_from_impl(Declared::new(field.data_type(), self.form)));
            let name = function.name().to_string();
            let call = ScalarFunctionExpr::new(&name, function, vec![expr], field.clone(), options.clone());
            Ok(Transformed::new(Arc::new(call) as Arc<dyn PhysicalExpr>, true, TreeNodeRecursion::Jump))
        };
        Ok(expr.transform_down(declared)?.data)
    }
}

impl FileSource for DeclaredSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let options = Arc::new(ConfigOptions::default());
        let projection = self.projection.clone().try_map_exprs(|expr| self.of_read(expr, &options))?;
        let read_schema = self.plain.table_schema().file_schema();
        if self.form != TextForm::Csv {
            let split = SplitProjection::new(read_schema, &projection);
            let schema = Arc::new(read_schema.project(&split.file_indices)?);
            let compression = config.file_compression_type;
            let opener = JsonOpener { store, schema, form: self.form, compression, batch_size: self.batch_size };
            return ProjectionOpener::try_new(split, Arc::new(opener), read_schema);
        }
        let read = self.plain.try_pushdown_projection(&projection)?;
        read.as_ref().unwrap_or(&self.plain).create_file_opener(store, config, partition)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let plain = self.plain.with_batch_size(batch_size);
        Arc::new(DeclaredSource { batch_size: Some(batch_size), ..self.over(plain) })
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let projection = self.projection.try_merge(projection)?;
        Ok(Some(Arc::new(DeclaredSource { projection, ..self.clone() })))
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

/// The columns of files as they are read.
pub(crate) fn read_schema(declared: &SchemaRef, form: TextForm) -> SchemaRef {
    let read = |field: &FieldRef| read_field(field, form).unwrap_or_else(|| field.clone());
    let fields = declared.fields().iter().map(read).collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(fields, declared.metadata().clone()))
}

/// The type that values are read as; none of a type whose texts are read as they are.
fn read_as(declared: &DataType, form: TextForm) -> Option<DataType> {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct, Timestamp};
    Some(match declared {
        decimal if text_decimals::is_read(decimal) => DataType::Utf8View,
        text if is_bytes(text) || matches!(text, DataType::Interval(_)) => DataType::Utf8View,
        time if form == TextForm::Csv && text_times::is_read(time) => DataType::Utf8View,
        Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => Timestamp(TimeUnit::Microsecond, zone.clone()),
        List(items) => List(read_field(items, form)?),
        LargeList(items) => LargeList(read_field(items, form)?),
        FixedSizeList(items, length) => FixedSizeList(read_field(items, form)?, *length),
        Map(entries, is_sorted) => Map(read_field(entries, form)?, *is_sorted),
        Struct(fields) if fields.iter().any(|field| read_as(field.data_type(), form).is_some()) => {
            let read = |field: &FieldRef| read_field(field, form).unwrap_or_else(|| field.clone());
            Struct(fields.iter().map(read).collect())
        }
        _ => return None,
    })
}

/// A field as it is read, where it is read otherwise than it is declared.
fn read_field(field: &FieldRef, form: TextForm) -> Option<FieldRef> {
    let of =
        |data_type| Field::new(field.name(), data_type, field.is_nullable()).with_metadata(field.metadata().clone());
    read_as(field.data_type(), form).map(|data_type| Arc::new(of(data_type)))
}

/// A value of a file that its declared type does not hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The position of the value, among items that of the item.
    pub(crate) row: usize,
    /// Where the value stands within its column, as `.x[]`.
    pub(crate) place: String,
    pub(crate) reason: String,
}

/// Why values are not as declared.
#[derive(Debug)]
pub(crate) enum Failed {
    Misfit(Misfit),
    Arrays(DataFusionError),
}

impl From<DataFusionError> for Failed {
    fn from(error: DataFusionError) -> Failed {
        Failed::Arrays(error)
    }
}

impl From<ArrowError> for Failed {
    fn from(error: ArrowError) -> Failed {
        Failed::Arrays(error.into())
    }
}

/// Values that were read, as values of the declared type.
///
/// # Errors
/// The first value that its type does not hold.
pub(crate) fn declared(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, Failed> {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct, Timestamp};
    let nulls = values.nulls().cloned();
    let within = |place: &str, values: &ArrayRef, field: &FieldRef| {
        declared(values, field.data_type()).map_err(|failed| match failed {
            Failed::Misfit(misfit) => Failed::Misfit(Misfit { place: format!("{place}{}", misfit.place), ..misfit }),
            failed => failed,
        })
    };
    Ok(match to {
        _ if values.data_type() == to => values.clone(),
        time if text_times::is_read(time) && is_string(values.data_type()) => {
            let fine = read_as(time, TextForm::JsonLines).unwrap_or_else(|| time.clone());
            let read = text_times::read(values, &fine)?.map_err(|misfit| {
                let kind = sql_name(time);
                let what = if *time == DataType::Date32 { "date" } else { "timestamp" };
                let reason = format!("'{}' is no {what}, and the column's type is {kind}", misfit.text);
                Failed::Misfit(Misfit { row: misfit.row, place: String::new(), reason })
            })?;
            // What is coarser than microseconds is rounded.
            if fine == *time { read } else { declared(&read, time)? }
        }
        bytes if is_bytes(bytes) => text_bytes::read(values, bytes, false)?.map_err(|misfit| {
            Failed::Misfit(Misfit { row: misfit.row, place: String::new(), reason: misfit.reason() })
        })?,
        DataType::Interval(_) => {
            let read = time_texts::intervals(values, to, true)?;
            if let Some(row) = (0..values.len()).find(|row| values.is_valid(*row) && read.is_null(*row)) {
                let text = cast(&values.slice(row, 1), &DataType::Utf8)?;
                let reason = format!("'{}' is no interval", text.as_string::<i32>().value(0));
                return Err(Failed::Misfit(Misfit { row, place: String::new(), reason }));
            }
            read
        }
        Timestamp(unit, _) => cast(&rounded_to(values, *unit)?, to)?,
        List(items) => {
            let list = values.as_list::<i32>();
            let inner = within("[]", list.values(), items)?;
            Arc::new(ListArray::try_new(items.clone(), list.offsets().clone(), inner, nulls)?)
        }
        LargeList(items) => {
            let list = values.as_list::<i64>();
            let inner = within("[]", list.values(), items)?;
            Arc::new(LargeListArray::try_new(items.clone(), list.offsets().clone(), inner, nulls)?)
        }
        FixedSizeList(items, length) => {
            let inner = within("[]", values.as_fixed_size_list().values(), items)?;
            Arc::new(FixedSizeListArray::try_new(items.clone(), *length, inner, nulls)?)
        }
        Map(entries, is_sorted) => {
            let map = values.as_map();
            let inner: ArrayRef = Arc::new(map.entries().clone());
            let inner = within("", &inner, entries)?.as_struct().clone();
            Arc::new(MapArray::try_new(entries.clone(), map.offsets().clone(), inner, nulls, *is_sorted)?)
        }
        Struct(fields) => {
            let members = values.as_struct().columns().iter().zip(fields);
            let members = members.map(|(member, field)| within(&format!(".{}", field.name()), member, field));
            Arc::new(StructArray::try_new(fields.clone(), members.collect::<Result<_, _>>()?, nulls)?)
        }
        _ => text_decimals::read(values, to, false)?.map_err(|misfit| {
            let (text, kind) = (misfit.text, sql_name(to));
            let reason = match misfit.is_number {
                true => format!("'{text}' has more digits before the point than {kind} holds"),
                false => format!("'{text}' is no number, and the column's type is {kind}"),
            };
            Failed::Misfit(Misfit { row: misfit.row, place: String::new(), reason })
        })?,
    })
}

/// Its argument as a value of the declared type; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Declared {
    to: DataType,
    form: TextForm,
    signature: Signature,
}

impl Declared {
    fn new(to: &DataType, form: TextForm) -> Declared {
        Declared { to: to.clone(), form, signature: Signature::any(1, Volatility::Immutable) }
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
        Ok(ColumnarValue::Array(declared(&values, &self.to).map_err(|failed| match failed {
            // The files are searched for the place.
            Failed::Misfit(Misfit { reason, .. }) => {
                let path = if self.form == TextForm::Csv { A_CSV_FILE } else { A_JSON_FILE };
                SqlError::FileCorrupt { path: path.into(), reason }.into()
            }
            Failed::Arrays(error) => error,
        })?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, StringViewArray, TimestampMicrosecondArray, TimestampSecondArray};
    use arrow::buffer::OffsetBuffer;

    use super::*;

    #[test]
    fn decimals_and_times_are_read_as_texts() {
        for (declared, expected) in [
            (DataType::Decimal128(10, 2), Some(DataType::Utf8View)),
            (DataType::Decimal256(76, 0), Some(DataType::Utf8View)),
            (DataType::Int64, None),
            (DataType::new_list(DataType::Int64, true), None),
            (DataType::new_list(DataType::Decimal128(3, 1), true), Some(DataType::new_list(DataType::Utf8View, true))),
        ] {
            assert_eq!(read_as(&declared, TextForm::Csv), expected, "{declared}");
        }
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(read_as(&time, TextForm::Csv), Some(DataType::Utf8View));
        assert_eq!(read_as(&time, TextForm::JsonLines), None);
    }

    #[test]
    fn values_are_rounded_wherever_they_stand() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("1.005"), Some("-1.005"), Some("1.004"), None]));
        let to = DataType::Decimal128(10, 2);
        let expected = Decimal128Array::from(vec![Some(101), Some(-101), Some(100), None]);
        let expected: ArrayRef = Arc::new(expected.with_precision_and_scale(10, 2).unwrap());
        assert_eq!(&declared(&texts, &to).unwrap(), &expected);
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![700_000, 400_000, -700_000, -400_000]));
        let members =
            vec![Field::new("d", texts.data_type().clone(), true), Field::new("t", times.data_type().clone(), true)];
        let read = StructArray::try_new(members.into(), vec![texts, times], None).unwrap();
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
    }

    #[test]
    fn a_misfit_has_its_place() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["1", "9.995"]));
        let of = |name: &str, data_type: DataType| DataType::Struct(vec![Field::new(name, data_type, true)].into());
        let to = of("d", DataType::Decimal128(3, 2));
        let DataType::Struct(fields) = of("d", DataType::Utf8View) else { unreachable!() };
        let read: ArrayRef = Arc::new(StructArray::try_new(fields, vec![texts], None).unwrap());
        let Err(Failed::Misfit(misfit)) = declared(&read, &to) else { panic!("9.995 as 10.00") };
        let reason = "'9.995' has more digits before the point than DECIMAL(3, 2) holds";
        assert_eq!(misfit, Misfit { row: 1, place: ".d".into(), reason: reason.into() });
    }
}
