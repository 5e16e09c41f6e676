//! Text files whose columns and dialect are told by all of the file, and not by its first lines alone.

use std::path::Path;

use warpcube_sql::Connection;

use crate::support::{cpu, emulated, one};

fn write(path: &Path, text: &str) -> String {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

/// Lines for ids below a number, then others.
fn lines(ids: usize, line: impl Fn(usize) -> String, others: &str) -> String {
    (0..ids).map(line).collect::<String>() + others
}

async fn error(session: &Connection, sql: &str) -> String {
    session.collect(sql).await.map(|batches| format!("{batches:?}")).expect_err(sql).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_json_are_not_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let record = |id| format!("{{\"id\":{id},\"v\":7,\"o\":{{\"x\":[1]}}}}\n");
    let late = lines(1500, record, "{\"id\":1500,\"v\":1.5,\"o\":{\"x\":[1,2.5]},\"w\":\"new\"}\n");
    let ndjson = write(&at("late.json"), &late);
    let array = format!("[{}]", late.trim_end().replace('\n', ",\n"));
    let array = write(&at("array.json"), &array);
    write(&at("k/k=1/a.json"), &lines(1500, record, ""));
    write(&at("k/k=2/b.json"), "{\"id\":1,\"v\":0.25}\n");
    let keys = format!("{}/", at("k").display());
    for session in [cpu(), emulated()] {
        for place in [&ndjson, &array] {
            let sql = format!("SELECT count(*), sum(v), count(w) FROM '{place}'");
            assert_eq!(one(&session, &sql).await.0, "1501 10501.5 1", "{place}");
        }
        assert_eq!(one(&session, &format!("SELECT sum(v) FROM '{keys}' WHERE k = 2")).await.0, "0.25");
        let sql = format!("SELECT sum(o['x'][2]) FROM '{ndjson}'");
        assert_eq!(one(&session, &sql).await.0, "2.5");
    }
    let session = cpu();
    for (columns, options, column, number) in [
        ("(id BIGINT, v BIGINT)", "", "v", "1.5"),
        ("(id BIGINT, v INT)", "", "v", "1.5"),
        ("(v DOUBLE, o STRUCT<x INT[]>)", "", "o.x[]", "2.5"),
        ("", "OPTIONS (format.schema_infer_max_rec 100)", "v", "1.5"),
    ] {
        let create =
            format!("CREATE OR REPLACE EXTERNAL TABLE t {columns} STORED AS JSON {options} LOCATION '{ndjson}'");
        let found = error(&session, &create).await;
        let expected = format!("FILE-004 {ndjson}, line 1501, column '{column}': {number} is no whole number");
        assert!(found.starts_with(&expected), "{create}\n{found}");
    }
    let create = format!("CREATE EXTERNAL TABLE d (v DECIMAL(10, 1)) STORED AS JSON LOCATION '{ndjson}'");
    session.collect(&create).await.unwrap();
    assert_eq!(one(&session, "SELECT sum(v) FROM d").await.0, "10501.5");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_other_kinds_have_line_column_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let record = |id| format!("{{\"id\":{id},\"v\":7}}\n");
    let session = cpu();
    for (name, value) in [("bool", "true"), ("text", "\"x\""), ("object", "{\"a\":1}")] {
        let place = write(&at(&format!("{name}.json")), &lines(1500, record, &format!("{{\"id\":1,\"v\":{value}}}\n")));
        let found = error(&session, &format!("SELECT sum(v) FROM '{place}'")).await;
        let expected = format!("FILE-004 {place}, line 1501, column 'v': ");
        assert!(found.starts_with(&expected) && found.contains("CREATE EXTERNAL TABLE"), "{found}");
        // What is not read is no matter.
        assert_eq!(one(&session, &format!("SELECT max(id) FROM '{place}'")).await.0, "1499");
    }
    // An array on one line, and one whose end is missing.
    let place = write(&at("array.json"), "[{\"v\":7},{\"v\":{\"a\":1}}]");
    let found = error(&session, &format!("SELECT sum(v) FROM '{place}'")).await;
    assert!(
        found.starts_with(&format!("FILE-004 {place}, line 1, column 'v': expected a number, found {{")),
        "{found}"
    );
    let place = write(&at("cut.json"), "[{\"v\":7},\n{\"v\":8}");
    let found = error(&session, &format!("SELECT sum(v) FROM '{place}'")).await;
    assert!(found.starts_with(&format!("FILE-003 {place}: the array that it holds has no end")), "{found}");
    // Digits between quotes are numbers beside numbers.
    let place = write(&at("digits.json"), &lines(1500, record, "{\"id\":1,\"v\":\"8\"}\n"));
    assert_eq!(one(&session, &format!("SELECT sum(v) FROM '{place}'")).await.0, "10508");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_of_csv_are_those_of_all_lines() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let late = write(&at("late.csv"), &format!("id,price\n{}", lines(3000, |id| format!("{id},3\n"), "3000,2.5\n")));
    let codes = write(&at("codes.csv"), "zip,name\n01067,Dresden\n80331,Munich\n");
    write(&at("k/k=1/a.csv"), "zip,n\n1,1\n");
    write(&at("k/k=2/b.csv"), "zip,n\n01067,2.5\n");
    for session in [cpu(), emulated()] {
        let sql = format!("SELECT count(*), sum(price) FROM '{late}'");
        assert_eq!(one(&session, &sql).await.0, "3001 9002.5");
        let sql = format!("SELECT min(zip), max(zip) FROM '{codes}'");
        assert_eq!(one(&session, &sql).await.0, "01067 80331");
        let sql = format!("SELECT min(zip), sum(n), max(k) FROM '{}/'", at("k").display());
        assert_eq!(one(&session, &sql).await.0, "01067 3.5 2");
    }
    // A file too large to be looked at in whole, with another kind of number in its middle.
    let line = |id| format!("{id},{}\n", "x".repeat(40));
    let middle: String = (0..4000).map(|id| format!("{id}.5,y\n")).collect();
    let text = lines(120_000, line, "") + &middle + &lines(120_000, line, "");
    let large = write(&at("large.csv"), &format!("n,t\n{text}"));
    assert_eq!(one(&cpu(), &format!("SELECT count(*), min(n) FROM '{large}'")).await.0, "244000 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dialects_are_told_by_lines_and_options_win() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let session = cpu();
    for (name, text, sql, expected) in [
        ("none.csv", "1,x\n2,y\n", "SELECT sum(column_1), max(column_2)", "3 y"),
        ("pipes.csv", "a|b\n1|2,5\n3|4\n", "SELECT sum(a), max(b)", "4 4"),
        ("semicolons.csv", "a;b\n1,5;2\n2,5;3\n", "SELECT max(a), sum(b)", "2,5 5"),
        ("single.csv", "a,b\n'x,1',2\n'y',3\n", "SELECT min(a), sum(b)", "x,1 5"),
        ("text.csv", "a,b\nx,y\n", "SELECT max(a), count(*)", "x 1"),
        ("one.csv", "a\nx; y\nz\n", "SELECT max(a), count(*)", "z 2"),
        ("tabs.tsv", "1\tx\n2\ty\n", "SELECT sum(column_1), max(column_2)", "3 y"),
    ] {
        let place = write(&at(name), text);
        assert_eq!(one(&session, &format!("{sql} FROM '{place}'")).await.0, expected, "{name}");
    }
    for (name, options, sql, expected) in [
        ("none", "format.has_header true", "SELECT count(*), sum(\"1\") FROM t", "1 2"),
        ("text", "format.has_header false", "SELECT count(*), max(column_1) FROM t", "2 x"),
        ("pipes", "format.delimiter ','", "SELECT count(*) FROM t WHERE \"a|b\" IS NOT NULL", ""),
    ] {
        let place = at(&format!("{name}.csv")).display().to_string();
        let create = format!("CREATE OR REPLACE EXTERNAL TABLE t STORED AS CSV LOCATION '{place}' OPTIONS ({options})");
        match expected.is_empty() {
            true => {
                let found = error(&session, &create).await;
                assert!(found.starts_with("FILE-004") && found.contains("(format.delimiter '|')"), "{found}");
            }
            false => {
                session.collect(&create).await.unwrap();
                assert_eq!(one(&session, sql).await.0, expected, "{create}");
            }
        }
    }
    let sniff = |name: &str| {
        let select = "SELECT delimiter, quote, hasheader, columns, prompt LIKE '%header = true, %'";
        format!("{select} FROM sniff_csv('{}')", at(name).display())
    };
    assert_eq!(
        one(&session, &sniff("pipes.csv")).await.0,
        "| \" true [{name: a, type: BIGINT}, {name: b, type: VARCHAR}] true"
    );
    assert_eq!(
        one(&session, &sniff("none.csv")).await.0,
        ", \" false [{name: column_1, type: BIGINT}, {name: column_2, type: VARCHAR}] false"
    );
    assert_eq!(
        one(&session, &sniff("single.csv")).await.0,
        ", ' true [{name: a, type: VARCHAR}, {name: b, type: BIGINT}] true"
    );
    write(&at("unlike/a.csv"), "a,b\n1,x\n");
    write(&at("unlike/b.csv"), "2,y\n3,z\n");
    let found = error(&session, &format!("SELECT * FROM '{}/'", at("unlike").display())).await;
    let expected = format!("FILE-002 {}: it has no header", at("unlike/b.csv").display());
    assert!(found.starts_with(&expected), "{found}");
    write(&at("mixed/a.csv"), "a,b\n1,x\n");
    write(&at("mixed/b.csv"), "a;b\n2;y\n");
    let found = error(&session, &format!("SELECT * FROM '{}/'", at("mixed").display())).await;
    let expected = format!("FILE-002 {}: it is written with delimiter ';'", at("mixed/b.csv").display());
    assert!(found.starts_with(&expected), "{found}");
    write(&at("swapped/a.csv"), "a,b\n1,x\n");
    write(&at("swapped/b.csv"), "b,a\n2,y\n");
    let found = error(&session, &format!("SELECT * FROM '{}/'", at("swapped").display())).await;
    let expected = format!("FILE-002 {}: its column 1 is 'b'", at("swapped/b.csv").display());
    assert!(found.starts_with(&expected), "{found}");
    write(&at("wider/a.csv"), "a,b\n1,x\n");
    write(&at("wider/b.csv"), "a,b,c\n2,y,z\n");
    let found = error(&session, &format!("SELECT * FROM '{}/'", at("wider").display())).await;
    assert!(found.contains("b.csv: it has 3 columns, and"), "{found}");
    // Lines that have a delimiter each, and not as many values.
    let place = write(&at("ragged.csv"), "a;b\n1,5;2\n2;3;4\n");
    let found = error(&session, &format!("SELECT * FROM '{place}'")).await;
    assert_eq!(found, format!("FILE-004 {place}, line 3: incorrect number of fields, expected 2 got 3"));
    // A file that is written anew is looked at anew.
    let place = write(&at("again.csv"), "1,x\n2,y\n");
    assert_eq!(one(&session, &format!("SELECT count(*), min(column_1) FROM '{place}'")).await.0, "2 1");
    write(&at("again.csv"), "n;t\n1;x\n2;y\n3;z\n");
    assert_eq!(one(&session, &format!("SELECT sum(n) FROM '{place}'")).await.0, "6");
}
