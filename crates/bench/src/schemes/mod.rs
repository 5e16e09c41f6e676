//! The suite `schemes`: storage schemes of sparse arrays on one core and on a device.
//!
//! Data: arrays of 2, 3, 4 and 8 dimensions at sparsities of 90, 95, 99 and 99.9 % (Wang, *Sparse Array Representations
//! and Some Selected Array Operations on GPUs*, section 6.2); values are decimals of scale 2, so that sums are compared
//! to the bit. Operations: storage ratio, construction, random access, the three sub-arrays of section 7.2.1.3, the
//! k - 1 aggregations of one scan. Every scheme runs on one core of the CPU; BESS, xCRS, BxCRS and hybrid run on the
//! device too. Hybrid has the r that section 7.2 measures.
//!
//! Each result is compared with a plain scan of the generated cells, made without a scheme (`data.rs`).

mod case;
mod cpu;
mod data;
mod gpu;

use std::time::Instant;

use clap::Args;
use serde_json::json;
use warpcube_arrays::generate::{DIMENSIONS, SPARSITIES};
use warpcube_arrays::{Limits, Scheme};
use warpcube_gpu::Device;

use crate::report;
use crate::suite::{About, Failure, Filter, Run, RunArgs, Suite, figures};
use case::{Case, DeviceKind, Operation};
use cpu::Measured;
use data::Data;
use gpu::GpuBench;

/// What to measure of storage schemes.
#[derive(Debug, Clone, Args)]
pub struct SchemeArgs {
    /// Only these cases, or all below a name, by comma; * stands for any part: random/*/k8/s99,aggregation/bess.
    /// Operations are storage, construction, random, sub-array-1, sub-array-2, sub-array-3 and aggregation
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub cases: Vec<String>,
    /// Filled cells of the arrays, by comma; every case runs for each
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", default_values_t = [2_000_000, 10_000_000])]
    pub cells: Vec<usize>,
    /// Tuples of a random access; at most as many as cells
    #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
    pub lookups: usize,
    /// Runs of a case on the device behind a first one; the median counts
    #[arg(long, default_value_t = 11, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}

/// The schemes of the suite for an array of so many dimensions.
fn schemes(dimensions: usize) -> [Scheme; 8] {
    [
        Scheme::Coordinate,
        Scheme::OffsetValue,
        Scheme::Bess,
        Scheme::Xcrs,
        Scheme::Xccs,
        Scheme::Bxcrs,
        Scheme::measured_hybrid(dimensions),
        Scheme::Ptcs,
    ]
}

/// The suite: a group is an array.
pub struct Schemes {
    device: Device,
    arguments: SchemeArgs,
    /// Cells, dimensions and sparsities.
    arrays: Vec<(usize, usize, f64)>,
    /// The array that is measured.
    data: Option<Data>,
    begin: Instant,
}

impl Schemes {
    /// The cases that these arguments ask for.
    pub fn new(device: Device, arguments: SchemeArgs) -> Schemes {
        let arrays = DIMENSIONS.into_iter().flat_map(|k| SPARSITIES.map(|sparsity| (k, sparsity)));
        let of_cells = |cells: &usize| arrays.clone().map(|(k, sparsity)| (*cells, k, sparsity)).collect::<Vec<_>>();
        let arrays = arguments.cells.iter().flat_map(of_cells).collect();
        Schemes { device, arguments, arrays, data: None, begin: Instant::now() }
    }

    fn wants(&self, case: &Case) -> bool {
        Filter(&self.arguments.cases).wants(&case.name())
    }
}

impl Suite for Schemes {
    fn about(&self) -> About<'_> {
        let SchemeArgs { cells, lookups, runs, .. } = &self.arguments;
        About {
            name: "schemes",
            device: Some(&self.device),
            params: json!({"cells": cells, "lookups": lookups, "runs": runs}),
        }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        let all = |(_, k, sparsity): &(usize, usize, f64)| {
            let cases = schemes(*k).map(|scheme| Case::all(*k, *sparsity, scheme).map(|case| case.name()));
            cases.into_iter().flatten().collect::<Vec<String>>()
        };
        let mut groups: Vec<Vec<String>> = self.arrays.iter().map(all).collect();
        let filter = Filter(&self.arguments.cases);
        filter.check(&groups.concat(), "")?;
        groups.iter_mut().for_each(|group| group.retain(|case| filter.wants(case)));
        Ok(groups)
    }

    fn setup(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let (cells, dimensions, sparsity) = self.arrays[group];
        // The array before is freed first.
        self.data = None;
        let begin = Instant::now();
        let data = Data::new(dimensions, cells, sparsity, self.arguments.lookups.min(cells))?;
        let (sizes, drawn) = (data.cells.shape().sizes(), begin.elapsed().as_secs_f64());
        let empty = sparsity * 100.0;
        run.say(&format!("k = {dimensions}, {empty:.1} % empty: {cells} cells in {sizes:?}, {drawn:.1} s"));
        self.data = Some(data);
        Ok(())
    }

    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let (_, dimensions, sparsity) = self.arrays[group];
        let Some(data) = &self.data else { return Ok(()) };
        for scheme in schemes(dimensions) {
            run.go_on()?;
            if Case::all(dimensions, sparsity, scheme).any(|case| self.wants(&case)) {
                self.measure_scheme(run, data, dimensions, sparsity, scheme)
                    .map_err(|reason| format!("{scheme}, k = {dimensions}, sparsity {sparsity}: {reason}"))?;
            }
        }
        Ok(())
    }

    fn end(&mut self, run: &mut Run) -> Result<(), Failure> {
        run.say(&case::least_speedup(&run.report.results));
        run.say(&format!("{} results in {:.0} s", run.report.results.len(), self.begin.elapsed().as_secs_f64()));
        Ok(())
    }
}

impl Schemes {
    /// Measures the cases of one array in one scheme, those on the CPU first.
    fn measure_scheme(
        &self,
        run: &mut Run,
        data: &Data,
        dimensions: usize,
        sparsity: f64,
        scheme: Scheme,
    ) -> Result<(), String> {
        let case = |operation, kind| Case { operation, scheme, dimensions, sparsity, kind };
        let (stored, build_ms) = cpu::timed(1, || scheme.build(&data.cells, &Limits::default()));
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => {
                run.say(&format!("{scheme} left out: {error}"));
                return Ok(());
            }
        };
        let mut gpu: Option<(GpuBench<'_>, f64)> = None;
        for operation in Operation::ALL {
            let on_cpu = case(operation, DeviceKind::Cpu);
            let on_gpu = case(operation, DeviceKind::Gpu);
            let has_kernels = Case::is_on_device(scheme);
            let [wants_cpu, wants_gpu] = [&on_cpu, &on_gpu].map(|case| self.wants(case));
            let wants_gpu = wants_gpu && has_kernels;
            // The figure of the CPU stands beside that of the device.
            let measured = match wants_cpu || wants_gpu {
                true => cpu::measure(data, stored.as_ref(), operation, build_ms)?,
                false => continue,
            };
            if wants_cpu {
                run.add(result(&on_cpu, data, &measured));
            }
            if wants_gpu {
                if gpu.is_none() {
                    gpu = Some(GpuBench::new(&self.device, data, stored.as_ref(), self.arguments.runs)?);
                }
                if let Some((gpu, upload_ms)) = &mut gpu {
                    let found = gpu.measure(operation, &measured, *upload_ms)?;
                    run.add(result(&on_gpu, data, &found));
                }
            }
        }
        Ok(())
    }
}

/// A verified result.
fn result(case: &Case, data: &Data, measured: &Measured) -> report::Case {
    let named = json!({"scheme": case.scheme.to_string(), "cells": data.cells.len()});
    let mut result = report::Case::new(case.name(), named);
    result.figures.extend(figures(measured.figures.clone()));
    result.verified(true)
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;
    use crate::suite::tests::Notes;

    fn suite(cases: &[&str]) -> Schemes {
        let cases = cases.iter().map(|case| case.to_string()).collect();
        let arguments = SchemeArgs { cases, cells: vec![1500], lookups: 400, runs: 1, run: RunArgs::default() };
        Schemes::new(Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap(), arguments)
    }

    #[test]
    fn a_plan_lists_every_case_once() {
        let all = suite(&[]).cases().unwrap().concat();
        // Seven operations of eight schemes on the CPU and four on the device.
        assert_eq!(all.len(), 16 * 7 * 12);
        assert!(all.contains(&"random/hybrid/k8/s99.9/gpu".to_string()));
        assert!(all.contains(&"sub-array-2/ptcs/k2/s90/cpu".to_string()));
        assert!(!all.iter().any(|name| name.starts_with("random/ptcs") && name.ends_with("gpu")));
        let mut once = all.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), all.len());
        let some = suite(&["random/*/k8/s99", "aggregation/bess/*/*/gpu"]).cases().unwrap().concat();
        assert_eq!(some.len(), 12 + 16);
        let unknown = suite(&["random/crs"]).cases().unwrap_err().to_string();
        assert!(unknown.starts_with("--cases random/crs: "), "{unknown}");
    }

    #[test]
    fn a_small_run_is_verified() {
        let mut suite = suite(&["*/*/k3/s95", "random/*/k8/s99", "aggregation/*/k2/s90/gpu"]);
        let (report, lines) = Notes::run(&mut suite, usize::MAX);
        let results = report.unwrap().results;
        assert_eq!(results.len(), 7 * 12 + 12 + 4);
        assert_eq!(results.len() + 7, lines.len(), "title, head, a line a result, one an array and two at the end");
        let named = |name: &str| results.iter().find(|result| result.name == name).unwrap();
        for result in &results {
            assert!(result.verified == Some(true) && result["cells"] == 1500, "{result:?}");
        }
        let random = named("random/bess/k3/s95/gpu");
        let figure = |key: &str| random[key].as_f64().unwrap();
        assert!(figure("device_ms") > 0.0 && figure("warm_ms") > 0.0 && figure("speedup") > 0.0, "{random:?}");
        let ratio = |scheme: &str| named(&format!("storage/{scheme}/k3/s95/cpu"))["ratio"].as_f64().unwrap();
        // Formulas 2.1.3 and 3.5: 16 bytes a cell and 28 of 8 a place, at one filled place in twenty.
        assert!((ratio("bess") - 0.1).abs() < 0.01 && (ratio("ptcs") - 0.175).abs() < 0.01);
        assert_eq!(named("sub-array-1/bess/k3/s95/gpu")["found"], named("sub-array-1/ptcs/k3/s95/cpu")["found"]);
    }
}
