//! Measures: types of their columns, exact conversion, rules.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal32Array, Decimal64Array, Decimal128Array, Decimal256Array, DictionaryArray, Float32Array,
    Float64Array, Int8Array, Int32Array, Int64Array, NullArray, UInt64Array,
};
use arrow::datatypes::{Int8Type, i256};
use warpcube_cube::facts::Rule;
use warpcube_cube::model::{Balance, Span};

use crate::tables::{Memory, cells, defined, ints, table, texts};

/// The cells of a column of values, a cell a row, as a type; or the error.
fn loaded(array: ArrayRef, value_type: &str) -> Result<Vec<String>, String> {
    let keys: Vec<i64> = (0..array.len() as i64).collect();
    let memory = Memory::default().with("gl", table(vec![("k", ints(&keys)), ("x", array)]));
    let text =
        format!("cube: c\nfacts: {{sql: TABLE gl, value: x}}\nvalue: {{type: {value_type}}}\ndimensions: {{K: {{}}}}");
    defined(&memory, &text).map(|built| cells(&built)).map_err(|error| error.to_string())
}

fn decimals(values: &[i128], precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale).unwrap())
}

#[test]
fn numbers_become_decimals_exactly() {
    let dictionary =
        DictionaryArray::<Int8Type>::new(Int8Array::from(vec![1, 0]), Arc::new(Int64Array::from(vec![7, -3])));
    let columns: [(ArrayRef, &str, [&str; 2]); 16] = [
        (Arc::new(Int8Array::from(vec![-128, 5])), "decimal(2)", ["-128", "5"]),
        (Arc::new(Int32Array::from(vec![i32::MIN, 5])), "decimal(9)", ["-2147483648", "5"]),
        (
            Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN])),
            "decimal(0)",
            ["9223372036854775807", "-9223372036854775808"],
        ),
        (Arc::new(UInt64Array::from(vec![i64::MAX as u64, 0])), "decimal(0)", ["9223372036854775807", "0"]),
        (decimals(&[12_345, -1], 10, 2), "decimal(2)", ["123.45", "-0.01"]),
        (decimals(&[12_345, -1], 10, 2), "decimal(4)", ["123.45", "-0.01"]),
        (decimals(&[12_300, -100], 10, 4), "decimal(2)", ["1.23", "-0.01"]),
        (decimals(&[12, -1], 10, -2), "decimal(1)", ["1200", "-100"]),
        (decimals(&[0, 10_i128.pow(37)], 38, 37), "decimal(0)", ["0", "1"]),
        (
            Arc::new(Decimal32Array::from(vec![150, -25]).with_precision_and_scale(5, 2).unwrap()),
            "decimal(3)",
            ["1.5", "-0.25"],
        ),
        (
            Arc::new(Decimal64Array::from(vec![150, -20]).with_precision_and_scale(9, 2).unwrap()),
            "decimal(1)",
            ["1.5", "-0.2"],
        ),
        (
            Arc::new(
                Decimal256Array::from(vec![i256::from_i128(150), i256::from_i128(-20)])
                    .with_precision_and_scale(60, 40)
                    .unwrap(),
            ),
            "double",
            ["0.000000000000000000000000000000000000015", "-0.000000000000000000000000000000000000002"],
        ),
        (
            Arc::new(
                Decimal256Array::from(vec![
                    i256::from_i128(10).wrapping_pow(40).wrapping_mul(i256::from_i128(15)),
                    i256::ZERO,
                ])
                .with_precision_and_scale(60, 41)
                .unwrap(),
            ),
            "decimal(2)",
            ["1.5", "0"],
        ),
        (Arc::new(dictionary), "decimal(1)", ["-3", "7"]),
        (Arc::new(Float32Array::from(vec![0.5, -2.25])), "double", ["0.5", "-2.25"]),
        (decimals(&[12_345, -1], 10, 2), "double", ["123.45", "-0.01"]),
    ];
    for (array, value_type, expected) in columns {
        let name = format!("{} as {value_type}", array.data_type());
        let found = loaded(array, value_type).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected: Vec<String> = (0..2).map(|at| format!("{at} = {}", expected[at])).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn doubles_round_half_away_from_zero() {
    let doubles = Float64Array::from(vec![0.125, -0.125, 0.375, 1.0 / 3.0, -0.004, 1e16]);
    assert_eq!(
        loaded(Arc::new(doubles), "decimal(2)").unwrap(),
        ["0 = 0.13", "1 = -0.13", "2 = 0.38", "3 = 0.33", "4 = 0", "5 = 10000000000000000"]
    );
    let floats = Float32Array::from(vec![2.5, -2.5, 0.49]);
    assert_eq!(loaded(Arc::new(floats), "decimal(0)").unwrap(), ["0 = 3", "1 = -3", "2 = 0"]);
}

#[test]
fn what_does_not_fit_is_refused_with_the_value() {
    let beyond = "is beyond 92233720368547758.07, the largest decimal(2); write a type of fewer digits, or double";
    let digits = "has more than 2 digits after the point; write type: decimal(n) with more digits for the measure, or \
                  round it in a query";
    let wide = Decimal256Array::from(vec![i256::ONE, i256::MAX]).with_precision_and_scale(76, 0).unwrap();
    let columns: [(ArrayRef, &str, &str); 9] = [
        (Arc::new(Int64Array::from(vec![1, i64::MAX])), "9223372036854775807", beyond),
        (Arc::new(UInt64Array::from(vec![1, u64::MAX])), "18446744073709551615", beyond),
        (decimals(&[100, 101], 10, 3), "0.101", digits),
        (decimals(&[100, i128::from(i64::MAX) + 1], 38, 2), "92233720368547758.08", beyond),
        (decimals(&[100, 10_i128.pow(37)], 38, 0), "10000000000000000000000000000000000000", beyond),
        (decimals(&[100, 9 * 10_i128.pow(17) + 1], 38, -2), "90000000000000000100", beyond),
        (decimals(&[0, 1], 38, 38), "0.00000000000000000000000000000000000001", digits),
        (Arc::new(Float64Array::from(vec![1.0, -1e17])), "-1e17", beyond),
        (Arc::new(wide), "578960446186580977117854925043439539266349923328202820197287920039565648", beyond),
    ];
    for (array, value, problem) in columns {
        let name = array.data_type().to_string();
        let error = loaded(array, "decimal(2)").expect_err(&name);
        assert!(error.starts_with(&format!("measure 'x', column 'x': {value}")), "{name}: {error}");
        assert!(error.ends_with(&format!(" in row 2 (k=1) {problem}")), "{name}: {error}");
    }
    let edge = 92_233_720_368_547_758.0_f64;
    assert!(loaded(Arc::new(Float64Array::from(vec![edge])), "decimal(2)").is_err());
    assert!(loaded(Arc::new(Float64Array::from(vec![-edge])), "decimal(1)").is_ok());
}

#[test]
fn null_values_are_empty_and_zero_is_not() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(0), None]));
    assert_eq!(loaded(array, "decimal(2)").unwrap(), ["1 = 0"]);
    assert!(loaded(Arc::new(NullArray::new(3)), "decimal(2)").unwrap().is_empty());
    assert!(loaded(Arc::new(NullArray::new(3)), "double").unwrap().is_empty());
    // A NULL may hide any bits.
    let hidden = Int64Array::new(vec![i64::MAX, 1].into(), Some(vec![false, true].into()));
    assert_eq!(loaded(Arc::new(hidden), "decimal(2)").unwrap(), ["1 = 1"]);
    let hidden = Float64Array::new(vec![f64::NAN, 1.0].into(), Some(vec![false, true].into()));
    assert_eq!(loaded(Arc::new(hidden.clone()), "decimal(2)").unwrap(), ["1 = 1"]);
    assert_eq!(loaded(Arc::new(hidden), "double").unwrap(), ["1 = 1"]);
}

#[test]
fn rules_of_measures() {
    let gl = table(vec![
        ("k", texts(&["a", "a", "a", "b", "c"])),
        ("m", texts(&["x", "x", "x", "x", "x"])),
        ("v", Arc::new(Int64Array::from(vec![Some(3), Some(-1), None, None, Some(7)]))),
        ("word", texts(&["p", ".", "q", ".", "r"])),
    ]);
    let text = "
cube: c
facts: {sql: TABLE gl}
value: {type: decimal(1), format: '0.0'}
measures:
  Sum: {column: v, over: {m: last}}
  Rows: {rule: count}
  Values: {rule: count, column: V}
  Words: {rule: count, column: word}
  Mean: {rule: avg, column: v, type: double}
  Least: {rule: min, column: v, format: '0'}
  Most: {rule: max, column: v}
dimensions: {K: {}, M: {}}
";
    let cube = defined(&Memory::default().with("gl", gl), text).unwrap();
    assert_eq!(
        cells(&cube),
        ["a x = 2 3 2 2 2 -1 3", "b x = . 1 0 0 . . .", "c x = 7 1 1 1 7 7 7"].map(|line| {
            // A COUNT of no values is empty, as every measure without a value is.
            line.replace(" 1 0 0 ", " 1 . . ")
        })
    );
    let measures = cube.model.measures();
    assert_eq!(measures[0].over, Some(Balance { dimension: "m".to_string(), span: Span::Last }));
    assert_eq!(measures[5].format.as_deref(), Some("0"));
    assert_eq!((measures[6].format.as_deref(), measures[6].rule), (Some("0.0"), Rule::Max));
    assert_eq!(cube.report.rows_empty, 0);
}

#[test]
fn a_cell_that_overflows_is_named() {
    let gl = table(vec![("k", texts(&["a", "b", "b"])), ("x", ints(&[1, i64::MAX / 100, i64::MAX / 100]))]);
    let text = "cube: c\nfacts: {sql: TABLE gl, value: x}\nvalue: {type: decimal(2)}\ndimensions: {K: {}}";
    assert_eq!(
        defined(&Memory::default().with("gl", gl), text).unwrap_err().to_string(),
        "measure 'x': the rows of cell (K b) add up to 184467440737095516.00, beyond 92233720368547758.07, the largest \
         decimal(2)"
    );
}

#[test]
fn doubles_that_the_scale_changes_are_counted() {
    let rounded = |array: ArrayRef| {
        let keys: Vec<i64> = (0..array.len() as i64).collect();
        let memory = Memory::default().with("gl", table(vec![("k", ints(&keys)), ("x", array)]));
        let text = "cube: c\nfacts: {sql: TABLE gl, value: x}\nvalue: {type: decimal(2)}\ndimensions: {K: {}}";
        defined(&memory, text).unwrap().report.values_rounded
    };
    let exact = Float64Array::from(vec![Some(0.1), Some(12.34), Some(-1e9 + 0.07), None, Some(0.29), Some(0.0)]);
    assert_eq!(rounded(Arc::new(exact)), []);
    assert_eq!(rounded(Arc::new(Float32Array::from(vec![0.1, 12.34, 0.29]))), []);
    let changed = Float64Array::from(vec![Some(0.125), Some(12.34), Some(1.0 / 3.0), None]);
    assert_eq!(rounded(Arc::new(changed)), [("x".to_string(), 2)]);
    assert_eq!(rounded(Arc::new(Float32Array::from(vec![0.1, 0.125]))), [("x".to_string(), 1)]);
    assert_eq!(rounded(decimals(&[12, 34], 9, 2)), []);
}
