//! Benchmarks of queries over a connection: SSB, TPC-H, TPC-DS, ClickBench, H2O and first rows, and of one cube
//! ([`cubes`]).
//!
//! A benchmark is data ([`benchmark`]): tables made by a generator, and queries with names. Measuring ([`measure`]),
//! comparing with plain DataFusion ([`verify`]), DuckDB as a rival ([`mod@duckdb`]) and the lines behind the table
//! ([`lines`]) know no benchmark by name.

mod args;
mod benchmark;
mod cubes;
mod data;
mod duckdb;
mod lines;
mod measure;
mod verify;
mod wait;
mod windows;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use clap::ValueEnum;
use serde_json::json;
use tokio::runtime::Handle;
pub use warpcube_datagen::Size;
use warpcube_gpu::Device;
use warpcube_sql::{Baseline, Connection, DeviceColumn, Placement};

use crate::report::{Column, Report, Threads};
use crate::suite::{About, Failure, Run, Suite, device_name};
pub use args::{ClickbenchArgs, Compression, H2oArgs, QueryArgs, Rival, ScaledArgs, WindowsArgs};
pub use benchmark::Benchmark;
use benchmark::Query;
pub use cubes::{CrossTabs, CubeQuery, Opened};
use data::Tables;
use duckdb::DuckDb;
use measure::{Measured, milliseconds};
use wait::wait;

/// The suite over a connection: a group is a query.
pub struct Queries {
    benchmark: Benchmark,
    arguments: QueryArgs,
    connection: Arc<Connection>,
    device: Option<Device>,
    /// The threads that do the work.
    threads: Handle,
    /// Made before the first query.
    tables: Tables,
    duckdb: Option<DuckDb>,
    judge: Option<Arc<Baseline>>,
    /// The query that was measured last and is not compared yet.
    last: Option<(Measured, measure::Rival)>,
    measured: Vec<Measured>,
    /// The answers, if several threads are to give them again.
    answers: Vec<Vec<RecordBatch>>,
    ran: Option<Threads>,
}

impl Benchmark {
    /// The benchmark of that name with the queries that were asked for.
    ///
    /// # Errors
    /// A benchmark, a query or a folder that is not there; no runs.
    pub fn asked(name: &str, size: Size, arguments: &QueryArgs) -> Result<Benchmark, Failure> {
        let benchmark = benchmark::find(name, size)?.only(&arguments.queries)?;
        if arguments.runs == 0 {
            return Err(Failure::Usage("--runs takes 1 or more".into()));
        }
        // Before hours of work rather than after.
        match arguments.answers.as_ref().filter(|folder| !folder.is_dir()) {
            Some(folder) => Err(Failure::Usage(format!("--answers: there is no folder '{}'", folder.display()))),
            None => Ok(benchmark),
        }
    }
}

impl Queries {
    /// A benchmark over a connection, whose work is done on these threads.
    pub fn new(benchmark: Benchmark, arguments: QueryArgs, connection: Connection, threads: Handle) -> Queries {
        let (device, connection) = (connection.database().device().gpu(), Arc::new(connection));
        Queries {
            benchmark,
            arguments,
            connection,
            device,
            threads,
            tables: Vec::new(),
            duckdb: None,
            judge: None,
            last: None,
            measured: Vec::new(),
            answers: Vec::new(),
            ran: None,
        }
    }

    /// Makes tables, has DuckDB measured, and wakes plain DataFusion.
    fn prepare(&mut self, run: &mut Run) -> Result<(), Failure> {
        let QueryArgs { dir, compression, sorted_by, rival, python, runs, verify, .. } = self.arguments.clone();
        let folder = dir.map_or_else(|| default_folder(&self.benchmark), Ok)?;
        let mut tables = data::make(&self.benchmark, &folder, compression.into(), run)?;
        let largest = tables.iter().position(|(name, _)| name == self.benchmark.largest);
        if let Some((column, at)) = sorted_by.zip(largest) {
            let (name, path) = tables[at].clone();
            let target = data::sorted(&path, &name, &column);
            if !target.exists() {
                run.tell(&format!("sorting {name} by {column}"));
                wait(&self.threads, run, data::sort(tables.clone(), name, column, target.clone()))?;
            }
            tables[at].1 = target;
        }
        let (connection, known) = (self.connection.clone(), tables.clone());
        wait(&self.threads, run, async move { data::register(&connection, &known).await })?;
        // DuckDB runs in a process that ends before anything of ours is timed, so that each has all cores.
        if let Some(rival) = rival {
            let runs = (rival == Rival::Duckdb).then_some(runs);
            let (queries, known) = (self.benchmark.queries.clone(), tables.clone());
            let measured = async move { DuckDb::measure(&python, &known, &queries, runs).await };
            self.duckdb = Some(wait(&self.threads, run, measured)?);
        }
        if verify {
            let (queries, known) = (self.benchmark.queries.clone(), tables.clone());
            // Both then find files in the page cache and threads awake.
            let judge = async move {
                let judge = data::baseline(&known).await?;
                measure::warm_up(&judge, &queries).await?;
                Ok(judge)
            };
            self.judge = Some(Arc::new(wait(&self.threads, run, judge)?));
        }
        self.tables = tables;
        Ok(())
    }
}

impl Suite for Queries {
    /// Whether the device was insisted on, or loads had to pay, among others.
    fn about(&self) -> About<'_> {
        let (settings, arguments) = (self.connection.settings(), &self.arguments);
        let (placed, encoding) = (settings.database.device.to_string(), settings.encoding.to_string());
        // A scale factor without a fraction is a whole number in JSON too.
        let (sized, size) = match self.benchmark.generator.size() {
            Size::Scale(sf) if sf.fract() == 0.0 => ("sf", json!(sf as u64)),
            Size::Scale(sf) => ("sf", json!(sf)),
            Size::Rows(rows) => ("rows", json!(rows)),
        };
        let mut params = json!({sized: size, "device": placed, "encoding": encoding});
        if let Some(column) = &arguments.sorted_by {
            params["sorted_by"] = column.as_str().into();
        }
        let is_compressed = arguments.compression != Compression::None;
        if let Some(compression) = arguments.compression.to_possible_value().filter(|_| is_compressed) {
            params["compression"] = compression.get_name().into();
        }
        About { name: self.benchmark.name, device: self.device.as_ref(), params }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        Ok(self.benchmark.queries.iter().map(|query| vec![query.name.clone()]).collect())
    }

    fn setup(&mut self, run: &mut Run, _group: usize) -> Result<(), Failure> {
        if self.tables.is_empty() { self.prepare(run) } else { Ok(()) }
    }

    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let (connection, query, judge) =
            (self.connection.clone(), self.benchmark.queries[group].clone(), self.judge.clone());
        let runs = self.arguments.runs;
        let measured = async move { measure::case(&connection, &query, runs, judge.as_deref()).await };
        self.last = Some(wait(&self.threads, run, measured)?);
        Ok(())
    }

    fn verify(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let Some((mut measured, rival)) = self.last.take() else { return Ok(()) };
        let (query, runs) = (self.benchmark.queries[group].clone(), self.arguments.runs);
        let mut differences = Vec::new();
        if let Some(judge) = self.judge.clone() {
            let query = query.clone();
            (measured, differences) = wait(&self.threads, run, async move {
                let answer = rival.end(&judge, &query, runs, &mut measured).await?;
                let mut found = compare(&query, &measured, &answer);
                found.extend(compare_varied(&query, &measured, &judge).await?);
                measured.case.verified = Some(found.is_empty());
                Ok((measured, found))
            })?;
        }
        if let Some(folder) = &self.arguments.answers {
            let expected = verify::read(&folder.join(format!("{}.csv", query.name)), &measured.answer)?;
            let found = compare(&query, &measured, &expected);
            measured.case.verified = Some(found.is_empty() && measured.case.verified != Some(false));
            differences.extend(found);
        }
        if let Some(duckdb) = &self.duckdb {
            let times = duckdb.times(&query)?;
            let difference = times.difference(&query, &measured.answer)?;
            measured.is_shared = difference.is_none();
            let known = [("duckdb_ms", times.warm), ("duckdb_first_ms", Some(times.first))].into_iter();
            let known = known.filter_map(|(name, time)| Some((name.to_string(), milliseconds(time?))));
            measured.case.rivals.extend(known);
            differences.extend(difference);
        }
        run.add(measured.case.clone());
        // The rows of an answer are not needed any more if no thread is to give them again; there may be many.
        let answer = std::mem::take(&mut measured.answer);
        (measured.first_answer, measured.varied) = (Vec::new(), Vec::new());
        self.answers.extend((self.arguments.threads > 0).then_some(answer));
        self.measured.push(measured);
        if differences.is_empty() { Ok(()) } else { Err(Failure::Wrong(differences.join("; "))) }
    }

    fn end(&mut self, run: &mut Run) -> Result<(), Failure> {
        let memory = measure::memory(&self.connection, &self.measured);
        lines::end(run, measure::loading(&self.measured), memory);
        lines::placements(run, &self.measured, self.benchmark.shows_placement);
        let count = self.arguments.threads;
        if count == 0 {
            return Ok(());
        }
        let (connection, queries) = (self.connection.clone(), self.benchmark.queries.clone());
        let answers = std::mem::take(&mut self.answers);
        let work = async move { measure::threads(&connection, &queries, &answers, count).await };
        let (ran, differences) = wait(&self.threads, run, work)?;
        lines::threads(run, &ran, differences.len());
        self.ran = Some(ran);
        if differences.is_empty() { Ok(()) } else { Err(Failure::Wrong(differences.join("; "))) }
    }

    /// The report with DuckDB, loads, memory, threads and the columns in device memory.
    fn written(&self, report: &Report) -> Report {
        let mut report = report.clone();
        if let Some(duckdb) = &self.duckdb {
            let sums = self.measured.iter().all(|measured| measured.is_shared);
            let mut known = json!({"version": duckdb.version, "threads": duckdb.threads, "sums": sums});
            match duckdb.load {
                Some(time) => known["load_ms"] = milliseconds(time).into(),
                None => known["files"] = true.into(),
            }
            report.rivals.insert("duckdb".into(), known);
        }
        report.loading = measure::loading(&self.measured);
        report.memory = measure::memory(&self.connection, &self.measured);
        report.threads = self.ran;
        let tables = self.connection.database().resident_tables();
        let columns = tables.iter().flat_map(|table| table.columns.iter().map(|entry| column(&table.name, entry)));
        report.columns = columns.collect();
        report
    }

    fn title(&self) -> Option<String> {
        let reason = match self.connection.settings().placement {
            Placement::Files => Some("warpcube.placement is 'files'".to_string()),
            _ => self.connection.database().device().no_gpu(),
        };
        match reason {
            Some(reason) => Some(format!("{} on CPU ({reason})", self.benchmark.name)),
            None => Some(format!("{} on {}", self.benchmark.name, device_name(self.device.as_ref()))),
        }
    }

    fn has_duckdb(&self) -> bool {
        self.arguments.rival.is_some()
    }
}

/// Where the first answer of a query or its last one differs from the one expected.
fn compare(query: &Query, measured: &Measured, expected: &[RecordBatch]) -> Vec<String> {
    let answers = [("its first run: ", &measured.first_answer), ("", &measured.answer)];
    let difference = |(run, answer): (&str, &Vec<RecordBatch>)| {
        let difference = verify::compare(&query.sql, answer, expected)?;
        Some(format!("{}: {run}{difference}", query.name))
    };
    answers.into_iter().filter_map(difference).collect()
}

/// Where answers of a query's variations differ from those of plain DataFusion, with their texts.
async fn compare_varied(query: &Query, measured: &Measured, judge: &Baseline) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for (sql, answer) in &measured.varied {
        let difference = verify::compare(sql, answer, &measure::judged(judge, &query.name, sql).await?);
        found.extend(difference.map(|difference| format!("{}: {difference}, by {sql}", query.name)));
    }
    Ok(found)
}

fn column(table: &str, column: &DeviceColumn) -> Column {
    Column {
        table: table.to_string(),
        column: column.name.clone(),
        encoding: column.encoding.clone(),
        bytes: column.bytes,
        bits_per_value: column.bits_per_value,
    }
}

/// `warpcube/data/ssb-sf1` or `warpcube/data/h2o-rows10000000` in the user's cache folder.
fn default_folder(benchmark: &Benchmark) -> Result<PathBuf, Failure> {
    let cache = dirs::cache_dir()
        .ok_or_else(|| Failure::Usage("there is no cache folder for the data; name a folder with --dir".into()))?;
    let size = match benchmark.generator.size() {
        Size::Scale(sf) => format!("sf{sf}"),
        Size::Rows(rows) => format!("rows{rows}"),
    };
    Ok(cache.join("warpcube").join("data").join(format!("{}-{size}", benchmark.generator.name())))
}
