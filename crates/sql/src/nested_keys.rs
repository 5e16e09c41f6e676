//! Lists and structs as bytes that have their order: a NULL within one is larger than all other values, as in DuckDB.

use arrow::array::{Array, ArrayRef, BinaryArray};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;

/// Whether values of a type have keys here.
pub(crate) fn has_keys(data_type: &DataType) -> bool {
    data_type.is_nested() && RowConverter::supports_fields(&[SortField::new(data_type.clone())])
}

/// The keys of values, which compare as bytes; NULL for NULL.
///
/// # Errors
/// Keys of more than 2 GiB together.
pub(crate) fn keys(values: &ArrayRef) -> Result<BinaryArray> {
    let order = SortOptions { descending: false, nulls_first: false };
    let converter = RowConverter::new(vec![SortField::new_with_options(values.data_type().clone(), order)])?;
    let rows = converter.convert_columns(std::slice::from_ref(values))?.try_into_binary()?;
    let (offsets, bytes, _) = rows.into_parts();
    Ok(BinaryArray::try_new(offsets, bytes, values.logical_nulls())?)
}
