//! Bulk ingestion: rows of a client that become a table, or are put into one, by one statement.
//!
//! The columns come first. What their statement would be refused for is found out with them, before any row is read.

use arrow::datatypes::SchemaRef;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use futures::TryStreamExt;
use tonic::Status;
use warpcube_door::{IngestMode, ingestion};
use warpcube_sql::GivenRows;

use crate::error::Refusal;

/// Bytes of rows of one ingestion.
const BYTES_MAX: usize = 4 << 30;

/// The rows of a call, of which the columns are known.
pub(super) struct Incoming {
    pub(super) columns: SchemaRef,
    rows: FlightDataDecoder,
}

impl Incoming {
    /// Reads the columns.
    pub(super) async fn open(stream: PeekableFlightDataStream) -> Result<Incoming, Refusal> {
        // The first message may have the command alone.
        let data = stream.try_filter(|piece| std::future::ready(!piece.data_header.is_empty()));
        let mut rows = FlightDataDecoder::new(data.map_err(FlightError::from));
        let first = rows.try_next().await.map_err(unreadable)?;
        match first.map(|first| first.payload) {
            Some(DecodedPayload::Schema(columns)) => Ok(Incoming { columns, rows }),
            _ => Err(Refusal::request("the rows have no columns")),
        }
    }

    /// Reads the rows.
    pub(super) async fn read(mut self) -> Result<GivenRows, Refusal> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(piece) = self.rows.try_next().await.map_err(unreadable)? {
            let batch = match piece.payload {
                DecodedPayload::RecordBatch(batch) => batch,
                DecodedPayload::None => continue,
                DecodedPayload::Schema(_) => return Err(Refusal::request("the rows have columns twice")),
            };
            bytes += batch.get_array_memory_size();
            if bytes > BYTES_MAX {
                return Err(Refusal::request(format!("the rows have more than {BYTES_MAX} bytes; send them in parts")));
            }
            batches.push(batch);
        }
        Ok((self.columns, batches))
    }
}

fn unreadable(error: FlightError) -> Refusal {
    Refusal::request(format!("the rows cannot be read: {error}"))
}

/// The statements to try, one after the other while there is no such table.
///
/// # Errors
/// What the server does not do.
pub(super) fn statements(command: &CommandStatementIngest) -> Result<Vec<String>, Status> {
    let refused = |reason: &str| Err(Refusal::request(reason).into());
    if command.temporary {
        return refused("a temporary table would end with the call; leave temporary out");
    }
    let names = [&command.catalog, &command.schema].into_iter().flatten().chain([&command.table]);
    let options = command.table_definition_options.unwrap_or_default();
    let creates = options.if_not_exist() != TableNotExistOption::Fail;
    let mode = match (creates, options.if_exists()) {
        (true, TableExistsOption::Unspecified | TableExistsOption::Fail) => IngestMode::Create,
        (true, TableExistsOption::Append) => IngestMode::CreateAppend,
        (false, TableExistsOption::Append) => IngestMode::Append,
        (true, TableExistsOption::Replace) => IngestMode::Replace,
        (false, _) => return refused("rows go into a table that is there by append alone"),
    };
    Ok(ingestion(names, mode))
}
