//! Measures the queries of the benchmark cubes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use warpcube_column::Residency;
use warpcube_cube::aggregate::{Algorithm, Area, Cells, Progress, Request, TargetMap, aggregate};
use warpcube_cube::device::{
    DeviceAlgorithm, DeviceCells, DeviceContraction, FactsSource, HASH_FUNCTIONS_MAX, ScanTuning, load_ms_predicted,
};
use warpcube_cube::facts::{Facts, Values};
use warpcube_gpu::Device;
use warpcube_gpu::prims::roofline::DeviceRates;

use super::algorithms::{self, AlgorithmCases, FIRST_RUN_MS_MAX};
use super::rules::{RuleCase, RuleCases};
use super::tables::TableCases;
use super::thesis::Thesis;
use super::{BenchCube, Counts, Definition, Draw, Query};
use crate::report;

/// The name of the suite in reports.
pub const SUITE: &str = "cube";

/// Targets of a dimension that algorithm (1) computes.
const SAMPLED_TARGETS: usize = 2;

/// What to measure of cubes.
#[derive(Debug, Clone, Args)]
pub struct CubeArgs {
    /// Only these queries, by comma: B1,M3
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// About so many facts in each cube, at most as many as it has
    #[arg(long, value_name = "NUMBER")]
    pub facts: Option<u64>,
    /// Runs of each query behind a first one; the median counts
    #[arg(long, default_value_t = 21, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Measure each query with these threads of a block, too, by comma: tune/B3/1024x16
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    pub threads: Vec<u32>,
    /// With --threads: miniblocks of a ticket, by comma
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_value = "16")]
    pub tickets: Vec<u32>,
    /// Measure each query with these algorithms, too, by comma; `all` is every one, with 64 hash functions:
    /// gpu-target,gpu-source/none/thread/h64
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub algorithms: Vec<String>,
    /// Measure what the thesis's tables 5.2 to 5.8 show of each query, too: counts of atomic additions, variants of the
    /// source-based algorithm by their number of hash functions, one core of the CPU
    #[arg(long)]
    pub tables: bool,
    /// With --tables: parallel hash functions, by comma
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_value = "1,4,16,64,256,1024,4096,12288",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(HASH_FUNCTIONS_MAX)))]
    pub hash_functions: Vec<u32>,
    /// With --tables: seconds behind which variants are measured with 64 hash functions alone
    #[arg(long, value_name = "NUMBER")]
    pub seconds: Option<u64>,
    /// Measure contraction by other rules, types and weights, too: M1/count, M1/avg, M1/min, M1/max, M1/double,
    /// M1/fractional, M1/sum128
    #[arg(long)]
    pub rules: bool,
    /// Write the measurements to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Measures all queries that were asked for; `say` hears a line for each step.
///
/// Every cell of a result is compared with contraction on the CPU, and those of sampled targets with algorithm (1), the
/// single-threaded source-based one.
///
/// # Errors
/// Unknown queries and algorithms, a device that fails, a query's own result that is wrong. Cases of `--algorithms` end
/// nothing: those that are left out say why, and those with other cells are not verified ([`wrong`]).
pub fn run(device: &Device, arguments: &CubeArgs, say: &mut dyn FnMut(&str)) -> Result<Value, String> {
    let definitions = Definition::all()?;
    let known = |name: &String| definitions.iter().any(|cube| cube.queries.contains_key(name));
    if let Some(unknown) = arguments.cases.iter().find(|name| !known(name)) {
        return Err(format!("--cases {unknown}: there are B1, B2, B3, M1, M2 and M3"));
    }
    let algorithms = algorithms::named(&arguments.algorithms)?;
    let begin = Instant::now();
    let mut results = Vec::new();
    for definition in definitions {
        let wanted = |name: &&String| arguments.cases.is_empty() || arguments.cases.contains(name);
        let names: Vec<String> = definition.queries.keys().filter(wanted).cloned().collect();
        if !names.is_empty() {
            let mut bench = CubeBench::new(device, definition, arguments, say)?;
            for name in &names {
                let (result, cells) = bench.measure(name, say)?;
                let additions = result["additions"].as_u64().unwrap_or_default();
                results.push(result);
                results.extend(bench.sweep(name, say)?);
                results.extend(bench.others(name, &algorithms, &cells, say)?);
                if arguments.tables {
                    let cases = TableCases { bench: &bench, query: name, expected: &cells, additions, begin };
                    results.extend(cases.measure(say)?);
                }
            }
            if arguments.rules {
                let cases = RuleCases { device, draw: &bench.draw, runs: arguments.runs };
                for rule in RuleCase::ALL {
                    let areas = names.iter().map(|name| Ok((name.as_str(), bench.area(name)?)));
                    results.extend(cases.measure(rule, &areas.collect::<Result<Vec<_>, String>>()?, say)?);
                }
            }
        }
    }
    let mut params = json!({"facts": arguments.facts, "runs": arguments.runs});
    if !arguments.algorithms.is_empty() {
        params["algorithms"] = json!(arguments.algorithms);
    }
    if arguments.tables {
        params["tables"] = true.into();
        params["hash_functions"] = json!(arguments.hash_functions);
        params["seconds"] = json!(arguments.seconds);
    }
    if arguments.rules {
        params["rules"] = true.into();
    }
    Ok(report::of(SUITE, device, params, results))
}

/// The cases of a report whose cells are wrong.
pub fn wrong(report: &Value) -> Vec<&str> {
    let results = report["results"].as_array().into_iter().flatten();
    results.filter(|result| result["verified"] == false).filter_map(|result| result["case"].as_str()).collect()
}

/// One cube with its facts on the device.
pub(super) struct CubeBench<'a> {
    device: &'a Device,
    pub(super) arguments: &'a CubeArgs,
    cube: BenchCube,
    thesis: Thesis,
    draw: Draw,
    pub(super) facts: Arc<Facts>,
    pub(super) contraction: DeviceContraction,
    /// Bytes of keys and values on the device.
    bytes: (u64, u64),
    /// Milliseconds of packing, copying and sending them.
    load_ms: f64,
}

impl<'a> CubeBench<'a> {
    fn new(
        device: &'a Device,
        definition: Definition,
        arguments: &'a CubeArgs,
        say: &mut dyn FnMut(&str),
    ) -> Result<CubeBench<'a>, String> {
        let (name, thesis) = (definition.cube.clone(), Thesis::read()?);
        let cube = BenchCube::new(definition)?;
        let begin = Instant::now();
        let draw = Draw::new(&cube, arguments.facts)?;
        let facts = Arc::new(draw.facts()?);
        let drawn = begin.elapsed();
        let begin = Instant::now();
        let source = FactsSource::new(facts.clone(), &name, "drawn");
        let contraction = DeviceContraction::new(Arc::new(Residency::new(device.clone())), source);
        let bytes = contraction.bytes(0, &Arc::default()).map_err(|error| error.to_string())?;
        let load_ms = begin.elapsed().as_secs_f64() * 1e3;
        let each = (bytes.keys + bytes.values) as f64 / facts.len() as f64;
        say(&format!(
            "{name}: {} facts drawn in {:.1} s, on the device in {load_ms:.0} ms ({:.0} predicted), \
             {each:.3} bytes each",
            facts.len(),
            drawn.as_secs_f64(),
            load_ms_predicted(&facts, &[0]),
        ));
        let bytes = (bytes.keys, bytes.values);
        Ok(CubeBench { device, arguments, cube, thesis, draw, facts, contraction, bytes, load_ms })
    }

    /// The area of a query.
    pub(super) fn area(&self, name: &str) -> Result<Area, String> {
        self.cube.area(&self.cube.definition.queries[name])
    }

    /// Measures a query; gives its cells, too.
    fn measure(&mut self, name: &str, say: &mut dyn FnMut(&str)) -> Result<(Value, DeviceCells), String> {
        let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let query = self.cube.definition.queries[name].clone();
        let counts = Counts::of(&self.cube, &self.draw, &query)?;
        let area = self.cube.area(&query)?;
        let never = Arc::default();
        let cells = self.contraction.sums(&area, 0, &never).map_err(|error| failed(&error))?;
        self.verify(name, &area, &cells)?;
        if cells.ranks.len() as u64 != counts.filled {
            return Err(format!("{name}: {} filled targets, {} were counted", cells.ranks.len(), counts.filled));
        }
        let warm_ms = self.warm_ms(&query, &cells).map_err(|error| failed(&error))?;
        let device_ms = self.device_ms(&area, Some(&cells)).map_err(|error| failed(&error))?;
        let result = self.result(name, &query, &counts, device_ms, warm_ms)?;
        say(&line(&result));
        Ok((result, cells))
    }

    /// Measures a query with other algorithms, which have to give its cells.
    fn others(
        &self,
        name: &str,
        algorithms: &[DeviceAlgorithm],
        expected: &DeviceCells,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<Value>, String> {
        let area = self.area(name)?;
        let (facts, runs) = (self.contraction.facts(), self.arguments.runs);
        let cases =
            AlgorithmCases { query: name, facts, area: &area, expected, runs, first_run_ms_max: FIRST_RUN_MS_MAX };
        Ok(algorithms.iter().map(|algorithm| cases.measure(*algorithm, say)).collect())
    }

    /// Times of other tunings.
    fn sweep(&mut self, name: &str, say: &mut dyn FnMut(&str)) -> Result<Vec<Value>, String> {
        let area = self.area(name)?;
        let mut results = Vec::new();
        for threads in &self.arguments.threads {
            for (ticket_miniblocks, prefetches) in
                self.arguments.tickets.iter().flat_map(|at| [(*at, true), (*at, false)])
            {
                self.contraction.set_tuning(ScanTuning { threads: *threads, ticket_miniblocks, prefetches });
                let device_ms = self.device_ms(&area, None).map_err(|error| format!("{name}: {error}"))?;
                let early = if prefetches { "/prefetch" } else { "" };
                let case = format!("tune/{name}/{threads}x{ticket_miniblocks}{early}");
                say(&format!("{case} device {device_ms:.4} ms"));
                results.push(json!({"case": case, "device_ms": device_ms}));
            }
        }
        self.contraction.set_tuning(ScanTuning::default());
        Ok(results)
    }

    /// Milliseconds of recorded runs, whose cells are compared with those of `sums`.
    fn device_ms(&self, area: &Area, expected: Option<&DeviceCells>) -> Result<f64, String> {
        let recorded = self.contraction.record(area, 0, &Arc::default()).map_err(|error| error.to_string())?;
        let mut recorded = recorded.ok_or("no target is filled")?;
        let times = (0..=self.arguments.runs).map(|_| recorded.run());
        let times = times.collect::<Result<Vec<f64>, _>>().map_err(|error| error.to_string())?;
        let cells = recorded.cells().map_err(|error| error.to_string())?;
        match expected.is_none_or(|expected| *expected == cells) {
            true => Ok(median(times)),
            false => Err("recorded runs give other cells".to_string()),
        }
    }

    /// Milliseconds from the query's elements to its cells on the host, the median of the runs behind a first one.
    fn warm_ms(&self, query: &Query, expected: &DeviceCells) -> Result<f64, String> {
        let mut times = Vec::new();
        for _ in 0..=self.arguments.runs {
            let begin = Instant::now();
            let area = self.cube.area(query)?;
            let cells = self.contraction.sums(&area, 0, &Arc::default()).map_err(|error| error.to_string())?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            if &cells != expected {
                return Err("two runs give different cells".to_string());
            }
        }
        Ok(median(times))
    }

    /// Compares all cells with contraction on the CPU, and those of sampled targets with algorithm (1).
    fn verify(&self, name: &str, area: &Area, cells: &DeviceCells) -> Result<(), String> {
        let on_cpu = |area: &Area, algorithm| {
            let expected = aggregate(&self.facts, area, &[0], &Request::by(algorithm), &Progress::new());
            expected.map_err(|error| format!("{name}: {error}"))
        };
        let all = on_cpu(area, Algorithm::Contract)?;
        if all.ranks() != cells.ranks || sums(&all) != cells.sums {
            return Err(format!("{name}: cells differ from those of contraction on the CPU"));
        }
        let (sampled, chosen) = sampled(area, name)?;
        let few = on_cpu(&sampled, Algorithm::Source)?;
        let shape: Vec<u64> = area.shape().iter().map(|size| u64::from(*size)).collect();
        for (cell, sum) in sums(&few).iter().enumerate() {
            let target = few.target(cell);
            let rank = target
                .iter()
                .zip(&chosen)
                .zip(&shape)
                .fold(0, |rank, ((target, chosen), size)| rank * size + u64::from(chosen[*target as usize]));
            let found = cells.ranks.binary_search(&rank).map(|place| cells.sums[place]);
            if found != Ok(*sum) {
                return Err(format!("{name}: target {rank} is {found:?}, algorithm (1) gives {sum}"));
            }
        }
        Ok(())
    }

    fn result(
        &self,
        name: &str,
        query: &Query,
        counts: &Counts,
        device_ms: f64,
        warm_ms: f64,
    ) -> Result<Value, String> {
        let (keys, values) = self.bytes;
        // A query of all totals reads no keys.
        let bytes = if query.targets.is_empty() { values } else { values + keys };
        let mut result = json!({
            "case": name,
            "device_ms": device_ms,
            "warm_ms": warm_ms,
            "bytes": bytes,
            "bytes_per_fact": (keys + values) as f64 / self.facts.len() as f64,
            "load_ms": self.load_ms,
            "load_ms_predicted": load_ms_predicted(&self.facts, &[0]),
            "relevant_cells": counts.relevant,
            "targets": counts.targets,
            "filled_targets": counts.filled,
            "additions": counts.additions,
            "verified": true,
        });
        if self.arguments.facts.is_none() {
            result["thesis_ms"] = self.thesis.query(name)?.best_ms().into();
            result["limit_ms"] = query.limit_ms.into();
        }
        if self.device.info().peak_bandwidth > 0.0 {
            let floor_ms = bytes as f64 / DeviceRates::of(self.device.info()).read.value * 1e3;
            result["floor_ms"] = floor_ms.into();
            result["share_of_peak"] = (floor_ms / device_ms).into();
        }
        Ok(result)
    }
}

/// The median of all runs behind the first one.
pub(super) fn median(mut times: Vec<f64>) -> f64 {
    times.remove(0);
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The sums of cells of decimals.
pub(super) fn sums(cells: &Cells) -> &[i64] {
    match &cells.columns()[0].values {
        Values::Decimals(sums) => sums,
        Values::Doubles(_) => &[],
    }
}

/// The area of some targets of each dimension, and their numbers in the whole area.
fn sampled(area: &Area, name: &str) -> Result<(Area, Vec<Vec<u32>>), String> {
    let mut seed = name.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let (mut maps, mut chosen) = (Vec::new(), Vec::new());
    for map in area.maps() {
        let lists = map.lists();
        let mut numbers: Vec<u32> = (0..SAMPLED_TARGETS.min(lists.len()))
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((seed >> 33) % lists.len() as u64) as u32
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let targets: Vec<Vec<(u32, f64)>> = numbers.iter().map(|number| lists[*number as usize].clone()).collect();
        maps.push(TargetMap::from_targets(map.bases(), &targets).map_err(|error| error.to_string())?);
        chosen.push(numbers);
    }
    Ok((Area::new(maps), chosen))
}

/// A result for people.
fn line(result: &Value) -> String {
    let ms = |key: &str| result[key].as_f64().map_or_else(|| "-".to_string(), |ms| format!("{ms:.4}"));
    format!(
        "{:<3} device {} ms, warm {} ms, floor {} ms, limit {} ms, thesis {} ms; {} of {} targets filled, verified",
        result["case"].as_str().unwrap_or_default(),
        ms("device_ms"),
        ms("warm_ms"),
        ms("floor_ms"),
        ms("limit_ms"),
        ms("thesis_ms"),
        result["filled_targets"],
        result["targets"],
    )
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;

    fn arguments(cases: &[&str]) -> CubeArgs {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        let (threads, algorithms) = (Vec::new(), Vec::new());
        let (tickets, hash_functions) = (vec![16], vec![16, 1, 256]);
        let (facts, runs, tables, rules, seconds, json) = (Some(40_000), 1, false, false, None, None);
        CubeArgs { cases, facts, runs, threads, tickets, algorithms, tables, hash_functions, seconds, rules, json }
    }

    #[test]
    fn small_cubes_are_measured_and_verified_on_the_emulated_device() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 30).unwrap();
        let mut lines = Vec::new();
        let report = run(&device, &arguments(&[]), &mut |line| lines.push(line.to_string())).unwrap();
        let results = report["results"].as_array().unwrap();
        let cases: Vec<&str> = results.iter().filter_map(|result| result["case"].as_str()).collect();
        assert_eq!(cases, ["M1", "M2", "M3", "B1", "B2", "B3"]);
        for result in results {
            assert!(result["verified"] == true && result["device_ms"].as_f64().unwrap() > 0.0, "{result}");
            // The emulated device has no bandwidth to measure by, and small cubes are not the thesis's.
            assert!(result.get("floor_ms").is_none() && result.get("limit_ms").is_none(), "{result}");
        }
        assert_eq!(lines.len(), 8, "{lines:?}");
    }

    #[test]
    fn other_algorithms_give_the_cells_of_the_query_or_are_left_out() {
        let names = [
            "gpu-target",
            "gpu-source/none/thread/h1",
            "gpu-source/match/balanced/shared/h8",
            "gpu-source/strided/host-child-blocks/h8",
            "gpu-source/none/children/h8",
        ];
        let device = Device::emulated(EmulatorOptions::default(), 1 << 30).unwrap();
        let algorithms = names.iter().map(|name| name.to_string()).collect();
        let arguments = CubeArgs { facts: Some(4_000), algorithms, ..arguments(&["M3", "B1"]) };
        let mut lines = Vec::new();
        let report = run(&device, &arguments, &mut |line| lines.push(line.to_string())).unwrap();
        let results = report["results"].as_array().unwrap();
        let cases: Vec<&str> = results.iter().filter_map(|result| result["case"].as_str()).collect();
        let of = |query: &str| names.map(|name| format!("{query}/{name}"));
        let expected = [vec!["M3".to_string()], of("M3").to_vec(), vec!["B1".to_string()], of("B1").to_vec()].concat();
        assert_eq!(cases, expected);
        for result in results {
            // Kernels of the emulated device launch none.
            let is_left_out = result["expansion"] == "children";
            let reason = result["left_out"].as_str().unwrap_or_default();
            assert_eq!(reason.contains("launch no kernels"), is_left_out, "{result}");
            let is_timed = result["verified"] == true && result["device_ms"].as_f64().unwrap() > 0.0;
            assert_eq!(is_timed, !is_left_out, "{result}");
        }
        let variant = &results[3];
        assert_eq!(variant["algorithm"], names[2]);
        assert_eq!(
            [&variant["preaggregation"], &variant["expansion"], &variant["map"]],
            ["match", "balanced", "shared"]
        );
        assert_eq!(variant["hash_functions"], 8);
        assert_eq!(lines.len(), 2 + results.len(), "{lines:?}");
        assert!(wrong(&report).is_empty());
    }

    #[test]
    fn tables_have_counts_sweeps_and_one_core() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 30).unwrap();
        let arguments = CubeArgs { facts: Some(4_000), tables: true, ..arguments(&["M2"]) };
        let report = run(&device, &arguments, &mut |_| ()).unwrap();
        let results = report["results"].as_array().unwrap();
        let named = |name: &str| results.iter().find(|result| result["case"] == name);
        let additions = &named("M2").unwrap()["additions"];
        for expansion in ["thread", "balanced", "host-children"] {
            let count = |how: &str| &named(&format!("M2/additions/{how}/{expansion}")).unwrap()["atomic_additions"];
            assert_eq!(count("none"), additions, "{expansion}");
            assert_eq!(count("first-shared"), count("shuffle"), "{expansion}");
            assert!(count("match").as_u64() <= count("shuffle").as_u64(), "{expansion}");
        }
        assert!(named("M2/children").unwrap()["child_blocks"].as_u64() > Some(0));
        assert!(named("M2/source").unwrap()["cpu_ms"].as_f64() > Some(0.0));
        // Sweeps begin above 64, and one time of each has that from query to cells.
        let of = |variant: &str| {
            let prefix = format!("M2/gpu-source/{variant}/h");
            let own = |result: &&Value| result["case"].as_str().unwrap().starts_with(&prefix);
            results.iter().filter(own).collect::<Vec<&Value>>()
        };
        for variant in ["none/thread", "shuffle/thread", "strided/balanced", "none/host-children"] {
            let runs = of(variant);
            assert!(runs[0]["hash_functions"] == 256 && runs.iter().all(|run| run["verified"] == true), "{variant}");
            assert_eq!(runs.iter().filter(|run| run.get("warm_ms").is_some()).count(), 1, "{variant}");
            assert!(runs.iter().all(|run| run["hash_functions"] == run["hash_functions_used"]), "{variant}");
        }
        assert!(of("none/children")[0]["left_out"].as_str().unwrap().contains("launch no kernels"));
        assert!(wrong(&report).is_empty());
    }

    #[test]
    fn other_rules_types_and_weights_are_measured_and_verified() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 30).unwrap();
        let arguments = CubeArgs { facts: Some(4_000), rules: true, ..arguments(&["M1", "M2"]) };
        let report = run(&device, &arguments, &mut |_| ()).unwrap();
        let results = report["results"].as_array().unwrap();
        let of_rules: Vec<&Value> = results.iter().filter(|result| result.get("arithmetic").is_some()).collect();
        let cases: Vec<&str> = of_rules.iter().filter_map(|result| result["case"].as_str()).collect();
        let rules = ["count", "avg", "min", "max", "double", "fractional", "sum128"];
        let expected: Vec<String> =
            rules.iter().flat_map(|rule| ["M1", "M2"].map(|query| format!("{query}/{rule}"))).collect();
        assert_eq!(cases, expected);
        for result in of_rules {
            assert!(result["verified"] == true && result["device_ms"].as_f64().unwrap() > 0.0, "{result}");
        }
    }

    #[test]
    fn other_cells_are_not_verified() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 30).unwrap();
        let arguments = CubeArgs { facts: Some(4_000), ..arguments(&[]) };
        let machines = Definition::all().unwrap().into_iter().find(|cube| cube.queries.contains_key("M1")).unwrap();
        let mut bench = CubeBench::new(&device, machines, &arguments, &mut |_| ()).unwrap();
        let (_, mut cells) = bench.measure("M1", &mut |_| ()).unwrap();
        cells.sums[0] += 1;
        let results = bench.others("M1", &[DeviceAlgorithm::Target], &cells, &mut |_| ()).unwrap();
        assert!(results[0].get("device_ms").is_none(), "{}", results[0]);
        assert_eq!(wrong(&json!({"results": results})), ["M1/gpu-target"]);
    }

    #[test]
    fn unknown_algorithms_are_refused_and_all_leaves_out_contraction() {
        let names = |name: &str| algorithms::named(&[name.to_string()]);
        assert_eq!(names("all").unwrap().len(), 1 + 29);
        assert!(names("gpu-sauce").unwrap_err().starts_with("--algorithms gpu-sauce: "));
    }

    #[test]
    fn unknown_queries_are_refused() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let refused = run(&device, &arguments(&["B4"]), &mut |_| ()).unwrap_err();
        assert_eq!(refused, "--cases B4: there are B1, B2, B3, M1, M2 and M3");
    }
}
