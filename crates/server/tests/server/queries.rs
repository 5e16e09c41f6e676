//! Statements over HTTP beside the same ones of a connection.

use std::io::Cursor;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::ipc::reader::StreamReader;
use warpcube_sql::DatabaseOptions;

use crate::harness::Served;

/// Statements of many types, of no rows, of many batches, and some that are no queries.
pub(crate) const STATEMENTS: [&str; 9] = [
    "SELECT 1 AS i, 1.5 AS d, 'a,\"b\nc' AS t, NULL AS n, TRUE AS b, DATE '2024-02-29' AS day",
    "SELECT TIMESTAMP '2024-02-29 12:34:56.789' AS ts, INTERVAL '3 days' AS iv, [1, 2, NULL] AS l, {a: 1, b: 'x'} AS s",
    "SELECT CAST(12.345 AS DECIMAL(10, 3)) AS dec, X'00ff' AS bytes, CAST('NaN' AS DOUBLE) AS nan",
    "SELECT value AS v, value % 7 AS r FROM generate_series(1, 200000) WHERE FALSE",
    "SELECT value AS v, value % 7 AS r FROM generate_series(1, 200000) ORDER BY v",
    "CREATE TABLE made (a BIGINT, b VARCHAR)",
    "INSERT INTO made VALUES (1, 'one'), (2, NULL)",
    "SELECT * FROM made ORDER BY a",
    "SHOW TABLES",
];

/// All rows in one batch.
pub(crate) fn whole(batches: &[RecordBatch]) -> Option<RecordBatch> {
    batches.first().map(|first| concat_batches(&first.schema(), batches).unwrap())
}

#[test]
fn rows_and_types_are_those_of_a_connection() {
    let (served, beside) = (Served::new(), Served::new());
    let connection = beside.database.connect();
    for sql in STATEMENTS {
        let execution = beside.threads.block_on(connection.execute(sql)).unwrap();
        let schema = execution.schema.clone();
        let expected = beside.threads.block_on(execution.collect()).unwrap();
        let answer = served.ask("POST", "/query", &[("Accept", "application/vnd.apache.arrow.stream")], sql.as_bytes());
        assert_eq!(answer.status, 200, "{sql}");
        assert!(answer.is_whole && answer.head.contains("content-type: application/vnd.apache.arrow.stream"), "{sql}");
        let reader = StreamReader::try_new(Cursor::new(answer.body), None).unwrap();
        assert_eq!(reader.schema(), schema, "{sql}");
        let found: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        // Batches of no rows are not sent.
        let expected: Vec<_> = expected.into_iter().filter(|batch| batch.num_rows() > 0).collect();
        assert_eq!(whole(&found), whole(&expected), "{sql}");
    }
}

#[test]
fn formats_are_those_of_the_program() {
    let served = Served::new();
    let sql = "SELECT 1 AS a, 'x,y' AS b UNION ALL SELECT 2, NULL ORDER BY a";
    let with = |accept: &str| served.ask("POST", "/query", &[("Accept", accept)], sql.as_bytes()).ok();
    assert_eq!(with("*/*"), "[{\"a\":1,\"b\":\"x,y\"},{\"a\":2,\"b\":null}]\n");
    assert_eq!(with("application/x-ndjson"), "{\"a\":1,\"b\":\"x,y\"}\n{\"a\":2,\"b\":null}\n");
    assert_eq!(with("text/csv"), "a,b\n1,\"x,y\"\n2,\n");
    let json = serde_json::json!({"sql": sql, "format": "csv"}).to_string();
    let headers = [("Content-Type", "application/json; charset=utf-8"), ("Accept", "application/json")];
    assert_eq!(served.ask("POST", "/query", &headers, json.as_bytes()).ok(), with("text/csv"));
    assert_eq!(served.query("SELECT 1 AS a WHERE FALSE;").ok(), "[]\n");
    assert_eq!(served.query("CREATE VIEW v AS SELECT 1 AS a").ok(), "[]\n");
    assert_eq!(served.query("-- of all requests\nFROM v").ok(), "[{\"a\":1}]\n");
}

#[test]
fn parameters_are_constants_and_no_sql() {
    let served = Served::new();
    let ask = |value: serde_json::Value| {
        served.ask("POST", "/query", &[("Content-Type", "application/json")], value.to_string().as_bytes())
    };
    let rows = ask(serde_json::json!({"sql": "SELECT ? AS a, $2 AS b", "params": [7, "it's"]})).ok();
    assert_eq!(rows, "[{\"a\":7,\"b\":\"it's\"}]\n");
    let rows = ask(serde_json::json!({"sql": "SELECT $x + 1 AS a, $n AS n", "params": {"x": -2, "n": null}})).ok();
    assert_eq!(rows, "[{\"a\":-1,\"n\":null}]\n");
    for (wrong, code) in [
        (serde_json::json!({"sql": "SELECT ?", "params": []}), "SRV-007"),
        (serde_json::json!({"sql": "SELECT 1", "params": [1]}), "SRV-007"),
        (serde_json::json!({"sql": "SELECT 1", "params": 1}), "SRV-007"),
        (serde_json::json!({"sql": "SELECT 1", "parameters": [1]}), "SRV-007"),
        (serde_json::json!({"sql": "SELECT 1", "format": "xml"}), "SRV-007"),
        (serde_json::json!({"sql": 1}), "SRV-007"),
    ] {
        assert_eq!(ask(wrong.clone()).error(), (400, code.to_string()), "{wrong}");
    }
}

#[test]
fn errors_of_statements_with_parameters_have_positions() {
    let served = Served::new();
    let sql = "SELECT ?,\n  $2 AS b, nope";
    let asked = serde_json::json!({"sql": sql, "params": ["a\nlong text", 7]}).to_string();
    let answer = served.ask("POST", "/query", &[("Content-Type", "application/json")], asked.as_bytes());
    assert_eq!(answer.error(), (400, "SQL-003".into()));
    assert_eq!(answer.json()["position"], serde_json::json!({"line": 2, "column": 12}));
}

#[test]
fn a_client_does_not_reach_the_streams_of_the_server() {
    let served = Served::new();
    for place in ["/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "/dev/null"] {
        let answer = served.query(&format!("COPY (SELECT 1 AS a) TO '{place}' (FORMAT csv)"));
        assert_eq!(answer.error(), (400, "SQL-005".into()), "{place}");
        assert!(answer.text().contains("of the server"), "{}", answer.text());
    }
    // In process it is the program's own.
    let copied =
        served.threads.block_on(served.database.connect().collect("COPY (SELECT 1 AS a) TO '/dev/null' (FORMAT csv)"));
    assert!(copied.is_ok());
}

#[test]
fn set_global_counts_for_requests_that_follow() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let options = DatabaseOptions::new().with_catalog(&kept).with("warpcube.max_rows", "5");
    let served = Served::with(options, |options| options);
    let value = |name: &str| served.query(&format!("SHOW {name}")).json()[0]["value"].clone();
    assert_eq!(value("warpcube.overflow"), "error");
    served.query("SET GLOBAL warpcube.overflow = 'wrap'").ok();
    assert_eq!(value("warpcube.overflow"), "wrap");
    served.query("SET GLOBAL warpcube.query_log = 7").ok();
    assert_eq!(value("warpcube.query_log"), "7");
    served.query("RESET GLOBAL warpcube.overflow").ok();
    assert_eq!(value("warpcube.overflow"), "error");
    // Of a setting of all connections it counts at once, too.
    served.query("RESET GLOBAL warpcube.query_log").ok();
    assert_ne!(value("warpcube.query_log"), "7");
    let memory = "datafusion.runtime.memory_limit";
    let first = value(memory);
    served.query(&format!("SET GLOBAL {memory} = '64M'")).ok();
    assert_ne!(value(memory), first);
    served.query(&format!("RESET GLOBAL {memory}")).ok();
    assert_eq!(value(memory), first);
    let refused = served.query("SET GLOBAL warpcube.max_rows = 7");
    assert_eq!(refused.error(), (400, "CFG-004".into()));
    assert_eq!(value("warpcube.max_rows"), "5");
    drop(served);
    // A value of the catalog that is forgotten counts no more.
    for (sql, after) in [("SET GLOBAL warpcube.overflow = 'wrap'", "wrap"), ("RESET GLOBAL warpcube.overflow", "error")]
    {
        let served = Served::with(DatabaseOptions::new().with_catalog(&kept), |options| options);
        served.query(sql).ok();
        assert_eq!(served.query("SHOW warpcube.overflow").json()[0]["value"], after);
    }
}

#[test]
fn errors_have_code_hint_and_position() {
    let served = Served::new();
    let connection = served.database.connect();
    served.query("CREATE TABLE sales (amount BIGINT)").ok();
    for (sql, status) in [
        ("SELECT amount FROM sals", 400),
        ("SELECT 1;\n", 200),
        ("SELECT\n  amont FROM sales", 400),
        ("SELEC 1", 400),
        ("SELECT 1 / 0", 400),
        ("FROM 'not-there.parquet'", 400),
        ("SET warpcube.timeout = 'soon'", 400),
        ("", 400),
    ] {
        let answer = served.query(sql);
        assert_eq!(answer.status, status, "{sql}");
        if status == 200 || sql.is_empty() {
            continue;
        }
        let error = served.threads.block_on(connection.collect(sql)).unwrap_err();
        let told = answer.json();
        assert_eq!(told["code"], error.code(), "{sql}");
        assert_eq!(
            format!("{} {}", told["code"].as_str().unwrap(), told["message"].as_str().unwrap()),
            error.to_string()
        );
        let position = error.position_in(sql).map(|at| serde_json::json!({"line": at.line, "column": at.column}));
        assert_eq!(told["position"], position.unwrap_or_default(), "{sql}");
    }
    assert_eq!(served.query("SELECT amount FROM sals").json()["hint"], "did you mean 'sales'?");
    let told = served.query("-- a comment\n  SELECT nope FROM sales").json();
    assert_eq!(told["position"], serde_json::json!({"line": 2, "column": 10}), "{told}");
}

#[test]
fn a_statement_that_takes_too_long_and_one_that_is_not_allowed_have_their_status() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = folder.path().to_str().unwrap();
    let options = DatabaseOptions::new().with("warpcube.timeout", "100ms").with("warpcube.allowed_paths", allowed);
    let served = Served::with(options, |options| options);
    assert_eq!(served.query(crate::harness::SILENT).error(), (504, "SQL-008".into()));
    assert_eq!(served.query("FROM '/etc/passwd.csv'").error(), (403, "FILE-007".into()));
    served.wait_for("warpcube_statements_total{outcome=\"timed_out\"}", 1.0);
    served.wait_for("warpcube_statements_total{outcome=\"failed\"}", 1.0);
}

#[test]
fn a_statement_that_fails_behind_its_first_rows_ends_the_body_early() {
    let served = Served::new();
    let sql = "SELECT 1 / (value - 3000000) AS q FROM generate_series(1, 6000000)";
    let answer = served.ask("POST", "/query", &[("Accept", "text/csv")], sql.as_bytes());
    assert_eq!(answer.status, 200);
    assert!(!answer.is_whole && answer.body.starts_with(b"q\n"));
    assert_eq!(served.metric("warpcube_statements_total{outcome=\"failed\"}"), 1.0);
}
