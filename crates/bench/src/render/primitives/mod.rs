//! The tables of bench/results/primitives-*.md, a section for each family of primitives, with its figures above it.

mod charts;
mod targets;

use crate::render::Drawing;
use crate::render::markdown::{head, image, link, pivot, row, table};
use crate::render::text::{distinct, rival, three_below_ten};
use crate::report::{Case, Report};
use targets::{Targets, met};

/// The results whose drawings are kept.
pub(super) const DRAWN: &str = "primitives-h200.json";

/// A family of cases.
struct Family {
    title: &'static str,
    /// First parts of its cases' names.
    names: &'static [&'static str],
    /// Its drawings, where there are results for them.
    drawings: &'static [&'static str],
    table: fn(&[&Case], &Targets<'_>) -> String,
}

const FAMILIES: [Family; 10] = [
    Family { title: "Selection", names: &["select", "select-sent"], drawings: &["select"], table: rows },
    Family { title: "Projection and scan", names: &["project", "scan"], drawings: &[], table: rows },
    Family { title: "Sort", names: &["sort", "segsort"], drawings: &["segsort"], table: rows },
    Family {
        title: "Top-k",
        names: &["topk"],
        drawings: &["topk-k", "topk-distribution", "topk-ablation"],
        table: topk,
    },
    Family {
        title: "Ordered aggregation",
        names: &["ordered"],
        drawings: &["ordered-count", "ordered-sum"],
        table: ordered,
    },
    Family { title: "Join", names: &["join"], drawings: &["join"], table: rows },
    Family { title: "GROUP BY", names: &["groupby"], drawings: &["groupby"], table: rows },
    Family { title: "Partition", names: &["partition"], drawings: &[], table: rows },
    Family { title: "Random access and the bus", names: &["random"], drawings: &[], table: rows },
    Family { title: "More than 2³¹ rows", names: &["large"], drawings: &[], table: rows },
];

/// The drawings of the reports' results.
pub(super) fn drawings(reports: &[&Report]) -> Vec<Drawing> {
    reports.iter().flat_map(|report| charts::drawings(report)).collect()
}

/// The section of a file of the suite `primitives`.
pub(super) fn tables(report: &Report, name: &str) -> Result<String, String> {
    let cases: Vec<&Case> = report.results.iter().collect();
    let in_family = |case: &&&Case| FAMILIES.iter().any(|family| family.names.contains(&case.part(0)));
    if let Some(stray) = cases.iter().find(|case| !in_family(case)) {
        return Err(format!("case {}: no family of crates/bench/src/render/primitives/mod.rs has it", stray.name));
    }
    let mut text = format!("{}\n({}).\n", head(report), link(name));
    for (name, version) in &report.rivals {
        text.push_str(&format!("Rival {}: {}.\n", rival(name), version.as_str().unwrap_or_default()));
    }
    text.push_str(&provenance(report));
    let targets = Targets::of(report);
    text.push_str(&missed(&targets));
    let drawn = if name == DRAWN { charts::drawings(report) } else { Vec::new() };
    for family in &FAMILIES {
        let own: Vec<&Case> = cases.iter().copied().filter(|case| family.names.contains(&case.part(0))).collect();
        if own.is_empty() {
            continue;
        }
        text.push_str(&format!("\n### {}\n", family.title));
        for drawing in drawn.iter().filter(|drawing| family.drawings.contains(&drawing.name)) {
            text.push_str(&format!("\n{}", image(drawing)));
        }
        text.push_str(&format!("\n{}", (family.table)(&own, &targets)));
    }
    Ok(text)
}

/// Families whose results are of other runs than the head tells of: commit, date, and the number of timed runs.
fn provenance(report: &Report) -> String {
    let usual = report.params.get("runs").and_then(serde_json::Value::as_u64);
    let of = |commit: Option<&str>, date: Option<&str>, runs: Option<u64>| {
        let (commit, date) = (commit.or(report.commit.as_deref()), date.or(report.date.as_deref()));
        let runs = runs.or(usual).map(|runs| format!("{runs} timed runs"));
        let run = [commit.map(|commit| format!("commit {commit}")), date.map(str::to_string), runs];
        run.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let own = of(None, None, None);
    let mut runs: Vec<(String, Vec<&str>)> = Vec::new();
    for case in &report.results {
        let run = of(case.text("commit"), case.text("date"), case["timed_runs"].as_u64());
        if run == own {
            continue;
        }
        let family = if case.part(1) == "forms" { "ordered/forms" } else { case.part(0) };
        let at = runs.iter().position(|(known, _)| *known == run).unwrap_or_else(|| {
            runs.push((run, Vec::new()));
            runs.len() - 1
        });
        if !runs[at].1.contains(&family) {
            runs[at].1.push(family);
        }
    }
    let line = |(run, families): (String, Vec<&str>)| {
        format!("Results of {}\nare of another run: {run}.\n", families.join(", "))
    };
    runs.into_iter().map(line).collect()
}

/// The results that miss their targets.
fn missed(targets: &Targets<'_>) -> String {
    let (count, missed) = targets.missed();
    if count == 0 {
        return String::new();
    }
    let mut text = format!("\n### Targets\n\nOf {count} results with a target {} reach it.\n", count - missed.len());
    if !missed.is_empty() {
        let columns = ["ms", "at most, ms", "met"].map(str::to_string);
        let lines = missed.into_iter().map(|(result, target)| {
            (name(result), vec![ms(result.figure("device_ms")), ms(Some(target)), met(result, target)])
        });
        text.push_str(&format!("The others:\n\n{}", table("case", &columns, lines)));
    }
    text
}

/// A case with what tells its results apart.
fn name(case: &Case) -> String {
    let by = ["order", "algorithm", "strategy"].into_iter().find_map(|figure| case.text(figure));
    let matches = case.figure("match_share").map(|share| format!("{:.0} % match", share * 100.0));
    let by: Vec<String> = by.map(str::to_string).into_iter().chain(matches).collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    format!("{}{by}", case.name)
}

/// A table of a line a case: time, floor, prediction, target, rivals.
fn rows(cases: &[&Case], targets: &Targets<'_>) -> String {
    let rivals = distinct(cases.iter().flat_map(|case| case.rivals()).map(|(name, _)| name));
    let has_prediction = cases.iter().any(|case| case["predicted_ms"].is_number());
    let has_target = cases.iter().any(|case| targets.ms(case).is_some());
    let mut columns: Vec<String> = ["ms", "floor, ms", "times the floor"].map(str::to_string).into();
    columns.extend(has_prediction.then(|| "predicted, ms".to_string()));
    columns.extend(["at most, ms", "met"].into_iter().filter(|_| has_target).map(str::to_string));
    columns.extend(rivals.iter().map(|name| format!("{}, ms", rival(name))));
    let lines = cases.iter().map(|case| {
        let (device, floor) = (case.figure("device_ms"), case.figure("floor_ms"));
        let share = device.zip(floor).map(|(ms, floor)| format!("{:.2}", ms / floor));
        let mut cells = vec![ms(device), ms(floor), share.unwrap_or_default()];
        cells.extend(has_prediction.then(|| ms(case.figure("predicted_ms"))));
        if has_target {
            let target = targets.ms(case);
            cells.push(ms(target));
            cells.push(target.map(|target| met(case, target)).unwrap_or_default());
        }
        cells.extend(rivals.iter().map(|rival| ms(case.figure(&format!("rivals/{rival}_ms")))));
        (name(case), cells)
    });
    table("case", &columns, lines)
}

fn ms(figure: Option<f64>) -> String {
    figure.map(three_below_ten).unwrap_or_default()
}

/// The time of a case, and in brackets the one predicted.
fn ms_and_predicted(case: &Case) -> String {
    let predicted = case.figure("predicted_ms").map(|predicted| format!(" ({})", ms(Some(predicted))));
    ms(case.figure("device_ms")) + &predicted.unwrap_or_default()
}

/// Top-k: the default by distribution and k for each type, then all algorithms by k over the paper's distributions.
fn topk(cases: &[&Case], targets: &Targets<'_>) -> String {
    let mut all = String::new();
    for keys in distinct(cases.iter().map(|case| case.part(1))) {
        let own = cases.iter().copied();
        let own = own.filter(|case| case.part(1) == keys && case.text("algorithm") == Some("threshold"));
        if own.clone().next().is_some() {
            let place = |case: &Case| Some((case.part(2).to_string(), case.part(3).to_string()));
            let mut table = pivot("keys", own.clone(), place, |case| ms(case.figure("device_ms")));
            // Neither depends on the distribution.
            table.push_str(&by_k("predicted", own.clone(), |case| case.figure("predicted_ms")));
            table.push_str(&by_k("at most", own, |case| targets.ms(case)));
            all.push_str(&format!("Threshold, {keys} keys, ms by k:\n\n{table}\n"));
        }
    }
    for keys in distinct(cases.iter().map(|case| case.part(2))) {
        let own = cases.iter().copied().filter(|case| case.part(1) == "f32" && case.part(2) == keys);
        let algorithms = distinct(own.clone().map(|case| case.text("algorithm")));
        if algorithms.len() > 1 {
            let algorithm = |case: &Case| case.text("algorithm").unwrap_or_default().to_string();
            let place = |case: &Case| Some((algorithm(case), case.part(3).to_string()));
            let mut table = pivot("algorithm", own.clone(), place, ms_and_predicted);
            for name in distinct(own.clone().flat_map(|case| case.rivals()).map(|(name, _)| name)) {
                let figure = format!("rivals/{name}_ms");
                table.push_str(&by_k(&rival(name), own.clone(), |case| case.figure(&figure)));
            }
            let predicted = predicted_too(own);
            all.push_str(&format!("Algorithms, {keys} f32 keys, ms{predicted} by k:\n\n{table}\n"));
        }
    }
    all.trim_end().to_string() + "\n"
}

/// For a heading: whether times have those predicted beside them.
fn predicted_too<'c>(mut cases: impl Iterator<Item = &'c Case>) -> &'static str {
    if cases.any(|case| case["predicted_ms"].is_number()) { " (and those predicted for random keys)" } else { "" }
}

/// A line under the columns of k, if any case has the figure.
fn by_k<'c>(
    corner: &str,
    cases: impl Iterator<Item = &'c Case> + Clone,
    figure: impl Fn(&Case) -> Option<f64>,
) -> String {
    if !cases.clone().any(|case| figure(case).is_some()) {
        return String::new();
    }
    let ks = distinct(cases.clone().map(|case| case.part(3)));
    let at = |k: &&str| ms(cases.clone().filter(|case| case.part(3) == *k).find_map(&figure));
    row(corner, &ks.iter().map(at).collect::<Vec<_>>())
}

/// Ordered aggregation: the single pass, then the paper's forms and variants by aggregate and number of groups.
fn ordered(cases: &[&Case], targets: &Targets<'_>) -> String {
    let (mut forms, own): (Vec<&Case>, Vec<&Case>) = cases.iter().copied().partition(|case| case.part(1) == "forms");
    // Results that were measured again lie behind the others.
    forms.sort_by_key(|case| {
        let (name, groups) = case.name.rsplit_once('/').unwrap_or_default();
        (
            !name.contains("single_pass"),
            groups.parse::<u64>().unwrap_or(u64::MAX),
            groups.to_string(),
            name.contains("/sum"),
        )
    });
    let mut text = if own.is_empty() { String::new() } else { rows(&own, targets) };
    if !forms.is_empty() {
        // Form, variant where the form has any, aggregate and groups.
        let place = |case: &Case| {
            let (name, groups) = case.name.strip_prefix("ordered/forms/")?.rsplit_once('/')?;
            let (form, aggregate) = name.rsplit_once('/')?;
            Some((form.replace('/', ", "), format!("{aggregate} {groups}")))
        };
        text.push_str(&format!(
            "{}Forms and variants, ms by aggregate and groups:\n\n{}",
            if own.is_empty() { "" } else { "\n" },
            pivot("form", forms, place, |case| ms(case.figure("device_ms")))
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report(results: Vec<Value>) -> Report {
        let (params, date) = (json!({"log_rows": 9}), "2026-01-31");
        let report = json!({"suite": "primitives", "device": "D", "date": date, "params": params, "results": results});
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn a_family_has_its_figure_and_its_rivals() {
        let results = [
            json!({
                "case": "select/10", "order": "any", "device_ms": 0.5, "floor_ms": 0.4, "verified": true,
                "rivals": {"cub_ms": 1.25},
            }),
            json!({"case": "select/20", "order": "any", "device_ms": 12.34, "verified": true}),
        ];
        let mut report = report(results.into());
        report.rivals.insert("cub".into(), "3.0.1".into());
        let text = tables(&report, "primitives-h200.json").unwrap();
        assert!(text.starts_with("**PRIMITIVES on D**, log_rows 9, 2026-01-31\n([primitives-h200.json]"), "{text}");
        let expected = "Rival CUB: 3.0.1.\n\n### Selection\n\n\
                        ![Selection by selectivity](../../docs/figures/select.svg)\n\n\
                        | case | ms | floor, ms | times the floor | CUB, ms |\n|---|---:|---:|---:|---:|\n\
                        | select/10 (any) | 0.500 | 0.400 | 1.25 | 1.250 |\n| select/20 (any) | 12.3 |  |  |  |\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn no_case_is_dropped_and_rows_differ() {
        let case = |name: &str| json!({"case": name, "device_ms": 1.0});
        let text =
            tables(&report(["select-sent/50", "partition/u32", "random/sent", "large/scan"].map(case).into()), "x");
        let text = text.unwrap();
        for line in
            ["### Selection\n\n| case", "| select-sent/50 |", "| partition/u32 |", "| random/sent |", "| large/scan |"]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
        let stray = tables(&report(vec![case("scan/u32"), case("scanned/u32")]), "x").unwrap_err();
        assert!(stray.starts_with("case scanned/u32: no family"), "{stray}");
        let join = |share: f64| json!({"case": "join/8192", "strategy": "LinearProbing", "match_share": share});
        let text = tables(&report(vec![join(1.0), join(0.1)]), "x").unwrap();
        assert!(text.contains("| join/8192 (LinearProbing, 100 % match) |"), "{text}");
        assert!(text.contains("| join/8192 (LinearProbing, 10 % match) |"), "{text}");
    }

    #[test]
    fn targets_that_are_missed_are_named_with_what_they_miss() {
        let select =
            |order: &str, ms: f64| json!({"case": "select/0", "order": order, "device_ms": ms, "floor_ms": 1.0});
        let top = |keys: &str, ms: f64| {
            let case = format!("topk/f32/{keys}/32");
            json!({"case": case, "algorithm": "threshold", "device_ms": ms, "predicted_ms": 0.51})
        };
        let results = vec![select("any", 1.1), select("stable", 1.485), top("equal", 0.5), top("few", 0.561)];
        let mut report = report(results);
        report.device = "NVIDIA H200".into();
        report.params.insert("log_rows".into(), 29.into());
        let text = tables(&report, "x").unwrap();
        let missed = "### Targets\n\nOf 4 results with a target 2 reach it.\nThe others:\n\n\
                      | case | ms | at most, ms | met |\n|---|---:|---:|---:|\n\
                      | select/0 (stable) | 1.485 | 1.350 | no, +10 % |\n\
                      | topk/f32/few/32 (threshold) | 0.561 | 0.550 | no, +2 % |\n";
        assert!(text.contains(missed), "{text}");
        assert!(text.contains("| select/0 (any) | 1.100 | 1.000 | 1.10 | 1.150 | yes |"), "{text}");
        let threshold = "| equal | 0.500 |\n| few | 0.561 |\n| predicted | 0.510 |\n| at most | 0.550 |\n";
        assert!(text.contains(threshold), "{text}");
    }

    #[test]
    fn results_of_other_runs_tell_of_them() {
        let case = |name: &str, commit: &str| json!({"case": name, "device_ms": 1.0, "commit": commit});
        let mut report = report(vec![
            case("scan/u32", "b2"),
            case("join/8192", "a1"),
            case("ordered/forms/one_kernel/count/16", "a1"),
            json!({"case": "large/scan", "device_ms": 1.0, "date": "2026-01-30", "timed_runs": 3, "runs": 16}),
        ]);
        report.commit = Some("b2".into());
        let text = tables(&report, "x").unwrap();
        let lines = "Results of join, ordered/forms\nare of another run: commit a1, 2026-01-31.\n\
                     Results of large\nare of another run: commit b2, 2026-01-30, 3 timed runs.\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn topk_is_by_distribution_and_by_algorithm() {
        let result = |keys: &str, k: u32, algorithm: &str, ms: f64| {
            let case = format!("topk/f32/{keys}/{k}");
            json!({"case": case, "algorithm": algorithm, "device_ms": ms, "rivals": {"torch_ms": 9.0}})
        };
        let results = vec![
            result("uniform", 1, "threshold", 1.0),
            result("uniform", 2, "threshold", 2.0),
            result("uniform", 2, "bitonic", 3.0),
            result("equal", 1, "threshold", 4.0),
        ];
        let text = tables(&report(results), "primitives-x.json").unwrap();
        let by_keys = "Threshold, f32 keys, ms by k:\n\n| keys | 1 | 2 |\n|---|---:|---:|\n\
                       | uniform | 1.000 | 2.000 |\n| equal | 4.000 |  |\n";
        let by_algorithm = "Algorithms, uniform f32 keys, ms by k:\n\n| algorithm | 1 | 2 |\n|---|---:|---:|\n\
                            | threshold | 1.000 | 2.000 |\n| bitonic |  | 3.000 |\n| torch | 9.000 | 9.000 |\n";
        assert!(text.contains(by_keys) && text.ends_with(by_algorithm), "{text}");
    }

    #[test]
    fn forms_are_beside_the_single_pass() {
        let result = |case: &str| json!({"case": case, "device_ms": 1.0});
        let results = vec![
            result("ordered/count/16"),
            result("ordered/forms/single_pass/count/16"),
            result("ordered/forms/five/direct/count/16"),
            result("ordered/sum/16"),
        ];
        let text = tables(&report(results), "primitives-x.json").unwrap();
        assert!(text.contains("| ordered/count/16 | 1.000 |  |  |\n| ordered/sum/16 |"), "{text}");
        assert!(
            text.ends_with("| form | count 16 |\n|---|---:|\n| single_pass | 1.000 |\n| five, direct | 1.000 |\n"),
            "{text}"
        );
    }
}
