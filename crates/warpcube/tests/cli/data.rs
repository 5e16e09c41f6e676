//! Every kind of file and statement that brings data in or out.

use std::io::Write as _;

use crate::harness::Place;

const ROWS: &str = "id,name\n1,one\n2,two\n";

#[test]
fn files_are_tables_by_their_name() {
    let place = Place::new();
    place.write("a.csv", ROWS);
    place.write("a.tsv", "id\tname\n1\tone\n2\ttwo\n");
    place.write("a.ndjson", "{\"id\":1,\"name\":\"one\"}\n{\"id\":2,\"name\":\"two\"}\n");
    place.write("a.json", "[{\"id\":1,\"name\":\"one\"},\n {\"id\":2,\"name\":\"two\"}]");
    place.copy(
        "SELECT * FROM 'a.csv'".replace("a.csv", &place.path("a.csv").display().to_string()).as_str(),
        "a.parquet",
    );
    for name in ["a.csv", "a.tsv", "a.ndjson", "a.json", "a.parquet"] {
        assert_eq!(place.csv(&format!("SELECT id, name FROM '{name}' ORDER BY id")), ROWS, "{name}");
        assert_eq!(place.csv(&format!("SELECT count(*) AS n FROM \"./{name}\"")), "n\n2\n", "{name}");
    }
}

#[test]
fn compressed_text_is_read() {
    let place = Place::new();
    place.csv(&format!(
        "COPY (SELECT 1 AS id, 'one' AS name) TO '{}' STORED AS CSV OPTIONS ('format.compression' 'gzip')",
        place.path("g.csv.gz").display()
    ));
    place.csv(&format!(
        "COPY (SELECT 1 AS id, 'one' AS name) TO '{}' STORED AS CSV OPTIONS ('format.compression' 'zstd')",
        place.path("z.csv.zst").display()
    ));
    for name in ["g.csv.gz", "z.csv.zst"] {
        assert_ne!(&place.read(name)[..2], b"id", "{name} is not compressed");
        assert_eq!(place.csv(&format!("SELECT * FROM '{name}'")), "id,name\n1,one\n", "{name}");
    }
    std::fs::create_dir(place.path("folder")).unwrap();
    std::fs::copy(place.path("g.csv.gz"), place.path("folder/part.csv.gz")).unwrap();
    let sql = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'folder'; SELECT name FROM t";
    assert_eq!(place.csv(sql), "name\none\n");
}

#[test]
fn tbl_files_with_and_without_their_last_separator() {
    let place = Place::new();
    place.write("with.tbl", "1|one|0.5|\n2|two||\n");
    place.write("without.tbl", "1|one|0.5\n2|two|\n");
    for name in ["with", "without"] {
        let sql = format!(
            "CREATE EXTERNAL TABLE t (id INT, name VARCHAR, rate DOUBLE) STORED AS TBL LOCATION '{name}.tbl'; \
             SELECT * FROM t ORDER BY id; SELECT count(*) AS n FROM t WHERE name = 'two'; DROP TABLE t"
        );
        assert_eq!(place.csv(&sql), "id,name,rate\n1,one,0.5\n2,two,\nn\n1\n", "{name}");
        let inferred = place.csv(&format!("SELECT column_1 + 1 AS next, column_2 FROM '{name}.tbl' ORDER BY 1"));
        assert_eq!(inferred, "next,column_2\n2,one\n3,two\n", "{name}");
    }
}

#[test]
fn folders_patterns_and_hive_partitions() {
    let place = Place::new();
    place.copy("SELECT 1 AS v", "t/year=2020/a.parquet");
    place.copy("SELECT 2 AS v", "t/year=2021/a.parquet");
    place.copy("SELECT 3 AS v", "flat/x1.parquet");
    place.copy("SELECT 4 AS v", "flat/x2.parquet");
    place.copy("SELECT 50 AS v", "flat/y.parquet");
    place.write("flat/readme.txt", "not data");
    let partitioned = "SELECT v, year FROM 't' ORDER BY v; SELECT sum(v) AS s FROM 't/' WHERE year = '2021'";
    assert_eq!(place.csv(partitioned), "v,year\n1,2020\n2,2021\ns\n2\n");
    let sql = "CREATE EXTERNAL TABLE t (v BIGINT, year INT) STORED AS PARQUET PARTITIONED BY (year) LOCATION 't/'; \
               SELECT sum(year) AS s FROM t";
    assert_eq!(place.csv(sql), "s\n4041\n");
    assert_eq!(place.csv("SELECT sum(v) AS s FROM 'flat'"), "s\n57\n");
    assert_eq!(place.csv("SELECT sum(v) AS s FROM 'flat/x*.parquet'"), "s\n7\n");
    let sql = "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION 'flat/x*.parquet'; SELECT sum(v) AS s FROM x";
    assert_eq!(place.csv(sql), "s\n7\n");
}

#[test]
fn tables_views_inserts_and_descriptions() {
    let place = Place::new();
    let sql = "CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 3); \
               INSERT INTO t VALUES (10); CREATE VIEW v AS SELECT sum(a) AS s FROM t; SELECT * FROM v; \
               DESCRIBE t; SELECT table_name, table_type FROM information_schema.tables \
               WHERE table_schema = 'public' ORDER BY 1";
    let expected = "count\n1\ns\n16\ncolumn_name,column_type,null,key,default,extra\na,BIGINT,YES,,,\n\
                    table_name,table_type\nt,BASE TABLE\nv,VIEW\n";
    assert_eq!(place.csv(sql), expected);
    let sql = "CREATE SCHEMA s; CREATE TABLE s.t AS VALUES (1); SELECT count(*) AS n FROM s.t; SELECT * FROM t";
    let ran = place.run(&["--format", "csv", "-c", sql]);
    assert_eq!(ran.out, "n\n1\n");
    assert!(ran.error(1).starts_with("SQL-002 unknown table 't'"));
}

#[test]
fn tables_are_listed_and_described() {
    let place = Place::new();
    place.write("a.csv", ROWS);
    let sql = "CREATE TABLE m AS SELECT arrow_cast(1, 'UInt8') AS a, arrow_cast('x', 'Dictionary(Int32, Utf8)') AS b; \
               CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'a.csv'; \
               CREATE VIEW v AS SELECT id * 2 AS twice FROM e; ";
    let shown = place.csv(&format!("{sql} SHOW TABLES"));
    let own: Vec<&str> = shown.lines().filter(|line| line.contains(",public,")).collect();
    assert_eq!(
        own,
        ["warpcube,public,e,BASE TABLE", "warpcube,public,m,BASE TABLE", "warpcube,public,v,VIEW"],
        "{shown}"
    );
    let described = place.csv(&format!("{sql} DESCRIBE m; DESCRIBE e; DESCRIBE v; SHOW COLUMNS FROM m"));
    let lines: Vec<&str> = described.lines().collect();
    assert_eq!(lines[1..3], ["a,TINYINT UNSIGNED,YES,,,", "b,VARCHAR,YES,,,"], "{described}");
    assert_eq!(lines[4..6], ["id,BIGINT,YES,,,", "name,VARCHAR,YES,,,"], "{described}");
    assert_eq!(lines[7], "twice,BIGINT,YES,,,", "{described}");
    assert!(described.contains("warpcube,public,m,a,TINYINT UNSIGNED,YES"), "{described}");
}

#[test]
fn what_is_copied_out_can_be_read_in() {
    let place = Place::new();
    place.write("a.csv", ROWS);
    let copies = [
        ("o.parquet", ""),
        ("o.csv", "OPTIONS ('format.has_header' 'true')"),
        ("o.csv.gz", "STORED AS CSV OPTIONS ('format.has_header' 'true', 'format.compression' 'gzip')"),
        ("o.csv.zst", "STORED AS CSV OPTIONS ('format.has_header' 'true', 'format.compression' 'zstd')"),
        ("o.tsv.gz", "STORED AS CSV OPTIONS ('format.delimiter' '\t', 'format.compression' 'gzip')"),
        ("o.ndjson", "STORED AS JSON"),
        ("o.ndjson.gz", "STORED AS JSON OPTIONS ('format.compression' 'gzip')"),
        ("o.jsonl.zst", "STORED AS JSON OPTIONS ('format.compression' 'zstd')"),
        ("o.arrow", "STORED AS ARROW"),
    ];
    for (name, options) in copies {
        let copied = place.csv(&format!("COPY (SELECT * FROM 'a.csv') TO '{name}' {options}"));
        assert_eq!(copied, "count\n2\n", "{name}");
        assert_eq!(place.csv(&format!("SELECT id, name FROM '{name}' ORDER BY id")), ROWS, "{name}");
    }
    let compressed = ["o.csv.gz", "o.tsv.gz", "o.ndjson.gz"].map(|name| place.read(name)[..2] == [0x1f, 0x8b]);
    assert_eq!(compressed, [true; 3]);
}

#[test]
fn copies_take_their_format_from_the_extension() {
    let place = Place::new();
    place.write("a.csv", ROWS);
    for name in ["x.csv.gz", "x.csv.bz2", "x.tsv", "x.tsv.zst", "x.psv", "x.ndjson", "x.jsonl.xz", "x.ipc"] {
        assert_eq!(place.csv(&format!("COPY (SELECT * FROM 'a.csv') TO '{name}'")), "count\n2\n", "{name}");
        assert_eq!(place.csv(&format!("SELECT id, name FROM '{name}' ORDER BY id")), ROWS, "{name}");
    }
    assert_eq!(place.read("x.csv.gz")[..2], [0x1f, 0x8b]);
    assert_eq!(place.read("x.tsv"), b"id\tname\n1\tone\n2\ttwo\n");
    place.csv("COPY (SELECT * FROM 'a.csv') TO 'x.tbl'; COPY (SELECT * FROM 'a.csv') TO 'y.dat' STORED AS TSV");
    assert_eq!(place.read("x.tbl"), b"1|one\n2|two\n");
    assert_eq!(place.read("y.dat"), b"id\tname\n1\tone\n2\ttwo\n");
    // The user's options win.
    place.csv("COPY (SELECT * FROM 'a.csv') TO 'z.tsv' OPTIONS (delimiter ';', 'format.has_header' 'false')");
    assert_eq!(place.read("z.tsv"), b"1;one\n2;two\n");
    assert!(place.csv("EXPLAIN VERBOSE COPY (SELECT 1 AS a) TO 'e.csv.gz'").contains("CopyTo"));
}

#[test]
fn inserts_go_into_folders() {
    let place = Place::new();
    std::fs::create_dir(place.path("into")).unwrap();
    let sql = "CREATE EXTERNAL TABLE t (a INT) STORED AS PARQUET LOCATION 'into/'; INSERT INTO t VALUES (1), (2); \
               INSERT INTO t VALUES (3); SELECT sum(a) AS s FROM t";
    assert_eq!(place.csv(sql), "count\n2\ncount\n1\ns\n6\n");
}

#[test]
fn prepared_statements_take_parameters() {
    let sql = "CREATE TABLE t AS VALUES (1), (2), (3); \
               PREPARE p(INT) AS SELECT count(*) AS n FROM t WHERE column1 >= $1; \
               EXECUTE p(2); EXECUTE p(3); DEALLOCATE p";
    assert_eq!(Place::new().csv(sql), "n\n2\nn\n1\n");
}

#[test]
fn a_large_script_is_not_slow() {
    let place = Place::new();
    let mut file = std::fs::File::create(place.path("large.sql")).unwrap();
    writeln!(file, "CREATE TABLE t (a INT);\nINSERT INTO t VALUES").unwrap();
    for row in 0..20_000 {
        writeln!(file, "({row}),").unwrap();
    }
    writeln!(file, "(20000);\nSELECT count(*) AS n FROM t;").unwrap();
    drop(file);
    assert_eq!(place.run(&["--format", "csv", "-f", "large.sql"]).ok(), "count\n20001\nn\n20001\n");
}

#[test]
fn statements_about_the_device_without_one() {
    let place = Place::new();
    let cpu = ["--device", "cpu", "--format", "csv", "-c"];
    let run = |sql: &str| place.run(&[&["--set", "host_memory=0"], &cpu[..], &[sql]].concat());
    // The host keeps columns in its place.
    assert!(place.run(&[&cpu[..], &["CREATE TABLE t AS VALUES (1); LOAD TABLE t"]].concat()).ok().contains("column1"));
    let head = "table_name,rows,column_name,encoding,bits_per_value,distinct,sorted,bytes,host_bytes,hits,origin\n";
    assert_eq!(run("show device tables").ok(), head);
    let error = run("CREATE TABLE t AS VALUES (1); LOAD TABLE t").error(1);
    assert_eq!(error, "SQL-011 LOAD TABLE needs a device and this session has none: warpcube.device is 'cpu'");
    assert!(run("EVICT TABLE t").error(1).starts_with("SQL-011 EVICT TABLE needs a device"));
    assert_eq!(run("LOAD TABLE t (").error(1), "SQL-001 syntax error: expected LOAD TABLE name [(column, …)]");
}

#[test]
fn encoded_columns_outlive_the_program() {
    let place = Place::new();
    let rows = "SELECT value AS id, 'name ' || (value % 5) AS name, CAST(value AS DECIMAL(9, 2)) AS price \
                FROM generate_series(1, 4000)";
    place.copy(rows, "t.parquet");
    let sql = "SELECT name, count(*) AS n, sum(price) AS total FROM 't.parquet' GROUP BY name ORDER BY name LIMIT 1";
    let run = |files: &str, stated: &str| {
        let settings = [format!("warpcube.encoded_files={files}"), "warpcube.placement=cuda".into()];
        let arguments =
            ["--device", "emulated", "--timing", "--format", "csv", "--set", &settings[0], "--set", &settings[1]];
        let output = place.emulated().args(arguments).args(["-c", sql]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "name,n,total\nname 0,800,1602000.00\n", "{errors}");
        assert!(errors.contains(stated), "{files}: {errors}");
        errors
    };
    let kept = "100 % of the columns loaded as they were kept)";
    assert!(!run("write", "of it loading ").contains(kept));
    assert!(!run("off", "of it loading ").contains(kept));
    run("read", kept);
    let path = place.path("t.parquet.warpcols");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[64] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let errors = run("read", "warning: '");
    let told = ".warpcols' is damaged at the strings of column 'name': its checksum differs";
    assert!(errors.contains(told) && !errors.contains(kept), "{errors}");
}

#[test]
fn files_leave_the_device_by_the_names_they_were_asked_by() {
    let place = Place::new();
    place.copy("SELECT 1 AS a", "x.parquet");
    let script = "SELECT sum(a) AS s FROM 'x.parquet'; EVICT TABLE 'x.parquet'; SHOW DEVICE TABLES;";
    let ran = place.run(&["--device", "emulated", "--format", "csv", "-c", script]).ok();
    let head = "table_name,rows,column_name,encoding,bits_per_value,distinct,sorted,bytes,host_bytes,hits,origin\n";
    let (answer, tables) = ran.split_once(head).unwrap();
    assert_eq!((answer, tables.lines().filter(|line| line.starts_with("x.parquet,")).count()), ("s\n1\n", 1));
    assert!(ran.ends_with(head), "nothing is left there: {ran}");
}

#[test]
fn quoted_values_may_have_line_breaks_in_files_of_any_size() {
    let place = Place::new();
    let rows: String = (0..40_000).map(|row| format!("{row},\"one {row}\nand, two\nthree\"\n")).collect();
    place.write("t.csv", format!("id,txt\n{rows}"));
    let sql = "SET warpcube.target_partitions = 8; SELECT count(*) AS n, sum(id) AS s, max(txt) AS m FROM 't.csv'";
    let expected = "n,s,m\n40000,799980000,\"one 9999\nand, two\nthree\"\n";
    assert_eq!(place.csv(sql), expected);
    // One such value, far behind the rows that columns are inferred from.
    let rows: String = (0..200_000).map(|row| format!("{row},\"a\"\n")).collect();
    place.write("t.csv", format!("id,txt\n{rows}7,\"b\nc\"\n{rows}"));
    assert_eq!(place.csv(sql), "n,s,m\n400001,39999800007,\"b\nc\"\n");
}

#[test]
fn folders_of_mixed_files_are_refused() {
    let place = Place::new();
    for (folder, names) in [("a", ["1.csv", "2.CSV"]), ("b", ["1.csv", "2.tsv"]), ("c", ["1.csv", "2.ndjson"])] {
        for name in names {
            place.write(&format!("{folder}/{name}"), "x\n1\n");
        }
        let ran = place.run(&["-c", &format!("SELECT * FROM '{folder}/'")]);
        let expected = format!("FILE-002 {folder}/: its files '{}' and '{}' are not read alike", names[0], names[1]);
        let error = ran.error(1);
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!(place.csv(&format!("SELECT x FROM '{folder}/*.csv'")), "x\n1\n", "{folder}");
    }
    place.write("d/1.csv", "x\n1\n");
    place.write("d/2.csv", "x\n1.5\n");
    // Numbers of all files have one type.
    assert_eq!(place.csv("SELECT sum(x) AS s FROM 'd/'"), "s\n2.5\n");
}

#[test]
fn names_of_folders_are_columns_with_types() {
    let place = Place::new();
    for (year, month) in [("2020", "9"), ("2020", "10"), ("2021", "1")] {
        place.write(&format!("t/year={year}/month={month}/kind=x{month}/1.csv"), format!("id\n{month}\n"));
    }
    let sql = "SELECT sum(id) AS s, max(month) AS m, max(year + 1) AS y, max(kind) AS k FROM 't/'";
    assert_eq!(place.csv(sql), "s,m,y,k\n20,10,2022,x9\n");
    // Filters over them are no filters over text, whatever numbers they name.
    for (filter, expected) in [("month BETWEEN 9 AND 10", 19), ("month > 3 AND month > 9", 10), ("year = 2021", 1)] {
        assert_eq!(place.csv(&format!("SELECT sum(id) AS s FROM 't/' WHERE {filter}")), format!("s\n{expected}\n"));
    }
    let sql = "CREATE EXTERNAL TABLE t STORED AS CSV PARTITIONED BY (year INT, month SMALLINT, kind VARCHAR) \
               LOCATION 't/'; SELECT sum(id) AS s, arrow_typeof(max(month)) AS t FROM t WHERE month >= 9";
    assert_eq!(place.csv(sql), "s,t\n19,Int16\n");
    // Text again where one key is no number.
    place.write("t/year=2021/month=unknown/kind=y/1.csv", "id\n100\n");
    let sql = "SELECT sum(id) AS s, max(month) AS m FROM 't/' WHERE month <> '9'";
    assert_eq!(place.csv(sql), "s,m\n111,unknown\n");
    // Where text is compared with numbers, the optimiser sees the numbers.
    let sql = "SELECT sum(id) AS s FROM 't/' WHERE kind > 'x1' AND kind > 'x2'";
    assert_eq!(place.csv(sql), "s\n109\n");
}

#[test]
fn text_that_is_compared_with_numbers_is_planned_with_them() {
    let place = Place::new();
    place.copy("SELECT CAST(value AS VARCHAR) AS m FROM generate_series(9, 10)", "t.parquet");
    for filter in ["m > 3 AND m > 4", "CAST(m AS INT) IN (9, 10)"] {
        assert_eq!(place.csv(&format!("SELECT count(*) AS n FROM 't.parquet' WHERE {filter}")), "n\n2\n", "{filter}");
    }
}
