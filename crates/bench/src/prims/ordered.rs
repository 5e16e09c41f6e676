//! Ordered aggregation of 2^28 sorted keys of 32 bits: counts, and sums of a column of 32 bits, by number of runs.

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element, Reduction, Scan, ScanKind, TileTuning};
use warpcube_gpu::{DeviceBuffer, GpuError, Kernel, Params, Work};

use super::Bench;
use super::hashed::{heads, kernel, numbers, room, scratch, taken, walk, word};
use crate::operators::ordered::{OrderedAggregation, OrderedForm, OrderedOperands};
use crate::operators::roofline::Roofline;
use crate::stats::Sample;
use crate::suite::Failure;

/// Numbers of runs, about; the last is that of all rows distinct.
const RUNS: [u64; 3] = [16, 65_536, 16 << 20];
/// The measured forms: counts, and sums.
pub(super) const COUNT: OrderedForm = OrderedForm { key: Element::U32, count: Some(Element::U32), sum: None };
pub(super) const SUM: OrderedForm =
    OrderedForm { key: Element::U32, count: None, sum: Some((Element::U32, Element::U64)) };

/// Counts wrong runs. Keys are 1, 2, 3, …; `starts` are sums of counts before each run, `prefixes` sums of values
/// before each row. A run is right if its key is its number, a run begins at its start, the last run ends with the
/// rows, and its sum is the difference of prefixes; the host compares the number of runs with the last key.
const CHECK: &str = "struct CheckParams {
    const uint32_t* keys; const uint32_t* found; const uint32_t* starts; const uint32_t* counts;
    const uint64_t* prefixes; const uint64_t* sums; uint64_t* wrong; uint64_t n; uint64_t runs; uint64_t last;
};
WC_KERNEL(ordered_check, CheckParams, 256, 1) {
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t wrong = 0;
    for (uint64_t run = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; run < p.runs; run += stride) {
        const uint64_t start = p.starts[run], end = start + p.counts[run];
        if (start >= p.n || end > p.n || (run + 1 == p.runs && end != p.n) ||
            p.found[run] != (uint32_t)run + 1 || p.keys[start] != (uint32_t)run + 1 ||
            (start > 0 && p.keys[start - 1] != (uint32_t)run)) {
            wrong++;
        } else if (p.sums != nullptr) {
            const uint64_t next = end == p.n ? p.last : p.prefixes[end];
            if (p.sums[run] != next - p.prefixes[start]) wrong++;
        }
    }
    if (wrong != 0) wc_add(p.wrong, wrong);
}";

/// Data that the cases of all numbers of runs share.
pub(super) struct Shared {
    pub(super) n: u64,
    pub(super) values: DeviceSlice,
    /// Sums of values before each row, and of all.
    prefixes: DeviceSlice,
    last: u64,
    pub(super) keys_out: DeviceSlice,
    pub(super) counts: DeviceSlice,
    pub(super) sums: DeviceSlice,
    starts: DeviceSlice,
    pub(super) runs: DeviceSlice,
    wrong: DeviceSlice,
    scan: Scan,
    check: Kernel,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let n = bench.rows(28);
    let wanted = RUNS.map(|runs| bench.scaled(runs)).into_iter().chain([n]);
    let cases: Vec<_> = ["16", "65536", "16777216", "all"]
        .into_iter()
        .zip(wanted)
        .map(|(name, runs)| {
            let shapes = |kind: &str, form: OrderedForm| bench.shapes(&format!("ordered/{kind}/{name}"), form.tuning());
            (runs, shapes("count", COUNT), shapes("sum", SUM))
        })
        .filter(|(_, counts, sums)| !counts.is_empty() || !sums.is_empty())
        .collect();
    if cases.is_empty() {
        return Ok(());
    }
    let shared = Shared::new(bench, n)?;
    for (runs, counts, sums) in cases {
        let keys = shared.keys(bench, runs)?;
        // Sums are verified by the counts.
        let found = shared.counts(bench, &keys, COUNT.tuning())?.1;
        for (case, tuning) in counts {
            let (ms, found) = shared.counts(bench, &keys, tuning)?;
            let (read, written) = (4 * n, 8 * found);
            let more = json!({"rows": n, "runs": found, "predicted_ms": bench.rates.ordered_ms(n, 4, found, 8)});
            bench.add(&case, ms, read + written, bench.ceiling(read, written), more);
        }
        for (case, tuning) in sums {
            let ms = shared.sums(bench, &keys, found, tuning)?;
            let (read, written) = (8 * n, 12 * found);
            let more = json!({"rows": n, "runs": found, "predicted_ms": bench.rates.ordered_ms(n, 8, found, 12)});
            bench.add(&case, ms, read + written, bench.ceiling(read, written), more);
        }
    }
    Ok(())
}

impl Shared {
    pub(super) fn new(bench: &mut Bench<'_>, n: u64) -> Result<Shared, Failure> {
        let device = bench.device.clone();
        let values = numbers(&device, &mut bench.stream, n, 5)?;
        let prefixes = room(&device, Element::U64, n)?;
        let wide = Scan::new(&device, Element::U32, Reduction::Sum(Element::U64), ScanKind::Exclusive)?;
        let memory = scratch(&device, wide.scratch_bytes(n))?;
        wide.launch(&mut bench.stream, &values, &prefixes, &memory)?;
        let last_value = taken::<4>(&mut bench.stream, &values, n - 1, 1)?[0];
        let last = word(&mut bench.stream, &prefixes, n - 1)? + u64::from(u32::from_le_bytes(last_value));
        Ok(Shared {
            n,
            values,
            prefixes,
            last,
            keys_out: room(&device, Element::U32, n)?,
            counts: room(&device, Element::U32, n)?,
            sums: room(&device, Element::U64, n)?,
            starts: room(&device, Element::U32, n)?,
            runs: room(&device, Element::U64, 1)?,
            wrong: room(&device, Element::U64, 1)?,
            scan: Scan::new(&device, Element::U32, Reduction::Sum(Element::U32), ScanKind::Exclusive)?,
            check: kernel(&device, "ordered_check", CHECK)?,
        })
    }

    /// Keys 1, 2, 3, … in about so many runs of random lengths.
    fn keys(&self, bench: &mut Bench<'_>, runs: u64) -> Result<DeviceSlice, GpuError> {
        let keys = heads(&bench.device.clone(), &mut bench.stream, self.n, runs)?;
        self.number(bench, &keys)?;
        Ok(keys)
    }

    /// Makes keys 1, 2, 3, … of heads of runs.
    pub(super) fn number(&self, bench: &mut Bench<'_>, keys: &DeviceSlice) -> Result<(), GpuError> {
        let device = bench.device.clone();
        let numbers = Scan::new(&device, Element::U32, Reduction::Sum(Element::U32), ScanKind::Inclusive)?;
        let memory = scratch(&device, numbers.scratch_bytes(self.n))?;
        numbers.launch(&mut bench.stream, keys, keys, &memory)?;
        bench.stream.synchronize()
    }

    /// Measures and verifies counts; the milliseconds and the number of runs.
    pub(super) fn counts(
        &self,
        bench: &mut Bench<'_>,
        keys: &DeviceSlice,
        tuning: TileTuning,
    ) -> Result<(Sample, u64), Failure> {
        let ms = self.single_pass(bench, keys, COUNT, tuning)?;
        Ok((ms, self.verify_counts(bench, keys)?))
    }

    /// Verifies counts; the number of runs.
    pub(super) fn verify_counts(&self, bench: &mut Bench<'_>, keys: &DeviceSlice) -> Result<u64, Failure> {
        let found = word(&mut bench.stream, &self.runs, 0)?;
        let last_key = u32::from_le_bytes(taken::<4>(&mut bench.stream, keys, self.n - 1, 1)?[0]);
        if found != u64::from(last_key) {
            return Err(format!("ordered counts: {found} runs of {last_key}").into());
        }
        let (counts, starts) = (self.counts.part(0, found)?, self.starts.part(0, found)?);
        let memory = scratch(&bench.device, self.scan.scratch_bytes(found))?;
        self.scan.launch(&mut bench.stream, &counts, &starts, &memory)?;
        self.verify(bench, keys, found, None)?;
        Ok(found)
    }

    /// Measures and verifies sums, by the counts that were verified before.
    fn sums(
        &self,
        bench: &mut Bench<'_>,
        keys: &DeviceSlice,
        runs: u64,
        tuning: TileTuning,
    ) -> Result<Sample, Failure> {
        let ms = self.single_pass(bench, keys, SUM, tuning)?;
        self.verify_sums(bench, keys, runs)?;
        Ok(ms)
    }

    /// Verifies sums, by the counts that were verified before.
    pub(super) fn verify_sums(&self, bench: &mut Bench<'_>, keys: &DeviceSlice, runs: u64) -> Result<(), Failure> {
        let found = word(&mut bench.stream, &self.runs, 0)?;
        if found != runs {
            return Err(format!("ordered sums: {found} runs of {runs}").into());
        }
        self.verify(bench, keys, found, Some(&self.sums))
    }

    fn single_pass(
        &self,
        bench: &mut Bench<'_>,
        keys: &DeviceSlice,
        form: OrderedForm,
        tuning: TileTuning,
    ) -> Result<Sample, GpuError> {
        let aggregation = OrderedAggregation::with_tuning(&bench.device, form, tuning)?;
        let memory = scratch(&bench.device, aggregation.scratch_bytes(self.n))?;
        let operands = self.operands(keys, form);
        self.time(bench, &operands, &memory, |work| aggregation.launch(work, &operands, &memory))
    }

    /// Operands of a form.
    pub(super) fn operands<'a>(&'a self, keys: &'a DeviceSlice, form: OrderedForm) -> OrderedOperands<'a> {
        OrderedOperands {
            keys,
            values: form.sum.map(|_| &self.values),
            keys_out: &self.keys_out,
            counts: form.count.map(|_| &self.counts),
            sums: form.sum.map(|_| &self.sums),
            runs: &self.runs,
        }
    }

    /// Milliseconds of a launch over operands of [`Shared::operands`]. Counts that sums are verified by stay as they
    /// are.
    pub(super) fn time(
        &self,
        bench: &mut Bench<'_>,
        operands: &OrderedOperands<'_>,
        memory: &DeviceBuffer,
        describe: impl FnOnce(&mut Work) -> Result<(), GpuError>,
    ) -> Result<Sample, GpuError> {
        let read: Vec<_> = [operands.keys].into_iter().chain(operands.values).map(DeviceSlice::buffer).collect();
        let outputs = [Some(operands.keys_out), operands.counts, operands.sums, Some(operands.runs)];
        let written: Vec<_> = outputs.into_iter().flatten().map(DeviceSlice::buffer).chain([memory]).collect();
        bench.time(&read, &written, describe)
    }

    fn verify(
        &self,
        bench: &mut Bench<'_>,
        keys: &DeviceSlice,
        found: u64,
        sums: Option<&DeviceSlice>,
    ) -> Result<(), Failure> {
        bench.stream.fill(self.wrong.buffer(), 0, 0, 8)?;
        let params = Params::new().slice(keys).slice(&self.keys_out).slice(&self.starts).slice(&self.counts);
        let params = params.slice(&self.prefixes);
        let params = match sums {
            Some(sums) => params.slice(sums),
            None => params.null(),
        };
        let params = params.slice(&self.wrong).u64(self.n).u64(found).u64(self.last);
        bench.stream.launch(&self.check, walk(&bench.device), &params)?;
        match word(&mut bench.stream, &self.wrong, 0)? {
            0 => Ok(()),
            wrong => Err(format!("ordered aggregation: {wrong} of {found} runs are wrong").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::{Device, EmulatorOptions};

    use super::super::PrimitiveArgs;
    use super::*;
    use crate::suite::Run;

    #[test]
    fn a_wrong_count_of_any_run_is_found() {
        let device = Device::emulated(EmulatorOptions::default(), 64 << 20).unwrap();
        let (arguments, mut unheard) = (PrimitiveArgs::small(13, &[]), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        let shared = Shared::new(&mut bench, 4096).unwrap();
        let keys = shared.keys(&mut bench, 16).unwrap();
        let runs = shared.counts(&mut bench, &keys, COUNT.tuning()).unwrap().1;
        for run in [0, runs / 2, runs - 1] {
            let place = shared.counts.offset() + run as usize * 4;
            let mut count = [0; 4];
            bench.stream.download(shared.counts.buffer(), place, &mut count).unwrap();
            let wrong = (u32::from_le_bytes(count) - 1).to_le_bytes();
            bench.stream.upload(shared.counts.buffer(), place, &wrong).unwrap();
            let failure = shared.verify_counts(&mut bench, &keys).unwrap_err();
            assert!(failure.to_string().contains("runs are wrong"), "run {run} of {runs}: {failure}");
            bench.stream.upload(shared.counts.buffer(), place, &count).unwrap();
            assert_eq!(shared.verify_counts(&mut bench, &keys).unwrap(), runs);
        }
    }
}
