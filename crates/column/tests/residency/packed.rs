//! Packed segments of the device have the bytes of the CPU.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use warpcube_column::format::{Encoding, Packed, Plain, encode};
use warpcube_column::{EncodingChoice, LoadLimits, Relation, Residency};

use crate::source::*;

const BUDGET: u64 = 256 << 20;

fn load(residency: &Residency, source: &Source, columns: usize, encoding: EncodingChoice) -> Relation {
    let all: Vec<usize> = (0..columns).collect();
    let limits = LoadLimits { encoding, ..LoadLimits::default() };
    admit_with(residency, &[source.request(&all)], 0, &limits).unwrap().tables.remove(0)
}

/// The bytes of a segment's buffer, and of its validity words.
fn content(residency: &Residency, table: &Relation, column: usize, chunk: usize) -> (Vec<u8>, Option<Vec<u32>>) {
    let segment = &table.columns[column].segments()[chunk];
    let mut stream = residency.device().stream().unwrap();
    let mut values = vec![0u8; segment.values().bytes()];
    stream.download(segment.values(), 0, &mut values).unwrap();
    let validity = segment.validity().map(|buffer| {
        let mut words = vec![0u32; buffer.bytes() / 4];
        stream.download(buffer, 0, bytemuck::cast_slice_mut(&mut words)).unwrap();
        words
    });
    (values, validity)
}

/// Loads a table plain and with `encoding`, compares all segments with those of the CPU, and returns the packings.
fn compare(columns: Vec<(&str, ArrayRef)>, partitions: &[usize], encoding: EncodingChoice) -> Vec<Option<Packed>> {
    let count = columns.len();
    let (as_is, packed) = (residency(BUDGET), residency(BUDGET));
    let source = Source::new("t", columns, partitions, 700);
    let plain = load(&as_is, &source, count, EncodingChoice::Plain);
    let table = load(&packed, &source, count, encoding);
    assert_eq!(plain.chunks, table.chunks);
    let packing = |column: usize| match table.columns[column].encoding() {
        Encoding::Plain => None,
        Encoding::Packed(packed) => Some(*packed),
        other => panic!("{other}"),
    };
    for column in 0..count {
        for (chunk, rows) in table.chunks.iter().enumerate() {
            let (values, validity) = content(&as_is, &plain, column, chunk);
            let (found, words) = content(&packed, &table, column, chunk);
            assert_eq!(words, validity, "validity stays as it is");
            let resident = &table.columns[column];
            let segment = Plain::new(resident.storage(), &values, validity.as_deref(), *rows as usize).unwrap();
            let encoding = resident.encoding();
            let expected = encode(encoding, &segment).unwrap();
            let is_same = found[..expected.len()] == expected;
            assert!(is_same, "{} {:?} chunk {chunk} as {encoding:?}", resident.name(), resident.storage());
        }
    }
    (0..count).map(packing).collect()
}

/// Values of `bits` bits above `low`, with NULLs.
fn numbers<T: ArrowPrimitiveType>(rows: usize, low: i128, bits: u32, nulls: bool) -> ArrayRef
where
    T::Native: TryFrom<i128>,
{
    let value = |row: usize| {
        let mixed =
            (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let offset = if bits == 0 { 0 } else { mixed >> (64 - bits) };
        let is_null = nulls && (row % 7 == 3 || (2_048..3_072).contains(&row));
        (!is_null).then(|| T::Native::try_from(low + i128::from(offset)).ok().expect("in range"))
    };
    Arc::new(PrimitiveArray::<T>::from_iter((0..rows).map(value)))
}

#[test]
fn every_width_of_every_type() {
    let rows = 5_000;
    for nulls in [false, true] {
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        for bits in [0, 1, 3, 7, 8] {
            columns.push(("i8", numbers::<Int8Type>(rows, -128, bits, nulls)));
            columns.push(("u8", numbers::<UInt8Type>(rows, 0, bits, nulls)));
        }
        for bits in [5, 10, 13, 16] {
            columns.push(("i16", numbers::<Int16Type>(rows, i16::MIN.into(), bits, nulls)));
            columns.push(("u16", numbers::<UInt16Type>(rows, 0, bits, nulls)));
        }
        for bits in [0, 2, 11, 17, 18, 23, 27, 32] {
            columns.push(("i32", numbers::<Int32Type>(rows, i32::MIN.into(), bits, nulls)));
            columns.push(("u32", numbers::<UInt32Type>(rows, 0, bits, nulls)));
        }
        for bits in [4, 31, 33, 40, 45, 55, 63, 64] {
            columns.push(("i64", numbers::<Int64Type>(rows, i64::MIN.into(), bits, nulls)));
            columns.push(("u64", numbers::<UInt64Type>(rows, 0, bits, nulls)));
        }
        let packed = compare(columns, &[rows], EncodingChoice::Packed);
        assert!(packed.iter().all(Option::is_some), "{packed:?}");
    }
}

#[test]
fn vectors_have_references_if_that_is_smaller() {
    let rows = 9_000;
    let ascending: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|row| row * 3 - 20_000)));
    let gaps = |row: i64| (row % 3 != 1 && row / 1_024 != 4).then_some(row * 1_000_003);
    let with_nulls: ArrayRef = Arc::new(Int64Array::from_iter((0..rows as i64).map(gaps)));
    let narrow: ArrayRef = Arc::new(Int16Array::from_iter_values((0..rows).map(|row| (row / 1_024 * 100) as i16)));
    let columns = vec![("ascending", ascending), ("gaps", with_nulls), ("narrow", narrow)];
    let packed = compare(columns, &[3_000, 5_000, 1_000], EncodingChoice::Packed);
    let widths: Vec<_> = packed.iter().map(|packed| packed.map(|packed| (packed.width, packed.reference))).collect();
    // A partition begins a vector, so that some vectors hold two of the values 100 apart.
    assert_eq!(widths, [Some((12, None)), Some((32, None)), Some((7, None))]);
}

#[test]
fn columns_that_save_nothing_stay_plain() {
    let rows = 2_000;
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|row| (row as f64 + 0.5).sqrt())));
    let columns = vec![
        ("wide", numbers::<Int64Type>(rows, i64::MIN.into(), 64, false)),
        ("floats", floats),
        ("narrow", numbers::<Int32Type>(rows, 19_920_101, 16, false)),
        ("none", new_null_array(&DataType::Int32, rows)),
    ];
    let packed = compare(columns, &[1_500, 500], EncodingChoice::Auto);
    let widths: Vec<_> = packed.iter().map(|packed| packed.map(|packed| packed.width)).collect();
    assert_eq!(widths, [None, None, Some(16), Some(0)]);
}

#[test]
fn empty_tables_and_strings() {
    let rows = 4_000;
    let strings: ArrayRef =
        Arc::new(StringArray::from_iter((0..rows).map(|row| (row % 9 != 0).then(|| format!("{}", row % 100)))));
    let packed = compare(vec![("s", strings.clone())], &[1_000, 3_000], EncodingChoice::Auto);
    assert_eq!(packed[0].map(|packed| packed.width), Some(7));
    let none =
        compare(vec![("s", strings.slice(0, 0)), ("x", new_empty_array(&DataType::Int64))], &[0], EncodingChoice::Auto);
    assert!(none.len() == 2);
}

#[test]
fn a_column_without_room_for_its_encoder_stays_plain() {
    let rows = 1 << 20;
    let source = Source::integers("t", 1, rows);
    // The budget has room for the plain column, not for a packed chunk beside it.
    let residency = residency((rows * 8 + (256 << 10)) as u64);
    let table = load(&residency, &source, 1, EncodingChoice::Auto);
    assert_eq!(*table.columns[0].encoding(), Encoding::Plain);
    assert_eq!(residency.device().pool().usage().reserved, table.columns[0].bytes());
}
