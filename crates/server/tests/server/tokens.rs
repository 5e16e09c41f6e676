//! Tokens with names, and what each of them may do.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use warpcube_server::{ServerOptions, TokenOptions};
use warpcube_sql::DatabaseOptions;

use crate::flight::{client, fetched};
use crate::harness::{Answer, ENDLESS, SILENT, Served};

/// The text of a token of that name.
fn text(name: &str) -> String {
    name.repeat(32)
}

fn token(name: &str) -> TokenOptions {
    let (name, token) = (name.to_string(), text(name));
    TokenOptions {
        name,
        token,
        read_only: false,
        statements_max: None,
        timeout: None,
        rows_max: None,
        memory_max: None,
    }
}

fn served(tokens: Vec<TokenOptions>) -> Served {
    Served::with(DatabaseOptions::new(), |options| ServerOptions { tokens, ..options })
}

fn send(served: &Served, name: &str, sql: &str) -> TcpStream {
    let (host, bearer) = (served.server().http().to_string(), format!("Bearer {}", text(name)));
    served.send_bare("POST", "/query", &[("Host", &host), ("Authorization", &bearer)], sql.as_bytes())
}

fn ask(served: &Served, name: &str, sql: &str) -> Answer {
    Answer::read(send(served, name, sql))
}

#[test]
fn each_token_has_its_name_and_wrong_ones_are_kept_out() {
    let served = served(vec![token("a"), token("b")]);
    ask(&served, "b", "SELECT 1 AS one").ok();
    served.query("SELECT 2 AS two").ok();
    ask(&served, "a", "SELECT 3 AS three").ok();
    assert_eq!(ask(&served, "c", "SELECT 4").error(), (401, "SRV-005".into()));
    let log = served.query("SELECT session, query FROM query_log() ORDER BY id").json();
    let expected = json!([
        {"session": "b", "query": "SELECT 1 AS one"},
        {"session": "default", "query": "SELECT 2 AS two"},
        {"session": "a", "query": "SELECT 3 AS three"},
    ]);
    assert_eq!(log, expected);
    served.threads.block_on(async {
        let mut flight = client(&served).await;
        flight.set_token(text("b"));
        let info = flight.execute("SELECT session FROM query_log() WHERE session = 'b'".into(), None).await.unwrap();
        assert_eq!(fetched(&mut flight, info).await.unwrap()[0].num_rows(), 1);
    });
}

#[test]
fn a_read_only_token_changes_nothing_that_others_see() {
    let served = served(vec![TokenOptions { read_only: true, ..token("r") }]);
    served.query("CREATE TABLE t AS VALUES (1), (2)").ok();
    let folder = served.folder.path().display().to_string();
    assert_eq!(ask(&served, "r", "SELECT count(*) AS n FROM t").ok(), "[{\"n\":2}]\n");
    ask(&served, "r", "EXPLAIN INSERT INTO t VALUES (3)").ok();
    for sql in [
        "CREATE TABLE u (a INT)",
        "CREATE TEMP TABLE u AS SELECT 1 AS a",
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE SCHEMA s",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN b INT",
        "INSERT INTO t VALUES (3)",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (3)",
        "UPDATE t SET column1 = 3",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        &format!("COPY t TO '{folder}/t.csv'"),
        &format!("ATTACH '{folder}/other'"),
        "LOAD TABLE t",
    ] {
        assert_eq!(ask(&served, "r", sql).error(), (403, "FILE-008".into()), "{sql}");
    }
    for sql in [
        "SET warpcube.memory_limit = '1MiB'",
        "SET warpcube.query_log = 0",
        &format!("SET warpcube.spill_folder = '{folder}'"),
        &format!("SET warpcube.dump_source = '{folder}'"),
        &format!("SET datafusion.runtime.temp_directory = '{folder}'"),
        "SET warpcube.read_only = off",
    ] {
        assert_eq!(ask(&served, "r", sql).error(), (400, "CFG-004".into()), "{sql}");
    }
    assert_eq!(served.query("SELECT sum(column1) AS s FROM t").ok(), "[{\"s\":3}]\n");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "the file of the token alone");
    // It ends statements of its own.
    let (other, own) = (served.send("POST", "/query", &[], SILENT.as_bytes()), send(&served, "r", SILENT));
    served.wait_for("warpcube_statements_running", 2.0);
    let number = |session: &str| {
        let listed = served.query("SHOW QUERIES").json();
        let mut rows = listed.as_array().unwrap().iter();
        rows.find(|row| row["session"] == session && row["query"] == SILENT).unwrap()["id"].as_u64().unwrap()
    };
    let refused = ask(&served, "r", &format!("KILL {}", number("default")));
    assert_eq!(refused.error(), (400, "SQL-017".into()));
    ask(&served, "r", &format!("KILL {}", number("r"))).ok();
    assert_eq!(Answer::read(own).error(), (409, "SQL-016".into()));
    assert_eq!(served.metric("warpcube_statements_running"), 1.0);
    drop(other);
}

#[test]
fn limits_of_a_token_are_its_own() {
    let slow = TokenOptions { timeout: Some(Duration::from_millis(100)), ..token("s") };
    let short = TokenOptions { rows_max: Some(10), ..token("r") };
    let single = TokenOptions { statements_max: Some(1), ..token("o") };
    let served = served(vec![slow, short, single]);
    assert_eq!(ask(&served, "s", SILENT).error(), (504, "SQL-008".into()));
    assert_eq!(ask(&served, "r", ENDLESS).error(), (403, "SRV-009".into()));
    assert_eq!(ask(&served, "r", &format!("{ENDLESS} LIMIT 10")).json().as_array().unwrap().len(), 10);
    let error = "SELECT session, error FROM query_log() WHERE error IS NOT NULL ORDER BY id";
    let expected = json!([{"session": "s", "error": "SQL-008"}, {"session": "r", "error": "SRV-009"}]);
    assert_eq!(served.query(error).json(), expected);
    // The second one waits for its turn, and statements of others do not.
    let first = send(&served, "o", SILENT);
    served.wait_for("warpcube_statements_running", 1.0);
    let second = send(&served, "o", "SELECT 1 AS a");
    served.wait_for("warpcube_statements_waiting", 1.0);
    assert_eq!(served.query("SELECT 2 AS a").ok(), "[{\"a\":2}]\n");
    assert_eq!(served.metric("warpcube_statements_waiting"), 1.0);
    drop(first);
    assert_eq!(Answer::read(second).ok(), "[{\"a\":1}]\n");
}

#[test]
fn a_token_has_no_more_memory_than_it_may_have() {
    let small = TokenOptions { memory_max: Some(4 << 20), ..token("m") };
    let served = served(vec![small]);
    let large = "SELECT count(*) AS n FROM (SELECT DISTINCT value * 7 AS v, repeat('x', 100) AS t \
                 FROM generate_series(1, 300000))";
    let refused = ask(&served, "m", large);
    assert_eq!(refused.error(), (503, "SQL-009".into()));
    assert!(refused.text().contains("'m' may use 4194304 bytes"), "{}", refused.text());
    assert_eq!(served.query(large).ok(), "[{\"n\":300000}]\n");
    for _ in 0..3 {
        assert_eq!(ask(&served, "m", "SELECT DISTINCT 1 AS a").ok(), "[{\"a\":1}]\n", "nothing is left of it");
    }
}

#[test]
fn a_token_that_floods_holds_up_no_other() {
    let served = Served::with(DatabaseOptions::new(), |options| ServerOptions {
        tokens: vec![token("f"), token("o")],
        statements_max: 1,
        ..options
    });
    let mut flood = vec![send(&served, "f", SILENT)];
    served.wait_for("warpcube_statements_running", 1.0);
    flood.extend((0..50).map(|_| send(&served, "f", SILENT)));
    served.wait_for("warpcube_statements_waiting", 50.0);
    let other = send(&served, "o", "SELECT 1 AS a");
    served.wait_for("warpcube_statements_waiting", 51.0);
    // One of the flood ends: the next turn is the other's.
    drop(flood.remove(0));
    assert_eq!(Answer::read(other).ok(), "[{\"a\":1}]\n");
}

#[test]
fn secrets_of_the_server_are_out_of_reach_of_all_tokens() {
    let config = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    std::fs::write(config.path(), "token\nsecret\n").unwrap();
    let config_file = config.path().to_path_buf();
    let readers = vec![TokenOptions { read_only: true, ..token("r") }, token("w")];
    for allowed in ["all", "/"] {
        let options = DatabaseOptions::new().with("warpcube.allowed_paths", allowed);
        let served = Served::with(options, |options| ServerOptions {
            tokens: readers.clone(),
            secret_files: vec![config_file.clone()],
            ..options
        });
        let (token, link) = (served.token_file(), served.folder.path().join("link.csv"));
        std::os::unix::fs::symlink(&config_file, &link).unwrap();
        let folder = served.folder.path().display().to_string();
        for path in [&token, &config_file, &link, &"/proc/self/environ".into(), &"/proc/self/mem".into()] {
            let path = path.display();
            for sql in [
                format!("SELECT * FROM read_text('{path}')"),
                format!("SELECT * FROM read_blob('{path}')"),
                format!("SELECT * FROM read_csv('{path}')"),
                format!("SELECT * FROM read_csv('file://{path}', header = false)"),
                format!("SELECT * FROM '{path}'"),
                format!("SELECT * FROM glob('{path}')"),
            ] {
                for name in ["r", "w"] {
                    let answer = ask(&served, name, &sql);
                    assert_eq!(answer.error(), (403, "FILE-007".into()), "{sql}: {}", answer.text());
                    assert!(!answer.text().contains(&served.token()));
                }
            }
            for sql in [
                format!("CREATE EXTERNAL TABLE s (a VARCHAR) STORED AS CSV LOCATION '{path}'"),
                format!("COPY (SELECT 1 AS a) TO '{path}' STORED AS CSV"),
                format!("ATTACH '{path}' AS other"),
            ] {
                assert_eq!(ask(&served, "w", &sql).error(), (403, "FILE-007".into()), "{sql}");
            }
        }
        // Neither is a pattern a way to them.
        let pattern = format!("SELECT * FROM read_text('{folder}/*')");
        assert_eq!(ask(&served, "r", &pattern).error(), (403, "FILE-007".into()));
        // Other files of the folder are as they were.
        ask(&served, "w", &format!("COPY (SELECT 1 AS a) TO '{folder}/t.csv'")).ok();
        assert_eq!(ask(&served, "r", &format!("SELECT a FROM '{folder}/t.csv'")).ok(), "[{\"a\":1}]\n");
    }
}
