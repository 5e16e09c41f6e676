//! Sort by several keys against the plain-Rust reference.

use bytemuck::Pod;
use warpcube_gpu::prims::sort::reference;
use warpcube_gpu::prims::{DeviceSlice, Element, Key, Nulls, OrderedBits, Sort, SortColumn, SortKey, SortSpec};
use warpcube_gpu::{DeviceBuffer, GpuError, LaneOrder};

use crate::emulated_support::{ORDERS, Rig, orders};
use crate::radix_sort::{TUNING, randoms};

/// A column on the device and the ordered bits of its values.
struct Column {
    values: DeviceBuffer,
    valid: DeviceBuffer,
    bits: Vec<Option<OrderedBits>>,
}

impl Column {
    /// Every seventh value is NULL where there are any.
    fn new<K: Key + Pod>(rig: &mut Rig, column: &SortColumn, rows: usize, value: impl Fn(u64) -> K) -> Column {
        let seed = column.bits.into();
        let drawn: Vec<u64> = randoms(rows, seed).collect();
        let values: Vec<K> = drawn.iter().map(|bits| value(*bits)).collect();
        let valid: Vec<u8> =
            drawn.iter().map(|bits| u8::from(column.nulls == Nulls::Absent || bits % 7 != 0) * 3).collect();
        let bits = values.iter().zip(&valid).map(|(key, valid)| (*valid != 0).then(|| key.ordered_bits())).collect();
        Column { values: rig.upload(&values), valid: rig.upload(&valid), bits }
    }
}

fn check(rig: &mut Rig, columns: &[SortColumn], data: &[Column], rows: usize, row: Element) {
    let sort = Sort::with_tuning(&rig.device, columns, Some(row), |_| TUNING).unwrap();
    let slices: Vec<_> = columns
        .iter()
        .zip(data)
        .map(|(column, data)| {
            let values = DeviceSlice::new(&data.values, 0, column.element, rows as u64).unwrap();
            let valid = DeviceSlice::new(&data.valid, 0, Element::U8, rows as u64).unwrap();
            (values, (column.nulls != Nulls::Absent).then_some(valid))
        })
        .collect();
    let keys: Vec<_> = slices.iter().map(|(values, valid)| SortKey { values, valid: valid.as_ref() }).collect();
    let order = rig.upload(&vec![u64::MAX; rows]);
    let scratch = rig.device.buffer(sort.scratch_bytes(rows as u64), "scratch").unwrap();
    let output = DeviceSlice::new(&order, 0, row, rows as u64).unwrap();
    sort.launch(&mut rig.stream, &keys, Some(&output), &scratch).unwrap();
    let bits: Vec<_> = data.iter().map(|column| column.bits.clone()).collect();
    let found: Vec<u64> = match row {
        Element::U32 => rig.download::<u32>(&order)[..rows].iter().map(|row| u64::from(*row)).collect(),
        _ => rig.download(&order),
    };
    assert_eq!(found, reference(columns, &bits), "{columns:?}, {rows} rows");
}

#[test]
fn several_keys_with_mixed_directions_and_nulls() {
    let columns = [
        SortColumn { bits: 3, ..SortColumn::of(Element::U8) },
        SortColumn { descending: true, nulls: Nulls::Last, ..SortColumn::of(Element::F32) },
        SortColumn { nulls: Nulls::First, descending: true, ..SortColumn::of(Element::I32) },
        SortColumn { nulls: Nulls::First, ..SortColumn::of(Element::I128) },
    ];
    for lanes in orders(&ORDERS) {
        let mut rig = Rig::new(lanes);
        for rows in [0, 1, 33, 900] {
            let data = [
                Column::new(&mut rig, &columns[0], rows, |bits| bits as u8 & 7),
                Column::new(&mut rig, &columns[1], rows, |bits| (bits as i8 >> 5) as f32),
                Column::new(&mut rig, &columns[2], rows, |bits| (bits as i32) >> 29),
                Column::new(&mut rig, &columns[3], rows, |bits| i128::from(bits as i64) << 40),
            ];
            check(&mut rig, &columns, &data, rows, Element::U32);
        }
    }
}

#[test]
fn keys_that_fit_one_word_and_keys_sorted_as_they_are() {
    let packed = [
        SortColumn { nulls: Nulls::Last, ..SortColumn::of(Element::I32) },
        SortColumn { bits: 12, below: 3, descending: true, nulls: Nulls::First, ..SortColumn::of(Element::U32) },
    ];
    let direct = [SortColumn { descending: true, ..SortColumn::of(Element::F64) }];
    for lanes in orders(&ORDERS[..3]) {
        let mut rig = Rig::new(lanes);
        for rows in [700, 2000] {
            let data = [
                Column::new(&mut rig, &packed[0], rows, |bits| (bits as i32) >> 24),
                Column::new(&mut rig, &packed[1], rows, |bits| bits as u32 & 0xfff),
            ];
            check(&mut rig, &packed, &data, rows, Element::U32);
            let data = [Column::new(&mut rig, &direct[0], rows, |bits| (bits as i16 >> 6) as f64)];
            check(&mut rig, &direct, &data, rows, Element::U64);
        }
        // All NULL: rows keep their order.
        let mut data = [
            Column::new(&mut rig, &packed[0], 800, |bits| bits as i32),
            Column::new(&mut rig, &packed[1], 800, |bits| bits as u32 & 0xfff),
        ];
        for column in &mut data {
            column.valid = rig.upload(&[0u8; 800]);
            column.bits.fill(None);
        }
        check(&mut rig, &packed, &data, 800, Element::U32);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let message = |result: Result<(), GpuError>| match result {
        Err(GpuError::Contract(message)) => message,
        other => panic!("{other:?}"),
    };
    let column = SortColumn::of(Element::I32);
    let made = |columns: &[SortColumn], row| Sort::with_tuning(&rig.device, columns, row, |_| TUNING).map(drop);
    let numbered = Some(Element::U32);
    assert!(message(made(&[], numbered)).contains("0 keys"));
    assert!(message(made(&[column], Some(Element::I32))).contains("i32"));
    assert!(message(made(&[SortColumn { bits: 31, ..column }], numbered)).contains("0..31"));
    let wide = SortColumn { bits: 33, ..SortColumn::of(Element::U32) };
    assert!(message(made(&[wide], numbered)).contains("0..33"));
    let nothing = SortColumn { below: 20, bits: 20, ..SortColumn::of(Element::U32) };
    assert!(message(made(&[nothing], numbered)).contains("20..20"));
    assert!(message(made(&[column, column], None)).contains("without row numbers"));

    let columns =
        [SortColumn { nulls: Nulls::Last, ..column }, SortColumn { bits: 12, ..SortColumn::of(Element::U32) }];
    let sort = Sort::with_tuning(&rig.device, &columns, numbered, |_| TUNING).unwrap();
    let buffer = rig.device.buffer(4096, "operands").unwrap();
    let slice = |element, len| DeviceSlice::new(&buffer, 0, element, len).unwrap();
    let (values, codes, valid) = (slice(Element::I32, 50), slice(Element::U32, 50), slice(Element::U8, 50));
    let (short, rows) = (slice(Element::U8, 49), slice(Element::U32, 50));
    let scratch = rig.device.buffer(sort.scratch_bytes(50), "scratch").unwrap();
    let small = rig.device.buffer(sort.scratch_bytes(50) - 1, "scratch").unwrap();
    let second = SortKey { values: &codes, valid: None };
    let first = |valid| SortKey { values: &values, valid };
    let given = Some(&rows);
    let mut launch = |keys: &[SortKey<'_>], scratch| message(sort.launch(&mut rig.stream, keys, given, scratch));
    assert!(launch(&[second], &scratch).contains("1 keys, and 2"));
    assert!(launch(&[first(None), second], &scratch).contains("no validity"));
    assert!(launch(&[first(Some(&short)), second], &scratch).contains("49"));
    assert!(launch(&[second, second], &scratch).contains("u32"));
    assert!(launch(&[first(Some(&valid)), second], &small).contains("scratch"));
}

#[test]
fn what_a_sort_takes_is_known_before_it_is_made() {
    let rig = Rig::new(LaneOrder::Forward);
    let column = SortColumn { descending: true, ..SortColumn::of(Element::U128) };
    for columns in [vec![column; 2], vec![SortColumn::of(Element::U32)]] {
        let spec = SortSpec { columns, row: Some(Element::U32) };
        let sort = Sort::new(&rig.device, &spec.columns, spec.row).unwrap();
        assert!(spec.programs(rig.device.info()).iter().all(|program| rig.device.is_compiled(program)));
        for rows in [0, 1, 5_000, 1 << 20] {
            assert_eq!(spec.scratch_bytes(rig.device.info(), rows), sort.scratch_bytes(rows), "{rows} rows");
        }
    }
}

#[test]
fn keys_alone_are_left_in_order() {
    let mut rig = Rig::new(LaneOrder::Forward);
    let column = SortColumn { bits: 20, descending: true, ..SortColumn::of(Element::U32) };
    let drawn: Vec<u32> = randoms(5_000, 3).map(|bits| bits as u32 & 0xf_ffff).collect();
    let spec = SortSpec { columns: vec![column], row: None };
    assert!(spec.leaves_keys());
    let sort = Sort::new(&rig.device, &spec.columns, spec.row).unwrap();
    let keys = rig.upload(&drawn);
    let values = DeviceSlice::new(&keys, 0, Element::U32, drawn.len() as u64).unwrap();
    let bytes = sort.scratch_bytes(drawn.len() as u64);
    assert_eq!(bytes, spec.scratch_bytes(rig.device.info(), drawn.len() as u64));
    let scratch = rig.device.buffer(bytes, "scratch").unwrap();
    let key = SortKey { values: &values, valid: None };
    let numbered = sort.launch(&mut rig.stream, &[key], Some(&values), &scratch);
    assert!(matches!(numbered, Err(GpuError::Contract(message)) if message.contains("has none")));
    sort.launch(&mut rig.stream, &[key], None, &scratch).unwrap();
    let mut in_order = drawn.clone();
    in_order.sort_unstable_by(|a, b| b.cmp(a));
    assert!(rig.download::<u32>(&scratch)[..drawn.len()] == in_order[..]);
    // Keys that agree above the lowest bits stay as they were.
    let column = SortColumn { below: 9, ..column };
    let sort = Sort::new(&rig.device, &[column], None).unwrap();
    sort.launch(&mut rig.stream, &[key], None, &scratch).unwrap();
    let mut in_order = drawn.clone();
    in_order.sort_by_key(|key| std::cmp::Reverse(key >> 9));
    assert!(rig.download::<u32>(&scratch)[..drawn.len()] == in_order[..]);
    // Values in place of row numbers.
    let sort = Sort::new(&rig.device, &[column], Some(Element::U32)).unwrap();
    let scratch = rig.device.buffer(sort.scratch_bytes(drawn.len() as u64), "scratch").unwrap();
    let carried: Vec<u32> = drawn.iter().map(|key| !key).collect();
    let (carried, moved) = (rig.upload(&carried), rig.upload(&drawn));
    let slice = |buffer| DeviceSlice::new(buffer, 0, Element::U32, drawn.len() as u64).unwrap();
    let (carried, places) = (slice(&carried), slice(&moved));
    sort.launch_with(&mut rig.stream, &[key], (Some(&carried), Some(&places)), &scratch).unwrap();
    in_order.iter_mut().for_each(|key| *key = !*key);
    assert!(rig.download::<u32>(&moved) == in_order);
}
