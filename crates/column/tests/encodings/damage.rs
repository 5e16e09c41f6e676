//! Damaged bytes with valid checksums: decoding returns an error or values, and never panics.

use warpcube_column::Storage;
use warpcube_column::format::{decode, encode};

use crate::data::*;
use crate::every::encodings;

#[test]
fn damaged_bytes_never_panic() {
    let mut random = Random(11);
    for storage in [Storage::I32, Storage::I64, Storage::F64] {
        let segment = Segment::draw(storage, Distribution::MostlySmall, Nulls::Some, 1300, 5);
        let plain = segment.plain();
        for encoding in encodings(&segment) {
            let bytes = encode(&encoding, &plain).unwrap();
            let try_all = |bytes: &[u8], rows: usize| drop(decode(&encoding, bytes, storage, None, rows));
            for _ in 0..60 {
                let mut damaged = bytes.clone();
                // Lengths and starts are at the ends.
                let near = if random.next().is_multiple_of(2) { 80.min(bytes.len()) } else { bytes.len() };
                let at = random.next() as usize % near;
                let at = if random.next().is_multiple_of(2) { at } else { bytes.len() - 1 - at };
                damaged[at] = random.next() as u8;
                try_all(&damaged, 1300);
                try_all(&damaged[..random.next() as usize % bytes.len()], 1300);
            }
            [0, 1, 1024, 5000].iter().for_each(|rows| try_all(&bytes, *rows));
        }
    }
}
