//! Encoded bytes that were damaged past any checksum: an error or some values, never a panic.

use warpcube_column::Storage;
use warpcube_column::format::{decode, encode, get};

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
            let try_all = |bytes: &[u8], rows: usize| {
                let _ = decode(&encoding, bytes, storage, None, rows);
                (0..rows).step_by(211).for_each(|row| drop(get(&encoding, bytes, storage, None, rows, row)));
            };
            for _ in 0..60 {
                let mut damaged = bytes.clone();
                // Most of what can mislead stands at the ends.
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
