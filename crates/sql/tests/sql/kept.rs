//! Files of encoded columns: another session answers from them without reading the table's files, and from those where
//! a file of encoded columns is not what was written.

use std::fs::{File, FileTimes};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use parquet::file::reader::{FileReader, SerializedFileReader};
use warpcube_sql::{Connection, Summary};

use crate::support::{cpu, emulated, rows, run, same_on_device};

/// A session on the device that keeps columns in files.
fn keeping(files: &str) -> Connection {
    let session = emulated();
    session.set("warpcube.encoded_files", files).unwrap();
    // More parts than there are files: these are cut, and alike for all columns, whatever order the files are in.
    session.set("warpcube.target_partitions", "8").unwrap();
    session
}

const ROWS: &str = "SELECT value AS k, CAST(value % 7 AS INT) AS i, CAST(value * 3 - 77 AS DECIMAL(8, 2)) AS d8, \
                    CAST(value * 1001 AS DECIMAL(15, 3)) AS d15, \
                    arrow_cast(CAST(18262 + value % 100 AS INT), 'Date32') AS day, \
                    CASE WHEN value % 11 = 3 THEN NULL ELSE 'group ' || (value % 5) END AS few, \
                    CASE WHEN value % 13 = 5 THEN NULL ELSE 'a text that is long ' || value END AS many, \
                    CASE WHEN value % 17 > 0 THEN CAST(value AS DOUBLE) / 4 END AS f, value % 2 = 0 AS b \
                    FROM generate_series($from, $to)";

/// Queries that together read every column of [`ROWS`].
const QUERIES: [&str; 5] = [
    "SELECT few, count(*), sum(k), sum(i), min(day), max(day) FROM $t GROUP BY few",
    "SELECT i, sum(d8), sum(d15), count(many), min(f), max(f) FROM $t GROUP BY i",
    "SELECT b, min(many), max(many), min(few), count(few) FROM $t WHERE many LIKE '%7%' GROUP BY b",
    "SELECT many, sum(d15) FROM $t WHERE day < DATE '2020-01-09' AND few <> 'group 1' GROUP BY many",
    "SELECT count(*) FROM $t WHERE few = 'group 4' AND many > 'a text that is long 3'",
];

/// Writes rows as a file in small row groups.
async fn write(path: &Path, from: usize, to: usize) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let rows = ROWS.replace("$from", &from.to_string()).replace("$to", &to.to_string());
    let format = if path.extension().unwrap() == "csv" { "CSV" } else { "PARQUET" };
    let options = if format == "CSV" { "" } else { "OPTIONS ('format.max_row_group_size' '1500')" };
    let sql = format!("COPY ({rows}) TO '{}' STORED AS {format} {options}", path.display());
    cpu().collect(&sql).await.unwrap();
}

/// The sums of what some statements loaded, and of what of it was kept; and their warnings.
#[derive(Debug, Default)]
struct Loaded {
    bytes: u64,
    restored: u64,
    warnings: Vec<String>,
}

impl Loaded {
    fn add(&mut self, summary: Summary) {
        self.bytes += summary.loaded_bytes;
        self.restored += summary.restored_bytes;
        self.warnings.extend(summary.warnings);
    }

    fn is_from_source(&self) -> bool {
        self.bytes > 0 && self.restored == 0
    }

    fn is_from_files(&self) -> bool {
        self.bytes > 0 && self.restored == self.bytes
    }
}

/// A table: a statement that makes it, if it takes one, and its name.
struct Table {
    create: Option<String>,
    name: String,
}

impl Table {
    fn by_name(path: impl std::fmt::Display) -> Table {
        Table { create: None, name: format!("'{path}'") }
    }

    fn created(how: &str, path: &Path) -> Table {
        let create = format!("CREATE EXTERNAL TABLE t {how} LOCATION '{}'", path.display());
        Table { create: Some(create), name: "t".into() }
    }

    async fn make(&self, session: &Connection) {
        if let Some(create) = &self.create {
            session.collect(create).await.unwrap_or_else(|error| panic!("{create}: {error}"));
        }
    }

    /// Asks all queries on a device; they have the CPU's answers.
    async fn ask(&self, session: &Connection) -> Loaded {
        let cpu = cpu();
        self.make(&cpu).await;
        self.make(session).await;
        let mut loaded = Loaded::default();
        for query in QUERIES {
            let sql = query.replace("$t", &self.name);
            let (expected, _) = run(&cpu, &sql).await.unwrap_or_else(|error| panic!("{sql}\non the CPU: {error}"));
            let (found, summary) = run(session, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(rows(&found), rows(&expected), "{sql}");
            loaded.add(summary);
        }
        loaded
    }
}

/// Files of encoded columns in a folder and below it.
fn kept_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(kept_files(&path));
        } else if path.to_string_lossy().ends_with(".warpcols") {
            found.push(path);
        }
    }
    found
}

/// Overwrites the pages of a Parquet file; its footer, size and time stay.
fn ruin(path: &Path) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    let footer = SerializedFileReader::new(file.try_clone().unwrap()).unwrap().metadata().clone();
    for column in footer.row_groups().iter().flat_map(|group| group.columns()) {
        let (start, length) = column.byte_range();
        file.write_all_at(&vec![0xa5; length as usize], start).unwrap();
    }
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_every_kind_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("one.parquet"), 0, 5_999).await;
    for (file, from) in [("many/a", 0), ("many/b", 6_000), ("parts/p=1/a", 0), ("parts/p=2/a", 3_000), ("all/a", 0)] {
        write(&path(&format!("{file}.parquet")), from, from + 2_999).await;
    }
    write(&path("lines/a.csv"), 0, 999).await;
    write(&path("lines/b.csv"), 1_000, 1_999).await;
    let parquet = "STORED AS PARQUET";
    let tables = [
        Table::by_name(path("one.parquet").display()),
        Table::created(parquet, &path("many")),
        Table::by_name(format!("{}/many/a*", folder.path().display())),
        Table::by_name(format!("{}/all/*", folder.path().display())),
        Table::created("STORED AS PARQUET PARTITIONED BY (p)", &path("parts/")),
        Table::created("STORED AS CSV", &path("lines")),
    ];
    for (number, table) in tables.iter().enumerate() {
        let first = table.ask(&keeping("write")).await;
        assert!(first.is_from_source() && first.warnings.is_empty(), "{}: {first:?}", table.name);
        assert_eq!(kept_files(folder.path()).len(), number + 1, "{}", table.name);
        let again = table.ask(&keeping("read")).await;
        assert!(again.is_from_files() && again.warnings.is_empty(), "{}: {again:?}", table.name);
        let off = table.ask(&emulated()).await;
        assert!(off.is_from_source(), "{off:?}");
    }
    // Those beside them are theirs to keep.
    let again = tables[0].ask(&keeping("read")).await;
    assert!(again.is_from_files(), "{again:?}");
    assert!(path("one.parquet.warpcols").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    write(&file, 0, 5_999).await;
    let sql = format!("SELECT few, count(*), sum(d15), max(many), min(f) FROM '{}' GROUP BY few", file.display());
    let expected = rows(&run(&keeping("write"), &sql).await.unwrap().0);
    ruin(&file);
    let found = run(&emulated(), &sql).await.map(|(batches, _)| rows(&batches));
    assert!(found.is_err(), "the pages are ruined: {found:?}");
    let (found, summary) = run(&keeping("read"), &sql).await.unwrap();
    assert_eq!((rows(&found), summary.warnings), (expected, vec![]));
    // A column that was not kept is not to be had.
    let other = format!("SELECT max(k) FROM '{}'", file.display());
    assert!(run(&keeping("read"), &other).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_changed_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, next) = (folder.path().join("t.parquet"), folder.path().join("next.parquet"));
    write(&file, 0, 999).await;
    let table = Table::by_name(file.display());
    let told = |loaded: &Loaded| loaded.is_from_source() && loaded.warnings[0].contains("holds version '");
    assert!(table.ask(&keeping("write")).await.is_from_source());
    // Another file of that name.
    write(&next, 1_000, 1_999).await;
    std::fs::rename(&next, &file).unwrap();
    assert!(told(&table.ask(&keeping("read")).await));
    let again = table.ask(&keeping("write")).await;
    assert!(told(&again) && again.warnings.len() == 1, "{again:?}");
    assert!(table.ask(&keeping("read")).await.is_from_files());
    // The same bytes at another time.
    let touched = File::options().write(true).open(&file).unwrap();
    let later = touched.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(1);
    touched.set_times(FileTimes::new().set_modified(later)).unwrap();
    assert!(told(&table.ask(&keeping("read")).await));
    // A file that joins a folder.
    let many = folder.path().join("many");
    write(&many.join("a.parquet"), 0, 999).await;
    let table = Table::created("STORED AS PARQUET", &many);
    let session = keeping("write");
    assert!(table.ask(&session).await.is_from_source());
    write(&many.join("b.parquet"), 5_000, 5_999).await;
    assert!(told(&table.ask(&keeping("write")).await));
    // The session from before sees it too, and takes what the other one kept.
    let sql = "SELECT count(*), sum(k) FROM t";
    let cpu = cpu();
    table.make(&cpu).await;
    same_on_device(&session, &cpu, sql).await;
    assert!(table.ask(&keeping("read")).await.is_from_files());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_is_told_and_read_from_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    write(&file, 0, 5_999).await;
    let table = Table::by_name(file.display());
    table.ask(&keeping("write")).await;
    let kept = folder.path().join("t.parquet.warpcols");
    let bytes = std::fs::read(&kept).unwrap();
    let end = bytes.len();
    let changed = |at: usize, byte: u8| {
        let mut changed = bytes.clone();
        changed[at] = byte;
        changed
    };
    let damaged = [
        (Vec::new(), "is damaged at its end"),
        (bytes[..end / 2].to_vec(), "is damaged at its end"),
        (bytes[..end - 1].to_vec(), "is damaged at its end"),
        (changed(0, b'X'), "is damaged at its beginning"),
        (changed(8, 1), "has format version 1 of encoded columns, this program reads 3"),
        (changed(8, 4), "has format version 4 of encoded columns, this program reads 3"),
        (changed(end - 30, !bytes[end - 30]), "is damaged at the directory: its checksum differs"),
        (changed(64, !bytes[64]), "', chunk 0: its checksum differs"),
        (changed(100, !bytes[100]), "', chunk 0: its checksum differs"),
    ];
    for (content, told) in damaged {
        std::fs::write(&kept, content).unwrap();
        let read = table.ask(&keeping("read")).await;
        assert!(read.restored < read.bytes, "{told}: {read:?}");
        assert!(read.warnings.iter().all(|warning| warning.contains(told)), "{told}: {:?}", read.warnings);
        assert!(read.warnings[0].contains("t.parquet.warpcols'"), "{:?}", read.warnings);
        let written = table.ask(&keeping("write")).await;
        assert!(!written.warnings.is_empty(), "{told}");
        let again = table.ask(&keeping("read")).await;
        assert!(again.is_from_files() && again.warnings.is_empty(), "{told}: it was not replaced: {again:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_their_own_holds_the_columns_of_all_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, data) = (folder.path().join("kept/here"), folder.path().join("data"));
    let own = |files: &str| {
        let session = keeping(files);
        session.set("warpcube.encoded_folder", &kept.display().to_string()).unwrap();
        session
    };
    for (name, from) in [("a", 0), ("b", 500)] {
        write(&data.join(format!("{name}/t.parquet")), from, from + 999).await;
        let table = Table::by_name(data.join(format!("{name}/t.parquet")).display());
        assert!(table.ask(&own("write")).await.is_from_source());
        assert!(table.ask(&own("read")).await.is_from_files());
    }
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("t.parquet-");
    let files = kept_files(folder.path());
    assert!(files.len() == 2 && files.iter().all(named) && kept_files(&data).is_empty(), "{files:?}");
    // Back beside the tables, where there is nothing.
    let session = own("read");
    session.set("warpcube.encoded_folder", "").unwrap();
    let table = Table::by_name(data.join("a/t.parquet").display());
    assert!(table.ask(&session).await.is_from_source());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_written_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let (file, taken) = (folder.path().join("t.parquet"), folder.path().join("taken"));
    write(&file, 0, 999).await;
    std::fs::write(&taken, "a file in the folder's place").unwrap();
    let session = keeping("write");
    session.set("warpcube.encoded_folder", &taken.display().to_string()).unwrap();
    let loaded = Table::by_name(file.display()).ask(&session).await;
    assert!(loaded.is_from_source(), "{loaded:?}");
    let told = loaded.warnings.iter().filter(|warning| warning.starts_with("columns are not kept: ")).count();
    assert_eq!(told, 1, "{:?}", loaded.warnings);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_write_at_once_leave_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    write(&file, 0, 5_999).await;
    let table = Table::by_name(file.display());
    for _ in 0..3 {
        let sessions = [keeping("write"), keeping("write"), keeping("write")];
        let [a, b, c] = &sessions;
        let loaded = tokio::join!(table.ask(a), table.ask(b), table.ask(c));
        for loaded in [loaded.0, loaded.1, loaded.2] {
            assert!(loaded.warnings.is_empty() && loaded.bytes > 0, "{loaded:?}");
        }
        // Columns that one of them lost are added by whoever loads them next.
        table.ask(&keeping("write")).await;
        assert!(table.ask(&keeping("read")).await.is_from_files());
        assert_eq!(kept_files(folder.path()), [folder.path().join("t.parquet.warpcols")]);
        std::fs::remove_file(folder.path().join("t.parquet.warpcols")).unwrap();
    }
}

/// Columns of all tables on the device with what they were made from.
async fn origins(session: &Connection) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for batch in session.collect("SHOW DEVICE TABLES").await.unwrap() {
        let text =
            |name: &str, row: usize| batch.column_by_name(name).unwrap().as_string::<i32>().value(row).to_string();
        found.extend((0..batch.num_rows()).map(|row| (text("column_name", row), text("origin", row))));
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_evicted_comes_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    write(&file, 0, 5_999).await;
    let session = keeping("write");
    Table::created("STORED AS PARQUET", &file).make(&session).await;
    let all = |origin: &str| ["few", "k"].map(|name| (name.to_string(), origin.to_string()));
    let (_, loaded) = run(&session, "LOAD TABLE t (k, few)").await.unwrap();
    assert_eq!((loaded.restored_bytes, origins(&session).await), (0, all("source").to_vec()));
    session.collect("EVICT TABLE t").await.unwrap();
    let (_, loaded) = run(&session, "LOAD TABLE t (k, few)").await.unwrap();
    assert!(loaded.restored_bytes > 0 && loaded.restored_bytes == loaded.loaded_bytes);
    assert_eq!(origins(&session).await, all("file"));
    let explained = session.collect("EVICT TABLE t").await.is_ok();
    assert!(explained);
    let sql = "EXPLAIN ANALYZE VERBOSE SELECT few, sum(k), sum(i) FROM t GROUP BY few";
    let text = rows(&session.collect(sql).await.unwrap()).join("\n");
    assert!(text.contains("of it as they were kept: ") && text.contains("kept in a file of "), "{text}");
    assert_eq!(origins(&session).await[1..], [("i", "source"), ("k", "file")].map(|(a, b)| (a.into(), b.into())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ways_of_reading_that_differ_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kept) = (folder.path().join("t.csv"), folder.path().join("t.csv.warpcols"));
    std::fs::write(&file, "1,10\n2,20\n3,30\n").unwrap();
    let create = |options: &str| {
        format!("CREATE EXTERNAL TABLE t (a BIGINT, b BIGINT) STORED AS CSV LOCATION '{}' {options}", file.display())
    };
    let ask = async |options: &str, header: Option<&str>| {
        let session = keeping("write");
        if let Some(header) = header {
            session.collect(&format!("SET datafusion.catalog.has_header = {header}")).await.unwrap();
        }
        session.collect(&create(options)).await.unwrap();
        let (found, summary) = run(&session, "SELECT count(*), sum(a), sum(b) FROM t").await.unwrap();
        assert!(kept.exists());
        (one_row(&found), summary.restored_bytes > 0)
    };
    let (without, with) = (["3", "6", "60"], ["2", "5", "50"]);
    for (options, header, expected, restored) in [
        ("OPTIONS ('format.has_header' 'false')", None, without, false),
        ("OPTIONS ('format.has_header' 'false')", None, without, true),
        ("OPTIONS ('format.has_header' 'true')", None, with, false),
        ("OPTIONS ('format.has_header' 'true')", None, with, true),
        ("", Some("false"), without, false),
        ("", Some("false"), without, true),
        ("", Some("true"), with, false),
        ("", Some("true"), with, true),
    ] {
        let (row, from_file) = ask(options, header).await;
        assert_eq!((row, from_file), (expected.map(String::from).to_vec(), restored), "{options} {header:?}");
    }
}

/// The cells of a result's only row.
fn one_row(batches: &[RecordBatch]) -> Vec<String> {
    let rows = crate::format::rows(batches);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_in_memory_keep_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let session = keeping("write");
    session.set("warpcube.encoded_folder", &folder.path().display().to_string()).unwrap();
    session.collect("CREATE TABLE t AS VALUES (1, 'x'), (2, 'y')").await.unwrap();
    let (found, summary) = run(&session, "SELECT max(column2), sum(column1) FROM t").await.unwrap();
    assert_eq!(one_row(&found), ["y", "3"]);
    assert!(summary.loaded_bytes > 0 && summary.warnings.is_empty());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_and_patterns_do_not_see_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    write(&folder.path().join("parts/p=1/a.parquet"), 0, 99).await;
    write(&folder.path().join("parts/p=2/a.parquet"), 100, 199).await;
    write(&folder.path().join("flat/b.parquet"), 200, 299).await;
    // One of each kind that a table over these files may leave, with a name that any pattern takes.
    for name in [
        "parts/p=1/a.parquet.warpcols",
        "parts/p=2/.2-0.warpcols",
        "flat/b.parquet.warpcols",
        "flat/.1-0.b.parquet.warpcols",
    ] {
        std::fs::write(folder.path().join(name), "no data of anyone's").unwrap();
    }
    for session in [cpu(), emulated()] {
        let parts = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET PARTITIONED BY (p) LOCATION '{root}/parts/'");
        session.collect(&parts).await.unwrap();
        let one = async |sql: String| {
            let (found, _) = run(&session, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            one_row(&found)
        };
        assert_eq!(one("SELECT count(*), sum(k) FROM t".into()).await, ["200", "19900"]);
        for pattern in ["b*", "*b*", "*.parquet*", "*"] {
            assert_eq!(one(format!("SELECT sum(k) FROM '{root}/flat/{pattern}'")).await, ["24950"], "{pattern}");
        }
        assert_eq!(one(format!("SELECT count(*) FROM '{root}/parts/p=1/*'")).await, ["100"]);
        assert_eq!(one(format!("SELECT count(*) FROM '{root}/parts/p=2/'")).await, ["100"]);
        // A folder that was empty when its table was made has no pattern.
        let empty = tempfile::tempdir().unwrap();
        let made =
            format!("CREATE EXTERNAL TABLE e (k BIGINT) STORED AS PARQUET LOCATION '{}/'", empty.path().display());
        session.collect(&made).await.unwrap();
        std::fs::write(empty.path().join(".e-0.warpcols"), "no data of anyone's").unwrap();
        session.collect("INSERT INTO e VALUES (7), (8)").await.unwrap();
        assert_eq!(one("SELECT count(*), sum(k) FROM e".into()).await, ["2", "15"]);
        session.collect("DROP TABLE e").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_are_derived_from_strings_that_another_session_kept_as_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, 0, 5999).await;
    let keeping = || {
        let session = keeping("write");
        session.set("warpcube.dictionary_limit", "20").unwrap();
        session
    };
    let plain = format!("SELECT count(*) FROM '{}' WHERE many LIKE '%99'", path.display());
    let (_, summary) = run(&keeping(), &plain).await.unwrap();
    assert!(summary.loaded_bytes > 0 && summary.restored_bytes == 0, "{summary:?}");
    let derived = format!("SELECT right(many, 1) AS last, count(*) FROM '{}' GROUP BY last", path.display());
    same_on_device(&keeping(), &cpu(), &derived).await;
    let (_, summary) = run(&keeping(), &derived).await.unwrap();
    assert!(summary.restored_bytes > 0 && summary.restored_bytes == summary.loaded_bytes, "{summary:?}");
}
