//! What a session may reach: `warpcube.allowed_paths` and `warpcube.read_only`, by every statement that names a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use warpcube_sql::{Connection, Database, DatabaseOptions};

use crate::support::{cpu, emulated, one, run};

/// The error of a statement.
async fn error(session: &Connection, sql: &str) -> String {
    run(session, sql).await.map(|_| ()).expect_err(sql)
}

/// A folder with an allowed and a forbidden folder below, a table of one column in each.
async fn folders() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["in", "out"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        for file in ["t.parquet", "t.csv"] {
            let path = folder.path().join(name).join(file);
            cpu().collect(&format!("COPY (SELECT 7 AS a) TO '{}'", path.display())).await.unwrap();
        }
    }
    folder
}

fn allowed(folder: &Path) -> Connection {
    let options = DatabaseOptions::new()
        .with("warpcube.device", "cpu")
        .with("warpcube.allowed_paths", &folder.join("in").display().to_string());
    Database::open(options).unwrap().connect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_outside_of_the_allowed_folders_are_out_of_reach() {
    let folder = folders().await;
    let root = folder.path().display().to_string();
    symlink(folder.path().join("out"), folder.path().join("in/away")).unwrap();
    symlink(folder.path().join("out/t.parquet"), folder.path().join("in/link.parquet")).unwrap();
    symlink(folder.path().join("out/new.parquet"), folder.path().join("in/dangling.parquet")).unwrap();
    let session = allowed(folder.path());
    for name in ["in/t.parquet", "in/../in/t.csv", "in/t.*et"] {
        assert_eq!(one(&session, &format!("SELECT a FROM '{root}/{name}'")).await.0, "7", "{name}");
    }
    for name in [
        "out/t.parquet",
        "out/none.parquet",
        "out/",
        "in/../out/t.csv",
        "out/*.csv",
        "*/*.csv",
        "in/**/../../out/*.csv",
        "in/away/t.csv",
        "in/link.parquet",
        "in/dangling.parquet",
        "in/*.parquet",
    ] {
        let place = format!("{root}/{name}");
        for sql in [
            format!("SELECT * FROM '{place}'"),
            format!("SELECT * FROM 'file://{place}'"),
            format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{place}'"),
            format!("CREATE EXTERNAL TABLE x (a INT) STORED AS PARQUET LOCATION '{place}'"),
            format!("CREATE VIEW x AS SELECT * FROM '{place}'"),
            format!("DESCRIBE '{place}'"),
            format!("SELECT * FROM read_blob('{place}')"),
            format!("SELECT * FROM glob('{place}')"),
            format!("COPY (SELECT 8 AS a) TO '{place}' STORED AS CSV"),
        ] {
            // Patterns are no targets, and no URLs.
            if name.contains('*') && (sql.starts_with("COPY") || sql.contains("file://")) {
                continue;
            }
            let found = error(&session, &sql).await;
            assert!(found.starts_with("FILE-007 "), "{sql}\n{found}");
            assert!(found.contains(&root), "{sql}\n{found}");
        }
    }
    assert!(!folder.path().join("out/new.parquet").exists());
    for sql in [format!("FROM glob('{root}/{{in,out}}/*.csv')"), format!("FROM read_text('{root}/{{in,out}}/t.csv')")] {
        let found = error(&session, &sql).await;
        assert!(found.starts_with("FILE-007 "), "{sql}\n{found}");
    }
    assert_eq!(one(&session, &format!("SELECT count(*) FROM glob('{root}/in/t.csv')")).await.0, "1");
    for name in ["'s3://bucket/t.parquet'", "'https://host/t.parquet'", "read_csv('https://host/t.csv')"] {
        let found = error(&session, &format!("SELECT * FROM {name}")).await;
        assert!(found.starts_with("FILE-007 "), "{name}: {found}");
    }
    let s3 = "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 's3://bucket/t.csv'";
    assert_eq!(error(&session, s3).await, "FILE-007 s3://bucket/t.csv: outside of warpcube.allowed_paths");
    // What is allowed is written and read.
    session.collect(&format!("COPY (SELECT 9 AS a) TO '{root}/in/sub/new.parquet'")).await.unwrap();
    session.collect(&format!("CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION '{root}/in/sub/'")).await.unwrap();
    session.collect("INSERT INTO n VALUES (11)").await.unwrap();
    assert_eq!(one(&session, "SELECT sum(a) FROM n").await.0, "20");
    // A folder of keys that leads elsewhere.
    symlink(folder.path().join("out"), folder.path().join("in/sub/k=1")).unwrap();
    let keys = format!("COPY (SELECT 1 AS k, 2 AS a) TO '{root}/in/sub/' STORED AS PARQUET PARTITIONED BY (k)");
    for (option, told) in [("append", format!("FILE-007 {root}/in/sub/k=1/")), ("overwrite", "FILE-009 ".into())] {
        let found = error(&session, &format!("{keys} OPTIONS ({option} true)")).await;
        assert!(found.starts_with(&told), "{found}");
    }
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 2);
    fs::remove_file(folder.path().join("in/sub/k=1")).unwrap();
    // A file of the table that becomes a link to another place.
    let moved = folder.path().join("in/sub/new.parquet");
    fs::remove_file(&moved).unwrap();
    symlink(folder.path().join("out/t.parquet"), &moved).unwrap();
    assert!(error(&session, "SELECT sum(a) FROM n").await.starts_with("FILE-007 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_made_before_are_looked_at_again_and_the_setting_is_locked() {
    let folder = folders().await;
    let root = folder.path().display().to_string();
    let session = emulated();
    for name in ["in", "out"] {
        let create = format!("CREATE EXTERNAL TABLE t_{name} STORED AS PARQUET LOCATION '{root}/{name}/t.parquet'");
        session.collect(&create).await.unwrap();
        assert_eq!(one(&session, &format!("SELECT sum(a) FROM t_{name}")).await.0, "7");
    }
    session.collect("CREATE VIEW v AS SELECT a FROM t_out").await.unwrap();
    let plan = session.encode_plan("SELECT a FROM t_out").await.unwrap();
    session.set("warpcube.allowed_paths", &format!("{root}/in")).unwrap();
    assert_eq!(one(&session, "SELECT sum(a) FROM t_in").await.0, "7");
    for sql in ["SELECT sum(a) FROM t_out", "SELECT a FROM t_out", "SELECT * FROM v", "LOAD TABLE t_out"] {
        assert!(error(&session, sql).await.starts_with("FILE-007 "), "{sql}");
    }
    let received = session.run_encoded(&plan).await.map(|_| ()).unwrap_err().to_string();
    assert!(received.starts_with("FILE-007 "), "{received}");
    for value in ["all", root.as_str()] {
        let error = session.set("warpcube.allowed_paths", value).unwrap_err().to_string();
        assert!(error.starts_with("CFG-004 warpcube.allowed_paths = '"), "{error}");
    }
    assert!(error(&session, "RESET warpcube.allowed_paths").await.starts_with("CFG-004 "));
    session.set("warpcube.allowed_paths", &format!("{root}/in")).unwrap();
    for name in ["warpcube.spill_folder", "warpcube.encoded_folder", "warpcube.dump_source"] {
        let error = session.set(name, &format!("{root}/out/x")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("CFG-004 {name} = '")), "{error}");
        session.set(name, &format!("{root}/in/x")).unwrap();
    }
    assert!(session.set("datafusion.runtime.temp_directory", &format!("{root}/out/x")).is_err());
    assert!(!folder.path().join("out/x").exists());
    let error = session.set("warpcube.allowed_paths", "/no/such/folder").unwrap_err().to_string();
    assert!(error.starts_with("CFG-002 "), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_read_only_writes_no_file() {
    let folder = folders().await;
    let root = folder.path().display().to_string();
    let session = cpu();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{root}/in/'");
    session.collect(&create).await.unwrap();
    session.set("warpcube.read_only", "on").unwrap();
    for sql in [
        format!("COPY (SELECT 1) TO '{root}/in/x.parquet'"),
        format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{root}/in/x.parquet'"),
        "INSERT INTO t VALUES (1)".to_string(),
    ] {
        let found = error(&session, &sql).await;
        assert!(found.starts_with("FILE-008 ") && found.ends_with("read-only (warpcube.read_only)"), "{sql}\n{found}");
    }
    session.collect("PREPARE p AS INSERT INTO t VALUES ($1)").await.unwrap();
    assert!(error(&session, "EXECUTE p(1)").await.starts_with("FILE-008 "));
    for sql in ["SET warpcube.read_only = off", "RESET warpcube.read_only"] {
        assert!(error(&session, sql).await.starts_with("CFG-004 warpcube.read_only = 'off' is refused"), "{sql}");
    }
    for (name, value) in [
        ("warpcube.encoded_files", "write"),
        ("warpcube.dump_source", root.as_str()),
        ("warpcube.spill_folder", root.as_str()),
        ("datafusion.runtime.temp_directory", root.as_str()),
    ] {
        let found = session.set(name, value).unwrap_err().to_string();
        assert!(found.starts_with(&format!("CFG-004 {name} = '{value}' is refused")), "{found}");
    }
    for sql in [
        "CREATE TABLE m AS SELECT a FROM t",
        "INSERT INTO m VALUES (5)",
        "CREATE VIEW v AS SELECT * FROM m",
        "EXPLAIN COPY (SELECT 1) TO 'x.parquet'",
    ] {
        session.collect(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    assert_eq!(one(&session, "SELECT sum(a) FROM v").await.0, "12");
    assert_eq!(fs::read_dir(folder.path().join("in")).unwrap().count(), 2);
    let options = DatabaseOptions::new().with("warpcube.read_only", "on").with("warpcube.encoded_files", "write");
    let found = Database::open(options).unwrap_err().to_string();
    assert!(found.starts_with("CFG-004 warpcube.encoded_files = 'write' (from flag program) is refused"), "{found}");
}
