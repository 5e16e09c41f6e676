//! The figures of the suite `primitives`: which results make which series.
//!
//! A result's case is a path (`topk/f32/uniform/32`); fields such as `algorithm` tell results of one case apart.
//! Floors and predictions come from the results too, as do rivals.

use std::collections::BTreeSet;

use crate::render::chart::{Axis, Chart, Look, Panel, Series};
use crate::render::scale::{Scale, count};
use crate::render::text::{distinct, rival};
use crate::render::{Drawing, svg};
use crate::report::{Case, Report};

const MILLISECONDS: &str = "milliseconds";
/// Values of k that distributions are compared at: the first, the middle and the last of the paper, and the largest.
const KS: [f64; 4] = [1.0, 32.0, 256.0, 1_048_576.0];
/// The prefix of the names of Bitonic Top-K with some of its optimisations.
const ABLATION: &str = "bitonic_";

/// The drawings that a report of the suite has results for.
pub(in super::super) fn drawings(report: &Report) -> Vec<Drawing> {
    let results = &report.results;
    let charts: [(&'static str, Option<Chart>); 9] = [
        ("select", select(results)),
        ("topk-k", topk_by_k(results)),
        ("topk-distribution", topk_by_distribution(results)),
        ("topk-ablation", topk_ablation(results)),
        ("segsort", segmented_sort(results)),
        ("ordered-count", ordered(results, "count")),
        ("ordered-sum", ordered(results, "sum")),
        ("join", join(results)),
        ("groupby", group_by(results)),
    ];
    let drawn = charts.into_iter().filter_map(|(name, chart)| {
        let mut chart = chart?;
        let measured = dates(results, name).or_else(|| report.date.clone());
        let note = Some(chart.note).filter(|note| !note.is_empty());
        chart.note = [report.device.clone()].into_iter().chain(measured).chain(note).collect::<Vec<_>>().join(", ");
        Some(Drawing { name, title: chart.title.clone(), svg: svg::draw(&chart) })
    });
    drawn.collect()
}

/// The days on which the results of a drawing's family were measured: the first and the last, where results tell.
fn dates(results: &[Case], drawing: &str) -> Option<String> {
    let family = drawing.split('-').next()?;
    let dates = results.iter().filter(|case| case.part(0) == family).filter_map(|case| case.text("date"));
    let dates: BTreeSet<&str> = dates.collect();
    match (dates.first()?, dates.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first} to {last}")),
    }
}

/// The parts of a case's name.
fn parts(case: &Case) -> Vec<&str> {
    case.name.split('/').collect()
}

/// Milliseconds on the device.
fn ms(case: &Case) -> Option<f64> {
    positive(case, "device_ms")
}

/// A figure that has a place on an axis.
fn positive(case: &Case, figure: &str) -> Option<f64> {
    case.figure(figure).filter(|figure| *figure > 0.0)
}

/// `2²⁹ rows`.
fn rows(case: &Case) -> Option<String> {
    let rows = case["rows"].as_u64().or(case["n"].as_u64())?;
    let text = if rows.is_power_of_two() { count(rows.ilog2()) } else { rows.to_string() };
    Some(format!("{text} rows"))
}

/// Series that are made point by point.
#[derive(Default)]
struct Lines(Vec<Series>);

impl Lines {
    fn add(&mut self, name: &str, look: Look, x: f64, y: Option<f64>) {
        let Some(y) = y else { return };
        if !self.0.iter().any(|series| series.name == name) {
            self.0.push(Series { name: name.to_string(), look, points: Vec::new() });
        }
        let Some(series) = self.0.iter_mut().find(|series| series.name == name) else { return };
        match series.points.iter_mut().find(|point| point.0 == x) {
            // Of several results at one place, the best.
            Some(point) => point.1 = point.1.min(y),
            None => series.points.push((x, y)),
        }
    }

    fn rivals(&mut self, case: &Case, x: f64) {
        case.rivals().for_each(|(name, ms)| self.add(&rival(name), Look::Measured, x, Some(ms)));
    }

    fn panel(mut self, title: &str) -> Option<Panel> {
        self.0.iter_mut().for_each(|series| series.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
        self.0.retain(|series| !series.points.is_empty());
        let is_measured = self.0.iter().any(|series| series.look == Look::Measured);
        is_measured.then(|| Panel { title: title.to_string(), series: self.0 })
    }
}

fn chart(title: &str, note: Option<String>, x: Axis, y: Scale, panels: Vec<Panel>) -> Option<Chart> {
    let y = Axis { label: MILLISECONDS, scale: y };
    let chart = Chart { title: title.to_string(), note: note.unwrap_or_default(), x, y, panels };
    (!chart.panels.is_empty()).then_some(chart)
}

fn select(results: &[Case]) -> Option<Chart> {
    let mut lines = Lines::default();
    let mut note = None;
    for case in results {
        let ["select", percent] = parts(case)[..] else { continue };
        let Ok(x) = percent.parse() else { continue };
        let order = if case.text("order") == Some("stable") { "in the order of the input" } else { "in any order" };
        lines.add(order, Look::Measured, x, ms(case));
        lines.add("floor", Look::Computed, x, positive(case, "floor_ms"));
        lines.rivals(case, x);
        note = note.or(rows(case));
    }
    let x = Axis { label: "selectivity, %", scale: Scale::Linear };
    chart("Selection by selectivity", note, x, Scale::Linear, lines.panel("").into_iter().collect())
}

/// Distribution, k and algorithm of a top-k over floats.
fn topk(case: &Case) -> Option<(&str, f64, &str)> {
    match parts(case)[..] {
        ["topk", "f32", distribution, k] => Some((distribution, k.parse().ok()?, case.text("algorithm")?)),
        _ => None,
    }
}

/// The cases of top-k over floats but for the ablation.
fn topk_cases(results: &[Case]) -> impl Iterator<Item = (&str, f64, &str, &Case)> + Clone {
    let cases = results.iter().filter_map(|case| topk(case).map(|(keys, k, algorithm)| (keys, k, algorithm, case)));
    cases.filter(|(_, _, algorithm, _)| !algorithm.starts_with(ABLATION))
}

fn topk_by_k(results: &[Case]) -> Option<Chart> {
    let all = topk_cases(results);
    let mut panels = Vec::new();
    for keys in distinct(all.clone().map(|(keys, ..)| keys)) {
        let cases = all.clone().filter(|(of, ..)| *of == keys);
        // The distributions that the paper compares algorithms over.
        let several = distinct(cases.clone().filter(|(_, k, ..)| *k < KS[3]).map(|(_, _, algorithm, _)| algorithm));
        if several.len() < 2 || cases.clone().all(|(_, k, ..)| k == KS[1]) {
            continue;
        }
        let mut lines = Lines::default();
        for (_, k, algorithm, case) in cases {
            lines.add(algorithm, Look::Measured, k, ms(case));
            lines.add("floor", Look::Computed, k, positive(case, "floor_ms"));
            lines.rivals(case, k);
        }
        panels.extend(lines.panel(&format!("{keys} keys")));
    }
    let x = Axis { label: "k", scale: Scale::Log2 };
    let note = all.clone().next().and_then(|(.., case)| rows(case));
    chart("Top-k by k", note, x, Scale::Log10, panels)
}

fn topk_by_distribution(results: &[Case]) -> Option<Chart> {
    let all = topk_cases(results);
    let names = distinct(all.clone().map(|(keys, ..)| keys));
    let mut panels = Vec::new();
    for k in KS {
        let mut lines = Lines::default();
        for (keys, _, algorithm, case) in all.clone().filter(|(_, of, ..)| *of == k) {
            let x = names.iter().position(|name| *name == keys).unwrap_or_default() as f64;
            lines.add(algorithm, Look::Measured, x, ms(case));
            lines.add("floor", Look::Computed, x, positive(case, "floor_ms"));
            lines.rivals(case, x);
        }
        panels.extend(lines.panel(&format!("k = {}", count((k as u64).ilog2()))));
    }
    let x = Axis { label: "keys", scale: Scale::Names(names.iter().map(|name| name.to_string()).collect()) };
    let note = all.clone().next().and_then(|(.., case)| rows(case));
    if names.len() < 2 { None } else { chart("Top-k by distribution of keys", note, x, Scale::Log10, panels) }
}

/// Bitonic Top-K, an optimisation more from left to right.
fn topk_ablation(results: &[Case]) -> Option<Chart> {
    let cases = results.iter().filter_map(|case| topk(case).map(|(keys, k, algorithm)| (keys, k, algorithm, case)));
    let cases = cases.filter(|(keys, k, ..)| *keys == "uniform" && *k == KS[1]);
    let levels = ["global", "shared", "fused", "combined", "sorted_first", "padded", "permuted"];
    let mut names: Vec<String> = levels.iter().map(|level| format!("{ABLATION}{level}")).collect();
    names.push("bitonic".into());
    let mut lines = Lines::default();
    let mut note = None;
    for (_, _, algorithm, case) in cases {
        let Some(at) = names.iter().position(|name| name == algorithm) else { continue };
        lines.add("Bitonic Top-K", Look::Measured, at as f64, ms(case));
        lines.add("floor", Look::Computed, at as f64, positive(case, "floor_ms"));
        note = note.or(rows(case).map(|rows| format!("{rows}, k = 32")));
    }
    if lines.0.iter().all(|series| series.points.len() < 2) {
        return None;
    }
    let mut scale: Vec<String> = levels.iter().map(|level| level.replace('_', " ")).collect();
    scale.push("reassigned".into());
    let x = Axis { label: "with the optimisations up to", scale: Scale::Names(scale) };
    chart(
        "Bitonic Top-K, one optimisation after the other",
        note,
        x,
        Scale::Linear,
        lines.panel("").into_iter().collect(),
    )
}

fn segmented_sort(results: &[Case]) -> Option<Chart> {
    let mut lines = Lines::default();
    let mut note = None;
    let whole = results.iter().find(|case| case.name == "sort/keys/u32");
    for case in results {
        let ["segsort", segments] = parts(case)[..] else { continue };
        let Ok(x) = segments.parse() else { continue };
        lines.add("segmented sort", Look::Measured, x, ms(case));
        lines.rivals(case, x);
        if let Some(whole) = whole {
            lines.add("unsegmented sort", Look::Computed, x, ms(whole));
            lines.add("floor", Look::Computed, x, positive(whole, "floor_ms"));
        }
        note = note.or(rows(case));
    }
    let x = Axis { label: "segments", scale: Scale::Log2 };
    chart("Segmented sort of keys by number of segments", note, x, Scale::Log10, lines.panel("").into_iter().collect())
}

/// The form in one pass by look-back, among the paper's forms.
const SINGLE_PASS: &str = "single_pass";

/// Ordered aggregation: forms by variants, a panel for each number of groups.
fn ordered(results: &[Case], kind: &str) -> Option<Chart> {
    // Form, variant and number of groups.
    let place = |case: &Case| match parts(case)[..] {
        ["ordered", "forms", form, variant, of, groups] if of == kind => {
            Some((form.to_string(), variant.to_string(), groups.to_string()))
        }
        ["ordered", "forms", form, of, groups] if of == kind => Some((form.into(), form.into(), groups.to_string())),
        ["ordered", of, groups] if of == kind => Some((SINGLE_PASS.into(), SINGLE_PASS.into(), groups.to_string())),
        _ => None,
    };
    let cases: Vec<_> = results.iter().filter_map(|case| Some((place(case)?, case))).collect();
    let mut forms = distinct(cases.iter().map(|((form, ..), _)| form.as_str()));
    // The form that is expected to win comes last, and rivals behind it.
    forms.sort_by_key(|form| *form == SINGLE_PASS);
    let has_rivals = cases.iter().any(|(_, case)| case.rivals().next().is_some());
    let mut panels = Vec::new();
    for groups in distinct(cases.iter().map(|((.., groups), _)| groups.as_str())) {
        let mut lines = Lines::default();
        for ((form, variant, _), case) in cases.iter().filter(|((.., of), _)| of == groups) {
            let x = forms.iter().position(|name| name == form).unwrap_or_default() as f64;
            lines.add(variant, Look::Measured, x, ms(case));
            if form == SINGLE_PASS {
                (0..forms.len())
                    .for_each(|at| lines.add("floor", Look::Computed, at as f64, positive(case, "floor_ms")));
                lines.rivals(case, forms.len() as f64);
            }
        }
        panels.extend(lines.panel(&if groups == "all" {
            "all keys distinct".into()
        } else {
            format!("{groups} groups")
        }));
    }
    let rivals = has_rivals.then_some("rivals");
    let names = forms.into_iter().chain(rivals).map(str::to_string).collect();
    let x = Axis { label: "form", scale: Scale::Names(names) };
    let note = cases.first().and_then(|(_, case)| rows(case));
    chart(&format!("Ordered {}: forms and variants", kind.to_uppercase()), note, x, Scale::Log10, panels)
}

fn join(results: &[Case]) -> Option<Chart> {
    let x = Axis { label: "table", scale: Scale::Bytes };
    curve(results, "join", "Join by size of the table", x)
}

fn group_by(results: &[Case]) -> Option<Chart> {
    let x = Axis { label: "groups", scale: Scale::Log10 };
    curve(results, "groupby", "GROUP BY by number of groups", x)
}

/// Cases `<family>/<number>`: a series for each algorithm or strategy, with floors and predictions, and a panel for
/// each share of probes that match.
fn curve(results: &[Case], family: &str, title: &str, x: Axis) -> Option<Chart> {
    let own = || results.iter().filter(|case| parts(case).len() == 2 && case.part(0) == family);
    let titles: Vec<String> = own().map(matching).collect();
    let mut panels = Vec::new();
    for panel in distinct(titles.iter().map(String::as_str)) {
        let mut lines = Lines::default();
        for case in own().filter(|case| matching(case) == panel) {
            let Ok(at) = case.part(1).parse() else { continue };
            let by = case.text("algorithm").or(case.text("strategy"));
            lines.add(by.unwrap_or("measured"), Look::Measured, at, ms(case));
            let predicted = by.map_or_else(|| "predicted".to_string(), |name| format!("{name}, predicted"));
            lines.add(&predicted, Look::Computed, at, positive(case, "predicted_ms"));
            if positive(case, "predicted_ms").is_none() {
                lines.add("floor", Look::Computed, at, positive(case, "floor_ms"));
            }
            lines.rivals(case, at);
        }
        panels.extend(lines.panel(panel));
    }
    let note = own().find_map(rows);
    chart(title, note, x, Scale::Log10, panels)
}

/// The share of probes that match, in words; empty for cases without probes.
fn matching(case: &Case) -> String {
    match positive(case, "match_share") {
        None => String::new(),
        Some(share) if share >= 1.0 => "all probes match".into(),
        Some(share) => format!("{:.0} % of probes match", share * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report(results: Vec<Value>) -> Report {
        let report = json!({"suite": "primitives", "device": "D", "date": "2026-01-31", "results": results});
        serde_json::from_value(report).unwrap()
    }

    fn names(report: &Report) -> Vec<&'static str> {
        drawings(report).iter().map(|figure| figure.name).collect()
    }

    fn cases(results: &[Value]) -> Vec<Case> {
        report(results.to_vec()).results
    }

    fn series<'c>(chart: &'c Chart, panel: usize, name: &str) -> &'c [(f64, f64)] {
        &chart.panels[panel].series.iter().find(|series| series.name == name).unwrap().points
    }

    #[test]
    fn only_what_was_measured_is_drawn() {
        assert!(drawings(&report(Vec::new())).is_empty());
        let scan = json!({"case": "scan/u32", "device_ms": 1.0});
        assert!(names(&report(vec![scan])).is_empty());
        let select = json!({"case": "select/30", "device_ms": 1.0, "order": "any", "rows": 1u64 << 29});
        let figures = drawings(&report(vec![select]));
        assert_eq!(figures[0].name, "select");
        assert!(figures[0].svg.contains(">D, 2026-01-31, 2²⁹ rows</text>"), "{}", figures[0].svg);
        let dated = |percent: u32, date: &str| {
            let case = format!("select/{percent}");
            json!({"case": case, "device_ms": 1.0, "order": "any", "rows": 1u64 << 29, "date": date})
        };
        let figures = drawings(&report(vec![dated(10, "2026-01-02"), dated(30, "2026-01-02")]));
        assert!(figures[0].svg.contains(">D, 2026-01-02, 2²⁹ rows</text>"), "{}", figures[0].svg);
        let figures = drawings(&report(vec![dated(10, "2026-01-02"), dated(30, "2025-12-30")]));
        assert!(figures[0].svg.contains(">D, 2025-12-30 to 2026-01-02, 2²⁹ rows</text>"), "{}", figures[0].svg);
    }

    #[test]
    fn selections_have_orders_floor_and_rival() {
        let result = |percent: u32, order: &str, ms: f64| {
            json!({
                "case": format!("select/{percent}"), "order": order, "device_ms": ms, "floor_ms": 0.5,
                "rivals": {"cub_ms": 3.0},
            })
        };
        let results = [result(10, "any", 1.0), result(0, "any", 0.9), result(10, "stable", 2.0)];
        let chart = select(&cases(&results)).unwrap();
        assert_eq!(series(&chart, 0, "in any order"), [(0.0, 0.9), (10.0, 1.0)]);
        assert_eq!(series(&chart, 0, "in the order of the input"), [(10.0, 2.0)]);
        assert_eq!(series(&chart, 0, "floor"), [(0.0, 0.5), (10.0, 0.5)]);
        assert_eq!(series(&chart, 0, "CUB"), [(0.0, 3.0), (10.0, 3.0)]);
    }

    fn top(keys: &str, k: u32, algorithm: &str, ms: f64) -> Value {
        json!({"case": format!("topk/f32/{keys}/{k}"), "algorithm": algorithm, "device_ms": ms, "n": 1024})
    }

    #[test]
    fn topk_has_panels_by_distribution_and_by_k() {
        let results = [
            top("uniform", 1, "threshold", 1.0),
            top("uniform", 32, "threshold", 2.0),
            top("uniform", 1, "bitonic", 3.0),
            top("uniform", 32, "bitonic", 4.0),
            top("uniform", 32, "bitonic_global", 9.0),
            top("equal", 1, "threshold", 5.0),
            top("equal", 32, "threshold", 6.0),
            json!({"case": "topk/i32/uniform/32", "algorithm": "threshold", "device_ms": 99.0}),
        ];
        let chart = topk_by_k(&cases(&results)).unwrap();
        assert_eq!(chart.panels.len(), 1);
        assert_eq!(series(&chart, 0, "threshold"), [(1.0, 1.0), (32.0, 2.0)]);
        assert_eq!(chart.legend().len(), 2);
        let chart = topk_by_distribution(&cases(&results)).unwrap();
        assert_eq!(chart.x.scale, Scale::Names(vec!["uniform".into(), "equal".into()]));
        let titles: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["k = 1", "k = 32"]);
        assert_eq!(series(&chart, 1, "threshold"), [(0.0, 2.0), (1.0, 6.0)]);
        let chart = topk_ablation(&cases(&results)).unwrap();
        assert_eq!(series(&chart, 0, "Bitonic Top-K"), [(0.0, 9.0), (7.0, 4.0)]);
        assert!(topk_ablation(&cases(&results[..4])).is_none());
    }

    #[test]
    fn ordered_aggregation_has_forms_by_variants() {
        let result =
            |case: &str, ms: f64| json!({"case": case, "device_ms": ms, "floor_ms": 0.5, "rivals": {"cub_ms": 7.0}});
        let results = [
            result("ordered/count/16", 1.0),
            result("ordered/sum/16", 9.0),
            result("ordered/forms/five/direct/count/16", 4.0),
            result("ordered/forms/two/direct/count/16", 3.0),
            result("ordered/forms/two/array/count/16", 2.0),
            result("ordered/forms/two/array/count/all", 8.0),
        ];
        let chart = ordered(&cases(&results), "count").unwrap();
        let names = ["five", "two", SINGLE_PASS, "rivals"].map(str::to_string);
        assert_eq!(chart.x.scale, Scale::Names(names.into()));
        assert_eq!(series(&chart, 0, "direct"), [(0.0, 4.0), (1.0, 3.0)]);
        assert_eq!(series(&chart, 0, SINGLE_PASS), [(2.0, 1.0)]);
        assert_eq!(series(&chart, 0, "CUB"), [(3.0, 7.0)]);
        assert_eq!(chart.panels[1].title, "all keys distinct");
        assert_eq!(series(&ordered(&cases(&results), "sum").unwrap(), 0, SINGLE_PASS), [(0.0, 9.0)]);
    }

    #[test]
    fn curves_have_predictions() {
        let result = |bytes: u64, algorithm: &str| {
            let case = format!("join/{bytes}");
            json!({"case": case, "algorithm": algorithm, "device_ms": 2.0, "predicted_ms": 1.5})
        };
        let results = [result(8192, "linear"), result(1 << 30, "linear"), result(8192, "partitioned")];
        let chart = join(&cases(&results)).unwrap();
        assert_eq!(series(&chart, 0, "linear"), [(8192.0, 2.0), (1_073_741_824.0, 2.0)]);
        assert_eq!(series(&chart, 0, "partitioned, predicted"), [(8192.0, 1.5)]);
        assert!(group_by(&cases(&results)).is_none());
        let shares = [1.0, 0.125].map(
            |share| json!({"case": "join/64", "strategy": "LinearProbing", "device_ms": 2.0, "match_share": share}),
        );
        let chart = join(&cases(&shares)).unwrap();
        let titles: Vec<&str> = chart.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["all probes match", "12 % of probes match"]);
        assert_eq!(series(&chart, 1, "LinearProbing"), [(64.0, 2.0)]);
    }

    #[test]
    fn segments_stand_beside_the_whole() {
        let results = [
            json!({"case": "segsort/16", "device_ms": 6.0, "rows": 4096}),
            json!({"case": "sort/keys/u32", "device_ms": 5.0, "floor_ms": 2.0}),
        ];
        let chart = segmented_sort(&cases(&results)).unwrap();
        assert_eq!(series(&chart, 0, "unsegmented sort"), [(16.0, 5.0)]);
        assert_eq!(series(&chart, 0, "segmented sort"), [(16.0, 6.0)]);
    }
}
