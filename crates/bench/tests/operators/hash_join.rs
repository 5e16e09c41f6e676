//! Hash joins against the plain-Rust reference.

use warpcube_bench::operators::hash_join::{HashJoin, JoinSpec, JoinStrategy, hash_join};
use warpcube_bench::operators::key_slots::{KeyRange, Pairs, TableTuning};
use warpcube_gpu::LaneOrder;
use warpcube_gpu::prims::{DeviceSlice, Element};

use crate::common::{SMALL, assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Tiles of 512 rows in device memory, of 256 in shared memory.
const TUNING: TableTuning = TableTuning { tile: SMALL, shared_threads: 32 };

fn columns(rig: &mut Rig, pairs: &[(u32, u32)]) -> [DeviceSlice; 2] {
    let [keys, values]: [Vec<u32>; 2] =
        [pairs.iter().map(|pair| pair.0).collect(), pairs.iter().map(|pair| pair.1).collect()];
    [given(rig, Element::U32, &keys), given(rig, Element::U32, &values)]
}

/// What a strategy finds: sum and pairs, and the status of the build.
fn joined(
    rig: &mut Rig,
    spec: JoinSpec,
    strategy: JoinStrategy,
    build: &[(u32, u32)],
    probe: &[(u32, u32)],
) -> ([u64; 2], [u64; 2]) {
    let join = HashJoin::with_tuning(&rig.device, spec, strategy, TUNING).unwrap();
    let table = scratch(rig, join.table_bytes());
    let memory = scratch(rig, join.scratch_bytes(build.len().max(probe.len()) as u64));
    let [status, out] = [room(rig, Element::U64, 2), room(rig, Element::U64, 2)];
    let [keys, values] = columns(rig, build);
    join.build(&mut rig.stream, Pairs { keys: &keys, values: &values }, &table, &status, &memory).unwrap();
    let [keys, values] = columns(rig, probe);
    join.probe(&mut rig.stream, Pairs { keys: &keys, values: &values }, [&table, &memory], &status, &out).unwrap();
    [&out, &status].map(|slice| taken::<u64>(rig, slice).try_into().unwrap()).into()
}

/// Rows with distinct keys of a range, every `step`th of them.
fn build_side(least: u32, rows: usize, step: u32) -> Vec<(u32, u32)> {
    let mut pairs: Vec<(u32, u32)> =
        (0..rows as u32).zip(noise(9)).map(|(i, x)| (least + i * step, x as u32)).collect();
    let len = pairs.len();
    noise(11).take(len).enumerate().for_each(|(at, x)| pairs.swap(at, x as usize % len));
    pairs
}

#[test]
fn sums_are_those_of_the_host() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        // A full range, every third key of one, and tables of a slot or two; in shared memory, and too large for it.
        for (least, rows, step) in [(0, 300, 1), (1_000, 300, 3), (5, 1, 1), (4_000_000_000, 40_000, 1), (7, 9_000, 5)]
        {
            let build = build_side(least, rows, step);
            let range = KeyRange { least, most: least + rows as u32 * step - 1 };
            let reach = rows as u64 * u64::from(step) + 50;
            let spec = JoinSpec { range, build_rows: rows as u64, probe_rows: 1000, match_share: 0.5 };
            let sizes = if rows > 1000 { vec![1500] } else { lengths(512) };
            for n in sizes {
                // Some keys lie outside of the range, at both ends.
                let key = |x: u64| (u64::from(least) + x % reach).wrapping_sub(20) as u32;
                let probe: Vec<(u32, u32)> = noise(n as u64).map(|x| (key(x), (x >> 40) as u32)).take(n).collect();
                let (sum, pairs) = hash_join(&build, &probe);
                for strategy in JoinStrategy::ALL {
                    let (found, status) = joined(&mut rig, spec, strategy, &build, &probe);
                    assert_eq!(found, [sum, pairs], "{strategy:?}, {rows} rows from {least}, {n} probes, {order:?}");
                    assert_eq!(status, [0, 0]);
                }
            }
        }
    }
}

#[test]
fn an_empty_side_has_no_pairs() {
    let mut rig = Rig::new(LaneOrder::Seeded(3));
    let spec = JoinSpec { range: KeyRange { least: 0, most: 9 }, build_rows: 0, probe_rows: 3, match_share: 1.0 };
    for strategy in JoinStrategy::ALL {
        let (found, _) = joined(&mut rig, spec, strategy, &[], &[(1, 1), (0, 2), (u32::MAX, 3)]);
        assert_eq!(found, [0, 0], "{strategy:?}");
        let (found, _) = joined(&mut rig, JoinSpec { build_rows: 1, ..spec }, strategy, &[(4, 4)], &[]);
        assert_eq!(found, [0, 0], "{strategy:?}");
    }
}

#[test]
fn repeated_keys_and_keys_outside_are_reported() {
    let mut rig = Rig::new(LaneOrder::Seeded(4));
    // Ten rows, as many as the range has keys; two repeat others and one lies outside.
    let build: Vec<(u32, u32)> = [3, 4, 5, 6, 7, 8, 3, 3, 100, 9].into_iter().map(|key| (key, 5)).collect();
    let range = KeyRange { least: 0, most: 9 };
    let spec = JoinSpec { range, build_rows: 10, probe_rows: 12, match_share: 1.0 };
    let probe: Vec<(u32, u32)> = (0..12).map(|key| (key, 1)).collect();
    for strategy in JoinStrategy::ALL {
        let (found, status) = joined(&mut rig, spec, strategy, &build, &probe);
        assert_eq!((found, status), ([7 * 6, 7], [2, 1]), "{strategy:?}");
    }
}

#[test]
fn sums_wrap_past_32_bits() {
    let mut rig = Rig::new(LaneOrder::Reversed);
    let spec =
        JoinSpec { range: KeyRange { least: 1, most: u32::MAX }, build_rows: 2, probe_rows: 9, match_share: 1.0 };
    let build = [(u32::MAX, u32::MAX), (1, u32::MAX)];
    let probe = vec![(u32::MAX, u32::MAX); 1000];
    for strategy in [JoinStrategy::LinearProbing, JoinStrategy::PartitionedLinearProbing] {
        let (found, _) = joined(&mut rig, spec, strategy, &build, &probe);
        assert_eq!(found, [2000 * u64::from(u32::MAX), 1000], "{strategy:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let spec = JoinSpec { range: KeyRange { least: 0, most: 99 }, build_rows: 9, probe_rows: 9, match_share: 1.0 };
    let new = |spec, strategy| HashJoin::with_tuning(&rig.device, spec, strategy, TUNING).map(|_| ());
    let linear = JoinStrategy::LinearProbing;
    assert_refused(new(JoinSpec { range: KeyRange::ALL, ..spec }, linear), &["0 to 4294967295", "leave out"]);
    assert_refused(new(JoinSpec { range: KeyRange { least: 3, most: 2 }, ..spec }, linear), &["3 to 2"]);
    assert_refused(new(JoinSpec { build_rows: 101, ..spec }, linear), &["101 rows", "100"]);
    let join = HashJoin::with_tuning(&rig.device, spec, JoinStrategy::PartitionedLinearProbing, TUNING).unwrap();
    let [nine, ten, floats, status, one] =
        [(Element::U32, 9), (Element::U32, 10), (Element::F32, 9), (Element::U64, 2), (Element::U64, 1)]
            .map(|(element, len)| room(&rig, element, len));
    let bytes = join.scratch_bytes(9);
    let [memory, little, table, short] =
        [bytes, bytes - 256, join.table_bytes(), 100].map(|bytes| scratch(&rig, bytes));
    let pairs = |keys, values| Pairs { keys, values };
    let mut build = |rows, table, status, memory, words: &[&str]| {
        assert_refused(join.build(&mut rig.stream, rows, table, status, memory), words);
    };
    build(pairs(&nine, &ten), &table, &status, &memory, &["build side's values", "10", "9"]);
    build(pairs(&floats, &nine), &table, &status, &memory, &["f32", "u32"]);
    build(pairs(&ten, &ten), &table, &status, &memory, &["build side's keys", "10", "9"]);
    build(pairs(&nine, &nine), &short, &status, &memory, &["table has 100", "256"]);
    build(pairs(&nine, &nine), &table, &one, &memory, &["status", "1", "2"]);
    build(pairs(&nine, &nine), &table, &status, &little, &["scratch", &bytes.to_string()]);
    let mut probe = |rows, table, status, out, words: &[&str]| {
        assert_refused(join.probe(&mut rig.stream, rows, [table, &memory], status, out), words);
    };
    probe(pairs(&nine, &nine), &table, &status, &one, &["output", "1", "2"]);
    probe(pairs(&nine, &floats), &table, &status, &status, &["probe side's values", "f32"]);
    probe(pairs(&nine, &nine), &short, &status, &status, &["table has 100"]);
}
