//! The automatic choice of encodings, and the traits of columns.

use std::sync::Arc;

use arrow::array::*;
use warpcube_column::{EncodingChoice, LoadLimits, Relation, ResidentColumn};

use crate::data::Random;
use crate::source::*;

const ROWS: u64 = 40_000;

fn integers(value: impl FnMut(u64) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..ROWS).map(value)))
}

fn floats(value: impl FnMut(u64) -> f64) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values((0..ROWS).map(value)))
}

/// Pseudo-random bits of a row.
fn mixed(row: u64) -> u64 {
    Random(row).next()
}

fn load(column: ArrayRef, budget: u64) -> Relation {
    let residency = residency(budget);
    let source = Source::new("t", vec![("x", column)], &[15_000, ROWS as usize - 15_000], 4096);
    let limits = LoadLimits { encoding: EncodingChoice::Auto, ..LoadLimits::default() };
    admit_with(&residency, &[source.request(&[0])], 0, &limits).unwrap().tables.remove(0)
}

fn chosen(column: ArrayRef) -> Arc<ResidentColumn> {
    load(column, 256 << 20).columns[0].clone()
}

#[track_caller]
fn check(column: ArrayRef, expected: &str) {
    assert_eq!(chosen(column).encoding().to_string(), expected);
}

#[test]
fn integers_are_packed_unless_another_encoding_is_much_smaller() {
    check(integers(|row| mixed(row) as i64 & 1_023), "packed(10)");
    check(integers(|row| (row / 5_000) as i64), "packed(1, references)");
    check(integers(|row| mixed(row / 10) as i64 & 255), "packed(8)");
    check(integers(|row| mixed(row) as i64), "plain");
    // Sorted values whose steps need most bits of a block.
    check(integers(|row| (row * 400 + mixed(row) % 400) as i64), "packed(20, references)");
}

#[test]
fn wide_outliers_are_patches() {
    let outliers = |row: u64| if row.is_multiple_of(60) { (mixed(row) >> 20) as i64 } else { mixed(row) as i64 & 31 };
    check(integers(outliers), "packed(5, references, patches)");
    // Patches save less than their reads cost.
    let short = |every: u64| -> ArrayRef {
        let value = |row: u64| if row % every == 7 { mixed(row) as i32 & 0x3fff_ffff } else { mixed(row) as i32 & 31 };
        Arc::new(Int32Array::from_iter_values((0..ROWS).map(value)))
    };
    check(short(60), "packed(10) dictionary(699)");
    check(short(9), "plain");
    check(short(20_000), "packed(5, references, patches)");
}

#[test]
fn long_runs_of_wide_values_become_rle() {
    check(integers(|row| (mixed(row / 400) as i64) >> 3), "rle");
    check(floats(|row| (mixed(row / 400) as f64).sqrt()), "rle");
    // Runs that are too short, values that are too narrow, and sorted values, which have vector bounds.
    check(integers(|row| (mixed(row / 10) as i64) >> 3), "packed(12) dictionary(4000)");
    check(integers(|row| mixed(row / 400) as i64 & 1), "packed(1)");
    check(integers(|row| (row / 400) as i64), "packed(2, references)");
    check(integers(|row| (mixed(row / 128) as i64 & 0xfff_ffff) + (row % 3) as i64), "packed(10) dictionary(939)");
}

#[test]
fn rising_values_become_delta() {
    check(integers(|row| 1_600_000_000_000 + row as i64 * 1_000_003), "delta(0, differences 0)");
    check(integers(|row| 1_600_000_000_000 + row as i64 * 1_000 + mixed(row) as i64 % 16), "delta(7, differences 6)");
    // Few descents, then many.
    check(integers(|row| row as i64 * 1_000 - if row % 5_000 == 7 { 1_010 } else { 0 }), "delta(8, differences 10)");
    check(integers(|row| (row as i64 % 5_000) * 1_000_003), "delta(10, differences 0)");
    check(integers(|row| (row as i64 % 500) * 1_000_003), "packed(10) dictionary(500)");
    // The column is too small.
    let few: ArrayRef = Arc::new(Int64Array::from_iter_values((0..9_000).map(|row| row * 1_000_003)));
    let source = Source::new("few", vec![("x", few)], &[9_000], 4096);
    let limits = LoadLimits { encoding: EncodingChoice::Auto, ..LoadLimits::default() };
    let pinned = admit_with(&residency(256 << 20), &[source.request(&[0])], 0, &limits).unwrap();
    assert_eq!(pinned.tables[0].columns[0].encoding().to_string(), "packed(32, references)");
    // Differences as wide as the values.
    check(integers(|row| (row * 400 + mixed(row) % 400) as i64), "packed(20, references)");
}

#[test]
fn few_distinct_wide_values_become_a_dictionary() {
    check(integers(|row| mixed(mixed(row) % 700) as i64), "packed(10) dictionary(700)");
    check(floats(|row| (mixed(mixed(row) % 5) as f64).sqrt()), "packed(3) dictionary(5)");
    // The codes save few bits.
    check(integers(|row| (mixed(row) % 900 * 3) as i64), "packed(12)");
    // Too many distinct values.
    check(integers(|row| mixed(mixed(row) % 6_000) as i64), "plain");
}

#[test]
fn decimal_floats_become_alp() {
    let column = chosen(floats(|row| (mixed(row) % 100_000) as f64 / 100.0));
    assert!(column.encoding().to_string().starts_with("alp(17"), "{}", column.encoding());
    check(floats(|row| (mixed(row) as f64).sqrt()), "plain");
}

#[test]
fn profiles_give_traits() {
    let sorted = chosen(integers(|row| row as i64 / 8));
    let traits = sorted.facts().traits.unwrap();
    assert!(traits.distinct.abs_diff(5_000) < 250 && traits.is_sorted, "{traits:?}");
    // Vectors cut some runs, and a partition cuts one.
    assert!((5_000..5_050).contains(&traits.runs), "{traits:?}");
    assert!((sorted.bits_per_value() - 2.0).abs() < 1.0, "{} {}", sorted.encoding(), sorted.bits_per_value());
    assert!(!chosen(integers(|row| mixed(row) as i64)).facts().traits.unwrap().is_sorted);
    let floats = chosen(floats(|row| row as f64)).facts().traits.unwrap();
    assert!(!floats.is_sorted && floats.distinct.abs_diff(ROWS) < ROWS / 20, "{floats:?}");
}

#[test]
fn a_summary_has_the_traits() {
    let residency = residency(256 << 20);
    let source = Source::new("t", vec![("x", integers(|row| row as i64 % 10))], &[ROWS as usize], 4096);
    for (encoding, known) in [(EncodingChoice::Plain, false), (EncodingChoice::Auto, true)] {
        let limits = LoadLimits { encoding, ..LoadLimits::default() };
        drop(admit_with(&residency, &[source.request(&[0])], 0, &limits).unwrap());
        let summary = &residency.summaries()[0].columns[0];
        assert_eq!(
            summary.facts.traits.map(|traits| (traits.distinct, traits.is_sorted)),
            known.then_some((10, false))
        );
        assert!((summary.bits_per_value - if known { 4.0 } else { 64.0 }).abs() < 2.0, "{}", summary.bits_per_value);
        residency.clear();
    }
}
