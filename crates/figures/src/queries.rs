//! The figures of queries: those of the Star Schema Benchmark and of TPC-H beside other programs.
//!
//! DataFusion's times are of the same run as ours. Those of hand-written CUDA programs, and DuckDB's as long as our
//! results have none, come from a report of their own.

use serde_json::Value;

use crate::Figure;
use crate::chart::{Axis, Chart, Look, Panel, Series};
use crate::scale::Scale;
use crate::svg;

/// A program's times, in milliseconds, one for each query.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// The program, and the timed part of it.
    pub name: String,
    /// By the order of the queries.
    pub ms: Vec<f64>,
    /// When they were measured, unless with ours.
    pub date: Option<String>,
}

impl Times {
    /// Their geometric mean.
    pub fn mean(&self) -> f64 {
        (self.ms.iter().map(|ms| ms.ln()).sum::<f64>() / self.ms.len() as f64).exp()
    }
}

/// The times of all programs that have one for every query of `report`, the quickest first: `others` is the report with
/// rivals that were measured by themselves.
pub fn query_times(report: &Value, others: &Value) -> Vec<Times> {
    let cases = || report["results"].as_array().into_iter().flatten();
    let of = |name: &str, pointer: &str, from: &Value| {
        let at = |case: &Value| {
            let found = from["results"].as_array()?.iter().find(|result| result["case"] == case["case"])?;
            found.pointer(pointer)?.as_f64().filter(|ms| *ms > 0.0)
        };
        let ms: Vec<f64> = cases().map(at).collect::<Option<_>>()?;
        let date = from["date"].as_str().filter(|date| report["date"] != *date).map(str::to_string);
        (!ms.is_empty()).then(|| Times { name: name.to_string(), ms, date })
    };
    let duckdb = |from: &Value| {
        let known = &from["rivals"]["duckdb"];
        let (version, threads) = (known["version"].as_str()?, known["threads"].as_u64()?);
        of(&format!("DuckDB {version}, {threads} threads"), "/rivals/duckdb_ms", from)
    };
    let all = [
        of("Warpcube, on the device", "/device_ms", report),
        of("Warpcube, SQL text to rows", "/warm_ms", report),
        of("hand-written CUDA, on the device", "/rivals/handwritten_ms", others),
        duckdb(report).or_else(|| duckdb(others)),
        of("DataFusion", "/rivals/datafusion_ms", report),
    ];
    let mut times: Vec<Times> = all.into_iter().flatten().collect();
    times.sort_by(|a, b| a.mean().total_cmp(&b.mean()));
    times
}

/// The figure of the Star Schema Benchmark, if the report has times of ours; `others` as in [`query_times`].
pub fn ssb(report: &Value, others: &Value) -> Option<Figure> {
    by_query("ssb", "Star Schema Benchmark", report, others)
}

/// The figure of TPC-H, if the report has times of ours.
pub fn tpch(report: &Value) -> Option<Figure> {
    by_query("tpch", "TPC-H", report, &Value::Null)
}

fn by_query(name: &'static str, benchmark: &str, report: &Value, others: &Value) -> Option<Figure> {
    let times = query_times(report, others);
    let names: Vec<String> = report["results"]
        .as_array()?
        .iter()
        .map(|case| case["case"].as_str().map(str::to_string))
        .collect::<Option<_>>()?;
    if times.is_empty() {
        return None;
    }
    let series = times.iter().map(|times| Series {
        name: format!("{} (mean {} ms)", times.name, rounded(times.mean())),
        look: Look::Measured,
        points: times.ms.iter().enumerate().map(|(at, ms)| (at as f64, *ms)).collect(),
    });
    let mut note: Vec<String> =
        ["device", "date"].into_iter().filter_map(|key| Some(report[key].as_str()?.to_string())).collect();
    let elsewhen = times.iter().filter_map(|times| Some(format!("{}: {}", times.name, times.date.as_ref()?)));
    note.extend(elsewhen);
    let title = format!("{benchmark}, scale {}, by query", report["params"]["sf"]);
    let chart = Chart {
        title: title.clone(),
        note: note.join("; "),
        x: Axis { label: "query", scale: Scale::Names(names) },
        y: Axis { label: "milliseconds", scale: Scale::Log10 },
        panels: vec![Panel { title: String::new(), series: series.collect() }],
    };
    Some(Figure { name, title, svg: svg::draw(&chart) })
}

/// A time with three digits.
pub fn rounded(ms: f64) -> String {
    let digits = (2.0 - ms.log10().floor()).max(0.0) as usize;
    format!("{ms:.digits$}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(rivals: Value) -> Value {
        json!({
            "device": "D", "date": "2026-02-01", "params": {"sf": 20}, "rivals": rivals,
            "results": [
                {"case": "q1.1", "device_ms": 0.1, "rivals": {"datafusion_ms": 90.0, "duckdb_ms": 7.0}},
                {"case": "q1.2", "device_ms": 0.4, "rivals": {"datafusion_ms": 90.0, "duckdb_ms": 7.0}},
            ],
        })
    }

    #[test]
    fn programs_stand_by_their_means_and_times_of_another_day_have_a_date() {
        let others = json!({
            "date": "2026-01-31", "rivals": {"duckdb": {"version": "2.0", "threads": 16}},
            "results": [
                {"case": "q1.2", "rivals": {"handwritten_ms": 4.0, "duckdb_ms": 60.0}},
                {"case": "q1.1", "rivals": {"handwritten_ms": 1.0, "duckdb_ms": 60.0}},
            ],
        });
        let times = query_times(&report(Value::Null), &others);
        let names: Vec<&str> = times.iter().map(|times| times.name.as_str()).collect();
        let hand = "hand-written CUDA, on the device";
        assert_eq!(names, ["Warpcube, on the device", hand, "DuckDB 2.0, 16 threads", "DataFusion"]);
        assert_eq!((times[1].ms.as_slice(), times[1].date.as_deref()), (&[1.0, 4.0][..], Some("2026-01-31")));
        assert!((times[1].mean() - 2.0).abs() < 1e-9 && times[3].date.is_none());
        let svg = ssb(&report(Value::Null), &others).unwrap().svg;
        assert!(svg.contains("Warpcube, on the device (mean 0.200 ms)"), "{svg}");
        assert!(svg.contains("D; 2026-02-01; hand-written CUDA, on the device: 2026-01-31; DuckDB"), "{svg}");
        // Of the same run, once that has them.
        let own = query_times(&report(json!({"duckdb": {"version": "2.1", "threads": 8}})), &others);
        assert!(own.iter().any(|times| times.name == "DuckDB 2.1, 8 threads" && times.ms == [7.0, 7.0]), "{own:?}");
    }

    #[test]
    fn a_program_without_a_time_for_every_query_is_left_out() {
        let others = json!({"results": [{"case": "q1.1", "rivals": {"handwritten_ms": 1.0}}]});
        let times = query_times(&report(Value::Null), &others);
        assert_eq!(times.len(), 2, "{times:?}");
        assert!(ssb(&json!({}), &others).is_none());
        let figure = tpch(&report(Value::Null)).unwrap();
        assert_eq!((figure.name, figure.title.as_str()), ("tpch", "TPC-H, scale 20, by query"));
        assert!(figure.svg.contains("DataFusion") && !figure.svg.contains("hand-written"), "{}", figure.svg);
    }

    #[test]
    fn three_digits() {
        let texts = [0.1806, 1.036, 62.93, 258.6, 1234.0].map(rounded);
        assert_eq!(texts, ["0.181", "1.04", "62.9", "259", "1234"]);
    }
}
