//! Decoded values equal the encoded ones.

use proptest::prelude::*;
use proptest::sample::select;
use warpcube_column::Storage;
use warpcube_column::format::{Encoding, EncodingError, OffsetBits, Packed, WIDTHS, decode, encode};

use crate::data::*;
use crate::every::encodings;

/// Encodes a segment, decodes it and compares all values.
fn holds(segment: &Segment, encoding: &Encoding) {
    let plain = segment.plain();
    let (storage, rows, validity) = (segment.storage, segment.rows, segment.validity.as_deref());
    let bytes = encode(encoding, &plain).unwrap_or_else(|error| panic!("{encoding:?}: {error}"));
    let back = decode(encoding, &bytes, storage, validity, rows).unwrap();
    if back != segment.values {
        let width = storage.width();
        let row = (0..rows).find(|row| back[row * width..][..width] != segment.values[row * width..][..width]);
        panic!("{encoding:?} of {storage:?}: row {row:?} of {rows} differs");
    }
}

fn rows() -> impl Strategy<Value = usize> {
    prop_oneof![select(vec![0, 1, 2, 127, 128, 255, 256, 257, 511, 1023, 1024, 1025, 2048]), 0usize..5000]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_comes_back(
        nulls in select(vec![Nulls::None, Nulls::Some, Nulls::All]),
        rows in rows(),
        seed in any::<u64>(),
    ) {
        for storage in Storage::ALL {
            for distribution in DISTRIBUTIONS {
                let segment = Segment::draw(storage, distribution, nulls, rows, seed);
                encodings(&segment).iter().for_each(|encoding| holds(&segment, encoding));
            }
        }
    }
}

#[test]
fn every_width_holds_and_refuses() {
    let mut random = Random(7);
    for storage in Storage::ALL {
        for width in WIDTHS.into_iter().filter(|width| *width <= 8 * storage.width() as u32) {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            // The smallest value of the storage, so that any offset is a value.
            let least = if storage.is_signed() { u64::MAX << (8 * storage.width() - 1) } else { 0 };
            let value = |offset: u64| least.wrapping_add(offset);
            let mut bits: Vec<u64> = (0..1500).map(|_| value(random.next() & mask)).collect();
            bits[700] = value(mask);
            let own = Packed { width, reference: Some(least), patches: false };
            let segment = Segment::new(storage, &bits, None);
            holds(&segment, &Encoding::Packed(own));
            holds(&segment, &Encoding::Packed(Packed { width: 0, patches: true, ..own }));
            if width < 8 * storage.width() as u32 && width > 0 {
                bits[700] = value(mask + 1);
                let segment = Segment::new(storage, &bits, None);
                holds(&segment, &Encoding::Packed(Packed { patches: true, ..own }));
                let refused = encode(&Encoding::Packed(own), &segment.plain());
                assert!(matches!(refused, Err(EncodingError::Overflow { row: 700, .. })), "{storage:?} {width}");
            }
        }
    }
}

#[test]
fn a_width_is_chosen_by_bytes() {
    let bits: Vec<u64> = (0..4096).map(|row| if row % 512 == 7 { 1 << 30 } else { row % 16 }).collect();
    let segment = Segment::new(Storage::U32, &bits, None);
    let counts = OffsetBits::of(&segment.plain(), Some(0));
    assert_eq!(counts.wider_than(4), 8);
    let patched = counts.fit(Storage::U32, Some(0), true);
    assert_eq!(patched, Packed { width: 4, reference: Some(0), patches: true });
    assert_eq!(counts.fit(Storage::U32, Some(0), false), Packed { width: 32, reference: Some(0), patches: false });
    let bytes = encode(&Encoding::Packed(patched), &segment.plain()).unwrap();
    assert!(counts.bytes(Storage::U32, &patched).abs_diff(bytes.len() as u64) <= 16);
}
