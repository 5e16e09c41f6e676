//! What follows the table of queries on a terminal: means, loads, memory, threads, and where parts ran and why, for
//! benchmarks that ask for it and for queries that are not on the GPU as a whole.

use warpcube_sql::Place;

use super::measure::Measured;
use crate::render::text::time;
use crate::report::{Loading, Memory, Threads};
use crate::stats::geometric_mean;
use crate::suite::Run;

/// Shows means, loads and memory.
pub(super) fn end(run: &mut Run, loading: Option<Loading>, memory: Option<Memory>) {
    for (what, figure) in [("warm", "warm_ms"), ("device", "device_ms")] {
        if let Some(mean) = geometric_mean(run.report.results.iter().map(|case| case.figure(figure))) {
            run.say(&format!("geometric mean, {what}: {}", time(mean)));
        }
    }
    if let Some(Loading { bytes, ms, gb_per_s_core }) = loading {
        let megabytes = bytes as f64 / 1e6;
        run.say(&format!(
            "loaded: {megabytes:.1} MB in {}, decoding and encoding at {gb_per_s_core:.2} GB/s a core",
            time(ms)
        ));
    }
    if let Some(memory) = memory.filter(|memory| memory.columns_bytes > 0) {
        let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let (columns, tables) = (megabytes(memory.columns_bytes), megabytes(memory.tables_bytes));
        let (held, peak) = (megabytes(memory.held_bytes), megabytes(memory.held_peak_bytes));
        run.say(&format!(
            "device memory: {columns} of columns, up to {tables} of tables; {held} held, {peak} while loading; \
             {} allocations in warm runs",
            memory.warm_driver_allocations,
        ));
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Gpu => "GPU",
        Place::Columns => "CPU, columns",
        Place::Cpu => "CPU",
    }
}

/// Shows where parts of queries ran: of all, or of those that are not on the GPU or over columns as a whole, if any
/// query has a part there.
pub(super) fn placements(run: &mut Run, results: &[Measured], shows_all: bool) {
    let has =
        |result: &Measured, on_cpu: bool| result.placement.iter().any(|(place, _)| (*place == Place::Cpu) == on_cpu);
    let shows_parts = results.iter().any(|result| has(result, false) || result.case.figure("gpu_share").is_some());
    let is_shown = |result: &&Measured| shows_all || shows_parts && has(result, true);
    let placed: Vec<&Measured> = results.iter().filter(is_shown).collect();
    if !placed.is_empty() {
        run.say(&format!("\n{:6} {:>11} {:>11}  placement", "query", "time", "DataFusion"));
    }
    for result in placed {
        let time_of = |figure: &str| result.case.figure(figure).map_or_else(|| "-".to_string(), time);
        let (warm, rival) = (time_of("warm_ms"), time_of("rivals/datafusion_ms"));
        let share = match result.case.figure("gpu_share") {
            Some(share) => format!("{:.0} % on the GPU", share * 100.0),
            None => "on the CPU".to_string(),
        };
        run.say(&format!("{:6} {warm:>11} {rival:>11}  {share}", result.case.name));
        for (place, what) in &result.placement {
            run.say(&format!("{:32}{} {what}", "", place_name(*place)));
        }
    }
}

/// Shows the result of the run on several threads.
pub(super) fn threads(run: &mut Run, ran: &Threads, differences: usize) {
    let Threads { threads, statements, ms, statements_per_s, .. } = ran;
    run.say(&format!(
        "{threads} threads: {statements} statements in {}, {statements_per_s:.1} a second, {}",
        time(*ms),
        match differences {
            0 => "all answers the same".to_string(),
            others => format!("{others} answers NOT the same"),
        },
    ));
}
