//! The tables of bench/results/schemes.md: the suite `schemes`, in the order of the figures of Wang's thesis. Each
//! file has other arrays.

use serde_json::Value;

use crate::bench_table::{head, image, link};
use crate::process::Result;

/// Schemes in the order of columns, and those on the device.
const SCHEMES: [&str; 8] = ["coordinate", "offset-value", "bess", "xcrs", "xccs", "bxcrs", "hybrid", "ptcs"];
const ON_DEVICE: [&str; 4] = ["bess", "xcrs", "bxcrs", "hybrid"];
const SUB_ARRAYS: [&str; 3] = ["sub-array-1", "sub-array-2", "sub-array-3"];

/// A table: a row an array, a column a scheme.
struct Table {
    title: &'static str,
    /// Its figure; empty if it has none.
    figure: &'static str,
    schemes: &'static [&'static str],
    cell: fn(&Array<'_>, &str) -> Option<String>,
    /// What arrays it has.
    has: fn(&Array<'_>) -> bool,
}

const TABLES: [Table; 12] = [
    Table {
        title: "Storage ratio, % of the dense array (figure 7.1)",
        figure: "schemes-storage",
        schemes: &SCHEMES,
        cell: |array, scheme| Some(format!("{:.2}", array.cpu("storage", scheme, "ratio")? * 100.0)),
        has: |_| true,
    },
    Table {
        title: "Storage ratio by the thesis's formulas, whose words and values have 4 bytes, % (figure 7.1)",
        figure: "",
        schemes: &SCHEMES,
        cell: |array, scheme| Some(format!("{:.2}", array.cpu("storage", scheme, "thesis_ratio")? * 100.0)),
        has: |array| array.dimensions == 8,
    },
    Table {
        title: "Construction on one core, ms (figure 7.2)",
        figure: "schemes-construction",
        schemes: &SCHEMES,
        cell: |array, scheme| Some(short(array.cpu("construction", scheme, "cpu_ms")?)),
        has: |_| true,
    },
    Table {
        title: "Random access on one core, ns a lookup (figure 7.3)",
        figure: "schemes-random",
        schemes: &SCHEMES,
        cell: |array, scheme| Some(short(array.cpu("random", scheme, "ns_each")?)),
        has: |_| true,
    },
    Table {
        title: "Sub-arrays on one core, ns a cell of all three (figures 7.5 and 7.6)",
        figure: "schemes-sub-array",
        schemes: &SCHEMES,
        cell: |array, scheme| Some(short(array.sub_arrays("cpu", scheme, "cpu_ms")?)),
        has: |_| true,
    },
    Table {
        title: "Sub-arrays on one core, ns a cell: each of the three",
        figure: "",
        schemes: &SCHEMES,
        cell: |array, scheme| array.each_sub_array("cpu", scheme),
        has: |_| true,
    },
    Table {
        title: "The k - 1 aggregations on one core, ms (figures 7.7 to 7.9)",
        figure: "schemes-aggregation",
        schemes: &SCHEMES,
        cell: |array, scheme| Some(short(array.cpu("aggregation", scheme, "cpu_ms")?)),
        has: |_| true,
    },
    Table {
        title: "Construction for the device, built on one core and copied, ms: the copy's share",
        figure: "",
        schemes: &ON_DEVICE,
        cell: |array, scheme| {
            let figure = |key| array.figure("construction", scheme, "gpu", key);
            Some(format!("{}: {}", short(figure("warm_ms")?), short(figure("upload_ms")?)))
        },
        has: |_| true,
    },
    Table {
        title: "Random access on the device, ns a lookup, and with transfers: times one core (figures 7.12 to 7.14)",
        figure: "schemes-random-device",
        schemes: &ON_DEVICE,
        cell: |array, scheme| {
            let figure = |key| array.figure("random", scheme, "gpu", key);
            let with_transfers = figure("warm_ms")? * 1e6 / figure("lookups")?;
            let speedup = figure("speedup")?;
            Some(format!("{:.2}, {with_transfers:.2}: {speedup:.0} ×", figure("ns_each")?))
        },
        has: |_| true,
    },
    Table {
        title: "Sub-arrays on the device, ns a cell of all three: times one core (figures 7.15 to 7.17)",
        figure: "schemes-sub-array-device",
        schemes: &ON_DEVICE,
        cell: |array, scheme| {
            let figure = |key| array.sub_arrays("gpu", scheme, key);
            let (device, one_core) = (figure("device_ms")?, figure("one_core_ms")?);
            Some(format!("{device:.3}: {:.0} ×", one_core / device))
        },
        has: |_| true,
    },
    Table {
        title: "Sub-arrays on the device, ns a cell: each of the three",
        figure: "",
        schemes: &ON_DEVICE,
        cell: |array, scheme| array.each_sub_array("gpu", scheme),
        has: |_| true,
    },
    Table {
        title: "The k - 1 aggregations on the device, ms: times one core",
        figure: "",
        schemes: &ON_DEVICE,
        cell: |array, scheme| {
            let figure = |key| array.figure("aggregation", scheme, "gpu", key);
            let (device, one_core) = (figure("device_ms")?, figure("one_core_ms")?);
            Some(format!("{device:.3}: {:.0} ×", one_core / device))
        },
        has: |_| true,
    },
];

/// The results over one array.
struct Array<'r> {
    cells: u64,
    dimensions: u64,
    /// Percent of empty places.
    sparsity: f64,
    results: Vec<(Name<'r>, &'r Value)>,
}

/// Operation, scheme and device of a case.
#[derive(PartialEq)]
struct Name<'r>(&'r str, &'r str, &'r str);

/// All tables of some files.
pub(crate) fn tables(files: &[(String, Value)]) -> Result<String> {
    let mut text = String::new();
    let mut arrays: Vec<Array<'_>> = Vec::new();
    for (name, results) in files {
        text.push_str(&format!("{};\n{}.\n\n", head(results)?, link(name)));
        for result in results["results"].as_array().ok_or_else(|| format!("{name}: no 'results'"))? {
            add(&mut arrays, result).ok_or_else(|| format!("{name}: case {} has no known form", result["case"]))?;
        }
    }
    arrays.sort_by(|one, other| {
        let sizes = |array: &Array<'_>| (array.cells, array.dimensions);
        sizes(one).cmp(&sizes(other)).then(one.sparsity.total_cmp(&other.sparsity))
    });
    text.push_str(&least_speedup(&arrays));
    let figures = warpcube_figures::schemes(&files.iter().map(|(_, results)| results).collect::<Vec<_>>());
    for table in &TABLES {
        text.push_str(&format!("\n### {}\n", table.title));
        if let Some(figure) = figures.iter().find(|figure| figure.name == table.figure) {
            text.push_str(&format!("\n{}", image(figure)));
        }
        text.push_str("\n| million cells | k | empty, % | ");
        text.push_str(&format!("{} |\n|---:|---:|---:|{}\n", table.schemes.join(" | "), rule(table)));
        for array in arrays.iter().filter(|array| (table.has)(array)) {
            let cells = table.schemes.iter().map(|scheme| (table.cell)(array, scheme).unwrap_or_default());
            let cells = cells.collect::<Vec<String>>().join(" | ");
            let million = array.cells as f64 / 1e6;
            text.push_str(&format!("| {million} | {} | {} | {cells} |\n", array.dimensions, array.sparsity));
        }
    }
    Ok(text)
}

fn rule(table: &Table) -> String {
    "---:|".repeat(table.schemes.len())
}

/// Adds a result to its array.
fn add<'r>(arrays: &mut Vec<Array<'r>>, result: &'r Value) -> Option<()> {
    let parts: Vec<&str> = result["case"].as_str()?.split('/').collect();
    let [operation, scheme, dimensions, sparsity, device] = parts[..] else { return None };
    let dimensions = dimensions.strip_prefix('k')?.parse().ok()?;
    let sparsity = sparsity.strip_prefix('s')?.parse().ok()?;
    let cells = result["cells"].as_u64()?;
    let own = |array: &Array<'_>| (array.cells, array.dimensions, array.sparsity) == (cells, dimensions, sparsity);
    let at = arrays.iter().position(own).unwrap_or_else(|| {
        arrays.push(Array { cells, dimensions, sparsity, results: Vec::new() });
        arrays.len() - 1
    });
    arrays[at].results.push((Name(operation, scheme, device), result));
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
        .fold((0, 0), |(count, verified), (_, result)| (count + 1, verified + usize::from(result["verified"] == true)));
    let least = least.map_or(String::new(), |least| {
        format!(
            " Random access on the device, transfers included,\ntakes at most one {least:.0}th of the time of one core."
        )
    });
    format!("{verified} of {count} results equal a plain scan.{least}\n")
}

impl Array<'_> {
    fn figure(&self, operation: &str, scheme: &str, device: &str, key: &str) -> Option<f64> {
        self.results.iter().find(|(name, _)| *name == Name(operation, scheme, device))?.1[key].as_f64()
    }

    fn cpu(&self, operation: &str, scheme: &str, key: &str) -> Option<f64> {
        self.figure(operation, scheme, "cpu", key)
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

/// About three digits.
fn short(figure: f64) -> String {
    let digits = [(0.1, 4), (1.0, 3), (10.0, 2), (100.0, 1)].into_iter().find(|(below, _)| figure < *below);
    let digits = digits.map_or(0, |(_, digits)| digits);
    format!("{figure:.digits$}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(results: Vec<Value>) -> (String, Value) {
        ("x.json".to_string(), json!({"suite": "schemes", "device": "D", "params": {}, "results": results}))
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
        assert_eq!(refused, "x.json: case \"random/bess\" has no known form");
    }
}
