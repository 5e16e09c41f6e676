//! From group cells to an Arrow batch.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int64Array, PrimitiveArray,
    StringArray, UInt64Array, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Field, Int32Type, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use warpcube_column::{Dictionary, is_string};

use crate::codegen::aggregate::{Output, Read};
use crate::codegen::result_rows::BoundRows;
use crate::codegen::sink::BoundGroups;
use crate::error::{EngineError, Result};
use crate::facts::Texts;
use crate::float_sum::FloatSum;
use crate::ir::Ty;
use crate::plan::keys::KeyPack;

/// The one NaN, as `wc_one_nan` in the device library has it.
const NAN_BITS: u64 = 0x7ff8 << 48;

/// Groups as they came from the device.
#[derive(Debug, Default)]
pub(crate) struct GroupRows {
    /// Number of groups.
    pub(crate) count: usize,
    /// Words of packed keys, as many a group as the packing has.
    pub(crate) keys: Vec<u64>,
    /// Cells, `cell_count` a group.
    pub(crate) cells: Vec<u64>,
}

/// Gives the strings at places of a column without a dictionary.
pub(crate) type StringsAt<'a> = dyn FnMut(Texts, &[Option<u64>]) -> Result<StringArray> + 'a;

/// The batch of a fragment's result: group columns `g0`, `g1`, …, then aggregates `a0`, `a1`, ….
pub(crate) fn batch(bound: &BoundGroups, rows: &GroupRows) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = key_columns((&bound.pack, &bound.columns, &[]), rows, &mut |_, _| unreachable!())?;
    for (index, output) in bound.outputs.iter().enumerate() {
        arrays.push(aggregate(output, rows, bound.cell_count)?);
        fields.push(Field::new(format!("a{index}"), output.data_type.clone(), true));
    }
    of_columns(fields, arrays, rows.count)
}

/// The batch of rows: columns `g0`, `g1`, ….
pub(crate) fn rows_batch(bound: &BoundRows, rows: &GroupRows, strings_at: &mut StringsAt) -> Result<RecordBatch> {
    let (fields, arrays) = key_columns((&bound.pack, &bound.columns, &bound.texts), rows, strings_at)?;
    of_columns(fields, arrays, rows.count)
}

fn of_columns(fields: Vec<Field>, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(malformed)
}

type Columns = (Vec<Field>, Vec<ArrayRef>);

/// Packed columns: their types with strings, and whose strings' places they are.
type Packed<'a> = (&'a KeyPack, &'a [(DataType, Option<Arc<Dictionary>>)], &'a [Option<Texts>]);

/// The parts of packed keys as columns.
fn key_columns((pack, columns, texts): Packed<'_>, rows: &GroupRows, strings_at: &mut StringsAt) -> Result<Columns> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (part, (data_type, dictionary)) in columns.iter().enumerate() {
        let values: Vec<Option<i128>> = rows.keys.chunks_exact(pack.words).map(|key| pack.value(key, part)).collect();
        arrays.push(match texts.get(part).copied().flatten() {
            Some(texts) => strings(texts, &values, data_type, strings_at)?,
            None => integers(&values, data_type, dictionary.as_ref())?,
        });
        fields.push(Field::new(format!("g{part}"), data_type.clone(), true));
    }
    Ok((fields, arrays))
}

fn malformed(error: arrow::error::ArrowError) -> EngineError {
    EngineError::Malformed(error.to_string())
}

fn aggregate(output: &Output, rows: &GroupRows, cell_count: usize) -> Result<ArrayRef> {
    let cell = |group: usize, cell: usize| rows.cells[group * cell_count + cell];
    let valid = |group: usize| output.count.is_none_or(|count| cell(group, count) > 0);
    let groups = || 0..rows.count;
    if let Read::Float(sum) = output.read {
        let values = groups().map(|group| valid(group).then(|| f64::from_bits(cell(group, sum))));
        return floats(values.collect(), &output.data_type);
    }
    if let Read::Fixed { cell: first, window, infinite } = output.read {
        let sum = |group: usize| {
            let mut sum = FloatSum::new();
            let limbs = (first..first + window.limbs).map(|limb| cell(group, limb) as i64);
            sum.add_cells(window.first, limbs, cell(group, infinite));
            sum
        };
        let sums = groups().map(|group| valid(group).then(|| sum(group)));
        return match &output.data_type {
            // To be put together with sums of other rows.
            DataType::Binary => Ok(Arc::new(sums.map(|sum| sum.map(|sum| sum.to_bytes())).collect::<BinaryArray>())),
            data_type => floats(sums.map(|sum| sum.map(|sum| sum.value())).collect(), data_type),
        };
    }
    if let Read::Image { cell: image, turned, float: true, .. } = output.read {
        let values = groups().map(|group| {
            let bits = if turned { !cell(group, image) } else { cell(group, image) } ^ 1 << 63;
            let bits = bits as i64;
            valid(group).then(|| f64::from_bits((bits ^ ((bits >> 63) as u64 >> 1) as i64) as u64))
        });
        return floats(values.collect(), &output.data_type);
    }
    let value = |group: usize| -> i128 {
        match output.read {
            Read::Integer(sum) if output.data_type == DataType::UInt64 => cell(group, sum).into(),
            Read::Integer(sum) => (cell(group, sum) as i64).into(),
            Read::Wide(low, high) => (i128::from(cell(group, high) as i64) << 32) + i128::from(cell(group, low)),
            Read::Image { cell: image, signed, turned, .. } => {
                let image = if turned { !cell(group, image) } else { cell(group, image) };
                if signed { ((image ^ 1 << 63) as i64).into() } else { image.into() }
            }
            Read::Float(_) | Read::Fixed { .. } => unreachable!("floats were read above"),
        }
    };
    let values: Vec<Option<i128>> = groups().map(|group| valid(group).then(|| value(group))).collect();
    let limits = Ty::of(&output.data_type).filter(|ty| *ty != Ty::I128).and_then(Ty::bounds);
    if let (Read::Wide(_, _), Some((low, high))) = (output.read, limits)
        && values.iter().flatten().any(|total| !(low..=high).contains(total))
    {
        return Err(EngineError::Evaluation("an overflow"));
    }
    integers(&values, &output.data_type, output.dictionary.as_ref())
}

/// Floats as an array of a type, with the one NaN.
fn floats(mut values: Vec<Option<f64>>, data_type: &DataType) -> Result<ArrayRef> {
    for value in values.iter_mut().flatten().filter(|value| value.is_nan()) {
        *value = f64::from_bits(NAN_BITS);
    }
    Ok(match data_type {
        DataType::Float32 => {
            Arc::new(values.into_iter().map(|value| value.map(|value| value as f32)).collect::<Float32Array>())
        }
        _ => Arc::new(Float64Array::from(values)),
    })
}

/// The strings at places of a column, as an array of a type.
pub(crate) fn strings(
    texts: Texts,
    values: &[Option<i128>],
    data_type: &DataType,
    strings_at: &mut StringsAt,
) -> Result<ArrayRef> {
    let places: Vec<Option<u64>> = values.iter().map(|value| value.map(|value| value as u64)).collect();
    cast(&strings_at(texts, &places)?, data_type).map_err(malformed)
}

/// Integers, codes, unscaled decimals or the bits of floats as an array of a type.
pub(crate) fn integers(
    values: &[Option<i128>],
    data_type: &DataType,
    dictionary: Option<&Arc<Dictionary>>,
) -> Result<ArrayRef> {
    // A constant NULL among strings has no dictionary.
    if values.iter().all(Option::is_none) {
        return Ok(new_null_array(data_type, values.len()));
    }
    if is_string(data_type) {
        let dictionary = dictionary.ok_or_else(|| EngineError::Malformed("strings without a dictionary".into()))?;
        let text: StringArray = values.iter().map(|code| code.map(|code| dictionary.value(code as u32))).collect();
        return cast(&text, data_type).map_err(malformed);
    }
    if data_type.is_floating() {
        let float = |bits: i128| match data_type {
            DataType::Float32 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits as u64),
        };
        return floats(values.iter().map(|value| value.map(float)).collect(), data_type);
    }
    let narrow = || values.iter().map(|value| value.map(|value| value as i64));
    Ok(match data_type {
        DataType::Boolean => {
            Arc::new(values.iter().map(|value| value.map(|value| value != 0)).collect::<BooleanArray>())
        }
        DataType::Decimal128(precision, scale) => Arc::new(
            Decimal128Array::from(values.to_vec()).with_precision_and_scale(*precision, *scale).map_err(malformed)?,
        ),
        DataType::UInt64 => {
            Arc::new(values.iter().map(|value| value.map(|value| value as u64)).collect::<UInt64Array>())
        }
        DataType::Date32 => {
            let days = narrow().map(|value| value.map(|value| value as i32));
            Arc::new(days.collect::<PrimitiveArray<Date32Type>>())
        }
        DataType::Int32 => {
            let values = narrow().map(|value| value.map(|value| value as i32));
            Arc::new(values.collect::<PrimitiveArray<Int32Type>>())
        }
        other => cast(&(Arc::new(narrow().collect::<Int64Array>()) as ArrayRef), other).map_err(malformed)?,
    })
}
