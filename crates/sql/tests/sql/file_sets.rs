//! Folders that several statements write and read at once, and names that look like patterns.

use std::fs;

use warpcube_sql::{Connection, SqlError};

use crate::support::{cpu, one};

/// Enough rows for several files of one COPY.
const ROWS: usize = 40_000;
/// How often statements are raced.
const ROUNDS: usize = 8;

fn copy(place: &str, v: usize, options: &str) -> String {
    format!(
        "COPY (SELECT {v} AS v FROM generate_series(1, {ROWS}) AS g(value)) TO '{place}/' STORED AS PARQUET {options}"
    )
}

/// Runs statements on threads of their own, each in another session.
async fn at_once(statements: Vec<String>) -> Vec<Result<(), SqlError>> {
    let run = |sql: String| tokio::spawn(async move { cpu().collect(&sql).await.map(drop) });
    let running: Vec<_> = statements.into_iter().map(run).collect();
    let mut results = Vec::new();
    for one in running {
        results.push(one.await.unwrap());
    }
    results
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_folder_that_is_overwritten_by_several_has_one_set() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t").display().to_string();
    let session = cpu();
    session.collect(&copy(&place, 0, "")).await.unwrap();
    let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{place}/'");
    session.collect(&table).await.unwrap();
    let sum = |v: usize| format!("{ROWS} {v} {v}");
    let sums: Vec<String> = (0..=2).map(sum).collect();
    for _ in 0..ROUNDS {
        let reader = cpu();
        let select = format!("SELECT count(*), min(v), max(v) FROM '{place}/'");
        let statements = vec![copy(&place, 1, "OPTIONS (overwrite true)"), copy(&place, 2, "OPTIONS (overwrite true)")];
        let writing = tokio::spawn(at_once(statements));
        while !writing.is_finished() {
            // A file may leave between its listing and its reading, which is an error and no other answer.
            match reader.collect(&select).await {
                Ok(rows) => {
                    let found = crate::format::rows(&rows).into_iter().map(|row| row.join(" ")).collect::<Vec<_>>();
                    assert!(sums.contains(&found[0]), "{found:?}");
                }
                Err(error) => assert!(error.to_string().starts_with("FILE-"), "{error}"),
            }
        }
        for result in writing.await.unwrap() {
            result.unwrap();
        }
        let left = one(&cpu(), &select).await.0;
        assert!(sums.contains(&left), "{left}");
    }
    session.collect("INSERT OVERWRITE t SELECT 7").await.unwrap();
    assert_eq!(one(&session, "SELECT count(*), sum(v) FROM t").await.0, "1 7");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_that_make_a_folder_one_does() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let place = folder.path().join(round.to_string()).display().to_string();
        let results = at_once(vec![copy(&place, 1, ""), copy(&place, 2, "")]).await;
        let refused: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(matches!(refused.as_slice(), [SqlError::FolderNotEmpty { .. }]), "{results:?}");
        let found = one(&cpu(), &format!("SELECT count(*) FROM '{place}/'")).await.0;
        assert_eq!(found, ROWS.to_string());
    }
}

async fn answer(session: &Connection, sql: &str) -> String {
    one(session, sql).await.0
}

#[tokio::test]
async fn a_name_that_exists_is_no_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    let session = cpu();
    for name in ["out [1].csv", "what?.parquet", "all*.json", "d [2024]/in.csv"] {
        session.collect(&format!("COPY (SELECT 5 AS v) TO '{root}/{name}'")).await.unwrap();
        assert!(folder.path().join(name).is_file(), "{name}");
        assert_eq!(answer(&session, &format!("SELECT sum(v) FROM '{root}/{name}'")).await, "5", "{name}");
    }
    for place in ["d [2024]/", "d [2024]", "d [2024]/*.csv", "d [2024]/../d [2024]/i?.csv", "./d [2024]/in.csv"] {
        assert_eq!(answer(&session, &format!("SELECT sum(v) FROM '{root}/{place}'")).await, "5", "{place}");
    }
    // A folder of such a name is looked at again.
    let table = format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{root}/d [2024]/'");
    session.collect(&table).await.unwrap();
    session.collect(&format!("COPY (SELECT 6 AS v) TO '{root}/d [2024]/more.csv'")).await.unwrap();
    assert_eq!(answer(&session, "SELECT sum(v) FROM t").await, "11");
    // Where nothing has the name, it is a pattern.
    assert_eq!(answer(&session, &format!("SELECT sum(v) FROM '{root}/d*/[im]*.csv'")).await, "11");
    let error = session.collect(&format!("DROP TABLE '{root}/out [1].csv'")).await.unwrap_err().to_string();
    assert!(error.starts_with("SQL-004 there is no table"), "{error}");
}

#[tokio::test]
async fn no_rows_leave_a_file_with_columns_and_repeated_names_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    let session = cpu();
    for format in ["PARQUET", "ARROW"] {
        let none = format!("COPY (SELECT 1 AS a, 'x' AS b WHERE false) TO '{root}/{format}/' STORED AS {format}");
        session.collect(&none).await.unwrap();
        assert_eq!(answer(&session, &format!("SELECT count(a), count(b) FROM '{root}/{format}/'")).await, "0 0");
    }
    session.collect(&format!("COPY (SELECT 1, 1, 2 AS a, 3 AS a) TO '{root}/names.csv'")).await.unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("names.csv")).unwrap(), "1,1,a,a\n1,1,2,3\n");
}
