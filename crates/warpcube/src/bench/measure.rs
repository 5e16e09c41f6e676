//! Runs a case and measures it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use tokio::task::JoinSet;
use warpcube_sql::{Baseline, Connection, Phase, Place, SqlError, Summary};

use super::suite::Case;
use super::{duckdb, verify};
use crate::error::{CliError, Result};

/// The measurements of one case. A figure that was not measured is none.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// The case's name.
    pub(super) name: String,
    /// Rows of the answer.
    pub(super) rows: usize,
    /// The answer of the last run.
    pub(super) answer: Vec<RecordBatch>,
    /// That of the first, which other kernels may have given, or the CPU.
    pub(super) first_answer: Vec<RecordBatch>,
    /// The first run in this process, loading included.
    pub(super) first: Duration,
    /// The first run, loading taken off; only if a compiler ran in it. Of all its kernels where their cache was empty.
    pub(super) cold: Option<Duration>,
    /// Median of the runs after it has settled, text in to rows out.
    pub(super) warm: Duration,
    /// Median of the runs of its variations, each once and for the first time, behind the warm runs.
    pub(super) fresh: Option<Duration>,
    /// Median times of the steps of these runs, with their names.
    pub(super) fresh_steps: Vec<(&'static str, Duration)>,
    /// The variations that ran, with their answers.
    pub(super) varied: Vec<(String, Vec<RecordBatch>)>,
    /// Median of their device times; none where nothing ran on a device.
    pub(super) device: Option<Duration>,
    /// Bytes the device had to move in one run.
    pub(super) bytes: Option<u64>,
    /// Those bytes over the device's bandwidth.
    pub(super) floor: Option<Duration>,
    /// Device memory of its tables and results.
    pub(super) arena: u64,
    /// Allocations that its warm runs asked of the driver; none without a device.
    pub(super) driver_allocations: Option<u64>,
    /// Share of operators that ran on the GPU.
    pub(super) share: Option<f64>,
    /// Where fragments ran, with reasons.
    pub(super) placement: Vec<(Place, String)>,
    /// Bytes that the first run loaded, the time it took, and that of all threads together.
    pub(super) loaded: (u64, Duration, Duration),
    /// Median time of plain DataFusion, warm, if it was measured.
    pub(super) datafusion: Option<Duration>,
    /// The time of its first run, right before ours.
    pub(super) datafusion_first: Option<Duration>,
    /// Times of DuckDB, if it was measured.
    pub(super) duckdb: Option<duckdb::Times>,
    /// Whether the answer is that of plain DataFusion, or the one in a file, if it was compared.
    pub(super) verified: Option<bool>,
}

impl Measured {
    /// Share of the device's peak bandwidth.
    pub(super) fn share_of_peak(&self) -> Option<f64> {
        Some(self.floor?.as_secs_f64() / self.device?.as_secs_f64())
    }
}

/// The loads of a benchmark's first runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Loading {
    /// Bytes moved to the device.
    pub(super) bytes: u64,
    /// Time that took.
    pub(super) time: Duration,
    /// Time all threads together spent on it: reading, decoding, encoding, handing over.
    pub(super) busy: Duration,
}

impl Loading {
    /// The sum over all cases; none where nothing was loaded.
    pub(super) fn of(results: &[Measured]) -> Option<Loading> {
        let zero = Loading { bytes: 0, time: Duration::ZERO, busy: Duration::ZERO };
        let sum = results.iter().fold(zero, |sum, Measured { loaded: (bytes, time, busy), .. }| Loading {
            bytes: sum.bytes + bytes,
            time: sum.time + *time,
            busy: sum.busy + *busy,
        });
        (sum.bytes > 0 && !sum.busy.is_zero()).then_some(sum)
    }

    /// Gigabytes (10⁹ bytes) a second and core, decoding and encoding.
    pub(super) fn gigabytes_per_second_core(&self) -> f64 {
        self.bytes as f64 / self.busy.as_secs_f64() / 1e9
    }
}

/// A benchmark's use of the device's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    /// Of columns that are there at the end.
    pub(super) columns: u64,
    /// Of tables and results of the query that has most of them: queries take turns at that memory.
    pub(super) tables: u64,
    /// Allocated from the driver at the end.
    pub(super) held: u64,
    /// The peak of it, with the plain bytes of columns that are being encoded.
    pub(super) held_peak: u64,
    /// The peak of reservations of statements and columns.
    pub(super) reserved_peak: u64,
    /// The limit of reservations.
    pub(super) budget: u64,
    /// Allocations that warm runs asked of the driver.
    pub(super) warm_allocations: u64,
}

impl Memory {
    /// The memory of a session after all cases; none without a device.
    pub(super) fn of(session: &Connection, results: &[Measured]) -> Option<Memory> {
        let usage = session.database().device().get()?.pool().usage();
        let tables = session.database().resident_tables();
        Some(Memory {
            columns: tables.iter().flat_map(|table| &table.columns).map(|column| column.bytes).sum(),
            tables: results.iter().map(|result| result.arena).max().unwrap_or_default(),
            held: usage.live + usage.cached,
            held_peak: usage.held_peak,
            reserved_peak: usage.reserved_peak,
            budget: usage.budget,
            warm_allocations: results.iter().filter_map(|result| result.driver_allocations).sum(),
        })
    }
}

/// All cases from several threads at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Threads {
    /// How many.
    pub(super) threads: usize,
    /// Statements of all threads.
    pub(super) statements: usize,
    /// From the first one's start to the last one's end.
    pub(super) time: Duration,
    /// Where an answer was not the one expected.
    pub(super) differences: Vec<String>,
}

impl Threads {
    /// Runs all cases on each of `threads` threads, which begin with different ones. `expected` are the answers.
    pub(super) async fn run(
        session: &Arc<Connection>,
        cases: &[Case],
        expected: &[Vec<RecordBatch>],
        threads: usize,
    ) -> Result<Threads> {
        let (cases, expected): (Arc<[Case]>, Arc<[Vec<RecordBatch>]>) = (cases.into(), expected.into());
        let clock = Instant::now();
        let mut running = JoinSet::new();
        for thread in 0..threads {
            let (session, cases, expected) = (session.clone(), cases.clone(), expected.clone());
            running.spawn(async move {
                let mut differences = Vec::new();
                for step in 0..cases.len() {
                    let at = (thread + step) % cases.len();
                    let (answer, _, _) = run(&session, &cases[at].name, &cases[at].sql).await?;
                    let difference = verify::compare(&cases[at].sql, &answer, &expected[at]);
                    differences.extend(difference.map(|found| format!("{}, thread {thread}: {found}", cases[at].name)));
                }
                Ok::<_, CliError>(differences)
            });
        }
        let mut differences = Vec::new();
        while let Some(ended) = running.join_next().await {
            let found = ended.map_err(|error| CliError::from(SqlError::Internal(error.to_string())))?;
            differences.extend(found?);
        }
        Ok(Threads { threads, statements: threads * cases.len(), time: clock.elapsed(), differences })
    }

    /// Statements a second.
    pub(super) fn rate(&self) -> f64 {
        self.statements as f64 / self.time.as_secs_f64()
    }
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
    async fn run(&mut self, baseline: &Baseline, case: &Case) -> Result<()> {
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
        case: &Case,
        runs: usize,
        measured: &mut Measured,
    ) -> Result<Vec<RecordBatch>> {
        while self.times.len() < runs {
            self.run(baseline, case).await?;
        }
        measured.datafusion = Some(median(self.times));
        measured.datafusion_first = Some(self.first);
        Ok(self.answer.unwrap_or_default())
    }
}

/// Runs all cases in DataFusion before anything is timed.
pub(super) async fn warm_up(baseline: &Baseline, cases: &[Case]) -> Result<()> {
    for case in cases {
        Rival::default().run(baseline, case).await?;
    }
    Ok(())
}

/// The answer of plain DataFusion to a text of the case of that name.
pub(super) async fn judged(baseline: &Baseline, name: &str, sql: &str) -> Result<Vec<RecordBatch>> {
    let named = |error: SqlError| CliError::from(error).at(format!("{name} in DataFusion"));
    baseline.collect(sql).await.map_err(named)
}

/// Runs a text of the case of that name.
async fn run(session: &Connection, name: &str, sql: &str) -> Result<(Vec<RecordBatch>, Summary, Duration)> {
    let clock = Instant::now();
    let named = |error: SqlError| CliError::from(error).at(name.to_string());
    let execution = session.execute(sql).await.map_err(named)?;
    let report = execution.report.clone();
    let rows = execution.collect().await.map_err(named)?;
    let time = clock.elapsed();
    Ok((rows, report.summary(), time))
}

/// Runs that a case is given at least, and at most, before it counts as settled.
const SETTLING: RangeInclusive<usize> = 3..=8;

/// Runs a case until its columns and kernels are what they will be: under `auto` the CPU may have given the first
/// answer, and columns come in the background; a statement that is run again gets better kernels there.
async fn settle(session: &Connection, case: &Case) -> Result<()> {
    if session.database().device().get().is_none() {
        return Ok(());
    }
    for round in 0..=*SETTLING.end() {
        let came = tokio::task::block_in_place(|| session.database().settle());
        if round >= *SETTLING.start() && !came || round == *SETTLING.end() {
            break;
        }
        run(session, &case.name, &case.sql).await?;
    }
    Ok(())
}

/// Runs a case once for its first time and, once it has settled, `runs` times warm; then its variations, at most `runs`
/// of them, once each. Plain DataFusion's first run is right before ours, and on the CPU it takes turns with the warm
/// runs: a machine is not as fast at one time as at another.
pub(super) async fn case(
    session: &Connection,
    case: &Case,
    runs: usize,
    baseline: Option<&Baseline>,
) -> Result<(Measured, Rival)> {
    let mut rival = Rival::default();
    let beside = baseline.filter(|_| session.database().device().get().is_none());
    if let Some(baseline) = baseline {
        rival.run(baseline, case).await?;
    }
    let (first_answer, first, first_time) = run(session, &case.name, &case.sql).await?;
    let mut answer = first_answer.clone();
    settle(session, case).await?;
    let mut last = first.clone();
    let mut warm = Vec::with_capacity(runs);
    let mut device = Vec::with_capacity(runs);
    let asked = || session.database().device().get().map(|device| device.pool().usage().driver_allocations);
    let asked_before = asked();
    for _ in 0..runs {
        let (rows, summary, time) = run(session, &case.name, &case.sql).await?;
        warm.push(time);
        device.push(summary.device);
        (answer, last) = (rows, summary);
        if let Some(baseline) = beside {
            rival.run(baseline, case).await?;
        }
    }
    let driver_allocations = asked().zip(asked_before).map(|(after, before)| after - before);
    let (mut fresh, mut varied) = (Vec::new(), Vec::new());
    for sql in case.variations.iter().take(runs) {
        let (rows, summary, time) = run(session, &case.name, sql).await?;
        fresh.push((time, summary));
        varied.push((sql.clone(), rows));
    }
    let device = Some(median(device)).filter(|time| *time > Duration::ZERO);
    let bytes = Some(last.device_bytes).filter(|bytes| *bytes > 0);
    let bandwidth =
        session.database().device().get().map(|device| device.info().peak_bandwidth).filter(|peak| *peak > 0.0);
    let floor = bytes.zip(bandwidth).map(|(bytes, peak)| Duration::from_secs_f64(bytes as f64 / peak));
    let compiled = first.compile > Duration::ZERO;
    let share = last.gpu_share().filter(|_| session.database().device().get().is_some());
    let placement = last.fragments.iter().map(|fragment| {
        let reason = fragment.reason.as_deref().unwrap_or_default();
        (fragment.place, if reason.is_empty() { fragment.what.clone() } else { format!("{}: {reason}", fragment.what) })
    });
    let measured = Measured {
        name: case.name.clone(),
        rows: answer.iter().map(RecordBatch::num_rows).sum(),
        first: first_time,
        cold: compiled.then(|| first_time.saturating_sub(first.loading)),
        warm: median(warm),
        fresh: (!fresh.is_empty()).then(|| median(fresh.iter().map(|(time, _)| *time).collect())),
        fresh_steps: steps(&fresh),
        varied,
        device,
        bytes,
        floor,
        arena: last.arena_bytes,
        driver_allocations,
        share,
        placement: placement.collect(),
        loaded: (first.loaded_bytes, first.loading, first.load_busy),
        datafusion: None,
        datafusion_first: None,
        duckdb: None,
        verified: None,
        answer,
        first_answer,
    };
    Ok((measured, rival))
}

/// The median time of each step of runs: phases before the first kernel, compiling, and all that is left, which is to
/// run and to give the rows back.
fn steps(runs: &[(Duration, Summary)]) -> Vec<(&'static str, Duration)> {
    let of = |step: &dyn Fn(&(Duration, Summary)) -> Duration| median(runs.iter().map(step).collect());
    let phases = Phase::ALL.iter().enumerate();
    let mut steps: Vec<_> = phases.map(|(at, phase)| (phase.name(), of(&|(_, summary)| summary.phases[at]))).collect();
    steps.push(("compile", of(&|(_, summary)| summary.compile)));
    let before = |summary: &Summary| summary.phases.iter().sum::<Duration>() + summary.compile + summary.loading;
    steps.push(("run", of(&|(time, summary)| time.saturating_sub(before(summary)))));
    if runs.is_empty() { Vec::new() } else { steps }
}

/// The middle value; of an even number the lower of the two in the middle.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let times = |milliseconds: &[u64]| milliseconds.iter().map(|ms| Duration::from_millis(*ms)).collect();
        assert_eq!(median(times(&[5, 1, 9])), Duration::from_millis(5));
        assert_eq!(median(times(&[4, 1])), Duration::from_millis(1));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }
}
