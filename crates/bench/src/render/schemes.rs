//! The tables and drawings of the suite `schemes`, in the order of the figures of Wang's thesis: 7.1 to 7.9 and 7.12 to
//! 7.17. Tables have all arrays of some files, drawings those with the most cells.
//!
//! A case is `<operation>/<scheme>/k<dimensions>/s<percent of empty places>/<cpu|gpu>`.

use super::chart::{Axis, Chart, Look, Panel, Series};
use super::markdown::{head, image, link, row};
use super::scale::Scale;
use super::text::short;
use super::{Drawing, Files, svg};
use crate::report::{Case, Report};

const SCHEMES: [&str; 8] = ["coordinate", "offset-value", "bess", "xcrs", "xccs", "bxcrs", "hybrid", "ptcs"];
const ON_DEVICE: [&str; 4] = ["bess", "xcrs", "bxcrs", "hybrid"];
const SUB_ARRAYS: [&str; 3] = ["sub-array-1", "sub-array-2", "sub-array-3"];
const DIMENSIONS: [&str; 4] = ["2", "3", "4", "8"];
const SPARSITIES: [&str; 4] = ["90", "95", "99", "99.9"];

/// A table, a row an array and a column a scheme, and its drawing.
struct Spec {
    title: &'static str,
    schemes: &'static [&'static str],
    cell: Cell,
    /// What arrays it has.
    has: fn(&Array<'_>) -> bool,
    drawing: Option<Drawn>,
}

/// What a table has of an array and a scheme.
enum Cell {
    Figure(fn(&Array<'_>, &str) -> Option<f64>, fn(f64) -> String),
    Text(fn(&Array<'_>, &str) -> Option<String>),
}

/// A drawing: its name and title, the label of its figures, and what stands in it.
struct Drawn {
    name: &'static str,
    title: &'static str,
    label: &'static str,
    lines: Lines,
}

enum Lines {
    /// The figures of the table: a panel for each number of dimensions, schemes by sparsity.
    Figures,
    /// A panel for each scheme: one core and the device, by sparsity for some numbers of dimensions.
    BySparsity(&'static [&'static str], fn(&Array<'_>, &str, &str) -> Option<f64>),
    /// The same by the number of dimensions for some sparsities.
    ByDimensions(&'static [&'static str], fn(&Array<'_>, &str, &str) -> Option<f64>),
}

const fn drawn(name: &'static str, title: &'static str, label: &'static str, lines: Lines) -> Option<Drawn> {
    Some(Drawn { name, title, label, lines })
}

/// A table of one core with the drawing of its figures.
const fn one_core(title: &'static str, cell: Cell, drawing: Option<Drawn>) -> Spec {
    Spec { title, schemes: &SCHEMES, cell, has: |_| true, drawing }
}

/// A table of the device.
const fn device(title: &'static str, cell: fn(&Array<'_>, &str) -> Option<String>, drawing: Option<Drawn>) -> Spec {
    Spec { title, schemes: &ON_DEVICE, cell: Cell::Text(cell), has: |_| true, drawing }
}

static SPECS: [Spec; 12] = [
    one_core(
        "Storage ratio, % of the dense array (figure 7.1)",
        Cell::Figure(
            |array, scheme| Some(array.cpu("storage", scheme, "ratio")? * 100.0),
            |ratio| format!("{ratio:.2}"),
        ),
        drawn("schemes-storage", "Storage ratio", "% of the dense array", Lines::Figures),
    ),
    Spec {
        has: |array| array.dimensions == 8,
        ..one_core(
            "Storage ratio by the thesis's formulas, whose words and values have 4 bytes, % (figure 7.1)",
            Cell::Figure(
                |array, scheme| Some(array.cpu("storage", scheme, "thesis_ratio")? * 100.0),
                |ratio| format!("{ratio:.2}"),
            ),
            None,
        )
    },
    one_core(
        "Construction on one core, ms (figure 7.2)",
        Cell::Figure(|array, scheme| array.cpu("construction", scheme, "cpu_ms"), short),
        drawn("schemes-construction", "Construction on one core", "milliseconds", Lines::Figures),
    ),
    one_core(
        "Random access on one core, ns a lookup (figure 7.3)",
        Cell::Figure(|array, scheme| array.cpu("random", scheme, "ns_each"), short),
        drawn("schemes-random", "Random access on one core", "ns a lookup", Lines::Figures),
    ),
    one_core(
        "Sub-arrays on one core, ns a cell of all three (figures 7.5 and 7.6)",
        Cell::Figure(|array, scheme| array.sub_arrays("cpu", scheme, "cpu_ms"), short),
        drawn("schemes-sub-array", "Three sub-arrays on one core", "ns a cell", Lines::Figures),
    ),
    one_core(
        "Sub-arrays on one core, ns a cell: each of the three",
        Cell::Text(|array, scheme| array.each_sub_array("cpu", scheme)),
        None,
    ),
    one_core(
        "The k - 1 aggregations on one core, ms (figures 7.7 to 7.9)",
        Cell::Figure(|array, scheme| array.cpu("aggregation", scheme, "cpu_ms"), short),
        drawn("schemes-aggregation", "The k - 1 aggregations on one core", "milliseconds", Lines::Figures),
    ),
    device(
        "Construction for the device, built on one core and copied, ms: the copy's share",
        |array, scheme| {
            let figure = |key| array.figure("construction", scheme, "gpu", key);
            Some(format!("{}: {}", short(figure("warm_ms")?), short(figure("upload_ms")?)))
        },
        None,
    ),
    device(
        "Random access on the device, ns a lookup, and with transfers: times one core (figures 7.12 to 7.14)",
        |array, scheme| {
            let figure = |key| array.figure("random", scheme, "gpu", key);
            let (each, with_transfers, speedup) = (figure("ns_each")?, array.sent(scheme)?, figure("speedup")?);
            Some(format!("{each:.2}, {with_transfers:.2}: {speedup:.0} ×"))
        },
        drawn(
            "schemes-random-device",
            "Random access on one core and on the device, transfers included",
            "ns a lookup",
            Lines::BySparsity(&["4", "8"], |array, scheme, device| match device {
                "cpu" => array.cpu("random", scheme, "ns_each"),
                _ => array.sent(scheme),
            }),
        ),
    ),
    device(
        "Sub-arrays on the device, ns a cell of all three: times one core (figures 7.15 to 7.17)",
        |array, scheme| {
            let figure = |key| array.sub_arrays("gpu", scheme, key);
            let (device, one_core) = (figure("device_ms")?, figure("one_core_ms")?);
            Some(format!("{device:.3}: {:.0} ×", one_core / device))
        },
        drawn(
            "schemes-sub-array-device",
            "Three sub-arrays on one core and on the device",
            "ns a cell",
            Lines::ByDimensions(&["90", "95"], |array, scheme, device| {
                array.sub_arrays(device, scheme, if device == "cpu" { "cpu_ms" } else { "device_ms" })
            }),
        ),
    ),
    device(
        "Sub-arrays on the device, ns a cell: each of the three",
        |array, scheme| array.each_sub_array("gpu", scheme),
        None,
    ),
    device(
        "The k - 1 aggregations on the device, ms: times one core",
        |array, scheme| {
            let figure = |key| array.figure("aggregation", scheme, "gpu", key);
            let (device, one_core) = (figure("device_ms")?, figure("one_core_ms")?);
            Some(format!("{device:.3}: {:.0} ×", one_core / device))
        },
        None,
    ),
];

/// The results over one array.
struct Array<'r> {
    cells: u64,
    dimensions: u64,
    /// Percent of empty places.
    sparsity: f64,
    results: Vec<(Name<'r>, &'r Case)>,
}

/// Operation, scheme and device of a case.
#[derive(PartialEq)]
struct Name<'r>(&'r str, &'r str, &'r str);

/// All tables of some files.
pub(super) fn tables(files: &Files) -> Result<String, String> {
    let reports: Vec<&Report> = files.iter().map(|(_, report)| report).collect();
    let mut text: String =
        files.iter().map(|(name, report)| format!("{};\n{}.\n\n", head(report), link(name))).collect();
    let arrays = arrays(&reports)?;
    text.push_str(&least_speedup(&arrays));
    let drawings = drawings(&reports);
    for spec in &SPECS {
        text.push_str(&format!("\n### {}\n", spec.title));
        let drawing = spec.drawing.as_ref();
        if let Some(drawing) = drawings.iter().find(|made| drawing.is_some_and(|drawing| drawing.name == made.name)) {
            text.push_str(&format!("\n{}", image(drawing)));
        }
        let columns = "---:|".repeat(spec.schemes.len());
        let titles = spec.schemes.join(" | ");
        text.push_str(&format!("\n| million cells | k | empty, % | {titles} |\n|---:|---:|---:|{columns}\n"));
        for array in arrays.iter().filter(|array| (spec.has)(array)) {
            let cell = |scheme: &&str| match spec.cell {
                Cell::Figure(figure, form) => figure(array, scheme).map(form),
                Cell::Text(text) => text(array, scheme),
            };
            let cells: Vec<String> = spec.schemes.iter().map(|scheme| cell(scheme).unwrap_or_default()).collect();
            let million = array.cells as f64 / 1e6;
            text.push_str(&row(&format!("{million} | {} | {}", array.dimensions, array.sparsity), &cells));
        }
    }
    Ok(text)
}

/// The results of some reports by their arrays: by cells, dimensions and sparsity.
fn arrays<'r>(reports: &[&'r Report]) -> Result<Vec<Array<'r>>, String> {
    let mut arrays: Vec<Array<'_>> = Vec::new();
    for case in reports.iter().flat_map(|report| &report.results) {
        add(&mut arrays, case).ok_or_else(|| format!("case {} has no known form", case.name))?;
    }
    arrays.sort_by(|one, other| {
        let sizes = |array: &Array<'_>| (array.cells, array.dimensions);
        sizes(one).cmp(&sizes(other)).then(one.sparsity.total_cmp(&other.sparsity))
    });
    Ok(arrays)
}

/// Adds a result to its array.
fn add<'r>(arrays: &mut Vec<Array<'r>>, case: &'r Case) -> Option<()> {
    let parts: Vec<&str> = case.name.split('/').collect();
    let [operation, scheme, dimensions, sparsity, device] = parts[..] else { return None };
    let dimensions = dimensions.strip_prefix('k')?.parse().ok()?;
    let sparsity = sparsity.strip_prefix('s')?.parse().ok()?;
    let cells = case["cells"].as_u64()?;
    let own = |array: &Array<'_>| (array.cells, array.dimensions, array.sparsity) == (cells, dimensions, sparsity);
    let at = arrays.iter().position(own).unwrap_or_else(|| {
        arrays.push(Array { cells, dimensions, sparsity, results: Vec::new() });
        arrays.len() - 1
    });
    arrays[at].results.push((Name(operation, scheme, device), case));
    Some(())
}

/// The random access on the device that is least faster than one core.
fn least_speedup(arrays: &[Array<'_>]) -> String {
    let of = |array: &Array<'_>| {
        let speedups = ON_DEVICE.iter().filter_map(|scheme| array.figure("random", scheme, "gpu", "speedup"));
        speedups.min_by(f64::total_cmp)
    };
    let least = arrays.iter().filter_map(of).min_by(f64::total_cmp);
    let results = arrays.iter().flat_map(|array| &array.results);
    let (count, verified) = results
        .fold((0, 0), |(count, verified), (_, case)| (count + 1, verified + usize::from(case.verified == Some(true))));
    let least = least.map_or(String::new(), |least| {
        format!(
            " Random access on the device, transfers included,\ntakes at most one {least:.0}th of the time of one core."
        )
    });
    format!("{verified} of {count} results equal a plain scan.{least}\n")
}

impl Array<'_> {
    fn figure(&self, operation: &str, scheme: &str, device: &str, key: &str) -> Option<f64> {
        self.results.iter().find(|(name, _)| *name == Name(operation, scheme, device))?.1.figure(key)
    }

    fn cpu(&self, operation: &str, scheme: &str, key: &str) -> Option<f64> {
        self.figure(operation, scheme, "cpu", key)
    }

    /// Nanoseconds a lookup of a random access on the device, transfers included.
    fn sent(&self, scheme: &str) -> Option<f64> {
        let figure = |key| self.figure("random", scheme, "gpu", key);
        Some(figure("warm_ms")? * 1e6 / figure("lookups")?)
    }

    /// Nanoseconds a cell of the three sub-arrays, by milliseconds of this name.
    fn sub_arrays(&self, device: &str, scheme: &str, key: &str) -> Option<f64> {
        let sum = |key: &str| SUB_ARRAYS.iter().map(|area| self.figure(area, scheme, device, key)).sum::<Option<f64>>();
        Some(sum(key)? * 1e6 / sum("found")?)
    }

    /// Nanoseconds a cell of each sub-array.
    fn each_sub_array(&self, device: &str, scheme: &str) -> Option<String> {
        let each = SUB_ARRAYS.iter().map(|area| self.figure(area, scheme, device, "ns_each").map(short));
        Some(each.collect::<Option<Vec<String>>>()?.join(", "))
    }
}

/// The drawings that some reports have results for: their largest arrays.
pub(super) fn drawings(reports: &[&Report]) -> Vec<Drawing> {
    let mut arrays = arrays(reports).unwrap_or_default();
    let Some(most) = arrays.last().map(|array| array.cells) else { return Vec::new() };
    arrays.retain(|array| array.cells == most);
    let said = reports.first().into_iter().flat_map(|report| [Some(report.device.clone()), report.date.clone()]);
    let note: Vec<String> = said.flatten().chain([format!("{} million cells", most as f64 / 1e6)]).collect();
    let drawing = |spec: &Spec| {
        let Drawn { name, title, label, lines } = spec.drawing.as_ref()?;
        let (panels, x, x_label) = match (lines, &spec.cell) {
            (Lines::Figures, Cell::Figure(figure, _)) => {
                (by_dimensions(&arrays, *figure), &SPARSITIES, "empty places, %")
            }
            (Lines::BySparsity(lines, figure), _) => {
                let line = |k: &str| format!("k = {k}");
                (beside(&arrays, lines, &SPARSITIES, |k, s| (k, s), line, *figure), &SPARSITIES, "empty places, %")
            }
            (Lines::ByDimensions(lines, figure), _) => {
                let line = |sparsity: &str| format!("{sparsity} % empty");
                (beside(&arrays, lines, &DIMENSIONS, |s, k| (k, s), line, *figure), &DIMENSIONS, "dimensions")
            }
            (Lines::Figures, Cell::Text(_)) => return None,
        };
        let x = Axis { label: x_label, scale: Scale::Names(x.iter().map(|name| name.to_string()).collect()) };
        let y = Axis { label, scale: Scale::Log10 };
        let chart = Chart { title: title.to_string(), note: note.join(", "), x, y, panels };
        (!chart.panels.is_empty()).then(|| Drawing { name, title: title.to_string(), svg: svg::draw(&chart) })
    };
    SPECS.iter().filter_map(drawing).collect()
}

/// The array of these dimensions and this sparsity.
fn find<'a, 'r>(arrays: &'a [Array<'r>], dimensions: &str, sparsity: &str) -> Option<&'a Array<'r>> {
    let is_it =
        |array: &&Array<'_>| array.dimensions.to_string() == dimensions && Ok(array.sparsity) == sparsity.parse();
    arrays.iter().find(is_it)
}

/// A panel for each number of dimensions: schemes by sparsity.
fn by_dimensions(arrays: &[Array<'_>], figure: fn(&Array<'_>, &str) -> Option<f64>) -> Vec<Panel> {
    let panel = |dimensions: &&str| {
        let points = |scheme: &str| {
            let y = |sparsity: &str| positive(figure(find(arrays, dimensions, sparsity)?, scheme));
            points(&SPARSITIES, y)
        };
        of_series(format!("k = {dimensions}"), SCHEMES.iter().map(|scheme| (scheme.to_string(), points(scheme))))
    };
    DIMENSIONS.iter().filter_map(panel).collect()
}

/// A panel for each scheme of the device: one core and the device, for each of `lines`, by the entries of `across`;
/// `array` makes dimensions and sparsity of both, `label` the name of a line.
fn beside(
    arrays: &[Array<'_>],
    lines: &[&'static str],
    across: &[&'static str],
    array: fn(&'static str, &'static str) -> (&'static str, &'static str),
    label: fn(&str) -> String,
    figure: fn(&Array<'_>, &str, &str) -> Option<f64>,
) -> Vec<Panel> {
    let panel = |scheme: &&str| {
        let series = lines.iter().flat_map(|line| {
            [("cpu", "one core"), ("gpu", "device")].into_iter().map(move |(device, name)| {
                let y = |place: &'static str| {
                    let (dimensions, sparsity) = array(line, place);
                    positive(figure(find(arrays, dimensions, sparsity)?, scheme, device))
                };
                (format!("{}, {name}", label(line)), points(across, y))
            })
        });
        of_series(scheme.to_string(), series)
    };
    ON_DEVICE.iter().filter_map(panel).collect()
}

fn positive(figure: Option<f64>) -> Option<f64> {
    figure.filter(|figure| *figure > 0.0)
}

/// The points over names that have a figure.
fn points(names: &[&'static str], y: impl Fn(&'static str) -> Option<f64>) -> Vec<(f64, f64)> {
    names.iter().enumerate().filter_map(|(at, name)| Some((at as f64, y(name)?))).collect()
}

/// A panel of the series that have points.
fn of_series(title: String, series: impl Iterator<Item = (String, Vec<(f64, f64)>)>) -> Option<Panel> {
    let series = series.filter(|(_, points)| !points.is_empty());
    let series: Vec<Series> = series.map(|(name, points)| Series { name, look: Look::Measured, points }).collect();
    (!series.is_empty()).then_some(Panel { title, series })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(results: Vec<Value>) -> Report {
        let report = json!({"suite": "schemes", "device": "D", "date": "2026-01-31", "results": results});
        serde_json::from_value(report).unwrap()
    }

    fn report(results: Vec<Value>) -> (String, Report) {
        ("x.json".to_string(), read(results))
    }

    #[test]
    fn arrays_of_all_files_are_rows() {
        let name = "storage/ptcs/k8/s90/cpu";
        let storage = json!({"case": name, "cells": 2_000_000, "verified": true, "ratio": 0.35});
        let sub_array = |number: u64, ms: f64, found: u64| {
            json!({
                "case": format!("sub-array-{number}/bess/k3/s99.9/gpu"), "cells": 1_500_000, "verified": true,
                "device_ms": ms, "one_core_ms": 8.0 * ms, "found": found, "ns_each": ms * 1e6 / found as f64,
            })
        };
        let random = json!({
            "case": "random/bess/k3/s99.9/gpu", "cells": 1_500_000, "verified": true, "ns_each": 0.5, "warm_ms": 2.0,
            "lookups": 1_000_000, "speedup": 98.6,
        });
        let files = [
            report(vec![storage]),
            report(vec![
                sub_array(1, 1.0, 1_000_000),
                sub_array(2, 1.0, 2_000_000),
                sub_array(3, 2.0, 1_000_000),
                random,
            ]),
        ];
        let text = tables(&files).unwrap();
        assert!(text.contains("5 of 5 results equal a plain scan. Random access on the device, transfers included,"));
        assert!(text.contains("takes at most one 99th of the time of one core."), "{text}");
        assert!(
            text.contains("| 1.5 | 3 | 99.9 |  |  |  |  |  |  |  |  |\n| 2 | 8 | 90 |  |  |  |  |  |  |  | 35.00 |\n")
        );
        assert!(text.contains("| 1.5 | 3 | 99.9 | 1.000: 8 × |  |  |  |\n"), "{text}");
        assert!(text.contains("| 1.5 | 3 | 99.9 | 1.00, 0.500, 2.00 |  |  |  |\n"), "{text}");
        assert!(text.contains("| 1.5 | 3 | 99.9 | 0.50, 2.00: 99 × |  |  |  |\n"), "{text}");
    }

    #[test]
    fn other_cases_are_refused() {
        let refused = tables(&[report(vec![json!({"case": "random/bess", "cells": 1})])]).unwrap_err();
        assert_eq!(refused, "case random/bess has no known form");
    }

    #[test]
    fn the_largest_arrays_are_drawn() {
        let case = |name: &str, cells: u64, ns: f64| json!({"case": name, "cells": cells, "ns_each": ns});
        let (small, large) = ("random/bess/k2/s90/cpu", "random/ptcs/k8/s99.9/cpu");
        let report = read(vec![case(small, 2_000_000, 3.0), case(large, 10_000_000, 700.0)]);
        let figures = drawings(&[&report]);
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["schemes-random"]);
        let svg = &figures[0].svg;
        assert!(svg.contains("D, 2026-01-31, 10 million cells"), "{svg}");
        assert!(svg.contains("k = 8") && !svg.contains("k = 2") && svg.contains("ptcs") && !svg.contains("bess"));
        assert!(drawings(&[]).is_empty());
    }

    #[test]
    fn the_device_stands_beside_one_core() {
        let result = |device: &str| {
            json!({
                "case": format!("random/xcrs/k4/s95/{device}"), "cells": 10, "ns_each": 90.0, "warm_ms": 0.5,
                "lookups": 1_000_000,
            })
        };
        let figures = drawings(&[&read(vec![result("cpu"), result("gpu")])]);
        let beside = figures.iter().find(|figure| figure.name == "schemes-random-device").unwrap();
        assert!(beside.svg.contains("k = 4, one core") && beside.svg.contains("k = 4, device"), "{}", beside.svg);
    }
}
