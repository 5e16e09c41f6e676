//! A run of the suite `primitives`, as a family of cases sees it: which cases to run, how they are timed, and their
//! results.

use std::cell::RefCell;

use serde_json::{Value, json};
use warpcube_gpu::prims::TileTuning;
use warpcube_gpu::prims::roofline::DeviceRates;
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Stream, Work};

use super::args::PrimitiveArgs;
use super::rivals::Rivals;
use crate::operators::roofline::Roofline;
use crate::report::Case;
use crate::stats::Sample;
use crate::suite::{COMMIT, Filter, Run, is_named, today};
use crate::timing::timed;

/// The prefix of the names of sweeps, which run only if `--cases` names them.
pub(super) const SWEEPS: &str = "tune";

/// What a family measures with.
pub(crate) struct Bench<'a> {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    /// Measured rates, from which floors and predictions are computed.
    pub(crate) rates: DeviceRates,
    pub(super) arguments: &'a PrimitiveArgs,
    pub(super) rivals: Option<&'a Rivals>,
    pub(super) run: &'a mut Run,
    /// Names of cases that were asked for, if they are only listed.
    pub(super) listed: Option<RefCell<Vec<String>>>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(device: &Device, arguments: &'a PrimitiveArgs, run: &'a mut Run) -> Result<Bench<'a>, GpuError> {
        let (device, stream, rates) = (device.clone(), device.stream()?, DeviceRates::of(device.info()));
        Ok(Bench { device, stream, rates, arguments, rivals: None, run, listed: None })
    }

    /// Whether a case was asked for.
    pub(crate) fn wants(&self, case: &str) -> bool {
        Filter(&self.arguments.cases).wants(case) && self.is_run(case)
    }

    /// Whether a case that begins with `tune/` was asked for by such a name.
    pub(crate) fn wants_sweep(&self, case: &str) -> bool {
        let mut named = self.arguments.cases.iter().filter(|wanted| is_named(wanted, SWEEPS));
        named.any(|wanted| is_named(case, wanted)) && self.is_run(case)
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
        Filter(&self.arguments.cases).names(case) && self.is_run(case)
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

    /// Times of work by device events. Every byte of the buffers that the work has to write is 0xff before the first
    /// run: the pool returns blocks with the outputs of earlier cases, which verify work that writes nothing.
    pub(crate) fn time(
        &mut self,
        read: &[&DeviceBuffer],
        written: &[&DeviceBuffer],
        describe: impl FnOnce(&mut Work) -> Result<(), GpuError>,
    ) -> Result<Sample, GpuError> {
        for buffer in written {
            self.stream.fill(buffer, 0, 0xff, buffer.bytes())?;
        }
        let buffers: Vec<&DeviceBuffer> = read.iter().chain(written).copied().collect();
        timed(&self.device, &mut self.stream, self.arguments.runs, &buffers, || self.run.go_on(), describe)
    }

    /// Bytes a second of a case that reads and writes so many, by the roofline.
    pub(crate) fn ceiling(&self, read: u64, written: u64) -> f64 {
        (read + written) as f64 / self.rates.stream_ms(read as f64, written as f64) * 1e3
    }

    /// Adds a verified result: its time beside that which `bytes` need at `bytes_per_second`, and what else belongs to
    /// it. There is no floor on a device that does not tell the peak of its memory.
    pub(crate) fn add(&mut self, case: &str, time: Sample, bytes: u64, bytes_per_second: f64, more: Value) {
        let mut result = Case::new(case, json!({"device_ms": time.ms, "spread": time.spread, "bytes": bytes}));
        if self.device.info().peak_bandwidth > 0.0 {
            let floor_ms = bytes as f64 / bytes_per_second * 1e3;
            result.put("floor_ms", floor_ms);
            result.put("share_of_peak", floor_ms / time.ms);
        }
        self.keep(result, more);
    }

    /// Adds a verified result of a case whose bytes are not known.
    pub(crate) fn add_without_floor(&mut self, case: &str, time: Sample, more: Value) {
        self.keep(Case::new(case, json!({"device_ms": time.ms, "spread": time.spread})), more);
    }

    fn keep(&mut self, mut result: Case, more: Value) {
        result.put("date", today());
        result.put("timed_runs", self.arguments.runs);
        if let Some(commit) = COMMIT {
            result.put("commit", commit);
        }
        if let Value::Object(more) = more {
            result.figures.extend(more);
        }
        result.rivals = self.rivals.map(|rivals| rivals.of(&result.name)).unwrap_or_default();
        self.run.add(result.verified(true));
    }

    /// Notes that a case cannot be measured.
    pub(crate) fn leave_out(&mut self, case: &str, reason: &str) {
        self.run.leave_out(case, reason);
    }
}
