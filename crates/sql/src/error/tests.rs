//! Tests of how errors are sorted and told.

use super::*;

#[test]
fn a_call_that_does_not_exist_is_told_in_a_line() {
    let text = "Internal error: Function 'sum' failed to match any signature, errors: Error during planning: \
                and so on. No function matches the given name and argument types 'sum(Utf8)'. You might need to \
                add explicit type casts.\n\tCandidate functions:\n\tsum(Int64)\n\tsum(Float64)";
    let expected = "SQL-004 sum(VARCHAR) does not exist; there are sum(BIGINT), sum(DOUBLE); a CAST may be missing";
    assert_eq!(SqlError::from(DataFusionError::Plan(text.into())).to_string(), expected);
}

#[test]
fn ours_comes_back_through_datafusion() {
    let inner = SqlError::TimedOut { milliseconds: 7 };
    let travelled = DataFusionError::from(inner).context("somewhere").context("above");
    let back = SqlError::from(DataFusionError::Shared(std::sync::Arc::new(travelled)));
    assert!(matches!(back, SqlError::TimedOut { milliseconds: 7 }), "{back}");
    assert_eq!(back.code(), "SQL-008");
}

#[test]
fn text_that_is_none_is_damage_of_a_file() {
    let text = String::from_utf8(vec![b'a', 0xff]).unwrap_err().utf8_error();
    let error = parquet::errors::ParquetError::External(Box::new(text));
    assert_eq!(SqlError::from(DataFusionError::ParquetError(Box::new(error))).code(), "FILE-003");
}

#[test]
fn names_that_are_taken_or_mean_nothing_are_no_failures_of_a_run() {
    for text in ["Prepared statement 'p' does not exist", "Table 't' already exists", "Schema 's' doesn't exist."] {
        assert_eq!(SqlError::from(DataFusionError::Execution(text.into())).code(), "SQL-004", "{text}");
    }
    let ran = SqlError::from(DataFusionError::Execution("the file already exists".into()));
    assert_eq!(ran.code(), "SQL-006");
}

#[test]
fn text_is_one_line() {
    let error = SqlError::from(DataFusionError::Execution("one\n  two".into()));
    assert_eq!(error.to_string(), "SQL-006 one two");
}

#[test]
fn what_a_statement_asks_for_in_vain_is_no_internal_error() {
    for (text, told) in [
        (
            "Failed to coerce types Boolean and Int64 in BETWEEN expression",
            "SQL-004 BETWEEN compares BOOLEAN and BIGINT",
        ),
        (
            "Min/Max accumulator not implemented for type Map(\"entries\": …)",
            "SQL-005 not supported: MIN and MAX of maps",
        ),
        ("Assertion failed: n != 0: Nth value indices are 1 based. 0 is invalid index", "SQL-004 nth_value counts"),
        ("Unexpected empty work table", "SQL-005 not supported: a recursive query that reads itself"),
    ] {
        let error = SqlError::from(DataFusionError::Internal(text.into())).to_string();
        assert!(error.starts_with(told), "{error}");
    }
}
