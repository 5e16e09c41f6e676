//! Comparing an answer with the CPU's, or with one in a file.
//!
//! Rows are compared as multisets: both sides are sorted, exact columns first, and walked in step; floats may differ
//! by a tolerance, because sums of them depend on their order. Then the columns that the query orders by are compared
//! row by row as they came, so that rows may trade places only among those that tie.

use std::cmp::Ordering;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::csv::ReaderBuilder;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::suite::Failure;

/// Largest difference of two floats that count as equal, relative to the larger.
const TOLERANCE: f64 = 1e-9;
/// As [`TOLERANCE`] for 32-bit floats.
const TOLERANCE_F32: f64 = 1e-5;

/// A value that can be compared.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Exact(String),
    Float(f64, f64),
}

impl Value {
    fn is_equal(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Float(a, tolerance), Value::Float(b, _)) => {
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs())
            }
            (a, b) => a == b,
        }
    }

    /// Order for walking in step: exact values only, since floats that are equal within the tolerance must not
    /// separate rows.
    fn order_exact(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Exact(a), Value::Exact(b)) => a.cmp(b),
            (Value::Exact(_), _) => Ordering::Less,
            (_, Value::Exact(_)) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }

    fn order_float(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Float(a, _), Value::Float(b, _)) => a.total_cmp(b),
            (Value::Float(..), _) => Ordering::Less,
            (_, Value::Float(..)) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }

    fn show(&self) -> String {
        match self {
            Value::Null => "NULL".into(),
            Value::Exact(text) => text.clone(),
            Value::Float(value, _) => value.to_string(),
        }
    }
}

/// The rows of a CSV file with a line of names, as columns of the types that `answer` has.
pub(super) fn read(path: &Path, answer: &[RecordBatch]) -> Result<Vec<RecordBatch>, Failure> {
    let failed = |reason: String| Failure::Input { path: path.to_path_buf(), reason };
    let schema = answer.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let rows = ReaderBuilder::new(schema).with_header(true).build(file);
    rows.and_then(|rows| rows.collect()).map_err(|error| failed(error.to_string()))
}

/// The first difference between an answer and the one expected, or none. Names of columns are not compared: the judge
/// names those that the query does not after its plans.
pub(super) fn compare(sql: &str, answer: &[RecordBatch], expected: &[RecordBatch]) -> Option<String> {
    let types = |batches: &[RecordBatch]| {
        let schema = batches.first()?.schema();
        Some(schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect::<Vec<_>>())
    };
    if let (Some(found), Some(wanted)) = (types(answer), types(expected)) {
        if found.len() != wanted.len() {
            return Some(format!("{} columns, expected {}", found.len(), wanted.len()));
        }
        if let Some((found, wanted)) = found.iter().zip(&wanted).find(|(found, wanted)| found.1 != wanted.1) {
            return Some(format!("column '{}' is {}, expected '{}' {}", found.0, found.1, wanted.0, wanted.1));
        }
    }
    let (found, wanted) = (rows(answer), rows(expected));
    if found.len() != wanted.len() {
        return Some(format!("{} rows, expected {}", found.len(), wanted.len()));
    }
    let keys = expected.first().map(|batch| order_columns(sql, batch)).unwrap_or_default();
    let ordered = found.iter().zip(&wanted).position(|(a, b)| keys.iter().any(|key| !a[*key].is_equal(&b[*key])));
    let (sorted, wanted_sorted) = (sorted(found.clone()), sorted(wanted.clone()));
    let differs = |(a, b): (&Vec<Value>, &Vec<Value>)| a.iter().zip(b).any(|(a, b)| !a.is_equal(b));
    if let Some(row) = sorted.iter().zip(&wanted_sorted).position(differs) {
        return Some(format!("first differing row {}, expected {}", show(&sorted[row]), show(&wanted_sorted[row])));
    }
    ordered.map(|row| {
        format!("row {} is {}, expected {} there by ORDER BY", row + 1, show(&found[row]), show(&wanted[row]))
    })
}

fn show(row: &[Value]) -> String {
    format!("({})", row.iter().map(Value::show).collect::<Vec<_>>().join(", "))
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let compare = |a: &[Value], b: &[Value], order: fn(&Value, &Value) -> Ordering| {
        a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    rows.sort_by(|a, b| compare(a, b, Value::order_exact).then_with(|| compare(a, b, Value::order_float)));
    rows
}

fn rows(batches: &[RecordBatch]) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<Vec<Value>> = batch.columns().iter().map(values).collect();
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
    }
    rows
}

fn values(array: &ArrayRef) -> Vec<Value> {
    let float = |row: usize| match array.data_type() {
        DataType::Float64 => Some(Value::Float(array.as_primitive::<Float64Type>().value(row), TOLERANCE)),
        DataType::Float32 => Some(Value::Float(array.as_primitive::<Float32Type>().value(row).into(), TOLERANCE_F32)),
        _ => None,
    };
    let options = FormatOptions::default().with_display_error(true);
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options);
    let value = |row: usize| {
        if array.is_null(row) {
            return Value::Null;
        }
        let text = || formatter.as_ref().map_or_else(ToString::to_string, |formatter| formatter.value(row).to_string());
        float(row).unwrap_or_else(|| Value::Exact(text()))
    };
    (0..array.len()).map(value).collect()
}

/// The columns of the answer that the query's last `ORDER BY` names, by name or number. Other keys of the ORDER BY are
/// not in the answer and cannot be compared.
fn order_columns(sql: &str, batch: &RecordBatch) -> Vec<usize> {
    let lower = sql.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let Some(start) = words.windows(2).rposition(|pair| pair == ["order", "by"]) else { return Vec::new() };
    let clause = words[start + 2..].iter().take_while(|word| !["limit", "offset"].contains(*word));
    let clause = clause.copied().collect::<Vec<_>>().join(" ");
    // An ORDER BY of a subquery or window ends with its parenthesis and is not that of the answer.
    if clause.matches(')').count() > clause.matches('(').count() {
        return Vec::new();
    }
    let schema = batch.schema();
    let column = |item: &str| {
        let name = item.trim().split(' ').next()?;
        let name = name.rsplit('.').next()?.trim_matches('"');
        match name.parse::<usize>() {
            Ok(number) => number.checked_sub(1).filter(|column| *column < batch.num_columns()),
            Err(_) => schema.fields().iter().position(|field| field.name().to_lowercase() == name),
        }
    };
    clause.split(',').filter_map(column).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array};

    use super::*;

    fn batch(keys: &[i64], sums: &[f64]) -> Vec<RecordBatch> {
        let keys: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
        let sums: ArrayRef = Arc::new(Float64Array::from(sums.to_vec()));
        vec![RecordBatch::try_from_iter([("k", keys), ("s", sums)]).unwrap()]
    }

    #[test]
    fn floats_have_a_tolerance_and_rows_no_order() {
        let found = batch(&[2, 1], &[0.3, 1.0]);
        let wanted = batch(&[1, 2], &[1.0, 0.1 + 0.2]);
        assert_eq!(compare("select k, s from t", &found, &wanted), None);
        let wrong = compare("select k, s from t", &found, &batch(&[1, 2], &[1.0, 0.31])).unwrap();
        assert_eq!(wrong, "first differing row (2, 0.3), expected (2, 0.31)");
    }

    #[test]
    fn ties_may_trade_places_and_others_not() {
        let sql = "select k, s from t ORDER BY s desc, 7 limit 3";
        let wanted = batch(&[1, 2, 3], &[5.0, 5.0, 4.0]);
        assert_eq!(compare(sql, &batch(&[2, 1, 3], &[5.0, 5.0, 4.0]), &wanted), None);
        let wrong = compare(sql, &batch(&[1, 3, 2], &[5.0, 4.0, 5.0]), &wanted).unwrap();
        assert_eq!(wrong, "row 2 is (3, 4), expected (2, 5) there by ORDER BY");
    }

    #[test]
    fn counts_and_types_are_compared() {
        let one = batch(&[1], &[1.0]);
        assert_eq!(compare("", &one, &batch(&[1, 2], &[1.0, 2.0])).as_deref(), Some("1 rows, expected 2"));
        let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let other = vec![RecordBatch::try_from_iter([("k", other.clone()), ("s", other)]).unwrap()];
        assert!(compare("", &one, &other).unwrap().contains("column 's' is Float64, expected 's' Int64"));
    }

    #[test]
    fn an_answer_has_no_column_more_and_none_less() {
        let sql = "select k, s from t order by s, k";
        let [two, one] = [batch(&[1, 2], &[1.0, 2.0]), vec![batch(&[1, 2], &[1.0, 2.0])[0].project(&[0]).unwrap()]];
        assert_eq!(compare(sql, &one, &two).as_deref(), Some("1 columns, expected 2"));
        assert_eq!(compare(sql, &two, &one).as_deref(), Some("2 columns, expected 1"));
        // Without rows, too.
        let [two, one] = [two, one].map(|rows| vec![rows[0].slice(0, 0)]);
        assert_eq!(compare(sql, &one, &two).as_deref(), Some("1 columns, expected 2"));
    }

    #[test]
    fn the_last_order_by_outside_parentheses_counts() {
        let batch = &batch(&[1], &[1.0])[0];
        assert_eq!(order_columns("select k from t order by\n K asc, t.s", batch), [0, 1]);
        assert_eq!(order_columns("select * from (select k from t order by k) x", batch), [0usize; 0]);
    }
}
