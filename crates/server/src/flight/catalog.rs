//! What there is in the database, by the views of `information_schema`, and what the server is.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow_flight::error::Result as FlightResult;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables, SqlInfo, SqlSupportedTransaction,
};
use tonic::Status;

use crate::clients::Client;
use crate::statements::{Encode, Statement, Statements};

/// The statements of the server, and who asks for some.
type Asker<'a> = (&'a Statements, &'a Arc<Client>);

/// The types of tables, as `information_schema.tables` has them.
const TABLE_TYPES: [&str; 3] = ["BASE TABLE", "LOCAL TEMPORARY", "VIEW"];

/// What the server is.
pub(super) fn sql_info() -> SqlInfoData {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Warpcube");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, false);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, true);
    info.append(SqlInfo::SqlDdlTable, true);
    info.build().unwrap_or_else(|error| unreachable!("constants: {error}"))
}

pub(super) async fn catalogs(asker: Asker<'_>, query: CommandGetCatalogs) -> Result<FlightResult<RecordBatch>, Status> {
    let mut builder = query.into_builder();
    let sql = "SELECT DISTINCT catalog_name FROM information_schema.schemata ORDER BY 1";
    rows(asker, sql, 1).await?.into_iter().for_each(|row| builder.append(&row[0]));
    Ok(builder.build())
}

pub(super) async fn schemas(asker: Asker<'_>, query: CommandGetDbSchemas) -> Result<FlightResult<RecordBatch>, Status> {
    let mut builder = query.into_builder();
    let sql = "SELECT DISTINCT catalog_name, schema_name FROM information_schema.schemata ORDER BY 1, 2";
    rows(asker, sql, 2).await?.into_iter().for_each(|row| builder.append(&row[0], &row[1]));
    Ok(builder.build())
}

pub(super) async fn tables(asker: Asker<'_>, query: CommandGetTables) -> Result<FlightResult<RecordBatch>, Status> {
    let has_schema = query.include_schema;
    let mut builder = query.into_builder();
    let sql = "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables \
               ORDER BY 1, 2, 3";
    for row in rows(asker, sql, 4).await? {
        let schema = match has_schema {
            true => columns(asker, &row[..3]).await?,
            false => Schema::empty(),
        };
        if let Err(error) = builder.append(&row[0], &row[1], &row[2], &row[3], &schema) {
            return Ok(Err(error));
        }
    }
    Ok(builder.build())
}

/// The columns of a table; none where it cannot be read, as where its file is gone.
async fn columns((statements, client): Asker<'_>, name: &[String]) -> Result<Schema, Status> {
    let name: Vec<String> = name.iter().map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect();
    let text = format!("SELECT * FROM {}", name.join("."));
    let planned = statements.plan(Statement::of(client.clone(), text)).await;
    Ok(planned.ok().flatten().map_or_else(Schema::empty, |schema| schema.as_ref().clone()))
}

pub(super) fn table_types(query: CommandGetTableTypes) -> FlightResult<RecordBatch> {
    let mut builder = query.into_builder();
    TABLE_TYPES.iter().for_each(|kind| builder.append(kind));
    builder.build()
}

/// The rows of a query whose columns are texts.
async fn rows((statements, client): Asker<'_>, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, Status> {
    let begin = |_: &SchemaRef, _: bool| Ok(Box::new(Ok) as Encode<RecordBatch>);
    let statement = Statement::of(client.clone(), sql.to_string());
    let mut batches = statements.start(statement, begin).await?;
    let mut rows = Vec::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let texts = batch.columns().iter().take(columns).map(|column| cast(column, &DataType::Utf8));
        let texts = texts.collect::<Result<Vec<_>, _>>().map_err(|error| Status::internal(error.to_string()))?;
        let text = |column: &dyn Array, row: usize| column.as_string::<i32>().value(row).to_string();
        rows.extend((0..batch.num_rows()).map(|row| texts.iter().map(|column| text(column.as_ref(), row)).collect()));
    }
    Ok(rows)
}
