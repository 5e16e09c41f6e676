//! Windows over sorted rows: every function, frames, several orders in one sort, and the room that grows.

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{
    AggregateKind, BinaryOp, BindingCache, Engine, EngineError, Expr, FirstOfPartitions, Fragment, Frame, FrameBound,
    Literal, OrderKey, Overflow, Pipeline, RunOptions, Sink, Source, Step, TopK, Ty, WindowCall, WindowFunction,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

const ALL: Frame = Frame { start: FrameBound::Unbounded, end: FrameBound::Unbounded };
const TO_PEERS: Frame = Frame { start: FrameBound::Unbounded, end: FrameBound::Peers(0) };

/// A partition, an order with ties, a value, a string, a decimal, a row's number and a truth value.
fn table(rows: usize) -> MemoryTable {
    table_of(rows, |row| (row % 5 != 1).then_some(mixed(row, 3) as i64 % 1_000_000))
}

/// The same with these values.
fn table_of(rows: usize, value: impl Fn(usize) -> Option<i64>) -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            ("p", numbers::<Int32Type>(rows, |row| (row % 13 != 5).then_some((mixed(row, 1) % 9) as i32))),
            ("o", numbers::<Int64Type>(rows, |row| (row % 11 != 3).then_some((mixed(row, 2) % 40) as i64 - 20))),
            ("v", numbers::<Int64Type>(rows, value)),
            ("s", texts(rows, |row| (row % 7 != 2).then(|| format!("né{}", mixed(row, 4) % 30)))),
            ("d", decimals(rows, 15, 2, |row| (row % 6 != 4).then_some(mixed(row, 5) as i128 % 10_000_000))),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
            ("b", truths(rows, |row| (row % 4 != 1).then_some(mixed(row, 6) & 1 == 0))),
        ],
    )
}

fn types() -> [DataType; 7] {
    let decimal = DataType::Decimal128(15, 2);
    [DataType::Int32, DataType::Int64, DataType::Int64, DataType::Utf8, decimal, DataType::Int32, DataType::Boolean]
}

/// The rows of windows over all columns of the table.
fn rows_of(steps: Vec<Step>, keys: Vec<OrderKey>, windows: Vec<WindowCall>) -> Fragment {
    let outputs: Vec<(Expr, DataType)> = types().into_iter().enumerate().map(|(at, ty)| (reg(at), ty)).collect();
    let of_windows = windows.iter().enumerate().map(|(at, call)| (reg(outputs.len() + at), call.data_type.clone()));
    let columns = outputs.iter().cloned().chain(of_windows).collect();
    let sort = Sink::TopK(TopK { keys, k: None, skip: 0, outputs, windows, first: None, algorithm: None });
    let sorted = Pipeline { source: Source::Table(0), steps, sink: sort };
    let root = Pipeline { source: Source::Output(0), steps: vec![], sink: Sink::Rows { columns, limit: None } };
    fragment(&[7], vec![sorted, root])
}

fn call(function: WindowFunction, (partition, order): (usize, usize), data_type: DataType) -> WindowCall {
    WindowCall { function, partition, order, data_type }
}

fn aggregate(kind: AggregateKind, output: Option<usize>, frame: Frame) -> WindowFunction {
    WindowFunction::Aggregate { kind, output, filter: None, frame }
}

/// By partition, order and number: no ties in all keys, some in the first two.
fn keys() -> Vec<OrderKey> {
    vec![ascending(reg(0)), descending(reg(1)), ascending(reg(5))]
}

#[test]
fn numbers_ranks_and_shares() {
    let numbered = |order: (usize, usize)| {
        let ints = [WindowFunction::RowNumber, WindowFunction::Rank, WindowFunction::DenseRank];
        let parts = [1, 2, 7, 5_000].map(WindowFunction::Tile);
        let shares = [WindowFunction::PercentRank, WindowFunction::CumeDist];
        let ints = ints.into_iter().chain(parts).map(move |function| call(function, order, DataType::UInt64));
        ints.chain(shares.into_iter().map(move |function| call(function, order, DataType::Float64)))
    };
    let windows = [(1, 2), (1, 1), (0, 1), (0, 0), (2, 3)].into_iter().flat_map(numbered).collect();
    check_orders(&rows_of(vec![], keys(), windows), &[&table(900)]);
}

/// An engine that sorts any number of rows by the radix sort.
fn sorting(order: LaneOrder) -> Engine {
    engine(order).with_tuning("selected_rows_max=0".parse().unwrap())
}

#[test]
fn ranks_without_row_numbers() {
    let ranked = |order| {
        let functions = [WindowFunction::RowNumber, WindowFunction::Rank, WindowFunction::DenseRank];
        functions.map(|function| call(function, order, DataType::UInt64))
    };
    let fragment = |steps, keys| rows_of(steps, keys, [(1, 2), (1, 1), (0, 0)].into_iter().flat_map(ranked).collect());
    let table = table(700);
    let few = || vec![ascending(reg(0)), descending(reg(1))];
    // Ranks of 32 bits, of 64 and of 128; rows with equal keys stay in the order of the table.
    let all = [(few(), "const uint32_t"), (wide_keys(4), "const uint64_t"), (wide_keys(6), "const unsigned __int128")];
    for (keys, ranks) in all {
        let report = check_on(&sorting(LaneOrder::Seeded(3)), &fragment(vec![], keys), &[&table]);
        let source = report.program().unwrap().source().to_string();
        assert!(source.contains(&format!("{ranks} rank = ")), "{ranks}: {source}");
    }
    // Places of rows that do not pass stay empty where there is room for all rows.
    let some = vec![filter(binary(BinaryOp::Gt, reg(1), int(3, Ty::I64)))];
    check_on(&sorting(LaneOrder::Reversed), &fragment(some, few()), &[&table]);
}

#[test]
fn ranks_carry_the_values_of_rows() {
    let columns = [(0, DataType::Int32), (3, DataType::Utf8), (2, DataType::Int64), (6, DataType::Boolean)];
    let outputs: Vec<(Expr, DataType)> =
        columns.into_iter().chain([(5, DataType::Int32)]).map(|(at, ty)| (reg(at), ty)).collect();
    let shift = WindowFunction::Shift { output: 1, rows: 1, default: Literal::Null, skips_nulls: true };
    let sum = |output| aggregate(AggregateKind::Sum, Some(output), TO_PEERS);
    let windows = vec![
        call(WindowFunction::RowNumber, (1, 2), DataType::UInt64),
        call(sum(2), (1, 2), DataType::Int64),
        call(sum(4), (1, 2), DataType::Int64),
        call(shift, (0, 2), DataType::Utf8),
    ];
    let all = |steps, outputs: &[(Expr, DataType)]| {
        let of_windows = windows.iter().enumerate().map(|(at, call)| (reg(outputs.len() + at), call.data_type.clone()));
        let columns = outputs.iter().enumerate().map(|(at, (_, ty))| (reg(at), ty.clone())).chain(of_windows).collect();
        let (keys, outputs) = (vec![ascending(reg(0)), descending(reg(1))], outputs.to_vec());
        let sink = TopK { keys, k: None, skip: 0, outputs, windows: windows.clone(), first: None, algorithm: None };
        let sorted = Pipeline { source: Source::Table(0), steps, sink: Sink::TopK(sink) };
        let root = Pipeline { source: Source::Output(0), steps: vec![], sink: Sink::Rows { columns, limit: None } };
        fragment(&[7], vec![sorted, root])
    };
    let table = table(800);
    let some = vec![filter(binary(BinaryOp::Gt, reg(1), int(3, Ty::I64)))];
    // With a decimal and a sum of columns ranks are too wide: values are fetched by the numbers of rows.
    let others = [(reg(4), DataType::Decimal128(15, 2)), (binary(BinaryOp::Add, reg(2), reg(1)), DataType::Int64)];
    let wide = [&outputs[..], &others].concat();
    for (order, steps) in ORDERS.into_iter().zip([vec![], some, vec![]]) {
        for (outputs, ranks) in [(&outputs, "const uint64_t"), (&wide, "const uint32_t")] {
            let report = check_on(&sorting(order), &all(steps.clone(), outputs), &[&table]);
            let source = report.program().unwrap().source().to_string();
            let has_all = steps.is_empty();
            assert!(!has_all || source.contains(&format!("{ranks} rank = ")), "{ranks}: {source}");
        }
    }
}

/// A partition and an order of so many keys.
fn wide_keys(count: usize) -> Vec<OrderKey> {
    let behind = [2, 3, 4, 2, 4].into_iter().cycle().take(count - 1).map(|key| descending(reg(key)));
    std::iter::once(ascending(reg(0))).chain(behind).collect()
}

#[test]
fn first_rows_of_partitions() {
    let table = table(2_600);
    let is_at_most = |call: usize, rows: u64| filter(binary(BinaryOp::Le, reg(7 + call), int(rows.into(), Ty::U64)));
    let numbers = [WindowFunction::RowNumber, WindowFunction::Rank, WindowFunction::DenseRank];
    let some = || vec![filter(binary(BinaryOp::Gt, reg(1), int(-15, Ty::I64)))];
    for (window, function) in numbers.into_iter().enumerate() {
        for (rows, keys, order) in [(1, (1, 2), 1), (2, (1, 3), 2), (3, (0, 2), 3), (5, (1, 2), 4)] {
            // What comes before a row, and its peers, are the same without the rows that are left out.
            let before = Frame { start: FrameBound::Unbounded, end: FrameBound::Rows(0) };
            let shift = WindowFunction::Shift { output: 2, rows: 1, default: Literal::Null, skips_nulls: false };
            let mut windows = vec![call(function.clone(), keys, DataType::UInt64)];
            windows.push(call(aggregate(AggregateKind::Sum, Some(2), before), keys, DataType::Int64));
            windows.push(call(shift, keys, DataType::Int64));
            let steps = if rows == 2 { some() } else { vec![] };
            let mut fragment = rows_of(steps, keys_by(keys.1), windows);
            let Sink::TopK(top) = &mut fragment.pipelines[0].sink else { panic!("no sort") };
            top.first = Some(FirstOfPartitions { window: 0, rows });
            fragment.pipelines[1].steps = vec![is_at_most(0, rows)];
            for engine in [engine(LaneOrder::Seeded(order)), sorting(LaneOrder::Seeded(order))] {
                let report = check_on(&engine, &fragment, &[&table]);
                let source = report.program().unwrap().source().to_string();
                assert!(source.contains("top_bounds"), "window {window}, {rows} rows");
            }
        }
    }
    // Of few rows a partition all are sorted.
    let mut fragment = rows_of(vec![], keys(), vec![call(WindowFunction::RowNumber, (1, 3), DataType::UInt64)]);
    let Sink::TopK(top) = &mut fragment.pipelines[0].sink else { panic!("no sort") };
    top.first = Some(FirstOfPartitions { window: 0, rows: 9 });
    fragment.pipelines[1].steps = vec![is_at_most(0, 9)];
    let report = check_on(&engine(LaneOrder::Forward), &fragment, &[&table_of(500, |_| Some(1))]);
    assert!(!report.program().unwrap().source().contains("top_bounds"));
}

/// The first so many keys, and the row's number.
fn keys_by(count: usize) -> Vec<OrderKey> {
    let mut all = keys();
    all.truncate(count);
    all
}

#[test]
fn values_of_other_rows() {
    let mut windows = Vec::new();
    for (output, ty) in types().into_iter().enumerate() {
        for (rows, skips_nulls) in [(0, false), (1, false), (3, true), (-1, false), (-2, true)] {
            let shift = WindowFunction::Shift { output, rows, default: Literal::Null, skips_nulls };
            windows.push(call(shift, (1, 3), ty.clone()));
        }
        let nth = |place, frame| WindowFunction::Nth { output, place, skips_nulls: place % 2 == 0, frame };
        let sliding = Frame { start: FrameBound::Rows(-2), end: FrameBound::Rows(1) };
        for function in [nth(1, ALL), nth(-1, TO_PEERS), nth(2, sliding), nth(-3, sliding), nth(-2, TO_PEERS)] {
            windows.push(call(function, (1, 3), ty.clone()));
        }
    }
    let default = |output, rows, default| WindowFunction::Shift { output, rows, default, skips_nulls: false };
    windows.push(call(default(2, 1, Literal::Int(-5_000_000_000)), (1, 3), DataType::Int64));
    windows.push(call(default(5, -1, Literal::Int(i32::MIN.into())), (1, 3), DataType::Int32));
    windows.push(call(default(4, 2, Literal::Int(10i128.pow(17))), (1, 3), DataType::Decimal128(38, 2)));
    // More columns than a word of validity has bits.
    assert!(windows.len() > 64);
    check_on(&engine(LaneOrder::Seeded(5)), &rows_of(vec![], keys(), windows), &[&table(400)]);
}

#[test]
fn aggregates_over_frames() {
    use FrameBound::{Peers, Rows, Unbounded};
    let (sum, decimal) = (DataType::Int64, DataType::Decimal128(38, 2));
    let mut windows = Vec::new();
    let frames = [
        (Unbounded, Unbounded),
        (Unbounded, Peers(0)),
        (Unbounded, Rows(0)),
        (Unbounded, Rows(-3)),
        (Unbounded, Peers(2)),
        (Rows(-2), Rows(2)),
        (Rows(1), Rows(4)),
        (Rows(-4), Rows(-2)),
        (Rows(0), Unbounded),
        (Peers(0), Peers(0)),
        (Peers(-1), Peers(1)),
        (Peers(1), Unbounded),
        (Peers(2), Peers(3)),
        (Peers(-3), Peers(-2)),
        (Rows(-1 << 60), Rows(1 << 60)),
    ];
    for (start, end) in frames {
        let frame = Frame { start, end };
        for (kind, output, ty) in [
            (AggregateKind::Count, None, &sum),
            (AggregateKind::Count, Some(3), &sum),
            (AggregateKind::Sum, Some(2), &sum),
            (AggregateKind::Sum, Some(4), &decimal),
            (AggregateKind::Sum, Some(5), &DataType::Float64),
        ] {
            windows.push(call(aggregate(kind, output, frame), (1, 2), ty.clone()));
        }
        for (output, ty) in types().into_iter().enumerate() {
            if start == Unbounded || output > 2 {
                windows.push(call(aggregate(AggregateKind::Min, Some(output), frame), (1, 2), ty.clone()));
                windows.push(call(aggregate(AggregateKind::Max, Some(output), frame), (1, 2), ty));
            }
        }
        let filtered = |kind, output| WindowFunction::Aggregate { kind, output, filter: Some(6), frame };
        windows.push(call(filtered(AggregateKind::Sum, Some(2)), (1, 2), sum.clone()));
        windows.push(call(filtered(AggregateKind::Count, None), (0, 1), sum.clone()));
    }
    check_on(&engine(LaneOrder::Seeded(7)), &rows_of(vec![], keys(), windows), &[&table(400)]);
}

#[test]
fn runs_lie_across_tiles_of_a_warp() {
    // A warp has two tiles of 128 rows; partitions have 3 to 250.
    let shares = call(WindowFunction::CumeDist, (2, 2), DataType::Float64);
    let windows = vec![call(WindowFunction::RowNumber, (2, 3), DataType::UInt64), shares];
    check_on(&sorting(LaneOrder::Seeded(4)), &rows_of(vec![], keys(), windows), &[&table(26_001)]);
}

#[test]
fn sums_past_64_bits() {
    let rows = 400;
    let large = |row: usize| Some(if row % 3 == 0 { i64::MIN + 5 } else { i64::MAX - row as i64 });
    let columns = table_of(rows, large);
    // Rows of a result hold no wide decimals; those of an order do.
    let wide = call(aggregate(AggregateKind::Sum, Some(2), TO_PEERS), (1, 2), DataType::Decimal128(38, 0));
    let mut ordered = rows_of(vec![], keys(), vec![wide]);
    let outputs = vec![(reg(5), DataType::Int32), (reg(7), DataType::Decimal128(38, 0))];
    let (keys_of_root, windows) = (vec![ascending(reg(5))], vec![]);
    ordered.pipelines[1].sink =
        Sink::TopK(TopK { keys: keys_of_root, k: None, skip: 0, outputs, windows, first: None, algorithm: None });
    check_all_orders(&ordered, &[&columns]);
    let narrow = call(aggregate(AggregateKind::Sum, Some(2), ALL), (1, 2), DataType::Int64);
    let mut raises = rows_of(vec![], keys(), vec![narrow]);
    let run = |fragment: &Fragment| {
        let requests = requests(fragment, &[&columns]);
        engine(LaneOrder::Forward).run_again(fragment, &BindingCache::default(), &requests, &RunOptions::default())
    };
    assert!(matches!(run(&raises), Err(EngineError::Evaluation("an overflow"))));
    raises.overflow = Overflow::Wrap;
    assert_eq!(run(&raises).unwrap().0.num_rows(), rows);
}

#[test]
fn filters_and_no_rows() {
    let windows = || {
        let count = call(aggregate(AggregateKind::Count, None, ALL), (1, 1), DataType::Int64);
        vec![call(WindowFunction::RowNumber, (1, 3), DataType::UInt64), count]
    };
    let engine = engine(LaneOrder::Seeded(2));
    for least in [-100, 15, 100] {
        let some = vec![filter(binary(BinaryOp::Gt, reg(1), int(least, Ty::I64)))];
        check_on(&engine, &rows_of(some, keys(), windows()), &[&table(2_500)]);
    }
    check_on(&engine, &rows_of(vec![], keys(), windows()), &[&table(0)]);
}

#[test]
fn keys_wider_than_a_rank() {
    let table = crate::top_k::all_kinds(600);
    let outputs: Vec<(Expr, DataType)> = vec![(reg(1), DataType::Int32), (reg(9), DataType::Utf8)];
    let keys = vec![ascending(reg(9)), ascending(reg(5)), descending(reg(2)), ascending(reg(8)), descending(reg(1))];
    let numbered = |order| call(WindowFunction::DenseRank, order, DataType::UInt64);
    let windows: Vec<WindowCall> = [(1, 2), (2, 3), (3, 4), (0, 5), (4, 5)].map(numbered).into();
    let columns = [(reg(0), DataType::Int32), (reg(1), DataType::Utf8)].into_iter();
    let columns = columns.chain((2..7).map(|at| (reg(at), DataType::UInt64))).collect();
    let sort = Sink::TopK(TopK { keys, k: None, skip: 0, outputs, windows, first: None, algorithm: None });
    let sorted = Pipeline { source: Source::Table(0), steps: vec![], sink: sort };
    let root = Pipeline { source: Source::Output(0), steps: vec![], sink: Sink::Rows { columns, limit: None } };
    check_on(&engine(LaneOrder::Forward), &fragment(&[11], vec![sorted, root]), &[&table]);
}

#[test]
fn the_room_for_filtered_rows_grows() {
    let facts = table(6_000);
    let some = vec![filter(binary(BinaryOp::Gt, reg(1), int(-19, Ty::I64)))];
    let windows = vec![call(WindowFunction::Rank, (1, 2), DataType::UInt64)];
    let fragment = rows_of(some, keys(), windows);
    let engine = engine(LaneOrder::Forward);
    let report = compare_with(&fragment, &[&facts], |_| {
        let options = RunOptions { group_slots: Some(64), ..RunOptions::default() };
        engine.run_again(&fragment, &BindingCache::default(), &requests(&fragment, &[&facts]), &options)
    });
    assert!(report.reruns > 0);
}
