//! Drawn segments as Arrow arrays.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use warpcube_column::Storage;

use crate::data::Segment;

/// The rows of segments of one storage, one after the other.
pub fn array(chunks: &[Segment]) -> ArrayRef {
    let rows = || chunks.iter().flat_map(|chunk| (0..chunk.rows).map(move |row| (chunk, row)));
    let bits: Vec<Option<u64>> = rows().map(|(chunk, row)| chunk.is_valid(row).then(|| chunk.bits(row))).collect();
    fn of<T: ArrowPrimitiveType>(bits: Vec<Option<u64>>, value: fn(u64) -> T::Native) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter(bits.into_iter().map(|bits| bits.map(value))))
    }
    match chunks[0].storage {
        Storage::I8 => of::<Int8Type>(bits, |bits| bits as i8),
        Storage::I16 => of::<Int16Type>(bits, |bits| bits as i16),
        Storage::I32 => of::<Int32Type>(bits, |bits| bits as i32),
        Storage::I64 => of::<Int64Type>(bits, |bits| bits as i64),
        Storage::U8 => of::<UInt8Type>(bits, |bits| bits as u8),
        Storage::U16 => of::<UInt16Type>(bits, |bits| bits as u16),
        Storage::U32 => of::<UInt32Type>(bits, |bits| bits as u32),
        Storage::U64 => of::<UInt64Type>(bits, |bits| bits),
        Storage::F32 => of::<Float32Type>(bits, |bits| f32::from_bits(bits as u32)),
        Storage::F64 => of::<Float64Type>(bits, f64::from_bits),
        Storage::Bool => Arc::new(BooleanArray::from_iter(bits.into_iter().map(|bits| bits.map(|bits| bits == 1)))),
    }
}
