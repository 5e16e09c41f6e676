//! The figures of the suite `schemes`, after figures 7.1 to 7.9 and 7.12 to 7.17 of Wang's thesis: the largest arrays.
//!
//! A result's case is `<operation>/<scheme>/k<dimensions>/s<percent of empty places>/<cpu|gpu>`.

use serde_json::Value;

use crate::Figure;
use crate::chart::{Axis, Chart, Look, Panel, Series};
use crate::scale::Scale;
use crate::svg;

const SCHEMES: [&str; 8] = ["coordinate", "offset-value", "bess", "xcrs", "xccs", "bxcrs", "hybrid", "ptcs"];
const ON_DEVICE: [&str; 4] = ["bess", "xcrs", "bxcrs", "hybrid"];
const DIMENSIONS: [&str; 4] = ["2", "3", "4", "8"];
const SPARSITIES: [&str; 4] = ["90", "95", "99", "99.9"];
const SUB_ARRAYS: [&str; 3] = ["sub-array-1", "sub-array-2", "sub-array-3"];

/// The figures that some reports of the suite have results for.
pub fn schemes(reports: &[&Value]) -> Vec<Figure> {
    let results = || reports.iter().flat_map(|report| report["results"].as_array().into_iter().flatten());
    let Some(most) = results().filter_map(|result| result["cells"].as_u64()).max() else { return Vec::new() };
    let results = Results(results().filter(|result| result["cells"] == most).collect());
    let said = ["device", "date"].into_iter().filter_map(|key| reports.first()?[key].as_str());
    let note = said.map(str::to_string).chain([format!("{} million cells", most as f64 / 1e6)]).collect::<Vec<_>>();
    let of = |name, title: &str, label, panels: Vec<Panel>, x: &[&str], x_label| {
        let x = Axis { label: x_label, scale: Scale::Names(x.iter().map(|name| name.to_string()).collect()) };
        let y = Axis { label, scale: Scale::Log10 };
        let chart = Chart { title: title.to_string(), note: note.join(", "), x, y, panels };
        (!chart.panels.is_empty()).then(|| Figure { name, title: title.to_string(), svg: svg::draw(&chart) })
    };
    let by_scheme = |name, title, label, figure: &dyn Fn(&Case<'_>) -> Option<f64>| {
        of(name, title, label, results.by_dimensions(figure), &SPARSITIES, "empty places, %")
    };
    let figures = [
        by_scheme("schemes-storage", "Storage ratio", "% of the dense array", &|case| {
            Some(results.figure("storage", case, "ratio")? * 100.0)
        }),
        by_scheme("schemes-construction", "Construction on one core", "milliseconds", &|case| {
            results.figure("construction", case, "cpu_ms")
        }),
        by_scheme("schemes-random", "Random access on one core", "ns a lookup", &|case| {
            results.figure("random", case, "ns_each")
        }),
        by_scheme("schemes-sub-array", "Three sub-arrays on one core", "ns a cell", &|case| {
            results.sub_arrays(case, "cpu_ms")
        }),
        by_scheme("schemes-aggregation", "The k - 1 aggregations on one core", "milliseconds", &|case| {
            results.figure("aggregation", case, "cpu_ms")
        }),
        of(
            "schemes-random-device",
            "Random access on one core and on the device, transfers included",
            "ns a lookup",
            results.beside(&["4", "8"], &SPARSITIES, |k, sparsity| (k, sparsity), |k| format!("k = {k}"), &|case| {
                match case.device {
                    "cpu" => results.figure("random", case, "ns_each"),
                    _ => Some(
                        results.figure("random", case, "warm_ms")? * 1e6 / results.figure("random", case, "lookups")?,
                    ),
                }
            }),
            &SPARSITIES,
            "empty places, %",
        ),
        of(
            "schemes-sub-array-device",
            "Three sub-arrays on one core and on the device",
            "ns a cell",
            results.beside(
                &["90", "95"],
                &DIMENSIONS,
                |sparsity, k| (k, sparsity),
                |sparsity| format!("{sparsity} % empty"),
                &|case| results.sub_arrays(case, if case.device == "cpu" { "cpu_ms" } else { "device_ms" }),
            ),
            &DIMENSIONS,
            "dimensions",
        ),
    ];
    figures.into_iter().flatten().collect()
}

/// The array, the scheme and the device of a figure.
struct Case<'a> {
    scheme: &'a str,
    dimensions: &'a str,
    sparsity: &'a str,
    device: &'a str,
}

/// Results over arrays of as many cells.
struct Results<'r>(Vec<&'r Value>);

impl Results<'_> {
    fn figure(&self, operation: &str, case: &Case<'_>, key: &str) -> Option<f64> {
        let Case { scheme, dimensions, sparsity, device } = case;
        let name = format!("{operation}/{scheme}/k{dimensions}/s{sparsity}/{device}");
        self.0.iter().find(|result| result["case"] == name)?[key].as_f64().filter(|figure| *figure > 0.0)
    }

    /// Nanoseconds a cell of all three sub-arrays, by milliseconds of this name.
    fn sub_arrays(&self, case: &Case<'_>, key: &str) -> Option<f64> {
        let sum = |key| SUB_ARRAYS.iter().map(|area| self.figure(area, case, key)).sum::<Option<f64>>();
        Some(sum(key)? * 1e6 / sum("found")?)
    }

    /// A panel for each number of dimensions: schemes by sparsity on one core.
    fn by_dimensions(&self, figure: &dyn Fn(&Case<'_>) -> Option<f64>) -> Vec<Panel> {
        let panel = |dimensions: &&str| {
            let points = |scheme: &str| {
                let place = |(at, sparsity): (usize, &&str)| {
                    Some((at as f64, figure(&Case { scheme, dimensions, sparsity, device: "cpu" })?))
                };
                SPARSITIES.iter().enumerate().filter_map(place).collect()
            };
            of_series(format!("k = {dimensions}"), SCHEMES.iter().map(|scheme| (scheme.to_string(), points(scheme))))
        };
        DIMENSIONS.iter().filter_map(panel).collect()
    }

    /// A panel for each scheme of the device: one core and the device, for each of `lines`, by the entries of `across`;
    /// `array` makes dimensions and sparsity of both, `label` the name of a line.
    fn beside(
        &self,
        lines: &[&'static str],
        across: &[&'static str],
        array: fn(&'static str, &'static str) -> (&'static str, &'static str),
        label: fn(&str) -> String,
        figure: &dyn Fn(&Case<'_>) -> Option<f64>,
    ) -> Vec<Panel> {
        let panel = |scheme: &&str| {
            let series = lines.iter().flat_map(|line| {
                [("cpu", "one core"), ("gpu", "device")].into_iter().map(move |(device, name)| {
                    let place = |(at, place): (usize, &&'static str)| {
                        let (dimensions, sparsity) = array(line, place);
                        Some((at as f64, figure(&Case { scheme, dimensions, sparsity, device })?))
                    };
                    let points: Vec<(f64, f64)> = across.iter().enumerate().filter_map(place).collect();
                    (format!("{}, {name}", label(line)), points)
                })
            });
            of_series(scheme.to_string(), series)
        };
        ON_DEVICE.iter().filter_map(panel).collect()
    }
}

/// A panel of the series that have points.
fn of_series(title: String, series: impl Iterator<Item = (String, Vec<(f64, f64)>)>) -> Option<Panel> {
    let series = series.filter(|(_, points)| !points.is_empty());
    let series: Vec<Series> = series.map(|(name, points)| Series { name, look: Look::Measured, points }).collect();
    (!series.is_empty()).then_some(Panel { title, series })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_arrays_are_drawn() {
        let case = |name: &str, cells: u64, ns: f64| json!({"case": name, "cells": cells, "ns_each": ns});
        let (small, large) = ("random/bess/k2/s90/cpu", "random/ptcs/k8/s99.9/cpu");
        let report = json!({"device": "D", "date": "2026-01-31", "results": [
            case(small, 2_000_000, 3.0), case(large, 10_000_000, 700.0),
        ]});
        let figures = schemes(&[&report]);
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["schemes-random"]);
        let svg = &figures[0].svg;
        assert!(svg.contains("D, 2026-01-31, 10 million cells"), "{svg}");
        assert!(svg.contains("k = 8") && !svg.contains("k = 2") && svg.contains("ptcs") && !svg.contains("bess"));
        assert!(schemes(&[]).is_empty());
    }

    #[test]
    fn the_device_stands_beside_one_core() {
        let result = |device: &str| {
            json!({
                "case": format!("random/xcrs/k4/s95/{device}"), "cells": 10, "ns_each": 90.0, "warm_ms": 0.5,
                "lookups": 1_000_000,
            })
        };
        let figures = schemes(&[&json!({"results": [result("cpu"), result("gpu")]})]);
        let beside = figures.iter().find(|figure| figure.name == "schemes-random-device").unwrap();
        assert!(beside.svg.contains("k = 4, one core") && beside.svg.contains("k = 4, device"), "{}", beside.svg);
    }
}
