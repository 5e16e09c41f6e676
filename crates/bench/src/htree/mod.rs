//! The suite `htree`: H-trees of tuples on one core and on a device.
//!
//! Data after section 6.2 of Wang and Yu, *Parallel H-Tree Based Data Cubing on Graphics Processors*: `D15C160T600K`
//! has 600,000 tuples of 15 dimensions with 160 values each, drawn alike and apart. Cases: `build/<name>`,
//! `update/<name>` (as many tuples again into such a tree; each with the numbers of tuples, dimensions and values that
//! the paper's figures vary), `on-path/10k` and `online/10k` (queries on the popular path and off it), `build/100M`
//! (100 million tuples of 10 dimensions), which runs only if it is named.
//!
//! Times of builds and updates are the host's, to the end of all work: `device_ms` over tuples in device memory,
//! `warm_ms` with their copy from page-locked memory. Of queries `device_ms` is the kernels' time by events, `warm_ms`
//! the host's with queries and cells copied. Each tree has the arrays of one core's, each answer is one core's.

mod case;
mod measure;

use clap::{Args, ValueEnum};
use serde_json::json;
use warpcube_gpu::Device;
use warpcube_stream::Measure;

use crate::report;
use crate::suite::{About, Failure, Filter, Run, RunArgs, Suite};
use case::{Group, Job};
use measure::{Bench, Measured};

/// What to measure of H-trees.
#[derive(Debug, Clone, Args)]
pub struct HTreeArgs {
    /// Only these cases, or all below a name, by comma: build/D15C160T600K,update,on-path. build/100M runs only if it
    /// is named
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// Measures of the tree, by comma; the paper has one
    #[arg(long, value_delimiter = ',', value_name = "MEASURES", default_value = "sum")]
    pub measures: Vec<MeasureName>,
    /// Divide all numbers of tuples and queries by this
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub divide: u32,
    /// Runs of a case on the device behind a first one; the median counts
    #[arg(long, default_value_t = 11, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}

/// A measure of the one value that tuples have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeasureName {
    /// Its sum
    Sum,
    /// The number of tuples
    Count,
    /// The least
    Min,
    /// The largest
    Max,
}

impl MeasureName {
    fn measure(self) -> Measure {
        match self {
            MeasureName::Sum => Measure::Sum(0),
            MeasureName::Count => Measure::Count,
            MeasureName::Min => Measure::Min(0),
            MeasureName::Max => Measure::Max(0),
        }
    }
}

/// The suite: a group is a set of tuples.
pub struct HTrees {
    device: Device,
    arguments: HTreeArgs,
    groups: Vec<Group>,
}

impl HTrees {
    /// The cases that these arguments ask for.
    pub fn new(device: Device, arguments: HTreeArgs) -> HTrees {
        HTrees { device, arguments, groups: Group::all() }
    }

    /// The jobs of a group that were asked for.
    fn jobs(&self, group: usize) -> impl Iterator<Item = Job> {
        let filter = Filter(&self.arguments.cases);
        let group = &self.groups[group];
        group.jobs.iter().copied().filter(move |job| {
            let case = group.case(*job);
            filter.names(&case) || filter.0.is_empty() && !group.is_named_only
        })
    }
}

impl Suite for HTrees {
    fn about(&self) -> About<'_> {
        let HTreeArgs { measures, divide, runs, .. } = &self.arguments;
        let measures: Vec<String> = measures.iter().map(|measure| format!("{measure:?}").to_lowercase()).collect();
        About {
            name: "htree",
            device: Some(&self.device),
            params: json!({"measures": measures.join(","), "divide": divide, "runs": runs}),
        }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        let cases = |group: &Group| group.jobs.iter().map(|job| group.case(*job)).collect::<Vec<String>>();
        let all: Vec<String> = self.groups.iter().flat_map(cases).collect();
        Filter(&self.arguments.cases).check(&all, "; build/100M is not listed unless it is named")?;
        let of_group = |group: usize| self.jobs(group).map(|job| self.groups[group].case(job)).collect();
        Ok((0..self.groups.len()).map(of_group).collect())
    }

    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let HTreeArgs { measures, divide, runs, .. } = &self.arguments;
        let measures: Vec<Measure> = measures.iter().map(|measure| measure.measure()).collect();
        let of_group = &self.groups[group];
        let mut bench = Bench::new(&self.device, of_group.shape.divided(*divide), measures, *runs)?;
        for job in self.jobs(group) {
            let case = of_group.case(job);
            run.go_on()?;
            let found = bench.measure(run, job).map_err(|failure| failure.at(&case))?;
            run.add(result(&case, of_group.figures_of(job, *divide), &found));
        }
        Ok(())
    }
}

/// A verified result, beside the paper's figure and the limit of the case at its full size.
fn result(case: &str, [paper_ms, limit_ms]: [Option<f64>; 2], found: &Measured) -> report::Case {
    let Measured { cpu_ms, device, warm, figures } = found;
    let mut result = report::Case::new(case, figures.clone());
    result.put("cpu_ms", *cpu_ms);
    result.put("device_ms", device.ms);
    result.put("spread", device.spread);
    result.put("warm_ms", warm.ms);
    result.put("speedup", cpu_ms / warm.ms);
    for (figure, value) in [("paper_ms", paper_ms), ("limit_ms", limit_ms)] {
        if let Some(value) = value {
            result.put(figure, value);
        }
    }
    result.verified(true)
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;
    use crate::suite::tests::Notes;

    fn suite(cases: &[&str], divide: u32) -> HTrees {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        let measures = vec![MeasureName::Sum, MeasureName::Count, MeasureName::Min, MeasureName::Max];
        let arguments = HTreeArgs { cases, measures, divide, runs: 1, run: RunArgs::default() };
        HTrees::new(Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap(), arguments)
    }

    #[test]
    fn a_plan_lists_every_case_once() {
        let all = suite(&[], 1).cases().unwrap().concat();
        for name in ["build/D15C160T600K", "update/D15C40T300K", "on-path/10k", "online/10k"] {
            assert_eq!(all.iter().filter(|case| *case == name).count(), 1, "{name}");
        }
        assert!(!all.contains(&"build/100M".to_string()));
        assert_eq!(suite(&["build/100M", "online"], 1).cases().unwrap().concat(), ["online/10k", "build/100M"]);
        let mut once = all.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), all.len());
        assert!(suite(&["build/D1"], 1).cases().unwrap_err().to_string().starts_with("--cases build/D1: "));
    }

    #[test]
    fn a_small_run_is_verified() {
        let names = ["build/D15C160T600K", "update/D15C40T300K", "on-path", "online"];
        let (report, _) = Notes::run(&mut suite(&names, 500), usize::MAX);
        let results = report.unwrap().results;
        assert_eq!(results.len(), 4);
        for result in &results {
            let figure = |key: &str| result[key].as_f64().unwrap();
            assert!(result.verified == Some(true) && figure("device_ms") > 0.0 && figure("warm_ms") > 0.0);
            assert!(result["paper_ms"].is_null() && result["limit_ms"].is_null(), "of the full size alone");
        }
        assert_eq!(results[0]["tuples"], 1200);
        assert!(results[3]["queries"] == 20 && results[3]["links"].as_u64() > Some(0));
    }
}
