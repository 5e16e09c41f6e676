//! Measures the algorithms of ordered aggregation on given data, by device events.
//!
//! Source of the search: section V of the paper "Code fusion of prefix sum with ordered aggregation", which finds the
//! local size first and then the chunk, once for all variants. Here both are found for each fusion and variant, since
//! they differ much: direct atomics do not use chunks in their aggregation, and the one-kernel form pays for them in
//! shared memory. The chunk comes first: it decides how threads share lines of memory. Sums of distinct keys by five
//! kernels with a private variable end at 13.9 ms if the local size comes first (32, with chunks of 16), where counts
//! with chunks of 4 take 6.8 (one H200, 2026-11-23, 2^28 rows).

use warpcube_gpu::prims::DeviceSlice;
use warpcube_gpu::{Device, GpuError, Result, Stream, Work};

use super::{FusedTuning, OrderedAlgorithm, OrderedForm, OrderedOperands, OrderedPlan};

/// Local sizes that are tried; the paper's best is the first.
const LOCALS: [u32; 7] = [8, 32, 64, 128, 256, 512, 1024];
/// Rows of a chunk that are tried; the paper's best is 128.
const CHUNKS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// A first run that takes so long is the figure: noise is small beside it.
const SLOW_MS: f64 = 20.0;
/// A shape whose first run takes so many times the best found is not run again.
const HOPELESS: f64 = 3.0;

/// A measured plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TunedPlan {
    /// What was run.
    pub plan: OrderedPlan,
    /// Milliseconds between device events around a launch, fills of outputs and scratch memory among them.
    pub ms: f64,
}

/// Measures on operands of the caller's, whose data decides.
pub struct OrderedTuner<'a> {
    /// The device.
    pub device: &'a Device,
    /// A stream of it.
    pub stream: &'a mut Stream,
    /// What is computed.
    pub form: OrderedForm,
    /// Keys, values and outputs; outputs are overwritten.
    pub operands: OrderedOperands<'a>,
    /// Runs of a shape behind a first one; the median counts.
    pub runs: usize,
    /// Asked before each run; true ends the search with [`GpuError::Cancelled`].
    pub is_stopped: &'a dyn Fn() -> bool,
}

impl OrderedTuner<'_> {
    /// The best shape of an algorithm: the chunk with the default's local size, the local size, and the chunk again
    /// where that changed.
    ///
    /// # Errors
    /// Those of a launch with the default shape; shapes that are refused are left out. [`GpuError::Cancelled`] if the
    /// search was stopped.
    pub fn tune(&mut self, algorithm: OrderedAlgorithm) -> Result<TunedPlan> {
        let plan = OrderedPlan::new(algorithm);
        let mut best = TunedPlan { plan, ms: self.time(&plan, f64::INFINITY)? };
        if algorithm == OrderedAlgorithm::SinglePass {
            return Ok(best);
        }
        best = self.best_chunk(best)?;
        for local in LOCALS {
            best = self.better(best, FusedTuning { local, ..best.plan.tuning })?;
        }
        if best.plan.tuning.local != plan.tuning.local {
            best = self.best_chunk(best)?;
        }
        Ok(best)
    }

    fn best_chunk(&mut self, mut best: TunedPlan) -> Result<TunedPlan> {
        for chunk in CHUNKS {
            best = self.better(best, FusedTuning { chunk, ..best.plan.tuning })?;
        }
        Ok(best)
    }

    /// The better of a plan and the same with another tuning, which may be refused.
    fn better(&mut self, best: TunedPlan, tuning: FusedTuning) -> Result<TunedPlan> {
        if tuning == best.plan.tuning {
            return Ok(best);
        }
        let plan = OrderedPlan { tuning, ..best.plan };
        match self.time(&plan, best.ms) {
            Ok(ms) if ms < best.ms => Ok(TunedPlan { plan, ms }),
            Ok(_) | Err(GpuError::Contract(_)) => Ok(best),
            Err(error) => Err(error),
        }
    }

    /// Milliseconds of a plan, where `best` are those of the best one.
    fn time(&mut self, plan: &OrderedPlan, best: f64) -> Result<f64> {
        let OrderedOperands { keys, values, keys_out, counts, sums, runs } = self.operands;
        let launcher = plan.launcher(self.device, self.form)?;
        let scratch = self.device.buffer(launcher.scratch_bytes(keys.len()), "scratch of a tuner")?;
        let mut work = Work::new(self.device);
        let start = work.mark();
        launcher.launch(&mut work, &self.operands, &scratch)?;
        let end = work.mark();
        let slices = [Some(keys), values, Some(keys_out), counts, sums, Some(runs)].into_iter().flatten();
        let buffers: Vec<_> = slices.map(DeviceSlice::buffer).chain([&scratch]).collect();
        let mut recording = self.stream.prepare(work)?;
        let mut run = || -> Result<f64> {
            if (self.is_stopped)() {
                return Err(GpuError::Cancelled);
            }
            self.stream.run(&mut recording, &buffers)?;
            recording.elapsed_ms(start, end)
        };
        let first = run()?;
        if first > SLOW_MS || first > HOPELESS * best {
            return Ok(first);
        }
        let mut times = (0..self.runs.max(1)).map(|_| run()).collect::<Result<Vec<_>>>()?;
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}
