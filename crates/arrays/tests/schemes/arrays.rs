//! Arrays by name: those of the thesis's example, tables 2.2 to 2.4 and 3.1 to 3.4.

use warpcube_arrays::{ArrayData, Cells, Limits, Scheme, Shape, Storage};

/// The cells of figure 2.1 as far as tables 2.2, 3.1 and 3.3 print them, values in tenths.
const TUPLES: [[u32; 3]; 13] = [
    [0, 0, 0],
    [0, 0, 1],
    [0, 2, 2],
    [0, 2, 3],
    [2, 0, 3],
    [2, 1, 0],
    [2, 1, 1],
    [2, 2, 2],
    [2, 2, 3],
    [4, 0, 0],
    [4, 0, 1],
    [4, 1, 2],
    [4, 2, 3],
];
const VALUES: [i64; 13] = [205, 112, 170, 236, 149, 152, 178, 213, 251, 205, 142, 456, 753];

fn example(scheme: Scheme) -> Box<dyn Storage<i64>> {
    let cells = Cells::new(Shape::new([5, 3, 4]).unwrap(), TUPLES.concat(), VALUES.to_vec()).unwrap();
    scheme.build(&cells, &Limits::default()).unwrap()
}

/// Entries of an array of words; values are checked to be those of the example.
fn words(stored: &dyn Storage<i64>, name: &str) -> Vec<u64> {
    let arrays = stored.arrays();
    let found = arrays.iter().find(|array| array.name == name);
    match found.unwrap_or_else(|| panic!("{} has no array {name}", stored.scheme())).data {
        ArrayData::Words32(words) => words.iter().map(|word| u64::from(*word)).collect(),
        ArrayData::Words64(words) => words.to_vec(),
        other => panic!("{name} holds {other:?}"),
    }
}

fn names(scheme: Scheme) -> Vec<&'static str> {
    example(scheme).arrays().iter().map(|array| array.name).collect()
}

#[test]
fn names_and_values() {
    assert_eq!(names(Scheme::Coordinate), ["ind1", "ind2", "ind3", "val"]);
    assert_eq!(names(Scheme::OffsetValue), ["offset", "val"]);
    assert_eq!(names(Scheme::Bess), ["bei", "val"]);
    assert_eq!(names(Scheme::Xcrs), ["rptr", "cind", "val"]);
    assert_eq!(names(Scheme::Xccs), ["cptr", "rind", "val"]);
    assert_eq!(names(Scheme::Bxcrs), ["rptr_c", "compwrd", "count1", "cind", "val"]);
    assert_eq!(names(Scheme::Hybrid { r: 3 }), ["bptr", "bei", "val"]);
    assert!(names(Scheme::Ptcs).is_empty());
    for scheme in [Scheme::Coordinate, Scheme::OffsetValue, Scheme::Bess, Scheme::Xcrs, Scheme::Bxcrs] {
        let stored = example(scheme);
        assert_eq!(stored.arrays().last().unwrap().data, ArrayData::Values(&VALUES), "{scheme}");
    }
}

#[test]
fn index_value_pairs() {
    let stored = example(Scheme::Coordinate);
    assert_eq!(words(stored.as_ref(), "ind1"), [0, 0, 0, 0, 2, 2, 2, 2, 2, 4, 4, 4, 4]);
    assert_eq!(words(stored.as_ref(), "ind3"), [0, 1, 2, 3, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn keys_and_offsets() {
    assert_eq!(words(example(Scheme::OffsetValue).as_ref(), "offset")[..6], [0, 1, 10, 11, 27, 28]);
    assert_eq!(words(example(Scheme::Bess).as_ref(), "bei")[..8], [0, 1, 10, 11, 35, 36, 37, 42]);
}

#[test]
fn rows() {
    let stored = example(Scheme::Xcrs);
    assert_eq!(words(stored.as_ref(), "cind"), [0, 1, 2, 3, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    // Table 3.1 has -1 where a row is empty; here the start of the next one stands there.
    assert_eq!(words(stored.as_ref(), "rptr"), [0, 2, 2, 4, 4, 4, 4, 5, 7, 9, 9, 9, 9, 11, 12, 13]);
}

#[test]
fn filled_rows_in_a_bitmap() {
    let stored = example(Scheme::Bxcrs);
    assert_eq!(words(stored.as_ref(), "rptr_c"), [0, 2, 4, 5, 7, 9, 11, 12, 13]);
    // The bits of figure 3.1 in one active word of 15 rows.
    assert_eq!(words(stored.as_ref(), "compwrd"), [0b101_000_111_000_111 << 16]);
    assert_eq!(words(stored.as_ref(), "count1"), [0]);
}

#[test]
fn blocks() {
    let stored = example(Scheme::Hybrid { r: 3 });
    assert_eq!(words(stored.as_ref(), "bptr"), [0, 4, 4, 9, 9, 13]);
    assert_eq!(words(stored.as_ref(), "bei"), [0, 1, 10, 11, 3, 4, 5, 10, 11, 0, 1, 6, 11]);
    let same = example(Scheme::Hybrid { r: 2 });
    assert_eq!(words(same.as_ref(), "bptr"), words(example(Scheme::Xcrs).as_ref(), "rptr"));
}

#[test]
fn columns() {
    let stored = example(Scheme::Xccs);
    // Columns (K, J): K slowest.
    assert_eq!(words(stored.as_ref(), "rind"), [0, 4, 2, 0, 4, 2, 4, 0, 2, 2, 0, 2, 4]);
    assert_eq!(words(stored.as_ref(), "cptr"), [0, 2, 3, 3, 5, 6, 6, 6, 7, 9, 10, 10, 13]);
}

#[test]
fn wide_keys_are_pairs_of_words() {
    let cells = Cells::new(Shape::new([16; 32]).unwrap(), [vec![0; 31], vec![9]].concat(), vec![1i64]).unwrap();
    let stored = Scheme::Bess.build(&cells, &Limits::default()).unwrap();
    assert_eq!(stored.arrays()[0].data, ArrayData::Pairs64(&[[0, 9]]));
}
