//! Sessions for tests and comparison of results.

use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use arrow::util::pretty::pretty_format_batches;
use warpcube_gpu::PoolUsage;
use warpcube_sql::{Connection, Database, DatabaseOptions, Place, Summary};

/// A session on the CPU that reads files and tables as they are.
pub fn cpu() -> Connection {
    let options = DatabaseOptions::new().with("warpcube.device", "cpu").with("warpcube.placement", "files");
    Database::open(options).unwrap().connect()
}

/// The emulated device, or the device of `WARPCUBE_TEST_DEVICE` (`cuda`, on a machine that has one).
pub fn device_name() -> String {
    std::env::var("WARPCUBE_TEST_DEVICE").unwrap_or_else(|_| "emulated".into())
}

/// A session on the emulated device, or on the one that is wanted in its place.
pub fn emulated() -> Connection {
    let options = DatabaseOptions::new().with("warpcube.device", &device_name()).with("warpcube.placement", "cuda");
    let session = Database::open(options).unwrap().connect();
    if let Encodings::One(name) = Encodings::wanted() {
        session.set("warpcube.encoding", &name).unwrap();
    }
    session
}

/// A session on the CPU that keeps columns in host memory.
pub fn columns() -> Connection {
    let options = DatabaseOptions::new().with("warpcube.device", "cpu").with("warpcube.placement", "columns");
    Database::open(options).unwrap().connect()
}

/// The encodings that columns may be loaded in, by name.
pub const ENCODINGS: [&str; 11] =
    ["auto", "plain", "packed", "nsf", "nsv", "rle", "gpu-for", "gpu-dfor", "delta", "dictionary", "alp"];

/// The encodings that columns of a test are loaded in, by `WARPCUBE_TEST_ENCODING`.
#[derive(Debug, Clone, PartialEq)]
pub enum Encodings {
    /// One of [`ENCODINGS`], where columns can have it.
    One(String),
    /// All, each column by what is loaded before it (`mixed`).
    Mixed,
    /// What the session chooses.
    Default,
}

impl Encodings {
    pub fn wanted() -> Encodings {
        match std::env::var("WARPCUBE_TEST_ENCODING").ok().filter(|name| !name.is_empty()) {
            Some(name) if name == "mixed" => Encodings::Mixed,
            Some(name) => Encodings::One(name),
            None => Encodings::Default,
        }
    }
}

/// Sets the encoding of columns that are loaded from now on; numbers that follow each other give any order.
pub fn set_encoding(session: &Connection, number: u64) {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    session.set("warpcube.encoding", ENCODINGS[mixed as usize % ENCODINGS.len()]).unwrap();
}

/// A session on the same device that may leave work to the CPU.
pub fn lenient() -> Connection {
    Database::open(DatabaseOptions::new().with("warpcube.device", &device_name())).unwrap().connect()
}

/// What the pool of the session's device holds.
pub fn pool(session: &Connection) -> PoolUsage {
    session.database().device().get().expect("the session has a device").pool().usage()
}

/// Bytes of all columns on the session's device.
pub async fn resident_bytes(session: &Connection) -> u64 {
    let batches = session.collect("SHOW DEVICE TABLES").await.unwrap();
    let bytes = |batch: &RecordBatch| {
        let column = batch.column_by_name("bytes").unwrap().as_primitive::<UInt64Type>();
        column.values().iter().sum::<u64>()
    };
    batches.iter().map(bytes).sum()
}

/// Waits until nothing is in use on the session's device but its columns.
pub async fn settle(session: &Connection) {
    let mut last = None;
    for _ in 0..30_000 {
        let usage = pool(session);
        let columns = resident_bytes(session).await;
        if usage.live == columns && usage.reserved == columns {
            return;
        }
        last = Some((usage, columns));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("the device's memory does not come back to its columns: {last:?}");
}

/// Whether these tests run on a real device, which cannot be held still and tells other figures.
pub fn on_real_device() -> bool {
    std::env::var("WARPCUBE_TEST_DEVICE").is_ok_and(|device| device != "emulated")
}

/// Runs a statement to its end.
pub async fn run(session: &Connection, sql: &str) -> Result<(Vec<RecordBatch>, Summary), String> {
    let execution = session.execute(sql).await.map_err(|error| error.to_string())?;
    let report = execution.report.clone();
    let batches = execution.collect().await.map_err(|error| error.to_string())?;
    Ok((batches, report.summary()))
}

/// DataFusion's final operators of a query, as EXPLAIN VERBOSE writes them.
pub async fn physical_plan(session: &Connection, sql: &str) -> String {
    let (batches, _) = run(session, &format!("EXPLAIN VERBOSE {sql}")).await.unwrap();
    let plans = batches.iter().flat_map(|batch| {
        let (kinds, texts) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        kinds.iter().zip(texts).filter(|(kind, _)| *kind == Some("physical_plan")).map(|(_, text)| text.unwrap())
    });
    plans.collect()
}

/// Lets the programs of fragments fail on an emulated device, until [`compile_deferred`]; false on other devices.
pub fn defer_programs(session: &Connection) -> bool {
    let faults = session.database().device().get().and_then(|device| device.emulator_faults());
    faults.is_some_and(|faults| {
        faults.defer_programs(Some("fragment"));
        true
    })
}

/// Compiles the programs that failed, together.
pub fn compile_deferred(session: &Connection) {
    session.database().device().get().expect("the session has a device").compile_deferred();
}

/// Has the programs of statements compiled together, before they run one after the other.
pub async fn rehearse(session: &Connection, statements: impl IntoIterator<Item = String>) {
    if !defer_programs(session) {
        return;
    }
    for sql in statements {
        _ = run(session, &sql).await;
    }
    compile_deferred(session);
}

/// True if a statement failed because its programs are deferred.
pub fn is_deferred(error: &str) -> bool {
    error.starts_with("GPU-002") && error.contains("programs are deferred")
}

/// The rows as text, sorted, behind the names of columns; nothing where there are no rows, which may come as an empty
/// batch or as none.
pub fn rows(batches: &[RecordBatch]) -> Vec<String> {
    if batches.iter().all(|batch| batch.num_rows() == 0) {
        return Vec::new();
    }
    let text = pretty_format_batches(batches).unwrap().to_string();
    let mut rows: Vec<String> = text.lines().filter(|line| line.starts_with('|')).map(str::to_string).collect();
    rows.sort();
    rows
}

/// The cells of a result's only row, and where its fragments ran.
pub async fn one(session: &Connection, sql: &str) -> (String, Vec<Place>) {
    let (batches, summary) = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let cells = crate::format::rows(&batches);
    assert_eq!(cells.len(), 1, "{sql}\n{cells:?}");
    (cells[0].join(" "), summary.fragments.iter().map(|fragment| fragment.place).collect())
}

/// Runs a statement on the emulated device and on the CPU; both give the same rows, and the first ran on the device.
pub async fn same_on_device(device: &Connection, cpu: &Connection, sql: &str) {
    let (expected, _) = run(cpu, sql).await.unwrap_or_else(|error| panic!("{sql}\non the CPU: {error}"));
    let (found, summary) = run(device, sql).await.unwrap_or_else(|error| panic!("{sql}\non the device: {error}"));
    assert_eq!(rows(&found), rows(&expected), "{sql}");
    assert!(
        summary.fragments.iter().all(|fragment| fragment.place == Place::Gpu) && !summary.fragments.is_empty(),
        "{sql}\nran elsewhere: {:?}",
        summary.fragments
    );
}

/// The folder of SQL test files.
pub fn slt_folder() -> std::path::PathBuf {
    // Asked for when running: on a machine with a GPU the tests run where they were not built.
    let own = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    std::path::Path::new(&own).join("../../slt")
}
