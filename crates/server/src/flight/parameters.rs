//! Values of parameters as clients send them: batches of Arrow, a column a parameter.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use futures::TryStreamExt;
use tonic::Status;
use warpcube_door::{Values, parameter_count, parameter_names};

use crate::error::Refusal;

/// The columns of a statement's parameters, by their places or else by their names; their types are those that a
/// client sends.
pub(super) fn schema(sql: &str) -> Schema {
    let places = (1..=parameter_count(sql)).map(|place| place.to_string());
    let field = |name: String| Field::new(format!("${name}"), DataType::Null, true);
    Schema::new(places.chain(parameter_names(sql)).map(field).collect::<Vec<_>>())
}

/// The rows that a call has; none if it has no schema of them.
pub(super) async fn read(mut stream: PeekableFlightDataStream, most: usize) -> Result<Option<Values>, Status> {
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
    Values::of(&batches).map(Some).map_err(|reason| Refusal::request(reason).into())
}
