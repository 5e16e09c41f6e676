//! Ordered aggregation by every algorithm on data of several shapes: `ordered/forms/<algorithm>/<count|sum>/<data>`.
//!
//! Algorithms are `single_pass` and `<fusion>/<variant>`, the kernels of the paper "Code fusion of prefix sum with
//! ordered aggregation". Data is a number of runs of random lengths, `all` distinct keys, or `skewed`: runs whose
//! lengths follow Zipf's law. A case looks for the best chunk and local size first and is measured with these; outputs
//! are verified behind it. The algorithm that known findings plan is marked as chosen. The search launches many
//! kernels: cases run if `--cases` names them or what they lie below. `--findings` keeps the fastest algorithm of each
//! data.

use std::path::Path;

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element, Reduce, Reduction};

use super::Bench;
use super::hashed::{heads, room, scratch, taken, zipf_heads};
use super::ordered::{COUNT, SUM, Shared};
use crate::operators::ordered::{
    Aggregate, OrderedAlgorithm, OrderedData, OrderedFinding, OrderedFindings, OrderedForm, OrderedTuner, TunedPlan,
};
use crate::operators::roofline::Roofline;
use crate::suite::Failure;

/// The prefix of the cases' names.
const CASES: &str = "ordered/forms";
/// Numbers of runs; those that an input has not the rows for are left out.
const RUNS: [u64; 4] = [16, 1024, 65_536, 16 << 20];
/// Runs by Zipf's law.
const SKEWED_RUNS: u64 = 65_536;
/// Runs of a shape while the best is looked for.
const SEARCH_RUNS: usize = 3;

/// How keys are spread over runs.
#[derive(Clone, Copy)]
enum Spread {
    Runs(u64),
    Skewed(u64),
}

/// The data of `n` rows, by name.
fn spreads(n: u64) -> Vec<(String, Spread)> {
    let runs = RUNS.into_iter().filter(|runs| *runs < n).map(|runs| (runs.to_string(), Spread::Runs(runs)));
    let skewed = Spread::Skewed(SKEWED_RUNS.min(n / 16));
    runs.chain([("all".into(), Spread::Runs(n)), ("skewed".into(), skewed)]).collect()
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let n = bench.rows(28);
    let case = |algorithm: OrderedAlgorithm, form: OrderedForm, data: &str| {
        format!("{CASES}/{algorithm}/{}/{data}", Aggregate::of(form))
    };
    let mut shared = None;
    let mut findings = Vec::new();
    for (name, spread) in spreads(n) {
        let wanted = |form: OrderedForm| -> Vec<(String, OrderedAlgorithm)> {
            let all = OrderedAlgorithm::all().map(|algorithm| (case(algorithm, form, &name), algorithm));
            all.filter(|(case, _)| bench.wants_named(case)).collect()
        };
        let [counts, sums] = [COUNT, SUM].map(|form| (form, wanted(form)));
        if counts.1.is_empty() && sums.1.is_empty() {
            continue;
        }
        if shared.is_none() {
            shared = Some(Shared::new(bench, n)?);
        }
        let Some(shared) = &shared else { continue };
        let (keys, data) = keys(bench, shared, spread)?;
        for (form, cases) in [counts, sums] {
            let mut measured = Vec::new();
            for (case, algorithm) in &cases {
                measured.push(one(bench, shared, &keys, (form, &data), case, *algorithm)?);
            }
            let fastest = measured.iter().min_by(|a, b| a.ms.total_cmp(&b.ms));
            if let Some(fastest) = fastest.filter(|_| cases.len() == OrderedAlgorithm::all().count()) {
                findings.push(OrderedFinding {
                    device: bench.device.info().name.clone(),
                    date: crate::suite::today(),
                    aggregate: Aggregate::of(form),
                    data,
                    plan: fastest.plan,
                    ms: fastest.ms,
                });
            }
        }
    }
    match &bench.arguments.findings {
        Some(path) if !findings.is_empty() => Ok(keep(path, findings)?),
        _ => Ok(()),
    }
}

/// Keys and their sizes; counts of their runs are verified and kept for the verification of sums.
fn keys(bench: &mut Bench<'_>, shared: &Shared, spread: Spread) -> Result<(DeviceSlice, OrderedData), Failure> {
    let device = bench.device.clone();
    let keys = match spread {
        Spread::Runs(runs) => heads(&device, &mut bench.stream, shared.n, runs)?,
        Spread::Skewed(runs) => zipf_heads(&device, &mut bench.stream, shared.n, runs)?,
    };
    shared.number(bench, &keys)?;
    let runs = shared.counts(bench, &keys, COUNT.tuning())?.1;
    let reduce = Reduce::new(&device, Element::U32, Reduction::Largest)?;
    let (longest, counts) = (room(&device, Element::U32, 1)?, shared.counts.part(0, runs)?);
    let memory = scratch(&device, reduce.scratch_bytes(runs))?;
    reduce.launch(&mut bench.stream, &counts, &longest, &memory)?;
    let longest = u32::from_le_bytes(taken::<4>(&mut bench.stream, &longest, 0, 1)?[0]);
    Ok((keys, OrderedData { rows: shared.n, runs, longest: longest.into() }))
}

/// Finds the best shape of an algorithm, measures and verifies it.
fn one(
    bench: &mut Bench<'_>,
    shared: &Shared,
    keys: &DeviceSlice,
    (form, data): (OrderedForm, &OrderedData),
    case: &str,
    algorithm: OrderedAlgorithm,
) -> Result<TunedPlan, Failure> {
    let (device, operands) = (bench.device.clone(), shared.operands(keys, form));
    let stream = &mut bench.stream;
    let (run, runs) = (&*bench.run, SEARCH_RUNS);
    let is_stopped = &|| run.is_stopped();
    let plan = OrderedTuner { device: &device, stream, form, operands, runs, is_stopped }.tune(algorithm)?.plan;
    let launcher = plan.launcher(&device, form)?;
    let memory = scratch(&device, launcher.scratch_bytes(shared.n))?;
    let time = shared.time(bench, &operands, &memory, |work| launcher.launch(work, &operands, &memory))?;
    let (row, run) = match form.sum {
        None => {
            shared.verify_counts(bench, keys)?;
            (4, 8)
        }
        Some(_) => {
            shared.verify_sums(bench, keys, data.runs)?;
            (8, 12)
        }
    };
    let (read, written) = (row as u64 * data.rows, run as u64 * data.runs);
    let kernels = match algorithm {
        OrderedAlgorithm::SinglePass => 1,
        OrderedAlgorithm::Fused(fusion, _) => fusion.kernels(),
    };
    let planned = OrderedFindings::known()?.plan(&device.info().name, form, data).algorithm;
    let mut more = json!({
        "rows": data.rows, "runs": data.runs, "longest": data.longest, "shape": data.shape().to_string(),
        "algorithm": algorithm.to_string(), "scratch_bytes": memory.bytes(), "chosen": algorithm == planned,
        "predicted_ms": bench.rates.fused_ms(data.rows, row, data.runs, run, kernels),
    });
    if let OrderedAlgorithm::Fused(_, variant) = algorithm {
        more["kernels"] = json!(kernels);
        more["variant"] = json!(variant.to_string());
        more["chunk"] = json!(plan.tuning.chunk);
        more["local"] = json!(plan.tuning.local);
    }
    bench.add(case, time, read + written, bench.ceiling(read, written), more);
    Ok(TunedPlan { plan, ms: time.ms })
}

/// The findings of a file; none of one that is yet to be written.
///
/// # Errors
/// A folder that is not there, or a file that cannot be read.
pub(super) fn kept(path: &Path) -> Result<OrderedFindings, String> {
    let failed = |error: String| format!("--findings {}: {error}", path.display());
    if path.exists() {
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        return OrderedFindings::from_json(&text).map_err(|error| failed(error.to_string()));
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => Err(failed(format!("there is no folder '{}'", folder.display()))),
        None => Ok(OrderedFindings::default()),
    }
}

/// Adds findings to those of a file.
fn keep(path: &Path, found: Vec<OrderedFinding>) -> Result<(), String> {
    let mut findings = kept(path)?;
    found.into_iter().for_each(|finding| findings.add(finding));
    let failed = |error: std::io::Error| format!("--findings {}: {error}", path.display());
    std::fs::write(path, findings.to_json()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::{Device, EmulatorOptions};

    use super::super::{PrimitiveArgs, Primitives};
    use super::*;
    use crate::suite::{Run, Suite};

    #[test]
    fn cases_run_small_on_the_emulated_device() {
        let device = Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap();
        let cases = ["single_pass", "one_kernel/private_variable"].map(|algorithm| format!("{CASES}/{algorithm}"));
        let (arguments, mut unheard) =
            (PrimitiveArgs::small(13, &cases.each_ref().map(String::as_str)), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        run(&mut bench).unwrap();
        // 16 and 1,024 runs, all distinct, skewed; two algorithms, counts and sums.
        assert_eq!(bench.run.report.results.len(), 16);
        assert!(bench.run.report.results.iter().any(|result| result["shape"] == "reduced" && result["kernels"] == 1));
        assert!(bench.run.report.results.iter().all(|result| result["predicted_ms"].as_f64().unwrap() > 0.0));
        // There are no findings on this device.
        let is_chosen_alone = |result: &crate::report::Case| result["chosen"] == (result["algorithm"] == "single_pass");
        assert!(bench.run.report.results.iter().all(is_chosen_alone));
    }

    #[test]
    fn findings_of_a_file_are_added_to() {
        let data = |rows| OrderedData { rows, runs: 16, longest: rows / 16 };
        let finding = |rows, ms| OrderedFinding {
            device: "a device".into(),
            date: crate::suite::today(),
            aggregate: Aggregate::Count,
            data: data(rows),
            plan: crate::operators::ordered::OrderedPlan::new(OrderedAlgorithm::SinglePass),
            ms,
        };
        let path = std::env::temp_dir().join(format!("warpcube-findings-{}", std::process::id()));
        keep(&path, vec![finding(1 << 20, 1.0), finding(1 << 10, 2.0)]).unwrap();
        keep(&path, vec![finding(1 << 20, 0.5)]).unwrap();
        let kept = kept(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(kept.all().iter().map(|finding| finding.ms).collect::<Vec<_>>(), [2.0, 0.5]);
        // A path that cannot be written is refused before anything is measured.
        let mut arguments = PrimitiveArgs::small(13, &[CASES]);
        arguments.findings = Some(path.join("below"));
        let device = Device::emulated(EmulatorOptions::default(), 0).unwrap();
        let refused = Primitives::new(device, arguments).cases().unwrap_err().to_string();
        assert!(refused.starts_with("--findings ") && refused.contains("there is no folder"), "{refused}");
    }
}
