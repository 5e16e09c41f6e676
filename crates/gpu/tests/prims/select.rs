//! Selection, partition and split, with order kept and without, against plain Rust.

use warpcube_gpu::prims::{
    DeviceSlice, Element, Moved, Partition, Predicate, Select, SelectOperands, SelectOrder, Split, partition, select,
    split,
};
use warpcube_gpu::{GpuError, LaneOrder};

use crate::common::{SMALL, assert_refused, given, lengths, noise, room, scratch, taken};
use crate::emulated_support::{ORDERS, Rig, orders};

/// Flags of rows, so many of a hundred.
fn flags(n: usize, percent: u64) -> Vec<u8> {
    noise(percent).map(|x| u8::from(x % 100 < percent) * (x >> 40 | 1) as u8).take(n).collect()
}

/// What a launch put out, and how many there were.
fn launch<T: bytemuck::Pod>(
    rig: &mut Rig,
    selects: &Select,
    [input, flags]: [Option<&DeviceSlice>; 2],
    bounds: [u64; 2],
    out: &DeviceSlice,
) -> (Vec<T>, u64) {
    let n = input.or(flags).unwrap().len();
    let (count, scratch) = (room(rig, Element::U64, 1), scratch(rig, selects.scratch_bytes(n)));
    let operands = SelectOperands { input, flags, bounds, out, count: &count };
    selects.launch(&mut rig.stream, &operands, &scratch).unwrap();
    let count = taken::<u64>(rig, &count)[0];
    let mut moved = taken(rig, out);
    moved.truncate(count as usize);
    (moved, count)
}

#[test]
fn a_predicate_selects_in_order_and_in_any() {
    let text = || Predicate::Text("x >= a && x < b".into());
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let with = |order| Select::with_tuning(&rig.device, Element::F32, text(), Moved::Values, order, SMALL).unwrap();
        let (stable, any) = (with(SelectOrder::Stable), with(SelectOrder::Any));
        for length in lengths(512).into_iter().chain([512 * 40]) {
            let values: Vec<f32> = noise(6).map(|x| (x % 1000) as f32).take(length).collect();
            let slice = given(&mut rig, Element::F32, &values);
            for bounds in [[0.0, 0.0], [100.0, 310.0], [0.0, 1000.0]] {
                let expected = select(&values, |_, x| x >= bounds[0] && x < bounds[1]);
                let bits = bounds.map(|bound: f32| bound.to_bits().into());
                let out = room(&rig, Element::F32, length);
                let (found, _) = launch::<f32>(&mut rig, &stable, [Some(&slice), None], bits, &out);
                assert!(found == expected, "{length} items in {bounds:?}");
                let (mut found, count) = launch::<f32>(&mut rig, &any, [Some(&slice), None], bits, &out);
                assert_eq!(count, expected.len() as u64);
                let mut expected = expected;
                found.sort_by(f32::total_cmp);
                expected.sort_by(f32::total_cmp);
                assert!(found == expected, "{length} items in {bounds:?} in any order");
            }
        }
    }
}

#[test]
fn flags_select_values_of_16_bytes_and_from_any_element_on() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let (kind, moved) = (SelectOrder::Stable, Moved::Values);
        let selects = Select::with_tuning(&rig.device, Element::I128, Predicate::Flags, moved, kind, SMALL).unwrap();
        for length in lengths(128).into_iter().filter(|length| *length > 3) {
            let values: Vec<i128> = noise(1).map(|x| i128::from(x) * -77).take(length).collect();
            let flags = flags(length, 50);
            let slices = [given(&mut rig, Element::I128, &values), given(&mut rig, Element::U8, &flags)];
            for from in [0, 3] {
                let parts = slices.each_ref().map(|slice| slice.part(from, slice.len() - from).unwrap());
                let out = room(&rig, Element::I128, length);
                let found = launch::<i128>(&mut rig, &selects, parts.each_ref().map(Some), [0; 2], &out).0;
                let from = from as usize;
                let expected = select(&values[from..], |row, _| flags[from + row] != 0);
                assert!(found == expected, "{length} items from {from} on in {order:?}");
            }
        }
    }
}

#[test]
fn row_numbers_are_selected_and_what_does_not_fit_is_counted() {
    for order in orders(&[LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(1)]) {
        let mut rig = Rig::new(order);
        let predicate = Predicate::Text("x % 7 == a".into());
        let moved = Moved::Rows(Element::U32);
        let selects = Select::new(&rig.device, Element::U64, predicate, moved, SelectOrder::Stable).unwrap();
        let values: Vec<u64> = noise(12).take(4096 * 2 + 123).collect();
        let slice = given(&mut rig, Element::U64, &values);
        let rows: Vec<u32> = (0..values.len() as u32).collect();
        let expected = select(&rows, |row, _| values[row] % 7 == 3);
        for len in [values.len(), expected.len(), 700, 1, 0] {
            let out = room(&rig, Element::U32, len);
            let (found, count) = launch::<u32>(&mut rig, &selects, [Some(&slice), None], [3, 0], &out);
            assert_eq!(count, expected.len() as u64);
            assert!(found == expected[..len.min(expected.len())], "{len} of {count} in {order:?}");
        }
    }
}

#[test]
fn bounds_of_16_bytes_are_extended() {
    let new = |rig: &Rig, item, text: &str| {
        let predicate = Predicate::Text(text.into());
        Select::with_tuning(&rig.device, item, predicate, Moved::Values, SelectOrder::Stable, SMALL).unwrap()
    };
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        // Values on both sides of each bound, in the low word and by the high word alone.
        let signed: Vec<i128> = noise(7).map(|x| i128::from(x as i64 >> 40) << (x % 3 * 40)).take(500).collect();
        let selects = new(&rig, Element::I128, "a <= x && x < b");
        let input = given(&mut rig, Element::I128, &signed);
        for (a, b) in [(0i64, 5), (-7, 7), (i64::MIN, -1), (-1, i64::MAX)] {
            let out = room(&rig, Element::I128, signed.len());
            let bounds = [a, b].map(|bound| bound as u64);
            let found = launch::<i128>(&mut rig, &selects, [Some(&input), None], bounds, &out).0;
            assert_eq!(found, select(&signed, |_, x| i128::from(a) <= x && x < b.into()), "{a}..{b} in {order:?}");
        }
        let unsigned: Vec<u128> = noise(8).map(|x| u128::from(x) << (x % 3 * 32)).take(500).collect();
        let selects = new(&rig, Element::U128, "x < a");
        let input = given(&mut rig, Element::U128, &unsigned);
        for a in [5, 1 << 63, u64::MAX] {
            let out = room(&rig, Element::U128, unsigned.len());
            let found = launch::<u128>(&mut rig, &selects, [Some(&input), None], [a, 0], &out).0;
            assert_eq!(found, select(&unsigned, |_, x| x < a.into()), "below {a} in {order:?}");
        }
    }
}

#[test]
fn a_partition_keeps_the_order_of_both_parts() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let partitions = Partition::with_tuning(&rig.device, Element::U32, Predicate::Flags, SMALL).unwrap();
        for length in lengths(512).into_iter().chain([512 * 40 + 1]) {
            let values: Vec<u32> = noise(1).map(|x| x as u32).take(length).collect();
            let input = given(&mut rig, Element::U32, &values);
            for percent in [0, 30, 100] {
                let marks = flags(length, percent);
                let flags = given(&mut rig, Element::U8, &marks);
                let (kept, others) = (room(&rig, Element::U32, length), room(&rig, Element::U32, length));
                let (count, scratch) =
                    (room(&rig, Element::U64, 1), scratch(&rig, partitions.scratch_bytes(length as u64)));
                let (input, flags) = (Some(&input), Some(&flags));
                let operands = SelectOperands { input, flags, bounds: [0; 2], out: &kept, count: &count };
                partitions.launch(&mut rig.stream, &operands, &others, &scratch).unwrap();
                let marked = taken::<u64>(&mut rig, &count)[0] as usize;
                let expected = partition(&values, |row, _| marks[row] != 0);
                assert!(taken::<u32>(&mut rig, &kept)[..marked] == expected[0], "{percent} of {length}, {order:?}");
                assert!(taken::<u32>(&mut rig, &others)[..length - marked] == expected[1], "{percent} of {length}");
            }
        }
    }
}

#[test]
fn partitions_move_items_of_16_bytes() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let by_flags = Partition::with_tuning(&rig.device, Element::U128, Predicate::Flags, SMALL).unwrap();
        let by_bound =
            Partition::with_tuning(&rig.device, Element::I128, Predicate::Text("x < a".into()), SMALL).unwrap();
        for length in lengths(512) {
            // Items that differ in one of their words alone, and in both.
            let unsigned: Vec<u128> = noise(9).map(|x| u128::from(x) << (x % 3 * 32)).take(length).collect();
            let signed: Vec<i128> = unsigned.iter().map(|x| *x as i128 - (1 << 70)).collect();
            let marks = flags(length, 30);
            let flags = given(&mut rig, Element::U8, &marks);
            let input = given(&mut rig, Element::U128, &unsigned);
            let found = partitioned::<u128>(&mut rig, &by_flags, &input, (Some(&flags), 0));
            assert!(found == partition(&unsigned, |row, _| marks[row] != 0), "{length} by flags in {order:?}");
            let input = given(&mut rig, Element::I128, &signed);
            for bound in [0, -5, i64::MIN] {
                let found = partitioned::<i128>(&mut rig, &by_bound, &input, (None, bound as u64));
                assert!(found == partition(&signed, |_, x| x < bound.into()), "{length} below {bound} in {order:?}");
            }
        }
    }
}

/// Both parts of a partition.
fn partitioned<T: bytemuck::Pod>(
    rig: &mut Rig,
    partitions: &Partition,
    input: &DeviceSlice,
    (flags, bound): (Option<&DeviceSlice>, u64),
) -> [Vec<T>; 2] {
    let length = input.len() as usize;
    let [kept, others] = [0, 1].map(|_| room(rig, input.element(), length));
    let (count, scratch) = (room(rig, Element::U64, 1), scratch(rig, partitions.scratch_bytes(length as u64)));
    let operands = SelectOperands { input: Some(input), flags, bounds: [bound, 0], out: &kept, count: &count };
    partitions.launch(&mut rig.stream, &operands, &others, &scratch).unwrap();
    let marked = taken::<u64>(rig, &count)[0] as usize;
    [taken::<T>(rig, &kept)[..marked].to_vec(), taken::<T>(rig, &others)[..length - marked].to_vec()]
}

#[test]
fn heads_are_split_to_offsets() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let splits = Split::with_tuning(&rig.device, SMALL).unwrap();
        for length in lengths(2048) {
            for percent in [0, 3, 100] {
                let heads = flags(length, percent);
                let slice = given(&mut rig, Element::U8, &heads);
                let (offsets, count) = (room(&rig, Element::U64, length + 1), room(&rig, Element::U64, 1));
                let scratch = scratch(&rig, splits.scratch_bytes(length as u64));
                splits.launch(&mut rig.stream, &slice, &offsets, &count, &scratch).unwrap();
                let expected = split(&heads);
                assert_eq!(taken::<u64>(&mut rig, &count), [expected.len().saturating_sub(1) as u64]);
                assert!(taken::<u64>(&mut rig, &offsets)[..expected.len()] == expected, "{percent} of {length}");
            }
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let new = |item, predicate, moved| Select::new(&rig.device, item, predicate, moved, SelectOrder::Stable);
    let refused = new(Element::U32, Predicate::Flags, Moved::Rows(Element::F32)).map(|_| ());
    assert_refused(refused, &["select", "f32"]);
    let broken = new(Element::U32, Predicate::Text("x <".into()), Moved::Values);
    assert!(matches!(broken, Err(GpuError::Compile { .. })));
    let tuning = warpcube_gpu::prims::TileTuning { rows: 9, ..SMALL };
    let refused = Partition::with_tuning(&rig.device, Element::U32, Predicate::Flags, tuning).map(|_| ());
    assert_refused(refused, &["partition", "9 rows", "32"]);

    let partitions = Partition::with_tuning(&rig.device, Element::U32, Predicate::Flags, SMALL).unwrap();
    let [u32s, more, u64s] =
        [(Element::U32, 600), (Element::U32, 601), (Element::U64, 1)].map(|(e, n)| room(&rig, e, n));
    let [flags, less] = [600, 599].map(|n| room(&rig, Element::U8, n));
    let [enough, little] = [0, 1].map(|less| scratch(&rig, partitions.scratch_bytes(600) - less));
    let fits = SelectOperands { input: Some(&u32s), flags: Some(&flags), bounds: [0; 2], out: &u32s, count: &u64s };
    let mut launch = |operands, others, scratch| partitions.launch(&mut rig.stream, &operands, others, scratch);
    assert_refused(launch(SelectOperands { flags: Some(&less), ..fits }, &u32s, &enough), &["599", "600"]);
    assert_refused(launch(SelectOperands { flags: None, ..fits }, &u32s, &enough), &["flags", "missing"]);
    assert_refused(launch(SelectOperands { input: None, ..fits }, &u32s, &enough), &["input", "missing"]);
    assert_refused(launch(SelectOperands { input: Some(&u64s), ..fits }, &u32s, &enough), &["input", "u64"]);
    assert_refused(launch(SelectOperands { count: &u32s, ..fits }, &u32s, &enough), &["count", "u32"]);
    assert_refused(launch(SelectOperands { flags: Some(&u32s), ..fits }, &u32s, &enough), &["flags", "u32"]);
    assert_refused(launch(fits, &more, &enough), &["600", "601"]);
    assert_refused(launch(fits, &u32s, &little), &["scratch", "80", "79"]);
}
