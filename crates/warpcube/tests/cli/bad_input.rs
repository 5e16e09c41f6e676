//! Bad files and bad SQL: one clear line with a code, and a session that goes on.

use crate::harness::{Place, text};

#[test]
fn files_that_are_not_there() {
    let place = Place::new();
    place.write("sales.csv", "a\n1\n");
    let error = place.error("SELECT * FROM 'slaes.csv'");
    assert_eq!(error, "FILE-001 slaes.csv: no such file or folder; did you mean 'sales.csv'?");
    let error = place.error("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'none.parquet'");
    assert_eq!(error, "FILE-001 none.parquet: no such file or folder");
    let error = place.error("SELECT * FROM 'none*.csv'");
    assert!(error.starts_with("FILE-005 none*.csv: "), "{error}");
    let error = place.error("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'none*.csv'");
    assert_eq!(error, "FILE-005 none*.csv: no file matches this pattern");
}

#[test]
fn folders_without_data() {
    let place = Place::new();
    place.write("mixed/x.csv", "a\n1\n");
    std::fs::create_dir(place.path("empty")).unwrap();
    let error = place.error("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'mixed'");
    assert_eq!(error, "FILE-005 mixed: no parquet file in this folder (found 'x.csv' and the like)");
    let error = place.error("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'empty'");
    assert_eq!(error, "FILE-005 empty: no parquet file in this folder (it is empty)");
    assert!(place.error("SELECT * FROM 'empty/'").starts_with("FILE-005 empty/: there is no file to read here"));
}

#[test]
fn wrong_extensions_and_formats() {
    let place = Place::new();
    place.write("a.xlsx", "x");
    place.write("plain", "x");
    place.write("a.csv", "a,b\n1,2\n");
    place.write("really.parquet", "a,b\n1,2\n");
    let error = place.error("SELECT * FROM 'a.xlsx'");
    assert!(
        error.starts_with("FILE-002 a.xlsx: the extension '.xlsx' is not known; supported are .parquet"),
        "{error}"
    );
    let error = place.error("SELECT * FROM './plain'");
    assert!(error.starts_with("FILE-002 ") && error.contains("/plain: it has no extension"), "{error}");
    let error = place.error("SELECT * FROM 'really.parquet'");
    assert!(error.starts_with("FILE-003 really.parquet: not a Parquet file"), "{error}");
    let error = place.error("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'a.csv'");
    assert!(error.starts_with("FILE-003 a.csv: not a Parquet file"), "{error}");
    let error = place.error("CREATE EXTERNAL TABLE t STORED AS EXCEL LOCATION 'a.csv'");
    assert!(error.starts_with("FILE-002 a.csv: STORED AS EXCEL is not known; it takes PARQUET"), "{error}");
}

#[test]
fn parquet_files_that_are_cut_off_or_damaged() {
    let place = Place::new();
    let query = "SELECT value AS a, value * 31 % 1000 AS b FROM generate_series(1, 100000)";
    let whole = std::fs::read(place.copy(query, "whole.parquet")).unwrap();
    for (name, length) in [("half.parquet", whole.len() / 2), ("tiny.parquet", 3), ("none.parquet", 0)] {
        place.write(name, &whole[..length]);
        let error = place.error(&format!("SELECT sum(b) FROM '{name}'"));
        assert!(error.starts_with(&format!("FILE-003 {name}: not a Parquet file, or cut off: ")), "{error}");
    }
    // The footer is whole and the pages are not.
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[4..middle].fill(0xA5);
    let path = place.write("damaged/part.parquet", damaged);
    place.write("damaged/good.parquet", &whole);
    let error = place.error("SELECT sum(b), sum(a) FROM 'damaged'");
    assert!(error.starts_with("FILE-003 ") && error.contains(&text(&path)), "{error}");
}

/// A Parquet file whose footer says that its only column has so few bytes that readers panic over it.
fn cut_short(place: &Place) -> std::path::PathBuf {
    use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter};
    let path = place.copy("SELECT value AS a FROM generate_series(1, 5000)", "short.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let told = ParquetMetaDataReader::new().parse_and_finish(&std::fs::File::open(&path).unwrap()).unwrap();
    let group = told.row_group(0).clone();
    let column = group.column(0).clone().into_builder().set_total_compressed_size(20).build().unwrap();
    let group = group.into_builder().set_column_metadata(vec![column]).build().unwrap();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap());
    bytes.truncate(bytes.len() - 8 - footer as usize);
    let told = ParquetMetaData::new(told.file_metadata().clone(), vec![group]);
    ParquetMetaDataWriter::new(&mut bytes, &told).finish().unwrap();
    place.write("short.parquet", bytes)
}

#[test]
fn what_panics_over_a_file_is_one_line_too() {
    let place = Place::new();
    cut_short(&place);
    let script = "SELECT sum(a) FROM 'short.parquet';\nSELECT 'still here' AS a;";
    let ran = place.input(&["--format", "csv", "--continue-on-error"], script);
    assert_eq!(ran.out, "a\nstill here\n");
    let error = ran.error(1);
    assert!(error.starts_with("stdin:1: FILE-003 ") && error.contains("short.parquet: "), "{error}");
}

#[test]
fn csv_rows_that_do_not_fit() {
    let place = Place::new();
    place.write("ragged.csv", "a,b\n1,2\n3\n");
    let error = place.error("SELECT * FROM 'ragged.csv'");
    assert_eq!(error, "FILE-004 ragged.csv, line 3: incorrect number of fields, expected 2 got 1");

    // Past the rows that types are inferred from, in the second file of a folder.
    let rows = |last: &str| (0..25_000).map(|row| format!("{row},{}\n", row * 2)).collect::<String>() + last;
    place.write("many/1.csv", format!("a,price\n{}", rows("")));
    let second = place.write("many/2.csv", format!("a,price\n{}", rows("25000,cheap\n")));
    let error = place.error("SELECT sum(price) FROM 'many'");
    let expected = "line 25002, column 'price': Error while parsing value 'cheap' as type 'Int64'; declare the column";
    assert!(error.starts_with(&format!("FILE-004 {}, {expected}", text(&second))), "{error}");

    let late = place.write("late.csv", format!("a,price\n{}", rows("1,2,3\n")));
    let error = place.error("SELECT sum(price) FROM 'late.csv'");
    let expected = "line 25002: incorrect number of fields, expected 2 got 3";
    assert_eq!(error, format!("FILE-004 {}, {expected}", text(&late)));

    // A text among the rows that types are told by makes a column of texts.
    let early = (0..20_000).map(|row| format!("{row},{row}\n")).collect::<String>();
    place.write("early.csv", format!("a,b\n{early}20000,cheap\n20001,1\n"));
    assert_eq!(place.csv("SELECT max(b) FROM 'early.csv'"), "max(b)\ncheap\n");

    place.write("declared.csv", "a,b\n1,x\n");
    let sql = "CREATE EXTERNAL TABLE t (a INT, b INT) STORED AS CSV LOCATION 'declared.csv'; SELECT b FROM t";
    let error = place.error(sql);
    assert!(
        error.contains("declared.csv, line 2, column 'b': Error while parsing value 'x' as type 'Int32'"),
        "{error}"
    );
}

#[test]
fn csv_columns_of_one_name() {
    let place = Place::new();
    place.write("twice.csv", "id,\"a,b\",id\n1,2,3\n");
    assert_eq!(place.csv("SELECT * FROM 'twice.csv'"), "id,\"a,b\",id_1\n1,2,3\n");
    let sql = "CREATE EXTERNAL TABLE t (a INT, b INT, c INT) STORED AS CSV LOCATION 'twice.csv'; SELECT c FROM t";
    assert_eq!(place.csv(sql), "c\n3\n");
}

#[test]
fn json_rows_that_are_none() {
    let place = Place::new();
    place.write("bad.ndjson", "{\"a\":1}\n{\"a\":\n");
    let error = place.error("SELECT * FROM 'bad.ndjson'");
    assert!(error.starts_with("FILE-004 bad.ndjson, line 2: "), "{error}");
}

#[test]
fn unknown_names_come_with_the_nearest() {
    let place = Place::new();
    let with = |sql: &str| place.error(&format!("CREATE TABLE lineorder AS SELECT 1 AS lo_quantity; {sql}"));
    assert_eq!(with("SELECT * FROM linorder"), "SQL-002 unknown table 'linorder'; did you mean 'lineorder'?");
    assert_eq!(with("SELECT * FROM warehouse"), "SQL-002 unknown table 'warehouse'");
    assert_eq!(
        with("SELECT lo_quantty FROM lineorder"),
        "SQL-003 unknown column 'lo_quantty'; did you mean 'lo_quantity'?"
    );
    assert_eq!(
        with("SELECT x.lo_quantity FROM lineorder AS l"),
        "SQL-003 unknown column 'x.lo_quantity'; did you mean 'l.lo_quantity'?"
    );
    assert_eq!(with("SELECT summ(lo_quantity) FROM lineorder"), "SQL-004 unknown function 'summ'; did you mean 'sum'?");
    assert_eq!(
        with("SELECT date_dif('day', now(), now())"),
        "SQL-004 unknown function 'date_dif'; did you mean 'date_diff'?"
    );
    // What is as far as any other name is not suggested.
    assert_eq!(with("SELECT nosuch(lo_quantity) FROM lineorder"), "SQL-004 unknown function 'nosuch'");
    assert_eq!(with("CREATE TABLE t (a INT); SELECT b FROM t"), "SQL-003 unknown column 'b'");
    assert_eq!(with("CREATE TABLE t (ab INT); SELECT t.cd FROM t"), "SQL-003 unknown column 't.cd'");
    assert_eq!(with("DROP TABLE linorder"), "SQL-002 unknown table 'linorder'; did you mean 'lineorder'?");
    assert_eq!(with("DROP VIEW linorder"), "SQL-002 unknown table 'linorder'; did you mean 'lineorder'?");
    assert_eq!(with("INSERT INTO linorder VALUES (1)"), "SQL-002 unknown table 'linorder'; did you mean 'lineorder'?");
    assert_eq!(with("DESCRIBE linorder"), "SQL-002 unknown table 'linorder'; did you mean 'lineorder'?");
}

#[test]
fn sql_that_is_none_or_makes_no_sense() {
    let place = Place::new();
    assert!(place.error("SELEC 1").starts_with("SQL-001 syntax error: "));
    assert!(place.error("SELECT 'open").starts_with("SQL-001 syntax error: "));
    assert!(place.error("SELECT 1 +").starts_with("SQL-001 syntax error: "));
    assert!(place.error("SELECT 1 + interval '1 day'").starts_with("SQL-00"));
    assert!(place.error("SELECT a FROM (VALUES (1)) x(a), (VALUES (1)) y(a)").starts_with("SQL-004 "));
    assert!(place.error("BEGIN").starts_with("SQL-005 not supported: "));
    assert_eq!(place.error("SET ROLE x"), "SQL-005 not supported: SET ROLE x");
}

#[test]
fn errors_speak_sql() {
    let place = Place::new();
    for (sql, expected) in [
        ("SELECT x IS NORMALIZED FROM (SELECT 'a' x)", "SQL-005 not supported: expression IS NORMALIZED of x"),
        ("SELECT 'a' COLLATE \"C\"", "SQL-005 not supported: COLLATE \"C\""),
        ("SELECT * FROM JSON_TABLE('[]', '$' COLUMNS(a INT PATH '$'))", "SQL-005 not supported: JSON_TABLE"),
        ("SET x = (SELECT 1)", "SQL-004 not a value: a subquery"),
        ("SELECT @@version", "SQL-004 unknown variable '@@version'"),
        ("SELECT lag(a) FROM (SELECT 1 a)", "SQL-004 lag is a window function and needs OVER (…)"),
        (
            "SELECT a FROM (SELECT 1 a) WHERE row_number() OVER () = 1",
            "SQL-005 not supported: window functions in WHERE, HAVING, ON and GROUP BY; compute them in a subquery",
        ),
        ("SELECT coalesce()", "SQL-004 coalesce() does not exist; the function takes other arguments"),
        ("COMMENT ON TABLE t IS 'x'", "SQL-005 not supported: COMMENT ON TABLE t IS 'x'"),
        ("SELECT * FROM generate_series(1, 'x')", "SQL-004 Argument #2 must be an INTEGER or NULL, got 'x'"),
    ] {
        assert_eq!(place.error(sql), expected, "{sql}");
    }
}

#[test]
fn names_that_are_taken_or_mean_nothing() {
    let place = Place::new();
    place.write("a.csv", "a\n1\n");
    for (sql, expected) in [
        ("EXECUTE nope(1)", "Prepared statement 'nope' does not exist"),
        ("DEALLOCATE nope", "Prepared statement 'nope' does not exist"),
        ("PREPARE p AS SELECT 1; PREPARE p AS SELECT 2", "Prepared statement 'p' already exists; DEALLOCATE it first"),
        ("CREATE TABLE t AS VALUES (1); CREATE TABLE t AS VALUES (2)", "Table 't' already exists"),
        ("CREATE TABLE t AS VALUES (1); CREATE VIEW t AS SELECT 1", "Table 't' already exists"),
        (
            "CREATE TABLE t AS VALUES (1); CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'a.csv'",
            "External table 't' already exists",
        ),
        ("CREATE SCHEMA s; CREATE SCHEMA s", "Schema 's' already exists"),
    ] {
        assert_eq!(place.error(sql), format!("SQL-004 {expected}"), "{sql}");
    }
}

#[test]
fn the_time_zone_is_set_in_both_forms() {
    let place = Place::new();
    let shown = place.csv("SET TIME ZONE '+02:00'; SELECT arrow_typeof(now()) AS t; SHOW TIME ZONE");
    assert!(
        shown.contains("\"\"+02:00\"\")\"\n") && shown.ends_with("datafusion.execution.time_zone,+02:00\n"),
        "{shown}"
    );
    let error = place.error("SET TIME ZONE 'x/y'; SELECT now() > TIMESTAMP '2020-01-01'");
    assert!(!error.contains('{') && !error.starts_with("SQL-005"), "{error}");
    assert_eq!(place.error("SET TIME ZONE LOCAL"), "SQL-005 not supported: SET TIME ZONE LOCAL");
}

#[test]
fn copies_into_formats_that_are_none() {
    let place = Place::new();
    let error = place.error("COPY (SELECT 1 AS a) TO 'x.xlsx'");
    assert!(
        error.starts_with("FILE-002 x.xlsx: the extension '.xlsx' is not known; supported are .parquet"),
        "{error}"
    );
    let error = place.error("COPY (SELECT 1 AS a) TO 'x.parquet.gz'");
    assert_eq!(error, "FILE-002 x.parquet.gz: only text files can be compressed as a whole (gzip)");
    let error = place.error("COPY (SELECT 1 AS a) TO 'x.parquet' STORED AS EXCEL");
    assert!(error.starts_with("FILE-002 x.parquet: STORED AS EXCEL is not known; it takes PARQUET"), "{error}");
}

#[test]
fn divisions_and_overflows() {
    let place = Place::new();
    let table = "CREATE TABLE t AS VALUES (1, 0), (2, 2); ";
    assert_eq!(place.error(&format!("{table} SELECT column1 / column2 FROM t")), "SQL-006 division by zero");
    // DataFusion leaves out the right side of AND only where the left one is false for nearly all rows of a batch.
    let rare =
        "CREATE TABLE r AS SELECT value AS a, CASE value WHEN 7 THEN 2 ELSE 0 END AS b FROM generate_series(1, 100)";
    let guarded = "SELECT a FROM r WHERE b <> 0 AND 10 / b > 1";
    assert_eq!(place.csv(&format!("{rare}; {guarded}")), "a\n7\n");
    let overflow = "SELECT 9223372036854775807 + 1 AS wrapped";
    assert!(place.error(overflow).starts_with("SQL-006 overflow: 9223372036854775807 + 1 leaves BIGINT"));
    let wrapping = format!("SET warpcube.overflow = 'wrap'; {overflow}");
    assert_eq!(place.csv(&wrapping), "wrapped\n-9223372036854775808\n");
    assert!(place.error("SELECT CAST('x' AS INT)").starts_with("SQL-006 "));
}

#[test]
fn a_session_goes_on_after_every_error() {
    let place = Place::new();
    place.write("bad.csv", "a\n1\n2,3\n");
    let script = "SELECT * FROM 'bad.csv';\nSELECT 1 / 0;\nSELEC;\nSELECT nope;\nSELECT * FROM 'none.csv';\n\
                  SET warpcube.device = 'moon';\nLOAD TABLE;\nSELECT 'still here' AS a;";
    let ran = place.input(&["--format", "csv", "--continue-on-error", "--device", "cpu"], script);
    assert_eq!((ran.code, ran.out.as_str()), (1, "a\nstill here\n"));
    let codes: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| line.starts_with("error: "))
        .map(|line| line.split(": ").nth(2).unwrap().split(' ').next().unwrap())
        .collect();
    assert_eq!(codes, ["FILE-004", "SQL-006", "SQL-001", "SQL-003", "FILE-001", "CFG-002", "SQL-001"]);
}

#[test]
fn compressed_files_that_are_none_or_cut_off_are_named() {
    let place = Place::new();
    place.copy("SELECT value AS a FROM generate_series(1, 100000)", "good.csv.gz");
    let bytes = place.read("good.csv.gz");
    place.write("cut.csv.gz", &bytes[..bytes.len() / 2]);
    place.write("none.csv.gz", "a\n1\n2\n");
    place.write("none.csv.zst", "a\n1\n2\n");
    for name in ["cut.csv.gz", "none.csv.gz", "none.csv.zst"] {
        let ran = place.run(&["-c", &format!("SELECT sum(a) FROM '{name}'")]);
        let error = ran.error(1);
        assert!(error.starts_with("FILE-003 ") && error.contains(&format!("{name}: ")), "{error}");
    }
}

#[test]
fn what_cannot_be_done_as_said_is_told() {
    let place = Place::new();
    place.write("t.csv", "Foo,b\n1,2\n");
    for (sql, expected) in [
        ("CREATE TABLE t AS SELECT 1 AS a; DROP VIEW t", "SQL-004 't' is a table, no view; use DROP TABLE"),
        ("CREATE VIEW v AS SELECT 1 AS a; DROP TABLE v", "SQL-004 'v' is a view, no table; use DROP VIEW"),
        ("SELECT \"foo\" FROM 't.csv'", "SQL-003 unknown column 'foo'; did you mean '\"Foo\"'?"),
        ("SELECT * FROM 't.csv' FOR UPDATE", "SQL-005 not supported: FOR UPDATE"),
        (
            "PREPARE p (INT) AS SELECT $1 + 1 AS a; EXPLAIN EXECUTE p(1)",
            "SQL-005 not supported: EXPLAIN of EXECUTE; it takes the statement that was prepared",
        ),
        ("COPY (SELECT * FROM 't.csv' FOR UPDATE) TO 'o.csv'", "SQL-005 not supported: FOR UPDATE"),
    ] {
        let ran = place.run(&["-c", sql]);
        assert_eq!(ran.error(1).trim_end(), expected, "{sql}");
    }
    let spilling = place.run(&["--set", "warpcube.spill_folder=t.csv", "-c", "SELECT 1"]);
    let error = spilling.error(2);
    assert!(error.contains("warpcube.spill_folder"), "{error}");
}

#[test]
fn a_required_gpu_that_is_not_there_is_an_error() {
    let place = Place::new();
    place.write("t.csv", "a\n1\n");
    let run =
        |sql: &str| place.run(&["--device", "cpu", "--set", "warpcube.placement=cuda", "--format", "csv", "-c", sql]);
    let ran = run("SELECT sum(a) FROM 't.csv'");
    let expected = "SQL-011 warpcube.placement = 'cuda' needs a device and this session has none: ";
    let error = ran.error(1);
    assert!(error.starts_with(expected), "{error}");
    // What no GPU could run, and plans alone, are answered.
    assert_eq!(run("SELECT a FROM 't.csv'").out, "a\n1\n");
    assert_eq!(run("EXPLAIN SELECT sum(a) FROM 't.csv'").code, 0);
}

/// The lines that follow the error of a statement.
fn excerpt(place: &Place, sql: &str) -> String {
    let ran = place.run(&["--device", "cpu", "-c", sql]);
    let (_, excerpt) = ran.err.split_once('\n').expect("a line");
    excerpt.trim_end().to_string()
}

#[test]
fn errors_show_the_line_and_a_caret_under_the_place() {
    let place = Place::new();
    let at = |sql: &str| excerpt(&place, sql);
    assert_eq!(at("SELECT 1\nFROM nope"), "LINE 2: FROM nope\n             ^");
    assert_eq!(at("SELECT 1; SELECT 1 +"), "LINE 1: SELECT 1 +\n                  ^");
    assert_eq!(at("SELECT 1;\n\nSELEC 1"), "LINE 3: SELEC 1\n        ^");
    assert_eq!(at("SELECT 'open"), "LINE 1: SELECT 'open\n               ^");
    let table = "CREATE TABLE t (a INT, b INT);\n";
    let of_table = |sql: &str| at(&format!("{table}{sql}"));
    // The position of the planner, in the select list and in what follows it.
    assert_eq!(
        of_table("SELECT nope FROM t ORDER BY nope"),
        "LINE 2: SELECT nope FROM t ORDER BY nope\n               ^"
    );
    assert_eq!(of_table("SELECT a, b FROM t GROUP BY a"), "LINE 2: SELECT a, b FROM t GROUP BY a\n                  ^");
    assert_eq!(of_table("SELECT t.x FROM t"), "LINE 2: SELECT t.x FROM t\n               ^");
    assert_eq!(of_table("SELECT summ(a) FROM t"), "LINE 2: SELECT summ(a) FROM t\n               ^");
    assert_eq!(of_table("SELECT upper(a, a) FROM t"), "LINE 2: SELECT upper(a, a) FROM t\n               ^");
    // Statements that a rewrite has changed.
    assert_eq!(of_table("UPDATE t SET a = nope"), "LINE 2: UPDATE t SET a = nope\n                         ^");
    assert_eq!(of_table("PIVOT t ON nope USING sum(b)"), "LINE 2: PIVOT t ON nope USING sum(b)\n                   ^");
    assert_eq!(
        of_table("FROM t SELECT a + 1 AS x, nope"),
        "LINE 2: FROM t SELECT a + 1 AS x, nope\n                                  ^"
    );
    assert_eq!(at("SELECT 'x'::INT"), "LINE 1: SELECT 'x'::INT\n               ^");
    assert_eq!(at("FROM 'none.csv'"), "LINE 1: FROM 'none.csv'\n             ^");
    assert_eq!(at("SELECT 1 / 0"), "", "no name, no place");
}

#[test]
fn errors_of_scripts_have_the_script_s_line() {
    let place = Place::new();
    place.write("q.sql", "SELECT 1;\n\nSELECT 1,\n  nope\nFROM (VALUES (1)) AS v(a);\n");
    let ran = place.run(&["--device", "cpu", "-o", "out.csv", "-f", "q.sql"]);
    assert_eq!(ran.err, "error: q.sql:4: SQL-003 unknown column 'nope'\nLINE 4:   nope\n          ^\n");
}
