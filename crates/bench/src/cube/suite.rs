//! The suite `cube`: the queries of the benchmark cubes.

use std::time::Instant;

use serde_json::json;
use warpcube_cube::device::DeviceAlgorithm;
use warpcube_gpu::Device;

use super::Definition;
use super::algorithms;
use super::args::CubeArgs;
use super::measured::CubeBench;
use super::rules::{RuleCase, RuleCases};
use super::tables::TableCases;
use crate::suite::{About, Failure, Filter, Run, Suite};

/// The suite: a group is a cube, with its queries.
///
/// Every cell of a result is compared with contraction on the CPU, and those of sampled targets with algorithm (1), the
/// single-threaded source-based one. Cases of `--algorithms` end nothing: those that are left out say why, and those
/// with other cells are not verified.
pub struct Cubes {
    device: Device,
    arguments: CubeArgs,
    algorithms: Vec<DeviceAlgorithm>,
    /// Each cube with its queries that were asked for.
    cubes: Vec<(Definition, Vec<String>)>,
    /// The cube that is measured.
    bench: Option<CubeBench>,
    begin: Instant,
}

impl Cubes {
    /// The queries that these arguments ask for.
    ///
    /// # Errors
    /// Unknown algorithms, definitions of another form.
    pub fn new(device: Device, arguments: CubeArgs) -> Result<Cubes, Failure> {
        let algorithms = algorithms::named(&arguments.algorithms).map_err(Failure::Usage)?;
        let wants = |name: &&String| Filter(&arguments.cases).wants(name);
        let names = |cube: &Definition| cube.queries.keys().filter(wants).cloned().collect();
        let cubes = Definition::all()?.into_iter().map(|cube| (cube.clone(), names(&cube))).collect();
        Ok(Cubes { device, arguments, algorithms, cubes, bench: None, begin: Instant::now() })
    }
}

impl Suite for Cubes {
    fn about(&self) -> About<'_> {
        let CubeArgs { facts, runs, algorithms, tables, hash_functions, seconds, rules, .. } = &self.arguments;
        let mut params = json!({"facts": facts, "runs": runs});
        if !algorithms.is_empty() {
            params["algorithms"] = json!(algorithms);
        }
        if *tables {
            params["tables"] = true.into();
            params["hash_functions"] = json!(hash_functions);
            params["seconds"] = json!(seconds);
        }
        if *rules {
            params["rules"] = true.into();
        }
        About { name: "cube", device: Some(&self.device), params }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        let all: Vec<String> = self.cubes.iter().flat_map(|(cube, _)| cube.queries.keys().cloned()).collect();
        Filter(&self.arguments.cases).check(&all, "")?;
        Ok(self.cubes.iter().map(|(_, names)| names.clone()).collect())
    }

    fn setup(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        // The facts of the cube before leave the device first.
        self.bench = None;
        let definition = self.cubes[group].0.clone();
        self.bench = Some(CubeBench::new(&self.device, definition, &self.arguments, run)?);
        Ok(())
    }

    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let Some(bench) = &mut self.bench else { return Ok(()) };
        let names = &self.cubes[group].1;
        for name in names {
            run.go_on()?;
            let (result, cells) = bench.measure(name)?;
            let additions = result["additions"].as_u64().unwrap_or_default();
            run.add(result);
            bench.sweep(name, run)?;
            bench.others(name, &self.algorithms, &cells, run)?;
            if self.arguments.tables {
                let cases = TableCases { bench, query: name, expected: &cells, additions, begin: self.begin };
                cases.measure(run)?;
            }
        }
        if self.arguments.rules {
            let cases = RuleCases { device: &self.device, draw: &bench.draw, runs: self.arguments.runs };
            for rule in RuleCase::ALL {
                let areas = names.iter().map(|name| Ok((name.as_str(), bench.area(name)?)));
                cases.measure(rule, &areas.collect::<Result<Vec<_>, String>>()?, run)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;
    use crate::report::{Case, Report};
    use crate::suite::RunArgs;
    use crate::suite::tests::Notes;

    fn emulated() -> Device {
        Device::emulated(EmulatorOptions::default(), 1 << 30).unwrap()
    }

    /// The results of cubes, and the lines behind title and head.
    fn measured(arguments: CubeArgs) -> (Report, Vec<String>) {
        let (report, lines) = Notes::run(&mut Cubes::new(emulated(), arguments).unwrap(), usize::MAX);
        (report.unwrap(), lines[2..].to_vec())
    }

    fn names(results: &[Case]) -> Vec<&str> {
        results.iter().map(|result| result.name.as_str()).collect()
    }

    fn arguments(cases: &[&str]) -> CubeArgs {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        let (threads, algorithms) = (Vec::new(), Vec::new());
        let (tickets, hash_functions) = (vec![16], vec![16, 1, 256]);
        let (facts, runs, tables, rules, seconds, run) = (Some(40_000), 1, false, false, None, RunArgs::default());
        CubeArgs { cases, facts, runs, threads, tickets, algorithms, tables, hash_functions, seconds, rules, run }
    }

    #[test]
    fn small_cubes_are_measured_and_verified_on_the_emulated_device() {
        let (report, lines) = measured(arguments(&[]));
        let results = &report.results;
        assert_eq!(names(results), ["M1", "M2", "M3", "B1", "B2", "B3"]);
        for result in results {
            assert!(result.verified == Some(true) && result.figure("device_ms") > Some(0.0), "{result:?}");
            // The emulated device has no bandwidth to measure by, and small cubes are not the thesis's.
            assert!(result["floor_ms"].is_null() && result["limit_ms"].is_null(), "{result:?}");
        }
        assert_eq!(lines.len(), 8, "{lines:?}");
    }

    #[test]
    fn other_algorithms_give_the_cells_of_the_query_or_are_left_out() {
        let algorithms_of = [
            "gpu-target",
            "gpu-source/none/thread/h1",
            "gpu-source/match/balanced/shared/h8",
            "gpu-source/strided/host-child-blocks/h8",
            "gpu-source/none/children/h8",
        ];
        let algorithms = algorithms_of.iter().map(|name| name.to_string()).collect();
        let arguments = CubeArgs { facts: Some(4_000), algorithms, ..arguments(&["M3", "B1"]) };
        let (report, lines) = measured(arguments);
        let results = &report.results;
        let of = |query: &str| algorithms_of.map(|name| format!("{query}/{name}"));
        let expected = [vec!["M3".to_string()], of("M3").to_vec(), vec!["B1".to_string()], of("B1").to_vec()].concat();
        assert_eq!(names(results), expected);
        for result in results {
            // Kernels of the emulated device launch none.
            let is_left_out = result["expansion"] == "children";
            let reason = result["left_out"].as_str().unwrap_or_default();
            assert_eq!(reason.contains("launch no kernels"), is_left_out, "{result:?}");
            let is_timed = result.verified == Some(true) && result.figure("device_ms") > Some(0.0);
            assert_eq!(is_timed, !is_left_out, "{result:?}");
        }
        let variant = &results[3];
        assert_eq!(variant["algorithm"], algorithms_of[2]);
        assert_eq!(
            [&variant["preaggregation"], &variant["expansion"], &variant["map"]],
            ["match", "balanced", "shared"]
        );
        assert_eq!(variant["hash_functions"], 8);
        assert_eq!(lines.len(), 2 + results.len(), "{lines:?}");
        assert!(report.wrong().is_empty());
    }

    #[test]
    fn tables_have_counts_sweeps_and_one_core() {
        let (report, _) = measured(CubeArgs { facts: Some(4_000), tables: true, ..arguments(&["M2"]) });
        let results = &report.results;
        let named = |name: &str| results.iter().find(|result| result.name == name);
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
            results.iter().filter(|result| result.name.starts_with(&prefix)).collect::<Vec<&Case>>()
        };
        for variant in ["none/thread", "shuffle/thread", "strided/balanced", "none/host-children"] {
            let runs = of(variant);
            assert!(runs[0]["hash_functions"] == 256 && runs.iter().all(|run| run.verified == Some(true)), "{variant}");
            assert_eq!(runs.iter().filter(|run| run["warm_ms"].is_number()).count(), 1, "{variant}");
            assert!(runs.iter().all(|run| run["hash_functions"] == run["hash_functions_used"]), "{variant}");
        }
        assert!(of("none/children")[0]["left_out"].as_str().unwrap().contains("launch no kernels"));
        assert!(report.wrong().is_empty());
    }

    #[test]
    fn other_rules_types_and_weights_are_measured_and_verified() {
        let (report, _) = measured(CubeArgs { facts: Some(4_000), rules: true, ..arguments(&["M1", "M2"]) });
        let of_rules = report.results.iter().filter(|result| result["arithmetic"].is_string());
        let of_rules: Vec<Case> = of_rules.cloned().collect();
        let rules = ["count", "avg", "min", "max", "double", "fractional", "sum128"];
        let expected: Vec<String> =
            rules.iter().flat_map(|rule| ["M1", "M2"].map(|query| format!("{query}/{rule}"))).collect();
        assert_eq!(names(&of_rules), expected);
        for result in of_rules {
            assert!(result.verified == Some(true) && result.figure("device_ms") > Some(0.0), "{result:?}");
        }
    }

    #[test]
    fn other_cells_are_not_verified() {
        let arguments = CubeArgs { facts: Some(4_000), ..arguments(&[]) };
        let mut run = Run::unheard("cube").unwrap();
        let machines = Definition::all().unwrap().into_iter().find(|cube| cube.queries.contains_key("M1")).unwrap();
        let mut bench = CubeBench::new(&emulated(), machines, &arguments, &mut run).unwrap();
        let (_, mut cells) = bench.measure("M1").unwrap();
        cells.sums[0] += 1;
        bench.others("M1", &[DeviceAlgorithm::Target], &cells, &mut run).unwrap();
        assert!(run.report.results[0]["device_ms"].is_null(), "{:?}", run.report);
        assert_eq!(run.report.wrong(), ["M1/gpu-target"]);
    }

    #[test]
    fn unknown_algorithms_are_refused_and_all_leaves_out_contraction() {
        let names = |name: &str| algorithms::named(&[name.to_string()]);
        assert_eq!(names("all").unwrap().len(), 1 + 29);
        assert!(names("gpu-sauce").unwrap_err().starts_with("--algorithms gpu-sauce: "));
    }

    #[test]
    fn unknown_queries_are_refused() {
        let cases = |names: &[&str]| Cubes::new(emulated(), arguments(names)).unwrap().cases();
        let refused = cases(&["B4"]).unwrap_err().to_string();
        assert_eq!(refused, "--cases B4: no case has this name; --list shows all");
        assert_eq!(cases(&["M3", "B1"]).unwrap(), [["M3"], ["B1"]]);
    }
}
