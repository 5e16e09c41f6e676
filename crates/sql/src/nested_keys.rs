//! Lists and structs as bytes that have their order: a NULL within one is larger than all other values, as in DuckDB.
//! Floats within have one NaN and one zero.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, BinaryArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::error::Result;

use crate::canonical_floats::canonical;

/// Whether values of a type have keys here.
pub(crate) fn has_keys(data_type: &DataType) -> bool {
    data_type.is_nested() && RowConverter::supports_fields(&[SortField::new(data_type.clone())])
}

/// The keys of values, which compare as bytes; NULL for NULL.
///
/// # Errors
/// Keys of more than 2 GiB together.
pub(crate) fn keys(values: &ArrayRef) -> Result<BinaryArray> {
    let (offsets, bytes, _) = rows_of(values)?.try_into_binary()?.into_parts();
    Ok(BinaryArray::try_new(offsets, bytes, values.logical_nulls())?)
}

/// Values of any type as rows of bytes in their order, NULL last.
///
/// # Errors
/// A type without such rows.
pub(crate) fn rows_of(values: &ArrayRef) -> Result<Rows> {
    let order = SortOptions { descending: false, nulls_first: false };
    let converter = RowConverter::new(vec![SortField::new_with_options(values.data_type().clone(), order)])?;
    Ok(converter.convert_columns(&[canonical(values)])?)
}

/// What is wrong with a map that [`repeating`] finds.
pub(crate) const KEY_TWICE: &str = "a key is twice in a map";

/// The maps that have a key twice, by their numbers; `offsets` are those of the maps into the keys.
///
/// # Errors
/// Those of [`rows_of`].
pub(crate) fn repeating(keys: &ArrayRef, offsets: &OffsetBuffer<i32>) -> Result<Vec<usize>> {
    let rows = rows_of(keys)?;
    let repeats = |range: &[i32]| {
        let mut seen = HashSet::new();
        !(range[0] as usize..range[1] as usize).all(|place| seen.insert(rows.row(place)))
    };
    let maps = offsets.windows(2).enumerate();
    Ok(maps.filter(|(_, range)| repeats(range)).map(|(map, _)| map).collect())
}
