//! Encoders of the device write the bytes of the CPU.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use warpcube_column::format::{
    Alp, Delta, Dictionary, Encoding, Nsf, Nsv, OffsetBits, Packed, Profile, encode, ladder,
};
use warpcube_column::{ColumnError, EncodingChoice, LoadLimits, Relation, Residency, Storage};

use warpcube_gpu::LaneOrder;

use crate::data::{DISTRIBUTIONS, Distribution, Nulls, Random, Segment, device};
use crate::source::*;

const BUDGET: u64 = 256 << 20;

/// Devices of all lane orders.
pub fn devices() -> [Residency; 3] {
    [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(11)].map(|order| Residency::new(device(order, BUDGET)))
}

/// Chunks of many lengths: without nulls, with some nulls, with vectors of nulls, with nulls alone.
pub fn chunks(storage: Storage, distribution: Distribution, seed: u64) -> Vec<Segment> {
    let lengths =
        [(1, Nulls::None), (1023, Nulls::Some), (1024, Nulls::None), (1025, Nulls::Some), (2_300, Nulls::None)];
    let lengths = lengths.into_iter().chain([(130, Nulls::All), (1, Nulls::All)]);
    let mut chunks: Vec<Segment> = lengths
        .enumerate()
        .map(|(chunk, (rows, nulls))| Segment::draw(storage, distribution, nulls, rows, seed + chunk as u64))
        .collect();
    // NULL at the start, in a whole vector, and at the start of the next one.
    let drawn = Segment::draw(storage, distribution, Nulls::None, 3_100, seed + 10);
    let bits: Vec<u64> = (0..drawn.rows).map(|row| drawn.bits(row)).collect();
    let valid: Vec<bool> = (0..drawn.rows).map(|row| row > 40 && row / 1024 != 1 && row != 2048).collect();
    chunks.push(Segment::new(storage, &bits, Some(&valid)));
    chunks.iter_mut().for_each(with_one_nan);
    chunks
}

/// The chunk with the NaN of loads in place of every NaN.
fn with_one_nan(chunk: &mut Segment) {
    let is_nan = |bytes: &[u8]| match chunk.storage {
        Storage::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        Storage::F64 => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let nan: &[u8] = if chunk.storage == Storage::F32 { &[0, 0, 0xc0, 0x7f] } else { &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f] };
    let values = chunk.values.chunks_exact_mut(chunk.storage.width());
    values.filter(|bytes| is_nan(bytes)).for_each(|bytes| bytes.copy_from_slice(nan));
}

/// A resident plain table of one column with these chunks.
pub fn table(residency: &Residency, chunks: &[Segment]) -> Relation {
    let array = crate::arrays::array(chunks);
    let partitions: Vec<usize> = chunks.iter().map(|chunk| chunk.rows).collect();
    let source = Source::new("t", vec![("x", array)], &partitions, 1 << 20);
    let table = admit(residency, &source, &[0], 0).unwrap().tables.remove(0);
    assert_eq!(table.chunks.iter().map(|rows| *rows as usize).collect::<Vec<_>>(), partitions);
    table
}

/// Compares the chunks of a column with those of the CPU encoder, errors included.
fn compare(residency: &Residency, table: &Relation, chunks: &[Segment], encoding: &Encoding) {
    let column = &table.columns[0];
    let expected: Result<Vec<Vec<u8>>, _> = chunks.iter().map(|chunk| encode(encoding, &chunk.plain())).collect();
    let encoded = match (residency.encode(column, encoding), &expected) {
        (Ok(encoded), Ok(_)) => encoded,
        (Err(ColumnError::Encoding(_)), Err(_)) => return,
        (found, expected) => {
            let storage = column.storage();
            panic!("{encoding:?} of {storage:?}: {:?}, expected {:?}", found.map(|_| ()), expected.as_ref().map(|_| ()))
        }
    };
    let mut stream = residency.device().stream().unwrap();
    for (chunk, (segment, expected)) in encoded.iter().zip(expected.unwrap()).enumerate() {
        let mut found = vec![0u8; segment.values().bytes()];
        stream.download(segment.values(), 0, &mut found).unwrap();
        let (storage, rows) = (column.storage(), segment.rows());
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        let lengths = (found.len(), expected.len());
        assert!(
            found == expected,
            "{encoding:?} of {storage:?}, chunk {chunk} of {rows} rows: byte {differs:?}, lengths {lengths:?}"
        );
    }
}

/// Encodings with parameters that hold the values, and with others.
fn encodings(storage: Storage, chunks: &[Segment]) -> Vec<Encoding> {
    let mut all = vec![Encoding::Rle, Encoding::GpuFor, Encoding::GpuDfor];
    let most = 8 * storage.width() as u32;
    for reference in [None, Some(3u64.wrapping_neg())] {
        let mut bits = OffsetBits::of(&chunks[0].plain(), reference);
        chunks[1..].iter().for_each(|chunk| bits.add(&OffsetBits::of(&chunk.plain(), reference)));
        let whole = bits.fit(storage, reference, false);
        all.push(Encoding::Packed(whole));
        let narrower = [0, 5, ladder(whole.width / 2 + 1)].map(|width| width.min(most));
        all.extend(narrower.map(|width| Encoding::Packed(Packed { width, reference, patches: true })));
        all.push(Encoding::Packed(Packed { width: ladder(whole.width / 2), ..whole }));
    }
    if let Some(fitting) = chunks.iter().filter_map(|chunk| Delta::fit(&chunk.plain())).max_by_key(|delta| delta.width)
    {
        let half = Delta { width: ladder(fitting.width / 2), differences: fitting.differences / 2 };
        all.extend([fitting, half].map(Encoding::Delta));
    }
    let bytes = [1, 2, 4, 8].into_iter().filter(|bytes| *bytes <= storage.width() as u32);
    all.extend(bytes.map(|bytes| Encoding::Nsf(Nsf { bytes })));
    all.extend([0, 3].map(|reference| Encoding::Nsv(Nsv { reference })));
    let mut distinct: Vec<u64> =
        chunks.iter().flat_map(|chunk| Dictionary::distinct(&chunk.plain(), usize::MAX).unwrap()).collect();
    let codes = Packed { width: ladder(64 - (distinct.len() as u64).leading_zeros()), reference: None, patches: false };
    let dictionary = |values, codes| Encoding::Dictionary(Dictionary::new(storage, values, codes).unwrap());
    for codes in [Encoding::Packed(codes), Encoding::Plain, Encoding::GpuDfor] {
        all.push(dictionary(distinct.clone(), codes));
    }
    distinct.pop();
    all.push(dictionary(distinct, Encoding::Rle));
    if storage.is_float() {
        all.extend(Alp::fit(&chunks[4].plain()).unwrap().map(Encoding::Alp));
        let integers = Packed { width: 3, reference: Some(0), patches: true };
        all.push(Encoding::Alp(Alp { exponent: 14, factor: 12, integers }));
        all.push(Encoding::Alp(Alp {
            exponent: 2,
            factor: 0,
            integers: Packed { width: 20, reference: None, ..integers },
        }));
    }
    all
}

fn every_encoding(storage: Storage) {
    let devices = devices();
    for (seed, distribution) in DISTRIBUTIONS.into_iter().enumerate() {
        let chunks = chunks(storage, distribution, 100 * seed as u64);
        let residency = &devices[seed % 3];
        let table = table(residency, &chunks);
        encodings(storage, &chunks).iter().for_each(|encoding| compare(residency, &table, &chunks, encoding));
        drop(table);
        residency.clear();
    }
}

macro_rules! storages {
    ($($name:ident $storage:ident)*) => {$(
        #[test]
        fn $name() {
            every_encoding(Storage::$storage);
        }
    )*};
}

storages! {
    every_encoding_of_i8 I8 every_encoding_of_i16 I16 every_encoding_of_i32 I32 every_encoding_of_i64 I64
    every_encoding_of_u8 U8 every_encoding_of_u16 U16 every_encoding_of_u32 U32 every_encoding_of_u64 U64
    every_encoding_of_f32 F32 every_encoding_of_f64 F64 every_encoding_of_bool Bool
}

#[test]
fn long_chunks() {
    // More counts than a block sums in one step, and more vectors than warps.
    let chunks = [
        Segment::draw(Storage::I32, Distribution::Zipf, Nulls::Some, 300 * 1024 - 7, 1),
        Segment::draw(Storage::I32, Distribution::Runs, Nulls::None, 70_000, 2),
    ];
    for residency in devices() {
        let table = table(&residency, &chunks);
        let patched = Packed { width: 2, reference: None, patches: true };
        for encoding in [
            Encoding::Rle,
            Encoding::GpuFor,
            Encoding::GpuDfor,
            Encoding::Delta(Delta { width: 32, differences: 32 }),
            Encoding::Nsf(Nsf { bytes: 4 }),
            Encoding::Nsv(Nsv { reference: 0 }),
            Encoding::Packed(patched),
        ] {
            compare(&residency, &table, &chunks, &encoding);
        }
    }
}

/// Numbers at the bounds of integers, and NaN.
#[test]
fn floats_at_the_bounds_of_integers_are_encoded() {
    let residency = residency(BUDGET);
    let edge = 2f64.powi(63);
    let numbers = [edge, -edge, 2.0 * edge, -2.0 * edge, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 7.0];
    let bits: Vec<u64> = (0..600).map(|row| numbers[row * row % 10].to_bits()).collect();
    let chunks = [Segment::new(Storage::F64, &bits, None)];
    let table = table(&residency, &chunks);
    for width in [0, 8, 64] {
        let integers = Packed { width, reference: None, patches: true };
        compare(&residency, &table, &chunks, &Encoding::Alp(Alp { exponent: 0, factor: 0, integers }));
    }
}

/// Without room nothing is encoded, and all reservations are released.
#[test]
fn without_room_nothing_is_encoded() {
    let chunks = [Segment::draw(Storage::I64, Distribution::Uniform, Nulls::Some, 200_000, 3)];
    for spare in [0, 8 << 10, 64 << 10] {
        let residency = residency(BUDGET);
        let table = table(&residency, &chunks);
        let pool = residency.device().pool();
        let _held = pool.try_reserve(pool.available() - spare).unwrap();
        let reserved = pool.usage().reserved;
        for encoding in encodings(Storage::I64, &chunks) {
            let refused = residency.encode(&table.columns[0], &encoding);
            assert!(matches!(refused, Err(ColumnError::OverBudget { .. } | ColumnError::Encoding(_))), "{encoding:?}");
            assert_eq!(pool.usage().reserved, reserved);
        }
    }
}

/// Null slots of strings have remapped codes, which are no values.
#[test]
fn null_slots_are_not_read() {
    let residency = residency(BUDGET);
    let text = |row: usize| (row % 5 != 0).then(|| format!("{:03}", row * 7 % 100 + 3));
    // Each chunk is a partition, so that arrival codes differ from sorted codes.
    let array: ArrayRef = Arc::new(StringArray::from_iter((0..3_000).map(text)));
    let source = Source::new("s", vec![("s", array)], &[1_200, 1_800], 4096);
    let table = admit(&residency, &source, &[0], 0).unwrap().tables.remove(0);
    let column = &table.columns[0];
    let (values, valid) = download(&residency, &table, 0);
    let codes: Vec<u64> = numbers(&values, u32::from_le_bytes).into_iter().map(u64::from).collect();
    assert!(codes.iter().zip(&valid).any(|(code, valid)| !valid && *code != 0), "null slots hold codes");
    let chunks = [0..1_200, 1_200..3_000]
        .map(|rows: std::ops::Range<usize>| Segment::new(Storage::U32, &codes[rows.clone()], Some(&valid[rows])));
    assert_eq!(column.storage(), Storage::U32);
    encodings(Storage::U32, &chunks).iter().for_each(|encoding| compare(&residency, &table, &chunks, encoding));
    let mut expected = Profile::of(&chunks[0].plain());
    expected.add(&Profile::of(&chunks[1].plain()));
    assert_eq!(residency.profile(column).unwrap(), expected);
}

/// A load takes the memory of a few chunks beside the plain column, for every encoding.
#[test]
fn encoding_takes_little_memory() {
    const CHUNK: usize = 1 << 16;
    const CHUNKS: usize = 12;
    let hundredths = |row: usize| Random(row as u64 / 3).next() % 5_000;
    let floats = Float64Array::from_iter_values((0..CHUNKS * CHUNK).map(|row| hundredths(row) as f64 / 100.0));
    let source = Source::new("t", vec![("x", Arc::new(floats))], &[CHUNK; CHUNKS], CHUNK);
    let plain_bytes = (CHUNKS * CHUNK * 8) as u64;
    for encoding in [EncodingChoice::Alp, EncodingChoice::Dictionary, EncodingChoice::Rle] {
        let spare = 5 * (CHUNK * 8) as u64;
        let residency = residency(plain_bytes + spare);
        let limits = LoadLimits { encoding, ..LoadLimits::default() };
        let table = admit_with(&residency, &[source.request(&[0])], 0, &limits).unwrap().tables.remove(0);
        let (column, words) = (&table.columns[0], table.columns[0].encoding().to_string());
        assert!(words.contains(encoding.name()) && column.bytes() < plain_bytes, "{words}");
        assert_eq!(residency.device().pool().usage().reserved, column.bytes());
    }
}
