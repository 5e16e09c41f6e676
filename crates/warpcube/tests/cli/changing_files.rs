//! Files that are replaced, added and deleted while a session has tables over them.
//!
//! The program is fed through a pipe: a statement, its answer, a change of the files, the same statement again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::harness::{Place, text};

/// A session that is asked question by question.
pub(crate) struct Dialogue {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Dialogue {
    fn new(place: &Place) -> Dialogue {
        Dialogue::with(place.command())
    }

    /// A session of a program that has its own variables and arguments.
    pub(crate) fn with(mut command: Command) -> Dialogue {
        let mut child = command
            .args(["--format", "csv", "--continue-on-error"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Dialogue { child, input, output }
    }

    /// Runs a statement; gives the lines of its answer joined by spaces.
    pub(crate) fn ask(&mut self, sql: &str) -> String {
        writeln!(self.input, "{sql};\nSELECT 'end' AS end;").unwrap();
        let mut answer = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the program ended: {answer:?}");
            match line.trim() {
                "end" if answer.last().is_some_and(|last| last == "end") => {
                    answer.pop();
                    return answer.join(" ");
                }
                line => answer.push(line.to_string()),
            }
        }
    }

    /// Ends the session; gives its errors, without the lines of statements below them.
    pub(crate) fn errors(self) -> Vec<String> {
        let Dialogue { child, input, output } = self;
        drop(input);
        drop(output);
        let output = child.wait_with_output().unwrap();
        let lines = String::from_utf8_lossy(&output.stderr).lines().map(String::from).collect::<Vec<_>>();
        lines.into_iter().filter(|line| line.starts_with("error: ")).collect()
    }
}

#[test]
fn a_replaced_file_is_read_anew() {
    let place = Place::new();
    let file = place.copy("SELECT 1 AS a", "t.parquet");
    let mut session = Dialogue::new(&place);
    session.ask("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 't.parquet'");
    session.ask("CREATE VIEW v AS SELECT * FROM t");
    session.ask("PREPARE p AS SELECT * FROM t");
    let all = ["SELECT * FROM t", "SELECT * FROM 't.parquet'", "SELECT * FROM v", "EXECUTE p"];
    for sql in all {
        assert_eq!(session.ask(sql), "a 1", "{sql}");
    }
    // Same name, columns and number of rows, other values.
    place.copy("SELECT 2 AS a", "other.parquet");
    std::fs::rename(place.path("other.parquet"), &file).unwrap();
    for sql in all {
        assert_eq!(session.ask(sql), "a 2", "{sql}");
    }
    assert_eq!(session.ask("SELECT count(*) AS n, min(a) AS m FROM t"), "n,m 1,2");
    // Other columns and types.
    place.copy("SELECT 'x' AS a, 3.5 AS b", "other.parquet");
    std::fs::rename(place.path("other.parquet"), &file).unwrap();
    for sql in all {
        assert_eq!(session.ask(sql), "a,b x,3.5", "{sql}");
    }
    assert_eq!(session.errors(), [""; 0]);
}

#[test]
fn a_file_replaced_by_one_of_the_same_size_and_time() {
    let place = Place::new();
    let file = place.copy("SELECT 1 AS a UNION ALL SELECT 5", "t.parquet");
    let other = place.copy("SELECT 2 AS a UNION ALL SELECT 6", "other.parquet");
    let (before, after) = (std::fs::metadata(&file).unwrap(), std::fs::metadata(&other).unwrap());
    assert_eq!(before.len(), after.len());
    let mut session = Dialogue::new(&place);
    session.ask("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 't.parquet'");
    // Both are answered from the statistics of the footer.
    let all = ["SELECT min(a) AS a, max(a) AS b FROM t", "SELECT min(a) AS a, max(a) AS b FROM 't.parquet'"];
    for sql in all {
        assert_eq!(session.ask(sql), "a,b 1,5", "{sql}");
    }
    std::fs::File::options().write(true).open(&other).unwrap().set_modified(before.modified().unwrap()).unwrap();
    std::fs::rename(&other, &file).unwrap();
    for sql in all {
        assert_eq!(session.ask(sql), "a,b 2,6", "{sql}");
    }
    assert_eq!(session.errors(), [""; 0]);
}

#[test]
fn files_added_to_a_folder_and_deleted_from_it() {
    let place = Place::new();
    place.copy("SELECT 1 AS a", "t/one.parquet");
    let mut session = Dialogue::new(&place);
    session.ask("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 't'");
    let sums = "SELECT (SELECT sum(a) FROM t) AS s, (SELECT count(*) FROM 't') AS n";
    assert_eq!(session.ask(sums), "s,n 1,1");
    place.copy("SELECT 10 AS a", "t/two.parquet");
    assert_eq!(session.ask(sums), "s,n 11,2");
    std::fs::remove_file(place.path("t/one.parquet")).unwrap();
    assert_eq!(session.ask(sums), "s,n 10,1");
    std::fs::remove_file(place.path("t/two.parquet")).unwrap();
    assert_eq!(session.ask("SELECT count(*) AS n FROM t"), "n 0");
    place.copy("SELECT 7 AS a", "t/three.parquet");
    assert_eq!(session.ask(sums), "s,n 7,1");
    assert_eq!(session.errors(), [""; 0]);
}

#[test]
fn a_deleted_file_is_an_error_and_not_an_empty_table() {
    let place = Place::new();
    let file = place.write("t.csv", "a\n1\n");
    let mut session = Dialogue::new(&place);
    session.ask("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 't.csv'");
    session.ask("CREATE VIEW v AS SELECT * FROM t");
    session.ask("CREATE TABLE other AS VALUES (1)");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(session.ask("SELECT * FROM t"), "");
    assert_eq!(session.ask("SELECT * FROM v"), "");
    assert_eq!(session.ask("SELECT * FROM 't.csv'"), "");
    // The rest of the session is none the worse.
    assert_eq!(session.ask("SELECT * FROM other"), "column1 1");
    assert_eq!(session.ask("SELECT count(*) AS n FROM information_schema.columns WHERE table_name = 't'"), "n 1");
    place.write("t.csv", "a\n5\n");
    assert_eq!(session.ask("SELECT * FROM t"), "a 5");
    let errors = session.errors();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(
        errors.iter().all(|error| error.contains("FILE-001") && error.contains("t.csv: no such file")),
        "{errors:?}"
    );
    assert!(errors[0].contains(&text(&file)), "{errors:?}");
}

#[test]
fn tables_dropped_and_made_again_with_other_types() {
    let place = Place::new();
    let mut session = Dialogue::new(&place);
    session.ask("CREATE TABLE t AS SELECT 1 AS a");
    session.ask("CREATE VIEW v AS SELECT a FROM t");
    session.ask("PREPARE p AS SELECT a FROM t");
    let all = ["SELECT a FROM t", "SELECT * FROM v", "EXECUTE p"];
    for sql in all {
        assert_eq!(session.ask(sql), "a 1", "{sql}");
    }
    session.ask("DROP TABLE t");
    session.ask("CREATE TABLE t AS SELECT 'one' AS a");
    for sql in all {
        assert_eq!(session.ask(sql), "a one", "{sql}");
    }
    assert_eq!(session.errors(), [""; 0]);
}

#[test]
fn a_failed_replacement_keeps_what_was_there() {
    let place = Place::new();
    place.write("good.csv", "a\n1\n");
    let mut session = Dialogue::new(&place);
    session.ask("CREATE TABLE t AS VALUES (1)");
    session.ask("CREATE OR REPLACE TABLE t AS SELECT 1 / 0 AS a");
    assert_eq!(session.ask("SELECT * FROM t"), "column1 1");
    session.ask("CREATE OR REPLACE TABLE t AS VALUES (2)");
    assert_eq!(session.ask("SELECT * FROM t"), "column1 2");
    session.ask("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'good.csv'");
    session.ask("CREATE OR REPLACE EXTERNAL TABLE e STORED AS CSV LOCATION 'missing.csv'");
    assert_eq!(session.ask("SELECT * FROM e"), "a 1");
    session.ask("CREATE VIEW v AS SELECT 1 AS a");
    session.ask("CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM v");
    assert_eq!(session.ask("SELECT * FROM v"), "a 1");
    let errors = session.errors();
    let codes: Vec<_> = errors.iter().map(|error| error.split(": ").nth(2).unwrap_or("?").split(' ').next()).collect();
    assert_eq!(codes, [Some("SQL-006"), Some("FILE-001"), Some("SQL-012")], "{errors:?}");
}

#[test]
fn the_time_zone_is_that_of_the_statement() {
    let place = Place::new();
    let mut session = Dialogue::new(&place);
    let zone = "SELECT arrow_typeof(now()) AS t";
    session.ask("SET TIME ZONE = '+02:00'");
    assert!(session.ask(zone).contains("+02:00"));
    session.ask("SET TIME ZONE = '-05:00'");
    assert!(session.ask(zone).contains("-05:00"));
    assert_eq!(session.errors(), [""; 0]);
}
