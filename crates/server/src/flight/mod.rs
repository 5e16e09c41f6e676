//! The door of Arrow Flight SQL: statements, prepared statements and what there is in the database, over gRPC.
//!
//! `GetFlightInfo` plans a query and gives its columns with a ticket; `DoGet` runs it. A ticket is sealed: the server
//! runs none that it has not given. A query whose ticket nobody takes has cost a plan. A statement with effects runs
//! each time that its ticket is taken.

mod catalog;
mod ingest;
mod parameters;
mod prepared;
mod ticket;

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{FieldRef, Int64Type, Schema, SchemaRef, UInt64Type};
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::metadata::SqlInfoData;
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, CommandGetCatalogs, CommandGetDbSchemas,
    CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery, CommandStatementUpdate,
    DoPutPreparedStatementResult, ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor,
    FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse, IpcMessage, SchemaAsIpc, Ticket,
};
use axum::Router;
use axum::body::Bytes;
use axum::middleware::from_fn_with_state;
use futures::stream::{BoxStream, StreamExt, once, unfold};
use prost::Message;
use tokio::sync::oneshot;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use warpcube_sql::type_name;

use crate::clients::Client;
use crate::error::Refusal;
use crate::guard::guard;
use crate::http::only_statement;
use crate::shared::Shared;
use crate::statements::{Encode, Rows, Statement};
use ingest::Incoming;
use prepared::Prepared;
use ticket::{Held, Sealed, Taken};

/// The action that cancels.
const CANCEL: &str = "CancelFlightInfo";
/// The key of a column's metadata that has the name of its SQL type.
const TYPE_NAME: &str = "ARROW:FLIGHT:SQL:TYPE_NAME";
/// The code of a statement about a table that is not there.
const NO_TABLE: &str = "SQL-002";

/// The rows of a result as they go out.
type RowStream = <Service as FlightService>::DoGetStream;

/// The service; all its calls are behind the guard.
pub(crate) fn routes(shared: &Arc<Shared>) -> Router {
    let (prepared, taken) = (Prepared::default(), Taken::default());
    let service = Service { shared: shared.clone(), prepared, taken, info: catalog::sql_info() };
    let server = FlightServiceServer::new(service).max_decoding_message_size(shared.body_max);
    Routes::new(server).into_axum_router().layer(from_fn_with_state(shared.clone(), guard))
}

struct Service {
    shared: Arc<Shared>,
    prepared: Prepared,
    taken: Taken,
    info: SqlInfoData,
}

impl Service {
    /// Where a result is fetched.
    fn info(&self, request: Request<FlightDescriptor>, schema: Option<&Schema>, ticket: Vec<u8>) -> FlightInfoResult {
        let mut info = FlightInfo::new()
            .with_endpoint(FlightEndpoint::new().with_ticket(Ticket::new(ticket)))
            .with_descriptor(request.into_inner())
            .with_total_records(-1)
            .with_total_bytes(-1);
        if let Some(schema) = schema {
            info = info.try_with_schema(schema).map_err(|error| Status::internal(error.to_string()))?;
        }
        Ok(Response::new(info))
    }

    /// The columns of a query; none of any other statement, which has not run yet.
    async fn columns(&self, client: Arc<Client>, of: &Sealed) -> Result<Option<SchemaRef>, Status> {
        let statement = Statement::of(client, of.text.clone()).bound_to(of.bound.clone());
        let columns = self.shared.statements.plan(statement).await?;
        Ok(columns.map(|columns| with_type_names(&columns)))
    }

    /// Runs a statement and sends its rows.
    async fn rows(&self, client: Arc<Client>, of: Sealed) -> Result<Response<RowStream>, Status> {
        let statements = &self.shared.statements;
        let statement = Statement::of(client, of.text).bound_to(of.bound);
        let registered = statements.register(&statement);
        let held = self.taken.take(of.number, &registered);
        let (tell, told) = oneshot::channel();
        let begin = move |schema: &SchemaRef, _: bool| {
            // Its reader waits for it, unless the client has gone away.
            let _ = tell.send(with_type_names(schema));
            Ok(Box::new(Ok) as Encode<RecordBatch>)
        };
        let mut rows = statements.start_registered(statement, registered, begin).await?;
        // Before its columns a statement gives nothing but an error.
        let schema = tokio::select! {
            biased;
            Ok(schema) = told => schema,
            failed = rows.next() => {
                let failed = failed.and_then(Result::err);
                return Err(failed.map_or_else(|| Status::internal("a statement without columns"), Status::from));
            }
        };
        let batches = unfold((rows, held), |(mut rows, held): (Rows<RecordBatch>, Held)| async move {
            let batch = rows.next().await?.map_err(|refusal| FlightError::from(Status::from(refusal)));
            Some((batch, (rows, held)))
        });
        let encoder = FlightDataEncoderBuilder::new()
            .with_schema(schema)
            .with_dictionary_handling(DictionaryHandling::Resend)
            .build(batches);
        Ok(Response::new(encoder.map(|data| data.map_err(Status::from)).boxed()))
    }

    /// Runs a statement for its effects. Gives how many rows it has written, -1 where it does not say.
    async fn update(&self, statement: Statement) -> Result<i64, Refusal> {
        let begin = move |_: &SchemaRef, counts: bool| {
            let count = move |rows: Option<RecordBatch>| Ok(rows.filter(|_| counts).and_then(|rows| written(&rows)));
            Ok(Box::new(count) as Encode<i64>)
        };
        let mut rows = self.shared.statements.start(statement, begin).await?;
        let mut written = None;
        while let Some(piece) = rows.next().await {
            written = Some(written.unwrap_or(0) + piece?);
        }
        Ok(written.unwrap_or(-1))
    }

    /// Refuses an ingestion for what its statements would be refused for, planned among no rows.
    async fn check_ingestion(
        &self,
        client: &Arc<Client>,
        statements: &[String],
        columns: SchemaRef,
    ) -> Result<(), Refusal> {
        let given = warpcube_door::ingested((columns, Vec::new()));
        let mut planned = Ok(());
        for sql in statements {
            let explain = Statement::of(client.clone(), format!("EXPLAIN {sql}")).among(given.clone());
            planned = self.shared.statements.plan(explain).await.map(drop);
            if !planned.as_ref().is_err_and(|refusal| refusal.code() == NO_TABLE) {
                break;
            }
        }
        planned
    }

    /// Cancels the statement of a call's answer.
    fn cancel(&self, info: Option<&FlightInfo>) -> Result<CancelStatus, Status> {
        let info = info.ok_or_else(|| Refusal::request("there is no answer of a call to cancel"))?;
        let number = Sealed::of_info(&self.shared.seal, info)?.number;
        Ok(match self.taken.cancel(number)? {
            true => CancelStatus::Cancelled,
            false => CancelStatus::NotCancellable,
        })
    }

    /// One batch as the answer of a call.
    fn batch(&self, batch: arrow_flight::error::Result<RecordBatch>) -> Result<Response<RowStream>, Status> {
        let batch = batch.map_err(Status::from)?;
        let rows = FlightDataEncoderBuilder::new().with_schema(batch.schema()).build(once(async move { Ok(batch) }));
        Ok(Response::new(rows.map(|data| data.map_err(Status::from)).boxed()))
    }
}

type FlightInfoResult = Result<Response<FlightInfo>, Status>;

/// The count in the only column of a statement that counts.
fn written(rows: &RecordBatch) -> Option<i64> {
    let counts = rows.columns().first()?;
    let unsigned = counts.as_primitive_opt::<UInt64Type>().map(|counts| counts.values().iter().sum::<u64>());
    let signed = || counts.as_primitive_opt::<Int64Type>().map(|counts| counts.values().iter().sum());
    unsigned.map(|count| i64::try_from(count).unwrap_or(i64::MAX)).or_else(signed)
}

/// Who asks: the guard has let the request in.
fn client<T>(request: &Request<T>) -> Result<Arc<Client>, Status> {
    let client = request.extensions().get::<Arc<Client>>();
    client.cloned().ok_or_else(|| Status::internal("a request without its client"))
}

/// The one statement of a text.
fn statement(text: &str) -> Result<String, Status> {
    only_statement(text).map(|(sql, _)| sql).map_err(Status::from)
}

fn no_transactions(id: Option<&Bytes>) -> Result<(), Status> {
    match id {
        Some(id) if !id.is_empty() => Err(Status::unimplemented("SRV-007 there are no transactions")),
        _ => Ok(()),
    }
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Service;

    /// Gives the token as a bearer's: clients that log in with a user and a password have sent it as the password.
    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<BoxStream<'static, Result<HandshakeResponse, Status>>>, Status> {
        let client = client(&request)?;
        let payload = Bytes::from(client.token.text().to_string());
        let bearer = format!("Bearer {}", client.token.text());
        let answer = HandshakeResponse { protocol_version: 0, payload };
        let mut response = Response::new(once(async move { Ok(answer) }).boxed());
        let mut bearer =
            bearer.parse::<tonic::metadata::AsciiMetadataValue>().map_err(|_| Status::internal("no token"))?;
        bearer.set_sensitive(true);
        response.metadata_mut().insert("authorization", bearer);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> FlightInfoResult {
        no_transactions(query.transaction_id.as_ref())?;
        let sealed = Sealed::new(statement(&query.query)?, None);
        let schema = self.columns(client(&request)?, &sealed).await?;
        let ticket = TicketStatementQuery { statement_handle: sealed.close(&self.shared.seal)?.into() };
        self.info(request, schema.as_deref(), ticket.as_any().encode_to_vec())
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Response<RowStream>, Status> {
        let sealed = Sealed::open(&self.shared.seal, &ticket.statement_handle)?;
        self.rows(client(&request)?, sealed).await
    }

    async fn do_put_statement_update(
        &self,
        command: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        no_transactions(command.transaction_id.as_ref())?;
        let text = statement(&command.query)?;
        Ok(self.update(Statement::of(client(&request)?, text)).await?)
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        no_transactions(query.transaction_id.as_ref())?;
        let sealed = Sealed::new(statement(&query.query)?, None);
        let parameters = parameters::schema(&sealed.text);
        // The columns of a query with parameters may depend on their types.
        let client = client(&request)?;
        let dataset = if parameters.fields().is_empty() { self.columns(client.clone(), &sealed).await? } else { None };
        let dataset_schema = dataset.map_or_else(|| Ok(Bytes::new()), |schema| encoded(&schema))?;
        let parameter_schema = encoded(&parameters)?;
        let prepared_statement_handle = self.prepared.add(&client.name, sealed.text)?;
        Ok(ActionCreatePreparedStatementResult { prepared_statement_handle, dataset_schema, parameter_schema })
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        self.prepared.remove(&client(&request)?.name, &query.prepared_statement_handle);
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let client = client(&request)?;
        let rows = parameters::read(request.into_inner(), self.shared.body_max).await?;
        self.prepared.bind(&client.name, &query.prepared_statement_handle, rows.unwrap_or_default())?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(query.prepared_statement_handle) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> FlightInfoResult {
        // The ticket has the values that are bound now.
        let client = client(&request)?;
        let sealed = self.prepared.query(&client.name, &query.prepared_statement_handle)?;
        let schema = self.columns(client, &sealed).await?;
        let ticket = TicketStatementQuery { statement_handle: sealed.close(&self.shared.seal)?.into() };
        self.info(request, schema.as_deref(), ticket.as_any().encode_to_vec())
    }

    async fn do_put_prepared_statement_update(
        &self,
        command: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let (handle, client) = (command.prepared_statement_handle, client(&request)?);
        let rows = parameters::read(request.into_inner(), self.shared.body_max).await?;
        let (text, bound) = self.prepared.update(&client.name, &handle, rows)?;
        Ok(self.update(Statement::of(client, text).bound_to(bound)).await?)
    }

    /// Puts rows into a table. All of them are there then, or none.
    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        no_transactions(command.transaction_id.as_ref())?;
        let (client, statements) = (client(&request)?, ingest::statements(&command)?);
        self.shared.statements.check_changes(&client, "ingestion")?;
        let rows = Incoming::open(request.into_inner()).await?;
        self.check_ingestion(&client, &statements, rows.columns.clone()).await?;
        let rows = rows.read().await?;
        let count: i64 = rows.1.iter().map(|batch| batch.num_rows() as i64).sum();
        let (given, mut done) = (warpcube_door::ingested(rows), Ok(-1));
        for sql in statements {
            done = self.update(Statement::of(client.clone(), sql).among(given.clone())).await;
            if !done.as_ref().is_err_and(|refusal| refusal.code() == NO_TABLE) {
                break;
            }
        }
        Ok(done.map(|_| count)?)
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        _: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let info = FlightInfo::decode(query.info).ok();
        // Both calls number their answers alike.
        Ok(ActionCancelQueryResult { result: self.cancel(info.as_ref())? as i32 })
    }

    /// The call that cancels, of Flight without SQL.
    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Service as FlightService>::DoActionStream>, Status> {
        let Action { r#type: kind, body } = request.into_inner();
        if kind != CANCEL {
            return Err(Refusal::request(format!("there is no action '{kind}'")).into());
        }
        let asked = CancelFlightInfoRequest::decode(body).map_err(|error| Refusal::request(error.to_string()))?;
        let status = self.cancel(asked.info.as_ref())? as i32;
        let body = CancelFlightInfoResult { status }.encode_to_vec().into();
        Ok(Response::new(once(async move { Ok(arrow_flight::Result { body }) }).boxed()))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        let description = "Cancels the statement of a FlightInfo".to_string();
        Some(vec![Ok(ActionType { r#type: CANCEL.into(), description })])
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> FlightInfoResult {
        let ticket = query.as_any().encode_to_vec();
        self.info(request, Some(&query.into_builder().schema()), ticket)
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<Ticket>,
    ) -> Result<Response<RowStream>, Status> {
        self.batch(catalog::catalogs((&self.shared.statements, &client(&request)?), query).await?)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> FlightInfoResult {
        let ticket = query.as_any().encode_to_vec();
        self.info(request, Some(&query.into_builder().schema()), ticket)
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Result<Response<RowStream>, Status> {
        self.batch(catalog::schemas((&self.shared.statements, &client(&request)?), query).await?)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> FlightInfoResult {
        let ticket = query.as_any().encode_to_vec();
        self.info(request, Some(&query.into_builder().schema()), ticket)
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<Ticket>,
    ) -> Result<Response<RowStream>, Status> {
        self.batch(catalog::tables((&self.shared.statements, &client(&request)?), query).await?)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> FlightInfoResult {
        let ticket = query.as_any().encode_to_vec();
        self.info(request, Some(&query.into_builder().schema()), ticket)
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        _: Request<Ticket>,
    ) -> Result<Response<RowStream>, Status> {
        self.batch(catalog::table_types(query))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> FlightInfoResult {
        let ticket = query.as_any().encode_to_vec();
        self.info(request, Some(&query.into_builder(&self.info).schema()), ticket)
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        _: Request<Ticket>,
    ) -> Result<Response<RowStream>, Status> {
        self.batch(query.into_builder(&self.info).build())
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}

/// The columns with the names of their SQL types, where clients of Flight SQL look for them.
fn with_type_names(columns: &SchemaRef) -> SchemaRef {
    let named = |field: &FieldRef| {
        let mut metadata = field.metadata().clone();
        metadata.insert(TYPE_NAME.into(), type_name(field));
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    };
    let fields: Vec<FieldRef> = columns.fields().iter().map(named).collect();
    Arc::new(Schema::new_with_metadata(fields, columns.metadata().clone()))
}

/// A schema as a message of Arrow.
fn encoded(schema: &Schema) -> Result<Bytes, Status> {
    let options = arrow::ipc::writer::IpcWriteOptions::default();
    let message: Result<IpcMessage, _> = SchemaAsIpc::new(schema, &options).try_into();
    message.map(|message| message.0).map_err(|error| Status::internal(error.to_string()))
}
