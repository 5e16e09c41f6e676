//! What the suite `primitives` is to reach on one H200, over inputs of the usual size, and which results miss it.

use crate::report::{Case, Report};

/// The device and the size that the targets are for.
const DEVICE: &str = "NVIDIA H200";
const LOG_ROWS: u64 = 29;

/// Times at most over the floor of bytes: selections in any order, stable ones, projections.
const SELECT: f64 = 1.15;
const SELECT_STABLE: f64 = 1.35;
const PROJECT: f64 = 1.15;
/// Milliseconds of top-k of floats, by the largest k.
const TOPK_MS: [(u64, f64); 2] = [(256, 0.55), (1 << 20, 0.7)];
/// Times at most over CUB's sort.
const SORTS: [(&str, f64); 3] = [("sort/keys/u32", 1.1), ("sort/pairs/u32", 1.1), ("sort/pairs/u64", 1.15)];
/// Times at most over the sort of all keys.
const SEGMENTED_SORT: f64 = 1.3;
const UNSEGMENTED: &str = "sort/keys/u32";
/// Milliseconds of ordered counts.
const COUNTS_MS: [(&str, f64); 4] = [
    ("ordered/count/16", 0.32),
    ("ordered/count/65536", 0.32),
    ("ordered/count/16777216", 0.40),
    ("ordered/count/all", 1.15),
];
/// Times at most over the bytes of ordered sums at a copy's rate, in bytes a second.
const SUM: f64 = 1.15;
const COPY: f64 = 4.2e12;
/// Times at most over the model of joins.
const JOIN: f64 = 1.2;
/// Milliseconds of aggregations by the strategy that the model chooses.
const GROUPS_MS: [(&str, f64); 2] = [("groupby/100000000", 14.0), ("groupby/sorted", 1.6)];

/// The targets of a file of results.
pub(super) struct Targets<'r> {
    results: &'r [Case],
}

impl<'r> Targets<'r> {
    /// Those of a report; none for another device or size.
    pub(super) fn of(report: &'r Report) -> Targets<'r> {
        let is_usual = report.device == DEVICE && report.params.get("log_rows").is_some_and(|log| *log == LOG_ROWS);
        Targets { results: if is_usual { &report.results } else { &[] } }
    }

    /// Milliseconds at most of a result, if it has a target.
    pub(super) fn ms(&self, result: &Case) -> Option<f64> {
        if self.results.is_empty() {
            return None;
        }
        let (figure, algorithm) = (|name: &str| result.figure(name), result.text("algorithm"));
        let of = |table: &[(&str, f64)]| table.iter().find(|(name, _)| *name == result.name).map(|(_, value)| *value);
        match result.name.split('/').collect::<Vec<_>>()[..] {
            ["select", _] => {
                let times = if result["order"] == "stable" { SELECT_STABLE } else { SELECT };
                Some(times * figure("floor_ms")?)
            }
            ["project", "linear" | "sigmoid"] => Some(PROJECT * figure("floor_ms")?),
            ["scan", _] => figure("rivals/cub_ms"),
            ["topk", "f32", _, k] if algorithm == Some("threshold") => {
                let k: u64 = k.parse().ok()?;
                TOPK_MS.iter().find(|(most, _)| k <= *most).map(|(_, ms)| *ms)
            }
            ["sort", ..] if algorithm == Some("lsd") => Some(of(&SORTS)? * figure("rivals/cub_ms")?),
            ["segsort", _] => {
                let is_whole = |it: &&Case| it.name == UNSEGMENTED && it["algorithm"] == "lsd";
                Some(SEGMENTED_SORT * self.results.iter().find(is_whole)?.figure("device_ms")?)
            }
            ["ordered", "count", _] => of(&COUNTS_MS),
            ["ordered", "sum", _] => Some(SUM * figure("bytes")? / COPY * 1e3),
            ["join", _] => Some(JOIN * figure("predicted_ms")?),
            ["groupby", _] if result["chosen"] == true => of(&GROUPS_MS),
            _ => None,
        }
    }

    /// The number of results with a target, and those that miss theirs, each with it.
    pub(super) fn missed(&self) -> (usize, Vec<(&'r Case, f64)>) {
        let aimed: Vec<_> = self.results.iter().filter_map(|result| Some((result, self.ms(result)?))).collect();
        let count = aimed.len();
        (count, aimed.into_iter().filter(|(result, ms)| over(result, *ms) > 0.0).collect())
    }
}

/// By which share a result misses its target; negative where it is faster.
fn over(result: &Case, target_ms: f64) -> f64 {
    result.figure("device_ms").map_or(f64::INFINITY, |ms| ms / target_ms - 1.0)
}

/// Whether a result reaches its target, for a table: by how much it misses it.
pub(super) fn met(result: &Case, target_ms: f64) -> String {
    match over(result, target_ms) * 100.0 {
        over if over <= 0.0 => "yes".into(),
        over if over < 1.0 => format!("no, +{over:.1} %"),
        over => format!("no, +{over:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(device: &str) -> Report {
        let params = json!({"log_rows": 29});
        let results = json!([
            {"case": "select/50", "order": "any", "device_ms": 1.15, "floor_ms": 1.0},
            {"case": "select/50", "order": "stable", "device_ms": 1.5, "floor_ms": 1.0},
            {"case": "project/linear", "device_ms": 1.2, "floor_ms": 1.0},
            {"case": "project/linear-sent", "device_ms": 77.0, "floor_ms": 1.0},
            {"case": "scan/u32", "device_ms": 0.6, "rivals": {"cub_ms": 0.7}},
            {"case": "topk/f32/equal/256", "algorithm": "threshold", "device_ms": 0.551},
            {"case": "topk/f32/equal/1048576", "algorithm": "threshold", "device_ms": 0.69},
            {"case": "topk/f32/equal/32", "algorithm": "bitonic", "device_ms": 5.0},
            {"case": "topk/i64/equal/32", "algorithm": "threshold", "device_ms": 5.0},
            {"case": "sort/keys/u32", "algorithm": "lsd", "device_ms": 5.0, "rivals": {"cub_ms": 5.0}},
            {"case": "sort/keys/u32", "algorithm": "msd", "device_ms": 9.0, "rivals": {"cub_ms": 5.0}},
            {"case": "segsort/16", "device_ms": 6.6},
            {"case": "ordered/count/65536", "device_ms": 0.321},
            {"case": "ordered/sum/16", "device_ms": 1.2, "bytes": 4_200_000_000u64},
            {"case": "join/8192", "device_ms": 1.3, "predicted_ms": 1.0},
            {"case": "groupby/sorted", "device_ms": 1.7, "chosen": true},
            {"case": "groupby/100000000", "device_ms": 27.0, "chosen": false},
            {"case": "large/scan", "device_ms": 9.0, "floor_ms": 1.0},
        ]);
        let report = json!({"suite": "primitives", "device": device, "params": params, "results": results});
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn each_row_of_the_table_has_its_target() {
        let report = report(DEVICE);
        let targets = Targets::of(&report);
        let found: Vec<_> = targets.results.iter().map(|result| targets.ms(result)).collect();
        let expected = [
            Some(1.15),
            Some(1.35),
            Some(1.15),
            None,
            Some(0.7),
            Some(0.55),
            Some(0.7),
            None,
            None,
            Some(5.5),
            None,
            Some(6.5),
            Some(0.32),
            Some(1.15),
            Some(1.2),
            Some(1.6),
            None,
            None,
        ];
        for ((result, found), expected) in targets.results.iter().zip(&found).zip(expected) {
            let is_close = found.zip(expected).is_none_or(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(found.is_some() == expected.is_some() && is_close, "{result:?}: {found:?}");
        }
        let (count, missed) = targets.missed();
        let missed: Vec<_> = missed.iter().map(|(result, ms)| (result.name.as_str(), met(result, *ms))).collect();
        assert_eq!(count, 12);
        let of = |case, met: &str| (case, met.to_string());
        let expected = [
            of("select/50", "no, +11 %"),
            of("project/linear", "no, +4 %"),
            of("topk/f32/equal/256", "no, +0.2 %"),
            of("segsort/16", "no, +2 %"),
            of("ordered/count/65536", "no, +0.3 %"),
            of("ordered/sum/16", "no, +4 %"),
            of("join/8192", "no, +8 %"),
            of("groupby/sorted", "no, +6 %"),
        ];
        assert_eq!(missed, expected);
    }

    #[test]
    fn another_device_has_none() {
        assert_eq!(Targets::of(&report("NVIDIA H100")).missed(), (0, Vec::new()));
    }
}
