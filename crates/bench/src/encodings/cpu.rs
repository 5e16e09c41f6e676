//! The suite `encode-cpu`: segments encoded and decoded on one core, by encoding, and encoded on all.
//!
//! A segment of 2^20 values, encoded and decoded again and again; the best of several runs in GB of plain values a
//! second.

use std::time::{Duration, Instant};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::json;
use warpcube_column::format::{
    Alp, Delta, Dictionary, Encoding, EncodingError, Nsf, Nsv, Packed, Plain, decode, encode, encode_into,
};
use warpcube_column::{CHUNK_ROWS, Storage};

use crate::report::Case;
use crate::suite::{About, Failure, Run, Suite};

/// Time that each case is repeated for.
const CASE: Duration = Duration::from_millis(300);

/// The suite, in one group.
#[derive(Debug, Default)]
pub struct EncodeCpu;

/// Hears of each case: its name, its encoding and its values.
type Hear<'a> = dyn FnMut(&str, &Encoding, &Plain<'_>) -> Result<(), EncodingError> + 'a;

impl Suite for EncodeCpu {
    fn about(&self) -> About<'_> {
        About { name: "encode-cpu", device: None, params: json!({}) }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        let mut names = Vec::new();
        all(&mut |name, _, _| {
            names.push(name.to_string());
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        names.push(side_by_side_name());
        Ok(vec![names])
    }

    fn run(&mut self, run: &mut Run, _group: usize) -> Result<(), Failure> {
        let measured = all(&mut |name, encoding, plain| {
            if !run.is_stopped() {
                run.add(case(name, encoding, plain)?);
            }
            Ok(())
        });
        measured.map_err(|error| error.to_string())?;
        run.go_on()?;
        run.add(side_by_side().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn title(&self) -> Option<String> {
        Some("encode-cpu on CPU, GB of plain values a second".into())
    }
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

/// Measures one case. Null slots come back as zeros, which are no values either: the same bytes are made of them.
fn case(name: &str, encoding: &Encoding, plain: &Plain<'_>) -> Result<Case, EncodingError> {
    let bytes = encode(encoding, plain)?;
    let (storage, validity, rows) = (plain.storage(), plain.validity(), plain.rows());
    let mut again = Vec::new();
    let encoding_speed = best_gb_per_s(plain.values().len(), || encode_into(encoding, plain, &mut again))?;
    let decoding_speed =
        best_gb_per_s(plain.values().len(), || decode(encoding, &bytes, storage, validity, rows).map(drop))?;
    let back = decode(encoding, &bytes, storage, validity, rows)?;
    let again = encode(encoding, &Plain::new(storage, &back, validity, rows)?)?;
    let verified = again == bytes && (validity.is_some() || back == plain.values());
    let bits = 8.0 * bytes.len() as f64 / rows as f64;
    let figures = json!({"encode_gb_per_s": encoding_speed, "decode_gb_per_s": decoding_speed, "bits_per_value": bits});
    Ok(Case::new(name, figures).verified(verified))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

fn side_by_side_name() -> String {
    format!("packed, references/i32-12 on {} cores", threads())
}

/// Segments encoded on all cores.
fn side_by_side() -> Result<Case, EncodingError> {
    let uniform = values(Storage::I32, |row| mixed(row) >> 52);
    let segments = vec![Plain::new(Storage::I32, &uniform, None, CHUNK_ROWS)?; 8 * threads()];
    let encoding = Encoding::Packed(Packed { width: 12, reference: None, patches: false });
    let bytes = segments.len() * uniform.len();
    let encode_all = || segments.par_iter().map(|plain| encode(&encoding, plain)).collect::<Result<Vec<_>, _>>();
    let speed = best_gb_per_s(bytes, || encode_all().map(drop))?;
    let alone = encode(&encoding, &segments[0])?;
    let verified = encode_all()?.iter().all(|bytes| *bytes == alone);
    Ok(Case::new(side_by_side_name(), json!({"encode_gb_per_s": speed})).verified(verified))
}

/// The little-endian bytes of a segment's values, in storage width.
fn values(storage: Storage, value: impl Fn(u64) -> u64) -> Vec<u8> {
    (0..CHUNK_ROWS as u64).flat_map(|row| value(row).to_le_bytes().into_iter().take(storage.width())).collect()
}

/// Pseudo-random bits of a row.
fn mixed(row: u64) -> u64 {
    (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

/// All cases on one core.
fn all(hear: &mut Hear<'_>) -> Result<(), EncodingError> {
    for (storage, widths) in [(Storage::I32, &[1, 4, 8, 12, 17, 24, 32][..]), (Storage::I64, &[8, 20, 40, 64])] {
        for width in widths {
            packed(storage, *width, hear)?;
        }
    }
    others(hear)
}

/// Values below 2^width: with references and without, with a wide value in five hundred as a patch, with NULLs.
fn packed(storage: Storage, width: u32, hear: &mut Hear<'_>) -> Result<(), EncodingError> {
    let uniform = values(storage, |row| mixed(row) >> (64 - width));
    let plain = Plain::new(storage, &uniform, None, CHUNK_ROWS)?;
    let of = |reference, patches| Encoding::Packed(Packed { width, reference, patches });
    let name = |what: &str| format!("packed{what}/{}-{width}", format!("{storage:?}").to_lowercase());
    hear(&name(""), &of(Some(0), false), &plain)?;
    hear(&name(", references"), &of(None, false), &plain)?;
    if width < 32 {
        let is_wide = |row: u64| row % 500 == 7;
        let outliers = values(storage, |row| mixed(row) >> if is_wide(row) { 34 } else { 64 - width });
        let plain = Plain::new(storage, &outliers, None, CHUNK_ROWS)?;
        hear(&name(", patches"), &of(None, true), &plain)?;
    }
    let validity = vec![0xf7ff_ff7f; CHUNK_ROWS / 32];
    let nulls = Plain::new(storage, &uniform, Some(&validity), CHUNK_ROWS)?;
    hear(&name(", nulls"), &of(None, false), &nulls)?;
    Ok(())
}

fn others(hear: &mut Hear<'_>) -> Result<(), EncodingError> {
    let uniform = values(Storage::I32, |row| mixed(row) >> 52);
    let plain = Plain::new(Storage::I32, &uniform, None, CHUNK_ROWS)?;
    hear("nsf/uniform-12", &Encoding::Nsf(Nsf { bytes: 2 }), &plain)?;
    hear("nsv/uniform-12", &Encoding::Nsv(Nsv { reference: 0 }), &plain)?;
    hear("gpu-for/uniform-12", &Encoding::GpuFor, &plain)?;
    hear("gpu-dfor/uniform-12", &Encoding::GpuDfor, &plain)?;
    let rising = values(Storage::I64, |row| 1_600_000_000_000 + 1_000 * row + (mixed(row) >> 60));
    let plain = Plain::new(Storage::I64, &rising, None, CHUNK_ROWS)?;
    if let Some(delta) = Delta::fit(&plain) {
        hear("delta/rising", &Encoding::Delta(delta), &plain)?;
    }
    let runs = values(Storage::I32, |row| row / 19 % 16 * 1_000);
    let plain = Plain::new(Storage::I32, &runs, None, CHUNK_ROWS)?;
    hear("rle/runs", &Encoding::Rle, &plain)?;
    let codes = Encoding::Packed(Packed { width: 4, reference: Some(0), patches: false });
    let few = Dictionary::new(Storage::I32, (0..16).map(|value| value * 1_000).collect(), codes)?;
    hear("dictionary/few", &Encoding::Dictionary(few), &plain)?;
    let prices = values(Storage::F64, |row| ((mixed(row) >> 47) as f64 / 100.0).to_bits());
    let plain = Plain::new(Storage::F64, &prices, None, CHUNK_ROWS)?;
    if let Some(alp) = Alp::fit(&plain)? {
        hear("alp/hundredths", &Encoding::Alp(alp), &plain)?;
    }
    Ok(())
}
