//! Kernels decode packed offsets of every width that there is, with each kind of reference, with patches and without.

use warpcube_column::Storage;
use warpcube_column::format::{Alp, Encoding, Packed, WIDTHS, encode};

use crate::data::*;
use crate::views::{Case, decodes};

const ROWS: usize = 2_500;
/// Every so many rows a value may be any, where there are patches.
const PATCHED: usize = 97;

fn case(segment: Segment, encoding: Encoding) -> Case {
    let bytes = encode(&encoding, &segment.plain()).unwrap();
    Case { name: format!("{encoding:?}"), segment, bytes, encoding }
}

/// Values whose offsets from `base` have `width` bits; with patches some have more.
fn drawn(storage: Storage, width: u32, base: u64, patches: bool) -> Segment {
    let mut random = Random(u64::from(width) + 1);
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    let mut value = |row: usize| {
        let any = random.next();
        if patches && row % PATCHED == 5 { any } else { base.wrapping_add(any & mask) }
    };
    let values: Vec<u64> = (0..ROWS).map(&mut value).collect();
    Segment::new(storage, &values, None)
}

fn ladder(storage: Storage, base: u64) -> Vec<Case> {
    let widths = WIDTHS.into_iter().filter(|width| *width <= 8 * storage.width() as u32);
    let cases = widths.enumerate().flat_map(|(at, width)| {
        [(None, at % 2 == 0), (Some(base), at % 2 == 1)].map(|(reference, patches)| {
            let segment = drawn(storage, width, base, patches);
            case(segment, Encoding::Packed(Packed { width, reference, patches }))
        })
    });
    // No value is the reference: all rows are patches.
    let above = drawn(storage, 16, base, false);
    let all_patched = Packed { width: 0, reference: Some(base.wrapping_sub(1)), patches: true };
    cases.chain([case(above, Encoding::Packed(all_patched))]).collect()
}

#[test]
fn every_width_of_four_bytes() {
    // From the smallest value on, so that the widest offsets reach the largest.
    decodes(Storage::I32, &ladder(Storage::I32, i64::from(i32::MIN) as u64));
    decodes(Storage::U32, &ladder(Storage::U32, 0));
}

#[test]
fn every_width_of_eight_bytes() {
    decodes(Storage::I64, &ladder(Storage::I64, i64::MIN as u64));
    decodes(Storage::U64, &ladder(Storage::U64, 0));
}

#[test]
fn decimals_that_all_fit() {
    let mut random = Random(3);
    let values: Vec<u64> = (0..ROWS).map(|_| ((random.next() & 0xfff) as f64 / 100.0).to_bits()).collect();
    let cases = [Some(0), None].map(|reference| {
        let integers = Packed { width: 16, reference, patches: false };
        case(Segment::new(Storage::F64, &values, None), Encoding::Alp(Alp { exponent: 3, factor: 0, integers }))
    });
    decodes(Storage::F64, &cases);
}
