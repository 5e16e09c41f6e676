//! Primitives of `warpcube_gpu::prims`: each case makes its input on the device, verifies its output, and is timed by
//! device events beside the time its bytes need.
//!
//! A file measures one family of cases. It asks [`Bench::wants`] of each case before it makes data, since a listing
//! runs the same files and notes the names they ask for.

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
mod table;
mod topk;
mod topk_cpu;

use std::cell::RefCell;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use warpcube_gpu::prims::TileTuning;
use warpcube_gpu::prims::roofline::DeviceRates;
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Stream, Work};

use crate::report;
use earlier::Earlier;
use rivals::Rivals;
pub use table::{Table, done_behind};

/// The name of the suite in reports.
pub const SUITE: &str = "primitives";

/// The prefix of the names of sweeps, which run only if `--cases` names them.
const SWEEPS: &str = "tune";

/// What to measure of primitives.
#[derive(Debug, Clone, Args)]
pub struct PrimitiveArgs {
    /// Only these cases, or all below a name, by comma: topk/f32/uniform,sort/keys/u32. Cases below ordered/forms,
    /// large and tune run only if they are named
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// List the cases that would run, and run none
    #[arg(long)]
    pub list: bool,
    /// Rows of the largest inputs, as a power of two; those of other cases are relative to it
    #[arg(long, default_value_t = 29, value_name = "LOG2", value_parser = clap::value_parser!(u32).range(10..=32))]
    pub log_rows: u32,
    /// Runs of each case behind a first one; the median counts
    #[arg(long, default_value_t = 21, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Times of other programs for the same cases, as bench/rivals prints them
    #[arg(long, value_name = "FILE")]
    pub rivals: Option<PathBuf>,
    /// Write the measurements to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep the results that the file of --json has, but for those that are measured again
    #[arg(long, requires = "json")]
    pub update: bool,
    /// Add the fastest plans of ordered aggregation, which cases ordered/forms find, to this file
    #[arg(long, value_name = "FILE")]
    pub findings: Option<PathBuf>,
}

/// Hears how a run goes on, and may stop it.
pub trait Follower {
    /// A case was measured and its answer is right.
    fn measured(&mut self, result: &Value);
    /// A case cannot be measured; the reason is not a defect.
    fn left_out(&mut self, case: &str, reason: &str);
    /// An answer is wrong or the device failed; the other cases of its family are not measured.
    fn failed(&mut self, reason: &str);
    /// Whether to stop before the next launch.
    fn is_stopped(&self) -> bool;
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The object for `bench/results`, with the cases whose answers are right.
    pub report: Value,
    /// The reasons of those that failed.
    pub failures: Vec<String>,
}

/// Measures the cases of a family that were asked for.
type Family = fn(&mut Bench<'_>) -> Result<(), String>;

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

/// A run of the suite.
pub(crate) struct Bench<'a> {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    /// Measured rates, from which floors and predictions are computed.
    pub(crate) rates: DeviceRates,
    arguments: &'a PrimitiveArgs,
    rivals: Rivals,
    follower: &'a mut dyn Follower,
    /// Names of cases that were asked for, if they are only listed.
    listed: Option<RefCell<Vec<String>>>,
    results: Vec<Value>,
}

impl<'a> Bench<'a> {
    fn new(
        device: &Device,
        arguments: &'a PrimitiveArgs,
        follower: &'a mut dyn Follower,
    ) -> Result<Bench<'a>, GpuError> {
        let (device, stream, rivals) = (device.clone(), device.stream()?, Rivals::default());
        let rates = DeviceRates::of(device.info());
        Ok(Bench { device, stream, rates, arguments, rivals, follower, listed: None, results: Vec::new() })
    }

    /// Whether a case was asked for.
    pub(crate) fn wants(&self, case: &str) -> bool {
        let cases = &self.arguments.cases;
        (cases.is_empty() || cases.iter().any(|wanted| is_below(case, wanted))) && self.is_run(case)
    }

    /// Whether a case that begins with `tune/` was asked for by such a name.
    pub(crate) fn wants_sweep(&self, case: &str) -> bool {
        let mut named = self.arguments.cases.iter().filter(|wanted| is_below(wanted, SWEEPS));
        named.any(|wanted| is_below(case, wanted)) && self.is_run(case)
    }

    /// The items of a family whose cases were asked for: all of them where a sweep of the family was (`is_swept`), and
    /// none of its cases.
    pub(crate) fn wanted<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        case: impl Fn(&T) -> String,
        is_swept: bool,
    ) -> Vec<T> {
        let (wanted, others): (Vec<T>, Vec<T>) = items.into_iter().partition(|item| self.wants(&case(item)));
        if wanted.is_empty() && is_swept { others } else { wanted }
    }

    /// True if `--cases` names this case or a name above it; for cases that run only then.
    pub(crate) fn wants_named(&self, case: &str) -> bool {
        self.arguments.cases.iter().any(|wanted| is_below(case, wanted)) && self.is_run(case)
    }

    /// Whether a case that was asked for is to run now; a listing notes it.
    fn is_run(&self, case: &str) -> bool {
        self.listed.as_ref().is_none_or(|listed| {
            listed.borrow_mut().push(case.to_string());
            false
        })
    }

    /// The shapes of tiles that a case is measured with: its own, if the case was asked for, and others as cases
    /// `tune/<case>/<threads>x<rows>x<blocks>`.
    pub(crate) fn shapes(&self, case: &str, own: TileTuning) -> Vec<(String, TileTuning)> {
        let mut shapes = Vec::new();
        if self.wants(case) {
            shapes.push((case.to_string(), own));
        }
        for (threads, blocks) in [(128, 6), (128, 8), (256, 3), (256, 4), (256, 5), (512, 1), (512, 2), (1024, 1)] {
            for rows in [own.rows, own.rows / 2].into_iter().filter(|rows| *rows > 0) {
                let case = format!("{SWEEPS}/{case}/{threads}x{rows}x{blocks}");
                if self.wants_sweep(&case) {
                    shapes.push((case, TileTuning { threads, rows, blocks }));
                }
            }
        }
        shapes
    }

    /// Elements of an input whose size is `2^log` where the largest have 2^29; smaller by `--log-rows`.
    pub(crate) fn rows(&self, log: u32) -> u64 {
        1 << (log + self.arguments.log_rows).saturating_sub(29)
    }

    /// A number of runs, segments or groups among 2^28 rows, for inputs of the size that was asked for; at least one.
    pub(crate) fn scaled(&self, count: u64) -> u64 {
        ((u128::from(count) * u128::from(self.rows(28))) >> 28).max(1) as u64
    }

    /// Whether the user stopped the run.
    pub(crate) fn is_stopped(&self) -> bool {
        self.follower.is_stopped()
    }

    /// Asked before each timed run.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`] if the user stopped the run.
    pub(crate) fn go_on(&self) -> Result<(), GpuError> {
        if self.is_stopped() { Err(GpuError::Cancelled) } else { Ok(()) }
    }

    /// Milliseconds of work by device events, the median of the runs behind a first one. Every byte of the buffers that
    /// the work has to write is 0xff before the first run: the pool returns blocks with the outputs of earlier cases,
    /// which verify work that writes nothing.
    pub(crate) fn time(
        &mut self,
        read: &[&DeviceBuffer],
        written: &[&DeviceBuffer],
        describe: impl FnOnce(&mut Work) -> Result<(), GpuError>,
    ) -> Result<f64, GpuError> {
        for buffer in written {
            self.stream.fill(buffer, 0, 0xff, buffer.bytes())?;
        }
        let buffers: Vec<&DeviceBuffer> = read.iter().chain(written).copied().collect();
        let mut work = Work::new(&self.device);
        let start = work.mark();
        describe(&mut work)?;
        let end = work.mark();
        let mut recording = self.stream.prepare(work)?;
        let mut times = Vec::new();
        for _ in 0..=self.arguments.runs {
            self.go_on()?;
            self.stream.run(&mut recording, &buffers)?;
            times.push(recording.elapsed_ms(start, end)?);
        }
        times.remove(0);
        times.sort_unstable_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Bytes a second of a case that reads and writes so many, by the roofline.
    pub(crate) fn ceiling(&self, read: u64, written: u64) -> f64 {
        (read + written) as f64 / self.rates.stream_ms(read as f64, written as f64) * 1e3
    }

    /// Adds a verified result: its milliseconds beside those that `bytes` need at `bytes_per_second`, and what else
    /// belongs to it. There is no floor on a device that does not tell the peak of its memory.
    pub(crate) fn add(&mut self, case: &str, device_ms: f64, bytes: u64, bytes_per_second: f64, more: Value) {
        let mut result = json!({"case": case, "device_ms": device_ms, "bytes": bytes});
        if self.device.info().peak_bandwidth > 0.0 {
            let floor_ms = bytes as f64 / bytes_per_second * 1e3;
            result["floor_ms"] = floor_ms.into();
            result["share_of_peak"] = (floor_ms / device_ms).into();
        }
        self.keep(result, more);
    }

    /// Adds a verified result of a case whose bytes are not known.
    pub(crate) fn add_without_floor(&mut self, case: &str, device_ms: f64, more: Value) {
        self.keep(json!({"case": case, "device_ms": device_ms}), more);
    }

    fn keep(&mut self, mut result: Value, more: Value) {
        result["verified"] = true.into();
        result["date"] = report::today().into();
        result["timed_runs"] = self.arguments.runs.into();
        if let Some(commit) = report::COMMIT {
            result["commit"] = commit.into();
        }
        if let (Value::Object(result), Value::Object(more)) = (&mut result, more) {
            result.extend(more);
        }
        if let Some(rivals) = result["case"].as_str().and_then(|case| self.rivals.of(case)) {
            result["rivals"] = rivals;
        }
        self.follower.measured(&result);
        self.results.push(result);
    }

    /// Notes that a case cannot be measured.
    pub(crate) fn leave_out(&mut self, case: &str, reason: &str) {
        self.follower.left_out(case, reason);
    }
}

/// Whether a case has this name or lies below it.
fn is_below(case: &str, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    case.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Hears nothing and stops nothing.
struct Unheard;

impl Follower for Unheard {
    fn measured(&mut self, _result: &Value) {}
    fn left_out(&mut self, _case: &str, _reason: &str) {}
    fn failed(&mut self, _reason: &str) {}
    fn is_stopped(&self) -> bool {
        false
    }
}

/// The cases of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The cases in the order they run.
    pub cases: Vec<String>,
    rivals: Rivals,
    earlier: Earlier,
}

/// Finds the cases that were asked for and reads the rivals' times.
///
/// # Errors
/// A name of `--cases` that no case has; a file of `--rivals`, or of `--json` with `--update`, that cannot be read or
/// is of another device or size; a file of `--findings` that cannot be read, or whose folder is not there.
pub fn plan(device: &Device, arguments: &PrimitiveArgs) -> Result<Plan, String> {
    let mut unheard = Unheard;
    let mut bench = Bench::new(device, arguments, &mut unheard).map_err(|error| error.to_string())?;
    bench.listed = Some(RefCell::default());
    for (_, family) in FAMILIES {
        family(&mut bench)?;
    }
    let cases = bench.listed.take().unwrap_or_default().into_inner();
    if arguments.cases.iter().any(String::is_empty) {
        return Err("--cases: a name is empty; names are separated by single commas".into());
    }
    if let Some(unknown) = arguments.cases.iter().find(|wanted| !cases.iter().any(|case| is_below(case, wanted))) {
        return Err(format!(
            "--cases {unknown}: no case has this name; --list shows all but those below ordered/forms, large and tune, \
             and these too if --cases names them"
        ));
    }
    if let Some(path) = &arguments.findings {
        ordered_forms::kept(path)?;
    }
    let rivals = match &arguments.rivals {
        Some(path) => Rivals::read(path, &device.info().name, arguments.log_rows)?,
        None => Rivals::default(),
    };
    let earlier = match &arguments.json {
        Some(path) if arguments.update => Earlier::read(path, &device.info().name, arguments.log_rows)?,
        _ => Earlier::default(),
    };
    Ok(Plan { cases, rivals, earlier })
}

/// Runs the cases of a plan.
///
/// # Errors
/// [`GpuError::Cancelled`] if the follower stopped the run. A case that fails is part of the outcome.
pub fn run(
    device: &Device,
    arguments: &PrimitiveArgs,
    plan: Plan,
    follower: &mut dyn Follower,
) -> Result<Outcome, GpuError> {
    let mut bench = Bench::new(device, arguments, follower)?;
    bench.rivals = plan.rivals;
    let mut rivals = plan.earlier.rivals.clone();
    let mut failures = Vec::new();
    for (name, family) in FAMILIES {
        let done = family(&mut bench);
        if bench.is_stopped() {
            return Err(GpuError::Cancelled);
        }
        if let Err(reason) = done {
            let behind = bench.results.last().and_then(|result| result["case"].as_str());
            let behind = behind.map_or_else(String::new, |case| format!(", behind {case}"));
            let reason = format!("{name}{behind}: {reason}");
            bench.follower.failed(&reason);
            failures.push(reason);
        }
    }
    let params = json!({"log_rows": arguments.log_rows, "runs": arguments.runs});
    let mut report = report::of(SUITE, device, params, plan.earlier.with(bench.results));
    rivals.extend(bench.rivals.versions().clone());
    if !rivals.is_empty() {
        report["rivals"] = rivals.into();
    }
    Ok(Outcome { report, failures })
}

#[cfg(test)]
impl PrimitiveArgs {
    /// Arguments for tests on the emulated device: one run of each case over few rows.
    pub(crate) fn small(log_rows: u32, cases: &[&str]) -> PrimitiveArgs {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        PrimitiveArgs { cases, list: false, log_rows, runs: 1, rivals: None, json: None, update: false, findings: None }
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;

    fn emulated() -> Device {
        Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap()
    }

    #[test]
    fn names_are_of_whole_parts() {
        assert!(is_below("topk/f32/uniform/1/threshold", "topk/f32/uniform/1"));
        assert!(is_below("select/30", "select/30") && is_below("select/30", "select/"));
        assert!(!is_below("topk/f32/uniform/128/threshold", "topk/f32/uniform/1") && !is_below("sort", "so"));
    }

    #[test]
    fn a_plan_lists_every_case_once_and_no_sweep() {
        let device = emulated();
        let all = plan(&device, &PrimitiveArgs::small(14, &[])).unwrap().cases;
        for case in ["select/30/stable", "project/sigmoid", "scan/u32", "ordered/sum/all", "segsort/16777216"] {
            assert!(all.contains(&case.to_string()), "{case} is not in {all:?}");
        }
        assert!(all.contains(&"topk/f32/uniform/32/radix_select".to_string()));
        assert!(!all.iter().any(|case| is_below(case, SWEEPS)));
        let mut once = all.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), all.len());
        let sweep = plan(&device, &PrimitiveArgs::small(14, &["tune/scan/u32"])).unwrap().cases;
        assert!(sweep.len() > 8 && sweep.iter().all(|case| case.starts_with("tune/scan/u32/")), "{sweep:?}");
        let unknown = plan(&device, &PrimitiveArgs::small(14, &["scan", "sort/keys/u31"])).unwrap_err();
        assert!(unknown.starts_with("--cases sort/keys/u31: "), "{unknown}");
    }

    #[test]
    fn cases_that_run_by_name_alone_are_listed_by_name() {
        let device = emulated();
        let of = |name: &str| plan(&device, &PrimitiveArgs::small(14, &[name])).unwrap().cases;
        let forms = of("ordered/forms");
        assert!(forms.contains(&"ordered/forms/single_pass/count/all".to_string()), "{forms:?}");
        let ordered = of("ordered");
        assert!(ordered.contains(&"ordered/sum/all".to_string()) && forms.iter().all(|form| ordered.contains(form)));
        assert!(of("large").contains(&"large/scan".to_string()));
        let all = plan(&device, &PrimitiveArgs::small(14, &[])).unwrap().cases;
        assert!(!all.iter().any(|case| is_below(case, "ordered/forms") || is_below(case, "large")));
    }

    #[test]
    fn a_sweep_alone_measures_all_cases_of_its_family() {
        let device = emulated();
        let wanted = |names: &[&str], is_swept: bool| {
            let (arguments, mut unheard) = (PrimitiveArgs::small(14, names), Unheard);
            let bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
            bench.wanted([8192, 16384], |bytes| format!("join/{bytes}"), is_swept)
        };
        assert_eq!(wanted(&["tune/join"], true), [8192, 16384]);
        assert_eq!(wanted(&["tune/join", "join/16384"], true), [16384]);
        assert!(wanted(&["select"], false).is_empty());
        let arguments = PrimitiveArgs::small(14, &["tune/groupby"]);
        let planned = plan(&device, &arguments).unwrap();
        assert_eq!(planned.cases, ["tune/groupby"]);
        let mut notes = Notes { measured: Vec::new(), stops_behind: 2 };
        assert!(matches!(run(&device, &arguments, planned, &mut notes), Err(GpuError::Cancelled)));
        assert_eq!(notes.measured, ["groupby/10", "groupby/10"]);
    }

    #[test]
    fn sorts_and_aggregations_have_predictions() {
        let device = emulated();
        let cases = ["sort/keys/u32", "segsort/16", "ordered/count/16", "ordered/sum/16", "partition", "groupby/10"];
        let arguments = PrimitiveArgs::small(13, &cases);
        let planned = plan(&device, &arguments).unwrap();
        let outcome = run(&device, &arguments, planned, &mut Unheard).unwrap();
        assert_eq!(outcome.failures, [""; 0]);
        let results = outcome.report["results"].as_array().unwrap();
        for case in cases {
            assert!(results.iter().any(|result| is_below(result["case"].as_str().unwrap(), case)), "{case}");
        }
        assert!(results.iter().all(|result| result["predicted_ms"].as_f64().unwrap() > 0.0), "{results:?}");
    }

    /// A follower that records results and stops the run after so many.
    struct Notes {
        measured: Vec<String>,
        stops_behind: usize,
    }

    impl Follower for Notes {
        fn measured(&mut self, result: &Value) {
            self.measured.push(result["case"].as_str().unwrap().to_string());
        }
        fn left_out(&mut self, _case: &str, _reason: &str) {}
        fn failed(&mut self, reason: &str) {
            panic!("{reason}");
        }
        fn is_stopped(&self) -> bool {
            self.measured.len() >= self.stops_behind
        }
    }

    #[test]
    fn a_small_run_is_verified_and_can_be_stopped() {
        let device = emulated();
        let arguments = PrimitiveArgs::small(14, &["project/linear", "project/sigmoid", "scan", "select/30"]);
        let planned = plan(&device, &arguments).unwrap();
        assert_eq!(
            planned.cases,
            ["select/30/any", "select/30/stable", "project/linear", "project/sigmoid", "scan/u32"]
        );
        let mut notes = Notes { measured: Vec::new(), stops_behind: usize::MAX };
        let outcome = run(&device, &arguments, planned.clone(), &mut notes).unwrap();
        assert!(outcome.failures.is_empty());
        let results = outcome.report["results"].as_array().unwrap();
        assert_eq!(notes.measured, ["select/30", "select/30", "project/linear", "project/sigmoid", "scan/u32"]);
        for result in results {
            assert!(result["verified"] == true && result["device_ms"].as_f64().unwrap() > 0.0, "{result}");
            // The emulated device has no bandwidth to measure by.
            assert!(result.get("floor_ms").is_none() && result.get("rivals").is_none(), "{result}");
            assert!(result["timed_runs"] == 1 && result["date"] == outcome.report["date"], "{result}");
            assert_eq!(result.get("commit"), outcome.report.get("commit"));
        }
        assert_eq!((&results[0]["order"], &results[1]["order"]), (&"any".into(), &"stable".into()));
        let mut notes = Notes { measured: Vec::new(), stops_behind: 3 };
        let stopped = run(&device, &arguments, planned, &mut notes);
        assert!(matches!(stopped, Err(GpuError::Cancelled)) && notes.measured.len() == 3);
    }
}
