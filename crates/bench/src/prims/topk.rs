//! Top-k: every algorithm over k, every distribution, the ablation of Bitonic Top-K, and the CPU's heaps.
//!
//! A case is `topk/<type>/<distribution>/<k>`; `--cases topk/f32/uniform/32/radix_select` names an algorithm too.
//! Each result is verified on the device: its rows hold its keys, are in order and differ, and as many keys of the
//! input are better than the last one as of the result.

use serde_json::json;
use warpcube_gpu::prims::topk::{
    Algorithm, BitonicLevel, Machine, TOPK_TUNING, TopK, TopKSpec, TopKTuning, predict_ms,
};
use warpcube_gpu::prims::{DeviceSlice, Element, KEYS};
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Kernel, LaunchShape, Params, Program, Work};

use super::{Bench, topk_cpu};
use crate::stats::Sample;
use crate::suite::Failure;

/// Input of a case.
const DISTRIBUTIONS: [&str; 8] =
    ["uniform", "ascending", "descending", "equal", "few", "normal", "bucket_killer", "special"];

/// k of the paper's figures, and the largest.
const KS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1 << 20];

/// The input and the checks. `DISTRIBUTION` counts as DISTRIBUTIONS does; `special` has NaN, infinities and zeros of
/// both signs.
const KERNELS: &str = r"
typedef WcKey<KEY>::Bits Bits;

WC_DEVICE uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
// A share of the positive values of an integer type, or the share itself.
WC_DEVICE KEY scaled(double share) {
    if ((KEY)0.5 != (KEY)0) return (KEY)share;
    return (KEY)(share * (sizeof(KEY) == 4 ? 2147483647.0 : 9223372036854774784.0));
}
WC_DEVICE double share(uint64_t hash) { return (double)(hash >> 11) * 0x1p-53; }
WC_DEVICE KEY made(uint64_t i, uint64_t n) {
    const uint64_t hash = mix(i + 0x9e3779b97f4a7c15ull);
    switch (DISTRIBUTION) {
        case 1: return scaled((double)i / (double)n);
        case 2: return scaled((double)(n - 1 - i) / (double)n);
        case 3: return (KEY)1;
        case 4: return (KEY)(hash % 16);
        case 5: {
            const double radius = sqrt(-2.0 * log(share(hash) + 0x1p-54));
            const double value = radius * cos(6.283185307179586 * share(mix(hash)));
            return (KEY)0.5 != (KEY)0 ? (KEY)value : (KEY)(int64_t)(value * 1048576.0);
        }
        case 6: {
            // Keys that differ from all others in one byte each.
            Bits bits = WcKey<KEY>::to_bits((KEY)1);
            const uint64_t part = n / (sizeof(KEY) + 1) + 1;
            if (i % part == part - 1) bits ^= (Bits)1 << (8 * (i / part) + 3);
            return WcKey<KEY>::from_bits(bits);
        }
        case 7: {
            const KEY usual = scaled(share(hash));
            switch (mix(hash) % 64) {
                case 0: return (KEY)(0.0 / zero());
                case 1: return (KEY)(1.0 / zero());
                case 2: return (KEY)(-1.0 / zero());
                case 3: return (KEY)-0.0;
                default: return usual;
            }
        }
        default: return (KEY)0.5 != (KEY)0 ? scaled(share(hash)) : (KEY)hash;
    }
}

struct MakeParams { KEY* keys; uint64_t n; };
WC_KERNEL(make, MakeParams, 256, 4) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += step) p.keys[i] = made(i, p.n);
}

struct VerifyParams {
    const KEY* keys; uint64_t n; const KEY* out_keys; const ROW* out_rows; uint64_t k;
    // Better than the last key, equal to it; wrong places of the result, and those better than the last.
    uint64_t* counts;
};
WC_KERNEL(verify, VerifyParams, 256, 4) {
    const Bits last = WcKey<KEY>::to_bits(p.out_keys[p.k - 1]);
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x, own = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t better = 0, equal = 0, wrong = 0, found = 0;
    for (uint64_t i = own; i < p.n; i += step) {
        const Bits bits = WcKey<KEY>::to_bits(p.keys[i]);
        better += bits > last;
        equal += bits == last;
    }
    for (uint64_t i = own; i < p.k; i += step) {
        const Bits bits = WcKey<KEY>::to_bits(p.out_keys[i]);
        const uint64_t row = p.out_rows[i];
        wrong += row >= p.n || WcKey<KEY>::to_bits(p.keys[row]) != bits;
        found += bits > last;
        if (i > 0) {
            const Bits before = WcKey<KEY>::to_bits(p.out_keys[i - 1]);
            wrong += before < bits || (before == bits && p.out_rows[i - 1] >= row);
        }
    }
    better = wc_warp_sum(better);
    equal = wc_warp_sum(equal);
    wrong = wc_warp_sum(wrong);
    found = wc_warp_sum(found);
    if (wc_lane() == 0) {
        wc_add(p.counts, better);
        wc_add(p.counts + 1, equal);
        wc_add(p.counts + 2, wrong);
        wc_add(p.counts + 3, found);
    }
}
";

/// Keys of a distribution on the device, with what checks results over them.
struct Input {
    keys: DeviceSlice,
    buffer: DeviceBuffer,
    verify: Kernel,
    shape: LaunchShape,
}

impl Input {
    fn new(bench: &mut Bench<'_>, element: Element, distribution: usize, n: u64) -> Result<Input, GpuError> {
        let text = format!(
            "#define KEY {}\n#define ROW uint32_t\n#define DISTRIBUTION {distribution}\n{KEYS}\
             WC_DEVICE double zero() {{ return (double)(gridDim.x / 0x40000000u); }}\n{KERNELS}",
            element.c_type()
        );
        let module = bench.device.compile(&Program::new("topk_input", text))?;
        let shape = LaunchShape { grid: bench.device.info().multiprocessors * 8, block: 256, shared_bytes: 0 };
        let buffer = bench.device.buffer(n as usize * element.bytes(), "keys")?;
        bench.stream.launch(&module.kernel("make")?, shape, &Params::new().buffer(&buffer).u64(n))?;
        bench.stream.synchronize()?;
        Ok(Input { keys: DeviceSlice::all(&buffer, element), buffer, verify: module.kernel("verify")?, shape })
    }

    /// Whether keys and rows are the largest, in order.
    fn check(&self, bench: &mut Bench<'_>, keys: &DeviceBuffer, rows: &DeviceBuffer, k: u64) -> Result<bool, GpuError> {
        let counts = bench.device.buffer(32, "counts")?;
        bench.stream.fill(&counts, 0, 0, 32)?;
        let params = Params::new().buffer(&self.buffer).u64(self.keys.len());
        let params = params.buffer(keys).buffer(rows).u64(k).buffer(&counts);
        bench.stream.launch(&self.verify, self.shape, &params)?;
        let mut words = [0u8; 32];
        bench.stream.download(&counts, 0, &mut words)?;
        let word = |at: usize| u64::from_le_bytes(words[at * 8..at * 8 + 8].try_into().unwrap_or_default());
        let (better, equal, wrong, found) = (word(0), word(1), word(2), word(3));
        Ok(wrong == 0 && better < k && better + equal >= k && found == better)
    }
}

/// Runs the cases that were asked for.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    for element in [Element::F32, Element::I32, Element::U32, Element::F64, Element::I64, Element::U64] {
        for (at, distribution) in DISTRIBUTIONS.into_iter().enumerate() {
            let is_float = matches!(element, Element::F32 | Element::F64);
            if distribution == "special" && !is_float {
                continue;
            }
            let cases = cases(element, distribution);
            let case_of = |k: u64| format!("topk/{element}/{distribution}/{k}");
            let wanted: Vec<_> = cases
                .into_iter()
                .filter(|(k, algorithm)| bench.wants(&format!("{}/{algorithm}", case_of(*k))))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            // As many bytes of keys of 64 bits as of 32.
            let n = bench.rows(if element.bytes() == 8 { 28 } else { 29 });
            let input = Input::new(bench, element, at, n)?;
            for (k, algorithm) in wanted {
                one(bench, &input, &case_of(k), k, algorithm, TOPK_TUNING)?;
            }
        }
    }
    tunings(bench)?;
    topk_cpu::run(bench)
}

/// k and algorithms of a distribution: all of both over uniform floats, the paper's figures elsewhere.
fn cases(element: Element, distribution: &str) -> Vec<(u64, Algorithm)> {
    let main = element == Element::F32;
    let figure = main && ["uniform", "ascending", "bucket_killer"].contains(&distribution);
    let mut cases = Vec::new();
    for k in KS {
        let few = [1, 32, 256, 1 << 20].contains(&k);
        if main || few {
            cases.push((k, Algorithm::Threshold));
        }
        let others = if figure { true } else { distribution == "uniform" && k == 32 };
        if others {
            cases.extend(Algorithm::ALL.into_iter().skip(1).map(|algorithm| (k, algorithm)));
        }
    }
    if main && distribution == "uniform" {
        let levels = BitonicLevel::ALL.into_iter().filter(|level| *level != BitonicLevel::Reassigned);
        cases.extend(levels.map(|level| (32, Algorithm::Bitonic(level))));
    }
    cases
}

/// Measures one algorithm; those that cannot take k are left out.
fn one(
    bench: &mut Bench<'_>,
    input: &Input,
    case: &str,
    k: u64,
    algorithm: Algorithm,
    tuning: TopKTuning,
) -> Result<(), Failure> {
    let (element, n) = (input.keys.element(), input.keys.len());
    let spec = TopKSpec { rows: Element::U32, ..TopKSpec::new(element, k, algorithm) };
    let top = match TopK::with_tuning(&bench.device, &spec, tuning) {
        Err(GpuError::Contract(reason)) => {
            bench.leave_out(&format!("{case}/{algorithm}"), &reason);
            return Ok(());
        }
        other => other?,
    };
    let room = Room::new(&bench.device, element, top.results(n), top.scratch_bytes(n))?;
    let launch = |work: &mut Work| top.launch(work, &input.keys, &room.keys, &room.rows, &room.scratch);
    let Some(ms) = measure(bench, input, &room, launch)? else {
        return Err(format!("{case} by {algorithm}: the result is wrong").into());
    };
    let predicted = predict_ms(&Machine::of(&bench.rates), &spec, n);
    let tuned = format!("{}x{}x{}", tuning.vectors, tuning.filter_threads, tuning.filter_blocks);
    let more = json!({
        "algorithm": algorithm.to_string(), "n": n, "k": k, "predicted_ms": predicted,
        "scratch_bytes": top.scratch_bytes(n), "tuning": tuned,
    });
    bench.add(case, ms, n * element.bytes() as u64, bench.rates.read.value, more);
    Ok(())
}

/// Room for a result, and scratch memory.
struct Room {
    keys: DeviceSlice,
    rows: DeviceSlice,
    scratch: DeviceBuffer,
}

impl Room {
    fn new(device: &Device, element: Element, results: u64, scratch_bytes: usize) -> Result<Room, GpuError> {
        let keys = device.buffer(results as usize * element.bytes(), "keys of the result")?;
        let rows = device.buffer(results as usize * 4, "rows of the result")?;
        let scratch = device.buffer(scratch_bytes, "scratch")?;
        Ok(Room { keys: DeviceSlice::all(&keys, element), rows: DeviceSlice::all(&rows, Element::U32), scratch })
    }
}

/// Milliseconds of a launch that writes to a room; none if the result is wrong.
fn measure(
    bench: &mut Bench<'_>,
    input: &Input,
    room: &Room,
    launch: impl FnOnce(&mut Work) -> Result<(), GpuError>,
) -> Result<Option<Sample>, GpuError> {
    let (keys, rows) = (room.keys.buffer(), room.rows.buffer());
    let ms = bench.time(&[&input.buffer], &[keys, rows, &room.scratch], launch)?;
    Ok(input.check(bench, keys, rows, room.keys.len())?.then_some(ms))
}

/// Shapes of the filter: `--cases tune/topk`.
fn tunings(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let mut cases = Vec::new();
    for vectors in [2, 4, 8] {
        for (filter_threads, filter_blocks) in [(256, 2), (256, 3), (256, 4), (256, 5), (512, 2), (1024, 1), (128, 8)] {
            let tuning = TopKTuning { vectors, filter_threads, filter_blocks, ..TOPK_TUNING };
            let shape = format!("{vectors}x{filter_threads}x{filter_blocks}");
            cases.extend([32, 1 << 20].map(|k| (format!("tune/topk/f32/uniform/{k}/{shape}"), k, tuning)));
        }
    }
    cases.retain(|(case, ..)| bench.wants_sweep(case));
    if cases.is_empty() {
        return Ok(());
    }
    let input = Input::new(bench, Element::F32, 0, bench.rows(29))?;
    for (case, k, tuning) in cases {
        one(bench, &input, &case, k, Algorithm::Threshold, tuning)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::EmulatorOptions;

    use super::*;
    use crate::prims::PrimitiveArgs;
    use crate::suite::Run;

    #[test]
    fn cases_run_small_on_the_emulated_device() {
        let device = Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap();
        let (arguments, mut unheard) = (PrimitiveArgs::small(16, &[]), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        for element in [Element::F32, Element::I64] {
            for (at, distribution) in DISTRIBUTIONS.into_iter().enumerate().filter(|(at, _)| *at < 7) {
                let input = Input::new(&mut bench, element, at, 1 << 16).unwrap();
                for algorithm in [Algorithm::Threshold, Algorithm::RadixSelect] {
                    one(&mut bench, &input, distribution, 32, algorithm, TOPK_TUNING).unwrap();
                }
            }
        }
        let special = Input::new(&mut bench, Element::F32, 7, 1 << 16).unwrap();
        one(&mut bench, &special, "special", 2000, Algorithm::Threshold, TOPK_TUNING).unwrap();
        assert_eq!(bench.run.report.results.len(), 29);

        // A result without the best key is found wrong.
        let keys = bench.device.buffer(4, "key").unwrap();
        let rows = bench.device.buffer(4, "row").unwrap();
        let first = [0u8; 4];
        bench.stream.upload(&rows, 0, &first).unwrap();
        bench.stream.copy(&keys, 0, &special.buffer, 0, 4).unwrap();
        assert!(!special.check(&mut bench, &keys, &rows, 1).unwrap());
    }

    #[test]
    fn a_launch_that_writes_nothing_is_refused() {
        let device = Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap();
        let (arguments, mut unheard) = (PrimitiveArgs::small(16, &[]), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        let input = Input::new(&mut bench, Element::F64, 0, 1 << 16).unwrap();
        let spec = TopKSpec { rows: Element::U32, ..TopKSpec::new(Element::F64, 256, Algorithm::RadixSelect) };
        let top = TopK::new(&device, &spec).unwrap();
        // The emulated device loses the content of buffers that go back to the pool, a GPU does not.
        let room = Room::new(&device, Element::F64, top.results(1 << 16), top.scratch_bytes(1 << 16)).unwrap();
        let right = measure(&mut bench, &input, &room, |work| {
            top.launch(work, &input.keys, &room.keys, &room.rows, &room.scratch)
        });
        assert!(right.unwrap().is_some());
        assert_eq!(measure(&mut bench, &input, &room, |_| Ok(())).unwrap(), None);
    }

    #[test]
    fn the_figures_are_there() {
        let uniform = cases(Element::F32, "uniform");
        assert!(Algorithm::ALL.iter().all(|algorithm| uniform.contains(&(64, *algorithm))));
        assert!(BitonicLevel::ALL.iter().all(|level| uniform.contains(&(32, Algorithm::Bitonic(*level)))));
        assert!(cases(Element::F32, "special").iter().all(|(_, algorithm)| *algorithm == Algorithm::Threshold));
    }
}
