//! The suite `cube-operator`: the CUBE of rows on one core and on a device, by algorithm.
//!
//! Rows have k attributes of as many values each, drawn alike and apart, and a value of three digits; all of SUM,
//! COUNT, MIN, MAX and AVG are computed. Cases: `auto`, `paths`, `smallest-parent`, and `iceberg`, the groups of at
//! least `--having` rows; `dense` and `hash` on one core alone.
//!
//! `cpu_ms` is one run of one core without its sink; `device_ms` is the host's time over rows in device memory to the
//! end of all work, with no group read; `warm_ms` has the copy of the rows from the host, and all groups back to it.
//! The cuboids of each run are compared by a digest of their groups with those of `auto` on one core, which are
//! computed once in front of all cases; those of `auto` itself with the device's.

mod digest;
mod measure;

use clap::Args;
use serde_json::json;
use warpcube_arrays::cube_operator::Algorithm;
use warpcube_gpu::Device;

use crate::suite::{About, Failure, Filter, Run, RunArgs, Suite};
use measure::Bench;

/// What to measure of the CUBE operator.
#[derive(Debug, Clone, Args)]
pub struct CubeOperatorArgs {
    /// Only these cases, by comma: auto,paths,iceberg
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// Rows
    #[arg(long, default_value_t = 10_000_000, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    pub rows: u32,
    /// Attributes of a row
    #[arg(long, default_value_t = 10, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub attributes: u32,
    /// Values of each attribute
    #[arg(long, default_value_t = 8, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub values: u32,
    /// Rows that a group of the iceberg has at least
    #[arg(long, default_value_t = 100, value_name = "NUMBER")]
    pub having: u64,
    /// Runs of a case on the device behind a first one; the median counts
    #[arg(long, default_value_t = 3, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}

/// A case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Cube(Algorithm),
    Iceberg,
}

impl Job {
    const ALL: [Job; 6] = [
        Job::Cube(Algorithm::Auto),
        Job::Cube(Algorithm::Paths),
        Job::Cube(Algorithm::SmallestParent),
        Job::Cube(Algorithm::Dense),
        Job::Cube(Algorithm::Hash),
        Job::Iceberg,
    ];

    fn name(self) -> String {
        match self {
            Job::Cube(algorithm) => algorithm.to_string(),
            Job::Iceberg => "iceberg".to_string(),
        }
    }

    /// Whether the device runs it.
    fn is_on_device(self) -> bool {
        !matches!(self, Job::Cube(Algorithm::Dense | Algorithm::Hash))
    }
}

/// The suite: one group.
pub struct CubeOperator {
    device: Device,
    arguments: CubeOperatorArgs,
}

impl CubeOperator {
    /// The cases that these arguments ask for.
    pub fn new(device: Device, arguments: CubeOperatorArgs) -> CubeOperator {
        CubeOperator { device, arguments }
    }

    fn jobs(&self) -> impl Iterator<Item = Job> {
        let filter = Filter(&self.arguments.cases);
        Job::ALL.into_iter().filter(move |job| filter.wants(&job.name()))
    }
}

impl Suite for CubeOperator {
    fn about(&self) -> About<'_> {
        let CubeOperatorArgs { rows, attributes, values, having, runs, .. } = self.arguments;
        About {
            name: "cube-operator",
            device: Some(&self.device),
            params: json!({"rows": rows, "attributes": attributes, "values": values, "having": having, "runs": runs}),
        }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        Filter(&self.arguments.cases).check(&Job::ALL.map(Job::name), "")?;
        Ok(vec![self.jobs().map(Job::name).collect()])
    }

    fn run(&mut self, run: &mut Run, _group: usize) -> Result<(), Failure> {
        run.tell("drawing rows, and their CUBE on one core to compare with");
        let bench = Bench::new(&self.device, &self.arguments)?;
        for job in self.jobs() {
            run.go_on()?;
            let result = bench.measure(run, job).map_err(|failure| failure.at(&job.name()))?;
            run.add(result);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;
    use crate::suite::tests::Notes;

    fn suite(cases: &[&str]) -> CubeOperator {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        let run = RunArgs::default();
        let arguments = CubeOperatorArgs { cases, rows: 3000, attributes: 5, values: 6, having: 20, runs: 1, run };
        CubeOperator::new(Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap(), arguments)
    }

    #[test]
    fn a_plan_lists_every_case_once() {
        let all = ["auto", "paths", "smallest-parent", "dense", "hash", "iceberg"];
        assert_eq!(suite(&[]).cases().unwrap(), [all]);
        assert_eq!(suite(&["hash", "auto"]).cases().unwrap(), [["auto", "hash"]]);
        assert!(suite(&["hashes"]).cases().unwrap_err().to_string().starts_with("--cases hashes: "));
    }

    #[test]
    fn a_small_run_is_verified() {
        let (report, _) = Notes::run(&mut suite(&[]), usize::MAX);
        let results = report.unwrap().results;
        assert_eq!(results.len(), 6);
        for (result, job) in results.iter().zip(Job::ALL) {
            assert!(result.verified == Some(true) && result["cpu_ms"].as_f64() > Some(0.0), "{job:?}");
            assert_eq!(result["device_ms"].is_null(), !job.is_on_device(), "{job:?}");
            assert!(result["groups"].as_u64() > Some(0), "{job:?}");
        }
        let figure = |case: usize, key: &str| results[case][key].as_u64().unwrap();
        assert_eq!((figure(1, "sorts"), figure(1, "cuboids")), (10, 32), "one sort a path of five dimensions");
        assert!(figure(5, "groups") < figure(0, "groups") && figure(5, "sorted") < 31 * 3000);
    }
}
