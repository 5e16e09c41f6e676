//! Files on a web server and in a bucket of S3, as tables. The servers are on loopback.

use std::process::Command;

use crate::changing_files::Dialogue;
use crate::harness::{Place, Ran};
use crate::server::{Server, Way};

/// The program with the variables by which a bucket of the server is found.
fn with_bucket(place: &Place, server: &Server, key: &str) -> Command {
    let mut command = place.command();
    let endpoint = server.url("");
    command.env("AWS_ENDPOINT_URL", endpoint.trim_end_matches('/')).env("AWS_ALLOW_HTTP", "true");
    command.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", "secret").env("AWS_REGION", "eu-central-1");
    command
}

fn csv(command: &mut Command, sql: &str) -> Ran {
    Ran::of(command.args(["--format", "csv", "-c", sql]).output().unwrap())
}

#[test]
fn files_of_a_web_server_are_tables() {
    let (place, server) = (Place::new(), Server::new());
    std::fs::create_dir(place.path("tmp")).unwrap();
    let run = |sql: &str| csv(place.command().env("TMPDIR", place.path("tmp")), sql).ok();
    let query = "SELECT value AS a, value % 3 AS k, 'text ' || value * 7919 AS s FROM generate_series(1, 40000)";
    let parquet = std::fs::read(place.copy(query, "a.parquet")).unwrap();
    let size = parquet.len();
    server.put("d/a.parquet", parquet, Way::Usual);
    server.put("b.csv", "n;x\n1;1,5\n2;2,5\n", Way::Usual);
    server.put("c%20d/c.csv.gz", std::fs::read(place.copy("SELECT 7 AS n", "c.csv.gz")).unwrap(), Way::Usual);
    server.put("j.json", "[{\"n\": 3}, {\"n\": 4}]", Way::Usual);
    server.put("l.arrow", std::fs::read(place.copy("SELECT 5 AS n", "l.arrow")).unwrap(), Way::Usual);
    let (a, b, c) = (server.url("d/a.parquet"), server.url("b.csv"), server.url("c%20d/c.csv.gz"));
    assert_eq!(run(&format!("SELECT count(*) AS n FROM '{a}'")), "n\n40000\n");
    // The footer, and not the file.
    let fetched = |requests: &[String]| -> usize {
        let gets = requests.iter().filter(|request| request.starts_with("GET"));
        let range = |request: &String| {
            let (from, to) = request.rsplit_once(' ').and_then(|(_, range)| range.split_once('-')).unwrap();
            to.parse::<usize>().unwrap() + 1 - from.parse::<usize>().unwrap()
        };
        gets.map(range).sum()
    };
    let bytes = fetched(&server.requests());
    assert!(bytes < size / 4, "{bytes} of {size}");
    assert_eq!(run(&format!("SELECT k, sum(a) AS s FROM '{a}' WHERE k < 2 GROUP BY k ORDER BY k")), {
        "k,s\n0,266673333\n1,266686667\n"
    });
    assert_eq!(run(&format!("SELECT s FROM '{a}' WHERE a = 39999")), "s\ntext 316752081\n");
    assert_eq!(run(&format!("SELECT n FROM '{}'", server.url("j.json"))), "n\n3\n4\n");
    assert_eq!(run(&format!("SELECT n FROM '{}'", server.url("l.arrow"))), "n\n5\n");
    assert_eq!(run(&format!("SELECT n, x FROM '{b}'")), "n,x\n1,\"1,5\"\n2,\"2,5\"\n");
    let sniffed = format!("SELECT delimiter, hasheader, length(prompt) > 0 AS p FROM sniff_csv('{b}')");
    assert_eq!(run(&sniffed), "delimiter,hasheader,p\n;,true,true\n");
    let decimal = format!("FROM read_csv('{b}', decimal_separator = ',', types = {{'x': 'DOUBLE'}})");
    assert_eq!(run(&decimal), "n,x\n1,1.5\n2,2.5\n");
    assert_eq!(
        run(&format!("SELECT n, filename FROM read_csv('{c}', filename = true)")),
        format!("n,filename\n7,{c}\n")
    );
    let both = format!("SELECT sum(n) AS n FROM read_csv(['{b}', '{c}'], union_by_name = true)");
    assert_eq!(run(&both), "n\n10\n");
    server.put("b2.csv", "n;x\n9;0\n", Way::Usual);
    assert_eq!(run(&format!("SELECT sum(n) AS n FROM '{}'", server.url("b{,2}.csv"))), "n\n12\n");
    let joined = format!("SELECT b.n FROM '{a}' AS a JOIN '{b}' AS b ON a.a = b.n ORDER BY 1");
    assert_eq!(run(&joined), "n\n1\n2\n");
    // Nothing stays.
    assert_eq!(std::fs::read_dir(place.path("tmp")).unwrap().count(), 0);
}

#[test]
fn servers_of_fewer_words_are_understood() {
    let (place, server) = (Place::new(), Server::new());
    let parquet = std::fs::read(place.copy("SELECT 42 AS a", "a.parquet")).unwrap();
    for (name, way) in [("whole", Way::Whole), ("untold", Way::Untold), ("signed", Way::Signed)] {
        server.put(&format!("{name}.parquet"), &parquet, way);
        server.put(&format!("{name}.csv"), "a\n42\n", way);
        for extension in ["parquet", "csv"] {
            let url = server.url(&format!("{name}.{extension}?X-Signature=a%2Fb&x=*"));
            assert_eq!(place.csv(&format!("SELECT * FROM '{url}'")), "a\n42\n", "{url}");
        }
    }
    assert!(server.requests().iter().any(|request| request == "GET /whole.parquet"));
}

#[test]
fn files_of_a_bucket_are_tables() {
    let (place, server) = (Place::new(), Server::new());
    let run = |sql: &str| csv(&mut with_bucket(&place, &server, "test"), sql).ok();
    for (key, rows) in [("1", 3), ("2", 5), ("3", 7)] {
        let file = place.copy(&format!("SELECT value AS a FROM generate_series(1, {rows})"), "x.parquet");
        server.put(&format!("bucket/t/k={key}/x.parquet"), std::fs::read(&file).unwrap(), Way::Usual);
        server.put(&format!("bucket/flat/{key}.parquet"), std::fs::read(&file).unwrap(), Way::Usual);
        server.put(&format!("bucket/c/k={key}/x.csv"), format!("a\n{rows}\n"), Way::Usual);
        server.put(&format!("bucket/j/{key}.ndjson"), format!("{{\"b{key}\": {rows}}}\n"), Way::Usual);
    }
    server.put("bucket/flat/_SUCCESS", "", Way::Usual);
    server.put("bucket/flat/README.md", "none", Way::Usual);
    let counts = |from: &str| run(&format!("SELECT count(*) AS n FROM {from}"));
    assert_eq!(counts("'s3://bucket/flat/2.parquet'"), "n\n5\n");
    for all in ["flat/*.parquet", "flat/", "flat", "flat/?.parquet", "f*/*.parquet", "**/[123].parquet"] {
        assert_eq!(counts(&format!("'s3://bucket/{all}'")), "n\n15\n", "{all}");
    }
    assert_eq!(counts("read_parquet(['s3://bucket/flat/1.parquet', 's3://bucket/flat/{2,3}.parquet'])"), "n\n15\n");
    for keyed in ["'s3://bucket/t/'", "'s3://bucket/t/k=*/*.parquet'", "read_parquet('s3://bucket/t/*/*.parquet')"] {
        let sql = format!("SELECT k, count(*) AS n, max(a) AS a FROM {keyed} WHERE k > 1 GROUP BY k ORDER BY k");
        assert_eq!(run(&sql), "k,n,a\n2,5,5\n3,7,7\n", "{keyed}");
    }
    assert_eq!(run("SELECT k, a FROM 's3://bucket/c/' ORDER BY k"), "k,a\n1,3\n2,5\n3,7\n");
    let named = "SELECT a, k, filename FROM read_csv('s3://bucket/c/*/x.csv', filename = true) WHERE k = 2";
    assert_eq!(run(named), "a,k,filename\n5,2,s3://bucket/c/k=2/x.csv\n");
    let by_name = "SELECT sum(b1) AS a, sum(b2) AS b, count(*) AS n FROM read_json('s3://bucket/j/*.ndjson', \
                   union_by_name = true)";
    assert_eq!(run(by_name), "a,b,n\n3,5,3\n");
    let external = "CREATE EXTERNAL TABLE t (a BIGINT, k INT) STORED AS PARQUET PARTITIONED BY (k) LOCATION \
                    's3://bucket/t/'; SELECT k, sum(a) AS a FROM t GROUP BY k ORDER BY k; INSERT INTO t VALUES (1, 1)";
    let inserted = csv(&mut with_bucket(&place, &server, "test"), external);
    assert_eq!(inserted.out, "k,a\n1,6\n2,15\n3,28\n");
    assert!(inserted.error(1).contains("over files elsewhere"));
    let copied = csv(&mut with_bucket(&place, &server, "test"), "COPY (SELECT 1 AS a) TO 's3://bucket/x.parquet'");
    assert!(copied.error(1).contains("COPY TO 's3://bucket/x.parquet'"));
}

#[test]
fn what_a_server_refuses_is_said() {
    let (place, server) = (Place::new(), Server::new());
    let refused = |sql: &str| csv(&mut with_bucket(&place, &server, "test"), sql).error(1);
    server.put("bucket/a.csv", "a\n1\n", Way::Usual);
    server.put("gone.csv", "a\n", Way::Refused(410));
    server.put("secret.csv", "a\n", Way::Refused(401));
    let at = |path: &str| server.url(path);
    let from = |path: &str| format!("SELECT * FROM '{path}'");
    assert_eq!(refused(&from(&at("no.csv"))), format!("FILE-001 {}: no such file or folder", at("no.csv")));
    assert_eq!(refused(&from("s3://bucket/no.csv")), "FILE-001 s3://bucket/no.csv: no such file or folder");
    let none = refused(&from("s3://bucket/no/*.csv"));
    assert_eq!(none, "FILE-005 s3://bucket/no/*.csv: no file matches this pattern");
    let bucket = refused(&from("s3://nobucket/*.csv"));
    assert_eq!(bucket, "FILE-010 s3://nobucket/*.csv: there is no such bucket");
    assert!(
        refused(&from(&at("gone.csv"))).starts_with(&format!("FILE-010 {}: the server answers 410", at("gone.csv")))
    );
    let secret = refused(&from(&at("secret.csv?signature=1")));
    assert!(secret.starts_with(&format!("FILE-010 {}: the server answers 401", at("secret.csv"))), "{secret}");
    assert!(!secret.contains("signature"), "{secret}");
    let list = refused(&from(&at("*.csv")));
    assert!(list.starts_with("FILE-005") && list.contains("a web server does not list its files"), "{list}");
    let unknown = refused(&from(&at("x.exe")));
    assert!(unknown.starts_with("FILE-001"), "{unknown}");
    server.put("x.exe", "?", Way::Usual);
    assert!(refused(&from(&at("x.exe"))).starts_with(&format!("FILE-002 {}: the extension '.exe'", at("x.exe"))));
    server.put("bad.csv", "a,b\n1,2\n3\n", Way::Usual);
    assert!(refused(&from(&at("bad.csv"))).contains(&format!("{}, line 3", at("bad.csv"))));
    server.put("bad.parquet", "this is no Parquet file", Way::Usual);
    assert!(refused(&from(&at("bad.parquet"))).starts_with("FILE-003"));

    let wrong = csv(&mut with_bucket(&place, &server, "other"), &from("s3://bucket/a.csv")).error(1);
    assert!(wrong.starts_with("FILE-010 s3://bucket/a.csv: the server answers 403"), "{wrong}");
    assert!(wrong.contains("AWS_ACCESS_KEY_ID"), "{wrong}");
    let secure = csv(with_bucket(&place, &server, "test").env_remove("AWS_ALLOW_HTTP"), &from("s3://bucket/a.csv"));
    assert!(secure.error(1).contains("AWS_ALLOW_HTTP=true"));
    server.be_public();
    let mut public = with_bucket(&place, &server, "other");
    public.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").env("AWS_SKIP_SIGNATURE", "true");
    assert_eq!(csv(&mut public, &from("s3://bucket/a.csv")).ok(), "a\n1\n");

    // Nobody listens there any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = refused(&from(&format!("http://127.0.0.1:{port}/a.csv")));
    assert!(refused.starts_with(&format!("FILE-010 http://127.0.0.1:{port}/a.csv: ")), "{refused}");
    assert!(refused.contains("onnection refused"), "{refused}");
}

#[test]
fn a_timeout_ends_a_request() {
    let (place, server) = (Place::new(), Server::new());
    let query = "SELECT value AS a FROM generate_series(1, 1000)";
    let parquet = std::fs::read(place.copy(query, "a.parquet")).unwrap();
    server.put("a.csv", "a\n1\n2\n", Way::Stuck);
    server.put("a.parquet", parquet, Way::Stuck);
    for name in ["a.csv", "a.parquet"] {
        let sql = format!("SET warpcube.timeout = '700ms'; SELECT sum(a) FROM '{}'", server.url(name));
        assert!(place.error(&sql).starts_with("SQL-008 timed out"), "{name}");
    }
}

#[test]
fn changed_files_are_read_anew() {
    let (place, server) = (Place::new(), Server::new());
    let parquet = |value: u32| std::fs::read(place.copy(&format!("SELECT {value} AS a"), "a.parquet")).unwrap();
    let text = |value: u32| format!("a\n{value}\n").into_bytes();
    for (name, way) in [
        ("tagged.parquet", Way::Usual),
        ("tagged.csv", Way::Usual),
        ("untold.parquet", Way::Untold),
        ("untold.csv", Way::Untold),
        ("whole.parquet", Way::Whole),
    ] {
        let (url, is_parquet) = (server.url(name), name.ends_with("parquet"));
        let content = |value: u32| if is_parquet { parquet(value) } else { text(value) };
        server.put(name, content(1), way);
        let mut session = Dialogue::with(place.command());
        let format = if is_parquet { "PARQUET" } else { "CSV" };
        session.ask(&format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{url}'"));
        session.ask(&format!("CREATE VIEW v AS SELECT * FROM '{url}'"));
        session.ask("PREPARE p AS SELECT * FROM t");
        session.ask(&format!("PREPARE q AS SELECT * FROM '{url}'"));
        let direct = format!("SELECT * FROM '{url}'");
        let all =
            ["SELECT * FROM t", &direct, "SELECT * FROM v", "EXECUTE p", "EXECUTE q", "SELECT max(a) AS a FROM t"];
        // Of one size and one time.
        for value in [1, 2, 3] {
            server.put(name, content(value), way);
            for sql in all {
                assert_eq!(session.ask(sql), format!("a {value}"), "{name}: {sql}");
            }
        }
        server.remove(name);
        assert_eq!(session.ask("SELECT * FROM t"), "", "{name}");
        server.put(name, content(4), way);
        assert_eq!(session.ask("SELECT * FROM t"), "a 4", "{name}");
        let errors = session.errors();
        assert!(errors.iter().any(|error| error.contains(&format!("FILE-001 {url}"))), "{errors:?}");
    }
}

#[test]
fn a_bucket_is_listed_anew() {
    let (place, server) = (Place::new(), Server::new());
    let file = |rows: u32| {
        let query = format!("SELECT value AS a FROM generate_series(1, {rows})");
        std::fs::read(place.copy(&query, "a.parquet")).unwrap()
    };
    server.put("bucket/t/1.parquet", file(1), Way::Usual);
    let mut session = Dialogue::with(with_bucket(&place, &server, "test"));
    session.ask("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 's3://bucket/t/'");
    session.ask("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION 's3://bucket/t/*.parquet'");
    for (added, rows) in [(1, 1), (2, 3), (3, 6)] {
        server.put(&format!("bucket/t/{added}.parquet"), file(added), Way::Usual);
        for from in ["t", "p", "'s3://bucket/t/*.parquet'"] {
            assert_eq!(session.ask(&format!("SELECT count(*) AS n FROM {from}")), format!("n {rows}"), "{from}");
        }
    }
    server.remove("bucket/t/2.parquet");
    assert_eq!(session.ask("SELECT count(*) AS n FROM t"), "n 4");
    assert_eq!(session.errors(), Vec::<String>::new());
}

#[test]
fn columns_of_files_elsewhere_come_to_the_device_and_leave_with_their_files() {
    let (place, server) = (Place::new(), Server::new());
    let file = |factor: u32| {
        let query = format!("SELECT value % 4 AS k, value * {factor} AS a FROM generate_series(1, 1000)");
        std::fs::read(place.copy(&query, "a.parquet")).unwrap()
    };
    server.put("a.parquet", file(1), Way::Usual);
    let mut command = place.emulated();
    command.args(["--device", "emulated", "--set", "warpcube.placement=cuda"]);
    let mut session = Dialogue::with(command);
    session.ask(&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", server.url("a.parquet")));
    for factor in [1, 2] {
        server.put("a.parquet", file(factor), Way::Usual);
        let sums = session.ask("SELECT k, sum(a) AS s FROM t GROUP BY k ORDER BY k");
        let sum = |k: u32| (1..=1000).filter(|value| value % 4 == k).sum::<u32>() * factor;
        let expected: Vec<String> = (0..4).map(|k| format!("{k},{}", sum(k))).collect();
        assert_eq!(sums, format!("k,s {}", expected.join(" ")));
        let loaded = session.ask("SELECT 1 AS a; SHOW DEVICE TABLES");
        assert!(loaded.contains(",a,") && loaded.contains(",k,"), "{loaded}");
    }
    assert_eq!(session.errors(), Vec::<String>::new());
}

#[test]
fn a_kept_catalog_has_tables_over_files_elsewhere() {
    let (place, server) = (Place::new(), Server::new());
    let parquet = std::fs::read(place.copy("SELECT 1 AS a", "a.parquet")).unwrap();
    server.put("bucket/t/a.parquet", parquet, Way::Usual);
    server.put("b.csv", "b\n2\n", Way::Usual);
    let in_catalog = |sql: &str| csv(with_bucket(&place, &server, "test").arg("kept/"), sql).ok();
    in_catalog(&format!(
        "CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION 's3://bucket/t/'; \
         CREATE EXTERNAL TABLE b STORED AS CSV LOCATION '{}'; CREATE VIEW v AS SELECT * FROM a, b",
        server.url("b.csv")
    ));
    assert_eq!(in_catalog("SELECT * FROM v"), "a,b\n1,2\n");
    server.put("b.csv", "b\n3\n", Way::Usual);
    assert_eq!(in_catalog("SELECT * FROM v"), "a,b\n1,3\n");
}
