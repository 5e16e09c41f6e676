//! The order of rows that footers of Parquet files prove.
//!
//! `sorting_columns` say how the rows of one row group are sorted; DataFusion 55.2 takes those of a file's first row
//! group for the order of the file. Here an order is proved for a sequence of row groups, of one file or of several as
//! a scan reads them: all are sorted by its keys, and each begins where the one before ends or behind. Bounds of the
//! keys are compared one key after the other, a NULL lying before or behind all values as the key says; what has no
//! bounds ends the order at the key before, and so do floats, of which writers sort NaN in their own ways.
//!
//! Worked example: row groups with bounds (1..5, 2..9) and (5..8, 1..3) of keys (a, b) are sorted by `a` alone: both
//! may have rows with a = 5, and those of the first may have the larger `b`.

use std::cmp::Ordering;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::chunk_statistics::{ChunkStatistics, leaf_of, omits_zeros};

/// A key of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) column: String,
    pub(crate) data_type: DataType,
    pub(crate) options: SortOptions,
}

/// An end of the values of a key in a row group.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Unknown,
    /// NULL, where it comes before all values.
    First,
    Value(ScalarValue),
    /// NULL, where it comes behind all values.
    Last,
}

/// The order of the rows of a file, or of a sequence of files.
#[derive(Debug, Clone)]
pub(crate) struct RowOrder {
    /// The keys that rows are sorted by; none for files without rows.
    keys: Option<Vec<Key>>,
    /// By key where the first row group begins, and where the last one ends.
    begin: Vec<End>,
    end: Vec<End>,
}

impl RowOrder {
    /// The order of a file's rows; none where no key is proved.
    pub(super) fn of(metadata: &ParquetMetaData, schema: &Schema) -> Option<RowOrder> {
        let mut order = RowOrder { keys: None, begin: Vec::new(), end: Vec::new() };
        let omits_zeros = omits_zeros(metadata);
        for group in metadata.row_groups().iter().filter(|group| group.num_rows() > 0) {
            let keys = keys_of(metadata, group, schema)?;
            let ends = keys.iter().map(|key| ends(metadata, group, key, schema, omits_zeros));
            let (begin, end) = ends.unzip();
            order = order.then(RowOrder { keys: Some(keys), begin, end })?;
        }
        Some(order)
    }

    /// The order of these rows with others behind them; none where no key is left.
    pub(crate) fn then(self, next: RowOrder) -> Option<RowOrder> {
        let (Some(keys), Some(others)) = (&self.keys, &next.keys) else {
            return Some(if self.keys.is_some() { self } else { next });
        };
        let alike = keys.iter().zip(others).take_while(|(key, other)| key == other).count();
        let mut proved = alike;
        for (at, key) in keys[..alike].iter().enumerate() {
            match compare(&self.end[at], &next.begin[at], key.options.descending) {
                Some(Ordering::Less) => break,
                Some(Ordering::Equal) => {}
                Some(Ordering::Greater) | None => {
                    proved = at;
                    break;
                }
            }
        }
        let keys = keys[..proved].to_vec();
        (proved > 0).then(|| RowOrder { keys: Some(keys), begin: self.begin, end: next.end })
    }

    /// Bytes of memory on the heap.
    pub(super) fn bytes(&self) -> usize {
        let keys = self.keys().iter().map(|key| size_of::<Key>() + key.column.len()).sum::<usize>();
        let end = |end: &End| match end {
            End::Value(value) => value.size().max(size_of::<End>()),
            _ => size_of::<End>(),
        };
        keys + self.begin.iter().chain(&self.end).map(end).sum::<usize>()
    }

    /// The keys, the first one first.
    pub(crate) fn keys(&self) -> &[Key] {
        self.keys.as_deref().unwrap_or_default()
    }
}

/// The keys that the rows of a row group are sorted by; none if there is no key of a kind whose order is known.
fn keys_of(metadata: &ParquetMetaData, group: &RowGroupMetaData, schema: &Schema) -> Option<Vec<Key>> {
    let descriptor = metadata.file_metadata().schema_descr();
    let key = |sorting: &parquet::file::metadata::SortingColumn| {
        let leaf = usize::try_from(sorting.column_idx).ok().filter(|leaf| *leaf < descriptor.num_columns())?;
        let column = descriptor.get_column_root(leaf).name();
        let field = schema.field_with_name(column).ok().filter(|_| leaf_of(descriptor, column) == Some(leaf))?;
        let options = SortOptions { descending: sorting.descending, nulls_first: sorting.nulls_first };
        let key = Key { column: column.to_string(), data_type: field.data_type().clone(), options };
        has_one_order(&key.data_type).then_some(key)
    };
    let keys: Vec<Key> = group.sorting_columns()?.iter().map_while(key).collect();
    (!keys.is_empty()).then_some(keys)
}

/// Whether writers and readers sort values of the type alike.
fn has_one_order(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_temporal() && !matches!(data_type, DataType::Interval(_))
        || data_type.is_string()
        || matches!(data_type, DataType::Boolean | DataType::Decimal128(..) | DataType::Decimal256(..))
}

/// Where the values of a key begin and end in a row group, in the key's order.
fn ends(
    metadata: &ParquetMetaData,
    group: &RowGroupMetaData,
    key: &Key,
    schema: &Schema,
    omits_zeros: bool,
) -> (End, End) {
    let descriptor = metadata.file_metadata().schema_descr();
    let Some(leaf) = leaf_of(descriptor, &key.column) else { return (End::Unknown, End::Unknown) };
    let statistics = ChunkStatistics::of(group.column(leaf), omits_zeros);
    let Some(nulls) = statistics.nulls else { return (End::Unknown, End::Unknown) };
    let null = if key.options.nulls_first { End::First } else { End::Last };
    if nulls == group.num_rows() as u64 {
        return (null.clone(), null);
    }
    let bounds = || {
        let converter = StatisticsConverter::try_new(&key.column, schema, descriptor).ok()?;
        let low = converter.row_group_mins([group]).ok()?;
        let high = converter.row_group_maxes([group]).ok()?;
        Some((ScalarValue::try_from_array(&low, 0).ok()?, ScalarValue::try_from_array(&high, 0).ok()?))
    };
    let end = |value: ScalarValue, is_told: bool| match is_told && !value.is_null() {
        true => End::Value(value),
        false => End::Unknown,
    };
    let (low, high) = match bounds() {
        Some((low, high)) => (end(low, statistics.low), end(high, statistics.high)),
        None => (End::Unknown, End::Unknown),
    };
    let (mut begin, mut last) = if key.options.descending { (high, low) } else { (low, high) };
    if nulls > 0 {
        *(if key.options.nulls_first { &mut begin } else { &mut last }) = null;
    }
    (begin, last)
}

/// Compares ends in a key's order; none where one is unknown.
fn compare(a: &End, b: &End, descending: bool) -> Option<Ordering> {
    let place = |end: &End| match end {
        End::Unknown => None,
        End::First => Some(0),
        End::Value(_) => Some(1),
        End::Last => Some(2),
    };
    match (a, b) {
        (End::Value(a), End::Value(b)) => {
            a.partial_cmp(b).map(|found| if descending { found.reverse() } else { found })
        }
        _ => Some(place(a)?.cmp(&place(b)?)),
    }
}
