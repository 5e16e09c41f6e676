//! Selection of 2^29 floats below a bound, by selectivity, in any order and in that of the input.

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element, Moved, Predicate, Select, SelectOperands, SelectOrder, TileTuning};
use warpcube_gpu::{Kernel, Params, Stream};

use super::Bench;
use super::hashed::{floats, kernel, room, scratch, taken, walk, word};
use crate::operators::roofline::Roofline;
use crate::suite::Failure;

/// Items at both ends of the input whose order is compared.
const SAMPLE: u64 = 1 << 20;

/// Count and sum of hashes of the items below a bound.
const CHECK: &str = "struct CheckParams { const float* in; uint64_t* sums; uint64_t n; double bound; };
WC_KERNEL(select_check, CheckParams, 256, 1) {
    uint64_t count = 0, sum = 0;
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.n; row += stride) {
        if ((double)p.in[row] < p.bound) {
            count++;
            const uint64_t bits = __float_as_uint(p.in[row]) * 0x9e3779b97f4a7c15ull;
            sum += bits ^ bits >> 29;
        }
    }
    count = wc_warp_sum(count);
    sum = wc_warp_sum(sum);
    if (wc_lane() == 0) {
        wc_add(p.sums, count);
        wc_add(p.sums + 1, sum);
    }
}";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let predicate = || Predicate::Text("x < a".into());
    let mut cases: Vec<(SelectOrder, &str, u64, String, TileTuning)> = Vec::new();
    for (order, name) in [(SelectOrder::Any, "any"), (SelectOrder::Stable, "stable")] {
        let own = Select::tuning(Element::F32, &predicate(), Moved::Values, order);
        for percent in (0..=100).step_by(10) {
            let shapes = bench.shapes(&format!("select/{percent}/{name}"), own);
            cases.extend(shapes.into_iter().map(|(case, tuning)| (order, name, percent, case, tuning)));
        }
    }
    if cases.is_empty() {
        return Ok(());
    }
    let (device, n) = (bench.device.clone(), bench.rows(29));
    let input = floats(&device, &mut bench.stream, n, 1)?;
    let (out, count) = (room(&device, Element::F32, n)?, room(&device, Element::U64, 1)?);
    let check = Check { kernel: kernel(&device, "select_check", CHECK)?, sums: room(&device, Element::U64, 2)? };
    for (order, name, percent, case, tuning) in cases {
        let (item, moved) = (Element::F32, Moved::Values);
        let selects = Select::with_tuning(&device, item, predicate(), moved, order, tuning)?;
        let memory = scratch(&device, selects.scratch_bytes(n))?;
        let bound = percent as f32 / 100.0;
        let bounds = [bound.to_bits().into(), 0];
        let operands = SelectOperands { input: Some(&input), flags: None, bounds, out: &out, count: &count };
        let written = [out.buffer(), count.buffer(), &memory];
        let ms = bench.time(&[input.buffer()], &written, |work| selects.launch(work, &operands, &memory))?;
        let selected = word(&mut bench.stream, &count, 0)?;
        if selected > n {
            return Err(format!("{case}: {selected} of {n} rows").into());
        }
        let expected = check.of(bench, &input, n, bound.into())?;
        let found = check.of(bench, &out, selected, f64::INFINITY)?;
        if found != expected {
            return Err(format!("{case}: {found:?} instead of {expected:?}").into());
        }
        if order == SelectOrder::Stable {
            check_order(&mut bench.stream, [&input, &out], [n, selected], bound)?;
        }
        let predicted_ms = bench.rates.select_ms(n, selected, item.bytes());
        let more = json!({"order": name, "rows": n, "selected": selected, "predicted_ms": predicted_ms});
        let (read, written) = (4 * n, 4 * selected);
        // The order is a field of the result.
        let case = case.strip_suffix(name).map_or(case.as_str(), |case| case.trim_end_matches('/'));
        bench.add(case, ms, read + written, bench.ceiling(read, written), more);
    }
    Ok(())
}

/// The kernel that counts and sums, and room for what it finds.
struct Check {
    kernel: Kernel,
    sums: DeviceSlice,
}

impl Check {
    /// Count and sum of the first `n` items that are below a bound.
    fn of(&self, bench: &mut Bench<'_>, items: &DeviceSlice, n: u64, bound: f64) -> Result<[u64; 2], Failure> {
        let stream = &mut bench.stream;
        stream.fill(self.sums.buffer(), 0, 0, 16)?;
        let params = Params::new().slice(items).slice(&self.sums).u64(n).f64(bound);
        stream.launch(&self.kernel, walk(&bench.device), &params)?;
        Ok([word(stream, &self.sums, 0)?, word(stream, &self.sums, 1)?])
    }
}

/// Compares what begins and what ends the output with the selection from both ends of the input.
fn check_order(
    stream: &mut Stream,
    [input, out]: [&DeviceSlice; 2],
    [n, selected]: [u64; 2],
    bound: f32,
) -> Result<(), Failure> {
    let sample = n.min(SAMPLE);
    for from in [0, n - sample] {
        let items = taken::<4>(stream, input, from, sample)?.into_iter();
        let expected: Vec<[u8; 4]> = items.filter(|item| f32::from_le_bytes(*item) < bound).collect();
        let len = expected.len() as u64;
        let at = if from == 0 { 0 } else { selected.saturating_sub(len) };
        if len > selected || taken::<4>(stream, out, at, len)? != expected {
            return Err(format!("the selection below {bound} of rows from {from} on is out of order").into());
        }
    }
    Ok(())
}
