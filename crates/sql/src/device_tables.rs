//! What is in device memory, as `SHOW DEVICE TABLES`, `LOAD TABLE` and `EVICT TABLE` see it.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};

use crate::error::Result;

/// A column in device memory.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceColumn {
    /// Its name.
    pub name: String,
    /// How it is encoded, for people.
    pub encoding: String,
    /// Bits of a value on average, with all that its encoding has beside values; validity is not counted.
    pub bits_per_value: f64,
    /// About how many values differ; `None` where no pass over the column has told, as where it lies as it is.
    pub distinct: Option<u64>,
    /// Whether no value is smaller than one before it; `None` where that is not known.
    pub sorted: Option<bool>,
    /// Bytes of device memory; none where the column is on the host alone.
    pub bytes: u64,
    /// Bytes of host memory that its encoded copy takes.
    pub host_bytes: u64,
    /// How often a statement found it there.
    pub hits: u64,
    /// What it was made from: `source`, `file` of encoded columns, or `host` copy.
    pub origin: &'static str,
}

/// A table of which columns are in device memory.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceTable {
    /// Its name.
    pub name: String,
    /// Rows of it that are there.
    pub rows: u64,
    /// Its columns that are there.
    pub columns: Vec<DeviceColumn>,
}

/// One row for each column.
pub(crate) fn batch(tables: &[DeviceTable]) -> Result<RecordBatch> {
    let rows = || tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
    let text = |value: fn(&DeviceTable, &DeviceColumn) -> String| -> ArrayRef {
        Arc::new(rows().map(|(table, column)| Some(value(table, column))).collect::<StringArray>())
    };
    let count = |value: fn(&DeviceTable, &DeviceColumn) -> u64| -> ArrayRef {
        Arc::new(rows().map(|(table, column)| value(table, column)).collect::<UInt64Array>())
    };
    let bits = rows().map(|(_, column)| (column.bits_per_value * 100.0).round() / 100.0);
    let columns = [
        ("table_name", text(|table, _| table.name.clone())),
        ("rows", count(|table, _| table.rows)),
        ("column_name", text(|_, column| column.name.clone())),
        ("encoding", text(|_, column| column.encoding.clone())),
        ("bits_per_value", Arc::new(bits.collect::<Float64Array>())),
        ("distinct", Arc::new(rows().map(|(_, column)| column.distinct).collect::<UInt64Array>())),
        ("sorted", Arc::new(rows().map(|(_, column)| column.sorted).collect::<BooleanArray>())),
        ("bytes", count(|_, column| column.bytes)),
        ("host_bytes", count(|_, column| column.host_bytes)),
        ("hits", count(|_, column| column.hits)),
        ("origin", text(|_, column| column.origin.to_string())),
    ];
    let may_be_unknown = |name: &str| matches!(name, "distinct" | "sorted");
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), may_be_unknown(name));
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    debug_assert!(schema.fields().iter().all(|field| *field.data_type() != DataType::Null));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), arrays).map_err(datafusion::error::DataFusionError::from)?)
}
