//! Radix sort of keys and pairs by each algorithm, and segmented sort: the cases `sort/…` and `segsort/…`;
//! `--cases sort/keys/u32/msd` names an algorithm too.
//!
//! Key number i is a hash of i, and the payload of pairs is i. Sorted pairs are right if (key, payload) ascends
//! strictly and every key is the hash of its payload; sorted keys are right if they ascend in each segment and the sums
//! of a hash of (key, segment) are those of the input. `tune/sort/…` measures other cuts into blocks, if asked for.

use std::sync::Arc;

use serde_json::json;
use warpcube_gpu::prims::roofline::DeviceRates;
use warpcube_gpu::prims::{
    DeviceSlice, Element, RadixAlgorithm, RadixOrder, RadixSort, RadixTuning, Records, SegmentedSort, SegmentedTuning,
};
use warpcube_gpu::{DeviceBuffer, GpuError, Kernel, LaunchShape, Module, Params, Program};

use super::Bench;
use crate::operators::roofline::Roofline;
use crate::stats::Sample;
use crate::suite::Failure;

/// Threads of a block that makes or checks data.
const BLOCK: u32 = 256;

/// Kernels that make and check data of `Key`; `offsets` are those of segments, or null.
const DATA: &str = "
struct DataParams {
    Key* keys; uint32_t* values; uint64_t rows; const uint64_t* offsets; uint64_t segments; uint64_t* results;
};

WC_DEVICE uint64_t hash(uint64_t at) {
    uint64_t bits = (at + 1) * 0x9e3779b97f4a7c15ull;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
    return bits ^ bits >> 31;
}
WC_DEVICE Key key_of(uint64_t row) { return (Key)(hash(row) >> (64 - 8 * sizeof(Key))); }

WC_KERNEL(make, DataParams, 256, 4) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.rows; row += step) {
        p.keys[row] = key_of(row);
        if (p.values != nullptr) p.values[row] = (uint32_t)row;
    }
}

// Adds to result 0 the rows out of place, to 1 the hash of all (key, segment), to 2 that of the input.
WC_KERNEL(check, DataParams, 256, 4) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    uint64_t wrong = 0, found = 0, expected = 0;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.rows; row += step) {
        const Key key = p.keys[row];
        uint64_t segment = 0;
        bool last = row + 1 == p.rows;
        if (p.offsets != nullptr) {
            uint64_t low = 0, high = p.segments;
            while (low < high) {
                const uint64_t middle = (low + high) / 2;
                if (p.offsets[middle + 1] <= row) { low = middle + 1; } else { high = middle; }
            }
            segment = low;
            last = p.offsets[segment + 1] == row + 1;
        }
        found += hash((uint64_t)key + segment * 0xd1342543de82ef95ull);
        expected += hash((uint64_t)key_of(row) + segment * 0xd1342543de82ef95ull);
        if (p.values != nullptr && key != key_of(p.values[row])) ++wrong;
        if (last) continue;
        const Key next = p.keys[row + 1];
        const bool ascends = p.values == nullptr ? key <= next
            : key < next || (key == next && p.values[row] < p.values[row + 1]);
        if (!ascends) ++wrong;
    }
    wc_add(p.results + 0, wrong);
    wc_add(p.results + 1, found);
    wc_add(p.results + 2, expected);
}
";

/// Input, output and the other place of a sort.
struct Data {
    key: Element,
    rows: u64,
    keys: [DeviceBuffer; 3],
    values: Option<[DeviceBuffer; 3]>,
    module: Arc<Module>,
}

impl Data {
    /// Makes the input.
    fn new(bench: &mut Bench<'_>, key: Element, pairs: bool, rows: u64) -> Result<Data, GpuError> {
        let source = format!("typedef {} Key;\n{DATA}", key.c_type());
        let module = bench.device.compile(&Program::new(format!("sort_data_{key}"), source))?;
        let device = bench.device.clone();
        let three = |bytes: usize| -> Result<[DeviceBuffer; 3], GpuError> {
            let place = || device.buffer(bytes, "a place of a sort");
            Ok([place()?, place()?, place()?])
        };
        let keys = three(rows as usize * key.bytes())?;
        let values = if pairs { Some(three(rows as usize * 4)?) } else { None };
        let data = Data { key, rows, keys, values, module };
        let make = data.module.kernel("make")?;
        data.launch(bench, &make, 0, None, None)?;
        Ok(data)
    }

    fn launch(
        &self,
        bench: &mut Bench<'_>,
        kernel: &Kernel,
        place: usize,
        offsets: Option<&DeviceSlice>,
        results: Option<&DeviceBuffer>,
    ) -> Result<(), GpuError> {
        let params = Params::new().buffer(&self.keys[place]);
        let params = match &self.values {
            Some(values) => params.buffer(&values[place]),
            None => params.null(),
        };
        let params = params.u64(self.rows);
        let params = match offsets {
            Some(offsets) => params.slice(offsets).u64(offsets.len() - 1),
            None => params.null().u64(0),
        };
        let params = match results {
            Some(results) => params.buffer(results),
            None => params.null(),
        };
        let resident = u64::from(bench.device.info().multiprocessors) * 8;
        let grid = self.rows.div_ceil(BLOCK.into()).clamp(1, resident) as u32;
        bench.stream.launch(kernel, LaunchShape { grid, block: BLOCK, shared_bytes: 0 }, &params)
    }

    /// Whether the output is the input in order.
    fn verify(&self, bench: &mut Bench<'_>, offsets: Option<&DeviceSlice>) -> Result<(), Failure> {
        let check = |bench: &mut Bench<'_>| -> Result<[u64; 3], GpuError> {
            let results = bench.device.buffer(24, "results")?;
            bench.stream.fill(&results, 0, 0, 24)?;
            let kernel = self.module.kernel("check")?;
            self.launch(bench, &kernel, 1, offsets, Some(&results))?;
            let mut bytes = [0; 24];
            bench.stream.download(&results, 0, &mut bytes)?;
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]));
            Ok([word(0), word(1), word(2)])
        };
        let [wrong, found, expected] = check(bench)?;
        match (wrong, found == expected) {
            (0, true) => Ok(()),
            _ => {
                let sums = format!("sums of hashes {found:#x}, of the input {expected:#x}");
                Err(format!("{wrong} rows are out of place; {sums}").into())
            }
        }
    }

    fn slices(&self) -> [(DeviceSlice, Option<DeviceSlice>); 3] {
        [0, 1, 2].map(|at| {
            let values = self.values.as_ref().map(|values| DeviceSlice::all(&values[at], Element::U32));
            (DeviceSlice::all(&self.keys[at], self.key), values)
        })
    }

    /// Milliseconds of a sort, whose launch is given input, output and the other place.
    fn time(
        &self,
        bench: &mut Bench<'_>,
        offsets: Option<&DeviceBuffer>,
        scratch: &DeviceBuffer,
        sort: impl FnOnce(&mut warpcube_gpu::Work, [Records<'_>; 3]) -> Result<(), GpuError>,
    ) -> Result<Sample, GpuError> {
        let slices = self.slices();
        let records = slices.each_ref().map(|(keys, values)| Records { keys, values: values.as_ref() });
        let columns = || [&self.keys].into_iter().chain(&self.values);
        let read: Vec<_> = columns().map(|places| &places[0]).chain(offsets).collect();
        let written: Vec<_> = columns().flat_map(|places| &places[1..]).chain([scratch]).collect();
        bench.time(&read, &written, |work| sort(work, records))
    }

    /// Milliseconds of a sort by all bits, by the roofline's rate of sorts.
    fn predicted_ms(&self, rates: &DeviceRates, algorithm: RadixAlgorithm) -> f64 {
        let (key, payload) = (self.key.bytes(), if self.values.is_some() { 4 } else { 0 });
        rates.sorted_ms(algorithm, self.rows, key, key + payload, key as u32)
    }

    /// Bytes that a sort by all bits moves, and those a second by the roofline: keys for counts, once or twice by the
    /// algorithm, and keys and payload in and out a pass.
    fn bytes(&self, rates: &DeviceRates, algorithm: RadixAlgorithm) -> (u64, f64) {
        let (key, payload) = (self.key.bytes(), if self.values.is_some() { 4 } else { 0 });
        let counts = match algorithm {
            RadixAlgorithm::Lsd => 1,
            RadixAlgorithm::Msd => 2,
        };
        let bytes = self.rows * (key * counts + key * 2 * (key + payload)) as u64;
        (bytes, bytes as f64 / rates.sort_ms(algorithm, self.rows, key, key + payload, key as u32) * 1e3)
    }
}

/// Runs the cases that were asked for.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let cases = [
        ("keys/u32", Element::U32, false, 28),
        ("pairs/u32", Element::U32, true, 28),
        ("pairs/u64", Element::U64, true, 27),
    ];
    for (name, key, pairs, log) in cases {
        let case = format!("sort/{name}");
        let payload = pairs.then_some(Element::U32);
        let shared_bytes = bench.device.info().shared_memory_per_block;
        let usual = RadixTuning::of(shared_bytes, key, payload);
        for algorithm in RadixAlgorithm::ALL {
            let named = match algorithm {
                RadixAlgorithm::Lsd => case.clone(),
                other => format!("{case}/{other}"),
            };
            if bench.wants(&named) {
                sort(bench, &case, key, pairs, log, algorithm, usual).map_err(|failure| failure.at(&case))?;
            }
        }
        for (threads, items, blocks) in tunings(usual.items) {
            let case = format!("tune/{case}/{threads}x{items}x{blocks}");
            let tuning = RadixTuning { threads, items, blocks, ..usual };
            if bench.wants_sweep(&case) {
                sort(bench, &case, key, pairs, log, RadixAlgorithm::Lsd, tuning)
                    .map_err(|failure| failure.at(&case))?;
            }
        }
    }
    for log in (4..=24).step_by(4) {
        let segments = 1u64 << log;
        let case = format!("segsort/{segments}");
        let usual = SegmentedTuning::of(bench.device.info().shared_memory_per_block, Element::U32, None);
        if bench.wants(&case) {
            segmented(bench, &case, bench.scaled(segments), usual).map_err(|failure| failure.at(&case))?;
        }
        for (name, tuning) in segmented_tunings(usual) {
            let case = format!("tune/{case}/{name}");
            if bench.wants_sweep(&case) {
                segmented(bench, &case, bench.scaled(segments), tuning).map_err(|failure| failure.at(&case))?;
            }
        }
    }
    Ok(())
}

/// Segmented sorts to compare.
fn segmented_tunings(usual: SegmentedTuning) -> Vec<(&'static str, SegmentedTuning)> {
    let radix = |items: u32, count_threads: u32| RadixTuning { items, count_threads, ..usual.radix };
    vec![
        ("items19", SegmentedTuning { radix: radix(19, 512), ..usual }),
        ("items23", SegmentedTuning { radix: radix(23, 512), ..usual }),
        ("count1024", SegmentedTuning { radix: radix(usual.radix.items, 1024), count_blocks: 1, ..usual }),
        ("digits", SegmentedTuning { pack_comparisons: 0, ..usual }),
        ("digits-pack8", SegmentedTuning { pack_comparisons: 0, pack_items: 8, pack_blocks: 3, ..usual }),
    ]
}

/// Threads, rows of a thread and blocks a multiprocessor to compare, around the usual rows of a thread.
fn tunings(items: u32) -> Vec<(u32, u32, u32)> {
    let shapes = [(256, 4), (384, 2), (384, 3), (512, 2), (512, 3), (1024, 1)];
    let items = [items * 2 / 3, items * 5 / 6, items, items * 7 / 6];
    shapes.iter().flat_map(|(threads, blocks)| items.map(|items| (*threads, items, *blocks))).collect()
}

fn sort(
    bench: &mut Bench<'_>,
    case: &str,
    key: Element,
    pairs: bool,
    log: u32,
    algorithm: RadixAlgorithm,
    tuning: RadixTuning,
) -> Result<(), Failure> {
    let rows = bench.rows(log);
    let payload = pairs.then_some(Element::U32);
    let order = RadixOrder::of(key, false);
    let measure = |bench: &mut Bench<'_>| -> Result<(Data, Sample, usize), GpuError> {
        let sort = RadixSort::with_algorithm(&bench.device, key, payload, algorithm, tuning)?;
        let data = Data::new(bench, key, pairs, rows)?;
        let scratch = bench.device.buffer(sort.scratch_bytes(rows), "scratch")?;
        let launch = |work: &mut warpcube_gpu::Work, [input, output, other]: [Records<'_>; 3]| {
            sort.launch(work, input, output, other, &order, &scratch)
        };
        let ms = data.time(bench, None, &scratch, launch)?;
        Ok((data, ms, scratch.bytes()))
    };
    let (data, ms, scratch) = measure(bench)?;
    data.verify(bench, None)?;
    let more = json!({
        "algorithm": algorithm.to_string(), "rows": rows, "threads": tuning.threads, "items": tuning.items,
        "blocks": tuning.blocks, "scratch_bytes": scratch, "predicted_ms": data.predicted_ms(&bench.rates, algorithm),
    });
    let (bytes, bytes_per_second) = data.bytes(&bench.rates, algorithm);
    bench.add(case, ms, bytes, bytes_per_second, more);
    Ok(())
}

fn segmented(bench: &mut Bench<'_>, case: &str, segments: u64, tuning: SegmentedTuning) -> Result<(), Failure> {
    let (key, rows) = (Element::U32, bench.rows(28));
    let order = RadixOrder::of(key, false);
    let cuts = cuts(rows, segments);
    let measure = |bench: &mut Bench<'_>| -> Result<(Data, DeviceSlice, Sample, usize), GpuError> {
        let sort = SegmentedSort::with_tuning(&bench.device, key, None, Element::U64, tuning)?;
        let data = Data::new(bench, key, false, rows)?;
        let offsets = bench.device.buffer(cuts.len() * 8, "offsets")?;
        let bytes: Vec<u8> = cuts.iter().flat_map(|cut| cut.to_le_bytes()).collect();
        bench.stream.upload(&offsets, 0, &bytes)?;
        let bounds = DeviceSlice::all(&offsets, Element::U64);
        let scratch = bench.device.buffer(sort.scratch_bytes(rows, segments), "scratch")?;
        let launch = |work: &mut warpcube_gpu::Work, [input, output, other]: [Records<'_>; 3]| {
            sort.launch(work, input, output, other, &bounds, &order, &scratch)
        };
        let ms = data.time(bench, Some(&offsets), &scratch, launch)?;
        Ok((data, bounds, ms, scratch.bytes()))
    };
    let (data, bounds, ms, scratch) = measure(bench)?;
    data.verify(bench, Some(&bounds))?;
    let predicted_ms = data.predicted_ms(&bench.rates, RadixAlgorithm::Lsd);
    let more = json!({"rows": rows, "segments": segments, "scratch_bytes": scratch, "predicted_ms": predicted_ms});
    let (bytes, bytes_per_second) = data.bytes(&bench.rates, RadixAlgorithm::Lsd);
    bench.add(case, ms, bytes, bytes_per_second, more);
    Ok(())
}

/// Ends of segments that are cut at random places.
fn cuts(rows: u64, segments: u64) -> Vec<u64> {
    let mut state = segments;
    let mut cuts: Vec<u64> = (1..segments)
        .map(|_| {
            // A linear congruential generator (Knuth, MMIX), whose high bits are the place.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((u128::from(state) * u128::from(rows)) >> 64) as u64
        })
        .chain([0, rows])
        .collect();
    cuts.sort_unstable();
    cuts
}
