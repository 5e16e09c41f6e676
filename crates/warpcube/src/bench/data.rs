//! A benchmark's tables: made if they are not there, and registered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warpcube_datagen::{Compression, DatagenError, WriteOptions, WriteReport, write_ssb_parquet, write_tpch_parquet};
use warpcube_sql::{Baseline, Connection, Database, DatabaseOptions, Progress};

use super::suite::{Generator, Suite};
use crate::console::tell;
use crate::error::{CliError, Result};
use crate::footer;
use crate::host::Host;
use crate::progress::Bar;

/// How often the progress bar is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Follows the generator from this thread.
#[derive(Default)]
struct Follower {
    /// Rows done and rows in all of each table that was begun, by order of beginning.
    tables: std::sync::Mutex<Vec<(String, u64, u64)>>,
    stop: AtomicBool,
}

impl warpcube_datagen::Progress for Follower {
    fn rows(&self, table: &str, done: u64, total: u64) {
        // A thread that panicked while it held the lock has left numbers that are good enough for a bar.
        let mut tables = self.tables.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match tables.iter_mut().find(|(name, ..)| name == table) {
            Some(entry) => entry.1 = entry.1.max(done),
            None => tables.push((table.to_string(), done, total)),
        }
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Follower {
    fn progress(&self) -> Progress {
        let tables = self.tables.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        tables.iter().fold(Progress::default(), |sum, (_, done, total)| Progress {
            done: sum.done + done,
            total: sum.total + total,
            loading: false,
        })
    }
}

/// Makes the tables in `folder` unless they are there; gives their names and paths.
pub(super) fn make(
    suite: &Suite,
    sf: f64,
    folder: &Path,
    compression: Compression,
    host: &Host,
) -> Result<Vec<(String, PathBuf)>> {
    let follower = Arc::new(Follower::default());
    let generator = suite.generator;
    let work = {
        let (follower, folder) = (follower.clone(), folder.to_path_buf());
        host.spawn_blocking(move || -> std::result::Result<WriteReport, DatagenError> {
            let options = WriteOptions { compression, ..WriteOptions::default() };
            match generator {
                Generator::Ssb => write_ssb_parquet(&folder, sf, &options, follower.as_ref()),
                Generator::Tpch => write_tpch_parquet(&folder, sf, &options, follower.as_ref()),
            }
        })
    };
    let mut bar = Bar::new(&format!("making {} at scale {sf}", suite.name));
    let mut interrupts = host.interrupts()?;
    let report = host.block_on(async {
        tokio::pin!(work);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = interrupts.recv() => follower.stop.store(true, Ordering::Relaxed),
                _ = tick.tick() => bar.update(follower.progress()),
            }
        }
    });
    bar.clear();
    let report = report.map_err(|error| CliError::Data(format!("the generator failed: {error}")))??;
    let (rows, bytes) = report.tables.iter().fold((0, 0), |sum, table| (sum.0 + table.rows, sum.1 + table.bytes));
    tell(format_args!(
        "{} at scale {sf}: {} rows, {:.2} GiB in {}{}",
        suite.name,
        footer::grouped(rows),
        bytes as f64 / f64::from(1 << 30),
        report.dir.display(),
        if report.reused { " (was there)" } else { "" },
    ));
    Ok(report.tables.into_iter().map(|table| (table.name, table.path)).collect())
}

/// Sorts the largest table by a column into a file beside it, unless that is there; gives the tables with that file in
/// its place.
pub(super) async fn sorted(
    suite: &Suite,
    mut tables: Vec<(String, PathBuf)>,
    column: &str,
) -> Result<Vec<(String, PathBuf)>> {
    let session = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu"))?.connect();
    register(&session, &tables).await?;
    let Some((name, path)) = tables.iter_mut().find(|(name, _)| name == suite.largest) else { return Ok(tables) };
    let target = path.with_file_name(format!("{name}-by-{column}.parquet"));
    if !target.exists() {
        tell(format_args!("sorting {name} by {column}"));
        let (column, file) = (column.replace('"', "\"\""), target.display().to_string().replace('\'', "''"));
        session
            .collect(&format!("COPY (SELECT * FROM \"{name}\" ORDER BY \"{column}\") TO '{file}' STORED AS PARQUET"))
            .await?;
    }
    *path = target;
    Ok(tables)
}

/// Makes the tables known to a session.
pub(super) async fn register(session: &Connection, tables: &[(String, PathBuf)]) -> Result<()> {
    for (name, path) in tables {
        let path = path.display().to_string().replace('\'', "''");
        let sql = format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS PARQUET LOCATION '{path}'");
        session.collect(&sql).await?;
    }
    Ok(())
}

/// Makes the tables known to plain DataFusion.
pub(super) async fn baseline(tables: &[(String, PathBuf)]) -> Result<Baseline> {
    let baseline = Baseline::default();
    for (name, path) in tables {
        baseline.register_parquet(name, path).await?;
    }
    Ok(baseline)
}
