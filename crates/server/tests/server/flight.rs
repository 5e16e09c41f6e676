//! Arrow Flight SQL with Arrow's own client, beside statements of a connection.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Int64Type, Schema};
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetTables, CommandStatementIngest, SqlInfo, TableDefinitionOptions, TableExistsOption,
    TableNotExistOption,
};
use arrow_flight::{CancelFlightInfoRequest, CancelStatus, FlightClient, FlightInfo};
use futures::TryStreamExt;
use tonic::transport::{Channel, Endpoint};
use warpcube_sql::{StatementKind, type_name};

use crate::harness::{ENDLESS, SILENT, Served};
use crate::queries::{STATEMENTS, whole};

pub(crate) type Client = FlightSqlServiceClient<Channel>;

async fn channel(served: &Served) -> Channel {
    Endpoint::from_shared(format!("http://{}", served.server().flight())).unwrap().connect().await.unwrap()
}

pub(crate) async fn client(served: &Served) -> Client {
    let mut client = FlightSqlServiceClient::new(channel(served).await);
    client.set_token(served.token());
    client
}

/// The rows of all tickets.
pub(crate) async fn fetched(client: &mut Client, info: FlightInfo) -> Result<Vec<RecordBatch>, FlightError> {
    let mut batches = Vec::new();
    for endpoint in info.endpoint {
        let stream = client.do_get(endpoint.ticket.unwrap()).await?;
        batches.extend(stream.try_collect::<Vec<_>>().await?);
    }
    // The names of the columns' types are looked at on their own.
    let plain = |batch: RecordBatch| {
        let schema = Arc::new(without_type_names(batch.schema().as_ref()));
        RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap()
    };
    Ok(batches.into_iter().map(plain).collect())
}

/// A schema without the names of the columns' types.
fn without_type_names(schema: &Schema) -> Schema {
    let plain = |field: &Arc<Field>| {
        let mut metadata = field.metadata().clone();
        metadata.remove("ARROW:FLIGHT:SQL:TYPE_NAME");
        field.as_ref().clone().with_metadata(metadata)
    };
    Schema::new_with_metadata(schema.fields().iter().map(plain).collect::<Vec<_>>(), schema.metadata().clone())
}

#[test]
fn rows_and_types_are_those_of_a_connection() {
    let (served, beside) = (Served::new(), Served::new());
    let connection = beside.database.connect();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        for sql in STATEMENTS {
            let expected = connection.execute(sql).await.unwrap();
            let schema = expected.schema.clone();
            let expected = expected.collect().await.unwrap();
            let info = client.execute(sql.to_string(), None).await.unwrap();
            let told = info.clone().try_decode_schema();
            let found = fetched(&mut client, info).await.unwrap();
            let found: Vec<_> = found.into_iter().filter(|batch| batch.num_rows() > 0).collect();
            let expected: Vec<_> = expected.into_iter().filter(|batch| batch.num_rows() > 0).collect();
            assert_eq!(whole(&found), whole(&expected), "{sql}");
            if connection.kind_of(sql) == StatementKind::Query {
                let told = told.unwrap();
                assert_eq!(without_type_names(&told), *schema, "{sql}");
                for field in told.fields() {
                    assert_eq!(field.metadata()["ARROW:FLIGHT:SQL:TYPE_NAME"], type_name(field), "{sql}");
                }
            }
        }
    });
}

#[test]
fn errors_have_the_code_of_a_connection() {
    let served = Served::new();
    let connection = served.database.connect();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        for sql in ["SELECT nope", "FROM nope", "SELEC 1", "SELECT 1 / 0", "", "CREATE TABLE t (a NOPE)"] {
            let expected = connection.collect(sql).await.unwrap_err();
            let found = match client.execute(sql.to_string(), None).await {
                Err(error) => error.to_string(),
                Ok(info) => fetched(&mut client, info).await.unwrap_err().to_string(),
            };
            let is_told =
                if sql.is_empty() { found.contains("SQL-001") } else { found.contains(&expected.to_string()) };
            assert!(is_told, "{sql}: {found} is not {expected}");
        }
        // The connection goes on.
        let info = client.execute("SELECT 1 AS a".into(), None).await.unwrap();
        assert_eq!(fetched(&mut client, info).await.unwrap()[0].num_rows(), 1);
    });
}

#[test]
fn updates_count_their_rows() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        assert_eq!(client.execute_update("CREATE TABLE t (a BIGINT, b VARCHAR)".into(), None).await.unwrap(), -1);
        let insert = "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')";
        assert_eq!(client.execute_update(insert.into(), None).await.unwrap(), 3);
        assert_eq!(client.execute_update("DELETE FROM t WHERE a > 1".into(), None).await.unwrap(), 2);
        assert!(client.execute_update("INSERT INTO nope VALUES (1)".into(), None).await.is_err());
        assert!(client.begin_transaction().await.is_err());
    });
}

#[test]
fn prepared_statements_take_values() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        client.execute_update("CREATE TABLE t (a BIGINT, b VARCHAR)".into(), None).await.unwrap();
        let values = |numbers: Vec<i64>, texts: Vec<Option<&str>>| {
            let columns: [(&str, ArrayRef); 2] =
                [("1", Arc::new(Int64Array::from(numbers))), ("2", Arc::new(StringArray::from(texts)))];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let mut insert = client.prepare("INSERT INTO t VALUES (?, ?)".into(), None).await.unwrap();
        assert_eq!(insert.parameter_schema().unwrap().fields().len(), 2);
        insert.set_parameters(values(vec![1, -2, 3], vec![Some("it's"), None, Some("'); DROP TABLE t; --")])).unwrap();
        assert_eq!(insert.execute_update().await.unwrap(), 3);
        insert.close().await.unwrap();

        let mut select = client.prepare("SELECT b FROM t WHERE a = $1 OR b = $2".into(), None).await.unwrap();
        for (number, text, expected) in [(1, None, "it's"), (0, Some("'); DROP TABLE t; --"), "'); DROP TABLE t; --")] {
            select.set_parameters(values(vec![number], vec![text])).unwrap();
            let info = select.execute().await.unwrap();
            let found = whole(&fetched(&mut client, info).await.unwrap()).unwrap();
            assert_eq!(
                arrow::compute::cast(found.column(0), &arrow::datatypes::DataType::Utf8)
                    .unwrap()
                    .as_string::<i32>()
                    .value(0),
                expected
            );
        }
        select.set_parameters(values(vec![1, 2], vec![None, None])).unwrap();
        assert!(select.execute().await.unwrap_err().to_string().contains("one row of values"));
        select.close().await.unwrap();

        // A table that is replaced under a statement: it is planned anew.
        let mut all = client.prepare("SELECT * FROM t ORDER BY 1".into(), None).await.unwrap();
        assert_eq!(all.dataset_schema().unwrap().fields().len(), 2);
        client.execute_update("DROP TABLE t".into(), None).await.unwrap();
        client.execute_update("CREATE TABLE t AS SELECT 'only' AS c".into(), None).await.unwrap();
        let info = all.execute().await.unwrap();
        assert_eq!(fetched(&mut client, info).await.unwrap()[0].num_columns(), 1);
        assert!(client.prepare("SELECT nope FROM t".into(), None).await.is_err());
    });
}

#[test]
fn a_prepared_update_of_several_rows_puts_all_of_them_in_or_none() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        client.execute_update("CREATE TABLE t (a BIGINT PRIMARY KEY)".into(), None).await.unwrap();
        let numbers = |numbers: Vec<i64>| {
            RecordBatch::try_from_iter([("1", Arc::new(Int64Array::from(numbers)) as ArrayRef)]).unwrap()
        };
        let mut insert = client.prepare("INSERT INTO t VALUES (?)".into(), None).await.unwrap();
        insert.set_parameters(numbers(vec![1, 2])).unwrap();
        assert_eq!(insert.execute_update().await.unwrap(), 2);
        insert.set_parameters(numbers(vec![3, 4, 1])).unwrap();
        assert!(insert.execute_update().await.unwrap_err().to_string().contains("PRIMARY KEY"));
        let mut delete = client.prepare("DELETE FROM t WHERE a = ?".into(), None).await.unwrap();
        delete.set_parameters(numbers(vec![1, 2])).unwrap();
        let refused = delete.execute_update().await.unwrap_err().to_string();
        assert!(refused.contains("SRV-007") && refused.contains("several rows"), "{refused}");
        let info = client.execute("SELECT sum(a) AS s FROM t".into(), None).await.unwrap();
        let sum = fetched(&mut client, info).await.unwrap()[0].column(0).as_primitive::<Int64Type>().value(0);
        assert_eq!(sum, 3);
    });
}

/// An ingestion into a table with what is done where it is there or not.
fn ingestion(table: &str, if_not_exist: TableNotExistOption, if_exists: TableExistsOption) -> CommandStatementIngest {
    let (if_not_exist, if_exists) = (if_not_exist as i32, if_exists as i32);
    CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions { if_not_exist, if_exists }),
        table: table.into(),
        schema: None,
        catalog: None,
        temporary: false,
        transaction_id: None,
        options: Default::default(),
    }
}

#[test]
fn rows_are_ingested_by_one_statement() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        let rows = || {
            let batch = |texts: [&str; 2], numbers: [i64; 2]| {
                let columns: [(&str, ArrayRef); 2] = [
                    ("b", Arc::new(StringArray::from(texts.to_vec()))),
                    ("a", Arc::new(Int64Array::from(numbers.to_vec()))),
                ];
                Ok(RecordBatch::try_from_iter(columns).unwrap())
            };
            futures::stream::iter([batch(["x", "y"], [1, 2]), batch(["z", "it's"], [3, 4])])
        };
        let (create, absent) = (TableNotExistOption::Create, TableNotExistOption::Fail);
        let (fail, append, replace) = (TableExistsOption::Fail, TableExistsOption::Append, TableExistsOption::Replace);
        let name = "My \"table\"";
        assert!(client.execute_ingest(ingestion(name, absent, append), rows()).await.is_err());
        for (if_not_exist, if_exists) in [(create, fail), (create, append), (absent, append)] {
            let count = client.execute_ingest(ingestion(name, if_not_exist, if_exists), rows()).await.unwrap();
            assert_eq!(count, 4);
        }
        assert!(client.execute_ingest(ingestion(name, create, fail), rows()).await.is_err());
        // Columns are found by their names.
        client.execute_update("CREATE TABLE other (a BIGINT, b VARCHAR)".into(), None).await.unwrap();
        client.execute_ingest(ingestion("other", create, append), rows()).await.unwrap();
        client.execute_ingest(ingestion("fresh", create, append), rows()).await.unwrap();
        let sql = "SELECT (SELECT count(*) FROM \"My \"\"table\"\"\") AS n, (SELECT sum(a) FROM other) AS s, \
                   (SELECT count(*) FROM fresh) AS f";
        let info = client.execute(sql.into(), None).await.unwrap();
        let counts = whole(&fetched(&mut client, info).await.unwrap()).unwrap();
        let counts: Vec<i64> =
            counts.columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect();
        assert_eq!(counts, [12, 10, 4]);
        client.execute_ingest(ingestion(name, create, replace), rows()).await.unwrap();
        let info = client.execute("SELECT b FROM \"My \"\"table\"\"\"".into(), None).await.unwrap();
        assert_eq!(whole(&fetched(&mut client, info).await.unwrap()).unwrap().num_rows(), 4);
        let temporary = CommandStatementIngest { temporary: true, ..ingestion("t", create, fail) };
        assert!(client.execute_ingest(temporary, rows()).await.is_err());
    });
}

#[test]
fn a_ticket_that_is_taken_twice_cancels_the_later_statement() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        let info = client.execute(ENDLESS.into(), None).await.unwrap();
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let mut first = client.do_get(ticket.clone()).await.unwrap();
        let mut second = client.do_get(ticket).await.unwrap();
        assert!(first.try_next().await.unwrap().is_some() && second.try_next().await.unwrap().is_some());
        // The end of the first one leaves the second one known.
        drop(first);
        let mut plain = FlightClient::new(channel(&served).await);
        plain.add_header("authorization", &format!("Bearer {}", served.token())).unwrap();
        let clock = std::time::Instant::now();
        while served.metric("warpcube_statements_running") != 1.0 {
            assert!(clock.elapsed() < crate::harness::PATIENCE);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let told = plain.cancel_flight_info(CancelFlightInfoRequest::new(info)).await.unwrap();
        assert_eq!(told.status(), CancelStatus::Cancelled);
        let ended = second.try_collect::<Vec<_>>().await.unwrap_err().to_string();
        assert!(ended.contains("SQL-007"), "{ended}");
    });
}

#[test]
fn the_statement_of_an_answer_is_cancelled() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        let mut plain = FlightClient::new(channel(&served).await);
        plain.add_header("authorization", &format!("Bearer {}", served.token())).unwrap();
        let info = client.execute(SILENT.to_string(), None).await.unwrap();
        let cancel = |info: &FlightInfo| CancelFlightInfoRequest::new(info.clone());
        assert!(plain.cancel_flight_info(cancel(&info)).await.is_err(), "nothing runs yet");
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let running = tokio::spawn(async move {
            // It gives its columns, and no row.
            let stream = client.do_get(ticket).await.map_err(|error| error.to_string())?;
            stream.try_collect::<Vec<_>>().await.map_err(|error| error.to_string())
        });
        let clock = std::time::Instant::now();
        let told = loop {
            match plain.cancel_flight_info(cancel(&info)).await {
                Ok(told) => break told,
                Err(_) => assert!(clock.elapsed() < crate::harness::PATIENCE),
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        };
        assert_eq!(told.status(), CancelStatus::Cancelled);
        let ended = running.await.unwrap().unwrap_err();
        assert!(ended.contains("SQL-007"), "{ended}");
        assert!(plain.cancel_flight_info(cancel(&info)).await.is_err(), "it has ended");
        let foreign = FlightInfo::new();
        assert!(plain.cancel_flight_info(cancel(&foreign)).await.is_err());
    });
}

#[test]
fn the_catalog_is_listed() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        client.execute_update("CREATE TABLE sales (amount DOUBLE)".into(), None).await.unwrap();
        client.execute_update("CREATE VIEW seen AS SELECT 1 AS a".into(), None).await.unwrap();
        let info = client.get_catalogs().await.unwrap();
        let catalogs = whole(&fetched(&mut client, info).await.unwrap()).unwrap();
        assert!(catalogs.column(0).as_string::<i32>().iter().any(|name| name == Some("warpcube")));
        let request = CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: Some("pub%".into()) };
        let info = client.get_db_schemas(request).await.unwrap();
        assert_eq!(whole(&fetched(&mut client, info).await.unwrap()).unwrap().num_rows(), 1);
        let request = CommandGetTables {
            catalog: None,
            db_schema_filter_pattern: Some("public".into()),
            table_name_filter_pattern: None,
            table_types: vec![],
            include_schema: true,
        };
        let info = client.get_tables(request).await.unwrap();
        let tables = whole(&fetched(&mut client, info).await.unwrap()).unwrap();
        let names: Vec<_> = tables.column_by_name("table_name").unwrap().as_string::<i32>().iter().flatten().collect();
        let kinds: Vec<_> = tables.column_by_name("table_type").unwrap().as_string::<i32>().iter().flatten().collect();
        assert_eq!((names, kinds), (vec!["sales", "seen"], vec!["BASE TABLE", "VIEW"]));
        let schema = tables.column_by_name("table_schema").unwrap().as_binary::<i32>().value(0);
        let schema = arrow::datatypes::Schema::try_from(arrow_flight::IpcMessage(schema.to_vec().into())).unwrap();
        assert_eq!(schema.field(0).name(), "amount");
        let info = client.get_table_types().await.unwrap();
        assert_eq!(whole(&fetched(&mut client, info).await.unwrap()).unwrap().num_rows(), 3);
        let info = client.get_sql_info(vec![SqlInfo::FlightSqlServerName]).await.unwrap();
        assert_eq!(whole(&fetched(&mut client, info).await.unwrap()).unwrap().num_rows(), 1);
    });
}

#[test]
fn only_the_token_gets_in() {
    let served = Served::new();
    served.threads.block_on(async {
        for token in [None, Some("wrong".to_string())] {
            let mut client = FlightSqlServiceClient::new(channel(&served).await);
            token.into_iter().for_each(|token| client.set_token(token));
            let refused = client.execute("SELECT 1".into(), None).await.unwrap_err().to_string();
            assert!(refused.contains("SRV-005"), "{refused}");
            let refused = client.execute_update("CREATE TABLE t (a INT)".into(), None).await.unwrap_err().to_string();
            assert!(refused.contains("SRV-005"), "{refused}");
        }
        // A password is the token, and a login gives it as a bearer's.
        let mut client = FlightSqlServiceClient::new(channel(&served).await);
        assert!(client.handshake("anyone", "wrong").await.is_err());
        let payload = client.handshake("anyone", &served.token()).await.unwrap();
        assert_eq!(payload, served.token());
        let info = client.execute("SELECT 1 AS a".into(), None).await.unwrap();
        assert_eq!(fetched(&mut client, info).await.unwrap()[0].num_rows(), 1);
    });
}

#[test]
fn tickets_of_others_are_refused() {
    let (served, other) = (Served::new(), Served::new());
    served.threads.block_on(async {
        let info = client(&other).await.execute("SELECT 1 AS a".into(), None).await.unwrap();
        let refused = fetched(&mut client(&served).await, info).await.unwrap_err().to_string();
        assert!(refused.contains("SRV-007"), "{refused}");
    });
}

#[test]
fn a_stream_that_is_dropped_cancels_its_statement() {
    let served = Served::new();
    let read = served.threads.block_on(async {
        let mut client = client(&served).await;
        let info = client.execute(ENDLESS.into(), None).await.unwrap();
        let mut stream = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        stream.try_next().await.unwrap().unwrap().num_rows()
    });
    assert!(read > 0);
    served.wait_for("warpcube_statements_running", 0.0);
    let waited = served.threads.block_on(async {
        let mut client = client(&served).await;
        let update = client.execute_update(SILENT.into(), None);
        tokio::time::timeout(std::time::Duration::from_millis(500), update).await
    });
    assert!(waited.is_err());
    served.wait_for("warpcube_statements_running", 0.0);
    assert_eq!(served.metric("warpcube_statements_total{outcome=\"cancelled\"}"), 2.0);
}

#[test]
fn messages_that_are_too_large_and_bytes_that_are_none_are_refused() {
    let served = Served::new();
    served.threads.block_on(async {
        let mut client = client(&served).await;
        let long = format!("SELECT '{}'", "x".repeat(2 << 20));
        let refused = client.execute(long, None).await.unwrap_err().to_string();
        assert!(refused.contains("limit"), "{refused}");
        let info = client.execute("SELECT 1 AS a".into(), None).await.unwrap();
        assert_eq!(fetched(&mut client, info).await.unwrap()[0].num_rows(), 1);
    });
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        &[0xff; 100],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff",
    ] {
        let mut stream = std::net::TcpStream::connect(served.server().flight()).unwrap();
        let _ = std::io::Write::write_all(&mut stream, bytes);
    }
    assert_eq!(served.query("SELECT 1 AS a").ok(), "[{\"a\":1}]\n");
}
