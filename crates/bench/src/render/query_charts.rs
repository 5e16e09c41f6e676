//! The figures of queries: those of the Star Schema Benchmark and of TPC-H beside other programs.
//!
//! DataFusion's times are of the same run as ours. Those of hand-written CUDA programs, and DuckDB's as long as our
//! results have none, come from a report of their own.

use super::chart::{Axis, Chart, Look, Panel, Series};
use super::scale::Scale;
use super::text::rounded;
use super::{Drawing, svg};
use crate::report::{Case, Report};
use crate::stats::geometric_mean;

/// A program's times, in milliseconds, one for each query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times {
    /// The program, and the timed part of it.
    pub(super) name: String,
    /// By the order of the queries.
    pub(super) ms: Vec<f64>,
    /// When they were measured, unless with ours.
    pub(super) date: Option<String>,
}

impl Times {
    /// Their geometric mean.
    pub(super) fn mean(&self) -> f64 {
        geometric_mean(self.ms.iter().copied().map(Some)).unwrap_or_default()
    }
}

/// The times of all programs that have one for every query of `report`, the quickest first: `others` is the report with
/// rivals that were measured by themselves.
pub(super) fn query_times(report: &Report, others: Option<&Report>) -> Vec<Times> {
    let of = |name: &str, figure: &str, from: &Report| {
        let at = |case: &Case| {
            let found = from.results.iter().find(|result| result.name == case.name)?;
            found.figure(figure).filter(|ms| *ms > 0.0)
        };
        let ms: Vec<f64> = report.results.iter().map(at).collect::<Option<_>>()?;
        let date = from.date.clone().filter(|_| report.date != from.date);
        (!ms.is_empty()).then(|| Times { name: name.to_string(), ms, date })
    };
    let duckdb = |from: &Report| {
        let known = from.rivals.get("duckdb")?;
        let (version, threads) = (known["version"].as_str()?, known["threads"].as_u64()?);
        of(&format!("DuckDB {version}, {threads} threads"), "rivals/duckdb_ms", from)
    };
    let all = [
        of("Warpcube, on the device", "device_ms", report),
        of("Warpcube, SQL text to rows", "warm_ms", report),
        others.and_then(|others| of("hand-written CUDA, on the device", "rivals/handwritten_ms", others)),
        duckdb(report).or_else(|| duckdb(others?)),
        of("DataFusion", "rivals/datafusion_ms", report),
    ];
    let mut times: Vec<Times> = all.into_iter().flatten().collect();
    times.sort_by(|a, b| a.mean().total_cmp(&b.mean()));
    times
}

/// The drawings of the Star Schema Benchmark and of TPC-H, for which there are times of ours; rivals that were measured
/// by themselves are those of the former.
pub(super) fn drawings(reports: &[&Report]) -> Vec<Drawing> {
    let of = |suite: &str| reports.iter().copied().find(|report| report.suite == suite);
    let ssb = of("ssb").and_then(|report| by_query("ssb", "Star Schema Benchmark", report, of("ssb-rivals")));
    let tpch = of("tpch").and_then(|report| by_query("tpch", "TPC-H", report, None));
    ssb.into_iter().chain(tpch).collect()
}

fn by_query(name: &'static str, benchmark: &str, report: &Report, others: Option<&Report>) -> Option<Drawing> {
    let times = query_times(report, others);
    if times.is_empty() {
        return None;
    }
    let series = times.iter().map(|times| Series {
        name: format!("{} (mean {} ms)", times.name, rounded(times.mean())),
        look: Look::Measured,
        points: times.ms.iter().enumerate().map(|(at, ms)| (at as f64, *ms)).collect(),
    });
    let mut note: Vec<String> = [report.device.clone()].into_iter().chain(report.date.clone()).collect();
    note.extend(times.iter().filter_map(|times| Some(format!("{}: {}", times.name, times.date.as_ref()?))));
    let names = report.results.iter().map(|case| case.name.clone()).collect();
    let title = format!("{benchmark}, scale {}, by query", report.params["sf"]);
    let chart = Chart {
        title: title.clone(),
        note: note.join("; "),
        x: Axis { label: "query", scale: Scale::Names(names) },
        y: Axis { label: "milliseconds", scale: Scale::Log10 },
        panels: vec![Panel { title: String::new(), series: series.collect() }],
    };
    Some(Drawing { name, title, svg: svg::draw(&chart) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Report {
        serde_json::from_value(value).unwrap()
    }

    fn report(suite: &str, rivals: Value) -> Report {
        read(json!({
            "suite": suite, "device": "D", "date": "2026-02-01", "params": {"sf": 20}, "rivals": rivals,
            "results": [
                {"case": "q1.1", "device_ms": 0.1, "rivals": {"datafusion_ms": 90.0, "duckdb_ms": 7.0}},
                {"case": "q1.2", "device_ms": 0.4, "rivals": {"datafusion_ms": 90.0, "duckdb_ms": 7.0}},
            ],
        }))
    }

    #[test]
    fn programs_stand_by_their_means_and_times_of_another_day_have_a_date() {
        let others = read(json!({
            "suite": "ssb-rivals", "device": "D", "date": "2026-01-31",
            "rivals": {"duckdb": {"version": "2.0", "threads": 16}},
            "results": [
                {"case": "q1.2", "rivals": {"handwritten_ms": 4.0, "duckdb_ms": 60.0}},
                {"case": "q1.1", "rivals": {"handwritten_ms": 1.0, "duckdb_ms": 60.0}},
            ],
        }));
        let times = query_times(&report("ssb", json!({})), Some(&others));
        let names: Vec<&str> = times.iter().map(|times| times.name.as_str()).collect();
        let hand = "hand-written CUDA, on the device";
        assert_eq!(names, ["Warpcube, on the device", hand, "DuckDB 2.0, 16 threads", "DataFusion"]);
        assert_eq!((times[1].ms.as_slice(), times[1].date.as_deref()), (&[1.0, 4.0][..], Some("2026-01-31")));
        assert!((times[1].mean() - 2.0).abs() < 1e-9 && times[3].date.is_none());
        let svg = drawings(&[&report("ssb", json!({})), &others]).remove(0).svg;
        assert!(svg.contains("Warpcube, on the device (mean 0.200 ms)"), "{svg}");
        assert!(svg.contains("D; 2026-02-01; hand-written CUDA, on the device: 2026-01-31; DuckDB"), "{svg}");
        // Of the same run, once that has them.
        let own = query_times(&report("ssb", json!({"duckdb": {"version": "2.1", "threads": 8}})), Some(&others));
        assert!(own.iter().any(|times| times.name == "DuckDB 2.1, 8 threads" && times.ms == [7.0, 7.0]), "{own:?}");
    }

    #[test]
    fn a_program_without_a_time_for_every_query_is_left_out() {
        let results = json!([{"case": "q1.1", "rivals": {"handwritten_ms": 1.0}}]);
        let others = read(json!({"suite": "ssb-rivals", "device": "D", "results": results}));
        let times = query_times(&report("ssb", json!({})), Some(&others));
        assert_eq!(times.len(), 2, "{times:?}");
        assert!(drawings(&[&others]).is_empty());
        let drawn = drawings(&[&report("tpch", json!({}))]);
        let figure = &drawn[0];
        assert_eq!((figure.name, figure.title.as_str()), ("tpch", "TPC-H, scale 20, by query"));
        assert!(figure.svg.contains("DataFusion") && !figure.svg.contains("hand-written"), "{}", figure.svg);
    }
}
