//! Speed of encodings on one core: `cargo run --release -p warpcube-column --example encoding_speed`.
//!
//! A segment of 2^20 values, encoded and decoded again and again; the best of several runs in GB of plain values a
//! second.

use std::time::{Duration, Instant};

use warpcube_column::encoding::{
    Alp, Delta, Dictionary, Encoding, Nsf, Nsv, OffsetBits, Packed, Plain, decode, encode, encode_into,
};
use warpcube_column::{CHUNK_ROWS, Storage};

/// Time that each case is repeated for.
const CASE: Duration = Duration::from_millis(300);

fn best_gb_per_s(bytes: usize, mut run: impl FnMut()) -> f64 {
    let (start, mut best) = (Instant::now(), f64::MAX);
    while start.elapsed() < CASE {
        let each = Instant::now();
        run();
        best = best.min(each.elapsed().as_secs_f64());
    }
    bytes as f64 / best / 1e9
}

fn case(name: &str, encoding: &Encoding, plain: &Plain<'_>) {
    let bytes = encode(encoding, plain).expect("the encoding holds the values");
    let mut again = Vec::new();
    let encoding_speed = best_gb_per_s(plain.values().len(), || {
        encode_into(encoding, plain, &mut again).expect("the encoding holds the values");
    });
    let (storage, validity, rows) = (plain.storage(), plain.validity(), plain.rows());
    let decoding_speed =
        best_gb_per_s(plain.values().len(), || drop(decode(encoding, &bytes, storage, validity, rows)));
    let bits = 8.0 * bytes.len() as f64 / rows as f64;
    println!("{name:32} {bits:6.2} bits a value, encode {encoding_speed:5.2}, decode {decoding_speed:5.2} GB/s");
}

/// Pseudo-random values below 2^bits in storage width.
fn values(storage: Storage, bits: u32) -> Vec<u8> {
    let value = |row: u64| (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) >> (64 - bits);
    (0..CHUNK_ROWS as u64).flat_map(|row| value(row).to_le_bytes().into_iter().take(storage.width())).collect()
}

fn packed(storage: Storage, width: u32) {
    let values = values(storage, width);
    let plain = Plain::new(storage, &values, None, CHUNK_ROWS).expect("a whole segment");
    for reference in [None, Some(0)] {
        let packed = Packed { width, reference, patches: false };
        let name = format!("packed {storage:?} {width}{}", if reference.is_none() { "" } else { " one" });
        case(&name, &Encoding::Packed(packed), &plain);
    }
    let validity = vec![0xf7ff_ff7f; CHUNK_ROWS / 32];
    let nulls = Plain::new(storage, &values, Some(&validity), CHUNK_ROWS).expect("a whole segment");
    let packed = Packed { width, reference: None, patches: false };
    case(&format!("packed {storage:?} {width} nulls"), &Encoding::Packed(packed), &nulls);
    let counting = best_gb_per_s(values.len(), || assert!(OffsetBits::of(&plain, None).wider_than(64) == 0));
    println!("{:32} counting offsets {counting:5.2} GB/s", "");
}

fn others() {
    let uniform = values(Storage::I32, 12);
    let plain = Plain::new(Storage::I32, &uniform, None, CHUNK_ROWS).expect("a whole segment");
    let codes = Encoding::Packed(Packed { width: 4, reference: Some(0), patches: false });
    let few = Dictionary::new(Storage::I32, (0..16).map(|value| value * 1000).collect(), codes);
    case("nsf 2", &Encoding::Nsf(Nsf { bytes: 2 }), &plain);
    case("nsv", &Encoding::Nsv(Nsv { reference: 0 }), &plain);
    case("gpu-for", &Encoding::GpuFor, &plain);
    case("gpu-dfor", &Encoding::GpuDfor, &plain);
    case("delta", &Encoding::Delta(Delta::fit(&plain).expect("integers")), &plain);
    let runs: Vec<u8> = (0..CHUNK_ROWS as u32).flat_map(|row| (row / 19 % 16 * 1000).to_le_bytes()).collect();
    let plain = Plain::new(Storage::I32, &runs, None, CHUNK_ROWS).expect("a whole segment");
    case("rle", &Encoding::Rle, &plain);
    case("dictionary", &Encoding::Dictionary(few.expect("integers")), &plain);
    let prices = |row: u64| ((row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 47) as f64 / 100.0;
    let prices: Vec<u8> = (0..CHUNK_ROWS as u64).flat_map(|row| prices(row).to_le_bytes()).collect();
    let plain = Plain::new(Storage::F64, &prices, None, CHUNK_ROWS).expect("a whole segment");
    let alp = Alp::fit(&plain).expect("floats").expect("some are valid");
    case("alp", &Encoding::Alp(alp), &plain);
}

fn main() {
    for (storage, widths) in [(Storage::I32, &[1, 4, 8, 12, 17, 24, 32][..]), (Storage::I64, &[8, 20, 40, 64])] {
        widths.iter().for_each(|width| packed(storage, *width));
    }
    others();
}
