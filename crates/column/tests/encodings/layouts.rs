//! Bytes of small segments, as the heads of the encodings draw them.

use warpcube_column::Storage;
use warpcube_column::encoding::{Encoding, Packed, encode};

use crate::data::Segment;

fn encoded(encoding: Encoding, storage: Storage, bits: &[u64], valid: Option<&[bool]>) -> Vec<u8> {
    encode(&encoding, &Segment::new(storage, bits, valid).plain()).unwrap()
}

#[test]
fn packed() {
    // Offsets 0, 1, 2, … 7 of a vector: rows 0 to 3 belong to lane 0, rows 4 to 7 to lane 1; all others are padding.
    let bits: Vec<u64> = (10..18).collect();
    let packed = Packed { width: 3, reference: None, patches: false };
    let bytes = encoded(Encoding::Packed(packed), Storage::I32, &bits, None);
    // Width 3 is a plane of 2 bytes and one of 1; strings of 24 bits, of which slots 0 to 3 are the low twelve.
    let mut expected = vec![0; 4 * 96];
    expected[..2].copy_from_slice(&(1u16 << 3 | 2 << 6 | 3 << 9).to_le_bytes());
    expected[2..4].copy_from_slice(&(4u16 | 5 << 3 | 6 << 6 | 7 << 9).to_le_bytes());
    expected.extend([10, 0, 0, 0]);
    assert_eq!(bytes, expected);
}

#[test]
fn packed_with_patches() {
    // Row 0 is null, row 128 is slot 4 of lane 0, row 300 is in group 1, where its offset 1000 is a patch.
    let mut bits = vec![5; 400];
    (bits[128], bits[300]) = (6, 1005);
    let mut valid = vec![true; 400];
    valid[0] = false;
    let packed = Packed { width: 1, reference: Some(5), patches: true };
    let bytes = encoded(Encoding::Packed(packed), Storage::I64, &bits, Some(&valid));
    let mut expected = vec![0; 4 * 32];
    expected[0] = 1 << 4;
    [0u32, 0, 1, 1, 1].iter().for_each(|start| expected.extend(start.to_le_bytes()));
    expected.extend((300u16 - 256).to_le_bytes());
    // 128 + 20 + 2 bytes so far: padding to a multiple of 8.
    expected.extend([0; 2]);
    expected.extend(1000u64.to_le_bytes());
    assert_eq!(bytes, expected);
}
