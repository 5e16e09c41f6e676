//! From Arrow arrays to the bytes of a segment: values in storage width, validity words, statistics.
//!
//! A segment covers one chunk of a table, at most [`CHUNK_ROWS`] rows, padded with zeros to whole vectors of
//! [`VECTOR_ROWS`]. Layout (plain encoding), little endian:
//!
//! ```text
//! values   [vectors * 1024] × width bytes, row i at i * width; a null slot and padding hold zero
//! validity [vectors * 32] × u32, bit i % 32 of word i / 32 is 1 where row i is valid; absent if all rows are
//! ```

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::*;

use crate::dictionary::LocalDictionary;
use crate::error::{ColumnError, Result};
use crate::statistics::Statistics;
use crate::storage::{Storage, is_string};

/// Rows of a vector, the unit a warp works on.
pub const VECTOR_ROWS: usize = 1024;
/// Most rows of a chunk.
pub const CHUNK_ROWS: usize = 1 << 20;

/// Builds the segments of one column, chunk after chunk.
#[derive(Debug)]
pub struct SegmentBuilder {
    column: String,
    data_type: DataType,
    storage: Storage,
    dictionary: Option<LocalDictionary>,
    values: Vec<u8>,
    validity: BooleanBufferBuilder,
    rows: usize,
    statistics: Statistics,
    last: Option<i128>,
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("chunks of four"))
}

/// A finished segment on the host.
#[derive(Debug)]
pub struct HostSegment {
    /// Values, padded.
    pub values: Vec<u8>,
    /// Validity words, padded, where there are nulls.
    pub validity: Option<Vec<u32>>,
    /// Rows without padding.
    pub rows: usize,
    /// Statistics of the segment; of a string column, of its codes of arrival.
    pub statistics: Statistics,
}

impl SegmentBuilder {
    /// A builder for a column of an Arrow type; string columns bring their dictionary.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] if columns of that type stay on the CPU.
    pub fn new(column: &str, data_type: &DataType, dictionary: Option<LocalDictionary>) -> Result<SegmentBuilder> {
        let storage = Storage::of(data_type).ok_or_else(|| ColumnError::Unsupported {
            column: column.to_string(),
            reason: format!("type {data_type} has no device storage"),
        })?;
        Ok(SegmentBuilder {
            column: column.to_string(),
            data_type: data_type.clone(),
            storage,
            dictionary,
            values: Vec::new(),
            validity: BooleanBufferBuilder::new(0),
            rows: 0,
            statistics: Statistics::default(),
            last: None,
        })
    }

    /// Rows in the segment so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends all rows of an array; the caller keeps segments within [`CHUNK_ROWS`].
    pub fn append(&mut self, array: &ArrayRef) -> Result<()> {
        debug_assert!(self.rows + array.len() <= CHUNK_ROWS);
        if array.data_type() != &self.data_type && !(is_string(array.data_type()) && is_string(&self.data_type)) {
            let detail =
                format!("expected {} in column '{}', found {}", self.data_type, self.column, array.data_type());
            return Err(ColumnError::Changed { table: self.column.clone(), detail });
        }
        match &self.data_type {
            DataType::Int8 => self.integers::<Int8Type>(array.as_primitive()),
            DataType::Int16 => self.integers::<Int16Type>(array.as_primitive()),
            DataType::Int32 => self.integers::<Int32Type>(array.as_primitive()),
            DataType::Int64 => self.integers::<Int64Type>(array.as_primitive()),
            DataType::UInt8 => self.integers::<UInt8Type>(array.as_primitive()),
            DataType::UInt16 => self.integers::<UInt16Type>(array.as_primitive()),
            DataType::UInt32 => self.integers::<UInt32Type>(array.as_primitive()),
            DataType::UInt64 => self.integers::<UInt64Type>(array.as_primitive()),
            DataType::Date32 => self.integers::<Date32Type>(array.as_primitive()),
            DataType::Date64 => self.integers::<Date64Type>(array.as_primitive()),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => self.integers::<TimestampSecondType>(array.as_primitive()),
                TimeUnit::Millisecond => self.integers::<TimestampMillisecondType>(array.as_primitive()),
                TimeUnit::Microsecond => self.integers::<TimestampMicrosecondType>(array.as_primitive()),
                TimeUnit::Nanosecond => self.integers::<TimestampNanosecondType>(array.as_primitive()),
            },
            DataType::Decimal128(_, _) => return self.decimals(array.as_primitive()),
            DataType::Float32 => self.floats::<Float32Type>(array.as_primitive()),
            DataType::Float64 => self.floats::<Float64Type>(array.as_primitive()),
            DataType::Boolean => self.booleans(array),
            other if is_string(other) => return self.strings(array),
            other => unreachable!("{other} has no storage, which `new` refuses"),
        }
        Ok(())
    }

    /// Takes the segment out, padded; the next `append` starts a new one.
    pub fn finish(&mut self) -> HostSegment {
        let padded = self.rows.next_multiple_of(VECTOR_ROWS);
        let mut values = std::mem::take(&mut self.values);
        values.resize(padded * self.storage.width(), 0);
        let mut statistics = std::mem::take(&mut self.statistics);
        statistics.rows = self.rows as u64;
        statistics.strictly_ascending &= statistics.nulls == 0 && !self.storage.is_float();
        self.validity.append_n(padded - self.rows, false);
        let words = std::mem::replace(&mut self.validity, BooleanBufferBuilder::new(0)).finish();
        let validity = (statistics.nulls > 0).then(|| words.values().chunks_exact(4).map(word).collect());
        self.last = None;
        HostSegment { values, validity, rows: std::mem::take(&mut self.rows), statistics }
    }

    fn integers<T>(&mut self, array: &PrimitiveArray<T>)
    where
        T: ArrowPrimitiveType,
        T::Native: bytemuck::NoUninit + Ord + Into<i128> + Default,
    {
        if array.null_count() == 0 {
            let values = array.values();
            self.values.extend_from_slice(bytemuck::cast_slice(values));
            if let (Some(low), Some(high)) = (values.iter().min(), values.iter().max()) {
                self.bound((*low).into(), (*high).into());
                let continues = self.last.is_none_or(|last| last < values[0].into());
                self.statistics.strictly_ascending =
                    self.statistics.strictly_ascending && continues && values.windows(2).all(|pair| pair[0] < pair[1]);
                self.last = Some(values[values.len() - 1].into());
            }
        } else {
            for value in array.iter() {
                self.values.extend_from_slice(bytemuck::bytes_of(&value.unwrap_or_default()));
                if let Some(value) = value {
                    self.bound(value.into(), value.into());
                }
            }
        }
        self.valid(array);
    }

    fn decimals(&mut self, array: &PrimitiveArray<Decimal128Type>) -> Result<()> {
        for value in array.iter() {
            let value = value.unwrap_or_default();
            let narrow = i64::try_from(value).map_err(|_| ColumnError::Unsupported {
                column: self.column.clone(),
                reason: format!("the unscaled value {value} of {} needs more than 64 bits", self.data_type),
            })?;
            self.values.extend_from_slice(&narrow.to_le_bytes());
        }
        let mut bounds: Option<(i128, i128)> = None;
        for value in array.iter().flatten() {
            bounds = Some(bounds.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
        }
        if let Some((low, high)) = bounds {
            self.bound(low, high);
        }
        self.statistics.strictly_ascending = false;
        self.valid(array);
        Ok(())
    }

    fn floats<T>(&mut self, array: &PrimitiveArray<T>)
    where
        T: ArrowPrimitiveType,
        T::Native: bytemuck::NoUninit + Into<f64> + Default,
    {
        for value in array.iter() {
            self.values.extend_from_slice(bytemuck::bytes_of(&value.unwrap_or_default()));
            let Some(value) = value.map(Into::<f64>::into).filter(|value| !value.is_nan()) else { continue };
            let (low, high) = self.statistics.floats.unwrap_or((value, value));
            self.statistics.floats = Some((low.min(value), high.max(value)));
        }
        self.valid(array);
    }

    fn booleans(&mut self, array: &ArrayRef) {
        let array = array.as_boolean();
        for value in array.iter() {
            self.values.push(u8::from(value.unwrap_or_default()));
            if let Some(value) = value {
                self.bound(i128::from(value), i128::from(value));
            }
        }
        self.statistics.strictly_ascending = false;
        self.valid(array);
    }

    fn strings(&mut self, array: &ArrayRef) -> Result<()> {
        let codes: Vec<u32> = match array.data_type() {
            DataType::Utf8View => self.codes(array.as_string_view().iter())?,
            DataType::Utf8 => self.codes(array.as_string::<i32>().iter())?,
            DataType::LargeUtf8 => self.codes(array.as_string::<i64>().iter())?,
            DataType::Dictionary(_, _) => self.dictionary_codes(array)?,
            other => {
                let reason = format!("expected strings, found {other}");
                return Err(ColumnError::Changed { table: self.column.clone(), detail: reason });
            }
        };
        self.values.extend_from_slice(bytemuck::cast_slice(&codes));
        self.statistics.strictly_ascending = false;
        self.valid(array);
        Ok(())
    }

    fn codes<'a>(&mut self, strings: impl Iterator<Item = Option<&'a str>>) -> Result<Vec<u32>> {
        let dictionary = self.dictionary.as_mut().expect("string builders have a dictionary");
        strings.map(|text| text.map_or(Ok(0), |text| dictionary.code(text))).collect()
    }

    /// Looks each dictionary value up once a batch, then maps the keys.
    fn dictionary_codes(&mut self, array: &ArrayRef) -> Result<Vec<u32>> {
        let any = array.as_any_dictionary();
        let as_text =
            |array: &ArrayRef| cast(array, &DataType::Utf8View).map_err(|error| ColumnError::Source(error.to_string()));
        let values = as_text(any.values())?;
        let values = values.as_string_view();
        // Arrow refuses to look at the keys of a dictionary without values; all of them are NULL.
        let used: Vec<usize> = if values.is_empty() { vec![0; array.len()] } else { any.normalized_keys() };
        let mut translation: Vec<Option<u32>> = vec![None; values.len()];
        let dictionary = self.dictionary.as_mut().expect("string builders have a dictionary");
        let mut codes = Vec::with_capacity(used.len());
        for (row, key) in used.into_iter().enumerate() {
            if values.is_empty() || any.keys().is_null(row) || values.is_null(key) {
                codes.push(0);
                continue;
            }
            let code = match translation[key] {
                Some(code) => code,
                None => *translation[key].insert(dictionary.code(values.value(key))?),
            };
            codes.push(code);
        }
        Ok(codes)
    }

    fn bound(&mut self, low: i128, high: i128) {
        let (old_low, old_high) = self.statistics.integers.unwrap_or((low, high));
        self.statistics.integers = Some((old_low.min(low), old_high.max(high)));
    }

    /// Appends validity; with no null so far the words are dropped again when the segment is finished.
    fn valid(&mut self, array: &dyn Array) {
        match array.logical_nulls() {
            Some(nulls) if nulls.null_count() > 0 => {
                self.validity.append_buffer(nulls.inner());
                self.statistics.nulls += nulls.null_count() as u64;
            }
            _ => self.validity.append_n(array.len(), true),
        }
        self.rows += array.len();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{DictionaryArray, Int32Array, StringArray, StringViewArray};

    use super::*;
    use crate::dictionary::DictionaryBuilder;

    #[test]
    fn nulls_become_zero_and_words() {
        let mut builder = SegmentBuilder::new("c", &DataType::Int32, None).unwrap();
        builder.append(&(Arc::new(Int32Array::from(vec![5, -7])) as ArrayRef)).unwrap();
        builder.append(&(Arc::new(Int32Array::from(vec![None, Some(9)])) as ArrayRef)).unwrap();
        let segment = builder.finish();
        assert_eq!(bytemuck::cast_slice::<u8, i32>(&segment.values)[..5], [5, -7, 0, 9, 0]);
        assert_eq!(segment.values.len(), VECTOR_ROWS * 4);
        assert_eq!(segment.validity.unwrap()[..2], [0b1011, 0]);
        assert_eq!((segment.statistics.nulls, segment.statistics.integers), (1, Some((-7, 9))));
        builder.append(&(Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef)).unwrap();
        let next = builder.finish();
        assert!(next.validity.is_none() && next.statistics.is_dense_ascending());
    }

    #[test]
    fn sliced_strings_and_dictionaries_share_codes() {
        let shared = DictionaryBuilder::new("c", 10);
        let mut builder = SegmentBuilder::new("c", &DataType::Utf8, Some(shared.local())).unwrap();
        let plain: ArrayRef = Arc::new(StringArray::from(vec![Some("skipped"), Some("x"), None, Some("y")]));
        let view: ArrayRef = Arc::new(StringViewArray::from(vec!["y", "a string of more than twelve bytes"]));
        let keys = Int32Array::from(vec![Some(1), None, Some(0)]);
        let coded = DictionaryArray::new(keys, Arc::new(StringArray::from(vec!["x", "y"])));
        builder.append(&plain.slice(1, 3)).unwrap();
        builder.append(&view).unwrap();
        builder.append(&(Arc::new(coded) as ArrayRef)).unwrap();
        let segment = builder.finish();
        assert_eq!(bytemuck::cast_slice::<u8, u32>(&segment.values)[..8], [0, 0, 1, 1, 2, 1, 0, 0]);
        assert_eq!(segment.validity.unwrap()[0], 0b1011_1101);
    }

    #[test]
    fn a_dictionary_without_values_is_all_null() {
        let shared = DictionaryBuilder::new("c", 10);
        let coded =
            DictionaryArray::new(Int32Array::from(vec![None; 3]), Arc::new(StringArray::from(Vec::<&str>::new())));
        let data_type = coded.data_type().clone();
        let mut builder = SegmentBuilder::new("c", &data_type, Some(shared.local())).unwrap();
        builder.append(&(Arc::new(coded) as ArrayRef)).unwrap();
        assert_eq!(builder.finish().statistics.nulls, 3);
    }

    #[test]
    fn another_type_than_declared_is_an_error() {
        let mut builder = SegmentBuilder::new("c", &DataType::Int64, None).unwrap();
        let error = builder.append(&(Arc::new(Int32Array::from(vec![1])) as ArrayRef)).unwrap_err();
        assert!(error.to_string().contains("expected Int64 in column 'c', found Int32"), "{error}");
    }

    #[test]
    fn a_decimal_past_64_bits_is_refused() {
        let array = PrimitiveArray::<Decimal128Type>::from(vec![i128::from(i64::MAX) + 1]);
        let mut builder = SegmentBuilder::new("c", array.data_type(), None).unwrap();
        assert!(builder.append(&(Arc::new(array) as ArrayRef)).unwrap_err().is_unsupported());
    }
}
