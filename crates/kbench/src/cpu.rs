//! The suite `encode-cpu`: segments encoded and decoded on one core, by encoding, and encoded on all.
//!
//! A segment of 2^20 values, encoded and decoded again and again; the best of several runs in GB of plain values a
//! second.

use std::time::{Duration, Instant};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::{Value, json};
use warpcube_column::format::{
    Alp, Delta, Dictionary, Encoding, EncodingError, Nsf, Nsv, Packed, Plain, decode, encode, encode_into,
};
use warpcube_column::{CHUNK_ROWS, Storage};
use warpcube_kbench::report;

use crate::CpuArgs;

/// Time that each case is repeated for.
const CASE: Duration = Duration::from_millis(300);

/// Runs the suite.
pub(crate) fn run(arguments: &CpuArgs) -> Result<(), String> {
    println!("{:<32} {:>9} {:>9} {:>9}", "case", "encode", "decode", "bits");
    let results = measure().map_err(|error| error.to_string())?;
    if let Some(case) = results.iter().find(|case| case["verified"] != true) {
        return Err(format!("{}: what comes back is not what was encoded", case["case"]));
    }
    crate::write(arguments.json.as_deref(), &report::without_driver("encode-cpu", "CPU", json!({}), results))
}

fn measure() -> Result<Vec<Value>, EncodingError> {
    let mut results = Vec::new();
    for (storage, widths) in [(Storage::I32, &[1, 4, 8, 12, 17, 24, 32][..]), (Storage::I64, &[8, 20, 40, 64])] {
        for width in widths {
            packed(storage, *width, &mut results)?;
        }
    }
    others(&mut results)?;
    results.push(side_by_side()?);
    Ok(results)
}

fn best_gb_per_s(bytes: usize, mut run: impl FnMut() -> Result<(), EncodingError>) -> Result<f64, EncodingError> {
    let (start, mut best) = (Instant::now(), f64::MAX);
    while start.elapsed() < CASE {
        let each = Instant::now();
        run()?;
        best = best.min(each.elapsed().as_secs_f64());
    }
    Ok(bytes as f64 / best / 1e9)
}

fn case(name: &str, encoding: &Encoding, plain: &Plain<'_>) -> Result<Value, EncodingError> {
    let bytes = encode(encoding, plain)?;
    let (storage, validity, rows) = (plain.storage(), plain.validity(), plain.rows());
    let mut again = Vec::new();
    let encoding_speed = best_gb_per_s(plain.values().len(), || encode_into(encoding, plain, &mut again))?;
    let decoding_speed =
        best_gb_per_s(plain.values().len(), || decode(encoding, &bytes, storage, validity, rows).map(drop))?;
    // Null slots come back as zeros, which are no values either: the same bytes are made of them.
    let back = decode(encoding, &bytes, storage, validity, rows)?;
    let again = encode(encoding, &Plain::new(storage, &back, validity, rows)?)?;
    let verified = again == bytes && (validity.is_some() || back == plain.values());
    let bits = 8.0 * bytes.len() as f64 / rows as f64;
    println!("{name:<32} {encoding_speed:>9.2} {decoding_speed:>9.2} {bits:>9.2}");
    Ok(json!({
        "case": name, "encode_gb_per_s": encoding_speed, "decode_gb_per_s": decoding_speed, "bits_per_value": bits,
        "verified": verified,
    }))
}

/// Segments encoded on all cores.
fn side_by_side() -> Result<Value, EncodingError> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let uniform = values(Storage::I32, |row| mixed(row) >> 52);
    let segments = vec![Plain::new(Storage::I32, &uniform, None, CHUNK_ROWS)?; 8 * threads];
    let encoding = Encoding::Packed(Packed { width: 12, reference: None, patches: false });
    let bytes = segments.len() * uniform.len();
    let encode_all = || segments.par_iter().map(|plain| encode(&encoding, plain)).collect::<Result<Vec<_>, _>>();
    let speed = best_gb_per_s(bytes, || encode_all().map(drop))?;
    let alone = encode(&encoding, &segments[0])?;
    let verified = encode_all()?.iter().all(|bytes| *bytes == alone);
    let name = format!("packed, references/i32-12 on {threads} cores");
    println!("{name:<32} {speed:>9.2}");
    Ok(json!({"case": name, "encode_gb_per_s": speed, "verified": verified}))
}

/// The little-endian bytes of a segment's values, in storage width.
fn values(storage: Storage, value: impl Fn(u64) -> u64) -> Vec<u8> {
    (0..CHUNK_ROWS as u64).flat_map(|row| value(row).to_le_bytes().into_iter().take(storage.width())).collect()
}

/// Pseudo-random bits of a row.
fn mixed(row: u64) -> u64 {
    (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

/// Values below 2^width: with references and without, with a wide value in five hundred as a patch, with NULLs.
fn packed(storage: Storage, width: u32, results: &mut Vec<Value>) -> Result<(), EncodingError> {
    let uniform = values(storage, |row| mixed(row) >> (64 - width));
    let plain = Plain::new(storage, &uniform, None, CHUNK_ROWS)?;
    let of = |reference, patches| Encoding::Packed(Packed { width, reference, patches });
    let name = |what: &str| format!("packed{what}/{}-{width}", format!("{storage:?}").to_lowercase());
    results.push(case(&name(""), &of(Some(0), false), &plain)?);
    results.push(case(&name(", references"), &of(None, false), &plain)?);
    if width < 32 {
        let is_wide = |row: u64| row % 500 == 7;
        let outliers = values(storage, |row| mixed(row) >> if is_wide(row) { 34 } else { 64 - width });
        let plain = Plain::new(storage, &outliers, None, CHUNK_ROWS)?;
        results.push(case(&name(", patches"), &of(None, true), &plain)?);
    }
    let validity = vec![0xf7ff_ff7f; CHUNK_ROWS / 32];
    let nulls = Plain::new(storage, &uniform, Some(&validity), CHUNK_ROWS)?;
    results.push(case(&name(", nulls"), &of(None, false), &nulls)?);
    Ok(())
}

fn others(results: &mut Vec<Value>) -> Result<(), EncodingError> {
    let uniform = values(Storage::I32, |row| mixed(row) >> 52);
    let plain = Plain::new(Storage::I32, &uniform, None, CHUNK_ROWS)?;
    results.push(case("nsf/uniform-12", &Encoding::Nsf(Nsf { bytes: 2 }), &plain)?);
    results.push(case("nsv/uniform-12", &Encoding::Nsv(Nsv { reference: 0 }), &plain)?);
    results.push(case("gpu-for/uniform-12", &Encoding::GpuFor, &plain)?);
    results.push(case("gpu-dfor/uniform-12", &Encoding::GpuDfor, &plain)?);
    let rising = values(Storage::I64, |row| 1_600_000_000_000 + 1_000 * row + (mixed(row) >> 60));
    let plain = Plain::new(Storage::I64, &rising, None, CHUNK_ROWS)?;
    if let Some(delta) = Delta::fit(&plain) {
        results.push(case("delta/rising", &Encoding::Delta(delta), &plain)?);
    }
    let runs = values(Storage::I32, |row| row / 19 % 16 * 1_000);
    let plain = Plain::new(Storage::I32, &runs, None, CHUNK_ROWS)?;
    results.push(case("rle/runs", &Encoding::Rle, &plain)?);
    let codes = Encoding::Packed(Packed { width: 4, reference: Some(0), patches: false });
    let few = Dictionary::new(Storage::I32, (0..16).map(|value| value * 1_000).collect(), codes)?;
    results.push(case("dictionary/few", &Encoding::Dictionary(few), &plain)?);
    let prices = values(Storage::F64, |row| ((mixed(row) >> 47) as f64 / 100.0).to_bits());
    let plain = Plain::new(Storage::F64, &prices, None, CHUNK_ROWS)?;
    if let Some(alp) = Alp::fit(&plain)? {
        results.push(case("alp/hundredths", &Encoding::Alp(alp), &plain)?);
    }
    Ok(())
}
