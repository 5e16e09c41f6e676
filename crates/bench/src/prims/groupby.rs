//! GROUP BY of 2^28 keys and values of 32 bits: sums by key, by number of groups and by strategy, over random and over
//! ordered keys; each beside the prediction of the roofline.

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element, TileTuning};
use warpcube_gpu::{Kernel, Params};

use super::Bench;
use super::hashed::{kernel, room, scratch, walk, word};
use super::keyed::KEYED;
use crate::operators::hash_group_by::{GroupSpec, GroupStrategy, Groups, HashGroupBy, TUNING};
use crate::operators::key_slots::{Pairs, TableTuning};
use crate::stats::Sample;
use crate::suite::Failure;

/// Numbers of groups; with ordered keys the last of them.
const GROUPS: [u64; 4] = [10, 10_000, 1_000_000, 100_000_000];

/// Rows with the key of a random group, or of groups in order; the sum of each group by its number; and the number of
/// groups that are wrong, found twice, or (third word) have rows.
const TEXT: &str = "struct GroupData {
    uint32_t* keys; uint32_t* values; uint64_t n; uint64_t groups; uint64_t is_ordered;
    uint64_t* expected; uint32_t* seen; const uint32_t* found; const uint64_t* sums; uint64_t found_groups;
    uint64_t* wrong;
};
WC_DEVICE uint64_t wc_group(const GroupData& p, uint64_t i) {
    return p.is_ordered ? (uint64_t)((double)i * (double)p.groups / (double)p.n) : __umul64hi(wc_hash(41, i), p.groups);
}
WC_KERNEL(group_rows, GroupData, 256, 1) {
    for (uint64_t i = wc_first(); i < p.n; i += wc_stride()) {
        const uint64_t group = wc_group(p, i);
        p.keys[i] = wc_key(group, !p.is_ordered);
        p.values[i] = (uint32_t)wc_hash(42, i) | 1u;
        wc_add(p.expected + group, (uint64_t)p.values[i]);
    }
}
WC_KERNEL(group_check, GroupData, 256, 1) {
    uint64_t wrong = 0, rows = 0;
    for (uint64_t i = wc_first(); i < p.found_groups; i += wc_stride()) {
        const uint64_t group = p.is_ordered ? p.found[i] : (uint64_t)wc_unmix(p.found[i]) - 1;
        if (group >= p.groups || p.sums[i] != p.expected[group]) {
            ++wrong;
        } else if (wc_fetch_or(p.seen + group / 32, 1u << group % 32) >> group % 32 & 1u) {
            ++wrong;
        }
    }
    for (uint64_t group = wc_first(); group < p.groups; group += wc_stride()) rows += p.expected[group] != 0;
    if (wrong != 0) wc_add(p.wrong, wrong);
    if (rows != 0) wc_add(p.wrong + 1, rows);
}";

/// The rows, room for groups, and what they have to be.
struct Data {
    rows: [DeviceSlice; 2],
    keys: DeviceSlice,
    sums: DeviceSlice,
    status: DeviceSlice,
    expected: DeviceSlice,
    seen: DeviceSlice,
    wrong: DeviceSlice,
    make: Kernel,
    check: Kernel,
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let (shapes, n) = (shapes(bench), bench.rows(28));
    // Smaller inputs have as many fewer groups.
    let scaled = |groups: u64| ((u128::from(groups) * u128::from(n)) >> 28).max(10) as u64;
    let random = GROUPS.map(|groups| (format!("groupby/{groups}"), scaled(groups), false));
    let sorted = ("groupby/sorted".to_string(), scaled(GROUPS[3]), true);
    let cases = bench.wanted(random.into_iter().chain([sorted]), |(case, ..)| case.clone(), shapes.len() > 1);
    let Some(groups_max) = cases.iter().map(|(_, groups, _)| *groups).max() else { return Ok(()) };
    let device = bench.device.clone();
    let text = [KEYED, TEXT].concat();
    let data = Data {
        rows: [room(&device, Element::U32, n)?, room(&device, Element::U32, n)?],
        keys: room(&device, Element::U32, groups_max)?,
        sums: room(&device, Element::U64, groups_max)?,
        status: room(&device, Element::U64, 2)?,
        expected: room(&device, Element::U64, groups_max)?,
        seen: room(&device, Element::U32, groups_max.div_ceil(32))?,
        wrong: room(&device, Element::U64, 2)?,
        make: kernel(&device, "group_rows", &text)?,
        check: kernel(&device, "group_check", &text)?,
    };
    for (case, groups, is_ordered) in cases {
        data.measure(bench, &case, groups, is_ordered, &shapes)?;
    }
    Ok(())
}

/// The shapes: the tuning's own, and others if `tune/groupby` was asked for.
fn shapes(bench: &Bench<'_>) -> Vec<TableTuning> {
    let mut shapes = vec![TUNING.value];
    if bench.wants_sweep("tune/groupby") {
        for (threads, rows, blocks, shared_threads) in
            [(256, 1, 8, 512), (256, 2, 4, 1024), (256, 2, 3, 512), (512, 1, 3, 768), (128, 1, 12, 1024)]
        {
            shapes.push(TableTuning { tile: TileTuning { threads, rows, blocks }, shared_threads });
        }
    }
    shapes
}

impl Data {
    fn params(&self, groups: u64, is_ordered: bool, found: u64) -> Params {
        let [keys, values] = &self.rows;
        let params = Params::new().slice(keys).slice(values).u64(keys.len()).u64(groups).u64(is_ordered.into());
        let params = params.slice(&self.expected).slice(&self.seen).slice(&self.keys).slice(&self.sums);
        params.u64(found).slice(&self.wrong)
    }

    fn measure(
        &self,
        bench: &mut Bench<'_>,
        case: &str,
        groups: u64,
        is_ordered: bool,
        shapes: &[TableTuning],
    ) -> Result<(), Failure> {
        bench.stream.fill(self.expected.buffer(), 0, 0, groups as usize * 8)?;
        bench.stream.launch(&self.make, walk(&bench.device), &self.params(groups, is_ordered, 0))?;
        let spec = GroupSpec { rows: self.rows[0].len(), groups, is_ordered };
        let chosen = spec.choose(&bench.rates).0;
        for strategy in GroupStrategy::ALL {
            // A strategy without a prediction has no kernel for the case. Ordered rows are measured by the ordered
            // strategy alone, other rows by the others.
            let Some(predicted_ms) = spec.predict_ms(&bench.rates, strategy) else { continue };
            if is_ordered != (strategy == GroupStrategy::Ordered) {
                continue;
            }
            for &tuning in shapes {
                let (ms, found) = self.group(bench, case, spec, strategy, tuning)?;
                let (read, written) = (8 * spec.rows, 12 * found);
                let more = json!({
                    "strategy": format!("{strategy:?}"), "tuning": format!("{tuning:?}"), "rows": spec.rows,
                    "groups": found, "predicted_ms": predicted_ms, "chosen": strategy == chosen,
                });
                bench.add(case, ms, read + written, bench.ceiling(read, written), more);
            }
        }
        Ok(())
    }

    /// Measures and verifies one strategy; milliseconds and groups.
    fn group(
        &self,
        bench: &mut Bench<'_>,
        case: &str,
        spec: GroupSpec,
        strategy: GroupStrategy,
        tuning: TableTuning,
    ) -> Result<(Sample, u64), Failure> {
        let device = bench.device.clone();
        let aggregation = HashGroupBy::with_tuning(&device, spec, strategy, tuning)?;
        let memory = scratch(&device, aggregation.scratch_bytes(spec.rows))?;
        let [keys, values] = &self.rows;
        let groups = Groups { keys: &self.keys, sums: &self.sums, status: &self.status };
        let read = [keys.buffer(), values.buffer()];
        let written = [self.keys.buffer(), self.sums.buffer(), self.status.buffer(), &memory];
        let ms =
            bench.time(&read, &written, |work| aggregation.launch(work, Pairs { keys, values }, groups, &memory))?;
        let stream = &mut bench.stream;
        let [found, lost] = [word(stream, &self.status, 0)?, word(stream, &self.status, 1)?];
        stream.fill(self.seen.buffer(), 0, 0, self.seen.len() as usize * 4)?;
        stream.fill(self.wrong.buffer(), 0, 0, 16)?;
        let params = self.params(spec.groups, spec.is_ordered, found.min(spec.groups));
        stream.launch(&self.check, walk(&device), &params)?;
        let [wrong, expected] = [word(stream, &self.wrong, 0)?, word(stream, &self.wrong, 1)?];
        if wrong != 0 || lost != 0 || found != expected {
            let message =
                format!("{case} by {strategy:?}: {found} of {expected} groups, {wrong} wrong, {lost} rows lost");
            return Err(message.into());
        }
        Ok((ms, found))
    }
}
