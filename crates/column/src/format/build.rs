//! Arrow arrays to plain segments: values in storage width, validity words, statistics.
//!
//! A segment covers one chunk of a table, at most [`CHUNK_ROWS`] rows. Its layout is that of `plain.rs`, with zeros in
//! null slots and padding.

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowNativeType, ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type};
use bytemuck::NoUninit;

use super::bytes::TextBuilder;
use super::coding::StringCoder;
use super::strings::LocalDictionary;
use super::values::nulls_of;
use crate::error::{ColumnError, Result};
use crate::units::{CHUNK_ROWS, Statistics, Storage, VECTOR_ROWS, is_string};

/// Builds the segments of one column, chunk after chunk.
#[derive(Debug)]
pub(crate) struct SegmentBuilder {
    column: String,
    data_type: DataType,
    storage: Storage,
    strings: Strings,
    values: Vec<u8>,
    /// Present from the first null of a segment on.
    validity: Option<BooleanBufferBuilder>,
    rows: usize,
    statistics: Statistics,
    last: Option<i128>,
    /// Buffer for decimals in storage width.
    narrow: Vec<i64>,
}

/// How the strings of a column are kept.
#[derive(Debug)]
pub(crate) enum StringForm {
    /// Codes of a dictionary.
    Codes(LocalDictionary),
    /// Bytes with offsets.
    Bytes,
}

/// The strings of a builder.
#[derive(Debug)]
enum Strings {
    None,
    Codes(Box<StringCoder>),
    Bytes(TextBuilder),
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("chunks of four"))
}

/// A finished segment on the host.
#[derive(Debug)]
pub(crate) struct HostSegment {
    /// Padded values.
    pub(crate) values: Vec<u8>,
    /// Padded validity words; `None` if every row is valid.
    pub(crate) validity: Option<Vec<u32>>,
    /// Rows without padding.
    pub(crate) rows: usize,
    /// Statistics of the segment; those of its arrival codes for strings.
    pub(crate) statistics: Statistics,
    /// Number of the local dictionary of its arrival codes.
    pub(crate) dictionary: Option<usize>,
}

impl SegmentBuilder {
    /// A builder for a column of an Arrow type; string columns need a form.
    pub(crate) fn new(column: &str, data_type: &DataType, form: Option<StringForm>) -> Result<SegmentBuilder> {
        let storage = Storage::of(data_type)
            .ok_or_else(|| ColumnError::unsupported(column, format!("type {data_type} has no device storage")))?;
        Ok(SegmentBuilder {
            column: column.to_string(),
            data_type: data_type.clone(),
            storage,
            strings: match form {
                None => Strings::None,
                Some(StringForm::Codes(dictionary)) => Strings::Codes(Box::new(StringCoder::new(dictionary))),
                Some(StringForm::Bytes) => Strings::Bytes(TextBuilder::default()),
            },
            values: Vec::new(),
            validity: None,
            rows: 0,
            statistics: Statistics::default(),
            last: None,
            narrow: Vec::new(),
        })
    }

    /// Takes the memory of an earlier segment for the next one: the system maps and clears fresh memory page by page.
    pub(crate) fn reuse(&mut self, values: Vec<u8>) {
        if self.values.capacity() < values.capacity() && self.values.is_empty() {
            self.values = values;
            self.values.clear();
        }
    }

    /// Ends the column on this thread; returns its dictionary, and memory for other columns.
    pub(crate) fn into_parts(self) -> (Option<LocalDictionary>, Vec<u8>) {
        let dictionary = match self.strings {
            Strings::Codes(coder) => Some(coder.into_dictionary()),
            Strings::None | Strings::Bytes(_) => None,
        };
        (dictionary, self.values)
    }

    /// Appends the rows of an array; the caller limits segments to [`CHUNK_ROWS`].
    pub(crate) fn append(&mut self, array: &ArrayRef) -> Result<()> {
        debug_assert!(self.rows + array.len() <= CHUNK_ROWS);
        if !holds_values_of(array.data_type(), &self.data_type) {
            let detail =
                format!("expected {} in column '{}', found {}", self.data_type, self.column, array.data_type());
            return Err(ColumnError::changed(&self.column, detail));
        }
        match (self.storage, array.data_type()) {
            (_, other) if is_string(other) => self.strings(array)?,
            (_, DataType::Decimal128(_, _)) => self.decimals(array.as_primitive())?,
            (_, DataType::Decimal64(_, _)) => {
                self.integers::<i64>(array);
                self.statistics.strictly_ascending = false;
            }
            (Storage::Bool, _) => self.booleans(array),
            (Storage::F32, _) => self.floats::<Float32Type>(array.as_primitive(), f32::from_bits(0x7fc0 << 16)),
            (Storage::F64, _) => self.floats::<Float64Type>(array.as_primitive(), f64::from_bits(0x7ff8 << 48)),
            (Storage::I8, _) => self.integers::<i8>(array),
            (Storage::I16, _) => self.integers::<i16>(array),
            (Storage::I32, _) => self.integers::<i32>(array),
            (Storage::I64, _) => self.integers::<i64>(array),
            (Storage::U8, _) => self.integers::<u8>(array),
            (Storage::U16, _) => self.integers::<u16>(array),
            (Storage::U32, _) => self.integers::<u32>(array),
            (Storage::U64, _) => self.integers::<u64>(array),
        }
        self.valid(array);
        Ok(())
    }

    /// Returns the padded segment; the next `append` begins another.
    pub(crate) fn finish(&mut self) -> HostSegment {
        let padded = self.rows.next_multiple_of(VECTOR_ROWS);
        let mut values = std::mem::take(&mut self.values);
        match &mut self.strings {
            Strings::Bytes(builder) => builder.finish(&mut values),
            Strings::None | Strings::Codes(_) => values.resize(padded * self.storage.width(), 0),
        }
        let mut statistics = std::mem::take(&mut self.statistics);
        statistics.rows = self.rows as u64;
        statistics.strictly_ascending &= statistics.nulls == 0 && !self.storage.is_float();
        let validity = self.validity.take().map(|mut validity| {
            validity.append_n(padded - self.rows, false);
            validity.finish().values().chunks_exact(4).map(word).collect()
        });
        self.last = None;
        let dictionary = match &self.strings {
            Strings::Codes(coder) => Some(coder.number()),
            Strings::None | Strings::Bytes(_) => None,
        };
        HostSegment { values, validity, rows: std::mem::take(&mut self.rows), statistics, dictionary }
    }

    /// Integers, dates, times and narrow decimals.
    fn integers<N: ArrowNativeType + NoUninit + Ord + Into<i128>>(&mut self, array: &ArrayRef) {
        self.numbers(&array.to_data().buffer::<N>(0)[..array.len()], nulls_of(array));
    }

    fn numbers<N: NoUninit + Ord + Into<i128>>(&mut self, values: &[N], nulls: Option<&NullBuffer>) {
        self.copy(values, nulls);
        match nulls {
            None => self.ascends(values),
            Some(nulls) => nulls.valid_slices().for_each(|(start, end)| self.bounds_of(&values[start..end])),
        }
    }

    /// Adds values to the bounds, and tests whether they continue an ascending column.
    fn ascends<N: Copy + Ord + Into<i128>>(&mut self, values: &[N]) {
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
        self.bounds_of(values);
        if self.statistics.strictly_ascending {
            let continues = self.last.is_none_or(|last| last < (*first).into());
            self.statistics.strictly_ascending = continues && values.windows(2).all(|pair| pair[0] < pair[1]);
            self.last = Some((*last).into());
        }
    }

    fn bounds_of<N: Copy + Ord + Into<i128>>(&mut self, values: &[N]) {
        let Some(first) = values.first() else { return };
        // One pass for both bounds takes a quarter of the time of two, for 64 bits.
        let both = values.iter().fold((*first, *first), |(low, high), value| (low.min(*value), high.max(*value)));
        self.bound(both.0.into(), both.1.into());
    }

    /// Copies values in storage width, with zeros in null slots.
    fn copy<N: NoUninit>(&mut self, values: &[N], nulls: Option<&NullBuffer>) {
        let Some(nulls) = nulls else { return self.values.extend_from_slice(bytemuck::cast_slice(values)) };
        let width = size_of::<N>();
        let base = self.values.len();
        for (start, end) in nulls.valid_slices() {
            self.values.resize(base + start * width, 0);
            self.values.extend_from_slice(bytemuck::cast_slice(&values[start..end]));
        }
        self.values.resize(base + size_of_val(values), 0);
    }

    fn decimals(&mut self, array: &PrimitiveArray<Decimal128Type>) -> Result<()> {
        let nulls = nulls_of(array);
        let values = array.values();
        let mut narrow = std::mem::take(&mut self.narrow);
        narrow.clear();
        narrow.extend(values.iter().map(|value| *value as i64));
        let is_wide = |row: &usize| i128::from(narrow[*row]) != values[*row];
        let wide = match nulls {
            // A loop without an exit compiles to vector instructions.
            None if !(0..values.len()).fold(false, |any, row| any | is_wide(&row)) => None,
            None => (0..values.len()).find(is_wide),
            Some(nulls) => nulls.valid_indices().find(is_wide),
        };
        if let Some(row) = wide {
            let reason = format!("the unscaled value {} of {} needs more than 64 bits", values[row], self.data_type);
            return Err(ColumnError::unsupported(&self.column, reason));
        }
        self.numbers(&narrow, nulls);
        self.statistics.strictly_ascending = false;
        self.narrow = narrow;
        Ok(())
    }

    /// Floats. Every NaN becomes `nan`: all NaNs have one code, and count as one distinct value.
    fn floats<T>(&mut self, array: &PrimitiveArray<T>, nan: T::Native)
    where
        T: ArrowPrimitiveType,
        T::Native: NoUninit + Into<f64>,
    {
        let nulls = nulls_of(array);
        let values = array.values();
        let is_nan = |value: &T::Native| (*value).into().is_nan();
        // A loop without an exit compiles to vector instructions.
        match values.iter().fold(false, |any, value| any | is_nan(value)) {
            true => {
                let one = |value: &T::Native| if is_nan(value) { nan } else { *value };
                self.copy(&values.iter().map(one).collect::<Vec<_>>(), nulls);
            }
            false => self.copy(values, nulls),
        }
        let mut bounds: Option<(f64, f64)> = self.statistics.floats;
        let mut take = |values: &[T::Native]| {
            for value in values.iter().map(|value| (*value).into()).filter(|value| !value.is_nan()) {
                bounds = Some(bounds.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
            }
        };
        match nulls {
            None => take(values),
            Some(nulls) => nulls.valid_slices().for_each(|(start, end)| take(&values[start..end])),
        }
        self.statistics.floats = bounds;
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
    }

    fn strings(&mut self, array: &ArrayRef) -> Result<()> {
        match &mut self.strings {
            Strings::Codes(coder) => self.values.extend_from_slice(bytemuck::cast_slice(coder.codes(array)?)),
            Strings::Bytes(builder) => builder.append(&self.column, array)?,
            Strings::None => unreachable!("builders of strings have a form"),
        }
        self.statistics.strictly_ascending = false;
        Ok(())
    }

    fn bound(&mut self, low: i128, high: i128) {
        let (old_low, old_high) = self.statistics.integers.unwrap_or((low, high));
        self.statistics.integers = Some((old_low.min(low), old_high.max(high)));
    }

    /// Appends the validity of an array.
    fn valid(&mut self, array: &dyn Array) {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = &nulls {
            let rows = self.rows;
            let validity = self.validity.get_or_insert_with(|| {
                let mut validity = BooleanBufferBuilder::new(CHUNK_ROWS);
                validity.append_n(rows, true);
                validity
            });
            validity.append_buffer(nulls.inner());
            self.statistics.nulls += nulls.null_count() as u64;
        } else if let Some(validity) = &mut self.validity {
            validity.append_n(array.len(), true);
        }
        self.rows += array.len();
    }
}

/// Whether arrays of type `found` hold values of a column of type `declared`.
fn holds_values_of(found: &DataType, declared: &DataType) -> bool {
    match (found, declared) {
        (DataType::Decimal64(precision, scale), DataType::Decimal128(wide, same)) => precision == wide && scale == same,
        _ => found == declared || is_string(found) && is_string(declared),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Decimal64Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int32Array, StringArray,
        StringViewArray,
    };

    use super::*;
    use crate::format::strings::SharedDictionary;

    #[test]
    fn null_slots_are_zero_and_clear_validity_bits() {
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
        assert!(next.validity.is_none() && next.statistics.strictly_ascending);
    }

    #[test]
    fn sliced_strings_and_dictionaries_share_codes() {
        let shared = SharedDictionary::new("c", 10, None);
        let mut builder = SegmentBuilder::new("c", &DataType::Utf8, Some(StringForm::Codes(shared.take()))).unwrap();
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
        let shared = SharedDictionary::new("c", 10, None);
        let coded =
            DictionaryArray::new(Int32Array::from(vec![None; 3]), Arc::new(StringArray::from(Vec::<&str>::new())));
        let data_type = coded.data_type().clone();
        let mut builder = SegmentBuilder::new("c", &data_type, Some(StringForm::Codes(shared.take()))).unwrap();
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
    fn narrow_decimals_are_values_of_wide_columns() {
        let mut builder = SegmentBuilder::new("c", &DataType::Decimal128(15, 2), None).unwrap();
        let wide = Decimal128Array::from(vec![Some(7), None, Some(-9)]).with_precision_and_scale(15, 2).unwrap();
        let narrow = Decimal64Array::from(vec![Some(-9), Some(7)]).with_precision_and_scale(15, 2).unwrap();
        builder.append(&(Arc::new(wide) as ArrayRef)).unwrap();
        builder.append(&(Arc::new(narrow.clone()) as ArrayRef)).unwrap();
        let other = narrow.with_precision_and_scale(15, 3).unwrap();
        assert!(builder.append(&(Arc::new(other) as ArrayRef)).is_err(), "values of another scale are different");
        let segment = builder.finish();
        assert_eq!(bytemuck::cast_slice::<u8, i64>(&segment.values)[..5], [7, 0, -9, -9, 7]);
        assert_eq!((segment.statistics.nulls, segment.statistics.integers), (1, Some((-9, 7))));
    }

    #[test]
    fn all_nans_have_the_same_bits() {
        let mut builder = SegmentBuilder::new("c", &DataType::Float64, None).unwrap();
        let nans = [0x7ff8 << 48, 0xfff8 << 48, 0x7ff0_0000_0000_0001, u64::MAX].map(f64::from_bits);
        let values: Vec<Option<f64>> = nans.into_iter().map(Some).chain([None, Some(-0.0), Some(2.5)]).collect();
        builder.append(&(Arc::new(Float64Array::from(values)) as ArrayRef)).unwrap();
        let segment = builder.finish();
        let bits = bytemuck::cast_slice::<u8, u64>(&segment.values);
        assert_eq!(bits[..7], [0x7ff8 << 48, 0x7ff8 << 48, 0x7ff8 << 48, 0x7ff8 << 48, 0, 1 << 63, 2.5f64.to_bits()]);
        assert_eq!(segment.statistics.floats, Some((-0.0, 2.5)));
        let mut builder = SegmentBuilder::new("c", &DataType::Float32, None).unwrap();
        let singles = Float32Array::from(vec![f32::from_bits(0xffc0_0001), 1.0]);
        builder.append(&(Arc::new(singles) as ArrayRef)).unwrap();
        assert_eq!(bytemuck::cast_slice::<u8, u32>(&builder.finish().values)[..2], [0x7fc0 << 16, 1f32.to_bits()]);
    }

    #[test]
    fn a_segment_takes_the_memory_of_another() {
        let mut builder = SegmentBuilder::new("c", &DataType::Int32, None).unwrap();
        builder.append(&(Arc::new(Int32Array::from(vec![1; 2_000])) as ArrayRef)).unwrap();
        let first = builder.finish().values;
        let address = first.as_ptr();
        builder.reuse(first);
        builder.append(&(Arc::new(Int32Array::from(vec![2; 3])) as ArrayRef)).unwrap();
        let second = builder.finish().values;
        assert_eq!((second.as_ptr(), second.len()), (address, VECTOR_ROWS * 4));
        assert_eq!(bytemuck::cast_slice::<u8, i32>(&second)[..4], [2, 2, 2, 0]);
    }

    #[test]
    fn a_decimal_past_64_bits_is_refused() {
        let array = PrimitiveArray::<Decimal128Type>::from(vec![i128::from(i64::MAX) + 1]);
        let mut builder = SegmentBuilder::new("c", array.data_type(), None).unwrap();
        assert!(builder.append(&(Arc::new(array) as ArrayRef)).unwrap_err().is_unsupported());
    }
}
