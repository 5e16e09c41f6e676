//! From rows of words to an Arrow batch, a column at a time: values go from the words to the column's buffer, those of
//! many rows on all cores.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayData, ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, StringArray, UInt32Array, make_array,
    new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{ArrowNativeType, DataType, Field, Schema, i256};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use warpcube_column::{Dictionary, is_string};

use crate::error::{EngineError, Result};
use crate::facts::Texts;
use crate::float_sum::FloatSum;
use crate::ir::Ty;
use crate::plan::cells::{Output, Read};
use crate::plan::groups::GroupsPlan;
use crate::plan::keys::{KeyPack, PartReader};
use crate::plan::row_layout::{RowColumn, RowLayout};
use crate::plan::rows::ResultPlan;

/// The one NaN, as `wc_one_nan` in the device library has it.
const NAN_BITS: u64 = 0x7ff8 << 48;

/// Rows from which on columns are made on all cores: one core takes some 10 ns a value.
const PARALLEL_ROWS: usize = 1 << 12;

/// Rows as they came from the device, words of each side by side: a packed key and cells, a packed key alone, or
/// validity and values.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    /// Number of rows.
    pub(crate) count: usize,
    /// Words of a row.
    pub(crate) row_words: usize,
    /// The rows from the first byte on.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Where the first row begins.
    pub(crate) first: usize,
}

/// Where words of rows lie, for the loops over all rows.
#[derive(Clone, Copy)]
struct Words<'a> {
    bytes: &'a [u8],
    row_words: usize,
}

impl Words<'_> {
    #[inline]
    fn at(self, row: usize, at: usize) -> u64 {
        word(self.bytes, row * self.row_words + at)
    }
}

impl Rows<'_> {
    fn words(&self) -> Words<'_> {
        Words { bytes: &self.bytes[self.first * 8..], row_words: self.row_words }
    }

    /// The rows that are NULL, none if no row is.
    fn nulls(&self, is_null: impl Fn(usize) -> bool) -> Option<NullBuffer> {
        let valid = BooleanBuffer::collect_bool(self.count, |row| !is_null(row));
        Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0)
    }
}

/// A word of bytes that came from the device.
#[inline]
pub(crate) fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(bytes[index * 8..][..8].try_into().expect("eight bytes"))
}

/// Gives the strings at places of a column without a dictionary.
pub(crate) type StringsAt<'a> = dyn FnMut(Texts, &[Option<u64>]) -> Result<StringArray> + 'a;

/// The batch of a fragment's result: group columns `g0`, `g1`, …, then aggregates `a0`, `a1`, ….
pub(crate) fn batch(bound: &GroupsPlan, rows: &Rows, strings_at: &mut StringsAt) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = key_columns((&bound.pack, &bound.columns, &bound.texts), rows, strings_at)?;
    let outputs = &bound.cells.outputs;
    let array = |output| aggregate(output, rows, bound.pack.words);
    arrays.extend(match rows.count {
        ..PARALLEL_ROWS => outputs.iter().map(array).collect::<Result<Vec<_>>>()?,
        _ => outputs.par_iter().map(array).collect::<Result<Vec<_>>>()?,
    });
    let field = |(index, output): (usize, &Output)| Field::new(format!("a{index}"), output.data_type.clone(), true);
    fields.extend(outputs.iter().enumerate().map(field));
    of_columns(fields, arrays, rows.count)
}

/// The batch of rows: columns `g0`, `g1`, ….
pub(crate) fn rows_batch(bound: &ResultPlan, rows: &Rows, strings_at: &mut StringsAt) -> Result<RecordBatch> {
    let (fields, arrays) = key_columns((&bound.pack, &bound.columns, &bound.texts), rows, strings_at)?;
    of_columns(fields, arrays, rows.count)
}

/// The batch of rows of this layout: columns `g0`, `g1`, ….
pub(crate) fn laid_out_batch(layout: &RowLayout, rows: &Rows, strings_at: &mut StringsAt) -> Result<RecordBatch> {
    let (mut fields, mut arrays, words) = (Vec::new(), Vec::new(), rows.words());
    for (position, column) in layout.columns.iter().enumerate() {
        let is_null = |row| words.at(row, position / 64) >> (position % 64) & 1 == 0;
        let nulls = if column.nullable { rows.nulls(is_null) } else { None };
        let values = Values { rows: rows.count, nulls, value: laid_out_value(words, column, layout.valid_words()) };
        arrays.push(values.array(&column.data_type, column.dictionary.as_ref(), column.texts, strings_at)?);
        fields.push(Field::new(format!("g{position}"), column.data_type.clone(), true));
    }
    of_columns(fields, arrays, rows.count)
}

/// A row's value of a column.
fn laid_out_value(words: Words<'_>, column: &RowColumn, valid_words: usize) -> impl Fn(usize) -> i128 + Sync {
    let (at, wide) = (valid_words + column.word, column.wide);
    let signed = matches!(column.ty, Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::I128);
    move |row| match words.at(row, at) {
        word if wide => i128::from(words.at(row, at + 1) as i64) << 64 | i128::from(word),
        word if signed => (word as i64).into(),
        word => word.into(),
    }
}

fn of_columns(fields: Vec<Field>, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(malformed)
}

type Columns = (Vec<Field>, Vec<ArrayRef>);

/// Packed columns: their types with strings, and whose strings' places they are.
type Packed<'a> = (&'a KeyPack, &'a [(DataType, Option<Arc<Dictionary>>)], &'a [Option<Texts>]);

/// The parts of packed keys as columns.
fn key_columns((pack, columns, texts): Packed<'_>, rows: &Rows, strings_at: &mut StringsAt) -> Result<Columns> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (part, (data_type, dictionary)) in columns.iter().enumerate() {
        let texts = texts.get(part).copied().flatten();
        arrays.push(key_values(pack.reader(part), rows).array(data_type, dictionary.as_ref(), texts, strings_at)?);
        fields.push(Field::new(format!("g{part}"), data_type.clone(), true));
    }
    Ok((fields, arrays))
}

/// The values of a part of packed keys.
fn key_values(part: PartReader, rows: &Rows) -> Values<impl Fn(usize) -> i128 + Sync> {
    let words = rows.words();
    let nulls = if part.is_nullable() { rows.nulls(|row| part.is_null(|at| words.at(row, at))) } else { None };
    Values { rows: rows.count, nulls, value: move |row| part.value(|at| words.at(row, at)) }
}

fn malformed(error: arrow::error::ArrowError) -> EngineError {
    EngineError::Malformed(error.to_string())
}

/// An aggregate of groups whose cells begin at word `cells`.
fn aggregate(output: &Output, rows: &Rows, cells: usize) -> Result<ArrayRef> {
    let words = rows.words();
    let cell = |group: usize, cell: usize| words.at(group, cells + cell);
    let nulls = output.count.and_then(|count| rows.nulls(|group| cell(group, count) == 0));
    if let Read::Float(sum) = output.read {
        return floats(rows.count, nulls, |group| f64::from_bits(cell(group, sum)), &output.data_type);
    }
    if let Read::Nearest(sum) = output.read {
        let sum = |group: usize| cell(group, sum) as i64;
        return match &output.data_type {
            DataType::Binary => {
                let valid = |group: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(group));
                let sums =
                    (0..rows.count).map(|group| valid(group).then(|| FloatSum::of_integer(sum(group)).to_bytes()));
                Ok(Arc::new(sums.collect::<BinaryArray>()))
            }
            data_type => floats(rows.count, nulls, |group| sum(group) as f64, data_type),
        };
    }
    if let Read::Fixed { cell: first, window, infinite } = output.read {
        let sum = |group: usize| {
            let mut sum = FloatSum::new();
            let limbs = (first..first + window.limbs).map(|limb| cell(group, limb) as i64);
            sum.add_cells(window.first, limbs, cell(group, infinite));
            sum
        };
        let valid = |group: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(group));
        return match &output.data_type {
            // To be put together with sums of other rows.
            DataType::Binary => {
                let sums = (0..rows.count).map(|group| valid(group).then(|| sum(group).to_bytes()));
                Ok(Arc::new(sums.collect::<BinaryArray>()))
            }
            data_type => floats(rows.count, nulls, |group| sum(group).value(), data_type),
        };
    }
    if let Read::Image { cell: image, turned, float: true, .. } = output.read {
        let value = |group: usize| {
            let bits = if turned { !cell(group, image) } else { cell(group, image) } ^ 1 << 63;
            let bits = bits as i64;
            f64::from_bits((bits ^ ((bits >> 63) as u64 >> 1) as i64) as u64)
        };
        return floats(rows.count, nulls, value, &output.data_type);
    }
    let is_unsigned = output.data_type == DataType::UInt64;
    let value = |group: usize| -> i128 {
        match output.read {
            Read::Integer(sum) if is_unsigned => cell(group, sum).into(),
            Read::Integer(sum) => (cell(group, sum) as i64).into(),
            Read::Wide { low, middle, high, .. } => {
                let (low, high) = (i128::from(cell(group, low)), i128::from(cell(group, high) as i64));
                match middle {
                    Some(middle) => (high << 64) + (i128::from(cell(group, middle)) << 32) + low,
                    None => (high << 32) + low,
                }
            }
            Read::Image { cell: image, signed, turned, .. } => {
                let image = if turned { !cell(group, image) } else { cell(group, image) };
                if signed { ((image ^ 1 << 63) as i64).into() } else { image.into() }
            }
            Read::Float(_) | Read::Nearest(_) | Read::Fixed { .. } => unreachable!("floats were read above"),
        }
    };
    let limits = Ty::of(&output.data_type).filter(|ty| *ty != Ty::I128).and_then(Ty::bounds);
    if let (Read::Wide { .. }, Some((low, high))) = (output.read, limits) {
        let valid = |group: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*group));
        if (0..rows.count).filter(valid).any(|group| !(low..=high).contains(&value(group))) {
            return Err(EngineError::Evaluation("an overflow"));
        }
    }
    Values { rows: rows.count, nulls, value }.integers(&output.data_type, output.dictionary.as_ref())
}

/// Floats as an array of a type, with the one NaN.
fn floats(
    rows: usize,
    nulls: Option<NullBuffer>,
    value: impl Fn(usize) -> f64 + Sync,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let one_nan = |value: f64| if value.is_nan() { f64::from_bits(NAN_BITS) } else { value };
    let value = |row| one_nan(value(row));
    Ok(match data_type {
        DataType::Float32 => Arc::new(Float32Array::new(each(rows, |row| value(row) as f32).into(), nulls)),
        _ => Arc::new(Float64Array::new(each(rows, value).into(), nulls)),
    })
}

/// The values of all rows.
fn each<T: Send>(rows: usize, value: impl Fn(usize) -> T + Sync) -> Vec<T> {
    match rows {
        ..PARALLEL_ROWS => (0..rows).map(value).collect(),
        _ => (0..rows).into_par_iter().with_min_len(PARALLEL_ROWS / 4).map(&value).collect(),
    }
}

/// A column's integers, codes, unscaled decimals, bits of floats or places of strings. What a row that is NULL has for
/// a value does not matter.
struct Values<V> {
    rows: usize,
    nulls: Option<NullBuffer>,
    value: V,
}

impl<V: Fn(usize) -> i128 + Sync> Values<V> {
    /// An array of a type; `texts` tells whose strings' places the values are, if they are.
    fn array(
        self,
        data_type: &DataType,
        dictionary: Option<&Arc<Dictionary>>,
        texts: Option<Texts>,
        strings_at: &mut StringsAt,
    ) -> Result<ArrayRef> {
        let Some(texts) = texts else { return self.integers(data_type, dictionary) };
        let valid = |row: usize| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let place = |row: usize| valid(row).then(|| (self.value)(row) as u64);
        let places: Vec<Option<u64>> = (0..self.rows).map(place).collect();
        cast(&strings_at(texts, &places)?, data_type).map_err(malformed)
    }

    /// An array of a type, of values that are no places.
    fn integers(self, data_type: &DataType, dictionary: Option<&Arc<Dictionary>>) -> Result<ArrayRef> {
        let Values { rows, nulls, value } = self;
        // A constant NULL among strings has no dictionary.
        if nulls.as_ref().map_or(0, NullBuffer::null_count) == rows {
            return Ok(new_null_array(data_type, rows));
        }
        if is_string(data_type) {
            let dictionary = dictionary.ok_or_else(|| EngineError::Malformed("strings without a dictionary".into()))?;
            let codes = UInt32Array::new(of_width(rows, |row| value(row) as u32).into(), nulls);
            return strings(dictionary, &codes, data_type);
        }
        let buffer = match data_type {
            DataType::Float32 => return floats(rows, nulls, |row| f32::from_bits(value(row) as u32).into(), data_type),
            DataType::Float64 => return floats(rows, nulls, |row| f64::from_bits(value(row) as u64), data_type),
            DataType::Boolean => {
                let values = BooleanBuffer::collect_bool(rows, |row| value(row) != 0);
                return Ok(Arc::new(BooleanArray::new(values, nulls)));
            }
            _ => match data_type.primitive_width() {
                Some(1) => of_width(rows, |row| value(row) as u8),
                Some(2) => of_width(rows, |row| value(row) as u16),
                Some(4) => of_width(rows, |row| value(row) as u32),
                Some(8) => of_width(rows, |row| value(row) as u64),
                Some(16) => of_width(rows, value),
                Some(32) => of_width(rows, |row| i256::from_i128(value(row))),
                _ => return Err(EngineError::Malformed(format!("integers as {data_type}"))),
            },
        };
        let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(buffer).nulls(nulls);
        Ok(make_array(data.build().map_err(malformed)?))
    }
}

fn of_width<T: ArrowNativeType>(rows: usize, value: impl Fn(usize) -> T + Sync) -> Buffer {
    each(rows, value).into()
}

/// The strings of codes as an array of a type: the smaller of dictionary and result is brought into it.
fn strings(dictionary: &Dictionary, codes: &UInt32Array, data_type: &DataType) -> Result<ArrayRef> {
    // Keys of a dictionary type may be too narrow for all strings of the column, and not for those of the result.
    let is_narrow = matches!(data_type, DataType::Dictionary(..));
    let strings = match dictionary.len() <= codes.len() && !is_narrow {
        true if *data_type == DataType::Utf8View => take(&dictionary.views(), codes, None),
        true => take(&cast(&dictionary.array(), data_type).map_err(malformed)?, codes, None),
        false => take(&dictionary.array(), codes, None).and_then(|strings| cast(&strings, data_type)),
    };
    strings.map_err(malformed)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray, Decimal128Array, Int64Array, UInt64Array};
    use arrow::datatypes::{Float32Type, Float64Type, TimeUnit};

    use super::*;
    use crate::facts::Facts;

    fn values(values: &[Option<i128>]) -> Values<impl Fn(usize) -> i128 + Sync> {
        let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
        // What stands where there is NULL must not matter.
        let value = |row: usize| values[row].unwrap_or(-1);
        Values { rows: values.len(), nulls: Some(nulls).filter(|nulls| nulls.null_count() > 0), value }
    }

    fn rows(words: &[u64], first: usize, row_words: usize) -> Rows<'static> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Rows { count: (words.len() - first) / row_words, row_words, bytes: bytes.into(), first }
    }

    #[test]
    fn integers_take_any_type() {
        let numbers = [Some(0), None, Some(1), Some(127), Some(-128), None];
        let narrow: ArrayRef =
            Arc::new(numbers.iter().map(|value| value.map(|value| value as i64)).collect::<Int64Array>());
        let zone = Some("+02:00".into());
        for data_type in [
            DataType::Int8,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::Date64,
            DataType::Time64(TimeUnit::Microsecond),
            DataType::Duration(TimeUnit::Second),
            DataType::Timestamp(TimeUnit::Nanosecond, zone),
            DataType::Boolean,
        ] {
            let expected = cast(&narrow, &data_type).unwrap();
            let found = values(&numbers).integers(&data_type, None).unwrap();
            assert_eq!((found.data_type(), &found), (&data_type, &expected));
            found.to_data().validate_full().unwrap();
            let none = values(&[None, None]).integers(&data_type, None).unwrap();
            assert_eq!((none.len(), none.logical_null_count()), (2, 2), "{data_type}");
            assert_eq!(values(&[]).integers(&data_type, None).unwrap().len(), 0);
            assert!(values(&[Some(1)]).integers(&data_type, None).unwrap().nulls().is_none());
        }
        let days = values(&numbers).integers(&DataType::Date32, None).unwrap();
        assert_eq!(&cast(&days, &DataType::Int32).unwrap(), &cast(&narrow, &DataType::Int32).unwrap());
        let large = [Some(u64::MAX.into()), None, Some(1 << 63)];
        let expected: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(1 << 63)]));
        assert_eq!(&values(&large).integers(&DataType::UInt64, None).unwrap(), &expected);
        let wide = [Some(10i128.pow(37)), None, Some(-(10i128.pow(37)))];
        let expected = Decimal128Array::from(wide.to_vec()).with_precision_and_scale(38, 4).unwrap();
        let found = values(&wide).integers(&DataType::Decimal128(38, 4), None).unwrap();
        assert_eq!(found.as_ref(), &expected as &dyn Array);
        assert!(values(&wide).integers(&DataType::Binary, None).is_err());
    }

    #[test]
    fn floats_are_their_bits_with_one_nan() {
        let bits = |value: f64| Some(i128::from(value.to_bits()));
        let odd = Some(i128::from(!0u64));
        let found = values(&[bits(-0.0), odd, None, bits(1.5)]).integers(&DataType::Float64, None).unwrap();
        let found = found.as_primitive::<Float64Type>();
        let words: Vec<_> = found.iter().map(|value| value.map(f64::to_bits)).collect();
        assert_eq!(words, [Some(1 << 63), Some(NAN_BITS), None, Some(1.5f64.to_bits())]);
        let found =
            values(&[Some(u32::MAX.into()), None, Some(0x8000_0000)]).integers(&DataType::Float32, None).unwrap();
        let words: Vec<_> = found.as_primitive::<Float32Type>().iter().map(|value| value.map(f32::to_bits)).collect();
        assert_eq!(words, [Some(0x7fc0_0000), None, Some(0x8000_0000)]);
    }

    #[test]
    fn strings_come_from_small_and_large_dictionaries() {
        let texts = ["", "a string of more than twelve bytes", "ä", "z"];
        let dictionary = Arc::new(Dictionary::from_sorted(texts.to_vec().into()));
        for codes in [vec![Some(1), None, Some(3)], vec![None, Some(0), Some(2), Some(1), Some(1), None, Some(3)]] {
            let expected: StringArray = codes.iter().map(|code| code.map(|code| texts[code as usize])).collect();
            let dictionary_type = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
            for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, dictionary_type] {
                let found = values(&codes).integers(&data_type, Some(&dictionary)).unwrap();
                assert_eq!(found.data_type(), &data_type);
                assert_eq!(cast(&found, &DataType::Utf8).unwrap().as_string::<i32>(), &expected);
            }
            assert!(values(&codes).integers(&DataType::Utf8, None).is_err());
        }
        let many: Vec<String> = (0..300).map(|text| format!("{text:03}")).collect();
        let many = Arc::new(Dictionary::from_sorted(many.into()));
        let narrow = DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into());
        let codes: Vec<Option<i128>> = (0..400).map(|row| Some(row % 100)).collect();
        assert_eq!(values(&codes).integers(&narrow, Some(&many)).unwrap().data_type(), &narrow);
        let none = values(&[None]).integers(&DataType::Utf8View, None).unwrap();
        assert_eq!((none.data_type(), none.null_count()), (&DataType::Utf8View, 1));
    }

    #[test]
    fn parts_of_keys_are_read_from_rows_behind_a_head() {
        let full = Facts::new(Ty::I64, true, Some((i64::MIN.into(), i64::MAX.into())));
        let small = Facts::new(Ty::I64, true, Some((-1, 8)));
        let pack = KeyPack::of_groups(&[full, small]);
        // A full word; whether it is NULL and the place of the small part, in that order, share the next one.
        assert_eq!(pack.words, 2);
        let rows = rows(&[99, 0, 1, 7, u64::MAX, 2 * 10, 7, 0, 0, 7], 1, 3);
        let read = |part: usize| {
            let values = key_values(pack.reader(part), &rows);
            let valid = |row: usize| values.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            (0..3).map(|row| valid(row).then(|| (values.value)(row))).collect::<Vec<_>>()
        };
        assert_eq!(read(0), [None, Some(i64::MAX.into()), Some(i64::MIN.into())]);
        assert_eq!(read(1), [None, Some(8), None]);
    }

    #[test]
    fn values_take_one_word_or_two() {
        let column = |ty: Ty, wide: bool| RowColumn {
            data_type: DataType::Int64,
            ty,
            dictionary: None,
            texts: None,
            word: 1,
            wide,
            nullable: false,
        };
        let rows = rows(&[3, 0, u64::MAX, u64::MAX - 1, 3, 0, 5, 1], 0, 4);
        let read = |column| [0, 1].map(laid_out_value(rows.words(), &column, 1));
        assert_eq!(read(column(Ty::I64, false)), [-1, 5]);
        assert_eq!(read(column(Ty::U64, false)), [u64::MAX.into(), 5]);
        assert_eq!(read(column(Ty::I128, true)), [-(1 << 64) - 1, (1 << 64) + 5]);
    }
}
