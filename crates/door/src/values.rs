//! Values of Arrow as constants of SQL, in place of the parameters of a statement: a row of a batch has the values of
//! all parameters, by the places of its columns or by their names.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, DurationMicrosecondType, FieldRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use warpcube_sql::{Kind, Token, tokens};

use crate::parameters::{Parameters, bind, parameter_count, parameter_names};

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// A row of values, as constants of SQL.
pub type Row = Vec<String>;

/// Rows of values, and the names of their columns, which count where parameters have names.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// The names of the columns.
    pub names: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Values {
    /// The rows of batches with the same columns.
    ///
    /// # Errors
    /// A value of a type that has no constants.
    pub fn of(batches: &[RecordBatch]) -> Result<Values, String> {
        let columns = batches.first().map(RecordBatch::schema);
        let names = columns.iter().flat_map(|schema| schema.fields()).map(|field| field.name().clone()).collect();
        let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| constants(batch, row)));
        Ok(Values { names, rows: rows.collect::<Result<_, _>>()? })
    }
}

/// A text between quotes.
pub fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A statement with rows of values in place of its parameters; none where it has neither. Several rows are rows of one
/// INSERT, so that all of them are put in or none.
///
/// # Errors
/// Values without a parameter, parameters without a value, and several rows for what is no such INSERT.
pub fn bind_rows(sql: &str, values: Values) -> Result<Option<String>, String> {
    let Values { names, mut rows } = values;
    let has_names = !parameter_names(sql).is_empty();
    if parameter_count(sql) == 0 && !has_names && rows.len() <= 1 && rows.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let parameters = |row: Row| match has_names {
        true => {
            let names = names.iter().map(|name| name.strip_prefix('$').unwrap_or(name).to_string());
            Parameters::Named(names.zip(row).collect())
        }
        false => Parameters::Ordered(row),
    };
    if rows.len() <= 1 {
        return bind(sql, &parameters(rows.pop().unwrap_or_default())).map(|bound| Some(bound.text));
    }
    let refused = "several rows of values are for INSERT INTO … VALUES (…) alone; send one row at a time";
    let has_none = |front: &str| parameter_count(front) == 0 && parameter_names(front).is_empty();
    let at = values_of_insert(sql).filter(|at| has_none(&sql[..*at])).ok_or(refused)?;
    let (front, tuple) = sql.split_at(at);
    let tuples = rows.into_iter().map(|row| bind(tuple, &parameters(row)).map(|bound| bound.text));
    Ok(Some(format!("{front}{}", tuples.collect::<Result<Vec<_>, _>>()?.join(", "))))
}

/// Where the only row of an INSERT of VALUES begins, behind which nothing stands.
fn values_of_insert(sql: &str) -> Option<usize> {
    let (tokens, _) = tokens(sql);
    let is =
        |token: &Token, word: &str| token.kind == Kind::Word && sql[token.range.clone()].eq_ignore_ascii_case(word);
    let values = tokens.iter().position(|token| is(token, "values"))?;
    let row = &tokens[values + 1..];
    let mut depth = 0_i64;
    let ends = row.iter().position(|token| {
        depth += match token.kind {
            Kind::Symbol('(') => 1,
            Kind::Symbol(')') => -1,
            _ => 0,
        };
        depth <= 0
    })?;
    let is_row = row.first()?.kind == Kind::Symbol('(') && ends + 1 == row.len();
    (is_row && is(tokens.first()?, "insert")).then(|| row[0].range.start)
}

fn constants(batch: &RecordBatch, row: usize) -> Result<Row, String> {
    batch.columns().iter().map(|column| constant(column.as_ref(), row)).collect()
}

/// A value as a constant of SQL.
fn constant(column: &dyn Array, row: usize) -> Result<String, String> {
    if column.is_null(row) || column.data_type() == &DataType::Null {
        return Ok("NULL".into());
    }
    let failed = |error: arrow::error::ArrowError| error.to_string();
    let formatter = ArrayFormatter::try_new(column, &FormatOptions::default()).map_err(failed)?;
    let shown = formatter.value(row).try_to_string().map_err(failed)?;
    let typed = |kind: &str| format!("CAST({} AS {kind})", text(&shown));
    Ok(match column.data_type() {
        DataType::Boolean => shown.to_uppercase(),
        kind if kind.is_integer() => {
            if shown.starts_with('-') {
                format!("({shown})")
            } else {
                shown
            }
        }
        DataType::Float16 | DataType::Float32 => typed("REAL"),
        DataType::Float64 => typed("DOUBLE"),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => typed(&format!("DECIMAL({precision}, {scale})")),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text(&shown),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            format!("X{}", text(&shown))
        }
        DataType::Date32 | DataType::Date64 => typed("DATE"),
        DataType::Time32(_) | DataType::Time64(_) => typed("TIME"),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => typed("TIMESTAMP_NS"),
        DataType::Timestamp(_, None) => typed("TIMESTAMP"),
        DataType::Timestamp(_, Some(_)) => typed("TIMESTAMPTZ"),
        DataType::Dictionary(..) => {
            let values = cast(&column.slice(row, 1), values_of(column.data_type())).map_err(failed)?;
            constant(values.as_ref(), 0)?
        }
        DataType::Duration(_) => {
            let unit = DataType::Duration(TimeUnit::Microsecond);
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let micros = cast_with_options(&column.slice(row, 1), &unit, &strict).map_err(failed)?;
            let micros = micros.as_primitive::<DurationMicrosecondType>().value(0);
            let (days, rest) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
            format!("INTERVAL '{days} days {rest} microseconds'")
        }
        DataType::List(field) | DataType::ListView(field) | DataType::FixedSizeList(field, _) => {
            let lists = cast(&column.slice(row, 1), &DataType::LargeList(field.clone())).map_err(failed)?;
            constant(lists.as_ref(), 0)?
        }
        DataType::LargeList(_) => {
            let items = column.as_list::<i64>().value(row);
            let items = (0..items.len()).map(|item| constant(items.as_ref(), item));
            format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().zip(column.as_struct().columns());
            let member = |(field, values): (&FieldRef, &ArrayRef)| {
                Ok(format!("{}: {}", text(field.name()), constant(values.as_ref(), row)?))
            };
            format!("{{{}}}", fields.map(member).collect::<Result<Vec<_>, String>>()?.join(", "))
        }
        other => return Err(format!("a value of type {other} cannot be a parameter")),
    })
}

/// The type of a dictionary's values.
fn values_of(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;
    use arrow::datatypes::{Field, Int32Type};

    use super::*;

    #[test]
    fn values_are_constants_of_their_type() {
        let cases: [(ArrayRef, &str); 12] = [
            (Arc::new(NullArray::new(1)), "NULL"),
            (Arc::new(StringArray::from(vec![None::<&str>])), "NULL"),
            (Arc::new(BooleanArray::from(vec![true])), "TRUE"),
            (Arc::new(Int64Array::from(vec![-7])), "(-7)"),
            (Arc::new(UInt8Array::from(vec![7])), "7"),
            (Arc::new(Float64Array::from(vec![f64::NAN])), "CAST('NaN' AS DOUBLE)"),
            (Arc::new(StringViewArray::from(vec!["it's"])), "'it''s'"),
            (Arc::new(BinaryArray::from(vec![b"\x00\xff".as_slice()])), "X'00ff'"),
            (Arc::new(Date32Array::from(vec![0])), "CAST('1970-01-01' AS DATE)"),
            (
                Arc::new(Decimal128Array::from(vec![1250]).with_precision_and_scale(10, 2).unwrap()),
                "CAST('12.50' AS DECIMAL(10, 2))",
            ),
            (
                Arc::new(TimestampMillisecondArray::from(vec![1]).with_timezone("UTC")),
                "CAST('1970-01-01T00:00:00.001Z' AS TIMESTAMPTZ)",
            ),
            (Arc::new(DictionaryArray::<Int32Type>::from_iter(["a"])), "'a'"),
        ];
        for (array, expected) in cases {
            assert_eq!(constant(array.as_ref(), 0).as_deref(), Ok(expected));
        }
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([None, Some([Some(1), None])]);
        assert_eq!(constant(&list, 1).as_deref(), Ok("[1, NULL]"));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x", "it's"]));
        let fields = StructArray::from(vec![(Arc::new(Field::new("n'", DataType::Utf8, true)), names)]);
        assert_eq!(constant(&fields, 1).as_deref(), Ok("{'n''': 'it''s'}"));
        let span = DurationMillisecondArray::from(vec![-1]);
        assert_eq!(constant(&span, 0).as_deref(), Ok("INTERVAL '-1 days 86399999000 microseconds'"));
        assert!(constant(&IntervalYearMonthArray::from(vec![1]), 0).is_err());
    }

    fn values(rows: Vec<Row>) -> Values {
        Values { rows, ..Values::default() }
    }

    #[test]
    fn values_of_names_are_found_by_them() {
        let named = |rows: &[[&str; 2]]| Values {
            names: vec!["$b".into(), "a".into()],
            rows: rows.iter().map(|row| row.map(String::from).to_vec()).collect(),
        };
        let bound = |sql: &str, values: Values| bind_rows(sql, values).map(Option::unwrap);
        assert_eq!(bound("SELECT $a, $b, $a", named(&[["1", "2"]])).as_deref(), Ok("SELECT 2, 1, 2"));
        assert!(bind_rows("SELECT $a, $c", named(&[["1", "2"]])).unwrap_err().contains("$c"));
        assert!(bind_rows("SELECT $a", values(Vec::new())).is_err());
        let insert = bound("INSERT INTO t VALUES ($a, $b)", named(&[["1", "2"], ["3", "4"]]));
        assert_eq!(insert.as_deref(), Ok("INSERT INTO t VALUES (2, 1), (4, 3)"));
    }

    #[test]
    fn several_rows_are_rows_of_one_insert() {
        let rows = || vec![vec!["1".to_string(), "'a'".into()], vec!["2".into(), "NULL".into()]];
        for (sql, bound) in [
            ("INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES (1, 'a'), (2, NULL)"),
            (
                "insert into t (\"values\", b) values ($1, f($2, ')'))",
                "insert into t (\"values\", b) values (1, f('a', ')')), (2, f(NULL, ')'))",
            ),
        ] {
            assert_eq!(bind_rows(sql, values(rows())).unwrap().as_deref(), Some(bound));
        }
        for sql in [
            "UPDATE t SET a = ? WHERE b = ?",
            "INSERT INTO t SELECT ?, ?",
            "INSERT INTO t VALUES (?, ?), (3, 4)",
            "INSERT INTO t VALUES (?, ?) RETURNING a",
            "WITH x AS (SELECT ?) INSERT INTO t VALUES (?)",
        ] {
            assert!(bind_rows(sql, values(rows())).unwrap_err().contains("several rows"), "{sql}");
        }
    }
}
