//! Relations of residency: schema, facts of columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use warpcube_column::{EncodingChoice, LoadLimits};

use crate::source::*;

fn columns() -> Vec<(&'static str, ArrayRef)> {
    let text = |row: i64| (row % 5 != 2).then(|| format!("s{}", row % 3));
    vec![
        ("rising", Arc::new(Int64Array::from_iter_values((0..3_000).map(|row| row / 2)))),
        ("half", Arc::new(Float64Array::from_iter_values((0..3_000).map(|row| f64::from(row) / 2.0)))),
        ("text", Arc::new(StringArray::from_iter((0..3_000).map(text)))),
    ]
}

#[test]
fn a_table_is_a_relation_with_facts() {
    let source = Source::new("t", columns(), &[2_000, 1_000], 700);
    let residency = residency(64 << 20);
    let limits = LoadLimits { encoding: EncodingChoice::Auto, ..plain() };
    let pinned = admit_with(&residency, &[source.request(&[2, 0])], 0, &limits).unwrap();
    let relation = &pinned.tables[0];
    assert_eq!((relation.rows(), &relation.chunks[..]), (3_000, &[2_000, 1_000][..]));
    let schema = relation.schema();
    let fields = schema.fields().iter().map(|field| (field.name().as_str(), field.data_type(), field.is_nullable()));
    let expected = [("text", &DataType::Utf8, true), ("rising", &DataType::Int64, false)];
    assert_eq!(fields.collect::<Vec<_>>(), expected);
    let (text, rising) = (relation.facts(0), relation.facts(1));
    assert_eq!((text.distinct(), text.is_sorted()), (Some(3), false));
    assert_eq!((rising.statistics.integers, rising.is_sorted(), rising.is_nullable()), (Some((0, 1_499)), true, false));
    // The estimate has an error of a few percent.
    assert!(rising.distinct().unwrap().abs_diff(1_500) < 150, "{:?}", rising.distinct());
    let known = residency.facts("t", "1", 0).unwrap();
    assert!(Arc::ptr_eq(&known, relation.columns[1].facts()));
    assert!(residency.facts("t", "1", 1).is_none());
}
