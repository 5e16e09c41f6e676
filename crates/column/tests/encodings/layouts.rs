//! Bytes of small segments, as the heads of the encodings draw them.

use warpcube_column::Storage;
use warpcube_column::format::{Alp, Delta, Dictionary, Encoding, Nsf, Nsv, Packed, encode};

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

/// Little-endian words of 32 bits.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn plain_and_nsf() {
    let valid = [true, false, true];
    let plain = encoded(Encoding::Plain, Storage::I16, &[0xfffe, 7, 3], Some(&valid));
    let mut expected = vec![0; 2048];
    expected[..6].copy_from_slice(&[0xfe, 0xff, 0, 0, 3, 0]);
    assert_eq!(plain, expected);
    let nsf = encoded(Encoding::Nsf(Nsf { bytes: 1 }), Storage::I16, &[0xfffe, 7, 3], Some(&valid));
    let mut expected = vec![0; 1024];
    expected[..3].copy_from_slice(&[0xfe, 0, 3]);
    assert_eq!(nsf, expected);
}

#[test]
fn nsv() {
    let bytes = encoded(Encoding::Nsv(Nsv { reference: 0 }), Storage::U32, &[5, 0x1234, 0, 0x0102_0304], None);
    let mut expected = vec![0; 256];
    expected[0] = 1 << 2 | 3 << 6;
    expected.extend(words(&[0, 1 + 2 + 1 + 4 + 1020]));
    expected.extend([5, 0x34, 0x12, 0, 4, 3, 2, 1]);
    expected.resize(expected.len() + 1020 + 4, 0);
    assert_eq!(bytes, expected);
}

#[test]
fn rle() {
    // Row 2 is null and belongs to the run before it, as padding does.
    let bytes = encoded(Encoding::Rle, Storage::U16, &[4, 4, 9, 4, 6], Some(&[true, true, false, true, true]));
    let mut expected = words(&[0, 2]);
    expected.extend([4, 0, 6, 0]);
    expected.extend([0, 0, 4, 0]);
    assert_eq!(bytes, expected);
}

#[test]
fn gpu_for() {
    // Block 0: reference 99, offsets 0, 1, 2, 3 and then 0 (widths 2, 0, 0, 0); padding repeats the last value.
    let mut bits = vec![99, 100, 101, 102];
    bits.resize(128, 99);
    let bytes = encoded(Encoding::GpuFor, Storage::I32, &bits, None);
    let mut expected = vec![128, 4, 128, 32];
    expected.extend([0, 4, 6, 8, 10, 12, 14, 16, 18]);
    expected.extend([99, 2, 0b1110_0100, 0]);
    (1..8).for_each(|_| expected.extend([99, 0]));
    expected.extend([0; 3]);
    assert_eq!(bytes, words(&expected));
}

#[test]
fn gpu_dfor_of_64_bits() {
    // Differences 0, 1, 1, … to row 127: block 0 has reference 0 and widths 1; all others are 0.
    let bits: Vec<u64> = ((1 << 40)..(1 << 40) + 128).collect();
    let bytes = encoded(Encoding::GpuDfor, Storage::I64, &bits, None);
    let last = bits[127];
    let mut expected = vec![128, 4, 128, 64];
    // A tile has its first value before its first block; a block is two words of reference and one of widths.
    expected.extend([2, 9, 12, 15, 20, 23, 26, 29, 32]);
    expected.extend([0, 1 << 8, 0, 0, 0x0101_0101, u32::MAX - 1, u32::MAX, u32::MAX, u32::MAX]);
    expected.extend([0; 9]);
    expected.extend([last as u32, (last >> 32) as u32]);
    expected.extend([0; 12]);
    expected.extend([0; 3]);
    assert_eq!(bytes, words(&expected));
}

#[test]
fn delta() {
    // One quad, of differences 2, 3, 0 and on its line: a string of 6 bits, then three times 2, the lowest 8 of which
    // lie in the plane of two bytes. Bytes after the quad of the last row are zero.
    let delta = Delta { width: 3, differences: 2 };
    let bytes = encoded(Encoding::Delta(delta), Storage::I32, &[99, 101, 104], None);
    let mut expected = vec![0; 4 * 96];
    expected[..2].copy_from_slice(&(2u16 << 6 | 3 << 8).to_le_bytes());
    expected.extend(words(&[99, 0, 0, 0]));
    assert_eq!(bytes, expected);
    // The second half of a group begins at bit 12 of a lane's string: rows 0 to 127 are 7, the others 12, and a line
    // that rises by 2 leaves them at distances of 0 and 3.
    let bits: Vec<u64> = (0..256).map(|row| if row < 128 { 7 } else { 12 }).collect();
    let bytes = encoded(Encoding::Delta(delta), Storage::I32, &bits, None);
    let mut expected = vec![0; 4 * 96];
    for lane in 0..32 {
        let string: u32 = 3 << 12;
        expected[2 * lane..][..2].copy_from_slice(&string.to_le_bytes()[..2]);
        expected[64 + lane] = string.to_le_bytes()[2];
    }
    expected.extend(words(&[7, 0, 2, 0]));
    assert_eq!(bytes, expected);
    // A straight line has no bits: steps of -160 make -5120 for 128 rows. Words of 64 bits.
    let bits: Vec<u64> = (0..1024).map(|row| (7 - 40 * row as i64) as u64).collect();
    let bytes = encoded(Encoding::Delta(Delta { width: 0, differences: 0 }), Storage::I64, &bits, None);
    let head = [7i64, -160, -5120, -40];
    assert_eq!(bytes, head.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
}

#[test]
fn dictionary() {
    let codes = Encoding::Nsf(Nsf { bytes: 1 });
    let dictionary = Dictionary::new(Storage::I32, vec![7, 0xffff_ffff, 100], codes).unwrap();
    assert_eq!(dictionary.values()[..], [0xffff_ffff, 7, 100], "by their value");
    let bytes = encoded(Encoding::Dictionary(dictionary), Storage::I32, &[100, 0xffff_ffff, 7], None);
    assert_eq!((bytes.len(), &bytes[..4]), (1024, &[2, 0, 1, 0][..]));
}

#[test]
fn alp() {
    let numbers = [1.25, -0.5, f64::NAN, 3.0];
    let packing = Packed { width: 10, reference: None, patches: false };
    let alp = Encoding::Alp(Alp { exponent: 2, factor: 0, integers: packing });
    let bytes = encoded(alp, Storage::F64, &numbers.map(f64::to_bits), None);
    // 125, -50, -50 (the exception), 300 against reference -50.
    let integers: [u64; 4] = [125, -50i64 as u64, -50i64 as u64, 300];
    let packed = encoded(Encoding::Packed(packing), Storage::I64, &integers, None);
    let mut expected = (packed.len() as u64).to_le_bytes().to_vec();
    expected.extend([0; 8]);
    expected.extend(packed);
    expected.extend(words(&[0, 1, 1, 1, 1]));
    expected.extend([2, 0]);
    expected.extend([0; 2]);
    expected.extend(f64::NAN.to_bits().to_le_bytes());
    assert_eq!(bytes, expected);
}
