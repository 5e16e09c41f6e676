//! Results in every format, to the standard output and to files.

use crate::harness::Place;

const QUERY: &str = "SELECT * FROM (VALUES (1, 'a|b', 1.5), (2, NULL, NULL)) t(id, name, price) ORDER BY id";

fn formatted(format: &str, sql: &str) -> String {
    Place::new().run(&["--format", format, "-c", sql]).ok()
}

#[test]
fn text_formats() {
    assert_eq!(formatted("csv", QUERY), "id,name,price\n1,a|b,1.5\n2,,\n");
    assert_eq!(formatted("tsv", QUERY), "id\tname\tprice\n1\ta|b\t1.5\n2\t\t\n");
    let ndjson = "{\"id\":1,\"name\":\"a|b\",\"price\":1.5}\n{\"id\":2,\"name\":null,\"price\":null}\n";
    assert_eq!(formatted("ndjson", QUERY), ndjson);
    let json = "[{\"id\":1,\"name\":\"a|b\",\"price\":1.5},{\"id\":2,\"name\":null,\"price\":null}]\n";
    assert_eq!(formatted("json", QUERY), json);
}

#[test]
fn keys_of_maps_are_members_of_objects() {
    let query = "SELECT MAP {1: 'x', 2: NULL} AS m, [MAP {DATE '2024-01-01': {'k': MAP {true: 1}}}] AS l";
    let object = r#"{"m":{"1":"x","2":null},"l":[{"2024-01-01":{"k":{"true":1}}}]}"#;
    assert_eq!(formatted("ndjson", query), format!("{object}\n"));
    assert_eq!(formatted("json", query), format!("[{object}]\n"));
}

#[test]
fn formats_for_people() {
    let lines = "   id = 1\n name = a|b\nprice = 1.5\n\n   id = 2\n name = NULL\nprice = NULL\n";
    assert_eq!(formatted("line", QUERY), lines);
    let markdown = "| id | name | price |\n|---:|------|------:|\n|  1 | a\\|b |   1.5 |\n|  2 | NULL |  NULL |\n";
    assert_eq!(formatted("markdown", QUERY), markdown);
    let rows = "│ id │ name │ price │\n╞════╪══════╪═══════╡\n│  1 │ a|b  │   1.5 │\n│  2 │ NULL │  NULL │\n";
    assert_eq!(formatted("box", QUERY), format!("┌────┬──────┬───────┐\n{rows}└────┴──────┴───────┘\n"));
    assert_eq!(formatted("list", QUERY), "id|name|price\n1|a|b|1.5\n2|NULL|NULL\n");
    assert_eq!(formatted("line", "SELECT E'one\\ntwo' AS a, 3 AS bcd"), "  a = one\n      two\nbcd = 3\n");
    assert_eq!(formatted("markdown", "SELECT E'one\\ntwo' AS a"), "| a          |\n|------------|\n| one<br>two |\n");
    assert_eq!(formatted("line", "SELECT 1 AS a WHERE false"), "");
}

#[test]
fn formats_have_the_names_of_other_programs() {
    for (name, other) in [("ndjson", "jsonlines"), ("tsv", "tabs"), ("table", "duckbox"), ("markdown", "md")] {
        assert_eq!(formatted(name, QUERY), formatted(other, QUERY), "{other}");
    }
    let place = Place::new();
    place.run(&["-c", QUERY, "-o", "x.md"]).ok();
    assert!(place.read("x.md").starts_with(b"| id | name |"));
    let help = place.run(&["--help"]).ok();
    assert!(help.contains("table, box, line, markdown, csv, tsv, list, json, ndjson, parquet or arrow"), "{help}");
}

#[test]
fn null_and_lines_are_settings_of_tables() {
    let place = Place::new();
    let table = place.run(&["--set", "null=-", "-c", QUERY]).ok();
    assert!(table.contains("│  2 ┆ -    ┆     - │"), "{table}");
    let lines = place.run(&["--set", "expanded=on", "--set", "null=", "-c", QUERY]).ok();
    assert!(lines.ends_with("   id = 2\n name = \nprice = \n"), "{lines}");
    assert_eq!(place.run(&["--set", "expanded=on", "--format", "csv", "-c", "SELECT 1 AS a"]).ok(), "a\n1\n");
}

#[test]
fn json_refuses_what_it_has_no_word_for() {
    let place = Place::new();
    for format in ["json", "ndjson"] {
        for (query, expected) in [
            ("SELECT 1 AS a, 'NaN'::double AS x", "column 'x' has NaN or an infinity, which JSON has no number for"),
            (
                "SELECT value, [1.5e0 / (value - 3)] AS l FROM generate_series(1, 5)",
                "column 'l' has NaN or an infinity",
            ),
            ("SELECT 1 AS a, 2 AS a", "two columns of the JSON result would be named 'a'; name one otherwise with AS"),
        ] {
            let error = place.run(&["--format", format, "-c", query]).error(1);
            assert!(error.starts_with("CLI-002 cannot write the standard output: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        place.run(&["--format", format, "-c", "SELECT 1 AS a, 2 AS a WHERE false", "-o", "none.json"]).error(1);
        assert!(!place.path("none.json").exists());
    }
    // The text of an error is no value, in no format.
    for format in ["table", "json", "ndjson", "csv", "tsv"] {
        for query in ["to_timestamp_seconds(9007199254740993)", "[to_timestamp_seconds(9007199254740993)]"] {
            let output = place.run(&["--format", format, "-c", &format!("SELECT 1 AS a, {query} AS x")]);
            let error = output.error(1);
            assert!(error.starts_with("CLI-002 cannot write the standard output: "), "{format}: {error}");
        }
    }
    assert_eq!(formatted("ndjson", "SELECT 'NaN'::double::text AS x"), "{\"x\":\"NaN\"}\n");
    assert_eq!(formatted("csv", "SELECT 1 AS a, 'NaN'::double AS a"), "a,a\n1,NaN\n");
}

#[test]
fn empty_results_keep_their_shape() {
    let query = "SELECT 1 AS a WHERE false";
    assert_eq!(formatted("csv", query), "a\n");
    assert_eq!(formatted("json", query), "[]\n");
    assert_eq!(formatted("ndjson", query), "");
    assert!(formatted("table", query).contains("│ a │"));
    let place = Place::new();
    place.run(&["-c", query, "-o", "empty.parquet"]).ok();
    assert_eq!(place.csv("SELECT count(*) AS n FROM 'empty.parquet'"), "n\n0\n");
}

#[test]
fn tables_stand_in_columns_and_are_whole_in_a_pipe() {
    let table = formatted("table", "SELECT value AS n FROM generate_series(1, 300)");
    assert_eq!(table.lines().filter(|line| line.starts_with('│')).count(), 301);
    assert!(!table.contains("more rows"));
    let table = formatted("table", QUERY);
    assert!(table.contains("│  1 ┆ a|b  ┆   1.5 │"), "{table}");
    assert!(table.contains("│  2 ┆ NULL ┆  NULL │"), "{table}");
}

#[test]
fn plans_are_text() {
    let plan = formatted("table", "EXPLAIN SELECT value FROM generate_series(1, 9) WHERE value > 4");
    assert!(plan.starts_with("plan:\n  rows  place  operator\n"), "{plan}");
    assert!(plan.contains("\nplacement:\n  CPU: all of it: ") && !plan.contains('│'), "{plan}");
    let plans = formatted("table", "EXPLAIN VERBOSE SELECT 1 AS a");
    assert!(plans.contains("\nlogical_plan:\n  Projection: Int64(1) AS a\n    EmptyRelation"), "{plans}");
}

#[test]
fn files_are_written_by_their_extension_and_read_back() {
    let place = Place::new();
    for name in ["r.parquet", "r.arrow", "r.csv", "r.tsv", "r.json", "r.ndjson"] {
        assert_eq!(place.run(&["-c", QUERY, "--output", name]).ok(), "");
        assert_eq!(
            place.csv(&format!("SELECT * FROM '{name}' ORDER BY id")),
            "id,name,price\n1,a|b,1.5\n2,,\n",
            "{name}"
        );
    }
    place.run(&["-c", QUERY, "--output", "odd.dat", "--format", "ndjson"]).ok();
    assert_eq!(place.read("odd.dat").iter().filter(|byte| **byte == b'\n').count(), 2);
}

#[test]
fn streams_of_arrow_and_parquet_go_through_pipes() {
    let place = Place::new();
    for (format, name) in [("parquet", "piped.parquet"), ("arrow", "piped.arrow")] {
        let output = place.command().args(["--format", format, "-c", QUERY]).output().unwrap();
        place.write(name, &output.stdout);
        assert_eq!(place.csv(&format!("SELECT count(*) AS n FROM '{name}'")), "n\n2\n", "{format}");
    }
}

#[test]
fn a_failed_statement_leaves_the_file_that_was_there() {
    let place = Place::new();
    place.write("kept.csv", "old\n");
    let error =
        place.run(&["-c", "SELECT 1 / (value - 9000) AS x FROM generate_series(1, 9000)", "-o", "kept.csv"]).error(1);
    assert!(error.starts_with("SQL-006 "), "{error}");
    assert_eq!(place.read("kept.csv"), b"old\n");
    let left: Vec<_> = std::fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("staging")), "{left:?}");
}

#[test]
fn a_file_takes_the_result_and_no_counts() {
    let place = Place::new();
    let sql = "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); COPY t TO 'copy.csv'; SELECT sum(a) AS s FROM t";
    assert_eq!(place.run(&["-c", sql, "-o", "x.csv"]).ok(), "");
    assert_eq!(place.read("x.csv"), b"s\n3\n");
}

#[test]
fn outputs_that_cannot_be() {
    let place = Place::new();
    let several = place.run(&["-c", "SELECT 1; SELECT 2", "-o", "x.csv"]).error(1);
    assert!(several.starts_with("CLI-002 cannot write x.csv: it holds a result already"), "{several}");
    let unknown = place.run(&["-c", "SELECT 1", "-o", "x.doc"]).error(1);
    assert!(unknown.contains("'.doc' names no format"), "{unknown}");
    let folder = place.run(&["-c", "SELECT 1", "-o", "no/such/x.csv"]).error(1);
    assert!(folder.starts_with("CLI-002 cannot write no/such/x.csv: "), "{folder}");
    let format = place.run(&["--format", "xml", "-c", "SELECT 1"]).error(2);
    assert!(format.contains("warpcube.format = 'xml' (from flag --format): expected 'auto', 'table'"), "{format}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_warpcube");
    let script = format!(
        "'{program}' --format csv -c 'SELECT * FROM generate_series(1, 3000000)' | head -n 1; echo ${{PIPESTATUS[0]}}"
    );
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(place.path(".")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "generate_series\n0\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
