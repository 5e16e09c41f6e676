//! Primitives of `warpcube_gpu::prims`: each case makes its input on the device, verifies what it computed, and is
//! measured by device events beside the time its bytes need.

mod groupby;
mod hashed;
mod join;
mod keyed;
mod large;
mod ordered;
mod partition;
mod ordered_forms;
mod project;
mod random;
mod scan;
mod select;
mod sent;
mod sort;
mod topk;
mod topk_cpu;

use serde_json::{Value, json};
use warpcube_gpu::prims::TileTuning;
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Stream, Work};

use crate::PrimitiveArgs;

/// A run of the suite.
pub(crate) struct Bench<'a> {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    arguments: &'a PrimitiveArgs,
    results: Vec<Value>,
}

impl Bench<'_> {
    /// Whether a case was asked for.
    pub(crate) fn wants(&self, case: &str) -> bool {
        let cases = &self.arguments.cases;
        cases.is_empty() || cases.iter().any(|wanted| case.starts_with(wanted.as_str()))
    }

    /// Whether cases were asked for that are not run otherwise.
    pub(crate) fn names(&self, case: &str) -> bool {
        self.arguments.cases.iter().any(|wanted| case.starts_with(wanted.as_str()) && wanted.contains('-'))
    }

    /// Whether a case was asked for, where all cases are not.
    pub(crate) fn asks_for(&self, case: &str) -> bool {
        self.arguments.cases.iter().any(|wanted| case.starts_with(wanted.as_str()))
    }

    /// Whether a sweep `tune/…` was asked for by name.
    pub(crate) fn names_sweep(&self, sweep: &str) -> bool {
        self.arguments.cases.iter().any(|wanted| wanted.starts_with("tune") && sweep.starts_with(wanted.as_str()))
    }

    /// The shapes of tiles that a case is measured with: its own, if the case was asked for, and others if
    /// `tune/<case>` was asked for by name: as cases `tune/<case>/<threads>x<rows>x<blocks>`.
    pub(crate) fn shapes(&self, case: &str, own: TileTuning) -> Vec<(String, TileTuning)> {
        let mut shapes = Vec::new();
        if self.wants(case) {
            shapes.push((case.to_string(), own));
        }
        let sweep = format!("tune/{case}");
        if self.names_sweep(&sweep) {
            for (threads, blocks) in [(128, 6), (128, 8), (256, 3), (256, 4), (256, 5), (512, 1), (512, 2), (1024, 1)] {
                for rows in [own.rows, own.rows / 2].into_iter().filter(|rows| *rows > 0) {
                    let case = format!("{sweep}/{threads}x{rows}x{blocks}");
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

    /// Milliseconds of work by device events, the median of the runs behind a first one.
    pub(crate) fn time(
        &mut self,
        buffers: &[&DeviceBuffer],
        describe: impl FnOnce(&mut Work) -> Result<(), GpuError>,
    ) -> Result<f64, GpuError> {
        let mut work = Work::new(&self.device);
        let start = work.mark();
        describe(&mut work)?;
        let end = work.mark();
        let mut recording = self.stream.prepare(work)?;
        let mut times = Vec::new();
        for _ in 0..=self.arguments.runs {
            self.stream.run(&mut recording, buffers)?;
            times.push(recording.elapsed_ms(start, end)?);
        }
        times.remove(0);
        times.sort_unstable_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Adds a verified result: its milliseconds beside those that `bytes` need at `bytes_per_second`, and what else
    /// belongs to it.
    pub(crate) fn add(&mut self, case: &str, device_ms: f64, bytes: u64, bytes_per_second: f64, more: Value) {
        let floor_ms = bytes as f64 / bytes_per_second * 1e3;
        println!("{case:<32} {device_ms:>9.4} ms, {:.2} times the floor {floor_ms:.4}", device_ms / floor_ms);
        let mut result = json!({
            "case": case, "device_ms": device_ms, "bytes": bytes, "floor_ms": floor_ms,
            "share_of_peak": floor_ms / device_ms, "verified": true,
        });
        if let (Value::Object(result), Value::Object(more)) = (&mut result, more) {
            result.extend(more);
        }
        self.results.push(result);
    }
}

/// Runs the suite.
pub(crate) fn run(arguments: &PrimitiveArgs) -> Result<(), String> {
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let stream = device.stream().map_err(|error| error.to_string())?;
    let mut bench = Bench { device, stream, arguments, results: Vec::new() };
    select::run(&mut bench)?;
    project::run(&mut bench)?;
    scan::run(&mut bench)?;
    ordered::run(&mut bench)?;
    ordered_forms::run(&mut bench)?;
    sort::run(&mut bench)?;
    topk::run(&mut bench)?;
    random::run(&mut bench)?;
    partition::run(&mut bench)?;
    join::run(&mut bench)?;
    groupby::run(&mut bench)?;
    sent::run(&mut bench)?;
    large::run(&mut bench)?;
    let params = json!({"log_rows": arguments.log_rows, "runs": arguments.runs});
    let report = crate::report("primitives", &bench.device, params, bench.results);
    crate::write(arguments.json.as_deref(), &report)
}
