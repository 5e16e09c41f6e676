//! The tables of bench/results/primitives-*.md, a section for each family of primitives, with its figures above it.

use serde_json::Value;

use crate::bench_table::{head, image, link};
use crate::figures;
use crate::primitive_targets::{Targets, met};
use crate::process::Result;

/// A family of cases.
struct Family {
    title: &'static str,
    /// First parts of its cases' names.
    names: &'static [&'static str],
    /// Its figures, where there are results for them.
    figures: &'static [&'static str],
    table: fn(&[&Value], &Targets<'_>) -> String,
}

const FAMILIES: [Family; 10] = [
    Family { title: "Selection", names: &["select", "select-sent"], figures: &["select"], table: rows },
    Family { title: "Projection and scan", names: &["project", "scan"], figures: &[], table: rows },
    Family { title: "Sort", names: &["sort", "segsort"], figures: &["segsort"], table: rows },
    Family {
        title: "Top-k",
        names: &["topk"],
        figures: &["topk-k", "topk-distribution", "topk-ablation"],
        table: topk,
    },
    Family {
        title: "Ordered aggregation",
        names: &["ordered"],
        figures: &["ordered-count", "ordered-sum"],
        table: ordered,
    },
    Family { title: "Join", names: &["join"], figures: &["join"], table: rows },
    Family { title: "GROUP BY", names: &["groupby"], figures: &["groupby"], table: rows },
    Family { title: "Partition", names: &["partition"], figures: &[], table: rows },
    Family { title: "Random access and the bus", names: &["random"], figures: &[], table: rows },
    Family { title: "More than 2³¹ rows", names: &["large"], figures: &[], table: rows },
];

/// The section of a file of the suite `primitives`.
pub(crate) fn tables(results: &Value, name: &str) -> Result<String> {
    let cases: Vec<&Value> = results["results"].as_array().ok_or("no 'results'")?.iter().collect();
    let in_family = |case: &&&Value| FAMILIES.iter().any(|family| family.names.contains(&part(case, 0)));
    if let Some(stray) = cases.iter().find(|case| !in_family(case)) {
        return Err(format!("case {}: no family of xtask/src/primitives.rs has it", stray["case"]));
    }
    let mut text = format!("{}\n({}).\n", head(results)?, link(name));
    for (rival, version) in results["rivals"].as_object().into_iter().flatten() {
        text.push_str(&format!("Rival {}: {}.\n", rival_name(rival), version.as_str().unwrap_or_default()));
    }
    text.push_str(&provenance(results, &cases));
    let targets = Targets::of(results);
    text.push_str(&missed(&targets));
    // Figures are drawn from one file of the suite.
    let drawn = if figures::RESULTS.ends_with(name) { warpcube_figures::primitives(results) } else { Vec::new() };
    for family in &FAMILIES {
        let own: Vec<&Value> = cases.iter().copied().filter(|case| family.names.contains(&part(case, 0))).collect();
        if own.is_empty() {
            continue;
        }
        text.push_str(&format!("\n### {}\n", family.title));
        for figure in drawn.iter().filter(|figure| family.figures.contains(&figure.name)) {
            text.push_str(&format!("\n{}", image(figure)));
        }
        text.push_str(&format!("\n{}", (family.table)(&own, &targets)));
    }
    Ok(text)
}

/// Families whose results are of other runs than the head tells of: commit, date, and the number of timed runs.
fn provenance(results: &Value, cases: &[&Value]) -> String {
    let usual = results["params"]["runs"].as_u64();
    let of = |case: &Value| {
        let text = |key: &str| case[key].as_str().or(results[key].as_str()).map(str::to_string);
        let timed = case["timed_runs"].as_u64().or(usual).map(|runs| format!("{runs} timed runs"));
        [text("commit").map(|commit| format!("commit {commit}")), text("date"), timed]
    };
    let own = of(results);
    let mut runs: Vec<([Option<String>; 3], Vec<String>)> = Vec::new();
    for case in cases.iter().filter(|case| of(case) != own) {
        let family = if part(case, 1) == "forms" { "ordered/forms" } else { part(case, 0) }.to_string();
        let at = runs.iter().position(|(run, _)| *run == of(case)).unwrap_or_else(|| {
            runs.push((of(case), Vec::new()));
            runs.len() - 1
        });
        if !runs[at].1.contains(&family) {
            runs[at].1.push(family);
        }
    }
    let line = |(run, families): ([Option<String>; 3], Vec<String>)| {
        let run = run.into_iter().flatten().collect::<Vec<_>>().join(", ");
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
            (name(result), vec![ms(&result["device_ms"]), ms(&target.into()), met(result, target)])
        });
        text.push_str(&format!("The others:\n\n{}", table("case", &columns, lines)));
    }
    text
}

/// A case with what tells its results apart.
fn name(case: &Value) -> String {
    let by = ["order", "algorithm", "strategy"].into_iter().find_map(|key| case[key].as_str());
    let matches = case["match_share"].as_f64().map(|share| format!("{:.0} % match", share * 100.0));
    let by: Vec<String> = by.map(str::to_string).into_iter().chain(matches).collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    format!("{}{by}", case["case"].as_str().unwrap_or_default())
}

/// A part of a case's name.
fn part(case: &Value, at: usize) -> &str {
    case["case"].as_str().unwrap_or_default().split('/').nth(at).unwrap_or_default()
}

fn rival_name(rival: &str) -> String {
    if rival == "cub" { "CUB".into() } else { rival.to_string() }
}

/// The distinct values, in their order.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// A table of a line a case: time, floor, prediction, target, rivals.
fn rows(cases: &[&Value], targets: &Targets<'_>) -> String {
    let rivals = cases.iter().flat_map(|case| case["rivals"].as_object().into_iter().flatten());
    let rivals = distinct(rivals.filter_map(|(key, _)| Some(key.strip_suffix("_ms")?.to_string())));
    let has_prediction = cases.iter().any(|case| case["predicted_ms"].is_number());
    let has_target = cases.iter().any(|case| targets.ms(case).is_some());
    let mut columns: Vec<String> = ["ms", "floor, ms", "times the floor"].map(str::to_string).into();
    columns.extend(has_prediction.then(|| "predicted, ms".to_string()));
    columns.extend(["at most, ms", "met"].into_iter().filter(|_| has_target).map(str::to_string));
    columns.extend(rivals.iter().map(|rival| format!("{}, ms", rival_name(rival))));
    let lines = cases.iter().map(|case| {
        let floor = case["floor_ms"].as_f64();
        let share = case["device_ms"].as_f64().zip(floor).map(|(ms, floor)| format!("{:.2}", ms / floor));
        let mut cells = vec![ms(&case["device_ms"]), ms(&case["floor_ms"]), share.unwrap_or_default()];
        cells.extend(has_prediction.then(|| ms(&case["predicted_ms"])));
        if has_target {
            let target = targets.ms(case);
            cells.push(target.map(|target| ms(&target.into())).unwrap_or_default());
            cells.push(target.map(|target| met(case, target)).unwrap_or_default());
        }
        cells.extend(rivals.iter().map(|rival| ms(&case["rivals"][format!("{rival}_ms")])));
        (name(case), cells)
    });
    table("case", &columns, lines)
}

fn table(corner: &str, columns: &[String], lines: impl Iterator<Item = (String, Vec<String>)>) -> String {
    let mut text = format!("| {corner} | {} |\n|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len()));
    for (name, cells) in lines {
        text.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
    text
}

fn ms(figure: &Value) -> String {
    figure.as_f64().map(|ms| if ms < 10.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }).unwrap_or_default()
}

/// The time of a case, and in brackets the one predicted.
fn ms_and_predicted(case: &Value) -> String {
    let predicted = case["predicted_ms"].as_f64().map(|_| format!(" ({})", ms(&case["predicted_ms"])));
    ms(&case["device_ms"]) + &predicted.unwrap_or_default()
}

/// What `cell` gives of cases by the two names that `place` gives of them.
fn pivot<'c>(
    corner: &str,
    cases: impl Iterator<Item = &'c Value> + Clone,
    place: impl Fn(&Value) -> Option<(String, String)>,
    cell: impl Fn(&Value) -> String,
) -> String {
    let placed: Vec<_> = cases.filter_map(|case| Some((place(case)?, case))).collect();
    let columns = distinct(placed.iter().map(|((_, column), _)| column.clone()));
    let names = distinct(placed.iter().map(|((row, _), _)| row.clone()));
    let lines = names.into_iter().map(|row| {
        let at = |column: &String| placed.iter().find(|((r, c), _)| *r == row && c == column);
        let cells = columns.iter().map(|column| at(column).map(|(_, case)| cell(case)).unwrap_or_default());
        (row.clone(), cells.collect())
    });
    table(corner, &columns, lines)
}

/// Top-k: the default by distribution and k for each type, then all algorithms by k over the paper's distributions.
fn topk(cases: &[&Value], targets: &Targets<'_>) -> String {
    let text = |case: &Value, key: &str| case[key].as_str().unwrap_or_default().to_string();
    let mut all = String::new();
    for keys in distinct(cases.iter().map(|case| part(case, 1).to_string())) {
        let own = cases.iter().copied().filter(|case| part(case, 1) == keys && text(case, "algorithm") == "threshold");
        if own.clone().next().is_some() {
            let place = |case: &Value| Some((part(case, 2).to_string(), part(case, 3).to_string()));
            let mut table = pivot("keys", own.clone(), place, |case| ms(&case["device_ms"]));
            // Neither depends on the distribution.
            table.push_str(&by_k("predicted", own.clone(), |case| case["predicted_ms"].as_f64()));
            table.push_str(&by_k("at most", own, |case| targets.ms(case)));
            all.push_str(&format!("Threshold, {keys} keys, ms by k:\n\n{table}\n"));
        }
    }
    for keys in distinct(cases.iter().map(|case| part(case, 2).to_string())) {
        let own = cases.iter().copied().filter(|case| part(case, 1) == "f32" && part(case, 2) == keys);
        let algorithms = distinct(own.clone().map(|case| text(case, "algorithm")));
        if algorithms.len() > 1 {
            let place = |case: &Value| Some((text(case, "algorithm"), part(case, 3).to_string()));
            let mut table = pivot("algorithm", own.clone(), place, ms_and_predicted);
            let predicted = predicted_too(own.clone());
            table.push_str(&rivals_by_k(own));
            all.push_str(&format!("Algorithms, {keys} f32 keys, ms{predicted} by k:\n\n{table}\n"));
        }
    }
    all.trim_end().to_string() + "\n"
}

/// For a heading: whether times have those predicted beside them.
fn predicted_too<'c>(mut cases: impl Iterator<Item = &'c Value>) -> &'static str {
    if cases.any(|case| case["predicted_ms"].is_number()) { " (and those predicted for random keys)" } else { "" }
}

/// A line under the columns of k, if any case has the figure.
fn by_k<'c>(
    corner: &str,
    cases: impl Iterator<Item = &'c Value> + Clone,
    figure: impl Fn(&Value) -> Option<f64>,
) -> String {
    if !cases.clone().any(|case| figure(case).is_some()) {
        return String::new();
    }
    let ks = distinct(cases.clone().map(|case| part(case, 3).to_string()));
    let at = |k: &String| cases.clone().filter(|case| part(case, 3) == k).find_map(&figure);
    let cells: Vec<String> = ks.iter().map(|k| at(k).map(|figure| ms(&figure.into())).unwrap_or_default()).collect();
    format!("| {corner} | {} |\n", cells.join(" | "))
}

/// Lines of rivals under the columns of k.
fn rivals_by_k<'c>(cases: impl Iterator<Item = &'c Value> + Clone) -> String {
    let ks = distinct(cases.clone().map(|case| part(case, 3).to_string()));
    let rivals = cases.clone().flat_map(|case| case["rivals"].as_object().into_iter().flatten());
    let mut text = String::new();
    for rival in distinct(rivals.map(|(key, _)| key.clone())) {
        let at = |k: &String| cases.clone().find(|case| part(case, 3) == k).map(|case| ms(&case["rivals"][&rival]));
        let cells: Vec<String> = ks.iter().map(|k| at(k).unwrap_or_default()).collect();
        let name = rival_name(rival.trim_end_matches("_ms"));
        text.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
    text
}

/// Ordered aggregation: the single pass, then the paper's forms and variants by aggregate and number of groups.
fn ordered(cases: &[&Value], targets: &Targets<'_>) -> String {
    let (mut forms, own): (Vec<&Value>, Vec<&Value>) = cases.iter().copied().partition(|case| part(case, 1) == "forms");
    // Results that were measured again lie behind the others.
    forms.sort_by_key(|case| {
        let name = case["case"].as_str().unwrap_or_default();
        let (name, groups) = name.rsplit_once('/').unwrap_or_default();
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
        let place = |case: &Value| {
            let name = case["case"].as_str()?.strip_prefix("ordered/forms/")?;
            let (name, groups) = name.rsplit_once('/')?;
            let (form, aggregate) = name.rsplit_once('/')?;
            Some((form.replace('/', ", "), format!("{aggregate} {groups}")))
        };
        text.push_str(&format!(
            "{}Forms and variants, ms by aggregate and groups:\n\n{}",
            if own.is_empty() { "" } else { "\n" },
            pivot("form", forms.into_iter(), place, |case| ms(&case["device_ms"]))
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(results: Vec<Value>) -> Value {
        let params = json!({"log_rows": 9});
        json!({"suite": "primitives", "device": "D", "date": "2026-01-31", "params": params, "results": results})
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
        report["rivals"] = json!({"cub": "3.0.1"});
        let text = tables(&report, "primitives-h200.json").unwrap();
        assert!(text.starts_with("**PRIMITIVES on D**, log_rows 9, 2026-01-31\n([primitives-h200.json]"), "{text}");
        let expected = "Rival CUB: 3.0.1.\n\n### Selection\n\n\
                        ![Selection by selectivity](../../docs/figures/select.svg)\n\n\
                        | case | ms | floor, ms | times the floor | CUB, ms |\n|---|---:|---:|---:|---:|\n\
                        | select/10 (any) | 0.500 | 0.400 | 1.25 | 1.250 |\n| select/20 (any) | 12.3 |  |  |  |\n";
        assert!(text.ends_with(expected), "{text}");
        assert!(tables(&json!({"suite": "primitives", "device": "D"}), "primitives-h200.json").is_err());
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
        assert!(stray.starts_with("case \"scanned/u32\": no family"), "{stray}");
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
        report["device"] = "NVIDIA H200".into();
        report["params"] = json!({"log_rows": 29});
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
        report["commit"] = "b2".into();
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
