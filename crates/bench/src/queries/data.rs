//! A benchmark's tables: made if they are not there, and registered.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpcube_datagen::{
    Compression, Size, WriteOptions, write_clickbench_parquet, write_h2o_parquet, write_ssb_parquet,
    write_tpcds_parquet, write_tpch_parquet, write_windows_parquet,
};
use warpcube_sql::{Baseline, Connection, Database, DatabaseOptions};

use super::benchmark::{Benchmark, Generator};
use crate::render::text::grouped;
use crate::suite::{Failure, Run};

/// Names and paths of tables.
pub(super) type Tables = Vec<(String, PathBuf)>;

/// Tells a run how far the generator is.
struct Follower<'a>(Mutex<Making<'a>>);

struct Making<'a> {
    run: &'a mut Run,
    what: String,
    /// Rows done and rows in all of each table that was begun, by order of beginning.
    tables: Vec<(String, u64, u64)>,
}

impl<'a> Follower<'a> {
    fn lock(&self) -> MutexGuard<'_, Making<'a>> {
        // A thread that panicked while it held the lock has left numbers that are good enough for a bar.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl warpcube_datagen::Progress for Follower<'_> {
    fn rows(&self, table: &str, done: u64, total: u64) {
        let mut making = self.lock();
        let Making { run, what, tables } = &mut *making;
        match tables.iter_mut().find(|(name, ..)| name == table) {
            Some(entry) => entry.1 = entry.1.max(done),
            None => tables.push((table.to_string(), done, total)),
        }
        let (done, total) = tables.iter().fold((0, 0), |sum, (_, done, total)| (sum.0 + done, sum.1 + total));
        run.at(what, done, total);
    }

    fn cancelled(&self) -> bool {
        self.lock().run.is_stopped()
    }
}

/// Makes the tables in `folder` unless they are there; gives their names and paths.
pub(super) fn make(
    benchmark: &Benchmark,
    folder: &Path,
    compression: Compression,
    run: &mut Run,
) -> Result<Tables, Failure> {
    let named = match benchmark.generator.size() {
        Size::Scale(sf) => format!("{} at scale {sf}", benchmark.name),
        Size::Rows(rows) => format!("{} of {} rows", benchmark.name, grouped(rows)),
    };
    let what = format!("making {named}");
    let follower = Follower(Mutex::new(Making { run, what, tables: Vec::new() }));
    let options = WriteOptions { compression, ..WriteOptions::default() };
    let report = match benchmark.generator {
        Generator::Ssb(sf) => write_ssb_parquet(folder, sf, &options, &follower),
        Generator::Tpch(sf) => write_tpch_parquet(folder, sf, &options, &follower),
        Generator::Tpcds(sf) => write_tpcds_parquet(folder, sf, &options, &follower),
        Generator::Clickbench(rows) => write_clickbench_parquet(folder, rows, &options, &follower),
        Generator::H2o(rows) => write_h2o_parquet(folder, rows, &options, &follower),
        Generator::Windows(rows) => write_windows_parquet(folder, rows, &options, &follower),
    }?;
    let (rows, bytes) = report.tables.iter().fold((0, 0), |sum, table| (sum.0 + table.rows, sum.1 + table.bytes));
    run.tell(&format!(
        "{named}: {} rows, {:.2} GiB in {}{}",
        grouped(rows),
        bytes as f64 / f64::from(1 << 30),
        report.dir.display(),
        if report.reused { " (was there)" } else { "" },
    ));
    Ok(report.tables.into_iter().map(|table| (table.name, table.path)).collect())
}

/// The file of the largest table sorted by a column, which lies beside its own.
pub(super) fn sorted(path: &Path, name: &str, column: &str) -> PathBuf {
    path.with_file_name(format!("{name}-by-{column}.parquet"))
}

/// Sorts a table by a column into a file.
pub(super) async fn sort(tables: Tables, name: String, column: String, target: PathBuf) -> Result<(), Failure> {
    let connection = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu"))?.connect();
    register(&connection, &tables).await?;
    let (column, file) = (column.replace('"', "\"\""), target.display().to_string().replace('\'', "''"));
    let sql = format!("COPY (SELECT * FROM \"{name}\" ORDER BY \"{column}\") TO '{file}' STORED AS PARQUET");
    connection.collect(&sql).await?;
    Ok(())
}

/// Makes the tables known to a connection.
pub(super) async fn register(connection: &Connection, tables: &[(String, PathBuf)]) -> Result<(), Failure> {
    for (name, path) in tables {
        let path = path.display().to_string().replace('\'', "''");
        let sql = format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS PARQUET LOCATION '{path}'");
        connection.collect(&sql).await?;
    }
    Ok(())
}

/// Makes the tables known to plain DataFusion.
pub(super) async fn baseline(tables: &[(String, PathBuf)]) -> Result<Baseline, Failure> {
    let baseline = Baseline::default();
    for (name, path) in tables {
        baseline.register_parquet(name, path).await?;
    }
    Ok(baseline)
}
