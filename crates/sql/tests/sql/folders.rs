//! Which files a folder or a pattern means: the same on the device, which reads them directly, and on the CPU, whose
//! scans list them.

use std::path::Path;

use warpcube_sql::Session;

use crate::support::{cpu, emulated, one};

/// Writes a table of one row at a place of a folder.
async fn write(folder: &Path, name: &str, value: i64) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Names that are hidden from tables are no places for COPY either.
    let fresh = folder.join("fresh.parquet");
    let copy = format!("COPY (SELECT CAST({value} AS BIGINT) AS a) TO '{}' STORED AS PARQUET", fresh.display());
    cpu().collect(&copy).await.unwrap();
    std::fs::rename(fresh, path).unwrap();
}

/// The sum over what a name means, by the device and by the CPU.
async fn sums(sessions: &[Session; 2], folder: &Path, name: &str) -> [String; 2] {
    let sql = format!("SELECT sum(a) FROM '{}'", folder.join(name).display());
    let [device, host] = sessions;
    [one(device, &sql).await.0, one(host, &sql).await.0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_device_and_the_cpu_read_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, value) in [
        ("a.parquet", 1),
        ("b.parquet", 2),
        ("._a.parquet", 10),
        ("_b.parquet", 20),
        ("sub/c.parquet", 100),
        ("written.parquet/part-0.parquet", 10_000),
        ("_temporary/e.parquet", 100_000),
    ] {
        write(at, name, value).await;
    }
    let sessions = [emulated(), cpu()];
    for (name, expected) in [
        ("*.parquet", "3"),
        ("[ab].parquet", "3"),
        ("sub/", "100"),
        ("_temporary/", "100000"),
        ("_temporary/*.parquet", "100000"),
        ("._a.parquet", "10"),
        ("sub/*.parquet", "100"),
        ("*/*.parquet", "10100"),
        ("**/*.parquet", "10103"),
        ("**/c.parquet", "100"),
        ("s*/**/*.parquet", "100"),
    ] {
        assert_eq!(sums(&sessions, at, name).await, [expected, expected], "{name}");
    }
    for session in &sessions {
        let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}/'", at.join("sub").display());
        session.collect(&create).await.unwrap();
        assert_eq!(one(session, "SELECT sum(a), count(*) FROM t").await.0, "100 1");
    }
    // What joins a folder is seen by both, and what is hidden by neither.
    write(at, "sub/more.parquet", 7).await;
    write(at, "sub/_SUCCESS.parquet", 5).await;
    write(at, "sub/deep/f.parquet", 3).await;
    for session in &sessions {
        assert_eq!(one(session, "SELECT sum(a), count(*) FROM t").await.0, "107 2");
    }
    let names = sums(&sessions, at, "**/*.parquet").await;
    assert_eq!(names, ["10113", "10113"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_are_read_with_the_folder_they_are_in() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, value) in [
        ("k=1/j=1/a.parquet", 1),
        ("k=2/j=1/b.parquet", 2),
        ("k=2/j=1/._b.parquet", 10),
        ("k=2/_temporary/c.parquet", 20),
        ("k=2/plain/d.parquet", 40),
    ] {
        write(at, name, value).await;
    }
    let sessions = [emulated(), cpu()];
    for (name, expected) in [
        ("", "3"),
        ("*.parquet", "3"),
        ("**/*.parquet", "3"),
        ("k=2/", "2"),
        ("k=2/plain/", "40"),
        ("**/b.parquet", "2"),
    ] {
        assert_eq!(sums(&sessions, at, name).await, [expected, expected], "{name}");
    }
    let sql = format!("SELECT sum(k * a) FROM '{}'", at.join("**/*.parquet").display());
    for session in &sessions {
        assert_eq!(one(session, &sql).await.0, "5");
    }
}
