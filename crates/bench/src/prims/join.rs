//! The join microbenchmark: 2^28 probes of tables of 8 KB to 1 GB, by strategy, over keys of a wide and of a dense
//! range; each beside the prediction of the roofline.

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element, TileTuning};
use warpcube_gpu::{Kernel, Params};

use super::Bench;
use super::hashed::{kernel, room, scratch, walk, word};
use super::keyed::KEYED;
use crate::operators::hash_join::{HashJoin, JoinSpec, JoinStrategy, TUNING};
use crate::operators::key_slots::{KeyRange, Pairs, TableTuning};
use crate::suite::Failure;

/// Tables of linear probing, as powers of two bytes; half of the slots of 8 bytes are taken.
const LOGS: std::ops::RangeInclusive<u32> = 13..=30;
/// One of so many probes matches in the cases with few matches.
const FEW: u64 = 10;

/// Kernels that make the rows of both sides, and their join: probe row i has the key of a random row of the build
/// side's first `reach`, of which `build` exist.
const TEXT: &str = "struct JoinData {
    uint32_t* keys; uint32_t* values; uint64_t n; uint64_t build; uint64_t reach; uint64_t is_wide; uint64_t* out;
};
WC_KERNEL(join_build_rows, JoinData, 256, 1) {
    for (uint64_t i = wc_first(); i < p.n; i += wc_stride()) {
        p.keys[i] = wc_key(i * 0x9e3779b1ull & (p.n - 1), p.is_wide);
        p.values[i] = wc_value(p.keys[i]);
    }
}
WC_KERNEL(join_probe_rows, JoinData, 256, 1) {
    for (uint64_t i = wc_first(); i < p.n; i += wc_stride()) {
        p.keys[i] = wc_key(__umul64hi(wc_hash(31, i), p.reach), p.is_wide);
        p.values[i] = (uint32_t)wc_hash(32, i);
    }
}
WC_KERNEL(join_check, JoinData, 256, 1) {
    uint64_t sum = 0, pairs = 0;
    for (uint64_t i = wc_first(); i < p.n; i += wc_stride()) {
        const uint64_t row = __umul64hi(wc_hash(31, i), p.reach);
        if (row >= p.build) continue;
        sum += (uint64_t)(uint32_t)wc_hash(32, i) + wc_value(wc_key(row, p.is_wide));
        ++pairs;
    }
    wc_add(p.out, sum);
    wc_add(p.out + 1, pairs);
}";

/// Room for the rows of both sides, and the kernels that make them.
struct Sides {
    build: [DeviceSlice; 2],
    probe: [DeviceSlice; 2],
    status: DeviceSlice,
    out: DeviceSlice,
    build_rows: Kernel,
    probe_rows: Kernel,
    check: Kernel,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let shapes = shapes(bench);
    let logs = bench.wanted(LOGS, |log| format!("join/{}", 1u64 << log), shapes.len() > 1);
    let Some(log_max) = logs.last().copied() else { return Ok(()) };
    let (device, n) = (bench.device.clone(), bench.rows(28));
    let text = [KEYED, TEXT].concat();
    let column = |len| room(&device, Element::U32, len);
    let sides = Sides {
        build: [column(1 << (log_max - 4))?, column(1 << (log_max - 4))?],
        probe: [column(n)?, column(n)?],
        status: room(&device, Element::U64, 2)?,
        out: room(&device, Element::U64, 2)?,
        build_rows: kernel(&device, "join_build_rows", &text)?,
        probe_rows: kernel(&device, "join_probe_rows", &text)?,
        check: kernel(&device, "join_check", &text)?,
    };
    for log in logs {
        for (is_wide, few) in [(true, 1), (false, 1), (true, FEW), (false, FEW)] {
            sides.measure(bench, log, is_wide, few, &shapes)?;
        }
    }
    Ok(())
}

/// The shapes of probes: the tuning's own, and others if `tune/join` was asked for.
fn shapes(bench: &Bench<'_>) -> Vec<TableTuning> {
    let mut shapes = vec![TUNING.value];
    if bench.wants_sweep("tune/join") {
        for (threads, blocks, shared_threads) in [(256, 5, 768), (256, 6, 512), (512, 3, 1024)] {
            let tile = TileTuning { threads, rows: 2, blocks };
            shapes.push(TableTuning { tile, shared_threads });
        }
    }
    shapes
}

impl Sides {
    /// All strategies over one relation.
    fn measure(
        &self,
        bench: &mut Bench<'_>,
        log: u32,
        is_wide: bool,
        few: u64,
        shapes: &[TableTuning],
    ) -> Result<(), Failure> {
        let build_rows = 1u64 << (log - 4);
        let reach = build_rows * few;
        let most = if is_wide { u32::MAX } else { (build_rows - 1) as u32 };
        let range = KeyRange { least: u32::from(is_wide), most };
        let spec = JoinSpec { range, build_rows, probe_rows: self.probe[0].len(), match_share: 1.0 / few as f64 };
        let expected = self.make(bench, build_rows, reach, is_wide)?;
        let chosen = spec.choose(&bench.rates, 8 << 30).0;
        for strategy in JoinStrategy::ALL {
            // Tables over all keys of 32 bits have 17 GB; small tables are not worth a partition.
            let is_direct =
                strategy == JoinStrategy::DirectAddress || strategy == JoinStrategy::PartitionedDirectAddress;
            let is_plain = strategy == JoinStrategy::LinearProbing || strategy == JoinStrategy::DirectAddress;
            if is_direct == is_wide || (!is_plain && log < 24) {
                continue;
            }
            for shape in shapes {
                self.join(bench, log, spec, strategy, *shape, strategy == chosen, expected)?;
            }
        }
        Ok(())
    }

    /// Makes both sides; the sum and the pairs of the join.
    fn make(&self, bench: &mut Bench<'_>, build: u64, reach: u64, is_wide: bool) -> Result<[u64; 2], Failure> {
        let (device, stream) = (&bench.device, &mut bench.stream);
        let params = |[keys, values]: &[DeviceSlice; 2], n: u64| {
            let params = Params::new().slice(keys).slice(values).u64(n).u64(build).u64(reach);
            params.u64(is_wide.into()).slice(&self.out)
        };
        stream.fill(self.out.buffer(), 0, 0, 16)?;
        stream.launch(&self.build_rows, walk(device), &params(&self.build, build))?;
        stream.launch(&self.probe_rows, walk(device), &params(&self.probe, self.probe[0].len()))?;
        stream.launch(&self.check, walk(device), &params(&self.probe, self.probe[0].len()))?;
        Ok([word(stream, &self.out, 0)?, word(stream, &self.out, 1)?])
    }

    #[expect(clippy::too_many_arguments, reason = "one measured point")]
    fn join(
        &self,
        bench: &mut Bench<'_>,
        log: u32,
        spec: JoinSpec,
        strategy: JoinStrategy,
        tuning: TableTuning,
        is_chosen: bool,
        expected: [u64; 2],
    ) -> Result<(), Failure> {
        let case = format!("join/{}", 1u64 << log);
        let device = bench.device.clone();
        let join = HashJoin::with_tuning(&device, spec, strategy, tuning)?;
        let table = device.buffer(join.table_bytes(), "a benchmark")?;
        let memory = scratch(&device, join.scratch_bytes(spec.probe_rows.max(spec.build_rows)).max(1))?;
        let build = [self.build[0].part(0, spec.build_rows)?, self.build[1].part(0, spec.build_rows)?];
        let (status, out) = (&self.status, &self.out);
        let [build_buffers, probe_buffers] =
            [&self.build, &self.probe].map(|side| side.each_ref().map(|column| column.buffer()));
        let rows = Pairs { keys: &build[0], values: &build[1] };
        let built = bench.time(&build_buffers, &[&table, status.buffer(), &memory], |work| {
            join.build(work, rows, &table, status, &memory)
        })?;
        let rows = Pairs { keys: &self.probe[0], values: &self.probe[1] };
        let ms = bench.time(
            &[&probe_buffers[..], &[&table, status.buffer()]].concat(),
            &[out.buffer(), &memory],
            |work| join.probe(work, rows, [&table, &memory], status, out),
        )?;
        let found = [word(&mut bench.stream, out, 0)?, word(&mut bench.stream, out, 1)?];
        let faults = [word(&mut bench.stream, status, 0)?, word(&mut bench.stream, status, 1)?];
        if found != expected || faults != [0, 0] {
            return Err(format!("{case} by {strategy:?}: {found:?} instead of {expected:?}, faults {faults:?}").into());
        }
        let predicted_ms = spec.probe_ms(&bench.rates, strategy);
        let more = json!({
            "strategy": format!("{strategy:?}"), "tuning": format!("{tuning:?}"), "probes": spec.probe_rows,
            "build_rows": spec.build_rows, "keys": if spec.range.least == 0 { "dense" } else { "wide" },
            "match_share": spec.match_share, "table_bytes": join.table_bytes(), "build_ms": built.ms,
            "predicted_ms": predicted_ms, "chosen": is_chosen,
        });
        let read = 8 * spec.probe_rows;
        bench.add(&case, ms, read, bench.ceiling(read, 0), more);
        Ok(())
    }
}
