//! Values of parameters as clients send them: batches of Arrow, a column a parameter.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use futures::TryStreamExt;
use tonic::Status;

use super::prepared::Row;
use crate::error::Refusal;
use crate::literals::text;

/// The columns of so many parameters; their types are those that a client sends.
pub(super) fn schema(parameters: usize) -> Schema {
    let field = |place: usize| Field::new(format!("${place}"), DataType::Null, true);
    Schema::new((1..=parameters).map(field).collect::<Vec<_>>())
}

/// The rows that a call has; none if it has no schema of them.
pub(super) async fn read(mut stream: PeekableFlightDataStream, most: usize) -> Result<Option<Vec<Row>>, Status> {
    let (mut data, mut bytes) = (Vec::new(), 0);
    while let Some(piece) = stream.try_next().await? {
        bytes += piece.data_header.len() + piece.data_body.len();
        if bytes > most {
            return Err(Refusal::request(format!("the values have more than {most} bytes")).into());
        }
        // The first message may have the command alone.
        if !piece.data_header.is_empty() {
            data.push(piece);
        }
    }
    if data.is_empty() {
        return Ok(None);
    }
    let data = futures::stream::iter(data.into_iter().map(Ok::<_, FlightError>));
    let batches: Vec<RecordBatch> = FlightRecordBatchStream::new_from_flight_data(data)
        .try_collect()
        .await
        .map_err(|error| Refusal::request(format!("the values cannot be read: {error}")))?;
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| constants(batch, row)));
    Ok(Some(rows.collect::<Result<_, _>>().map_err(Refusal::request)?))
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
    let cast = |kind: &str| format!("CAST({} AS {kind})", text(&shown));
    Ok(match column.data_type() {
        DataType::Boolean => shown.to_uppercase(),
        kind if kind.is_integer() => {
            if shown.starts_with('-') {
                format!("({shown})")
            } else {
                shown
            }
        }
        DataType::Float16 | DataType::Float32 => cast("REAL"),
        DataType::Float64 => cast("DOUBLE"),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => cast(&format!("DECIMAL({precision}, {scale})")),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text(&shown),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            format!("X{}", text(&shown))
        }
        DataType::Date32 | DataType::Date64 => cast("DATE"),
        DataType::Time32(_) | DataType::Time64(_) => cast("TIME"),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => cast("TIMESTAMP_NS"),
        DataType::Timestamp(_, None) => cast("TIMESTAMP"),
        DataType::Timestamp(_, Some(_)) => cast("TIMESTAMPTZ"),
        DataType::Dictionary(..) => {
            let values = arrow::compute::cast(&column.slice(row, 1), values_of(column.data_type())).map_err(failed)?;
            constant(values.as_ref(), 0)?
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
    use arrow::datatypes::Int32Type;

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
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
        assert!(constant(&list, 0).is_err());
    }
}
