//! A benchmark's results for people: a line as each case is done, and where parts ran and why, for suites that ask for
//! it and for cases that are not on the GPU as a whole.

use std::time::Duration;

use warpcube_sql::{Connection, Place, Placement};

use super::measure::{Loading, Measured, Memory, Threads};
use super::suite::Suite;
use crate::console;
use crate::error::{CliError, Result};
use crate::footer::time;

/// Prints as a benchmark goes on.
pub(super) struct Printer {
    shows_placement: bool,
    /// True if the benchmark goes on after the reader of its text has gone.
    goes_on: bool,
    /// True once the reader has gone.
    closed: bool,
}

impl Printer {
    /// Prints the head, with a column for DuckDB if it `shows_duckdb`.
    pub(super) fn new(suite: &Suite, session: &Connection, shows_duckdb: bool, goes_on: bool) -> Result<Printer> {
        let mut printer = Printer { shows_placement: suite.shows_placement, goes_on, closed: false };
        let reason = match session.settings().placement {
            Placement::Cpu => Some("warpcube.placement is 'cpu'".to_string()),
            _ => session.database().device().reason(),
        };
        let device = match (reason, session.database().device().get()) {
            (Some(reason), _) => format!("CPU ({reason})"),
            (None, device) => device.map_or_else(|| "CPU".to_string(), |device| device.info().name.clone()),
        };
        printer.line(&format!("{} on {device}", suite.name))?;
        printer.line(&format!(
            "{:6} {:>8} {:>11} {:>11} {:>11} {:>11} {:>10} {:>7} {:>7} {:>11}{}  verified",
            "query",
            "rows",
            "device",
            "warm",
            "fresh",
            "first",
            "MB",
            "of peak",
            "on GPU",
            "DataFusion",
            if shows_duckdb { format!(" {:>11}", "DuckDB") } else { String::new() },
        ))?;
        Ok(printer)
    }

    /// Prints one case.
    pub(super) fn case(&mut self, measured: &Measured) -> Result<()> {
        let maybe = |value: Option<Duration>| value.map_or_else(|| "-".to_string(), time);
        let percent =
            |share: Option<f64>| share.map_or_else(|| "-".to_string(), |share| format!("{:.0} %", share * 100.0));
        self.line(&format!(
            "{:6} {:>8} {:>11} {:>11} {:>11} {:>11} {:>10} {:>7} {:>7} {:>11}{}  {}",
            measured.name,
            measured.rows,
            maybe(measured.device),
            time(measured.warm),
            maybe(measured.fresh),
            time(measured.first),
            measured.bytes.map_or_else(|| "-".to_string(), |bytes| format!("{:.1}", bytes as f64 / 1e6)),
            percent(measured.share_of_peak()),
            percent(measured.share),
            maybe(measured.datafusion),
            measured.duckdb.as_ref().map_or_else(String::new, |times| format!(" {:>11}", time(times.shown()))),
            match measured.verified {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "-",
            },
        ))
    }

    /// Prints the result of the run on several threads.
    pub(super) fn threads(&mut self, ran: &Threads) -> Result<()> {
        let Threads { threads, statements, differences, .. } = ran;
        self.line(&format!(
            "{threads} threads: {statements} statements in {}, {:.1} a second, {}",
            time(ran.time),
            ran.rate(),
            match differences.len() {
                0 => "all answers the same".to_string(),
                others => format!("{others} answers NOT the same"),
            },
        ))
    }

    /// Prints means, memory and the table of placements.
    pub(super) fn end(&mut self, results: &[Measured], memory: Option<Memory>) -> Result<()> {
        let mean = |times: Vec<Duration>| {
            let logarithms: f64 = times.iter().map(|time| time.as_secs_f64().ln()).sum();
            Duration::from_secs_f64((logarithms / times.len() as f64).exp())
        };
        if !results.is_empty() {
            let warm = results.iter().map(|result| result.warm).collect();
            self.line(&format!("geometric mean, warm: {}", time(mean(warm))))?;
        }
        let device: Vec<Duration> = results.iter().filter_map(|result| result.device).collect();
        if !device.is_empty() && device.len() == results.len() {
            self.line(&format!("geometric mean, device: {}", time(mean(device))))?;
        }
        if let Some(loading) = Loading::of(results) {
            self.line(&format!(
                "loaded: {:.1} MB in {}, decoding and encoding at {:.2} GB/s a core",
                loading.bytes as f64 / 1e6,
                time(loading.time),
                loading.gigabytes_per_second_core(),
            ))?;
        }
        if let Some(memory) = memory.filter(|memory| memory.columns > 0) {
            let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
            let (columns, tables) = (megabytes(memory.columns), megabytes(memory.tables));
            let (held, peak) = (megabytes(memory.held), megabytes(memory.held_peak));
            self.line(&format!(
                "device memory: {columns} of columns, up to {tables} of tables; {held} held, {peak} while loading; \
                 {} allocations in warm runs",
                memory.warm_allocations,
            ))?;
        }
        let is_on_cpu = |result: &&Measured| result.placement.iter().any(|(place, _)| *place == Place::Cpu);
        let placed: Vec<&Measured> =
            results.iter().filter(|result| self.shows_placement || is_on_cpu(result)).collect();
        if !placed.is_empty() {
            self.line(&format!("\n{:6} {:>11} {:>11}  placement", "query", "time", "DataFusion"))?;
        }
        for result in placed {
            let rival = result.datafusion.map_or_else(|| "-".to_string(), time);
            let warm = time(result.warm);
            let share = match result.share {
                Some(share) => format!("{:.0} % on the GPU", share * 100.0),
                None => "on the CPU".to_string(),
            };
            self.line(&format!("{:6} {warm:>11} {rival:>11}  {share}", result.name))?;
            for (place, what) in &result.placement {
                self.line(&format!("{:32}{} {what}", "", if *place == Place::Gpu { "GPU" } else { "CPU" }))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        match console::print(&format!("{line}\n")) {
            Err(CliError::Closed) if self.goes_on => {
                self.closed = true;
                Ok(())
            }
            written => written,
        }
    }
}
