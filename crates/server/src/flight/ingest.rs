//! Bulk ingestion: rows of a client that become a table, or are put into one, by one statement.

use std::sync::Arc;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use futures::{StreamExt, TryStreamExt};
use tonic::Status;
use warpcube_sql::{GivenRows, GivenTables};

use crate::error::Refusal;

/// The name of the rows in the statement.
const ROWS: &str = "ingested rows";
/// Bytes of rows of one ingestion.
const BYTES_MAX: usize = 4 << 30;

/// The rows that a call has.
pub(super) async fn read(stream: PeekableFlightDataStream) -> Result<GivenRows, Status> {
    // The first message may have the command alone.
    let data = stream.try_filter(|piece| std::future::ready(!piece.data_header.is_empty())).map_err(FlightError::from);
    let mut rows = FlightRecordBatchStream::new_from_flight_data(data.boxed());
    let (mut batches, mut bytes) = (Vec::new(), 0);
    let refused = |error: FlightError| Refusal::request(format!("the rows cannot be read: {error}"));
    while let Some(batch) = rows.try_next().await.map_err(refused)? {
        bytes += batch.get_array_memory_size();
        if bytes > BYTES_MAX {
            return Err(
                Refusal::request(format!("the rows have more than {BYTES_MAX} bytes; send them in parts")).into()
            );
        }
        batches.push(batch);
    }
    let schema = rows.schema().cloned().ok_or_else(|| Refusal::request("the rows have no columns"))?;
    Ok((schema, batches))
}

/// The rows as a table of the statement.
pub(super) fn given(rows: GivenRows) -> Arc<GivenTables> {
    GivenTables::new(move |name| Ok((name == ROWS).then(|| rows.clone())))
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
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let names = [&command.catalog, &command.schema].into_iter().flatten().chain([&command.table]);
    let name = names.map(quoted).collect::<Vec<_>>().join(".");
    let options = command.table_definition_options.unwrap_or_default();
    let creates = options.if_not_exist() != TableNotExistOption::Fail;
    let create = format!("CREATE TABLE {name} AS SELECT * FROM \"{ROWS}\"");
    let insert = format!("INSERT INTO {name} BY NAME SELECT * FROM \"{ROWS}\"");
    match (creates, options.if_exists()) {
        (true, TableExistsOption::Unspecified | TableExistsOption::Fail) => Ok(vec![create]),
        (true, TableExistsOption::Append) => Ok(vec![insert, create]),
        (false, TableExistsOption::Append) => Ok(vec![insert]),
        (true, TableExistsOption::Replace) => Ok(vec![create.replacen("CREATE", "CREATE OR REPLACE", 1)]),
        (false, _) => refused("rows go into a table that is there by append alone"),
    }
}
