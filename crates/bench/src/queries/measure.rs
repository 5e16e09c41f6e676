//! Runs a case and measures it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use serde_json::Value;
use tokio::task::JoinSet;
use warpcube_sql::{Baseline, Connection, Phase, Place, SqlError, Summary};

use super::benchmark::Query;
use super::verify;
use crate::report::{self, Case, Figures};
use crate::stats::{self, Sample};
use crate::suite::Failure;

/// The measurements of one case: its result, and what is compared, added up or shown behind it.
pub(super) struct Measured {
    /// The result. `cold_ms` is the first run, loading taken off, only if a compiler ran in it: of all its kernels
    /// where their cache was empty. `warm_ms` is text in to rows out after the case has settled, `fresh_ms` that of its
    /// variations, each once and for the first time, behind the warm runs, and `fresh` has their steps.
    pub(super) case: Case,
    /// The answer of the last run.
    pub(super) answer: Vec<RecordBatch>,
    /// That of the first, which other kernels may have given, or the CPU.
    pub(super) first_answer: Vec<RecordBatch>,
    /// The variations that ran, with their answers.
    pub(super) varied: Vec<(String, Vec<RecordBatch>)>,
    /// Device memory of its tables and results.
    arena: u64,
    /// Allocations that its warm runs asked of the driver; none without a device.
    driver_allocations: Option<u64>,
    /// Where fragments ran, with reasons.
    pub(super) placement: Vec<(Place, String)>,
    /// Bytes that the first run loaded, the time it took, and that of all threads together.
    loaded: (u64, Duration, Duration),
    /// True if DuckDB's answer has the same rows and sums.
    pub(super) is_shared: bool,
}

/// The loads of all first runs; none where nothing was loaded.
pub(super) fn loading(results: &[Measured]) -> Option<report::Loading> {
    let bytes = results.iter().map(|measured| measured.loaded.0).sum::<u64>();
    let time = results.iter().map(|measured| measured.loaded.1).sum();
    // The time of all threads together: reading, decoding, encoding, handing over.
    let busy: Duration = results.iter().map(|measured| measured.loaded.2).sum();
    let gb_per_s_core = bytes as f64 / busy.as_secs_f64() / 1e9;
    (bytes > 0 && !busy.is_zero()).then(|| report::Loading { bytes, ms: milliseconds(time), gb_per_s_core })
}

/// The memory of a connection after all cases; none without a device.
pub(super) fn memory(connection: &Connection, results: &[Measured]) -> Option<report::Memory> {
    let usage = connection.database().device().get()?.pool().usage();
    let tables = connection.database().resident_tables();
    Some(report::Memory {
        columns_bytes: tables.iter().flat_map(|table| &table.columns).map(|column| column.bytes).sum(),
        tables_bytes: results.iter().map(|result| result.arena).max().unwrap_or_default(),
        held_bytes: usage.live + usage.cached,
        held_peak_bytes: usage.held_peak,
        reserved_peak_bytes: usage.reserved_peak,
        budget_bytes: usage.budget,
        warm_driver_allocations: results.iter().filter_map(|result| result.driver_allocations).sum(),
    })
}

/// A time as reports have it.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Runs all cases on each of `threads` threads, which begin with different ones; `expected` are the answers. Gives
/// where an answer was not the one expected, too.
pub(super) async fn threads(
    connection: &Arc<Connection>,
    cases: &[Query],
    expected: &[Vec<RecordBatch>],
    threads: usize,
) -> Result<(report::Threads, Vec<String>), Failure> {
    let (cases, expected): (Arc<[Query]>, Arc<[Vec<RecordBatch>]>) = (cases.into(), expected.into());
    let clock = Instant::now();
    let mut running = JoinSet::new();
    for thread in 0..threads {
        let (connection, cases, expected) = (connection.clone(), cases.clone(), expected.clone());
        running.spawn(async move {
            let mut differences = Vec::new();
            for step in 0..cases.len() {
                let at = (thread + step) % cases.len();
                let (answer, _, _) = run(&connection, &cases[at].name, &cases[at].sql).await?;
                let difference = verify::compare(&cases[at].sql, &answer, &expected[at]);
                differences.extend(difference.map(|found| format!("{}, thread {thread}: {found}", cases[at].name)));
            }
            Ok::<_, Failure>(differences)
        });
    }
    let mut differences = Vec::new();
    while let Some(ended) = running.join_next().await {
        let found = ended.map_err(|error| Failure::from(SqlError::Internal(error.to_string())))?;
        differences.extend(found?);
    }
    let (statements, time) = (threads * cases.len(), clock.elapsed());
    let statements_per_s = statements as f64 / time.as_secs_f64();
    let verified = differences.is_empty();
    Ok((report::Threads { threads, statements, ms: milliseconds(time), statements_per_s, verified }, differences))
}

/// Plain DataFusion's rows of a case, and its warm times.
#[derive(Default)]
pub(super) struct Rival {
    answer: Option<Vec<RecordBatch>>,
    first: Duration,
    times: Vec<Duration>,
}

impl Rival {
    /// Runs the case once; the first time is kept apart.
    async fn run(&mut self, baseline: &Baseline, case: &Query) -> Result<(), Failure> {
        let is_first = self.answer.is_none();
        let clock = Instant::now();
        self.answer = Some(judged(baseline, &case.name, &case.sql).await?);
        match is_first {
            true => self.first = clock.elapsed(),
            false => self.times.push(clock.elapsed()),
        }
        Ok(())
    }

    /// Runs the case until it has been timed `runs` times, and notes its times; its rows.
    pub(super) async fn end(
        mut self,
        baseline: &Baseline,
        case: &Query,
        runs: usize,
        measured: &mut Measured,
    ) -> Result<Vec<RecordBatch>, Failure> {
        while self.times.len() < runs {
            self.run(baseline, case).await?;
        }
        let times = [("datafusion_ms", median(self.times)), ("datafusion_first_ms", self.first)];
        measured.case.rivals.extend(times.map(|(name, time)| (name.to_string(), milliseconds(time))));
        Ok(self.answer.unwrap_or_default())
    }
}

/// Runs all cases in DataFusion before anything is timed.
pub(super) async fn warm_up(baseline: &Baseline, cases: &[Query]) -> Result<(), Failure> {
    for case in cases {
        Rival::default().run(baseline, case).await?;
    }
    Ok(())
}

/// The answer of plain DataFusion to a text of the case of that name.
pub(super) async fn judged(baseline: &Baseline, name: &str, sql: &str) -> Result<Vec<RecordBatch>, Failure> {
    let named = |error: SqlError| Failure::Sql { place: Some(format!("{name} in DataFusion")), error: Box::new(error) };
    baseline.collect(sql).await.map_err(named)
}

/// Runs a text of the case of that name.
async fn run(connection: &Connection, name: &str, sql: &str) -> Result<(Vec<RecordBatch>, Summary, Duration), Failure> {
    let clock = Instant::now();
    let named = |error: SqlError| Failure::Sql { place: Some(name.to_string()), error: Box::new(error) };
    let execution = connection.execute(sql).await.map_err(named)?;
    let report = execution.report.clone();
    let rows = execution.collect().await.map_err(named)?;
    let time = clock.elapsed();
    Ok((rows, report.summary(), time))
}

/// Runs that a case is given at least, and at most, before it counts as settled.
const SETTLING: RangeInclusive<usize> = 3..=8;

/// Runs a case until its columns and kernels are what they will be: under `auto` the CPU may have given the first
/// answer, and columns come in the background; a statement that is run again gets better kernels there.
async fn settle(connection: &Connection, case: &Query) -> Result<(), Failure> {
    if connection.database().device().get().is_none() {
        return Ok(());
    }
    for round in 0..=*SETTLING.end() {
        let came = tokio::task::block_in_place(|| connection.database().settle());
        if round >= *SETTLING.start() && !came || round == *SETTLING.end() {
            break;
        }
        run(connection, &case.name, &case.sql).await?;
    }
    Ok(())
}

/// Runs a case once for its first time and, once it has settled, `runs` times warm; then its variations, at most `runs`
/// of them, once each. Plain DataFusion's first run is right before ours, and on the CPU it takes turns with the warm
/// runs: a machine is not as fast at one time as at another.
pub(super) async fn case(
    connection: &Connection,
    query: &Query,
    runs: usize,
    baseline: Option<&Baseline>,
) -> Result<(Measured, Rival), Failure> {
    let mut rival = Rival::default();
    let beside = baseline.filter(|_| connection.database().device().gpu().is_none());
    if let Some(baseline) = baseline {
        rival.run(baseline, query).await?;
    }
    let (first_answer, first, first_time) = run(connection, &query.name, &query.sql).await?;
    let mut answer = first_answer.clone();
    settle(connection, query).await?;
    let mut last = first.clone();
    let mut warm = Vec::with_capacity(runs);
    let mut device = Vec::with_capacity(runs);
    let asked = || connection.database().device().gpu().map(|device| device.pool().usage().driver_allocations);
    let asked_before = asked();
    for _ in 0..runs {
        let (rows, summary, time) = run(connection, &query.name, &query.sql).await?;
        warm.push(time);
        device.push(summary.device);
        (answer, last) = (rows, summary);
        if let Some(baseline) = beside {
            rival.run(baseline, query).await?;
        }
    }
    let driver_allocations = asked().zip(asked_before).map(|(after, before)| after - before);
    let (mut fresh, mut varied) = (Vec::new(), Vec::new());
    for sql in query.variations.iter().take(runs) {
        let (rows, summary, time) = run(connection, &query.name, sql).await?;
        fresh.push((time, summary));
        varied.push((sql.clone(), rows));
    }
    let device = Some(median(device)).filter(|time| *time > Duration::ZERO).map(milliseconds);
    let bytes = Some(last.device_bytes).filter(|bytes| *bytes > 0);
    let bandwidth =
        connection.database().device().gpu().map(|device| device.info().peak_bandwidth).filter(|peak| *peak > 0.0);
    let floor = bytes.zip(bandwidth).map(|(bytes, peak)| bytes as f64 / peak * 1e3);
    let cold = (first.compile > Duration::ZERO).then(|| milliseconds(first_time.saturating_sub(first.loading)));
    let warm = Sample::of(&warm.into_iter().map(milliseconds).collect::<Vec<_>>());
    let is_fresh = !fresh.is_empty();
    let figures: [(&str, Option<Value>); 12] = [
        ("rows", Some(answer.iter().map(RecordBatch::num_rows).sum::<usize>().into())),
        ("device_ms", device.map(Into::into)),
        ("warm_ms", Some(warm.ms.into())),
        ("spread", Some(warm.spread.into())),
        ("fresh_ms", is_fresh.then(|| milliseconds(median(fresh.iter().map(|(time, _)| *time).collect())).into())),
        ("fresh", is_fresh.then(|| steps(&fresh).into())),
        ("cold_ms", cold.map(Into::into)),
        ("first_ms", Some(milliseconds(first_time).into())),
        ("bytes", bytes.map(Into::into)),
        ("floor_ms", floor.map(Into::into)),
        ("share_of_peak", floor.zip(device).map(|(floor, device)| (floor / device).into())),
        ("gpu_share", last.gpu_share().filter(|_| connection.database().device().gpu().is_some()).map(Into::into)),
    ];
    let mut result = Case::new(&query.name, Value::Null);
    figures.into_iter().for_each(|(figure, value)| value.into_iter().for_each(|value| result.put(figure, value)));
    let placement = last.fragments.iter().map(|fragment| {
        let reason = fragment.reason.as_deref().unwrap_or_default();
        (fragment.place, if reason.is_empty() { fragment.what.clone() } else { format!("{}: {reason}", fragment.what) })
    });
    let measured = Measured {
        case: result,
        varied,
        arena: last.arena_bytes,
        driver_allocations,
        placement: placement.collect(),
        loaded: (first.loaded_bytes, first.loading, first.load_busy),
        is_shared: false,
        answer,
        first_answer,
    };
    Ok((measured, rival))
}

/// The median milliseconds of each step of runs: phases before the first kernel, compiling, and all that is left, which
/// is to run and to give the rows back.
fn steps(runs: &[(Duration, Summary)]) -> Figures {
    let of = |step: &dyn Fn(&(Duration, Summary)) -> Duration| milliseconds(median(runs.iter().map(step).collect()));
    let phases = Phase::ALL.iter().enumerate();
    let mut steps: Vec<_> = phases.map(|(at, phase)| (phase.name(), of(&|(_, summary)| summary.phases[at]))).collect();
    steps.push(("compile", of(&|(_, summary)| summary.compile)));
    let before = |summary: &Summary| summary.phases.iter().sum::<Duration>() + summary.compile + summary.loading;
    steps.push(("run", of(&|(time, summary)| time.saturating_sub(before(summary)))));
    steps.into_iter().map(|(step, ms)| (format!("{step}_ms"), ms.into())).collect()
}

fn median(times: Vec<Duration>) -> Duration {
    stats::median(times).unwrap_or_default()
}
