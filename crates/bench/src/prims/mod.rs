//! Primitives of `warpcube_gpu::prims`: each case makes its input on the device, verifies its output, and is timed by
//! device events beside the time its bytes need.
//!
//! A file measures one family of cases. It asks [`Bench::wants`] of each case before it makes data, since a listing
//! runs the same files and notes the names they ask for.

mod args;
mod bench;
mod earlier;
mod groupby;
mod hashed;
mod join;
mod keyed;
mod large;
mod ordered;
mod ordered_forms;
mod partition;
mod project;
mod random;
mod rivals;
mod scan;
mod select;
mod sent;
mod sort;
mod topk;
mod topk_cpu;

use std::cell::RefCell;

use serde_json::json;
use warpcube_gpu::{Device, GpuError};

use crate::report::Report;
use crate::suite::{About, Failure, Filter, Run, Suite};
pub use args::PrimitiveArgs;
use bench::Bench;
use earlier::Earlier;
use rivals::Rivals;

/// The name of the suite in reports.
const SUITE: &str = "primitives";

/// Measures the cases of a family that were asked for.
type Family = fn(&mut Bench<'_>) -> Result<(), Failure>;

/// The families of cases with their names, in the order they run.
const FAMILIES: [(&str, Family); 13] = [
    ("select", select::run),
    ("project", project::run),
    ("scan", scan::run),
    ("ordered", ordered::run),
    ("ordered/forms", ordered_forms::run),
    ("sort", sort::run),
    ("topk", topk::run),
    ("random", random::run),
    ("partition", partition::run),
    ("join", join::run),
    ("groupby", groupby::run),
    ("-sent", sent::run),
    ("large", large::run),
];

/// The suite: a group is a family.
pub struct Primitives {
    device: Device,
    arguments: PrimitiveArgs,
    rivals: Rivals,
    earlier: Earlier,
}

impl Primitives {
    /// The cases that these arguments ask for.
    pub fn new(device: Device, arguments: PrimitiveArgs) -> Primitives {
        Primitives { device, arguments, rivals: Rivals::default(), earlier: Earlier::default() }
    }

    fn bench<'a>(&'a self, run: &'a mut Run) -> Result<Bench<'a>, GpuError> {
        let bench = Bench::new(&self.device, &self.arguments, run)?;
        Ok(Bench { rivals: Some(&self.rivals), ..bench })
    }
}

impl Suite for Primitives {
    fn about(&self) -> About<'_> {
        About {
            name: SUITE,
            device: Some(&self.device),
            params: json!({"log_rows": self.arguments.log_rows, "runs": self.arguments.runs}),
        }
    }

    /// # Errors
    /// A name of `--cases` that no case has; a file of `--rivals`, or of `--json` with `--update`, that cannot be read
    /// or is of another device or size; a file of `--findings` that cannot be read, or whose folder is not there.
    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        let mut unheard = Run::unheard(SUITE)?;
        let mut bench = self.bench(&mut unheard)?;
        let mut groups = Vec::new();
        for (_, family) in FAMILIES {
            bench.listed = Some(RefCell::default());
            family(&mut bench)?;
            groups.push(bench.listed.take().unwrap_or_default().into_inner());
        }
        let arguments = &self.arguments;
        let except = " but those below ordered/forms, large and tune, and these too if --cases names them";
        Filter(&arguments.cases).check(&groups.concat(), except)?;
        if let Some(path) = &arguments.findings {
            ordered_forms::kept(path).map_err(Failure::Usage)?;
        }
        let device = &self.device.info().name;
        if let Some(path) = &arguments.rivals {
            self.rivals = Rivals::read(path, device, arguments.log_rows).map_err(Failure::Usage)?;
        }
        if let Some(path) = arguments.run.json.as_ref().filter(|_| arguments.update) {
            self.earlier = Earlier::read(path, SUITE, device, arguments.log_rows).map_err(Failure::Usage)?;
        }
        Ok(groups)
    }

    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let (name, family) = FAMILIES[group];
        let done = family(&mut self.bench(run)?);
        let behind = run.report.results.last().map_or_else(String::new, |case| format!(", behind {}", case.name));
        done.map_err(|failure| failure.at(&format!("{name}{behind}")))
    }

    fn written(&self, report: &Report) -> Report {
        let mut report = report.clone();
        report.results = self.earlier.with(report.results);
        report.rivals = self.earlier.rivals.clone();
        report.rivals.extend(self.rivals.versions().clone());
        report
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::bench::SWEEPS;
    use super::*;
    use crate::suite::is_named;
    use crate::suite::tests::Notes;

    fn emulated() -> Device {
        Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap()
    }

    fn suite(log_rows: u32, cases: &[&str]) -> Primitives {
        Primitives::new(emulated(), PrimitiveArgs::small(log_rows, cases))
    }

    fn cases(log_rows: u32, names: &[&str]) -> Vec<String> {
        suite(log_rows, names).cases().unwrap().concat()
    }

    /// The first words of lines behind title and head.
    fn measured(lines: &[String]) -> Vec<&str> {
        lines[2..].iter().filter_map(|line| line.split(' ').next()).collect()
    }

    #[test]
    fn a_plan_lists_every_case_once_and_no_sweep() {
        let all = cases(14, &[]);
        for case in ["select/30/stable", "project/sigmoid", "scan/u32", "ordered/sum/all", "segsort/16777216"] {
            assert!(all.contains(&case.to_string()), "{case} is not in {all:?}");
        }
        assert!(all.contains(&"topk/f32/uniform/32/radix_select".to_string()));
        assert!(!all.iter().any(|case| is_named(case, SWEEPS)));
        let mut once = all.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), all.len());
        let sweep = cases(14, &["tune/scan/u32"]);
        assert!(sweep.len() > 8 && sweep.iter().all(|case| case.starts_with("tune/scan/u32/")), "{sweep:?}");
        let unknown = suite(14, &["scan", "sort/keys/u31"]).cases().unwrap_err().to_string();
        assert!(unknown.starts_with("--cases sort/keys/u31: "), "{unknown}");
    }

    #[test]
    fn cases_that_run_by_name_alone_are_listed_by_name() {
        let of = |name: &str| cases(14, &[name]);
        let forms = of("ordered/forms");
        assert!(forms.contains(&"ordered/forms/single_pass/count/all".to_string()), "{forms:?}");
        let ordered = of("ordered");
        assert!(ordered.contains(&"ordered/sum/all".to_string()) && forms.iter().all(|form| ordered.contains(form)));
        assert!(of("large").contains(&"large/scan".to_string()));
        let all = cases(14, &[]);
        assert!(!all.iter().any(|case| is_named(case, "ordered/forms") || is_named(case, "large")));
    }

    #[test]
    fn a_sweep_alone_measures_all_cases_of_its_family() {
        let wanted = |names: &[&str], is_swept: bool| {
            let suite = suite(14, names);
            let mut run = Run::unheard(SUITE).unwrap();
            suite.bench(&mut run).unwrap().wanted([8192, 16384], |bytes| format!("join/{bytes}"), is_swept)
        };
        assert_eq!(wanted(&["tune/join"], true), [8192, 16384]);
        assert_eq!(wanted(&["tune/join", "join/16384"], true), [16384]);
        assert!(wanted(&["select"], false).is_empty());
        assert_eq!(cases(14, &["tune/groupby"]), ["tune/groupby"]);
        let (stopped, lines) = Notes::run(&mut suite(14, &["tune/groupby"]), 2);
        assert!(matches!(stopped, Err(Failure::Cancelled)));
        let lines = measured(&lines);
        assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("groupby/10/")), "{lines:?}");
    }

    #[test]
    fn sorts_and_aggregations_have_predictions() {
        let cases = ["sort/keys/u32", "segsort/16", "ordered/count/16", "ordered/sum/16", "partition", "groupby/10"];
        let results = Notes::run(&mut suite(13, &cases), usize::MAX).0.unwrap().results;
        for case in cases {
            assert!(results.iter().any(|result| is_named(&result.name, case)), "{case}");
        }
        assert!(results.iter().all(|result| result.figure("predicted_ms") > Some(0.0)), "{results:?}");
    }

    #[test]
    fn a_small_run_is_verified_and_can_be_stopped() {
        let names = ["project/linear", "project/sigmoid", "scan", "select/30"];
        let expected = ["select/30/any", "select/30/stable", "project/linear", "project/sigmoid", "scan/u32"];
        assert_eq!(cases(14, &names), expected);
        let (report, lines) = Notes::run(&mut suite(14, &names), usize::MAX);
        let report = report.unwrap();
        assert_eq!(measured(&lines), expected);
        for result in &report.results {
            assert!(result.verified == Some(true) && result.figure("device_ms") > Some(0.0), "{result:?}");
            assert!(result.figure("spread") == Some(0.0), "one run has no spread: {result:?}");
            // The emulated device has no bandwidth to measure by.
            assert!(result["floor_ms"].is_null() && result.rivals.is_empty(), "{result:?}");
            assert!(result["timed_runs"] == 1 && result.text("date") == report.date.as_deref(), "{result:?}");
            assert_eq!(result.text("commit"), report.commit.as_deref());
        }
        let orders = [0, 1].map(|at| report.results[at].text("order"));
        assert_eq!(orders, [Some("any"), Some("stable")]);
        let (stopped, lines) = Notes::run(&mut suite(14, &names), 3);
        assert!(matches!(stopped, Err(Failure::Cancelled)) && measured(&lines).len() == 3);
    }
}
